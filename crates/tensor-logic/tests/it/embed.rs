//! Embedding space: scores against the paper's equations written out as tensors of order k, certified answers against
//! the symbolic ones on random programs, what is refused, and what must not change an answer.
//!
//! 200 random programs by default; `CALCULEMUS_PROGRAMS=10000` for more, `CALCULEMUS_SEED=123` to begin at one.
#![expect(clippy::unwrap_used, reason = "a test that has no answer has failed")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use seeded::{Family, Stream};
use tensor_logic::answer::{Answer, Content};
use tensor_logic::engine::Budget;
use tensor_logic::error::{Code, Refusal};
use tensor_logic::files::Files;
use tensor_logic::reference::Reference;
use tensor_logic::source::Source;
use tensor_logic::world::{Calculated, World};

use crate::common::answers::calculated;

/// The answers of a text, and the refusal that ended it.
fn answers(text: &str) -> (Vec<Answer>, Option<Refusal>) {
    match calculated(text, Path::new("."), 0, &mut Reference::default()) {
        Ok(found) => (found.outcome.answers, found.outcome.refusal),
        Err(refusals) => (Vec::new(), refusals.into_iter().next()),
    }
}

fn refusal(text: &str) -> Refusal {
    answers(text).1.unwrap_or_else(|| unreachable!("{text}"))
}

/// The numbers of the answers of a text.
fn numbers(text: &str) -> Vec<Vec<f64>> {
    let (answers, refusal) = answers(text);
    assert!(refusal.is_none(), "{text}\n{refusal:?}");
    answers.iter().map(|answer| answer.content.numbers().to_vec()).collect()
}

/// Vectors of length 1, one for each constant, as statements.
fn vectors(stream: &mut Stream, objects: &[&str], width: usize) -> String {
    let mut text = format!("x, y, z, w : {{{}}}\n", objects.join(", "));
    for object in objects {
        let row: Vec<f64> = (0..width).map(|_| stream.normal()).collect();
        let length = row.iter().map(|value| value * value).sum::<f64>().sqrt();
        let row: Vec<String> = row.iter().map(|value| format!("{}", value / length)).collect();
        writeln!(text, "Emb[{object}, d] = [{}]", row.join(", ")).unwrap();
    }
    text
}

/// Some tuples of a relation, as facts.
fn facts(stream: &mut Stream, name: &str, objects: &[&str], arity: usize, count: usize) -> String {
    let mut all: Vec<String> = Vec::new();
    while all.len() < count {
        let tuple: Vec<&str> =
            (0..arity).map(|_| objects[stream.below(objects.len() as u64) as usize]).collect();
        let fact = format!("{name}({})", tuple.join(", "));
        if !all.contains(&fact) {
            all.push(fact);
        }
    }
    all.join("; ") + "\n"
}

