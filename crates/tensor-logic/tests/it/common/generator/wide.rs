//! What programs of users do and the statements next door do not: padding, domains of symbols, types and
//! tags, chains of factors that lie in every way, intermediates that nobody asks for, computed heads.

use super::{Generator, Known};

impl Generator<'_> {
    pub(super) fn wide_statement(&mut self) {
        match self.below(13) {
            0 => self.padded_by_declaration(),
            1 => self.over_symbols(),
            2 => self.symbols_in_a_row(),
            3 => self.typed(),
            4 => self.assigned(),
            5 => self.divided(),
            6 | 7 => self.chain(),
            8 => self.normalised(),
            9 | 10 => self.read_once(),
            11 => self.computed_head(),
            _ => self.not_finite(),
        }
    }

    /// A statement whose indices are those of the places that it reads.
    pub(super) fn sized_statement(&mut self) {
        match self.below(16) {
            0..=2 => self.equation(),
            3 => self.rule(),
            4 => self.valued_rule(),
            5 | 6 => self.along_an_axis(),
            7 => self.mixed_scope(),
            8 => self.padded_by_declaration(),
            9 => self.divided(),
            10..=12 => self.chain(),
            13 => self.not_finite(),
            _ => self.read_once(),
        }
    }

    /// Tensors of these places.
    fn of(&self, places: &[char]) -> Vec<Known> {
        self.known.iter().filter(|known| known.places == places).cloned().collect()
    }

    fn one(&mut self, from: &[Known]) -> Option<Known> {
        if from.is_empty() { None } else { Some(from[self.below(from.len() as u64) as usize].clone()) }
    }

    /// A tensor of integer places alone.
    pub(super) fn of_integers(&mut self, rank: usize) -> Option<Known> {
        let fits = |known: &&Known| known.places.len() == rank && !known.places.contains(&'S');
        let found: Vec<Known> = self.known.iter().filter(fits).cloned().collect();
        self.one(&found)
    }

    pub(super) fn array_of(&mut self, shape: &[u64]) -> String {
        let Some((first, rest)) = shape.split_first() else { return self.number() };
        let items: Vec<String> = (0..*first).map(|_| self.array_of(rest)).collect();
        format!("[{}]", items.join(", "))
    }

    /// An index that nobody else has.
    pub(super) fn fresh_index(&mut self, letter: &str) -> String {
        self.next += 1;
        format!("{letter}{}", self.next)
    }

    /// A declared index that another one moves beside: `y : 5; C[y] = F[h] A[y+h-1]`.
    fn padded_by_declaration(&mut self) {
        let Some(line) = self.of_integers(1) else { return };
        let Some(filter) = self.of_integers(1) else { return };
        let (y, h) = (self.fresh_index("y"), self.fresh_index("h"));
        let size = self.below(7);
        let domain = if self.chance(20) { format!("1..{size}") } else { size.to_string() };
        let name = self.name("J");
        let sign = self.pick(&["=", "=", "max=", "min=", "avg="]);
        let by = self.pick(&["", "-1", "+1", "-2"]);
        let (line, filter) = (line.name, filter.name);
        if self.chance(15) {
            let most = 1 + self.below(3);
            self.lines.push(format!("{h} : {most}"));
        }
        self.lines.push(format!("{y} : {domain}"));
        let body = match self.below(6) {
            0 | 1 => format!("{filter}[{h}] {line}[{y}+{h}{by}]"),
            2 => format!("{line}[{y}+{h}{by}]"),
            3 => format!("relu({filter}[{h}] {line}[{y}+{h}{by}])"),
            4 => format!("{filter}[{h}] {line}[2*{y}+{h}{by}]"),
            _ => format!("{line}[{y}{by}]"),
        };
        self.lines.push(format!("{name}[{y}] {sign} {body}"));
        self.known.push(Known { name, places: vec!['I'], round: false });
    }

    /// A tensor over a domain of symbols: a set, or what is written out, given in whole or in part.
    fn over_symbols(&mut self) {
        let name = self.name("U");
        let x = self.fresh_index("x");
        let many = 1 + self.below(3);
        let symbols = ["Ann", "Bob", "Cal"][..many as usize].join(", ");
        if self.chance(30) {
            let set = self.name("Set");
            self.lines.push(format!("{set} : {{{symbols}}}"));
            self.lines.push(format!("{x} : {set}"));
        } else {
            self.lines.push(format!("{x} : {{{symbols}}}"));
        }
        let other = self.below(4);
        let array = self.array_of(&[many]);
        let places = match self.below(4) {
            0 => {
                self.lines.push(format!("{name}[{x}] = {array}"));
                vec!['S']
            }
            1 => {
                let array = self.array_of(&[other.max(1), many]);
                self.lines.push(format!("{name}[k, {x}] = {array}"));
                vec!['I', 'S']
            }
            2 => {
                for first in 0..=other {
                    let array = self.array_of(&[many]);
                    self.lines.push(format!("{name}[{first}, {x}] = {array}"));
                }
                vec!['I', 'S']
            }
            _ => {
                let Some(vector) = self.of_integers(1) else { return };
                self.lines.push(format!("{name}[{x}, i] = {}[i]", vector.name));
                vec!['S', 'I']
            }
        };
        self.known.push(Known { name, places, round: false });
    }

    /// `concat` over symbols and beside other tensors.
    fn symbols_in_a_row(&mut self) {
        let (pairs, lines) = (self.of(&['S', 'I']), self.of(&['S']));
        let name = self.name("N");
        let mut arguments = Vec::new();
        if let Some(pair) = self.one(&pairs) {
            arguments.push(format!("{}[x, j]", pair.name));
        }
        if let Some(line) = self.one(&lines).filter(|_| self.stream.below(2) == 0) {
            arguments.push(format!("{}[y]", line.name));
        }
        let Some(own) = self.of_integers(1) else { return };
        arguments.insert(self.below(arguments.len() as u64 + 1) as usize, format!("{}[k]", own.name));
        self.lines.push(format!("{name}[c] = concat({})", arguments.join(", ")));
        self.known.push(Known { name, places: vec!['I'], round: false });
    }

    /// Rules and closures in a semiring, tags below 0 included.
    fn typed(&mut self) {
        let kind = self.pick(&["tropical", "tropical", "maxtimes", "maxmin", "real", "count"]);
        let (edge, path) = (self.name("K"), self.name("L"));
        let mut seen = Vec::new();
        let facts = 1 + self.below(6);
        let mut facts: Vec<String> = (0..facts)
            .filter_map(|_| {
                let tuple = format!("{}, {}", self.constant('I'), self.constant('I'));
                let value = match kind {
                    "count" => self.below(4).to_string(),
                    _ => self.number(),
                };
                let known = seen.contains(&tuple);
                seen.push(tuple.clone());
                (!known).then(|| format!("{edge}({tuple}) = {value}"))
            })
            .collect();
        self.lines.push(format!("{edge}(i, j) : {kind}"));
        self.lines.append(&mut facts);
        self.lines.push(format!("{path}(i, j) : {kind}"));
        self.lines.push(format!("{path}(i, j) <- {edge}(i, j)"));
        let step = match self.below(5) {
            0 => format!("{path}(i, k) <- {edge}(i, j), {edge}(j, k)"),
            1 => format!("{path}(i, k) <- {edge}(i, j), {edge}(j, k), i != k"),
            2 => format!("{path}(i, k) <- {path}(i, j), {edge}(j, k), i < k"),
            3 => format!("{path}(i, k) <- {edge}(i, j), not {edge}(j, k), {edge}(k, k)"),
            _ => format!("{path}(i, k) <- {path}(i, j), {edge}(j, k)"),
        };
        self.lines.push(step);
        for name in [edge, path] {
            self.known.push(Known { name, places: vec!['I', 'I'], round: true });
        }
    }

    /// An index that a guard computes, inside a call or a group, with the index or without it in the values.
    fn assigned(&mut self) {
        let name = self.name("E");
        let mut used = vec!["i".to_owned(), "j".to_owned()];
        let inside = self.term(0, &mut used);
        let computed = self.pick(&["i - j", "i + j", "j + 1", "i / 2", "2 * j"]);
        let bound = self.pick(&["m <= 1", "m >= 0", "m != 1", "m == i", "m < 1, j < 2"]);
        let inside = match self.below(4) {
            0 => format!("{inside} m"),
            1 => match self.of_integers(1) {
                Some(vector) => format!("{inside} {}[m]", vector.name),
                None => inside,
            },
            _ => inside,
        };
        let guarded = format!("{inside} | m = {computed}, {bound}");
        let body = match self.below(5) {
            0 => format!("relu({guarded})"),
            1 => format!("({guarded})"),
            2 if inside.contains('j') => format!("sum[j]({guarded})"),
            3 if inside.contains('j') => format!("softmax[j]({guarded})"),
            _ => guarded,
        };
        let left: Vec<&str> = ["i", "j"].into_iter().filter(|_| self.stream.below(3) > 0).collect();
        let left = if body.starts_with("sum") { vec!["i"] } else { left };
        let head = if left.is_empty() { name.clone() } else { format!("{name}[{}]", left.join(", ")) };
        let sign = self.pick(&["=", "=", "max=", "min="]);
        self.lines.push(format!("{head} {sign} {body}"));
        self.known.push(Known { name, places: vec!['I'; left.len()], round: false });
    }

    /// Divisors that are computed, small or 0.
    fn divided(&mut self) {
        let name = self.name("Z");
        let mut used = Vec::new();
        let above = self.term(0, &mut used);
        let mut below = Vec::new();
        let divisor = match self.below(5) {
            0 => self.pick(&["1e-300", "1e-308", "1e-310", "0", "1e300"]).to_owned(),
            1 => format!("abs({})", self.read(&mut below)),
            2 => format!(
                "sum[{0}]({1}[{0}])",
                "n",
                self.of_integers(1).map_or("A".to_owned(), |known| known.name)
            ),
            3 => format!("exp({})", self.read(&mut below)),
            _ => self.read(&mut below),
        };
        let left: Vec<String> = used.iter().chain(&below).filter(|i| below.contains(i)).cloned().collect();
        let mut left: Vec<String> = left.into_iter().chain(self.left(&used)).collect();
        let mut seen = Vec::new();
        left.retain(|index| {
            !seen.contains(index) && {
                seen.push(index.clone());
                true
            }
        });
        let head = if left.is_empty() { name.clone() } else { format!("{name}[{}]", left.join(", ")) };
        self.lines.push(format!("{head} = {above} / {divisor}"));
        self.know(name, &left, false);
    }

    /// Three to five factors, most of them matrices that lie in every way, with several summed indices.
    fn chain(&mut self) {
        let count = 3 + self.below(3);
        let mut used = Vec::new();
        let mut factors = Vec::new();
        for _ in 0..count {
            let rank = if self.chance(75) { 2 } else { 1 + 2 * self.below(2) as usize };
            let Some(known) = self.of_integers(rank).or_else(|| self.of_integers(1)) else { return };
            factors.push(self.reference(&known, known.round, &mut used));
        }
        if self.chance(15) {
            factors.push(self.number().trim_start_matches('-').to_owned());
        }
        let left = self.left(&used);
        let name = self.name("T");
        let guard = if self.chance(20) { format!(" | {}", self.guards(&mut used)) } else { String::new() };
        let head = if left.is_empty() { name.clone() } else { format!("{name}[{}]", left.join(", ")) };
        let sign = if self.chance(85) { "=" } else { self.pick(&["max=", "min=", "avg="]) };
        self.lines.push(format!("{head} {sign} {}{guard}", factors.join(" ")));
        self.know(name, &left, false);
    }

    /// softmax or lnorm over what a guard or a relation admits, with dense indices beside.
    fn normalised(&mut self) {
        let dense = self.of_integers(2);
        let name = self.name("S");
        let mut used = vec!["i".to_owned(), "j".to_owned()];
        let Some(dense) = dense else { return };
        let body = match self.below(4) {
            0 => format!("{}[j, k]", dense.name),
            1 => format!("{0}[i, k] {0}[j, k]", dense.name),
            2 => format!("{}[i, j] + {}", dense.name, self.read(&mut used)),
            _ => format!("{}[j, k] {}", dense.name, self.read(&mut used)),
        };
        let relation = self.known.iter().filter(|known| known.round && known.places.len() == 2);
        let relations: Vec<Known> = relation.filter(|known| known.places == dense.places).cloned().collect();
        let guard = match self.one(&relations) {
            Some(relation) if self.chance(60) => format!("{}(i, j)", relation.name),
            _ => self.guards(&mut used),
        };
        let function = self.pick(&["softmax", "lnorm"]);
        let head = self.pick(&["i, j.", "i, j., k", "j., k", "k, i, j.", "i, j, k.", "i, j., k."]);
        let (open, close, sign) = if self.chance(25) { ("(", ")", "+=") } else { ("[", "]", "=") };
        self.lines.push(format!("{name}{open}{head}{close} {sign} {function}({body} | {guard})"));
        let places = vec!['I'; head.split(", ").count()];
        self.known.push(Known { name, places, round: open == "(" });
    }

    /// A tensor that one equation reads and nobody asks for.
    fn read_once(&mut self) {
        let inner = self.name("Y");
        let mut used = Vec::new();
        let depth = self.below(2);
        let body = self.expr(depth, &mut used);
        let mut left: Vec<String> = used.iter().take(2 + self.below(2) as usize).cloned().collect();
        if left.is_empty() {
            return;
        }
        if self.chance(30) {
            left.reverse();
        }
        let guard = if self.chance(30) { format!(" | {}", self.guards(&mut used)) } else { String::new() };
        self.lines.push(format!("{inner}[{}] = {body}{guard}", left.join(", ")));
        let known = Known { name: inner, places: Self::kinds(&left), round: false };
        let mut used = Vec::new();
        // The indices of the definition, in turn the reader's own.
        let read = match self.chance(60) {
            true => {
                used.clone_from(&left);
                format!("{}[{}]", known.name, left.join(", "))
            }
            false => self.reference(&known, false, &mut used),
        };
        let other = self.read(&mut used);
        let body = match self.below(7) {
            0 => format!("relu({read}) {other}"),
            1 => format!("exp(-{read}) + {other}"),
            2 => format!("({read} - {other})^2"),
            3 => format!("{read} / 2 + {read}"),
            4 => format!("({read} {other} | {})", self.guards(&mut used)),
            _ => format!("{read} {other}"),
        };
        let name = self.name("T");
        let left = self.left(&used);
        let guard = if self.chance(40) { format!(" | {}", self.guards(&mut used)) } else { String::new() };
        let sign = self.pick(&["=", "=", "=", "max=", "avg="]);
        let head = if left.is_empty() { name.clone() } else { format!("{name}[{}]", left.join(", ")) };
        self.lines.push(format!("{head} {sign} {body}{guard}"));
        self.know(name, &left, false);
    }

    /// A head whose places are computed, repeated or constant.
    fn computed_head(&mut self) {
        let mut used = vec!["i".to_owned(), "j".to_owned()];
        let body = self.term(1, &mut used);
        let head = self.pick(&[
            "i, i", "i+j, j", "2*i, j/2", "i-j, i", "j, i%2", "1, j", "i, j, i", "2*i+1, i", "j-1, 2",
            "3-i, i",
        ]);
        let name = self.name("H");
        let (open, close, sign) = match self.below(4) {
            0 => ("(", ")", "+="),
            1 => ("[", "]", self.pick(&["max=", "min=", "avg=", "*="])),
            _ => ("[", "]", "="),
        };
        let body = match (body.contains('i'), body.contains('j')) {
            (true, true) => body,
            _ => match self.of_integers(2) {
                Some(known) => format!("{}[i, j] {body}", known.name),
                None => return,
            },
        };
        self.lines.push(format!("{name}{open}{head}{close} {sign} {body}"));
        let places = vec!['I'; head.split(", ").count()];
        self.known.push(Known { name, places, round: open == "(" });
    }

    /// Infinities, and what is no number.
    fn not_finite(&mut self) {
        let name = self.name("Q");
        let mut used = Vec::new();
        let read = self.read(&mut used);
        let body = match self.below(6) {
            0 => format!("log({read})"),
            1 if read.starts_with("not") => format!("{read} / 0"),
            1 => format!("-1 / 0 {read}"),
            2 => format!("sqrt({read})"),
            3 => format!("log(abs({read})) - log(0 {read})"),
            4 => format!("{read}^-1"),
            _ => format!("1e200 {read} * 1e200 * 1e-300"),
        };
        let left: Vec<String> = used.iter().take(3).cloned().collect();
        let head = if left.is_empty() { name.clone() } else { format!("{name}[{}]", left.join(", ")) };
        let sign = self.pick(&["=", "=", "max=", "min="]);
        self.lines.push(format!("{head} {sign} {body}"));
        self.know(name, &left, false);
    }
}
