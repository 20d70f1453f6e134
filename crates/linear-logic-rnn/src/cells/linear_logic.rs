//! The cell of Definition 2.9 with every option of section 3.
//!
//! ```text
//! p  = γ(P h + C)                q  = γ(Q h + D)
//! Z  = Σ_i p_i · I ⟦λ_i⟧(V(x)) J h  +  Σ_i q_i · I ⟦π_i⟧(V(x′), V(x)) J h
//! h′ = σ(Z + H h + U x + B)
//! ```
//! I is the same for all programs of a space, so it is applied once, to the mixture.

use linear_logic::compile::Slot;
use linear_logic::literal::Order;
use linear_logic::recognise::Recognised;

use super::glue::{Glue, Notes, initial_v};
use super::recurrent::Simple;
use crate::error::Warning;
use crate::error::{Kind, Refusal, Result};
use crate::options::{
    FirstInput, FirstState, Gate, GateAct, GateSource, MOST_PROGRAMS, Numeral, Operators, Preset, Projection,
    Sigma, Sizes, VInit, VNorm, not_too_large, not_too_many, of,
};
use crate::program::{Compiled, ProgramText, Subject, Writer, compiled};
use crate::step::{Act, Builder, Factor, Groups, Norm, Start, ValueId, View, WeightId};

/// The options after the preset.
struct Settings {
    lambda: Vec<Numeral>,
    pi: Vec<String>,
    /// The places that words are over.
    window: usize,
    order: Order,
    v: Operators,
    project: Projection,
    gate: Gate,
    gate_act: GateAct,
    table: Option<usize>,
    act: Sigma,
    x0: FirstInput,
    h0: FirstState,
    norm: Norm,
    init: VInit,
    bias: f32,
    hh: bool,
    allow_degenerate: bool,
}

