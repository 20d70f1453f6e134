//! The cases R1 to R12: inputs, programs, values, and who else computes them.

/// A case.
pub(super) struct Case {
    /// Its id.
    pub(super) id: &'static str,
    /// The folder of its input.
    pub(super) input: &'static str,
    /// The name of its program.
    pub(super) program: &'static str,
    /// The program.
    pub(super) text: &'static str,
    /// The relations of the result, and how many tuples they have.
    pub(super) expected: &'static [(&'static str, u64)],
    /// The sum of all values, where the result has values.
    pub(super) sum: Option<f64>,
    /// The peers.
    pub(super) peers: &'static [Peer],
}

/// An engine that computes a case too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// `ascent_b`, one thread.
    Ascent,
    /// `ascent_b` with the parallel macro.
    AscentPar,
    /// `datafrog_b`.
    Datafrog,
    /// `crepe_b`.
    Crepe,
    /// `dd_tc`.
    Differential,
    /// `duck.py`.
    DuckDb,
    /// `tc.pl` with tabling; the input is written as a Prolog program.
    SwiProlog,
    /// `tc.lp`: the whole process, grounding and printing.
    Gringo,
}

macro_rules! program {
    ($name:literal) => {
        include_str!(concat!("programs/", $name, ".tl"))
    };
}

use Peer::{Ascent, AscentPar, Crepe, Datafrog, Differential, DuckDb, Gringo, SwiProlog};

/// All cases.
#[rustfmt::skip]
pub(super) const CASES: &[Case] = &[
    Case { id: "R1", input: "g2k", program: "tc", text: program!("tc"), expected: &[("Tc", 3_930_309)], sum: None,
        peers: &[Ascent, AscentPar, Datafrog, DuckDb, Crepe, Differential] },
    Case { id: "R2", input: "g5k", program: "tc", text: program!("tc"), expected: &[("Tc", 24_685_982)], sum: None,
        peers: &[Ascent, AscentPar, Datafrog, DuckDb] },
    Case { id: "R3", input: "blocks", program: "tc", text: program!("tc"), expected: &[("Tc", 3_300_000)], sum: None,
        peers: &[Datafrog, Ascent, DuckDb] },
    Case { id: "R4", input: "chain2k", program: "tc", text: program!("tc"), expected: &[("Tc", 2_001_000)], sum: None,
        peers: &[Datafrog, Ascent] },
    Case { id: "R5", input: "g1k", program: "sg", text: program!("sg"), expected: &[("Sg", 978_121)], sum: None,
        peers: &[Datafrog, Ascent, AscentPar, DuckDb] },
    Case { id: "R6", input: "and4000", program: "and", text: program!("and"), expected: &[("Pt", 2_215_749)], sum: None,
        peers: &[Ascent] },
    Case { id: "R7", input: "cspa3k", program: "cspa", text: program!("cspa"), sum: None,
        expected: &[("Vf", 156_412), ("Ma", 33_980), ("Va", 751_977)], peers: &[Ascent] },
    Case { id: "R8", input: "hub", program: "tri", text: program!("tri"), expected: &[("Tri", 599_997)], sum: None,
        peers: &[Datafrog] },
    Case { id: "R9", input: "big", program: "reach", text: program!("reach"), expected: &[("Reach", 980_290)], sum: None,
        peers: &[Datafrog, Ascent, DuckDb] },
    Case { id: "R10", input: "onto30k", program: "onto", text: program!("onto"), sum: None,
        expected: &[("S", 1_181_555), ("E", 2_820_728)], peers: &[Ascent] },
    Case { id: "R11", input: "w1k", program: "short", text: program!("short"), expected: &[("D", 983_066)],
        sum: Some(150_485_777.0), peers: &[Ascent] },
    Case { id: "R12", input: "g1k", program: "tc", text: program!("tc"), expected: &[("Tc", 983_066)], sum: None,
        peers: &[Ascent, AscentPar, Datafrog, DuckDb, Crepe, Differential, SwiProlog, Gringo] },
];
