//! What the other statements never say: the rest of the functions, powers, slices and wildcards, scopes over several indices,
//! sizes and numbers by name, versions, virtual indices, truth by its sign, steps of two, questions of several literals.

use super::{Generator, Known};

impl Generator<'_> {
    pub(super) fn rare_statement(&mut self) {
        match self.below(17) {
            0 | 1 => self.any_function(),
            2 | 3 => self.any_power(),
            4 | 5 => self.partly_read(),
            6 => self.over_several(),
            7 => self.named_axis(),
            8 => self.by_name(),
            9 | 10 => self.compared(),
            11 => self.redefined(),
            12 => self.virtual_place(),
            13 => self.truth(),
            14 => self.by_steps_of_two(),
            15 => self.mutual(),
            _ => self.computed_tuples(),
        }
    }

    /// A left side over some of the used indices, and the tensor noted.
    fn put(&mut self, letter: &str, used: &[String], body: &str) {
        let name = self.name(letter);
        let left = self.left(used);
        let head = if left.is_empty() { name.clone() } else { format!("{name}[{}]", left.join(", ")) };
        let sign = if self.chance(75) { "=" } else { self.pick(&["max=", "min=", "avg=", "*=", "or="]) };
        self.lines.push(format!("{head} {sign} {body}"));
        self.know(name, &left, false);
    }

    fn any_function(&mut self) {
        let mut used = Vec::new();
        let depth = self.below(2);
        let inside = self.expr(depth, &mut used);
        let second = self.pick(&["0.5", "2", "0", "-0.25", "1"]);
        let function = match self.below(11) {
            0 => format!("sin({inside})"),
            1 => format!("cos({inside})"),
            2 => format!("gelu({inside})"),
            3 => format!("silu({inside})"),
            4 => format!("softplus({inside})"),
            5 => format!("leaky({inside}, {second})"),
            6 => format!("sig({inside}, {second})"),
            7 => format!("sqrt(abs({inside}))"),
            8 => format!("log(1 + abs({inside}))"),
            9 => format!("floor({inside})"),
            _ => format!("leaky({inside}, {})", self.read(&mut used)),
        };
        let body = if self.chance(50) { format!("{function} {}", self.read(&mut used)) } else { function };
        self.put("F", &used, &body);
    }

    fn any_power(&mut self) {
        let mut used = Vec::new();
        let base = match self.below(3) {
            0 => self.read(&mut used).trim_start_matches("not ").to_owned(),
            1 => format!("({})", self.expr(1, &mut used)),
            _ => format!("abs({})", self.expr(0, &mut used)),
        };
        let exponent = match self.below(7) {
            0 => format!("{{{} / 2}}", self.index('I', &mut used)),
            1 => format!("({})", self.expr(0, &mut used)),
            _ => self.pick(&["3", "4", "-1", "0.5", "0", "-2", "1.5", "9"]).to_owned(),
        };
        let minus = if self.chance(30) { "-" } else { "" };
        let other = if self.chance(40) { format!(" + {}", self.term(0, &mut used)) } else { String::new() };
        self.put("P", &used, &format!("{minus}{base}^{exponent}{other}"));
    }

    /// A reference of which some places are a wildcard, a slice, or a name of a symbol in quotes.
    fn part_of(&mut self, known: &Known, round: bool, used: &mut Vec<String>) -> String {
        let place = |g: &mut Self, kind: char, used: &mut Vec<String>| match g.below(6) {
            0 => "_".to_owned(),
            1 if kind != 'S' => g.pick(&["0:2", "1:3", ":2", "1:", "2:2", "0:1"]).to_owned(),
            2 if kind == 'S' => format!("\"{}\"", g.constant(kind)),
            3 if kind != 'S' => {
                let index = g.index(kind, used);
                let form = g.pick(&["2-#", "#*2", "(#+1)/2", "#%2+1", "-#", "3-#", "#/3", "(2*#+1)%3"]);
                form.replace('#', &index)
            }
            _ => g.index(kind, used),
        };
        let places: Vec<String> = known.places.iter().map(|kind| place(self, *kind, used)).collect();
        let (open, close) = if round { ("(", ")") } else { ("[", "]") };
        format!("{}{open}{}{close}", known.name, places.join(", "))
    }

    fn partly_read(&mut self) {
        let known = self.any();
        if known.places.is_empty() {
            return;
        }
        let mut used = Vec::new();
        let round = known.round != self.chance(20);
        let read = self.part_of(&known, round, &mut used);
        let not = if round && self.chance(25) { "not " } else { "" };
        let other = self.read(&mut used);
        let body = match self.below(4) {
            0 => format!("{not}{read} {other}"),
            1 => format!("relu({other} | {not}{read})"),
            2 => format!("{other} | {not}{read}"),
            _ => format!("{other} {not}{read} + {}", self.term(0, &mut used)),
        };
        self.put("W", &used, &body);
    }

    fn over_several(&mut self) {
        let scope = self.pick(&["sum", "max", "min", "avg", "prod", "count"]);
        let mut inner = Vec::new();
        let depth = self.below(2);
        let inside = self.expr(depth, &mut inner);
        if inner.len() < 2 {
            return;
        }
        let guard = if self.chance(40) { format!(" | {}", self.guards(&mut inner)) } else { String::new() };
        let rest: Vec<String> = inner[2..].to_vec();
        let body = format!("{scope}[{}, {}]({inside}{guard})", inner[0], inner[1]);
        let mut used = rest;
        let body = match self.below(3) {
            0 => format!("{body} {}", self.read(&mut used)),
            1 => format!("{} - {body}", self.term(0, &mut used)),
            _ => body,
        };
        self.put("G", &used, &body);
    }

    /// softmax or lnorm inside of an equation, along an axis that it names.
    fn named_axis(&mut self) {
        let mut used = Vec::new();
        let body = self.expr(0, &mut used).replace("exp(", "tanh(");
        let Some(axis) = used.first().cloned() else { return };
        let guard = if self.chance(40) { format!(" | {}", self.guards(&mut used)) } else { String::new() };
        let function = match self.below(4) {
            0 => format!("lnorm[{axis}]({body}, {})", self.pick(&["1", "0.5", "1e-3"])),
            1 => format!("lnorm[{axis}]({body}{guard})"),
            _ => format!("softmax[{axis}]({body}{guard})"),
        };
        let body = match self.below(3) {
            0 => format!("{function} {}", self.read(&mut used)),
            1 => format!("relu({function} - 0.25)"),
            _ => format!("2 {function} + {}", self.term(0, &mut used)),
        };
        self.put("S", &used, &body);
    }

    /// A number by its name in an index, and the size of an index by the index's.
    fn by_name(&mut self) {
        let name = self.name("L");
        let value = self.below(4);
        self.lines.push(format!("{name} = {value}"));
        let Some(known) = self.of_integers(1) else { return };
        let mut used = Vec::new();
        let index = self.index('I', &mut used);
        let place = match self.below(4) {
            0 => name.clone(),
            1 => format!("{index}+{name}"),
            2 => format!("{name}-{index}"),
            _ => format!("{index}%{name}"),
        };
        let (open, close) = if known.round { ("(", ")") } else { ("[", "]") };
        let read = format!("{}{open}{place}{close}", known.name);
        let other = self.read(&mut used);
        let body = match self.below(4) {
            0 => format!("{read} {other} / {}", index.to_uppercase()),
            1 => format!("{read} {other} | {index} < {name}"),
            2 => format!("{read} + {name} {other}"),
            _ => format!("{read} {other}"),
        };
        self.put("N", &used, &body);
    }

    /// Comparisons of index expressions, of symbols and of values with values.
    fn compared(&mut self) {
        let mut used = Vec::new();
        let body = self.term(0, &mut used);
        let ints: Vec<String> = used.iter().filter(|i| super::INTS.contains(&i.as_str())).cloned().collect();
        let symbols: Vec<String> =
            used.iter().filter(|i| super::SYMBOLS.contains(&i.as_str())).cloned().collect();
        let sign = self.pick(&["<", "<=", ">", ">=", "==", "!="]);
        let equal = self.pick(&["==", "!="]);
        let guard = match (ints.first().cloned(), symbols.first().cloned()) {
            (_, Some(x)) if self.chance(60) => match self.below(3) {
                0 => format!("{x} {equal} {}", self.constant('S')),
                1 => format!("{x} {equal} {}", symbols.last().cloned().unwrap_or_default()),
                _ => format!("{x} {equal} \"{}\"", self.constant('S')),
            },
            (Some(i), _) => {
                let j = ints.last().cloned().unwrap_or_default();
                match self.below(8) {
                    0 => format!("2*{i} {sign} {j} + 1"),
                    1 => format!("{i} / 2 {equal} {j}"),
                    2 => format!("{i} * {j} {sign} 2"),
                    3 => format!("{i} {sign} {}", self.below(3)),
                    4 => format!("Even({i})"),
                    5 => format!("not Odd({i})"),
                    6 => format!("{} {sign} {}", self.read(&mut used), self.read(&mut used))
                        .replace("not ", ""),
                    _ => format!("r = {i} + {j}, r % 2 == 0, r < 3"),
                }
            }
            _ => return,
        };
        let body = match self.below(4) {
            0 => format!("tanh({body} | {guard})"),
            1 => format!("({body} | {guard}) + 1"),
            _ => format!("{body} | {guard}"),
        };
        self.put("C", &used, &body);
    }

    /// A new version of a tensor, its old one read before.
    fn redefined(&mut self) {
        let known = self.any();
        if known.round || known.places.len() > 2 || known.places.contains(&'S') {
            return;
        }
        let left: Vec<&str> = ["i", "j"].into_iter().take(known.places.len()).collect();
        let own = match left.is_empty() {
            true => known.name.clone(),
            false => format!("{}[{}]", known.name, left.join(", ")),
        };
        let before = self.name("T");
        let head = own.replacen(&known.name, &before, 1);
        self.lines.push(format!("{head} = 2 {own}"));
        let mut used: Vec<String> = left.iter().map(|index| (*index).to_owned()).collect();
        let other = self.term(0, &mut used);
        let body = self.pick(&["0.5 # + ", "relu(#) - ", "# "]).replace('#', &own);
        self.lines.push(format!("{own} := {body}{other}"));
        self.known.push(Known { name: before, ..known });
    }

    /// A place of which the last slice is kept.
    fn virtual_place(&mut self) {
        let (name, other) = (self.name("H"), self.name("E"));
        let t = self.fresh_index("t");
        let Some(vector) = self.of_integers(1).filter(|known| !known.round) else { return };
        let vector = vector.name;
        let function = self.pick(&["tanh", "relu", "sig"]);
        let most = 1 + self.below(4);
        self.lines.push(format!("{t} : 0..{most}"));
        if self.chance(60) {
            let start = self.number();
            self.lines.push(format!("{name}[0, i] = {start}"));
        }
        self.lines.push(format!("{name}[*{t}+1, i] = {function}(0.5 {name}[*{t}, i] + {vector}[i])"));
        let last = most + self.below(2);
        self.lines.push(format!("{other}[i] = {name}[{last}, i]"));
        self.known.push(Known { name: other, places: vec!['I'], round: false });
    }

    /// Truth by its sign: of sums under `=`, of what is above 0 under `or=`, and of facts beside rules.
    fn truth(&mut self) {
        let mut used = Vec::new();
        let depth = self.below(2);
        let body = self.expr(depth, &mut used);
        let name = self.name("B");
        let left = self.left(&used);
        if left.is_empty() {
            return;
        }
        let sign = self.pick(&["=", "or=", "="]);
        self.lines.push(format!("{name}({}) {sign} {body}", left.join(", ")));
        if self.chance(30) {
            let tuple: Vec<String> = Self::kinds(&left).iter().map(|kind| self.constant(*kind)).collect();
            self.lines.push(format!("{name}({})", tuple.join(", ")));
        }
        self.know(name, &left, true);
    }

    fn by_steps_of_two(&mut self) {
        let name = self.name("H");
        let t = self.fresh_index("t");
        let mut used = Vec::new();
        let extra = self.term(0, &mut used);
        let weight = self.pick(&["0.5", "-0.5", "1"]);
        let (most, start, second) = (2 + self.below(4), self.number(), self.number());
        self.lines.push(format!("{t} : 0..{most}"));
        self.lines.push(format!("{name}[0, i] = {start}"));
        if self.chance(70) {
            self.lines.push(format!("{name}[1, i] = {second}"));
        }
        match self.below(3) {
            0 => self.lines.push(format!("{name}[{t}+2, i] = {weight} {name}[{t}, i] + {extra}")),
            1 => self.lines.push(format!(
                "{name}[{t}+2, i] = tanh({weight} {name}[{t}+1, i] - 0.25 {name}[{t}, i]) + {extra}"
            )),
            _ => {
                let sign = self.pick(&["max=", "min=", "avg="]);
                self.lines.retain(|line| !line.starts_with(&format!("{name}[")));
                self.lines.push(format!("{name}[0, i] {sign} 1"));
                self.lines.push(format!("{name}[{t}+1, i] {sign} {weight} {name}[{t}, i-1] + {extra}"));
            }
        }
        self.known.push(Known { name, places: vec!['I', 'I'], round: false });
    }

    /// Relations that follow from each other, and sums that do.
    fn mutual(&mut self) {
        let (a, b) = (self.name("M"), self.name("O"));
        match self.binary(true).filter(|_| self.stream.below(3) > 0) {
            Some(edge) => {
                let [x, y, _] = Self::letters(edge.places[0]);
                let e = &edge.name;
                let start = self.constant(edge.places[0]);
                self.lines.push(format!("{a}({start})"));
                self.lines.push(format!("{b}({y}) <- {a}({x}), {e}({x}, {y})"));
                let back = match self.below(3) {
                    0 => format!("{a}({y}) <- {b}({x}), {e}({y}, {x})"),
                    1 => format!("{a}({y}) <- {b}({y}), not {e}({y}, {y})"),
                    _ => format!("{a}({y}) <- {b}({x}), {e}({x}, {y}), {x} != {y}"),
                };
                self.lines.push(back);
                for name in [a, b] {
                    self.known.push(Known { name, places: vec![edge.places[0]], round: true });
                }
            }
            None => {
                let mut used = vec!["i".to_owned()];
                let extra = self.term(0, &mut used);
                self.lines.push(format!("{a}[i] = 0.25 {b}[i] + {extra}"));
                self.lines.push(format!("{b}[i] = tanh(0.5 {a}[i])"));
                for name in [a, b] {
                    self.known.push(Known { name, places: vec!['I'], round: false });
                }
            }
        }
    }

    /// Rules whose heads or bodies compute: `c - x` and `x + c` bind in a body.
    fn computed_tuples(&mut self) {
        let of = |known: &&Known| known.round && known.places == ['I'];
        let unary: Vec<Known> = self.known.iter().filter(of).cloned().collect();
        let binary = self.binary(true).filter(|known| known.places[0] == 'I');
        let name = self.name("P");
        let (body, places) = match (unary.first(), binary) {
            (Some(one), _) if self.chance(50) => (format!("{}(i)", one.name), 2),
            (_, Some(two)) => {
                let form = self.pick(&[
                    "#(i, j)",
                    "#(i+1, j)",
                    "#(2-i, j)",
                    "#(i, i-1), #(i, j)",
                    "#(i, j), #(j, i+1)",
                ]);
                (form.replace('#', &two.name), 2)
            }
            _ => return,
        };
        let head = match body.contains('j') {
            true => self.pick(&["i, j", "j, 2*i", "i+j, i", "i/2, j", "j-i, 1", "i%2, i"]),
            false => self.pick(&["i, i", "i, 2*i", "i+1, i", "i/2, i", "3-i, 1"]),
        };
        let more = if self.chance(40) { ", i < 2" } else { "" };
        self.lines.push(format!("{name}({head}) <- {body}{more}"));
        self.known.push(Known { name, places: vec!['I'; places], round: true });
    }

    /// A question of several literals, or with slices and wildcards.
    pub(super) fn rare_query(&mut self) {
        let known = self.any();
        if known.places.is_empty() {
            return;
        }
        let mut used = Vec::new();
        if self.chance(50) {
            let round = known.round;
            let text = self.part_of(&known, round, &mut used);
            self.lines.push(format!("{text}?"));
            return;
        }
        let first = self.reference(&known, true, &mut used);
        let other = self.any();
        if other.places.is_empty() || used.is_empty() {
            return;
        }
        let not = if self.chance(30) { "not " } else { "" };
        let mut second = Vec::new();
        let other = self.reference(&other, true, &mut second);
        let bound = second.iter().all(|index| used.contains(index));
        let more = match self.below(3) {
            0 if bound || not.is_empty() => format!(", {not}{other}"),
            1 => format!(", {} != {}", used[0], used[used.len() - 1]),
            _ => String::new(),
        };
        self.lines.push(format!("{first}{more}?"));
    }
}
