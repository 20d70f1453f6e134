//! A report of learning as one page: losses, parameters, the template as a graph, the network of one sample, and the answers.
//!
//! Enter at [`page`]. The page is made when all is answered, so that it shows the parameters that are kept. What cannot be drawn
//! is said in its place, and large pictures show the part that is nearest to the loss.

use calculemus_draw::html::{self, Table, number, text};
use calculemus_draw::numbers::count;
use calculemus_draw::plot::{Mark, Plot, Point};
use calculemus_draw::{Axis, Scale};

use crate::answer::{self, Answer, Minimized};
use crate::engine::{Budget, Engine};
use crate::program::{Action, Program, Query, Role, TensorId};
use crate::run::Outcome;

mod network;
mod template;

/// The parts of a page.
type Parts = Vec<String>;

/// What came of a program, as a page.
pub fn page(
    title: &str,
    (program, source): (&Program, &str),
    (engine, budget): (&mut dyn Engine, Budget),
    outcome: &Outcome,
) -> String {
    let mut body = vec![html::heading(title, "What was learned, and what it says.")];
    let queries = program.actions.iter().filter_map(|action| match action {
        Action::Query(query) => Some(query),
        Action::Write { .. } => None,
    });
    for (query, answer) in queries.zip(&outcome.answers) {
        let Some(learned) = &answer.minimize else { continue };
        let figures = html::figures(&losses(learned));
        body.push(html::section(&query.text, &html::join([numbers(learned).html(), figures])));
        let template = template::drawn(program, source, query.tensor);
        let network = network::drawn(program, source, (engine, budget), &outcome.parameters, query);
        body.push(html::section("The template", &template));
        body.push(html::section("The network of a sample", &network));
    }
    let parameters = parameters(program, outcome);
    let parameters = match parameters.is_empty() {
        true => html::left_out("The program has no parameters."),
        false => parameters.html(),
    };
    body.push(html::section("Parameters", &parameters));
    body.push(html::section("Answers", &answers(program, &outcome.answers).html()));
    if let Some(refusal) = &outcome.refusal {
        body.push(html::warning(&format!("The run ended with a refusal: {}", refusal.message)));
    }
    html::page(title, &html::join(body))
}

/// A number for people.
fn shown(value: f64) -> String {
    let size = value.abs();
    let digits = match (1e-3..1e5).contains(&size) {
        true => format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        false if value == 0.0 => "0".to_owned(),
        false => format!("{value:.3e}"),
    };
    digits.replace('-', "−")
}

fn numbers(learned: &Minimized) -> Table {
    let mut table = Table::new(["", "#before", "#behind"]);
    let mut row = |name: String, before: f64, behind: f64| {
        table.row(vec![text(name), number(shown(before)), number(shown(behind))]);
    };
    row(format!("loss over all data, {} steps", count(Some(learned.steps))), learned.first, learned.last);
    if let Some(valid) = &learned.valid {
        let name = format!("loss of what is held out, best behind epoch {} of {}", valid.epoch, valid.epochs);
        row(name, valid.first, valid.best);
    }
    for (what, from, to) in learned.lifted.all() {
        table.row(vec![
            text(format!("{what}, and those that differ")),
            number(from.to_string()),
            number(to.to_string()),
        ]);
    }
    table
}

/// The most points of a curve.
const POINTS: usize = 500;

/// Means of neighbours, where there are more than can be seen.
fn thinned(values: &[f64], at: impl Fn(usize) -> f64) -> Vec<Point> {
    let every = values.len().div_ceil(POINTS).max(1);
    let mean = |(part, values): (usize, &[f64])| {
        let last = part * every + values.len() - 1;
        Point::at(at(last), values.iter().sum::<f64>() / values.len() as f64)
    };
    values.chunks(every).enumerate().map(mean).collect()
}

