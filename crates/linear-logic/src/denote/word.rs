//! Words as balanced trees: a product shares its factors, so a word of n letters that is made letter by letter takes room
//! for n letters and not for the letters of all words on the way.

use std::cmp::Ordering;
use std::rc::Rc;

/// The most letters of a leaf that is made of two.
const LEAF: usize = 64;

/// A word of ASCII letters, ordered by length and then by its letters.
#[derive(Debug, Clone, Default)]
pub struct Word(Option<Rc<Tree>>);

/// Heights of siblings differ by at most one, so a tree is never much deeper than the logarithm of its length.
#[derive(Debug)]
enum Tree {
    /// One letter or more.
    Leaf(Box<[u8]>),
    Node {
        left: Rc<Tree>,
        right: Rc<Tree>,
        length: usize,
        height: usize,
    },
}

impl Word {
    /// The word of these letters.
    pub fn new(letters: &[u8]) -> Self {
        Self((!letters.is_empty()).then(|| Rc::new(Tree::Leaf(letters.into()))))
    }

    /// The number of letters.
    pub fn length(&self) -> usize {
        self.0.as_ref().map_or(0, |tree| tree.length())
    }

    /// The letters.
    pub fn letters(&self) -> Vec<u8> {
        let mut letters = Vec::with_capacity(self.length());
        let mut leaves = Leaves::new(self);
        while let Some(leaf) = leaves.next() {
            letters.extend_from_slice(leaf);
        }
        letters
    }

    /// One word behind another.
    #[must_use]
    pub fn concat(&self, other: &Self) -> Self {
        match (&self.0, &other.0) {
            (None, _) => other.clone(),
            (_, None) => self.clone(),
            (Some(left), Some(right)) => Self(Some(join(left, right))),
        }
    }
}

impl Tree {
    fn length(&self) -> usize {
        match self {
            Self::Leaf(letters) => letters.len(),
            Self::Node { length, .. } => *length,
        }
    }

    fn height(&self) -> usize {
        match self {
            Self::Leaf(_) => 0,
            Self::Node { height, .. } => *height,
        }
    }
}

fn node(left: &Rc<Tree>, right: &Rc<Tree>) -> Rc<Tree> {
    let length = left.length() + right.length();
    let height = 1 + left.height().max(right.height());
    Rc::new(Tree::Node { left: left.clone(), right: right.clone(), length, height })
}

/// One tree behind another, whose heights may differ by any number: the lower one goes down the side of the higher one.
fn join(left: &Rc<Tree>, right: &Rc<Tree>) -> Rc<Tree> {
    match (&**left, &**right) {
        (Tree::Leaf(a), Tree::Leaf(b)) if a.len() + b.len() <= LEAF => {
            Rc::new(Tree::Leaf([&**a, &**b].concat().into()))
        }
        (Tree::Node { left: a, right: b, .. }, _) if left.height() > right.height() + 1 => {
            balance(a, &join(b, right))
        }
        (_, Tree::Node { left: a, right: b, .. }) if right.height() > left.height() + 1 => {
            balance(&join(left, a), b)
        }
        _ => node(left, right),
    }
}

/// A node of two trees whose heights differ by two at most.
fn balance(left: &Rc<Tree>, right: &Rc<Tree>) -> Rc<Tree> {
    if left.height() > right.height() + 1
        && let Tree::Node { left: a, right: b, .. } = &**left
    {
        return match &**b {
            Tree::Node { left: c, right: d, .. } if b.height() > a.height() => {
                node(&node(a, c), &node(d, right))
            }
            _ => node(a, &node(b, right)),
        };
    }
    if right.height() > left.height() + 1
        && let Tree::Node { left: a, right: b, .. } = &**right
    {
        return match &**a {
            Tree::Node { left: c, right: d, .. } if a.height() > b.height() => {
                node(&node(left, c), &node(d, b))
            }
            _ => node(&node(left, a), b),
        };
    }
    node(left, right)
}

