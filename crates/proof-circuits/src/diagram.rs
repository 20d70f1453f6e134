//! Decision diagrams over choices: reduced, ordered, every function once.
//!
//! A node asks which alternative of a choice is the case. It names those from which something else follows than from none of
//! them, each with a branch, and has one branch for all others: a choice of ten thousand alternatives costs what is said of
//! it. With one alternative that is Bryant's binary diagram (1986). What a diagram says is a function from branches to truth,
//! so two functions are equal iff their nodes are.

/// A function.
pub(crate) type Node = u32;

/// Never.
pub(crate) const FALSE: Node = 0;
/// Always.
pub(crate) const TRUE: Node = 1;

/// An alternative of a choice, and what holds then.
pub(crate) type Case = (u32, Node);

/// Why no function was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// Somebody asked to end.
    Stopped,
    /// More work than this trial may do.
    Share,
    /// More bytes than there are.
    Bytes,
}

/// What a trial may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) nodes: usize,
    /// Steps of joins, which may be many where few nodes are made.
    pub(crate) steps: u64,
}

/// What two functions are joined by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    And,
    Or,
    /// The first, turned around; the second is [`TRUE`].
    Not,
}

/// A join that was made, and its result.
type Known = (u64, Node);

const NOTHING: Known = (u64::MAX, FALSE);

/// Nodes are numbers of fewer bits than these: the key of a join has room for two and the operation.
const BITS: u32 = 31;

/// So many steps are made before somebody is asked whether to end: well below a hundredth of a second.
const STEPS: u64 = 1 << 14;

/// A table of joins that may not grow loses at most so many times what it holds. Where an order is good, diagrams that take all
/// of the room need fewer than 40 joins for each node, and there are not more nodes than twice the slots of the table.
const LOST: usize = 64;

/// All functions that were made, over choices in a fixed order.
pub(crate) struct Diagrams<'s> {
    /// The choice of a node; behind the last one for the constants.
    levels: Vec<u32>,
    /// What a node says of alternatives that it does not name.
    others: Vec<Node>,
    /// Where the cases of a node end in `cases`.
    ends: Vec<u32>,
    cases: Vec<Case>,
    /// Nodes by what they say: open addressing, 0 for an empty slot.
    unique: Vec<Node>,
    /// Joins that were made. What falls into one slot drives the other out.
    known: Vec<Known>,
    /// How many joins were driven out since the table of them grew.
    lost: usize,
    /// The cases of the node that is being made.
    making: Vec<Case>,
    steps: u64,
    share: Share,
    /// The most bytes that may be taken.
    room: usize,
    stop: &'s dyn Fn() -> bool,
}