/// A rule, the query of it, and its score as equations of the paper: the tensors of order k are built, index by index.
const RULES: &[(&str, &str, &str)] = &[
    // A relation of two places is a matrix.
    ("P(x, y) <- R(x, y)", "P(x, y)?", "Score[x, y] = EmbR[i, j] Emb[x, i] Emb[y, j]"),
    // One contraction in the shared variable.
    (
        "P(x, z) <- R(x, y), S(y, z)",
        "P(x, z)?",
        "EmbP[i, k] = EmbR[i, j] EmbS[j, k]\nScore[x, z] = EmbP[i, k] Emb[x, i] Emb[z, k]",
    ),
    // Three antecedents in a chain.
    (
        "P(x, w) <- R(x, y), S(y, z), R(z, w)",
        "P(x, w)?",
        "EmbP[i, l] = EmbR[i, j] EmbS[j, k] EmbR[k, l]\nScore[x, w] = EmbP[i, l] Emb[x, i] Emb[w, l]",
    ),
    // A tensor of order three.
    (
        "P(x, y, z) <- T(x, y, z)",
        "P(x, y, z)?",
        "Score[x, y, z] = EmbT[i, j, k] Emb[x, i] Emb[y, j] Emb[z, k]",
    ),
    (
        "P(x, w) <- T(x, y, z), S(z, w), U(y)",
        "P(x, w)?",
        "EmbP[i, l] = EmbT[i, j, k] EmbS[k, l] EmbU[j]\nScore[x, w] = EmbP[i, l] Emb[x, i] Emb[w, l]",
    ),
    // A constant is contracted with its vector.
    ("P(y) <- R(A, y)", "P(y)?", "Score[y] = EmbR[i, j] Emb[A, i] Emb[y, j]"),
    // What several antecedents say of a candidate is multiplied.
    (
        "P(x) <- U(x), V(x)",
        "P(x)?",
        "SU[x] = EmbU[i] Emb[x, i]\nSV[x] = EmbV[i] Emb[x, i]\nScore[x] = SU[x] SV[x]",
    ),
    ("P(x) <- R(x, x)", "P(x)?", "Score[x] = EmbR[i, j] Emb[x, i] Emb[x, j]"),
    ("P() <- R(x, x)", "P()?", "Score = EmbR[i, i]"),
    ("P() <- U(x), V(x)", "P()?", "Score = EmbU[i] EmbV[i]"),
    // A variable that occurs once is a place that is left out.
    ("P(x) <- R(x, y)", "P(x)?", "EmbP[i] = R(x, y) Emb[x, i]\nScore[x] = EmbP[i] Emb[x, i]"),
    // Also where nothing says which objects there could be, as of `_`.
    ("P(x) <- R(x, u)", "P(x)?", "EmbP[i] = R(x, y) Emb[x, i]\nScore[x] = EmbP[i] Emb[x, i]"),
    ("P(x) <- R(x, _)", "P(x)?", "EmbP[i] = R(x, y) Emb[x, i]\nScore[x] = EmbP[i] Emb[x, i]"),
    (
        "P(x) <- T(u, x, _), V(v)",
        "P(x)?",
        "EmbP[i] = T(y, x, z) Emb[x, i]\nCount = V(y)\nScore[x] = Count EmbP[i] Emb[x, i]",
    ),
    ("P() <- R(u, _)", "P()?", "Score = R(x, y)"),
    // A variable of three places that is not in the head: the largest relation says which object it is.
    (
        "P(x) <- R(x, y), U(y), V(y)",
        "P(x)?",
        "EmbP[i] = R(z, y) Emb[z, i] EmbU[j] Emb[y, j] EmbV[k] Emb[y, k]\nScore[x] = EmbP[i] Emb[x, i]",
    ),
    // A tensor of a bare relation.
    ("", "R(x, y)?", "Score[x, y] = EmbR[i, j] Emb[x, i] Emb[y, j]"),
    (
        "",
        "R(x, y), S(y, z)?",
        "Score[x, y, z] = EmbR[i, j] EmbS[k, l] Emb[x, i] Emb[y, j] Emb[y, k] Emb[z, l]",
    ),
    // What is denied is retrieved, and counts as what is left of 1.
    (
        "P(x) <- U(x), not V(x)",
        "P(x)?",
        "SV[x] = EmbV[i] Emb[x, i]\nScore[x] = EmbU[i] Emb[x, i] (1 - sig((SV[x] - 0.5) / 8))",
    ),
    (
        "P(x) <- R(x, y), not V(y)",
        "P(x)?",
        "SV[x] = EmbV[i] Emb[x, i]\nEmbP[i] = R(z, y) Emb[z, i] (1 - sig((SV[y] - 0.5) / 8))\nScore[x] = EmbP[i] Emb[x, i]",
    ),
];

const EMBEDDED: &str = "EmbR[i, j] = R(x, y) Emb[x, i] Emb[y, j]
EmbS[i, j] = S(x, y) Emb[x, i] Emb[y, j]
EmbT[i, j, k] = T(x, y, z) Emb[x, i] Emb[y, j] Emb[z, k]
EmbU[i] = U(x) Emb[x, i]
EmbV[i] = V(x) Emb[x, i]
";

