//! Orders of choices: how large a diagram becomes is decided by them, and finding the best one is hard.
//!
//! So there are several: as a search to the depth meets them, the nearest to the goals first, either of these after some
//! rounds of FORCE (Aloul, Markov and Sakallah 2003), which puts everything at the centre of the rules that it occurs in,
//! along the graph of atoms from one end to the other, and the first one turned around.

use crate::proofs::{Atom, Literal, Proofs};

/// Rounds of FORCE.
const ROUNDS: usize = 40;

/// The orders to be tried, one after the other, each once.
pub(crate) fn orders(proofs: &Proofs, goals: &[Atom]) -> Vec<Vec<u32>> {
    let deep: Vec<u32> = (0..proofs.alternatives.len().saturating_sub(1) as u32).collect();
    let near = proofs.breadth(goals);
    let mut orders = vec![deep.clone(), near];
    for at in 0..2 {
        orders.push(settled(proofs, &orders[at]));
    }
    // Along a graph first where atoms are joined as in a graph.
    let follows = |literal: &&Literal| matches!(literal, Literal::Follows(_) | Literal::FollowsNot(_));
    let is_graph =
        (0..proofs.rules() as u32).all(|rule| proofs.body(rule).iter().filter(follows).count() <= 1);
    orders.insert(if is_graph { 0 } else { orders.len() }, banded(proofs, goals));
    // Of several goals that follow from each other, each is one choice on top of the one before it where later choices stand
    // above earlier ones: all of a chain take as many nodes as it has steps, and their square the other way around.
    if goals.len() > 1 {
        orders.insert(1, deep.into_iter().rev().collect());
    }
    let mut at = 1;
    while at < orders.len() {
        if orders[..at].contains(&orders[at]) {
            orders.remove(at);
        } else {
            at += 1;
        }
    }
    orders
}

/// An order in which what stands in rules together stands near each other: the atoms as Cuthill and McKee (1969) number them,
/// beginning with the one that is farthest from the goals, each choice at the first atom that it has to do with, and all
/// turned around. On a graph of small width few choices lie between any two that have to do with each other, and the goals,
/// whose diagrams stay, are at the top.
fn banded(proofs: &Proofs, goals: &[Atom]) -> Vec<u32> {
    let neighbours = neighbours(proofs);
    let farthest = numbered(&neighbours, goals).last().copied();
    let order = numbered(&neighbours, farthest.as_slice());
    let mut places = vec![0; proofs.atoms()];
    (0..).zip(&order).for_each(|(place, atom)| places[atom.0 as usize] = place);
    let choices = proofs.alternatives.len().saturating_sub(1);
    let mut spans = vec![(u32::MAX, 0); choices];
    for (rule, head) in (0..).zip(&proofs.heads) {
        let place = |atom: &Atom| places[atom.0 as usize];
        let mut span = (place(head), place(head));
        for literal in proofs.body(rule) {
            if let Literal::Follows(atom) | Literal::FollowsNot(atom) = literal {
                span = (span.0.min(place(atom)), span.1.max(place(atom)));
            }
        }
        for literal in proofs.body(rule) {
            if let Literal::Is(event) | Literal::IsNot(event) = literal {
                let of = &mut spans[proofs.choice_of(*event) as usize];
                *of = (of.0.min(span.0), of.1.max(span.1));
            }
        }
    }
    let mut order: Vec<u32> = (0..choices as u32).collect();
    order.sort_by_key(|choice| std::cmp::Reverse((spans[*choice as usize], *choice)));
    order
}

/// All atoms that have neighbours, those that begin first, then their neighbours, those with few of their own first.
fn numbered(neighbours: &[Vec<Atom>], begin: &[Atom]) -> Vec<Atom> {
    let mut seen = vec![false; neighbours.len()];
    let mut order: Vec<Atom> = Vec::with_capacity(neighbours.len());
    let mut at = 0;
    let joined = |atom: &Atom| !neighbours[atom.0 as usize].is_empty();
    let others = (0..neighbours.len() as u32).map(Atom).filter(joined);
    for root in begin.iter().copied().chain(others) {
        if !std::mem::replace(&mut seen[root.0 as usize], true) {
            order.push(root);
        }
        while let Some(atom) = order.get(at) {
            let of = &neighbours[atom.0 as usize];
            let mut new: Vec<Atom> = of.iter().copied().filter(|other| !seen[other.0 as usize]).collect();
            new.sort_by_key(|other| (neighbours[other.0 as usize].len(), *other));
            new.iter().for_each(|other| seen[other.0 as usize] = true);
            order.extend(new);
            at += 1;
        }
    }
    order
}

