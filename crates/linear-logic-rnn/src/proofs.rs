//! A cell from proofs, in code: the master cell of section 4 without a document.
//!
//! A [`Proof`] is a text of the language with what fills its arguments, one [`Slot`] for each; [`Proofs`] are the summands
//! of one cell, with its sizes. The state is the atom α in which the type of the proof ends, S₁ ⊸ … ⊸ Sₙ ⊸ α ⊸ α.
//!
//! ```
//! use linear_logic_rnn::options::{GateAct, Sigma, Slot};
//! use linear_logic_rnn::proofs::{Proof, Proofs};
//!
//! // h′ = tanh((p₀ V(x) + p₁ V(x)²) h + H h + U x + B), p = softmax(W h + b)
//! let proof = Proof::new(r"\n v. derelict n v : !int{h} -o !(h -o h) -o h -o h")
//!     .slot(Slot::programs(["1", "2"]).act(GateAct::Softmax))
//!     .slot(Slot::input());
//! let cell = Proofs::new().input(2).hidden(16).act(Sigma::Tanh).and(proof).cell()?;
//! assert_eq!((cell.count(), cell.multiply_adds()), (850, 1440));
//! assert_eq!((cell.degree().between, cell.degree().operators), (2, 2));
//!
//! let refusal = Proofs::new().input(2).hidden(16).and(Proof::new("2{h}")).cell().unwrap_err();
//! assert!(refusal.message.contains("before the state: 1 (`!(h -o h)`); slots: 0"));
//! # Ok::<(), linear_logic_rnn::error::Refusal>(())
//! ```

use std::collections::BTreeMap;

use crate::cell::Cell;
use crate::error::{Kind, Refusal, Result};
use crate::options::{
    Configuration, Master, MasterPlace, MasterProjection, Sigma, Sizes, Slot, WordOrder, of,
};
use crate::program::signature;

/// A proof with what fills its arguments: one summand of a cell.
#[derive(Debug, Clone)]
pub struct Proof {
    text: String,
    slots: Vec<Slot>,
    dims: BTreeMap<String, usize>,
    projected: Option<usize>,
    place: MasterPlace,
    order: WordOrder,
}

impl Proof {
    /// A text of the language, with a type behind it where that cannot be found: `TERM : TYPE`.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            slots: Vec::new(),
            dims: BTreeMap::new(),
            projected: None,
            place: MasterPlace::In,
            order: WordOrder::Literal,
        }
    }

    /// Fills the next argument.
    #[must_use]
    pub fn slot(mut self, slot: Slot) -> Self {
        self.slots.push(slot);
        self
    }

    /// The dimension of an atom. That of the state is `hidden`, or that of the projection.
    #[must_use]
    pub fn dimension(mut self, atom: impl Into<String>, n: usize) -> Self {
        self.dims.insert(atom.into(), n);
        self
    }

    /// The proof acts in a space of n dimensions, which h reaches by weights J (n, H) and leaves by I (H, n).
    #[must_use]
    pub fn projected(mut self, n: usize) -> Self {
        self.projected = Some(n);
        self
    }

    /// Adds the summand behind σ, not before.
    #[must_use]
    pub fn outside(mut self) -> Self {
        self.place = MasterPlace::Out;
        self
    }

    /// How words are read; `literal` if nothing is said.
    #[must_use]
    pub fn order(mut self, order: WordOrder) -> Self {
        self.order = order;
        self
    }

    /// The summand as an option of the cell; `at` is its number.
    fn master(&self, at: usize, sizes: &Sizes) -> Result<Master> {
        let what = format!("masters[{at}]");
        let signature = signature(&what, &self.text, self.order.order())?;
        let state = match signature.result {
            Some((from, to)) if from == to => from,
            _ => {
                let why =
                    format!("the proof has the type `{}`, which does not end in `α -o α`", signature.text);
                return Err(Refusal::new(Kind::Proof, format!("{what}: {why}")));
            }
        };
        let mut dims = self.dims.clone();
        let project = match self.projected {
            Some(n) => {
                let given = dims.insert(state.clone(), n);
                if let Some(given) = given.filter(|given| *given != n) {
                    let why = format!("{state} has {given} dimensions, and the projection goes to {n}");
                    return Err(Refusal::config(format!("{what}: {why}")));
                }
                MasterProjection::Learned
            }
            None => {
                dims.entry(state.clone()).or_insert(sizes.need("hidden")?);
                MasterProjection::Identity
            }
        };
        let (slots, place, order) = (self.slots.clone(), self.place, self.order);
        Ok(Master { proof: self.text.clone(), state, dims, slots, place, project, order })
    }
}

/// The proofs of a cell, and its sizes.
#[derive(Debug, Clone, Default)]
pub struct Proofs {
    proofs: Vec<Proof>,
    sizes: Sizes,
    act: Option<Sigma>,
}

impl Proofs {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of features of the input; a cell needs it.
    #[must_use]
    pub fn input(mut self, n: usize) -> Self {
        self.sizes.input = Some(n);
        self
    }

    /// The number of features of the state; a cell needs it.
    #[must_use]
    pub fn hidden(mut self, n: usize) -> Self {
        self.sizes.hidden = Some(n);
        self
    }

    /// Gives the cell a readout of so many classes, E h + F.
    #[must_use]
    pub fn output(mut self, n: usize) -> Self {
        self.sizes.output = Some(n);
        self.sizes.readout = Some(0);
        self
    }

    /// σ; `relu` if nothing is said.
    #[must_use]
    pub fn act(mut self, act: Sigma) -> Self {
        self.act = Some(act);
        self
    }

    /// One more summand.
    #[must_use]
    pub fn and(mut self, proof: Proof) -> Self {
        self.proofs.push(proof);
        self
    }

    /// What the cell is told, as a run or a document has it: `masters`, `act`.
    ///
    /// # Errors
    /// `proof`: a text that does not check, or whose type does not end in α ⊸ α; `config`: no `hidden`.
    pub fn configuration(&self) -> Result<Configuration> {
        let all = self.proofs.iter().enumerate();
        let masters: Result<Vec<Master>> = all.map(|(at, proof)| proof.master(at, &self.sizes)).collect();
        Ok(Configuration::Master(of::Master { act: self.act, masters: Some(masters?) }))
    }

    /// The cell.
    ///
    /// # Errors
    /// Those of [`Proofs::configuration`], and: `proof`, slots that do not fit the type; `config`, a size, a dimension or a
    /// key of a slot that is missing or does not belong there; `shape`, a constant.
    pub fn cell(&self) -> Result<Cell> {
        // A size that is missing is said before the proofs are looked at.
        self.sizes.need("input")?;
        Cell::of(&self.configuration()?, &self.sizes)
    }
}
