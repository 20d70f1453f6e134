//! What is numbered, and which levels recursions have.

use crate::engine::Storage;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tensor_logic_core::analyse::analyse;
use tensor_logic_core::lower::{NoFiles, Options};

use super::{Numbering, Split, apart};
use crate::engine::Budget;
use crate::function::UserFunctions;
use crate::kernels::{Pool, Precision};
use crate::program::{Program, TensorId};
use crate::store::machine::{Levels, Machine};

/// What a program is taken apart into where these tensors are asked for, and what was not looked for.
struct Found {
    program: Program,
    splits: BTreeMap<TensorId, Split>,
    levels: BTreeMap<TensorId, Levels>,
    skipped: BTreeSet<TensorId>,
}

impl Found {
    fn of(text: &str, goals: &[&str]) -> Found {
        let analysed = analyse(text, &mut NoFiles, &UserFunctions::default(), &Options::default());
        let mut program = analysed.map(|analysed| analysed.program).unwrap_or_default();
        let goals: Vec<TensorId> = goals.iter().map(|name| named(&program, name)).collect();
        let needed = program.needs(&goals);
        let machine = |program: Arc<Program>| {
            let budget = Budget { tuples: 1000, bytes: 1 << 24 };
            Machine::new(program, budget, Storage::Auto, Precision::Double, Arc::new(Pool::default()))
        };
        let unknown = BTreeSet::new();
        let mut numbering = Numbering::new(&machine, &unknown, needed);
        let (splits, levels) = apart(&mut program, Storage::Auto, &mut numbering);
        let skipped = numbering.skipped;
        Found { program, splits, levels, skipped }
    }

    /// The relation that numbers the tuples of another.
    fn row(&self, name: &str) -> Option<TensorId> {
        Some(self.splits.get(&named(&self.program, name))?.numbers.as_ref()?.row)
    }
}

fn named(program: &Program, name: &str) -> TensorId {
    let at = program.tensors.iter().position(|tensor| tensor.name == name && !tensor.hidden);
    TensorId(at.map_or(u32::MAX, |at| at as u32))
}

const LAYERS: &str = "d, e : 2\nX[d] ~ [1, 2]\nW[d, e] ~ ones()\nE(0); E(3)\nF(x, d) += E(x) X[d]\nG(x, e) += tanh(F(x, d) W[d, e])\n\
                      H(x, d) += G(x, d) | G(x, 0) > 0\n";

#[test]
fn relations_of_the_same_tuples_share_their_numbers() {
    let found = Found::of(LAYERS, &["G"]);
    assert!(found.row("F").is_some());
    assert_eq!(found.row("F"), found.row("G"));
    // What decides by numbers of its own has no tuples that follow from data.
    assert_eq!(Found::of(LAYERS, &["H"]).row("H"), None);
}

#[test]
fn tuples_that_nobody_asks_for_are_not_looked_for() {
    let found = Found::of(LAYERS, &["F"]);
    assert!(found.row("F").is_some());
    assert_eq!(found.row("G"), None);
    assert!(found.skipped.contains(&named(&found.program, "G")));
    assert!(!found.skipped.contains(&named(&found.program, "F")));
}

#[test]
fn levels_are_longest_ways() {
    let count = |facts: &str| {
        let text = format!(
            "d : 2\nX[d] ~ [1, 2]\nN(0)\n{facts}\nH(x, d) += N(x) X[d]\nH(x, d) += tanh(C(x, y) H(y, d))\n"
        );
        let levels: Vec<u32> = Found::of(&text, &["H"]).levels.values().map(|levels| levels.count).collect();
        levels
    };
    assert_eq!(count("C(1, 0); C(2, 1)"), [3]);
    // The longest of two ways, and what hangs on nothing has no tuple.
    assert_eq!(count("C(1, 0); C(2, 1); C(2, 0); C(3, 2); C(3, 0); C(9, 8)"), [4]);
    // A circle that a tuple stands on is left to rounds; one that none stands on is none.
    assert!(count("C(1, 0); C(1, 1)").is_empty());
    assert_eq!(count("C(1, 0); C(5, 6); C(6, 5)"), [2]);
}
