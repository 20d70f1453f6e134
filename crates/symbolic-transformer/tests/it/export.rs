//! An exported folder, computed again: OPT and GPT-2 written down from their papers, in plain loops over f64, from
//! `config.json` and `model.safetensors` alone.

use std::collections::BTreeMap;
use std::path::Path;

use crate::moved::{moved_weights, variants};
use fol::notation::{Code, Notation, Tokenization};
use safetensors::SafeTensors;
use serde_json::Value;
use symbolic_transformer::config::{
    Activation, AttentionMask, Embedding, ModelConfig, NormPlace, Position, Structured,
};
use symbolic_transformer::export::{About, Refusal, hf};

/// What stands in a folder.
struct Folder {
    config: Value,
    weights: BTreeMap<String, Vec<f64>>,
    shapes: BTreeMap<String, Vec<usize>>,
}

fn tensors(path: &Path) -> (BTreeMap<String, Vec<f64>>, BTreeMap<String, Vec<usize>>) {
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!(header.metadata().clone().unwrap(), [("format".to_owned(), "pt".to_owned())].into());
    let (mut weights, mut shapes) = (BTreeMap::new(), BTreeMap::new());
    for (name, view) in file.tensors() {
        let entries = match view.dtype() {
            safetensors::Dtype::F32 => {
                view.data().chunks(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect()
            }
            _ => view.data().chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()) as f64).collect(),
        };
        weights.insert(name.clone(), entries);
        shapes.insert(name, view.shape().to_vec());
    }
    (weights, shapes)
}

impl Folder {
    fn open(path: &Path) -> Self {
        let config = serde_json::from_slice(&std::fs::read(path.join("config.json")).unwrap()).unwrap();
        let (weights, shapes) = tensors(&path.join("model.safetensors"));
        Self { config, weights, shapes }
    }

    fn number(&self, key: &str) -> usize {
        self.config[key].as_u64().unwrap_or_else(|| panic!("{key}")) as usize
    }

    fn weight(&self, name: &str) -> &[f64] {
        &self.weights[name]
    }

    fn row(&self, name: &str, i: usize, d: usize) -> &[f64] {
        &self.weight(name)[i * d..(i + 1) * d]
    }

    fn norm(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
        let (w, b) = (self.weight(&format!("{name}.weight")), self.weight(&format!("{name}.bias")));
        x.iter()
            .zip(w.iter().zip(b))
            .map(|(v, (w, b))| (v - mean) / (variance + 1e-5).sqrt() * w + b)
            .collect()
    }

    /// W·x + b with W stored [out, in], or [in, out] as GPT-2 does.
    fn map(&self, name: &str, x: &[f64], input_first: bool) -> Vec<f64> {
        let (w, b) = (self.weight(&format!("{name}.weight")), self.weight(&format!("{name}.bias")));
        let (rows, columns) = (b.len(), x.len());
        let at = |o: usize, i: usize| if input_first { w[i * rows + o] } else { w[o * columns + i] };
        (0..rows).map(|o| b[o] + (0..columns).map(|i| at(o, i) * x[i]).sum::<f64>()).collect()
    }

    fn activate(&self, x: f64) -> f64 {
        match self.config["activation_function"].as_str().unwrap() {
            "gelu" => 0.5 * x * (1.0 + candle_core::cpu::erf::erf_f64(x / std::f64::consts::SQRT_2)),
            "gelu_new" => {
                0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
            }
            "relu" => x.max(0.0),
            other => panic!("{other}"),
        }
    }

    fn head(&self, x: &[f64]) -> Vec<f64> {
        let dot = |row: &[f64]| row.iter().zip(x).map(|(w, x)| w * x).sum();
        self.weight("lm_head.weight").chunks(x.len()).map(dot).collect()
    }

    /// Logits of each position.
    fn forward(&self, tokens: &[usize]) -> Vec<Vec<f64>> {
        assert_eq!(self.config["tie_word_embeddings"], false);
        match self.config["model_type"].as_str().unwrap() {
            "opt" => self.opt(tokens),
            "gpt2" => self.gpt2(tokens),
            other => panic!("{other}"),
        }
    }

    fn opt(&self, tokens: &[usize]) -> Vec<Vec<f64>> {
        assert_eq!(self.config["do_layer_norm_before"], false);
        let (d, heads) = (self.number("hidden_size"), self.number("num_attention_heads"));
        let mut h: Vec<Vec<f64>> = Vec::new();
        for (p, &t) in tokens.iter().enumerate() {
            let position = self.row("model.decoder.embed_positions.weight", p + 2, d);
            h.push(sum(self.row("model.decoder.embed_tokens.weight", t, d), position));
        }
        for n in 0..self.number("num_hidden_layers") {
            let name = |part: &str| format!("model.decoder.layers.{n}.{part}");
            let part = |p: &str| h.iter().map(|x| self.map(&name(p), x, false)).collect::<Vec<_>>();
            let (q, k, v) = (part("self_attn.q_proj"), part("self_attn.k_proj"), part("self_attn.v_proj"));
            let context = attention(&q, &k, &v, heads);
            for (x, c) in h.iter_mut().zip(&context) {
                let y = sum(x, &self.map(&name("self_attn.out_proj"), c, false));
                let y = self.norm(&name("self_attn_layer_norm"), &y);
                let up: Vec<f64> =
                    self.map(&name("fc1"), &y, false).into_iter().map(|u| self.activate(u)).collect();
                *x = self.norm(&name("final_layer_norm"), &sum(&y, &self.map(&name("fc2"), &up, false)));
            }
        }
        h.iter().map(|x| self.head(x)).collect()
    }

