//! Sampling: temperature, top-k, top-p, greedy and beam search, free or within the grammar.
//!
//! Filters act on the logits in this order: legal mask, temperature, top-k, top-p; then softmax over what is left.
//! Sample number i draws from stream i alone, so it does not depend on how many others are drawn beside it.
//! Many are decoded side by side, with one prompt ([`sample`]) or each with its own ([`complete`]); a prompt is
//! read symbol by symbol like everything else, so that a batch may mix long and short ones.

mod beam;

pub use beam::{Beam, beam, beams};

use fol::notation::{Code, CodeMask, Token};
use seeded::{Family, Stream};
use training::kernels::log_sum_exp;
use training::{Refusal, Result};

use crate::decode::Decoder;

/// How the next symbol is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Choice {
    /// The largest logit; ties to the smaller id.
    Greedy,
    /// From softmax(logits / temperature), after the filters.
    Draw {
        /// Above 0.
        temperature: f64,
        /// Only the k largest; 0: all.
        top_k: usize,
        /// Only the smallest set of the largest with this sum; 1: all.
        top_p: f64,
    },
}

impl Choice {
    /// Plain sampling.
    pub const PLAIN: Self = Self::Draw { temperature: 1.0, top_k: 0, top_p: 1.0 };
}

/// What to sample.
#[derive(Debug, Clone)]
pub struct Request {
    /// Tokens that stand first, without `<bos>`.
    pub prompt: Vec<Token>,
    /// The largest number of tokens, `<eos>` included, prompt and `<bos>` not.
    pub max_tokens: usize,
    /// The grammar, moved to behind the prompt, where one is to be kept.
    pub mask: Option<CodeMask>,
    /// `<bos>` and `<eos>` in the code of the model.
    pub boundaries: [Token; 2],
}

impl Request {
    /// Anything in a code, up to so many tokens.
    pub fn free(code: &Code, max_tokens: usize) -> Self {
        Self { prompt: Vec::new(), max_tokens, mask: None, boundaries: code.boundaries() }
    }
}

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The tokens, prompt included, without `<bos>` and `<eos>`.
    pub tokens: Vec<Token>,
    /// −ln of the probability of all tokens behind the prompt, under the unfiltered model.
    pub nll: f64,
    /// It ended with `<eos>`.
    pub finished: bool,
    /// log p / ((5 + n)/6)^α, for beams.
    pub score: Option<f64>,
}

/// Samples decoded side by side. Fixed, so that results depend on nothing else.
const WIDTH: usize = 128;

