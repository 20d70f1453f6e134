//! Tables that are filled element by element, as for edit distances, against the reference: values and gradients of
//! drawn recursions with several moving places.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use crate::common;
use crate::common::engines::{BUDGET, STORAGES, analysed, auto_difference, difference, wanted};
use crate::drawn_gradients::{Outcome, outcome};
use seeded::Stream;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Engine, Request};
use tensor_logic::fast::Fast;
use tensor_logic::gradient::adjoint;
use tensor_logic::gradient::evaluate::with_respect_to;
use tensor_logic::plan::plan;
use tensor_logic::profile::{Executor, Profile};
use tensor_logic::program::{Action, Program};
use tensor_logic::start::all_start_values;

fn one<'a, T: ?Sized>(stream: &mut Stream, of: &[&'a T]) -> &'a T {
    of[stream.below(of.len() as u64) as usize]
}

/// A place that moves: its index, first value, size and direction.
struct Place {
    name: &'static str,
    from: i64,
    size: i64,
    up: bool,
}

impl Place {
    /// Some value, most often the one at which the way begins.
    fn begin(&self, stream: &mut Stream) -> i64 {
        match (stream.below(4), self.up) {
            (0, _) => self.from + stream.below(self.size.max(1) as u64) as i64,
            (_, true) => self.from,
            (_, false) => self.from + self.size - 1,
        }
    }
}

fn shifted(name: &str, by: i64) -> String {
    match by {
        0 => name.to_owned(),
        by => format!("{name}{by:+}"),
    }
}

/// A recursion over two or three moving places, with or without an inner one.
struct Table {
    places: Vec<Place>,
    inner: bool,
    /// What the inner one ranges over, and a value of it.
    range: (&'static str, &'static str),
}

impl Table {
    fn drawn(stream: &mut Stream) -> Table {
        let names: &[&'static str] = if stream.below(5) == 0 { &["i", "j", "h"] } else { &["i", "j"] };
        let place = |name: &&'static str| {
            let from = [0, 0, 1, -2, 3][stream.below(5) as usize];
            let rare = if stream.below(3) == 0 { 8 } else { 5 };
            let size = [4, 5, 3, 3, 2, 1, 4, 0][stream.below(rare) as usize];
            Place { name, from, size, up: stream.below(3) > 0 }
        };
        let places = names.iter().map(place).collect();
        let range = [("2", "0"), ("2", "1"), ("{Ann, Bob}", "Bob"), ("{7, 3}", "7")];
        Table { places, inner: stream.below(4) == 0, range: range[stream.below(4) as usize] }
    }

    fn element(&self, tensor: &str, places: &[String], inner: &str) -> String {
        let inner = if self.inner { format!(", {inner}") } else { String::new() };
        format!("{tensor}[{}{inner}]", places.join(", "))
    }

    /// Steps back: the first place that moves goes the right way, those behind it go anywhere.
    fn offsets(&self, stream: &mut Stream) -> Vec<i64> {
        let leads = stream.below(self.places.len() as u64) as usize;
        let offset = |(at, place): (usize, &Place)| {
            let back = 1 + i64::from(stream.below(4) == 0);
            let back = if place.up { -back } else { back };
            match at.cmp(&leads) {
                std::cmp::Ordering::Less => 0,
                std::cmp::Ordering::Equal => back,
                std::cmp::Ordering::Greater => [0, back, back, -back][stream.below(4) as usize],
            }
        };
        self.places.iter().enumerate().map(offset).collect()
    }

    /// A read of an earlier element, by the left side at hand.
    fn earlier(&self, stream: &mut Stream, tensor: &str, ahead: &[i64], inner: &str) -> String {
        let offsets = self.offsets(stream);
        let places = self.places.iter().zip(&offsets).zip(ahead);
        let places: Vec<String> = places.map(|((place, by), head)| shifted(place.name, by + head)).collect();
        self.element(tensor, &places, inner)
    }

