//! Kernel terms to text: canonical, with binders `v0`, `v1`, …, or with the names of the source.
//!
//! Terms may be millions of nodes deep, so printing keeps its own list of what is still to be written.

use std::collections::HashSet;
use std::fmt::Write;

use crate::formula::Formula;
use crate::term::{Node, NodeId, Term, Variable};

/// The canonical text: binders renamed in the order in which they are met, the fewest parentheses. A name that is that
/// of a definition in the term is left out, so that none is captured.
pub fn canonical(term: &Term) -> String {
    let globals = globals(term);
    let mut names = vec![String::new(); term.names().len()];
    let mut free =
        (0..).map(|number| format!("v{number}")).filter(|name: &String| !globals.contains(&**name));
    walk(term, |event| {
        if let Event::Meet(variable) = event
            && let Some(place) = names.get_mut(variable.index())
            && let Some(name) = free.next()
        {
            *place = name;
        }
    });
    write(term, &names)
}

/// The names of the definitions that a term uses.
fn globals(term: &Term) -> HashSet<&str> {
    term.nodes()
        .iter()
        .filter_map(
            |node| if let Node::Global { definition, .. } = node { Some(&*definition.name) } else { None },
        )
        .collect()
}

/// The text with the names of the source, primed where they would clash with a name in scope or of a definition.
pub fn kernel(term: &Term) -> String {
    let globals = globals(term);
    let mut names = vec![String::new(); term.names().len()];
    let mut scope: HashSet<String> = HashSet::new();
    walk(term, |event| match event {
        Event::Meet(_) => {}
        Event::Open(variable) => {
            let mut name = term.name(variable).to_owned();
            while scope.contains(&name) || globals.contains(&*name) {
                name.push('\'');
            }
            scope.insert(name.clone());
            if let Some(place) = names.get_mut(variable.index()) {
                *place = name;
            }
        }
        Event::Close(variable) => {
            if let Some(name) = names.get(variable.index()) {
                scope.remove(name);
            }
        }
    });
    write(term, &names)
}

/// What a walk over a term in the order of its text reports.
enum Event {
    /// A binder is written.
    Meet(Variable),
    /// The scope of a variable begins.
    Open(Variable),
    /// It ends.
    Close(Variable),
}

fn walk(term: &Term, mut report: impl FnMut(Event)) {
    enum Task {
        Visit(NodeId),
        Report(Event),
    }
    use Event::{Close, Meet, Open};
    use Task::{Report, Visit};
    let mut tasks = vec![Visit(term.root())];
    while let Some(task) = tasks.pop() {
        let id = match task {
            Report(event) => {
                report(event);
                continue;
            }
            Visit(id) => id,
        };
        let first = tasks.len();
        match term.node(id) {
            Node::Lambda { variable: x, body, .. } => {
                tasks.extend([Report(Meet(*x)), Report(Open(*x)), Visit(*body), Report(Close(*x))]);
            }
            Node::LetTensor { scrutinee, left, right, body } => {
                tasks.extend([Report(Meet(*left)), Report(Meet(*right)), Visit(*scrutinee)]);
                tasks.extend([Report(Open(*left)), Report(Open(*right)), Visit(*body)]);
                tasks.extend([Report(Close(*left)), Report(Close(*right))]);
            }
            Node::Copy { scrutinee, left, right, body } => {
                tasks.extend([Visit(*scrutinee), Report(Meet(*left)), Report(Meet(*right))]);
                tasks.extend([Report(Open(*left)), Report(Open(*right)), Visit(*body)]);
                tasks.extend([Report(Close(*left)), Report(Close(*right))]);
            }
            Node::Case { scrutinee, left, right } => {
                tasks.push(Visit(*scrutinee));
                for (x, branch) in [left, right] {
                    tasks.extend([Report(Meet(*x)), Report(Open(*x)), Visit(*branch), Report(Close(*x))]);
                }
            }
            Node::Promote { sources, body } => {
                tasks.extend(sources.iter().map(|(source, _)| Visit(*source)));
                tasks.extend(sources.iter().flat_map(|(_, x)| [Report(Meet(*x)), Report(Open(*x))]));
                tasks.push(Visit(*body));
                tasks.extend(sources.iter().map(|(_, x)| Report(Close(*x))));
            }
            node => node.children(|child| tasks.push(Visit(child))),
        }
        if let Some(new) = tasks.get_mut(first..) {
            new.reverse();
        }
    }
}

