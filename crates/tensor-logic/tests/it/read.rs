//! The refusals of the stage "reading": each code where the specification's table puts it, each
//! refused in one program and accepted in another.

use crate::common;
use tensor_logic::error::{Code, Places};
use tensor_logic::function::{Function, UserFunction, UserFunctions};
use tensor_logic::read::{decode, read};

/// Code and place of every refusal, and the texts of the first.
fn refusals(text: &str) -> Vec<(&'static str, usize, usize)> {
    let places = Places::new(text);
    let reports = read(text, Vec::new(), &UserFunctions::default()).err().unwrap_or_default();
    let place = |span: tensor_logic::ast::Span| places.of(span.start);
    reports.iter().map(|report| (report.code.name(), place(report.span).0, place(report.span).1)).collect()
}

/// The message and the help of the first refusal.
fn said(text: &str) -> String {
    let reports = read(text, Vec::new(), &UserFunctions::default()).err().unwrap_or_default();
    reports.first().map_or(String::new(), |report| {
        format!("{} | {}", report.message, report.help.as_deref().unwrap_or(""))
    })
}

#[test]
fn the_table_of_the_specification() {
    for (text, code, column, words) in [
        ("Y = step(W[i X[i])", "syntax", 14, &["`X`", "`]`"][..]),
        ("M(1, loves)", "lowercase-constant", 6, &["\"loves\""]),
        ("Y = w[i] X[i]", "lowercase-tensor", 5, &["`W`"]),
        ("X = [1, 2]; Y = sigm(X[i])", "unknown-function", 17, &["`sig`"]),
        ("X = [1, 2]; Y = relu(X[i], 3)", "function-arity", 17, &["1 argument"]),
        ("X = [1, 2]; X? @explian", "unknown-directive", 16, &["`@explain`"]),
        ("W ~ 1; Loss = W^2; Loss? @minimize(step=3)", "bad-argument", 36, &["`steps`"]),
        ("X[i] : rael", "unknown-type", 8, &["`real`"]),
        ("1.5 :: Rain()", "bad-probability", 1, &["1.5"]),
    ] {
        assert_eq!(refusals(text), [(code, 1, column)], "{text}");
        assert!(words.iter().all(|word| said(text).contains(word)), "{}", said(text));
    }
}

