//! What the tests share.

use fol::ast::Formula;
use fol::read::{Mode, Source, parse};
use fol_inference::generate::Maker;
use fol_inference::instance::{Format, Instance, Order};
use fol_inference::space::Space;
use fol_prover::{Limit, Problem, Verdict, prove};
use seeded::{Family, Stream};

/// The draws of a number, counted from the seed of the run.
pub(crate) fn drawn(name: &str, item: u64) -> Stream {
    Family::new("fol-inference", name, seeded::test_seed()).stream(item)
}

/// A space of one format.
pub(crate) fn space(order: Order, format: Format) -> Space {
    let mut space = Space::usual(order).unwrap();
    space.formats = Format::ALL.map(|f| u64::from(f == format));
    space
}

/// Instances by the number of their streams.
pub(crate) fn instances(name: &str, space: Space, count: u64) -> Vec<Instance> {
    let mut maker = Maker::new(space).unwrap();
    (0..count).map(|item| maker.instance(&mut drawn(name, item)).unwrap()).collect()
}

/// Premises and conclusion of a sequent; names mean the same in all of them.
pub(crate) fn sequent(text: &str) -> (Vec<Formula>, Formula) {
    let problem = Problem::read(text).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
    (problem.premises().to_vec(), problem.conclusion().unwrap().clone())
}

pub(crate) fn formula(text: &str) -> Formula {
    parse(text, Source::Text, Mode::Lenient).unwrap().text.as_formula().unwrap().clone()
}

/// Whether a conclusion follows; the fragment is decided within any usual limit.
pub(crate) fn follows(premises: &[Formula], conclusion: &Formula) -> bool {
    let problem = Problem::new(premises.to_vec(), Some(conclusion.clone())).unwrap();
    match prove(&problem, Limit::default()).verdict {
        Verdict::Entailed(_) => true,
        Verdict::Refuted(_) => false,
        Verdict::Unknown { reason } => {
            panic!("{}: {reason}", fol::print(&problem.to_text(), fol::Style::Unicode))
        }
    }
}
