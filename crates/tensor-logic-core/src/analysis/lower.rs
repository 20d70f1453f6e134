//! From the faithful tree to the core form: scopes written out, names resolved, types dissolved.
//!
//! Enter at [`lower`]. What it leaves open are the ranges of undeclared indices and the domains
//! of places: [`crate::domains`] fills them in, from what the [`Draft`] notes beside the program.
//!
//! The central rule is N3: an index that is not on the left is bound in the smallest scope that
//! holds all its occurrences (`scope`).

use std::collections::{BTreeSet, HashMap};

use crate::ast::{self, IndexExpr, IndexKind, IndexOperator, Span, StatementKind};
use crate::error::{Code, Refusal, Warning};
use crate::names::Names;
use crate::program::{Equation, Index, IndexFn, IndexId, Kind, Program, Range, TensorId};
use crate::value::{Const, Domain};

mod equation;
mod expression;
mod files;
mod given;
mod literal;
mod query;
mod scope;
mod tensors;
mod weighted;

pub use files::{FileSource, Loaded, NoFiles, Wanted};

/// The core form with what is still open, and what later stages must know of the text.
#[derive(Debug, Default)]
pub struct Draft {
    /// The program; ranges of undeclared indices and most domains are open.
    pub program: Program,
    /// What is known of each index, beside [`Index`].
    pub indices: Vec<IndexNote>,
    /// Statements that name places by bare indices without making an equation: declarations.
    pub declarations: Vec<Declaration>,
    /// Indices that stand alone in places, in order of lowering.
    pub alone: Vec<Alone>,
    /// Equations whose indices must be bound by literals (rules and queries of several literals).
    pub rules: Vec<usize>,
    /// Constants that the text writes or reads in places, in order of the text.
    pub mentions: Vec<Mention>,
    /// Indices used as numbers, and comparisons of order, which symbols cannot serve.
    pub numeric_uses: Vec<(IndexId, Span)>,
    /// `concat` equations: the index of the left side, and the argument's merged indices.
    pub concats: Vec<Concat>,
    /// Warnings that only lowering can see.
    pub warnings: Vec<Warning>,
    /// Refusals of the stage "domains" that lowering finds.
    pub errors: Vec<Refusal>,
    /// Indices and sets whose declarations are refused.
    pub unknown: Vec<String>,
}

/// What is known of an index beside its name.
#[derive(Debug, Clone, Default)]
pub struct IndexNote {
    /// Its declared domain.
    pub declared: Option<Domain>,
    /// A slice `lo:hi`, half open.
    pub slice: Option<(Option<i64>, Option<i64>)>,
    /// The index whose size this one counts (`Dk`).
    pub copy_of: Option<IndexId>,
    /// Whether it is bound by an explicit scope, where an unbound index is located at the index.
    pub explicit: bool,
    /// The literal to blame in a rule, if it does not stand on the left.
    pub literal: Option<Span>,
    /// Whether an assignment computes it that has not been lowered yet.
    assigned: bool,
}

/// A place of a tensor that a declaration names by a bare index.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// The tensor.
    pub tensor: TensorId,
    /// The place.
    pub place: usize,
    /// The index's name.
    pub name: String,
    /// Its declared domain.
    pub declared: Option<Domain>,
    /// Where the index stands.
    pub span: Span,
}

/// An index that stands alone in a place.
#[derive(Debug, Clone, Copy)]
pub struct Alone {
    /// The index.
    pub index: IndexId,
    /// The tensor.
    pub tensor: TensorId,
    /// The place.
    pub place: usize,
    /// Whether a query does so: its indices do not cut rules and fix no sizes.
    pub query: bool,
    /// Where the index stands.
    pub span: Span,
}

/// A constant in a place.
#[derive(Debug, Clone, Copy)]
pub struct Mention {
    /// The tensor.
    pub tensor: TensorId,
    /// The place.
    pub place: usize,
    /// The constant.
    pub value: Const,
    /// Whether it is written (facts, parts, left sides) or read.
    pub written: bool,
    /// Where it stands.
    pub span: Span,
}

/// A concatenation whose offsets need domains.
#[derive(Debug, Clone)]
pub struct Concat {
    /// The equations that stand for it, one for each argument, in order.
    pub parts: Vec<(usize, Vec<IndexId>)>,
    /// The new index.
    pub index: IndexId,
    /// Its place on the left.
    pub place: usize,
}