#[test]
fn places_of_refusals() {
    for (text, wanted) in [
        // Small letters for constants.
        ("R(x, 1)", &[("lowercase-constant", 3)][..]),
        ("R(1, x, y)", &[("lowercase-constant", 6)]),
        ("R(x+1)", &[("lowercase-constant", 3)]),
        ("R(_, A)", &[("lowercase-constant", 3)]),
        ("x : 3; R(x, A)", &[("lowercase-constant", 10)]),
        ("Road(A, b) = 4", &[("lowercase-constant", 9)]),
        ("Road(a, b) = -4", &[("lowercase-constant", 6)]),
        ("0.5 :: Rain(mon)", &[("lowercase-constant", 13)]),
        ("R(x, 1) : count", &[("lowercase-constant", 3)]),
        ("R(x, y); R(A, -1); R(); R(N+1); x : 3; S(x) = 1; D(y) min= 0; S(A, x) = 1 | x < 2", &[]),
        ("W[i, 1]; W[i]; X[0, j] = 1", &[]),
        // Small letters for tensors.
        ("y[i] = A[i]", &[("lowercase-tensor", 1)]),
        ("y = A[i]", &[("lowercase-tensor", 1)]),
        ("parent(Ann, Bob)", &[("lowercase-tensor", 1)]),
        (
            "P(x) <- parent(x, y), not dead(x), rain()",
            &[("lowercase-tensor", 9), ("lowercase-tensor", 27), ("lowercase-tensor", 36)],
        ),
        ("y?", &[("lowercase-tensor", 1)]),
        ("loss? @minimize()", &[("lowercase-tensor", 1)]),
        ("parent(Ann, x)?", &[("lowercase-tensor", 1)]),
        ("w ~ 1", &[("lowercase-tensor", 1)]),
        ("\"a.csv\" = y", &[("lowercase-tensor", 11)]),
        // Functions.
        ("Y = f(A, g(B))", &[("unknown-function", 5), ("unknown-function", 10)]),
        ("Y = 1 | R(x), h(x) > 2", &[("unknown-function", 15)]),
        ("f(A[x]) > 2, R(x)?", &[("unknown-function", 1)]),
        ("Y = max(A, B) + max[j](A[j]) + sig(A, 2) + leaky(A, 0.1)", &[]),
        ("Y = concat(A[i], B[i], C[i])", &[]),
        ("Y = max(A)", &[("function-arity", 5)]),
        ("Y = max[j](A[j], 2)", &[("function-arity", 5)]),
        ("Y = sum(A[j])", &[("function-arity", 5)]),
        ("Y = relu[j](A[j])", &[("function-arity", 5)]),
        ("Y = softmax(A[i], 2)", &[("function-arity", 5)]),
        ("Y = lnorm[i](A[i], 1e-10) + softmax[i](A[i])", &[]),
        ("Y = leaky(A)", &[("function-arity", 5)]),
        ("W ~ norml(0, 1)", &[("unknown-function", 5)]),
        ("W ~ normal(0)", &[("function-arity", 5)]),
        ("W ~ normal", &[("function-arity", 5)]),
        ("W ~ glorot; V ~ he(); U ~ uniform(-1, 1)", &[]),
        ("W ~ normal(0, A)", &[("bad-argument", 15)]),
        // Directives.
        ("@explain", &[("unknown-directive", 1)]),
        ("Y? @const(Y)", &[("unknown-directive", 4)]),
        ("@tol(1e-9); @rounds(10); @seed(7); Y = 1; @const(Y, Z); Z = 2", &[]),
        ("@tol", &[("bad-argument", 1)]),
        ("@tol(-1)", &[("bad-argument", 6)]),
        ("@tol(1, 2)", &[("bad-argument", 9)]),
        ("@seed(1.5)", &[("bad-argument", 7)]),
        ("@rounds(0)", &[("bad-argument", 9)]),
        ("W = 1; @const(V)", &[("bad-argument", 15)]),
        ("@const(\"W\")", &[("bad-argument", 8)]),
        ("Y? @explain(1)", &[("bad-argument", 13)]),
        ("Y? @sample(n=0)", &[("bad-argument", 12)]),
        ("Y? @sample(10)", &[("bad-argument", 12)]),
        ("Y? @sample(n=10, seed=7) @explain", &[]),
        ("Y? @semiring(maxtims)", &[("bad-argument", 14)]),
        ("Y? @semiring()", &[("bad-argument", 4)]),
        ("Y? @semiring(maxtimes)", &[]),
        ("Y? @minimize(opt=adm)", &[("bad-argument", 14)]),
        ("Y? @minimize(opt=adamw, lr=0.1, beta1=0.9, steps=5, clip=1, weight_decay=0.1)", &[]),
        ("Y? @minimize(epochs=2, batch=s, size=3, shuffle=1)", &[]),
        ("Y? @minimize(lr=0.1, lr=0.2)", &[("bad-argument", 22)]),
        ("Y? @minimize(lr=-1)", &[("bad-argument", 14)]),
        ("Y? @minimize(lr=0.1, schedule=cosine, warmup=10, min_lr=0.01)", &[]),
        ("Y? @minimize(schedule=linear, min_lr=0.001)", &[]),
        ("Y? @minimize(schedule=constant, warmup=5)", &[]),
        ("Y? @minimize(schedule=cosin)", &[("bad-argument", 14)]),
        ("Y? @minimize(warmup=0.5)", &[("bad-argument", 14)]),
        ("Y? @minimize(min_lr=0.01)", &[("bad-argument", 14)]),
        ("Y? @minimize(schedule=constant, min_lr=0.01)", &[("bad-argument", 33)]),
        ("Y? @minimize(min_lr=0.2, schedule=linear, lr=0.1)", &[("bad-argument", 14)]),
        ("Y? @minimize(steps=2.5)", &[("bad-argument", 14)]),
        ("Y? @minimize(momentum=0.5)", &[("bad-argument", 14)]),
        ("Y? @minimize(opt=sgd, momentum=0.5)", &[]),
        ("Y? @minimize(batch=S, size=2)", &[("bad-argument", 14)]),
        ("Y? @minimize(batch=s)", &[("bad-argument", 14)]),
        ("Y? @minimize(shuffle=2, batch=s, size=1)", &[("bad-argument", 14)]),
        ("R = \"a.csv\" as valeus", &[("bad-argument", 16)]),
        ("R = \"a.csv\" as values, header; W = \"m.safetensors\" as w", &[]),
        // Types and probabilities.
        ("R(x) : cuont", &[("unknown-type", 8)]),
        ("R(x) : topk", &[("unknown-type", 8)]),
        ("R(x) : count(3)", &[("unknown-type", 8)]),
        ("W : rel ~ 1", &[("unknown-type", 5)]),
        ("2 :: R(A)", &[("bad-probability", 1)]),
        // In order of place, over all codes.
        (
            "Y = f(A); M(1, a); X : rael",
            &[("unknown-function", 5), ("lowercase-constant", 16), ("unknown-type", 24)],
        ),
        ("0.5 :: R(A)", &[]),
        ("R(x) : topk(0)", &[("unknown-type", 8)]),
        ("0.5 :: R(A); Y = f(A)", &[("unknown-function", 18)]),
        ("R(x) : prob; Y? @embed(D=2); Y? @semiring(addmult); Y? @minimize(lift=yes)", &[]),
        ("R(A); Emb = [[1]]; R(x)? @embed(emb=Emb, T=0.5, certify=no)", &[]),
        ("R(A); R(x)? @embed(emb=Emb)", &[("bad-argument", 20)]),
        (
            "R(A); R(x)? @embed(emb=randon, theta=2, T=-1, D=0)",
            &[("bad-argument", 20), ("bad-argument", 32), ("bad-argument", 41), ("bad-argument", 47)],
        ),
        (
            "R(A); Emb = [[1]]; R(x)? @embed(emb=Emb, D=3, seed=2)",
            &[("bad-argument", 42), ("bad-argument", 47)],
        ),
        ("R(A); R(x)? @embed(certify=maybe)", &[("bad-argument", 20)]),
        ("R(A); R(x)? @sample(n=3) @embed", &[("unknown-directive", 26)]),
        ("Z = 1; Z | w=1 ? @embed", &[("unknown-directive", 18)]),
        ("R(x) : topk(3); @exclusive(R, 0)", &[]),
        ("Y? @minimize(lift=yes)", &[]),
        ("Y? @minimize(lift=1)", &[("bad-argument", 14)]),
        ("@include(\"a.tl\")", &[("bad-argument", 1)]),
        ("@export(X, i)", &[]),
        ("@export(3)", &[("bad-argument", 9)]),
        ("Y? @minimize(lift=no)", &[]),
    ] {
        let wanted: Vec<_> = wanted.iter().map(|(code, column)| (*code, 1, *column)).collect();
        assert_eq!(refusals(text), wanted, "{text}");
    }
}

