//! `cargo xtask sample`, and the samples that evaluation and reports need.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use fol::law::Law;
use fol::mask::{Grammar, Mask, Options};
use fol::read::{Mode, Source};
use serde_json::{Value, json};
use symbolic_transformer::decode::{CachedTransformer, Decoder};
use symbolic_transformer::lstm::LstmDecoder;
use symbolic_transformer::sample::{Choice, Request, Sample, beam, beams, complete, sample};

use super::config::{Config, Model};
use super::network;
use crate::answer::{give, usage};
use crate::{data, run_folder};

/// Options of `sample`.
#[derive(Debug, Args)]
pub(crate) struct SampleArgs {
    /// A folder, or a name in runs/.
    run: String,
    /// Symbols that stand first, as text.
    #[arg(long, default_value = "")]
    prompt: String,
    /// The number of samples.
    #[arg(long, default_value_t = 10)]
    n: usize,
    /// The most probable symbol at each step.
    #[arg(long, conflicts_with_all = ["temperature", "top_k", "top_p", "beam"])]
    greedy: bool,
    /// Divides the logits; above 0.
    #[arg(long, value_name = "T")]
    temperature: Option<f64>,
    /// Only the K most probable symbols.
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Only the most probable symbols that together reach P.
    #[arg(long, value_name = "P")]
    top_p: Option<f64>,
    /// Beam search with B live hypotheses.
    #[arg(long, value_name = "B", conflicts_with_all = ["temperature", "top_k", "top_p"])]
    beam: Option<usize>,
    /// The exponent of the length in a beam's score.
    #[arg(long, value_name = "ALPHA", default_value_t = 1.0, requires = "beam")]
    length_penalty: f64,
    /// Only what the grammar allows, within the run's law.
    #[arg(long)]
    valid: bool,
    /// The seed of the samples.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The largest number of tokens of a sample.
    #[arg(long, value_name = "M", default_value_t = 128)]
    max_tokens: usize,
    /// Writes the samples as strips of glyphs into one SVG.
    #[arg(long, value_name = "FILE.svg")]
    glyphs: Option<std::path::PathBuf>,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

impl SampleArgs {
    fn choice(&self) -> Result<Choice> {
        if self.greedy {
            return Ok(Choice::Greedy);
        }
        let (temperature, top_k, top_p) =
            (self.temperature.unwrap_or(1.0), self.top_k.unwrap_or(0), self.top_p.unwrap_or(1.0));
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(usage(format!("--temperature {temperature}: above 0")));
        }
        if self.top_k == Some(0) {
            return Err(usage("--top-k 0: at least 1"));
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(usage(format!("--top-p {top_p}: above 0, at most 1")));
        }
        Ok(Choice::Draw { temperature, top_k, top_p })
    }
}

/// The mask of `--valid`: a formula within the law, closed if the law is, that fits into `budget` tokens.
pub(crate) fn valid_mask(law: &Law, budget: usize) -> Mask {
    let signature = law.signature();
    let closed = signature.closed;
    let mut options = Options::new(Grammar::Formula);
    options.within = Some(signature);
    options.closed = closed;
    options.budget = Some(u32::try_from(budget).unwrap_or(u32::MAX));
    Mask::new(&options)
}

/// `cargo xtask sample`; returns the exit status.
pub(crate) fn run(args: &SampleArgs) -> Result<u8> {
    let choice = args.choice()?;
    if args.max_tokens == 0 {
        return Err(usage("--max-tokens 0: at least 1"));
    }
    let folder = run_folder::find(&args.run)?;
    let config: Config = run_folder::config(&folder)?;
    training::threads::set(config.threads)?;
    let prompt = fol::read::symbols(&args.prompt, Source::Text, Mode::Lenient)
        .map_err(|r| anyhow!("--prompt: {r}"))?;
    let law = data::law_of_run(&config.data)?;
    let mask = if args.valid {
        let mut mask = valid_mask(&law, args.max_tokens + prompt.symbols.len());
        for (at, &symbol) in prompt.symbols.iter().enumerate() {
            mask.push(symbol).map_err(|r| {
                anyhow!("--prompt cannot begin a formula of the law: {}", prompt.locate(r, at))
            })?;
        }
        mask.set_budget(Some(u32::try_from(args.max_tokens).unwrap_or(u32::MAX)));
        if mask.legal().is_empty() {
            bail!("--max-tokens {}: no formula that begins with the prompt is so short", args.max_tokens);
        }
        Some(mask)
    } else {
        None
    };
    let request = Request { prompt: prompt.symbols, max_tokens: args.max_tokens, mask };
    let ask = Ask { choice, n: args.n, seed: args.seed, beam: args.beam.map(|b| (b, args.length_penalty)) };
    let samples = draw(&folder, &config, &request, &ask)?;
    if let Some(path) = &args.glyphs {
        training::files::write(path, strips(&samples).as_bytes())?;
    }
    let items: Vec<Value> = samples.iter().map(item).collect();
    let line = |s: &Sample| {
        let end = if s.finished { "" } else { "  (not finished)" };
        format!("{:9.3}  {}{end}\n", s.nll, shown(s))
    };
    let document = json!({"schema": "xtask/1", "command": "sample", "items": items});
    give(args.json, &document, || samples.iter().map(line).collect())?;
    Ok(0)
}

