//! Plans and profiles: what a plan says comes true, what is looked at stays the same, and the numbers are those of the run.
#![expect(clippy::unwrap_used, reason = "a test that cannot run its programs has failed")]

use std::collections::BTreeSet;

use crate::common::{self, answers, generator};
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine};
use tensor_logic::explain::explain;
use tensor_logic::fast::{Fast, Precision, Storage};
use tensor_logic::files::Files;
use tensor_logic::plan::plan;
use tensor_logic::profile::{Component, Executor, Layout, Profile, fields, text};
use tensor_logic::source::Source;
use tensor_logic::world::{Calculated, World};

const BUDGET: Budget = Budget { tuples: 1_000_000, bytes: 1 << 30 };

/// A program's answers, what was noted of them, and the plan made before.
fn noted(text: &str, storage: Storage) -> Option<(Calculated, Profile, Profile)> {
    let source = Source::new("text", text.as_bytes());
    let mut engine = Auto::new(Box::new(Fast::with_storage(storage)));
    engine.observe(true);
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(&source, Files::new(folder.path()), 0);
    let tree = world.read().ok()?;
    let analysed = world.analyse(tree).ok()?;
    let planned = plan(&analysed.program, &Fast::with_storage(storage), BUDGET).ok()?;
    let found = World::new(&source, Files::new(folder.path()), 0).calculate(&mut engine, BUDGET).ok()?;
    Some((found, engine.observed().unwrap(), planned))
}

fn executors<'p>(profile: &'p Profile, names: &[String]) -> BTreeSet<Executor> {
    let own = |component: &&'p Component| component.tensors.iter().any(|name| names.contains(name));
    profile.components.iter().filter(own).map(|component| component.executor).collect()
}

/// Whether each component that was evaluated was planned so; the numbers of those compared.
fn comes_true(name: &str, text: &str, storage: Storage) -> (usize, usize) {
    let Some((found, profile, planned)) = noted(text, storage) else { return (0, 0) };
    // A query in another semiring is another program; sampling evaluates parts; a refusal ends the run.
    if found.outcome.refusal.is_some() || text.contains("@semiring") || text.contains("@sample") {
        return (0, 0);
    }
    let (mut compared, mut kept) = (0, 0);
    for component in &profile.components {
        let names = &component.tensors;
        let helper = names.iter().any(|name| {
            ["demand of", "ground rules of", "values of", "walk", "end", "given", "part"]
                .iter()
                .any(|word| name.starts_with(word))
        });
        let passed = matches!(component.executor, Executor::Border | Executor::Given);
        if passed || helper || text.contains("batch=") || text.contains('|') {
            continue;
        }
        let said = executors(&planned, names);
        // What circuits find is handed over by an equation.
        if said.contains(&Executor::Circuits) && component.executor == Executor::Whole {
            continue;
        }
        // A proof asks for each relation alone: rules derive some that come with others in the query.
        if text.contains("@explain") && component.executor == Executor::Rules {
            continue;
        }
        assert!(said.contains(&component.executor), "{name}: {names:?} {:?}, {said:?}", component.executor);
        compared += 1;
        for stored in &component.stored {
            let said = planned.components.iter().filter(|c| c.executor == component.executor);
            let said = said.flat_map(|c| &c.stored).filter(|other| other.tensor == stored.tensor);
            let layouts: Vec<Layout> = said.map(|other| other.layout).collect();
            let relation = |layout| matches!(layout, Layout::Columns | Layout::Bits);
            // Where the storage is forced, a support in which two bindings make one element becomes dense after all.
            if storage != Storage::Auto
                || layouts.contains(&Layout::Open)
                || layouts.iter().any(|l| relation(*l))
            {
                continue;
            }
            assert!(layouts.contains(&stored.layout), "{name}: {stored:?}, {layouts:?}");
            kept += 1;
        }
    }
    (compared, kept)
}

#[test]
fn plans_of_the_corpus_come_true() {
    let (mut compared, mut kept) = (0, 0);
    for (name, text) in common::all_programs() {
        for storage in [Storage::Auto, Storage::Sparse, Storage::Dense] {
            let (more, and) = comes_true(&name, &text, storage);
            compared += more;
            kept += and;
        }
    }
    assert!(compared > 1000 && kept > 200, "{compared} {kept}");
}

