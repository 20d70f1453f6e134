//! Beam search, of one request or of many in step.

use fol::notation::{CodeMask, Token};
use training::{Refusal, Result};

use super::{Request, Sample, cost, filtered};
use crate::decode::Decoder;

/// Rows of a step that the searches of a batch share. Fixed, so that results depend on nothing else.
const ROWS: usize = 128;

/// A live hypothesis of a beam.
struct Branch<S> {
    state: S,
    next: Token,
    tokens: Vec<Token>,
    mask: Option<CodeMask>,
    log_p: f64,
    steps: usize,
}

/// How a beam is searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beam {
    /// Live hypotheses, and complete ones that are kept.
    pub width: usize,
    /// The exponent of the length in the score.
    pub alpha: f64,
    /// Ends once so many hypotheses are complete as are kept. Otherwise it goes on while a live one could still score higher than
    /// the last of these, which with an exponent near 1 is up to the longest length.
    pub early: bool,
}

/// The search for one request.
struct Search<'a, S> {
    request: &'a Request,
    beam: Beam,
    live: Vec<Branch<S>>,
    finished: Vec<Sample>,
}

/// log p / ((5 + n)/6)^α (Wu et al. 2016).
fn length_normalised(log_p: f64, n: usize, alpha: f64) -> f64 {
    log_p / ((5.0 + n as f64) / 6.0).powf(alpha)
}

/// Beam search with `width` live hypotheses; the answer is sorted by score, best first.
pub fn beam<D: Decoder>(decoder: &mut D, request: &Request, width: usize, alpha: f64) -> Result<Vec<Sample>> {
    let answers = beams(decoder, std::slice::from_ref(request), Beam { width, alpha, early: false })?;
    Ok(answers.into_iter().next().unwrap_or_default())
}

/// [`beam`] for each request, many of them in step.
pub fn beams<D: Decoder>(decoder: &mut D, requests: &[Request], beam: Beam) -> Result<Vec<Vec<Sample>>> {
    let beam = Beam { width: beam.width.max(1), ..beam };
    let mut answers = Vec::with_capacity(requests.len());
    for together in requests.chunks((ROWS / beam.width).max(1)) {
        let mut searches: Vec<Search<'_, D::State>> =
            together.iter().map(|request| Search::new(decoder.start(), request, beam)).collect();
        let openings: Vec<(Vec<u32>, Token)> = together.iter().map(Request::opening).collect();
        let first: Vec<&[u32]> = openings.iter().map(|(first, _)| first.as_slice()).collect();
        let mut branches: Vec<&mut Branch<D::State>> =
            searches.iter_mut().filter_map(|search| search.live.first_mut()).collect();
        let mut states: Vec<&mut D::State> = branches.iter_mut().map(|branch| &mut branch.state).collect();
        decoder.read(&mut states, &first)?;
        for (branch, (_, next)) in branches.iter_mut().zip(&openings) {
            branch.next = *next;
        }
        while searches.iter().any(Search::goes_on) {
            step(decoder, &mut searches)?;
        }
        answers.extend(searches.into_iter().map(Search::answer));
    }
    Ok(answers)
}

