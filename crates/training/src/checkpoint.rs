//! Checkpoints: one safetensors file that holds everything needed to go on, and the weights for others.
//!
//! `last/step-0000500.safetensors` holds `model.*`, `optim.m.*`, `optim.v.*`, `ema.*`, and one metadata entry
//! `state` (a JSON text; a second entry would make the header's order random). One file, so one rename makes it
//! valid. The newest two are kept.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::error::{Refusal, Result};
use crate::files;
use crate::optimiser::Moments;
use crate::parameters::Layout;

/// Everything but the tensors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Updates done, skipped ones included.
    pub step: u64,
    /// The epoch of the next batch.
    pub epoch: u64,
    /// The number of the next batch in its epoch.
    pub position: u64,
    /// The best watched value, and the update that reached it.
    pub best: Option<(f64, u64)>,
    /// The best value that early stopping compares with.
    pub plateau: Option<f64>,
    /// Evaluations since `plateau` was set.
    pub waited: u64,
    /// Evaluations in a row that reached the goal of the run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reached: u64,
    /// Valid targets since the start.
    pub targets: u64,
    /// Skipped updates since the start.
    pub skipped: u64,
    /// Skipped updates in a row.
    pub skipped_in_a_row: u64,
    /// Steps of all sequences since the start, for learners that count them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sequence_steps: u64,
    /// Sums since the last `update` line: loss, targets, norm · targets.
    pub interval: (f64, u64, f64),
    /// Why the run ended, if it did.
    pub ended: Option<String>,
    /// What the learner remembers beside its weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learner: Option<serde_json::Value>,
    /// The seed.
    pub seed: u64,
    /// BLAKE3 of the resolved configuration, without the keys that a resumed run may change.
    pub config_digest: String,
    /// The digest of the data set.
    pub data_digest: String,
    /// BLAKE3 of all tensors, in name order.
    pub tensor_digest: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A checkpoint in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Counters and digests.
    pub state: State,
    /// The weights, in the order of the layout.
    pub theta: Vec<f32>,
    /// The optimiser's moments and the average of the weights.
    pub moments: Moments,
}

type Tensors<'a> = BTreeMap<String, (Vec<usize>, &'a [u8])>;

/// The bytes of f32 as the format stores them: little-endian.
fn bytes_of(x: &[f32]) -> std::borrow::Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        std::borrow::Cow::Borrowed(as_bytes(x))
    } else {
        std::borrow::Cow::Owned(x.iter().flat_map(|v| v.to_le_bytes()).collect())
    }
}

#[expect(unsafe_code, reason = "a view of f32 as bytes")]
fn as_bytes(x: &[f32]) -> &[u8] {
    // SAFETY: every byte of an f32 slice is initialised, u8 has alignment 1, and the length is in bytes.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), size_of_val(x)) }
}

fn digest(tensors: &Tensors<'_>) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, (_, bytes)) in tensors {
        hasher.update(name.as_bytes());
        hasher.update(bytes);
    }
    hasher.finalize().to_hex().to_string()
}

fn named<'a>(layout: &Layout, prefix: &str, flat: &'a [u8], into: &mut Tensors<'a>) {
    for p in layout.iter() {
        if let Some(bytes) = flat.get(4 * p.range.start..4 * p.range.end) {
            into.insert(format!("{prefix}{}", p.name), (p.shape.clone(), bytes));
        }
    }
}

fn serialise(tensors: &Tensors<'_>, metadata: (&str, String), path: &Path) -> Result<Vec<u8>> {
    let views = tensors
        .iter()
        .map(|(name, (shape, bytes))| Ok((name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes)?)))
        .collect::<std::result::Result<Vec<_>, safetensors::SafeTensorError>>();
    let metadata = HashMap::from([(metadata.0.to_owned(), metadata.1)]);
    views
        .and_then(|views| safetensors::serialize(views, Some(metadata)))
        .map_err(|e| Refusal::bad_file(path, e.to_string()))
}

/// Writes named weights for others to use; the only metadata entry is `format` = `pt`.
pub fn save_weights(path: &Path, layout: &Layout, theta: &[f32]) -> Result<()> {
    let bytes = bytes_of(theta);
    let mut tensors = Tensors::new();
    named(layout, "", &bytes, &mut tensors);
    files::write(path, &serialise(&tensors, ("format", "pt".to_owned()), path)?)
}

/// Reads weights; missing, unknown and misshapen tensors are refused by name, and so are entries that are not finite.
pub fn load_weights(path: &Path, layout: &Layout) -> Result<Vec<f32>> {
    let bytes = std::fs::read(path).map_err(Refusal::io(path))?;
    let tensors = open(path, &bytes)?;
    let theta = gather(path, layout, &tensors, "")?;
    layout.check_finite(&theta).map_err(|e| Refusal::bad_file(path, e.to_string()))?;
    Ok(theta)
}

fn open<'a>(path: &Path, bytes: &'a [u8]) -> Result<SafeTensors<'a>> {
    SafeTensors::deserialize(bytes)
        .map_err(|e| Refusal::bad_file(path, format!("not a whole safetensors file ({e})")))
}

