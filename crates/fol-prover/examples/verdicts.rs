//! A theorem with its proof, and what does not follow with its countermodel.
#![expect(clippy::print_stdout, reason = "an example shows its answer")]

use fol_prover::{Limit, Problem, Verdict, check_model, check_proof, prove, show};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let problem = Problem::read("P(c), ∀x (P(x) → Q(x)) ⊢ Q(c)")?;
    let answer = prove(&problem, Limit::default());
    let Verdict::Entailed(proof) = &answer.verdict else { return Err("it follows".into()) };
    check_proof(&problem, proof)?;
    print!("{}", show::tree(proof));

    let problem = Problem::read("∀x ∃y R(x, y) ⊢ ∃y ∀x R(x, y)")?;
    let Verdict::Refuted(model) = prove(&problem, Limit::default()).verdict else {
        return Err("it does not".into());
    };
    check_model(&problem, &model, 1_000)?;
    print!("{}", show::tables(&model));
    assert_eq!(model.size, 2);
    Ok(())
}
