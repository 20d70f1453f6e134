//! The parser: places of syntax errors, shapes of trees, and that nothing makes it stumble.
use crate::common;
use tensor_logic::error::{Code, Places};
use tensor_logic::parse::parse;

/// The places of all syntax errors of a text.
fn errors(text: &str) -> Vec<(usize, usize)> {
    let places = Places::new(text);
    let reports = parse(text).1;
    assert!(reports.iter().all(|report| report.code == Code::Syntax));
    reports.iter().map(|report| places.of(report.span.start)).collect()
}

fn tree(text: &str) -> String {
    let (program, reports) = parse(text);
    assert_eq!(reports, [], "{text}");
    common::tree(&program)
}

#[test]
fn all_cases_are_read() {
    for (name, text) in common::programs() {
        let wanted: &[(usize, usize)] = if name == "refuse-01-syntax" { &[(2, 14)] } else { &[] };
        assert_eq!(errors(&text), wanted, "{name}");
    }
}

#[test]
fn a_mistake_stands_at_the_first_token_that_cannot_stand_there() {
    let cases: &[(&str, &[(usize, usize)])] = &[
        ("Y = step(W[i X[i])", &[(1, 14)]),
        ("Y = A +", &[(1, 8)]),
        ("Y = A +\n", &[(2, 1)]),
        ("Y = (A\n", &[(1, 7)]),
        ("Y = (1 + 2\nZ = 3", &[(1, 11)]),
        ("A = [[1, 2],\n  [3, $]]\nB = (", &[(2, 7), (3, 6)]),
        ("A = f(B,  # text\nC = [1\nD = 2", &[(1, 17), (2, 7)]),
        ("Y = f((1]\nB = )", &[(1, 9), (2, 5)]),
        ("Y = A )", &[(1, 7)]),
        ("Y = A ) \nZ = ]\nX = 1\n@", &[(1, 7), (2, 5), (4, 2)]),
        ("P(x) <- Q(x), x + 1  # text\nR(1)", &[(1, 28)]),
        ("P(x) <- Q(x), x + 1\r\nR(1)", &[(1, 20)]),
        ("Y = 2 * -3", &[(1, 9)]),
        ("Y = A^B^C", &[(1, 8)]),
        ("Y[i] = A[i] % 2", &[(1, 13)]),
        ("Y[1.5] = 3", &[(1, 3)]),
        ("Y[99999999999999999999] = 3", &[(1, 3)]),
        ("Y[_] = 3", &[(1, 6)]),
        ("Y[1:2] <- R(x)", &[(1, 8)]),
        ("X = \"a.txt\" + 1", &[(1, 13)]),
        ("R(\"open)\nQ(1)", &[(1, 3)]),
        ("R(\"a\\q\")", &[(1, 3)]),
        ("Edge(A, B). Edge(B, C).", &[(1, 13)]),
        ("Y = .5", &[(1, 5)]),
        ("Y = f()", &[(1, 7)]),
        ("Y + = 3", &[(1, 5)]),
        ("i : 4..\n", &[(2, 1)]),
        ("x : {Ann, bob}", &[(1, 11)]),
        ("x : {}", &[(1, 6)]),
        ("Z[s=1]?", &[(1, 6)]),
        ("Z[ | w=1]?", &[(1, 4)]),
        ("Z[s | w]?", &[(1, 8)]),
        ("Y? @", &[(1, 5)]),
        ("0 <= x <= 5?", &[(1, 8)]),
        ("Y = max[J](A[j])", &[(1, 9)]),
        ("Y = $", &[(1, 5)]),
        ("= 3; Y?", &[(1, 1)]),
        ("Y = {1}", &[(1, 5)]),
        ("P(x) <- Q(x) R(x)", &[(1, 18)]),
        ("Y = x₁", &[(1, 6)]),
        ("x : 3 4", &[(1, 7)]),
        ("W = [1, 2; 3]", &[(1, 10)]),
        ("W = [1 2]", &[(1, 8)]),
        ("W = [, 2]", &[(1, 6)]),
    ];
    for (text, wanted) in cases {
        assert_eq!(errors(text), *wanted, "{text}");
    }
}

#[test]
fn these_are_read() {
    let cases = [
        "Y? ; Y?.",
        "Y.",
        "Y = 2.",
        "Y = 2.5.",
        "Y[p'.] = softmax(S[p'])",
        "Y max = A[i]",
        "Y\tavg = A[i]",
        "x <-1?; P(x) <- Q(x)",
    ];
    for text in &cases[..7] {
        tree(text);
    }
    assert_eq!(errors(cases[7]), [(1, 3)]);
    for text in [
        "x < -1, R(x)?",
        "X[:-1]?",
        "X[-3:-1, :, 2:, :4, _]?",
        "Y = A[i] +\n  B[i] *\n  2",
        "Z | w=1, r=-1 ?",
        "Z[s=1, r | w=A, q=\"b\"]? @sample(n=3) @explain",
        "R(x), not S(x, _), x != Ann, y = x + 1?",
        "W[i, j] : real ~ normal(0, -0.1)",
        "P(x, y) : topk(3)",
        "W ~ [[1, -2,], [3, 4],]",
        "W ~ glorot",
        "\"a.csv\" = Y",
        "R = \"a.csv\" as values, header",
        "0.3 :: Rain(Mon)",
        "i, j : 1..N",
        "Person : Other",
        "Person : {Ann, -1, \"x y\"}",
        "Y = -X^2 + A^-1 - L^{d/De} not R(x)",
        "Y = A (B) (C + D)",
        "Y = sum[j, k](A[j, k] | j < k, k % 2 == 0)",
        "X[*t+1] := A · B × C ≤ 3?\n".trim_end_matches(" ≤ 3?\n"),
        "X[(a+b)/2, -a % 3, \"q\", N]?",
        "¬ R(x), x ≥ 2, x ≠ 3?",
        "\u{feff}Y?",
        "",
        "  \n;;\n # only\n",
        "Y = 1e-3 + 2e5x",
        "A[x] B[x] > 3?",
        "\"a\" == x, R(x)?",
        "(x + 1) * 2 == y, R(x, y)?",
        "Any() <- X(i), rain()",
        "R[\n  1,\n  2\n] = 3 // c\n",
    ] {
        tree(text);
    }
}

