//! What careless or hostile input is told: by the command, with its place, a name, and within the memory that is allowed.
#![cfg(feature = "cli")]
#![expect(clippy::unwrap_used, reason = "a test that cannot start the command has failed")]

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::common::command;

fn tl(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    command::tl(folder, arguments, b"")
}

fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

/// The first report: its code, line and column, and what it says.
fn refused(folder: &Path, arguments: &[&str]) -> (String, u64, u64, String) {
    let begin = Instant::now();
    let (code, said, objected) = tl(folder, &[arguments, &["--json"]].concat());
    assert_eq!(code, Some(1), "{arguments:?}: {said}{objected}");
    assert!(!objected.contains("panicked"), "{objected}");
    assert!(begin.elapsed() < Duration::from_secs(60), "{arguments:?}");
    let said: Json = serde_json::from_str(&said).unwrap();
    let report = &said["errors"][0];
    let text = |key: &str| report[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| report[key].as_u64().unwrap_or(0);
    (text("code"), number("line"), number("column"), format!("{} / {}", text("message"), text("help")))
}

/// A program, what its first refusal is and where, and words that are in it.
const PROGRAMS: &[(&str, &str, (u64, u64), &str)] = &[
    // Cycles.
    (
        "P(A) <- Q(A), not R(A)\nQ(A) <- P(A)\nR(A) <- P(A)\nP(A)?",
        "not-stratified",
        (1, 15),
        "P -> not R -> P",
    ),
    (
        "x : 3\nE(0, 1); E(1, 2); E(2, 0)\nW ~ 2\nH(x) += E(y, x) W H(y)\nH(x) += 0.5\nH(x)?",
        "divergence",
        (4, 1),
        "does not come to rest",
    ),
    ("N(0)\nN(x) <- N(x-1)\nN(x)?", "budget", (2, 1), "--max-bytes"),
    // Declarations.
    ("E : prob\n0.9 :: E(0, 1)\nE(0, y)?", "type-conflict", (1, 1), "write `E(x, y) : prob`"),
    // Evidence.
    (
        "C = [1, 0]\nR[r, c] = [[0.8, 0.2], [0.2, 0.8]]\nZ = C[c] R[r, c]\nZ[r | c=1]?",
        "zero-evidence",
        (4, 1),
        "0",
    ),
    ("C = [1, 0]\nZ = C[c]\nZ | c=7?", "unknown-evidence", (3, 5), "no value `7`"),
    ("A = [1, .5]", "syntax", (1, 9), "before the point: `0.5`"),
    ("\n.25 :: Rain()", "syntax", (2, 1), "before the point: `0.25`"),
    ("C = [1, 0]\nZ = C[c]\nZ[c=7 | ]?", "unknown-evidence", (3, 3), "no value `7`"),
    ("W() = 3\nZ = W()\nZ | x=1 ?", "unknown-evidence", (3, 5), "no equation below it has one"),
    // Probabilities.
    ("1.5 :: Rain(Mon)\nRain(x)?", "bad-probability", (1, 1), "`1.5` is no probability"),
    ("-0.5 :: Rain(Mon)\nRain(x)?", "bad-probability", (1, 1), "`-0.5` is no probability"),
    ("1e400 :: Rain(Mon)\nRain(x)?", "bad-probability", (1, 1), "`1e400` is no probability"),
    (
        "x : {Ann}\nLikes(x) : prob ~ 1.5\nQ(x) <- Likes(x)\nQ(x)?",
        "bad-probability",
        (2, 1),
        "`Likes(Ann)` is 1.5",
    ),
    (
        "R(x) : prob\nR = \"nan.csv\" as values\nQ(x) <- R(x)\nQ(x)?",
        "bad-probability",
        (2, 5),
        "`R(Mon)` is NaN",
    ),
    (
        "0.7 :: C(A, B)\n0.7 :: C(A, D)\n@exclusive(C, 1)\nR(x) <- C(A, x)\nR(x)?",
        "bad-probability",
        (2, 1),
        "1.4 together",
    ),
    // A circuit beyond the memory.
    (
        "x, y : 12\nE(x, y) : prob ~ 0.5\nP(x, y) <- E(x, y)\nP(x, z) <- P(x, y), E(y, z)\nP(0, 11)?",
        "budget",
        (5, 1),
        "topk(10)",
    ),
    // A loss that is no number.
    (
        "W ~ 3\nLoss = log(W)\nLoss? @minimize(opt=sgd, lr=2, steps=50)",
        "divergence",
        (3, 7),
        "the loss is NaN",
    ),
    ("W ~ 0\nLoss = sqrt(W)\nLoss? @minimize(steps=5)", "divergence", (3, 7), "gradient that is no number"),
    (
        "i : 3\nA = \"n.npy\"\nW[i] ~ 0\nLoss = sum[i]((W[i] - A[i])^2)\nLoss? @minimize(steps=5)",
        "divergence",
        (5, 7),
        "NaN",
    ),
    // What is true or false has no gradient.
    (
        "W ~ 0\nLoss = (W - 1)^2\nLoss, Loss? @minimize(steps=5)",
        "not-scalar",
        (3, 1),
        "this one is true or false",
    ),
    // A type is that of all tuples.
    ("L(A) : prob\nL(x)?", "bad-argument", (1, 3), "a type is that of all of `L`"),
    ("L(2, B) : count\nL(x, y)?", "bad-argument", (1, 3), "a type is that of all of `L`"),
    // What holds for the whole program is said once.
    ("@tol(1e-1)\n@tol(1e-9)\nX = 0.5 X + 1\nX?", "bad-argument", (2, 1), "given twice"),
    ("@seed(1); @rounds(9); @seed(2)\nX = 1\nX?", "bad-argument", (1, 23), "given twice"),
    // A slice under `not` would mean some value of it, not none.
    ("R(1, A)\nT(y) <- R(_, y), not R(2:9, y)\nT(y)?", "unbound-index", (2, 24), "the slice of `R`"),
    // Declarations that nothing reads.
    ("N = 2.5\ni : N\nX = 1\nX?", "not-a-constant", (2, 5), "`N` is 2.5"),
    ("i : A\nX = 1\nX?", "not-a-constant", (1, 5), "an integer"),
    ("P : P; i : P\nB[i] = 1\nB?", "not-a-constant", (1, 5), "said by itself"),
    // Shapes that meet.
    (
        "A = \"a.npy\"\nB = \"b.npy\"\nC[i, k] = A[i, j] B[j, k]\nC?",
        "size-conflict",
        (3, 21),
        "3 values in `A` and 4 in `B`",
    ),
    ("i : 5\nA = \"a.npy\"\nA[i, j]\nA?", "size-conflict", (3, 3), "index `i` has 5 values"),
    ("A = \"a.npy\"\nA[i]?", "file-format", (1, 5), "2 places"),
    ("A = \"wide.npy\"\nA[i]?", "file-format", (1, 5), "announces the shape [1000000000]"),
    // Sizes.
    ("i, j : 1000000000\nA[i, j] = i + j\nA[3, 4]?", "too-large", (2, 1), "--max-bytes"),
    (
        "i : 750000\nW[i] ~ zeros()\nL = sum[i]((W[i] - 1)^2)\nL? @minimize(steps=1)",
        "too-large",
        (4, 4),
        "their moments 15000000",
    ),
    ("i : 9223372036854775807\nA[i] = 1\nS = A[i]\nS?", "too-large", (2, 1), "`A` needs"),
    (
        "i, j, k, l : 1000000000\nW[i, j, k, l] ~ normal(0, 1)\nL = W[i, j, k, l]\nL?",
        "too-large",
        (2, 1),
        "`W` needs",
    ),
    // Inclusion.
    (
        "@include(\"round.tl\")\nA?",
        "include-cycle",
        (1, 10),
        "`round.tl` includes `p.tl` includes `round.tl` again",
    ),
    ("@include(\"p.tl\")", "include-cycle", (1, 10), "again"),
    ("@include(\"nothing.tl\")", "file-not-found", (1, 10), "`nothing.tl`"),
    // Files.
    ("A = \"ragged.csv\"\nA(x, y)?", "file-format", (1, 5), "line 2"),
    ("A = \"open.csv\"\nA(x)?", "file-format", (1, 5), "line 3: a quotation that does not end"),
    ("A = \"open.csv\" as header\nA(x)?", "file-format", (1, 5), "line 3: a quotation that does not end"),
    ("A = \"head.csv\" as header\nA(x)?", "file-format", (1, 5), "line 1: a quotation that does not end"),
    ("A = 1\u{0}\nA?", "syntax", (1, 6), "expected"),
];

/// What is refused whichever engine runs it.
const BY_BOTH: &[(&str, &str, (u64, u64), &str)] = &[
    // Left sides of data.
    ("A[i+1] = [1, 2, 3]\nA?", "bad-argument", (1, 3), "each of its own place"),
    ("A[i, i] = [[1, 2], [3, 4]]\nA?", "bad-argument", (1, 6), "each of its own place"),
    ("A(2*i) = [1, 2]\nA?", "bad-argument", (1, 3), "each of its own place"),
    ("R(x, 1) = \"f.csv\"\nR?", "bad-argument", (1, 6), "all of a tensor"),
    ("R(x, x) = \"f.csv\"\nR?", "bad-argument", (1, 6), "all of a tensor"),
    ("A[i, 1] = \"f.npy\"\nA?", "bad-argument", (1, 6), "all of a tensor"),
    // Places without a value.
    ("R(1/0)\nR(x)?", "not-a-constant", (1, 3), "`1/0` has no value: the divisor is 0"),
    ("R(2)\nS(x % 0) <- R(x)\nS(x)?", "not-a-constant", (2, 3), "the divisor is 0"),
    ("R(9223372036854775807 + 1) = 2\nR(x)?", "not-a-constant", (1, 3), "it leaves 64 bits"),
    ("0.5 :: R(Ann+1)\nR(x)?", "symbol-as-number", (1, 10), "the symbol `Ann` has no number"),
    ("A[-Ann] = 3\nA?", "symbol-as-number", (1, 3), "the symbol `Ann` has no number"),
    ("A = [1]\nA[0 / (2 - 2)]?", "not-a-constant", (2, 3), "the divisor is 0"),
    ("R(1)\nR(x), x != 1 / 0?", "not-a-constant", (2, 12), "the divisor is 0"),
    ("i : j\nA[i] = 1\nA?", "not-a-constant", (1, 5), "an index has no value here"),
    ("R(1); R(Ann)\nC = R(x) X\nC?", "unbound-index", (2, 10), "nothing says how many values"),
    // Relations that are built in.
    ("Even(_)?", "unbound-index", (1, 6), "integers without end"),
    ("Odd(1:4)?", "unbound-index", (1, 5), "integers without end"),
    ("R(1)\nR(x), not Even(_)?", "unbound-index", (2, 16), "integers without end"),
    // Slices.
    (
        "x : {Red, Blue}\nA[x] = [1, 2]\nA[1:2]?",
        "symbol-as-number",
        (3, 3),
        "the values of this place are symbols",
    ),
    ("R(Ann)\nR(Bob)\nR(1:)?", "symbol-as-number", (3, 3), "the values of this place are symbols"),
    ("R(Ann)\nR(1)\nR(:2)?", "mixed-domain", (2, 3), "`Ann` and `1`"),
    ("A = [1, 2]\nA[x:2]?", "not-a-constant", (2, 3), "an index has no value here"),
    // Positions.
    (
        "k : 5\nT = [[1, 2], [3, 4]]\nC[k] = concat(T[i, j])\nC?",
        "size-conflict",
        (3, 3),
        "0..4, and its positions in this concat are 0..3",
    ),
    (
        "k : 1..4\nT = [[1, 2], [3, 4]]\nC[k] = concat(T[i, j])\nC?",
        "size-conflict",
        (3, 3),
        "1..4, and its positions in this concat are 0..3",
    ),
    (
        "V = [1, 2, 3]\nT = [[1, 2], [3, 4]]\nC[k] = concat(T[i, j])\nD[k] = C[k] V[k]\nD?",
        "size-conflict",
        (3, 3),
        "0..2, and its positions",
    ),
    // Only a redefinition reads it.
    ("X = [1, 2]\nV[i] := 2 V[i]\nY[i] = V[i] + X[i]\nY?", "missing-data", (2, 1), "gives `V`"),
    // Types.
    ("A[i] : prob\nA = [0.5]\nA?", "type-conflict", (1, 8), "`prob` is a type of relations"),
    ("A : topk(3)\nA = 0.5\nA?", "type-conflict", (1, 5), "`topk(3)` is a type of relations"),
    (
        "W ~ 0\nL = (W - 3)^2\nL? @minimize(schedule=cosine, min_lr=1)",
        "bad-argument",
        (3, 31),
        "above `lr`, which is 0.001",
    ),
    (
        "W ~ 0\nL = (W - 3)^2\nL? @minimize(opt=sgd, schedule=linear, min_lr=0.3)",
        "bad-argument",
        (3, 40),
        "above `lr`, which is 0.1",
    ),
    (
        "E(A)\nE(B)\n0.5 :: C()\n@exclusive(E, 0)\nD() <- E(A), E(B), C()\nD()?",
        "bad-probability",
        (2, 1),
        "have 2 together",
    ),
    ("A[i] : count ~ glorot()\ni : 3\nA?", "type-conflict", (1, 8), "`A` is learned"),
    ("A[i] : count\nA = [1, 0.5]\nA?", "type-conflict", (2, 5), "0.5 is no whole number"),
    ("R(x) : count\nR(1) = 0.5\nR(x)?", "type-conflict", (2, 1), "0.5 is no whole number"),
    ("i : -2\nA[i] = 1\nA?", "bad-argument", (1, 5), "no -2 values"),
    // Values of an index that nobody goes through.
    ("x : 1..1000000000000\nA(x) <- x < 3\nA(x)?", "too-large", (2, 1), "1000000000000 values"),
];

#[test]
fn what_has_no_meaning_is_refused_by_both_engines() {
    let folder = folder(&[("f.csv", b"1,2\n3,3\n")]);
    for (text, code, place, told) in BY_BOTH {
        std::fs::write(folder.path().join("p.tl"), text).unwrap();
        for engine in ["auto", "reference"] {
            let found = refused(folder.path(), &["run", "p.tl", "--engine", engine]);
            assert_eq!(
                (found.0.as_str(), (found.1, found.2)),
                (*code, *place),
                "{engine}: {text}\n{found:?}"
            );
            assert!(found.3.contains(told), "{engine}: {text}\n{found:?}");
        }
    }
}

#[test]
fn programs_are_refused_where_they_are_wrong() {
    let header = |shape: &str, numbers: &[f64]| {
        let text = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{text:<117}\n").bytes());
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    };
    let folder = folder(&[
        ("nan.csv", b"Mon,nan\nTue,0.5\n"),
        ("ragged.csv", b"a,b\nc\n"),
        ("open.csv", b"\"a\"\"\n\"\n\"b\nc\nd\n"),
        ("head.csv", b"\"b\nc\nd\n"),
        ("round.tl", b"@include(\"p.tl\")\n"),
        ("a.npy", &header("(2, 3)", &[1.0; 6])),
        ("b.npy", &header("(4, 2)", &[1.0; 8])),
        ("n.npy", &header("(3,)", &[1.0, f64::NAN, 2.0])),
        ("wide.npy", &header("(1000000000,)", &[1.0])),
    ]);
    for (text, code, place, told) in PROGRAMS {
        std::fs::write(folder.path().join("p.tl"), text).unwrap();
        let found = refused(folder.path(), &["run", "p.tl", "--max-bytes", "20000000"]);
        assert_eq!((found.0.as_str(), (found.1, found.2)), (*code, *place), "{text}\n{found:?}");
        assert!(found.3.contains(told), "{text}\n{found:?}");
    }
}

/// A device has no end; a pipe has one, and is read.
#[cfg(unix)]
#[test]
fn a_program_has_an_end() {
    let folder = folder(&[("p.tl", b"N = 2\nN?\n")]);
    let (code, _, objected) = tl(folder.path(), &["run", "/dev/zero"]);
    assert_eq!(code, Some(2), "{objected}");
    assert!(objected.contains("longer than 256 MiB"), "{objected}");
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, "N = 2\nN?\n")
    });
    let (code, said, objected) = tl(folder.path(), &["run", &pipe.to_string_lossy()]);
    assert_eq!((code, said.as_str()), (Some(0), "N?\n  2.0\n"), "{objected}");
    writer.join().unwrap().unwrap();
}

