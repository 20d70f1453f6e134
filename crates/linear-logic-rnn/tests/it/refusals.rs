//! What is refused, and how: every kind that a cell can be refused with, and documents that mean harm. Nothing
//! panics, nothing takes long, and every message says where.
use std::time::{Duration, Instant};

use linear_logic_rnn::document::{answer, refused};
use linear_logic_rnn::error::{Kind, Refusal};
use serde_json::{Value, json};

/// The refusal of a document, which must come quickly and be short enough to read.
fn refusal(name: &str, text: &str) -> Refusal {
    let start = Instant::now();
    let found = answer(text, false);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(60), "{name}: {took:?}");
    let Err(refusal) = found else { panic!("{name}: not refused") };
    assert!(refusal.message.len() < 2000, "{name}: a message of {} bytes", refusal.message.len());
    let document = refused(std::slice::from_ref(&refusal));
    assert_eq!(document["errors"][0]["kind"], refusal.kind.name());
    refusal
}

/// The document is refused with this kind, and the message says all of this.
#[track_caller]
fn check(kind: &str, document: &Value, says: &[&str]) {
    check_text(kind, &document.to_string(), says);
}

#[track_caller]
fn check_text(kind: &str, text: &str, says: &[&str]) {
    let name: String = text.chars().take(200).collect();
    let found = refusal(&name, text);
    assert_eq!(found.kind.name(), kind, "{name}: {found}");
    for part in says {
        assert!(found.message.contains(part), "{name}: `{part}` is not in: {}", found.message);
    }
}

/// A document of `ll` with some keys of `options` changed.
fn linear_logic(change: &Value) -> Value {
    let mut document = json!({"cell": "ll", "sizes": {"input": 2, "hidden": 2, "aux": 2},
        "options": {"preset": "paper", "v": "full", "lambda": [1]}, "inputs": [[1, 0]]});
    if let Some(change) = change.as_object() {
        for (key, value) in change {
            document["options"][key] = value.clone();
        }
    }
    document
}

/// A document of a master with this proof and these slots.
fn master(proof: &str, slots: &Value) -> Value {
    json!({"cell": "master", "sizes": {"input": 2, "hidden": 2}, "inputs": [[1, 0]],
        "options": {"masters": [{"proof": proof, "state": "h", "dims": {"h": 2}, "slots": slots}]}})
}

/// An Elman cell of one unit with everything given, and one key changed.
fn elman(key: &str, value: &Value) -> Value {
    let mut document = json!({"cell": "elman", "sizes": {"input": 2, "hidden": 1},
        "weights": {"H": [[1]], "U": [[1, 2]], "B": [0]}, "inputs": [[1, 0]]});
    match key.split_once('.') {
        Some((outer, inner)) => document[outer][inner] = value.clone(),
        None => document[key] = value.clone(),
    }
    document
}

#[test]
fn a_cell_that_does_not_exist() {
    check("unknown-cell", &json!({"cell": "lstn"}), &["`lstn`", "did you mean \"lstm\""]);
    // The cell is judged before everything else that may be wrong.
    check("unknown-cell", &json!({"cell": "gruu", "sizes": 1, "weights": 2, "inputs": "x"}), &["\"gru\""]);
    check("unknown-cell", &json!({"cell": "é".repeat(1_000_000)}), &["…"]);
}

