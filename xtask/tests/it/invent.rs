//! `cargo xtask invent`: the worked example, a set of the project, a model that chooses, and what it refuses.

use crate::common::Place;

const RUN: &str = "data = \"few\"\nsuites = []\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 32\nmax_steps = 30\n\
    batch = 16\neval_every = 30\nlr = 1e-2\nmax_len = 200\nthreads = 1\n";
const DATA: &str = "law = \"public\"\nstream = { train = 300, val = 40, test = 40 }\niid = 40\n";

fn place() -> Place {
    Place::new(&[("run.toml", RUN), ("data/few.toml", DATA)])
}

/// `A` of one line is `A` of another, and none of `P0`, which a later one writes.
#[test]
fn a_name_is_the_same_in_every_line() {
    let place = place();
    let names = ["A", "B", "C", "D", "E", "F"];
    let pairs = names.iter().flat_map(|a| names.iter().filter(move |b| *b != a).map(move |b| (a, b)));
    let text: String = pairs.map(|(a, b)| format!("∀x ({a}(x) → {b}(x))\n")).collect();
    std::fs::write(place.path("names.txt"), format!("{text}P0(c0)\n")).unwrap();
    let answer = place.json(&["invent", "names.txt", "--max", "1", "--json", "--formulas", "plain.txt"]);
    // No two of thirty formulas are alike.
    assert_eq!(answer["definitions"], serde_json::json!([]), "{answer}");
    let plain = std::fs::read_to_string(place.path("plain.txt")).unwrap();
    let lines: Vec<&str> = plain.lines().collect();
    assert_eq!(lines[..2], ["∀x0 (P1(x0) → P2(x0))", "∀x0 (P1(x0) → P3(x0))"]);
    assert_eq!((lines.len(), lines[5], lines[30]), (31, "∀x0 (P2(x0) → P1(x0))", "P0(c0)"));
    let train = ["train", "--config", "run.toml", "--name", "a", "--quiet"];
    place.ok(&[&train[..], &["--set", "data=names.txt", "--set", "suites=[\"texts\"]"]].concat());
    // What is written is nobody's input.
    for args in [
        ["--out", "x", "--formulas", "x"],
        ["--out", "names.txt", "--max", "1"],
        ["--formulas", "./names.txt", "--max", "1"],
    ] {
        place.refused(&[&["invent", "names.txt"][..], &args].concat(), 2);
    }
    assert!(!place.path("x").exists());
}

#[test]
fn three_uses_gain_four_tokens() {
    let place = place();
    let file = place.path("three.txt");
    std::fs::write(&file, "(P1(x0) ∧ P2(x0))\n\n∀x3 (P1(x3) ∧ P2(x3))\n¬(P1(c7) ∧ P2(c7))\n").unwrap();
    let plain = ["--formulas", "plain.txt"];
    let folded = ["invent", "three.txt", "--json", "--quiet", "--out", "folded.txt"];
    let answer = place.json(&[&folded[..], &plain].concat());
    let found = &answer["definitions"][0];
    assert_eq!(found["text"], "P0(x0) ≔ (P1(x0) ∧ P2(x0)).");
    assert_eq!((&found["uses"], &found["gain_tokens"]), (&3.into(), &4.into()));
    assert!((found["gain_bits"].as_f64().unwrap() - 37.4915).abs() < 5e-5);
    assert_eq!(answer["tokens"]["before"].as_u64().unwrap() - answer["tokens"]["after"].as_u64().unwrap(), 4);
    assert_eq!(answer["skeletons"], serde_json::json!({"all": 3, "covered": 3}));
    let text = std::fs::read_to_string(place.path("folded.txt")).unwrap();
    assert_eq!(text, "P0(x0) ≔ (P1(x0) ∧ P2(x0)).\nP0(x0)\n∀x0 P0(x0)\n¬P0(c7)\n");
    let text = std::fs::read_to_string(place.path("plain.txt")).unwrap();
    assert_eq!(text, "(P1(x0) ∧ P2(x0))\n∀x0 (P1(x0) ∧ P2(x0))\n¬(P1(c7) ∧ P2(c7))\n");
    // Both halves have what is defined in the whole, or neither has: three formulas are too few to gain anything alone.
    let again = "(P1(x0) ∧ P2(x0))\n".repeat(4) + &"(P3(c1) ∧ P4(c1))\n".repeat(4);
    std::fs::write(place.path("again.txt"), again).unwrap();
    let parts = place.json(&["invent", "again.txt", "--parts", "2", "--json"]);
    assert_eq!(
        parts["stability"]["jaccard"],
        serde_json::json!({"mean": 1.0, "least": 1.0, "most": 1.0}),
        "{parts}"
    );
    let one = "(P1(x0) ∧ P2(x0))\n(P3(c1) → P4(c1, c2))\n".repeat(8);
    std::fs::write(place.path("one.txt"), one).unwrap();
    let parts = place.json(&["invent", "one.txt", "--parts", "2", "--json"]);
    // One half has the first formula alone, the other the second.
    assert_eq!(parts["stability"]["jaccard"]["mean"], 0.0, "{parts}");
    assert!(place.ok(&["invent", "one.txt", "--parts", "2"]).contains("2 parts agree on 0.00"));
    place.refused(&["invent", "one.txt", "--parts", "1"], 2);
    // Nothing comes again: an answer, and no refusal.
    std::fs::write(&file, "P1(x0)\n¬P2(c0)\n").unwrap();
    assert_eq!(place.json(&["invent", "three.txt", "--json"])["definitions"], serde_json::json!([]));
    for (text, status, words) in [
        ("P1(x0) ⊢ P2(x0)\n", 1, "three.txt:1: symbols are invented for formulas alone"),
        ("P1(x0)\n(P1(x0) ∧\n", 1, "three.txt:2"),
        ("\n", 1, "no formula"),
    ] {
        std::fs::write(&file, text).unwrap();
        let refused = place.refused(&["invent", "three.txt"], status);
        assert!(refused.contains(words), "{refused}");
    }
    assert!(place.refused(&["invent", "nothing"], 2).contains("neither a data set nor a file"));
}

