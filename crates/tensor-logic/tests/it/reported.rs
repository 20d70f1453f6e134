//! Reports of learning: every page is whole, no box is over another, no name gets out of its place, and what is too large is
//! left out and said to be.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot make a report has failed")]

use std::process::Command;

use tensor_logic::auto::Auto;
use tensor_logic::engine::Budget;
use tensor_logic::fast::Fast;
use tensor_logic::report;
use tensor_logic::world::calculate;

use crate::common;
use crate::drawn::{boxes, overlapping};

const BUDGET: Budget = Budget { tuples: 1_000_000, bytes: 1 << 30 };

fn page(text: &str) -> String {
    let found = calculate(text).unwrap_or_else(|reports| panic!("{reports:?}\n{text}"));
    let engine = &mut Auto::new(Box::<Fast>::default());
    report::page("<a & \"b\">.tl", (&found.program, text), (engine, BUDGET), &found.outcome)
}

/// Why a text is no element whose tags are closed in their order; elements of HTML that have no end are passed over.
fn broken(text: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        let behind = &rest[at..];
        if let Some(entity) = behind.strip_prefix('&') {
            let known = ["amp;", "lt;", "gt;", "quot;"];
            if !known.iter().any(|known| entity.starts_with(known)) {
                return Some(format!("a bare & before {:?}", entity.chars().take(20).collect::<String>()));
            }
            rest = &behind[1..];
            continue;
        }
        let Some(end) = behind.find('>') else { return Some("a tag without an end".to_owned()) };
        let tag = &behind[1..end];
        rest = &behind[end + 1..];
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        if tag.contains('<') || tag.matches('"').count() % 2 == 1 {
            return Some(format!("a tag <{tag}>"));
        }
        if tag.starts_with('!') || tag.ends_with('/') || name == "meta" {
            continue;
        }
        if name == "style" && !tag.starts_with('/') {
            rest = &rest[rest.find("</style>")? + 8..];
        } else if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return Some(format!("</{name}> closes nothing"));
            }
        } else {
            open.push(name);
        }
    }
    open.pop().map(|name| format!("<{name}> is not closed"))
}

/// The pictures of a page.
fn pictures(page: &str) -> Vec<String> {
    let found = page.split("<svg").skip(1);
    found.map(|part| format!("<svg{}", &part[..part.find("</svg>").unwrap() + 6])).collect()
}

/// What holds of every page, and its pictures of boxes.
fn checked(text: &str) -> Vec<String> {
    let page = page(text);
    assert_eq!(broken(&page), None, "{text}\n{page}");
    assert!(!page.contains("<script") && !page.contains("href"), "{text}\n{page}");
    let mut pictures = pictures(&page);
    for picture in &pictures {
        assert_eq!(broken(picture), None, "{text}\n{picture}");
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{text}\n{picture}");
        assert_eq!(overlapping(&boxes(picture)), None, "{text}\n{picture}");
    }
    pictures.retain(|picture| picture.contains("class=\"graph\""));
    pictures
}

#[test]
fn the_checker_finds_what_is_broken() {
    for text in ["<a>", "</a>", "<a></b>", "<a b=\"></a>", "a & b", "<a <b></a>", "<p>1 < 2</p>"] {
        assert!(broken(text).is_some(), "{text}");
    }
    assert_eq!(broken("<a b=\"1\">x &lt; &amp;<br/></a>"), None);
}

#[test]
fn a_report_says_what_was_learned() {
    let text = "s : 1..10\nX[s] = sin(s)\nT[s] = 2 * X[s]\nW ~ 0.5\nUnused[i] ~ [1, 2]\nY[s] = tanh(W X[s])\n\
                Loss = sum[s]((Y[s] - T[s])^2)\n\
                Loss? @minimize(batch=s, size=2, epochs=5, valid=0.2)\nY[3]?\nUnused?\n";
    let page = page(text);
    for said in [
        "Loss of a batch",
        "Loss of what is held out",
        "best epoch",
        "The template",
        "for s = 1",
        "sum over s",
        ">tanh<",
        "line 6",
        "<code>Unused</code>",
        "parameter, a number",
        "<code>Y[3]?</code>",
        "[1.0, 2.0]",
        "&lt;a &amp; &quot;b&quot;&gt;.tl",
    ] {
        assert!(page.contains(said), "{said}\n{page}");
    }
    let pictures = checked(text);
    assert_eq!(pictures.len(), 2);
    // Loss, Y, T, X, W, and an equation for each of the first four.
    assert_eq!(boxes(&pictures[0]).len(), 9);
}

