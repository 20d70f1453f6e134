//! What stands on the right of random equations: reads at moved and computed places, products, functions and guards.

use super::drawn::{Class, Drawn, Known};

/// The indices of a left side.
pub(super) type Left<'a> = &'a [&'static str];

/// A read of a tensor at these places.
pub(super) fn read(name: &str, round: bool, places: &[String]) -> String {
    match (places.is_empty(), round) {
        (true, _) => name.to_owned(),
        (_, true) => format!("{name}({})", places.join(", ")),
        _ => format!("{name}[{}]", places.join(", ")),
    }
}

impl Drawn<'_> {
    /// A place with this index: as it is or, so often of a hundred, moved, turned, spread or folded.
    pub(super) fn place(&mut self, index: &str, moved: u64) -> String {
        if !self.chance(moved) {
            return index.to_owned();
        }
        let n = self.sizes.0;
        let by = self.one(&[1, 1, 1, 2, 2, 3, n / 3]);
        match self.below(8) {
            0 | 1 => format!("{index}+{by}"),
            2 | 3 => format!("{index}-{by}"),
            4 => format!("{}-{index}", n - 1),
            5 => format!("2*{index}"),
            6 => format!("{index}/2"),
            _ => format!("{index}%7"),
        }
    }

    /// A read at all the indices in `wanted` (if it has as many places), and at others and constants.
    pub(super) fn reference(
        &mut self,
        left: Left<'_>,
        summed: Left<'_>,
        wanted: Left<'_>,
        moved: u64,
    ) -> String {
        let least = usize::from(!wanted.is_empty());
        let candidates = self.matching(|known| known.places.len() >= least);
        let weight = |known: &Known| {
            let square = 1 + u64::from(!known.round && known.derived);
            square * if known.places.len() == 2 { 3 } else { 1 }
        };
        let weights: Vec<u64> = candidates.iter().map(weight).collect();
        let Some(known) = self.stream.choose(&weights).map(|at| candidates[at].clone()) else {
            return "2".to_owned();
        };
        let mut waiting = self.shuffled(wanted);
        let mut places: Vec<String> = Vec::new();
        for _ in &known.places {
            let place = match (waiting.pop(), self.below(4)) {
                (Some(index), _) => self.place(index, moved),
                (None, 0) if !left.is_empty() => {
                    let index = self.one(left);
                    self.place(index, moved)
                }
                (None, 1) if !summed.is_empty() => {
                    let index = self.one(summed);
                    self.place(index, moved)
                }
                (None, 3) => "_".to_owned(),
                (None, _) => self.constant().to_string(),
            };
            places.push(place);
        }
        if known.places.len() == 2 && wanted.len() == 1 && self.chance(15) {
            places = vec![wanted[0].to_owned(); 2];
        }
        if known.places.len() == 2 && wanted.len() < 2 {
            places = self.shuffled(&places);
        }
        self.fitted(&mut places, &known.places);
        if known.block {
            places.push(self.one(&["d", "d", "e", "_", "1"]).to_owned());
        }
        // Mostly as the tensor is; a relation in square brackets and a square one in round ones have another meaning.
        let round = known.round == self.chance(80);
        read(&known.name, round, &places)
    }

    /// Moves an index that would bring two domains into one class.
    fn fitted(&mut self, places: &mut [String], classes: &[Class]) {
        if !self.rectangle {
            return;
        }
        let turned: Vec<Class> = places.iter().rev().map(|place| self.class(place)).collect();
        if turned == classes && !classes.contains(&Class::Open) {
            places.reverse();
        }
        for (place, class) in places.iter_mut().zip(classes) {
            let own = self.class(place);
            if own != Class::Open && *class != Class::Open && own != *class {
                *place = format!("{place}{}", self.one(&["+1", "-1", "-0", "+2"]));
            }
        }
    }

    /// A product in which all indices of the left side occur.
    pub(super) fn product(&mut self, left: Left<'_>) -> String {
        let summed: Left<'_> = match self.below(5) {
            _ if self.large && self.chance(85) => [&["k"][..], &[], &[], &[]][self.below(4) as usize],
            0 => &[],
            1 | 2 => &["k"],
            3 => &["m"],
            _ => &["k", "m"],
        };
        let mut waiting = self.shuffled(left);
        let mut factors = Vec::new();
        while !waiting.is_empty() {
            let count = self.one(&[1, 2, 2]).min(waiting.len());
            let mut wanted: Vec<&'static str> = waiting.drain(..count).collect();
            if count == 1 && !summed.is_empty() && self.chance(60) {
                wanted.push(summed[0]);
            }
            factors.push(self.reference(left, summed, &wanted, 30));
        }
        if self.chance(35) || factors.is_empty() {
            let wanted = if left.is_empty() { Vec::new() } else { vec![self.one(left)] };
            factors.push(self.reference(left, summed, &wanted, 30));
        }
        if self.chance(8) && !left.is_empty() {
            factors.push(format!("not {}", self.condition(left)));
        }
        if self.chance(8) && !left.is_empty() {
            factors.push(self.one(left).to_owned());
        }
        factors = self.shuffled(&factors);
        if self.chance(15) {
            let number = self.one(&["2", "2", "3", "(-1)", "(-2)"]);
            factors.insert(0, number.to_owned());
        }
        factors.join(" ")
    }

    /// A relation at indices of the left side.
    pub(super) fn condition(&mut self, left: Left<'_>) -> String {
        let relations = self.matching(|known| known.round && known.places.len() <= left.len().max(1));
        let known = self.one(&relations);
        let mut places = Vec::new();
        for _ in &known.places {
            let index = self.one(left);
            places.push(if self.chance(85) { self.place(index, 20) } else { "_".to_owned() });
        }
        if known.places.len() == 2 && left.len() > 1 && self.chance(70) {
            places = self.shuffled(left).iter().take(2).map(|index| (*index).to_owned()).collect();
        }
        self.fitted(&mut places, &known.places);
        if known.block {
            places.push("_".to_owned());
        }
        read(&known.name, true, &places)
    }

    /// None, one or two guards with the stroke before them.
    pub(super) fn guards(&mut self, left: Left<'_>, percent: u64) -> String {
        let mut guards = Vec::new();
        while !left.is_empty() && guards.len() < 2 && self.chance(percent) {
            let guard = self.guard(left);
            guards.extend(guard);
        }
        if guards.is_empty() { String::new() } else { format!(" | {}", guards.join(", ")) }
    }

    fn guard(&mut self, left: Left<'_>) -> Option<String> {
        let (a, b) = (self.one(left), self.one(left));
        Some(match self.below(100) {
            0..30 => self.condition(left),
            30..40 => format!("not {}", self.condition(left)),
            40..55 if a != b => format!("{a} {} {b}", self.one(&["<", "<=", "!=", "=="])),
            40..70 => format!("{a} % {} == {}", self.one(&[2, 3, 7]), self.below(2)),
            70..78 => format!("{a} < {}", self.constant()),
            78..88 => self.computed_guard(a, b)?,
            88..93 if a != b => format!("abs({a} - {b}) <= {}", self.one(&[0, 1, 5])),
            // In floating point, what is 0 but for rounding would decide.
            _ => {
                let fits = |known: &Known| known.places.len() == left.len() && !known.block;
                let tensors = self.matching(|known| fits(known) && (self.exact || !known.derived));
                if tensors.is_empty() {
                    return None;
                }
                let known = self.one(&tensors);
                let order = if self.rectangle { left.to_vec() } else { self.shuffled(left) };
                let mut places: Vec<String> = order.iter().map(|index| (*index).to_owned()).collect();
                self.fitted(&mut places, &known.places);
                let sign = self.one(&[">", "<", "!=", ">="]);
                format!("{} {sign} {}", read(&known.name, known.round, &places), self.below(2))
            }
        })
    }

    /// A guard that computes one side from the other, or from an element.
    fn computed_guard(&mut self, a: &str, b: &str) -> Option<String> {
        let lines = self.matching(|known| known.places.len() == 1 && !known.block && !known.derived);
        if lines.is_empty() {
            return None;
        }
        let (v, w) = (self.one(&lines).name, self.one(&lines).name);
        Some(match self.below(11) {
            0 => format!("{v}[{a}] == {b}"),
            1 => format!("{v}[{a}] == {w}[{b}]"),
            2 => format!("{b} == {a} + {v}[{a}]"),
            3 => format!("{a}/4 == {b}/4"),
            4 => format!("{a}%8 == {b}%8"),
            5 => format!("{a} == 2*{b} + 1"),
            6 => format!("{a} + {b} == {}", self.constant() + 3),
            7 => format!("Even({a})"),
            8 => format!("not Odd({b}+1)"),
            9 => format!("{v}[{a}] < {w}[{b}]"),
            _ => format!("{a} * {b} < 9"),
        })
    }

    /// A function of a term.
    fn within(&mut self, term: &str, left: Left<'_>) -> String {
        let name = if self.exact {
            self.one(&["relu", "abs", "step", "sign", "relu"])
        } else {
            self.one(&[
                "tanh", "tanh", "relu", "sig", "exp", "abs", "sin", "leaky", "sqrt", "max", "min", "cos",
                "softplus", "gelu", "silu", "power", "log",
            ])
        };
        match name {
            "log" if self.odd => format!("log({}({term}))", self.one(&["abs", "", "1 + abs"])),
            "log" => format!("log(1 + abs({term}))"),
            "power" => {
                let exponents: &[&str] =
                    if self.odd { &["0", "2", "3", "0.5", "(-1)"] } else { &["0", "2", "3"] };
                format!("({}({term}))^{}", self.one(&["abs", "", "tanh"]), self.one(exponents))
            }
            // A slope that is infinite where the term is 0 belongs to values only.
            "sqrt" if self.task != super::drawn::Task::Values => format!("sqrt(1 + abs({term}))"),
            "sqrt" => format!("sqrt(abs({term}))"),
            "exp" => format!("exp(tanh({term}))"),
            "leaky" => format!("leaky({term}, 0.1)"),
            "max" | "min" => format!("{name}({term}, {})", self.one(&["0", "1", "-1"])),
            _ => {
                let guards = if self.chance(40) { self.guards(left, 15) } else { String::new() };
                format!("{name}({term}{guards})")
            }
        }
    }

    /// A sum of so many terms.
    pub(super) fn sum(&mut self, left: Left<'_>, terms: &[u64]) -> String {
        let count = self.one(terms);
        let mut sum = String::new();
        for at in 0..count {
            let sign = match (at, self.below(10)) {
                (0, 0) => "-",
                (0, _) => "",
                (_, 0..6) => " + ",
                _ => " - ",
            };
            sum.push_str(sign);
            sum.push_str(&self.term(left));
        }
        sum
    }

    fn term(&mut self, left: Left<'_>) -> String {
        match self.below(100) {
            0..62 => self.product(left),
            62..80 => {
                let mut inner = self.product(left);
                if self.chance(40) {
                    inner = format!("{inner}{}{}", self.one(&[" + ", " - "]), self.product(left));
                }
                self.within(&inner, left)
            }
            80..88 => {
                let mut names = vec!["max", "min", "sum", "sum", "count"];
                if !self.exact {
                    names.push("avg");
                }
                if !self.large && self.task == super::drawn::Task::Values {
                    names.push("prod");
                }
                let all = [left, &["k"]].concat();
                let (name, product) = (self.one(&names), self.product(&all));
                let guards = self.guards(&all, 20);
                if left.contains(&"k") { product } else { format!("{name}[k]({product}{guards})") }
            }
            88..94 => format!("({})^2", self.product(left)),
            _ if self.exact => self.product(left),
            _ => {
                let wanted: Vec<&'static str> = left.iter().copied().take(1).collect();
                let other = self.reference(left, &[], &wanted, 30);
                let by = match self.below(3) {
                    0 => "2".to_owned(),
                    1 if self.odd => other,
                    _ => format!("(1 + abs({other}))"),
                };
                format!("{} / {by}", self.product(left))
            }
        }
    }
}
