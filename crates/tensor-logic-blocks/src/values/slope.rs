//! The adjoint of lnorm, as gradients write it, in one operation.
//!
//! Enter at [`Slope::of`] and [`Machine::slope`]. `(q - avg(q x^0) - y avg(q y)) / sqrt(avg((x - avg(x))^2) + eps)`
//! is four means along the same axes, each of which would go through all numbers, and through the products that x may be
//! made of, for itself.

use crate::error::Result;
use crate::function::Function;
use crate::kernels::{Array, LnormSlope, Point, volume};
use crate::program::{Argument, Call, Expr, IndexFn, IndexId, Operation, Range, Read, Reduce};
use crate::store::block::{Block, Dim};
use crate::store::machine::{Context, Machine};

/// What such an expression is made of.
pub(crate) struct Slope<'p> {
    /// q over the axes.
    incoming: &'p Expr,
    /// The presence of x over axes of its own, as often as it is written.
    entries: Vec<&'p Expr>,
    /// y over the axes.
    result: &'p Expr,
    /// x over axes of its own.
    argument: &'p Expr,
    epsilon: &'p Expr,
    axes: Vec<IndexId>,
    /// The axes of the first mean, of the second and of x.
    own: [&'p [IndexId]; 3],
}

impl<'p> Slope<'p> {
    /// Takes an expression apart, if it is one.
    pub(crate) fn of(expr: &'p Expr) -> Option<Slope<'p>> {
        let Expr::Quotient(centred, spread) = expr else { return None };
        let Expr::Plus(parts) = &**centred else { return None };
        let [incoming, Expr::Negate(mean), Expr::Negate(along)] = parts.as_slice() else { return None };
        let (first, Expr::Product(mean)) = average(mean)? else { return None };
        let [again, entry] = mean.as_slice() else { return None };
        let Expr::Product(along) = &**along else { return None };
        let [result, along] = along.as_slice() else { return None };
        let (second, Expr::Product(along)) = average(along)? else { return None };
        // Where an entry of x may be absent, which the text alone does not tell, the second mean names its presence too.
        let (once_more, results, more) = match along.as_slice() {
            [once_more, results] => (once_more, results, None),
            [once_more, results, more] => (once_more, results, Some(more)),
            _ => return None,
        };
        let axes = moved(read(incoming)?, read(again)?, first)?;
        let is_presence =
            |entry: &Expr| matches!(entry, Expr::Power(_, zero) if matches!(**zero, Expr::Number(0.0)));
        if moved(read(incoming)?, read(once_more)?, second)? != axes
            || moved(read(result)?, read(results)?, second)? != axes
            || !is_presence(entry)
            || !more.is_none_or(is_presence)
        {
            return None;
        }
        let Expr::Call(root) = &**spread else { return None };
        let Call { function: Function::Sqrt, arguments, when, .. } = &**root else { return None };
        let ([Expr::Plus(sum)], true) = (arguments.as_slice(), when.guards.is_empty()) else { return None };
        let [variance, epsilon] = sum.as_slice() else { return None };
        let (third, Expr::Power(distance, two)) = average(variance)? else { return None };
        let (Expr::Plus(distance), Expr::Number(2.0)) = (&**distance, &**two) else { return None };
        let [argument, Expr::Negate(mean)] = distance.as_slice() else { return None };
        let (fourth, mean) = average(mean)?;
        let mut pairs: Vec<(IndexId, IndexId)> = third.iter().copied().zip(fourth.iter().copied()).collect();
        let same = third.len() == axes.len() && fourth.len() == axes.len();
        if !same || !alike(argument, mean, &mut pairs) {
            return None;
        }
        let entries = std::iter::once(entry).chain(more).collect();
        let own = [first, second, third];
        Some(Slope { incoming, entries, result, argument, epsilon, axes, own })
    }
}

/// The axes of a mean without guards, and what it is taken of.
fn average(expr: &Expr) -> Option<(&[IndexId], &Expr)> {
    let Expr::Reduce(reduce) = expr else { return None };
    let plain = reduce.operation == Operation::Avg && reduce.when.guards.is_empty();
    plain.then_some((reduce.over.as_slice(), &reduce.body))
}

/// A read, or a sum over nothing of one, which is 0 where that is absent.
fn read(expr: &Expr) -> Option<&Read> {
    match expr {
        Expr::Read(read) => Some(read),
        Expr::Reduce(reduce) => match &**reduce {
            Reduce { operation: Operation::Sum, over, when, body: Expr::Read(read), .. }
                if over.is_empty() && when.guards.is_empty() =>
            {
                Some(read)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The indices of one read of a tensor that in another of the same are these, in order, all else being equal.
fn moved(outer: &Read, inner: &Read, over: &[IndexId]) -> Option<Vec<IndexId>> {
    let alone = |argument: &Argument| match argument {
        Argument::At(function) => function.alone(),
        Argument::Any => None,
    };
    let mut axes: Vec<Option<IndexId>> = vec![None; over.len()];
    let same = outer.tensor == inner.tensor
        && outer.otherwise == inner.otherwise
        && outer.arguments.len() == inner.arguments.len();
    for (outer, inner) in outer.arguments.iter().zip(&inner.arguments) {
        let (outer, inner) = (alone(outer)?, alone(inner)?);
        match over.iter().position(|index| *index == inner) {
            Some(at) if axes[at].is_none_or(|known| known == outer) => axes[at] = Some(outer),
            None if outer == inner => {}
            _ => return None,
        }
    }
    let axes: Vec<IndexId> = axes.into_iter().collect::<Option<_>>()?;
    // An axis may stand nowhere as itself.
    let free = |index: &IndexId| !inner.arguments.iter().any(|argument| alone(argument) == Some(*index));
    (same && axes.iter().all(free)).then_some(axes)
}

/// Whether two expressions are the same but for these indices.
fn alike(a: &Expr, b: &Expr, pairs: &mut Vec<(IndexId, IndexId)>) -> bool {
    let all = |a: &[Expr], b: &[Expr], pairs: &mut Vec<(IndexId, IndexId)>| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b, pairs))
    };
    match (a, b) {
        (Expr::Number(a), Expr::Number(b)) => a.to_bits() == b.to_bits(),
        (Expr::Index(a), Expr::Index(b)) => alike_index(a, b, pairs),
        (Expr::Read(a), Expr::Read(b)) => alike_read(a, b, pairs),
        (Expr::Product(a), Expr::Product(b))
        | (Expr::Terms(a), Expr::Terms(b))
        | (Expr::Plus(a), Expr::Plus(b)) => all(a, b, pairs),
        (Expr::Quotient(a, x), Expr::Quotient(b, y)) | (Expr::Power(a, x), Expr::Power(b, y)) => {
            alike(a, b, pairs) && alike(x, y, pairs)
        }
        (Expr::Negate(a), Expr::Negate(b)) => alike(a, b, pairs),
        (Expr::Reduce(a), Expr::Reduce(b)) => {
            let known = pairs.len();
            pairs.extend(a.over.iter().copied().zip(b.over.iter().copied()));
            let same = a.operation == b.operation
                && a.explicit == b.explicit
                && a.over.len() == b.over.len()
                && a.when.guards.is_empty()
                && b.when.guards.is_empty()
                && alike(&a.body, &b.body, pairs);
            pairs.truncate(known);
            same
        }
        (Expr::Call(a), Expr::Call(b)) => {
            format!("{:?}", a.function) == format!("{:?}", b.function)
                && a.when.guards.is_empty()
                && b.when.guards.is_empty()
                && all(&a.arguments, &b.arguments, pairs)
        }
        _ => false,
    }
}

fn alike_read(a: &Read, b: &Read, pairs: &[(IndexId, IndexId)]) -> bool {
    let argument = |(a, b): (&Argument, &Argument)| match (a, b) {
        (Argument::At(a), Argument::At(b)) => alike_index(a, b, pairs),
        _ => false,
    };
    a.tensor == b.tensor
        && a.otherwise == b.otherwise
        && a.arguments.len() == b.arguments.len()
        && a.arguments.iter().zip(&b.arguments).all(argument)
}

fn alike_index(a: &IndexFn, b: &IndexFn, pairs: &[(IndexId, IndexId)]) -> bool {
    let index = |a: &IndexId, b: &IndexId| {
        let known = pairs.iter().rev().find(|(own, other)| own == a || other == b);
        known.map_or(a == b, |(own, other)| own == a && other == b)
    };
    match (a, b) {
        (IndexFn::Const(a), IndexFn::Const(b)) => a == b,
        (IndexFn::Index(a), IndexFn::Index(b)) | (IndexFn::Ordinal(a), IndexFn::Ordinal(b)) => index(a, b),
        (IndexFn::Negate(a), IndexFn::Negate(b)) => alike_index(a, b, pairs),
        (IndexFn::Add(a, x), IndexFn::Add(b, y))
        | (IndexFn::Subtract(a, x), IndexFn::Subtract(b, y))
        | (IndexFn::Multiply(a, x), IndexFn::Multiply(b, y))
        | (IndexFn::Divide(a, x), IndexFn::Divide(b, y))
        | (IndexFn::Remainder(a, x), IndexFn::Remainder(b, y)) => {
            alike_index(a, b, pairs) && alike_index(x, y, pairs)
        }
        _ => false,
    }
}

impl Machine {
    /// The adjoint of lnorm, if an expression is one whose entries are all present over axes that are no rows.
    pub(crate) fn slope(&mut self, expr: &Expr, context: &Context) -> Result<Option<Block>> {
        let Some(slope) = Slope::of(expr) else { return Ok(None) };
        let Slope { axes, own, .. } = &slope;
        let argument_axes = own[2];
        let domain = |index: &IndexId| match &self.program.index(*index).range {
            Range::Domain(domain) => Some(domain),
            Range::Tuples | Range::Computed => None,
        };
        let same = |others: &[IndexId]| {
            axes.iter().zip(others).all(|(a, b)| domain(a).is_some() && domain(a) == domain(b))
        };
        let apart = axes.iter().all(|index| !context.in_rows(*index) && context.fixed(*index).is_none());
        if !apart || !own.iter().all(|own| same(own)) {
            return Ok(None);
        }
        for entry in &slope.entries {
            if self.expr(entry, context)?.mask.is_some() {
                return Ok(None);
            }
        }
        let mut blocks: Vec<Block> = Vec::with_capacity(4);
        // x in the order in which lnorm itself makes it: then it is the same operation.
        let wanted = self.wanted.clone();
        for (own, index) in argument_axes.iter().zip(axes) {
            self.wanted
                .iter_mut()
                .filter(|dim| **dim == Dim::of(*index))
                .for_each(|dim| *dim = Dim::of(*own));
        }
        let argument = self.expr(slope.argument, context);
        self.wanted = wanted;
        blocks.push(argument?);
        for part in [slope.incoming, slope.result, slope.epsilon] {
            blocks.push(self.expr(part, context)?);
        }
        for (own, index) in argument_axes.iter().zip(axes) {
            blocks[0] = blocks[0].clone().renamed(Dim::of(*own), Dim::of(*index));
        }
        let along = |dim: &Dim| dim.index().is_some_and(|index| axes.contains(&index));
        let mut dims: Vec<Dim> = Vec::new();
        for dim in blocks.iter().flat_map(|block| &block.dims).filter(|dim| !along(dim)) {
            if !dims.contains(dim) {
                dims.push(*dim);
            }
        }
        // Rows first, as everywhere.
        dims.sort_by_key(|dim| *dim != Dim::ROWS);
        dims.extend(axes.iter().map(|index| Dim::of(*index)));
        let shape: Vec<usize> = dims.iter().map(|dim| self.dim_size(*dim, context)).collect();
        if blocks.iter().any(|block| block.mask.is_some()) || volume(&shape) == 0 {
            return Ok(None);
        }
        self.reserve(volume(&shape).saturating_mul(2))?;
        let along = axes.iter().map(|index| self.size(*index)).product();
        let mut points = blocks
            .into_iter()
            .map(|block| Point::of(shape.clone(), block.expanded(&dims, &shape).view(&dims)).fused());
        let (Some(argument), Some(incoming), Some(result), Some(epsilon)) =
            (points.next(), points.next(), points.next(), points.next())
        else {
            return Ok(None);
        };
        drop(points);
        let operation = LnormSlope { argument, incoming, result, epsilon, along };
        let array = Array::of(volume(&shape), operation);
        Ok(Some(Block::whole(dims, shape, array)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Budget, Engine, Parameters, Request};
    use crate::function::UserFunctions;
    use crate::program::{Program, TensorId};
    use crate::reference::Reference;
    use crate::{Fast, Storage};
    use tensor_logic_core::analyse::analyse;
    use tensor_logic_core::lower::{NoFiles, Options};

    const GIVEN: &str = "i, d, d1, d2, d3, d4 : 5
Q[i, d] = sin(3 i + 2 d)
X[i, d] = cos(2 i + d * d)
N[i, d] = sin(i - 3 d)
E[i, d] = 0.1 * (1 + i + d)
Z[i, d] = sin(d)
";

    /// The formula with these pieces.
    fn text([q1, entry, q2, y2, x3, x4, power, epsilon]: [&str; 8]) -> String {
        format!(
            "{GIVEN}Y[i, d] = (Q[i, d] - avg[d1]({q1} {entry}) - N[i, d] avg[d2]({q2} {y2})) / \
             sqrt((avg[d3](({x3} - avg[d4]({x4}))^{power}) + {epsilon}))\n"
        )
    }

    fn analysed(text: &str) -> Program {
        let analysed = analyse(text, &mut NoFiles, &UserFunctions::default(), &Options::default());
        analysed.unwrap_or_else(|reports| panic!("{reports:?}\n{text}")).program
    }

    fn is_slope(expr: &Expr) -> bool {
        Slope::of(expr).is_some() || expr.parts().0.into_iter().any(is_slope)
    }

    /// Every piece as it should be, and others in its place: what is taken for an adjoint, and what it comes to.
    #[test]
    fn what_looks_like_an_adjoint_has_its_value() {
        let pieces: [&[&str]; 8] = [
            &["Q[i, d1]", "Q[d1, i]", "X[i, d1]", "Q[i, d]"],
            &["X[i, d1]^0", "X[i, d1]", "X[d1, i]^0", "Z[i, d1]^0"],
            &["Q[i, d2]", "Q[d2, i]", "N[i, d2]"],
            &[
                "N[i, d2]",
                "N[d2, i]",
                "X[i, d2]",
                "N[i, d]",
                "N[i, d2] X[i, d2]^0",
                "N[i, d2] Z[d2, i]^0",
                "N[i, d2] X[i, d2]",
            ],
            &["X[i, d3]", "X[d3, i]", "N[i, d3]", "(X[i, d3] + N[d3, i])", "tanh(X[i, d3])"],
            &["X[i, d4]", "X[d4, i]", "N[i, d4]", "(X[i, d4] + N[d4, i])", "tanh(X[i, d4])"],
            &["2", "4"],
            &["1e-5", "E[i, d]", "E[d, i]"],
        ];
        let (mut found, mut others) = (0, 0);
        let mut at = [0_usize; 8];
        // Each piece alone, then all pairs of one with the argument in both places.
        let mut tried: Vec<[usize; 8]> = vec![at];
        for place in 0..8 {
            for other in 1..pieces[place].len() {
                at = [0; 8];
                at[place] = other;
                tried.push(at);
                for argument in 0..5 {
                    (at[4], at[5]) = (argument, argument);
                    tried.push(at);
                }
            }
        }
        for at in tried {
            let mut own = [""; 8];
            (0..8).for_each(|place| own[place] = pieces[place][at[place]]);
            let text = text(own);
            let program = analysed(&text);
            let goal = program.tensors.iter().position(|tensor| tensor.name == "Y").unwrap();
            let goal = TensorId(goal as u32);
            let body = program.equations.iter().filter(|equation| equation.tensor == goal);
            let slope = body.flat_map(|equation| &equation.terms).any(|term| is_slope(&term.body));
            let own = [at[0] == 0, at[2] == 0, matches!(at[3], 0 | 4 | 5), at[4] == at[5], at[6] == 0];
            // Any power of 0 is 1 where it is present, which all of these are; X[i, d1] is none.
            assert_eq!(slope, own.into_iter().all(|own| own) && at[1] != 1, "{text}");
            found += u32::from(slope);
            others += u32::from(!slope);
            let parameters = Parameters::new();
            let budget = Budget { tuples: 1 << 20, bytes: 1 << 28 };
            let request = Request { program: &program, parameters: &parameters, budget };
            let wanted = Reference::default().values(&request, &[goal]).unwrap();
            for storage in [Storage::Auto, Storage::Dense, Storage::Sparse] {
                let values = Fast::with_storage(storage).values(&request, &[goal]).unwrap();
                let (values, wanted) = (values[0].doubles(), wanted[0].doubles());
                let close = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= 1e-9 * b.abs().max(1.0);
                let equal = values.iter().zip(wanted.iter()).all(close) && values.len() == wanted.len();
                assert!(equal, "{storage:?}: {values:?} instead of {wanted:?}\n{text}");
            }
        }
        assert!(found > 10 && others > 10, "{found} {others}");
    }
}
