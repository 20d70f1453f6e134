//! Inference tasks from the shell: data, training on answers, the suite, and what is refused.

use crate::common::{Place, files};
use serde_json::Value;

const RUN: &str = "data = \"few\"\nsuites = [\"inference\"]\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 32\n\
    max_steps = 12\nbatch = 16\nlr = 1e-2\neval_every = 12\nmax_len = 200\nthreads = 2\n";
const DATA: &str = "formats = { conclusion = 1, question = 1, term = 1 }\nrules = [\"MP\", \"AND-E\"]\ndepths = [[1, 1], [2, 1]]\n\
    deep = [[3, 1]]\ndistractors = 1\nmax_tokens = 160\n\
    stream = { train = 90, val = 20, test = 30, deep = 10 }\nfile_instances = 40\nseed = 3\n";

fn place() -> Place {
    Place::new(&[("run.toml", RUN), ("inference/few.toml", DATA)])
}

#[test]
fn from_data_to_a_table_of_answers() {
    let place = place();
    let manifest = place.json(&["gen-inference", "--config", "few.toml", "--json", "--quiet"]);
    assert_eq!(manifest["splits"]["train"]["instances"], 90);
    assert!(manifest["audit"]["question/unknown"]["area"].is_f64());
    // In shards, in another order: the same bytes.
    for shard in ["1/2", "0/2"] {
        place.ok(&[
            "gen-inference",
            "--config",
            "few.toml",
            "--out",
            "data/other",
            "--set",
            "name=few",
            "--shard",
            shard,
            "--quiet",
        ]);
    }
    assert!(files(&place.path("data/few")) == files(&place.path("data/other")));
    // What a run would be needs no data.
    let forecast = place.json(&["train", "--config", "run.toml", "--dry-run", "--json", "--quiet"]);
    let parameters = forecast["params"].as_u64().unwrap();
    place.ok(&["train", "--config", "run.toml", "--name", "a", "--quiet"]);
    let weights = std::fs::metadata(place.path("runs/a/model.safetensors")).unwrap().len();
    assert!(weights >= 4 * parameters, "{weights} bytes, {parameters} parameters");
    let page = std::fs::read_to_string(place.path("runs/a/report.html")).unwrap();
    for words in ["Answers to inference tasks", "transformer beam 10", "public plan", "rule applications"] {
        assert!(page.contains(words), "{words}");
    }
    let judged: Value =
        serde_json::from_slice(&std::fs::read(place.path("runs/a/eval.json")).unwrap()).unwrap();
    for (split, instances) in [("test", 30), ("deep", 10)] {
        let found = &judged["inference"]["splits"][split];
        assert_eq!(found["instances"], instances);
        let rows = found["rows"].as_array().unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["transformer", "transformer beam 10", "majority", "n-gram", "prover"]);
        for row in rows {
            let all = &row["all"];
            assert_eq!(all["instances"], instances);
            let of = |key: &str| all[key].as_f64().unwrap();
            assert!(of("exact") <= of("alpha") && of("alpha") <= of("read") && of("relevant") <= of("valid"));
            for group in ["formats", "labels", "depths"] {
                let parts = row[group].as_object().unwrap().values();
                assert_eq!(
                    parts.map(|part| part["instances"].as_u64().unwrap()).sum::<u64>(),
                    instances,
                    "{group}"
                );
            }
        }
        // The prover knows what its labels rest on, if its time is enough: no conclusion of it is wrong.
        let prover = rows.last().unwrap();
        assert_eq!(prover["all"]["read"], 1.0);
        let valid = prover["formats"]["question"]["valid"].as_f64().unwrap();
        assert!(valid > 0.5, "{valid}");
        // The commonest answer to a conclusion is `<unknown>`: it finds all of these.
        assert_eq!(rows[2]["formats"]["conclusion"]["unknown"]["recall"], 1.0);
    }
    // The loss is that of answers: two to four targets each, and not the whole sequence.
    let text = std::fs::read_to_string(place.path("runs/a/metrics.jsonl")).unwrap();
    let targets = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let targets = targets.filter_map(|line| line["targets"].as_u64()).max().unwrap();
    assert!(targets < 12 * 16 * 20, "{targets}");
    // Crosswise: trained on one set, judged on another too.
    std::fs::copy(place.path("configs/inference/few.toml"), place.path("configs/inference/twin.toml"))
        .unwrap();
    let crosswise = ["--set", "transfer=[\"twin\"]", "--set", "suites=[\"inference\", \"transfer\"]"];
    place.ok(&[&["train", "--config", "run.toml", "--name", "x", "--quiet"][..], &crosswise].concat());
    let both: Value =
        serde_json::from_slice(&std::fs::read(place.path("runs/x/eval.json")).unwrap()).unwrap();
    let model = |v: &Value| v["splits"]["test"]["rows"][0]["all"].clone();
    // The twin has the same tasks, so that it has the same answers.
    assert_eq!(model(&both["transfer"]["twin"]), model(&both["inference"]));
    assert_eq!(both["transfer"]["twin"]["splits"]["test"]["rows"].as_array().unwrap().len(), 2);
    assert!(place.ok(&["eval", "x", "--suite", "transfer"]).contains("twin, test: 30 instances"));
    assert!(place.path("runs/x/report.html").is_file());
    let sweep = "base = \"run.toml\"\nseeds = [0, 1]\n[grid]\nlr = [1e-2, 1e-9]\n[[claim]]\nname = \"learns\"\nsays = \"it learns\"\n\
        measure = \"valid\"\nleft = { lr = 1e-2 }\nright = { lr = 1e-9 }\nrule = \"greater\"\n";
    std::fs::write(place.path("configs/both.toml"), sweep).unwrap();
    place.ok(&["sweep", "--config", "both.toml", "--quiet"]);
    let table = std::fs::read_to_string(place.path("runs/both/table.md")).unwrap();
    assert!(table.contains("valid answers, share") && !table.contains("excess, nats"), "{table}");
    // What counts is the model's own greedy row, and a model without weights has none.
    let lines = std::fs::read_to_string(place.path("runs/both/table.json")).unwrap();
    let lines: Value = serde_json::from_str(&lines).unwrap();
    let first = std::fs::read(place.path("runs/both").join("lr=0.01/seed-0/eval.json")).unwrap();
    let first: Value = serde_json::from_slice(&first).unwrap();
    let own = &lines["runs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["point"] == "lr=0.01" && r["seed"] == 0)
        .unwrap()["valid"];
    assert_eq!(own, &first["inference"]["splits"]["test"]["rows"][0]["all"]["valid"]);
    // Over the depth the mean of both seeds, beside the commonest answer and what the public plan hopes for.
    let picture = std::fs::read_to_string(place.path("runs/both/valid-depth.svg")).unwrap();
    let shallow = |seed: u64| {
        let judged = std::fs::read(place.path(&format!("runs/both/lr=0.01/seed-{seed}/eval.json"))).unwrap();
        let judged: Value = serde_json::from_slice(&judged).unwrap();
        judged["inference"]["splits"]["test"]["rows"][0]["depths"]["1"]["valid"].as_f64().unwrap()
    };
    let shown = format!("rule applications 1: {:.4}", f64::midpoint(shallow(0), shallow(1)));
    for words in ["lr=0.01", "lr=0.000000001", "commonest answer", "public plan", &shown] {
        assert!(picture.contains(words), "{words}: {picture}");
    }
    let counted = "base = \"run.toml\"\nseeds = [0]\n[[case]]\nmodel = \"ngram\"\n";
    std::fs::write(place.path("configs/counted.toml"), counted).unwrap();
    let table = place.json(&["sweep", "--config", "counted.toml", "--quiet", "--json"]);
    assert!(table["runs"][0]["model"] == "ngram" && table["runs"][0]["valid"].is_null(), "{table}");
    std::fs::write(place.path("configs/both.toml"), sweep.replace("\"valid\"", "\"excess\"")).unwrap();
    assert!(place.refused(&["sweep", "--config", "both.toml", "--quiet"], 1).contains("no optimum is known"));
    assert!(
        place.refused(&["eval", "a", "--suite", "transfer"], 1).contains("names no data sets in transfer")
    );
    // Judged again, and on the other set.
    let again = place.json(&["eval", "a", "--json", "--quiet"]);
    let row = |v: &Value| v["inference"]["splits"]["test"]["rows"][0].clone();
    assert_eq!(row(&again), row(&judged));
    place.ok(&["eval", "a", "--data", "other", "--quiet"]);
    assert!(place.path("runs/a/eval-other.json").is_file());
    // A second run is the same.
    place.ok(&["train", "--config", "run.toml", "--name", "b", "--quiet", "--set", "suites=[]"]);
    place.same_result("runs/a", "runs/b");
}

