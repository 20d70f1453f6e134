//! What the stage "names" finds: every refusal at its place, nothing in programs that are legal.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use crate::common;
use tensor_logic::error::{Places, Refusal};
use tensor_logic::names::{self, Names};
use tensor_logic::parse::parse;
use tensor_logic::program::{Combine, Kind, Style};

fn resolve(text: &str) -> Result<Names, Vec<Refusal>> {
    let (program, reports) = parse(text);
    assert_eq!(reports, [], "{text}");
    names::resolve(text, &program)
}

fn show(text: &str, report: &Refusal) -> String {
    let places = Places::new(text);
    let (line, column) = places.of(report.span.start);
    format!("{} {line}:{column}", report.code.name())
}

/// All refusals, as `code line:column`.
fn refusals(text: &str) -> Vec<String> {
    let reports = resolve(text).err().unwrap_or_default();
    reports.iter().map(|report| show(text, report)).collect()
}

fn message(text: &str) -> String {
    resolve(text).unwrap_err()[0].message.clone()
}

/// The examples of the table in section 9, and their neighbours.
#[test]
fn refused() {
    for (text, expected) in [
        ("X[i] : real; X[i] : count", "type-conflict 1:21"),
        ("X(i) : topk(3); X(i) : topk(2)", "type-conflict 1:24"),
        ("W = [[1, 2], [3, 4]]; Y[i] = W[i]", "arity 1:30"),
        ("Y. ; Y[i] = X[i]; X = [1]", "arity 1:6"),
        ("X = [1, 2]\nX[i, j]?", "arity 2:1"),
        ("X = [1, 2]\nZ = X + 1", "arity 2:5"),
        ("P(x) <- Q(x), Q(x, y)", "arity 1:15"),
        ("Y = Even(i, j)", "arity 1:5"),
        ("M = \"a.txt\"; M(x)?", "arity 1:14"),
        ("R(1); R[2] = 3", "mixed-style 1:7"),
        ("M = \"a.txt\"; M[x, y] = 1", "mixed-style 1:14"),
        ("A = [1, 2]; Y = A[i]; Y max= A[i]", "mixed-aggregators 1:25"),
        ("R(A) = 4; R(x) += R(x)", "mixed-aggregators 1:16"),
        ("R(A) = 4; R(x) min= R(x)", "mixed-aggregators 1:16"),
        ("R(x) <- Q(x); R(x) or= Q(x)", "mixed-aggregators 1:20"),
        ("X[0] = 4; X[t+1] max= X[t]", "mixed-aggregators 1:18"),
        ("A = [[1, 2], [3]]", "ragged-array 1:14"),
        ("A = [[[1, 2], [3]], [[1]]]", "ragged-array 1:15"),
        ("A = [1, [2]]", "ragged-array 1:9"),
        ("A ~ [[1], 2]", "ragged-array 1:11"),
        ("A[i] = [[1, 2], [3, 4]]", "array-rank 1:8"),
        ("A[0, i] = [[1, 2], [3, 4]]", "array-rank 1:11"),
        ("A[i, j] ~ [1, 2]", "array-rank 1:11"),
        ("U = [1, 2]; P[i] = softmax[k](U[i])", "bad-axis 1:20"),
        ("U = [1, 2]; P[k] = lnorm(U[i])", "bad-axis 1:20"),
        ("U = [1, 2]; P = sum[k](U[i])", "bad-axis 1:17"),
        ("U = [1, 2]; P = softmax(U[i])", "bad-axis 1:17"),
        ("U = [1, 2]; P[i.] = softmax(sum[i](U[i]))", "bad-axis 1:21"),
        ("U = [1, 2]; P[i] = U[i] / U[j]", "divisor-index 1:29"),
        ("U = [1, 2]; P[i] = U[i] / (U[j] + 1)", "divisor-index 1:30"),
        ("U = [1, 2]; P[i] = U[i] + U[i] / U[i] + 1 / U[j]", "divisor-index 1:47"),
        ("U = [1, 2]; P[i] max= U[i] / U[j]", "divisor-index 1:32"),
        ("U = [1, 2]; P = exp(1 / U[j])", "divisor-index 1:27"),
        ("U = [1, 2]; P = 3 / (1 / (2 U[j]) + U[k] U[k])", "divisor-index 1:39"),
        ("X[*t+1] = 0.5 X[*t] + U[t]; U = [1, 2]; Y = X[t]", "virtual-read 1:47"),
        ("X[*t+1] = 0.5 X[*t]; X[0] = 1; X?", "virtual-read 1:32"),
        ("X[*t+1] = 0.5 X[*t]; X[0] = 1; Y[*s] = X[*s]", "virtual-read 1:42"),
        ("X[*t+1] = 0.5 X[*t]; X[0] = 1; X[1:3]?", "virtual-read 1:34"),
        ("X[*t+1] = 0.5 X[*t]; X[0] = 1; \"x.npy\" = X", "virtual-read 1:42"),
    ] {
        assert_eq!(refusals(text).first().map(String::as_str), Some(expected), "{text}");
    }
}