/// At a high temperature a value says its score, and the scores are those of the tensors that the paper writes down.
#[test]
fn scores_are_those_of_the_tensors_of_order_k() {
    let objects = ["A", "B", "C", "D", "E"];
    for (turn, (rule, query, equations)) in RULES.iter().enumerate() {
        for width in [1, 2, 3, 6] {
            let mut stream = Family::new("tensor-logic", "embed scores", turn as u64).stream(width);
            let mut data = vectors(&mut stream, &objects, width as usize);
            for (name, arity, count) in [("R", 2, 7), ("S", 2, 6), ("T", 3, 9), ("U", 1, 3), ("V", 1, 2)] {
                data += &facts(&mut stream, name, &objects, arity, count);
            }
            let text = format!("{data}{rule}\n{query} @embed(emb=Emb, T=8, certify=no)");
            let values = numbers(&text).remove(0);
            let oracle = format!("{data}{EMBEDDED}{equations}\nScore?");
            let wanted = numbers(&oracle).remove(0);
            assert_eq!(values.len(), wanted.len(), "{text}");
            for (value, score) in values.iter().zip(&wanted) {
                // The value is sig((score - 0.5) / 8).
                let found = 8.0 * (value / (1.0 - value)).ln() + 0.5;
                assert!((found - score).abs() < 1e-9 * score.abs().max(1.0), "{found} and {score}\n{text}");
            }
        }
    }
}

/// With given vectors the scores of a comparison are those of the bindings it lets through.
#[test]
fn comparisons_are_exact() {
    let mut stream = Family::named("embed comparisons").stream(0);
    let objects = ["A", "B", "C", "D"];
    let data = vectors(&mut stream, &objects, 3) + &facts(&mut stream, "R", &objects, 2, 8);
    let inner = format!("{data}P(x) <- R(x, y), y != B\nP(x)? @embed(emb=Emb, T=1, certify=no)");
    let oracle =
        format!("{data}EmbP[i] = R(z, y) Emb[z, i] | y != B\nD[x] = sig(EmbP[i] Emb[x, i] - 0.5)\nD?");
    let (found, wanted) = (numbers(&inner).remove(0), numbers(&oracle).remove(0));
    assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?} {wanted:?}");
    // A comparison of candidates says which there are.
    let outer = format!("{data}P(x, y) <- R(x, y), x != y\nP(x, y)? @embed(emb=Emb, T=1, certify=no)");
    assert_eq!(numbers(&outer).remove(0).len(), 12);
}

/// A random program of Boolean rules in two strata, with recursion, negation, constants and comparisons, and the queries
/// of all that it defines.
fn program(stream: &mut Stream) -> (Vec<String>, Vec<String>) {
    let objects: Vec<String> = (0..2 + stream.below(4)).map(|at| format!("C{at}")).collect();
    let names: Vec<&str> = objects.iter().map(String::as_str).collect();
    let mut lines: Vec<String> = Vec::new();
    // Name, arity, and the stratum that may deny it.
    let mut known: Vec<(String, usize, usize)> = Vec::new();
    for at in 0..2 + stream.below(2) {
        let (name, arity) = (format!("F{at}"), stream.below(4).min(3) as usize);
        let most = (names.len().pow(arity as u32)).min(1 + stream.below(5) as usize);
        lines.extend(facts(stream, &name, &names, arity, most).trim_end().split("; ").map(str::to_owned));
        known.push((name, arity, 0));
    }
    let variables = ["x", "y", "z", "w"];
    for stratum in 1..=2 {
        let own: Vec<(String, usize, usize)> = (0..1 + stream.below(2))
            .map(|at| (format!("P{stratum}{at}"), stream.below(3) as usize, stratum))
            .collect();
        for (name, arity, _) in &own {
            if stream.below(4) == 0 {
                lines
                    .extend(facts(stream, name, &names, *arity, 1).trim_end().split("; ").map(str::to_owned));
            }
        }
        let readable = [known.clone(), own.clone()].concat();
        for (name, arity, _) in &own {
            for _ in 0..1 + stream.below(2) {
                lines.push(rule(stream, (name, *arity), &readable, stratum, &names, &variables));
            }
        }
        known.extend(own);
    }
    let argument = |stream: &mut Stream, at: usize| match stream.below(6) {
        0 => names[stream.below(names.len() as u64) as usize].to_owned(),
        1 => "_".to_owned(),
        _ => variables[at].to_owned(),
    };
    let mut queries = Vec::new();
    for (name, arity, _) in &known {
        let places: Vec<String> = (0..*arity).map(|at| argument(stream, at)).collect();
        queries.push(format!("{name}({})?", places.join(", ")));
    }
    (lines, queries)
}

