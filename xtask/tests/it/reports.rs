//! Pages of runs with hand-written records: every part, nothing unescaped, what is missing is said.

use crate::common::Place;

/// A run with a hand-written record.
fn record(place: &Place, name: &str, metrics: &str, eval: &str) {
    let folder = place.path("runs").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let config = "d_model = 8\nn_layers = 1\nn_heads = 2\nd_ff = 16\ndata = \"<b>data\"\n[expect]\nparams = 7\n\
                  excess_max = 0.5\ntop1_min = 0.9\nseconds_max = 100.0\n\n# version 0.1.0, commit <i>abc\n\
                  # device cpu, 1 threads, <u>machine\n# xtask train --name '<s>'\n";
    std::fs::write(folder.join("config.toml"), config).unwrap();
    if !metrics.is_empty() {
        std::fs::write(folder.join("metrics.jsonl"), metrics).unwrap();
    }
    if !eval.is_empty() {
        std::fs::write(folder.join("eval.json"), eval).unwrap();
    }
}

const METRICS: &str = r#"{"kind":"start","step":0,"schema":1,"run":"<b>","parameters":7,"data":"<em>d"}
{"kind":"eval","step":0,"split":"val","nats_per_token":6.5,"excess":5.7,"seconds":1.5}
{"kind":"update","step":50,"epoch":0,"loss":3.5,"lr":0.001,"grad_norm":2.5,"targets":1000,"skipped":0,"seconds":10.0,"targets_per_second":100.0}
{"kind":"event","step":60,"event":"skipped_update","reason":"loss is not finite"}
{"kind":"update","step":100,"epoch":0,"loss":null,"lr":0.0005,"grad_norm":null,"targets":2000,"skipped":1,"seconds":20.0,"targets_per_second":50.0}
{"kind":"eval","step":100,"split":"val","nats_per_token":1.25,"excess":0.45,"seconds":1.5}
{"kind":"end","step":100,"reason":"steps","best_step":100,"best":1.25}
"#;

const EVAL: &str = r#"{"run":"a","law":"<script>law","data_digest":"<em>d","commit":"<i>c",
"baselines":[{"name":"<script>uniform","nats_per_token":6.4968,"perplexity":663.0,"bits_per_formula":154.0,
 "excess":{"value":5.72,"se":0.01,"ci95":[5.7,5.74]},"kl":{"value":5.72,"se":0.01},"top1":0.0015,"top5":0.0075,"top10":0.015},
 {"name":"optimum","nats_per_token":0.772,"perplexity":2.16,"excess":{"value":0.0,"se":0.0},"kl":{"value":0.0},"top1":0.628,"top5":0.99,"top10":1.0}],
"iid":{"formulas":2000,"targets":32873,"nats_per_token":1.222,"perplexity":3.394,"bits_per_formula":29.0,
 "optimum":{"nats_per_token":0.772,"top1":0.628},"excess":{"value":0.45,"se":0.01},"kl":{"value":0.44,"se":0.01},
 "top1":{"observed":0.5123,"expected":0.51,"ratio":0.81},"top5":{"observed":0.9},"top10":{"observed":1.0},
 "calibration":{"ece":0.0144,"brier":0.005,"bins":[[0.2,0.19],[0.9,0.91],[null,null]]},
 "by_level":[{"key":1,"targets":10,"nats_per_token":1.0,"optimum":0.7,"excess":-0.003,"kl":0.3,"top1":0.5},
  {"key":2,"targets":20,"nats_per_token":null,"optimum":null,"excess":null,"kl":null,"top1":null}],
 "by_class":[{"key":"<script>","targets":10,"nats_per_token":1.0,"optimum":0.7,"excess":0.3,"kl":0.3,"top1":0.5}],
 "by_depth":[],"by_position":[{"key":1,"targets":100,"nats_per_token":1.0,"optimum":0.7,"excess":0.3,"kl":0.3,"top1":0.5},{"key":2,"targets":3,"kl":9.0}],
 "confusion":[[0.75,0.25],[null,1.0]]},
"generation":{"samples":10000,"free":{"parsed":0.9929,"skeletons":1386,"novel":{"K2":0.446},"sort_ok":null,
 "levels":{"counts":{"2":3,"10":1,"1":5},"chi2":413.3,"p":2.887886e-89},"size_tv":0.1456},"valid":null},
"expect":[{"key":"excess_max","expected":0.5,"measured":0.45,"met":true},{"key":"top1_min","expected":0.9,"measured":0.5123,"met":false}]}"#;

fn page_of(metrics: &str, eval: &str) -> String {
    let place = Place::new(&[]);
    record(&place, "a", metrics, eval);
    place.ok(&["report", "a"]);
    std::fs::read_to_string(place.path("runs/a/report.html")).unwrap()
}

