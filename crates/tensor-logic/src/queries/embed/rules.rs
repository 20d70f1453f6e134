//! From the core form to rules over objects: what embedding space can hold, and what is refused.
//!
//! Enter at [`compile`]. A rule is a product of its antecedents' embeddings: a place of a literal is contracted with the
//! vector of what stands there. What a variable stands for is decided once, by its *pivot*: the candidate, where it is
//! in the head; else one of its occurrences, whose place is not embedded but taken as it is. Every other occurrence
//! ([`Near`](At::Near)) is a dot product with the pivot's object. A variable that occurs twice is then one contraction of two
//! tensors, as in the paper; one that occurs once and nowhere else is a place that is left out.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::{Answered, At, Compared, Head, Literal, Rule, Rules, Stratum};
use crate::ast::Span;
use crate::error::{Code, Refusal, Result};
use crate::program::{
    Argument, Class, Combine, Embed, Equation, Expr, Guard, IndexFn, IndexId, Kind, Otherwise, Program,
    Range, Read, Style, Tensor, TensorId, Term, Vectors,
};
use crate::value::{Const, Domain};

/// The rules that a query needs.
///
/// # Errors
/// `type-conflict` for what has values, `symbol-as-number` for arithmetic on objects: at the directive, with a label at
/// what embedding space does not hold.
pub(super) fn compile(program: &Program, goal: TensorId, embed: &Embed) -> Result<Rules> {
    let needed = program.needs(&[goal]);
    let mut reader = Reader { program, place: embed.span, objects: Objects::default() };
    needed.iter().try_for_each(|id| reader.relation(*id, *id == goal))?;
    let equations = || program.equations.iter().filter(|equation| needed.contains(&equation.tensor));
    equations().try_for_each(|equation| reader.constants(equation))?;
    if let Vectors::Rows(id) = embed.vectors
        && let Some(domain) = program.tensor(id).places.first().and_then(|place| place.domain.as_ref())
    {
        // What has a vector may borrow from others, also where no fact names it.
        let at = program.tensor(id).span;
        reader.values(domain, &format!("`{}` has vectors of", program.name(id)), at)?;
    }
    reader.objects.sort(program);
    reader.rules(goal, &needed)
}

/// The constants of a program, numbered.
#[derive(Debug, Default)]
struct Objects {
    all: Vec<Const>,
    numbers: BTreeMap<Const, usize>,
}

impl Objects {
    fn sort(&mut self, program: &Program) {
        let mut all: Vec<Const> = self.numbers.keys().copied().collect();
        all.sort_by(|a, b| program.symbols.compare(*a, *b));
        self.numbers = all.iter().copied().zip(0..).collect();
        self.all = all;
    }

    fn add(&mut self, value: Const) {
        self.numbers.insert(value, 0);
    }

    /// The objects of a domain.
    fn mask(&self, domain: &Domain) -> Vec<bool> {
        self.all.iter().map(|value| domain.contains(*value)).collect()
    }
}

struct Reader<'p> {
    program: &'p Program,
    /// The directive.
    place: Span,
    objects: Objects,
}

impl<'p> Reader<'p> {
    fn refused(&self, code: Code, what: String, at: Span, label: &str, help: &str) -> Refusal {
        let report = Refusal::new(code, self.place, what).help(help);
        if at == Span::default() { report } else { report.label(at, label) }
    }

    /// Something that has a value.
    fn valued(&self, what: &str, at: Span) -> Refusal {
        let message = format!("`@embed` answers Boolean queries, and {what}");
        let help = "embedding space holds Boolean relations and rules `P(x, y) <- …` over them";
        self.refused(Code::TypeConflict, message, at, "this has no place in embedding space", help)
    }

    /// Arithmetic.
    fn computed(&self, at: Span) -> Refusal {
        let message = "an object of embedding space is no number: nothing can be computed from it in a place";
        let help = "list what is computed as facts: `Next(1, 2)`; comparisons may compute";
        self.refused(Code::SymbolAsNumber, message.to_owned(), at, "this is computed", help)
    }