#[test]
fn odd_names_stay_in_their_places() {
    let text = "Likes(\"<b>\", \"a&b\"); Likes(\"a&b\", \"\\\"q'\"); Likes(\"<b>\", \"\\n\\t\")\n\
                W ~ 0.5\nH(x) += W Likes(x, y)\nLoss = (H(\"<b>\") - 2)^2\nLoss? @minimize(steps=3)\nH(\"<b>\")?\nLikes(x, y)?\n";
    let pictures = checked(text);
    assert!(pictures[1].contains("Likes(&quot;&lt;b&gt;&quot;, &quot;a&amp;b&quot;)"), "{}", pictures[1]);
}

#[test]
fn small_and_refused_programs_have_a_report() {
    for text in ["", "N = 3\n", "N = 3\nN?\n", "W ~ 2\nW?\n"] {
        assert!(checked(text).is_empty());
        assert!(page(text).contains("Answers"));
    }
    let text = "W ~ 2\nLoss = W^2\nLoss? @minimize(steps=0)\n";
    assert!(page(text).contains("no values"));
    assert_eq!(checked(text).len(), 2);
    let text = "W ~ 2\nLoss = W^2\nLoss? @minimize(steps=2)\nLog = log(0 - 1) W\nBad = Log W\nBad? @minimize(steps=1)\n";
    assert!(page(text).contains("The run ended with a refusal: after 0 steps"), "{}", page(text));
    checked(text);
}

#[test]
fn large_programs_are_drawn_in_part() {
    let mut text = "H0 ~ 1\n".to_owned();
    for layer in 0..150 {
        text.push_str(&format!("H{} = tanh(H{layer}) + {layer}\n", layer + 1));
    }
    text.push_str("Loss = H150^2\nLoss? @minimize(steps=2)\n");
    let page = page(&text);
    assert!(page.contains("tensors further from the loss are left out"));
    assert!(page.contains("elements further from the loss are left out"));
    assert!(checked(&text).iter().all(|picture| boxes(picture).len() <= 130));
    // One loss of very many elements.
    let text = "x, y : 300\nW[x] ~ normal(0, 1)\nR(x, y) <- (x + y) % 3 == 0\nD[x] = R(x, y)\nU[x] = D[x] W[x]\nLoss = sum[x](U[x]^2)\nLoss? @minimize(steps=2)\n";
    let pictures = checked(text);
    assert!(boxes(&pictures[1]).len() < 150, "{}", boxes(&pictures[1]).len());
}

/// Networks of every kind, with random numbers of relations, layers and samples.
#[test]
fn random_networks_are_drawn() {
    let mut stream = common::stream("reported");
    for _ in 0..60 {
        let mut below = |count: u64| stream.below(count);
        let (samples, nodes, layers) = (1 + below(4), 1 + below(5), 1 + below(3));
        let mut text = format!("s : {samples}\nx : {nodes}\nd : {}\n", 1 + below(5));
        for sample in 0..samples {
            for _ in 0..1 + below(8) {
                text.push_str(&format!("Edge({sample}, {}, {})\n", below(nodes), below(nodes)));
            }
            text.push_str(&format!("T({sample}) = {}\n", below(3)));
        }
        text.push_str("H0[s, x, d] = sin(s + 2 * x + 3 * d)\n");
        for layer in 0..layers {
            let (function, sign) = match below(4) {
                0 => ("tanh", "avg="),
                1 => ("relu", "max="),
                2 => ("sig", "+="),
                _ => ("", "+="),
            };
            let ends = if below(2) == 0 { "x, y" } else { "y, x" };
            text.push_str(&format!(
                "W{layer}[e, d] ~ normal(0, 1)\nH{}(s, x, e) {sign} Edge(s, {ends}) {function}(W{layer}[e, d] H{layer}[s, y, d])\n",
                layer + 1
            ));
        }
        text.push_str(&format!(
            "e : 3\nY[s] = H{layers}[s, x, d]\nLoss = sum[s]((Y[s] - T(s))^2)\nLoss? @minimize(steps=3{})\n",
            if below(2) == 0 { ", batch=s, size=1" } else { "" }
        ));
        let text = text.replace("d : ", "d, e : ").replace("\ne : 3\n", "\n");
        assert_eq!(checked(&text).len(), 2, "{text}");
    }
}

