//! The configuration of a run of the transformer, or of what it is compared with.

use anyhow::{Result, anyhow, bail};
use fol::notation::{Notation, Tokenization};
use serde::{Deserialize, Serialize};
use symbolic_transformer::config::{
    Activation, AttentionMask, Embedding, Init, ModelConfig, NormPlace, Position, Structured,
};
use symbolic_transformer::moderator;
use symbolic_transformer::order::{BatchUnit, Batching};
use training::optimiser::AdamW;
use training::schedule::{Decline, Schedule};

use crate::data;
use crate::expect::Expect;
use crate::keys::Faults;

/// The learner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Model {
    Transformer,
    Lstm,
    Ngram,
    /// Every token alike.
    Uniform,
    /// Every token alike that may stand there.
    GrammarUniform,
}

impl Model {
    /// Its name in a configuration.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Transformer => "transformer",
            Self::Lstm => "lstm",
            Self::Ngram => "ngram",
            Self::Uniform => "uniform",
            Self::GrammarUniform => "grammar-uniform",
        }
    }

    /// Whether it has weights, which are trained.
    pub(crate) fn has_weights(self) -> bool {
        match self {
            Self::Transformer | Self::Lstm => true,
            Self::Ngram | Self::Uniform | Self::GrammarUniform => false,
        }
    }
}

/// Where the list of whole names comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NamesOf {
    /// All that the law can write.
    Law,
    /// Those of the training set.
    Data,
}

/// The suites of an evaluation.
pub(crate) const SUITES: [&str; 11] = [
    "iid",
    "test",
    "generation",
    "semantics",
    "completion",
    "transfer",
    "structure",
    "h3",
    "criticality",
    "inference",
    "texts",
];

/// The number of warm-up updates: a number, or `"auto"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Warmup {
    Updates(u64),
    Named(Auto),
}

/// The word `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Auto {
    Auto,
}

