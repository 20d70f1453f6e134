//! Several ranks, as threads: what they leave is what one leaves, whatever their number, and however often it changes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use serde_json::{Map, Value};
use training::collective::{Collective, Intent, Thread, agree, threads};
use training::{Outcome, Progress, Result, Settings, Task, Trainer};

use crate::trainer::{Linear, lines, settings};

fn pieces(total: u64) -> Settings {
    Settings { pieces: 12, ..settings(total) }
}

fn start() -> Map<String, Value> {
    Map::from_iter([("step".to_owned(), Value::from(0))])
}

/// What a rank does; its weights in the end.
fn rank(
    mut others: Thread,
    task: &mut Linear,
    settings: Settings,
    folder: &Path,
) -> Result<(Outcome, Vec<f32>)> {
    let stop = Arc::clone(&task.stop);
    let mut trainer = if others.rank() == 0 {
        Trainer::open(task, settings, folder, start())?.lead(&mut others)?
    } else {
        Trainer::follow(task, settings, &mut others)?
    };
    let outcome = trainer.run(&stop, &Progress::Quiet)?;
    Ok((outcome, trainer.weights().to_vec()))
}

/// So many ranks; `each` changes the task of a rank.
fn together(
    world: usize,
    settings: &Settings,
    folder: &Path,
    each: &(dyn Fn(usize, &mut Linear) + Sync),
) -> Vec<Result<(Outcome, Vec<f32>)>> {
    std::thread::scope(|scope| {
        let ranks = threads(world, Duration::from_secs(20)).into_iter().map(|others| {
            scope.spawn(move || {
                let mut task = Linear::new();
                each(others.rank(), &mut task);
                rank(others, &mut task, settings.clone(), folder)
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn newest(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("last/step-0000020.safetensors")).unwrap()
}

#[test]
fn any_number_of_ranks_leaves_what_one_leaves() {
    let one = tempfile::tempdir().unwrap();
    let mut task = Linear::new();
    let mut trainer = Trainer::open(&mut task, pieces(20), one.path(), start()).unwrap();
    trainer.run(&AtomicUsize::new(0), &Progress::Quiet).unwrap();
    let weights = trainer.weights().to_vec();
    for world in [1, 2, 3, 4, 6, 12] {
        let folder = tempfile::tempdir().unwrap();
        for result in together(world, &pieces(20), folder.path(), &|_, _| {}) {
            let (outcome, found) = result.unwrap();
            assert_eq!(outcome, Outcome::Finished("steps".to_owned()));
            assert!(found.iter().zip(&weights).all(|(a, b)| a.to_bits() == b.to_bits()), "{world}");
        }
        assert_eq!(lines(folder.path()), lines(one.path()), "{world}");
        assert!(newest(folder.path()) == newest(one.path()));
    }
}

/// A signal to any of them stops all after the same update; each time others go on.
#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    let (one, many) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    together(1, &pieces(20), one.path(), &|_, _| {}).remove(0).unwrap();
    for (world, told, at) in [(3, 2, 4), (2, 0, 9), (12, 7, 10), (1, 0, 17)] {
        let results = together(world, &pieces(20), many.path(), &|rank, task| {
            if rank == told {
                task.stop_at = at;
            }
        });
        for result in results {
            assert_eq!(result.unwrap().0, Outcome::Interrupted(2));
        }
    }
    for result in together(4, &pieces(20), many.path(), &|_, _| {}) {
        assert_eq!(result.unwrap().0, Outcome::Finished("steps".to_owned()));
    }
    assert_eq!(lines(one.path()), lines(many.path()));
    assert!(newest(one.path()) == newest(many.path()));
}

/// Only rank 0 judges; that its patience has run out, or that the loss left the numbers, ends all.
#[test]
fn an_early_end_is_the_end_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let impatient = Settings { patience: 2, ..pieces(600) };
    let results = together(3, &impatient, folder.path(), &|rank, task| {
        if rank == 0 {
            task.evaluations = vec![3.0, 2.0, 1.0, 0.5];
        }
    });
    for result in results {
        assert_eq!(result.unwrap().0, Outcome::Finished("patience".to_owned()));
    }
    let folder = tempfile::tempdir().unwrap();
    let broken = |_: usize, task: &mut Linear| task.broken = 3..600;
    for result in together(3, &pieces(600), folder.path(), &broken) {
        assert!(result.unwrap_err().to_string().contains("`map.bias`"));
    }
}

/// A rank whose arithmetic is another one would go its own way unseen.
#[test]
fn ranks_that_drift_apart_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let results: Vec<_> = std::thread::scope(|scope| {
        let ranks = threads(3, Duration::from_secs(20)).into_iter().map(|others| {
            let folder = folder.path();
            scope.spawn(move || {
                let mut own = pieces(20);
                if others.rank() == 2 {
                    own.schedule.lr *= 1.001;
                }
                rank(others, &mut Linear::new(), own, folder)
            })
        });
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    for result in results {
        let fault = result.unwrap_err().to_string();
        assert!(fault.contains("rank 2 has other weights than rank 0"), "{fault}");
    }
}

#[test]
fn ranks_that_would_do_different_things_do_nothing() {
    let say =
        |world: usize, intents: &(dyn Fn(usize) -> std::result::Result<[&'static str; 3], String> + Sync)| {
            std::thread::scope(|scope| {
                let ranks = threads(world, Duration::from_secs(20)).into_iter().map(|mut others| {
                    scope.spawn(move || {
                        let task = Linear::new();
                        let ready = intents(others.rank()).map(|[configuration, data_set, build]| Intent {
                            configuration,
                            data_set,
                            layout: task.layout(),
                            build,
                            device: "cpu",
                        });
                        agree(&mut others, ready)
                    })
                });
                let ranks: Vec<_> = ranks.collect();
                ranks.into_iter().map(|r| r.join().unwrap().map_err(|e| e.to_string())).collect::<Vec<_>>()
            })
        };
    assert!(say(3, &|_| Ok(["c", "d", "1"])).into_iter().all(|r| r.is_ok()));
    for (rank, said, words) in [
        (2, ["x", "d", "1"], "rank 2 has another configuration than rank 0: \"x\", not \"c\""),
        (1, ["c", "e", "1"], "rank 1 has another data set than rank 0"),
        (1, ["c", "d", "2"], "rank 1 has another build than rank 0"),
    ] {
        for result in say(3, &|r| Ok(if r == rank { said } else { ["c", "d", "1"] })) {
            assert!(result.unwrap_err().contains(words));
        }
    }
    let fails = |r: usize| if r == 1 { Err("no such data".to_owned()) } else { Ok(["c", "d", "1"]) };
    for result in say(2, &fails) {
        assert_eq!(result.unwrap_err(), "rank 1 cannot begin: no such data");
    }
    // Ranks that do not divide the pieces.
    let folder = tempfile::tempdir().unwrap();
    for result in together(5, &pieces(4), folder.path(), &|_, _| {}) {
        assert!(result.unwrap_err().to_string().contains("5 ranks do not divide"));
    }
}
