//! A device that was opened, and what it does.

mod on;
mod operations;
mod products;

use std::fmt;

use cubecl::server::Handle;
use training::kernels::{Activation, Dropout, Tables};

pub(crate) use self::on::On;
use crate::error::Result;
use crate::kernels::attention;
use crate::sixteen::Sixteen;

/// Numbers on a device: `f32`, or `u32` where they are places.
#[derive(Clone)]
pub struct Buffer {
    handle: Handle,
    len: usize,
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Buffer {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A parameter in the buffer of all.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// All parameters, or the gradient of all.
    pub of: &'a Buffer,
    /// The place of the first entry.
    pub at: usize,
}

/// Rows of one width.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    /// How many.
    pub rows: usize,
    /// Their width.
    pub width: usize,
}

impl Rows {
    fn len(self) -> usize {
        self.rows * self.width
    }
}

/// Masks of dropout for rows from a row of the whole batch on.
#[derive(Debug, Clone, Copy)]
pub struct Masks {
    /// The masks; nothing is dropped without them.
    pub dropout: Option<Dropout>,
    /// The number of the first row in the whole batch.
    pub first_row: usize,
}

/// One layer's attention over a ragged batch.
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    /// The number of heads.
    pub heads: usize,
    /// The width of a head.
    pub size: usize,
    /// Rows of the batch.
    pub rows: usize,
    /// Slopes of the distance penalty, \[heads\], if there is one.
    pub slopes: Option<&'a Buffer>,
    /// Dropout of the weights; a row is a row of the batch and a head, a column a position in the sequence.
    pub masks: Masks,
    /// For each tile of rows the first row of its sequence, the row behind the last, its own first row, and where the
    /// sequence's relations begin; see [`Machine::tiles`].
    pub tiles: &'a Buffer,
    /// What rows are to each other, r(i, j), \[Σ n²\], sequence by sequence, row by row.
    pub relations: Option<Related<'a>>,
}

/// What rows are to each other, and what that does: `training::kernels::Relations` on a device.
#[derive(Debug, Clone, Copy)]
pub struct Related<'a> {
    /// Numbers of relations, all below `count` where they are read.
    pub numbers: &'a Buffer,
    /// How many there are.
    pub count: usize,
    /// All parameters.
    pub theta: &'a Buffer,
    /// Where among them each table begins that there is, and as well in their gradient.
    pub tables: Tables<usize>,
    /// In heads from this one on, rows of the number are not looked at, but for the first of the sequence and the row itself.
    pub hidden: Option<(usize, u8)>,
}

impl Related<'_> {
    fn knows(&self) -> attention::Knows {
        let Tables { bias, keys, values } = self.tables;
        attention::Knows {
            scored: bias.is_some() || keys.is_some(),
            valued: values.is_some(),
            hidden: self.hidden.is_some(),
        }
    }
}

/// One layer's attention of the newest token of each of several hypotheses.
#[derive(Debug, Clone, Copy)]
pub struct Newest<'a> {
    /// The number of heads.
    pub heads: usize,
    /// The width of a head.
    pub size: usize,
    /// Slopes of the distance penalty, \[heads\], if there is one.
    pub slopes: Option<&'a Buffer>,
    /// Where each hypothesis begins in `members`, and where the last one ends.
    pub starts: &'a Buffer,
    /// Places in the cache of a hypothesis' tokens, oldest first, its newest among them.
    pub members: &'a Buffer,
    /// What each of `members` is to the newest of its hypothesis.
    pub relations: Option<Related<'a>>,
}

/// What the products of linear maps are made of. Sums of products are f32, and so is all else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Products {
    /// f32
    #[default]
    Single,
    /// Numbers that are rounded to sixteen bits first, on tensor cores.
    OnCores(Sixteen),
    /// The same numbers where there are no tensor cores: no faster than f32, for tests.
    Rounded(Sixteen),
}

/// The scalars of an update of AdamW.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// What multiplies the gradient first.
    pub clip: f32,
    /// β₁
    pub beta1: f32,
    /// β₂
    pub beta2: f32,
    /// lr/(1 − β₁ᵗ)
    pub rate: f32,
    /// 1/(1 − β₂ᵗ)
    pub correction: f32,
    /// ε
    pub eps: f32,
}

/// A device that was opened. Operations are handed over and done in their order; [`Machine::read`] waits for them, and is
/// where a device that failed says so. Shapes are those of `training::kernels`.
pub trait Machine: Send {
    /// As the user named it.
    fn name(&self) -> &str;

