//! The classes of components and the refusals of the stage "recursion", on lowered programs.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use crate::common;
use tensor_logic::error::{Places, Refusal};
use tensor_logic::function::UserFunctions;
use tensor_logic::lower::{NoFiles, Options, lower};
use tensor_logic::parse::parse;
use tensor_logic::program::{Class, Component, Program};
use tensor_logic::{names, recursion};

fn analyse(text: &str) -> (Program, Result<Vec<Component>, Vec<Refusal>>) {
    let (tree, reports) = parse(text);
    assert_eq!(reports, [], "{text}");
    let names = names::resolve(text, &tree).unwrap();
    let functions = UserFunctions::default();
    let draft = lower(text, &tree, &names, &mut NoFiles, &functions, &Options::default());
    let found = recursion::analyse(&draft.program, &tree);
    (draft.program, found)
}

/// Components of named tensors as `A B: stepped A.0+ B.1-`.
fn classes(text: &str) -> Vec<String> {
    let (program, found) = analyse(text);
    let show = |component: &Component| {
        let names: Vec<&str> = component.tensors.iter().map(|id| program.name(*id)).collect();
        let class = match &component.class {
            Class::Plain => "plain".to_owned(),
            Class::Closure => "closure".to_owned(),
            Class::Numeric => "numeric".to_owned(),
            Class::Stepped(steps) => {
                let places = steps.places.iter().map(|(id, moving)| {
                    let moves =
                        moving.iter().map(|m| format!(".{}{}", m.place, if m.up { '+' } else { '-' }));
                    format!(" {}{}", program.name(*id), moves.collect::<String>())
                });
                format!("stepped{}", places.collect::<String>())
            }
        };
        format!("{}: {class}", names.join(" "))
    };
    let components = found.map_err(|reports| format!("{text}: {reports:?}")).unwrap();
    let named = components.iter().filter(|c| !c.tensors.iter().any(|id| program.tensor(*id).hidden));
    named.map(show).collect()
}

fn refusals(text: &str) -> Vec<String> {
    let places = Places::new(text);
    let reports = analyse(text).1.err().unwrap_or_default();
    let show = |report: &Refusal| {
        let (line, column) = places.of(report.span.start);
        format!("{} {line}:{column}", report.code.name())
    };
    reports.iter().map(show).collect()
}

#[test]
fn one_component() {
    for (text, class) in [
        ("Y = A[i]", "Y: plain"),
        ("P(x) <- E(x, y)", "P: plain"),
        ("P(x, z) <- E(x, z); P(x, z) <- P(x, y), P(y, z)", "P: closure"),
        ("D(A) min= 0; D(y) min= D(x) + R(x, y)", "D: closure"),
        ("D[y] min= D[x] + R[x, y]", "D: closure"),
        ("X[t+1] = 2 X[t]; X[0] = 1", "X: stepped X.0+"),
        ("X[t] = 2 X[t-1]; X[0] = 1", "X: stepped X.0+"),
        ("X[t-1] = 2 X[t]; X[9] = 1", "X: stepped X.0-"),
        ("X[t, i] = X[t+2, j] W[i, j]", "X: stepped X.0-"),
        ("X[t] max= X[t-1] + A[t]", "X: stepped X.0+"),
        ("X[i, t+1] = W[i, j] X[j, t]", "X: stepped X.1+"),
        ("C[i, j] = C[i-1, j] + C[i, j-1]", "C: stepped C.0+.1+"),
        ("C[i, j] = C[i-1, j+1] + C[i, j-1]", "C: stepped C.0+.1+"),
        ("C[i, j] = C[i-1, j] + C[i+1, j]", "C: numeric"),
        ("X[2] = X[1] + X[0]; X[1] = 1", "X: stepped X.0+"),
        ("X[i] = X[j] A[i, j] | j < i", "X: stepped X.0+"),
        ("X[i] = sum[j](X[j] A[i, j] | i + 1 <= j)", "X: stepped X.0-"),
        ("X[i] = X[j] A[i, j] | j <= i", "X: numeric"),
        ("t : 1..5; X[t] = X[0]; X[0] = 1", "X: stepped X.0+"),
        ("t : 0..5; X[t] = X[0]; X[0] = 1", "X: numeric"),
        ("X[2*t] = X[2*t-1] + X[2*t-2]", "X: stepped X.0+"),
        ("X = 0.5 X + 1", "X: numeric"),
        ("X[i] = A[i, j] X[j] + B[i]", "X: numeric"),
        ("P(x, z) : count; P(x, z) <- E(x, y), P(y, z)", "P: numeric"),
        ("P(x, z) : tropical; P(x, z) <- E(x, y), P(y, z)", "P: closure"),
        ("N(0); N(y) <- N(x), y = x + 1", "N: closure"),
        ("s : 0..3; Day(0); Day(s+1) <- Day(s)", "Day: closure"),
        ("s : 0..3; Day(0); Day(s+1) <- D(s), not Day(s)", "Day: stepped Day.0+"),
        ("s : 0..3; Day(0) = 1; Day(s+1) = Day(s)", "Day: stepped Day.0+"),
        ("X[*t+1] = tanh(W X[*t] + V U[t])", "X: stepped X.0+"),
        ("R(x) or= E(x, y) R(y)", "R: closure"),
        ("X[t+1, i.] = softmax(X[t, i])", "X: stepped X.0+"),
    ] {
        let found = classes(text);
        assert_eq!(found, [class], "{text}");
    }
}

