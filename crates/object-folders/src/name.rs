//! Names that are the same on both sides: parts divided by `/`, none of which leads out of the folder.

use std::path::{Component, Path, PathBuf};

use crate::error::{Kind, Refusal};

/// The ending of a file that is not whole yet.
pub(crate) const PARTIAL: &str = ".partial";

/// The ending of the file that says which object a partial file is of.
pub(crate) const PARTIAL_OF: &str = ".partial-of";

/// Whether a file is somebody's unfinished work or lock, which is no content.
pub(crate) fn is_left_out(name: &str) -> bool {
    [PARTIAL, PARTIAL_OF, calculemus_base::file::TEMPORARY, ".lock"].iter().any(|end| name.ends_with(end))
}

/// Why a name cannot be used on both sides.
fn fault(name: &str) -> Option<&'static str> {
    let part = |part: &str| match part {
        "" => Some("it is absolute, or a part of it is empty"),
        "." | ".." => Some("it would leave the folder"),
        // A store of files takes these endings for its own unfinished files.
        part if part
            .split_once('#')
            .is_some_and(|(_, end)| !end.is_empty() && end.bytes().all(|b| b.is_ascii_digit())) =>
        {
            Some("# and digits at its end are a store's own")
        }
        part if part.contains('\\') || part.chars().any(char::is_control) => {
            Some("it has a backslash or a control character")
        }
        _ => None,
    };
    name.split('/').find_map(part)
}

/// Refuses a name that could not be used on both sides.
pub(crate) fn check(place: &str, name: &str) -> Result<(), Refusal> {
    match fault(name) {
        Some(why) => {
            let message = format!("{place}: the name {name:?} cannot be mirrored: {why}");
            Err(Refusal::new(Kind::BadName, message).help("give it another name"))
        }
        None => Ok(()),
    }
}

/// Where an object's file stands in a folder.
pub(crate) fn beside(url: &str, folder: &Path, name: &str) -> Result<PathBuf, Refusal> {
    check(url, name)?;
    let relative = Path::new(name);
    // What is a prefix or a root on this system only.
    if relative.components().any(|part| !matches!(part, Component::Normal(_))) {
        let message = format!("{url}: the name {name:?} would leave the folder");
        return Err(Refusal::new(Kind::BadName, message));
    }
    Ok(folder.join(relative))
}

/// The name of a file, from its path below the folder.
pub(crate) fn of(relative: &Path) -> Result<String, Refusal> {
    let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
    let place = relative.display().to_string();
    let Some(parts) = parts else {
        let message = format!("{place}: the name is not UTF-8");
        return Err(Refusal::new(Kind::BadName, message).help("give it another name"));
    };
    let name = parts.join("/");
    check(&place, &name)?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["..", "../a", "a/../b", "/a", "a//b", "", "a/", "./a", "a\\b", "a\nb", "a/b#12"] {
            let refused = beside("s3://b", Path::new("f"), name).unwrap_err();
            assert_eq!(refused.kind, Kind::BadName, "{name:?}");
        }
        for name in ["a", "a b/ü∀", "a#b", "a#", "..a", "a..", "%2e%2e", "100%", "#7a"] {
            assert_eq!(beside("s3://b", Path::new("f"), name).unwrap(), Path::new("f").join(name));
            assert_eq!(of(Path::new(name)).unwrap(), name);
        }
    }

    #[test]
    fn unfinished_work_is_no_content() {
        for name in ["a.partial", "b/.lock", "a.partial-of", "parts/0-of-3.part1a.tmp", "parts/0-of-3.lock"] {
            assert!(is_left_out(name), "{name}");
        }
        assert!(!is_left_out("parts/0-of-3.part"));
    }
}
