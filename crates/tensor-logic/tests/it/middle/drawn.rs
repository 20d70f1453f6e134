//! Random programs of middle size: what is drawn first, and in which order.
//!
//! Enter at [`program`]. A place has 34 to some thousand values, of which a few *hot* ones bear most of the facts, so that
//! joins meet though supports are small. `i` and `k` range over the first domain, `j` and `m` over the second, which is the
//! first unless the tensors are drawn as rectangles; `d` and `e` are the three elements of a block.

use seeded::Stream;

/// What a program is for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Task {
    Values,
    Gradients,
    Learning,
}

/// How many values places have.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sizes {
    /// Squares of thousands of elements, which the interpreter goes through.
    Some,
    /// Squares of tens of thousands, or long rectangles.
    Many,
}

/// A domain of places.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Class {
    First,
    Second,
    /// What a computed place has.
    Open,
}

/// A tensor that statements may read.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) round: bool,
    pub(super) places: Vec<Class>,
    /// Whether a block of three elements stands behind these.
    pub(super) block: bool,
    /// Whether equations define it.
    pub(super) derived: bool,
}

/// The statements of a random program.
pub(super) struct Drawn<'s> {
    pub(super) stream: &'s mut Stream,
    pub(super) task: Task,
    /// The sizes of the two domains.
    pub(super) sizes: (u64, u64),
    /// Whether the two are told apart.
    pub(super) rectangle: bool,
    /// Whether an element more costs much.
    pub(super) large: bool,
    hot: Vec<u64>,
    /// How many percent of the places of facts are not hot.
    cold: u64,
    /// The indices that are declared; the others have the values that facts and arrays give them.
    pub(super) declared: Vec<&'static str>,
    lowest: u64,
    /// Whether all numbers are integers and all functions keep them: nothing rounds, and steps hang on nothing.
    pub(super) exact: bool,
    /// Whether infinities, and what is no number, may come up.
    pub(super) odd: bool,
    pub(super) lines: Vec<String>,
    pub(super) known: Vec<Known>,
    /// What is asked for but not read.
    pub(super) asked: Vec<String>,
    next: u64,
}

pub(super) const INDICES: [&str; 4] = ["i", "j", "k", "m"];

/// A random program, one statement a line, and whether all its numbers are integers.
pub(crate) fn program(stream: &mut Stream, sizes: Sizes, task: Task) -> (Vec<String>, bool) {
    let mut drawn = Drawn::new(stream, sizes, task);
    drawn.facts();
    if task != Task::Values {
        drawn.parameters();
    }
    let most = if drawn.large { 3 } else { 4 };
    let statements = 1 + drawn.below(most);
    let recursive = drawn.chance(25) && !drawn.rectangle;
    for at in 0..statements {
        if recursive && at == statements / 2 {
            drawn.recursion();
        }
        match drawn.below(8) {
            0 if !drawn.large && !drawn.rectangle => drawn.chain(),
            _ => drawn.equation(),
        }
        if drawn.chance(25) {
            drawn.beside();
        }
    }
    match task {
        Task::Values => drawn.queries(),
        _ => drawn.loss(),
    }
    (drawn.lines, drawn.exact)
}

