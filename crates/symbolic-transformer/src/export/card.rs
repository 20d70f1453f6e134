//! The model card: what the model is, what it learned from, what was measured, how to use it, what it cannot do.

use crate::config::{ModelConfig, NormPlace};

/// What is known of a run and is not in its weights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The run's name.
    pub name: String,
    /// The law of the training data, for example `public`.
    pub law: String,
    /// The data set's name.
    pub data: String,
    /// The data set's digest.
    pub data_digest: String,
    /// The commit that trained.
    pub commit: String,
    /// The seed.
    pub seed: u64,
    /// What was measured, as rows of a table: name and value.
    pub results: Vec<(String, String)>,
}

/// `README.md`.
pub(super) fn card(config: &ModelConfig, about: &About) -> String {
    let class = match config.norm {
        NormPlace::Post => "OPTForCausalLM",
        NormPlace::Pre => "GPT2LMHeadModel",
    };
    let ModelConfig { d_model, n_layers, n_heads, d_ff, norm, position, embedding, max_len, .. } = config;
    let About { name, law, data, data_digest, commit, seed, results } = about;
    let parameters = config.parameters();
    let results = if results.is_empty() {
        "Not evaluated.".to_owned()
    } else {
        let rows: Vec<String> =
            results.iter().map(|(what, value)| format!("| {} | {} |", cell(what), cell(value))).collect();
        format!("| measured | value |\n|---|---|\n{}", rows.join("\n"))
    };
    let name = cell(if name.is_empty() { "symbolic-transformer" } else { name });
    let facts: String = [
        ("law", law.as_str()),
        ("data set", data),
        ("data digest", data_digest),
        ("commit", commit),
        ("seed", &seed.to_string()),
    ]
    .iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(what, value)| format!("| {what} | `{}` |\n", cell(value)))
    .collect();
    format!(
        "---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags:\n- first-order-logic\n\
         - symbolic\n---\n\n# {name}\n\n\
         A decoder-only transformer that predicts the next of 663 symbols of first-order logic. It was trained on \
         formulas drawn from a known law, so it can be judged against the best possible predictor.\n\n\
         ## Model\n\n\
         | what | value |\n|---|---|\n\
         | parameters as trained | {parameters} |\n\
         | width, layers, heads, feed-forward | {d_model}, {n_layers}, {n_heads}, {d_ff} |\n\
         | norm, positions, embedding | {norm}, {position}, {embedding} |\n\
         | longest sequence | {max_len} |\n\
         | class here | `{class}` |\n\n\
         What this class does not have, the output bias{extra}, is written into the head and the norms; the \
         logits are those of the trained model up to rounding. `probe.safetensors` holds eight sequences with the trained \
         model's logits. Training this folder further is possible but starts from those rewritten weights.\n\n\
         ## Data\n\n| what | value |\n|---|---|\n{facts}\n\
         ## Results\n\n{results}\n\n\
         ## Use\n\n\
         Texts are labels between blanks. The tokenizer puts a text between `<bos>` and `<eos>`; a prompt is not to \
         be ended:\n\n\
         ```python\n\
         from transformers import AutoModelForCausalLM, AutoTokenizer\n\n\
         tokenizer = AutoTokenizer.from_pretrained(\"FOLDER\")\n\
         model = AutoModelForCausalLM.from_pretrained(\"FOLDER\")\n\
         prompt = tokenizer(\"<bos> FORALL VAR 1\", add_special_tokens=False, return_tensors=\"pt\")\n\
         print(tokenizer.decode(model.generate(**prompt, max_new_tokens=64, do_sample=True)[0]))\n\
         ```\n\n\
         ## Limits\n\n\
         It has learned which formulas are likely under one law, not which are true. Nothing forces what it writes \
         to be well-formed, and it knows no natural language. Symbols that the law never draws were never trained.\n",
        extra = if config.norm == NormPlace::Post && config.final_norm { " and the final norm" } else { "" },
    )
}

/// A text that cannot end a table's cell or line.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}
