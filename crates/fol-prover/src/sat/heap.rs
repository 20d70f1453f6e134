//! Variables by activity: the most active one first, of equals the one that came first.

/// Activities above this are scaled down.
const LARGE: f64 = 1e100;
/// How much an activity is worth one conflict later.
const DECAY: f64 = 0.95;

/// A binary heap that knows where each variable is.
#[derive(Debug)]
pub(super) struct Heap {
    heap: Vec<usize>,
    /// The place of each variable; `usize::MAX` outside.
    places: Vec<usize>,
    activities: Vec<f64>,
    bump: f64,
}

impl Default for Heap {
    fn default() -> Self {
        Self { heap: Vec::new(), places: Vec::new(), activities: Vec::new(), bump: 1.0 }
    }
}

impl Heap {
    /// A new variable, which is the next number.
    pub(super) fn add(&mut self, variable: usize) {
        self.places.push(usize::MAX);
        self.activities.push(0.0);
        self.push(variable);
    }

    pub(super) fn push(&mut self, variable: usize) {
        if self.places[variable] == usize::MAX {
            self.places[variable] = self.heap.len();
            self.heap.push(variable);
            self.up(self.heap.len() - 1);
        }
    }

    pub(super) fn pop(&mut self) -> Option<usize> {
        let first = *self.heap.first()?;
        self.heap.swap_remove(0);
        self.places[first] = usize::MAX;
        if let Some(&moved) = self.heap.first() {
            self.places[moved] = 0;
            self.down(0);
        }
        Some(first)
    }

    /// A variable took part in a conflict.
    pub(super) fn bump(&mut self, variable: usize) {
        self.activities[variable] += self.bump;
        if self.activities[variable] > LARGE {
            self.activities.iter_mut().for_each(|activity| *activity /= LARGE);
            self.bump /= LARGE;
        }
        if self.places[variable] != usize::MAX {
            self.up(self.places[variable]);
        }
    }

    /// What took part earlier counts less.
    pub(super) fn decay(&mut self) {
        self.bump /= DECAY;
    }

    fn before(&self, one: usize, other: usize) -> bool {
        let (a, b) = (self.activities[one], self.activities[other]);
        a > b || (a == b && one < other)
    }

    fn up(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.before(self.heap[at], self.heap[parent]) {
                break;
            }
            self.swap(at, parent);
            at = parent;
        }
    }

    fn down(&mut self, mut at: usize) {
        loop {
            let mut first = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.before(self.heap[child], self.heap[first]) {
                    first = child;
                }
            }
            if first == at {
                return;
            }
            self.swap(at, first);
            at = first;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.places[self.heap[a]] = a;
        self.places[self.heap[b]] = b;
    }
}