#[test]
fn premises_are_read_in_both_directions() {
    let place = place();
    let both_ways = ["train", "--config", "run.toml", "--set", "attention_mask=prefix", "--quiet"];
    place.ok(&[&both_ways[..], &["--dry-run"]].concat());
    place.ok(&[&both_ways[..], &["--name", "a"]].concat());
    let judged: Value =
        serde_json::from_slice(&std::fs::read(place.path("runs/a/eval.json")).unwrap()).unwrap();
    let rows = judged["inference"]["splits"]["test"]["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["all"]["valid"].is_number()), "{judged}");
    // Answers, and a beam of them, behind what was given.
    let ask = ["sample", "a", "--prompt", "P(c), P(c) → Q(c) ⊢", "--n", "2", "--json", "--quiet"];
    let answers = place.json(&[&ask[..ask.len() - 1], &["--beam", "2"]].concat());
    assert_eq!(answers["items"].as_array().unwrap().len(), 2, "{answers}");
    assert!(
        place.refused(&["sample", "a"], 1).contains("premises, and then ENTAILS"),
        "nothing is asked of what answers"
    );
    for (set, what) in [
        ("data=public-iid", "only inference tasks have premises"),
        ("model=lstm", "has no attention"),
        ("notation=prefix", "canonical symbols alone"),
        ("structure=bias", "relations are those to earlier tokens"),
        ("device=vulkan", "attention on vulkan is causal"),
    ] {
        let said = place.refused(&[&both_ways[..], &["--set", set]].concat(), 1);
        assert!(said.contains(what), "{set}: {said}");
    }
    assert!(place.refused(&["export", "a", "--format", "hf"], 1).contains("attention_mask"));
}

#[test]
fn what_does_not_fit_is_refused_with_its_reason() {
    let place = place();
    let refused = |args: &[&str], what: &str| {
        let said = place.refused(&[args, &["--quiet"]].concat(), 1);
        assert!(said.contains(what), "{args:?}: {said}");
    };
    refused(&["gen-inference", "--config", "few.toml", "--set", "rules=[\"EQ-SUB\"]"], "rules: EQ-SUB");
    refused(&["gen-inference", "--config", "few.toml", "--set", "formats.steps=1"], "same prefix");
    refused(&["gen-inference", "--config", "fwe.toml"], "few.toml");
    std::fs::write(place.path("configs/inference/wrong.toml"), "seed = 1\ndepts = [[1, 1]]\n").unwrap();
    refused(&["gen-inference", "--config", "wrong.toml"], "line 2, column 1");
    refused(&["train", "--config", "run.toml", "--set", "max_len=8"], "max_len = 8");
    refused(&["train", "--config", "run.toml", "--set", "tokenization=atomic"], "canonical symbols");
    refused(&["train", "--config", "run.toml", "--set", "suites=[\"iid\"]", "--name", "c"], "suite iid");
    // A configuration that was edited after its data were made.
    std::fs::write(place.path("configs/inference/few.toml"), DATA.replace("seed = 3", "seed = 4")).unwrap();
    refused(&["train", "--config", "run.toml"], "gen-inference --config few.toml --force");
    refused(&["gen-inference", "--config", "few.toml"], "another configuration");
    place.ok(&["gen-inference", "--config", "few.toml", "--force", "--quiet"]);
}