/// All keys. Options are keys without a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) model: Model,
    pub(crate) data: String,
    /// A run, or a file of weights, that the weights begin as.
    pub(crate) init_from: Option<String>,
    /// A program of the equation language that says forward pass and loss in place of the code that is written by hand.
    pub(crate) program: Option<String>,
    pub(crate) seed: u64,
    pub(crate) suites: Vec<String>,
    /// Data sets of other laws or splits that the suite `transfer` judges on.
    pub(crate) transfer: Vec<String>,
    pub(crate) order: Option<usize>,

    pub(crate) d_model: Option<usize>,
    pub(crate) n_layers: Option<usize>,
    pub(crate) n_heads: Option<usize>,
    pub(crate) d_ff: Option<usize>,
    pub(crate) norm: Option<NormPlace>,
    pub(crate) final_norm: bool,
    pub(crate) activation: Activation,
    pub(crate) position: Position,
    /// What attention knows of the tree.
    pub(crate) structure: Structured,
    /// Whether premises of inference tasks see one another.
    pub(crate) attention_mask: AttentionMask,
    pub(crate) max_len: usize,
    pub(crate) embedding: Embedding,
    pub(crate) scale_embedding: bool,
    pub(crate) tie_output: bool,
    pub(crate) init: Init,
    pub(crate) dropout: f64,
    pub(crate) tokenization: Tokenization,
    pub(crate) notation: Notation,
    /// Where names are whole tokens: which have one; those of the law if nothing is said.
    pub(crate) entities: Option<NamesOf>,
    /// In so many of 100 cases a binary or atomic formula stands in a second pair of parentheses.
    pub(crate) double_parentheses: Option<u8>,

    pub(crate) epochs: u64,
    pub(crate) max_steps: u64,
    pub(crate) batch: usize,
    pub(crate) batch_unit: BatchUnit,
    pub(crate) batching: Batching,
    pub(crate) pack_len: usize,
    pub(crate) accumulate: usize,
    /// Pieces of a batch whose gradients are summed in a fixed tree: as many ranks as divide it have the same weights.
    pub(crate) pieces: Option<usize>,
    /// Layers keep their inputs alone and are computed once more on the way back: less memory, more time, the same bits.
    pub(crate) gradient_checkpointing: bool,
    pub(crate) train_limit: usize,
    /// What sets the gains of the layers: off (the sensors are read all the same), document, homeostatic (or on), trn.
    pub(crate) moderator: Option<moderator::Policy>,
    /// What κ is made of: branching, gain (if nothing is said), rho.
    pub(crate) moderator_sensor: Option<moderator::Sensor>,
    /// How κ is made of the branching: mean (if nothing is said), multi-lag.
    pub(crate) moderator_estimator: Option<moderator::Estimator>,
    /// η of homeostatic; 0.05.
    pub(crate) moderator_rate: Option<f64>,
    /// α of the smoothing of κ; 0.05.
    pub(crate) moderator_smoothing: Option<f64>,
    /// A component of a normalised state is active beyond it; 1.
    pub(crate) moderator_threshold: Option<f64>,
    /// The state of document: subcritical, near-critical (if nothing is said), supercritical.
    pub(crate) moderator_state: Option<moderator::Regime>,
    /// The gains of these three states; 0.8, 1, 1.2.
    pub(crate) moderator_values: Option<[f64; 3]>,
    /// κ above which trn lets nothing through; never, if nothing is said.
    pub(crate) moderator_shutdown: Option<f64>,
    /// Texts of each batch that the sensors look at; 8.
    pub(crate) moderator_sequences: Option<usize>,
    pub(crate) lr: f64,
    pub(crate) beta1: f64,
    pub(crate) beta2: f64,
    pub(crate) eps: f64,
    pub(crate) weight_decay: f64,
    pub(crate) schedule: String,
    pub(crate) warmup_steps: Warmup,
    pub(crate) min_lr: f64,
    pub(crate) clip: f64,
    pub(crate) label_smoothing: f64,
    pub(crate) ema: f64,
    pub(crate) patience: u64,
    pub(crate) min_delta: f64,
    pub(crate) eval_every: u64,
    pub(crate) log_every: u64,
    pub(crate) save_every: u64,
    pub(crate) precision: String,
    pub(crate) device: String,
    pub(crate) threads: usize,

    pub(crate) expect: Option<Expect>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: Model::Transformer,
            data: "public-iid".to_owned(),
            init_from: None,
            program: None,
            seed: 0,
            suites: vec!["iid".to_owned(), "generation".to_owned()],
            transfer: Vec::new(),
            order: None,
            d_model: None,
            n_layers: None,
            n_heads: None,
            d_ff: None,
            norm: None,
            final_norm: true,
            activation: Activation::Gelu,
            position: Position::Sinusoidal,
            structure: Structured::None,
            attention_mask: AttentionMask::Causal,
            max_len: 512,
            embedding: Embedding::Learned,
            scale_embedding: true,
            tie_output: false,
            init: Init::Document,
            dropout: 0.1,
            tokenization: Tokenization::Compositional,
            notation: Notation::Infix,
            entities: None,
            double_parentheses: None,
            epochs: 50,
            max_steps: 0,
            batch: 32,
            batch_unit: BatchUnit::Formulas,
            batching: Batching::Plain,
            pack_len: 512,
            accumulate: 1,
            pieces: None,
            gradient_checkpointing: false,
            train_limit: 0,
            moderator: None,
            moderator_sensor: None,
            moderator_estimator: None,
            moderator_rate: None,
            moderator_smoothing: None,
            moderator_threshold: None,
            moderator_state: None,
            moderator_values: None,
            moderator_shutdown: None,
            moderator_sequences: None,
            lr: 1e-4,
            beta1: 0.9,
            beta2: 0.98,
            eps: 1e-9,
            weight_decay: 0.01,
            schedule: "cosine".to_owned(),
            warmup_steps: Warmup::Named(Auto::Auto),
            min_lr: 0.0,
            clip: 1.0,
            label_smoothing: 0.0,
            ema: 0.0,
            // The last and best part of a declining rate is never cut off (docs/sources.md, T6).
            patience: 0,
            min_delta: 1e-3,
            eval_every: 0,
            log_every: 50,
            save_every: 1000,
            precision: "f32".to_owned(),
            device: "cpu".to_owned(),
            threads: 0,
            expect: None,
        }
    }
}

impl Config {
    /// Whether products are those of numbers that are rounded to bf16.
    pub(crate) fn is_half(&self) -> bool {
        self.precision == "bf16"
    }

    /// Whether there is something that the suite `h3` could look into.
    pub(crate) fn check_h3(&self) -> Result<()> {
        self.check_inside("h3", "attention")
    }

