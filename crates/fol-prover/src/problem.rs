//! The question: whether a conclusion follows from premises, or whether formulas hold together.
//!
//! Enter at [`Problem::read`]. Free variables are parameters: one unknown element each, the same in all formulas. A
//! definition and an equivalence before the sequent are premises.

use fol::ast::{Connective, Definition, Formula, Relation, Statement, Term, Text};
use fol::check::{Options, check};
use fol::error::{Kind, Refusal, Stage};
use fol::read::{Mode, Parsed, Source, parse};
use fol::symbol::SymbolId;

/// How many nodes may enclose a node, as in the reader of formulas.
pub const MAX_DEPTH: usize = 1024;
/// How many nodes of formulas and terms a problem may have.
pub const MAX_NODES: usize = 1_000_000;

/// Premises, and a conclusion or none. Without one the question is whether the premises have a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    premises: Vec<Formula>,
    conclusion: Option<Formula>,
}

impl Problem {
    /// The problem of formulas.
    ///
    /// # Errors
    /// `TooDeep` and `TooLong`, so that nothing that works on a problem overflows the stack or the memory.
    pub fn new(premises: Vec<Formula>, conclusion: Option<Formula>) -> Result<Self, Refusal> {
        let mut nodes = 0;
        for formula in premises.iter().chain(&conclusion) {
            measure(formula, &mut nodes)?;
        }
        Ok(Self { premises, conclusion })
    }

    /// Reads `φ, ψ ⊢ χ`, with `⊢` or `⊨`; statements before it are premises.
    ///
    /// # Errors
    /// What the reader refuses; a text without sequent, with two, or with the conclusion `<unknown>`.
    pub fn read(text: &str) -> Result<Self, Refusal> {
        let parsed = checked(text)?;
        Self::of_text(&parsed.text).map_err(|refusal| place(&parsed, refusal))
    }

    /// The problem of a text that was read. Positions of refusals are canonical tokens.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn of_text(text: &Text) -> Result<Self, Refusal> {
        let Some((Statement::Sequent(_, premises, conclusion), before)) = text.statements.split_last() else {
            return Err(no_question());
        };
        let mut all = statements(before)?;
        all.extend(premises.iter().cloned());
        let Some(conclusion) = conclusion.clone() else {
            return Err(Refusal::new(Kind::UnexpectedSymbol, "the conclusion <unknown> asks nothing")
                .found(SymbolId::UNKNOWN.label())
                .help("write the formula that may follow"));
        };
        Self::new(all, Some(conclusion))
    }

    /// Reads texts without sequent, whose formulas may hold together. They are one text of several statements, so that a name means the
    /// same in all of them.
    ///
    /// # Errors
    /// What the reader refuses, and a sequent.
    pub fn read_satisfiable<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, Refusal> {
        let pieces: Vec<&str> = texts.into_iter().map(|text| text.trim_end().trim_end_matches('.')).collect();
        let parsed = checked(&pieces.join(JOINED))?;
        let premises = statements(&parsed.text.statements).map_err(|refusal| place(&parsed, refusal))?;
        Self::new(premises, None)
    }

    /// Checks that each argument place of a text takes variables of one sort. Sorts are guards, so a text that does not pass has a
    /// meaning all the same, but seldom the one that was meant.
    ///
    /// # Errors
    /// What the reader refuses, and `SortMismatch`.
    pub fn check_sorts(text: &str) -> Result<(), Refusal> {
        let parsed = parse(text, Source::Text, Mode::Lenient)?;
        check(&parsed, &Options { overloaded: true, sorts: true, ..Options::default() }).map(drop)
    }

    /// The same of texts that are read together, as by [`Problem::read_satisfiable`].
    ///
    /// # Errors
    /// As of [`Problem::check_sorts`], with the number of the text and the place in it.
    pub fn check_sorts_together<'a>(
        texts: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), (usize, Refusal)> {
        let pieces: Vec<&str> = texts.into_iter().map(|text| text.trim_end().trim_end_matches('.')).collect();
        let Err(mut refusal) = Self::check_sorts(&pieces.join(JOINED)) else { return Ok(()) };
        let starts = pieces.iter().scan(0, |next, piece| {
            let start = *next;
            *next += piece.len() + JOINED.len();
            Some(start)
        });
        let starts: Vec<usize> = starts.collect();
        let from = refusal.span.map_or(0, |(from, _)| from);
        let at = starts.iter().rposition(|start| *start <= from).unwrap_or(0);
        let start = starts.get(at).copied().unwrap_or(0);
        refusal.span = refusal.span.map(|(from, to)| (from - start, to - start));
        // Its token is counted from the beginning of them all.
        refusal.token = refusal.token.filter(|_| at == 0);
        Err((at, refusal))
    }

    /// The premises.
    pub fn premises(&self) -> &[Formula] {
        &self.premises
    }

    /// The conclusion, if one is asked for.
    pub fn conclusion(&self) -> Option<&Formula> {
        self.conclusion.as_ref()
    }

    /// The problem as a text of one sequent. Without a conclusion it asks for `⊥`, which follows from what has no model.
    pub fn to_text(&self) -> Text {
        let conclusion = self.conclusion.clone().unwrap_or(Formula::Truth(false));
        let sequent =
            Statement::Sequent(fol::ast::Turnstile::Entails, self.premises.clone(), Some(conclusion));
        Text { statements: vec![sequent], terminated: false }
    }
}

