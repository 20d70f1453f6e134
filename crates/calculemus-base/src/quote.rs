//! The line of a text around a place, as a refusal quotes it.

/// The characters of a line that are shown on either side of a place.
pub const AROUND: usize = 60;

/// The part of a line around its character number `place`, and the column of that character in the part. What would steer
/// a terminal is shown as a dot.
pub fn neighbourhood(line: &str, place: usize) -> (String, usize) {
    let from = place.saturating_sub(AROUND);
    let visible = |c: char| if c.is_control() { '·' } else { c };
    let mut rest = line.chars().skip(from);
    let mut shown: String = if from > 0 { "…".to_owned() } else { String::new() };
    shown.extend(rest.by_ref().take(2 * AROUND).map(visible));
    if rest.next().is_some() {
        shown.push('…');
    }
    (shown, place - from + usize::from(from > 0))
}

/// The line of `text` at byte `start`, and carets below the bytes up to `end`: two lines, indented by two.
pub fn marked(text: &str, start: usize, end: usize) -> String {
    let line_start = text.get(..start).and_then(|s| s.rfind('\n')).map_or(0, |i| i + 1);
    let line = text.get(line_start..).and_then(|s| s.lines().next()).unwrap_or("");
    let before = text.get(line_start..start).map_or(0, |s| s.chars().count());
    let marked = text.get(start..end.min(line_start + line.len())).map_or(1, |s| s.chars().count());
    let (shown, column) = neighbourhood(line, before);
    format!("  {shown}\n  {}{}\n", " ".repeat(column), "^".repeat(marked.clamp(1, AROUND)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_all_kinds() {
        assert_eq!(marked("ab\ncde\nf", 4, 6), "  cde\n   ^^\n");
        assert_eq!(marked("", 0, 0), "  \n  ^\n");
        assert_eq!(marked("a\tb", 2, 3), "  a·b\n    ^\n");
        // A span of two lines is marked on its first; one behind the end is marked there.
        assert_eq!(marked("ab\ncd", 1, 4), "  ab\n   ^\n");
        assert_eq!(marked("ab", 2, 2), "  ab\n    ^\n");
        let long = "∀".repeat(500);
        let (shown, column) = neighbourhood(&long, 250);
        assert_eq!((shown.chars().count(), column), (2 * AROUND + 2, AROUND + 1));
        assert!(shown.starts_with('…') && shown.ends_with('…'));
    }
}
