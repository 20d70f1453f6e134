//! Random rules against the engine of `datarel`.

use datarel::Failure;
use datarel_dataflow::{Holder, Options, Refusal, evaluate};
use seeded::Family;

use crate::generate::{Program, Tuples, agree, has_nan, oracle, program, tuples};

/// What a dataflow of so many workers says.
pub(crate) fn dataflow(program: &Program, workers: usize) -> Result<Vec<Tuples>, Refusal> {
    let mut database = program.database();
    let options = Options { workers, ..Options::default() };
    let holder = evaluate(&mut database, &program.rules, &program.all(), &options)?;
    assert_eq!(holder, Holder::Here);
    Ok(tuples(&database, program.relations.len()))
}

#[test]
fn random_programs_agree_with_the_engine() {
    let most = if std::env::var("CALCULEMUS_SLOW").is_ok() { 2000 } else { 200 };
    let (mut diverged, mut derived, mut nan, mut late) = (0, 0, 0, 0);
    // One in some hundreds diverges: drawn on until there are a few, which alone are then run.
    for number in 0..20_000 {
        if number >= most && diverged >= 6 {
            break;
        }
        let seed = seeded::test_seed().wrapping_add(number);
        let program = program(&mut Family::named("dataflow").stream(seed));
        let expected = oracle(&program);
        if number >= most && expected.is_ok() {
            continue;
        }
        // 0·∞ is what the order of the factors makes of it.
        if expected.as_ref().is_ok_and(|found| has_nan(&program, found)) {
            nan += 1;
            continue;
        }
        for workers in 1..=3 {
            let found = dataflow(&program, workers);
            match (&expected, &found) {
                (Ok(expected), Ok(found)) => {
                    assert!(
                        agree(&program, expected, found),
                        "seed {seed}, {workers} workers: {program:?}\n{expected:?}\n{found:?}"
                    );
                    derived += found.iter().map(Tuples::len).sum::<usize>();
                }
                (Err(Failure::Divergence { .. }), Err(Refusal::Failure(Failure::Divergence { .. }))) => {
                    diverged += 1;
                }
                // The engine may refuse what comes to rest a round later: see `Failure::Divergence`.
                (Err(Failure::Divergence { .. }), Ok(_)) => late += 1,
                _ => panic!("seed {seed}, {workers} workers: {program:?}\n{expected:?}\n{found:?}"),
            }
        }
    }
    let part = most as usize;
    println!("{derived} tuples, {diverged} diverged, {late} late, {nan} left out");
    assert!(
        derived > 20 * part && nan * 20 <= part && late <= 3 + part / 50 && diverged >= 6,
        "{derived} {diverged} {nan} {late}"
    );
}