/// What an element is made of: by random arcs, what loops over the arcs find; everything below is met once.
#[test]
fn groundings_are_those_of_loops() {
    use std::collections::BTreeSet;
    use tensor_logic::engine::{Parameters, Request};
    use tensor_logic::program::TensorId;
    use tensor_logic::reference::{Most, ground};

    let mut stream = common::stream("ground");
    for _ in 0..100 {
        let nodes = 1 + stream.below(7);
        let count = stream.below(20);
        let arcs: BTreeSet<(u64, u64)> =
            (0..count).map(|_| (stream.below(nodes), stream.below(nodes))).collect();
        let valued: BTreeSet<u64> = (0..nodes).filter(|_| stream.below(4) > 0).collect();
        let mut text = "W ~ 0.5\nH(x) += Edge(y, x) W F(y) | y != 3\nLoss = sum[x](H(x))\nLoss?\n".to_owned();
        arcs.iter().for_each(|(y, x)| text.push_str(&format!("Edge({y}, {x})\n")));
        valued.iter().for_each(|x| text.push_str(&format!("F({x}) = {}\n", x + 2)));
        if arcs.is_empty() || valued.is_empty() {
            continue;
        }
        let found = calculate(&text).unwrap_or_else(|reports| panic!("{reports:?}\n{text}"));
        let program = &found.program;
        let id = |name: &str| {
            let at = program.tensors.iter().position(|tensor| tensor.name == name);
            TensorId(at.unwrap() as u32)
        };
        let parameters = Parameters::from([(id("W"), std::sync::Arc::new(vec![0.5]))]);
        let request = Request { program, parameters: &parameters, budget: BUDGET };
        let engine = &mut Auto::new(Box::<Fast>::default());
        let most = Most { atoms: 1000, contributions: 1000 };
        let made = ground(&request, engine, id("Loss"), &|_, _| false, most).unwrap();
        let wanted: BTreeSet<(u64, u64)> =
            arcs.iter().copied().filter(|(y, _)| valued.contains(y) && *y != 3).collect();
        let number = |value: &Option<tensor_logic::value::Const>| value.unwrap().int().unwrap() as u64;
        let facts = made.contributions.iter().filter(|one| !one.facts.is_empty());
        let seen: Vec<(u64, u64)> = facts
            .map(|one| {
                let (to, from) = (&made.atoms[one.to].0, &made.atoms[one.from[0]].0);
                assert_eq!((to.0, from.0, one.from.len(), one.left_out), (id("H"), id("F"), 1, 0), "{text}");
                assert_eq!(one.weights, [((id("W"), Vec::new()), Some(0.5))], "{text}");
                assert_eq!(one.facts.len(), 1, "{text}");
                let arc = (number(&one.facts[0].1[0]), number(&one.facts[0].1[1]));
                assert_eq!(arc, (number(&from.1[0]), number(&to.1[0])), "{text}");
                arc
            })
            .collect();
        assert_eq!(seen.len(), wanted.len(), "{text}");
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), wanted, "{text}");
        let heads: BTreeSet<u64> = wanted.iter().map(|(_, x)| *x).collect();
        let sources: BTreeSet<u64> = wanted.iter().map(|(y, _)| *y).collect();
        assert_eq!(made.atoms.len(), 1 + heads.len() + sources.len(), "{text}");
        // With less room the nearest are there, and the others are counted.
        let few = ground(&request, engine, id("Loss"), &|_, _| false, Most { atoms: 2, contributions: 1000 })
            .unwrap();
        assert_eq!(few.atoms.len(), made.atoms.len().min(2));
        assert!(few.left_out <= made.atoms.len() - few.atoms.len());
        assert_eq!(few.left_out == 0, made.atoms.len() <= 2, "{text}");
    }
}

#[test]
fn the_command_writes_a_page() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.tl"), "W ~ 2\nLoss = W^2\nLoss? @minimize(steps=4)\n").unwrap();
    let run = |to: &str| {
        let call = ["run", "p.tl", "--report", to, "--draw", "proofs"];
        let tl = Command::new(env!("CARGO_BIN_EXE_tl")).current_dir(&folder).args(call).output().unwrap();
        (tl.status.code(), String::from_utf8(tl.stderr).unwrap())
    };
    let (status, said) = run("deep/er");
    assert!(status == Some(0) && said.contains("tl: deep/er/report.html is the report"), "{said}");
    let (status, said) = run("page.html");
    assert!(status == Some(0) && said.contains("tl: page.html is the report"), "{said}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("page.html"), read("deep/er/report.html"));
    assert_eq!(broken(&read("page.html")), None);
    let (status, said) = run("p.tl");
    assert!(status == Some(2) && said.contains("cannot write p.tl: p.tl is a file"), "{status:?} {said}");
    assert!(read("p.tl").starts_with("W ~ 2"));
}
