//! Schedules of the learning rate: the same steps with the rate set by hand.

use std::f64::consts::PI;

use tensor_logic::notebook::Notebook;

const PROGRAM: &str = "W ~ [0.5, -1, 2]; X = [[1, 2, 3], [-1, 0.5, 1], [0, 1, -2], [2, 2, 1]]; Y = [1, -1, 2, 0]\n\
                       P[i] = X[i, j] W[j]\n\
                       Loss = (P[i] - Y[i])^2\n";

/// The rate of a step, counted from 1, as the page says it.
fn rate(schedule: &str, step: u64, steps: u64, (most, least): (f64, f64), warmup: u64) -> f64 {
    if step < warmup {
        return most * step as f64 / warmup as f64;
    }
    let left = if steps > warmup { (steps - step) as f64 / (steps - warmup) as f64 } else { 1.0 };
    let falls = match schedule {
        "constant" => return most,
        "linear" => left,
        _ => (1.0 + (PI * (1.0 - left)).cos()) / 2.0,
    };
    (most * falls).max(least)
}

/// What is learned by one directive, and by one directive for each step.
#[test]
fn steps_are_those_of_rates_set_by_hand() {
    for schedule in ["constant", "linear", "cosine"] {
        for (steps, warmup, least) in [(12, 0, 0.0), (12, 5, 0.0), (9, 3, 0.004), (4, 9, 0.0), (1, 0, 0.0)] {
            let floor = if schedule == "constant" { String::new() } else { format!(", min_lr={least}") };
            let mut whole = Notebook::new(PROGRAM);
            let options =
                format!("opt=sgd, lr=0.02, schedule={schedule}, warmup={warmup}{floor}, steps={steps}");
            whole.ask(&format!("Loss? @minimize({options})")).unwrap();
            let mut by_hand = Notebook::new(PROGRAM);
            for step in 1..=steps {
                let rate = rate(schedule, step, steps, (0.02, least), warmup);
                by_hand.ask(&format!("Loss? @minimize(opt=sgd, lr={rate}, steps=1)")).unwrap();
            }
            let [learned, expected] = [&mut whole, &mut by_hand].map(|notebook| notebook.ask("W?").unwrap());
            for (one, other) in learned.values().iter().zip(expected.values()) {
                assert!((one - other).abs() <= 1e-14 * other.abs(), "{options}: {one} and {other}");
            }
            // The last rate of a decline is its floor, and a single step is the last.
            let moves = steps > 1 || schedule == "constant";
            assert_eq!(learned.values() != [0.5, -1.0, 2.0], moves, "{options}");
        }
    }
}

/// Adam, whose state goes from step to step: against its formulas, with the rate of each step.
#[test]
fn adam_takes_the_rate_of_the_step() {
    let mut notebook = Notebook::new("W ~ 0; Loss = (W - 3)^2");
    notebook.ask("Loss? @minimize(lr=0.5, schedule=cosine, warmup=4, min_lr=0.01, steps=20)").unwrap();
    let (mut weight, mut mean, mut square) = (0.0_f64, 0.0_f64, 0.0_f64);
    for step in 1..=20_i32 {
        let slope = 2.0 * (weight - 3.0);
        mean = 0.9 * mean + 0.1 * slope;
        square = 0.999 * square + 0.001 * slope * slope;
        let direction =
            mean / (1.0 - 0.9_f64.powi(step)) / ((square / (1.0 - 0.999_f64.powi(step))).sqrt() + 1e-8);
        weight -= rate("cosine", step as u64, 20, (0.5, 0.01), 4) * direction;
    }
    let learned = notebook.ask("W?").unwrap().number().unwrap();
    assert!((learned - weight).abs() < 1e-12, "{learned} and {weight}");
}

/// Epochs count in steps too, and a schedule that is not asked for changes no bit.
#[test]
fn epochs_have_steps_and_no_schedule_is_none() {
    let mut epochs = Notebook::new(PROGRAM);
    epochs.ask("Loss? @minimize(opt=sgd, lr=0.02, epochs=3, batch=i, size=2, schedule=linear)").unwrap();
    let mut steps = Notebook::new(PROGRAM);
    // Six steps of half the data each, in order.
    for step in 1..=6_u64 {
        let learned = steps.ask("W?").unwrap().values().to_vec();
        let rate = rate("linear", step, 6, (0.02, 0.0), 0);
        let slope = slope_of(if step % 2 == 1 { 0..2 } else { 2..4 }, &learned);
        let moved: Vec<f64> =
            learned.iter().zip(slope).map(|(weight, slope)| weight - rate * slope).collect();
        steps.set("W", moved);
    }
    let [one, other] =
        [&mut epochs, &mut steps].map(|notebook| notebook.ask("W?").unwrap().values().to_vec());
    for (one, other) in one.iter().zip(&other) {
        assert!((one - other).abs() < 1e-13, "{one} and {other}");
    }
    let [plain, named] = ["", ", schedule=constant, warmup=0"].map(|more| {
        let mut notebook = Notebook::new(PROGRAM);
        notebook.ask(&format!("Loss? @minimize(lr=0.07, steps=25{more})")).unwrap();
        notebook.ask("W?").unwrap().values().to_vec()
    });
    assert_eq!(plain, named);
}

/// The slope of the loss over some rows, by loops.
fn slope_of(rows: std::ops::Range<usize>, weights: &[f64]) -> Vec<f64> {
    let x = [[1.0, 2.0, 3.0], [-1.0, 0.5, 1.0], [0.0, 1.0, -2.0], [2.0, 2.0, 1.0]];
    let y = [1.0, -1.0, 2.0, 0.0];
    let mut slope = vec![0.0; 3];
    for i in rows {
        let error: f64 = (0..3).map(|j| x[i][j] * weights[j]).sum::<f64>() - y[i];
        (0..3).for_each(|j| slope[j] += 2.0 * error * x[i][j]);
    }
    slope
}