/// What may stand somewhere without parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Term,
    Product,
    Application,
    Operand,
}

enum Piece<'a> {
    Text(&'static str),
    /// The name of a definition.
    Global(&'a str),
    Numeral(u32),
    Digits(&'a [bool]),
    /// Arguments, unless all are the atom `a`.
    Braces(&'a [Formula]),
    Name(Variable),
    Formula(&'a Formula),
    Term(NodeId, Level),
    /// The first branch of a `case`.
    Branch(NodeId),
}

fn write(term: &Term, names: &[String]) -> String {
    let mut out = String::new();
    let mut pieces = vec![Piece::Term(term.root(), Level::Term)];
    while let Some(piece) = pieces.pop() {
        let first = pieces.len();
        match piece {
            Piece::Text(text) | Piece::Global(text) => out.push_str(text),
            Piece::Numeral(value) => _ = write!(out, "{value}"),
            Piece::Digits(digits) => out.extend(digits.iter().map(|one| if *one { '1' } else { '0' })),
            Piece::Braces(formulas) => braces(formulas, &mut out),
            Piece::Name(variable) => out.push_str(names.get(variable.index()).map_or("x", |name| name)),
            // Writing to a string does not fail.
            Piece::Formula(formula) => _ = write!(out, "{formula}"),
            Piece::Branch(id) => {
                let level = if ends_in_case(term, id) { Level::Operand } else { Level::Term };
                pieces.push(Piece::Term(id, level));
            }
            Piece::Term(id, level) => {
                let node = term.node(id);
                if level_of(node) < level {
                    pieces.push(Piece::Text("("));
                    spell(node, &mut pieces);
                    pieces.push(Piece::Text(")"));
                } else {
                    spell(node, &mut pieces);
                }
            }
        }
        if let Some(new) = pieces.get_mut(first..) {
            new.reverse();
        }
    }
    out
}

fn level_of(node: &Node) -> Level {
    match node {
        Node::Lambda { .. }
        | Node::LetTensor { .. }
        | Node::LetUnit { .. }
        | Node::Copy { .. }
        | Node::Discard { .. }
        | Node::Case { .. } => Level::Term,
        Node::Promote { sources, .. } if !sources.is_empty() => Level::Term,
        Node::Tensor(..) => Level::Product,
        Node::Apply(..)
        | Node::Derelict(_)
        | Node::First(_)
        | Node::Second(_)
        | Node::InLeft(..)
        | Node::InRight(..)
        | Node::Cocopy(..)
        | Node::Coderelict(_) => Level::Application,
        _ => Level::Operand,
    }
}

/// Whether the text of a term ends in a `case` that nothing closes.
fn ends_in_case(term: &Term, mut id: NodeId) -> bool {
    loop {
        id = match term.node(id) {
            Node::Case { .. } => return true,
            Node::Promote { sources, .. } if sources.is_empty() => return false,
            Node::Lambda { body, .. }
            | Node::LetTensor { body, .. }
            | Node::LetUnit { body, .. }
            | Node::Copy { body, .. }
            | Node::Discard { body, .. }
            | Node::Promote { body, .. } => *body,
            _ => return false,
        };
    }
}

fn braces(formulas: &[Formula], out: &mut String) {
    if formulas.iter().all(|formula| formula.as_atom().is_some_and(|atom| &**atom == "a")) {
        return;
    }
    let texts: Vec<String> = formulas.iter().map(Formula::to_string).collect();
    out.push('{');
    out.push_str(&texts.join(", "));
    out.push('}');
}

/// The pieces of a node, in the order of the text.
fn spell<'a>(node: &'a Node, pieces: &mut Vec<Piece<'a>>) {
    use Level::{Application, Operand, Product, Term as Open};
    use Piece::{Braces, Branch, Digits, Formula, Global, Name, Numeral, Term, Text};
    match node {
        Node::Variable(x) => pieces.push(Name(*x)),
        Node::Lambda { variable, domain, body, .. } => {
            pieces.extend([
                Text("\\"),
                Name(*variable),
                Text(":"),
                Formula(domain),
                Text(". "),
                Term(*body, Open),
            ]);
        }
        Node::Apply(head, argument) => {
            pieces.extend([Term(*head, Application), Text(" "), Term(*argument, Operand)]);
        }
        Node::Tensor(left, right) => {
            pieces.extend([Term(*left, Product), Text(" * "), Term(*right, Application)])
        }
        Node::LetTensor { scrutinee, left, right, body } => {
            pieces.extend([Text("let "), Name(*left), Text(" * "), Name(*right), Text(" = ")]);
            pieces.extend([Term(*scrutinee, Open), Text(" in "), Term(*body, Open)]);
        }
        Node::Unit => pieces.push(Text("()")),
        Node::LetUnit { scrutinee, body } => {
            pieces.extend([Text("let () = "), Term(*scrutinee, Open), Text(" in "), Term(*body, Open)]);
        }
        Node::Derelict(inner) => pieces.extend([Text("derelict "), Term(*inner, Operand)]),
        Node::Promote { sources, body } if sources.is_empty() => {
            pieces.extend([Text("["), Term(*body, Open), Text("]")]);
        }
        Node::Promote { sources, body } => {
            pieces.push(Text("promote ("));
            for (i, (source, name)) in sources.iter().enumerate() {
                pieces.push(Text(if i == 0 { "" } else { ", " }));
                pieces.extend([Term(*source, Open), Text(" for "), Name(*name)]);
            }
            pieces.extend([Text(") in "), Term(*body, Open)]);
        }
        Node::Copy { scrutinee, left, right, body } => {
            pieces.extend([Text("copy "), Term(*scrutinee, Open), Text(" as "), Name(*left), Text(", ")]);
            pieces.extend([Name(*right), Text(" in "), Term(*body, Open)]);
        }
        Node::Discard { scrutinee, body } => {
            pieces.extend([Text("discard "), Term(*scrutinee, Open), Text(" in "), Term(*body, Open)]);
        }
        Node::With(left, right) => {
            pieces.extend([Text("<"), Term(*left, Open), Text(", "), Term(*right, Open), Text(">")]);
        }
        Node::First(pair) => pieces.extend([Text("fst "), Term(*pair, Operand)]),
        Node::Second(pair) => pieces.extend([Text("snd "), Term(*pair, Operand)]),
        Node::InLeft(other, inner) => {
            pieces.extend([Text("inl{"), Formula(other), Text("} "), Term(*inner, Operand)]);
        }
        Node::InRight(other, inner) => {
            pieces.extend([Text("inr{"), Formula(other), Text("} "), Term(*inner, Operand)]);
        }
        Node::Case { scrutinee, left, right } => {
            pieces.extend([
                Text("case "),
                Term(*scrutinee, Open),
                Text(" of inl "),
                Name(left.0),
                Text(" -> "),
            ]);
            pieces.extend([
                Branch(left.1),
                Text(" | inr "),
                Name(right.0),
                Text(" -> "),
                Term(right.1, Open),
            ]);
        }
        Node::Coweaken(formula) => pieces.extend([Text("coweaken{"), Formula(formula), Text("}")]),
        Node::Cocopy(left, right) => {
            pieces.extend([Text("cocopy "), Term(*left, Operand), Text(" "), Term(*right, Operand)]);
        }
        Node::Coderelict(inner) => pieces.extend([Text("coderelict "), Term(*inner, Operand)]),
        Node::Global { definition, arguments } => {
            pieces.extend([Global(&definition.name), Braces(arguments)])
        }
        Node::Numeral { value, base } => pieces.extend([Numeral(*value), Braces(std::slice::from_ref(base))]),
        Node::Word { digits, base } => {
            pieces.extend([Text("0b"), Digits(digits), Braces(std::slice::from_ref(base))]);
        }
    }
}
