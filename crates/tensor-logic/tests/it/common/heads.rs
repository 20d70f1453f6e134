//! What the left side of a line of a random program says.

/// The name of a square tensor that a line computes, and how many places it has.
pub(crate) fn square(line: &str) -> Option<(String, usize)> {
    let end = line.find(|letter: char| !letter.is_alphanumeric())?;
    let (name, rest) = line.split_at(end);
    if !name.starts_with(char::is_uppercase) || rest.starts_with('(') || !rest.contains('=') {
        return None;
    }
    let Some(inside) = rest.strip_prefix('[') else { return Some((name.to_owned(), 0)) };
    let mut depth = 0;
    let mut places = 1;
    for letter in inside.chars() {
        match letter {
            '(' | '[' => depth += 1,
            ']' if depth == 0 => return Some((name.to_owned(), places)),
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => places += 1,
            _ => {}
        }
    }
    None
}
