//! Several ranks, as threads: what they leave is what one leaves, whatever their number, and however often it changes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use seeded::Family;
use serde_json::{Map, Value};
use training::collective::{Collective, Intent, Thread, agree, threads};
use training::parameters::{Decay, Initial};
use training::{Evaluation, Layout, Loss, Outcome, Piece, Progress, Ready, Result, Settings, Task, Trainer};

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

/// A gradient of many numbers that comes in one (`pace` 0), or from the end in steps that are this rank's own.
struct Wide {
    layout: Layout,
    pace: u64,
    /// How often the gradient was told of before its end.
    told: usize,
}

impl Wide {
    fn new(len: usize, pace: u64) -> Self {
        let mut layout = Layout::default();
        layout.add("w", &[len], Decay::No, Initial::Constant(0.25));
        Self { layout, pace, told: 0 }
    }

    fn of(part: usize, update: u64, at: usize) -> f32 {
        let bits = (part as u64 * 7919 + update * 104_729 + at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((bits >> 40) as f32 - 8_388_608.0) * 2_f32.powi((bits % 40) as i32 - 40)
    }
}

impl Task for Wide {
    type Batch = ();

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn updates_per_epoch(&self) -> u64 {
        5
    }

    fn batch(&mut self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn gradient(
        &mut self,
        theta: &[f32],
        batch: &(),
        piece: Piece,
        update: u64,
        gradient: &mut [f32],
    ) -> Result<Loss> {
        self.gradient_as_it_comes(theta, batch, piece, update, gradient, &mut |_, _| {})
    }

    fn gradient_as_it_comes(
        &mut self,
        _: &[f32],
        (): &(),
        piece: Piece,
        update: u64,
        gradient: &mut [f32],
        ready: Ready<'_>,
    ) -> Result<Loss> {
        let mut steps = Family::named("paces").stream(self.pace * 1000 + update * 100 + piece.part as u64);
        let mut done = gradient.len();
        // Some pieces are empty, and nothing is told of them.
        while done > 0 && (self.pace == 0 || piece.part % 5 != 3) {
            let from = if self.pace == 0 { 0 } else { done - 1 - steps.below(done as u64) as usize };
            (from..done).for_each(|at| gradient[at] += Self::of(piece.part, update, at));
            done = from;
            if self.pace > 0 {
                ready(gradient, from);
                self.told += 1;
                // Said once more, it changes nothing.
                if steps.below(3) == 0 {
                    ready(gradient, from);
                }
            }
        }
        (0..done).for_each(|at| gradient[at] += Self::of(piece.part, update, at));
        Ok(Loss { sum: 1.0, targets: 1 })
    }

    fn evaluate(&mut self, theta: &[f32]) -> Result<Evaluation> {
        Ok(Evaluation { watched: f64::from(theta[0]), reached: false, fields: Map::new() })
    }

    fn refuses_silent_weights(&self) -> bool {
        false
    }
}

/// What goes to others while the rest is computed makes the same sum, whatever stands when.
#[test]
fn what_is_sent_before_the_end_adds_up_to_the_same() {
    for len in [1, 7, 1024, 5000, 40_001] {
        let mut right: Option<Vec<f32>> = None;
        for (world, paces) in [(1, 0), (2, 0), (2, 1), (3, 2), (4, 3), (6, 4), (12, 5)] {
            let folder = tempfile::tempdir().unwrap();
            let ranks: Vec<Vec<f32>> = std::thread::scope(|scope| {
                let ranks = threads(world, Duration::from_secs(20)).into_iter().map(|mut others| {
                    let folder = folder.path();
                    scope.spawn(move || {
                        let rank = others.rank() as u64;
                        let mut task = Wide::new(len, if paces == 0 { 0 } else { paces * 100 + rank });
                        let mut trainer = if rank == 0 {
                            Trainer::open(&mut task, pieces(3), folder, start())
                                .unwrap()
                                .lead(&mut others)
                                .unwrap()
                        } else {
                            Trainer::follow(&mut task, pieces(3), &mut others).unwrap()
                        };
                        trainer.run(&AtomicUsize::new(0), &Progress::Quiet).unwrap();
                        let weights = trainer.weights().to_vec();
                        drop(trainer);
                        assert!(paces == 0 || task.told > 0 || world > 6, "nothing was told of early");
                        weights
                    })
                });
                let ranks: Vec<_> = ranks.collect();
                ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
            });
            let right = right.get_or_insert_with(|| ranks[0].clone());
            for found in ranks {
                let same = found.iter().zip(&*right).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{len} numbers, {world} ranks, pace {paces}");
            }
        }
        assert!(right.unwrap().iter().all(|w| w.is_finite() && w.to_bits() != 0.25_f32.to_bits()));
    }
}
