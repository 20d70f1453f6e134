//! Embedding space (N15): a Boolean query answered by superposition, as the paper's section 5 does.
//!
//! Enter at [`answer`]. An object is a unit vector; a relation is the sum of the tensor products of its tuples' vectors;
//! a rule is the product of its antecedents' embeddings, contracted over what they share (`rules`). The dot product
//! with a candidate's embedding is its score (`apply`), computed through the Gram matrix of the objects (`vectors`).
//! After each application of a rule the candidates above the threshold are embedded again (`rounds`).
//!
//! **The certificate.** A score is a sum over combinations of tuples, one for each antecedent, of products of dot
//! products. Combinations that agree everywhere give exactly 1 each: they are the derivations of the candidate, as long
//! as what is embedded is right. All others are cross-talk. With every dot product of different objects replaced by the
//! largest there is, their sum is a bound; below min(theta, 1 - theta) it moves no score across the threshold, so that
//! what is retrieved is what the rule derives, and by induction over the rounds the answer is the symbolic one.

mod advice;
mod apply;
mod block;
mod metric;
mod rounds;
mod rule;
mod rules;
mod vectors;

use std::collections::BTreeMap;

use crate::answer::{Content, Embedded};
use crate::engine::{Engine, Request};
use crate::error::{Code, Refusal, Result};
use crate::program::{Embed, Form, Kind, Program, Query, Role, Style, Vectors};
use crate::value::Tuple;
use advice::Advised;
use block::Room;
use rounds::{Retrieved, Run};
use rule::{Head, Rule, Rules, constants};
use rules::compile;
use vectors::{Gram, given, orthonormal, random};

/// The dimension of random vectors.
const DIMENSION: u64 = 1024;

/// What is answered in embedding space.
#[derive(Debug)]
pub struct Answered {
    /// The answer.
    pub content: Content,
    /// Boolean for a step, real at a temperature above 0.
    pub kind: Kind,
    /// How it was embedded.
    pub embedded: Embedded,
    /// How many tuples of each computed relation were retrieved, by name.
    pub derived: Vec<(String, u64)>,
}

/// What is refused without evaluation: `type-conflict`, `symbol-as-number`, `bad-argument` for vectors that are none.
///
/// # Errors
/// The first of these refusals.
pub fn check(program: &Program, query: &Query, embed: &Embed) -> Result<()> {
    read(program, query, embed).map(|_| ())
}

/// The rules below a query, over objects.
fn read(program: &Program, query: &Query, embed: &Embed) -> Result<Rules> {
    if let Vectors::Rows(id) = embed.vectors {
        let tensor = program.tensor(id);
        let rank = tensor.places.len();
        if tensor.style != Style::Square || rank != 2 || matches!(tensor.role, Role::Missing) {
            let style = if tensor.style == Style::Square { "square" } else { "round" };
            let message = format!(
                "`emb` takes a square tensor of rank 2 with data, and `{}` is {style} of rank {rank}",
                tensor.name
            );
            let help = format!("`{}[x, d]` gives the vector of the object x", tensor.name);
            return Err(Refusal::new(Code::BadArgument, embed.span, message).help(help));
        }
    }
    compile(program, query.tensor, embed)
}

/// Answers a query in embedding space.
///
/// # Errors
/// Those of [`check`]; `not-certified`; `out-of-domain` where a tensor gives an object no vector; `too-large`, `budget`;
/// `divergence` where values at a temperature do not come to rest; and the refusals of the vectors' evaluation.
pub fn answer(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    query: &Query,
    embed: &Embed,
) -> Result<Answered> {
    let rules = read(request.program, query, embed)?;
    let room = Room {
        objects: rules.objects.len(),
        bytes: request.budget.bytes,
        blocks: blocks(&rules),
        place: embed.span,
    };
    let gram = gram(engine, request, embed, &rules, &room)?;
    let settings = &request.program.settings;
    let run = Run {
        rules: &rules,
        dots: gram.dots.as_deref(),
        coherence: gram.coherence,
        theta: embed.theta,
        temperature: embed.temperature,
        strict: embed.certify,
        room,
        budget: request.budget,
        rest: (settings.tolerance, settings.rounds),
        stop: engine.stop(),
    };
    let found = run.retrieved()?;
    let certified = run.is_certified(found.bound);
    if embed.certify && !certified {
        return Err(uncertified(&run, request.program, embed, &gram, &found));
    }
    let (content, kind) = content(request.program, query, embed, &rules, &found);
    let embedded = Embedded {
        dimension: gram.dimension,
        theta: embed.theta,
        coherence: gram.coherence,
        bound: found.bound,
        certified,
        seed: (embed.vectors == Vectors::Random).then_some(embed.seed),
        temperature: embed.temperature,
    };
    Ok(Answered { content, kind, embedded, derived: derived(request.program, &rules, &found) })
}

/// How many blocks live side by side while a rule is applied: its literals, candidates, scores and their two bounds; and of
/// a product two factors, each in its order and in that of the product, and what comes out.
fn blocks(rules: &Rules) -> usize {
    let own = |rule: &Rule| rule.literals.len() + rule.denied.len() + rule.compared.len();
    rules.rules.iter().map(own).max().unwrap_or(0) + 4 + 5
}