#[test]
fn plans_of_random_programs_come_true() {
    let mut stream = common::stream("profile");
    let (mut compared, mut kept) = (0, 0);
    for number in 0..400 {
        let program = generator::program(&mut stream).join("\n");
        let (more, and) = comes_true(&format!("{number}\n{program}"), &program, Storage::Auto);
        compared += more;
        kept += and;
    }
    assert!(compared > 150 && kept > 90, "{compared} {kept}");
}

/// Looked at or not, the same bits come out, and what is printed of it reads back.
#[test]
fn answers_do_not_depend_on_being_looked_at() {
    for (name, program) in common::all_programs() {
        let Some((found, profile, planned)) = noted(&program, Storage::Auto) else { continue };
        let mut engine = Auto::new(Box::new(Fast::default()));
        let folder = tempfile::tempdir().unwrap();
        let plain = answers::calculated(&program, folder.path(), 0, &mut engine).unwrap();
        assert_eq!(plain.text(), found.text(), "{name}");
        assert_eq!(engine.observed(), None);
        let explanation = explain(&plain.program, &program).with_plan(&planned).with_measured(&profile);
        assert!(explanation.text().contains("\nEvaluation, in this order\n"), "{name}");
        for (key, value) in explanation.fields().iter().chain(&fields(&profile, &program, profile.time)) {
            let parsed: serde_json::Value = serde_json::from_str(value).unwrap();
            assert!(parsed.is_array() || parsed.is_number(), "{name}: {key}");
        }
        assert!(text(&profile, &program, profile.time).ends_with('\n'), "{name}");
        let parts: std::time::Duration = profile.components.iter().map(|component| component.time).sum();
        assert!(parts <= profile.time, "{name}: {parts:?} of {:?}", profile.time);
    }
}

/// The numbers of a run that one can count by hand.
#[test]
fn steps_of_learning_are_added_up() {
    let program = "W ~ 0; X = [1, 2, 3]; Y = [2, 4, 6]; P[i] = W X[i]; Loss = (P[i] - Y[i])^2\n\
                   Loss? @minimize(opt=sgd, lr=0.01, steps=20)\n";
    let (_, profile, planned) = noted(program, Storage::Auto).unwrap();
    let loss: Vec<&Component> = profile.of("Loss").collect();
    let [loss] = loss.as_slice() else { panic!("{loss:?}") };
    // Before the first step, once a step, and behind the last; what did not change is not evaluated again.
    assert!((21..=22).contains(&loss.calls), "{loss:?}");
    assert_eq!((loss.executor, loss.rows_out), (Executor::Whole, loss.calls));
    // P and Y have three elements each.
    assert_eq!(loss.rows_in(), 6 * loss.calls);
    let gradient: Vec<&Component> = profile.of("Grad_W").collect();
    assert_eq!(gradient.len(), 1);
    assert_eq!(gradient[0].calls, 20);
    assert!(gradient[0].parts[0].text.starts_with("Grad_W = "), "{gradient:?}");
    assert!(planned.of("Grad_W").next().is_some());
    assert!(profile.evaluations >= 22);
    let table = text(&profile, program, profile.time);
    let first = table.lines().nth(2).unwrap();
    let longest = profile.by_time()[0];
    assert!(first.contains(&longest.tensors.join(", ")), "{table}");
}

#[test]
fn rounds_supports_and_storage_are_said() {
    let program = "i, j : 2000\nA[i, j] = 1 | 0 <= i - j, i - j <= 2\nF = 0.5 F + 1\nN = A[i, j] F\nN?\n";
    let (found, profile, planned) = noted(program, Storage::Auto).unwrap();
    let sum = found.outcome.answers[0].content.numbers()[0];
    assert!((sum - 11994.0).abs() < 1e-6, "{sum}");
    for said in [&planned, &profile] {
        let band = said.of("A").next().unwrap();
        assert_eq!((band.stored[0].layout, band.stored[0].rows), (Layout::Support, Some(5997)));
        let order = &band.parts[0].orders[0];
        assert_eq!((order.rows, order.of), (Some(5997.0), Some(4e6)));
        assert_eq!(order.steps.last().unwrap(), "j as compared (5,997 rows)");
    }
    let limit = profile.of("F").next().unwrap();
    // 2 (1 - 2^-n) comes within 1e-12 of its limit.
    assert_eq!((limit.executor, limit.rounds), (Executor::Rounds, 40));
    assert!(limit.residual.unwrap() < 1e-12);
    let stored = Fast::default().with_precision(Precision::Single);
    let source = Source::new("text", program.as_bytes());
    let mut world = World::new(&source, Files::new("."), 0);
    let analysed = world.analyse(world.read().unwrap()).unwrap();
    let planned = plan(&analysed.program, &stored, BUDGET).unwrap();
    assert_eq!(planned.of("F").next().unwrap().stored[0].layout, Layout::Dense32);
}

