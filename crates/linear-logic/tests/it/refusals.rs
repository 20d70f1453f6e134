//! Refusals: every kind carries the fields that it promises and no others, and says what would mend the text.

use linear_logic::error::Kind;
use serde_json::{Value, json};

use crate::ill::{document, ill};

/// One refusal: its kind, the command that meets it, the definitions that the command reads, and the fields of the
/// refusal beside `kind`, `message` and `span`.
struct Example {
    kind: &'static str,
    args: &'static [&'static str],
    stdin: &'static str,
    fields: Value,
}

fn example(kind: &'static str, args: &'static [&'static str], fields: Value) -> Example {
    Example { kind, args, stdin: "", fields }
}

const INT: &str = "!(a -o a) -o a -o a";

/// Every kind at least once, in the order of the table of refusals.
fn examples() -> Vec<Example> {
    let banged_int = format!("!({INT})");
    vec![
        example("io", &["check", "no/such/file.ill"], json!({})),
        example("syntax", &["check", "-e", "add (2"], json!({})),
        example("limit", &["check", "-e", "2000000"], json!({})),
        example("unbound", &["check", "-e", "foo 2"], json!({"variable": "foo"})),
        Example {
            kind: "unbound",
            args: &["normalize", "-", "--main", "g"],
            stdin: "def f : int = 2;",
            fields: json!({"variable": "g"}),
        },
        example("unknown-type", &["check", "-e", "\\x:itn. x"], json!({"variable": "itn"})),
        example("arity", &["check", "-e", "add{a, b} 2"], json!({"expected": "1", "found": "2"})),
        example("arity", &["check", "-e", "\\x:a{b}. x"], json!({"expected": "0", "found": "1"})),
        example(
            "duplicate-name",
            &["check", "-e", "\\u. let x * x = u in x : a * a -o a"],
            json!({"variable": "x"}),
        ),
        example("type-mismatch", &["check", "-e", "mult 2 3"], json!({"expected": banged_int, "found": INT})),
        example(
            "type-mismatch",
            &["check", "-e", "<2, 3> : int * int"],
            json!({"expected": format!("({INT}) * ({INT})"), "found": "a pair"}),
        ),
        example("not-a-function", &["check", "-e", "\\x:a. x x"], json!({"found": "a"})),
        example("not-a-tensor", &["check", "-e", "\\x:a. let y * z = x in y"], json!({"found": "a"})),
        example("not-a-unit", &["check", "-e", "\\x:a. let () = x in ()"], json!({"found": "a"})),
        example("not-a-with", &["check", "-e", "fst 3"], json!({"found": INT})),
        example(
            "not-a-plus",
            &["check", "-e", "\\x:a. case x of inl y -> y | inr z -> z"],
            json!({"found": "a"}),
        ),
        example("not-banged", &["check", "-e", "\\x:a. derelict x"], json!({"found": "a"})),
        example("not-banged", &["check", "-e", "promote (2 for x) in x"], json!({"found": INT})),
        example("cannot-infer", &["check", "-e", "\\x. x"], json!({"variable": "x"})),
        // Only that of a λ is about a name.
        example("cannot-infer", &["check", "-e", "inl ()"], json!({})),
        example("linear-reuse", &["check", "-e", "\\x. x * x : a -o a * a"], json!({"variable": "x"})),
        example("linear-unused", &["check", "-e", "\\x y. x : a -o b -o a"], json!({"variable": "y"})),
        example(
            "box-capture",
            &["check", "-e", "\\m n r q. r [m q] [n q] : int -o int -o bint -o int"],
            json!({"variable": "m", "found": INT}),
        ),
        example(
            "box-capture",
            &["check", "--explicit", "-e", "\\x:!a. [derelict x]"],
            json!({"variable": "x", "found": "!a"}),
        ),
        example(
            "branch-mismatch",
            &["check", "-e", "\\x y. <x, y> : a -o b -o a & b"],
            json!({"variable": "x"}),
        ),
        example("differential-disabled", &["check", "-e", "3 coweaken{a -o a}"], json!({})),
        example("argument", &["denote", "-e", "2", "--arg", "[[1,2]]"], json!({})),
        example("dimension", &["denote", "-e", "swap{a, b}", "--dim", "a=2"], json!({"variable": "b"})),
        example("not-in-ring", &["denote", "-e", "2", "--arg", "[[\"1/2\"]]"], json!({"found": "1/2"})),
        example(
            "not-in-ring",
            &["denote", "-e", "2", "--ring", "rat", "--arg", "[[\"1/0\"]]"],
            json!({"found": "1/0"}),
        ),
        example("overflow", &["denote", "-e", "64", "--ring", "i64", "--arg", "[[2]]"], json!({})),
        example(
            "not-finite",
            &["denote", "-e", "add"],
            json!({"found": format!("({INT}) -o ({INT}) -o {INT}")}),
        ),
        example(
            "not-finite",
            &["poly", "-e", "add"],
            json!({"found": format!("({INT}) -o ({INT}) -o {INT}")}),
        ),
        example(
            "not-finite",
            &["denote", "-e", "swap{a, a}", "--carrier", "words"],
            json!({"found": "a * a -o a * a"}),
        ),
        example(
            "not-compilable",
            &["compile", "-e", "add"],
            json!({"found": format!("({INT}) -o ({INT}) -o {INT}")}),
        ),
        example("not-compilable", &["compile", "-e", "tt"], json!({"found": "a & a -o a"})),
        example("fuel", &["normalize", "-e", "mult [2] 3", "--fuel", "1"], json!({})),
        example("unsupported", &["normalize", "--differential", "-e", "3 coweaken{a -o a}"], json!({})),
        example(
            "unsupported",
            &["check", "--sequent", "--differential", "-e", "3 coweaken{a -o a}"],
            json!({}),
        ),
    ]
}

/// What a refusal has beside `kind`, `message`, `span` and `help`.
fn fields(error: &Value) -> Value {
    let fields = error.as_object().unwrap().iter();
    let further = fields.filter(|(key, _)| !["kind", "message", "span", "help"].contains(&key.as_str()));
    further.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn only_error(example: &Example) -> Value {
    let (status, document) = document(example.args, example.stdin);
    assert_eq!(status, Some(1), "{:?}", example.args);
    let errors = document["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 1, "{:?}: {document}", example.args);
    errors[0].clone()
}

#[test]
fn every_kind_carries_the_fields_that_it_promises() {
    let mut wrong = Vec::new();
    for example in examples() {
        let error = only_error(&example);
        if error["kind"] != example.kind || fields(&error) != example.fields {
            wrong.push(format!("{:?}: {error}", example.args));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for kind in Kind::ALL {
        let examples: Vec<Example> =
            examples().into_iter().filter(|example| example.kind == kind.name()).collect();
        assert!(!examples.is_empty(), "{} is never refused here", kind.name());
        for (example, field) in examples.iter().flat_map(|e| kind.fields().iter().map(move |f| (e, f))) {
            assert!(example.fields[field.name()].is_string(), "{:?} without {}", example.args, field.name());
        }
    }
}

/// Two formulas that differ are never shown alike: a parameter and an atom of one name are printed apart.
#[test]
fn what_is_wanted_is_never_what_is_found() {
    for text in [
        "def f{a} : a -o a = id;",
        "def f{a} : !a -o a = \\x. (id : !a -o a) x;",
        "def f{a} : (a -o a) & a = <id, id>;",
        "def f{a, b} : a * b -o b * a = swap;",
        "def f{a} : int{a} = add 2 3;",
        "def f{a} : a -o int{a} -o a = \\x n. rec [id] x n;",
        "type t{b} = b -o a; def f{a} : t{a} = id;",
        "def f{a} : a + a -o a = \\x. case x of inl y -> y | inr y -> id y;",
        "def f{a} : a -o a = \\x:a. (id x : a);",
        // An abbreviation hides behind a parameter of its name.
        "def f{int} : int -o int = \\x. add 2 3;",
    ] {
        let (status, document) = document(&["check", "-"], text);
        assert_eq!(status, Some(1), "{text}");
        let error = &document["errors"][0];
        assert_eq!(error["kind"], "type-mismatch", "{text}: {error}");
        assert_ne!(error["expected"], error["found"], "{text}: {error}");
        let message = error["message"].as_str().unwrap();
        let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        assert!(quoted.len() >= 2 && quoted[0] != quoted[1], "{text}: {message}");
    }
}

/// What mends a text is said, and what is said mends it: the text with the help in place of what stood there is accepted
/// or refused elsewhere.
#[test]
fn helps_say_what_to_write() {
    for (text, help, mended) in [
        ("mult 2 3", "write `[2]`", "mult [2] 3"),
        ("mult (add 1 1) 3", "write `[add 1 1]`", "mult [add 1 1] 3"),
        ("\\q:!(a -o a). \\z:a. q z", "write `derelict q`", "\\q:!(a -o a). \\z:a. derelict q z"),
        ("\\n:!int. add n 1", "write `derelict n`", "\\n:!int. add (derelict n) 1"),
        ("\\u:!(a & b). fst u", "write `derelict u`", "\\u:!(a & b). fst (derelict u)"),
        ("\\x:a. derelict x", "leave `derelict` away", "\\x:a. x"),
        ("promote (2 for n) in n", "write `[2]`", "promote ([2] for n) in n"),
        ("swap : b * c -o c * b", "write `swap{b, c}`", "swap{b, c} : b * c -o c * b"),
        ("\\n:int{b}. add n 1", "write `add{b}`", "\\n:int{b}. add{b} n 1"),
        ("add (add 2) 3", "an argument of type `int` is missing", "add (add 2 2) 3"),
        ("ad 2 3", "did you mean `add`?", "add 2 3"),
        ("\\count:int. coutn", "did you mean `count`?", "\\count:int. count"),
        ("2 : itn", "did you mean `int`?", "2 : int"),
        ("\\x:nat. x", "declare it: `atom nat;`", "\\x:n. x"),
        ("add{a, b} 2", "write `add{A}`", "add{a} 2"),
        ("3{a, b}", "write `3{A}`", "3{a}"),
        ("\\x:a{b}. x", "write `a` without braces", "\\x:a. x"),
        ("\\u:a * b. snd u", "write `let x * y = … in …`", "\\u:a * b. let x * y = u in x * y"),
        ("\\u:a & b. let x * y = u in x", "write `fst …` or `snd …`", "\\u:a & b. fst u"),
        ("\\x:a. [x]", "give `x` the type `!a`", "\\x:!a. [x]"),
        ("\\f:int. mult [f] 2", "give `f` the type `!int`", "\\f:!int. mult [derelict f] 2"),
        ("inl ()", "write `inl{A} …`, with the type of the other side", "inl{a} ()"),
        ("\\x. x", "write `\\x:A. …`, or `(… : A -o B)` around it", "\\x:a. x"),
    ] {
        let (_, answer) = document(&["check", "-e", text], "");
        assert_eq!(answer["errors"][0]["help"], help, "{text}: {answer}");
        let (status, answer) = document(&["check", "-e", mended], "");
        assert_eq!(status, Some(0), "{mended}: {answer}");
    }
    // Where every structural rule is written by hand, the rule is what mends.
    for (text, help) in [
        ("\\x:!a. x * x", "write `copy x as x1, x2 in …`"),
        ("\\x:!a. ()", "write `discard x in …`"),
        ("\\x:!a. [derelict x]", "write `promote (x for x') in …` with `x'` inside"),
    ] {
        let (_, answer) = document(&["check", "--explicit", "-e", text], "");
        assert_eq!(answer["errors"][0]["help"], help, "{text}: {answer}");
    }
    // A term with a linear variable cannot be put in a box.
    let (_, answer) = document(&["check", "-e", "\\n:int. mult n 2"], "");
    let help = "only a term that mentions no linear variable can be put in a box";
    assert_eq!(answer["errors"][0]["help"], help, "{answer}");
    // A variable that the term binds itself is none of those.
    let (_, answer) = document(&["check", "-e", "mult (\\q:!(a -o a). \\z:a. z) 2"], "");
    assert_eq!(answer["errors"][0]["help"], "write `[\\q:!(a -o a). \\z:a. z]`", "{answer}");
    // Nobody wants to read a long term again.
    let long = format!("mult ({}2{}) 3", "add 1 (".repeat(20), ")".repeat(20));
    let (_, answer) = document(&["check", "-e", &long], "");
    assert_eq!(answer["errors"][0]["help"], "put it in a box: `[…]`");
}

#[test]
fn messages_fold_what_fields_expand() {
    let (_, answer) = document(&["check", "-e", "mult 2 3"], "");
    let error = &answer["errors"][0];
    assert_eq!(error["message"], "the type `!int` is wanted, and this has the type `int`");
    assert_eq!(error["expected"], format!("!({INT})"));
    let (_, answer) = document(&["check", "-"], "def f{a} : a -o a = id;");
    let error = &answer["errors"][0];
    assert_eq!(error["message"], "the type `{a} -o {a}` is wanted, and this has the type `a -o a`");
    assert_eq!((&error["expected"], &error["found"]), (&json!("{a} -o {a}"), &json!("a -o a")));
}

#[test]
fn refusals_are_drawn_with_their_help() {
    let output = ill(["check", "-e", "mult 2 3"], b"");
    let drawn = "<expr>:1:6: error[type-mismatch]: the type `!int` is wanted, and this has the type `int`
  mult 2 3
       ^
  help: write `[2]`
";
    assert_eq!(String::from_utf8_lossy(&output.stderr), drawn);
    let output = ill(["denote", "-e", "swap{a, b}", "--dim", "a=2"], b"");
    let drawn = "error[dimension]: the dimension of `b` is not known\n  help: give it: `--dim b=N`\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), drawn);
}
