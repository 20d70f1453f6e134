//! What inclusion does to names, and what it refuses.

use std::collections::{BTreeMap, BTreeSet};

use tensor_logic::answer::Content;
use tensor_logic::ast::Span;
use tensor_logic::error::{Code, Places, Refusal};
use tensor_logic::files::Files;
use tensor_logic::include::{Texts, expand};
use tensor_logic::source::Source;
use tensor_logic::world::World;

use crate::common;
use crate::common::engines::BUDGET;
use tensor_logic::auto::Auto;
use tensor_logic::fast::Fast;

/// Files in memory.
struct Memory<'a>(BTreeMap<&'a str, &'a str>);

impl Texts for Memory<'_> {
    fn text(&mut self, file: &str, span: Span) -> Result<String, Refusal> {
        let missing = || Refusal::new(Code::FileNotFound, span, "missing");
        self.0.get(file).map(|text| (*text).to_owned()).ok_or_else(missing)
    }
}

fn expanded(main: &str, files: &[(&str, &str)]) -> Result<String, String> {
    let mut memory = Memory(files.iter().copied().collect());
    expand(main, &mut memory).map_err(|failure| {
        let places = Places::new(&failure.text);
        let report = &failure.reports[0];
        let (line, column) = places.of(report.span.start);
        let file = places.file(report.span.start).unwrap_or("main");
        format!("{} {file}:{line}:{column} {}", report.code.name(), report.message)
    })
}

#[test]
fn names_are_shared_or_local() {
    let file = "@export(X, Y)\ni : 2; W[i] ~ ones()\nY[i] = W[i] X[i]; Y?";
    let cases = [
        ("@include(\"f.tl\")", "f_i : 2; F_W[f_i] ~ ones()\nY[f_i] = F_W[f_i] X[f_i];   "),
        ("@include(\"f.tl\", as=G, X=A)", "g_i : 2; G_W[g_i] ~ ones()\nY[g_i] = G_W[g_i] A[g_i];   "),
        ("@include(\"f.tl\", W=V)", "f_i : 2;              \nY[f_i] = V[f_i] X[f_i];   "),
        ("@include(\"f.tl\", i=n)", "f_i_default : 2; F_W[n] ~ ones()\nY[n] = F_W[n] X[n];   "),
    ];
    for (main, wanted) in cases {
        let blank = " ".repeat("@export(X, Y)".len());
        let back = " ".repeat(main.len());
        let wanted = format!("\n#line 1 \"f.tl\"\n{blank}\n{wanted}\n#line 1\n{back}");
        assert_eq!(expanded(main, &[("f.tl", file)]).unwrap(), wanted);
    }
    let sized = expanded("@include(\"f.tl\", i=3)", &[("f.tl", file)]).unwrap();
    assert!(sized.starts_with("\n#line 1\nf_i : 3\n#line 1 \"f.tl\"\n"), "{sized}");
}

