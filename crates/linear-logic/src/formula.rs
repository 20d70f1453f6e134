//! Formulas of intuitionistic linear logic, their two printed forms, and substitution for parameters.
//!
//! A [`Formula`] is a shared tree: abbreviations are expanded when it is built, so equality of formulas is equality of
//! trees. Size and depth are kept with every node, because abbreviations can make a short text mean a huge formula;
//! whoever builds formulas from text refuses those beyond [`MAX_SIZE`] and [`MAX_DEPTH`].

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::rc::Rc;

/// The largest number of connectives and atoms of a formula that a text may mean.
pub const MAX_SIZE: u64 = 100_000;

/// The deepest nesting of a formula that a text may mean.
pub const MAX_DEPTH: u32 = 4_000;

/// A formula, or type: the two words mean the same.
#[derive(Clone)]
pub struct Formula(Rc<Node>);

struct Node {
    kind: Connective,
    size: u64,
    depth: u32,
    finite: bool,
    closed: bool,
}

/// The outermost connective of a formula, with its parts.
#[derive(Clone, PartialEq, Eq)]
pub enum Connective {
    /// α, a vector space of a dimension to be given.
    Atom(Rc<str>),
    /// A parameter of the definition in which the formula stands.
    Parameter(Rc<str>),
    /// 1.
    One,
    /// A ⊗ B.
    Tensor(Formula, Formula),
    /// A ⊸ B.
    Lolli(Formula, Formula),
    /// A & B.
    With(Formula, Formula),
    /// A ⊕ B.
    Plus(Formula, Formula),
    /// !A.
    Bang(Formula),
}

use Connective::{Atom, Bang, Lolli, One, Parameter, Plus, Tensor, With};

impl From<Connective> for Formula {
    fn from(kind: Connective) -> Self {
        let (size, depth, finite, closed) = match &kind {
            Atom(_) | One => (1, 1, true, true),
            Parameter(_) => (1, 1, true, false),
            Bang(a) => (a.0.size.saturating_add(1), a.0.depth + 1, false, a.0.closed),
            Tensor(a, b) | Lolli(a, b) | With(a, b) | Plus(a, b) => (
                a.0.size.saturating_add(b.0.size).saturating_add(1),
                a.0.depth.max(b.0.depth) + 1,
                a.0.finite && b.0.finite,
                a.0.closed && b.0.closed,
            ),
        };
        Self(Rc::new(Node { kind, size, depth, finite, closed }))
    }
}

impl PartialEq for Formula {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0) || (self.0.size == other.0.size && self.0.kind == other.0.kind)
    }
}

impl Eq for Formula {}

impl std::hash::Hash for Formula {
    /// Size and depth tell most formulas apart, and hashing stays cheap.
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.0.size, self.0.depth).hash(state);
    }
}

impl Formula {
    /// The atom of this name.
    pub fn atom(name: &str) -> Self {
        Atom(name.into()).into()
    }

    /// The parameter of this name.
    pub fn parameter(name: &str) -> Self {
        Parameter(name.into()).into()
    }

    /// The unit.
    pub fn one() -> Self {
        One.into()
    }

    /// `self ⊗ other`
    #[must_use]
    pub fn tensor(self, other: Self) -> Self {
        Tensor(self, other).into()
    }

    /// `self ⊸ other`
    #[must_use]
    pub fn lolli(self, other: Self) -> Self {
        Lolli(self, other).into()
    }