    /// Bytes of the largest buffer.
    fn largest(&self) -> usize;

    /// Whether products of a kind can be made here.
    ///
    /// # Errors
    /// There are no tensor cores for these numbers, or none that the kernels have a shape for.
    fn has(&self, products: Products) -> Result<()>;

    /// What products are made of from here on; what is not there ([`Machine::has`]) is made in f32.
    fn multiply_in(&self, products: Products);

    /// Numbers go there.
    fn upload(&self, values: &[f32]) -> Buffer;

    /// Places go there.
    fn upload_places(&self, places: &[u32]) -> Buffer;

    /// Room for numbers, not filled.
    fn room(&self, len: usize) -> Buffer;

    /// Numbers come back, and what was handed over before is done.
    ///
    /// # Errors
    /// What the driver said of anything since the last time.
    fn read(&self, buffer: &Buffer) -> Result<Vec<f32>>;

    /// x ← value
    fn fill(&self, x: &Buffer, value: f32);

    /// to ← from, over the length of `from`.
    fn copy(&self, to: &Buffer, from: &Buffer);

    /// h ← scale·e\[token\] + p\[place\]
    fn embed(
        &self,
        vectors: Part<'_>,
        positions: Option<(Part<'_>, &Buffer)>,
        tokens: &Buffer,
        scale: f32,
        h: &Buffer,
        shape: Rows,
    );

    /// x̂, 1/deviation and y of each row.
    #[expect(clippy::too_many_arguments, reason = "three results of one pass")]
    fn norm(
        &self,
        x: &Buffer,
        theta: &Buffer,
        weight: usize,
        bias: usize,
        normal: &Buffer,
        inverse: &Buffer,
        y: &Buffer,
        shape: Rows,
    );

    /// dy becomes dx; the gradients of weight and bias are added to.
    #[expect(clippy::too_many_arguments, reason = "the operands of one pass")]
    fn norm_backward(
        &self,
        theta: &Buffer,
        weight: usize,
        bias: usize,
        dy: &Buffer,
        normal: &Buffer,
        inverse: &Buffer,
        gradient: &Buffer,
        shape: Rows,
    );

    /// y ← x·Wᵀ + b; `shape` is that of x, `out` the width of y.
    #[expect(clippy::too_many_arguments, reason = "the operands of one product")]
    fn linear(
        &self,
        x: &Buffer,
        theta: &Buffer,
        weight: usize,
        bias: usize,
        y: &Buffer,
        shape: Rows,
        out: usize,
    );

    /// dx ← dy·W, or dx + dy·W; `shape` is that of dx.
    #[expect(clippy::too_many_arguments, reason = "the operands of one product")]
    fn linear_backward_input(
        &self,
        dy: &Buffer,
        theta: &Buffer,
        weight: usize,
        dx: &Buffer,
        shape: Rows,
        out: usize,
        accumulate: bool,
    );

    /// dW += dyᵀ·x and db += Σ dy; `shape` is that of x.
    #[expect(clippy::too_many_arguments, reason = "the operands of one product")]
    fn linear_backward_weights(
        &self,
        dy: &Buffer,
        x: &Buffer,
        gradient: &Buffer,
        weight: usize,
        bias: usize,
        shape: Rows,
        out: usize,
    );

    /// Turns queries and keys; `positions` \[rows\] are places in the table.
    fn rotary(
        &self,
        table: &Buffer,
        qkv: &Buffer,
        positions: &Buffer,
        heads: usize,
        size: usize,
        backward: bool,
    );

    /// The tiles of a ragged batch, for [`Attention`].
    fn tiles(&self, starts: &[usize]) -> Buffer;

    /// context \[rows, width\], and \[heads, rows\] logarithms of sums for the way back.
    ///
    /// # Errors
    /// A head that is wider than the device has room for.
    fn attention(&self, form: Attention<'_>, qkv: &Buffer, context: &Buffer, sums: &Buffer) -> Result<()>;

    /// dqkv from dcontext; the gradients of the tables of relations are added to.
    #[expect(clippy::too_many_arguments, reason = "the operands of one pass")]
    fn attention_backward(
        &self,
        form: Attention<'_>,
        qkv: &Buffer,
        context: &Buffer,
        sums: &Buffer,
        dcontext: &Buffer,
        dqkv: &Buffer,
        gradient: &Buffer,
    );

    /// Keys and values of the rows of qkv go to their places in a cache \[places, 2·width\].
    fn keep(&self, qkv: &Buffer, places: &Buffer, cache: &Buffer, width: usize);

    /// context \[hypotheses, width\] of the newest tokens, whose keys and values are in the cache already.
    ///
    /// # Errors
    /// A head that is wider than the device has room for.
    fn attention_of_newest(
        &self,
        form: Newest<'_>,
        qkv: &Buffer,
        cache: &Buffer,
        context: &Buffer,
    ) -> Result<()>;

    /// x ← f(x), slope ← f′(x)
    fn activate(&self, kind: Activation, x: &Buffer, slope: &Buffer);

    /// x ← x·y
    fn multiply(&self, x: &Buffer, y: &Buffer);

    /// x\[at ..\] ← x + y
    fn add(&self, x: Part<'_>, y: &Buffer);

    /// x ← x·mask
    fn drop_in_place(&self, masks: Masks, x: &Buffer, width: usize);

    /// to ← to + x·mask
    fn add_dropped(&self, masks: Masks, to: &Buffer, x: &Buffer, width: usize);

    /// The loss of each row into `losses` \[rows\]; with `gradient` that of the smoothed loss over the logits.
    fn cross_entropy(
        &self,
        logits: &Buffer,
        targets: &Buffer,
        smoothing: f32,
        losses: &Buffer,
        shape: Rows,
        gradient: bool,
    );

    /// total\[at + to\[g\]·width ..\] += scale·Σ of the rows of group g, whose members stand in `members` from `starts`\[g\] on.
    fn add_groups(&self, x: &Buffer, groups: &Groups, total: Part<'_>, scale: f32, width: usize);

    /// y\[i\] ← x\[places\[i\]\]; `u32::MAX` gives 0.
    fn gather(&self, x: &Buffer, places: &Buffer, y: &Buffer);

    /// y\[i\] ← Σ of the members of group i.
    fn gather_sum(&self, x: &Buffer, starts: &Buffer, members: &Buffer, y: &Buffer);

    /// total\[at ..\] += Σ of the rows of x.
    fn add_columns(&self, x: &Buffer, total: Part<'_>, shape: Rows);

    /// h\[r\] += the pattern of row r: each of its entries e adds decay\[e / 4\] in the columns that `fol`'s tree places have.
    fn add_patterns(&self, h: &Buffer, decay: Part<'_>, starts: &Buffer, entries: &Buffer, shape: Rows);

    /// The gradient of the decays, \[depths\], is added to.
    fn patterns_backward(
        &self,
        dh: &Buffer,
        starts: &Buffer,
        entries: &Buffer,
        total: Part<'_>,
        depths: usize,
        shape: Rows,
    );

    /// out\[at\] ← Σ x, or Σ x²
    fn sum(&self, x: &Buffer, squared: bool, out: &Buffer, at: usize);

    /// AdamW on parameters `at .. at + len`; the gradient is cleared. `keep` is 1 − lr·λ.
    #[expect(clippy::too_many_arguments, reason = "four buffers move together")]
    fn adamw(
        &self,
        theta: &Buffer,
        m: &Buffer,
        v: &Buffer,
        gradient: &Buffer,
        step: Step,
        keep: f32,
        at: usize,
        len: usize,
    );

    /// average ← β·average + (1 − β)·θ
    fn average(&self, average: &Buffer, theta: &Buffer, beta: f32);
}

/// Rows by where they go: group g has the rows `members[starts[g] .. starts[g + 1]]`, in their order.
#[derive(Debug, Clone)]
pub struct Groups {
    to: Buffer,
    starts: Buffer,
    members: Buffer,
}

impl Groups {
    /// The rows that go to each place.
    pub fn new(machine: &dyn Machine, to: impl Iterator<Item = usize>) -> Self {
        let mut pairs: Vec<(u32, u32)> = to.zip(0..).map(|(to, row)| (to as u32, row)).collect();
        pairs.sort_unstable();
        let (mut groups, mut starts) = (Vec::new(), Vec::new());
        for (i, (to, _)) in (0..).zip(&pairs) {
            if groups.last() != Some(to) {
                groups.push(*to);
                starts.push(i);
            }
        }
        starts.push(pairs.len() as u32);
        let members: Vec<u32> = pairs.iter().map(|(_, row)| *row).collect();
        Self {
            to: machine.upload_places(&groups),
            starts: machine.upload_places(&starts),
            members: machine.upload_places(&members),
        }
    }
}