/// The leaves of a word, from left to right.
struct Leaves<'a> {
    todo: Vec<&'a Tree>,
}

impl<'a> Leaves<'a> {
    fn new(word: &'a Word) -> Self {
        Self { todo: word.0.iter().map(|tree| &**tree).collect() }
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            match self.todo.pop()? {
                Tree::Leaf(letters) => return Some(letters),
                Tree::Node { left, right, .. } => self.todo.extend([&**right, &**left]),
            }
        }
    }
}

impl Ord for Word {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Some(a), Some(b)) = (&self.0, &other.0)
            && Rc::ptr_eq(a, b)
        {
            return Ordering::Equal;
        }
        let lengths = self.length().cmp(&other.length());
        if lengths != Ordering::Equal {
            return lengths;
        }
        let (mut lefts, mut rights) = (Leaves::new(self), Leaves::new(other));
        let (mut left, mut right): (&[u8], &[u8]) = (&[], &[]);
        loop {
            if left.is_empty() {
                // Of words of one length, both end together.
                let Some(next) = lefts.next() else { return Ordering::Equal };
                left = next;
            }
            if right.is_empty() {
                let Some(next) = rights.next() else { return Ordering::Equal };
                right = next;
            }
            let common = left.len().min(right.len());
            let ((a, rest), (b, other)) = (left.split_at(common), right.split_at(common));
            let letters = a.cmp(b);
            if letters != Ordering::Equal {
                return letters;
            }
            (left, right) = (rest, other);
        }
    }
}

impl PartialOrd for Word {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Word {}

#[cfg(test)]
mod tests {
    use super::*;
    use seeded::Family;

    /// The height, where no two siblings differ by more than one.
    fn height(tree: &Tree) -> usize {
        let Tree::Node { left, right, length, .. } = tree else { return 0 };
        let (a, b) = (height(left), height(right));
        assert!(a.abs_diff(b) <= 1, "{a} and {b}");
        assert_eq!((*length, tree.height()), (left.length() + right.length(), 1 + a.max(b)));
        tree.height()
    }

    #[test]
    fn words_are_lists_of_letters() {
        for seed in 0..40 {
            let mut stream = Family::named("linear-logic:ropes").stream(seed);
            let mut words: Vec<(Word, Vec<u8>)> = vec![(Word::default(), Vec::new())];
            for _ in 0..200 {
                let mut pick = || stream.below(words.len() as u64) as usize;
                let (a, b) = (pick(), pick());
                let (word, letters) = if stream.below(4) == 0 {
                    let count = stream.below(100);
                    let letters: Vec<u8> = (0..count).map(|_| b'x' + stream.below(2) as u8).collect();
                    (Word::new(&letters), letters)
                } else {
                    let ((a, xs), (b, ys)) = (&words[a], &words[b]);
                    (a.concat(b), [xs.as_slice(), ys].concat())
                };
                if letters.len() > 20_000 {
                    continue;
                }
                assert_eq!((word.length(), word.letters()), (letters.len(), letters.clone()));
                word.0.iter().for_each(|tree| _ = height(tree));
                for (other, others) in &words {
                    let wanted = (letters.len(), &letters).cmp(&(others.len(), others));
                    assert_eq!((word.cmp(other), word == *other), (wanted, wanted == Ordering::Equal));
                }
                words.push((word, letters));
            }
        }
    }

    /// Letter by letter, on either side: the tree stays low and is freed without deep recursion.
    #[test]
    fn a_word_of_many_letters() {
        let letter = Word::new(b"x");
        for front in [false, true] {
            let mut word = Word::default();
            for _ in 0..1 << 20 {
                word = if front { letter.concat(&word) } else { word.concat(&letter) };
            }
            assert_eq!(word.length(), 1 << 20);
            assert!(word.0.as_ref().map_or(0, |tree| height(tree)) <= 30);
        }
    }
}
