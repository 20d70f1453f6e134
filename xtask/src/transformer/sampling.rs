//! `cargo xtask sample`, and the samples that evaluation and reports need.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use fol::law::Law;
use fol::mask::{Grammar, Options};
use fol::notation::{Code, CodeMask};
use fol::read::{Mode, Source};
use fol::symbol::SymbolId;
use serde_json::{Value, json};
use symbolic_transformer::config::AttentionMask;
use symbolic_transformer::decode::{CachedTransformer, Decoder};
use symbolic_transformer::lstm::LstmDecoder;
use symbolic_transformer::premises::SIGNS;
use symbolic_transformer::sample::{Beam, Choice, Request, Sample, beam, beams, complete, sample};

use super::config::{Config, Model};
use super::{code, network};
use crate::answer::{give, say, usage};
use crate::{data, elsewhere, run_folder};

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
    /// cpu, or a device with N for one of several (vulkan:1); without it that of the run.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Writes the samples as strips of glyphs into one SVG.
    #[arg(long, value_name = "FILE.svg")]
    glyphs: Option<std::path::PathBuf>,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

/// Each hypothesis has a cache of its own.
const MOST_HYPOTHESES: usize = 4096;

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

/// The mask of `--valid`: a formula within the law, closed if the law is, of at most `budget` canonical symbols,
/// `<eos>` included.
///
/// A vocabulary that lacks a name of the law is refused.
pub(crate) fn valid_mask(code: &Code, law: &Law, budget: usize) -> Result<CodeMask> {
    let signature = law.signature();
    let closed = signature.closed;
    let mut options = Options::new(Grammar::Formula);
    options.within = Some(signature);
    options.closed = closed;
    options.budget = Some(u32::try_from(budget).unwrap_or(u32::MAX));
    CodeMask::new(code, &options).map_err(|r| anyhow!("{r}"))
}

/// Whether there is a mask of a law's texts in a code.
pub(crate) fn has_mask(code: &Code, law: &Law) -> bool {
    !law.has_statements() && code.doubled() == 0 && code.covers(&law.signature())
}

/// `cargo xtask sample`; returns the exit status.
pub(crate) fn run(args: &SampleArgs) -> Result<u8> {
    let choice = args.choice()?;
    if args.max_tokens == 0 {
        return Err(usage("--max-tokens 0: at least 1"));
    }
    if let Some(beam) = args.beam.filter(|beam| !(1..=MOST_HYPOTHESES).contains(beam)) {
        return Err(usage(format!("--beam {beam}: 1 to {MOST_HYPOTHESES}")));
    }
    if !args.length_penalty.is_finite() || args.length_penalty.abs() > 100.0 {
        return Err(usage(format!("--length-penalty {}: -100 to 100", args.length_penalty)));
    }
    let folder = run_folder::find(&args.run)?;
    let config: Config = run_folder::config(&folder)?;
    let config = match &args.device {
        Some(device) => {
            if let Some(status) = elsewhere::with_device(device)? {
                return Ok(status);
            }
            Config { device: device.clone(), ..config }
        }
        None => config,
    };
    training::threads::set(config.threads)?;
    let prompt = fol::read::symbols(&args.prompt, Source::Text, Mode::Lenient)
        .map_err(|r| anyhow!("--prompt: {r}"))?;
    if config.attention_mask == AttentionMask::Prefix && !prompt.symbols.iter().any(|s| SIGNS.contains(s)) {
        bail!(
            "--prompt: this model answers; premises, and then ENTAILS (⊢) or <answer>, stand before what it writes"
        );
    }
    let code = code::of_run(&folder, &config)?;
    let cut = code.cut(&prompt.symbols).map_err(|r| anyhow!("--prompt: {}", located(&r)))?;
    let mut max_tokens = args.max_tokens;
    let mask = if args.valid {
        let mut mask = valid_mask(&code, &data::law_of_run(&config.data)?, usize::MAX)?;
        for (at, &token) in cut.iter().enumerate() {
            mask.push(token).map_err(|r| {
                // Only of canonical symbols is the place one of the text.
                let place =
                    if code.is_plain() { prompt.locate(r, at) } else { r.at(at).found(code.label(token)) };
                anyhow!("--prompt cannot begin a formula of the law: {}", located(&place))
            })?;
        }
        // The whole formula has so many symbols, prompt included, and `<eos>` behind them. A prompt that is no text yet in its
        // notation counts by its tokens.
        let before = code.decode(&cut).map_or(cut.len(), |symbols| symbols.len());
        let left = args.max_tokens.saturating_add(1).saturating_sub(before);
        mask.set_budget(Some(u32::try_from(left).unwrap_or(u32::MAX)));
        if mask.legal().is_empty() {
            bail!("--max-tokens {}: no formula that begins with the prompt is so short", args.max_tokens);
        }
        // What the model can read. A budget is counted in symbols, of which only a plain code's tokens are as many.
        let room = room(&config, &code, cut.len())?;
        if code.is_plain() && room < left {
            mask.set_budget(Some(u32::try_from(room).unwrap_or(u32::MAX)));
            if mask.legal().is_empty() {
                bail!(
                    "--prompt: the model reads {} tokens, and no formula that begins so ends within them",
                    room + cut.len()
                );
            }
        }
        max_tokens = left.min(room);
        Some(mask)
    } else {
        None
    };
    let request = Request { prompt: cut, mask, ..Request::free(&code, max_tokens) };
    let ask = Ask { choice, n: args.n, seed: args.seed, beam: args.beam.map(|b| (b, args.length_penalty)) };
    let samples = draw(&folder, &config, &code, &request, &ask)?;
    if let Some(path) = &args.glyphs {
        training::files::write(path, strips(&code, &samples).as_bytes())?;
    }
    let items: Vec<Value> = samples.iter().map(|s| item(&code, s)).collect();
    let line = |s: &Sample| {
        let end = if s.finished { "" } else { "  (not finished)" };
        format!("{:9.3}  {}{end}\n", s.nll, shown(&code, s))
    };
    let document = json!({"schema": "xtask/1", "command": "sample", "items": items});
    give(args.json, &document, || samples.iter().map(line).collect())?;
    let cut_off = samples.iter().filter(|s| !s.finished).count();
    if args.valid && cut_off > 0 {
        say!(
            "error: {cut_off} of {} samples did not end within the tokens that the model reads",
            samples.len()
        );
        return Ok(1);
    }
    Ok(0)
}

