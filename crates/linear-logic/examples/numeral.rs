//! Two times three, as a proof: checked, reduced, read as a number.
#![expect(clippy::print_stdout, reason = "an example shows its answer")]

use linear_logic::elaborate::{Mode, elaborate};
use linear_logic::error::{Refusal, Source};
use linear_logic::literal::Order;
use linear_logic::recognise::recognise;
use linear_logic::reduce::{Limits, normalize};
use linear_logic::{parse, print, program::Program};

fn main() -> Result<(), Refusal> {
    let program = Program::new(Order::Literal, Mode::default())?;
    let text = Source::new("six", b"mult [2] 3".to_vec());
    let six = elaborate(&program, &text, &parse::query(&text)?)?;
    let normal = normalize(&six.term, Order::Literal, Limits::default(), |_, _| Ok(()))?;
    let number = recognise(&normal.term, &six.formula, Order::Literal);
    println!("{} : {}", print::kernel(&six.term), six.formula.short());
    println!("{} steps to {number:?}", normal.steps);
    Ok(())
}
