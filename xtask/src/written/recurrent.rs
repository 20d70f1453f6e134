//! Recurrent cells as equations: `learner-cell.tl` and `learner-lstm.tl`.

use anyhow::{Result, anyhow, ensure};
use linear_logic_rnn::cell::Cell;
use linear_logic_rnn::task::batch::Batch;
use tensor_logic::engine::Numbers;
use tensor_logic::fast::{Fast, Precision};
use tensor_logic::notebook::Notebook;

use super::Bound;

/// A program of a cell.
pub(crate) struct Form {
    text: &'static str,
    /// Its weights, and those of the crate. They lie alike.
    weights: &'static [(&'static str, &'static str)],
    /// Its sizes, and a weight of the crate with the place along which each runs.
    sizes: &'static [(&'static str, &'static str, usize)],
}

/// The linear-logic cell of its authors' code, with the programs 1 and 2.
pub(crate) const CELL: Form = Form {
    text: include_str!("../../../crates/tensor-logic/programs/learner-cell.tl"),
    weights: &[
        ("H", "H"),
        ("U", "U"),
        ("B", "B"),
        ("V", "V"),
        ("I", "I"),
        ("J", "J"),
        ("P", "P"),
        ("C", "C"),
        ("E", "E"),
        ("F", "F"),
    ],
    sizes: &[("Units", "H", 0), ("Aux", "J", 0)],
};

/// The LSTM.
pub(crate) const LSTM: Form = Form {
    text: include_str!("../../../crates/tensor-logic/programs/learner-lstm.tl"),
    weights: &[("W", "W"), ("R", "R"), ("B", "b"), ("E", "E"), ("F", "F")],
    sizes: &[("Units", "R", 1)],
};

/// A cell and one batch, as a program with its data.
pub(crate) struct Written {
    bound: Bound,
    engine: Fast,
    /// The weights of the program in the order of the cell's, with their sizes.
    weights: Vec<(&'static str, usize)>,
}

impl Written {
    /// A cell on a batch.
    ///
    /// # Errors
    /// A cell of other weights; the refusals of the program.
    pub(crate) fn new(form: &Form, cell: &Cell, batch: &Batch, precision: Precision) -> Result<Self> {
        let own = |name: &str| form.weights.iter().find(|(_, theirs)| *theirs == name).map(|(own, _)| *own);
        let named = cell.step.trained().map(|(_, weight)| {
            let found = own(&weight.name).map(|own| (own, weight.len()));
            found.ok_or_else(|| anyhow!("the program has no weight {}", weight.name))
        });
        let weights: Vec<(&str, usize)> = named.collect::<Result<_>>()?;
        ensure!(weights.len() == form.weights.len(), "a cell without all weights of the program");
        let mut notebook = Notebook::new(form.text);
        for (name, theirs, place) in form.sizes {
            let weight = cell.step.trained().map(|(_, weight)| weight).find(|weight| weight.name == *theirs);
            let size = weight.and_then(|weight| weight.shape.get(*place));
            let size = size.ok_or_else(|| anyhow!("no size of {theirs}"))?;
            notebook.set(name, *size as f64);
        }
        notebook.set("Steps", batch.steps as f64);
        notebook.set("Strings", batch.sequences as f64);
        let places = (0..batch.steps).flat_map(|step| (0..batch.sequences).map(move |s| [s, step]));
        let tuples = |symbols: &[u32], counts: &dyn Fn(usize) -> bool| -> Vec<[i64; 3]> {
            let all = places.clone().zip(symbols).filter(|([_, step], _)| counts(*step));
            all.map(|([s, step], symbol)| [s as i64, step as i64, i64::from(*symbol)]).collect()
        };
        notebook.relation("Token", tuples(&batch.tokens, &|_| true));
        notebook.relation("Target", tuples(&batch.targets, &|step| batch.mask.get(step) == Some(&true)));
        let names: Vec<&str> = weights.iter().map(|(name, _)| *name).collect();
        let bound = Bound::with_gradients(&mut notebook, "Loss", &names)?;
        Ok(Self { bound, engine: Fast::default().with_precision(precision), weights })
    }

    /// The mean loss in nats, and its gradient by each weight of the cell in their order.
    ///
    /// # Errors
    /// The refusals of the program.
    pub(crate) fn slopes<T: Copy + Into<f64>>(&mut self, theta: &[T]) -> Result<(f64, Vec<Numbers>)> {
        let mut rest = theta;
        let mut given: Vec<(&str, Vec<f64>)> = Vec::new();
        for (name, size) in &self.weights {
            let (here, behind) = rest.split_at(rest.len().min(*size));
            rest = behind;
            given.push((name, here.iter().map(|x| (*x).into()).collect()));
        }
        let mut values = self.bound.values(&mut self.engine, given)?.into_iter();
        let loss = values.next().and_then(|loss| loss.first()).unwrap_or(f64::NAN);
        Ok((loss, values.collect()))
    }
}
