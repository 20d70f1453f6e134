//! A text as TPTP.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::ast::{
    Connective, Definition, Formula, Quantifier, Relation, Sort, Statement, Term, Text, Variable,
};
use crate::error::{Kind, Refusal};
use crate::symbol::SymbolId;
use crate::walk::{Event, walk_placed};

/// Writing ∃! doubles its body, so nested ones grow exponentially; a longer output is refused.
const LONGEST: usize = 64 << 20;

/// Writes a text as annotated FOF formulas joined by newlines.
///
/// # Errors
/// `TptpUnsupported` for a conclusion `<unknown>`, at its canonical token, and for a text whose ∃! would take more than 64 MiB when
/// written out.
pub fn print(text: &Text) -> Result<String, Refusal> {
    let (unknown, overloaded) = survey(text);
    if let Some(at) = unknown {
        let message = "TPTP has no conjecture without a formula, so <unknown> cannot be written";
        return Err(Refusal::new(Kind::TptpUnsupported, message).at(at).found(SymbolId::UNKNOWN.label()));
    }
    let mut writer = Writer { out: String::new(), overloaded, scope: vec![], fresh: 0 };
    for (i, statement) in (1..).zip(&text.statements) {
        writer.statement(i, statement)?;
    }
    Ok(writer.out)
}

/// The canonical token of the first conclusion `<unknown>`, and the predicates and functions that are used with
/// more than one arity. TPTP wants one arity for each name, so such an index is written with its arity as a suffix.
fn survey(text: &Text) -> (Option<usize>, BTreeSet<(SymbolId, u64)>) {
    let (mut unknown, mut first, mut overloaded) = (None, BTreeMap::new(), BTreeSet::new());
    walk_placed(text, |at, event| match event {
        Event::Symbol(SymbolId::UNKNOWN) => unknown = unknown.or(Some(at)),
        Event::Name { category, index, arity, .. }
            if *first.entry((category, index)).or_insert(arity) != arity =>
        {
            overloaded.insert((category, index));
        }
        _ => {}
    });
    (unknown, overloaded)
}

struct Writer {
    out: String,
    overloaded: BTreeSet<(SymbolId, u64)>,
    /// The binders around the place being written, innermost last, with the number in their new name.
    scope: Vec<(Variable, usize)>,
    /// The number of the next bound variable of this formula.
    fresh: usize,
}

impl Writer {
    fn statement(&mut self, i: usize, statement: &Statement) -> Result<(), Refusal> {
        match statement {
            Statement::Formula(f) => self.annotated(format_args!("s{i}"), "axiom", |w| w.formula(f)),
            Statement::Sequent(_, premises, conclusion) => {
                for (j, premise) in (1..).zip(premises) {
                    self.annotated(format_args!("s{i}_p{j}"), "axiom", |w| w.formula(premise))?;
                }
                // Without one `print` has refused the text.
                conclusion.as_ref().map_or(Ok(()), |conclusion| {
                    self.annotated(format_args!("s{i}_c"), "conjecture", |w| w.formula(conclusion))
                })
            }
            Statement::Equivalence(left, right) => {
                self.annotated(format_args!("s{i}"), "axiom", |w| w.binary(left, "<=>", right))
            }
            Statement::Definition(definition) => {
                self.annotated(format_args!("s{i}"), "definition", |w| w.definition(definition))
            }
        }
    }

    /// One line; the numbering of bound variables starts anew.
    fn annotated(
        &mut self,
        name: std::fmt::Arguments<'_>,
        role: &str,
        body: impl FnOnce(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.fresh = 0;
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.write(format_args!("fof({name}, {role}, "));
        body(self)?;
        self.out.push_str(").");
        Ok(())
    }

    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(arguments);
    }

    fn definition(&mut self, definition: &Definition) -> Result<(), Refusal> {
        match definition {
            Definition::Predicate(p, parameters, body) => {
                self.defined(SymbolId::PRED, p.0, parameters, " <=> ", |w| w.formula(body))
            }
            Definition::Function(f, parameters, body) => {
                self.defined(SymbolId::FUNC, f.0, parameters, " = ", |w| w.body(body))
            }
            Definition::Constant(c, body) => self.defined(SymbolId::CONST, c.0, &[], " = ", |w| w.body(body)),
        }
    }