    /// Takes the constants of a relation that can be embedded.
    fn relation(&mut self, id: TensorId, goal: bool) -> Result<()> {
        let tensor = self.program.tensor(id);
        let name = if goal { "the query".to_owned() } else { format!("`{}`", tensor.name) };
        if tensor.style == Style::Square {
            return Err(self.valued(&format!("{name} is a square tensor"), tensor.span));
        }
        let computed = self.program.equations.iter().any(|equation| equation.tensor == id);
        let boolean = tensor.kind == Kind::Bool && matches!(tensor.combine, Combine::Exists | Combine::Or);
        // Of data, rules may ask whether a tuple exists; `Reader::read` sees whether they ask for more.
        let exists = !computed && !goal && !tensor.kind.is_probability() && !tensor.is_proved();
        if !boolean && !exists {
            return Err(
                self.valued(&format!("{name} has values of type `{}`", tensor.kind.name()), tensor.span)
            );
        }
        for given in &tensor.given {
            let Some(facts) = given.facts() else {
                return Err(self.valued(&format!("{name} is given as an array"), tensor.span));
            };
            facts.constants.iter().for_each(|value| self.objects.add(*value));
        }
        Ok(())
    }

    /// Takes the constants of an equation.
    fn constants(&mut self, equation: &Equation) -> Result<()> {
        for function in &equation.head {
            if let IndexFn::Const(value) = function {
                self.objects.add(*value);
            }
        }
        let mut read: BTreeSet<IndexId> = BTreeSet::new();
        equation.visit_reads(&mut |element, sense| {
            for function in element.arguments.iter().filter_map(Argument::function) {
                match function {
                    IndexFn::Const(value) => self.objects.add(*value),
                    IndexFn::Index(index) if sense == crate::program::Sense::Positive => {
                        read.insert(*index);
                    }
                    _ => {}
                }
            }
        });
        // What no literal binds takes the values that are declared for it.
        let own = equation.terms.iter().flat_map(|term| term.over.iter().chain(&term.when.exists));
        for index in equation.left.iter().chain(own).filter(|index| !read.contains(index)) {
            if let Range::Domain(domain) = &self.program.index(*index).range {
                let index = self.program.index(*index);
                self.values(domain, &format!("`{}` takes", index.name), index.span)?;
            }
        }
        Ok(())
    }

    /// Takes the values of a domain.
    fn values(&mut self, domain: &Domain, who: &str, at: Span) -> Result<()> {
        if domain.len() > MOST_DECLARED {
            let message =
                format!("{who} {} values, and at most {MOST_DECLARED} can be objects", domain.len());
            let help = "bind an index by a relation, or declare a smaller domain";
            return Err(self.refused(Code::TooLarge, message, at, "here", help));
        }
        domain.values().for_each(|value| self.objects.add(value));
        Ok(())
    }

    fn number(&self, value: Const) -> usize {
        self.objects.numbers.get(&value).copied().unwrap_or(0)
    }

    fn tuples(&self, tensor: &Tensor) -> BTreeSet<Vec<usize>> {
        let mut tuples = BTreeSet::new();
        for given in &tensor.given {
            if let Some(facts) = given.facts() {
                let numbered = |tuple: &[Const]| tuple.iter().map(|value| self.number(*value)).collect();
                tuples.extend((0..facts.count).map(|at| numbered(facts.tuple(at))));
            }
        }
        tuples
    }