fn gather(path: &Path, layout: &Layout, tensors: &SafeTensors<'_>, prefix: &str) -> Result<Vec<f32>> {
    let names: Vec<String> =
        tensors.names().iter().filter_map(|n| n.strip_prefix(prefix).map(ToOwned::to_owned)).collect();
    let get = |name: &str| {
        let view = tensors.tensor(&format!("{prefix}{name}")).ok()?;
        let (words, _) = view.data().as_chunks::<4>();
        let entries =
            (view.dtype() == Dtype::F32).then(|| words.iter().map(|w| f32::from_le_bytes(*w)).collect());
        Some((view.shape().to_vec(), entries?))
    };
    layout.gather(names.iter().map(String::as_str), get).map_err(|e| Refusal::bad_file(path, e.to_string()))
}

fn file_name(step: u64) -> String {
    format!("step-{step:07}.safetensors")
}

/// The checkpoints in a folder, newest first.
pub fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Refusal::io(folder)(e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(Refusal::io(folder))?.path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let step = name.strip_prefix("step-").and_then(|n| n.strip_suffix(".safetensors"));
        if let Some(step) = step.and_then(|s| s.parse::<u64>().ok()) {
            found.push((step, path));
        }
    }
    found.sort_by_key(|f| std::cmp::Reverse(f.0));
    Ok(found)
}

/// Removes all checkpoints of a folder but the newest two.
pub fn keep_two(folder: &Path) -> Result<()> {
    for (_, old) in list(folder)?.into_iter().skip(2) {
        std::fs::remove_file(&old).map_err(Refusal::io(&old))?;
    }
    Ok(())
}

impl Checkpoint {
    /// Writes the checkpoint into `folder`, then removes all but the newest two.
    pub fn save(&mut self, folder: &Path, layout: &Layout) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(Refusal::io(folder))?;
        let path = folder.join(file_name(self.state.step));
        files::write(&path, &self.write_bytes(layout, &path)?)?;
        keep_two(folder)
    }

    /// The file; `path` is what refusals call it.
    pub(crate) fn write_bytes(&mut self, layout: &Layout, path: &Path) -> Result<Vec<u8>> {
        let (theta, m, v) = (bytes_of(&self.theta), bytes_of(&self.moments.m), bytes_of(&self.moments.v));
        let ema = self.moments.ema.as_deref().map(bytes_of);
        let mut tensors = Tensors::new();
        named(layout, "model.", &theta, &mut tensors);
        named(layout, "optim.m.", &m, &mut tensors);
        named(layout, "optim.v.", &v, &mut tensors);
        if let Some(ema) = &ema {
            named(layout, "ema.", ema, &mut tensors);
        }
        self.state.tensor_digest = digest(&tensors);
        let state =
            serde_json::to_string(&self.state).map_err(|e| Refusal::bad_file(path, format!("state: {e}")))?;
        serialise(&tensors, ("state", state), path)
    }

    /// Reads the newest checkpoint; `None` if there is none. A damaged one is refused, and the message names the
    /// older intact one.
    pub fn newest(folder: &Path, layout: &Layout) -> Result<Option<Self>> {
        let found = list(folder)?;
        let Some((_, path)) = found.first() else { return Ok(None) };
        match Self::load(path, layout) {
            Ok(checkpoint) => Ok(Some(checkpoint)),
            Err(Refusal::BadFile { path, reason }) => {
                let intact = found.iter().skip(1).find(|(_, p)| Self::load(p, layout).is_ok());
                let advice = match intact {
                    Some((_, p)) => {
                        format!("; {} is intact: delete the damaged file to resume there", p.display())
                    }
                    None => "; there is no older intact checkpoint".to_owned(),
                };
                Err(Refusal::BadFile { path, reason: reason + &advice })
            }
            Err(e) => Err(e),
        }
    }

    /// Reads one file and checks names, shapes, dtypes and the digest of its tensors.
    pub fn load(path: &Path, layout: &Layout) -> Result<Self> {
        Self::from_bytes(&std::fs::read(path).map_err(Refusal::io(path))?, path, layout)
    }

    /// Reads what [`write_bytes`](Self::write_bytes) made.
    pub(crate) fn from_bytes(bytes: &[u8], path: &Path, layout: &Layout) -> Result<Self> {
        let tensors = open(path, bytes)?;
        let state = read_state(path, bytes)?;
        let has_ema = tensors.names().iter().any(|n| n.starts_with("ema."));
        let known = |n: &str| ["model.", "optim.m.", "optim.v.", "ema."].iter().any(|p| n.starts_with(p));
        if let Some(name) = tensors.names().into_iter().find(|n| !known(n)) {
            return Err(Refusal::bad_file(path, format!("tensor `{name}` is not part of a checkpoint")));
        }
        let mut by_name = Tensors::new();
        for (name, view) in tensors.iter() {
            by_name.insert(name.to_owned(), (view.shape().to_vec(), view.data()));
        }
        if digest(&by_name) != state.tensor_digest {
            return Err(Refusal::bad_file(
                path,
                "the tensors do not match their digest: the file is damaged",
            ));
        }
        let theta = gather(path, layout, &tensors, "model.")?;
        let (m, v) =
            (gather(path, layout, &tensors, "optim.m.")?, gather(path, layout, &tensors, "optim.v.")?);
        let ema = if has_ema { Some(gather(path, layout, &tensors, "ema.")?) } else { None };
        Ok(Self { state, theta, moments: Moments { m, v, ema } })
    }
}