#[test]
fn a_full_page_has_every_part_and_lets_nothing_through() {
    let page = page_of(METRICS, EVAL);
    for part in [
        "0.4500 ± 0.0196",
        "1.2220",
        "the optimum is 0.7720",
        "51.2\u{202f}%",
        "−0.0030",
        "2.9·10⁻⁸⁹",
        "1\u{202f}386",
        "exact optimum",
        "Learning rate",
        "Gradient norm",
        "Speed",
        "Excess by structural level",
        "Excess by position",
        "Calibration",
        "Probability by class",
        "fewer than 30 targets: 1",
        "Expectation missed: top1_min is 0.5123, expected 0.9000",
        "✓ met",
        "Updates skipped",
        "no model.safetensors",
        "33\u{202f}s",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert_eq!(page.matches("class=\"missed\"").count(), 1, "params 7, excess and seconds are met");
    for tag in [
        "<script",
        "<b>data",
        "<i>abc",
        "<u>",
        "<s>",
        "<em>",
        "http://www.example",
        "src=",
        "href=",
        "@import",
        "url(",
    ] {
        assert!(!page.contains(tag), "{tag}");
    }
    // Levels in the order of numbers.
    let at = |level: &str| page.find(&format!("formulas of level {level}<")).unwrap();
    assert!(at("1") < at("2") && at("2") < at("10"));
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    assert_eq!(page_of(METRICS, EVAL), page_of(METRICS, EVAL));
}

#[test]
fn what_is_missing_is_said() {
    let page = page_of("", "");
    assert!(page.contains("the run has no metrics.jsonl"));
    assert!(
        page.contains("does not have the suite iid") && page.contains("does not have the suite generation")
    );
    let page = page_of(METRICS.lines().next().unwrap(), "{}");
    assert!(page.contains("Training has not ended"));
    // Wrong kinds of values are values that are not there.
    page_of(
        "{\"kind\":\"eval\",\"step\":\"x\"}\n{\"kind\":1}\n[]\n{\"kind\":\"update\"}",
        "{\"iid\":{\"by_level\":3,\"confusion\":[3]},\"generation\":{}}",
    );
    page_of("not json", "[1]");
}

#[test]
fn a_broken_evaluation_is_named() {
    let place = Place::new(&[]);
    record(&place, "a", "", "{\"iid\":");
    let refusal = place.refused(&["report", "a"], 1);
    assert!(refusal.contains("eval.json"), "{refusal}");
}

#[test]
fn several_runs_make_one_page() {
    let place = Place::new(&[]);
    record(&place, "a", METRICS, EVAL);
    record(&place, "b<i>", METRICS, &EVAL.replace("<em>d", "other"));
    record(&place, "c", "", "");
    let rows = place.json(&["report", "a", "b<i>", "c", "--out", "new/page.html", "--json"]);
    let page = std::fs::read_to_string(place.path("new/page.html")).unwrap();
    assert!(page.contains("judged on different data"));
    assert_eq!(page.matches("0.4500 ± 0.0196").count(), 2);
    assert!(page.contains("All configurations are the same") && !page.contains("b<i>"));
    assert_eq!(page.matches("<figcaption>Validation loss above").count(), 1);
    assert_eq!(rows["runs"][0]["excess"], 0.45);
    assert!(rows["runs"][2]["excess"].is_null());
}

/// Suites that some runs were judged on and others were not.
#[test]
fn several_runs_show_every_suite() {
    let structure = r#""structure":{"families":[{"family":"arity <i>","kl":{"value":0.0123,"se":0.001}},
        {"family":"index 99","kl":null,"reason":"no name"}]},"#;
    let h3 = r#""h3":{"a":{"binder":{"auc":{"value":0.625}},"parenthesis":{"auc":null}},"c":{"auc":{"value":0.75}},"d":{"spearman":0.5},
        "b":[{"layer":0,"task":"next word","selectivity":{"value":0.955}},{"layer":1,"task":"next word","selectivity":{"value":0.375}}]},"#;
    let transfer = r#""transfer":{"far":{"excess":{"value":0.25,"se":0.125}},"further":{"excess":{"value":0.5,"se":0.0}}},"#;
    let place = Place::new(&[]);
    record(&place, "a", METRICS, &EVAL.replacen('{', &format!("{{{structure}{transfer}"), 1));
    record(&place, "b", METRICS, &EVAL.replacen('{', &format!("{{{h3}"), 1));
    record(&place, "c", METRICS, EVAL);
    place.ok(&["report", "a", "b", "c", "--out", "page.html"]);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    for part in [
        "arity &lt;i&gt;",
        "0.0123 ± 0.0020",
        "no name",
        "probe next word",
        "0.375",
        "0.625",
        "Excess on other data",
        "0.2500 ± 0.2450",
        ">further<",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    assert!(!page.contains("0.955"), "what the embedding gives is in the token");
    record(&place, "d", METRICS, EVAL);
    place.ok(&["report", "c", "d", "--out", "page.html"]);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(!page.contains("Seen inside") && !page.contains("other data"));
}

#[test]
fn metrics_as_csv() {
    let place = Place::new(&[]);
    record(&place, "a", METRICS, "");
    let text = place.ok(&["report", "a", "--csv"]);
    assert_eq!(text.lines().count(), 8);
    assert!(text.starts_with("run,kind,step,"), "{text}");
    assert!(text.lines().nth(3).unwrap().starts_with("a,update,50,"));
}
