//! Random programs, most of them legal: what the language can say, in small.
//!
//! Enter at [`program`]. Places are of two kinds, integers and symbols, and indices carry their
//! kind in their first letter, so that most reads fit. A program that is refused is as good a
//! test of refusals as any, but it is not run.

mod rare;
mod wide;

use seeded::Stream;

/// A tensor that statements may read.
#[derive(Clone)]
struct Known {
    name: String,
    /// `I`, `S` or the letter of the index whose domain it has, for each place.
    places: Vec<char>,
    round: bool,
}

/// The statements of a random program.
struct Generator<'s> {
    stream: &'s mut Stream,
    lines: Vec<String>,
    known: Vec<Known>,
    next: usize,
    declared: bool,
    /// How many integers most places have.
    size: u64,
    /// The domains of [`INTS`] where these differ, some large; places then have the letter of an index as their kind.
    sizes: Option<[u64; 5]>,
}

const INTS: [&str; 5] = ["i", "j", "k", "m", "n"];
const SYMBOLS: [&str; 4] = ["x", "y", "z", "w"];
const CONSTANTS: [&str; 4] = ["Ann", "Bob", "Cal", "Dee"];

/// The text with another word for a constant.
pub(crate) fn with_word(text: &str, constant: &str, word: &str) -> String {
    let inside = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '\'';
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(constant) {
        let (before, behind) = (&rest[..at], &rest[at + constant.len()..]);
        let alone = !before.ends_with(inside) && !behind.starts_with(inside);
        result.push_str(before);
        result.push_str(if alone { word } else { constant });
        rest = behind;
    }
    result + rest
}

/// A random program, one statement a line.
pub(crate) fn program(stream: &mut Stream) -> Vec<String> {
    let declared = stream.below(3) > 0;
    let mut generator =
        Generator { stream, lines: Vec::new(), known: Vec::new(), next: 0, declared, size: 3, sizes: None };
    if generator.chance(20) {
        generator.sized_data();
    } else {
        generator.data();
    }
    let most = if generator.chance(15) { 10 } else { 5 };
    let statements = 1 + generator.below(most);
    for _ in 0..statements {
        if generator.sizes.is_some() {
            generator.sized_statement();
        } else if generator.chance(25) {
            generator.rare_statement();
        } else if generator.chance(40) {
            generator.wide_statement();
        } else {
            generator.statement();
        }
    }
    generator.queries();
    if generator.sizes.is_none() && generator.chance(30) {
        generator.rare_query();
    }
    // Integers and symbols may share the places of relations.
    if generator.chance(8) {
        let words = [("Bob", "1"), ("Cal", "-2")];
        let most = 1 + generator.below(2) as usize;
        for (constant, word) in &words[..most] {
            generator.lines.iter_mut().for_each(|line| *line = with_word(line, constant, word));
        }
    }
    generator.lines
}