#[test]
fn keys() {
    check_text("config", "{", &["line 1"]);
    check_text("config", "[]", &[]);
    check_text("config", "", &[]);
    check("config", &json!({}), &["cell"]);
    check("config", &json!({"cell": 5}), &["cell"]);
    check("config", &elman("wieghts", &json!({})), &["`wieghts`", "did you mean \"weights\""]);
    check("config", &elman("sizes.hiden", &json!(1)), &["sizes", "did you mean \"hidden\""]);
    check("config", &elman("options", &json!({"acts": "relu"})), &["options", "did you mean \"act\""]);
    check("config", &elman("options", &json!({"zzz": 1})), &["`zzz`", "there are act, hh, "]);
    check("config", &elman("options", &json!({"hh": true})), &["`hh`", "`elman`", "it has `act`"]);
    check("config", &elman("options", &json!({"preset": "paper"})), &["`preset`", "`elman`"]);
    check("config", &elman("options", &json!([1])), &["options"]);
    check("config", &elman("weights.W", &json!([1])), &["`W`", "H, U, B"]);
    check("config", &elman("weights", &json!({"H": [[1]], "U": [[1, 2]]})), &["`B`", "missing"]);
    check("config", &elman("weights", &json!([1])), &["weights"]);
    check("config", &elman("weights", &json!(null)), &["`H`", "missing"]);
    let twice = r#"{"cell":"elman","sizes":{"input":1,"hidden":1},"weights":{"H":[[1]],"U":[[1]],"B":[0],"H":[[2]]},"inputs":[[1]]}"#;
    check_text("config", twice, &["`H`", "twice", "line 1"]);
    check_text("config", r#"{"cell":"elman","cell":"gru"}"#, &["`cell`", "twice"]);
}

#[test]
fn values() {
    for (key, value) in [
        ("dtype", json!("f16")),
        ("report", json!("some")),
        ("grad", json!("sum")),
        ("sizes.hidden", json!(0)),
        ("sizes.hidden", json!(-1)),
        ("sizes.hidden", json!(1.5)),
        ("sizes.hidden", json!("1")),
        ("sizes.hidden", json!(null)),
        ("sizes.hidden", json!(1_000_000_000)),
        ("sizes.hidden", json!(1_000_000)),
        ("sizes.input", json!(u64::MAX)),
        ("sizes.output", json!(0)),
        ("options", json!({"act": "sigmoid"})),
    ] {
        check("config", &elman(key, &value), &[]);
    }
    let mut readout = elman("sizes.output", &json!(1));
    readout["sizes"]["readout"] = json!(u64::MAX);
    check("config", &readout, &["readout"]);
    for change in [
        json!({"preset": null}),
        json!({"preset": "papers"}),
        json!({"v": "sparse"}),
        json!({"lambda": [1.5]}),
        json!({"lambda": [-1]}),
        json!({"lambda": [true]}),
        json!({"lambda": 1}),
        json!({"pi": [10]}),
        json!({"order": "last"}),
        json!({"gate_source": "table"}),
        json!({"gate_source": "table", "table_len": 0}),
        json!({"gate_source": "table", "table_len": u64::MAX}),
        json!({"gate_source": "table", "table_len": 1_000_000_000}),
        json!({"gate_source": "table", "table_len": 1, "gate_act": "one"}),
        json!({"table_len": 3}),
        json!({"v": "diag", "v_norm": "column-softmax"}),
        json!({"gate_bias": 1e300}),
        json!({"masters": []}),
        json!({"powers": [1]}),
    ] {
        check("config", &linear_logic(&change), &[]);
    }
    let mut identity = linear_logic(&json!({"project": "identity"}));
    identity["sizes"]["aux"] = json!(3);
    check("config", &identity, &["project", "hidden"]);
    let mut spaces = linear_logic(&json!({"v": "two-space", "pi": ["10"]}));
    check("config", &spaces, &["aux2"]);
    spaces["sizes"]["aux"] = json!(null);
    check("config", &spaces, &["aux"]);
    let exclusive = json!({"cell": "elman", "sizes": {"input": 2, "hidden": 1},
        "weights": {"H": [[1]], "U": [[1, 2]], "B": [0]}, "inputs": [[1, 0]], "tokens": [0]});
    check("config", &exclusive, &["`inputs`", "`tokens`"]);
    check("config", &elman("inputs", &json!(null)), &["missing"]);
    check_text("config", &elman("weights.B", &json!([0])).to_string().replace("[0]", "[1e999]"), &["range"]);
    check_text("config", &elman("weights.B", &json!([7])).to_string().replace("[7]", "[NaN]"), &["line 1"]);
    let mut single = elman("weights.B", &json!([1e300]));
    single["dtype"] = json!("f32");
    check("config", &single, &["`B`", "finite"]);
    let mut single = elman("inputs", &json!([[1, 0], [1e300, 0]]));
    single["dtype"] = json!("f32");
    check("config", &single, &["input 1", "finite"]);
    for (kind, options) in [
        ("ntm", json!({"powers": []})),
        ("ntm", json!({"pattern_powers": [1]})),
        ("pattern-ntm", json!({"pattern_powers": []})),
    ] {
        let sizes = json!({"input": 1, "hidden": 1, "addresses": 2, "content": 1});
        check(
            "config",
            &json!({"cell": kind, "sizes": sizes, "options": options, "inputs": []}),
            &["powers"],
        );
    }
    for key in ["addresses", "content", "hidden", "input"] {
        let mut sizes = json!({"input": 1, "hidden": 1, "addresses": 2, "content": 1});
        sizes[key] = json!(null);
        check("config", &json!({"cell": "ntm", "sizes": sizes}), &[key]);
    }
}

#[test]
fn shapes() {
    for (name, value) in [
        ("H", json!([1])),
        ("H", json!([[1, 2]])),
        ("H", json!([[[1]]])),
        ("U", json!([[1], [2]])),
        ("U", json!([[1, "2"]])),
        ("U", json!([[1, null]])),
        ("U", json!([])),
        ("B", json!(0)),
        ("B", json!({})),
        ("B", json!([true])),
    ] {
        check("shape", &elman(&format!("weights.{name}"), &value), &[&format!("`{name}`")]);
    }
    check("shape", &elman("h0", &json!([1, 2])), &["`h0`"]);
    check("shape", &elman("h0", &json!(1)), &["`h0`"]);
    check("shape", &elman("x0", &json!([1])), &["`x0`"]);
    check("shape", &elman("inputs", &json!([[1, 0], [1]])), &["input 1"]);
    check("shape", &elman("inputs", &json!([[1, 0], 7])), &["input 1"]);
    check("shape", &elman("inputs", &json!("1,0")), &["inputs"]);
    for token in [json!(2), json!(-1), json!(0.5), json!("0"), json!(u64::MAX)] {
        let mut document = elman("inputs", &json!(null));
        document["tokens"] = json!([1, token]);
        check("shape", &document, &["token 1", "2 inputs"]);
    }
    let slots = json!([{"kind": "constant", "value": [[1, 0]]}]);
    check("shape", &master(r"\v. v : (h -o h) -o h -o h", &slots), &["masters[0].slots[0]"]);
    // The cell is judged before its weights.
    let mut both = linear_logic(&json!({"lambda": ["two"]}));
    both["weights"] = json!({"V": 1});
    check("proof", &both, &["lambda[0]"]);
}

#[test]
fn proofs() {
    let inside = |document: &Value| {
        let found = refusal("proof", &document.to_string());
        assert_eq!(found.kind, Kind::Proof, "{found}");
        (found.message, found.inside)
    };
    for (change, place, inner) in [
        (json!({"lambda": [1, "\\x. x"]}), "lambda[1]", Some("type-mismatch")),
        (json!({"lambda": [1_000_000_000]}), "lambda[0]", Some("limit")),
        (json!({"lambda": ["2 3"]}), "lambda[0]", None),
        (json!({"lambda": ["0b10"]}), "lambda[0]", Some("type-mismatch")),
        (json!({"lambda": [""]}), "lambda[0]", Some("syntax")),
        (json!({"pi": ["2"]}), "pi[0]", Some("type-mismatch")),
        (json!({"pi": ["10", "1 0"]}), "pi[1]", None),
        (json!({"pi": ["nosuch"]}), "pi[0]", Some("unbound")),
    ] {
        let (message, found) = inside(&linear_logic(&change));
        assert!(message.contains(place), "{change}: {message}");
        let found = found.unwrap_or_default();
        assert!(found["kind"].is_string(), "{change}: {found}");
        if let Some(inner) = inner {
            assert_eq!(found["kind"], inner, "{change}");
        }
    }
    let input = json!([{"kind": "input"}]);
    for (proof, slots) in [
        // No type, another number of slots, another end, a slot that is no operator.
        (r"\v. v", input.clone()),
        (r"\v. v : (h -o h) -o h -o h", json!([])),
        (r"\v. v : (k -o k) -o k -o k", input.clone()),
        (r"\v. v : !(h -o h) -o h -o h", input.clone()),
        (
            r"\n v. derelict n v : !int{h} -o !(h -o h) -o h -o h",
            json!([{"kind": "input"}, {"kind": "input"}]),
        ),
        (r"\v. v : (h -o h) -o h -o h", json!([{"kind": "input", "from": "k"}])),
        (r"\v. v : (h -o h) -o h -o h", json!([{"kind": "program", "list": ["2"]}])),
        (r"\x. x * x : h -o h * h", json!([])),
        ("2", json!([])),
    ] {
        let (message, _) = inside(&master(proof, &slots));
        assert!(message.contains("masters[0]") || message.contains("slot"), "{proof}: {message}");
    }
    let plain = r"\v. v : (h -o h) -o h -o h";
    for slots in [
        json!([{"kind": "program"}]),
        json!([{"kind": "program", "list": []}]),
        json!([{"kind": "input", "list": ["1"]}]),
        json!([{"kind": "input", "value": [[1]]}]),
        json!([{"kind": "input", "act": "relu"}]),
        json!([{"kind": "param", "shape": "diag"}]),
        json!([{"kind": "data", "act": "softmax"}]),
        json!([{"kind": "constant"}]),
        json!([{"kind": "input", "share": [0, 0]}]),
        json!([{"kind": "input", "share": [7, 0]}]),
        json!([{"kind": "input", "share": [0]}]),
        json!([{"kind": "inputs"}]),
        json!([{"kind": "input", "colour": 1}]),
    ] {
        check("config", &master(plain, &slots), &[]);
    }
    for (key, value) in [
        ("dims", json!({})),
        ("dims", json!({"h": 0})),
        ("dims", json!({"h": 3})),
        ("dims", json!({"h": u64::MAX})),
        ("project", json!({"share": 0})),
        ("project", json!({"share": 9})),
        ("project", json!("none")),
        ("place", json!("side")),
    ] {
        let mut document = master(plain, &input);
        document["options"]["masters"][0][key] = value;
        check("config", &document, &[]);
    }
}

#[test]
fn words_that_a_diagonal_v_cannot_tell_apart() {
    for pi in [json!(["10", "01"]), json!(["0", "11", "0"]), json!(["flip 0b10", "10"])] {
        check("degenerate-pi", &linear_logic(&json!({"v": "diag", "pi": pi})), &["allow_degenerate"]);
    }
    let three = json!({"v": "diag", "window": 3, "pi": ["201", "012"]});
    check("degenerate-pi", &linear_logic(&three), &["`201` and `012`"]);
}

#[test]
fn windows_that_words_do_not_have() {
    for (options, part) in [
        (json!({"window": 1, "pi": ["0"]}), "2 to 10 places"),
        (json!({"window": 11, "pi": ["0"]}), "2 to 10 places"),
        (json!({"window": 3, "lambda": [1]}), "there is none"),
        (json!({"window": 3, "pi": ["2"], "x0": "first"}), "before the first input"),
    ] {
        check("config", &linear_logic(&options), &[part]);
    }
    // A digit beyond the window is no digit, so the text is one of the language.
    check("proof", &linear_logic(&json!({"window": 3, "pi": ["3"]})), &["pi[0]"]);
}

#[test]
fn texts_that_mean_harm() {
    let deep = 10_000;
    let long = 1_000_000;
    let binders: String = (0..deep).map(|n| format!("\\x{n}. ")).collect();
    for text in [
        "a".repeat(long),
        "(".repeat(long),
        "[".repeat(long),
        "derelict ".repeat(long / 9),
        format!("{}x", "\\x. ".repeat(deep)),
        format!("{binders}x0"),
        format!("{}1{}", "(".repeat(deep), ")".repeat(deep)),
        format!("{}1{}", "add 1 (".repeat(deep), ")".repeat(deep)),
        format!("1{}", " 1".repeat(long / 2)),
        "1048576".to_owned(),
        "mult [1000] 1000".to_owned(),
        "mult [1048576] (mult [1048576] 1048576)".to_owned(),
        "exp [2] 20".to_owned(),
        "exp [10] 100".to_owned(),
        "\u{0}\u{202e}λ".to_owned(),
    ] {
        let name: String = text.chars().take(40).collect();
        for (key, others) in [("lambda", json!([1, text])), ("pi", json!([text]))] {
            for v in ["full", "diag"] {
                let document = linear_logic(&json!({ key: others, "v": v })).to_string();
                let start = Instant::now();
                let found = answer(&document, true);
                let took = start.elapsed();
                assert!(took < Duration::from_secs(60), "{name} in {key}: {took:?}");
                if let Err(found) = found {
                    assert_eq!(found.kind, Kind::Proof, "{name}: {found}");
                    assert!(found.message.contains(key) && found.message.len() < 2000, "{name}: {found}");
                }
            }
        }
        let proof = format!("{text} : (h -o h) -o h -o h");
        let found = refusal(&name, &master(&proof, &json!([{"kind": "input"}])).to_string());
        assert_eq!(found.kind, Kind::Proof, "{found}");
    }
    // Mixtures inside mixtures: each level applies the one below three times.
    for levels in [3, 40, 4000] {
        let inner = format!("{}v{}", "[derelict n ".repeat(levels), "]".repeat(levels));
        let proof = format!(r"\n v. derelict n {inner} : !int{{h}} -o !(h -o h) -o h -o h");
        let slots = json!([{"kind": "program", "list": ["1", "2"]}, {"kind": "input"}]);
        let start = Instant::now();
        let found = answer(&master(&proof, &slots).to_string(), true);
        assert!(start.elapsed() < Duration::from_secs(60), "{levels} levels");
        assert_eq!(found.is_ok(), levels == 3, "{levels} levels: {found:?}");
    }
    let binds = format!("{binders}x0 : {}h -o h", "h -o ".repeat(deep));
    assert_eq!(refusal("binders", &master(&binds, &json!([])).to_string()).kind, Kind::Proof);
}

#[test]
fn long_programs_that_fit_are_run() {
    for (key, text) in [
        ("lambda", "9000".to_owned()),
        ("lambda", "mult [90] 90".to_owned()),
        ("lambda", "exp [2] 13".to_owned()),
        ("pi", "10".repeat(3000)),
        ("pi", "repeat [repeat [repeat [0b10110]]]".to_owned()),
    ] {
        for v in ["full", "diag"] {
            let mut document = linear_logic(&json!({"lambda": [], key: [text], "v": v, "gate_act": "one"}));
            let v = if v == "full" {
                json!([[[1, 0], [0, 1]], [[1, 0], [0, 1]]])
            } else {
                json!([[1, 1], [1, 1]])
            };
            let one = json!([[1, 0], [0, 1]]);
            document["weights"] = json!({"V": v, "I": one, "J": one, "H": [[0, 0], [0, 0]], "U": [[0, 0], [0, 0]], "B": [0, 0]});
            document["h0"] = json!([2, 3]);
            document["x0"] = json!([0, 1]);
            document["grad"] = json!("sum-last-state");
            let start = Instant::now();
            let found = answer(&document.to_string(), false).unwrap_or_else(|refusal| panic!("{refusal}"));
            let took = start.elapsed();
            assert!(took < Duration::from_secs(60), "{text}: {took:?}");
            assert_eq!(found["steps"][0]["h"], json!([2.0, 3.0]), "{text}");
        }
    }
}

#[test]
fn sizes_that_mean_harm() {
    let large: u64 = 1 << 20;
    let all = json!({"input": large, "hidden": large, "aux": large, "aux2": large, "output": large,
        "readout": large, "addresses": large, "content": large, "pattern_addresses": large});
    let documents = [
        ("elman", json!({})),
        ("second-order", json!({})),
        ("mrnn", json!({})),
        ("mi", json!({})),
        ("lstm", json!({})),
        ("gru", json!({})),
        ("ll", json!({"preset": "stable", "lambda": [1, 2], "pi": ["10"], "gate": "diagonal"})),
        (
            "ll",
            json!({"preset": "paper", "lambda": vec![1; 100], "gate": "diagonal", "gate_source": "table",
                      "table_len": large}),
        ),
        ("ntm", json!({"powers": vec![i64::MIN; 1000]})),
        ("pattern-ntm", json!({"pattern_start": 1.0, "pattern_powers": vec![i64::MAX; 100_000]})),
        ("multi-pattern-ntm", json!({"pattern_start": 1.0, "pattern_powers": vec![1; 100_000]})),
    ];
    for (kind, options) in documents {
        let document = json!({"cell": kind, "sizes": all, "options": options, "tokens": vec![0; 100_000]});
        check("config", &document, &[]);
    }
    // A large memory needs few weights.
    let sizes = json!({"input": 1, "hidden": 1, "addresses": large, "content": large});
    check("config", &json!({"cell": "ntm", "sizes": sizes, "tokens": [0]}), &["at most"]);
    let sizes = json!({"input": 1, "hidden": 1, "addresses": 1, "content": 1, "pattern_addresses": large});
    let options = json!({"pattern_start": 1.0, "pattern_powers": vec![1; 3000]});
    check("config", &json!({"cell": "pattern-ntm", "sizes": sizes, "options": options}), &["large"]);
    // Powers of any size turn a ring.
    let sizes = json!({"input": 1, "hidden": 1, "addresses": 3, "content": 1});
    let options = json!({"powers": [i64::MIN, i64::MAX, 0]});
    assert!(answer(&json!({"cell": "ntm", "sizes": sizes, "options": options}).to_string(), true).is_ok());
    let slots = json!([{"kind": "data"}]);
    let mut document = master(r"\v. v : (h -o h) -o h -o h", &slots);
    document["options"]["masters"][0]["dims"]["h"] = json!(large);
    document["sizes"]["hidden"] = json!(large);
    check("config", &document, &["at most"]);
    check("config", &linear_logic(&json!({"lambda": vec![json!(1); 200_000]})), &["`lambda`", "200000"]);
    check("config", &linear_logic(&json!({"pi": vec![json!("1"); 200_000]})), &["`pi`", "200000"]);
    let slots = json!([{"kind": "program", "list": vec![json!("1"); 200_000]}, {"kind": "input"}]);
    let proof = r"\n v. derelict n v : !int{h} -o !(h -o h) -o h -o h";
    check("config", &master(proof, &slots), &["masters[0].slots[0]", "200000"]);
    let mut many = master(r"\z. z : h -o h", &json!([]));
    many["options"]["masters"] = json!(vec![many["options"]["masters"][0].clone(); 50_000]);
    check("config", &many, &["`masters`", "50000"]);
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = elman("weights.B", &json!("HERE")).to_string().replace("\"HERE\"", &nested);
    check_text("config", &text, &["recursion"]);
    let h = 64;
    let steps = json!({"cell": "elman", "sizes": {"input": 1, "hidden": h}, "tokens": vec![0; 200_000],
        "weights": {"H": vec![vec![0; h]; h], "U": vec![[0]; h], "B": vec![0; h]}, "grad": "sum-last-state"});
    check("config", &steps, &["too many"]);
}

#[test]
fn nothing_to_do_is_done() {
    // No inputs, no programs, and starts of every sort.
    for options in [
        json!({"preset": "stable", "lambda": [1], "pi": ["10"]}),
        json!({"preset": "stable"}),
        json!({"preset": "paper", "x0": "learned", "h0": "learned"}),
    ] {
        let sizes = json!({"input": 1, "hidden": 1, "aux": 1});
        let mut weights = serde_json::Map::new();
        let counts = answer(&json!({"cell": "ll", "sizes": sizes, "options": options}).to_string(), true);
        let counts = counts.unwrap_or_else(|refusal| panic!("{refusal}"));
        for name in counts["params"].as_object().into_iter().flatten().map(|(name, _)| name) {
            let shape = match name.as_str() {
                "V" => json!([[[1]]]),
                "H" | "U" | "I" | "J" | "P" | "Q" => json!([[1]]),
                _ => json!([1]),
            };
            weights.insert(name.clone(), shape);
        }
        for inputs in [json!([]), json!([[1]])] {
            let document = json!({"cell": "ll", "sizes": sizes, "options": options, "weights": weights,
                                  "inputs": inputs, "grad": "sum-last-state"});
            let found = answer(&document.to_string(), false).unwrap_or_else(|refusal| panic!("{refusal}"));
            assert_eq!(found["steps"].as_array().map(Vec::len), inputs.as_array().map(Vec::len));
            assert!(found["objective"].is_number());
        }
    }
}

/// What has names is written with them.
#[test]
fn lists_are_no_objects() {
    check_text("config", r#"["elman","f64",{"input":1,"hidden":1}]"#, &["object"]);
    check("config", &elman("sizes", &json!([2, 1])), &["sizes", "object"]);
    check("config", &elman("options", &json!(["tanh"])), &["options"]);
    let proof = r"\v. derelict v : !(h -o h) -o h -o h";
    let mut listed = master(proof, &json!([{"kind": "param"}]));
    listed["options"]["masters"] = json!([[proof, "h", {"h": 2}, [{"kind": "param"}]]]);
    check("config", &listed, &["object"]);
    check("config", &master(proof, &json!([["param"]])), &["object"]);
    let mut shared = master(proof, &json!([{"kind": "param"}]));
    shared["options"]["masters"][0]["project"] = json!({"share": 0, "x": 1});
    check("config", &shared, &[]);
}

/// JSON has no word for what is no number.
#[test]
fn what_overflows_is_refused() {
    let mut large = elman("h0", &json!([1e300]));
    large["options"] = json!({"act": "identity"});
    large["weights"]["H"] = json!([[1e308]]);
    check("config", &large, &["`steps[0].h[0]` is not finite"]);
    large["weights"]["H"] = json!([[1e8]]);
    assert_eq!(answer(&large.to_string(), false).unwrap()["steps"][0]["h"], json!([1e308]));
    large["inputs"] = json!([[1, 0], [0, 1]]);
    large["report"] = json!("last");
    check("config", &large, &["`steps[0].h[0]`"]);
}
