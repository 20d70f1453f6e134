//! Formulas by size: one recursion for all that is asked of them.
//!
//! With A(k) for the atoms below k quantifiers, what is known of the formulas of n nodes below k quantifiers is
//! ```text
//! G(1, k) = A(k)
//! G(n, k) = not · G(n−1, k)  +  binary · Σ G(i, k) × G(n−1−i, k)  +  quantifier · ↑G(n−1, k+1)
//! ```
//! Read with whole numbers this counts them, with floating-point numbers it weighs them, with truth values it
//! says whether there are any, and with lengths under max or min it finds the longest or the shortest: an
//! [`Amount`] says what +, ×, ↑ and · are. Most readings tell quantifier depth 0, 1 and more apart ([`ByClass`]).

/// What is known of some formulas together.
pub(crate) trait Amount: Clone {
    /// What a connective or quantifier multiplies with.
    type Factor;
    /// Of no formula.
    fn none() -> Self;
    /// These, and `more` times a factor.
    fn add(&mut self, factor: &Self::Factor, more: &Self);
    /// Σ row(i) × row(n − i), 0 < i < n: the pairs of operands of n nodes in all.
    fn pairs(row: &[Self], n: usize) -> Self;
    /// The same formulas below one more quantifier, that one included.
    fn quantified(&self) -> Self;
}

/// The factors of the constructions that a signature has.
pub(crate) struct Ways<F> {
    pub(crate) not: Option<F>,
    pub(crate) binary: Option<F>,
    pub(crate) quantifier: Option<F>,
}

/// G for all k up to `deepest` and n up to `nodes`.
#[derive(Debug, Clone)]
pub(crate) struct BySize<A> {
    /// `formulas[k][n]`.
    pub(crate) formulas: Vec<Vec<A>>,
    /// `pairs[k][n]`: the operands of a binary formula of n nodes.
    pub(crate) pairs: Vec<Vec<A>>,
}

impl<A: Amount> BySize<A> {
    /// Fills the table; `each` is applied to every sum.
    pub(crate) fn new(
        nodes: usize,
        deepest: usize,
        atoms: impl Fn(usize) -> A,
        ways: &Ways<A::Factor>,
        each: impl Fn(A) -> A,
    ) -> Self {
        let mut formulas: Vec<Vec<A>> = (0..=deepest).map(|k| vec![A::none(), atoms(k)]).collect();
        let mut pairs = vec![vec![A::none(), A::none()]; deepest + 1];
        for n in 2..=nodes {
            for k in 0..=deepest.min(nodes - n) {
                let at = |k: usize| formulas.get(k).and_then(|row: &Vec<A>| row.get(n - 1));
                let operands = A::pairs(formulas.get(k).map_or(&[], Vec::as_slice), n - 1);
                let mut sum = A::none();
                if let (Some(factor), Some(operand)) = (&ways.not, at(k)) {
                    sum.add(factor, operand);
                }
                if let Some(factor) = &ways.binary {
                    sum.add(factor, &operands);
                }
                if let (Some(factor), Some(body)) = (&ways.quantifier, at(k + 1)) {
                    sum.add(factor, &body.quantified());
                }
                if let (Some(formulas), Some(pairs)) = (formulas.get_mut(k), pairs.get_mut(k)) {
                    formulas.push(each(sum));
                    pairs.push(operands);
                }
            }
        }
        Self { formulas, pairs }
    }

    /// Formulas of n nodes below k quantifiers.
    pub(crate) fn get(&self, n: usize, k: usize) -> A {
        self.formulas.get(k).and_then(|row| row.get(n)).cloned().unwrap_or_else(A::none)
    }
}

impl<T> BySize<Option<T>> {
    /// The table, if all of it is there.
    pub(crate) fn whole(self) -> Option<BySize<T>> {
        let rows =
            |rows: Vec<Vec<Option<T>>>| rows.into_iter().map(|row| row.into_iter().collect()).collect();
        let (formulas, pairs): (Option<_>, Option<_>) = (rows(self.formulas), rows(self.pairs));
        Some(BySize { formulas: formulas?, pairs: pairs? })
    }
}

/// Numbers in which one adds over alternatives and multiplies over parts.
pub(crate) trait Semiring: Copy {
    /// Of no alternative.
    const ZERO: Self;
    /// Of one alternative or another.
    fn plus(self, other: Self) -> Self;
    /// Of one part and another.
    fn times(self, other: Self) -> Self;
}

macro_rules! semiring {
    ($number:ty: $zero:literal $plus:tt $times:tt) => {
        impl Semiring for $number {
            const ZERO: Self = $zero;

            fn plus(self, other: Self) -> Self {
                self $plus other
            }

            fn times(self, other: Self) -> Self {
                self $times other
            }
        }
    };
}

semiring!(f64: 0.0 + *);
semiring!(bool: false || &&);

/// Numbers for quantifier depth 0, 1 and more.
pub(crate) type ByClass<T = f64> = [T; 3];

/// Pairs: the quantifier depth of two formulas is the larger one.
pub(crate) fn join<T: Semiring>([a0, a1, a2]: ByClass<T>, [b0, b1, b2]: ByClass<T>) -> ByClass<T> {
    let (a, b) = (a0.plus(a1), b0.plus(b1));
    [a0.times(b0), a0.times(b1).plus(a1.times(b)), a2.times(b.plus(b2)).plus(a.times(b2))]
}

/// The classes of formulas below that many quantifiers, those included.
pub(crate) fn below<T: Semiring>([none, one, more]: ByClass<T>, quantifiers: usize) -> ByClass<T> {
    match quantifiers {
        0 => [none, one, more],
        1 => [T::ZERO, none, one.plus(more)],
        _ => [T::ZERO, T::ZERO, none.plus(one).plus(more)],
    }
}

/// Adds `b`, times a factor.
pub(crate) fn add_scaled<T: Semiring>(a: &mut ByClass<T>, b: ByClass<T>, factor: T) {
    for (x, y) in a.iter_mut().zip(b) {
        *x = x.plus(factor.times(y));
    }
}

impl<T: Semiring> Amount for ByClass<T> {
    type Factor = T;

    fn none() -> Self {
        [T::ZERO; 3]
    }

    fn add(&mut self, factor: &T, more: &Self) {
        add_scaled(self, *more, *factor);
    }

    fn pairs(row: &[Self], n: usize) -> Self {
        let at = |i: usize| row.get(i).copied().unwrap_or([T::ZERO; 3]);
        let mut sum = [T::ZERO; 3];
        for i in 1..n {
            for (x, y) in sum.iter_mut().zip(join(at(i), at(n - i))) {
                *x = x.plus(y);
            }
        }
        sum
    }

    fn quantified(&self) -> Self {
        below(*self, 1)
    }
}