/// What stands between texts that are read together.
const JOINED: &str = ". ";

/// Reads a text and checks its definitions. An index with two arities is two symbols.
fn checked(text: &str) -> Result<Parsed, Refusal> {
    let parsed = parse(text, Source::Text, Mode::Lenient)?;
    check(&parsed, &Options { overloaded: true, ..Options::default() })?;
    Ok(parsed)
}

/// A refusal that names no place is about the end of the text.
fn place(parsed: &Parsed, refusal: Refusal) -> Refusal {
    if refusal.stage != Stage::Parse {
        return refusal;
    }
    let found = refusal.found.clone();
    let symbols = &parsed.given.symbols;
    let at = symbols.iter().position(|symbol| Some(symbol.label()) == found.as_deref());
    let mut located = refusal.at(at.unwrap_or(symbols.len()));
    located.span = at.and_then(|at| parsed.given.spans.get(at).copied());
    located
}

fn no_question() -> Refusal {
    Refusal::new(Kind::UnexpectedEnd, "the text asks nothing: its last statement is no sequent")
        .found("end")
        .expected(vec![SymbolId::ENTAILS.label().to_owned(), SymbolId::MODELS.label().to_owned()])
        .help("write `φ, ψ ⊢ χ`, or `⊢ χ` to ask whether χ is valid")
}

/// What statements say, each as one formula.
fn statements(statements: &[Statement]) -> Result<Vec<Formula>, Refusal> {
    let equal = |s: Term, t: &Term| Formula::Relation(Relation::Equals, s, t.clone());
    let variables =
        |parameters: &[fol::ast::Variable]| parameters.iter().map(|x| Term::Variable(*x)).collect::<Vec<_>>();
    let closed = |parameters: &[fol::ast::Variable], body: Formula| {
        parameters
            .iter()
            .rev()
            .fold(body, |body, x| Formula::Quantified(fol::ast::Quantifier::Forall, *x, None, Box::new(body)))
    };
    let one = |statement: &Statement| {
        Ok(match statement {
            Statement::Formula(formula) => formula.clone(),
            Statement::Equivalence(left, right) => iff(left.clone(), right.clone()),
            Statement::Definition(Definition::Predicate(p, parameters, body)) => {
                closed(parameters, iff(Formula::Predicate(*p, variables(parameters)), body.clone()))
            }
            Statement::Definition(Definition::Function(f, parameters, body)) => {
                closed(parameters, equal(Term::Function(*f, variables(parameters)), body))
            }
            Statement::Definition(Definition::Constant(c, body)) => equal(Term::Constant(*c), body),
            Statement::Sequent(turnstile, ..) => {
                return Err(Refusal::new(
                    Kind::UnexpectedSymbol,
                    "one sequent is asked at the end, and no other",
                )
                .found(turnstile.symbol().label())
                .help("give each question as an input of its own"));
            }
        })
    };
    statements.iter().map(one).collect()
}

fn iff(left: Formula, right: Formula) -> Formula {
    Formula::Binary(Connective::Iff, Box::new(left), Box::new(right))
}

/// Counts nodes and looks at depths, without recursion: this is what guards everything that recurses.
fn measure(formula: &Formula, nodes: &mut usize) -> Result<(), Refusal> {
    enum Node<'a> {
        Formula(&'a Formula),
        Term(&'a Term),
    }
    let mut open = vec![(Node::Formula(formula), 0usize)];
    while let Some((node, depth)) = open.pop() {
        *nodes += 1;
        if depth > MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} nodes enclose a node");
            return Err(Refusal::new(Kind::TooDeep, message).help("name an inner part by a definition"));
        }
        if *nodes > MAX_NODES {
            let message = format!("the problem has more than {MAX_NODES} nodes");
            return Err(Refusal::new(Kind::TooLong, message));
        }
        match node {
            Node::Formula(Formula::Truth(_)) => {}
            Node::Formula(Formula::Predicate(_, terms)) => {
                open.extend(terms.iter().map(|term| (Node::Term(term), depth)));
            }
            Node::Term(Term::Function(_, terms)) => {
                open.extend(terms.iter().map(|term| (Node::Term(term), depth + 1)));
            }
            Node::Formula(Formula::Relation(_, s, t)) => {
                open.extend([s, t].map(|term| (Node::Term(term), depth)));
            }
            Node::Formula(Formula::Not(body) | Formula::Quantified(_, _, _, body)) => {
                open.push((Node::Formula(body), depth + 1));
            }
            Node::Formula(Formula::Binary(_, left, right)) => {
                open.extend([left, right].map(|formula| (Node::Formula(formula), depth + 1)));
            }
            Node::Term(Term::Variable(_) | Term::Constant(_)) => {}
        }
    }
    Ok(())
}
