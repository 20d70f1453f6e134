//! Draws instances with certified labels.
//!
//! Enter at [`Maker::instance`]. An item is drawn *with all the labels that it could have*: the premises from which the conclusion follows, and
//! the premises after an edit. Both have the same number of premises, tokens, atoms and predicates; only then a fair coin says which of them
//! is given. So the label does not depend on any of these numbers.
//!
//! What follows holds by construction, and more is looked at: that the premises have a model, that each premise of the proof is needed, and that
//! the conclusion is none of the premises. What does not follow has a finite model.

use fol::ast::Formula;
use fol::error::{Kind, Refusal};
use fol::task::{Answer, Task};
use fol_prover::rules::{self, Name, same};
use fol_prover::{Limit, Model, Problem, Verdict, prove};
use seeded::Stream;

use crate::asked::{Asked, STEPS, asked, follows};
use crate::derivation::Derivation;
use crate::edit::{Edit, edited};
use crate::fragment::is_certain;
use crate::instance::{Application, Format, Instance, Label, Order};
use crate::letters::{Names, Texts};
use crate::shallow::features;
use crate::space::Space;
use crate::term::term;
use crate::tree::{complement, not, predicates};

/// After so many draws without an instance the space is refused.
const DRAWS: usize = 20_000;
/// Edits that are tried on one item.
const EDITS: usize = 6;

/// Draws instances of a space. Cloned for every thread.
#[derive(Debug, Clone)]
pub struct Maker {
    space: Space,
    texts: Texts,
}

/// Premises of a proof and distractors, in the order of the task.
#[derive(Debug, Clone)]
struct Premises {
    /// For each place the number of a premise of the proof, or none for a distractor.
    places: Vec<Option<usize>>,
    all: Vec<Formula>,
}

impl Premises {
    /// The same places with other premises of the proof.
    fn with(&self, core: &[Formula]) -> Vec<Formula> {
        let place = |(own, given): (&Option<usize>, &Formula)| {
            own.and_then(|at| core.get(at)).unwrap_or(given).clone()
        };
        self.places.iter().zip(&self.all).map(place).collect()
    }
}

impl Maker {
    /// What draws from a space.
    ///
    /// # Errors
    /// What [`Space::check`] refuses, and a law outside the fragment.
    pub fn new(space: Space) -> Result<Self, Refusal> {
        space.check()?;
        Ok(Self { texts: Texts::new(&space.law, space.names)?, space })
    }

    /// The space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// An instance. It is a function of the stream alone.
    ///
    /// # Errors
    /// `EmptySize` where a long time of drawing gives none, as where `max_tokens` is too small for the depth.
    pub fn instance(&mut self, draw: &mut Stream) -> Result<Instance, Refusal> {
        let format = Space::format(draw.choose(&self.space.formats).unwrap_or(0));
        let weights: Vec<u64> = self.space.depths.iter().map(|(_, weight)| *weight).collect();
        let depth =
            draw.choose(&weights).and_then(|at| self.space.depths.get(at)).map_or(1, |(depth, _)| *depth);
        // Drawn once, and kept until an instance fits, so that neither depends on what fits more easily.
        let (choice, negated) = (draw.below(6), draw.below(2) == 0);
        for _ in 0..DRAWS {
            let found = match format {
                Format::Term => Some(term(depth, &self.space, draw)),
                _ => self.attempt(format, depth, choice, negated, draw),
            };
            let fits =
                |instance: &Instance| fol::task::encode(&instance.task).len() + 2 <= self.space.max_tokens;
            if let Some(instance) = found.filter(fits) {
                return Ok(instance);
            }
        }
        let (name, limit) = (format.name(), self.space.max_tokens);
        Err(Refusal::new(
            Kind::EmptySize,
            format!(
                "{DRAWS} draws gave no instance of format {name} and depth {depth} within {limit} tokens"
            ),
        )
        .help("raise max_tokens, or take shorter letters or smaller depths"))
    }

