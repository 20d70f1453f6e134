//! Proofs as programs of a cell: checked, named, compiled, and written into the step.
//!
//! A proof becomes a straight-line program of the crate `linear-logic` whose operators are the cell's slots; here its
//! instructions become operations on vectors. An operator is never made: it is applied.

mod signature;

use linear_logic::compile::{Backend, Degree, Instruction, Plan, Slot, compile_within};
use linear_logic::elaborate::{Mode, elaborate, elaborate_against};
use linear_logic::error::{Refusal as Inner, Source};
use linear_logic::literal::Order;
use linear_logic::parse;
use linear_logic::print::canonical;
use linear_logic::program::{Checked, Program};
use linear_logic::recognise::{Recognised, recognise};
use linear_logic::reduce::{Limits, normalize};
use linear_logic::stack::on_large_stack;
use num_traits::ToPrimitive;

use crate::error::{Kind, Refusal, Result};
use crate::nearest::cut;
use crate::step::{Builder, ValueId};
use signature::faulty_term;
pub(crate) use signature::{Signature, signature};

/// A proof of a cell, for reports.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramText {
    /// `lambda`, `pi` or `master`, and its number there.
    pub place: String,
    /// The text as it was given.
    pub text: String,
    /// What it is: a numeral, a word, or its type.
    pub canonical: String,
    /// Of a numeral or a word, the operators in the order in which they are applied, however words are read: of Λ 0 alone,
    /// of Π the digit, w − 1 for this input and 0 for the oldest.
    pub applied: Option<Vec<usize>>,
    /// Its degree in its operators and in the coefficients of its mixtures.
    pub degree: Degree,
}

/// A refusal of the language as one of ours.
pub(crate) fn proof(what: &str, inner: &Inner) -> Refusal {
    let message = format!("{what}: {}: {}", inner.kind.name(), cut(&inner.message, MOST_SHOWN));
    let mut inside = serde_json::to_value(inner).ok();
    for field in
        inside.iter_mut().filter_map(|inside| inside.as_object_mut()).flat_map(|all| all.values_mut())
    {
        if let Some(long) = field.as_str().filter(|text| text.len() > MOST_SHOWN) {
            *field = cut(long, MOST_SHOWN).into();
        }
    }
    Refusal { inside, ..Refusal::new(Kind::Proof, message) }
}

/// The most characters of the language's message: it may quote a name or a type of any length.
const MOST_SHOWN: usize = 400;

/// Most instructions of a compiled program. Each is an operation of every step.
const MOST_INSTRUCTIONS: usize = 20_000;

/// Most applications of operators in a step.
const MOST_APPLICATIONS: usize = 5 * MOST_INSTRUCTIONS;

/// A compiled program with what its proofs are.
#[derive(Debug, Clone, Default)]
pub(crate) struct Compiled {
    pub(crate) plan: Plan,
    /// One for each subject.
    pub(crate) recognised: Vec<Option<Recognised>>,
    /// The printed types of the subjects.
    pub(crate) types: Vec<String>,
    /// The type of the first subject, taken apart.
    pub(crate) signature: Signature,
}

/// A subject: a text, and the type that it must have, if one is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) what: String,
    pub(crate) text: String,
    pub(crate) against: Option<String>,
}

/// Checks texts and compiles them to one program whose results are vectors.
///
/// # Errors
/// `proof`, with the refusal of the language inside.
pub(crate) fn compiled(subjects: &[Subject], slots: &[Slot], order: Order) -> Result<Compiled> {
    // The language recurses; it brings its own stack, and nothing but plain data leaves it.
    let made = on_large_stack(|| compile_here(subjects, slots, order));
    made.map_err(|error| Refusal::new(Kind::Proof, format!("no thread for the checker: {error}")))?
}

fn compile_here(subjects: &[Subject], slots: &[Slot], order: Order) -> Result<Compiled> {
    let program = Program::new(order, Mode::default()).map_err(|inner| proof("the library", &inner))?;
    let mut checked: Vec<Checked> = Vec::with_capacity(subjects.len());
    for subject in subjects {
        let located = |inner: Inner| proof(&subject.what, &inner);
        let source = Source::new("<proof>", subject.text.clone().into_bytes());
        let query = parse::query(&source).map_err(located)?;
        let found = match &subject.against {
            None => elaborate(&program, &source, &query).map_err(located)?,
            Some(text) => {
                let wanted = Source::new("<type>", text.as_bytes().to_vec());
                let formula = parse::query(&wanted)
                    .and_then(|query| elaborate(&program, &wanted, &query))
                    .map_err(located)?
                    .formula;
                elaborate_against(&program, &source, &query, &formula).map_err(located)?
            }
        };
        checked.push(found);
    }
    let what = subjects.first().map_or("", |subject| subject.what.as_str());
    let signature = checked.first().map(|first| Signature::of(&first.formula)).unwrap_or_default();
    let plan =
        compile_within(&program, &checked, slots, Backend::Vector, MOST_INSTRUCTIONS).map_err(|inner| {
            let mut refusal = proof(what, &inner);
            let why = signature.misfit(slots).or_else(|| faulty_term(&program, checked.first(), slots));
            if let Some(why) = why {
                refusal.message = format!("{}: {why}", refusal.message);
            }
            refusal
        })?;
    Ok(Compiled {
        plan,
        recognised: checked.iter().map(|c| recognise(&c.term, &c.formula, order)).collect(),
        types: checked.iter().map(|c| c.formula.short()).collect(),
        signature,
    })
}