/// What lowering is told beside the tree.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `--seed`
    pub seed: u64,
    /// Evaluate what a query needs in a semiring.
    pub semiring: Option<InSemiring>,
}

/// A query with `@semiring`.
#[derive(Debug, Clone)]
pub struct InSemiring {
    /// The type that relations have.
    pub kind: Kind,
    /// The names of those that the query needs: others stay what they are.
    pub below: BTreeSet<String>,
    /// The query.
    pub query: Span,
}

/// Lowers a program. Refusals that are found on the way (`not-a-constant`, `symbol-as-number`,
/// files) stand in [`Draft::errors`].
pub fn lower(
    text: &str,
    tree: &ast::Program,
    names: &Names,
    files: &mut dyn FileSource,
    functions: &crate::function::UserFunctions,
    options: &Options,
) -> Draft {
    let mut context = Context {
        text,
        names,
        functions,
        options,
        draft: Draft::default(),
        versions: HashMap::new(),
        current: HashMap::new(),
        axes: Vec::new(),
        left: Vec::new(),
        heading: None,
        in_query: false,
    };
    context.draft.program.settings.seed = options.seed;
    context.make_tensors(tree);
    context.settings(tree);
    context.redeclared();
    for statement in &tree.statements {
        context.statement(statement, files);
    }
    context.exclusive(tree);
    context.given_weights();
    context.clamp_sums();
    context.settle_roles();
    context.learned(tree);
    context.draft
}

/// What every part of lowering shares.
struct Context<'a> {
    text: &'a str,
    names: &'a Names,
    functions: &'a crate::function::UserFunctions,
    options: &'a Options,
    draft: Draft,
    /// All versions of a name, in order.
    versions: HashMap<&'a str, Vec<TensorId>>,
    /// The version that readers see now, as a position in `versions`.
    current: HashMap<&'a str, usize>,
    /// The axis of softmax and lnorm in the equation at hand: the dotted indices of its left
    /// side, or the last one.
    axes: Vec<IndexId>,
    /// Indices of the left side at hand, while its outermost scopes are lowered.
    left: Vec<IndexId>,
    /// The tensor of the equation at hand and its left side.
    heading: Option<(TensorId, Span)>,
    /// Whether a query is being lowered.
    in_query: bool,
}

impl<'a> Context<'a> {
    fn statement(&mut self, statement: &'a ast::Statement, files: &mut dyn FileSource) {
        match &statement.kind {
            StatementKind::Indices { domain, names } => self.says_values(names, domain),
            StatementKind::Set { domain, name } => self.says_values(std::slice::from_ref(name), domain),
            StatementKind::Directive(_) => {}
            // With a type, a tensor without places is declared; without one it is a fact.
            StatementKind::Bare { reference, kind: Some(_) } if reference.places.is_empty() => {}
            StatementKind::Bare { reference, .. } => self.bare(reference),
            StatementKind::Parameter { reference, start, .. } => self.parameter(reference, start),
            StatementKind::Weighted { weight, reference } => {
                if let Some(tensor) = self.seen(&reference.name.text) {
                    self.fact(tensor, reference, weight.value, statement.span);
                }
            }
            StatementKind::Rule { head, arrow, body } => self.rule(statement.span, head, *arrow, body),
            StatementKind::Equation { head, sign, sign_span, right } => {
                self.definition(statement.span, head, *sign, *sign_span, right, files);
            }
            StatementKind::Write { file, reference } => self.write(statement.span, file, reference),
            StatementKind::Query { goal, directives } => self.query(statement.span, goal, directives),
        }
    }

    fn refuse(&mut self, report: Refusal) {
        self.draft.errors.push(report);
    }

    /// The version of a tensor that a reader at this point of the text sees.
    fn seen(&self, name: &str) -> Option<TensorId> {
        let versions = self.versions.get(name)?;
        versions.get(self.current.get(name).copied().unwrap_or(0)).copied()
    }

    fn fresh_index(&mut self, name: &str, span: Span, note: IndexNote) -> IndexId {
        let id = IndexId(u32::try_from(self.draft.program.indices.len()).unwrap_or(u32::MAX));
        let range = note.declared.clone().map_or(Range::Tuples, Range::Domain);
        self.draft.program.indices.push(Index { name: name.to_owned(), range, span });
        self.draft.indices.push(note);
        id
    }