    /// `self & other`
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        With(self, other).into()
    }

    /// `self ⊕ other`
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Plus(self, other).into()
    }

    /// `!self`
    #[must_use]
    pub fn bang(self) -> Self {
        Bang(self).into()
    }

    /// `end{A} = A ⊸ A`
    pub fn end(base: Self) -> Self {
        base.clone().lolli(base)
    }

    /// `int{A} = !(A ⊸ A) ⊸ A ⊸ A`
    pub fn int(base: Self) -> Self {
        let end = Self::end(base);
        end.clone().bang().lolli(end)
    }

    /// `bint{A} = !(A ⊸ A) ⊸ !(A ⊸ A) ⊸ A ⊸ A`
    pub fn bint(base: Self) -> Self {
        let end = Self::end(base);
        let banged = end.clone().bang();
        banged.clone().lolli(banged.lolli(end))
    }

    /// `bool{A} = A & A ⊸ A`
    pub fn bool(base: Self) -> Self {
        base.clone().with(base.clone()).lolli(base)
    }

    /// The outermost connective.
    pub fn connective(&self) -> &Connective {
        &self.0.kind
    }

    /// The number of connectives and atoms of the tree.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// The depth of the tree.
    pub fn depth(&self) -> u32 {
        self.0.depth
    }

    /// Whether no `!` occurs.
    pub fn is_finite(&self) -> bool {
        self.0.finite
    }

    /// Whether no parameter occurs.
    pub fn is_closed(&self) -> bool {
        self.0.closed
    }

    /// Whether the formula is `!A`.
    pub fn is_banged(&self) -> bool {
        matches!(self.connective(), Bang(_))
    }

    /// α, if the formula is an atom.
    pub fn as_atom(&self) -> Option<&Rc<str>> {
        if let Atom(name) = self.connective() { Some(name) } else { None }
    }

    /// (A, B), if the formula is A ⊸ B.
    pub fn as_lolli(&self) -> Option<(&Self, &Self)> {
        if let Lolli(a, b) = self.connective() { Some((a, b)) } else { None }
    }

    /// A, if the formula is !A.
    pub fn as_bang(&self) -> Option<&Self> {
        if let Bang(a) = self.connective() { Some(a) } else { None }
    }

    /// (α, β), if the formula is α ⊸ β between atoms.
    pub fn as_operator(&self) -> Option<(&Rc<str>, &Rc<str>)> {
        let (a, b) = self.as_lolli()?;
        Some((a.as_atom()?, b.as_atom()?))
    }

    /// A, if the formula is A ⊸ A.
    pub fn as_end(&self) -> Option<&Self> {
        self.as_lolli().filter(|(a, b)| a == b).map(|(a, _)| a)
    }

    /// B, if the formula is `int{B}`.
    pub fn as_int(&self) -> Option<&Self> {
        let (left, right) = self.as_lolli()?;
        (left.as_bang()? == right).then(|| right.as_end())?
    }

    /// B, if the formula is `bint{B}`.
    pub fn as_bint(&self) -> Option<&Self> {
        let (left, right) = self.as_lolli()?;
        let base = right.as_int()?;
        (left == right.as_lolli()?.0).then_some(base)
    }

    /// The atoms in the order of the text, each once.
    pub fn atoms(&self, found: &mut Vec<Rc<str>>) {
        match self.connective() {
            Atom(name) => {
                if !found.contains(name) {
                    found.push(name.clone());
                }
            }
            Parameter(_) | One => {}
            Bang(a) => a.atoms(found),
            Tensor(a, b) | Lolli(a, b) | With(a, b) | Plus(a, b) => {
                a.atoms(found);
                b.atoms(found);
            }
        }
    }

    /// The formula with formulas for parameters, all at once. Parts that the tree shares stay shared.
    #[must_use]
    pub fn instantiate(&self, values: &Instance<'_>) -> Self {
        self.replaced(values, &mut HashMap::new())
    }

    /// `known` are the parts that other parts share: only they are met again.
    fn replaced(&self, values: &Instance<'_>, known: &mut HashMap<*const Node, Self>) -> Self {
        if self.0.closed {
            return self.clone();
        }
        if let Some(found) = known.get(&Rc::as_ptr(&self.0)) {
            return found.clone();
        }
        let found: Self = match self.connective() {
            Atom(_) | One => self.clone(),
            Parameter(name) => values.get(name).unwrap_or_else(|| self.clone()),
            Bang(a) => a.replaced(values, known).bang(),
            Tensor(a, b) => a.replaced(values, known).tensor(b.replaced(values, known)),
            Lolli(a, b) => a.replaced(values, known).lolli(b.replaced(values, known)),
            With(a, b) => a.replaced(values, known).with(b.replaced(values, known)),
            Plus(a, b) => a.replaced(values, known).plus(b.replaced(values, known)),
        };
        if Rc::strong_count(&self.0) > 1 && self.0.depth > 1 {
            known.insert(Rc::as_ptr(&self.0), found.clone());
        }
        found
    }

    /// The parameters in the order of the text, each once.
    fn parameters(&self, found: &mut Vec<Rc<str>>) {
        if self.0.closed {
            return;
        }
        match self.connective() {
            Parameter(name) => {
                if !found.contains(name) {
                    found.push(name.clone());
                }
            }
            Atom(_) | One => {}
            Bang(a) => a.parameters(found),
            Tensor(a, b) | Lolli(a, b) | With(a, b) | Plus(a, b) => {
                a.parameters(found);
                b.parameters(found);
            }
        }
    }

    /// The formulas for parameters with which this formula becomes another; `None` if there are none.
    pub fn instance_of(&self, other: &Self, parameters: &[Rc<str>]) -> Option<Vec<Self>> {
        let mut found = vec![None; parameters.len()];
        self.matches(other, parameters, &mut found).then(|| found.into_iter().collect()).flatten()
    }

    fn matches(&self, other: &Self, parameters: &[Rc<str>], found: &mut [Option<Self>]) -> bool {
        if self.0.closed {
            return self == other;
        }
        match (self.connective(), other.connective()) {
            (Parameter(name), _) => {
                let place = parameters.iter().position(|p| p == name).and_then(|at| found.get_mut(at));
                place.is_some_and(|place| place.get_or_insert_with(|| other.clone()) == other)
            }
            (Bang(a), Bang(b)) => a.matches(b, parameters, found),
            (Tensor(a, b), Tensor(c, d))
            | (Lolli(a, b), Lolli(c, d))
            | (With(a, b), With(c, d))
            | (Plus(a, b), Plus(c, d)) => a.matches(c, parameters, found) && b.matches(d, parameters, found),
            _ => false,
        }
    }

    /// `type_short`: `bint{…}` and `int{…}` folded, outermost first, without braces at the atom `a`.
    pub fn short(&self) -> String {
        self.text(Style { short: true, apart: &[] })
    }

    fn text(&self, style: Style<'_>) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write(&mut text, 0, style);
        text
    }

    /// `level` 0 to 5: what may stand there without parentheses, from ⊸ to !.
    fn write(&self, out: &mut dyn Write, level: u8, style: Style<'_>) -> fmt::Result {
        if style.short {
            let folded = self.as_bint().map(|b| ("bint", b)).or_else(|| self.as_int().map(|b| ("int", b)));
            if let Some((name, base)) = folded {
                out.write_str(name)?;
                if base.as_atom().is_some_and(|atom| &**atom == "a") {
                    return Ok(());
                }
                out.write_char('{')?;
                base.write(out, 0, style)?;
                return out.write_char('}');
            }
        }
        let (own, sign, a, b) = match self.connective() {
            Parameter(name) if style.apart.contains(name) => return write!(out, "{{{name}}}"),
            Atom(name) | Parameter(name) => return out.write_str(name),
            One => return out.write_char('1'),
            Bang(a) => {
                out.write_char('!')?;
                return a.write(out, 4, style);
            }
            Lolli(a, b) => (0, " -o ", a, b),
            Plus(a, b) => (1, " + ", a, b),
            With(a, b) => (2, " & ", a, b),
            Tensor(a, b) => (3, " * ", a, b),
        };
        if own < level {
            out.write_char('(')?;
        }
        // ⊸ associates to the right, the others to the left.
        a.write(out, own + u8::from(own == 0), style)?;
        out.write_str(sign)?;
        b.write(out, own + u8::from(own != 0), style)?;
        if own < level { out.write_char(')') } else { Ok(()) }
    }
}

