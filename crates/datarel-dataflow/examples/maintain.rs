//! Maintaining against deriving anew, measured: `cargo run --release -p datarel-dataflow --features timely --example maintain
//! -- [WORKERS] [BATCHES]`.
//!
//! The graphs g1k and g2k of the benches: their closures, and distances from one node; and distances among 100,000 nodes at random. In
//! each batch one arc goes and one comes, at random. The medians of the times of a batch, of the same dataflow from nothing, and of the engine of `datarel` from nothing;
//! the answers are compared after the last batch.
#![expect(clippy::print_stdout, reason = "what is measured is printed")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use datarel::{Atom, Const, Constants, Database, Limits, RelationId, Ring, Rule, Term, Value};
use datarel_dataflow::{Maintained, Options, Refusal, Update, evaluate};
use seeded::Family;

/// What is derived, of how many nodes and arcs.
const CASES: [(&str, u64, usize); 4] = [
    ("closure", 1000, 5000),
    ("closure", 2000, 10_000),
    ("distances", 1000, 5000),
    ("distances", 100_000, 250_000),
];

/// The arcs of the benches' graph of this size: SplitMix64 (Steele, Lea & Flood 2014) from 42.
fn of_the_benches(nodes: u64, arcs: usize) -> BTreeSet<(u32, u32)> {
    let mut state = 42_u64;
    let mut below = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((((z ^ (z >> 31)) >> 32) * nodes) >> 32) as u32
    };
    let mut found = BTreeSet::new();
    while found.len() < arcs {
        found.insert((below(), below()));
    }
    found
}

/// A graph that changes.
struct Graph {
    nodes: u64,
    arcs: Vec<(u32, u32)>,
    known: BTreeSet<(u32, u32)>,
    random: seeded::Stream,
}

impl Graph {
    /// One more arc.
    fn arc(&mut self) -> (u32, u32) {
        loop {
            let arc = (self.random.below(self.nodes) as u32, self.random.below(self.nodes) as u32);
            if self.known.insert(arc) {
                self.arcs.push(arc);
                return arc;
            }
        }
    }

    /// One arc goes and one comes.
    fn change(&mut self) -> [((u32, u32), bool); 2] {
        let at = self.random.below(self.arcs.len() as u64) as usize;
        let old = self.arcs.swap_remove(at);
        self.known.remove(&old);
        [(old, false), (self.arc(), true)]
    }
}

/// What is derived: the relation of the answers, and the rules.
fn program(kind: &str, nodes: u64, arcs: &[(u32, u32)]) -> Result<(Database, Vec<Rule>), Refusal> {
    let mut database = Database::new(Constants::integers(0, nodes as i64 - 1));
    let [x, y, z] = [0, 1, 2].map(Term::variable);
    let rows: Vec<u32> = arcs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let (arc, answer) = (RelationId(0), RelationId(1));
    let rules = if kind == "closure" {
        database.declare("arc", 2, Ring::BOOLEAN);
        database.declare("path", 2, Ring::BOOLEAN);
        database.insert(arc, &rows, &[])?;
        vec![
            Rule::new(answer, [x, y], [Atom::new(arc, [x, y]).into()]),
            Rule::new(answer, [x, z], [Atom::new(answer, [x, y]).into(), Atom::new(arc, [y, z]).into()]),
        ]
    } else {
        database.declare("arc", 2, Ring::MIN_PLUS);
        database.declare("distance", 1, Ring::MIN_PLUS);
        let lengths: Vec<Value> = arcs.iter().map(|(a, b)| length(*a, *b)).collect();
        database.insert(arc, &rows, &lengths)?;
        vec![
            Rule { weight: Some(Value::real(0.0)), ..Rule::new(answer, [Term::Constant(0)], []) },
            Rule::new(answer, [y], [Atom::factor(answer, [x]).into(), Atom::factor(arc, [x, y]).into()]),
        ]
    };
    Ok((database, rules))
}

fn length(a: u32, b: u32) -> Value {
    Value::real(f64::from((a * 7 + b * 13) % 10 + 1))
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let since = Instant::now();
    let done = work();
    (done, since.elapsed())
}

fn main() -> Result<(), Refusal> {
    let arguments: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let workers = arguments.first().copied().unwrap_or(1);
    let batches = arguments.get(1).copied().unwrap_or(31);
    for (kind, nodes, arcs) in CASES {
        let random = Family::named("maintain").stream(0);
        // Of the large one of that stream node 0 reaches three others.
        let known = if nodes > 2000 { BTreeSet::new() } else { of_the_benches(nodes, arcs) };
        let mut graph = Graph { nodes, arcs: known.iter().copied().collect(), known, random };
        while graph.arcs.len() < arcs {
            graph.arc();
        }
        let (database, rules) = program(kind, nodes, &graph.arcs)?;
        let options = Options { workers, ..Options::default() };
        let answer = RelationId(1);
        let (started, start) = timed(|| Maintained::start(&database, &rules, &[answer], &options));
        let (mut maintained, first) = started?;
        let mut state: BTreeSet<(Vec<Const>, Option<u64>)> = BTreeSet::new();
        let key =
            |change: &datarel_dataflow::Change| (change.tuple.clone(), change.value.map(|value| value.0));
        state.extend(first.iter().map(key));
        let (mut batch, mut anew, mut engine, mut changed) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for number in 0..batches {
            let valued = kind != "closure";
            let updates = graph.change().map(|((a, b), comes)| Update {
                relation: RelationId(0),
                tuple: [a, b].map(|node| Const::Int(i64::from(node))).to_vec(),
                value: valued.then(|| length(a, b)),
                comes,
            });
            let (applied, took) = timed(|| maintained.apply(&updates));
            let (changes, _) = applied?;
            batch.push(took);
            changed += changes.len();
            for change in &changes {
                if change.came {
                    state.insert(key(change));
                } else {
                    state.remove(&key(change));
                }
            }
            // From nothing a few times are enough.
            if number % 6 == 0 {
                let (mut one, rules) = program(kind, nodes, &graph.arcs)?;
                let mut other = one.clone();
                let (done, took) = timed(|| evaluate(&mut one, &rules, &[answer], &options));
                done?;
                anew.push(took);
                let (done, took) = timed(|| datarel::evaluate(&mut other, &rules, &Limits::default()));
                done?;
                engine.push(took);
                assert_eq!(one.relation(answer).rows(), other.relation(answer).rows());
                assert_eq!(one.relation(answer).len(), state.len());
                assert!(
                    one.relation(answer).rows().chunks_exact(one.relation(answer).arity()).enumerate().all(
                        |(at, row)| {
                            let tuple: Vec<Const> =
                                row.iter().map(|code| one.constants.value(*code)).collect();
                            state.contains(&(
                                tuple,
                                one.relation(answer).values().get(at).map(|value| value.0),
                            ))
                        }
                    )
                );
            }
        }
        println!(
            "{kind} of {nodes} nodes and {arcs} arcs: {} tuples, {workers} workers, {batches} batches of one arc less and one more, {:.1} changes of the answer by one: \
             start {:.0} ms, batch {:.2} ms (slowest {:.1}), dataflow anew {:.0} ms, engine anew {:.2} ms (medians)",
            state.len(),
            changed as f64 / batches.max(1) as f64,
            start.as_secs_f64() * 1e3,
            median(&mut batch),
            batch.last().map_or(0.0, |time| time.as_secs_f64() * 1e3),
            median(&mut anew),
            median(&mut engine),
        );
    }
    Ok(())
}