    /// A fresh index of this name, with its declared domain if it has one.
    fn named_index(&mut self, name: &str, span: Span) -> IndexId {
        let declared = self.declared(name);
        self.fresh_index(name, span, IndexNote { declared, ..IndexNote::default() })
    }

    fn declared(&mut self, name: &str) -> Option<Domain> {
        let declared = self.names.indices.get(name)?;
        self.known_domain(&declared.domain)
    }

    /// The domain of a declaration; what is wrong with it is said where it stands.
    fn known_domain(&mut self, domain: &ast::DomainExpr) -> Option<Domain> {
        let said = self.draft.errors.len();
        let found = self.domain(domain, 0);
        self.draft.errors.truncate(said);
        found
    }

    /// Refuses a declaration that says no domain, whether or not something reads it.
    fn says_values(&mut self, names: &[ast::Name], domain: &ast::DomainExpr) {
        if self.domain(domain, 0).is_none() {
            self.draft.unknown.extend(names.iter().map(|name| name.text.clone()));
        }
    }

    /// A name that is declared again must have the same domain.
    fn redeclared(&mut self) {
        let names = self.names;
        for (name, again) in &names.redeclared {
            let Some(first) = names.indices.get(name).or_else(|| names.sets.get(name)) else { continue };
            let (one, other) = (self.known_domain(&first.domain), self.known_domain(&again.domain));
            let (Some(one), Some(other)) = (one, other) else { continue };
            if one == other {
                continue;
            }
            let count = |domain: &Domain| format!("{} values of `{name}`", domain.len());
            let message = if one.len() == other.len() {
                format!("`{name}` is declared twice, with other values")
            } else {
                format!("`{name}` is declared twice: {} and {}", count(&one), count(&other))
            };
            let report = Refusal::new(Code::SizeConflict, again.span, message)
                .label(first.span, count(&one))
                .label(again.span, count(&other));
            self.refuse(report.help("declare it once, or use two names"));
        }
    }

    /// The domain that an expression of a declaration names. `depth` guards against sets that
    /// name each other.
    fn domain(&mut self, domain: &ast::DomainExpr, depth: usize) -> Option<Domain> {
        match &domain.kind {
            ast::DomainKind::Size(size) => {
                if let IndexKind::Name(name) = &size.kind
                    && let Some(set) = self.names.sets.get(name)
                {
                    if depth > 64 {
                        let message = format!("the values of `{name}` are said by itself");
                        self.refuse(Refusal::new(Code::NotAConstant, size.span, message));
                        return None;
                    }
                    return self.domain(&set.domain, depth + 1);
                }
                let count = self.integer(size)?;
                if count < 0 {
                    let message = format!("a domain has no {count} values");
                    self.refuse(
                        Refusal::new(Code::BadArgument, size.span, message).help("`-2..2` has both ends"),
                    );
                    return None;
                }
                Some(Domain::Interval { from: 0, to: count - 1 })
            }
            ast::DomainKind::Interval(from, to) => {
                Some(Domain::Interval { from: self.integer(from)?, to: self.integer(to)? })
            }
            ast::DomainKind::Listed(constants) => {
                let values: Option<Vec<Const>> = constants.iter().map(|c| self.constant(c)).collect();
                Some(Domain::listed(values?))
            }
        }
    }

    /// An index expression without indices, as an integer.
    fn integer(&mut self, expr: &IndexExpr) -> Option<i64> {
        let needed = |span| Refusal::new(Code::NotAConstant, span, "an integer is needed here");
        let function = self.index_fn(expr, &mut |context, name, span| {
            let help = format!("an index has no value here; `{name}` may be a number with a capital letter");
            context.refuse(needed(span).help(help));
            None
        })?;
        let value = function.evaluate(&|_| None, &|_| None).and_then(Const::int);
        if value.is_none() {
            self.refuse(needed(expr.span));
        }
        value
    }

    fn constant(&mut self, constant: &ast::Constant) -> Option<Const> {
        match constant {
            ast::Constant::Integer(value, _) => Some(Const::Int(*value)),
            ast::Constant::Name(name) => self.name_constant(&name.text, name.span),
            ast::Constant::Text(text) => Some(self.symbol(&text.value)),
        }
    }

    fn symbol(&mut self, name: &str) -> Const {
        Const::Symbol(self.draft.program.symbols.intern(name))
    }