impl Settings {
    fn new(options: &of::LinearLogic) -> Result<Self> {
        let Some(preset) = options.preset else {
            return Err(Refusal::config("the cell `ll` needs `preset`: \"paper\", \"coded\" or \"stable\""));
        };
        let is = |which: Preset| preset == which;
        let v = options.v.unwrap_or(if is(Preset::Stable) { Operators::Full } else { Operators::Diag });
        let tanh = is(Preset::Coded) || is(Preset::Stable);
        let gate_act = match preset {
            Preset::Paper => GateAct::Relu,
            Preset::Coded => GateAct::Tanh,
            Preset::Stable => GateAct::Softmax,
        };
        let table = match options.gate_source.unwrap_or(GateSource::State) {
            GateSource::State if options.table_len.is_some() => {
                return Err(Refusal::config("`table_len` belongs to `gate_source` = \"table\""));
            }
            GateSource::State => None,
            GateSource::Table => match options.table_len {
                None => return Err(Refusal::config("`gate_source` = \"table\" needs `table_len`")),
                Some(0) => return Err(Refusal::config("`table_len` is at least 1")),
                Some(rows) => Some(not_too_large("table_len", rows)?),
            },
        };
        let settings = Self {
            lambda: options.lambda.clone().unwrap_or_default(),
            pi: options.pi.clone().unwrap_or_default(),
            window: options.window.unwrap_or(SHORTEST_WINDOW),
            order: options.order.map_or(Order::Literal, |order| order.order()),
            v,
            project: options.project.unwrap_or(Projection::Learned),
            gate: options.gate.unwrap_or(if is(Preset::Coded) { Gate::Diagonal } else { Gate::Scalar }),
            gate_act: options.gate_act.unwrap_or(gate_act),
            table,
            act: options.act.unwrap_or(if tanh { Sigma::Tanh } else { Sigma::Relu }),
            x0: options.x0.unwrap_or(if is(Preset::Stable) { FirstInput::First } else { FirstInput::Zero }),
            h0: options.h0.unwrap_or(FirstState::Zero),
            norm: match options.v_norm.unwrap_or(VNorm::None) {
                VNorm::None => Norm::None,
                VNorm::Tanh => Norm::Tanh,
                VNorm::ColumnSoftmax => Norm::ColumnSoftmax,
            },
            init: options.v_init.unwrap_or(if is(Preset::Stable) { VInit::Identity } else { VInit::Glorot }),
            bias: options.gate_bias.unwrap_or(0.0) as f32,
            hh: options.hh.unwrap_or(true),
            allow_degenerate: options.allow_degenerate.unwrap_or(false),
        };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<()> {
        not_too_many("`lambda`", self.lambda.len(), MOST_PROGRAMS)?;
        not_too_many("`pi`", self.pi.len(), MOST_PROGRAMS)?;
        if self.norm == Norm::ColumnSoftmax && self.v == Operators::Diag {
            return Err(Refusal::config("`v_norm` = \"column-softmax\" needs matrices: `v` = \"full\""));
        }
        if self.gate_act == GateAct::One && self.table.is_some() {
            return Err(Refusal::config("`gate_act` = \"one\" has no weights, so it has no table"));
        }
        if !(SHORTEST_WINDOW..=LONGEST_WINDOW).contains(&self.window) {
            return Err(Refusal::config(format!(
                "`window` = {}: words are over {SHORTEST_WINDOW} to {LONGEST_WINDOW} places, one for each digit",
                self.window
            )));
        }
        if self.window > SHORTEST_WINDOW && self.pi.is_empty() {
            return Err(Refusal::config("`window` is of the words of `pi`, and there is none"));
        }
        if self.window > SHORTEST_WINDOW && self.x0 == FirstInput::First {
            return Err(Refusal::config(
                "`x0` = \"first\" stands before the first input alone; with a longer `window` it is \"zero\" or \"learned\"",
            ));
        }
        if !self.bias.is_finite() {
            return Err(Refusal::config("`gate_bias` is not a number"));
        }
        Ok(())
    }
}

/// Of the options, after the preset, those that say what a space is.
pub(crate) struct Choices {
    pub(crate) v: Operators,
    pub(crate) project: Projection,
    pub(crate) gate_act: GateAct,
}

impl Choices {
    /// Those of the options.
    pub(crate) fn of(options: &of::LinearLogic) -> Result<Self> {
        let Settings { v, project, gate_act, .. } = Settings::new(options)?;
        Ok(Self { v, project, gate_act })
    }
}

/// The text of a proof of Λ, and how reports name it.
fn lambda_subject(at: usize, numeral: &Numeral) -> Subject {
    let text = match numeral {
        Numeral::Number(n) => n.to_string(),
        Numeral::Text(text) => text.clone(),
    };
    Subject { what: format!("lambda[{at}]"), text, against: Some(INT.to_owned()) }
}

/// A text of digits is a word, the empty text the empty word; others are texts of the language.
///
/// Over more than two places a word is written out: the digits 0, 1, 2 of `order = "literal"` are
/// `\x0 x1 x2 z. derelict x0 (derelict x1 (derelict x2 z))`.
fn pi_subject(at: usize, text: &str, settings: &Settings) -> Subject {
    let what = format!("pi[{at}]");
    if settings.window == SHORTEST_WINDOW {
        let is_word = text.bytes().all(|digit| digit == b'0' || digit == b'1');
        let text = if is_word { format!("0b{text}") } else { text.to_owned() };
        return Subject { what, text, against: Some(BINT.to_owned()) };
    }
    let places: String = (0..settings.window).map(|place| format!("x{place} ")).collect();
    let operators: String = (0..settings.window).map(|_| "!(k -o k) -o ").collect();
    let against = format!("\\{places}z. z : {operators}k -o k");
    let text = match word_over(text, settings.window) {
        None => text.to_owned(),
        Some(mut digits) => {
            if settings.order == Order::FirstDigitFirst {
                digits.reverse();
            }
            let applied: String = digits.iter().map(|digit| format!("derelict x{digit} (")).collect();
            format!("\\{places}z. {applied}z{}", ")".repeat(digits.len()))
        }
    };
    Subject { what, text, against: Some(against) }
}

/// The digits of a word over so many places; `None` of a text that is none.
fn word_over(text: &str, window: usize) -> Option<Vec<usize>> {
    let digit = |c: char| c.to_digit(10).map(|d| d as usize).filter(|d| *d < window);
    text.chars().map(digit).collect()
}

/// Places of the words of Definition 2.9: the input before this one, and this one.
const SHORTEST_WINDOW: usize = 2;
/// One for each digit.
const LONGEST_WINDOW: usize = 10;

/// Closed terms of the types that the proofs of Λ and Π must have.
const INT: &str = "0";
const BINT: &str = "0b";

pub(super) fn linear_logic(
    b: &mut Builder,
    sizes: &Sizes,
    options: &of::LinearLogic,
    notes: &mut Notes,
) -> Result<Glue> {
    let settings = Settings::new(options)?;
    let lambda: Vec<Subject> =
        settings.lambda.iter().enumerate().map(|(at, n)| lambda_subject(at, n)).collect();
    let words: Vec<Option<Vec<usize>>> =
        settings.pi.iter().map(|text| word_over(text, settings.window)).collect();
    let pi: Vec<Subject> =
        settings.pi.iter().enumerate().map(|(at, text)| pi_subject(at, text, &settings)).collect();
    let lambda = programs(&lambda, 1, settings.order, "lambda", notes)?;
    let mut pi = programs(&pi, settings.window, settings.order, "pi", notes)?;
    if settings.window > SHORTEST_WINDOW {
        // Written out, they are shown as the words that they are.
        let shown = notes.programs.iter_mut().filter(|program| program.place.starts_with("pi["));
        for ((program, word), text) in shown.zip(&words).zip(&settings.pi) {
            program.text.clone_from(text);
            if let Some(digits) = word {
                program.canonical.clone_from(text);
                let mut applied = digits.clone();
                if settings.order == Order::Literal {
                    applied.reverse();
                }
                program.applied = Some(applied);
            }
        }
        pi.recognised = Vec::new();
    }
    if settings.v == Operators::Diag {
        let known = |found: &Option<Recognised>| match found {
            Some(Recognised::Word(digits)) => Some(digits.iter().map(|d| usize::from(*d)).collect()),
            _ => None,
        };
        let words =
            if settings.window > SHORTEST_WINDOW { words } else { pi.recognised.iter().map(known).collect() };
        commuting(&words, settings.window, settings.allow_degenerate, notes)?;
    }

    let start = match settings.h0 {
        FirstState::Zero => Start::Zero,
        FirstState::Learned => Start::Weight(b.bias("h0", sizes.need("hidden")?, 0.0)),
    };
    let simple = Simple::new(b, sizes, start)?;
    let first = match settings.x0 {
        FirstInput::Zero => Start::Zero,
        FirstInput::First => Start::First,
        FirstInput::Learned => Start::Weight(b.bias("x0", simple.input, 0.0)),
    };
    b.start_previous(first.clone());

    let mut spaces = Spaces { b, settings: &settings, simple: &simple, sizes, before: first };
    let z = match settings.v {
        Operators::TwoSpace => {
            let of_lambda = spaces.space(&lambda, None, "1")?;
            let of_pi = spaces.space(&Compiled::default(), Some(&pi), "2")?;
            [of_lambda, of_pi].into_iter().flatten().collect::<Vec<ValueId>>()
        }
        _ => spaces.space(&lambda, Some(&pi), "")?.into_iter().collect(),
    };
    let z = match z.as_slice() {
        [] => None,
        all => {
            let z = b.sum(all);
            b.report("z", z);
            Some(z)
        }
    };
    let z = simple.affine(b, settings.hh, z.as_slice());
    Ok(simple.end(b, Some(settings.act), z))
}

/// Checks and compiles the proofs of a list.
fn programs(
    subjects: &[Subject],
    operators: usize,
    order: Order,
    list: &str,
    notes: &mut Notes,
) -> Result<Compiled> {
    if subjects.is_empty() {
        return Ok(Compiled::default());
    }
    let made = compiled(subjects, &vec![Slot::Operator; operators], order)?;
    let degrees = made.plan.degrees();
    for (at, (subject, found)) in subjects.iter().zip(&made.recognised).enumerate() {
        let canonical = match found {
            Some(Recognised::Numeral(n)) => n.to_string(),
            Some(Recognised::Word(digits)) => digits.iter().map(|d| if *d { '1' } else { '0' }).collect(),
            None => made.types.get(at).cloned().unwrap_or_default(),
        };
        let applied = match found {
            Some(Recognised::Numeral(n)) => usize::try_from(*n).ok().map(|n| vec![0; n]),
            // Of a product the last factor is applied first.
            Some(Recognised::Word(digits)) => {
                Some(order.product(digits).iter().rev().map(|digit| usize::from(*digit)).collect())
            }
            None => None,
        };
        notes.programs.push(ProgramText {
            place: format!("{list}[{at}]"),
            text: subject.text.clone(),
            canonical,
            applied,
            degree: degrees.get(at).copied().unwrap_or_default(),
        });
    }
    Ok(made)
}

/// Diagonal operators commute: a word acts through its counts of digits.
fn commuting(words: &[Option<Vec<usize>>], window: usize, allowed: bool, notes: &mut Notes) -> Result<()> {
    let mut seen: Vec<(Vec<usize>, String)> = Vec::new();
    for digits in words.iter().flatten() {
        let text: String = digits.iter().map(ToString::to_string).collect();
        let count = |digit: usize| digits.iter().filter(|d| **d == digit).count();
        let counts: Vec<usize> = (0..window).map(count).collect();
        if let Some((_, other)) = seen.iter().find(|(known, _)| *known == counts)
            && !allowed
        {
            return Err(Refusal::new(
                Kind::DegeneratePi,
                format!(
                    "a diagonal V cannot tell the words `{other}` and `{text}` apart; use v = \"full\", or \
                     allow_degenerate = true"
                ),
            ));
        }
        if counts.iter().filter(|count| **count > 0).count() > 1 {
            notes.warnings.push(Warning {
                kind: "diagonal-commutes",
                message: format!("with a diagonal V the order of the digits of `{text}` does not matter"),
            });
        }
        seen.push((counts, text));
    }
    Ok(())
}

/// Writes the programs of a space.
struct Spaces<'a> {
    b: &'a mut Builder,
    settings: &'a Settings,
    simple: &'a Simple,
    sizes: &'a Sizes,
    /// x⁽⁰⁾ and what stands before it.
    before: Start,
}