/// The dot products of the objects.
fn gram(
    engine: &mut dyn Engine,
    request: &Request<'_>,
    embed: &Embed,
    rules: &Rules,
    room: &Room,
) -> Result<Gram> {
    let (program, objects) = (request.program, &rules.objects);
    match embed.vectors {
        Vectors::Identity => orthonormal(embed.dimension, room),
        Vectors::Random => {
            random(objects, &program.symbols, embed.dimension.unwrap_or(DIMENSION), embed.seed, room)
        }
        Vectors::Rows(id) => {
            let values = engine.values(request, &[id])?;
            let values = values.first().map(|value| value.doubles().into_owned()).unwrap_or_default();
            let domains = program.tensor(id).domains();
            given(objects, &program.symbols, program.name(id), &domains, &values, room)
        }
    }
}

/// Why there is no certificate, and what would do.
fn uncertified(run: &Run<'_>, program: &Program, embed: &Embed, gram: &Gram, found: &Retrieved) -> Refusal {
    let limit = embed.theta.min(1.0 - embed.theta);
    let message = format!(
        "the answer is not certified in {} dimensions: dot products of different objects reach {:.4} (coherence), so \
         that cross-talk may move a score by {:.4} (bound), and it must stay below {limit}",
        gram.dimension, gram.coherence, found.bound
    );
    let other = "`certify=no` answers without the certificate, `emb=identity` without cross-talk";
    let help = match embed.vectors {
        _ if limit <= 0.0 => format!("no dimension would do: choose `theta` between 0 and 1; {other}"),
        Vectors::Identity => format!("no dimension would do; {other}"),
        Vectors::Rows(_) => format!("similar objects are told apart by no dimension; {other}"),
        Vectors::Random => match advice::dimension(run, &program.symbols, embed) {
            Some(Advised::Tried(dimension)) => format!("`D={dimension}` would do; {other}"),
            Some(Advised::Estimated(dimension)) => {
                format!("`D={dimension}` would do, but for one seed in a thousand; {other}")
            }
            None => format!("no dimension was found that would do; {other}"),
        },
    };
    let report = Refusal::new(Code::NotCertified, embed.span, message).help(help);
    match found.at {
        place if place.end > place.start => report.label(place, "retrieved here"),
        _ => report,
    }
}

/// What was retrieved in the shape that the query asks for, and its type.
fn content(
    program: &Program,
    query: &Query,
    embed: &Embed,
    rules: &Rules,
    found: &Retrieved,
) -> (Content, Kind) {
    let kind = if embed.temperature > 0.0 { Kind::Real } else { Kind::Bool };
    let answers = answers(rules, found);
    let Form::Values(labels) = &query.form else {
        return (Content::Scalar(Some(answers.values().copied().next().unwrap_or(0.0))), kind);
    };
    let (mut tuples, mut values): (Vec<Tuple>, Vec<f64>) = (Vec::new(), Vec::new());
    for (tuple, value) in &answers {
        tuples.push(constants(&rules.objects, tuple));
        values.push(*value);
    }
    debug_assert!(tuples.is_sorted_by(|a, b| program.symbols.compare_tuples(a, b).is_lt()));
    let values = (kind == Kind::Real).then_some(values);
    (Content::Relation { indices: labels.clone(), tuples, values }, kind)
}

/// The bindings of the query's indices, each with the largest value of a tuple that has it.
fn answers(rules: &Rules, found: &Retrieved) -> BTreeMap<Vec<usize>, f64> {
    let asked = &rules.answered;
    let mut answers: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
    for (tuple, value) in found.relations.get(asked.relation).into_iter().flatten() {
        let mut bound: Vec<Option<usize>> = vec![None; asked.masks.len()];
        let mut fits = |at: &Option<Head>, object: usize| match at {
            None => true,
            Some(Head::Object(wanted)) => *wanted == object,
            Some(Head::Variable(variable)) => {
                let inside = asked.masks.get(*variable).and_then(Option::as_ref);
                let allowed = inside.is_none_or(|mask| mask.get(object).copied().unwrap_or(false));
                bound.get_mut(*variable).is_some_and(|own| *own.get_or_insert(object) == object) && allowed
            }
        };
        if asked.places.iter().zip(tuple).all(|(at, object)| fits(at, *object)) {
            let binding: Vec<usize> = bound.into_iter().flatten().collect();
            let best = answers.entry(binding).or_insert(0.0);
            *best = best.max(*value);
        }
    }
    answers
}

/// How many tuples of each named relation with rules were retrieved.
fn derived(program: &Program, rules: &Rules, found: &Retrieved) -> Vec<(String, u64)> {
    let count = |id: &crate::program::TensorId| {
        found.relations.get(id.0 as usize).map_or(0, |relation| relation.len() as u64)
    };
    let named: BTreeMap<String, u64> =
        rules.computed.iter().map(|id| (program.name(*id).to_owned(), count(id))).collect();
    named.into_iter().collect()
}
