//! What each formula of a suite cost, in a file beside the evaluation: two runs are compared formula by formula.

use std::path::Path;

use anyhow::{Context, Result, bail};
use symbolic_transformer::evaluate::iid::FormulaScore;

const HEAD: &str = "targets,nats,optimum";

/// The name of the file: that of the evaluation, with the suite in it.
pub(super) fn file(evaluation: &str, suite: &str) -> String {
    let stem = evaluation.strip_suffix(".json").unwrap_or(evaluation);
    format!("scores-{suite}{}.csv", stem.strip_prefix("eval").unwrap_or(stem))
}

/// The name of a data set that a run was not trained on, as that of a suite: no two have one.
pub(super) fn transfer(data: &str) -> String {
    let mut name = "transfer-".to_owned();
    for byte in data.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name
}

/// One line a formula, in the order of the data: the number of targets, Σ −ln q, Σ −ln p*, in nats.
pub(super) fn text(scores: &[FormulaScore]) -> String {
    let line = |score: &FormulaScore| format!("{},{},{}\n", score.targets, score.nats, score.optimal);
    std::iter::once(format!("{HEAD}\n")).chain(scores.iter().map(line)).collect()
}

/// The scores in a file, which must have the digest that the evaluation says.
pub(super) fn read(path: &Path, digest: &str) -> Result<Vec<FormulaScore>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    if blake3::hash(text.as_bytes()).to_hex().as_str() != digest {
        bail!("{}: it is not what the evaluation beside it wrote; judge the run again", path.display());
    }
    let mut lines = text.lines();
    let head = lines.next() == Some(HEAD);
    let line = |line: &str| {
        let mut fields = line.split(',');
        let score = FormulaScore {
            targets: fields.next()?.parse().ok()?,
            nats: fields.next()?.parse().ok()?,
            optimal: fields.next()?.parse().ok()?,
        };
        fields.next().is_none().then_some(score)
    };
    let scores: Option<Vec<FormulaScore>> = lines.map(line).collect();
    scores.filter(|_| head).with_context(|| format!("{}: not a table of scores", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file("eval-other.json", "iid"));
        assert!(path.ends_with("scores-iid-other.csv"));
        assert_eq!(file("eval.json", "test"), "scores-test.csv");
        assert_eq!(transfer("t_2"), "transfer-t_2");
        assert_eq!(transfer("t.2"), "transfer-t.2");
        assert_eq!(transfer("a/t%"), "transfer-a%2ft%25");
        let scores = [
            FormulaScore { targets: 3, nats: 0.1 + 0.2, optimal: f64::INFINITY },
            FormulaScore { targets: 0, nats: 0.0, optimal: 1e-300 },
        ];
        std::fs::write(&path, text(&scores)).unwrap();
        let digest = blake3::hash(text(&scores).as_bytes()).to_hex().to_string();
        assert_eq!(read(&path, &digest).unwrap(), scores);
        std::fs::write(&path, text(&scores[..1])).unwrap();
        assert!(read(&path, &digest).unwrap_err().to_string().contains("judge the run again"));
    }
}