fn read_state(path: &Path, bytes: &[u8]) -> Result<State> {
    let (_, header) = SafeTensors::read_metadata(bytes)
        .map_err(|e| Refusal::bad_file(path, format!("not a whole safetensors file ({e})")))?;
    let text = header.metadata().as_ref().and_then(|m| m.get("state"));
    let text = text.ok_or_else(|| Refusal::bad_file(path, "no `state`: not a checkpoint of this program"))?;
    serde_json::from_str(text).map_err(|e| Refusal::bad_file(path, format!("state: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::{Decay, Initial};

    fn sample(step: u64) -> (Layout, Checkpoint) {
        let mut layout = Layout::default();
        layout.add("b", &[3, 2], Decay::Yes, Initial::Normal(1.0));
        layout.add("a", &[4], Decay::No, Initial::Normal(1.0));
        let theta = layout.initialise(step);
        let moments = Moments::new(&theta, 0.9);
        let state = State { step, best: Some((0.1 + 0.2, 3)), interval: (1e-7, 5, 0.3), ..State::default() };
        (layout, Checkpoint { state, theta, moments })
    }

    #[test]
    fn saved_is_loaded_and_two_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        for step in [5, 10, 15] {
            let (layout, mut checkpoint) = sample(step);
            checkpoint.save(folder.path(), &layout).unwrap();
            assert_eq!(Checkpoint::newest(folder.path(), &layout).unwrap().unwrap(), checkpoint);
        }
        let steps: Vec<u64> = list(folder.path()).unwrap().iter().map(|f| f.0).collect();
        assert_eq!(steps, [15, 10]);
    }

    #[test]
    fn files_are_the_same_bytes_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let (layout, checkpoint) = sample(5);
        let path = folder.path().join("model.safetensors");
        save_weights(&path, &layout, &checkpoint.theta).unwrap();
        let first = std::fs::read(&path).unwrap();
        save_weights(&path, &layout, &checkpoint.theta).unwrap();
        assert_eq!(first, std::fs::read(&path).unwrap());
        assert_eq!(load_weights(&path, &layout).unwrap(), checkpoint.theta);
    }

    #[test]
    fn damaged_files_are_refused_and_the_intact_one_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (layout, mut old) = sample(5);
        old.save(folder.path(), &layout).unwrap();
        let (_, mut new) = sample(10);
        new.save(folder.path(), &layout).unwrap();
        let path = folder.path().join(file_name(10));
        let good = std::fs::read(&path).unwrap();
        let mut flipped = good.clone();
        let last = flipped.len() - 3;
        flipped[last] ^= 1;
        let huge_header = [&u64::MAX.to_le_bytes()[..], &good[8..]].concat();
        for bad in
            [&good[..good.len() - 1], &good[..7], &[], &flipped, b"not a checkpoint at all", &huge_header]
        {
            std::fs::write(&path, bad).unwrap();
            let e = Checkpoint::newest(folder.path(), &layout).unwrap_err().to_string();
            assert!(e.contains("step-0000010") && e.contains("step-0000005"), "{e}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(Checkpoint::newest(folder.path(), &layout).unwrap().unwrap(), old);
    }

    #[test]
    fn weights_that_are_not_finite_are_refused_by_tensor_name() {
        let folder = tempfile::tempdir().unwrap();
        let (layout, checkpoint) = sample(5);
        let path = folder.path().join("model.safetensors");
        let a = layout.get("a").unwrap().range.clone();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut theta = checkpoint.theta.clone();
            theta[a.start + 2] = bad;
            save_weights(&path, &layout, &theta).unwrap();
            let refusal = load_weights(&path, &layout).unwrap_err().to_string();
            assert!(refusal.contains("`a`") && refusal.contains("entry 2"), "{refusal}");
        }
    }

    #[test]
    fn a_foreign_model_is_refused_by_tensor_name() {
        let folder = tempfile::tempdir().unwrap();
        let (layout, checkpoint) = sample(5);
        let path = folder.path().join("model.safetensors");
        save_weights(&path, &layout, &checkpoint.theta).unwrap();
        let mut other = Layout::default();
        other.add("b", &[3, 2], Decay::Yes, Initial::Constant(0.0));
        assert!(load_weights(&path, &other).unwrap_err().to_string().contains("`a`"));
        other.add("a", &[5], Decay::Yes, Initial::Constant(0.0));
        assert!(load_weights(&path, &other).unwrap_err().to_string().contains("[4]"));
        assert!(load_weights(&folder.path().join("none"), &layout).is_err());
    }
}