    /// What an element is made of, and under which guard.
    fn body(&self, stream: &mut Stream, tensors: &[&str], ahead: &[i64]) -> String {
        let inner = if self.inner && stream.below(2) == 0 { "l" } else { "k" };
        let tensor = one(stream, tensors);
        let read = self.earlier(stream, tensor, ahead, inner);
        let again = self.earlier(stream, tensor, ahead, inner);
        let weight = if inner == "l" { " U[k, l]" } else { "" };
        // All along the place behind one that moves.
        let mut all: Vec<String> = self.places.iter().map(|place| place.name.to_owned()).collect();
        let first = self.places.first().map_or(1, |place| if place.up { -1 } else { 1 });
        all[0] = shifted("i", first + ahead[0]);
        all[1] = "m".to_owned();
        let all = self.element(tensor, &all, inner);
        let value = match stream.below(18) {
            0 => format!("{read} + 1"),
            1 => format!("0.5 {read}"),
            2 | 3 => format!("{read} + C[i, j]"),
            4 => format!("{read} + (X[i] - Y[j])^2"),
            5 => format!("tanh({read} + {again} + X[i])"),
            6 => format!("min({read}, {again}) + C[i, j]"),
            7 => format!("max({read}, {again} - 1)"),
            8 => format!("{read} + abs(X[i] - Y[j])"),
            9 => format!("{read} X[i] / (1 + Y[j]^2)"),
            10 => format!("{read} + S[a, b]"),
            11 => format!("{read} F(i, j)"),
            12 => format!("{read} + F[i, j]"),
            13 => format!("0.25 {read} {again}"),
            14 => format!("max[m]({all})"),
            15 => format!("sum[m](0.5 {all} X[i] | m <= j)"),
            16 => format!("min[m]({all} + C[i, m] | R(i, m)) + 1"),
            _ => format!("max[a](S[a, a]) + {read} - i"),
        };
        let guard = if value.contains("S[a, b]") {
            " | P(i, a), Q(j, b)"
        } else {
            one(
                stream,
                &[
                    "",
                    "",
                    "",
                    "",
                    " | i > j",
                    " | i != j",
                    " | i + j <= 3",
                    " | N[i] == M[j]",
                    " | P(i, c), Q(j, c)",
                    " | R(i, j)",
                    " | not R(i, j)",
                    " | F(i, j) > 0.5",
                    " | X[i] < Y[j], i >= 0",
                    " | not P(i, _)",
                ],
            )
        };
        let value = if weight.is_empty() { value } else { format!("({value}){weight}") };
        format!("{value}{guard}")
    }

    /// The text of a program whose last line asks for a loss.
    fn text(&self, stream: &mut Stream) -> String {
        let sign = one(stream, &["=", "=", "min=", "min=", "max=", "max=", "*="]);
        let mut lines: Vec<String> = self
            .places
            .iter()
            .map(|place| format!("{} : {}..{}", place.name, place.from, place.from + place.size - 1))
            .collect();
        lines.push(format!("k, l : {}", self.range.0));
        lines.extend(
            self.places.get(1).map(|place| format!("m : {}..{}", place.from, place.from + place.size - 1)),
        );
        for line in [
            "X[i] ~ normal(0, 1)",
            "Y[j] ~ normal(0, 1)",
            "C[i, j] ~ normal(0, 1)",
            "U[k, l] ~ normal(0, 1)",
            "S[\"u\", \"u\"] = 1; S[\"u\", \"v\"] = -0.5; S[\"v\", \"u\"] = 0.25; S[\"v\", \"v\"] = 2",
            "P(i, \"u\") <- i % 2 == 0; P(i, \"v\") <- i != 1",
            "Q(j, \"u\") <- j % 3 != 1; Q(j, \"v\") <- j % 2 != 0",
            "R(i, j) <- (i + 2*j) % 3 != 1",
            "F(i, j) = 0.5 i - 0.25 j + 0.1 | (i + j) % 3 != 2",
            "N[i] = i; M[j] = 2 - j",
        ] {
            lines.push(line.to_owned());
        }
        let tensors: &[&str] = if stream.below(4) == 0 { &["D", "E"] } else { &["D"] };
        for tensor in tensors {
            // Where it begins: at a corner, or along an edge.
            let mut corners: Vec<Vec<String>> = Vec::new();
            for _ in 0..1 + stream.below(3) {
                let along = stream.below(self.places.len() as u64 + 1) as usize;
                let begin = |(at, place): (usize, &Place)| match at == along {
                    true => place.name.to_owned(),
                    false => place.begin(stream).to_string(),
                };
                let places: Vec<String> = self.places.iter().enumerate().map(begin).collect();
                let free = self.places.get(along);
                if free.is_none() {
                    // A fact is written once: an adjoint takes those of one element for one contribution.
                    if corners.contains(&places) {
                        continue;
                    }
                    corners.push(places.clone());
                }
                let value = match (free.map(|place| place.name), stream.below(4)) {
                    (Some(name), 0) => name.to_owned(),
                    (Some("i"), 1) => "X[i]".to_owned(),
                    (Some(name), 2) => format!("0.1 {name} + 0.5"),
                    (_, 3) => "0".to_owned(),
                    _ => "1".to_owned(),
                };
                let guard = match free {
                    Some(place) if stream.below(3) == 0 => format!(" | {} > {}", place.name, place.from),
                    _ => String::new(),
                };
                let inner = if stream.below(3) == 0 { self.range.1 } else { "k" };
                lines.push(format!("{} {sign} {value}{guard}", self.element(tensor, &places, inner)));
            }
            let ahead: Vec<i64> = match stream.below(4) {
                0 => self.places.iter().map(|place| if place.up { 1 } else { -1 }).collect(),
                _ => vec![0; self.places.len()],
            };
            let places = self.places.iter().zip(&ahead);
            let places: Vec<String> = places.map(|(place, by)| shifted(place.name, *by)).collect();
            let head = self.element(tensor, &places, "k");
            for _ in 0..1 + stream.below(3) {
                lines.push(format!("{head} {sign} {}", self.body(stream, tensors, &ahead)));
            }
        }
        let names: Vec<String> = self.places.iter().map(|place| place.name.to_owned()).collect();
        let read = self.element("D", &names, "k");
        lines.push(format!("Loss = 0.1 {read}^2 + {read} | {read} < 50, {read} > -50"));
        lines.push("Loss?".to_owned());
        lines.join("\n")
    }
}

