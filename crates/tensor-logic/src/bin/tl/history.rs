//! The lines of earlier dialogues, in a file of lines.

use std::io::Write;
use std::path::{Path, PathBuf};

use calculemus_base::file::Whole;

/// So many lines are remembered.
const MOST: usize = 1000;

/// Where they are remembered, if there is such a place.
pub(crate) fn place() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    Some(state.or_else(home)?.join("tl").join("history"))
}

/// The lines; none where there is no such file.
pub(crate) fn load(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Writes the last lines, to a file of another name that is then renamed.
pub(crate) fn save<'l>(
    path: &Path,
    lines: impl DoubleEndedIterator<Item = &'l String>,
) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
        std::fs::create_dir_all(folder)?;
    }
    let mut whole = Whole::create(path)?;
    let one = |line: &&String| !line.is_empty() && !line.contains(['\n', '\r']);
    let last: Vec<&String> = lines.rev().filter(one).take(MOST).collect();
    for line in last.into_iter().rev() {
        whole.write_all(line.as_bytes())?;
        whole.write_all(b"\n")?;
    }
    whole.finish()
}

#[cfg(test)]
mod tests {
    use super::{MOST, load, save};

    #[test]
    fn the_last_lines_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/history");
        assert_eq!(load(&path), Vec::<String>::new());
        let lines: Vec<String> = (0..MOST + 5).map(|at| format!("N = {at}?")).collect();
        save(&path, lines.iter()).unwrap();
        assert_eq!(load(&path), lines[5..]);
        let odd = ["Y?".to_owned(), "a\nb".to_owned(), String::new(), "Größe?".to_owned()];
        save(&path, odd.iter()).unwrap();
        assert_eq!(load(&path), ["Y?", "Größe?"]);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
