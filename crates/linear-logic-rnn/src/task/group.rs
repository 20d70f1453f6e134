//! State tracking in a permutation group (section 7.2).
//!
//! The elements are found by closing {identity} under generators and sorted in lexicographic order of their one-line
//! forms; a state is a place in that list. Letters are two generators, which act from the left, or all elements, which
//! are multiplied from the right and may be planted with a rule that chooses how.

use std::collections::BTreeSet;

use crate::error::{Kind, Refusal, Result};

/// A group with its table of products.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    identity: u32,
    /// The places of s and r.
    generators: [u32; 2],
    /// The place of a∘b, in row a.
    products: Vec<Vec<u32>>,
    /// Which states the second of two rules is for.
    second: Vec<bool>,
}

/// How a letter changes the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// s ← g∘s for two generators: token 0 is s, token 1 is r.
    Generators,
    /// s ← s·x
    Letters,
    /// s ← s·x, but s·x·x at the states of the second rule: the numerals 1 and 2.
    Numerals,
    /// s ← s·x′·x with the letter x′ before x, but s·x·x′ at the states of the second rule: the words 10 and 01. The
    /// letter before the first is the unit.
    Words,
}

type Permutation = Vec<u8>;

/// (a∘b)\[k\] = a\[b\[k\]\]
fn compose(a: &[u8], b: &[u8]) -> Permutation {
    b.iter().filter_map(|&k| a.get(usize::from(k)).copied()).collect()
}

impl Group {
    /// All permutations of n points: s exchanges the first two, r is k ↦ k+1 mod n. The second rule is for odd ones.
    pub(super) fn symmetric(n: u8) -> Self {
        Self::generated([exchange(n), rotation(n)], is_odd)
    }

    /// The even permutations of n points, n odd: s turns the first three, r is k ↦ k+1 mod n. No second rule.
    pub(super) fn alternating(n: u8) -> Self {
        let turn = |k| match k {
            0..3 => (k + 1) % 3,
            k => k,
        };
        Self::generated([(0..n).map(turn).collect(), rotation(n)], |_| false)
    }

    /// The symmetries of a polygon with n corners: s is k ↦ −k, r is k ↦ k+1 mod n. The second rule is for those that
    /// take corner 0 to corner 1 or 2; planted at the reflections, s·x·x would never leave them.
    pub(super) fn dihedral(n: u8) -> Self {
        let is_second = |p: &[u8]| matches!(p.first(), Some(1 | 2));
        Self::generated([(0..n).map(|k| (n - k) % n).collect(), rotation(n)], is_second)
    }

    /// The turns of a polygon with n corners, in order; s and r are both k ↦ k+1 mod n. The second rule is for those by
    /// 1, 2, 4, 8 … places.
    pub(super) fn cyclic(n: u8) -> Self {
        Self::generated([rotation(n), rotation(n)], |p| p.first().is_some_and(|k| k.is_power_of_two()))
    }

    fn generated(generators: [Permutation; 2], is_second: impl Fn(&[u8]) -> bool) -> Self {
        let identity: Permutation = (0..generators[0].len() as u8).collect();
        let mut elements = BTreeSet::from([identity.clone()]);
        let mut fresh = vec![identity.clone()];
        while let Some(state) = fresh.pop() {
            for g in &generators {
                let next = compose(g, &state);
                if elements.insert(next.clone()) {
                    fresh.push(next);
                }
            }
        }
        let elements: Vec<Permutation> = elements.into_iter().collect();
        let place = |p: &Permutation| elements.binary_search(p).unwrap_or_default() as u32;
        let row = |a: &Permutation| elements.iter().map(|b| place(&compose(a, b))).collect();
        Self {
            identity: place(&identity),
            generators: generators.each_ref().map(place),
            products: elements.iter().map(row).collect(),
            second: elements.iter().map(|p| is_second(p)).collect(),
        }
    }

    /// The number of elements.
    pub fn order(&self) -> u32 {
        self.products.len() as u32
    }

    /// The unit, where every sequence begins.
    pub fn identity(&self) -> u32 {
        self.identity
    }

    /// The number of letters under a rule.
    pub fn letters(&self, rule: Rule) -> u32 {
        if rule == Rule::Generators { 2 } else { self.order() }
    }

    /// The place of a∘b; `None` if one is no element.
    pub fn product(&self, a: u32, b: u32) -> Option<u32> {
        self.products.get(a as usize)?.get(b as usize).copied()
    }

    /// Whether the second rule is for this state.
    pub fn is_second(&self, state: u32) -> bool {
        self.second.get(state as usize).copied().unwrap_or(false)
    }