    /// A capital name in an index place: a number of the program, or a symbol.
    fn name_constant(&mut self, name: &str, span: Span) -> Option<Const> {
        if let Some(numeric) = self.names.constants.get(name) {
            if let Some(whole) = numeric.whole {
                return Some(Const::Int(whole));
            }
            let message = format!("`{name}` is {} and cannot be the value of an index", numeric.value);
            self.refuse(Refusal::new(Code::NotAConstant, span, message).label(numeric.span, "its value"));
            return None;
        }
        if let Some(tensor) = self.names.tensors.get(name)
            && tensor.rank == 0
            && (tensor.given || tensor.computed || tensor.parameter.is_some())
            && tensor.style == crate::program::Style::Square
        {
            let message = format!("`{name}` is computed and cannot be the value of an index");
            self.refuse(
                Refusal::new(Code::NotAConstant, span, message)
                    .label(tensor.first, "it is a scalar of the program")
                    .help(format!("give it as a number, `{name} = 2`, or write the symbol `\"{name}\"`")),
            );
            return None;
        }
        Some(self.symbol(name))
    }

    /// An index function; `bind` says which index a small name is.
    fn index_fn(
        &mut self,
        expr: &IndexExpr,
        bind: &mut dyn FnMut(&mut Context<'a>, &str, Span) -> Option<IndexId>,
    ) -> Option<IndexFn> {
        Some(match &expr.kind {
            IndexKind::Integer(value) => IndexFn::Const(Const::Int(*value)),
            IndexKind::Index(name) => IndexFn::Index(bind(self, name, expr.span)?),
            IndexKind::Name(name) => IndexFn::Const(self.name_constant(name, expr.span)?),
            IndexKind::Text(text) => IndexFn::Const(self.symbol(text)),
            IndexKind::Group(inner) => return self.index_fn(inner, bind),
            IndexKind::Negate(inner) => {
                let negated = IndexFn::Negate(Box::new(self.index_fn(inner, bind)?));
                self.folded(negated, expr.span)?
            }
            IndexKind::Binary(operator, left, right) => {
                let left = Box::new(self.index_fn(left, bind)?);
                let right = Box::new(self.index_fn(right, bind)?);
                let function = match operator {
                    IndexOperator::Add => IndexFn::Add(left, right),
                    IndexOperator::Subtract => IndexFn::Subtract(left, right),
                    IndexOperator::Multiply => IndexFn::Multiply(left, right),
                    IndexOperator::Divide => IndexFn::Divide(left, right),
                    IndexOperator::Remainder => IndexFn::Remainder(left, right),
                };
                self.folded(function, expr.span)?
            }
        })
    }

    /// An operation on constants is the constant that it is. What has no value, whatever its indices are, is refused.
    fn folded(&mut self, function: IndexFn, span: Span) -> Option<IndexFn> {
        let (left, right) = match &function {
            IndexFn::Negate(inner) => (inner.as_ref(), inner.as_ref()),
            IndexFn::Add(left, right)
            | IndexFn::Subtract(left, right)
            | IndexFn::Multiply(left, right)
            | IndexFn::Divide(left, right)
            | IndexFn::Remainder(left, right) => (left.as_ref(), right.as_ref()),
            IndexFn::Const(_) | IndexFn::Index(_) | IndexFn::Ordinal(_) => return Some(function),
        };
        let written = self.text.get(span.start..span.end).unwrap_or("").trim();
        let (code, message) = match (left, right, &function) {
            (IndexFn::Const(Const::Symbol(symbol)), ..) | (_, IndexFn::Const(Const::Symbol(symbol)), _) => {
                let name = self.draft.program.symbols.name(*symbol);
                let message = format!("`{written}` has no value: the symbol `{name}` has no number");
                (Code::SymbolAsNumber, message)
            }
            (_, IndexFn::Const(Const::Int(0)), IndexFn::Divide(..) | IndexFn::Remainder(..)) => {
                (Code::NotAConstant, format!("`{written}` has no value: the divisor is 0"))
            }
            (IndexFn::Const(_), IndexFn::Const(_), _) => match function.evaluate(&|_| None, &|_| None) {
                Some(value) => return Some(IndexFn::Const(value)),
                None => (Code::NotAConstant, format!("`{written}` has no value: it leaves 64 bits")),
            },
            _ => return Some(function),
        };
        self.refuse(Refusal::new(code, span, message));
        None
    }

    fn push_equation(&mut self, equation: Equation) -> usize {
        self.draft.program.equations.push(equation);
        self.draft.program.equations.len() - 1
    }
}
