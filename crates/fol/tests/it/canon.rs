//! Canonical forms against trees and renamings.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::Trees;
use fol::ast::{Constant, Definition, Formula, Function, Predicate, Sort, Statement, Term, Text, Variable};
use fol::canon::{Canonicalizer, alpha, sig, skeleton};
use fol::read::{Mode, Source, parse};
use fol::symbol::SymbolId;
use fol::{Key, Style, bucket, decode, encode, free_variables, print, split};

/// What a name is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Binder(usize),
    Free,
    Constant,
    Sort,
    Predicate(usize),
    Function(usize),
}

/// Copies a tree with other names, in the order of its tokens.
struct Renaming<'a> {
    rename: &'a mut dyn FnMut(Use, u64) -> u64,
    scope: Vec<(Variable, usize)>,
    binders: usize,
}

impl Renaming<'_> {
    fn bind(&mut self, variable: Variable) -> Variable {
        self.scope.push((variable, self.binders));
        self.binders += 1;
        Variable((self.rename)(Use::Binder(self.binders - 1), variable.0))
    }

    fn term(&mut self, term: &Term) -> Term {
        match term {
            Term::Variable(v) => {
                let binder = self.scope.iter().rev().find(|(bound, _)| bound == v).map(|(_, binder)| *binder);
                Term::Variable(Variable((self.rename)(binder.map_or(Use::Free, Use::Binder), v.0)))
            }
            Term::Constant(c) => Term::Constant(Constant((self.rename)(Use::Constant, c.0))),
            Term::Function(f, arguments) => {
                let function = Function((self.rename)(Use::Function(arguments.len()), f.0));
                Term::Function(function, arguments.iter().map(|t| self.term(t)).collect())
            }
        }
    }

    fn formula(&mut self, formula: &Formula) -> Formula {
        match formula {
            Formula::Truth(truth) => Formula::Truth(*truth),
            Formula::Predicate(p, arguments) => {
                let predicate = Predicate((self.rename)(Use::Predicate(arguments.len()), p.0));
                Formula::Predicate(predicate, arguments.iter().map(|t| self.term(t)).collect())
            }
            Formula::Relation(relation, left, right) => {
                Formula::Relation(*relation, self.term(left), self.term(right))
            }
            Formula::Not(operand) => Formula::Not(Box::new(self.formula(operand))),
            Formula::Binary(connective, left, right) => {
                let left = self.formula(left);
                Formula::Binary(*connective, Box::new(left), Box::new(self.formula(right)))
            }
            Formula::Quantified(quantifier, variable, sort, body) => {
                let variable = self.bind(*variable);
                let sort = sort.map(|sort| Sort((self.rename)(Use::Sort, sort.0)));
                let body = self.formula(body);
                self.scope.pop();
                Formula::Quantified(*quantifier, variable, sort, Box::new(body))
            }
        }
    }

    fn statement(&mut self, statement: &Statement) -> Statement {
        let statement = match statement {
            Statement::Formula(formula) => Statement::Formula(self.formula(formula)),
            Statement::Sequent(turnstile, premises, conclusion) => {
                let premises = premises.iter().map(|premise| self.formula(premise)).collect();
                Statement::Sequent(
                    *turnstile,
                    premises,
                    conclusion.as_ref().map(|formula| self.formula(formula)),
                )
            }
            Statement::Equivalence(left, right) => {
                let left = self.formula(left);
                Statement::Equivalence(left, self.formula(right))
            }
            Statement::Definition(Definition::Predicate(p, parameters, body)) => {
                let predicate = Predicate((self.rename)(Use::Predicate(parameters.len()), p.0));
                let parameters = parameters.iter().map(|v| self.bind(*v)).collect();
                Statement::Definition(Definition::Predicate(predicate, parameters, self.formula(body)))
            }
            Statement::Definition(Definition::Function(f, parameters, body)) => {
                let function = Function((self.rename)(Use::Function(parameters.len()), f.0));
                let parameters = parameters.iter().map(|v| self.bind(*v)).collect();
                Statement::Definition(Definition::Function(function, parameters, self.term(body)))
            }
            Statement::Definition(Definition::Constant(c, body)) => {
                let constant = Constant((self.rename)(Use::Constant, c.0));
                Statement::Definition(Definition::Constant(constant, self.term(body)))
            }
        };
        self.scope.clear();
        statement
    }
}