impl<'s> Drawn<'s> {
    fn new(stream: &'s mut Stream, sizes: Sizes, task: Task) -> Drawn<'s> {
        let mut choose = |of: &[(u64, u64)]| of[stream.below(of.len() as u64) as usize];
        let squares = |of: &[u64]| of.iter().map(|n| (*n, *n)).collect::<Vec<_>>();
        let few = squares(&[34, 36, 40, 50, 65, 66, 66, 68, 72]);
        let many = squares(&[130, 257, 260, 270, 300]);
        let (square, rectangle) = match sizes {
            Sizes::Some => (few, vec![(34, 40), (60, 25), (600, 8), (400, 4), (25, 60), (8, 600), (50, 90)]),
            Sizes::Many => (
                many,
                vec![(257, 258), (1700, 40), (3000, 24), (24, 3000), (40, 1700), (300, 220), (1400, 3)],
            ),
        };
        let (square, oblong) = (choose(&square), choose(&rectangle));
        let rectangle = stream.below(100) < if sizes == Sizes::Some { 25 } else { 40 };
        let sizes = if rectangle { oblong } else { square };
        let (n, least) = (sizes.0, sizes.0.min(sizes.1));
        let own = if least > 2 { 2 + stream.below(least - 2) } else { 1 };
        let mut hot = vec![0, 1, 2, own, own + 1, own + 2, own - 1, own + 3, n - 1, n - 2];
        hot.truncate([4, 6, 10][stream.below(3) as usize]);
        let cold = [5, 30, 60][stream.below(3) as usize];
        let declared = match stream.below(5) {
            0 | 1 => INDICES.to_vec(),
            2 => {
                let chosen = stream.permutation(4);
                let count = 1 + stream.below(3) as usize;
                chosen.iter().take(count).map(|at| INDICES[*at as usize]).collect()
            }
            _ => Vec::new(),
        };
        let lowest = if stream.below(10) < 7 { 0 } else { 1 + stream.below(2) };
        // Beside an infinite slope, whether something flows is told otherwise from the equations than from the values.
        let values = task == Task::Values;
        let (exact, odd) = (values && stream.below(10) < 4, values && stream.below(4) == 0);
        Drawn {
            stream,
            task,
            sizes,
            rectangle,
            large: sizes.0 * sizes.1 > 15_000,
            hot,
            cold,
            declared,
            lowest,
            exact,
            odd,
            lines: Vec::new(),
            known: Vec::new(),
            asked: Vec::new(),
            next: 0,
        }
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.stream.below(n)
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.stream.below(100) < percent
    }

    pub(super) fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.stream.below(of.len() as u64) as usize].clone()
    }

    /// The same in another order.
    pub(super) fn shuffled<T: Clone>(&mut self, of: &[T]) -> Vec<T> {
        self.stream.permutation(of.len() as u32).iter().map(|at| of[*at as usize].clone()).collect()
    }

    pub(super) fn name(&mut self, letter: &str) -> String {
        self.next += 1;
        format!("{letter}{}", self.next)
    }

    /// A value of a place of both domains.
    pub(super) fn constant(&mut self) -> u64 {
        let least = self.sizes.0.min(self.sizes.1);
        let mut of = vec![0, 1, 2, least - 1];
        of.extend(self.hot.iter().map(|value| (*value).min(least - 1)));
        self.one(&of)
    }

    /// A value of a domain of `n`, mostly a hot one.
    pub(super) fn value(&mut self, n: u64) -> u64 {
        if self.chance(self.cold) {
            return self.below(n);
        }
        let hot = self.hot.clone();
        self.one(&hot).min(n - 1)
    }

    pub(super) fn number(&mut self) -> &'static str {
        self.one(&["1", "1", "2", "3", "-1", "-2", if self.exact { "4" } else { "0.5" }])
    }

    pub(super) fn class(&self, index: &str) -> Class {
        match index {
            "j" | "m" if self.rectangle => Class::Second,
            "i" | "j" | "k" | "m" => Class::First,
            _ => Class::Open,
        }
    }

    fn facts(&mut self) {
        let (n, m) = self.sizes;
        for index in self.declared.clone() {
            let size = if self.class(index) == Class::Second { m } else { n };
            self.lines.push(format!("{index} : {size}"));
        }
        self.lines.push("d, e : 3".to_owned());
        for (name, rank, block, valued) in [
            ("R", 2, false, true),
            ("S", 1, false, false),
            ("T", 2, false, false),
            ("Q", 2, false, true),
            ("H", 1, false, true),
            ("C", 2, true, true),
        ] {
            let percent = if "QHC".contains(name) { 60 } else { 75 };
            if "RS".contains(name) || self.chance(percent) {
                self.relation(name, (rank, block), valued);
            }
        }
        if self.chance(70) {
            let mut elements = self.tuples(2, 12);
            elements.extend([vec![self.lowest; 2], vec![n - 1, m - 1]]);
            self.array("A", elements);
        }
        if self.chance(70) {
            let mut elements = self.tuples(1, 12);
            elements.extend([vec![self.lowest], vec![n - 1]]);
            self.array("B", elements);
        }
        self.lines.push("V = [2, -1, 3]".to_owned());
        self.know("V", false, Vec::new(), true);
        // What is kept by its support is most often the copy of a relation.
        if self.chance(80) {
            let relations = self.matching(|known| known.round && known.places.len() == 2);
            let (name, source) = (self.name("X"), self.one(&relations));
            let places = if self.rectangle || self.chance(70) { "i, j" } else { "j, i" };
            let block = if source.block { ", d" } else { "" };
            self.lines.push(format!("{name}[i, j] = {}({places}{block})", source.name));
            self.derive(&name, false, &["i", "j"], false);
        }
    }

    fn tuples(&mut self, rank: usize, most: u64) -> Vec<Vec<u64>> {
        let (count, sizes) = (1 + self.below(most), [self.sizes.0, self.sizes.1]);
        (0..count).map(|_| sizes[..rank].iter().map(|n| self.value(*n).max(self.lowest)).collect()).collect()
    }

    fn relation(&mut self, name: &str, (rank, block): (usize, bool), valued: bool) {
        let most = self.one(&[5, 8, 15, 30, 40]);
        let mut tuples = self.tuples(rank, most);
        let last = [self.sizes.0 - 1, self.sizes.1 - 1];
        // Where nothing is declared, tuples at both ends say how large the domains are.
        if self.declared.len() < 4 || self.chance(30) {
            tuples.push(last[..rank].to_vec());
            if self.chance(80) {
                tuples.push(vec![self.lowest; rank]);
            }
        }
        if rank == 2 && self.chance(40) {
            let (long, moved) = (self.one(&[8, 20]), self.below(3));
            let end = (self.lowest + long).min(last[0]).min(last[1]);
            tuples.extend((self.lowest + 1..end).map(|at| vec![at, at + moved - 1]));
        }
        if block {
            tuples.iter_mut().for_each(|tuple| tuple.push(self.stream.below(3)));
            tuples.push([&last[..], &[2]].concat());
        }
        tuples.sort_unstable();
        tuples.dedup();
        if valued && self.chance(50) {
            let places = ["x", "y", "d"];
            let places = if rank == 1 { "x".to_owned() } else { places[..tuples[0].len()].join(", ") };
            self.lines.push(format!("{name}({places}) : real"));
        }
        for tuple in tuples {
            let fact = format!("{name}({})", joined(&tuple));
            let line = if valued { format!("{fact} = {}", self.number()) } else { fact };
            self.lines.push(line);
        }
        let classes = self.classes(rank);
        self.know(name, true, classes, block);
    }

    fn array(&mut self, name: &str, mut elements: Vec<Vec<u64>>) {
        elements.sort_unstable();
        elements.dedup();
        let classes = self.classes(elements[0].len());
        for element in elements {
            let line = format!("{name}[{}] = {}", joined(&element), self.number());
            self.lines.push(line);
        }
        self.know(name, false, classes, false);
    }

    fn classes(&self, rank: usize) -> Vec<Class> {
        ["i", "j"][..rank].iter().map(|index| self.class(index)).collect()
    }

    /// Tensors that are like this.
    pub(super) fn matching(&self, fits: impl Fn(&Known) -> bool) -> Vec<Known> {
        self.known.iter().filter(|known| fits(known)).cloned().collect()
    }

    pub(super) fn know(&mut self, name: &str, round: bool, places: Vec<Class>, block: bool) {
        self.known.push(Known { name: name.to_owned(), round, places, block, derived: false });
    }

    /// From now on a tensor that equations define, with these places on the left, may be read.
    pub(super) fn derive(&mut self, name: &str, round: bool, left: &[&str], block: bool) {
        let places = left.iter().map(|place| self.class(place)).collect();
        self.known.push(Known { name: name.to_owned(), round, places, block, derived: true });
    }
}

fn joined(tuple: &[u64]) -> String {
    tuple.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
