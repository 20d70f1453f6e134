//! What is refused in a recursion: `self-reference` and `not-stratified`.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::ast::{self, Span};
use crate::error::{Code, Refusal};
use crate::names::literals_of_references;
use crate::program::{Argument, Combine, IndexFn, Style, TensorId};
use crate::recursion::graph::{Around, Inside, Occurrence};

/// References to the very element being defined inside softmax or lnorm.
pub(super) fn self_references(inside: &Inside<'_>) -> Vec<Refusal> {
    let own = inside.occurrences.iter().filter(|occurrence| {
        let in_axis = occurrence.around.iter().any(|around| matches!(around, Around::Axis));
        in_axis && occurrence.read.tensor == occurrence.equation.tensor && same_element(occurrence)
    });
    own.map(|occurrence| {
        let name = inside.program.name(occurrence.read.tensor);
        let message = format!("`{name}` is defined here from the very element that is being defined");
        let report = Refusal::new(Code::SelfReference, occurrence.read.span, message);
        let report = report.label(occurrence.equation.head_span, "the element");
        report.help(format!(
            "the next layer is another element: `{name}[b+1, …]` on the left; or redefine it with `:=`"
        ))
    })
    .collect()
}

fn same_element(occurrence: &Occurrence<'_>) -> bool {
    let head = &occurrence.equation.head;
    let arguments = &occurrence.read.arguments;
    let same = |(read, head): (&Argument, &IndexFn)| matches!(read, Argument::At(read) if read == head);
    head.len() == arguments.len() && arguments.iter().zip(head).all(same)
}

/// `avg=` of a relation in its own recursion: refused in every class that iterates.
pub(super) fn averages(inside: &Inside<'_>) -> Vec<Refusal> {
    let mut reports: Vec<Refusal> = Vec::new();
    for occurrence in &inside.occurrences {
        let head = inside.program.tensor(occurrence.equation.tensor);
        if head.style == Style::Round && head.combine == Combine::Avg {
            let at = occurrence.equation.sign_span;
            reports.push(refuse(inside, occurrence, at, "the mean of a relation", ""));
        }
    }
    reports
}

/// Probabilities that are read as values in their own recursion: what is proved would depend on how probable it is.
pub(super) fn through_values(inside: &Inside<'_>) -> Vec<Refusal> {
    let proved = |id: TensorId| inside.program.tensor(id).is_proved();
    let mixed = inside.tensors.iter().any(|id| proved(*id)) && !inside.tensors.iter().all(|id| proved(*id));
    let reads = inside
        .occurrences
        .iter()
        .filter(|occurrence| mixed && (proved(occurrence.read.tensor) != proved(occurrence.equation.tensor)));
    reads
        .map(|occurrence| refuse(inside, occurrence, occurrence.read.span, "the value of a probability", ""))
        .collect()
}

/// What is not monotone in the component's own tensors.
pub(super) fn not_monotone(inside: &Inside<'_>, tree: &ast::Program) -> Vec<Refusal> {
    let mut literals: Option<HashMap<usize, Span>> = None;
    let mut reports = Vec::new();
    for occurrence in &inside.occurrences {
        let read = occurrence.read.span;
        let mut literal = |read: Span| {
            let literals = literals.get_or_insert_with(|| literals_of_references(tree));
            literals.get(&read.start).copied().unwrap_or(read)
        };
        for around in &occurrence.around {
            let (at, what, not) = match around {
                Around::When(_) => continue,
                Around::Not => (literal(read), "the negation", "not "),
                Around::Compare => (literal(read), "the comparison", ""),
                Around::Negate => (read, "the subtraction", ""),
                Around::Divisor => (read, "the divisor", ""),
                Around::Axis => (read, "the softmax or lnorm", ""),
                Around::Average => (read, "the mean", ""),
            };
            reports.push(refuse(inside, occurrence, at, what, not));
            break;
        }
    }
    reports
}

fn refuse(inside: &Inside<'_>, occurrence: &Occurrence<'_>, at: Span, what: &str, not: &str) -> Refusal {
    let cycle = cycle(inside, occurrence, not);
    let message = format!("{what} closes a recursion: `{cycle}`");
    Refusal::new(Code::NotStratified, at, message)
        .help("define what is negated, compared or subtracted without this tensor, or step along an index")
}

/// `P -> not Q -> P`: from the tensor defined over the one read back to it.
fn cycle(inside: &Inside<'_>, occurrence: &Occurrence<'_>, not: &str) -> String {
    let (from, to) = (occurrence.equation.tensor, occurrence.read.tensor);
    let name = |id: &TensorId| inside.program.name(*id);
    let mut shown = format!("{} -> {not}{}", name(&from), name(&to));
    for id in path(inside, to, from) {
        shown.push_str(" -> ");
        shown.push_str(name(&id));
    }
    shown
}

/// A shortest path of reads from one tensor to another, without the first.
fn path(inside: &Inside<'_>, from: TensorId, to: TensorId) -> Vec<TensorId> {
    let mut before: BTreeMap<TensorId, TensorId> = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(tensor) = queue.pop_front() {
        if tensor == to {
            break;
        }
        for occurrence in inside.occurrences.iter().filter(|o| o.equation.tensor == tensor) {
            let read = occurrence.read.tensor;
            if read != from && !before.contains_key(&read) {
                before.insert(read, tensor);
                queue.push_back(read);
            }
        }
    }
    let mut path = Vec::new();
    let mut at = to;
    while at != from {
        path.push(at);
        let Some(previous) = before.get(&at) else { break };
        at = *previous;
    }
    path.reverse();
    path
}