/// The tokens that remain after the filters, with their probabilities, in id order.
fn filtered(
    logits: &[f32],
    mask: Option<&CodeMask>,
    temperature: f64,
    top_k: usize,
    top_p: f64,
) -> Vec<(u16, f64)> {
    let scaled = |(i, &z): (usize, &f32)| (!z.is_nan()).then(|| (i as u16, f64::from(z) / temperature));
    let mut left: Vec<(u16, f64)> = match mask {
        None => logits.iter().enumerate().filter_map(scaled).collect(),
        Some(mask) => {
            let legal = mask.legal();
            legal.iter().filter_map(|t| scaled((t.index(), logits.get(t.index())?))).collect()
        }
    };
    let largest_first = |a: &(u16, f64), b: &(u16, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if top_k > 0 && top_k < left.len() {
        left.sort_by(largest_first);
        left.truncate(top_k);
    }
    let max = left.iter().map(|l| l.1).fold(f64::NEG_INFINITY, f64::max);
    for l in &mut left {
        l.1 = (l.1 - max).exp();
    }
    if top_p < 1.0 {
        left.sort_by(largest_first);
        let wanted = top_p * left.iter().map(|l| l.1).sum::<f64>();
        let mut sum = 0.0;
        let kept = left.iter().position(|l| {
            sum += l.1;
            sum >= wanted
        });
        left.truncate(kept.map_or(left.len(), |k| k + 1));
    }
    left.sort_by_key(|l| l.0);
    left
}

fn choose(logits: &[f32], mask: Option<&CodeMask>, choice: Choice, stream: &mut Stream) -> Result<Token> {
    let picked = match choice {
        Choice::Greedy => filtered(logits, mask, 1.0, 1, 1.0).first().map(|l| l.0),
        Choice::Draw { temperature, top_k, top_p } => {
            let left = filtered(logits, mask, temperature, top_k, top_p);
            let mut r = stream.uniform() * left.iter().map(|l| l.1).sum::<f64>();
            let hit = left.iter().find(|l| {
                r -= l.1;
                r < 0.0
            });
            hit.or(left.last()).map(|l| l.0)
        }
    };
    let nothing = || Refusal::Learner("no symbol is possible here: the logits are not numbers".to_owned());
    picked.map(Token::new).ok_or_else(nothing)
}

/// −ln softmax(logits)\[token\].
fn cost(logits: &[f32], token: Token) -> f64 {
    f64::from(log_sum_exp(logits)) - f64::from(logits.get(token.index()).copied().unwrap_or(f32::NAN))
}

struct Hypothesis<S> {
    index: usize,
    state: S,
    next: Token,
    sample: Sample,
    mask: Option<CodeMask>,
    eos: Token,
    stream: Stream,
    left: usize,
}

impl Request {
    /// What is read first, and the token that asks what follows; nothing is read where nothing is chosen.
    fn opening(&self) -> (Vec<u32>, Token) {
        let [bos, _] = self.boundaries;
        match self.prompt.split_last() {
            Some((last, before)) if self.max_tokens > 0 => {
                ([bos].iter().chain(before).map(|&token| u32::from(token)).collect(), *last)
            }
            _ => (Vec::new(), bos),
        }
    }
}

/// Draws `n` samples. `each` is called with the number of finished ones.
pub fn sample<D: Decoder>(
    decoder: &mut D,
    request: &Request,
    n: usize,
    choice: Choice,
    seed: u64,
    each: impl FnMut(usize),
) -> Result<Vec<Sample>> {
    draw(decoder, n, &|_| request, choice, seed, each)
}

/// Draws one sample for each request, many requests at once. `each` is called with the number of finished ones.
pub fn complete<D: Decoder>(
    decoder: &mut D,
    requests: &[Request],
    choice: Choice,
    seed: u64,
    each: impl FnMut(usize),
) -> Result<Vec<Sample>> {
    let nothing = Request::free(&Code::PLAIN, 0);
    draw(decoder, requests.len(), &|i| requests.get(i).unwrap_or(&nothing), choice, seed, each)
}

/// Sample number i answers `request(i)`.
fn draw<'a, D: Decoder>(
    decoder: &mut D,
    n: usize,
    request: &dyn Fn(usize) -> &'a Request,
    choice: Choice,
    seed: u64,
    mut each: impl FnMut(usize),
) -> Result<Vec<Sample>> {
    let family = Family::new("fol663-v1", "sample", seed);
    let mut done: Vec<Option<Sample>> = vec![None; n];
    let mut finished = 0;
    for from in (0..n).step_by(WIDTH) {
        let together = from..n.min(from + WIDTH);
        let openings: Vec<(Vec<u32>, Token)> = together.clone().map(|i| request(i).opening()).collect();
        let mut live: Vec<Hypothesis<D::State>> = together
            .zip(&openings)
            .map(|(index, (_, next))| {
                let request = request(index);
                Hypothesis {
                    index,
                    state: decoder.start(),
                    next: *next,
                    sample: Sample { tokens: request.prompt.clone(), nll: 0.0, finished: false, score: None },
                    mask: request.mask.clone(),
                    eos: request.boundaries[1],
                    stream: family.stream(index as u64),
                    left: request.max_tokens,
                }
            })
            .collect();
        let first: Vec<&[u32]> = openings.iter().map(|(first, _)| first.as_slice()).collect();
        let mut states: Vec<&mut D::State> = live.iter_mut().map(|h| &mut h.state).collect();
        decoder.read(&mut states, &first)?;
        while !live.is_empty() {
            let tokens: Vec<u32> = live.iter().map(|h| u32::from(h.next)).collect();
            let mut states: Vec<&mut D::State> = live.iter_mut().map(|h| &mut h.state).collect();
            let logits = decoder.step(&mut states, &tokens)?;
            let width = (logits.len() / live.len()).max(1);
            for (h, logits) in live.iter_mut().zip(logits.chunks_exact(width)) {
                advance(h, logits, choice)?;
            }
            live.retain_mut(|h| {
                let over = h.sample.finished || h.left == 0;
                if over && let Some(slot) = done.get_mut(h.index) {
                    *slot = Some(h.sample.clone());
                    finished += 1;
                }
                !over
            });
            each(finished);
        }
    }
    Ok(done.into_iter().flatten().collect())
}

fn advance<S>(h: &mut Hypothesis<S>, logits: &[f32], choice: Choice) -> Result<()> {
    if h.left == 0 {
        return Ok(());
    }
    let token = choose(logits, h.mask.as_ref(), choice, &mut h.stream)?;
    h.sample.nll += cost(logits, token);
    h.left -= 1;
    if token == h.eos {
        h.sample.finished = true;
        return Ok(());
    }
    if let Some(mask) = &mut h.mask {
        mask.push(token).map_err(|r| Refusal::Learner(r.to_string()))?;
    }
    h.sample.tokens.push(token);
    h.next = token;
    Ok(())
}
