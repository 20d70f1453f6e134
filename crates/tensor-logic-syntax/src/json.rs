//! The parts of which JSON is written, straight into one text and byte for byte the same on every run.

use std::fmt::Write;

/// A text in quotes.
pub fn string(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => write_to(out, format_args!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// A real number: the shortest decimal that reads back as the same number, with a point or an
/// exponent; infinities and NaN in quotes. A zero has no sign.
pub fn real(out: &mut String, value: f64) {
    if value.is_nan() {
        out.push_str("\"nan\"");
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "\"inf\"" } else { "\"-inf\"" });
    } else {
        write_to(out, format_args!("{:?}", value + 0.0));
    }
}

/// The keys of a line: `"line": 7`, and `"file": "gcn.tl"` where it is one of an included file.
pub fn line(out: &mut String, line: Option<(Option<&str>, usize)>) {
    match line {
        Some((_, line)) => write_to(out, format_args!("\"line\": {line}")),
        None => out.push_str("\"line\": null"),
    }
    if let Some((Some(file), _)) = line {
        out.push_str(", \"file\": ");
        string(out, file);
    }
}

/// A list; `item` writes one.
pub fn list<T>(out: &mut String, items: impl IntoIterator<Item = T>, mut item: impl FnMut(&mut String, T)) {
    out.push('[');
    for (at, each) in items.into_iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        item(out, each);
    }
    out.push(']');
}

/// Writes what `format!` would make.
pub fn write_to(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = out.write_fmt(arguments);
}
