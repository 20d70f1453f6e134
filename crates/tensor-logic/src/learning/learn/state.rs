//! Learning as it stands between two steps, as one file of named arrays: all that the rest of it depends on.
//!
//! Enter at [`State::bytes`], and at [`Stored::read`] for the way back. The parameters stand under their names, so that a
//! program can read them; beside them are what the optimiser keeps of each, the losses, and what clipping did, from which
//! the steps that an element has missed can be caught up with. The one entry of metadata holds the counters, what the
//! learning is of, and a digest of all of it: a file with one other bit is none.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

/// What the header of a state begins with.
const FORMAT: &str = "tensor-logic learning 1";

/// The one entry of metadata: a second one would make the order of the header random.
const ENTRY: &str = "state";

/// Everything but the arrays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Counters {
    /// Steps taken.
    pub step: u64,
    /// Steps in all.
    pub steps: u64,
    /// What was held out: how many epochs were looked at, and which of them was the best.
    pub valid: Option<(u64, u64)>,
    /// Of each parameter how many steps all its elements have taken, and whether a gradient has touched all.
    pub parameters: Vec<(u32, bool)>,
}

/// The numbers of an array.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Column<'a> {
    Doubles(Cow<'a, [f64]>),
    Words(Cow<'a, [u32]>),
    Places(Vec<u64>),
}

impl Column<'_> {
    fn dtype(&self) -> Dtype {
        match self {
            Column::Doubles(_) => Dtype::F64,
            Column::Words(_) => Dtype::U32,
            Column::Places(_) => Dtype::U64,
        }
    }

    fn len(&self) -> usize {
        match self {
            Column::Doubles(values) => values.len(),
            Column::Words(values) => values.len(),
            Column::Places(values) => values.len(),
        }
    }

    /// Little-endian.
    fn bytes(&self) -> Vec<u8> {
        match self {
            Column::Doubles(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Column::Words(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Column::Places(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        }
    }

    fn read(view: &TensorView<'_>) -> Option<Column<'static>> {
        let data = view.data();
        Some(match view.dtype() {
            Dtype::F64 => {
                Column::Doubles(data.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect())
            }
            Dtype::U32 => Column::Words(data.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect()),
            Dtype::U64 => Column::Places(data.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect()),
            _ => return None,
        })
    }
}

/// The header of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    about: serde_json::Value,
    counters: Counters,
    digest: String,
}

/// Learning as it stands.
#[derive(Debug, Default)]
pub struct State<'a> {
    pub(super) counters: Counters,
    arrays: BTreeMap<String, (Vec<usize>, Column<'a>)>,
}

impl<'a> State<'a> {
    /// Adds an array of one place.
    pub(super) fn add(&mut self, name: impl Into<String>, column: Column<'a>) {
        let shape = vec![column.len()];
        self.arrays.insert(name.into(), (shape, column));
    }

    /// Adds numbers of a shape.
    pub(super) fn shaped(&mut self, name: impl Into<String>, shape: Vec<usize>, values: &'a [f64]) {
        self.arrays.insert(name.into(), (shape, Column::Doubles(Cow::Borrowed(values))));
    }

    /// Steps in all.
    pub fn steps(&self) -> u64 {
        self.counters.steps
    }

    /// The file, with what the learning is of.
    ///
    /// # Errors
    /// What the format cannot hold.
    pub fn bytes(&self, about: serde_json::Value) -> Result<Vec<u8>, String> {
        let arrays: BTreeMap<&str, Array> = self
            .arrays
            .iter()
            .map(|(name, (shape, column))| (name.as_str(), (column.dtype(), shape.clone(), column.bytes())))
            .collect();
        let mut header = Header {
            format: FORMAT.to_owned(),
            about,
            counters: self.counters.clone(),
            digest: String::new(),
        };
        header.digest =
            digest(&header, arrays.iter().map(|(name, (_, _, bytes))| (*name, bytes.as_slice())))?;
        let header = serde_json::to_string(&header).map_err(|error| error.to_string())?;
        let views = arrays.iter().map(|(name, (dtype, shape, bytes))| {
            Ok((*name, TensorView::new(*dtype, shape.clone(), bytes).map_err(|error| error.to_string())?))
        });
        let views = views.collect::<Result<Vec<_>, String>>()?;
        let notes = HashMap::from([(ENTRY.to_owned(), header)]);
        safetensors::serialize(views, Some(notes)).map_err(|error| error.to_string())
    }
}

type Array = (Dtype, Vec<usize>, Vec<u8>);

/// What a file must have whoever wrote it whole.
fn digest<'b>(header: &Header, arrays: impl Iterator<Item = (&'b str, &'b [u8])>) -> Result<String, String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(serde_json::to_string(header).map_err(|error| error.to_string())?.as_bytes());
    for (name, bytes) in arrays {
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// A state that was read.
#[derive(Debug)]
pub struct Stored {
    /// What the learning is of.
    pub about: serde_json::Value,
    pub(super) counters: Counters,
    arrays: HashMap<String, Column<'static>>,
}

impl Stored {
    /// The state in the bytes of a file.
    ///
    /// # Errors
    /// Why they are none, to stand behind the file's name.
    pub fn read(bytes: &[u8]) -> Result<Stored, String> {
        let broken = |error| format!("is no whole state of learning ({error})");
        let file = SafeTensors::deserialize(bytes).map_err(broken)?;
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(broken)?;
        let text = metadata.metadata().as_ref().and_then(|entries| entries.get(ENTRY));
        let header = text.and_then(|text| serde_json::from_str::<Header>(text).ok());
        let foreign = || "is no state of learning".to_owned();
        let mut header = header.filter(|header| header.format == FORMAT).ok_or_else(foreign)?;
        let views: BTreeMap<&str, TensorView<'_>> = file.iter().collect();
        let wanted = std::mem::take(&mut header.digest);
        if digest(&header, views.iter().map(|(name, view)| (*name, view.data())))? != wanted {
            return Err("is damaged: it does not have the digest that it had".to_owned());
        }
        let read = |(name, view): (&str, TensorView<'_>)| Some((name.to_owned(), Column::read(&view)?));
        let arrays = views.into_iter().map(read).collect::<Option<_>>().ok_or_else(foreign)?;
        Ok(Stored { about: header.about, counters: header.counters, arrays })
    }

    /// Steps taken.
    pub fn step(&self) -> u64 {
        self.counters.step
    }

    /// Steps in all.
    pub fn steps(&self) -> u64 {
        self.counters.steps
    }

    /// Takes out an array of numbers, of so many if that is known.
    pub(super) fn doubles(&mut self, name: &str, count: Option<usize>) -> Result<Vec<f64>, Unfit> {
        match self.arrays.remove(name) {
            Some(Column::Doubles(values)) if count.is_none_or(|count| count == values.len()) => {
                Ok(values.into_owned())
            }
            _ => Err(Unfit),
        }
    }

    pub(super) fn words(&mut self, name: &str) -> Result<Vec<u32>, Unfit> {
        match self.arrays.remove(name) {
            Some(Column::Words(values)) => Ok(values.into_owned()),
            _ => Err(Unfit),
        }
    }

    pub(super) fn places(&mut self, name: &str) -> Result<Vec<usize>, Unfit> {
        match self.arrays.remove(name) {
            Some(Column::Places(values)) => {
                values.into_iter().map(|place| usize::try_from(place).map_err(|_| Unfit)).collect()
            }
            _ => Err(Unfit),
        }
    }
}

/// A state that is whole, and none of this learning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unfit;

#[cfg(test)]
mod tests {
    use super::*;

    fn state(values: &[f64]) -> State<'_> {
        let counters = Counters { step: 3, steps: 9, valid: Some((2, 1)), parameters: vec![(3, true)] };
        let mut state = State { counters, ..State::default() };
        state.shaped("W", vec![1, values.len()], values);
        state.add("taken.W", Column::Words(Cow::Borrowed(&[1, u32::MAX])));
        state.add("touched.W", Column::Places(vec![0, u64::MAX - 1]));
        state
    }

    #[test]
    fn what_is_written_is_read_and_the_bytes_are_the_same_each_time() {
        let values = [0.1 + 0.2, -0.0, f64::NAN, f64::NEG_INFINITY, 5e-324];
        let about = serde_json::json!({"seed": u64::MAX, "b": ["x", "\u{1F600}\""], "a": null});
        let bytes = state(&values).bytes(about.clone()).unwrap();
        assert_eq!(bytes, state(&values).bytes(about.clone()).unwrap());
        let mut stored = Stored::read(&bytes).unwrap();
        assert_eq!((&stored.about, &stored.counters), (&about, &state(&values).counters));
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<u64>>();
        assert_eq!(bits(&stored.doubles("W", Some(5)).unwrap()), bits(&values));
        assert_eq!(stored.words("taken.W").unwrap(), [1, u32::MAX]);
        assert_eq!(stored.places("touched.W").unwrap(), [0, usize::MAX - 1]);
        assert!(stored.doubles("W", None).is_err(), "an array is taken once");
    }

    /// Every bit that is another one, and every cut.
    #[test]
    fn what_is_damaged_is_refused() {
        let bytes = state(&[1.0, 2.0]).bytes(serde_json::json!({"seed": 1})).unwrap();
        for at in 0..bytes.len() {
            assert!(Stored::read(&bytes[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                assert!(Stored::read(&other).is_err(), "bit {bit} of byte {at}");
            }
        }
        let longer = [&bytes[..], b"x"].concat();
        assert!(Stored::read(&longer).is_err());
    }
}