/// How many tokens, `<eos>` included, a model writes behind so many.
fn room(config: &Config, code: &Code, before: usize) -> Result<usize> {
    let max_len = config.shape(code.size())?.max_len;
    Ok(if config.model == Model::Transformer { max_len.saturating_sub(before) } else { usize::MAX })
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
pub(crate) fn draw(
    folder: &Path,
    config: &Config,
    code: &Code,
    request: &Request,
    ask: &Ask,
) -> Result<Vec<Sample>> {
    let (_, theta) = network::load(folder, config, code)?;
    draw_from(config, code, &theta, request, ask)
}

/// Samples from weights.
pub(crate) fn draw_from(
    config: &Config,
    code: &Code,
    theta: &[f32],
    request: &Request,
    ask: &Ask,
) -> Result<Vec<Sample>> {
    let shape = config.shape(code.size())?;
    match config.model {
        Model::Transformer => {
            let room = shape.max_len.saturating_sub(request.prompt.len());
            let request = Request { max_tokens: request.max_tokens.min(room), ..request.clone() };
            #[cfg(feature = "device")]
            if let Some(mut decoder) = network::on_device(config, code, theta)? {
                return ask_decoder(&mut decoder, &request, ask);
            }
            ask_decoder(&mut CachedTransformer::in_code(&shape, code, theta)?, &request, ask)
        }
        Model::Lstm => ask_decoder(&mut LstmDecoder::new(&shape, theta)?, request, ask),
        model => bail!("a run of model = \"{}\" draws no samples", model.name()),
    }
}

/// What a beam finds for each request until so many hypotheses are complete, best first.
pub(crate) fn hypotheses(
    config: &Config,
    code: &Code,
    theta: &[f32],
    requests: &[Request],
    width: usize,
) -> Result<Vec<Vec<Sample>>> {
    let shape = config.shape(code.size())?;
    let beam = Beam { width, alpha: 1.0, early: true };
    let room = |r: &Request| r.max_tokens.min(shape.max_len.saturating_sub(r.prompt.len()));
    match config.model {
        Model::Transformer => {
            let requests: Vec<Request> =
                requests.iter().map(|r| Request { max_tokens: room(r), ..r.clone() }).collect();
            #[cfg(feature = "device")]
            if let Some(mut decoder) = network::on_device(config, code, theta)? {
                return Ok(beams(&mut decoder, &requests, beam)?);
            }
            Ok(beams(&mut CachedTransformer::in_code(&shape, code, theta)?, &requests, beam)?)
        }
        Model::Lstm => Ok(beams(&mut LstmDecoder::new(&shape, theta)?, requests, beam)?),
        model => bail!("a run of model = \"{}\" draws no samples", model.name()),
    }
}

/// The best continuation of each request: greedy, or by a beam of a width.
pub(crate) fn continuations(
    config: &Config,
    code: &Code,
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
        let answers = beams(decoder, requests, Beam { width, alpha, early: false })?;
        answers
            .into_iter()
            .map(|samples| samples.into_iter().next().ok_or_else(|| anyhow!("a beam without a hypothesis")))
            .collect()
    }
    let shape = config.shape(code.size())?;
    match config.model {
        Model::Transformer => {
            let room = |r: &Request| r.max_tokens.min(shape.max_len.saturating_sub(r.prompt.len()));
            let requests: Vec<Request> =
                requests.iter().map(|r| Request { max_tokens: room(r), ..r.clone() }).collect();
            #[cfg(feature = "device")]
            if let Some(mut decoder) = network::on_device(config, code, theta)? {
                return best(&mut decoder, &requests, beam);
            }
            best(&mut CachedTransformer::in_code(&shape, code, theta)?, &requests, beam)
        }
        Model::Lstm => best(&mut LstmDecoder::new(&shape, theta)?, requests, beam),
        model => bail!("a run of model = \"{}\" draws no samples", model.name()),
    }
}