    fn gpt2(&self, tokens: &[usize]) -> Vec<Vec<f64>> {
        let (d, heads) = (self.number("n_embd"), self.number("n_head"));
        let mut h: Vec<Vec<f64>> = Vec::new();
        for (p, &t) in tokens.iter().enumerate() {
            h.push(sum(self.row("transformer.wte.weight", t, d), self.row("transformer.wpe.weight", p, d)));
        }
        for n in 0..self.number("n_layer") {
            let name = |part: &str| format!("transformer.h.{n}.{part}");
            let qkv: Vec<Vec<f64>> = h
                .iter()
                .map(|x| self.map(&name("attn.c_attn"), &self.norm(&name("ln_1"), x), true))
                .collect();
            let part = |i: usize| qkv.iter().map(|r| r[i * d..(i + 1) * d].to_vec()).collect::<Vec<_>>();
            let context = attention(&part(0), &part(1), &part(2), heads);
            for (x, c) in h.iter_mut().zip(&context) {
                *x = sum(x, &self.map(&name("attn.c_proj"), c, true));
                let up = self.map(&name("mlp.c_fc"), &self.norm(&name("ln_2"), x), true);
                let up: Vec<f64> = up.into_iter().map(|u| self.activate(u)).collect();
                *x = sum(x, &self.map(&name("mlp.c_proj"), &up, true));
            }
        }
        h.iter().map(|x| self.head(&self.norm("transformer.ln_f", x))).collect()
    }
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// Causal attention with heads side by side in each row.
fn attention(q: &[Vec<f64>], k: &[Vec<f64>], v: &[Vec<f64>], heads: usize) -> Vec<Vec<f64>> {
    let size = q[0].len() / heads;
    let mut context = vec![vec![0.0; q[0].len()]; q.len()];
    for (i, head) in (0..q.len()).flat_map(|i| (0..heads).map(move |head| (i, head))) {
        let part = head * size..(head + 1) * size;
        let score = |j: usize| part.clone().map(|c| q[i][c] * k[j][c]).sum::<f64>() / (size as f64).sqrt();
        let weights: Vec<f64> = (0..=i).map(|j| score(j).exp()).collect();
        let total: f64 = weights.iter().sum();
        for (j, w) in weights.iter().enumerate() {
            part.clone().for_each(|c| context[i][c] += w / total * v[j][c]);
        }
    }
    context
}

fn exported(config: &ModelConfig, theta: &[f32]) -> (Folder, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    hf(config, &Code::PLAIN, theta, &About { name: "test".to_owned(), ..About::default() }, folder.path())
        .unwrap();
    (Folder::open(folder.path()), folder)
}

#[test]
fn the_exported_folder_computes_the_model() {
    for (name, config) in variants(16) {
        let theta = moved_weights(name, &config);
        let (model, folder) = exported(&config, &theta);
        let (probe, shapes) = tensors(&folder.path().join("probe.safetensors"));
        assert_eq!((&shapes["tokens"][..], &shapes["logits"][..]), (&[8, 64][..], &[8, 64, 663][..]));
        let mut worst = 0.0_f64;
        for (tokens, logits) in probe["tokens"].chunks(64).zip(probe["logits"].chunks(64 * 663)) {
            let tokens: Vec<usize> = tokens.iter().map(|&t| t as usize).collect();
            assert_eq!(tokens[0], 656);
            for (p, (got, want)) in model.forward(&tokens).iter().zip(logits.chunks(663)).enumerate() {
                worst = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(worst, f64::max);
                // The second half is our model's greedy continuation.
                if (31..63).contains(&p) {
                    let largest = (0..663).fold(0, |m, i| if want[i] > want[m] { i } else { m });
                    assert_eq!(tokens[p + 1], largest, "{name}: token {p}");
                }
            }
        }
        assert!(worst < 1e-5, "{name}: logits differ by {worst}");
    }
}

#[test]
fn names_and_shapes() {
    let config = ModelConfig { max_len: 70, ..variants(16)[0].1.clone() };
    let (post, _) = exported(&config, &moved_weights("a", &config));
    let (layers, d, f) = (config.n_layers, config.d_model, config.d_ff);
    assert_eq!(post.number("num_hidden_layers"), layers + 1);
    assert_eq!(post.shapes.len(), 2 + 16 * (layers + 1) + 1);
    assert_eq!(post.shapes["model.decoder.embed_positions.weight"], [72, d]);
    assert_eq!(post.shapes["model.decoder.layers.0.fc1.weight"], [f, d]);
    assert_eq!(post.shapes["lm_head.weight"], [663, d]);

    let config = ModelConfig { final_norm: false, ..config };
    let (bare, _) = exported(&config, &moved_weights("b", &config));
    assert_eq!(bare.number("num_hidden_layers"), layers);

    let config = ModelConfig { final_norm: true, norm: NormPlace::Pre, ..config };
    let (pre, _) = exported(&config, &moved_weights("c", &config));
    assert_eq!(pre.shapes.len(), 2 + 12 * layers + 2 + 1);
    assert_eq!(pre.shapes["transformer.h.1.attn.c_attn.weight"], [d, 3 * d]);
    assert_eq!(pre.shapes["transformer.h.0.mlp.c_fc.weight"], [d, f]);
    assert_eq!(pre.shapes["transformer.wpe.weight"], [70, d]);
}

#[test]
fn a_folder_is_whole_and_repeats() {
    let config = variants(16)[0].1.clone();
    let theta = moved_weights("whole", &config);
    let (_, a) = exported(&config, &theta);
    let (_, b) = exported(&config, &theta);
    let mut names: Vec<String> =
        std::fs::read_dir(a.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "README.md",
            "config.json",
            "generation_config.json",
            "model.safetensors",
            "probe.safetensors",
            "special_tokens_map.json",
            "tokenizer.json",
            "tokenizer_config.json"
        ]
    );
    for name in names {
        let read = |folder: &Path| std::fs::read(folder.join(&name)).unwrap();
        assert_eq!(read(a.path()), read(b.path()), "{name}");
    }
}