    /// All rules, in the order of evaluation, and the answer.
    fn rules(self, goal: TensorId, needed: &BTreeSet<TensorId>) -> Result<Rules> {
        let program = self.program;
        let empty = vec![BTreeSet::new(); program.tensors.len()];
        let mut found = Rules {
            objects: Vec::new(),
            facts: empty,
            computed: Vec::new(),
            rules: Vec::new(),
            strata: Vec::new(),
            answered: Answered { relation: goal.0 as usize, places: Vec::new(), masks: Vec::new() },
        };
        let rules_of = |id: TensorId| program.equations.iter().any(|equation| equation.tensor == id);
        for id in needed.iter().filter(|id| !rules_of(**id)) {
            found.facts[id.0 as usize] = self.tuples(program.tensor(*id));
        }
        let answered = self.read_off(goal);
        for component in &program.components {
            let own: Vec<TensorId> =
                component.tensors.iter().copied().filter(|id| needed.contains(id) && rules_of(*id)).collect();
            if own.is_empty() || (answered.is_some() && own == [goal]) {
                continue;
            }
            let mut stratum =
                Stratum { rules: Vec::new(), recursive: !matches!(component.class, Class::Plain) };
            for id in &own {
                self.facts_of(*id, &mut found, &mut stratum);
                for equation in program.equations.iter().filter(|equation| equation.tensor == *id) {
                    for term in &equation.terms {
                        stratum.rules.push(found.rules.len());
                        found.rules.push(self.rule(equation, term)?);
                    }
                }
            }
            found.computed.extend(own.iter().filter(|id| !program.tensor(**id).hidden));
            found.strata.push(stratum);
        }
        found.answered = match answered {
            Some(answered) => answered,
            None => self.whole(goal, rules_of(goal), &mut found),
        };
        found.objects = self.objects.all;
        Ok(found)
    }

    /// The facts of a relation with rules: a relation of its own, and the rule that its tuples are among the others.
    fn facts_of(&self, id: TensorId, found: &mut Rules, stratum: &mut Stratum) {
        let tuples = self.tuples(self.program.tensor(id));
        if !tuples.is_empty() {
            stratum.rules.push(found.rules.len());
            let from = found.facts.len();
            found.facts.push(tuples);
            found.rules.push(self.copy(self.program.tensor(id), from, id.0 as usize));
        }
    }

    /// `To(x, y) <- From(x, y)`
    fn copy(&self, tensor: &Tensor, from: usize, to: usize) -> Rule {
        let rank = tensor.places.len();
        Rule {
            relation: to,
            head: (0..rank).map(Head::Variable).collect(),
            candidates: rank,
            masks: tensor.places.iter().map(|place| Some(self.objects.mask(place.limit.as_ref()?))).collect(),
            indices: vec![IndexId(u32::MAX); rank],
            literals: vec![Literal { relation: from, places: (0..rank).map(At::Near).collect() }],
            denied: Vec::new(),
            compared: Vec::new(),
            span: tensor.span,
        }
    }

    /// The answer of a query that is one literal of a relation with rules: what was retrieved there.
    fn read_off(&self, goal: TensorId) -> Option<Answered> {
        let mut equations = self.program.equations.iter().filter(|equation| equation.tensor == goal);
        let (equation, None) = (equations.next()?, equations.next()) else { return None };
        let ([term], true) = (equation.terms.as_slice(), self.program.tensor(goal).hidden) else {
            return None;
        };
        let read = match (&term.body, term.when.guards.as_slice()) {
            (Expr::Read(read), []) => read,
            (Expr::Number(1.0), [Guard::Read(read)]) => read,
            _ => return None,
        };
        self.program.equations.iter().find(|other| other.tensor == read.tensor)?;
        let mut places = Vec::new();
        for argument in &read.arguments {
            places.push(match argument.function()? {
                IndexFn::Const(value) => Some(Head::Object(self.number(*value))),
                IndexFn::Index(index) => {
                    let head = equation.head.iter().position(|function| function.alone() == Some(*index));
                    let once = read
                        .arguments
                        .iter()
                        .filter(|other| other.function().and_then(IndexFn::alone) == Some(*index));
                    match head {
                        Some(at) => Some(Head::Variable(at)),
                        None if once.count() == 1 => None,
                        None => return None,
                    }
                }
                _ => return None,
            });
        }
        let head: Option<Vec<IndexId>> = equation.head.iter().map(IndexFn::alone).collect();
        let masks = head?.into_iter().map(|index| self.mask(index)).collect();
        Some(Answered { relation: read.tensor.0 as usize, places, masks })
    }