impl<'s> Diagrams<'s> {
    /// No function but the constants, behind so many choices.
    pub(crate) fn new(choices: usize, share: Share, room: usize, stop: &'s dyn Fn() -> bool) -> Diagrams<'s> {
        let end = u32::try_from(choices).unwrap_or(u32::MAX);
        Diagrams {
            levels: vec![end, end],
            others: vec![FALSE, TRUE],
            ends: vec![0, 0],
            cases: Vec::new(),
            unique: vec![0; 64],
            known: vec![NOTHING; 64],
            lost: 0,
            making: Vec::new(),
            steps: 0,
            share,
            room,
            stop,
        }
    }

    /// How many nodes there are, the constants among them.
    pub(crate) fn len(&self) -> usize {
        self.levels.len()
    }

    /// How many steps joins took.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// The choice that a node asks for.
    pub(crate) fn level(&self, node: Node) -> u32 {
        self.levels[node as usize]
    }

    /// The alternatives that a node names, in order.
    pub(crate) fn cases(&self, node: Node) -> &[Case] {
        let at = node as usize;
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.cases[begin as usize..self.ends[at] as usize]
    }

    /// What a node says of all other alternatives, and of none.
    pub(crate) fn other(&self, node: Node) -> Node {
        self.others[node as usize]
    }

    /// Asks whether to end, where long work may make no joins.
    pub(crate) fn ask(&self) -> Result<(), Full> {
        if (self.stop)() { Err(Full::Stopped) } else { Ok(()) }
    }

    /// The choice falls on this alternative.
    pub(crate) fn event(&mut self, level: u32, alternative: u32) -> Result<Node, Full> {
        self.making.clear();
        self.making.push((alternative, TRUE));
        self.node(level, FALSE)
    }

    pub(crate) fn and(&mut self, a: Node, b: Node) -> Result<Node, Full> {
        self.join(Join::And, a, b)
    }

    pub(crate) fn or(&mut self, a: Node, b: Node) -> Result<Node, Full> {
        self.join(Join::Or, a, b)
    }

    pub(crate) fn not(&mut self, a: Node) -> Result<Node, Full> {
        self.join(Join::Not, a, TRUE)
    }

    /// Forgets what only serves to make more functions.
    pub(crate) fn finish(&mut self) {
        (self.unique, self.known) = (Vec::new(), Vec::new());
    }

    /// What everything takes: nodes twice, for a circuit is made of them while they are there.
    fn bytes(&self) -> usize {
        let nodes =
            (self.levels.capacity() + self.others.capacity() + self.ends.capacity()) * size_of::<u32>();
        let cases = self.cases.capacity() * size_of::<Case>();
        2 * (nodes + cases) + self.unique.len() * size_of::<Node>() + self.known.len() * size_of::<Known>()
    }

    /// Whether so many more bytes may be taken.
    fn fits(&self, more: usize) -> Result<(), Full> {
        if self.bytes().saturating_add(more) > self.room { Err(Full::Bytes) } else { Ok(()) }
    }

    /// The node with the cases in `making`, made if it is new.
    fn node(&mut self, level: u32, other: Node) -> Result<Node, Full> {
        if self.making.is_empty() {
            return Ok(other);
        }
        if self.len() * 2 > self.unique.len() {
            self.grow()?;
        }
        let mut slot = self.slot(level, &self.making, other);
        loop {
            match self.unique[slot] {
                0 => break,
                node if self.level(node) == level
                    && self.other(node) == other
                    && self.cases(node) == self.making =>
                {
                    return Ok(node);
                }
                _ => slot = (slot + 1) & (self.unique.len() - 1),
            }
        }
        if self.len() >= self.share.nodes {
            return Err(Full::Share);
        }
        self.reserve()?;
        let node = self.len() as Node;
        self.cases.extend_from_slice(&self.making);
        self.levels.push(level);
        self.others.push(other);
        self.ends.push(self.cases.len() as u32);
        self.unique[slot] = node;
        Ok(node)
    }

    /// Makes room for one more node: for half as many as there are, or for as many as there are bytes for.
    fn reserve(&mut self) -> Result<(), Full> {
        let needed = self.making.len();
        if self.len() >= 1 << (BITS - 1) || self.cases.len() + needed > u32::MAX as usize {
            return Err(Full::Bytes);
        }
        let most = |len: usize, needed: usize, bytes: usize, left: usize| {
            let more = (len / 2).max(needed).max(32).min(left / (2 * bytes));
            if more < needed { Err(Full::Bytes) } else { Ok(more) }
        };
        if self.levels.len() == self.levels.capacity() {
            let left = self.room.saturating_sub(self.bytes());
            let more = most(self.len(), 1, 3 * size_of::<u32>(), left)?;
            for of in [&mut self.levels, &mut self.others, &mut self.ends] {
                of.reserve_exact(more);
            }
        }
        if self.cases.len() + needed > self.cases.capacity() {
            let left = self.room.saturating_sub(self.bytes());
            let more = most(self.cases.len(), needed, size_of::<Case>(), left)?;
            self.cases.reserve_exact(more);
        }
        Ok(())
    }

    fn slot(&self, level: u32, cases: &[Case], other: Node) -> usize {
        let first = mix(u64::from(level) << 32 | u64::from(other));
        let mixed = cases.iter().fold(first, |hash, (alternative, node)| {
            mix(hash ^ (u64::from(*alternative) << 32 | u64::from(*node)))
        });
        mixed as usize & (self.unique.len() - 1)
    }

    fn grow(&mut self) -> Result<(), Full> {
        let size = self.unique.len() * 2;
        self.fits((size - self.unique.len()) * size_of::<Node>())?;
        self.unique = Vec::new();
        self.unique = vec![0; size];
        for node in 2..self.len() as Node {
            let mut slot = self.slot(self.level(node), self.cases(node), self.other(node));
            while self.unique[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.unique[slot] = node;
        }
        Ok(())
    }

    /// Notes the result of a join. The table grows with what it loses, not with the nodes that there are: where many joins
    /// lead to few functions, what is forgotten is done again, and again below that. It takes a quarter of the room at most;
    /// what loses so many times what that holds would need more.
    fn note(&mut self, key: u64, node: Node) -> Result<(), Full> {
        let size = self.known.len();
        if self.lost > size / 4 && size * 2 * size_of::<Known>() <= self.room / 4 {
            self.lost = 0;
            let before = std::mem::replace(&mut self.known, vec![NOTHING; size * 2]);
            for known in before.into_iter().filter(|known| *known != NOTHING) {
                self.known[mix(known.0) as usize & (size * 2 - 1)] = known;
            }
        } else if self.lost / LOST > size {
            return Err(Full::Bytes);
        }
        let slot = mix(key) as usize & (self.known.len() - 1);
        self.lost += usize::from(self.known[slot] != NOTHING);
        self.known[slot] = (key, node);
        Ok(())
    }

    /// Counts what a join does.
    fn step(&mut self, steps: usize) -> Result<(), Full> {
        let before = self.steps;
        self.steps += steps as u64;
        if before / STEPS != self.steps / STEPS {
            self.ask()?;
        }
        if self.steps > self.share.steps { Err(Full::Share) } else { Ok(()) }
    }

    /// The alternatives that one of two functions names at a level, what each says of them, and of all others last.
    fn both(&self, level: u32, a: Node, b: Node) -> Both<'_> {
        let side = |node: Node| {
            if self.level(node) == level { (self.cases(node), self.other(node)) } else { (&[][..], node) }
        };
        let ((a, of_a), (b, of_b)) = (side(a), side(b));
        Both { a, b, others: (of_a, of_b) }
    }

    /// Joins two functions case by case, without recursion: diagrams may have as many levels as there are facts.
    fn join(&mut self, join: Join, a: Node, b: Node) -> Result<Node, Full> {
        enum Task {
            Join(Node, Node),
            /// What the first joined with the second is, from so many results.
            Make(Node, Node, u32),
        }
        self.step(1)?;
        let mut tasks = vec![Task::Join(a, b)];
        let mut results: Vec<Node> = Vec::new();
        let key = |a: Node, b: Node| (join as u64) << (2 * BITS) | u64::from(a) << BITS | u64::from(b);
        while let Some(task) = tasks.pop() {
            match task {
                Task::Join(a, b) => {
                    if let Some(result) = decided(join, a, b) {
                        results.push(result);
                        continue;
                    }
                    let (a, b) = if join == Join::Not || a <= b { (a, b) } else { (b, a) };
                    let key = key(a, b);
                    let (known, result) = self.known[mix(key) as usize & (self.known.len() - 1)];
                    if known == key {
                        results.push(result);
                        continue;
                    }
                    let at = tasks.len();
                    tasks.push(Task::Make(a, b, 0));
                    let both = self.both(self.level(a).min(self.level(b)), a, b);
                    let others = both.others;
                    tasks.extend(both.map(|(_, a, b)| Task::Join(a, b)));
                    tasks.push(Task::Join(others.0, others.1));
                    let count = tasks.len() - at - 1;
                    tasks[at] = Task::Make(a, b, count as u32);
                    self.step(count)?;
                }
                Task::Make(a, b, count) => {
                    // The last task was the first to be done.
                    let begin = results.len() - count as usize;
                    let other = results[begin];
                    let level = self.level(a).min(self.level(b));
                    let mut making = std::mem::take(&mut self.making);
                    making.clear();
                    let named = self.both(level, a, b).zip(results[begin..].iter().rev());
                    making
                        .extend(named.map(|((at, ..), node)| (at, *node)).filter(|(_, node)| *node != other));
                    self.making = making;
                    results.truncate(begin);
                    let node = self.node(level, other)?;
                    self.note(key(a, b), node)?;
                    results.push(node);
                }
            }
        }
        Ok(results.pop().unwrap_or(FALSE))
    }
}

/// The cases of two functions by alternatives.
struct Both<'d> {
    a: &'d [Case],
    b: &'d [Case],
    others: (Node, Node),
}