    /// One draw: a proof, its distractors, and an edit. None where one of them does not come out.
    fn attempt(
        &mut self,
        format: Format,
        depth: usize,
        choice: u64,
        negated: bool,
        draw: &mut Stream,
    ) -> Option<Instance> {
        let Self { space, texts } = self;
        let names = texts.names(draw);
        let derivation = derived(space, depth, texts, &names, draw)?;
        let goal = derivation.goal();
        if format == Format::Question && !has_sign(&goal, negated) {
            return None;
        }
        let core = derivation.premises();
        let (goals, fragment) = match format {
            Format::Question => (vec![goal.clone(), complement(&goal)], [goal.clone(), not(&goal)]),
            _ => (vec![goal.clone()], [goal.clone(), goal.clone()]),
        };
        if !fragment.iter().all(|goal| is_certain(&core, Some(goal))) || repeats(&core) {
            return None;
        }
        let premises = mixed(&core, space, texts, &names, draw)?;
        if premises.all.iter().any(|premise| goals.iter().any(|goal| same(premise, goal)))
            || repeats(&premises.all)
        {
            return None;
        }
        // The tokens of both versions are the same, so an item that is too long is seen before the prover is asked.
        let tokens: usize = premises.all.iter().chain(&goals).map(crate::tree::length).sum();
        if tokens > space.max_tokens || !is_needed(&premises, &goal)? {
            return None;
        }
        if format != Format::Question && !matches!(asked(&premises.all), Asked::For(_)) {
            return None;
        }
        let (edit, other, models) = unknown(format, space.order, &core, &premises, &goals, draw)?;
        let label = match format {
            Format::Question => Label::ALL.get(choice as usize % 3).copied(),
            _ => [Label::Follows, Label::Unknown].get(choice as usize % 2).copied(),
        }?;
        let given = if label == Label::Unknown { other } else { premises.all.clone() };
        let task = match format {
            Format::Question => {
                let denied = label == Label::Denied || label == Label::Unknown && choice >= 3;
                let asked = if denied { complement(&goal) } else { goal.clone() };
                let answer = match label {
                    Label::Follows => Answer::True,
                    Label::Denied => Answer::False,
                    Label::Unknown => Answer::Unknown,
                };
                Task::Question { premises: given, asked, answer }
            }
            _ => {
                let steps = match (label, format) {
                    (Label::Unknown, _) => Vec::new(),
                    (_, Format::Steps) => derivation.conclusions(),
                    _ => vec![goal],
                };
                Task::Deduction { premises: given, steps }
            }
        };
        let is_unknown = label == Label::Unknown;
        Some(Instance {
            format,
            order: space.order,
            depth,
            label,
            task,
            rules: derivation.rules(),
            proof: if is_unknown { Vec::new() } else { applications(&derivation, &premises)? },
            edit: is_unknown.then_some(edit),
            models: if is_unknown { models } else { Vec::new() },
        })
    }
}

/// Whether a formula is a negation, as wanted. A negation of a negation is neither, since its complement would be a negation too.
fn has_sign(goal: &Formula, negated: bool) -> bool {
    match goal {
        Formula::Not(body) => negated && !matches!(body.as_ref(), Formula::Not(_)),
        _ => !negated,
    }
}

/// A proof of so many steps.
fn derived(
    space: &Space,
    depth: usize,
    texts: &mut Texts,
    names: &Names,
    draw: &mut Stream,
) -> Option<Derivation> {
    let mut letters = texts.over(names);
    let mut derivation = match space.order {
        Order::RuleFirst => {
            let rule = *space.rules.get(draw.below(space.rules.len() as u64) as usize)?;
            Derivation::of_rule(rule, &mut letters, draw)
        }
        Order::LabelFirst => {
            // Negations are as likely as what they negate.
            let goal = rules::Letters::formula(&mut letters, &[], draw);
            let goal = if draw.below(2) == 0 { complement(&goal) } else { goal };
            Derivation::of_goal(goal)
        }
    };
    derivation.extend(depth, &space.rules, &mut letters, draw).then_some(derivation)
}

/// Premises of a proof among distractors: premises of rules, half of them over predicates of the proof.
fn mixed(
    core: &[Formula],
    space: &Space,
    texts: &mut Texts,
    names: &Names,
    draw: &mut Stream,
) -> Option<Premises> {
    let used = predicates(core);
    let (shared, others) = (names.sharing(&used), names.without(&used));
    let count = draw.below(space.distractors + 1);
    let mut all: Vec<(Option<usize>, Formula)> =
        core.iter().cloned().enumerate().map(|(at, formula)| (Some(at), formula)).collect();
    let first = draw.below(2);
    for number in 0..count {
        let names = if (number + first).is_multiple_of(2) { &shared } else { &others };
        let rule = *space.rules.get(draw.below(space.rules.len() as u64) as usize)?;
        let instance = rules::generate(rule, &mut texts.over(names), draw);
        let at = draw.below(instance.premises.len() as u64) as usize;
        all.push((None, instance.premises.get(at)?.clone()));
    }
    if !is_certain(all.iter().map(|(_, formula)| formula), None) {
        return None;
    }
    let order = draw.permutation(all.len() as u32);
    let shuffled = order.into_iter().filter_map(|at| all.get(at as usize).cloned());
    let (places, all) = shuffled.unzip();
    Some(Premises { places, all })
}