#[test]
fn short_models_have_a_short_probe() {
    for max_len in [1, 2, 7] {
        let config = ModelConfig { max_len, ..variants(16)[0].1.clone() };
        let (_, folder) = exported(&config, &moved_weights("short", &config));
        let (_, shapes) = tensors(&folder.path().join("probe.safetensors"));
        assert_eq!(shapes["tokens"], [8, max_len]);
    }
}

#[test]
fn what_no_class_computes_is_refused() {
    let good = variants(16)[0].1.clone();
    for (config, word) in [
        (ModelConfig { position: Position::Rotary, ..good.clone() }, "rotary"),
        (ModelConfig { position: Position::Alibi, ..good.clone() }, "alibi"),
        (ModelConfig { position: Position::Tree, ..good.clone() }, "tree"),
        (ModelConfig { norm: NormPlace::Pre, final_norm: false, ..good.clone() }, "final_norm"),
        (ModelConfig { structure: Structured::Bias, ..good.clone() }, "structure"),
        (ModelConfig { attention_mask: AttentionMask::Prefix, ..good.clone() }, "attention_mask"),
        (ModelConfig { vocab_size: 1288, ..good.clone() }, "1288"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let refused = hf(&config, &Code::PLAIN, &[], &About::default(), folder.path()).unwrap_err();
        assert!(matches!(refused, Refusal::NotRepresentable { .. }) && refused.kind() == "NotRepresentable");
        assert!(refused.to_string().contains(word), "{refused}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    let signature = fol::law::Law::named("seed", &[]).unwrap().signature();
    for (tokenization, notation, word) in [
        (Tokenization::Atomic, Notation::Infix, "atomic"),
        (Tokenization::Compositional, Notation::Prefix, "prefix"),
    ] {
        let code = Code::new(tokenization, notation, &signature, None).unwrap();
        let config = ModelConfig { vocab_size: code.size(), embedding: Embedding::Learned, ..good.clone() };
        let folder = tempfile::tempdir().unwrap();
        let refused = hf(&config, &code, &[], &About::default(), folder.path()).unwrap_err();
        assert!(matches!(refused, Refusal::NotRepresentable { .. }) && refused.to_string().contains(word));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        hf(&good, &Code::PLAIN, &[0.0], &About::default(), folder.path()),
        Err(Refusal::Training(_))
    ));
    let wrong =
        ModelConfig { n_heads: 3, embedding: Embedding::Learned, activation: Activation::Relu, ..good };
    assert!(matches!(
        hf(&wrong, &Code::PLAIN, &[0.0], &About::default(), folder.path()),
        Err(Refusal::Training(_))
    ));
}

/// Nothing compared is no success: without its packages the script fails, unless it is told to skip.
#[test]
fn the_comparison_with_transformers_fails_where_nothing_can_be_compared() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hf_parity.py");
    let run = |more: &[&str]| {
        // `-I -S`: the packages of this machine are out of sight.
        let mut command = std::process::Command::new("python3");
        command.args(["-I", "-S"]).arg(&script).args(more).arg("folder").output().ok()
    };
    let (Some(plain), Some(told)) = (run(&[]), run(&["--skip-without-packages"])) else {
        println!("skipped: there is no python3 here");
        return;
    };
    assert_eq!((plain.status.code(), told.status.code()), (Some(3), Some(0)));
    assert!(String::from_utf8_lossy(&told.stdout).contains("skipped"));
}