    /// The whole of a relation; of one without rules what is retrieved of it.
    fn whole(&self, goal: TensorId, ruled: bool, found: &mut Rules) -> Answered {
        let tensor = self.program.tensor(goal);
        let rank = tensor.places.len();
        let mut relation = goal.0 as usize;
        if !ruled {
            let to = found.facts.len();
            found.facts.push(BTreeSet::new());
            found.strata.push(Stratum { rules: vec![found.rules.len()], recursive: false });
            found.rules.push(self.copy(tensor, relation, to));
            relation = to;
        }
        let places = (0..rank).map(|at| Some(Head::Variable(at))).collect();
        Answered { relation, places, masks: vec![None; rank] }
    }

    /// The objects that an index may stand for, where not all.
    fn mask(&self, index: IndexId) -> Option<Vec<bool>> {
        match &self.program.index(index).range {
            Range::Domain(domain) => Some(self.objects.mask(domain)),
            Range::Tuples | Range::Computed => None,
        }
    }

    fn rule(&self, equation: &Equation, term: &Term) -> Result<Rule> {
        let mut draft = Draft {
            reader: self,
            equation,
            variables: Vec::new(),
            literals: Vec::new(),
            denied: Vec::new(),
            compared: Vec::new(),
        };
        let head: Vec<Head> =
            equation.head.iter().map(|function| draft.head(function)).collect::<Result<_>>()?;
        let candidates = draft.variables.len();
        draft.body(&term.body)?;
        for guard in &term.when.guards {
            draft.guard(guard)?;
        }
        for index in term.over.iter().chain(&term.when.exists) {
            draft.variable(*index);
        }
        let mut masks: Vec<Option<Vec<bool>>> =
            draft.variables.iter().map(|index| self.mask(*index)).collect();
        for (at, place) in head.iter().zip(&self.program.tensor(equation.tensor).places) {
            if let (Head::Variable(variable), Some(limit)) = (at, &place.limit) {
                let limit = self.objects.mask(limit);
                let mask = masks[*variable].get_or_insert_with(|| vec![true; limit.len()]);
                mask.iter_mut().zip(limit).for_each(|(own, inside)| *own &= inside);
            }
        }
        let literals = draft.pivoted(candidates, &masks);
        Ok(Rule {
            relation: equation.tensor.0 as usize,
            head,
            candidates,
            masks,
            indices: draft.variables,
            literals,
            denied: draft.denied,
            compared: draft.compared,
            span: equation.head_span,
        })
    }
}

/// A declared index that nothing else binds may have so many values, and a tensor so many vectors.
const MOST_DECLARED: usize = 1 << 16;

/// A rule in the making: places hold [`At::Near`] until the pivots are known.
struct Draft<'r, 'p> {
    reader: &'r Reader<'p>,
    equation: &'r Equation,
    variables: Vec<IndexId>,
    literals: Vec<(Literal, &'r str)>,
    denied: Vec<Literal>,
    compared: Vec<Compared>,
}

impl<'r> Draft<'r, '_> {
    fn variable(&mut self, index: IndexId) -> usize {
        let known = self.variables.iter().position(|own| *own == index);
        known.unwrap_or_else(|| {
            self.variables.push(index);
            self.variables.len() - 1
        })
    }

    fn head(&mut self, function: &IndexFn) -> Result<Head> {
        match function {
            IndexFn::Index(index) => Ok(Head::Variable(self.variable(*index))),
            IndexFn::Const(value) => Ok(Head::Object(self.reader.number(*value))),
            _ => Err(self.reader.computed(self.equation.head_span)),
        }
    }