#[test]
fn a_model_chooses_by_its_bits() {
    let place = place();
    place.ok(&["gen-data", "--config", "few.toml", "--quiet"]);
    place.ok(&["train", "--config", "run.toml", "--name", "r", "--quiet"]);
    let tokens = place.json(&["invent", "few", "--max", "3", "--first", "200", "--json", "--quiet"]);
    let found = tokens["definitions"].as_array().unwrap();
    assert!(!found.is_empty() && tokens["ratio"].as_f64().unwrap() > 1.0, "{tokens}");
    let again = place.json(&["invent", "few", "--max", "3", "--first", "200", "--json", "--quiet"]);
    assert_eq!(tokens, again);
    let bits =
        place.json(&["invent", "few", "--max", "2", "--first", "60", "--measure", "r", "--json", "--quiet"]);
    for found in bits["definitions"].as_array().unwrap() {
        assert!(found["gain_bits"].as_f64().unwrap() > 0.0, "{bits}");
    }
    assert!(place.refused(&["invent", "few", "--measure", "nobody"], 1).contains("nobody"));

    // What it knows of instances, layer after layer; what is invented is the same.
    let few = ["invent", "few", "--max", "3", "--first", "200"];
    let probed = place.json(&[&few[..], &["--probe", "r", "--json", "--quiet"]].concat());
    assert_eq!(probed["definitions"], tokens["definitions"]);
    assert_eq!((&probed["probe"]["run"], &probed["probe"]["formulas"]), (&"r".into(), &200.into()));
    let known = probed["probe"]["definitions"].as_array().unwrap();
    assert_eq!(known.len(), found.len());
    for (known, found) in known.iter().zip(found) {
        assert_eq!(known["text"], found["text"]);
        let layers = known["layers"].as_array().unwrap();
        assert_eq!(layers.iter().map(|l| l["layer"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1]);
        for layer in layers.iter().filter(|layer| layer["reason"].is_null()) {
            let share = |key: &str| layer.pointer(key).unwrap().as_f64().unwrap();
            assert!(layer["rows"].as_u64().unwrap() > 0 && (0.0..=1.0).contains(&share("/commonest")));
            assert!((0.0..=1.0).contains(&share("/accuracy/value")) && share("/accuracy/se") >= 0.0);
        }
    }
    assert!(place.ok(&[&few[..], &["--probe", "r"]].concat()).contains("instances are told with accuracy"));
    place.ok(&["train", "--config", "run.toml", "--name", "n", "--quiet", "--set", "model=\"ngram\""]);
    place.ok(&[
        "train",
        "--config",
        "run.toml",
        "--name",
        "a",
        "--quiet",
        "--set",
        "tokenization=\"atomic\"",
    ]);
    for (run, words) in
        [("n", "--probe n looks into the layers"), ("a", "--probe a: its code"), ("nobody", "nobody")]
    {
        let refused = place.refused(&[&few[..], &["--probe", run]].concat(), 1);
        assert!(refused.contains(words), "{refused}");
    }
    // A text that is longer than the model reads, and one with more names than have one digit.
    for (most, words) in
        [(30, "a formula that the model of --probe reads"), (120, "--probe: formula 0: TooLong")]
    {
        let long = "(".repeat(most) + "P1(x0)" + &" ∧ P1(x0))".repeat(most) + "\n";
        std::fs::write(place.path("long.txt"), long.repeat(3)).unwrap();
        let refused = place.refused(&["invent", "long.txt", "--probe", "r"], 1);
        assert!(refused.contains(words), "{refused}");
    }
}

/// A model is trained on formulas of a file, with definitions and without, and judged on those that it was not shown.
#[test]
fn a_file_of_texts_is_learned() {
    const TEXTS: &str = "data = \"folded.txt\"\nsuites = [\"texts\"]\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 32\n\
        max_steps = 60\nbatch = 16\neval_every = 30\nlr = 1e-2\nmax_len = 200\nthreads = 1\n";
    let sweep = "base = \"texts.toml\"\nseeds = [0, 1]\n[[case]]\ndata = \"folded.txt\"\n[[case]]\ndata = \"plain.txt\"\n\
        [[claim]]\nname = \"shorter\"\nsays = \"folded texts cost fewer bits\"\nmeasure = \"bits_per_text\"\n\
        left = { data = \"folded.txt\" }\nright = { data = \"plain.txt\" }\nrule = \"less\"\n";
    let place = Place::new(&[("data/few.toml", DATA), ("texts.toml", TEXTS), ("both.toml", sweep)]);
    place.ok(&["gen-data", "--config", "few.toml", "--quiet"]);
    let invented = ["invent", "few", "--max", "3", "--first", "200", "--quiet", "--out", "folded.txt"];
    place.ok(&[&invented[..], &["--formulas", "plain.txt"]].concat());
    let count = |name: &str| std::fs::read_to_string(place.path(name)).unwrap().lines().count();
    assert_eq!((count("plain.txt"), count("folded.txt") > 200), (200, true));

    let forecast = place.json(&["train", "--config", "texts.toml", "--dry-run", "--json"]);
    assert_eq!(forecast["data_present"], true);
    place.ok(&["train", "--config", "texts.toml", "--name", "t", "--quiet"]);
    let judged: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.path("runs/t/eval.json")).unwrap()).unwrap();
    let found = &judged["texts"];
    assert!(judged["law"] == "texts" && found["name"] == "transformer", "{judged}");
    // Every tenth formula that is not there before it, at most.
    assert!((5..=20).contains(&found["texts"].as_u64().unwrap()), "{judged}");
    let number = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
    let (targets, texts) = (number(found, "targets"), number(found, "texts"));
    let bits = number(found, "nats_per_token") * targets / texts / std::f64::consts::LN_2;
    assert!((bits / number(found, "bits_per_text") - 1.0).abs() < 1e-9);
    // It has learned something: less than what of 663 symbols each costs alone.
    assert!(
        number(found, "nats_per_token") < 4.0 && number(&found["beside"][0], "nats_per_token") < 3.0,
        "{judged}"
    );
    assert!(place.ok(&["eval", "t", "--suite", "texts"]).starts_with("texts, transformer: "));
    let other = place.json(&["eval", "t", "--data", "plain.txt", "--json"]);
    assert_eq!(other["texts"]["texts"], 200);
    assert!(place.path("runs/t/eval-plain.json").is_file() && place.path("runs/t/report.html").is_file());
    assert!(place.ok(&["report", "t"]).contains("report"));
    let page = std::fs::read_to_string(place.path("runs/t/report.html")).unwrap();
    assert!(page.contains("Texts that were not learned") && page.contains("bits per text"));
    assert!(!place.ok(&["sample", "t", "--n", "2", "--max-tokens", "20"]).is_empty());
    assert!(place.refused(&["sample", "t", "--valid"], 1).contains("no law is known"));
    for model in ["ngram", "uniform"] {
        let set = format!("model=\"{model}\"");
        place.ok(&["train", "--config", "texts.toml", "--name", model, "--quiet", "--set", &set]);
    }
    place.ok(&["sweep", "--config", "both.toml", "--quiet"]);
    let table = std::fs::read_to_string(place.path("runs/both/table.md")).unwrap();
    assert!(table.contains("shorter") && table.contains("bits per text"), "{table}");

    // The wrong suite, too few, one that cannot be read, one that is not there, and one that was changed since.
    let set =
        |value: &str| ["train", "--config", "texts.toml", "--name", "u", "--set", value].map(str::to_owned);
    let refused = |value: &str| {
        let args = set(value);
        place.refused(&args.each_ref().map(String::as_str), 1)
    };
    assert!(refused("suites=[\"iid\"]").contains("judged by \"texts\""));
    assert!(refused("data=\"few\"").contains("judged by \"texts\""));
    std::fs::write(place.path("few.txt"), "P1(x0)\nP2(x0)\n").unwrap();
    assert!(refused("data=\"few.txt\"").contains("fewer than ten different formulas"));
    std::fs::write(place.path("few.txt"), "P1(x0)\nP2(x0\n").unwrap();
    assert!(refused("data=\"few.txt\"").contains("few.txt:2"));
    assert!(refused("data=\"none.txt\"").contains("none.txt"));
    assert!(refused("tokenization=\"atomic\"").contains("canonical symbols"));
    assert!(refused("model=\"grammar-uniform\"").contains("no masks"));
    std::fs::write(place.path("folded.txt"), std::fs::read(place.path("plain.txt")).unwrap()).unwrap();
    assert!(place.refused(&["eval", "t"], 1).contains("folded.txt"));
    let again = place.refused(&["train", "--resume", "t", "--set", "max_steps=70"], 1);
    assert!(again.contains("folded.txt"), "{again}");
}
