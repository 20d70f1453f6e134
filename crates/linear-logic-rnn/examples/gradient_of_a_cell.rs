//! A recurrent cell whose step is a proof, its state after three inputs, and the gradient of their sum.
#![expect(clippy::print_stdout, reason = "an example shows its answer")]

use linear_logic_rnn::cell::Cell;
use linear_logic_rnn::engine::{Engine, Inputs, Objective, Sequences};
use linear_logic_rnn::error::Refusal;
use linear_logic_rnn::options::{Configuration, Numeral, Preset, Sizes, of::LinearLogic};

fn main() -> Result<(), Refusal> {
    let lambda = Some(vec![Numeral::Number(1), Numeral::Text("mult [2] 1".to_owned())]);
    let options = LinearLogic { preset: Some(Preset::Stable), lambda, ..LinearLogic::default() };
    let sizes = Sizes { input: Some(2), hidden: Some(3), aux: Some(3), ..Sizes::default() };
    let cell = Cell::of(&Configuration::LinearLogic(options), &sizes)?;
    let theta = vec![0.1; cell.count()];
    let engine: Engine<f64> = Engine::new(cell.step.clone(), &theta);
    let sequences = Sequences { inputs: Inputs::Tokens(&[0, 1, 0]), length: 3, count: 1 };
    let mut gradient = vec![0.0; cell.count()];
    let sum = engine.gradient(sequences, Objective::LastState, &mut gradient);
    println!("{} weights; the last state sums to {sum:.6}", cell.count());
    println!("the gradient of the first weight is {:.6}", gradient[0]);
    Ok(())
}