/// One symbol for every branch of every search that goes on.
fn step<D: Decoder>(decoder: &mut D, searches: &mut [Search<'_, D::State>]) -> Result<()> {
    let mut active: Vec<&mut Search<'_, D::State>> = searches.iter_mut().filter(|s| s.goes_on()).collect();
    let tokens: Vec<u32> = active.iter().flat_map(|s| &s.live).map(|branch| u32::from(branch.next)).collect();
    let mut states: Vec<&mut D::State> =
        active.iter_mut().flat_map(|s| &mut s.live).map(|branch| &mut branch.state).collect();
    let logits = decoder.step(&mut states, &tokens)?;
    let v = (logits.len() / tokens.len().max(1)).max(1);
    let mut rest: &[f32] = logits;
    for search in active {
        let (own, others) = rest.split_at((search.live.len() * v).min(rest.len()));
        rest = others;
        search.extend(own, v)?;
    }
    Ok(())
}

impl<'a, S: Clone> Search<'a, S> {
    fn new(state: S, request: &'a Request, beam: Beam) -> Self {
        let (tokens, mask) = (request.prompt.clone(), request.mask.clone());
        let first = Branch { state, next: request.boundaries[0], tokens, mask, log_p: 0.0, steps: 0 };
        Self { request, beam, live: vec![first], finished: Vec::new() }
    }

    fn goes_on(&self) -> bool {
        self.live.first().is_some_and(|b| b.steps < self.request.max_tokens)
    }

    /// Moves all branches by one symbol; `logits` [live, v].
    fn extend(&mut self, logits: &[f32], v: usize) -> Result<()> {
        let mut next_live = Vec::with_capacity(self.beam.width);
        for (log_p, parent, token) in self.candidates(logits, v) {
            if next_live.len() == self.beam.width {
                break;
            }
            let Some(branch) = self.live.get(parent) else { continue };
            if token == self.request.boundaries[1] {
                let score = length_normalised(log_p, branch.steps + 1, self.beam.alpha);
                let tokens = branch.tokens.clone();
                self.finished.push(Sample { tokens, nll: -log_p, finished: true, score: Some(score) });
                continue;
            }
            let mut mask = branch.mask.clone();
            if let Some(mask) = &mut mask {
                mask.push(token).map_err(|r| Refusal::Learner(r.to_string()))?;
            }
            let tokens = branch.tokens.iter().copied().chain([token]).collect();
            let (state, steps) = (branch.state.clone(), branch.steps + 1);
            next_live.push(Branch { state, next: token, tokens, mask, log_p, steps });
        }
        self.live = next_live;
        self.finished.sort_by(|a, b| b.score.unwrap_or(0.0).total_cmp(&a.score.unwrap_or(0.0)));
        self.finished.truncate(self.beam.width);
        if self.beam.early && self.finished.len() == self.beam.width {
            self.live.clear();
            return Ok(());
        }
        // The best that a live one can still reach: no further loss, and the longest length.
        let best_live = self.live.first().map_or(f64::NEG_INFINITY, |b| {
            let reachable = |n| length_normalised(b.log_p, n, self.beam.alpha);
            reachable(b.steps + 1).max(reachable(self.request.max_tokens))
        });
        let worst = self.finished.last().and_then(|s| s.score).unwrap_or(f64::NEG_INFINITY);
        if self.finished.len() == self.beam.width && best_live <= worst {
            self.live.clear();
        }
        Ok(())
    }

    /// The best extensions of all live hypotheses, by total log-probability: (log p, parent, token). Enough of them
    /// for `width` to go on even if every parent's `<eos>` is among them.
    fn candidates(&self, logits: &[f32], v: usize) -> Vec<(f64, usize, Token)> {
        let mut candidates = Vec::new();
        for (parent, (branch, logits)) in self.live.iter().zip(logits.chunks_exact(v)).enumerate() {
            for (id, _) in filtered(logits, branch.mask.as_ref(), 1.0, self.beam.width + 1, 1.0) {
                let token = Token::new(id);
                candidates.push((branch.log_p - cost(logits, token), parent, token));
            }
        }
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
        candidates.truncate(2 * self.beam.width);
        candidates
    }

    fn answer(self) -> Vec<Sample> {
        let mut finished = self.finished;
        for b in self.live {
            let score = length_normalised(b.log_p, b.steps, self.beam.alpha);
            finished.push(Sample { tokens: b.tokens, nll: -b.log_p, finished: false, score: Some(score) });
        }
        // Complete hypotheses first, then those that the limit cut off.
        finished.sort_by(|a, b| {
            let score = |s: &Sample| s.score.unwrap_or(0.0);
            b.finished.cmp(&a.finished).then(score(b).total_cmp(&score(a)))
        });
        finished.truncate(self.beam.width);
        finished
    }
}
