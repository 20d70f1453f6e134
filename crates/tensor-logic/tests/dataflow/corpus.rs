//! Every query of the corpus that is rules over relations, by 1, 2 and 3 workers and by the engine.

use std::collections::BTreeMap;
use std::path::Path;

use tensor_logic::answer::Content;
use tensor_logic::auto::Auto;
use tensor_logic::dataflow::{Dataflow, Trouble};
use tensor_logic::engine::{Budget, Engine};
use tensor_logic::error::Code;
use tensor_logic::fast::Fast;
use tensor_logic::files::Files;
use tensor_logic::program::{Action, Program};
use tensor_logic::reference::Reference;
use tensor_logic::run::{Outcome, run};
use tensor_logic::source::Source;
use tensor_logic::world::World;

const BUDGET: Budget = Budget { tuples: 10_000, bytes: 1 << 30 };

/// Whether two answers are the same, but for the order of sums.
fn same(a: &Content, b: &Content) -> bool {
    let near = |a: &[f64], b: &[f64]| {
        let close = |(a, b): (&f64, &f64)| {
            a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-12 * a.abs().max(1.0)
        };
        a.len() == b.len() && a.iter().zip(b).all(close)
    };
    let shape = match (a, b) {
        (Content::Relation { tuples: a, .. }, Content::Relation { tuples: b, .. }) => a == b,
        (Content::Tensor { domains: a, .. }, Content::Tensor { domains: b, .. }) => a == b,
        (Content::Scalar(a), Content::Scalar(b)) => a.is_some() == b.is_some(),
        _ => false,
    };
    shape && near(a.numbers(), b.numbers())
}

fn answered(program: &Program, source: &Source, folder: &Path, engine: &mut dyn Engine) -> Outcome {
    let mut world = World::new(source, Files::new(folder.to_owned()), 0);
    run(program, &source.text, BUDGET, engine, &mut world)
}

#[test]
fn queries_of_the_corpus_agree_with_the_engine() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut paths: Vec<_> = std::fs::read_dir(cases).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "tl"));
    paths.sort();
    let (mut agreed, mut programs) = (0, 0);
    let mut not_yet: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let want: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path.with_extension("json")).unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for (file, content) in want["files"].as_object().into_iter().flatten() {
            let file = folder.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, content.as_str().unwrap_or("")).unwrap();
        }
        let mut source = Source::new(format!("{name}.tl"), &std::fs::read(&path).unwrap());
        source.expand(&mut Files::new(folder.path().to_owned()));
        let mut world = World::new(&source, Files::new(folder.path().to_owned()), 0);
        let Ok(analysed) = world.read().and_then(|tree| world.analyse(tree)) else { continue };
        let mut any = false;
        for action in analysed.program.actions.iter().filter(|action| matches!(action, Action::Query(_))) {
            let mut program = analysed.program.clone();
            program.actions = vec![action.clone()];
            if !tensor_logic::run::refusals(&program).is_empty() {
                continue;
            }
            let found = Dataflow::evaluate(&program, &source.text, BUDGET, (1, None));
            if let Err(Trouble::Program(refusal)) = &found
                && refusal.code == Code::NotYet
            {
                let what = refusal.message.split([':', '`']).next_back().unwrap_or("").trim().to_owned();
                *not_yet.entry(what).or_default() += 1;
                continue;
            }
            any = true;
            let expected =
                answered(&program, &source, folder.path(), &mut Auto::new(Box::new(Fast::default())));
            for workers in 1..=3 {
                match Dataflow::evaluate(&program, &source.text, BUDGET, (workers, None)) {
                    Ok(Some(mut engine)) => {
                        let found = answered(&program, &source, folder.path(), &mut engine);
                        let fits = expected.refusal.is_none()
                            && found.refusal.is_none()
                            && found.answers.len() == 1
                            && found
                                .answers
                                .iter()
                                .zip(&expected.answers)
                                .all(|(a, b)| a.counts == b.counts && same(&a.content, &b.content));
                        if !fits {
                            wrong.push(format!("{name}, {workers}: {expected:?}\n{found:?}"));
                        }
                        agreed += usize::from(fits);
                    }
                    Err(Trouble::Program(refusal)) => {
                        let is_same = |found: &Outcome| {
                            found.refusal.as_ref().is_some_and(|found| found.code == refusal.code)
                        };
                        // A dataflow knows no demand: of a closure that comes to rest only below a query's constants it
                        // says what the reference says, which knows none either.
                        let whole = || answered(&program, &source, folder.path(), &mut Reference::default());
                        let same = is_same(&expected)
                            || (refusal.code == Code::Divergence
                                && expected.refusal.is_none()
                                && is_same(&whole()));
                        if !same {
                            wrong.push(format!("{name}, {workers}: {refusal:?} {:?}", expected.refusal));
                        }
                    }
                    other => wrong.push(format!("{name}: {:?}", other.map(|_| ()))),
                }
            }
        }
        programs += usize::from(any);
    }
    println!("{agreed} answers of {programs} programs agree; not yet: {not_yet:#?}");
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(agreed > 300 && programs > 60 && not_yet.len() > 5, "{agreed} {programs} {not_yet:?}");
}
