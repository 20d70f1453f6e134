//! What every equation reads, and the components of that graph.

use std::collections::BTreeMap;

use crate::program::{
    AxisFunction, Equation, EquationId, Expr, Guard, Operation, Program, Read, TensorId, When,
};

/// An occurrence of a tensor on a right side.
#[derive(Debug, Clone)]
pub(super) struct Occurrence<'a> {
    pub(super) equation: &'a Equation,
    pub(super) read: &'a Read,
    /// What stands around it, the innermost last.
    pub(super) around: Vec<Around<'a>>,
}

/// What stands around an occurrence.
#[derive(Debug, Clone, Copy)]
pub(super) enum Around<'a> {
    /// A scope, a call or a term with these guards.
    When(&'a When),
    /// `not`
    Not,
    /// A comparison of values.
    Compare,
    /// A subtraction or a sign.
    Negate,
    /// Below a fraction's line.
    Divisor,
    /// softmax or lnorm.
    Axis,
    /// `avg[j](…)`
    Average,
}

/// All occurrences of a program, by the tensor whose equation they stand in.
pub(super) struct Reads<'a> {
    /// Tensors that have equations, with these and with what they read.
    pub(super) computed: BTreeMap<TensorId, Vec<EquationId>>,
    occurrences: BTreeMap<TensorId, Vec<Occurrence<'a>>>,
}

impl<'a> Reads<'a> {
    pub(super) fn of(program: &'a Program) -> Reads<'a> {
        let mut reads = Reads { computed: BTreeMap::new(), occurrences: BTreeMap::new() };
        for (id, equation) in (0..).map(EquationId).zip(&program.equations) {
            reads.computed.entry(equation.tensor).or_default().push(id);
            let mut walk = Walk { equation, around: Vec::new(), found: Vec::new() };
            for term in &equation.terms {
                walk.around.push(Around::When(&term.when));
                walk.guards(&term.when);
                walk.expr(&term.body);
                walk.around.pop();
            }
            reads.occurrences.entry(equation.tensor).or_default().extend(walk.found);
        }
        reads
    }

    fn of_tensor(&self, tensor: TensorId) -> &[Occurrence<'a>] {
        self.occurrences.get(&tensor).map_or(&[], Vec::as_slice)
    }
}

struct Walk<'a> {
    equation: &'a Equation,
    around: Vec<Around<'a>>,
    found: Vec<Occurrence<'a>>,
}

impl<'a> Walk<'a> {
    fn read(&mut self, read: &'a Read) {
        let around = self.around.clone();
        self.found.push(Occurrence { equation: self.equation, read, around });
    }

    fn within(&mut self, around: Around<'a>, walk: impl FnOnce(&mut Walk<'a>)) {
        self.around.push(around);
        walk(self);
        self.around.pop();
    }

    fn guards(&mut self, when: &'a When) {
        for guard in &when.guards {
            match guard {
                Guard::Read(read) => self.read(read),
                Guard::Not(read) => self.within(Around::Not, |walk| walk.read(read)),
                Guard::Compare(_, left, right) => self.within(Around::Compare, |walk| {
                    walk.expr(left);
                    walk.expr(right);
                }),
                Guard::CompareIndex(..) | Guard::Bind(..) => {}
            }
        }
    }

    fn expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Number(_) | Expr::Index(_) => {}
            Expr::Read(read) => self.read(read),
            Expr::Missing(read) => self.within(Around::Not, |walk| walk.read(read)),
            Expr::Product(parts) | Expr::Terms(parts) | Expr::Plus(parts) => {
                parts.iter().for_each(|part| self.expr(part));
            }
            Expr::Quotient(over, under) => {
                self.expr(over);
                self.within(Around::Divisor, |walk| walk.expr(under));
            }
            Expr::Negate(inner) => self.within(Around::Negate, |walk| walk.expr(inner)),
            Expr::Power(base, exponent) => {
                self.expr(base);
                self.expr(exponent);
            }
            Expr::Reduce(reduce) => self.within(Around::When(&reduce.when), |walk| {
                walk.guards(&reduce.when);
                match reduce.operation {
                    Operation::Avg => walk.within(Around::Average, |walk| walk.expr(&reduce.body)),
                    _ => walk.expr(&reduce.body),
                }
            }),
            Expr::Call(call) => self.within(Around::When(&call.when), |walk| {
                walk.guards(&call.when);
                call.arguments.iter().for_each(|argument| walk.expr(argument));
            }),
            Expr::Axis(axis) => self.within(Around::When(&axis.when), |walk| {
                walk.within(Around::Axis, |walk| {
                    walk.guards(&axis.when);
                    walk.expr(&axis.argument);
                    if let AxisFunction::Lnorm(Some(epsilon)) = &axis.function {
                        walk.expr(epsilon);
                    }
                });
            }),
        }
    }
}