/// How many stepped components were gone through by loops over numbers, and how many otherwise.
fn steps(profile: &Profile) -> [usize; 2] {
    [Executor::Numbers, Executor::Slices]
        .map(|executor| profile.components.iter().filter(|own| own.executor == executor).count())
}

/// The same of the gradient of a program's loss.
fn steps_of_gradient(program: &Program) -> [usize; 2] {
    let loss = program.actions.iter().find_map(|action| match action {
        Action::Query(query) => Some(query.tensor),
        Action::Write { .. } => None,
    });
    let Some((loss, wrt)) = loss.and_then(|loss| Some((loss, with_respect_to(program, loss, &[]).ok()?)))
    else {
        return [0, 0];
    };
    let adjoint = adjoint(program, loss, &wrt);
    let goals: Vec<_> = adjoint.gradients.iter().copied().flatten().collect();
    let parameters = all_start_values(&adjoint.program);
    let mut engine = Auto::new(Box::new(Fast::default()));
    engine.observe(true);
    let request = Request { program: &adjoint.program, parameters: &parameters, budget: BUDGET };
    match engine.values(&request, &goals) {
        Ok(_) => steps(&engine.observed().unwrap()),
        Err(_) => [0, 0],
    }
}

#[test]
fn tables_have_the_values_of_the_reference() {
    let (first, count) = (seeded::test_seed(), common::drawn(400));
    let (mut legal, mut taken) = (0, [0, 0]);
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "tables", seed).stream(0);
        let text = Table::drawn(&mut stream).text(&mut stream);
        let Ok(program) = analysed(&text) else { continue };
        legal += 1;
        let planned = steps(&plan(&program, &Fast::default(), BUDGET).unwrap());
        taken = [taken[0] + planned[0], taken[1] + planned[1]];
        let wanted = wanted(&program);
        for storage in STORAGES {
            if let Some(how) = difference(&program, storage, &wanted) {
                panic!("seed {seed}\n{text}\n{how}");
            }
        }
    }
    println!("{legal} of {count} are programs; steps of numbers, and slices: {taken:?}");
    assert!(2 * legal > count, "{legal} of {count} are programs");
    assert!(taken[0] > 9 * taken[1], "steps of numbers, and slices: {taken:?}");
}

#[test]
fn tables_have_the_gradients_of_dual_numbers() {
    let (first, count) = (seeded::test_seed(), common::drawn(150));
    let (mut same, mut others, mut taken) = (0, 0, [0, 0]);
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "gradients of tables", seed).stream(0);
        let text = Table::drawn(&mut stream).text(&mut stream);
        let storage = STORAGES[stream.below(STORAGES.len() as u64) as usize];
        match outcome(&text, storage) {
            Outcome::Same => same += 1,
            Outcome::Nothing => {}
            Outcome::Rounding(_) | Outcome::Steep | Outcome::Unprinted => others += 1,
            other => panic!("seed {seed}, {storage:?}\n{text}\n{other:?}"),
        }
        if let Ok(program) = analysed(&text) {
            let of = steps_of_gradient(&program);
            taken = [taken[0] + of[0], taken[1] + of[1]];
        }
    }
    println!("{same} of {count}, {others} hang on more; steps of numbers, and slices: {taken:?}");
    assert!(2 * same > count, "{same} of {count} have gradients");
    assert!(10 * others <= count, "{others} of {count} hang on more than the recursion");
    assert!(taken[0] > 4 * taken[1], "steps of numbers, and slices: {taken:?}");
}

/// Loops divide as all others do: -0 is 0.
#[test]
fn a_divisor_of_0_has_no_sign() {
    let one = "t : 0..3\nX = [0, 1, 0, 2]\nD[0] = 1\nD[t+1] = 1 / (-X[t]) + 0.5 D[t]\nD?";
    let two = "i, j : 0..2\nX = [[0, 1, 0], [1, 0, 2], [0, 0, 1]]\nD[0, 0] = 1\n\
               D[i, j] = 1 / (-X[i, j]) + (-X[i, j])^-1 + 0.5 D[i-1, j] + D[i, j-1] | i + j > 0\nD?";
    for text in [one, two] {
        let program = analysed(text).unwrap();
        assert_eq!(auto_difference(&program, &wanted(&program)), None, "{text}");
    }
}
