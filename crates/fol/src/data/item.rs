//! One drawn text with all that is known about it, and its bytes in parts and records (F53).

use std::io::Read;

use crate::canon::{Canonicalizer, Keys};
use crate::error::Refusal;
use crate::key::{Key, push_bytes};
use crate::sample::Sampler;
use crate::score::Scorer;
use crate::symbol::SymbolId;

/// What the record file says about a formula: 40 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record {
    /// The number of the item in its stream.
    pub item: u64,
    /// −ln p in nats, `<eos>` included.
    pub nll: f64,
    /// 1 to 4; 0 for a text that is not one formula.
    pub level: u8,
    /// The largest quantifier depth.
    pub quantifier_depth: u8,
    /// The nodes of all formulas.
    pub nodes: u16,
    /// How many drawn items are in this class.
    pub multiplicity: u32,
    /// The K2 key.
    pub key: Key,
}

impl Record {
    /// The size in bytes.
    pub const SIZE: usize = 40;

    /// The bytes, little-endian.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let fields = self
            .item
            .to_le_bytes()
            .into_iter()
            .chain(self.nll.to_le_bytes())
            .chain([self.level, self.quantifier_depth])
            .chain(self.nodes.to_le_bytes())
            .chain(self.multiplicity.to_le_bytes())
            .chain(self.key.0);
        bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
        bytes
    }

    /// The record of these bytes.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let reader = &mut bytes;
        Some(Self {
            item: u64::from_le_bytes(take(reader)?),
            nll: f64::from_le_bytes(take(reader)?),
            level: u8::from_le_bytes(take(reader)?),
            quantifier_depth: u8::from_le_bytes(take(reader)?),
            nodes: u16::from_le_bytes(take(reader)?),
            multiplicity: u32::from_le_bytes(take(reader)?),
            key: Key(take(reader)?),
        })
    }
}

/// A drawn text as parts hold it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) record: Record,
    /// Keys at K0 to K3.
    pub(super) keys: Keys,
    /// It was too long at first.
    pub(super) redrawn: bool,
    /// Without `<bos>` and `<eos>`.
    pub(super) tokens: Vec<SymbolId>,
}

/// What drawing needs, one for each thread.
pub(super) struct Drawer {
    sampler: Sampler,
    scorer: Scorer,
    canonicalizer: Canonicalizer,
}

impl Drawer {
    pub(super) fn new(sampler: Sampler, scorer: Scorer) -> Self {
        Self { sampler, scorer, canonicalizer: Canonicalizer::default() }
    }

    /// Draws one item of a stream.
    pub(super) fn draw(&mut self, family: &seeded::Family, item: u64) -> Result<Item, Refusal> {
        let mut tokens = Vec::new();
        let facts = self.sampler.sample(&mut family.stream(item), &mut tokens);
        let keys = self.canonicalizer.keys(&tokens)?;
        let record = Record {
            item,
            nll: self.scorer.score(&tokens)?,
            level: facts.level,
            quantifier_depth: u8::try_from(facts.quantifier_depth).unwrap_or(u8::MAX),
            nodes: u16::try_from(facts.nodes).unwrap_or(u16::MAX),
            multiplicity: 1,
            key: keys[2],
        };
        Ok(Item { record, keys, redrawn: facts.redraws > 0, tokens })
    }
}

impl Item {
    /// Appends the bytes of the item in a part.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.record.to_bytes());
        self.keys.iter().for_each(|key| out.extend(key.0));
        out.push(u8::from(self.redrawn));
        out.extend((self.tokens.len() as u32).to_le_bytes());
        push_bytes(out, &self.tokens);
    }

    /// Reads the next item of a part; `None` if the bytes are not one. All but the tokens is read at once.
    pub(super) fn read(reader: &mut impl Read) -> Option<Self> {
        const HEAD: usize = Record::SIZE + 4 * 16 + 1 + 4;
        let head: [u8; HEAD] = take(reader)?;
        let head = &mut head.as_slice();
        let record = Record::from_bytes(&take::<{ Record::SIZE }>(head)?)?;
        let mut keys = [Key([0; 16]); 4];
        for key in &mut keys {
            *key = Key(take(head)?);
        }
        let redrawn = take::<1>(head)? == [1];
        let bytes = 2 * u64::from(u32::from_le_bytes(take(head)?));
        // The length is not trusted: the buffer grows with what is there.
        let mut text = Vec::with_capacity(bytes.min(4096) as usize);
        reader.take(bytes).read_to_end(&mut text).ok().filter(|&n| n as u64 == bytes)?;
        let (pairs, _) = text.as_chunks::<2>();
        let tokens =
            pairs.iter().map(|pair| SymbolId::new(u16::from_le_bytes(*pair))).collect::<Option<_>>()?;
        Some(Self { record, keys, redrawn, tokens })
    }
}

/// The next bytes.
fn take<const N: usize>(reader: &mut impl Read) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
