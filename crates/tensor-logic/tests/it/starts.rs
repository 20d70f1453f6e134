//! Parameters to which equations add something: random programs with a start for what they compute.

use tensor_logic::auto::Auto;
use tensor_logic::fast::Fast;
use tensor_logic::reference::Reference;

use crate::common;
use crate::common::answers::answers;
use crate::common::engines::STORAGES;
use crate::common::heads::square;

/// How a storage learns something else than the plain loops.
fn disagreement(text: &str) -> Result<bool, String> {
    let wanted = answers(text, &mut Reference::default());
    for storage in STORAGES {
        let found = answers(text, &mut Auto::new(Box::new(Fast::with_storage(storage))));
        match (&wanted, &found) {
            (Ok(wanted), Ok(found)) => {
                for (wanted, found) in wanted.iter().zip(found) {
                    let (wanted, found) = (wanted.content.numbers(), found.content.numbers());
                    let largest = wanted
                        .iter()
                        .fold(1.0_f64, |most, x| if x.is_finite() { most.max(x.abs()) } else { most });
                    let near = |(a, b): (&f64, &f64)| {
                        (a - b).abs() <= 1e-9 * largest
                            || a.to_bits() == b.to_bits()
                            || a.is_nan() && b.is_nan()
                    };
                    if wanted.len() != found.len() || !wanted.iter().zip(found).all(near) {
                        return Err(format!("{storage:?}: {found:?} instead of {wanted:?}\n{text}"));
                    }
                }
            }
            (Err(_), Err(_)) => {}
            _ => {
                return Err(format!(
                    "{storage:?}: {:?} instead of {:?}\n{text}",
                    found.map(|found| found.len()),
                    wanted.map(|found| found.len())
                ));
            }
        }
    }
    Ok(wanted.is_ok())
}

/// Other numbers in the place of all that are written with a point.
fn moved(text: &str, by: f64) -> String {
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let mut moved = String::new();
    for piece in text.split_inclusive(|letter| !is_number(letter)) {
        let rest = piece.trim_start_matches(is_number);
        let number = &piece[..piece.len() - rest.len()];
        match number.parse::<f64>() {
            Ok(value) if number.contains('.') && !number.starts_with('.') && !number.ends_with('.') => {
                moved += &format!("{:.6}", value + by * (977.0 * value).sin().abs());
            }
            _ => moved += number,
        }
        moved += rest;
    }
    moved
}

#[test]
fn parameters_with_equations_learn_what_the_reference_learns() {
    let count = common::drawn(300);
    let first = seeded::test_seed();
    let (mut learned, mut rounding) = (0, 0);
    for seed in first..first + count {
        let mut stream =
            seeded::Family::new("tensor-logic/tests", "parameters with equations", seed).stream(0);
        let mut lines = common::generator::program(&mut stream);
        lines.retain(|line| !line.ends_with('?'));
        let heads: Vec<(usize, String, usize)> = lines
            .iter()
            .enumerate()
            .filter(|(_, line)| !line.contains(" = [") && !line.contains('~'))
            .filter_map(|(at, line)| square(line).map(|(name, places)| (at, name, places)))
            .collect();
        let Some((_, goal, places)) = heads.last().cloned() else { continue };
        let read = |name: &str, places: usize| {
            let indices: Vec<String> = (0..places).map(|at| format!("z{at}")).collect();
            if places == 0 { name.to_owned() } else { format!("{name}[{}]", indices.join(", ")) }
        };
        let mut open: Vec<(usize, String)> = Vec::new();
        for (at, name, places) in &heads {
            if stream.uniform() < 0.6 && open.iter().all(|(_, line)| !line.starts_with(&format!("{name}["))) {
                let start = ["0.5", "-1.25", "2.0", "0.3"][(stream.uniform() * 4.0) as usize];
                open.push((*at, format!("{} ~ {start}", read(name, *places))));
            }
        }
        // The sine of a large number hangs on its last digit, and so does what next to nothing divides.
        let is_steep =
            |line: &String| ["sin(", "cos(", "/ 1e-3", "/ 0"].iter().any(|part| line.contains(part));
        if open.is_empty() || lines.iter().any(is_steep) {
            continue;
        }
        for (at, line) in open.into_iter().rev() {
            lines.insert(at, line);
        }
        let (lines, goal) = (lines.join("\n"), read(&goal, places));
        let text = format!(
            "{lines}\n{goal}?\nLoss = tanh({goal})\nLoss? @minimize(opt=sgd, lr=0.05, steps=2)\n{goal}?\n"
        );
        match disagreement(&text) {
            Ok(is_legal) => learned += u64::from(is_legal),
            Err(how) => {
                // At a kink rounding decides; with other numbers it does not, but what is wrong shows again.
                rounding += 1;
                for by in [0.013, 0.0371] {
                    if let Err(again) = disagreement(&moved(&text, by)) {
                        panic!("seed {seed}: {how}\nand {again}");
                    }
                }
            }
        }
    }
    println!("{learned} of {count} learn, {rounding} stand at kinks");
    assert!(learned * 10 > count && rounding * 50 <= count + 50, "{learned} of {count}, {rounding} at kinks");
}
