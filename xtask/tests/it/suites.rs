//! The suites `structure` and `h3` on real runs: in each code, for the baselines, on the page, and what is refused.

use crate::common::Place;
use serde_json::Value;

const RUN: &str = "data = \"few\"\nsuites = []\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 32\n\
    max_steps = 20\nbatch = 16\nlr = 1e-2\neval_every = 20\nmax_len = 400\n";
const DATA: &str = "law = \"seed\"\nstream = { train = 200, val = 30, test = 30 }\niid = 100\n";

fn train(place: &Place, name: &str, sets: &[&str]) {
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
    place.ok(&[&["train", "--config", "run.toml", "--name", name, "--quiet"][..], &sets].concat());
}

fn family<'a>(judged: &'a Value, name: &str) -> &'a Value {
    judged["structure"]["families"].as_array().unwrap().iter().find(|f| f["family"] == name).unwrap()
}

#[test]
fn both_suites_in_each_code_and_on_the_page() {
    let place = Place::new(&[("run.toml", RUN), ("data/few.toml", DATA)]);
    for (tokenization, notation) in
        [("compositional", "infix"), ("atomic", "infix"), ("compositional", "prefix"), ("atomic", "prefix")]
    {
        let name = &format!("{tokenization}-{notation}");
        let (t, n) = (format!("tokenization={tokenization}"), format!("notation={notation}"));
        train(&place, name, &[&t, &n]);
        let ask = ["eval", name, "--suite", "structure", "--suite", "h3", "--json", "--quiet"];
        let judged = place.json(&ask);
        let arity = family(&judged, "arity");
        assert!(arity["kl"]["value"].as_f64().unwrap() > 0.0 && arity["prefixes"].as_u64().unwrap() > 50);
        assert_eq!(family(&judged, "index 624")["reason"], "no name of this law has the index 624");
        assert_eq!(family(&judged, "open parentheses")["kl"].is_null(), notation == "prefix");
        let h3 = &judged["h3"];
        let auc = h3["a"]["binder"]["auc"]["value"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&auc));
        assert_eq!(h3["a"]["parenthesis"]["auc"].is_null(), notation == "prefix");
        assert_eq!(h3["b"].as_array().unwrap().len(), 2 * 4);
        assert_eq!(h3["d"]["of"] == "numerals", tokenization == "compositional");
        let again = place.json(&ask);
        assert_eq!((&judged["structure"], h3), (&again["structure"], &again["h3"]), "the same twice");
        let said = place.ok(&["report", name]);
        assert!(!said.is_empty());
        let page = std::fs::read_to_string(place.path("runs").join(name).join("report.html")).unwrap();
        for part in ["Prefixes that show structure", "Structure inside the model", "expected category"] {
            assert!(page.contains(part), "{part}");
        }
    }
}

/// What layers do to what goes through them, and the page of it.
#[test]
fn what_layers_do_is_judged_and_shown() {
    let place = Place::new(&[("run.toml", RUN), ("data/few.toml", DATA)]);
    train(&place, "deep", &["n_layers=2"]);
    let judged = place.json(&["eval", "deep", "--suite", "criticality", "--json", "--quiet"]);
    let found = &judged["criticality"];
    for key in ["branching", "chi", "rho"] {
        let layers: Vec<f64> =
            found[key].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
        assert!(layers.len() == 2 && layers.iter().all(|value| *value > 0.0), "{key}: {layers:?}");
    }
    place.ok(&["report", "deep"]);
    let page = std::fs::read_to_string(place.path("runs/deep/report.html")).unwrap();
    assert!(page.contains("What the layers do to what goes through") && page.contains("the edge of chaos"));
    train(&place, "lstm", &["model=lstm"]);
    assert!(place.refused(&["eval", "lstm", "--suite", "criticality"], 2).contains("has none"));
}

/// What a model that has learned little says, in two codes; without weights nothing is said.
#[test]
fn what_samples_mean_is_judged_with_certificates() {
    let place = Place::new(&[("run.toml", RUN), ("data/few.toml", DATA)]);
    for (name, set) in [("plain", "notation=infix"), ("prefix", "notation=prefix")] {
        train(&place, name, &[set]);
        let ask = ["eval", name, "--suite", "semantics", "--json", "--quiet"];
        let judged = place.json(&ask)["semantics"].take();
        for side in ["model", "law"] {
            let count = |kind: &str| judged[side][kind]["count"].as_u64().unwrap();
            let formulas = judged[side]["formulas"].as_u64().unwrap();
            assert!(count("valid") <= count("satisfiable"), "{judged}");
            assert!(count("satisfiable") + count("contradictory") + count("unknown") >= formulas, "{judged}");
        }
        assert!(judged["law"]["formulas"].as_u64().unwrap() > 1000, "{judged}");
        assert_eq!(judged, place.json(&ask)["semantics"], "the same twice");
        let lines = std::fs::read_to_string(place.path("runs").join(name).join("semantics.jsonl")).unwrap();
        assert_eq!(lines.lines().count() as u64, judged["classes"].as_u64().unwrap());
        place.ok(&["report", name]);
        let page = std::fs::read_to_string(place.path("runs").join(name).join("report.html")).unwrap();
        assert!(page.contains("What samples mean") && page.contains("contradictory"));
    }
    train(&place, "counted", &["model=ngram"]);
    assert!(place.json(&["eval", "counted", "--suite", "semantics", "--json"])["semantics"].is_null());
}

#[test]
fn baselines_are_judged_at_prefixes_and_have_no_attention() {
    let place = Place::new(&[("run.toml", RUN), ("data/few.toml", DATA)]);
    for model in ["lstm", "ngram", "uniform", "grammar-uniform"] {
        let set = format!("model={model}");
        train(&place, model, &[&set]);
        let judged = place.json(&["eval", model, "--suite", "structure", "--json", "--quiet"]);
        assert!(family(&judged, "calibrated choice")["kl"]["value"].as_f64().unwrap() > 0.0);
        if model.ends_with("uniform") {
            // As a run it is what it is as a baseline of every run.
            let whole = place.json(&["eval", model, "--suite", "iid", "--json", "--quiet"]);
            let rows = whole["baselines"].as_array().unwrap();
            let row = rows.iter().find(|row| row["name"] == model).unwrap();
            assert_eq!(row["nats_per_token"], whole["iid"]["nats_per_token"]);
            assert!(whole["iid"]["excess"]["value"].as_f64().unwrap() > 0.0);
        }
        let why = format!("h3 looks into the attention of a transformer, and model = \"{model}\" has none");
        let errors = place.refused(&["eval", model, "--suite", "structure", "--suite", "h3"], 2);
        assert!(errors.contains(&why), "{errors}");
        let args =
            ["train", "--config", "run.toml", "--name", "new", "--set", &set, "--set", "suites=[\"h3\"]"];
        let errors = place.refused(&args, 1);
        assert!(errors.contains(&why), "{errors}");
        assert!(!place.path("runs/new").exists(), "nothing was begun");
    }
}
