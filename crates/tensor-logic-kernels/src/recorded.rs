//! Operations that are done again and again on other parts of the same arrays, without being described anew.

use super::array::{Array, Step, Typed};
use super::fold::Fold;
use super::normalise::Normalise;
use super::number::{Buffer, Pool, Precision};
use super::point::Point;
use super::product::Product;

/// An operation whose arrays are put in before it is done.
#[derive(Debug)]
pub enum Recorded {
    /// Elementwise work.
    Point(Point),
    /// The same, folded.
    Fold(Fold),
    /// Products of matrices.
    Product(Product),
    /// softmax or lnorm.
    Normalise(Normalise),
}

impl Recorded {
    /// The operation that an array waits for, if it is one of these and picks nothing by look-up.
    pub fn of(array: &Array) -> Option<Recorded> {
        let found = array
            .waiting::<Point>()
            .map(Recorded::Point)
            .or_else(|| array.waiting::<Fold>().map(Recorded::Fold))
            .or_else(|| array.waiting::<Product>().map(Recorded::Product))
            .or_else(|| array.waiting::<Normalise>().map(Recorded::Normalise))?;
        let points = match &found {
            Recorded::Point(point) => vec![point],
            Recorded::Fold(fold) => vec![&fold.point],
            Recorded::Product(_) => Vec::new(),
            Recorded::Normalise(normalise) if normalise.layout.groups.is_none() => {
                [Some(&normalise.values), normalise.present.as_ref(), normalise.epsilon.as_ref()]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            Recorded::Normalise(_) => return None,
        };
        let mut steps = points.into_iter().flat_map(|point| &point.inputs).flat_map(|view| &view.steps);
        steps.all(|step| matches!(step, Step::By(_))).then_some(found)
    }

    /// Visits the arrays that it reads, and where it begins in each.
    pub fn visit(&mut self, visit: &mut dyn FnMut(&mut Array, &mut usize)) {
        let mut point = |point: &mut Point| {
            point.inputs.iter_mut().for_each(|view| visit(&mut view.array, &mut view.offset));
        };
        match self {
            Recorded::Point(own) => point(own),
            Recorded::Fold(fold) => point(&mut fold.point),
            Recorded::Product(product) => {
                visit(&mut product.a.array, &mut product.a.offset);
                visit(&mut product.b.array, &mut product.b.offset);
            }
            Recorded::Normalise(normalise) => {
                point(&mut normalise.values);
                normalise.present.iter_mut().chain(&mut normalise.epsilon).for_each(point);
            }
        }
    }

    /// Does it.
    pub fn run(&self, precision: Precision, pool: &Pool) -> Buffer {
        fn run(operation: &impl Typed, precision: Precision, pool: &Pool) -> Buffer {
            match precision {
                Precision::Double => operation.run::<f64>(pool),
                Precision::Single => operation.run::<f32>(pool),
            }
        }
        match self {
            Recorded::Point(point) => run(point, precision, pool),
            Recorded::Fold(fold) => run(fold, precision, pool),
            Recorded::Product(product) => run(product, precision, pool),
            Recorded::Normalise(normalise) => run(normalise, precision, pool),
        }
    }
}
