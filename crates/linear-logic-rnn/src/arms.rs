//! What makes an arm of a comparison worthless: weights that cannot matter, and a model that another arm is already.

use crate::cell::Cell;
use crate::cells::Choices;
use crate::error::{Kind, Refusal, Result};
use crate::options::{Configuration, GateAct, Numeral, Operators, Projection, Sizes, of};

/// Refuses a full V whose space is wider than the state where no program applies it twice: I V J has no more rank than H,
/// so some of its weights are wasted.
///
/// # Errors
/// `rank-waste`, and as for [`Cell::of`].
pub fn check_rank(configuration: &Configuration, sizes: &Sizes) -> Result<()> {
    let Configuration::LinearLogic(options) = configuration else { return Ok(()) };
    let choices = Choices::of(options)?;
    let (spaces, size, width): (&[&str], _, _) = match choices.v {
        Operators::Diag => return Ok(()),
        Operators::Full => (&["lambda", "pi"], "aux", sizes.aux),
        Operators::TwoSpace => (&["pi"], "aux2", sizes.aux2),
    };
    let (Some(width), hidden) = (width, sizes.need("hidden")?) else { return Ok(()) };
    if choices.project == Projection::Identity || width <= hidden {
        return Ok(());
    }
    let cell = Cell::of(configuration, sizes)?;
    let mut here = cell.programs.iter().filter(|p| spaces.iter().any(|s| p.place.starts_with(s))).peekable();
    if here.peek().is_none() || here.any(|program| program.degree.operators > 1) {
        return Ok(());
    }
    let message = format!(
        "a full V in {width} dimensions over a state of {hidden}, where no program applies it twice: I·V·J has at most rank \
         {hidden}, so weights are wasted; take {size} ≤ hidden"
    );
    Err(Refusal::new(Kind::RankWaste, message))
}

/// Whether a cell has no gates with weights: their start changes nothing.
pub fn has_no_gates(configuration: &Configuration) -> bool {
    let Configuration::LinearLogic(options) = configuration else { return true };
    Choices::of(options).is_ok_and(|choices| choices.gate_act == GateAct::One)
}

/// What the model is, whatever its options are called: two configurations with one text are one model. An empty list of
/// programs removes its space, and programs that are equal under softmax gates are one.
///
/// # Errors
/// As for [`Cell::of`].
pub fn identity(configuration: &Configuration, sizes: &Sizes) -> Result<String> {
    let cell = Cell::of(configuration, sizes)?;
    let cell = match configuration {
        Configuration::LinearLogic(options) if Choices::of(options)?.gate_act == GateAct::Softmax => {
            Cell::of(&Configuration::LinearLogic(distinct(options, &cell)), sizes)?
        }
        _ => cell,
    };
    let mut step = (*cell.step).clone();
    step.reports.clear();
    step.weights.iter_mut().for_each(|weight| weight.name.clear());
    step.states.iter_mut().for_each(|state| state.name.clear());
    Ok(format!("{step:?}"))
}

/// The options without programs that stand there twice.
fn distinct(options: &of::LinearLogic, cell: &Cell) -> of::LinearLogic {
    let is_new = |place: &str| {
        let here = cell.programs.iter().position(|p| p.place == place);
        let list = place.split('[').next().unwrap_or_default();
        here.is_none_or(|here| {
            let before = cell.programs.iter().take(here).filter(|p| p.place.starts_with(list));
            // What has no canonical form is itself alone.
            let known = |canonical: &str| canonical.bytes().all(|b| b.is_ascii_digit());
            cell.programs.get(here).is_none_or(|p| {
                !before
                    .into_iter()
                    .any(|q| q.text == p.text || known(&p.canonical) && q.canonical == p.canonical)
            })
        })
    };
    let lambda = options.lambda.iter().flatten().enumerate();
    let lambda: Vec<Numeral> =
        lambda.filter(|(at, _)| is_new(&format!("lambda[{at}]"))).map(|(_, n)| n.clone()).collect();
    let pi = options.pi.iter().flatten().enumerate();
    let pi: Vec<String> = pi.filter(|(at, _)| is_new(&format!("pi[{at}]"))).map(|(_, w)| w.clone()).collect();
    of::LinearLogic { lambda: Some(lambda), pi: Some(pi), ..options.clone() }
}