/// The normal form of a closed text of the language, in its canonical spelling.
///
/// # Errors
/// `proof`, with the refusal of the language inside.
pub(crate) fn normal_form(text: &str) -> Result<String> {
    let made = on_large_stack(|| {
        let refused = |inner: Inner| proof(text, &inner);
        let program = Program::new(Order::Literal, Mode::default()).map_err(refused)?;
        let source = Source::new("<proof>", text.as_bytes().to_vec());
        let query = parse::query(&source).map_err(refused)?;
        let checked = elaborate(&program, &source, &query).map_err(refused)?;
        let limits = Limits::default();
        let normal = normalize(&checked.term, program.order(), limits, |_, _| Ok(())).map_err(refused)?;
        Ok(canonical(&normal.term))
    });
    made.map_err(|error| Refusal::new(Kind::Proof, format!("no thread for the checker: {error}")))?
}

/// Applies the operator in a slot to a vector.
pub(crate) type Operate<'a> = dyn FnMut(&mut Builder, usize, ValueId) -> Result<ValueId> + 'a;

/// Writes a compiled program into a step.
pub(crate) struct Writer<'a> {
    pub(crate) plan: &'a Plan,
    /// The vector that the results are taken at.
    pub(crate) vector: ValueId,
    /// For each slot, the coefficients of its mixture.
    pub(crate) coefficients: &'a [Option<ValueId>],
    pub(crate) operate: &'a mut Operate<'a>,
    /// Applications of operators so far. An operator that is used twice is applied twice, so nested ones multiply.
    pub(crate) applied: usize,
}

impl Writer<'_> {
    /// The results, one for each subject.
    ///
    /// # Errors
    /// `proof` if an instruction does not have the form that vector programs have.
    pub(crate) fn results(&mut self, b: &mut Builder) -> Result<Vec<ValueId>> {
        let mut vectors: Vec<Option<ValueId>> = vec![None; self.plan.instructions.len()];
        // In order, so that depth is no recursion; operators are written where they are applied.
        for (id, instruction) in self.plan.instructions.iter().enumerate() {
            let get = |id: &usize| vectors.get(*id).copied().flatten();
            vectors[id] = match instruction {
                Instruction::Vector => Some(self.vector),
                Instruction::Apply { operator, vector } => match get(vector) {
                    Some(vector) => Some(self.apply(b, *operator, vector)?),
                    None => None,
                },
                Instruction::Add(all) => {
                    let all: Option<Vec<ValueId>> = all.iter().map(get).collect();
                    all.map(|all| b.sum(&all))
                }
                Instruction::Scale { by, of } => match get(of) {
                    Some(of) => Some(self.scale(b, by, of)?),
                    None => None,
                },
                Instruction::Zero => {
                    // Only a result can be a zero vector; an operator that is zero is met in `apply`.
                    Some(b.scale(0.0, self.vector))
                }
                _ => None,
            };
        }
        let found = self.plan.results.iter().map(|id| vectors.get(*id).copied().flatten());
        found.map(|value| value.ok_or_else(|| strange("a result is not a vector"))).collect()
    }

    fn apply(&mut self, b: &mut Builder, operator: usize, vector: ValueId) -> Result<ValueId> {
        let Some(instruction) = self.plan.instructions.get(operator) else {
            return Err(strange("an instruction is missing"));
        };
        self.applied += 1;
        if self.applied > MOST_APPLICATIONS {
            let why = format!("it applies operators more than {MOST_APPLICATIONS} times in a step");
            return Err(strange(&why));
        }
        Ok(match instruction {
            Instruction::Input { slot } => (self.operate)(b, *slot, vector)?,
            Instruction::Identity => vector,
            Instruction::Zero => b.scale(0.0, vector),
            Instruction::Mul(left, right) => {
                let inner = self.apply(b, *right, vector)?;
                self.apply(b, *left, inner)?
            }
            Instruction::Add(all) => {
                let parts: Result<Vec<ValueId>> = all.iter().map(|id| self.apply(b, *id, vector)).collect();
                b.sum(&parts?)
            }
            Instruction::Scale { by, of } => {
                let inner = self.apply(b, *of, vector)?;
                self.scale(b, by, inner)?
            }
            Instruction::Pow { of, exponent } => {
                let mut value = vector;
                for _ in 0..*exponent {
                    value = self.apply(b, *of, value)?;
                }
                value
            }
            Instruction::Vector | Instruction::Apply { .. } => return Err(strange("a vector is applied")),
        })
    }

    /// (Σ c ∏ coefficients) · of. The factor is made before it meets the vector: numbers cost less than vectors.
    fn scale(
        &self,
        b: &mut Builder,
        by: &linear_logic::compile::Coefficient,
        of: ValueId,
    ) -> Result<ValueId> {
        let (mut factors, mut parts) = (Vec::with_capacity(by.len()), Vec::new());
        for (c, product) in by {
            let number = c.to_f64().ok_or_else(|| strange("a coefficient is not a number"))?;
            let mut factor = None;
            for (slot, index) in product {
                let all = self.coefficients.get(*slot).copied().flatten();
                let all = all.ok_or_else(|| strange("a coefficient is missing"))?;
                let one = b.slice(all, *index, 1);
                factor = Some(factor.map_or(one, |factor| b.mul(factor, one)));
            }
            match factor {
                Some(factor) => factors.push(b.scale(number, factor)),
                None => parts.push(b.scale(number, of)),
            }
        }
        if !factors.is_empty() {
            let factor = b.sum(&factors);
            parts.push(b.mul(factor, of));
        }
        Ok(if parts.is_empty() { b.scale(0.0, of) } else { b.sum(&parts) })
    }
}

fn strange(why: &str) -> Refusal {
    Refusal::new(Kind::Proof, format!("the compiled proof cannot be a step: {why}"))
}