    /// The state after a letter, with the letter before it (the unit before the first); `None` if one is no letter.
    pub fn step(&self, rule: Rule, state: u32, before: u32, letter: u32) -> Option<u32> {
        match rule {
            Rule::Generators => self.product(*self.generators.get(letter as usize)?, state),
            Rule::Letters => self.product(state, letter),
            Rule::Numerals if self.is_second(state) => self.product(self.product(state, letter)?, letter),
            Rule::Numerals => self.product(state, letter),
            Rule::Words if self.is_second(state) => self.product(self.product(state, letter)?, before),
            Rule::Words => self.product(self.product(state, before)?, letter),
        }
    }

    /// The state after each token, from the identity.
    pub fn states(&self, rule: Rule, tokens: &[u32]) -> Vec<u32> {
        let step = |(state, before): &mut (u32, u32), &token: &u32| {
            (*state, *before) = (self.step(rule, *state, *before, token)?, token);
            Some(*state)
        };
        tokens.iter().scan((self.identity, self.identity), step).collect()
    }
}

/// A group by its name: a letter and a number, `s3`.
pub(super) fn group(name: &str) -> Result<Group> {
    match name {
        "s3" => Ok(Group::symmetric(3)),
        "s4" => Ok(Group::symmetric(4)),
        "s5" => Ok(Group::symmetric(5)),
        "a5" => Ok(Group::alternating(5)),
        "d5" => Ok(Group::dihedral(5)),
        "z7" => Ok(Group::cyclic(7)),
        _ => Err(Refusal::new(Kind::UnknownTask, format!("there is no group \"{name}\""))),
    }
}

/// k ↦ k+1 mod n
fn rotation(n: u8) -> Permutation {
    (0..n).map(|k| (k + 1) % n).collect()
}

/// Exchanges the first two points.
fn exchange(n: u8) -> Permutation {
    let other = |k| match k {
        0 => 1,
        1 => 0,
        k => k,
    };
    (0..n).map(other).collect()
}

