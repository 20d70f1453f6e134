//! What cells are told: documents and their variants are the same both ways, and no cell takes an option of another.

use linear_logic_rnn::cell::Cell;
use linear_logic_rnn::options::{
    CellKind, Configuration, FirstInput, Numeral, Operators, Options, Preset, Sizes, of,
};
use serde_json::{Value, json};

/// A value for every option.
fn values() -> Value {
    json!({
        "act": "tanh", "hh": false, "mi_weights": "ones", "preset": "stable", "lambda": [1, "mult [2] 1"],
        "pi": ["10", ""], "order": "fdf", "v": "full", "project": "learned", "gate": "diagonal", "gate_act": "tanh",
        "gate_source": "table", "table_len": 3, "x0": "learned", "h0": "zero", "v_norm": "tanh",
        "window": 3, "v_init": "identity", "gate_bias": 0.5, "allow_degenerate": true, "powers": [0, 1],
        "pattern_powers": [0, 2], "pattern_start": 1.5,
        "masters": [{"proof": "\\v. v : (h -o h) -o h -o h", "state": "h", "dims": {"h": 2},
            "slots": [{"kind": "param"}], "place": "out", "project": {"share": 0}, "order": "literal"}],
    })
}

#[test]
fn every_kind_reads_and_writes_its_own_options() {
    let mut met = Vec::new();
    for kind in CellKind::all() {
        let mut document = json!({"cell": kind.name()});
        for key in kind.options() {
            document[key] = values()[key].clone();
            assert!(!document[key].is_null(), "{key} has no value here");
            met.push(*key);
        }
        let configuration: Configuration = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(configuration.kind(), kind);
        assert_eq!(serde_json::to_value(&configuration).unwrap(), document);
        // The same options, written beside the name of the cell.
        document.as_object_mut().unwrap().remove("cell");
        assert_eq!(Options::read(&document).unwrap().of(kind).unwrap(), configuration);
    }
    for key in values().as_object().unwrap().keys() {
        assert!(met.contains(&key.as_str()), "{key} belongs to no cell");
    }
}

#[test]
fn an_option_of_another_cell_is_refused_with_those_of_this_one() {
    for kind in CellKind::all() {
        for (key, value) in values().as_object().unwrap() {
            let alone = Options::read(&json!({ key: value })).unwrap();
            let document = json!({"cell": kind.name(), key: value});
            let configuration = serde_json::from_value::<Configuration>(document);
            if kind.options().contains(&key.as_str()) {
                assert_eq!(alone.of(kind).unwrap(), configuration.unwrap());
                continue;
            }
            assert!(configuration.is_err(), "{} {key}", kind.name());
            let message = alone.of(kind).unwrap_err().message;
            assert!(message.contains(&format!("`{key}`")) && message.contains(kind.name()), "{message}");
            for own in kind.options() {
                assert!(message.contains(&format!("`{own}`")), "{message}");
            }
        }
        let unknown = Options::read(&json!({"preste": "paper"})).unwrap_err().message;
        assert!(unknown.contains("did you mean \"preset\"?"), "{unknown}");
    }
}

#[test]
fn options_are_written_in_one_order_whatever_order_they_are_read_in() {
    let read = |text: &str| {
        let document: Value = serde_json::from_str(text).unwrap();
        serde_json::to_string(&Options::read(&document).unwrap()).unwrap()
    };
    let one = read(r#"{"preset":"paper","act":"relu","gate_bias":1,"hh":null,"lambda":[2]}"#);
    assert_eq!(one, read(r#"{"lambda":[2],"gate_bias":1.0,"act":"relu","preset":"paper"}"#));
    assert_eq!(one, r#"{"act":"relu","preset":"paper","lambda":[2],"gate_bias":1.0}"#);
}

#[test]
fn a_cell_from_a_variant_is_the_cell_from_its_document() {
    let sizes = Sizes { input: Some(2), hidden: Some(3), aux: Some(4), ..Sizes::default() };
    let options = of::LinearLogic {
        preset: Some(Preset::Paper),
        lambda: Some(vec![Numeral::Number(2)]),
        pi: Some(vec!["10".to_owned()]),
        v: Some(Operators::Full),
        x0: Some(FirstInput::Learned),
        ..of::LinearLogic::default()
    };
    let document = json!({"preset": "paper", "lambda": [2], "pi": ["10"], "v": "full", "x0": "learned"});
    let written = Cell::new(CellKind::LinearLogic, &sizes, &Options::read(&document).unwrap()).unwrap();
    assert_eq!(Cell::of(&Configuration::LinearLogic(options), &sizes).unwrap(), written);
}