    fn literal(&mut self, read: &Read) -> Result<Literal> {
        let mut places = Vec::new();
        for argument in &read.arguments {
            places.push(match argument.function() {
                None => At::Free,
                Some(IndexFn::Index(index)) => At::Near(self.variable(*index)),
                Some(IndexFn::Const(value)) => At::Object(self.reader.number(*value)),
                Some(_) => return Err(self.reader.computed(read.span)),
            });
        }
        Ok(Literal { relation: read.tensor.0 as usize, places })
    }

    /// A literal that holds where a tuple exists.
    fn holds(&mut self, read: &'r Read) -> Result<()> {
        let tensor = self.reader.program.tensor(read.tensor);
        // In square brackets a value is asked for; that of a Boolean tuple is 1.
        if read.otherwise != Otherwise::Absent && tensor.kind != Kind::Bool {
            return Err(self.reader.valued(&format!("`{}` is read as a number", tensor.name), read.span));
        }
        let literal = self.literal(read)?;
        self.literals.push((literal, self.name(read.tensor)));
        Ok(())
    }

    fn name(&self, id: TensorId) -> &'r str {
        let program: &'r Program = self.reader.program;
        &program.tensor(id).name
    }

    /// What stands on the right side of `=`: factors that are 1 where they are present.
    fn body(&mut self, body: &'r Expr) -> Result<()> {
        match body {
            Expr::Number(value) if *value > 0.0 => Ok(()),
            Expr::Product(parts) => parts.iter().try_for_each(|part| self.body(part)),
            Expr::Terms(parts) | Expr::Plus(parts) if parts.len() == 1 => {
                parts.iter().try_for_each(|part| self.body(part))
            }
            Expr::Read(read) if self.reader.program.tensor(read.tensor).kind == Kind::Bool => {
                self.holds(read)
            }
            Expr::Missing(read) => {
                let literal = self.literal(read)?;
                self.denied.push(literal);
                Ok(())
            }
            _ => Err(self.reader.valued("a rule below the query computes with numbers", self.equation.span)),
        }
    }

    fn guard(&mut self, guard: &'r Guard) -> Result<()> {
        match guard {
            Guard::Read(read) => self.holds(read),
            Guard::Not(read) => {
                let literal = self.literal(read)?;
                self.denied.push(literal);
                Ok(())
            }
            Guard::CompareIndex(sign, left, right) => {
                let mut variables = Vec::new();
                for side in [left, right] {
                    side.visit(&mut |index| {
                        let variable = self.variable(index);
                        if !variables.contains(&variable) {
                            variables.push(variable);
                        }
                    });
                }
                self.compared.push(Compared { sign: *sign, sides: (left.clone(), right.clone()), variables });
                Ok(())
            }
            Guard::Compare(..) => {
                Err(self.reader.valued("a rule below the query compares values", self.equation.span))
            }
            Guard::Bind(..) => Err(self.reader.computed(self.equation.span)),
        }
    }

    /// The literals, once it is clear where each variable is decided.
    fn pivoted(&self, candidates: usize, masks: &[Option<Vec<bool>>]) -> Vec<Literal> {
        let mut literals: Vec<Literal> = self.literals.iter().map(|(literal, _)| literal.clone()).collect();
        for (variable, mask) in masks.iter().enumerate().skip(candidates) {
            let occurrences = self.literals.iter().enumerate().flat_map(|(at, (literal, name))| {
                let places = literal.places.iter().enumerate();
                let own = places.filter(move |(_, what)| **what == At::Near(variable));
                // The largest literal stays sparse; the order of the text does not matter.
                own.map(move |(place, _)| (std::cmp::Reverse(literal.places.len()), *name, place, at))
            });
            let occurrences: Vec<_> = occurrences.collect();
            let Some((_, _, place, literal)) = occurrences.iter().min() else { continue };
            let denied = self.denied.iter().any(|literal| literal.places.contains(&At::Near(variable)));
            let compared = self.compared.iter().any(|each| each.variables.contains(&variable));
            let alone = occurrences.len() == 1 && !denied && !compared && mask.is_none();
            literals[*literal].places[*place] = if alone { At::Free } else { At::Pivot(variable) };
        }
        literals
    }
}
