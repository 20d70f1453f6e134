//! `docs/linear-logic-rnn.md`: its files are written, its commands run, their answers compared with the page.

use std::path::Path;

use crate::common::Place;

/// The fenced blocks: the word behind the fence, and the text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fences = page.split("\n```").skip(1).step_by(2);
    fences.filter_map(|block| block.split_once('\n')).collect()
}

/// Whether `found` is `wanted` with something in the place of each `…`.
fn fits(wanted: &str, found: &str) -> bool {
    let mut rest = found;
    let mut parts = wanted.split('…').peekable();
    let mut is_first = true;
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let at = if is_last && !is_first { rest.rfind(part) } else { rest.find(part) };
        match at {
            Some(at) if !(is_first && at > 0) => rest = &rest[at + part.len()..],
            _ => return false,
        }
        is_first = false;
    }
    rest.is_empty()
}

#[test]
fn commands_answer_as_the_page_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/linear-logic-rnn.md");
    let page = std::fs::read_to_string(page).unwrap();
    let place = Place::new(&[]);
    let mut commands = 0;
    for (kind, text) in blocks(&page) {
        match kind {
            "json" | "toml" => {
                let (head, text) = text.split_once('\n').unwrap();
                std::fs::write(place.path(head.strip_prefix("# ").unwrap()), text).unwrap();
            }
            "console" => {
                for one in text.split("$ cargo xtask ").skip(1) {
                    let (args, wanted) = one.split_once('\n').unwrap();
                    let args: Vec<&str> = args.split(' ').collect();
                    let found = place.ok(&args);
                    let wanted = wanted.trim_end();
                    assert!(fits(wanted, found.trim_end()), "{args:?}\n{wanted}\n--- found\n{found}");
                    commands += 1;
                }
            }
            _ => {}
        }
    }
    assert_eq!(commands, 7);
    assert!(
        fits("a…c", "abc") && fits("a…", "ab") && !fits("a…c", "ab") && !fits("b", "ab") && !fits("a", "ab")
    );
    // Files that the page names are there.
    for name in ["rnn-quick", "rnn-local", "rnn-state", "rnn-ablation", "rnn-local-quick"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs").join(name).with_extension("toml");
        assert!(path.is_file() && page.contains(name.strip_suffix("-quick").unwrap_or(name)), "{name}");
    }
}