impl Spaces<'_> {
    /// I (Σ p ⟦λ⟧ J h + Σ q ⟦π⟧ J h) for the programs that live in one space; `None` without programs.
    fn space(&mut self, lambda: &Compiled, pi: Option<&Compiled>, suffix: &str) -> Result<Option<ValueId>> {
        let is_diagonal = match self.settings.v {
            Operators::Diag => true,
            Operators::Full => false,
            Operators::TwoSpace => suffix == "1",
        };
        let counts = (lambda.plan.results.len(), pi.map_or(0, |pi| pi.plan.results.len()));
        if counts == (0, 0) {
            return Ok(None);
        }
        let (simple, settings) = (self.simple, self.settings);
        let is_identity = settings.project == Projection::Identity;
        let size = if suffix == "2" { "aux2" } else { "aux" };
        let given = if suffix == "2" { self.sizes.aux2 } else { self.sizes.aux };
        let width = if is_identity && given.is_none() { simple.hidden } else { self.sizes.need(size)? };
        if is_identity && width != simple.hidden {
            return Err(Refusal::config(format!(
                "`project` = \"identity\" needs `{size}` = `hidden`, but {width} is not {}",
                simple.hidden
            )));
        }
        let shape = if is_diagonal { vec![simple.input, width] } else { vec![simple.input, width, width] };
        // Diagonal operators have no columns to normalise: that option belongs to the full ones.
        let norm = match settings.norm {
            Norm::ColumnSoftmax if is_diagonal => Norm::None,
            norm => norm,
        };
        let b = &mut *self.b;
        let v = b.normed(format!("V{suffix}"), &shape, initial_v(Some(settings.init), &shape), norm);
        let (back, u) = if is_identity {
            (None, simple.h)
        } else {
            let back = b.matrix(format!("I{suffix}"), &[simple.hidden, width]);
            let to = b.matrix(format!("J{suffix}"), &[width, simple.hidden]);
            (Some(back), b.product(to, simple.h))
        };
        let mut parts = Vec::new();
        if counts.0 > 0 {
            let items = self.items(lambda, u, v, is_diagonal, true)?;
            parts.push(self.gated("P", "C", "Ptab", "p", &items, width));
        }
        if let Some(pi) = pi.filter(|_| counts.1 > 0) {
            let items = self.items(pi, u, v, is_diagonal, false)?;
            parts.push(self.gated("Q", "D", "Qtab", "q", &items, width));
        }
        let mixture = self.b.sum(&parts);
        Ok(Some(back.map_or(mixture, |back| self.b.product(back, mixture))))
    }

    /// The inputs that the digits of words stand for: the oldest first, this step's last.
    fn inputs(&mut self) -> Vec<ValueId> {
        let (b, start) = (&mut *self.b, self.before.clone());
        let mut inputs = vec![self.simple.x];
        for back in 1..self.settings.window {
            let input = if back == 1 {
                b.previous()
            } else {
                // What was older by one step is handed on.
                let newer = inputs.last().copied().unwrap_or(self.simple.x);
                let (state, older) = b.state(format!("x{back}"), self.simple.input, start.clone());
                b.set_state(state, newer);
                older
            };
            inputs.push(input);
        }
        inputs.reverse();
        inputs
    }

    /// ⟦λ⟧(V(x)) u, or ⟦π⟧(V(x′), V(x)) u, of every program.
    fn items(
        &mut self,
        programs: &Compiled,
        u: ValueId,
        v: WeightId,
        is_diagonal: bool,
        is_lambda: bool,
    ) -> Result<Vec<ValueId>> {
        let inputs = if is_lambda { vec![self.simple.x] } else { self.inputs() };
        let mut operate = |b: &mut Builder, slot: usize, z: ValueId| {
            let unknown = || Refusal::new(Kind::Proof, "an operator that is no input");
            let x = inputs.get(slot).copied().ok_or_else(unknown)?;
            Ok(if is_diagonal {
                let operator = b.select(v, x);
                b.mul(operator, z)
            } else {
                b.operate(v, x, z)
            })
        };
        Writer { plan: &programs.plan, vector: u, coefficients: &[], operate: &mut operate, applied: 0 }
            .results(self.b)
    }

    /// Σ gates ∘ items, with the gates of one list.
    fn gated(
        &mut self,
        weight: &str,
        bias: &str,
        table: &str,
        report: &str,
        items: &[ValueId],
        width: usize,
    ) -> ValueId {
        let (b, settings, n) = (&mut *self.b, self.settings, items.len());
        if settings.gate_act == GateAct::One {
            return b.sum(items);
        }
        let is_scalar = settings.gate == Gate::Scalar;
        let each = if is_scalar { 1 } else { width };
        let raw = if let Some(rows) = settings.table {
            let shape = if is_scalar { vec![rows, n] } else { vec![rows, n, width] };
            let table = b.matrix(table, &shape);
            b.row(table)
        } else {
            let hidden = self.simple.hidden;
            let shape = if is_scalar { vec![n, hidden] } else { vec![n, width, hidden] };
            let factor = Factor { weight: b.matrix(weight, &shape), view: View::Plain };
            let shape = if is_scalar { vec![n] } else { vec![n, width] };
            let bias = b.weight(bias, &shape, training::Initial::Constant(settings.bias));
            b.affine(&[(factor, self.simple.h)], Some(bias), &[])
        };
        let gates = activate(b, settings.gate_act, n, raw);
        debug_assert_eq!(b.len_of(gates), n * each);
        b.report(report, gates);
        b.mix(gates, items)
    }
}

/// γ; softmax runs over `n` programs, coordinate by coordinate.
pub(super) fn activate(b: &mut Builder, act: GateAct, n: usize, raw: ValueId) -> ValueId {
    match act {
        GateAct::Relu => b.act(Act::Relu, raw),
        GateAct::Tanh => b.act(Act::Tanh, raw),
        GateAct::Sigmoid => b.act(Act::Sigmoid, raw),
        GateAct::Softmax => b.softmax(Groups::Blocks(n), raw),
        GateAct::Identity | GateAct::One => raw,
    }
}