/// The read of a cycle may go back where the whole cycle goes on: the gradient of `X[t+1] = f(Y[t+1])` has such reads.
#[test]
fn single_reads_go_back() {
    for (text, class) in [
        ("t : 5; X[t+1] = P[t]; P[t] = Y[t+1]; Y[t] = X[t+1]", "X P Y: stepped Y.0- P.0- X.0-"),
        ("t : 5; A[t] = B[t+2]; B[t] = A[t-3]", "A B: stepped B.0+ A.0+"),
        ("t : 5; A[t] = B[t+2]; B[t] = A[t-2]", "A B: numeric"),
        ("t : 5; A[t] = B[t+2]; B[t] = A[t-2] + A[t-5]", "A B: numeric"),
        ("t : 5; A[t] = B[t+2] + A[t-1]; B[t] = A[t-3] + B[t+1]", "A B: numeric"),
        ("t, i : 5; A[t, i] = B[t+2, i]; B[t, i] = A[t-2, i-1]", "A B: stepped B.1+ A.1+"),
    ] {
        let found = classes(text);
        assert_eq!(found, [class], "{text}");
    }
}

#[test]
fn several_components_come_in_evaluation_order() {
    assert_eq!(classes("C = B + 1; A = X[i]; B = A + 1"), ["A: plain", "B: plain", "C: plain"]);
    let table = "Emb[n, 0, d] = X[n, d]\nZ[n, l, e] = relu(W[l, e, d] Emb[n, l, d])\n\
                 Agg[n, l, d] = Neig(n, m) Z[m, l, d]\nEmb[n, l+1, d] = relu(A Agg[n, l, d] + S Emb[n, l, d])";
    assert_eq!(classes(table), ["Emb Z Agg: stepped Emb.1+ Z.1+ Agg.1+"]);
    // The second place moves only among those that the first leaves in a cycle.
    let nested = "A[t+1, i] = B[t, i]; B[t, i] = A[t, i] + B[t, i-1]";
    assert_eq!(classes(nested), ["A B: stepped A.0+ B.0+.1+"]);
    let odd = "Odd(x, z) <- Even(x, y), E(y, z); Even(x, z) <- Odd(x, y), E(y, z); Odd(x, y) <- E(x, y)";
    assert_eq!(classes(odd), ["Odd Even: closure"]);
    // Places may stand at different positions.
    let turned = "A[t, i] = B[i, t-1]; B[i, t] = A[t, i]";
    assert_eq!(classes(turned), ["A B: stepped A.0+ B.1+"]);
}

#[test]
fn refused() {
    for (text, expected) in [
        ("S = [[1, 2], [3, 4]]; X[p, d.] = lnorm(S[p, d] + X[p, d])", "self-reference 1:50"),
        ("Q(1); P(x) <- Q(x), not P(x)", "not-stratified 1:21"),
        ("E(A, B); D(x) max= 0 - D(y) E(x, y)", "not-stratified 1:24"),
        ("P(x) <- Q(x), D(x) > 3; D(x) or= P(x)", "not-stratified 1:15"),
        ("P(x) <- Q(x), 2 > 1 - P[x]", "not-stratified 1:15"),
        ("D(x) max= 1 / D(y) E(x, y)", "not-stratified 1:15"),
        ("D(x) avg= D(y) E(x, y)", "not-stratified 1:6"),
        ("D(x) += D(y) A(x, y); D(x) += F(x); F(x) avg= D(y) E(x, y)", "not-stratified 1:42"),
        ("D(x) max= softmax[y](D(y) E(x, y))", "not-stratified 1:22"),
        ("P(x) = Q(x) not P(x)", "not-stratified 1:13"),
        ("Win(x) <- Move(x, y), not Win(y)", "not-stratified 1:23"),
        ("A(x) <- Q(x), B(x); B(x) <- Q(x), not A(x)", "not-stratified 1:35"),
    ] {
        assert_eq!(refusals(text).first().map(String::as_str), Some(expected), "{text}");
    }
}