/// One rule. Every variable of the head, of a denied literal and of a comparison occurs in a positive one.
fn rule(
    stream: &mut Stream,
    (name, arity): (&str, usize),
    readable: &[(String, usize, usize)],
    stratum: usize,
    names: &[&str],
    variables: &[&str],
) -> String {
    let mut bound: Vec<String> = Vec::new();
    let mut body: Vec<String> = Vec::new();
    for _ in 0..1 + stream.below(3) {
        let (name, arity, _) = &readable[stream.below(readable.len() as u64) as usize];
        let mut places = Vec::new();
        for _ in 0..*arity {
            let place = match stream.below(8) {
                0 => names[stream.below(names.len() as u64) as usize].to_owned(),
                1 => "_".to_owned(),
                _ => variables[stream.below(variables.len() as u64) as usize].to_owned(),
            };
            if variables.contains(&place.as_str()) && !bound.contains(&place) {
                bound.push(place.clone());
            }
            places.push(place);
        }
        body.push(format!("{name}({})", places.join(", ")));
    }
    let some = |stream: &mut Stream, wild: bool| match (bound.is_empty(), stream.below(6)) {
        (_, 0) if wild => "_".to_owned(),
        (true, _) | (_, 1) => names[stream.below(names.len() as u64) as usize].to_owned(),
        _ => bound[stream.below(bound.len() as u64) as usize].clone(),
    };
    let lower: Vec<&(String, usize, usize)> = readable.iter().filter(|each| each.2 < stratum).collect();
    if stream.below(3) == 0 {
        let (name, arity, _) = lower[stream.below(lower.len() as u64) as usize];
        let places: Vec<String> = (0..*arity).map(|_| some(stream, true)).collect();
        body.push(format!("not {name}({})", places.join(", ")));
    }
    if stream.below(4) == 0 {
        let sign = if stream.below(3) == 0 { "==" } else { "!=" };
        body.push(format!("{} {sign} {}", some(stream, false), some(stream, false)));
    }
    let head: Vec<String> = (0..arity).map(|_| some(stream, false)).collect();
    format!("{name}({}) <- {}", head.join(", "), body.join(", "))
}

/// What an answer says, without numbers.
fn said(found: &Calculated, answer: &Answer) -> Vec<String> {
    match &answer.content {
        Content::Scalar(value) => vec![format!("{value:?}")],
        Content::Relation { tuples, .. } => {
            tuples.iter().map(|tuple| found.program.show_tuple(tuple)).collect()
        }
        Content::Tensor { .. } => Vec::new(),
    }
}

/// The answer of one query of a program in embedding space, if it is not refused; and its refusal.
fn asked(text: &str) -> Result<(Vec<String>, Option<bool>), Refusal> {
    let found =
        calculated(text, Path::new("."), 0, &mut Reference::default()).map_err(|mut all| all.remove(0))?;
    if let Some(refusal) = found.outcome.refusal {
        return Err(refusal);
    }
    let answer = &found.outcome.answers[0];
    Ok((said(&found, answer), answer.embed.map(|embed| embed.certified)))
}