#[test]
fn syntax_errors_and_others_of_the_stage_stand_together() {
    let text = "Y = f(A)\nX = (\n\n)\nM(1, a)\n0.5 :: R(A)\nY = )";
    let wanted =
        [("unknown-function", 1, 5), ("syntax", 4, 1), ("lowercase-constant", 5, 6), ("syntax", 7, 5)];
    assert_eq!(refusals(text), wanted);
}

#[test]
fn the_corpus_is_read() {
    for (name, text) in common::programs() {
        let reading = ["refuse-01-syntax", "refuse-02-lowercase-constant", "refuse-15-unknown-function"];
        assert_eq!(
            refusals(&text).is_empty(),
            !reading.contains(&name.as_str()),
            "{name}: {:?}",
            refusals(&text)
        );
    }
}

#[test]
fn a_registered_function_is_known_with_its_arity() {
    let mut functions = UserFunctions::default();
    let value = std::sync::Arc::new(|x: &[f64]| x.iter().sum::<f64>());
    let derivative = std::sync::Arc::new(|_: &[f64], _: usize| 1.0);
    functions.register(UserFunction { name: "total".to_owned(), arity: 3, value, derivative });
    let codes = |text: &str| -> Vec<Code> {
        let reports = read(text, Vec::new(), &functions).err().unwrap_or_default();
        reports.iter().map(|report| report.code).collect()
    };
    assert_eq!(codes("Y = total(1, 2, A[i])"), []);
    assert_eq!(codes("Y = total(1)"), [Code::FunctionArity]);
    assert_eq!(codes("Y = totl(1)"), [Code::UnknownFunction]);
    assert!(matches!(functions.find("total"), Some(Function::User(_))));
}

#[test]
fn bytes_that_are_no_text_are_syntax_errors_at_their_place() {
    let (text, broken) = decode(b"Y = 1 # \xff\xfe\nX = \"\xc3\"\nZ = \xe2\x82\n");
    let places = Places::new(&text);
    let reports = read(&text, broken, &UserFunctions::default()).err().unwrap_or_default();
    let found: Vec<_> = reports.iter().map(|report| places.of(report.span.start)).collect();
    assert_eq!(found, [(1, 9), (2, 6), (3, 5)]);
    assert!(reports.iter().all(|report| report.code == Code::Syntax));
}

#[test]
fn anything_is_read_or_refused() {
    let mut stream = common::stream("read soup");
    for _ in 0..20_000 {
        refusals(&common::soup(&mut stream, 30));
    }
    let bytes: Vec<u8> = (0..500_000).map(|_| stream.below(256) as u8).collect();
    let (text, broken) = decode(&bytes);
    assert!(read(&text, broken, &UserFunctions::default()).is_err());
    // One line with very many mistakes takes a moment, not a minute.
    assert_eq!(refusals(&format!("Y = {}1", "w[i] f(A) ".repeat(50_000))).len(), 100_000);
}

#[test]
fn columns_count_characters_in_lines_of_any_length() {
    let text = format!("Y = 1\n{}é·x′\r\n", "é€ab".repeat(2_000));
    let places = Places::new(&text);
    for (offset, _) in text.char_indices() {
        let before = &text[..offset];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        assert_eq!(places.of(offset), (line, before[start..].chars().count() + 1));
    }
}