#[test]
fn the_message_shows_the_cycle() {
    let message = |text: &str| analyse(text).1.unwrap_err()[0].message.clone();
    assert!(message("Q(1); P(x) <- Q(x), not P(x)").contains("`P -> not P`"));
    let longer = "A(x) <- B(x); B(x) <- C(x); C(x) <- Q(x), not A(x)";
    assert!(message(longer).contains("`C -> not A -> B -> C`"), "{}", message(longer));
}

/// A random component of translations, and whether its steps compute every read element first.
fn steps_compute_reads_first(stream: &mut seeded::Stream) -> bool {
    use std::cmp::Ordering;
    let tensors = 1 + stream.below(3) as usize;
    let mut text = String::new();
    let mut edges = Vec::new();
    for _ in 0..1 + stream.below(4) {
        let element = |stream: &mut seeded::Stream| {
            let offset = [stream.below(3) as i64 - 1, stream.below(3) as i64 - 1];
            (stream.below(tensors as u64) as usize, offset, stream.below(5) == 0)
        };
        let (head, read) = (element(stream), element(stream));
        let show = |(tensor, [a, b], turned): (usize, [i64; 2], bool)| {
            let (i, j) = if turned { ("j", "i") } else { ("i", "j") };
            format!("T{tensor}[{i} + {}, {j} + {}]", a + 1, b + 1)
        };
        text.push_str(&format!("{} = {}\n", show(head), show(read)));
        edges.push((head, read));
    }
    let (program, found) = analyse(&text);
    let mut any = false;
    for component in found.unwrap() {
        let Class::Stepped(steps) = &component.class else { continue };
        any = true;
        let at = |tensor: usize| {
            let named = format!("T{tensor}");
            steps.places.iter().position(|(id, _)| program.name(*id) == named)
        };
        let before = |one: (usize, [i64; 2]), other: (usize, [i64; 2])| {
            let (p, q) = (&steps.places[one.0].1, &steps.places[other.0].1);
            for (m, n) in p.iter().zip(q).take_while(|(m, n)| m.cycle == n.cycle) {
                let (a, b) = (one.1[m.place] + m.shift, other.1[n.place] + n.shift);
                let order = if m.up { a.cmp(&b) } else { b.cmp(&a) };
                if order != Ordering::Equal {
                    return order;
                }
            }
            one.0.cmp(&other.0)
        };
        for ((head, to, head_turned), (read, from, read_turned)) in &edges {
            let (Some(head), Some(read)) = (at(*head), at(*read)) else { continue };
            for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
                let element = |turned: bool, by: &[i64; 2]| {
                    let (a, b) = if turned { (j, i) } else { (i, j) };
                    [a + by[0], b + by[1]]
                };
                let defined = (head, element(*head_turned, to));
                let needed = (read, element(*read_turned, from));
                assert_eq!(before(needed, defined), Ordering::Less, "{text}{steps:?}");
            }
        }
    }
    any
}

#[test]
fn steps_compute_what_is_read_first() {
    let mut stream = common::stream("steps");
    let stepped = (0..5000).filter(|_| steps_compute_reads_first(&mut stream)).count();
    assert!(stepped > 500, "only {stepped} were stepped");
}

#[test]
fn long_chains_are_no_deep_recursion() {
    let mut text = String::from("A0 = 1\n");
    for at in 1..20_000 {
        text.push_str(&format!("A{at} = A{} + 1\n", at - 1));
    }
    text.push_str("B0 = B19999\n");
    for at in 1..20_000 {
        text.push_str(&format!("B{at} = B{}\n", at - 1));
    }
    let found = analyse(&text).1.unwrap();
    assert_eq!(found.len(), 20_000);
    assert!(matches!(found.last().unwrap().class, Class::Numeric));
}

#[test]
fn cases() {
    for (name, text) in common::programs() {
        let expected = match name.as_str() {
            "refuse-07-not-stratified" => Some("not-stratified 2:15"),
            "refuse-08-self-reference" => Some("self-reference 4:57"),
            _ if name.starts_with("refuse") => continue,
            _ => None,
        };
        if common::legal(&name, names::resolve(&text, &parse(&text).0)).is_none() {
            continue;
        }
        assert_eq!(refusals(&text).first().map(String::as_str), expected, "{name}");
    }
}
