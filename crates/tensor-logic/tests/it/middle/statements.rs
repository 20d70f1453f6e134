//! Random equations, chains of joins, recursions, and what is asked of them.

use super::drawn::{Class, Drawn, Known};
use super::terms::{Left, read};

impl Drawn<'_> {
    fn left(&mut self) -> Left<'static> {
        const TWO: Left<'static> = &["i", "j"];
        let left: Left<'static> =
            self.one(&[TWO, TWO, TWO, TWO, TWO, TWO, &["i"], &["j"], &["j", "i"], &["i", "k"], &["k"]]);
        // Thousands by thousands are what a dense storage cannot hold.
        if self.rectangle && self.large && left == ["i", "k"] { TWO } else { left }
    }

    pub(super) fn equation(&mut self) {
        let (left, name, round) = (self.left(), self.name("Y"), self.chance(50));
        match self.below(100) {
            0..50 => {
                let sum = self.sum(left, &[1, 1, 2, 2, 2, 3]);
                self.define(&read(&name, false, &plain(left)), "=", &sum, left);
                if self.chance(30) {
                    let places = if self.chance(50) { self.computed(left) } else { plain(left) };
                    if places.len() == left.len() {
                        let sum = self.sum(left, &[1, 1, 2]);
                        self.define(&read(&name, false, &places), "+=", &sum, left);
                    }
                }
                self.derive(&name, false, left, false);
            }
            50..60 => {
                let places = self.computed(left);
                let sign = self.one(&["=", "=", "=", "max=", if self.exact { "=" } else { "avg=" }]);
                let sum = self.sum(left, &[1, 1, 2]);
                self.define(&read(&name, false, &places), sign, &sum, left);
                let classes: Vec<&str> = places.iter().map(String::as_str).collect();
                match sign {
                    "max=" => self.bounded(&name, &classes),
                    _ if places.len() > 2 => self.asked.push(name),
                    _ => self.derive(&name, false, &classes, false),
                }
            }
            60..70 => self.signed(&name, round, left),
            70..82 => self.relation_of(&name, left),
            82..89 if !self.exact => {
                let function = self.one(&["softmax", "lnorm", "softmax"]);
                let mut places = plain(left);
                if let Some(last) = places.last_mut() {
                    last.push('.');
                }
                let (sum, guards) = (self.sum(left, &[1, 1, 2]), self.guards(left, 35));
                let sign = if round { "+=" } else { "=" };
                let head = read(&name, round, &places);
                self.lines.push(format!("{head} {sign} {function}({sum}{guards})"));
                self.derive(&name, round, left, false);
            }
            82..95 if !self.large => self.blocks(&name, round),
            _ => {
                let sum = self.sum(&["i", "j"], &[1, 2, 3]);
                self.define(&format!("{name}[i, j]"), "=", &sum, &["i", "j"]);
                self.derive(&name, false, &["i", "j"], false);
            }
        }
    }

    fn define(&mut self, head: &str, sign: &str, sum: &str, left: Left<'_>) {
        let guards = self.guards(left, 35);
        self.lines.push(format!("{head} {sign} {sum}{guards}"));
    }

    /// Places that indices compute.
    fn computed(&mut self, left: Left<'_>) -> Vec<String> {
        let n = self.sizes.0;
        match (left, self.below(20)) {
            ([a, b], 0..3) => vec![format!("{a}+{b}")],
            ([a, b], 3..5) => vec![format!("{a}-{b}"), (*b).to_owned()],
            ([a, b], 5) => vec![(*a).to_owned(), (*b).to_owned(), self.one(&["0", "2"]).to_owned()],
            ([a], 0..5) => vec![(*a).to_owned(), (*a).to_owned()],
            ([a], 5..9) => vec![self.constant().to_string(), (*a).to_owned()],
            ([a], 9..12) => vec![(*a).to_owned(), self.constant().to_string()],
            _ => {
                let mut place = |index: &&str| match self.below(8) {
                    0 | 1 => (*index).to_owned(),
                    2 => format!("{index}+{}", self.one(&[1, 2, 5])),
                    3 => format!("{index}/2"),
                    4 => format!("{index}%5"),
                    5 => format!("{index}-1"),
                    6 => format!("2*{index}"),
                    _ => format!("{n}-{index}"),
                };
                left.iter().map(&mut place).collect()
            }
        }
    }

    /// What a maximum leaves infinite is read through bounds.
    fn bounded(&mut self, name: &str, places: &[&str]) {
        self.asked.push(name.to_owned());
        if places.len() > 2 {
            return;
        }
        let own: Left<'_> = if places.len() == 1 { &["i"] } else { &["i", "j"] };
        // Where a place is computed, no other tensor says how many values it has: a computed one is read at an index again.
        let same = places.iter().all(|place| place.len() == 1);
        let places = if same { places.iter().map(|place| (*place).to_owned()).collect() } else { plain(own) };
        let bounded = self.name("Y");
        let (head, of) = (read(&bounded, false, &places), read(name, false, &places));
        self.lines.push(format!("{head} = max(min({of}, 9), -9)"));
        let names: Vec<&str> = places.iter().map(String::as_str).collect();
        self.derive(&bounded, false, &names, false);
    }

    /// An equation of another sign, or two.
    fn signed(&mut self, name: &str, round: bool, left: Left<'_>) {
        let mut signs = vec!["max=", "min=", "or=", "max="];
        if !self.exact {
            signs.extend(["avg=", "avg="]);
        }
        if self.task == super::drawn::Task::Values {
            signs.push("*=");
        }
        let (sign, head) = (self.one(&signs), read(name, round, &plain(left)));
        let sum = self.sum(left, &[1, 1, 2]);
        self.define(&head, sign, &sum, left);
        if self.chance(25) {
            let sum = self.sum(left, &[1]);
            self.define(&head, sign, &sum, left);
        }
        if !round && matches!(sign, "max=" | "min=") {
            self.bounded(name, left);
        } else {
            self.derive(name, round, left, false);
        }
    }

    /// A relation by a rule, by a sum of numbers, or by what is above 0.
    fn relation_of(&mut self, name: &str, left: Left<'_>) {
        let head = read(name, true, &plain(left));
        if self.chance(25) {
            let mut body: Vec<String> = Vec::new();
            for _ in 0..2 {
                let literal = match self.chance(50) {
                    true => self.condition(left),
                    false => self.reference(left, &["k"], left, 30),
                };
                body.push(literal);
            }
            if self.chance(40) {
                let literal = match self.below(3) {
                    0 => format!("not {}", self.condition(left)),
                    1 => format!("{} % 3 != 1", left[0]),
                    _ => format!("{} != {}", left[0], left[left.len() - 1]),
                };
                body.push(literal);
            }
            self.lines.push(format!("{head} <- {}", body.join(", ")));
        } else {
            let sign = self.one(&["+=", "+=", "="]);
            for _ in 0..1 + u64::from(sign == "+=" && self.chance(30)) {
                let sum = self.sum(left, &[1, 1, 2]);
                self.define(&head, sign, &sum, left);
            }
        }
        self.derive(name, true, left, false);
    }

    /// A tensor that holds a block of three elements for a tuple.
    fn blocks(&mut self, name: &str, round: bool) {
        let left: Left<'static> = if self.chance(50) { &["i"] } else { &["i", "j"] };
        let all = [left, &["d"]].concat();
        let sources = self.matching(|known| known.block);
        let source = self.one(&sources);
        let mut places = Vec::new();
        for class in &source.places {
            let index = if *class == Class::Second { "m" } else { self.one(&["i", "k"]) };
            places.push(self.place(index, 20));
        }
        places.push("d".to_owned());
        let mut body = format!("{} {}", read(&source.name, source.round, &places), self.product(left));
        if self.chance(40) {
            body = format!("{}({body})", if self.exact { "relu" } else { "tanh" });
        }
        if self.chance(40) {
            body = format!("{body} + {}", self.product(left));
        }
        let sign = if round { "+=" } else { "=" };
        let guards = self.guards(left, 35);
        self.lines.push(format!("{} {sign} {body}{guards}", read(name, round, &plain(&all))));
        self.derive(name, round, left, true);
    }

    /// Square tensors of two plain places that equations define.
    fn squares(&self) -> Vec<Known> {
        let plain = [self.class("i"), self.class("j")];
        self.matching(|known| known.derived && !known.round && !known.block && known.places == plain)
    }

    /// What stands beside equations: new versions, facts of what is also defined, folds, transposes.
    pub(super) fn beside(&mut self) {
        let (two, round) = (&["i", "j"][..], self.chance(50));
        let sign = if round { "+=" } else { "=" };
        let name = self.name("Y");
        match self.below(100) {
            0..35 => {
                let squares = self.squares();
                if squares.is_empty() {
                    return;
                }
                let name = self.one(&squares).name;
                let before = match self.below(3) {
                    0 => format!("{name}[i, j] + "),
                    1 => format!("2 {name}[i, j] - "),
                    _ => String::new(),
                };
                let (product, guards) = (self.product(two), self.guards(two, 20));
                self.lines.push(format!("{name}[i, j] := {before}{product}{guards}"));
            }
            35..55 => {
                let (n, m) = self.sizes;
                for _ in 0..self.one(&[1, 3]) {
                    let places = [self.value(n).to_string(), self.value(m).to_string()];
                    let line = format!("{} = {}", read(&name, round, &places), self.number());
                    let same = line.split(" = ").next().unwrap_or_default().to_owned();
                    if !self.lines.iter().any(|other| other.starts_with(&same)) {
                        self.lines.push(line);
                    }
                }
                let (sum, guards) = (self.sum(two, &[1, 1, 2]), self.guards(two, 20));
                // The sign of a fact's value is that of all equations.
                self.lines.push(format!("{} = {sum}{guards}", read(&name, round, &plain(two))));
                self.derive(&name, round, two, false);
            }
            55..70 => {
                let (product, guards) = (self.product(two), self.guards(two, 40));
                self.lines.push(format!("{name}[i] = count[j]({product}{guards})"));
                self.derive(&name, false, &["i"], false);
            }
            70..85 => {
                let mut names = vec!["max", "sum", "min", "count"];
                if !self.exact {
                    names.push("avg");
                }
                let fold = self.one(&names);
                let (product, guards) = (self.product(two), self.guards(two, 30));
                let (by, other) = (self.one(&["+", "-"]), self.product(&["i"]));
                let head = read(&name, round, &plain(&["i"]));
                self.lines.push(format!("{head} {sign} {fold}[j]({product}{guards}) {by} {other}"));
                self.derive(&name, round, &["i"], false);
            }
            _ => {
                let (product, moved) = (self.product(two), self.one(&["", "+1", "-2"]));
                self.lines.push(format!("{name}[i, j] = {product}"));
                if !self.rectangle {
                    let product = self.product(two);
                    self.lines.push(format!("{name}[j{moved}, i] += {product}"));
                }
                self.derive(&name, false, two, false);
            }
        }
    }

    /// A product along a path of three to five indices, whose order of joins is for the engine to choose.
    pub(super) fn chain(&mut self) {
        if !self.declared.contains(&"o") {
            self.declared.push("o");
            self.lines.insert(0, format!("o : {}", self.sizes.0));
        }
        let inner = self.shuffled(&["k", "m", "o"]);
        let inner = &inner[..self.one(&[1, 2, 2, 3])];
        let path = [&["i"], inner, &["j"]].concat();
        let pairs = self.matching(|known| known.places.len() == 2 && !known.places.contains(&Class::Open));
        let mut factors = Vec::new();
        for step in path.windows(2) {
            let known = self.one(&pairs);
            let mut places = Vec::new();
            for index in step {
                let constant = self.constant();
                places.push(match self.below(20) {
                    0 => format!("{index}+1"),
                    1 => format!("{index}-1"),
                    2 if !["i", "j"].contains(index) => constant.to_string(),
                    _ => (*index).to_owned(),
                });
            }
            if self.chance(20) {
                places.reverse();
            }
            if known.block {
                places.push("d".to_owned());
            }
            let round = known.round == self.chance(75);
            factors.push(read(&known.name, round, &places));
        }
        if self.chance(20) {
            factors.push(format!("not R({}, {})", self.one(&path), self.one(&path)));
        }
        let product = self.shuffled(&factors).join(" ");
        let left: Left<'static> = self.one(&[&["i", "j"][..], &["i", "j"], &["i"], &["j", "i"]]);
        let (name, round) = (self.name("Y"), self.chance(40));
        let sign = match self.below(6) {
            0 if round => "max=",
            1 if round && !self.exact => "avg=",
            _ if round => "+=",
            _ => "=",
        };
        let head = read(&name, round, &plain(left));
        self.define(&head, sign, &product, left);
        self.derive(&name, round, left, false);
    }

    pub(super) fn recursion(&mut self) {
        let relations = self.matching(|known| {
            known.round && known.places.len() == 2 && !known.block && !known.places.contains(&Class::Open)
        });
        let (relation, name, round) = (self.one(&relations).name, self.name("Z"), self.chance(50));
        let sign = if round { "+=" } else { "=" };
        match self.below(10) {
            0..4 => self.steps(&relation, &name, round),
            4..6 => {
                let end = if self.chance(30) { ", not S(z)" } else { "" };
                self.lines.push(format!("{name}(x, y) <- {relation}(x, y)"));
                self.lines.push(format!("{name}(x, z) <- {name}(x, y), {relation}(y, z){end}"));
                self.derive(&name, true, &["i", "j"], false);
            }
            6..8 => {
                let guard = if self.chance(20) { " | S(i)" } else { "" };
                let at = |places: &[&str]| read(&name, round, &plain(places));
                self.lines.push(format!("{} min= abs({relation}(i, j)){guard}", at(&["i", "j"])));
                let longer = format!("{} + abs({relation}(k, j))", at(&["i", "k"]));
                self.lines.push(format!("{} min= {longer}", at(&["i", "j"])));
                self.asked.push(name.clone());
                let near = self.name("Y");
                self.lines.push(format!("{near}[i, j] = {name}(i, j) | {name}[i, j] < 5"));
                self.asked.push(near);
                if round {
                    self.derive(&name, true, &["i", "j"], false);
                }
            }
            _ => {
                let (product, by) = (self.product(&["i"]), self.one(&["0.05", "0.1"]));
                let arc = self.one(&["(k, i)", "(i, k)"]);
                let at = |index: &str| read(&name, round, &plain(&[index]));
                let again = format!("{by} tanh({} {relation}{arc})", at("k"));
                self.lines.push(format!("{} {sign} {product} + {again}", at("i")));
                self.exact = false;
                self.derive(&name, round, &["i"], false);
            }
        }
    }

    /// A recursion over steps.
    fn steps(&mut self, relation: &str, name: &str, round: bool) {
        let left: Left<'static> = if self.chance(40) { &["i", "j"] } else { &["i"] };
        let sign = if round { "+=" } else { "=" };
        let at = |step: &str, indices: &[&str]| read(name, round, &plain(&[&[step], indices].concat()));
        let mut below = left.to_vec();
        below[0] = "k";
        let function = self.one(if self.exact { &["", "relu"] } else { &["", "tanh", "relu"] });
        let by = self.one(if self.exact { &["", ""] } else { &["0.5 ", "", ""] });
        let arc = self.one(&["(k, i)", "(i, k)", "(i-1, k)"]);
        let first = self.product(left);
        let more = if self.chance(40) { format!(" + {}", self.product(left)) } else { String::new() };
        let guards = self.guards(left, 20);
        self.lines.push("t : 5".to_owned());
        self.lines.push(format!("{} {sign} {first}", at("0", left)));
        let again = format!("{function}({by}{} {relation}{arc})", at("t", &below));
        self.lines.push(format!("{} {sign} {again}{more}{guards}", at("t+1", left)));
        self.asked.push(name.to_owned());
        let last = self.name("Y");
        let step = self.one(&["3", "5", "2"]);
        self.lines.push(format!("{} = {}", read(&last, false, &plain(left)), at(step, left)));
        self.derive(&last, false, left, false);
    }

    /// All that is derived, or some of it: what nobody asks for need not be kept.
    pub(super) fn queries(&mut self) {
        let derived = self.matching(|known| known.derived);
        let all = self.chance(50);
        let (mut asked, last) = (Vec::new(), derived.len() - 1);
        for (at, known) in derived.iter().enumerate() {
            if !all && at != last && self.chance(60) {
                continue;
            }
            let mut places = ["i", "j"][..known.places.len()].to_vec();
            if known.block {
                places.push("d");
            }
            let constant = self.constant().to_string();
            let first = [&[constant], &plain(&places)[1..]].concat();
            let name = &known.name;
            asked.push(match self.below(10) {
                0..4 if self.large => read(name, true, &plain(&places)),
                0..2 => read(name, true, &plain(&places)),
                2 => read(name, false, &first),
                3 if places.len() > 1 && known.places.len() > 1 && !self.rectangle => {
                    let block = if known.block { ", d" } else { "" };
                    format!("{name}[i, i{block}]")
                }
                _ => name.clone(),
            });
        }
        let known = &derived[last];
        let mut places = known.places.iter().zip([("i", "j"), ("k", "m")]);
        let mut places: Vec<&str> = places
            .by_ref()
            .map(|(class, (first, second))| if *class == Class::Second { second } else { first })
            .collect();
        if known.block {
            places.push("d");
        }
        if self.chance(60) {
            let read = read(&known.name, self.chance(50), &plain(&places));
            self.lines.push(format!("N = {read} (i + 7 {})", places[places.len() - 1]));
            asked.push("N".to_owned());
        }
        if self.chance(30) && known.places.len() == 2 && !known.block && !self.rectangle {
            self.lines.push(format!("NN = {0}[i, j] {0}[j, i]", known.name));
            asked.push("NN".to_owned());
        }
        if !self.large {
            asked.append(&mut self.asked);
        }
        self.lines.extend(asked.iter().map(|asked| format!("{asked}?")));
    }
}

fn plain(left: &[&str]) -> Vec<String> {
    left.iter().map(|index| (*index).to_owned()).collect()
}
