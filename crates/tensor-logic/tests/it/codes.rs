//! Every code of sections 9 and 10 is met: refused (or warned of) in a case `own-refuse-CODE`
//! (`own-warn-CODE`), and not in its nearest legal neighbour, `own-accept-CODE`
//! (`own-warn-CODE-none`). What the cases say is checked by `tests/cases.rs`.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its cases has failed")]

use crate::common;
use serde_json::Value as Json;
use tensor_logic::error::Code;

fn case(name: &str) -> Option<Json> {
    let text = std::fs::read_to_string(common::folder().join(format!("{name}.json"))).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

/// The first code under a key of a case.
fn first(case: &Json, key: &str) -> Option<String> {
    case[key][0]["code"].as_str().map(str::to_owned)
}

#[test]
fn every_code_has_a_case_and_a_legal_neighbour() {
    let mut missing = Vec::new();
    for code in Code::ALL.iter().filter(|code| **code != Code::NotYet) {
        let name = code.name();
        let (refused, accepted, key) = if code.is_warning() {
            (format!("own-warn-{name}"), format!("own-warn-{name}-none"), "warnings")
        } else {
            (format!("own-refuse-{name}"), format!("own-accept-{name}"), "errors")
        };
        let with = case(&refused).and_then(|case| first(&case, key));
        if with.as_deref() != Some(name) {
            missing.push(refused);
        }
        let without = case(&accepted).filter(|case| case["exit"] == 0 && first(case, key).is_none());
        if without.is_none() {
            missing.push(accepted);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