    /// Whether the model is a transformer, into a part of which `what` looks.
    pub(crate) fn check_inside(&self, what: &str, part: &str) -> Result<()> {
        if self.model != Model::Transformer {
            let model = self.model.name();
            bail!("{what} looks into the {part} of a transformer, and model = \"{model}\" has none");
        }
        Ok(())
    }

    /// Whether there are layers that the suite `criticality` could look into.
    pub(crate) fn check_criticality(&self) -> Result<()> {
        self.check_inside("criticality", "layers")
    }

    /// Ranges and cross-checks; every violation is listed.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let mut faults = Faults::default();
        let Self { batch, accumulate, lr, eps, threads, .. } = *self;
        for (key, value) in [
            ("batch", batch as u64),
            ("accumulate", accumulate as u64),
            ("log_every", self.log_every),
            ("save_every", self.save_every),
        ] {
            faults.demand(value >= 1, format!("{key} = {value}: at least 1"));
        }
        faults.demand(
            self.batch_unit == BatchUnit::Tokens || batch.is_multiple_of(accumulate.max(1)),
            format!("accumulate = {accumulate} does not divide batch = {batch}"),
        );
        if let Some(pieces) = self.pieces {
            faults.demand(
                (1..=4096).contains(&pieces) && (self.batch_unit == BatchUnit::Tokens || pieces <= batch),
                format!("pieces = {pieces}: at least 1, at most 4096 and batch = {batch}"),
            );
            faults.demand(
                accumulate == 1,
                format!("accumulate = {accumulate}: with `pieces` the batch is cut into these"),
            );
        }
        for (key, value) in [("lr", lr), ("eps", eps)] {
            faults.demand(value > 0.0 && value.is_finite(), format!("{key} = {value}: above 0"));
        }
        for (key, value) in [
            ("beta1", self.beta1),
            ("beta2", self.beta2),
            ("ema", self.ema),
            ("label_smoothing", self.label_smoothing),
        ] {
            faults.demand((0.0..1.0).contains(&value), format!("{key} = {value}: 0 to below 1"));
        }
        for (key, value) in [
            ("weight_decay", self.weight_decay),
            ("clip", self.clip),
            ("min_lr", self.min_lr),
            ("min_delta", self.min_delta),
        ] {
            faults.demand(value >= 0.0 && value.is_finite(), format!("{key} = {value}: 0 or above"));
        }
        faults.demand(threads <= 1024, format!("threads = {threads}: 0 (all cores) to 1024"));
        let trains = self.epochs >= 1 || self.max_steps >= 1;
        faults.demand(trains, "epochs = 0 and max_steps = 0: nothing to train");
        let declines = self.schedule.parse::<Decline>().is_ok();
        faults.demand(declines, format!("schedule = \"{}\": cosine, linear or constant", self.schedule));
        let precision = &self.precision;
        let known = ["f32", "bf16"].contains(&precision.as_str());
        let why = if precision == "f16" {
            " (gradients in f16 must be scaled, which nothing here does)"
        } else {
            ""
        };
        faults.demand(known, format!("precision = \"{precision}\": f32 or bf16{why}"));
        if self.is_half() {
            let model = self.model.name();
            let fits = self.model == Model::Transformer && self.program.is_none();
            faults.demand(
                fits,
                format!(
                    "precision = \"bf16\": the explicit engine has it, and not model = \"{model}\"{}",
                    if self.program.is_some() { " by a program" } else { "" },
                ),
            );
        }
        let doubled = self.double_parentheses.unwrap_or(0);
        faults.demand(doubled <= 99, format!("double_parentheses = {doubled}: 0 to 99, of 100 formulas"));
        faults.demand(
            doubled == 0 || self.notation == Notation::Infix,
            "double_parentheses: notation = \"prefix\" has no parentheses",
        );
        faults.demand(
            doubled == 0 || self.model != Model::GrammarUniform,
            "double_parentheses: model = \"grammar-uniform\" needs masks, and such a code has none",
        );
        faults.demand(
            self.entities.is_none() || self.tokenization == Tokenization::Atomic,
            "entities: only with tokenization = \"atomic\" are names whole tokens",
        );
        faults.demand(self.order.is_none_or(|o| (1..=7).contains(&o)), "order: 1 to 7");
        for suite in &self.suites {
            let known = SUITES.contains(&suite.as_str());
            faults.demand(known, format!("suites: \"{suite}\" is none of {}", SUITES.join(", ")));
        }
        let of_texts = data::is_texts(&self.data);
        let wrong = self.suites.iter().find(|suite| (*suite == "texts") != of_texts);
        faults.demand(
            wrong.is_none(),
            format!(
                "suites: \"{}\" with data = \"{}\": a file of texts (*.txt) is judged by \"texts\", and nothing else is",
                wrong.map_or("", String::as_str),
                self.data
            ),
        );
        let transfers = self.suites.iter().any(|suite| suite == "transfer");
        faults.demand(
            transfers != self.transfer.is_empty(),
            "transfer: the data sets that the suite \"transfer\" judges on; one without the other says nothing",
        );
        let mut named = self.transfer.clone();
        named.sort_unstable();
        named.dedup();
        faults.demand(named.len() == self.transfer.len(), "transfer: a data set stands twice");
        if self.suites.iter().any(|suite| suite == "h3") {
            let refused = self.check_h3().err();
            faults.demand(refused.is_none(), refused.map_or_else(String::new, |e| format!("suites: {e}")));
        }
        if self.suites.iter().any(|suite| suite == "criticality") {
            let refused = self.check_criticality().err();
            faults.demand(refused.is_none(), refused.map_or_else(String::new, |e| format!("suites: {e}")));
        }
        if self.program.is_some() {
            let fits = self.model == Model::Transformer;
            faults.demand(fits, format!("program: with model = \"{}\" there is none", self.model.name()));
            faults
                .demand(self.device == "cpu", format!("program: it runs on the cpu, not on {}", self.device));
            let smoothing = self.label_smoothing;
            faults.demand(
                smoothing == 0.0,
                format!("program: label_smoothing = {smoothing}: a program has none"),
            );
        }
        if self.gradient_checkpointing {
            let model = self.model.name();
            let fits = self.model == Model::Transformer;
            faults.demand(
                fits,
                format!("gradient_checkpointing: model = \"{model}\" has no layers to compute once more"),
            );
            faults.demand(
                self.program.is_none(),
                "gradient_checkpointing: a program says itself what is computed, and when",
            );
            faults.demand(
                self.device == "cpu",
                format!(
                    "gradient_checkpointing: only the engine of the cpu has it, not that of {}",
                    self.device
                ),
            );
        }
        if self.structure != Structured::None {
            let (structure, model) = (self.structure, self.model.name());
            let fits = self.model == Model::Transformer;
            faults.demand(fits, format!("structure: model = \"{model}\" has no attention"));
            faults.demand(
                self.program.is_none(),
                format!("structure = \"{structure}\": a program says itself what attention knows"),
            );
            faults.demand(
                self.device == "cpu",
                format!("structure: only the engine of the cpu knows relations, not that of {}", self.device),
            );
        }
        if self.attention_mask != AttentionMask::Causal {
            self.check_prefix(&mut faults);
        }
        self.check_moderator(&mut faults);
        if self.model.has_weights() {
            // The number of tokens is known with the law; of an atomic vocabulary here only that it has no pictures.
            let signs = fol::symbol::VOCABULARY - usize::from(fol::symbol::BASE);
            let size = match self.tokenization {
                Tokenization::Compositional => fol::symbol::VOCABULARY,
                Tokenization::Atomic => signs,
            };
            match self.shape(size) {
                Ok(shape) if self.model == Model::Lstm => {
                    faults.0.extend(symbolic_transformer::lstm::check(&shape).err().map(|e| e.to_string()));
                }
                Ok(shape) => faults.0.extend(shape.problems()),
                Err(missing) => faults.0.push(missing.to_string()),
            }
        }
        faults.refuse(name)
    }

    /// Premises that see one another: of data, engines and codes that have none.
    fn check_prefix(&self, faults: &mut Faults) {
        let (model, data) = (self.model.name(), &self.data);
        let fits = self.model == Model::Transformer;
        faults.demand(fits, format!("attention_mask: model = \"{model}\" has no attention"));
        faults.demand(
            self.program.is_none(),
            "attention_mask = \"prefix\": a program says itself which tokens see which",
        );
        faults.demand(
            self.device == "cpu",
            format!(
                "attention_mask: attention on {} is causal; only the engine of the cpu has a prefix",
                self.device
            ),
        );
        let premises = !data::is_texts(data) && data::is_inference(data);
        faults.demand(
            premises,
            format!(
                "attention_mask = \"prefix\" with data = \"{data}\": only inference tasks have premises before the sign of an answer"
            ),
        );
        faults.demand(
            self.is_plain(),
            "attention_mask = \"prefix\": the sign of an answer is found in canonical symbols alone",
        );
    }

    /// Keys of the moderator without one, engines without sensors, and values that it cannot have.
    fn check_moderator(&self, faults: &mut Faults) {
        let Some(settings) = self.moderator() else {
            for (key, is_there) in [
                ("moderator_sensor", self.moderator_sensor.is_some()),
                ("moderator_estimator", self.moderator_estimator.is_some()),
                ("moderator_rate", self.moderator_rate.is_some()),
                ("moderator_smoothing", self.moderator_smoothing.is_some()),
                ("moderator_threshold", self.moderator_threshold.is_some()),
                ("moderator_state", self.moderator_state.is_some()),
                ("moderator_values", self.moderator_values.is_some()),
                ("moderator_shutdown", self.moderator_shutdown.is_some()),
                ("moderator_sequences", self.moderator_sequences.is_some()),
            ] {
                faults.demand(!is_there, format!("{key}: without moderator there is nothing to set"));
            }
            return;
        };
        let model = self.model.name();
        let fits = self.model == Model::Transformer;
        faults.demand(fits, format!("moderator: model = \"{model}\" has no branches with a gain"));
        faults.demand(self.program.is_none(), "moderator: a program says itself what a layer adds");
        faults.demand(
            self.device == "cpu",
            format!("moderator: only the engine of the cpu has sensors, not that of {}", self.device),
        );
        let document = settings.policy == moderator::Policy::Document;
        faults.demand(
            document || (self.moderator_state.is_none() && self.moderator_values.is_none()),
            "moderator_state, moderator_values: only moderator = \"document\" has them",
        );
        faults.0.extend(settings.problems());
    }

    /// The moderator that is asked for.
    pub(crate) fn moderator(&self) -> Option<moderator::Settings> {
        let plain = moderator::Settings::default();
        Some(moderator::Settings {
            policy: self.moderator?,
            sensor: self.moderator_sensor.unwrap_or(plain.sensor),
            estimator: self.moderator_estimator.unwrap_or(plain.estimator),
            rate: self.moderator_rate.unwrap_or(plain.rate),
            smoothing: self.moderator_smoothing.unwrap_or(plain.smoothing),
            threshold: self.moderator_threshold.unwrap_or(plain.threshold),
            regime: self.moderator_state.unwrap_or(plain.regime),
            values: self.moderator_values.unwrap_or(plain.values),
            shutdown: self.moderator_shutdown,
            sequences: self.moderator_sequences.unwrap_or(plain.sequences),
        })
    }

    /// Whether models read canonical symbols.
    pub(crate) fn is_plain(&self) -> bool {
        self.tokenization == Tokenization::Compositional
            && self.notation == Notation::Infix
            && self.double_parentheses.unwrap_or(0) == 0
    }

    /// The shape of the model over so many tokens.
    pub(crate) fn shape(&self, vocab_size: usize) -> Result<ModelConfig> {
        let lstm = self.model == Model::Lstm;
        let need = |key: &str, value: Option<usize>, default: Option<usize>| {
            value.or(default).ok_or_else(|| anyhow!("missing key \"{key}\""))
        };
        let d_model = need("d_model", self.d_model, None)?;
        Ok(ModelConfig {
            vocab_size,
            d_model,
            n_layers: need("n_layers", self.n_layers, lstm.then_some(2))?,
            n_heads: need("n_heads", self.n_heads, lstm.then_some(1))?,
            d_ff: need("d_ff", self.d_ff, lstm.then_some(1))?,
            norm: self.norm.unwrap_or(NormPlace::Post),
            final_norm: self.final_norm,
            activation: self.activation,
            position: self.position,
            structure: self.structure,
            attention_mask: self.attention_mask,
            max_len: self.max_len,
            embedding: self.embedding,
            scale_embedding: self.scale_embedding,
            tie_output: self.tie_output,
            init: self.init,
            dropout: self.dropout,
        })
    }

    /// The optimiser.
    pub(crate) fn adamw(&self) -> AdamW {
        let Self { beta1, beta2, eps, weight_decay, ema, .. } = *self;
        AdamW { beta1, beta2, eps, weight_decay, ema }
    }

    /// All updates of a run whose epochs have this many.
    pub(crate) fn total_updates(&self, per_epoch: u64) -> u64 {
        if self.max_steps > 0 { self.max_steps } else { self.epochs.saturating_mul(per_epoch) }
    }

    /// The learning rate. Warm-up longer than the run is refused.
    pub(crate) fn schedule(&self, total: u64) -> Result<Schedule> {
        let warmup = match self.warmup_steps {
            Warmup::Updates(n) => n,
            Warmup::Named(Auto::Auto) => Schedule::auto_warmup(total),
        };
        if warmup > total {
            bail!("warmup_steps = {warmup} is more than all {total} updates");
        }
        Ok(Schedule { lr: self.lr, warmup, total, min_lr: self.min_lr, decline: self.schedule.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::Learner as _;

    const TINY: &str = "d_model = 128\nn_layers = 2\nn_heads = 4\nd_ff = 512\n";

    fn refusal(text: &str, sets: &[&str]) -> String {
        let sets: Vec<String> = sets.iter().map(|s| (*s).to_owned()).collect();
        Config::from_text("x.toml", text, &sets).unwrap_err().to_string()
    }

    #[test]
    fn unknown_keys_are_located_and_the_nearest_is_named() {
        assert_eq!(
            refusal(&format!("{TINY}learning_rate = 1"), &[]),
            "x.toml:5:1: unknown key \"learning_rate\"; did you mean \"lr\"?"
        );
        assert_eq!(
            refusal(&format!("{TINY}droput = 1"), &[]),
            "x.toml:5:1: unknown key \"droput\"; did you mean \"dropout\"?"
        );
        assert_eq!(
            refusal(TINY, &["epohcs=3"]),
            "--set epohcs=3: unknown key \"epohcs\"; did you mean \"epochs\"?"
        );
    }

    #[test]
    fn keys_of_the_table_of_expectations_are_known_too() {
        let text = format!("{TINY}[expect]\nexces_max = 1.0");
        assert_eq!(
            refusal(&text, &[]),
            "x.toml:6:1: unknown key \"exces_max\"; did you mean \"excess_max\"?"
        );
        // One that only the other learner measures is none of its keys.
        let text = format!("{TINY}[expect]\nlast_symbol_min = 1.0");
        assert!(refusal(&text, &[]).starts_with("x.toml:6:1: unknown key \"last_symbol_min\""));
        let text = format!("{TINY}[expect]\nparams = 7\ntop1_min = \"high\"");
        assert!(refusal(&text, &[]).starts_with("x.toml:7:1: top1_min: invalid type"));
    }

    #[test]
    fn wrong_types_and_ranges() {
        assert!(refusal("d_model = \"wide\"", &[]).starts_with("x.toml:1:1: d_model: invalid type"));
        assert!(refusal("d_model = ", &[]).starts_with("x.toml:1:"));
        assert!(refusal(TINY, &["lr=fast"]).starts_with("--set lr=fast: lr: invalid type"));
        assert!(refusal(TINY, &["lr"]).contains("key=value"));
        let both = refusal(TINY, &["n_heads=3", "beta1=1.5"]);
        assert!(both.contains("n_heads = 3") && both.contains("beta1 = 1.5"), "{both}");
        assert!(refusal("d_model = 8", &[]).contains("missing key \"n_layers\""));
        assert!(refusal(TINY, &["precision=f16"]).contains("f32 or bf16 (gradients"));
        assert!(refusal(TINY, &["precision=bf16", "model=lstm"]).contains("the explicit engine has it"));
        assert!(Config::from_text("x", TINY, &["precision=bf16".to_owned()]).unwrap().is_half());
        assert!(refusal(TINY, &["suites=[\"iid\", \"poetry\"]"]).contains("\"poetry\" is none of iid, test"));
        let looked_into = |model: &str| {
            Config::from_text(
                "x",
                TINY,
                &["suites=[\"structure\", \"h3\"]".to_owned(), format!("model={model}")],
            )
        };
        assert!(looked_into("transformer").is_ok());
        for model in ["lstm", "ngram"] {
            let why = looked_into(model).unwrap_err().to_string();
            assert!(
                why.contains(&format!(
                    "suites: h3 looks into the attention of a transformer, and model = \"{model}\""
                )),
                "{why}"
            );
        }
        assert!(refusal(TINY, &["notation=postfix"]).contains("notation: unknown variant `postfix`"));
        assert!(refusal(TINY, &["entities=data"]).contains("atomic"));
        assert!(refusal(TINY, &["double_parentheses=100"]).contains("0 to 99"));
        assert!(refusal(TINY, &["double_parentheses=15", "notation=prefix"]).contains("no parentheses"));
        // Where there is nothing to compute once more.
        for (set, found) in [
            ("model=lstm", "gradient_checkpointing: model = \"lstm\""),
            ("model=ngram", "gradient_checkpointing: model = \"ngram\""),
            ("program=transformer.tl", "gradient_checkpointing: a program"),
            ("device=cuda", "gradient_checkpointing: only the engine of the cpu"),
        ] {
            let refusal = refusal(TINY, &["gradient_checkpointing=true", set]);
            assert!(refusal.contains(found), "{refusal}");
        }
        for (set, found) in [
            (vec!["structure=graph"], "structure: unknown variant `graph`"),
            (vec!["structure=bias", "model=lstm"], "structure: model = \"lstm\" has no attention"),
            (vec!["structure=bias", "model=ngram"], "structure: model = \"ngram\" has no attention"),
            (vec!["structure=mask", "n_heads=1"], "parts the heads"),
            (vec!["structure=mask", "program=transformer.tl"], "structure = \"mask\": a program"),
            (vec!["structure=bias", "device=cuda"], "structure: only the engine of the cpu"),
            (vec!["moderator=sometimes"], "moderator: unknown variant `sometimes`"),
            (vec!["moderator_rate=0.1"], "moderator_rate: without moderator"),
            (vec!["moderator=on", "model=lstm"], "moderator: model = \"lstm\""),
            (vec!["moderator=on", "program=transformer.tl"], "moderator: a program"),
            (vec!["moderator=trn", "device=cuda"], "moderator: only the engine of the cpu"),
            (vec!["moderator=off", "moderator_state=subcritical"], "only moderator = \"document\""),
            (
                vec!["moderator=document", "moderator_values=[0.1, 1.0, 1.2]"],
                "moderator_values: below 1, 1, above 1",
            ),
            (vec!["moderator=on", "moderator_shutdown=2.0"], "moderator_shutdown"),
            (vec!["moderator=on", "moderator_estimator=multi-lag"], "moderator_estimator"),
        ] {
            let refusal = refusal(TINY, &set);
            assert!(refusal.contains(found), "{refusal}");
        }
        // Whole names have no pictures.
        let pictures = ["tokenization=atomic", "embedding=glyph-linear"];
        assert!(refusal(TINY, &pictures).contains("a glyph embedding needs the vocabulary of 663 symbols"));
    }

    #[test]
    fn options_go_over_the_file_and_the_last_one_wins() {
        let sets = [
            "lr=0.5".to_owned(),
            "lr=0.25".to_owned(),
            "data=other".to_owned(),
            "expect.params=7".to_owned(),
        ];
        let c = Config::from_text("x", &format!("{TINY}lr = 1e-3\n[expect]\ntop1_min = 0.5"), &sets).unwrap();
        assert_eq!((c.lr, c.data.as_str()), (0.25, "other"));
        let expect = c.expect.unwrap();
        assert_eq!((expect.params, expect.top1_min), (Some(7), Some(0.5)));
    }

    #[test]
    fn the_resolved_configuration_reads_back() {
        let c = Config::from_text("x", TINY, &[]).unwrap();
        let again = Config::from_text("y", &c.to_toml().unwrap(), &[]).unwrap();
        assert_eq!(c, again);
        let longer = Config { epochs: 99, threads: 2, gradient_checkpointing: true, ..c.clone() };
        assert_eq!(c.digest().unwrap(), longer.digest().unwrap());
        assert_ne!(c.digest().unwrap(), Config { lr: 1.0, ..c }.digest().unwrap());
    }
}