fn renamed(text: &Text, rename: &mut dyn FnMut(Use, u64) -> u64) -> Text {
    let mut renaming = Renaming { rename, scope: Vec::new(), binders: 0 };
    let statements = text.statements.iter().map(|statement| renaming.statement(statement)).collect();
    Text { statements, terminated: text.terminated }
}

/// K1 by the definition: binder k takes the k-th smallest number outside the free variables.
fn plain_alpha(text: &Text) -> Text {
    let free: BTreeSet<u64> = free_variables(text).into_iter().map(|v| v.0).collect();
    renamed(text, &mut |use_, index| match use_ {
        Use::Binder(k) => (0..).filter(|n| !free.contains(n)).nth(k).unwrap(),
        _ => index,
    })
}

/// K2 by the definition: everything by first occurrence, binders after the free variables.
fn plain_sig(text: &Text) -> Text {
    let mut series: BTreeMap<Use, Vec<u64>> = BTreeMap::new();
    let free = free_variables(text).len() as u64;
    renamed(text, &mut |use_, index| match use_ {
        Use::Binder(k) => free + k as u64,
        _ => {
            let names = series.entry(use_).or_default();
            let at = names.iter().position(|&name| name == index).unwrap_or_else(|| {
                names.push(index);
                names.len() - 1
            });
            at as u64
        }
    })
}

/// K3 by the definition, from the words of K2: indices and arguments go, arities come.
fn plain_skeleton(text: &Text) -> String {
    fn formula(f: &Formula) -> String {
        match f {
            Formula::Truth(truth) => if *truth { "TRUE" } else { "FALSE" }.to_owned(),
            Formula::Predicate(_, arguments) => format!("PRED {}", arguments.len()),
            Formula::Relation(relation, ..) => relation.symbol().to_string(),
            Formula::Not(operand) => format!("NOT {}", formula(operand)),
            Formula::Binary(c, l, r) => format!("LPAREN {} {} {} RPAREN", formula(l), c.symbol(), formula(r)),
            Formula::Quantified(q, _, _, body) => format!("{} {}", q.symbol(), formula(body)),
        }
    }
    let statement = |statement: &Statement| match statement {
        Statement::Formula(f) => formula(f),
        Statement::Sequent(turnstile, premises, conclusion) => {
            let premises = premises.iter().map(formula).collect::<Vec<_>>().join(" COMMA ");
            let conclusion = conclusion.as_ref().map_or("<unknown>".to_owned(), formula);
            format!("{premises} {} {conclusion}", turnstile.symbol()).trim_start().to_owned()
        }
        Statement::Equivalence(l, r) => format!("{} EQUIVALENT {}", formula(l), formula(r)),
        Statement::Definition(Definition::Predicate(_, p, body)) => {
            format!("PRED {} DEFINE {}", p.len(), formula(body))
        }
        Statement::Definition(Definition::Function(_, p, _)) => format!("FUNC {} DEFINE", p.len()),
        Statement::Definition(Definition::Constant(..)) => "CONST DEFINE".to_owned(),
    };
    let statements: Vec<_> = text.statements.iter().map(statement).collect();
    statements.join(" DOT ") + if text.terminated { " DOT" } else { "" }
}

#[test]
fn forms_are_those_of_the_definitions() {
    let mut canonicalizer = Canonicalizer::default();
    for item in 0..4000 {
        let text = Trees::new("canon", item).text();
        let tokens = encode(&text);
        assert_eq!(decode(&alpha(&text)), Ok(plain_alpha(&text)));
        assert_eq!(decode(&sig(&text)), Ok(plain_sig(&text)));
        assert_eq!(fol::words(&skeleton(&text)), plain_skeleton(&text));
        let keys = [&tokens, &alpha(&text), &sig(&text), &skeleton(&text)].map(|tokens| Key::of(tokens));
        assert_eq!(canonicalizer.keys(&tokens), Ok(keys));
    }
}