    /// Name, parameters and body under the quantifier of the parameters.
    fn defined(
        &mut self,
        category: SymbolId,
        index: u64,
        parameters: &[Variable],
        sign: &str,
        body: impl FnOnce(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let names: Vec<String> = parameters.iter().map(|&x| format!("X{}", self.bind(x))).collect();
        let names = names.join(",");
        if !parameters.is_empty() {
            self.write(format_args!("![{names}]: "));
        }
        self.out.push('(');
        self.name(category, index, parameters.len());
        if !parameters.is_empty() {
            self.write(format_args!("({names})"));
        }
        self.out.push_str(sign);
        body(self)?;
        self.out.push(')');
        self.scope.clear();
        Ok(())
    }

    fn body(&mut self, term: &Term) -> Result<(), Refusal> {
        self.term(term);
        Ok(())
    }

    fn formula(&mut self, formula: &Formula) -> Result<(), Refusal> {
        if self.out.len() > LONGEST {
            return Err(Refusal::new(
                Kind::TptpUnsupported,
                "written out, the ∃! of this text take too much space",
            )
            .help("each ∃! writes its body twice; nest fewer of them"));
        }
        match formula {
            Formula::Truth(true) => self.out.push_str("$true"),
            Formula::Truth(false) => self.out.push_str("$false"),
            Formula::Predicate(p, arguments) => {
                self.name(SymbolId::PRED, p.0, arguments.len());
                self.arguments(arguments);
            }
            Formula::Relation(relation, left, right) => self.relation(*relation, left, right),
            Formula::Not(body) => {
                self.out.push('~');
                self.formula(body)?;
            }
            Formula::Binary(connective, left, right) => {
                let sign = match connective {
                    Connective::And => "&",
                    Connective::Or => "|",
                    Connective::Implies => "=>",
                    Connective::Iff => "<=>",
                };
                self.binary(left, sign, right)?;
            }
            Formula::Quantified(Quantifier::Forall, x, sort, body) => {
                self.quantified("!", *x, |w, n| w.guarded(n, *sort, "=>", body))?;
            }
            Formula::Quantified(Quantifier::Exists, x, sort, body) => {
                self.quantified("?", *x, |w, n| w.guarded(n, *sort, "&", body))?;
            }
            Formula::Quantified(Quantifier::Exists1, x, sort, body) => self.exists_one(*x, *sort, body)?,
        }
        Ok(())
    }

    fn binary(&mut self, left: &Formula, sign: &str, right: &Formula) -> Result<(), Refusal> {
        self.out.push('(');
        self.formula(left)?;
        self.write(format_args!(" {sign} "));
        self.formula(right)?;
        self.out.push(')');
        Ok(())
    }

    /// `![X0]: …`, where `inside` receives the number of the new name.
    fn quantified(
        &mut self,
        sign: &str,
        x: Variable,
        inside: impl FnOnce(&mut Self, usize) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let n = self.bind(x);
        self.write(format_args!("{sign}[X{n}]: "));
        inside(self, n)?;
        self.scope.pop();
        Ok(())
    }

    /// The body, guarded by the sort of the variable if it has one.
    fn guarded(&mut self, n: usize, sort: Option<Sort>, sign: &str, body: &Formula) -> Result<(), Refusal> {
        let Some(Sort(k)) = sort else { return self.formula(body) };
        self.write(format_args!("(s{k}(X{n}) {sign} "));
        self.formula(body)?;
        self.out.push(')');
        Ok(())
    }

    /// `∃!x φ` as `∃x (φ ∧ ∀y (φ[y/x] → y = x))`.
    fn exists_one(&mut self, x: Variable, sort: Option<Sort>, body: &Formula) -> Result<(), Refusal> {
        let mut witness = 0;
        self.quantified("?", x, |w, n| {
            witness = n;
            w.out.push('(');
            w.guarded(n, sort, "&", body)
        })?;
        self.out.push_str(" & ");
        self.quantified("!", x, |w, other| {
            w.out.push('(');
            w.guarded(other, sort, "&", body)?;
            w.write(format_args!(" => (X{other} = X{witness})))"));
            Ok(())
        })
    }

    fn relation(&mut self, relation: Relation, left: &Term, right: &Term) {
        let (open, sign) = match relation {
            Relation::Equals => ("(", " = "),
            Relation::NotEquals => ("(", " != "),
            Relation::LessThan => ("lt(", ","),
            Relation::GreaterThan => ("gt(", ","),
            Relation::LessEqual => ("le(", ","),
            Relation::GreaterEqual => ("ge(", ","),
        };
        self.out.push_str(open);
        self.term(left);
        self.out.push_str(sign);
        self.term(right);
        self.out.push(')');
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::Variable(x) => match self.scope.iter().rev().find(|(y, _)| y == x) {
                Some(&(_, n)) => self.write(format_args!("X{n}")),
                None => self.write(format_args!("v{}", x.0)),
            },
            Term::Constant(c) => self.name(SymbolId::CONST, c.0, 0),
            Term::Function(f, arguments) => {
                self.name(SymbolId::FUNC, f.0, arguments.len());
                self.arguments(arguments);
            }
        }
    }

    fn arguments(&mut self, arguments: &[Term]) {
        for (i, argument) in arguments.iter().enumerate() {
            self.out.push(if i == 0 { '(' } else { ',' });
            self.term(argument);
        }
        if !arguments.is_empty() {
            self.out.push(')');
        }
    }

    fn name(&mut self, category: SymbolId, index: u64, arity: usize) {
        self.write(format_args!("{}{index}", category.ascii().to_ascii_lowercase()));
        if self.overloaded.contains(&(category, index)) {
            self.write(format_args!("_{arity}"));
        }
    }

    fn bind(&mut self, x: Variable) -> usize {
        let n = self.fresh;
        self.fresh += 1;
        self.scope.push((x, n));
        n
    }
}
