//! Reading the formulas of a split one by one, from where they lie.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::files;
use super::manifest::{FileEntry, bad, beside};
use crate::error::{Kind, Refusal};
use crate::symbol::SymbolId;

/// Pairs of files that are kept open.
const OPEN: usize = 32;

/// The formulas of a split on disk. What it holds in memory does not grow with them; in whichever order formulas are
/// read, they are those of [`Split`](super::Split).
#[derive(Debug)]
pub struct Reader {
    pieces: Vec<Piece>,
    len: u64,
    /// Tokens and offsets of pieces.
    open: HashMap<usize, [File; 2]>,
}

/// Files of a piece of a split, and where it stands in it.
#[derive(Debug)]
struct Piece {
    tokens: PathBuf,
    offsets: PathBuf,
    first: u64,
    formulas: u64,
    length: u64,
}

impl Reader {
    pub(super) fn new(folder: &Path, files: &[FileEntry]) -> Result<Self, Refusal> {
        let mut len = 0;
        let pieces = files.iter().map(|file| {
            let first = len;
            len += file.formulas;
            let (tokens, offsets) = (beside(folder, &file.tok)?, beside(folder, &file.off)?);
            Ok(Piece { tokens, offsets, first, formulas: file.formulas, length: file.tokens })
        });
        let pieces = pieces.collect::<Result<_, Refusal>>()?;
        Ok(Self { pieces, len, open: HashMap::new() })
    }

    /// The first formulas only, `n` of them (all, if `n` is 0).
    #[must_use]
    pub fn first(mut self, n: u64) -> Self {
        if n > 0 {
            self.len = self.len.min(n);
        }
        self
    }

    /// The number of formulas.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no formulas.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of tokens of each formula, `<bos>` and `<eos>` among them.
    ///
    /// # Errors
    /// `NotFound`, `Io`, `Truncated`, or `BadManifest` for offsets that do not ascend.
    pub fn lengths(&self) -> Result<Vec<u32>, Refusal> {
        let mut lengths = Vec::new();
        for piece in &self.pieces {
            let here = piece.formulas.min(self.len.saturating_sub(piece.first));
            let mut file = BufReader::new(crate::file::open(&piece.offsets)?);
            let mut before = None;
            for _ in 0..=here {
                let mut bytes = [0; 8];
                file.read_exact(&mut bytes).map_err(|e| short(&piece.offsets, &e))?;
                let offset = u64::from_le_bytes(bytes);
                if let Some(before) = before {
                    lengths.push(piece.length_of(before, offset)?);
                }
                before = Some(offset);
            }
        }
        Ok(lengths)
    }

    /// The sequence of a formula, `<bos>` and `<eos>` included.
    ///
    /// # Errors
    /// `NotFound` beyond the last; `Io`, `Truncated` or `BadManifest` for files that have changed since they were verified.
    pub fn read(&mut self, formula: u64) -> Result<Vec<SymbolId>, Refusal> {
        let at = self.pieces.partition_point(|piece| piece.first + piece.formulas <= formula);
        let Some(piece) = self.pieces.get(at).filter(|_| formula < self.len) else {
            let message = format!("there is no formula {formula}: the split has {}", self.len);
            return Err(Refusal::new(Kind::NotFound, message));
        };
        if !self.open.contains_key(&at) {
            if self.open.len() >= OPEN {
                self.open.clear();
            }
            let files = [crate::file::open(&piece.tokens)?, crate::file::open(&piece.offsets)?];
            self.open.insert(at, files);
        }
        let Some([tokens, offsets]) = self.open.get_mut(&at) else { return Ok(Vec::new()) };
        let mut pair = [0; 16];
        read_at(offsets, &piece.offsets, (formula - piece.first) * 8, &mut pair)?;
        let [from, to] = [0, 8].map(|i| {
            let bytes = pair.get(i..i + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_le_bytes)
        });
        let length = piece.length_of(from, to)?;
        let mut bytes = vec![0; length as usize * 2];
        read_at(tokens, &piece.tokens, from * 2, &mut bytes)?;
        let symbol = |pair: &[u8; 2]| {
            let why = || bad(&piece.tokens, "an id is no symbol");
            SymbolId::new(u16::from_le_bytes(*pair)).ok_or_else(why)
        };
        bytes.as_chunks::<2>().0.iter().map(symbol).collect()
    }
}

impl Piece {
    fn length_of(&self, from: u64, to: u64) -> Result<u32, Refusal> {
        let length =
            to.checked_sub(from).filter(|_| to <= self.length).and_then(|length| length.try_into().ok());
        length.ok_or_else(|| bad(&self.offsets, "the offsets do not ascend to the number of tokens"))
    }
}

fn read_at(file: &mut File, path: &Path, at: u64, to: &mut [u8]) -> Result<(), Refusal> {
    file.seek(SeekFrom::Start(at)).map_err(|e| files::io(path, &e))?;
    file.read_exact(to).map_err(|e| short(path, &e))
}

/// What reading said; a file that ends too early has lost something since it was verified.
fn short(path: &Path, error: &std::io::Error) -> Refusal {
    if error.kind() != std::io::ErrorKind::UnexpectedEof {
        return files::io(path, error);
    }
    let message = format!("{} ends too early: it has changed since it was verified", path.display());
    Refusal::new(Kind::Truncated, message).help("generate the data set again")
}