/// What is derived once is not derived again, and the profile says so.
#[test]
fn queries_over_one_closure_cost_one() {
    let arcs: String = (0..60).map(|at| format!("E({at}, {})\n", (at * 7 + 1) % 60)).collect();
    let queries: String = (0..20).map(|at| format!("R(x, {at})?\n")).collect();
    let program = format!("{arcs}R(x, y) <- E(x, y)\nR(x, z) <- R(x, y), R(y, z)\nR(x, y)?\n{queries}");
    let (_, profile, _) = noted(&program, Storage::Auto).unwrap();
    let closure: Vec<&Component> = profile.of("R").filter(|c| c.executor == Executor::Rules).collect();
    assert_eq!(closure.iter().map(|component| component.calls).sum::<u64>(), 1, "{closure:?}");
}

/// All values of the targets of a model come from one evaluation, where the targets are the model's own.
#[test]
fn targets_are_evaluated_together() {
    let chain = "x0, x1, x2, x3 : 9\nF[x0, x1] = exp(-(x0 - x1)^2 / 7)\nG[x1, x2] = 1 + x1 x2\n\
                 H[x2, x3] = x2 + 2 x3\n\
                 Z = F[x0, x1] G[x1, x2] H[x2, x3] | x0 <= x3\n";
    // A factor that is read under two names is restricted in both: that is another model for each value.
    let twice = chain.replace("H[x2, x3] | x0 <= x3", "F[x2, x3] | x0 <= x3");
    let chain_of = |together: bool| if together { chain } else { &twice };
    for (query, together) in
        [("Z[x2 | x0=3]?", true), ("Z[x3, x1 | ]?", true), ("Z[x3, x1 | ]?", false), ("Z[x0 | x2=1]?", true)]
    {
        let (found, profile, _) = noted(&format!("{}{query}\n", chain_of(together)), Storage::Auto).unwrap();
        assert_eq!(profile.evaluations <= 2, together, "{query}: {}", profile.evaluations);
        // By hand: a query for each value.
        let values = found.outcome.answers[0].content.numbers().to_vec();
        let (targets, given) = query[2..].trim_end_matches("]?").split_once('|').unwrap();
        let targets: Vec<&str> = targets.split(',').map(str::trim).collect();
        for (at, value) in values.iter().enumerate() {
            let digits = [at / 9, at % 9];
            let of = &digits[2 - targets.len()..];
            let one: Vec<String> =
                targets.iter().zip(of).map(|(target, value)| format!("{target}={value}")).collect();
            let alone = format!("{}Z[{} |{given}]?\n", chain_of(together), one.join(", "));
            let (found, ..) = noted(&alone, Storage::Auto).unwrap();
            let alone = found.outcome.answers[0].content.numbers()[0];
            assert!((alone - value).abs() < 1e-12, "{query} {one:?}: {value} and {alone}");
        }
    }
}

/// The plan on the page about the engine is that of the program above it.
#[test]
fn the_page_shows_the_plan() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tensor-logic/engine.md");
    let page = std::fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> = page.split("```").skip(1).step_by(2).collect();
    let program = blocks.iter().find(|block| block.contains("@minimize")).unwrap().trim_start();
    let shown = blocks.iter().find(|block| block.contains("is kept as")).unwrap();
    let source = Source::new("text", program.as_bytes());
    let mut world = World::new(&source, Files::new("."), 0);
    let analysed = world.analyse(world.read().unwrap()).unwrap();
    let planned =
        plan(&analysed.program, &Fast::default(), Budget { tuples: 1 << 30, bytes: 4 << 30 }).unwrap();
    let said = explain(&analysed.program, program).with_plan(&planned).text();
    let mut lines = said.lines();
    for line in shown.lines().filter(|line| !line.is_empty()) {
        assert!(lines.any(|other| other == line), "{line}\n{said}");
    }
}