/// How many samples, and how.
pub(crate) struct Ask {
    pub(crate) choice: Choice,
    pub(crate) n: usize,
    pub(crate) seed: u64,
    /// Width and length penalty of a beam search.
    pub(crate) beam: Option<(usize, f64)>,
}

/// Samples from the best weights of a run.
pub(crate) fn draw(folder: &Path, config: &Config, request: &Request, ask: &Ask) -> Result<Vec<Sample>> {
    let (_, theta) = network::load(folder, config)?;
    draw_from(config, &theta, request, ask)
}

/// Samples from weights.
pub(crate) fn draw_from(config: &Config, theta: &[f32], request: &Request, ask: &Ask) -> Result<Vec<Sample>> {
    let shape = config.shape()?;
    match config.model {
        Model::Transformer => {
            let room = shape.max_len.saturating_sub(request.prompt.len());
            let request = Request { max_tokens: request.max_tokens.min(room), ..request.clone() };
            ask_decoder(&mut CachedTransformer::new(&shape, theta)?, &request, ask)
        }
        Model::Lstm => ask_decoder(&mut LstmDecoder::new(&shape, theta)?, request, ask),
        Model::Ngram => bail!("an n-gram run draws no samples"),
    }
}

/// The best continuation of each request: greedy, or by a beam of a width.
pub(crate) fn continuations(
    config: &Config,
    theta: &[f32],
    requests: &[Request],
    beam: Option<(usize, f64)>,
) -> Result<Vec<Sample>> {
    fn best<D: Decoder>(
        decoder: &mut D,
        requests: &[Request],
        beam: Option<(usize, f64)>,
    ) -> Result<Vec<Sample>> {
        let Some((width, alpha)) = beam else {
            return Ok(complete(decoder, requests, Choice::Greedy, 0, |_| {})?);
        };
        let answers = beams(decoder, requests, width, alpha)?;
        answers
            .into_iter()
            .map(|samples| samples.into_iter().next().ok_or_else(|| anyhow!("a beam without a hypothesis")))
            .collect()
    }
    let shape = config.shape()?;
    match config.model {
        Model::Transformer => {
            let room = |r: &Request| r.max_tokens.min(shape.max_len.saturating_sub(r.prompt.len()));
            let requests: Vec<Request> =
                requests.iter().map(|r| Request { max_tokens: room(r), ..r.clone() }).collect();
            best(&mut CachedTransformer::new(&shape, theta)?, &requests, beam)
        }
        Model::Lstm => best(&mut LstmDecoder::new(&shape, theta)?, requests, beam),
        Model::Ngram => bail!("an n-gram run draws no samples"),
    }
}

fn ask_decoder<D: Decoder>(decoder: &mut D, request: &Request, ask: &Ask) -> Result<Vec<Sample>> {
    match ask.beam {
        Some((width, alpha)) => Ok(beam(decoder, request, width, alpha)?),
        None => Ok(sample(decoder, request, ask.n, ask.choice, ask.seed, |_| {})?),
    }
}

/// The text, or the labels of what is no text.
pub(crate) fn shown(sample: &Sample) -> String {
    match fol::decode(&sample.tokens) {
        Ok(text) => fol::print(&text, fol::Style::Unicode),
        Err(_) => fol::words(&sample.tokens),
    }
}

fn item(sample: &Sample) -> Value {
    let ids: Vec<u16> = sample.tokens.iter().map(|t| t.get()).collect();
    let read = fol::decode(&sample.tokens);
    let valid = sample.finished && read.is_ok();
    let (text, error) = match read {
        Ok(text) => (json!(fol::print(&text, fol::Style::Unicode)), Value::Null),
        Err(refusal) => (Value::Null, json!(refusal)),
    };
    json!({
        "text": text, "tokens": ids, "nll": sample.nll, "finished": sample.finished, "valid": valid,
        "error": error, "score": sample.score,
    })
}

/// All samples as strips of glyphs, one below the other.
pub(crate) fn strips(samples: &[Sample]) -> String {
    const CELL: f64 = 1.0;
    const LINE: f64 = 40.0;
    let widest = samples.iter().map(|s| s.tokens.len()).max().unwrap_or(0) as f64 * (25.0 + 2.0) * CELL;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\">\n",
        widest + 10.0,
        LINE * samples.len() as f64
    );
    for (i, s) in samples.iter().enumerate() {
        let strip = fol::glyph::strip_svg(&s.tokens, CELL);
        svg.push_str(&format!("<g transform=\"translate(5 {})\">{strip}</g>\n", LINE * i as f64 + 5.0));
    }
    svg + "</svg>\n"
}

/// The ids of a text's symbols.
#[cfg(test)]
fn ids(text: &str) -> Vec<fol::symbol::SymbolId> {
    fol::read::parse(text, Source::Text, Mode::Lenient).map(|p| p.tokens).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_say_what_is_wrong_with_a_sample() {
        let good = Sample { tokens: ids("∀x1 P5(x1)"), nll: 1.0, finished: true, score: None };
        let v = item(&good);
        assert_eq!((v["text"].as_str(), v["valid"].as_bool()), (Some("∀x1 P5(x1)"), Some(true)));
        let mut bad = good.clone();
        bad.tokens.pop();
        let v = item(&bad);
        assert_eq!((v["text"].is_null(), v["error"]["kind"].as_str()), (true, Some("UnexpectedEnd")));
        assert!(strips(&[good, bad]).starts_with("<svg"));
    }
}