#[test]
fn spellings_of_one_thing_are_one_tree() {
    for (left, right) in [
        ("P(x)←Q(x),¬R(x),x≠1", "P(x) :- Q(x), not R(x), x != 1"),
        ("Y = A − B · C × D", "Y = A - B * C * D"),
        ("Y[p′] = A[p′]", "Y[p'] = A[p']"),
        ("Y max = A[i] | i ≤ 3, i ≥ 1", "Y max= A[i] | i <= 3, i >= 1"),
        ("Y = A[i]\n B = C", "Y = A[i]; B = C."),
    ] {
        // The sign `×` is kept by the formatter, not by the tree.
        assert_eq!(tree(left), tree(right));
    }
}

#[test]
fn deep_nesting_is_refused_at_its_257th_bracket() {
    for (start, open) in [
        ("Y = ", "("),
        ("Y = ", "["),
        ("Y = ", "f("),
        ("Y[", "("),
        ("x : ", "("),
        ("Y = A^", "("),
        ("Y = L", "^{x + L"),
        ("Y = sum[j]", "(sum[j]"),
        ("Y = (A | R", "((x)|R"),
        ("x == 1, ", "("),
        ("", "("),
        ("W ~ ", "["),
        ("y = ", "("),
        ("P(x) <- ", "("),
        ("Y[i] = A[", "("),
        ("Y = (A | not R(x), ", "(A | not R(x), "),
    ] {
        for closing in ["", ")", "]"] {
            let text = format!("{start}{}{}", open.repeat(100_000), closing.repeat(100_000));
            let reports = parse(&text).1;
            assert_eq!(reports.len(), 1, "{start}{open}");
        }
    }
    assert_eq!(errors(&format!("Y = {}A", "(".repeat(100_000))), [(1, 5 + 256)]);
    tree(&format!("Y = {}A{}", "(".repeat(256), ")".repeat(256)));
}

#[test]
fn long_index_expressions_are_refused_and_long_values_are_not() {
    for text in ["+1", "-x", "*(2)", "%N", "--1"] {
        assert_eq!(errors(&format!("Y[x{}]?", text.repeat(100_000))).len(), 1);
        assert_eq!(errors(&format!("x == 1, y = x{}?", text.repeat(100_000))).len(), 1);
    }
    assert_eq!(errors(&format!("Y[{}x]?", "-".repeat(100_000))), [(1, 3 + 256)]);
    for text in [" + A", " A", " / A", " * A[x+1]"] {
        tree(&format!("Y = A{}", text.repeat(100_000)));
    }
    // As a comparison it is no index expression, or a small one: nothing is deep.
    let (program, _) = parse(&format!("{}x{} == 1?", "(".repeat(200), " + 1 + 1 + 1)".repeat(200)));
    drop(program);
    assert_eq!(errors(&format!("p({}x{})", "(".repeat(200), " + 1 + 1 + 1)".repeat(200))).len(), 1);
}

#[test]
fn token_soup_is_read_or_refused() {
    let mut stream = common::stream("soup");
    for _ in 0..20_000 {
        let text = common::soup(&mut stream, 30);
        let (program, reports) = parse(&text);
        let inside = |span: tensor_logic::ast::Span| span.start <= span.end && span.end <= text.len();
        assert!(program.statements.iter().all(|statement| inside(statement.span)), "{text:?}");
        assert!(reports.iter().all(|report| inside(report.span)), "{text:?}");
        assert!(reports.windows(2).all(|pair| pair[0].span.start < pair[1].span.start), "{text:?}");
        assert!(reports.iter().all(|report| text.is_char_boundary(report.span.start)), "{text:?}");
    }
}

#[test]
fn megabytes_of_anything_take_a_moment() {
    let mut stream = common::stream("bytes");
    let bytes: Vec<u8> = (0..2_000_000).map(|_| stream.below(256) as u8).collect();
    parse(&String::from_utf8_lossy(&bytes));
    let ascii: String = bytes.iter().map(|byte| char::from(byte & 127)).collect();
    parse(&ascii);
    let line: String = ascii.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    parse(&line);
    for piece in common::PIECES {
        parse(&piece.repeat(60_000 / piece.len()));
        parse(&format!("{piece}\n").repeat(60_000 / (piece.len() + 1)));
        parse(&format!("{piece} ").repeat(60_000 / (piece.len() + 1)));
    }
}