/// The losses of steps and epochs.
fn losses(learned: &Minimized) -> Parts {
    let per_epoch = (learned.per_epoch.max(1)) as usize;
    let mut figures = Parts::new();
    if per_epoch > 1 {
        let epochs: Vec<f64> = learned
            .losses
            .chunks(per_epoch)
            .map(|losses| losses.iter().sum::<f64>() / losses.len() as f64)
            .collect();
        let plot = plot("Loss of a batch", "epoch", &epochs)
            .with("mean of the epoch's batches", line(&epochs), thinned(&epochs, |at| at as f64 + 1.0))
            .noted("before the step that follows from it");
        figures.push(plot.figure());
    } else {
        let plot = plot("Loss", "step", &learned.losses)
            .with("loss", line(&learned.losses), thinned(&learned.losses, |at| at as f64 + 1.0))
            .noted("over all data, before each step");
        figures.push(plot.figure());
    }
    if let Some(valid) = &learned.valid {
        let mut plot = plot("Loss of what is held out", "epoch", &learned.held)
            .with("held out", line(&learned.held), thinned(&learned.held, |at| at as f64 + 1.0))
            .level("before the first step", Some(valid.first));
        if valid.epoch > 0 {
            plot = plot.with("best epoch", Mark::Dots, vec![Point::at(valid.epoch as f64, valid.best)]);
        }
        figures.push(plot.noted("behind each epoch; the parameters of the best one are kept").figure());
    }
    figures
}

/// A curve of few values has a dot at each.
fn line(values: &[f64]) -> Mark {
    if values.len() < 30 { Mark::Dotted } else { Mark::Line }
}

/// A picture whose values are spread by logarithm where they are of different sizes.
fn plot(title: &str, x: &str, values: &[f64]) -> Plot {
    let (least, most) = values.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(*v), b.max(*v)));
    let scale = if least > 0.0 && most > 30.0 * least { Scale::Log } else { Scale::FromZero };
    Plot::new(title, Axis::new(x, Scale::Linear), Axis::new("", scale))
}

/// All parameters that have values.
fn parameters(program: &Program, outcome: &Outcome) -> Table {
    let mut table = Table::new(["parameter", "shape", "#numbers", "#norm", "#largest", "learned by"]);
    for (id, tensor) in (0..).map(TensorId).zip(&program.tensors) {
        let Some(values) = outcome.parameters.get(&id).filter(|_| tensor.role == Role::Parameter) else {
            continue;
        };
        let learns = |answer: &&Answer| {
            answer.minimize.as_ref().is_some_and(|learned| learned.parameters.contains(&tensor.name))
        };
        let by: Vec<&str> = outcome.answers.iter().filter(learns).map(|answer| goal(&answer.text)).collect();
        let norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
        let largest = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        table.row(vec![
            html::code(&tensor.name),
            text(sizes(&tensor.sizes())),
            number(count(Some(values.len() as u64))),
            number(shown(norm)),
            number(shown(largest)),
            text(by.join(", ")),
        ]);
    }
    table
}

/// A query without its directives.
fn goal(query: &str) -> &str {
    query.split('?').next().unwrap_or(query)
}

fn sizes(sizes: &[usize]) -> String {
    match sizes {
        [] => "a number".to_owned(),
        _ => sizes.iter().map(usize::to_string).collect::<Vec<String>>().join(" × "),
    }
}

/// The queries, and what they say.
fn answers(program: &Program, answers: &[Answer]) -> Table {
    let mut table = Table::new(["query", "answer"]);
    for answer in answers {
        let plain = Answer { minimize: None, explain: None, ..answer.clone() };
        let shown = answer::text::answer(&program.symbols, &plain);
        let lines: Vec<&str> =
            shown.strip_prefix(&answer.text).unwrap_or(&shown).lines().map(str::trim).collect();
        let said = lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<&str>>().join("; ");
        table.row(vec![html::code(&answer.text), text(said)]);
    }
    table
}

/// A tensor with the names that its places have where they have any, in its brackets.
fn written(program: &Program, id: TensorId, places: &[String]) -> String {
    let tensor = program.tensor(id);
    let (open, close) = match tensor.style {
        crate::program::Style::Round => ('(', ')'),
        crate::program::Style::Square => ('[', ']'),
    };
    let name = if tensor.hidden { "the query" } else { tensor.name.as_str() };
    let versions = "'".repeat(tensor.version as usize);
    match places {
        [] => format!("{name}{versions}"),
        _ => format!("{name}{versions}{open}{}{close}", places.join(", ")),
    }
}

/// The colour of a tensor: what is computed, learned, given.
fn colour(role: Role) -> usize {
    match role {
        Role::Computed => 0,
        Role::Parameter => 1,
        Role::Data => 2,
        Role::Missing | Role::Empty => 4,
    }
}

/// What is said of a goal whose picture is asked for.
fn of(query: &Query) -> String {
    goal(&query.text).to_owned()
}