#[test]
fn names_that_only_look_alike_stay_apart() {
    // An index that the program declares and the file does not; a symbol; a size; a built-in relation; a set.
    let file = "@export(Y)\nS : {Red, Blue}\ny : S\nN = 2\nk : N\nT[x, k] = [[1, 2], [3, 4]]\n\
                Y[x] = T[x, k] Even(k) / sqrt(K); R(Red); Q(y) <- R(y)";
    let text = expanded("x : 2\n@include(\"f.tl\")", &[("f.tl", file)]).unwrap();
    for wanted in [
        "F_S : {Red, Blue}",
        "f_y : F_S",
        "F_N = 2",
        "f_k : F_N",
        "F_T[f_x, f_k]",
        "Even(f_k) / sqrt(F_k)",
        "F_R(Red)",
        "F_Q(f_y) <- F_R(f_y)",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    // What only the program does not declare stays as it is.
    let text = expanded("@include(\"f.tl\")", &[("f.tl", file)]).unwrap();
    assert!(text.contains("F_T[x, f_k]"), "{text}");
}

#[test]
fn inclusions_nest() {
    let files = [
        ("a/one.tl", "@export(X, Z)\n@include(\"two.tl\", Y=Z)\n@include(\"../b.tl\")"),
        ("a/two.tl", "@export(X, Y)\nW = \"w.npy\"\nY[i] = W[i] X[i]"),
        ("a/../b.tl", "@export(X)\nB[i] = X[i]"),
    ];
    let text = expanded("Z?; @include(\"a/one.tl\", Z=H); H?", &files).unwrap();
    assert!(text.contains("One_Two_W = \"a/w.npy\""), "{text}");
    assert!(text.contains("H[i] = One_Two_W[i] X[i]"), "{text}");
    assert!(text.contains("One_B_B[i] = X[i]"), "{text}");
    let places = Places::new(&text);
    let place = |word: &str| {
        let at = text.find(word).unwrap();
        (places.file(at), places.of(at).0, places.of(at).1)
    };
    assert_eq!(place("H[i]"), (Some("a/two.tl"), 3, 1));
    assert_eq!(place("One_B_B"), (Some("a/../b.tl"), 2, 1));
    assert_eq!(place("; H?"), (None, 1, 5 + "@include(\"a/one.tl\", Z=H)".len()));
}

#[test]
fn what_is_refused_and_where() {
    let f = "@export(X, Y)\nA = [1, 2]\nW[i] ~ ones()\nN = 3\nY[i] = A[i] X[i] W[i] N";
    let files = [
        ("f.tl", f),
        ("broken.tl", "Y = 1\nX[i = 2"),
        ("one.tl", "Q = 1\n@include(\"two.tl\")"),
        ("two.tl", "@include(\"one.tl\")"),
        ("settled.tl", "Y = 1\n@tol(0.1)"),
        ("exports.tl", "@export(3)"),
        ("symbol.tl", "R(Red)"),
        ("parity.tl", "R(x) <- S(x), Even(x)"),
        ("needs.tl", "\n  @include(\"nothing.tl\")"),
    ];
    let cases = [
        ("@include(\"g.tl\")", "file-not-found main:1:10 missing"),
        ("@include(\"needs.tl\")", "file-not-found needs.tl:2:12 missing"),
        ("@include(\"broken.tl\")", "syntax broken.tl:2:8 "),
        (
            "@include(\"one.tl\")",
            "include-cycle two.tl:1:10 `one.tl` includes `two.tl` includes `one.tl` again",
        ),
        ("@include(\"settled.tl\")", "unknown-directive settled.tl:2:1 "),
        ("@include(\"exports.tl\")", "bad-argument exports.tl:1:9 "),
        ("Red = 1\n@include(\"symbol.tl\")", "bad-argument main:2:1 `Red` is a constant in `symbol.tl`"),
        ("Even(7)\n@include(\"parity.tl\")", "bad-argument main:2:1 `Even` is built in in `parity.tl`"),
        ("@include(\"f.tl\")\nF_A = 1", "bad-argument main:1:1 `F_A` is a local name of `f.tl`"),
        ("@include(\"f.tl\")\n@include(\"f.tl\")", "bad-argument main:2:1 `F` names two inclusions"),
        ("@include(\"f.tl\", A=B)", "bad-argument main:1:18 `A` is local to `f.tl`"),
        ("@include(\"f.tl\", Q=B)", "bad-argument main:1:18 `f.tl` has no `Q`"),
        ("@include(\"f.tl\", q=B)", "bad-argument main:1:18 `f.tl` has no `q`"),
        ("@include(\"f.tl\", X=3)", "bad-argument main:1:18 `X` is given the name of a tensor"),
        ("@include(\"f.tl\", W=3)", "bad-argument main:1:18 `W` is a parameter"),
        ("@include(\"f.tl\", N=\"a\")", "bad-argument main:1:18 `N` is given a number"),
        ("@include(\"f.tl\", i=\"a\")", "bad-argument main:1:18 `i` is given an index"),
        ("@include(\"f.tl\", as=small)", "bad-argument main:1:18 `as` is the capital name"),
        ("@include(\"f.tl\", as=A, as=B)", "bad-argument main:1:24 `as` is given twice"),
        ("@include(\"f.tl\", X=A, X=B)", "bad-argument main:1:23 `X` is given twice"),
        ("@include(\"f.tl\", 3)", "bad-argument main:1:18 only the file stands without a name"),
        ("@include(\"\")", "bad-argument main:1:10 "),
        ("@include(\"\", as=A)", "file-not-found main:1:10 "),
        ("@include(f)", "bad-argument main:1:10 "),
        ("@include", "bad-argument main:1:1 "),
    ];
    for (main, wanted) in cases {
        let found = expanded(main, &files).unwrap_err();
        assert!(found.starts_with(wanted), "{main}: {found} instead of {wanted}");
    }
    let deep: Vec<(String, String)> =
        (0..40).map(|at| (format!("f{at}.tl"), format!("@include(\"f{}.tl\")", at + 1))).collect();
    let deep: Vec<(&str, &str)> = deep.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert!(expanded("@include(\"f0.tl\")", &deep).unwrap_err().starts_with("too-large f31.tl"));
    // Each file includes the next one twice.
    let wide: Vec<(String, String)> = (0..30)
        .map(|at| {
            let next = at + 1;
            (format!("f{at}.tl"), format!("@include(\"f{next}.tl\", as=A)\n@include(\"f{next}.tl\", as=B)"))
        })
        .collect();
    let mut wide: Vec<(&str, &str)> =
        wide.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let large = format!("X = 1 # {}", "x".repeat(1 << 16));
    wide.push(("f30.tl", &large));
    assert!(expanded("@include(\"f0.tl\")", &wide).unwrap_err().starts_with("too-large"));
}

#[test]
fn bytes_that_are_no_text_are_refused_where_they_stand() {
    let mut source = Source::new("main", b"@include(\"f.tl\")\n# \xff\nY = 1");
    source.expand(&mut Memory(BTreeMap::from([("f.tl", "X = 1\nZ = 2")])));
    let reports = source.read(&tensor_logic::function::UserFunctions::default()).unwrap_err();
    let places = Places::new(&source.text);
    let found: Vec<_> = reports.iter().map(|report| (report.code, places.of(report.span.start))).collect();
    assert_eq!(found, [(Code::Syntax, (2, 3))]);
}

/// The answers of a program with these files.
fn answers(main: &str, files: &[(&str, &str)]) -> Result<Vec<Content>, Vec<Code>> {
    let mut source = Source::new("main", main.as_bytes());
    source.expand(&mut Memory(files.iter().copied().collect()));
    let mut engine = Auto::new(Box::new(Fast::default()));
    let found = World::new(&source, Files::new("."), 0).calculate(&mut engine, BUDGET);
    let codes = |reports: Vec<Refusal>| {
        let codes: BTreeSet<Code> = reports.iter().map(|report| report.code).collect();
        codes.into_iter().collect::<Vec<_>>()
    };
    let found = found.map_err(codes)?;
    match found.outcome.refusal {
        Some(report) => Err(vec![report.code]),
        None => Ok(found.outcome.answers.into_iter().map(|answer| answer.content).collect()),
    }
}

/// The numbers and tuples of contents, without the names of indices.
fn same(found: &[Content], wanted: &[Content]) -> bool {
    let equal = |a: &[f64], b: &[f64]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits() || a == b)
    };
    found.len() == wanted.len()
        && found.iter().zip(wanted).all(|(found, wanted)| match (found, wanted) {
            (Content::Relation { tuples, .. }, Content::Relation { tuples: others, .. }) => {
                tuples.len() == others.len() && equal(found.numbers(), wanted.numbers())
            }
            (Content::Tensor { .. }, Content::Tensor { .. }) | (Content::Scalar(_), Content::Scalar(_)) => {
                equal(found.numbers(), wanted.numbers())
            }
            _ => false,
        })
}