#[test]
fn any_number_of_names_is_numbered_by_first_occurrence() {
    for names in [15, 16, 17, 40, 700] {
        let atom = |i: u64| format!("(P{} → (f{}(c{}) = x{} ∧ P{}(x{})))", 3 * i, 7 * i, 5 * i, i + 2, i, i);
        let atoms: Vec<String> = (0..names).chain((0..names).rev()).map(atom).collect();
        let text = parse(&atoms.join(". "), Source::Text, Mode::Strict).unwrap().text;
        assert_eq!(decode(&sig(&text)), Ok(plain_sig(&text)));
        let keys = Canonicalizer::default().keys(&encode(&text));
        assert_eq!(keys.map(|keys| keys[2]), Ok(Key::of(&sig(&text))));
    }
}

#[test]
fn forms_of_forms_are_themselves() {
    for item in 0..1000 {
        let text = Trees::new("idempotent", item).text();
        let again = |tokens: Vec<SymbolId>| decode(&tokens).unwrap();
        assert_eq!(alpha(&again(alpha(&text))), alpha(&text));
        assert_eq!(sig(&again(sig(&text))), sig(&text));
        assert_eq!(sig(&again(alpha(&text))), sig(&text));
    }
}

/// A number that differs for each name, and from all others.
fn fresh(
    trees: &mut Trees,
    names: &mut BTreeMap<(Use, u64), u64>,
    used: &mut BTreeSet<u64>,
    name: (Use, u64),
) -> u64 {
    *names.entry(name).or_insert_with(|| {
        loop {
            let index = trees.below(100_000);
            if used.insert(index) {
                return index;
            }
        }
    })
}

#[test]
fn renamings_leave_the_keys() {
    for item in 0..2000 {
        let mut trees = Trees::new("renamings", item);
        let text = trees.text();
        let (mut names, mut used) =
            (BTreeMap::new(), free_variables(&text).into_iter().map(|v| v.0).collect());
        let bound = renamed(&text, &mut |use_, index| match use_ {
            Use::Binder(k) => fresh(&mut trees, &mut names, &mut used, (Use::Binder(k), 0)),
            _ => index,
        });
        assert_eq!(alpha(&bound), alpha(&text));
        let all = renamed(&text, &mut |use_, index| match use_ {
            Use::Binder(k) => fresh(&mut trees, &mut names, &mut used, (Use::Binder(k), 0)),
            _ => fresh(&mut trees, &mut names, &mut used, (use_, index)),
        });
        assert_eq!(sig(&all), sig(&text));
        assert_eq!(skeleton(&all), skeleton(&text));
    }
}

#[test]
fn edits_change_the_keys() {
    let mut changed = 0;
    for item in 0..2000 {
        let mut trees = Trees::new("edits", item);
        let text = trees.text();
        let mut tokens = encode(&text);
        let at = trees.below(tokens.len() as u64) as usize;
        let same_kind: Vec<_> =
            SymbolId::all().skip(625).filter(|symbol| symbol.kind() == tokens[at].kind()).collect();
        if same_kind.is_empty() {
            continue;
        }
        tokens[at] = trees.pick(&same_kind);
        let Ok(edited) = decode(&tokens) else { continue };
        changed += u32::from(edited != text);
        assert_eq!(edited == text, sig(&edited) == sig(&text), "{}", print(&text, Style::Unicode));
        assert_eq!(edited == text, alpha(&edited) == alpha(&text));
    }
    assert!(changed > 50);
}

#[test]
fn tokens_that_are_not_canonical_are_refused() {
    let mut canonicalizer = Canonicalizer::default();
    let mut refused = 0;
    for item in 0..5000 {
        let mut trees = Trees::new("not canonical", item);
        let mut tokens = encode(&trees.text());
        let at = trees.below(tokens.len() as u64) as usize;
        tokens[at] = SymbolId::new(trees.below(663) as u16).unwrap();
        refused += u32::from(decode(&tokens).is_err());
        assert_eq!(canonicalizer.keys(&tokens).err(), decode(&tokens).err());
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn buckets_split_by_the_key() {
    let formula = parse("∀x7 P1(x7)", Source::Text, Mode::Strict).unwrap();
    let key = Key::of(&sig(&formula.text));
    assert_eq!((key.to_string().as_str(), bucket(&key)), ("da90f7adc81c4a505fe07578932e4f35", 194));
    let splits = [0, 799, 800, 899, 900, 999].map(|bucket| split(bucket, fol::DEFAULT_WEIGHTS));
    assert_eq!(splits, ["train", "train", "val", "val", "test", "test"]);
}