impl Iterator for Both<'_> {
    type Item = (u32, Node, Node);

    fn next(&mut self) -> Option<(u32, Node, Node)> {
        let at = match (self.a.first(), self.b.first()) {
            (Some((a, _)), Some((b, _))) => *a.min(b),
            (Some((at, _)), None) | (None, Some((at, _))) => *at,
            (None, None) => return None,
        };
        let take = |side: &mut &[Case], other: Node| match side.split_first() {
            Some(((alternative, node), rest)) if *alternative == at => {
                *side = rest;
                *node
            }
            _ => other,
        };
        Some((at, take(&mut self.a, self.others.0), take(&mut self.b, self.others.1)))
    }
}

/// The result, where a constant or equality decides it.
fn decided(join: Join, a: Node, b: Node) -> Option<Node> {
    match (join, a, b) {
        (Join::Not, FALSE, _) => Some(TRUE),
        (Join::Not, TRUE, _) => Some(FALSE),
        (Join::Not, ..) => None,
        (Join::And, FALSE, _) | (Join::And, _, FALSE) => Some(FALSE),
        (Join::Or, TRUE, _) | (Join::Or, _, TRUE) => Some(TRUE),
        (Join::And, TRUE, other) | (Join::And, other, TRUE) => Some(other),
        (Join::Or, FALSE, other) | (Join::Or, other, FALSE) => Some(other),
        (_, a, b) => (a == b).then_some(a),
    }
}

/// Spreads what differs in few bits (the finalizer of MurmurHash3).
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    value = (value ^ (value >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    value ^ (value >> 33)
}