/// A query of tensors of the included file: of the names with a capital letter, those of tensors have a number.
fn with_prefix(query: &str) -> String {
    let mut found = String::new();
    for piece in query.split_inclusive(|letter: char| !letter.is_alphanumeric()) {
        let tensor =
            piece.starts_with(char::is_uppercase) && piece.contains(|letter: char| letter.is_ascii_digit());
        found.push_str(if tensor { "Part_" } else { "" });
        found.push_str(piece);
    }
    found
}

/// A random program is the same where all its statements are included, under their own names and as local ones.
#[test]
fn random_programs_are_the_same_from_another_file() {
    let first = seeded::test_seed();
    let (mut legal, mut refused) = (0, 0);
    let count: u64 = std::env::var("CALCULEMUS_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "inclusion", seed).stream(0);
        let lines = common::generator::program(&mut stream);
        let (kept, moved): (Vec<String>, Vec<String>) = lines
            .iter()
            .cloned()
            .partition(|line| line.ends_with('?') || line.starts_with("@tol") || line.starts_with("@rounds"));
        let wanted = answers(&lines.join("\n"), &[]);
        let names = exported(&moved);
        let file = moved.join("\n");
        let shared = format!("{file}\n@export({})", names.join(", "));
        let queries = kept.join("\n");
        let found = answers(&format!("@include(\"part.tl\")\n{queries}"), &[("part.tl", &shared)]);
        // Ranges hold in the file where they are declared: here the queries need them too.
        let ranges = moved.iter().filter(|line| line.starts_with(char::is_lowercase) && line.contains(" : "));
        let prefixed = |line: &String| if line.ends_with('?') { with_prefix(line) } else { line.clone() };
        // A set has the prefix there too.
        let local: Vec<String> =
            ranges.map(|line| with_prefix(line)).chain(kept.iter().map(prefixed)).collect();
        let apart = answers(&format!("@include(\"part.tl\")\n{}", local.join("\n")), &[("part.tl", &file)]);
        match wanted {
            Ok(wanted) => {
                legal += 1;
                for (what, found) in [("shared", found), ("local", apart)] {
                    let found = found.unwrap_or_else(|codes| {
                        panic!("seed {seed}, {what}: {codes:?}\n{}", lines.join("\n"))
                    });
                    assert!(
                        same(&found, &wanted),
                        "seed {seed}, {what}: {found:?} instead of {wanted:?}\n{}",
                        lines.join("\n")
                    );
                }
            }
            Err(codes) => {
                refused += 1;
                assert_eq!(found.unwrap_err(), codes, "seed {seed}\n{}", lines.join("\n"));
                assert_eq!(apart.unwrap_err(), codes, "seed {seed}\n{}", lines.join("\n"));
            }
        }
    }
    println!("{legal} legal, {refused} refused");
    assert!(3 * legal > count, "{legal} legal, {refused} refused");
}

