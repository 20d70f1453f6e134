//! A program in text, data and a function from Rust, and answers as Rust values.

use tensor_logic::notebook::{Notebook, Refusals};

fn main() -> Result<(), Refusals> {
    let mut notebook = Notebook::new(
        "Reach(x, y) <- Edge(x, y)
         Reach(x, z) <- Reach(x, y), Edge(y, z)
         Y[i] = cube(W[i, j] X[j])
         V ~ 0; Loss = (V - Y[0])^2",
    );
    notebook.relation("Edge", [("Ann", "Bob"), ("Bob", "Cal")]);
    notebook.set("W", [[1.0, 1.0], [0.0, -2.0]]);
    notebook.set("X", [1.0, 1.0]);
    notebook.function("cube", |x| x.powi(3), |x| 3.0 * x * x);

    assert_eq!(notebook.ask("Reach(Ann, x)?")?.tuples(), [["Bob"], ["Cal"]]);
    assert_eq!(notebook.ask("Y[i]?")?.values(), [8.0, -8.0]);
    let loss = notebook.ask("Loss? @minimize(opt=sgd, lr=0.25, steps=100)")?;
    assert!(loss.number().is_some_and(|loss| loss < 1e-9));
    assert!(notebook.ask("V?")?.number().is_some_and(|v| (v - 8.0).abs() < 1e-4));
    Ok(())
}

#[test]
fn it_says_what_it_asserts() -> Result<(), Refusals> {
    main()
}
