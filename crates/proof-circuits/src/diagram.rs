//! Decision diagrams over choices: reduced, ordered, every function once.
//!
//! A choice with n alternatives has n + 1 branches, the last for none of them; with one alternative that is Bryant's binary
//! diagram (1986). What a diagram says is a function from branches to truth, so two functions are equal iff their nodes are.

/// A function.
pub(crate) type Node = u32;

/// Never.
pub(crate) const FALSE: Node = 0;
/// Always.
pub(crate) const TRUE: Node = 1;

/// There are more nodes than are allowed, or somebody asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full {
    /// Whether somebody asked to end.
    pub(crate) stopped: bool,
}

/// What two functions are joined by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    And,
    Or,
    /// The first, turned around; the second is [`TRUE`].
    Not,
}

/// All functions that were made, over choices in a fixed order.
pub(crate) struct Diagrams<'s> {
    /// How many branches each choice has, in the order of the choices.
    branches: Vec<u32>,
    /// The choice of a node; behind the last one for the constants.
    levels: Vec<u32>,
    /// Where the branches of a node begin in `children`.
    first: Vec<u32>,
    children: Vec<Node>,
    /// Nodes by what they say: open addressing, 0 for an empty slot.
    unique: Vec<Node>,
    /// Joins that were made: the operation and both sides, and the result. What falls into one slot drives the other out.
    known: Vec<(u64, Node)>,
    limit: usize,
    stop: &'s dyn Fn() -> bool,
}

impl<'s> Diagrams<'s> {
    /// No function but the constants. `branches` are the choices in order, at most `limit` nodes are made.
    pub(crate) fn new(branches: Vec<u32>, limit: usize, stop: &'s dyn Fn() -> bool) -> Diagrams<'s> {
        let end = u32::try_from(branches.len()).unwrap_or(u32::MAX);
        Diagrams {
            branches,
            levels: vec![end, end],
            first: vec![0, 0],
            children: Vec::new(),
            unique: vec![0; 64],
            known: vec![(u64::MAX, 0); 64],
            limit: limit.min(1 << 30),
            stop,
        }
    }

    /// How many nodes there are, the constants among them.
    pub(crate) fn len(&self) -> usize {
        self.levels.len()
    }

    /// The choice that a node asks for.
    pub(crate) fn level(&self, node: Node) -> u32 {
        self.levels[node as usize]
    }

    /// The branches of a node that is no constant.
    pub(crate) fn branches(&self, node: Node) -> &[Node] {
        let first = self.first[node as usize] as usize;
        &self.children[first..first + self.branches[self.level(node) as usize] as usize]
    }

    /// Asks whether to end, where long work may make no nodes.
    pub(crate) fn ask(&self) -> Result<(), Full> {
        if (self.stop)() { Err(Full { stopped: true }) } else { Ok(()) }
    }

    /// The choice falls on this alternative.
    pub(crate) fn event(&mut self, level: u32, alternative: u32) -> Result<Node, Full> {
        let branches = (0..self.branches[level as usize]).map(|at| Node::from(at == alternative)).collect();
        self.node(level, branches)
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

    /// The node with these branches, made if it is new.
    fn node(&mut self, level: u32, branches: Vec<Node>) -> Result<Node, Full> {
        if branches.iter().all(|branch| *branch == branches[0]) {
            return Ok(branches[0]);
        }
        if self.len() * 2 > self.unique.len() {
            self.grow();
        }
        let mut slot = self.slot(level, &branches);
        loop {
            match self.unique[slot] {
                0 => break,
                node if self.level(node) == level && self.branches(node) == branches => return Ok(node),
                _ => slot = (slot + 1) & (self.unique.len() - 1),
            }
        }
        let full = self.len() >= self.limit || self.children.len() + branches.len() > u32::MAX as usize;
        let stopped = self.len().is_multiple_of(1 << 12) && (self.stop)();
        if full || stopped {
            return Err(Full { stopped });
        }
        let node = self.len() as Node;
        self.levels.push(level);
        self.first.push(self.children.len() as u32);
        self.children.extend(branches);
        self.unique[slot] = node;
        Ok(node)
    }

    fn slot(&self, level: u32, branches: &[Node]) -> usize {
        let mixed = branches.iter().fold(u64::from(level), |hash, branch| mix(hash ^ u64::from(*branch)));
        mixed as usize & (self.unique.len() - 1)
    }

    fn grow(&mut self) {
        let size = self.unique.len() * 4;
        self.unique = vec![0; size];
        // Joins are known to be worth at most one slot for each node.
        self.known.resize(size.min(1 << 24), (u64::MAX, 0));
        self.known.fill((u64::MAX, 0));
        for node in 2..self.len() as Node {
            let mut slot = self.slot(self.level(node), self.branches(node));
            while self.unique[slot] != 0 {
                slot = (slot + 1) & (size - 1);
            }
            self.unique[slot] = node;
        }
    }

    /// Joins two functions branch by branch, without recursion: diagrams may have as many levels as there are facts.
    fn join(&mut self, join: Join, a: Node, b: Node) -> Result<Node, Full> {
        enum Task {
            Join(Node, Node),
            Make(u32, u64),
        }
        let mut tasks = vec![Task::Join(a, b)];
        let mut results: Vec<Node> = Vec::new();
        while let Some(task) = tasks.pop() {
            match task {
                Task::Join(a, b) => {
                    if let Some(result) = decided(join, a, b) {
                        results.push(result);
                        continue;
                    }
                    let (a, b) = if join == Join::Not || a <= b { (a, b) } else { (b, a) };
                    // At most 2^30 nodes: two bits are left for the operation.
                    let key = (join as u64) << 62 | u64::from(a) << 31 | u64::from(b);
                    let (known, result) = self.known[mix(key) as usize & (self.known.len() - 1)];
                    if known == key {
                        results.push(result);
                        continue;
                    }
                    let level = self.level(a).min(self.level(b));
                    tasks.push(Task::Make(level, key));
                    let below = |node: Node, at: u32| {
                        if self.level(node) == level { self.branches(node)[at as usize] } else { node }
                    };
                    let branches = (0..self.branches[level as usize]).rev();
                    tasks.extend(branches.map(|at| Task::Join(below(a, at), below(b, at))));
                }
                Task::Make(level, key) => {
                    let branches = results.split_off(results.len() - self.branches[level as usize] as usize);
                    let node = self.node(level, branches)?;
                    let slot = mix(key) as usize & (self.known.len() - 1);
                    self.known[slot] = (key, node);
                    results.push(node);
                }
            }
        }
        Ok(results.pop().unwrap_or(FALSE))
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
