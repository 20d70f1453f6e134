//! Twenty samples with their probability under the model and under the true law, as text and as glyphs.

use anyhow::{Result, anyhow};
use fol::notation::Code;
use fol::score::Scorer;
use maud::{Markup, PreEscaped, html as markup};
use symbolic_transformer::sample::{Choice, Request, Sample};

use super::super::code;
use super::super::config::Config;
use super::super::sampling::{self, Ask};
use super::run::Run;
use crate::draw::html;
use crate::draw::numbers::fixed;
use crate::{data, run_folder};

/// How many.
const N: usize = 20;
/// The largest number of tokens of a sample, as in the suite `generation`.
const LONGEST: usize = 256;
/// Glyphs in a line.
const IN_A_LINE: usize = 28;
/// Pixels of a cell of a glyph.
const CELL: f64 = 1.0;

/// The list, or a line that says why there is none.
pub(crate) fn list(run: &Run) -> Markup {
    if !run.is_trained() {
        return html::left_out("Left out: a model without weights draws no samples.");
    }
    if !run_folder::weights(&run.folder).is_file() {
        return html::left_out("Left out: the run has no model.safetensors.");
    }
    match draw(run) {
        Ok((code, samples, scorer)) => html::join([
            html::note(
                "Drawn free, at temperature 1. Beside each: −ln of its probability in nats under the model and under \
                 the true law, so a small difference means that the model finds it as likely as it is. Impossible: the \
                 law never draws it.",
            ),
            show(&code, &samples, scorer),
        ]),
        Err(e) => html::left_out(&format!("Left out: {e:#}.")),
    }
}

fn draw(run: &Run) -> Result<(Code, Vec<Sample>, Result<Scorer>)> {
    let code = code::of_run(&run.folder, &run.config)?;
    let request = Request::free(&code, LONGEST);
    let ask = Ask { choice: Choice::PLAIN, n: N, seed: run.config.seed, beam: None };
    // A report says the same wherever it is made.
    let on_cpu = Config { device: "cpu".to_owned(), ..run.config.clone() };
    let samples = sampling::draw(&run.folder, &on_cpu, &code, &request, &ask)?;
    let scorer =
        data::law_of_run(&run.config.data).and_then(|law| Scorer::new(&law).map_err(|r| anyhow!("{r}")));
    Ok((code, samples, scorer))
}

/// The samples as a list.
fn show(code: &Code, samples: &[Sample], scorer: Result<Scorer>) -> Markup {
    let (mut scorer, silent) = match scorer {
        Ok(scorer) => (Some(scorer), None),
        Err(e) => (None, Some(format!("The true law cannot be asked: {e:#}."))),
    };
    let items = samples.iter().map(|sample| item(code, sample, scorer.as_mut())).collect::<Vec<Markup>>();
    markup! {
        @if let Some(why) = silent { (html::left_out(&why)) }
        ol.samples { (html::join(items)) }
    }
}

fn item(code: &Code, sample: &Sample, scorer: Option<&mut Scorer>) -> Markup {
    let law = scorer.map(|scorer| match code.decode(&sample.tokens).and_then(|text| scorer.score(&text)) {
        _ if !sample.finished => markup! { br; span.impossible { "not finished" } },
        Ok(nats) => markup! { br; "law " (fixed(Some(nats), 3)) " nats" },
        Err(refusal) => markup! { br; span.impossible title=(refusal) { "law: impossible" } },
    });
    let symbols = sampling::symbols(code, sample);
    let strips = symbols.chunks(IN_A_LINE).map(|c| PreEscaped(fol::glyph::strip_svg(c, CELL)));
    markup! {
        li {
            div.formula { (sampling::shown(code, sample)) }
            div.law { "model " (fixed(Some(sample.nll), 3)) " nats" @if let Some(law) = law { (law) } }
            div.glyphs { (html::join(strips)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fol::law::Law;
    use fol::read::{Mode, Source};

    fn sample(text: &str, finished: bool) -> Sample {
        let tokens = fol::read::parse(text, Source::Text, Mode::Lenient).unwrap().tokens;
        let tokens = Code::PLAIN.encode(&tokens).unwrap();
        Sample { tokens, nll: 2.5, finished, score: None }
    }

    #[test]
    fn the_law_is_asked_and_may_say_never() {
        let law = Law::named("public", &[]).unwrap();
        // A predicate of three arguments is not in this law.
        let samples = [sample("P0(x0)", true), sample("P0(x0, x1, x2)", true), sample("P0(x0)", false)];
        let list = show(&Code::PLAIN, &samples, Scorer::new(&law).map_err(|r| anyhow!("{r}"))).into_string();
        assert_eq!(list.matches("<li>").count(), 3);
        assert_eq!(list.matches("law: impossible").count(), 1, "{list}");
        assert_eq!(list.matches("not finished").count(), 1);
        let mut scorer = Scorer::new(&law).unwrap();
        let nats = scorer.score(&Code::PLAIN.decode(&samples[0].tokens).unwrap()).unwrap();
        assert!(list.contains(&format!("law {nats:.3} nats")), "{list}");
        assert!(list.contains("model 2.500 nats"));
        assert!(
            show(&Code::PLAIN, &samples, Err(anyhow!("<no law>"))).into_string().contains("&lt;no law&gt;")
        );
    }
}