/// Whether the number of inversions is odd.
fn is_odd(p: &[u8]) -> bool {
    let inversions = |(at, a): (usize, &u8)| p.iter().skip(at + 1).filter(|b| *b < a).count();
    p.iter().enumerate().map(inversions).sum::<usize>() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use seeded::Family;

    #[test]
    fn orders_and_relations() {
        let (s3, s5, d5) = (Group::symmetric(3), Group::symmetric(5), Group::dihedral(5));
        assert_eq!((s3.order(), s5.order(), d5.order()), (6, 120, 10));
        let last = |group: &Group, tokens: &[u32]| group.states(Rule::Generators, tokens).last().copied();
        for (group, n) in [(&s3, 3), (&s5, 5), (&d5, 5)] {
            assert_eq!(last(group, &[0, 0]), Some(0), "s² = 1, and the identity is the first element");
            assert_eq!(last(group, &vec![1; n]), Some(0), "rⁿ = 1");
        }
        assert_eq!(last(&d5, &[0, 1, 0, 1]), Some(0), "(rs)² = 1 in a dihedral group");
        let orders = [Group::symmetric(4), Group::alternating(5), Group::cyclic(7)].map(|g| g.order());
        assert_eq!(orders, [24, 60, 7]);
    }

    /// The place of a permutation by its Lehmer code, for the whole symmetric group.
    fn lehmer(p: &[u8]) -> u32 {
        let n = p.len();
        let smaller = |i: usize| p[i + 1..].iter().filter(|&&x| x < p[i]).count();
        (0..n).fold(0, |rank, i| rank * (n - i) as u32 + smaller(i) as u32)
    }

    #[test]
    fn states_are_lexicographic_ranks() {
        let (group, s, r) = (Group::symmetric(5), vec![1, 0, 2, 3, 4], rotation(5));
        let mut stream = Family::named("group").stream(0);
        let tokens: Vec<u32> = (0..200).map(|_| stream.below(2) as u32).collect();
        let mut state: Permutation = (0..5).collect();
        for (token, class) in tokens.iter().zip(group.states(Rule::Generators, &tokens)) {
            state = compose(if *token == 0 { &s } else { &r }, &state);
            assert_eq!(class, lehmer(&state));
        }
    }

    /// All permutations of n points, in order.
    fn permutations(n: u8) -> Vec<Permutation> {
        if n == 0 {
            return vec![Vec::new()];
        }
        let firsts = 0..n;
        let with = |first: u8| {
            permutations(n - 1).into_iter().map(move |rest| {
                let rest = rest.into_iter().map(move |k| if k < first { k } else { k + 1 });
                std::iter::once(first).chain(rest).collect()
            })
        };
        firsts.flat_map(with).collect()
    }

    impl Group {
        /// The states that may follow a state, at any distance of 2 to 4 letters.
        fn reached(&self, rule: Rule, from: u32) -> BTreeSet<u32> {
            let mut now = BTreeSet::from([(from, self.identity)]);
            let mut all = BTreeSet::new();
            for _ in 0..4 {
                let after = |(state, before): (u32, u32)| {
                    (0..self.order()).map(move |x| (self.step(rule, state, before, x).unwrap(), x))
                };
                now = now.into_iter().flat_map(after).collect();
                all.extend(now.iter().map(|(state, _)| *state));
            }
            all
        }
    }

    #[test]
    fn every_element_is_a_letter_and_a_rule_may_be_planted() {
        // A permutation is even if it is a square times itself or a product of 3-cycles; here by its sign as a
        // product over pairs.
        let sign = |p: &[u8]| {
            let pairs = (0..p.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
            pairs.map(|(i, j)| (f64::from(p[j]) - f64::from(p[i])) / (j as f64 - i as f64)).product::<f64>()
        };
        let even = |n: u8| permutations(n).into_iter().filter(|p| sign(p) > 0.0).collect::<Vec<_>>();
        let dihedral: Vec<Permutation> = permutations(5)
            .into_iter()
            .filter(|p| {
                let next = |k: usize| (i16::from(p[(k + 1) % 5]) - i16::from(p[k])).rem_euclid(5);
                (0..5).all(|k| next(k) == 1) || (0..5).all(|k| next(k) == 4)
            })
            .collect();
        let cyclic: Vec<Permutation> = (0..7).map(|t| (0..7).map(|k| (k + t) % 7).collect()).collect();
        let odd: fn(&[u8]) -> bool = |p| is_odd(p);
        for (group, elements, is_second) in [
            (Group::symmetric(3), permutations(3), odd),
            (Group::symmetric(4), permutations(4), odd),
            (Group::symmetric(5), permutations(5), odd),
            (Group::alternating(5), even(5), |_| false),
            (Group::dihedral(5), dihedral, |p| [1, 2].contains(&p[0])),
            (Group::cyclic(7), cyclic, |p| [1, 2, 4].contains(&p[0])),
        ] {
            assert_eq!(group.order() as usize, elements.len());
            let mut stream = Family::named("letters").stream(elements.len() as u64);
            let tokens: Vec<u32> = (0..300).map(|_| stream.below(elements.len() as u64) as u32).collect();
            let unit: Permutation = (0..elements[0].len() as u8).collect();
            for rule in [Rule::Letters, Rule::Numerals, Rule::Words] {
                let (mut state, mut before) = (unit.clone(), unit.clone());
                for (token, class) in tokens.iter().zip(group.states(rule, &tokens)) {
                    let x = &elements[*token as usize];
                    let times = |a: &[u8], b: &[u8]| compose(a, b);
                    state = match rule {
                        Rule::Numerals if is_second(&state) => times(&times(&state, x), x),
                        Rule::Words if is_second(&state) => times(&times(&state, x), &before),
                        Rule::Words => times(&times(&state, &before), x),
                        _ => times(&state, x),
                    };
                    before.clone_from(x);
                    assert_eq!(elements[class as usize], state, "{rule:?}");
                }
            }
        }
        assert_eq!(Group::cyclic(7).step(Rule::Letters, 0, 0, 7), None);
    }

    #[test]
    fn no_planted_rule_is_left_forever() {
        for (group, rule) in [
            (Group::dihedral(5), Rule::Numerals),
            (Group::cyclic(7), Rule::Numerals),
            (Group::symmetric(3), Rule::Words),
            (Group::symmetric(4), Rule::Words),
        ] {
            for state in 0..group.order() {
                let met: BTreeSet<bool> =
                    group.reached(rule, state).into_iter().map(|s| group.is_second(s)).collect();
                assert_eq!(met.len(), 2, "{rule:?} from {state}");
            }
        }
        // Planted at the reflections of D₅, the numerals would be: s·x·x is a reflection again.
        let mut reflections = Group::dihedral(5);
        let is_reflection =
            |s: u32| reflections.product(s, s) == Some(reflections.identity) && s != reflections.identity;
        let second: Vec<bool> = (0..reflections.order()).map(is_reflection).collect();
        reflections.second = second.clone();
        for state in (0..reflections.order()).filter(|s| second[*s as usize]) {
            assert!(reflections.reached(Rule::Numerals, state).iter().all(|s| second[*s as usize]));
        }
    }
}