fn ask_decoder<D: Decoder>(decoder: &mut D, request: &Request, ask: &Ask) -> Result<Vec<Sample>> {
    match ask.beam {
        Some((width, alpha)) => Ok(beam(decoder, request, width, alpha)?),
        None => Ok(sample(decoder, request, ask.n, ask.choice, ask.seed, |_| {})?),
    }
}

/// The text, or the labels of what is no text.
pub(crate) fn shown(code: &Code, sample: &Sample) -> String {
    match read(code, sample) {
        Ok(text) => fol::print(&text, fol::Style::Unicode),
        Err(_) => code.words(&sample.tokens),
    }
}

/// The text of a sample.
pub(super) fn read(code: &Code, sample: &Sample) -> std::result::Result<fol::ast::Text, fol::error::Refusal> {
    fol::decode(&code.decode(&sample.tokens)?)
}

/// A refusal with its place among the symbols or tokens.
fn located(refusal: &fol::error::Refusal) -> String {
    let place = refusal.token.map_or_else(String::new, |at| {
        format!(" (number {at}, {})", refusal.found.as_deref().unwrap_or("end"))
    });
    format!("{refusal}{place}")
}

fn item(code: &Code, sample: &Sample) -> Value {
    let ids: Vec<u16> = sample.tokens.iter().map(|t| t.get()).collect();
    let read = read(code, sample);
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

/// The symbols of a sample, in the order of its notation.
pub(crate) fn symbols(code: &Code, sample: &Sample) -> Vec<SymbolId> {
    code.spell(&sample.tokens).unwrap_or_default().into_iter().map(|s| s.0).collect()
}

/// All samples as strips of glyphs, one below the other.
pub(crate) fn strips(code: &Code, samples: &[Sample]) -> String {
    const CELL: f64 = 1.0;
    const LINE: f64 = 40.0;
    let spelled: Vec<Vec<SymbolId>> = samples.iter().map(|s| symbols(code, s)).collect();
    let widest = spelled.iter().map(Vec::len).max().unwrap_or(0) as f64 * (25.0 + 2.0) * CELL;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\">\n",
        widest + 10.0,
        LINE * samples.len() as f64
    );
    for (i, symbols) in spelled.iter().enumerate() {
        let strip = fol::glyph::strip_svg(symbols, CELL);
        svg.push_str(&format!("<g transform=\"translate(5 {})\">{strip}</g>\n", LINE * i as f64 + 5.0));
    }
    svg + "</svg>\n"
}

/// The tokens of a text in canonical symbols.
#[cfg(test)]
fn tokens(text: &str) -> Vec<fol::notation::Token> {
    let symbols = fol::read::parse(text, Source::Text, Mode::Lenient).map(|p| p.tokens).unwrap_or_default();
    Code::PLAIN.encode(&symbols).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_say_what_is_wrong_with_a_sample() {
        let good = Sample { tokens: tokens("∀x1 P5(x1)"), nll: 1.0, finished: true, score: None };
        let v = item(&Code::PLAIN, &good);
        assert_eq!((v["text"].as_str(), v["valid"].as_bool()), (Some("∀x1 P5(x1)"), Some(true)));
        let mut bad = good.clone();
        bad.tokens.pop();
        let v = item(&Code::PLAIN, &bad);
        assert_eq!((v["text"].is_null(), v["error"]["kind"].as_str()), (true, Some("UnexpectedEnd")));
        assert!(strips(&Code::PLAIN, &[good, bad]).starts_with("<svg"));
    }
}