#[test]
fn what_nothing_leads_to_is_underivable() {
    let program = "Parent(Ann, Bob)\nF(1) = 2\nk : 3\nG(k) += F(k)\nAnc(x, y) <- Parent(x, y)\n0.5 :: Rain(Mon)\nWet(x) <- Rain(x)\n\
                   Wet(Tue)?\nG(2)?\nAnc(Bob, Ann)?\nAnc(Bob, Ann)? @explain\nAnc(Ann, Bob)? @explain\n";
    let folder = folder(&[("p.tl", program.as_bytes())]);
    let (code, said, objected) = tl(folder.path(), &["run", "p.tl"]);
    assert_eq!((code, objected.as_str()), (Some(0), ""));
    let answers: Vec<&str> = said.split("Anc(Ann, Bob)?").collect();
    assert_eq!(
        answers[0],
        "Wet(Tue)?\n  underivable\nG(2)?\n  underivable\nAnc(Bob, Ann)?\n  false\nAnc(Bob, Ann)? @explain\n  false\n  derived Anc: 0\n  underivable\n"
    );
    assert!(answers[1].contains("true") && !answers[1].contains("underivable"), "{said}");
}

#[test]
fn a_proof_says_in_which_file_its_lines_are() {
    let folder = folder(&[
        ("p.tl", b"@include(\"rules.tl\", as=In)\nS(Ann)\nR(Ann)? @explain\n"),
        ("rules.tl", b"@export(R, S)\n\nR(x) <- S(x)\n"),
    ]);
    let said = tl(folder.path(), &["run", "p.tl"]).1;
    assert!(said.contains("R(Ann)  (rule, rules.tl:3)") && said.contains("S(Ann)  (fact, line 2)"), "{said}");
    let said = tl(folder.path(), &["run", "p.tl", "--json"]).1;
    assert!(said.contains(r#""kind": "rule", "line": 3, "file": "rules.tl""#), "{said}");
}

#[test]
fn what_editors_leave_in_files_is_passed_over() {
    let folder = folder(&[
        ("p.tl", b"\xef\xbb\xbfV = \"v.csv\" as values\r\nV(x)?\r\n"),
        ("v.csv", b"\xef\xbb\xbfMon,1\r\nTue,2\r\n"),
    ]);
    let found = tl(folder.path(), &["run", "p.tl"]);
    assert_eq!(found.1, "V(x)?\n  x = Mon: 1.0\n  x = Tue: 2.0\n");
    let folder = self::folder(&[
        ("p.tl", b"@include(\"x.tl\")\nX?\n"),
        ("x.tl", b"\xef\xbb\xbf@export(X)\r\nX = 3\r\n"),
    ]);
    assert_eq!(tl(folder.path(), &["run", "p.tl"]).1, "X?\n  3.0\n");
}

const PAIR: &str = "network n {}
variable A { type discrete [ 2 ] { a, b }; }
variable B { type discrete [ 2 ] { yes, no }; }
probability ( A ) { table 0, 1; }
probability ( B | A ) { (a) 0.1, 0.9; (b) 0.7, 0.3; }
";

/// A change of the network, options, the refusal and its place, and words that are in it.
type Asked<'a> = ((&'a str, &'a str), &'a [&'a str], &'a str, (u64, u64), &'a str);

#[test]
fn models_are_refused_where_they_are_wrong() {
    let folder = folder(&[]);
    let none = ("", "");
    let cases: &[Asked<'_>] = &[
        (none, &["--evidence", "A=a", "--marginals"], "zero-evidence", (1, 1), "probability zero"),
        (none, &["--evidence", "A=a", "--samples", "100"], "zero-evidence", (1, 1), "none of 100 samples"),
        (none, &["--evidence", "A=c"], "unknown-evidence", (1, 3), "its states are `a`, `b`"),
        (none, &["--evidence", "C=a"], "unknown-evidence", (1, 1), "the variables are `A`, `B`"),
        (none, &["--samples", "1000", "--max-bytes", "1000"], "budget", (1, 1), "--max-bytes"),
        (("0, 1;", "0.5, 0.5;"), &["--loopy", "--max-bytes", "10"], "budget", (1, 1), "--max-bytes"),
        (("0, 1;", "0.5, 0.5;"), &["--map", "--max-bytes", "1"], "budget", (1, 1), "--max-bytes"),
        (("0, 1;", "0.5, 1;"), &[], "file-format", (4, 21), "`A` sums to 1.5"),
        (("0, 1;", "1e400, 1;"), &[], "file-format", (4, 27), "`1e400` is no probability"),
        (("0, 1;", "-1, 2;"), &[], "file-format", (4, 27), "`-1` is no probability"),
        (("0, 1;", "nan, 1;"), &[], "file-format", (4, 27), "`nan` is no probability"),
        (("table 0, 1;", ""), &[], "file-format", (4, 1), "misses a row"),
        (("(a) 0.1", "(z) 0.1"), &[], "file-format", (5, 26), "`A` has no state `z`"),
        (("variable B", "variable A"), &[], "file-format", (3, 10), "a second variable `A`"),
        (("[ 2 ] { a", "[ 1000000000 ] { a"), &[], "file-format", (2, 30), "says `1000000000`"),
        (
            ("( A ) { table 0, 1", "( A | B ) { (yes) 0, 1; (no) 1, 0"),
            &[],
            "file-format",
            (4, 1),
            "go in a circle: `A` -> `B` -> `A`",
        ),
        ((PAIR, ""), &[], "file-format", (1, 1), "without variables"),
        (("0.3; }\n", ""), &[], "file-format", (5, 46), "the text ends"),
    ];
    for ((old, new), options, code, place, told) in cases {
        let text = if old.is_empty() { PAIR.to_owned() } else { PAIR.replacen(old, new, 1) };
        std::fs::write(folder.path().join("m.bif"), &text).unwrap();
        let found = refused(folder.path(), &[&["query", "m.bif"], *options].concat());
        assert_eq!((found.0.as_str(), (found.1, found.2)), (*code, *place), "{text}{options:?} {found:?}");
        assert!(found.3.contains(told), "{text}{options:?} {found:?}");
    }
    for (text, place, told) in [
        ("MARKOV\n1000000000\n2 2\n", (3, 4), "the text ends"),
        ("MARKOV\n2\n1000000000 2\n1\n2 0 1\n2000000000\n", (3, 1), "fewer letters"),
        ("MARKOV\n2\n2 2\n1000000000000\n", (4, 14), "the text ends"),
        ("MARKOV\n2\n2 2\n1\n99999999999 0 1\n", (5, 16), "the text ends"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1e400 1\n", (7, 1), "`1e400`"),
        ("BAYES 2 2 2 2\n2 0 1\n2 1 0\n4 0.1 0.9 0.5 0.5\n4 0.2 0.8 0.4 0.6\n", (3, 1), "`0` -> `1` -> `0`"),
    ] {
        std::fs::write(folder.path().join("m.uai"), text).unwrap();
        let found = refused(folder.path(), &["query", "m.uai"]);
        assert_eq!((found.0.as_str(), (found.1, found.2)), ("file-format", place), "{text}{found:?}");
        assert!(found.3.contains(told), "{text}{found:?}");
    }
}

/// Every pair of variables has a table: the one clique has 2⁶⁰ cells.
#[test]
fn a_model_that_no_machine_holds() {
    let pairs: Vec<(usize, usize)> = (0..60).flat_map(|a| (a + 1..60).map(move |b| (a, b))).collect();
    let mut text = format!("MARKOV\n60\n{}\n{}\n", "2 ".repeat(60), pairs.len());
    text += &pairs.iter().map(|(a, b)| format!("2 {a} {b}\n")).collect::<String>();
    text += &"4\n1 2 3 4\n".repeat(pairs.len());
    let folder = folder(&[("m.uai", text.as_bytes())]);
    let found = refused(folder.path(), &["query", "m.uai"]);
    assert_eq!((found.0.as_str(), found.1, found.2), ("too-large", 1, 1), "{found:?}");
    assert!(found.3.contains("--loopy"), "{found:?}");
}

/// A query is answered in one way, and what is asked for twice is not half forgotten.
#[test]
fn directives_that_do_not_go_together_are_refused() {
    for (directives, words) in [
        ("@minimize(steps=2) @minimize(steps=3)", "twice"),
        ("@minimize(steps=2) @sample(n=3)", "exclude each other"),
        ("@sample(n=3) @minimize(steps=2)", "exclude each other"),
        ("@sample(n=3) @embed", "exclude each other"),
        ("@explain @explain", "twice"),
    ] {
        let text = format!("W ~ 2\nLoss = W^2\nLoss? {directives}\n");
        let place = folder(&[("a.tl", text.as_bytes())]);
        let (code, line, column, said) = refused(place.path(), &["run", "a.tl"]);
        assert_eq!((&*code, line), ("unknown-directive", 3), "{said}");
        assert!(column > 7 && said.contains(words), "{directives}: {said}");
    }
    // Each that is too many is named once.
    let text = format!("X = 1\nX?{}\n", " @explain".repeat(40));
    let place = folder(&[("a.tl", text.as_bytes())]);
    let (code, _, said) = tl(place.path(), &["check", "a.tl"]);
    assert_eq!((code, said.matches("stands here twice").count()), (Some(1), 39), "{said}");
    let place = folder(&[("a.tl", b"W ~ 2\nLoss = W^2\nLoss? @minimize(steps=2) @explain\n")]);
    assert_eq!(tl(place.path(), &["check", "a.tl"]).0, Some(0));
}