#[test]
fn all_refusals_are_reported_in_order_of_place() {
    let text = "A = [[1, 2], [3]]\nR(1); R[2] = 3\nY = A[i]\nY max= A[i, j]";
    assert_eq!(
        refusals(text),
        ["ragged-array 1:14", "mixed-style 2:7", "arity 3:5", "mixed-aggregators 4:3"]
    );
}

#[test]
fn messages_name_what_contradicts() {
    assert!(message("W = [[1, 2], [3, 4]]; Y[i] = W[i]").contains("rank 1 here and rank 2"));
    assert!(message("A = [[1, 2], [3]]").contains("1 entry"));
    assert!(message("A[i] = [[1, 2], [3, 4]]").contains("rank 2"));
    assert!(message("A = [1]; Y = A[i]; Y max= A[i]").contains("`max=` here and with `=`"));
    let text = "W = [[1, 2], [3, 4]]; Y[i] = W[i]";
    assert_eq!(resolve(text).unwrap_err()[0].labels[0].span.start, 0);
}

#[test]
fn accepted() {
    for text in [
        "Y = sum[j](1 / U[j]); U = [1, 2]",
        "U = [1, 2]; P[i] = U[i] / sum[j](U[j])",
        "U = [1, 2]; P[i] = U[i] / (U[j] U[j])",
        "U = [1, 2]; P = U[j] / U[j]",
        "U = [1, 2]; P = exp(U[i]) / exp(U[j])",
        "Road(A, B) = 4; Dist(A) min= 0; Dist(y) min= Dist(x) + Road(x, y)",
        "R(A); R(x) = Q(x); R(x) <- S(x)",
        "X[0] = 1; X[t] = X[t-1]; X[t] += U[t]",
        "X[*t+1] = 0.5 X[*t]; X[0] = 1; Y[*t] = X[*t]; Z = X[3]; X[3]?",
        "Node(x, Ann) <- E(x, y), x != Ann, y < N; N = 3",
        "Y?; Y = [[1]]; \"a.npy\" = Y; @const(Y)",
        "X = [1]; X[i] := 2 X[i]",
        "Even(i, j); Y = Even(i, j)",
        "P[i] = softmax[j](S[i, j] | j <= i); S = [[1]]",
        "C = count[y](1 | E(x, y)); E(1, 2)",
        "M = \"a.csv\"; M(x, y, z)?",
    ] {
        assert_eq!(refusals(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn styles_types_and_aggregators() {
    let tensor = |text: &str, name: &str| {
        let found = resolve(text).unwrap().tensors.remove(name).unwrap();
        (found.rank, found.style, found.kind, found.combine)
    };
    use Style::{Round, Square};
    assert_eq!(tensor("R(A, B)", "R"), (2, Round, Kind::Bool, Combine::Exists));
    assert_eq!(tensor("R(A) = 1", "R"), (1, Round, Kind::Real, Combine::Sum));
    assert_eq!(tensor("R(x) = 1", "R"), (1, Round, Kind::Bool, Combine::Exists));
    assert_eq!(tensor("R(x) <- Q(x)", "Q"), (1, Round, Kind::Bool, Combine::Exists));
    assert_eq!(tensor("R(x) += Q(x)", "R"), (1, Round, Kind::Real, Combine::Sum));
    assert_eq!(tensor("R(x) or= Q(x)", "R"), (1, Round, Kind::Bool, Combine::Or));
    assert_eq!(tensor("R(x) avg= Q(x)", "R"), (1, Round, Kind::Real, Combine::Avg));
    assert_eq!(tensor("R(x) : tropical; R(x) <- Q(x)", "R"), (1, Round, Kind::Tropical, Combine::Min));
    assert_eq!(tensor("R(x) : maxmin; R(x) <- Q(x)", "R"), (1, Round, Kind::MaxMin, Combine::Max));
    assert_eq!(tensor("R(x) : count; R(x) <- Q(x)", "R"), (1, Round, Kind::Count, Combine::Sum));
    assert_eq!(tensor("X[i] : count; X[0] = 1", "X"), (1, Square, Kind::Count, Combine::Sum));
    assert_eq!(tensor("W = [[1, 2]]", "W"), (2, Square, Kind::Real, Combine::Sum));
    assert_eq!(tensor("X[i] min= W[i]", "X"), (1, Square, Kind::Real, Combine::Min));
    assert_eq!(tensor("M = \"a.txt\"", "M"), (2, Round, Kind::Bool, Combine::Exists));
    assert_eq!(tensor("M = \"a.csv\" as values; M(x, y)?", "M"), (2, Round, Kind::Real, Combine::Sum));
    assert_eq!(tensor("M = \"a.npy\"; M[x, y]?", "M"), (2, Square, Kind::Real, Combine::Sum));
    assert_eq!(tensor("Y = R[x] R(y)", "R"), (1, Round, Kind::Bool, Combine::Exists));
    assert_eq!(tensor("Y = Dk X[dk]", "Dk"), (0, Square, Kind::Real, Combine::Sum));
}

#[test]
fn constants_and_symbols() {
    let names =
        resolve("L = 2; M = -3; B = 1; B = 2; C = 1; C ~ 2; N = A[i]; P(x) <- Q(x), x != Ann").unwrap();
    assert_eq!(names.constants["L"].value, 2.0);
    assert_eq!(names.constants["M"].value, -3.0);
    assert_eq!(names.constants["B"].value, 3.0);
    assert!(!names.constants.contains_key("C"));
    assert!(!names.constants.contains_key("N"));
    assert!(!names.tensors.contains_key("Ann"));
}

/// All warnings, as `code line:column`.
fn warned(text: &str) -> Vec<String> {
    let names = resolve(text).unwrap_or_else(|reports| unreachable!("{text}: {reports:?}"));
    let found = names::warnings(text, &parse(text).0, &names);
    found.iter().map(|report| show(text, report)).collect()
}

#[test]
fn warnings() {
    for (text, expected) in [
        ("Y[n] = X[N, n]; X = [[1]]", &["letter-case 1:10"] as &[_]),
        ("N = 0; Y[n] = X[N, n]; X = [[1]]", &[]),
        ("Y[i.] = X[i]; X = [1]", &["unused-dot 1:3"]),
        ("Y[i] = softmax(X[i]); X = [1]", &[]),
        ("Y[i, j] = softmax(X[i, j]); X = [[1]]", &["missing-dot 1:11"]),
        ("Y[i, j.] = softmax(X[i, j]); X = [[1]]", &[]),
        ("Y[i, j] = softmax[i](X[i, j]); X = [[1]]", &[]),
        ("R(x) = sig(X[x]); X = [1]", &["boolean-truncation 1:6"]),
        ("R(x) = step(sig(X[x])); X = [1]", &[]),
        ("R(x) += sig(X[x]); X = [1]", &[]),
        ("R(A) = 4; R(B) = 4; R(A) = 5", &["duplicate-fact 1:21"]),
        ("R(A); R(A)", &[]),
        ("P(x) <- Q(x), Q(x)", &["empty-relation 1:9"]),
        ("Q(x); P(x) <- Q(x)", &["empty-relation 1:15"]),
        ("A = (U[i] V[i])^2; U = [1]; V = [1]", &["scope 1:16"]),
        ("A = (U[i] - V[i]) ^2; U = [1]; V = [1]", &["scope 1:19"]),
        ("A = exp(-(U[i] - V[i])^2); U = [1]; V = [1]", &["scope 1:23"]),
        ("A[i] = (U[i] - V[i])^2; U = [1]; V = [1]", &[]),
        ("A = sum[i]((U[i] - V[i])^2); U = [1]; V = [1]", &[]),
        ("A = U[i]^2; U = [1]", &[]),
        ("L = (Y[e] - X[e, j])^2; Y = [1]; X = [[1]]", &["broadcast 1:5", "scope 1:21"]),
        ("L[e] = W[e] (Y[e] - X[e, j]); W = [1]; Y = [1]; X = [[1]]", &["broadcast 1:13"]),
        ("N(1); x : 4; S[x] = sig(N(x))", &["dense-activation 1:21"]),
        ("N(1); x : 4; S[x] = tanh(N(x))", &[]),
        ("N(1); x : 4; S[x] = sig(N(x), 0)", &[]),
        ("N(1); x : 4; S(x) += sig(N(x))", &[]),
        ("W ~ 1; Y = step(W); Loss = Y; Loss? @minimize(steps=1)", &["zero-gradient 1:12"]),
        ("W ~ 1; Y = step(W); Loss = Y W; Loss? @minimize(steps=1)", &[]),
        ("R(1); W ~ 1; Y(x) = R(x) W; Loss = Y(x); Loss? @minimize(steps=1)", &["zero-gradient 1:19"]),
        ("R(1); W ~ 1; Y(x) += R(x) W; Loss = Y(x); Loss? @minimize(steps=1)", &[]),
    ] {
        assert_eq!(warned(text), expected, "{text}");
    }
}

#[test]
fn sums_are_offered_in_both_explicit_forms() {
    let help = |text: &str| {
        let found = names::warnings(text, &parse(text).0, &resolve(text).unwrap());
        found[0].help.clone().unwrap()
    };
    let product = help("A = (U[i] V[i])^2");
    assert!(product.contains("`(sum[i](U[i] V[i]))^2`") && product.contains("`sum[i]((U[i] V[i])^2)`"));
    let sum = help("A = (U[i] - V[i])^2");
    assert!(sum.contains("`sum[i]((U[i] - V[i])^2)`"), "{sum}");
    assert!(sum.contains("`(sum[i](U[i]) - sum[i](V[i]))^2`"), "{sum}");
    let repeated = help("A[e] = W[e] (Y[e] - X[e, j])");
    assert!(repeated.contains("`sum[j](W[e] (Y[e] - X[e, j]))`"), "{repeated}");
    assert!(repeated.contains("`W[e] (Y[e] - sum[j](X[e, j]))`"), "{repeated}");
    // Of one sum both warnings say the same.
    let text = "A = (U[i] - 3)^2";
    let both = names::warnings(text, &parse(text).0, &resolve(text).unwrap());
    assert_eq!(both.len(), 2);
    for warning in both {
        let help = warning.help.unwrap();
        assert!(help.contains("means `sum[i]((U[i] - 3)^2)`"), "{help}");
        assert!(help.contains("other is `(sum[i](U[i]) - 3)^2`"), "{help}");
    }
}

/// Without domains the farthest constant is the last value of a virtual place.
#[test]
fn one_slice_of_a_virtual_place_is_kept() {
    for (text, ends, wanted) in [
        ("X[*t+1] = 0.5 X[*t]; X[0] = 1; X[2]?; X[5]?", None, "virtual-read 1:34"),
        ("X[*t-1] = 0.5 X[*t]; X[9] = 1; X[2]?; X[5]?", None, "virtual-read 1:41"),
        ("X[*t+1] = 0.5 X[*t]; X[0] = 1; X[2]?; X[5]?", Some((0, 2)), "virtual-read 1:41"),
        ("X[*t-1] = 0.5 X[*t]; X[9] = 1; X[3]?", Some((2, 9)), "virtual-read 1:34"),
    ] {
        let reports = names::not_last(&parse(text).0, &resolve(text).unwrap(), |_, _| ends);
        let found: Vec<String> = reports.iter().map(|report| show(text, report)).collect();
        assert_eq!(found, [wanted], "{text}");
    }
}

/// No legal case is refused by this stage, and those that it must refuse are.
#[test]
fn cases() {
    for (name, text) in common::programs() {
        let expected = match name.as_str() {
            "refuse-01-syntax" => continue,
            "refuse-03-arity" => Some("arity 2:8"),
            "refuse-11-divisor-index" => Some("divisor-index 2:17"),
            "refuse-12-mixed-aggregators" => Some("mixed-aggregators 3:3"),
            "refuse-13-mixed-style" => Some("mixed-style 2:1"),
            "refuse-17-ragged-array" => Some("ragged-array 1:14"),
            "refuse-18-virtual-read" => Some("virtual-read 3:7"),
            _ => None,
        };
        assert_eq!(refusals(&text).first().map(String::as_str), expected, "{name}");
    }
}

#[test]
fn the_case_of_scopes_is_warned_of_three_times() {
    let text = std::fs::read_to_string(common::folder().join("run-14-scopes.tl")).unwrap();
    let scopes: Vec<String> = warned(&text).into_iter().filter(|at| at.starts_with("scope")).collect();
    assert_eq!(scopes, ["scope 3:16", "scope 4:18", "scope 5:23"]);
}

/// Lines of the corpus shuffled together, with changed letters: whatever is read is resolved,
/// and its warnings and the stages behind are found, without a panic.
#[test]
fn mutated_programs() {
    use tensor_logic::lower::{NoFiles, Options};
    let programs = common::programs();
    let lines: Vec<&str> = programs.iter().flat_map(|(_, text)| text.lines()).collect();
    let letters: Vec<char> = "xyijAB01+-*/()[],.|^=<>~? ".chars().collect();
    let mut stream = common::stream("names");
    let mut resolved = 0;
    for _ in 0..3000 {
        let mut text = String::new();
        for _ in 0..1 + stream.below(5) {
            let mut line: Vec<char> = lines[stream.below(lines.len() as u64) as usize].chars().collect();
            for _ in 0..stream.below(3) {
                let at = stream.below(line.len() as u64 + 1) as usize;
                let letter = letters[stream.below(letters.len() as u64) as usize];
                match stream.below(3) {
                    0 => line.insert(at, letter),
                    1 => line.truncate(at),
                    _ => line.iter_mut().skip(at).take(1).for_each(|old| *old = letter),
                }
            }
            text.extend(line);
            text.push('\n');
        }
        let (program, reports) = parse(&text);
        if !reports.is_empty() {
            continue;
        }
        if let Ok(names) = names::resolve(&text, &program) {
            resolved += 1;
            names::warnings(&text, &program, &names);
        }
        let functions = tensor_logic::function::UserFunctions::default();
        let _ = tensor_logic::analyse::analyse(&text, &mut NoFiles, &functions, &Options::default());
    }
    assert!(resolved > 300, "only {resolved} were resolved");
}

#[test]
fn long_index_expressions() {
    let sum = " + 1".repeat(200);
    let text = format!("Y[i{sum}] = X[i{sum}]; X = [1]; R(3{sum}); Y[3{sum}]?");
    assert_eq!(refusals(&text), Vec::<String>::new());
}