impl fmt::Display for Formula {
    /// Expanded, in ASCII, with the fewest parentheses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0, Style { short: false, apart: &[] })
    }
}

/// How a formula is printed.
#[derive(Clone, Copy)]
struct Style<'a> {
    /// Whether `int` and `bint` are folded.
    short: bool,
    /// The parameters that are printed in braces, so that no atom is taken for them.
    apart: &'a [Rc<str>],
}

/// Two formulas that differ, as texts that differ too.
pub(crate) struct Apart {
    /// Expanded, as in the fields of a refusal.
    pub(crate) long: [String; 2],
    /// Folded, as in messages.
    pub(crate) short: [String; 2],
}

impl Apart {
    /// Where one name is a parameter and an atom, the parameter is printed in braces: `{a}`.
    pub(crate) fn new(one: &Formula, other: &Formula) -> Self {
        let (mut atoms, mut apart) = (Vec::new(), Vec::new());
        for formula in [one, other] {
            formula.atoms(&mut atoms);
            formula.parameters(&mut apart);
        }
        apart.retain(|name| atoms.contains(name));
        let texts = |short| [one, other].map(|formula| formula.text(Style { short, apart: &apart }));
        let (long, short) = (texts(false), texts(true));
        // A parameter may be called `int`.
        let short = if short[0] == short[1] { long.clone() } else { short };
        Self { long, short }
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// Formulas for the parameters of a declaration.
#[derive(Clone, Copy)]
pub struct Instance<'a> {
    parameters: &'a [Rc<str>],
    arguments: &'a [Formula],
}

impl<'a> Instance<'a> {
    /// One argument for each parameter, in order.
    pub fn new(parameters: &'a [Rc<str>], arguments: &'a [Formula]) -> Self {
        Self { parameters, arguments }
    }

    fn get(&self, name: &str) -> Option<Formula> {
        let place = self.parameters.iter().position(|p| &**p == name)?;
        self.arguments.get(place).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(formula: &Formula, long: &str, short: &str) {
        assert_eq!((formula.to_string().as_str(), formula.short().as_str()), (long, short));
    }

    #[test]
    fn printing_folds_outermost_first() {
        let (a, b) = (Formula::atom("a"), Formula::atom("b"));
        check(&Formula::int(a.clone()), "!(a -o a) -o a -o a", "int");
        check(&Formula::bint(b.clone()), "!(b -o b) -o !(b -o b) -o b -o b", "bint{b}");
        check(&Formula::int(a.clone()).bang(), "!(!(a -o a) -o a -o a)", "!int");
        check(&a.clone().lolli(b.clone()).lolli(a.clone()), "(a -o b) -o a", "(a -o b) -o a");
        check(&a.clone().tensor(b.clone().tensor(a.clone())), "a * (b * a)", "a * (b * a)");
        check(&b.clone().plus(a.clone()).with(a.clone()), "(b + a) & a", "(b + a) & a");
        let int = Formula::int(a.clone());
        check(&Formula::int(int.clone()), &format!("!(({int}) -o {int}) -o ({int}) -o {int}"), "int{int}");
        let nearly = Formula::end(a.clone()).bang().lolli(a.clone().lolli(Formula::int(a.clone()).lolli(a)));
        assert_eq!(nearly.short(), "!(a -o a) -o a -o int -o a");
    }
}