#[test]
fn certified_answers_are_the_symbolic_ones() {
    let count = std::env::var("CALCULEMUS_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(200);
    let first = seeded::test_seed();
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in first..first + count {
        let mut stream = Family::new("tensor-logic/tests", "embedded programs", seed).stream(0);
        let (lines, queries) = program(&mut stream);
        let rules = lines.join("\n");
        let query = &queries[stream.below(queries.len() as u64) as usize];
        let Ok((wanted, _)) = asked(&format!("{rules}\n{query}")) else {
            *seen.entry("illegal").or_default() += 1;
            continue;
        };
        *seen.entry(if wanted.is_empty() { "empty" } else { "tuples" }).or_default() += 1;
        let exact = asked(&format!("{rules}\n{query} @embed(emb=identity)"));
        assert_eq!(exact, Ok((wanted.clone(), Some(true))), "seed {seed}\n{rules}\n{query}");
        for (at, dimension) in ["D=3", "D=256", "D=16384, seed=5"].into_iter().enumerate() {
            match asked(&format!("{rules}\n{query} @embed({dimension})")) {
                Ok((found, certified)) => {
                    assert_eq!(
                        (found, certified),
                        (wanted.clone(), Some(true)),
                        "seed {seed}, {dimension}\n{rules}\n{query}"
                    );
                    *seen.entry(["certified 3", "certified 256", "certified 16384"][at]).or_default() += 1;
                }
                Err(refusal) => {
                    assert_eq!(
                        refusal.code,
                        Code::NotCertified,
                        "seed {seed}\n{rules}\n{query}\n{refusal:?}"
                    );
                    *seen.entry("refused").or_default() += 1;
                }
            }
        }
        // Without the certificate it may be wrong, and says so.
        let (found, certified) = asked(&format!("{rules}\n{query} @embed(D=3, certify=no)")).unwrap();
        if certified != Some(true) && found != wanted {
            *seen.entry("wrong").or_default() += 1;
        }
        assert!(certified == Some(false) || found == wanted, "seed {seed}\n{rules}\n{query}");
    }
    println!("{seen:?}");
    let of = |what: &str| seen.get(what).copied().unwrap_or(0);
    assert!(of("illegal") * 2 < count && of("tuples") * 4 > count, "{seen:?}");
    assert!(of("certified 16384") * 2 > count && of("refused") * 2 > count, "{seen:?}");
    assert!(of("wrong") * 20 > count, "the certificate never mattered: {seen:?}");
}

/// A dimension that a refusal names does, and the help says so.
#[test]
fn the_advised_dimension_does() {
    for (text, query) in [
        ("R(A, B); R(B, C); P(x, y) <- R(x, y)", "P(x, y)?"),
        ("E(A, B); E(B, C); E(C, D); E(D, A); R(x, y) <- E(x, y); R(x, z) <- R(x, y), E(y, z)", "R(A, x)?"),
        ("U(A); U(B); U(C); V(B); P(x) <- U(x), not V(x)", "P(x)?"),
        ("R(1, 2); R(2, 3); R(3, 4)", "R(x, y), R(y, z)?"),
    ] {
        for directive in ["D=2", "D=2, seed=9", "D=2, theta=0.2", "D=2, T=0.02"] {
            let report = refusal(&format!("{text}; {query} @embed({directive})"));
            assert_eq!(report.code, Code::NotCertified, "{text}");
            assert!(report.message.contains("coherence") && report.message.contains("bound"), "{report:?}");
            let help = report.help.unwrap();
            let advised = help.split('`').nth(1).unwrap();
            assert!(advised.starts_with("D="), "{help}");
            let with = directive.replace("D=2", advised);
            let (found, refused) = answers(&format!("{text}; {query} @embed({with})"));
            assert!(refused.is_none(), "{text} {with}: {refused:?}");
            assert!(found[0].embed.unwrap().certified);
        }
    }
}

/// Each is refused at its directive, and the label says what embedding space does not hold.
#[test]
fn what_is_not_embedded_is_refused() {
    for (text, code, column, label) in [
        ("W = [1, 2]; W[i]? @embed", Code::TypeConflict, 19, 1),
        ("R(A) = 2; R(x)? @embed", Code::TypeConflict, 17, 11),
        ("0.5 :: R(A); R(x)? @embed", Code::TypeConflict, 20, 8),
        ("0.5 :: R(A); P(x) : prob; P(x) <- R(x); P(x)? @embed", Code::TypeConflict, 47, 8),
        ("R(A); R[x]? @embed", Code::TypeConflict, 13, 7),
        ("A = [1]; N(i) += A[i]; P(x) <- N(x); P(x)? @embed", Code::TypeConflict, 44, 1),
        ("R(1); P(x + 1) <- R(x); P(x)? @embed", Code::SymbolAsNumber, 31, 7),
        ("R(1); P(x) <- R(x + 1); P(x)? @embed", Code::SymbolAsNumber, 31, 15),
        ("R(1); P(y) <- R(x), y = x + 1; P(y)? @embed", Code::SymbolAsNumber, 38, 7),
        ("W = [1, 2]; R(1); P(x) <- R(x), W[x] > 1; P(x)? @embed", Code::TypeConflict, 49, 1),
        ("W = [1, 2]; R(1); P(x) <- R(x); P(x)? @embed(emb=W)", Code::BadArgument, 39, 0),
        ("R(A); R(B); R(x)? @embed(theta=0)", Code::NotCertified, 19, 13),
        ("R(A); R(B); R(x)? @embed(emb=identity, D=1)", Code::NotCertified, 19, 0),
        ("x : {A}; Emb[A, d] = [1, 0]; R(A); R(B); R(y)? @embed(emb=Emb)", Code::OutOfDomain, 48, 0),
        ("x : {A, B}; Emb[A, d] = [1, 0]; R(A); R(B); R(y)? @embed(emb=Emb)", Code::OutOfDomain, 51, 0),
        ("R(A); R(B); R(x)? @embed(D=9000000000000000000)", Code::TooLarge, 19, 0),
        ("x : 0..99999999; R(1); P(x) <- not R(x); P(x)? @embed", Code::TooLarge, 48, 26),
    ] {
        let report = refusal(text);
        let at = report.labels.first().map_or(0, |label| label.span.start + 1);
        let found = (report.code, report.span.start + 1, at);
        assert_eq!(found, (code, column, label), "{text}\n{report:?}");
        assert!(report.help.is_some(), "{text}");
    }
}

/// Nothing large is made before it is known to fit.
#[test]
fn memory_is_refused_before_it_is_taken() {
    let text = "R(A, B, C); R(C, D, E); P(x, y, z) <- R(x, y, z); P(x, y, z)? @embed(D=8, certify=no)";
    let source = Source::new("text", text.as_bytes());
    let code = |bytes: u64| {
        let budget = Budget { tuples: 1000, bytes };
        let found =
            World::new(&source, Files::new("."), 0).calculate(&mut Reference::default(), budget).unwrap();
        found.outcome.refusal.map(|report| report.code)
    };
    assert_eq!(code(1 << 20), None);
    // The vectors do not fit, then the scores of 125 candidates.
    assert_eq!(code(500), Some(Code::TooLarge));
    assert_eq!(code(3000), Some(Code::TooLarge));
    // At a temperature every candidate has a value.
    let warm = text.replace("D=8", "T=1");
    let source = Source::new("text", warm.as_bytes());
    let budget = Budget { tuples: 100, bytes: 1 << 20 };
    let found = World::new(&source, Files::new("."), 0).calculate(&mut Reference::default(), budget).unwrap();
    assert_eq!(found.outcome.refusal.map(|report| report.code), Some(Code::Budget));
}

/// Facts in another order, other names of constants, literals in another order: the certified answer stays. The vectors
/// of a constant depend on its name and the seed alone, so that a fact more does not move them.
#[test]
fn order_and_names_do_not_matter() {
    let rules = "R(x, y) <- E(x, y)\nR(x, z) <- R(x, y), E(y, z)\nQ(x) <- R(x, x), not U(x)\n";
    let facts = ["E(A, B)", "E(B, C)", "E(C, A)", "E(C, D)", "U(B)"];
    let query = "Q(x)? @embed(D=32768)";
    let answer =
        |facts: &[String], rules: &str| asked(&format!("{}\n{rules}{query}", facts.join("\n"))).unwrap();
    let given: Vec<String> = facts.map(str::to_owned).to_vec();
    let found = answer(&given, rules);
    assert_eq!(found, (vec!["A".to_owned(), "C".to_owned()], Some(true)));
    let reversed: Vec<String> = given.iter().rev().cloned().collect();
    assert_eq!(answer(&reversed, rules), found);
    let turned = "R(x, z) <- E(y, z), R(x, y)\nQ(x) <- not U(x), R(x, x)\nR(x, y) <- E(x, y)\n";
    assert_eq!(answer(&given, turned), found);
    let renamed: Vec<String> =
        given.iter().map(|fact| fact.replace('A', "Zoe").replace('C', "Moe")).collect();
    assert_eq!(answer(&renamed, rules), (vec!["Moe".to_owned(), "Zoe".to_owned()], Some(true)));
    // Uncertified scores do not depend on the order of the text either.
    let warm = |facts: &[String], rules: &str| {
        numbers(&format!("{}\n{rules}Q(x)? @embed(D=4, T=0.2, certify=no)", facts.join("\n"))).remove(0)
    };
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
    assert!(close(&warm(&given, rules), &warm(&reversed, turned)));
}

/// `--seed` moves the vectors unless the directive has one; the default is 1.
#[test]
fn seeds_are_those_of_the_run_or_the_directive() {
    let coherence = |directive: &str, seed: u64| {
        let text = format!("R(A, B); R(x, y)? @embed(certify=no{directive})");
        let found = calculated(&text, Path::new("."), seed, &mut Reference::default()).unwrap();
        let embed = found.outcome.answers[0].embed.unwrap();
        (embed.seed.unwrap(), embed.coherence.to_bits())
    };
    assert_eq!(coherence("", 0), coherence(", seed=1", 0));
    assert_eq!(coherence("", 7), coherence(", seed=7", 0));
    assert_eq!(coherence(", seed=3", 7), coherence(", seed=3", 0));
    assert_ne!(coherence("", 0).1, coherence("", 7).1);
    assert_eq!(coherence("", 0).0, 1);
}

/// A closure at temperature 0 is the symbolic one; as the temperature rises, similar objects borrow from each other.
#[test]
fn similar_objects_borrow_inferences() {
    let value = |cosine: f64, temperature: f64| {
        let sine = (1.0 - cosine * cosine).sqrt();
        let text = format!(
            "x : {{Cat, Lynx, Mouse}}\nEmb[Cat, d] = [1, 0, 0]\nEmb[Lynx, d] = [{cosine}, {sine}, 0]\n\
             Emb[Mouse, d] = [0, 0, 1]\nHunts(Cat, Mouse)\nFears(y, x) <- Hunts(x, y)\n\
             Fears(Mouse, Lynx)? @embed(emb=Emb, T={temperature}, certify=no)"
        );
        numbers(&text).remove(0)[0]
    };
    // The only cross-talk is the similarity: the value is that of the score.
    for (cosine, temperature) in [(0.8_f64, 0.1_f64), (0.6, 0.3), (0.2, 0.1), (0.0, 0.5)] {
        let wanted = 1.0 / (1.0 + ((0.5 - cosine) / temperature).exp());
        assert!((value(cosine, temperature) - wanted).abs() < 1e-12);
    }
    assert_eq!((value(0.8, 0.0), value(0.2, 0.0)), (1.0, 0.0));
}

/// Vectors that were learned are taken as they are.
#[test]
fn learned_vectors_embed() {
    let text = "x, y : {A, B, C}; d : 2
Emb[x, d] ~ normal(0, 1)
Target[x, y] = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
Loss = (sum[d](Emb[x, d] Emb[y, d]) - Target[x, y])^2
U(A)
Loss? @minimize(opt=sgd, lr=0.05, steps=400)
U(x)? @embed(emb=Emb, certify=no)";
    let (found, refused) = answers(text);
    assert!(refused.is_none(), "{refused:?}");
    let Content::Relation { tuples, .. } = &found[1].content else { unreachable!() };
    // B was learned to be like A, and C was not.
    assert_eq!(tuples.len(), 2);
    assert!(found[1].embed.unwrap().coherence > 0.99);
}