impl Generator<'_> {
    fn below(&mut self, n: u64) -> u64 {
        self.stream.below(n)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.stream.below(100) < percent
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.stream.below(from.len() as u64) as usize]
    }

    fn number(&mut self) -> String {
        let number = self.pick(&["0", "1", "2", "3", "0.5", "1.5", "0.25", "4"]).to_owned();
        if self.chance(20) { format!("-{number}") } else { number }
    }

    fn name(&mut self, letter: &str) -> String {
        self.next += 1;
        format!("{letter}{}", self.next)
    }

    fn data(&mut self) {
        if self.declared {
            self.size = 2 + self.below(3);
            let size = self.size;
            let some = match self.below(5) {
                0 => format!("i, j : {size}"),
                1 => format!("i, j : 1..{size}"),
                _ => format!("i, j, k, m, n : {size}"),
            };
            self.lines.push(some);
            if self.chance(60) {
                let some = self.pick(&["x, y, z, w : {Ann, Bob, Cal}", "x, y : {Ann, Bob, Cal, Dee}"]);
                self.lines.push(some.to_owned());
            }
        }
        for _ in 0..1 + self.below(3) {
            self.array();
        }
        for _ in 0..1 + self.below(3) {
            self.relation();
        }
    }

    /// Arrays and relations over indices of very different domains: of one value, of none, of dozens.
    fn sized_data(&mut self) {
        let mut sizes = [2 + self.below(39), 1 + self.below(20), 1 + self.below(6), 1, 1 + self.below(3)];
        if self.chance(10) {
            let empty = self.below(5) as usize;
            sizes[empty] = 0;
        }
        for at in (1..5).rev() {
            sizes.swap(at, self.stream.below(at as u64 + 1) as usize);
        }
        self.sizes = Some(sizes);
        self.size = 3;
        for (index, size) in INTS.iter().zip(sizes) {
            self.lines.push(format!("{index} : {size}"));
        }
        for _ in 0..2 + self.below(3) {
            let rank = 1 + self.below(2) as usize;
            let places: Vec<usize> = (0..rank).map(|_| self.below(5) as usize).collect();
            let name = self.name("A");
            let of: Vec<u64> = places.iter().map(|place| sizes[*place]).collect();
            let left: Vec<&str> = places.iter().map(|place| INTS[*place]).collect();
            if of.contains(&0) || (rank == 2 && left[0] == left[1]) {
                continue;
            }
            let array = self.array_of(&of);
            self.lines.push(format!("{name}[{}] = {array}", left.join(", ")));
            let kinds = left.iter().filter_map(|index| index.chars().next());
            self.known.push(Known { name, places: kinds.collect(), round: false });
        }
        for _ in 0..1 + self.below(2) {
            let (a, b) = (self.below(5) as usize, self.below(5) as usize);
            let name = self.name("R");
            if sizes[a] * sizes[b] == 0 {
                continue;
            }
            let valued = self.chance(40);
            for _ in 0..1 + self.below(60) {
                let value = if valued { format!(" = {}", self.number()) } else { String::new() };
                let fact = format!("{name}({}, {})", self.below(sizes[a]), self.below(sizes[b]));
                if !self.lines.iter().any(|line| line.starts_with(&fact)) {
                    self.lines.push(fact + &value);
                }
            }
            let kinds = [a, b].into_iter().filter_map(|place| INTS[place].chars().next());
            self.known.push(Known { name, places: kinds.collect(), round: true });
        }
        if self.known.is_empty() {
            self.array();
        }
    }

    fn array(&mut self) {
        let name = self.name("A");
        let size = if self.chance(95) { self.size } else { 4 };
        let rank = self.below(3) as usize;
        let row = |g: &mut Self| {
            let numbers: Vec<String> = (0..size).map(|_| g.number()).collect();
            format!("[{}]", numbers.join(", "))
        };
        let array = match rank {
            0 => self.number(),
            1 => row(self),
            _ => {
                let rows: Vec<String> = (0..size).map(|_| row(self)).collect();
                format!("[{}]", rows.join(", "))
            }
        };
        self.lines.push(format!("{name} = {array}"));
        self.known.push(Known { name, places: vec!['I'; rank], round: false });
    }

    fn relation(&mut self) {
        let name = self.name("R");
        let rank = if self.chance(10) { 3 } else { 1 + self.below(2) as usize };
        let places: Vec<char> = (0..rank).map(|_| if self.chance(60) { 'I' } else { 'S' }).collect();
        let valued = self.chance(40);
        let count = self.below(6);
        let mut seen = Vec::new();
        for _ in 0..count {
            let tuple: Vec<String> = places.iter().map(|kind| self.constant(*kind)).collect();
            let tuple = tuple.join(", ");
            if seen.contains(&tuple) && self.chance(80) {
                continue;
            }
            let value = if valued { format!(" = {}", self.number()) } else { String::new() };
            self.lines.push(format!("{name}({tuple}){value}"));
            seen.push(tuple);
        }
        if count > 0 {
            self.known.push(Known { name, places, round: true });
        }
    }

    fn constant(&mut self, kind: char) -> String {
        let spread = if self.chance(98) { self.size.min(3) } else { 5 };
        if kind != 'S' {
            self.below(spread).to_string()
        } else {
            CONSTANTS[self.below(spread.min(4)) as usize].to_owned()
        }
    }

    /// An index of a kind, noted as used.
    fn index(&mut self, kind: char, used: &mut Vec<String>) -> String {
        let index = match kind {
            'I' => {
                let most = if self.chance(70) { 3 } else { 5 };
                INTS[self.below(most) as usize]
            }
            own if own != 'S' => INTS.into_iter().find(|index| index.starts_with(own)).unwrap_or("i"),
            _ => {
                let most = if self.chance(70) { 2 } else { 4 };
                SYMBOLS[self.below(most) as usize]
            }
        };
        if !used.iter().any(|other| other == index) {
            used.push(index.to_owned());
        }
        index.to_owned()
    }

    fn argument(&mut self, kind: char, used: &mut Vec<String>) -> String {
        match self.below(if self.sizes.is_some() { 16 } else { 12 }) {
            0 if kind != 'S' => {
                let index = self.index(kind, used);
                let what = self.pick(&["+1", "-1", "/2", "+2", "%2"]);
                format!("{index}{what}")
            }
            1 if kind != 'S' => {
                let (a, b) = (self.index(kind, used), self.index(kind, used));
                let sign = self.pick(&["+", "-"]);
                format!("{a}{sign}{b}")
            }
            2 => self.constant(kind),
            3 if kind != 'S' && self.chance(40) => "2*".to_owned() + &self.index(kind, used),
            _ => self.index(kind, used),
        }
    }

    /// A reference to a known tensor.
    fn reference(&mut self, known: &Known, round: bool, used: &mut Vec<String>) -> String {
        let arguments: Vec<String> = known.places.iter().map(|kind| self.argument(*kind, used)).collect();
        let arguments = arguments.join(", ");
        match (round, known.places.is_empty()) {
            (true, _) => format!("{}({arguments})", known.name),
            (false, true) => known.name.clone(),
            (false, false) => format!("{}[{arguments}]", known.name),
        }
    }

    fn any(&mut self) -> Known {
        let at = self.below(self.known.len() as u64) as usize;
        self.known[at].clone()
    }

    fn read(&mut self, used: &mut Vec<String>) -> String {
        let known = self.any();
        let round = if self.chance(75) { known.round } else { !known.round };
        self.reference(&known, round && !known.places.is_empty(), used)
    }

    fn factor(&mut self, depth: u64, used: &mut Vec<String>) -> String {
        if depth == 0 {
            return match self.below(12) {
                0 => self.number().trim_start_matches('-').to_owned(),
                1 => {
                    let index = self.index('I', used);
                    format!("({index} + 1)")
                }
                _ => self.read(used),
            };
        }
        match self.below(16) {
            0 | 1 => {
                let function = self.pick(&["relu", "tanh", "sig", "abs", "step", "exp", "sign", "floor"]);
                let inside = self.expr(depth - 1, used);
                let guard = if self.chance(20) { format!(" | {}", self.guards(used)) } else { String::new() };
                format!("{function}({inside}{guard})")
            }
            2 => format!("({})^2", self.expr(depth - 1, used)),
            3 => format!("({})", self.expr(depth - 1, used)),
            4 => {
                let scope = self.pick(&["sum", "max", "min", "avg", "prod", "count"]);
                let mut inner = Vec::new();
                let inside = self.expr(depth - 1, &mut inner);
                let Some(over) = inner.first().cloned() else { return self.read(used) };
                let guard =
                    if self.chance(25) { format!(" | {}", self.guards(&mut inner)) } else { String::new() };
                for index in inner.into_iter().filter(|index| *index != over) {
                    if !used.contains(&index) {
                        used.push(index);
                    }
                }
                format!("{scope}[{over}]({inside}{guard})")
            }
            5 => {
                let function = self.pick(&["max", "min"]);
                let (a, b) = (self.expr(depth - 1, used), self.expr(depth - 1, used));
                format!("{function}({a}, {b})")
            }
            6 => {
                let known = self.any();
                if known.places.is_empty() {
                    known.name
                } else {
                    format!("not {}", self.reference(&known, true, used))
                }
            }
            7 => format!("({} | {})", self.expr(depth - 1, used), self.guards(used)),
            _ => self.factor(0, used),
        }
    }

    fn term(&mut self, depth: u64, used: &mut Vec<String>) -> String {
        let count = 1 + self.below(3);
        let factors: Vec<String> = (0..count).map(|_| self.factor(depth, used)).collect();
        let mut term = factors.join(" ");
        if self.chance(10) {
            let divisor = self.pick(&["2", "4", "0.5", "3", "2", "4", "0", "1e-300"]);
            term = format!("{term} / {divisor}");
        }
        term
    }

    fn expr(&mut self, depth: u64, used: &mut Vec<String>) -> String {
        let mut text = self.term(depth, used);
        for _ in 0..self.below(3) {
            let sign = self.pick(&["+", "-", "+"]);
            text = format!("{text} {sign} {}", self.term(depth, used));
        }
        text
    }

    fn guards(&mut self, used: &mut Vec<String>) -> String {
        let guard = |g: &mut Self, used: &mut Vec<String>| {
            let index = |g: &mut Self, used: &mut Vec<String>| {
                let own: Vec<String> = used.iter().filter(|i| INTS.contains(&i.as_str())).cloned().collect();
                if own.is_empty() || g.chance(10) {
                    g.index('I', used)
                } else {
                    own[g.below(own.len() as u64) as usize].clone()
                }
            };
            match g.below(10) {
                0..=2 => {
                    let (a, b) = (index(g, used), index(g, used));
                    let sign = g.pick(&["<", "<=", ">", ">=", "==", "!="]);
                    format!("{a} {sign} {b}")
                }
                3 => {
                    let (a, b) = (index(g, used), index(g, used));
                    format!("0 <= {a} - {b}, {a} - {b} <= 1")
                }
                4 => {
                    let (a, b) = (index(g, used), index(g, used));
                    format!("({a} - {b}) % 2 == 0")
                }
                5 => format!("{} < 2", index(g, used)),
                // An index that guards alone compute and use.
                8 => {
                    let (a, b) = (index(g, used), index(g, used));
                    let sign = g.pick(&["<", "<=", ">", "=="]);
                    format!("r = {a} - {b}, r {sign} 1")
                }
                6 => {
                    let known = g.any();
                    if known.places.is_empty() { "1 < 2".to_owned() } else { g.reference(&known, true, used) }
                }
                7 => {
                    let known = g.any();
                    if known.places.is_empty() {
                        "2 > 1".to_owned()
                    } else {
                        format!("not {}", g.reference(&known, true, used))
                    }
                }
                _ => format!("{} > {}", g.read(used), g.number()),
            }
        };
        let first = guard(self, used);
        if self.chance(25) { format!("{first}, {}", guard(self, used)) } else { first }
    }

    /// Some of the used indices, with their kinds.
    fn left(&mut self, used: &[String]) -> Vec<String> {
        let percent = 30 + self.below(50);
        let mut left: Vec<String> =
            used.iter().filter(|_| self.stream.below(100) < percent).cloned().collect();
        left.truncate(3);
        left
    }

    fn kinds(left: &[String]) -> Vec<char> {
        left.iter().map(|index| if INTS.contains(&index.as_str()) { 'I' } else { 'S' }).collect()
    }

    /// Notes a tensor over these indices.
    fn know(&mut self, name: String, left: &[String], round: bool) {
        let kind = |(index, kind): (&String, char)| match kind {
            'I' if self.sizes.is_some() => index.chars().next().unwrap_or(kind),
            _ => kind,
        };
        let places = left.iter().zip(Self::kinds(left)).map(kind).collect();
        self.known.push(Known { name, places, round });
    }

    fn statement(&mut self) {
        match self.below(23) {
            0..=5 => self.equation(),
            6..=8 => self.rule(),
            9 | 10 => self.valued_rule(),
            11 => self.along_an_axis(),
            12 => self.stepped(),
            13 => self.closure(),
            14 => self.distances(),
            15 => self.numeric(),
            16 => self.pooled(),
            17 => self.stepped_relation(),
            18 => self.mixed_scope(),
            19 => self.concatenated(),
            20 => self.in_parts(),
            21 => self.padded(),
            _ => self.several(),
        }
    }

    fn equation(&mut self) {
        let mut used = Vec::new();
        let depth = self.below(3);
        let body = self.expr(depth, &mut used);
        let name = self.name("T");
        let left = self.left(&used);
        let sign = self.pick(&["=", "=", "=", "=", "max=", "min=", "avg=", "*=", "or="]);
        let guard = if self.chance(30) { format!(" | {}", self.guards(&mut used)) } else { String::new() };
        let head = if left.is_empty() { name.clone() } else { format!("{name}[{}]", left.join(", ")) };
        self.lines.push(format!("{head} {sign} {body}{guard}"));
        self.know(name, &left, false);
    }

    fn body(&mut self, used: &mut Vec<String>) -> String {
        let mut literals = Vec::new();
        for _ in 0..1 + self.below(3) {
            let known = self.any();
            if !known.places.is_empty() {
                let round = self.chance(85);
                literals.push(self.reference(&known, round, used));
            }
        }
        if self.chance(35) {
            literals.push(self.guards(used));
        }
        if self.chance(10) {
            let index = self.index('I', used);
            literals.push(format!("q = {index} + 1"));
            used.push("q".to_owned());
        }
        literals.join(", ")
    }

    fn rule(&mut self) {
        let mut used = Vec::new();
        let body = self.body(&mut used);
        if body.is_empty() {
            return;
        }
        let name = self.name("P");
        let left: Vec<String> = self.left(&used);
        self.lines.push(format!("{name}({}) <- {body}", left.join(", ")));
        let places = left
            .iter()
            .map(|index| if index == "q" { 'I' } else { Self::kinds(std::slice::from_ref(index))[0] });
        self.known.push(Known { name, places: places.collect(), round: true });
    }

    fn valued_rule(&mut self) {
        let mut used = Vec::new();
        let depth = self.below(2);
        let body = self.expr(depth, &mut used);
        let name = self.name("Q");
        let left = self.left(&used);
        let sign = self.pick(&["+=", "+=", "max=", "min=", "avg=", "*="]);
        let guard = if self.chance(30) { format!(" | {}", self.guards(&mut used)) } else { String::new() };
        self.lines.push(format!("{name}({}) {sign} {body}{guard}", left.join(", ")));
        self.know(name, &left, true);
    }

    fn along_an_axis(&mut self) {
        let mut used = Vec::new();
        let depth = self.below(2);
        // softmax of an exponential makes digits of the last bits of a large argument, and engines
        // may add in different orders.
        let body = self.expr(depth, &mut used).replace("exp(", "tanh(");
        let name = self.name("S");
        let mut left = self.left(&used);
        if left.is_empty() {
            left = used.first().cloned().into_iter().collect();
        }
        if left.is_empty() {
            return;
        }
        let own = left.clone();
        let dotted = self.below(left.len() as u64) as usize;
        left[dotted].push('.');
        let function = self.pick(&["softmax", "softmax", "lnorm"]);
        let guard = if self.chance(40) { format!(" | {}", self.guards(&mut used)) } else { String::new() };
        let times = if self.chance(20) { format!(" {}", self.read(&mut used)) } else { String::new() };
        let (open, close, sign) = if self.chance(30) { ("(", ")", "+=") } else { ("[", "]", "=") };
        self.lines
            .push(format!("{name}{open}{}{close} {sign} {function}({body}{guard}){times}", left.join(", ")));
        self.know(name, &own, open == "(");
    }

    fn stepped(&mut self) {
        let name = self.name("H");
        let weight = self.pick(&["0.5", "0.25", "-0.5", "1"]);
        let mut used = Vec::new();
        let extra = self.term(0, &mut used);
        let function = self.pick(&["tanh", "relu", "sig", "abs"]);
        let own = self.pick(&["i", "j"]);
        let start = self.number();
        self.lines.push("t : 0..3".to_owned());
        match self.below(4) {
            0 => {
                self.lines.push(format!("{name}[0, {own}] = {start}"));
                self.lines
                    .push(format!("{name}[t+1, {own}] = {function}({weight} {name}[t, {own}] + {extra})"));
            }
            1 => {
                self.lines.push(format!("{name}[3, {own}] = {start}"));
                self.lines.push(format!("{name}[t-1, {own}] = {weight} {name}[t, {own}] + {extra}"));
            }
            2 => {
                let sign = self.pick(&["max=", "min=", "avg=", "="]);
                self.lines.push(format!("{name}[0] {sign} {start}"));
                self.lines.push(format!("{name}[t+1] {sign} {weight} {name}[t] + 1"));
                self.known.push(Known { name, places: vec!['I'], round: false });
                return;
            }
            _ => {
                let other = self.name("G");
                self.lines.push(format!("{name}[0, {own}] = {start}"));
                self.lines.push(format!("{other}[t, {own}] = {function}({name}[t, {own}])"));
                self.lines.push(format!("{name}[t+1, {own}] = {weight} {other}[t, {own}] + {extra}"));
            }
        }
        self.known.push(Known { name, places: vec!['I', 'I'], round: false });
    }

    fn binary(&mut self, round: bool) -> Option<Known> {
        let same: Vec<Known> = self
            .known
            .iter()
            .filter(|known| {
                known.places.len() == 2 && known.places[0] == known.places[1] && known.round == round
            })
            .cloned()
            .collect();
        if same.is_empty() { None } else { Some(same[self.below(same.len() as u64) as usize].clone()) }
    }

    fn letters(kind: char) -> [&'static str; 3] {
        if kind != 'S' { ["i", "j", "k"] } else { ["x", "y", "z"] }
    }

    fn closure(&mut self) {
        let Some(edge) = self.binary(true) else { return };
        let name = self.name("C");
        let [a, b, c] = Self::letters(edge.places[0]);
        let e = &edge.name;
        self.lines.push(format!("{name}({a}, {b}) <- {e}({a}, {b})"));
        let line = match self.below(4) {
            0 => format!("{name}({a}, {c}) <- {name}({a}, {b}), {e}({b}, {c})"),
            1 => format!("{name}({a}, {c}) <- {e}({a}, {b}), {name}({b}, {c})"),
            2 => format!("{name}({a}, {c}) <- {name}({a}, {b}), {name}({b}, {c}), {a} != {c}"),
            _ => format!("{name}({b}, {a}) <- {name}({a}, {b}), {e}({c}, {b})"),
        };
        self.lines.push(line);
        self.known.push(Known { name, places: edge.places, round: true });
    }

    fn distances(&mut self) {
        let name = self.name("D");
        if let Some(edge) = self.binary(true).filter(|_| self.below(2) == 0) {
            let [a, b, _] = Self::letters(edge.places[0]);
            let e = &edge.name;
            let sign = self.pick(&["min=", "max="]);
            let start = self.constant(edge.places[0]);
            self.lines.push(format!("{name}({start}) {sign} 0"));
            let step =
                if self.chance(70) { format!("min(3, {e}({a}, {b}))") } else { format!("{e}({a}, {b})") };
            self.lines.push(format!("{name}({b}) {sign} {name}({a}) + {step}"));
            self.known.push(Known { name, places: vec![edge.places[0]], round: true });
        } else if let Some(matrix) = self.binary(false) {
            let e = &matrix.name;
            let sign = self.pick(&["min=", "max=", "or="]);
            self.lines.push(format!("{name}[i, j] {sign} {e}[i, j]"));
            let step = if sign == "or=" {
                format!("{name}[i, k] {e}[k, j]")
            } else {
                format!("{name}[i, k] + {e}[k, j]")
            };
            self.lines.push(format!("{name}[i, j] {sign} {step}"));
            self.known.push(Known { name, places: matrix.places, round: false });
        }
    }

    fn numeric(&mut self) {
        let name = self.name("X");
        let mut used = vec!["i".to_owned()];
        let extra = self.term(0, &mut used);
        let line = match (self.below(3), self.binary(false)) {
            (0, Some(matrix)) => format!("{name}[i] = 0.1 {}[i, j] {name}[j] + {extra}", matrix.name),
            (1, _) => format!("{name}[i] = tanh(0.5 {name}[i]) + {extra}"),
            _ => format!("{name}[i] = 0.2 {name}[i] + 0.1 {name}[j] + {extra}"),
        };
        self.lines.push(line);
        self.known.push(Known { name, places: vec!['I'], round: false });
    }

    fn pooled(&mut self) {
        let known = self.any();
        if known.places.first().is_none_or(|kind| *kind == 'S') {
            return;
        }
        let name = self.name("O");
        let rest: Vec<&str> =
            known.places[1..].iter().map(|kind| if *kind != 'S' { "j" } else { "x" }).collect();
        let mut source = vec!["i"];
        source.extend(rest);
        let sign = self.pick(&["=", "max=", "avg="]);
        let (open, close) = if known.round { ("(", ")") } else { ("[", "]") };
        let head = self.pick(&["i/2", "i+1", "3-i", "2*i", "i%2"]);
        let arguments = source.join(", ");
        self.lines.push(format!("{name}[{head}] {sign} {}{open}{arguments}{close}", known.name));
        self.known.push(Known { name, places: vec!['I'], round: false });
    }

    fn stepped_relation(&mut self) {
        let Some(edge) = self.binary(true) else { return };
        let name = self.name("W");
        let [a, b, _] = Self::letters(edge.places[0]);
        let start = self.constant(edge.places[0]);
        self.lines.push("s : 0..3".to_owned());
        if self.chance(50) {
            self.lines.push(format!("{name}(0, {start})"));
            self.lines.push(format!("{name}(s+1, {b}) <- {name}(s, {a}), {}({a}, {b})", edge.name));
        } else {
            self.lines.push(format!("{name}(0, {start}) += 1"));
            self.lines.push(format!("{name}(s+1, {b}) += {name}(s, {a}) {}({a}, {b})", edge.name));
        }
        self.known.push(Known { name, places: vec!['I', edge.places[0]], round: true });
    }

    fn mixed_scope(&mut self) {
        let mut used = Vec::new();
        let sparse = self.read(&mut used);
        let dense = self.read(&mut used);
        let function = self.pick(&["relu", "tanh", "sig", "exp"]);
        let name = self.name("M");
        let left = self.left(&used);
        let head = if left.is_empty() { name.clone() } else { format!("{name}[{}]", left.join(", ")) };
        let last = self.read(&mut used);
        self.lines.push(format!("{head} = {function}({sparse} {dense}) {last}"));
        self.know(name, &left, false);
    }

    /// One or two tensors in a row, of places of both kinds, maybe with an index that stays.
    fn concatenated(&mut self) {
        let name = self.name("N");
        let stays = self.chance(30);
        let mut arguments = Vec::new();
        for _ in 0..1 + self.below(2) {
            let known = self.any();
            let mut names: Vec<&str> =
                known.places.iter().zip(["i", "j", "k"]).map(|(_, index)| index).collect();
            for (index, kind) in names.iter_mut().zip(&known.places) {
                if *kind == 'S' {
                    *index = match *index {
                        "i" => "x",
                        "j" => "y",
                        _ => "z",
                    };
                }
            }
            if !names.is_empty() && (!stays || names.contains(&"i")) {
                arguments.push(format!("{}[{}]", known.name, names.join(", ")));
            }
        }
        if arguments.is_empty() {
            return;
        }
        let (head, places) = if stays { ("i, c", vec!['I', 'I']) } else { ("c", vec!['I']) };
        self.lines.push(format!("{name}[{head}] = concat({})", arguments.join(", ")));
        self.known.push(Known { name, places, round: false });
    }

    /// A tensor of which one row is computed and another given.
    fn in_parts(&mut self) {
        let vectors: Vec<Known> =
            self.known.iter().filter(|known| known.places.len() == 1).cloned().collect();
        if vectors.is_empty() {
            return;
        }
        let vector = vectors[self.below(vectors.len() as u64) as usize].clone();
        let name = self.name("B");
        let kind = vector.places[0];
        let index = if kind != 'S' { "i" } else { "x" };
        let size = if self.chance(80) { self.size } else { 3 };
        let numbers: Vec<String> = (0..size).map(|_| self.number()).collect();
        let first = self.pick(&["0", "1", "2", "-1"]);
        let moved = if kind != 'S' && self.chance(30) { "-1" } else { "" };
        self.lines.push(format!("{name}[{first}, {index}{moved}] = 2 {}[{index}]", vector.name));
        self.lines.push(format!("{name}[1, {index}] = [{}]", numbers.join(", ")));
        self.known.push(Known { name, places: vec!['I', kind], round: false });
    }

    /// A product of two vectors along an index that is moved beside another.
    fn padded(&mut self) {
        let vectors: Vec<Known> = self
            .known
            .iter()
            .filter(|known| known.places.len() == 1 && known.places[0] != 'S' && !known.round)
            .cloned()
            .collect();
        if vectors.is_empty() {
            return;
        }
        let mut any = || vectors[self.stream.below(vectors.len() as u64) as usize].name.clone();
        let (filter, line) = (any(), any());
        let name = self.name("F");
        let (a, b) = (self.pick(&["i", "j"]), self.pick(&["k", "m"]));
        let moved = self.pick(&["+", "-"]);
        let by = self.pick(&["", "-1", "+1"]);
        let sign = self.pick(&["=", "=", "max=", "min="]);
        let body = format!("{filter}[{b}] {line}[{a}{moved}{b}{by}]");
        let body = if self.chance(30) { format!("relu({body})") } else { body };
        self.lines.push(format!("{name}[{a}] {sign} {body}"));
        self.known.push(Known { name, places: vec!['I'], round: false });
    }

    /// Two equations of one tensor, and facts of it, of one element more than one, too.
    fn several(&mut self) {
        let name = self.name("V");
        let sign = self.pick(&["=", "max=", "min=", "avg=", "*="]);
        let index = self.pick(&["i", "j"]);
        let round = self.chance(25);
        let (open, close) = if round { ('(', ')') } else { ('[', ']') };
        for _ in 0..2 {
            let mut used = vec![index.to_owned()];
            let body = self.term(1, &mut used);
            let head = self.pick(&["", "+1", ""]);
            self.lines.push(format!("{name}{open}{index}{head}{close} {sign} {body}"));
        }
        if self.chance(40) {
            for _ in 0..1 + self.below(4) {
                let (at, number) = (self.below(self.size.min(2)), self.number());
                self.lines.push(format!("{name}{open}{at}{close} {sign} {number}"));
            }
        }
        self.known.push(Known { name, places: vec!['I'], round });
    }

    fn queries(&mut self) {
        for known in self.known.clone() {
            // What nobody asks for may be written out where it is read.
            if self.chance(25) {
                continue;
            }
            let all = known.places.len();
            let text = match self.below(4) {
                0 if all > 0 => {
                    let mut used = Vec::new();
                    let round = self.chance(60);
                    self.reference(&known, round, &mut used)
                }
                _ => known.name.clone(),
            };
            self.lines.push(format!("{text}?"));
        }
    }
}