/// A component seen from inside: the occurrences of its own tensors in its own equations.
pub(super) struct Inside<'a> {
    pub(super) program: &'a Program,
    /// Sorted.
    pub(super) tensors: &'a [TensorId],
    pub(super) occurrences: Vec<&'a Occurrence<'a>>,
    reads: &'a Reads<'a>,
}

impl<'a> Inside<'a> {
    pub(super) fn new(program: &'a Program, reads: &'a Reads<'a>, tensors: &'a [TensorId]) -> Inside<'a> {
        let all = tensors.iter().flat_map(|tensor| reads.of_tensor(*tensor));
        let occurrences =
            all.filter(|occurrence| tensors.binary_search(&occurrence.read.tensor).is_ok()).collect();
        Inside { program, tensors, occurrences, reads }
    }

    /// The equations, in order of the text.
    pub(super) fn equations(&self) -> Vec<EquationId> {
        let of = |tensor: &TensorId| self.reads.computed.get(tensor).into_iter().flatten().copied();
        let mut equations: Vec<EquationId> = self.tensors.iter().flat_map(of).collect();
        equations.sort_unstable();
        equations
    }
}

/// Components of computed tensors in evaluation order, tensors of each in their own order.
pub(super) fn components(reads: &Reads<'_>) -> Vec<Vec<TensorId>> {
    let tensors: Vec<TensorId> = reads.computed.keys().copied().collect();
    let edges: Vec<Vec<usize>> = tensors
        .iter()
        .map(|tensor| {
            let targets = reads.of_tensor(*tensor).iter().map(|occurrence| occurrence.read.tensor);
            let mut targets: Vec<usize> = targets.filter_map(|t| tensors.binary_search(&t).ok()).collect();
            targets.sort_unstable();
            targets.dedup();
            targets
        })
        .collect();
    let named =
        |component: Vec<usize>| component.into_iter().filter_map(|at| tensors.get(at).copied()).collect();
    strongly_connected(&edges).into_iter().map(named).collect()
}

/// The strongly connected components of a graph, those that an edge leads to first (Tarjan 1972,
/// with a stack of its own instead of recursion). Nodes of a component are sorted.
pub(super) fn strongly_connected(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const UNSEEN: usize = usize::MAX;
    let mut order = vec![UNSEEN; edges.len()];
    let mut low = vec![UNSEEN; edges.len()];
    let mut open = vec![false; edges.len()];
    let (mut stack, mut components) = (Vec::new(), Vec::new());
    let mut next = 0;
    for root in 0..edges.len() {
        if order[root] != UNSEEN {
            continue;
        }
        // Each frame: a node and how many of its edges have been followed.
        let mut frames = vec![(root, 0)];
        while let Some((node, followed)) = frames.last_mut() {
            let node = *node;
            if *followed == 0 && order[node] == UNSEEN {
                (order[node], low[node], open[node]) = (next, next, true);
                next += 1;
                stack.push(node);
            }
            if let Some(target) = edges[node].get(*followed).copied() {
                *followed += 1;
                if order[target] == UNSEEN {
                    frames.push((target, 0));
                } else if open[target] {
                    low[node] = low[node].min(order[target]);
                }
                continue;
            }
            frames.pop();
            if let Some((parent, _)) = frames.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
            if low[node] == order[node] {
                let start = stack.iter().rposition(|other| *other == node).unwrap_or(0);
                let mut component = stack.split_off(start);
                component.iter().for_each(|member| open[*member] = false);
                component.sort_unstable();
                components.push(component);
            }
        }
    }
    components
}

#[cfg(test)]
mod tests {
    use super::strongly_connected;

    /// Two nodes share a component iff each reaches the other; edges lead to earlier components.
    #[test]
    fn components_are_mutual_reachability() {
        let mut stream =
            seeded::Family::new("tensor-logic/tests", "components", seeded::test_seed()).stream(0);
        for _ in 0..2000 {
            let nodes = 1 + stream.below(8) as usize;
            let mut edges = vec![Vec::new(); nodes];
            for _ in 0..stream.below(14) {
                edges[stream.below(nodes as u64) as usize].push(stream.below(nodes as u64) as usize);
            }
            let mut reaches: Vec<Vec<bool>> =
                (0..nodes).map(|a| (0..nodes).map(|b| a == b || edges[a].contains(&b)).collect()).collect();
            for middle in 0..nodes {
                for from in 0..nodes {
                    for to in 0..nodes {
                        reaches[from][to] |= reaches[from][middle] && reaches[middle][to];
                    }
                }
            }
            let components = strongly_connected(&edges);
            let of = |node: usize| components.iter().position(|c| c.contains(&node)).unwrap();
            for (a, row) in reaches.iter().enumerate() {
                for (b, there) in row.iter().enumerate() {
                    assert_eq!(of(a) == of(b), *there && reaches[b][a], "{edges:?}");
                    assert!(!there || of(b) <= of(a), "{edges:?}");
                }
            }
        }
    }
}
