//! A formula is read, brought into canonical form, and its probability under a law is exact. Run it with
//! `cargo run -p fol --example law`.
use fol::read::{Mode, Source, parse};
use fol::{Style, canon, law::Law, print, score::Scorer};

fn main() -> Result<(), fol::error::Refusal> {
    let read = parse("forall x (P(x) -> exists y R(x, y))", Source::Text, Mode::Lenient)?;
    assert_eq!(print(&read.text, Style::Unicode), "∀x0 (P0(x0) → ∃x1 P1(x0, x1))");
    let renamed = parse("∀z (Q(z) → ∃u S(z, u))", Source::Text, Mode::Lenient)?;
    assert_eq!(canon::sig(&read.text), canon::sig(&renamed.text));
    let nats = Scorer::new(&Law::named("public", &[])?)?.score(&read.tokens)?;
    assert!((nats - 18.3815).abs() < 1e-4, "{nats}");
    Ok(())
}