/// All names of these lines.
fn exported(lines: &[String]) -> Vec<String> {
    let mut names = BTreeSet::new();
    for line in lines {
        for word in line.split(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '\''))
        {
            if word.starts_with(char::is_uppercase)
                || (word.len() <= 2 && word.starts_with(|letter: char| letter.is_lowercase()))
            {
                names.insert(word.to_owned());
            }
        }
    }
    names.remove("as");
    names.remove("or");
    names.into_iter().collect()
}

/// Whatever stands in a program and in what it includes: it is expanded or refused, with places that lie in the text.
#[test]
fn any_text_is_expanded_or_refused() {
    const WORDS: [&str; 34] = [
        "@include",
        "@export",
        "(",
        ")",
        "\"f.tl\"",
        "\"g.tl\"",
        "\"std/gcn.tl\"",
        "as",
        "=",
        ",",
        "X",
        "Y",
        "i",
        "[i]",
        "(x)",
        "W ~ ones()",
        "i : 3",
        "3",
        ";",
        "\n",
        "?",
        "é",
        "\"",
        "#line 7 \"q\"",
        "\n#line 2\n",
        "A = \"a.csv\"",
        "{A, B}",
        "K = 2",
        "@include(\"f.tl\")",
        "@include(\"g.tl\", as=G, X=Y, i=4)",
        "@export(X, i)",
        "R(x) <- X(x, i), not Y(x)",
        "De",
        "_",
    ];
    let first = seeded::test_seed();
    for seed in first..first + 2000 {
        let mut stream = seeded::Family::new("tensor-logic/tests", "inclusion soup", seed).stream(0);
        let mut soup = |words: usize| -> String {
            (0..words)
                .map(|_| WORDS[(stream.uniform() * WORDS.len() as f64) as usize].to_owned() + " ")
                .collect()
        };
        let (main, f, g) = (soup(12), soup(10), soup(6));
        let mut memory =
            Memory(BTreeMap::from([("f.tl", f.as_str()), ("g.tl", g.as_str()), ("std/gcn.tl", "X = 1")]));
        let (text, reports) = match expand(&main, &mut memory) {
            Ok(text) => (text.clone(), tensor_logic::parse::parse(&text).1),
            Err(failure) => (failure.text, failure.reports),
        };
        let places = Places::new(&text);
        for report in reports {
            assert!(
                report.span.start <= report.span.end && report.span.end <= text.len(),
                "seed {seed}: {report:?}\n{text}"
            );
            let (line, column) = places.of(report.span.start);
            assert!(column >= 1 && (line >= 1 || text.contains("#line")), "seed {seed}: {report:?}\n{text}");
            let drawn = tensor_logic::draw::Sheet::new("main", &text)
                .draw(&report, tensor_logic::draw::Severity::Error);
            assert!(drawn.contains("-->"), "{drawn}");
        }
    }
}