/// The atoms that stand in a rule with each atom.
fn neighbours(proofs: &Proofs) -> Vec<Vec<Atom>> {
    let mut neighbours: Vec<Vec<Atom>> = vec![Vec::new(); proofs.atoms()];
    for rule in 0..proofs.rules() as u32 {
        let head = proofs.heads[rule as usize];
        for literal in proofs.body(rule) {
            if let Literal::Follows(atom) | Literal::FollowsNot(atom) = literal {
                neighbours[head.0 as usize].push(*atom);
                neighbours[atom.0 as usize].push(head);
            }
        }
    }
    for of in &mut neighbours {
        of.sort_unstable();
        of.dedup();
    }
    neighbours
}

/// The order with the smallest spans of rules that rounds of FORCE meet.
fn settled(proofs: &Proofs, from: &[u32]) -> Vec<u32> {
    let (atoms, choices) = (proofs.atoms(), from.len());
    // Atoms begin where the choices of their rules are.
    let mut places = vec![0.0; choices + atoms];
    for (place, choice) in from.iter().enumerate() {
        places[*choice as usize] = place as f64;
    }
    let edges: Vec<Vec<usize>> = (0..proofs.rules() as u32)
        .map(|rule| {
            let literals = proofs.body(rule).iter().map(|literal| match literal {
                Literal::Is(event) | Literal::IsNot(event) => proofs.choice_of(*event) as usize,
                Literal::Follows(atom) | Literal::FollowsNot(atom) => choices + atom.0 as usize,
            });
            let mut edge: Vec<usize> = literals.collect();
            edge.push(choices + proofs.heads[rule as usize].0 as usize);
            edge.sort_unstable();
            edge.dedup();
            edge
        })
        .collect();
    for _ in 0..4 {
        centre(&edges, &mut places, choices);
    }
    let mut best = (f64::INFINITY, from.to_vec());
    for _ in 0..ROUNDS {
        centre(&edges, &mut places, 0);
        let mut order: Vec<u32> = (0..choices as u32).collect();
        order.sort_by(|a, b| places[*a as usize].total_cmp(&places[*b as usize]).then(a.cmp(b)));
        // Ranks, so that nothing falls together.
        let mut all: Vec<usize> = (0..places.len()).collect();
        all.sort_by(|a, b| places[*a].total_cmp(&places[*b]).then(a.cmp(b)));
        all.iter().enumerate().for_each(|(rank, vertex)| places[*vertex] = rank as f64);
        let length = span(&edges, &places);
        if length < best.0 {
            best = (length, order);
        }
    }
    best.1
}

/// Moves every vertex from `first` on to the mean of the centres of its edges.
fn centre(edges: &[Vec<usize>], places: &mut [f64], first: usize) {
    let mut sums = vec![(0.0, 0.0); places.len()];
    for edge in edges {
        let centre = edge.iter().map(|vertex| places[*vertex]).sum::<f64>() / edge.len() as f64;
        for vertex in edge {
            sums[*vertex].0 += centre;
            sums[*vertex].1 += 1.0;
        }
    }
    for ((sum, count), place) in
        sums.into_iter().zip(places).skip(first).filter(|((_, count), _)| *count > 0.0)
    {
        *place = sum / count;
    }
}

/// How far the vertices of the edges lie apart, all edges together.
fn span(edges: &[Vec<usize>], places: &[f64]) -> f64 {
    let one = |edge: &Vec<usize>| {
        let at = || edge.iter().map(|vertex| places[*vertex]);
        at().fold(f64::NEG_INFINITY, f64::max) - at().fold(f64::INFINITY, f64::min)
    };
    edges.iter().map(one).sum()
}