fn repeats(formulas: &[Formula]) -> bool {
    formulas.iter().enumerate().any(|(at, one)| formulas.iter().skip(at + 1).any(|other| same(one, other)))
}

/// Whether the premises have a model, and the conclusion needs each premise of the proof. None where the prover does not know.
fn is_needed(premises: &Premises, goal: &Formula) -> Option<bool> {
    if follows(&premises.all, &Formula::Truth(false))? {
        return Some(false);
    }
    for (at, _) in premises.places.iter().enumerate().filter(|(_, own)| own.is_some()) {
        let mut others = premises.all.clone();
        others.remove(at);
        if follows(&others, goal)? {
            return Some(false);
        }
    }
    Some(true)
}

/// Premises with the same numbers from which no goal follows, the edit, and a model for each goal.
fn unknown(
    format: Format,
    order: Order,
    core: &[Formula],
    premises: &Premises,
    goals: &[Formula],
    draw: &mut Stream,
) -> Option<(Edit, Vec<Formula>, Vec<Model>)> {
    let mut edits: Vec<Edit> = match order {
        Order::LabelFirst => vec![Edit::Rename; EDITS],
        Order::RuleFirst => {
            let all = draw.permutation(Edit::ALL.len() as u32).into_iter();
            all.filter_map(|at| Edit::ALL.get(at as usize).copied()).collect()
        }
    };
    edits.truncate(EDITS);
    // Numbers, lengths and predicates, also of what is asked about, which is the same.
    let question = goals.first().filter(|_| format == Format::Question);
    let numbers = |formulas: &[Formula]| features(formulas, question);
    let wanted = numbers(&premises.all);
    for edit in edits {
        let Some(changed) = edited(edit, core, draw) else { continue };
        let all = premises.with(&changed);
        if numbers(&all) != wanted || repeats(&all) || !is_certain(&all, None) {
            continue;
        }
        if all.iter().any(|premise| goals.iter().any(|goal| same(premise, goal))) {
            continue;
        }
        let models: Option<Vec<Model>> = goals.iter().map(|goal| model(&all, goal)).collect();
        let Some(models) = models else { continue };
        if format == Format::Question || asked(&all) == Asked::Nothing {
            return Some((edit, all, models));
        }
    }
    None
}

/// Where the premises hold and the conclusion does not.
fn model(premises: &[Formula], conclusion: &Formula) -> Option<Model> {
    let problem = Problem::new(premises.to_vec(), Some(conclusion.clone())).ok()?;
    match prove(&problem, Limit::Steps(STEPS)).verdict {
        Verdict::Refuted(model) => Some(model),
        _ => None,
    }
}

/// The steps by places: premises as the task has them, and then earlier conclusions.
fn applications(derivation: &Derivation, premises: &Premises) -> Option<Vec<Application>> {
    let leaves = derivation.premises();
    let mut made: Vec<(usize, usize)> = Vec::new();
    let mut applications = Vec::new();
    for (number, step) in derivation.steps().enumerate() {
        let place = |formula: &usize| {
            if let Some((_, step)) = made.iter().find(|(conclusion, _)| conclusion == formula) {
                return Some(premises.all.len() + step);
            }
            let own = derivation.formula(*formula)?;
            let leaf = leaves.iter().position(|leaf| leaf == own)?;
            premises.places.iter().position(|at| *at == Some(leaf))
        };
        let from: Option<Vec<usize>> = step.premises.iter().map(place).collect();
        let conclusion = derivation.formula(step.conclusion)?.clone();
        applications.push(Application { rule: step.rule, from: from?, conclusion });
        made.push((step.conclusion, number));
    }
    Some(applications)
}

/// Whether each step of a proof is an application of its rule to premises and earlier steps, and which step is not.
///
/// # Errors
/// The number of the first wrong step.
pub fn check_proof(premises: &[Formula], proof: &[Application]) -> Result<(), usize> {
    let mut known: Vec<Formula> = premises.to_vec();
    for (number, step) in proof.iter().enumerate() {
        let from: Option<Vec<Formula>> = step.from.iter().map(|at| known.get(*at).cloned()).collect();
        if !from.is_some_and(|from| rules::check(step.rule, &from, &step.conclusion)) {
            return Err(number);
        }
        known.push(step.conclusion.clone());
    }
    Ok(())
}

/// The rules of a proof that were applied, each once.
pub fn distinct(rules: &[Name]) -> Vec<Name> {
    let mut all = rules.to_vec();
    all.sort_unstable();
    all.dedup();
    all
}
