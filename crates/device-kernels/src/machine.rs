//! A device that was opened, and what it does.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::stream_id::StreamId;
use training::kernels::{Activation, Dropout, Tables};

use crate::error::{Refusal, Result};
use crate::faults::{Faults, short};
use crate::kernels::rows::{MasksLaunch, UNITS};
use crate::kernels::{attention, product, rows, update};
use crate::sixteen::Sixteen;

/// Rows that one entry of a partial sum has, and terms that one partial product has: fixed, so that the order of a sum
/// depends on nothing.
const BLOCK: usize = 256;

/// Small tiles that a product is cut into along its terms if it has fewer, and the fewest terms of a part.
const ENOUGH: usize = 512;
const LEAST: usize = 128;

/// How long a reading waits for what was handed over before it. An update takes seconds where it takes longest, on a driver for
/// the CPU.
const PATIENCE: Duration = Duration::from_secs(600);

/// ε of every norm, as on the CPU.
const EPSILON: f32 = 1e-5;

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

/// Launches a kernel whose accesses it checks itself.
macro_rules! launch {
    ($on:ident, $kernel:path, $count:expr, $units:expr, $($arg:expr),* $(,)?) => {
        // SAFETY: every access of a kernel is inside the sizes that it is given, and these are those of its buffers.
        #[expect(unsafe_code, reason = "bounds are checked in the kernel once, not at every access")]
        unsafe {
            use $kernel as kernel;
            kernel::launch_unchecked::<R>(&$on.client, $count, CubeDim::new_1d($units), $($arg),*);
        }
    };
}

/// What one reading gives: what a driver does not do, its runtime says by an error or by a panic.
type Read = std::thread::Result<std::result::Result<cubecl::bytes::Bytes, cubecl::server::ServerError>>;

/// A thread that waits for a device. A driver waits for as long as a kernel runs, and one that does not end would be waited for
/// without end.
struct Reading {
    ask: mpsc::Sender<Handle>,
    answer: mpsc::Receiver<Read>,
}

impl Reading {
    fn of<R: Runtime>(client: ComputeClient<R>) -> std::io::Result<Self> {
        let (ask, asked) = mpsc::channel::<Handle>();
        let (tell, answer) = mpsc::channel();
        std::thread::Builder::new().name("device".to_owned()).spawn(move || {
            for handle in asked {
                // A kernel that was refused is told by `flush` alone: reading what it should have written succeeds.
                let read = catch_unwind(AssertUnwindSafe(|| {
                    client.flush()?;
                    client.read_one(handle)
                }));
                if tell.send(read).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { ask, answer })
    }

    /// None if there was no answer in time; then none of a later reading is to be waited for either.
    fn read(&self, handle: Handle, patience: Duration) -> Option<Read> {
        self.ask.send(handle).ok()?;
        self.answer.recv_timeout(patience).ok()
    }
}

/// A device of one kind of driver.
pub(crate) struct On<R: Runtime> {
    client: ComputeClient<R>,
    name: String,
    /// What a kernel gets where it reads nothing.
    nothing: Buffer,
    no_places: Buffer,
    products: Cell<Products>,
    faults: Faults,
    reading: Reading,
    patience: Duration,
    /// Units that work as one on tensor cores, and whether these multiply each of [`Sixteen::ALL`], if there are any.
    cores: Option<(u32, [bool; 2])>,
}

impl<R: Runtime> On<R> {
    /// A device that was opened, as the user named it.
    ///
    /// # Errors
    /// It cannot hold a few numbers.
    pub(crate) fn new(
        client: impl FnOnce() -> ComputeClient<R>,
        name: String,
        faults: Faults,
    ) -> Result<Self> {
        // What a driver does not have, its runtime says by a panic.
        let made = catch_unwind(AssertUnwindSafe(|| {
            let mut client = client();
            // What fails is told to the thread that handed it over, and a machine may go to another.
            #[expect(unsafe_code, reason = "a client's stream is set in no other way")]
            // SAFETY: it is the stream that this thread's calls have anyway; only the machine's own use it through this client,
            // in their order.
            unsafe {
                client.set_stream(StreamId::current());
            }
            let nothing = Buffer { handle: client.create_from_slice(f32::as_bytes(&[0.0])), len: 1 };
            let no_places = Buffer { handle: client.create_from_slice(u32::as_bytes(&[0, 0])), len: 2 };
            (client, nothing, no_places)
        }));
        let (client, nothing, no_places) =
            made.map_err(|p| Refusal::Failed { name: name.clone(), reason: said(&p) })?;
        let cores = cores(&client);
        let reading = Reading::of(client.clone())
            .map_err(|e| Refusal::Failed { name: name.clone(), reason: format!("no thread for it: {e}") })?;
        let products = Cell::default();
        Ok(Self { client, name, nothing, no_places, products, faults, reading, patience: PATIENCE, cores })
    }

    fn failed(&self, reason: String) -> Refusal {
        Refusal::Failed { name: self.name.clone(), reason }
    }

    /// Cubes for so many, laid out in two directions: one has at most 65,535.
    fn cubes(count: usize) -> CubeCount {
        const SIDE: usize = 32_768;
        let count = count.max(1);
        CubeCount::Static(count.min(SIDE) as u32, count.div_ceil(SIDE) as u32, 1)
    }

    /// A unit for each of `len` entries.
    fn entries(len: usize) -> CubeCount {
        Self::cubes(len.div_ceil(UNITS as usize))
    }

    fn arg(buffer: &Buffer) -> ArrayArg<R> {
        // SAFETY: the buffer was made with this length.
        #[expect(unsafe_code, reason = "the only way to hand a buffer to a kernel")]
        unsafe {
            ArrayArg::from_raw_parts(buffer.handle.clone(), buffer.len)
        }
    }

    fn masks(masks: Masks) -> MasksLaunch<R> {
        let (key, threshold, scale) = masks.dropout.map_or((0, 0, 1.0), |d| d.counters());
        MasksLaunch::new((key >> 32) as u32, key as u32, threshold, scale, masks.first_row as u32)
    }

    /// The side of the tiles of a product: the large one where there is room for it, and where its cubes keep nearly all of a
    /// device's multiprocessors busy (4,096 rows of width 512 are 128 of them, for the 132 of an H200).
    fn side(&self, cubes: impl Fn(u32) -> [u32; 3]) -> u32 {
        let [small, large] = product::SIDES;
        let hardware = &self.client.properties().hardware;
        let enough = hardware.num_streaming_multiprocessors.unwrap_or(16) * 7 / 8;
        let has_room = product::shared_bytes(large) <= hardware.max_shared_memory_size;
        if has_room && cubes(large).iter().product::<u32>() >= enough { large } else { small }
    }

    /// A product that is cut along its terms where its tiles alone are few: parts of it are summed in their order. The cut
    /// depends on the sizes alone, so a result depends on no device.
    fn multiply_in_parts(&self, p: Product<'_>) {
        let (m, n, k) = p.sizes;
        let side = product::SIDES[0] as usize;
        let tiles = m.div_ceil(side) * n.div_ceil(side);
        let chunk = k.div_ceil(ENOUGH.div_ceil(tiles.max(1))).next_multiple_of(64).max(LEAST);
        let parts = k.div_ceil(chunk);
        if parts < 2 {
            return self.multiply_matrices(p);
        }
        let partial = self.room(parts * m * n);
        let (total, bias) = (Part { of: p.c.0, at: p.c.1 }, p.bias.map(|at| (Part { of: p.b.0, at }, n)));
        let whole = Product { c: (&partial, 0, n), bias: None, accumulate: false, chunk: Some(chunk), ..p };
        self.multiply_matrices(whole);
        self.totals(&partial, total, m * n, parts, bias, p.accumulate);
    }

    /// c ← a·b (+ c, + bias), whole or in chunks of its terms, each of which has a matrix of its own.
    fn multiply_matrices(&self, p: Product<'_>) {
        let (m, n, k) = p.sizes;
        let chunk = p.chunk.unwrap_or(k).max(1);
        let cubes = |side: u32| {
            let tiles = |entries: usize| entries.div_ceil(side as usize).max(1) as u32;
            [tiles(n), tiles(m), k.div_ceil(chunk).max(1) as u32]
        };
        let count = |side: u32| {
            let [x, y, z] = cubes(side);
            CubeCount::Static(x, y, z)
        };
        let side = self.side(cubes);
        // A macro: what tensor cores multiply is a type, which only their kernel has.
        macro_rules! multiply {
            ($kernel:ident, [$($of:ty)?], $side:expr, [$($how:expr),*]) => {{
                // SAFETY: every access of a kernel is inside the sizes that it is given, and these are those of its buffers.
                #[expect(unsafe_code, reason = "bounds are checked in the kernel once, not at every access")]
                unsafe {
                    product::$kernel::launch_unchecked::<$($of,)? R>(
                        &self.client,
                        count($side),
                        CubeDim::new_1d(product::UNITS),
                        Self::arg(p.a.0),
                        Self::arg(p.b.0),
                        Self::arg(p.c.0),
                        product::SizesLaunch::new(m as u32, n as u32, k as u32),
                        product::PlaceLaunch::new(p.a.1 as u32, p.a.2 as u32),
                        product::PlaceLaunch::new(p.b.1 as u32, p.b.2 as u32),
                        product::PlaceLaunch::new(p.c.1 as u32, p.c.2 as u32),
                        p.bias.unwrap_or(0) as u32,
                        chunk as u32,
                        p.a_turned,
                        p.b_turned,
                        p.accumulate,
                        p.bias.is_some(),
                        $($how,)*
                    );
                }
            }};
        }
        let products = self.products.get();
        match (products, self.cores) {
            (Products::OnCores(of), Some((plane, _))) if self.has(products).is_ok() => match of {
                Sixteen::Bf16 => multiply!(product_on_cores, [half::bf16], product::SIDE, [plane]),
                Sixteen::F16 => multiply!(product_on_cores, [half::f16], product::SIDE, [plane]),
            },
            (Products::Rounded(round), _) => multiply!(product, [], side, [side, Some(round)]),
            (Products::Single | Products::OnCores(_), _) => multiply!(product, [], side, [side, None]),
        }
    }
}

/// The units that work as one on tensor cores that multiply numbers of sixteen bits in fragments of the kernels' shape, and
/// which of [`Sixteen::ALL`] they multiply; none where there are none, or where their number is not known before a kernel
/// runs.
fn cores<R: Runtime>(client: &ComputeClient<R>) -> Option<(u32, [bool; 2])> {
    use cubecl::ir::{ElemType, FloatKind, StorageType};

    let properties = client.properties();
    let of = |kind| StorageType::Scalar(ElemType::Float(kind));
    let single = of(FloatKind::F32);
    let side = product::FRAGMENT as u32;
    let fits =
        Sixteen::ALL.map(|made_of| {
            let half = of(match made_of {
                Sixteen::Bf16 => FloatKind::BF16,
                Sixteen::F16 => FloatKind::F16,
            });
            properties.features.matmul.cmma.iter().any(|c| {
                (c.a_type, c.b_type, c.cd_type, c.m, c.n, c.k) == (half, half, single, side, side, side)
            })
        });
    let hardware = &properties.hardware;
    let plane = hardware.plane_size_max;
    (fits != [false; 2] && hardware.plane_size_min == plane && matches!(plane, 32 | 64))
        .then_some((plane, fits))
}

/// A product of matrices in buffers, each with its place and its stride.
#[derive(Clone, Copy)]
struct Product<'a> {
    a: (&'a Buffer, usize, usize),
    b: (&'a Buffer, usize, usize),
    c: (&'a Buffer, usize, usize),
    sizes: (usize, usize, usize),
    a_turned: bool,
    b_turned: bool,
    accumulate: bool,
    bias: Option<usize>,
    /// Terms of each partial product, where the product is cut along its terms.
    chunk: Option<usize>,
}

/// What a panic of a driver said.
fn said(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason is known").to_owned()
}

impl<R: Runtime> Machine for On<R> {
    fn name(&self) -> &str {
        &self.name
    }

    fn largest(&self) -> usize {
        usize::try_from(self.client.properties().memory.max_page_size).unwrap_or(usize::MAX)
    }

    fn has(&self, products: Products) -> Result<()> {
        let Products::OnCores(made_of) = products else { return Ok(()) };
        if self.cores.is_some_and(|(_, fits)| fits[usize::from(made_of == Sixteen::F16)]) {
            return Ok(());
        }
        let what =
            format!("it has no tensor cores that multiply {} in fragments of 16 × 16 × 16", made_of.name());
        Err(Refusal::Limit { name: self.name.clone(), what })
    }

    fn multiply_in(&self, products: Products) {
        self.products.set(products);
    }

    fn upload(&self, values: &[f32]) -> Buffer {
        let values = if values.is_empty() { &[0.0] } else { values };
        Buffer { handle: self.client.create_from_slice(f32::as_bytes(values)), len: values.len() }
    }

    fn upload_places(&self, places: &[u32]) -> Buffer {
        let places = if places.is_empty() { &[0] } else { places };
        Buffer { handle: self.client.create_from_slice(u32::as_bytes(places)), len: places.len() }
    }

    fn room(&self, len: usize) -> Buffer {
        let len = len.max(1);
        Buffer { handle: self.client.empty(len * size_of::<f32>()), len }
    }

    fn read(&self, buffer: &Buffer) -> Result<Vec<f32>> {
        let told = |reason: String| self.failed(self.faults.why().unwrap_or(reason));
        if self.faults.any() {
            return Err(told(String::new()));
        }
        let bytes = match self.reading.read(buffer.handle.clone(), self.patience) {
            Some(Ok(read)) => read.map_err(|e| told(short(&e.to_string())))?,
            Some(Err(panic)) => return Err(told(said(&panic))),
            None => {
                let waited = format!("no answer in {} s", self.patience.as_secs_f64());
                self.faults.tell(waited.clone());
                return Err(told(waited));
            }
        };
        if self.faults.any() {
            return Err(told(String::new()));
        }
        Ok(f32::from_bytes(&bytes).get(..buffer.len).unwrap_or_default().to_vec())
    }

    fn fill(&self, x: &Buffer, value: f32) {
        launch!(self, rows::fill, Self::entries(x.len), UNITS, Self::arg(x), value, x.len as u32);
    }

    fn copy(&self, to: &Buffer, from: &Buffer) {
        let len = from.len.min(to.len);
        launch!(self, rows::copy, Self::entries(len), UNITS, Self::arg(to), Self::arg(from), len as u32);
    }

    fn embed(
        &self,
        vectors: Part<'_>,
        positions: Option<(Part<'_>, &Buffer)>,
        tokens: &Buffer,
        scale: f32,
        h: &Buffer,
        shape: Rows,
    ) {
        // Positions that are learned stand among the parameters, as the vectors do: one buffer is bound once.
        let own = positions.filter(|(part, _)| !std::ptr::eq(part.of, vectors.of));
        let (table, at) = own.map_or((&self.nothing, 0), |(part, _)| (part.of, part.at));
        let places = positions.map_or(&self.no_places, |(_, places)| places);
        launch!(
            self,
            rows::embed,
            Self::entries(shape.len()),
            UNITS,
            Self::arg(vectors.of),
            Self::arg(table),
            Self::arg(tokens),
            Self::arg(if own.is_some() { places } else { &self.no_places }),
            Self::arg(h),
            vectors.at as u32,
            at as u32,
            scale,
            shape.width as u32,
            shape.len() as u32,
            own.is_some(),
        );
        if let (Some((part, places)), None) = (positions, own) {
            launch!(
                self,
                rows::add_rows,
                Self::entries(shape.len()),
                UNITS,
                Self::arg(h),
                Self::arg(part.of),
                Self::arg(places),
                part.at as u32,
                shape.width as u32,
                shape.len() as u32,
            );
        }
    }

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
    ) {
        launch!(
            self,
            rows::norm_rows,
            Self::cubes(shape.rows),
            UNITS,
            Self::arg(x),
            Self::arg(theta),
            Self::arg(normal),
            Self::arg(inverse),
            Self::arg(y),
            weight as u32,
            bias as u32,
            shape.rows as u32,
            shape.width as u32,
            EPSILON,
        );
    }

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
    ) {
        self.sum_columns(dy, Some(normal), Part { of: gradient, at: weight }, shape);
        self.sum_columns(dy, None, Part { of: gradient, at: bias }, shape);
        launch!(
            self,
            rows::norm_backward,
            Self::cubes(shape.rows),
            UNITS,
            Self::arg(dy),
            Self::arg(normal),
            Self::arg(inverse),
            Self::arg(theta),
            weight as u32,
            shape.rows as u32,
            shape.width as u32,
        );
    }

    fn linear(
        &self,
        x: &Buffer,
        theta: &Buffer,
        weight: usize,
        bias: usize,
        y: &Buffer,
        shape: Rows,
        out: usize,
    ) {
        self.multiply_in_parts(Product {
            a: (x, 0, shape.width),
            b: (theta, weight, shape.width),
            c: (y, 0, out),
            sizes: (shape.rows, out, shape.width),
            a_turned: false,
            b_turned: true,
            accumulate: false,
            bias: Some(bias),
            chunk: None,
        });
    }

    fn linear_backward_input(
        &self,
        dy: &Buffer,
        theta: &Buffer,
        weight: usize,
        dx: &Buffer,
        shape: Rows,
        out: usize,
        accumulate: bool,
    ) {
        self.multiply_in_parts(Product {
            a: (dy, 0, out),
            b: (theta, weight, shape.width),
            c: (dx, 0, shape.width),
            sizes: (shape.rows, shape.width, out),
            a_turned: false,
            b_turned: false,
            accumulate,
            bias: None,
            chunk: None,
        });
    }

    fn linear_backward_weights(
        &self,
        dy: &Buffer,
        x: &Buffer,
        gradient: &Buffer,
        weight: usize,
        bias: usize,
        shape: Rows,
        out: usize,
    ) {
        // Cut along the rows: a weight has few entries beside a device's units, and many rows.
        let parts = shape.rows.div_ceil(BLOCK).max(1);
        let partial = self.room(parts * out * shape.width);
        self.multiply_matrices(Product {
            a: (dy, 0, out),
            b: (x, 0, shape.width),
            c: (&partial, 0, shape.width),
            sizes: (out, shape.width, shape.rows),
            a_turned: true,
            b_turned: false,
            accumulate: false,
            bias: None,
            chunk: Some(BLOCK),
        });
        self.add_partial(&partial, Part { of: gradient, at: weight }, out * shape.width, parts);
        self.add_columns(dy, Part { of: gradient, at: bias }, Rows { rows: shape.rows, width: out });
    }

    fn rotary(
        &self,
        table: &Buffer,
        qkv: &Buffer,
        positions: &Buffer,
        heads: usize,
        size: usize,
        backward: bool,
    ) {
        // Queries and keys of a row together have as many pairs as the model is wide.
        let (width, sign) = (heads * size, if backward { -1.0 } else { 1.0 });
        let len = positions.len * width;
        launch!(
            self,
            rows::rotary,
            Self::entries(len),
            UNITS,
            Self::arg(table),
            Self::arg(qkv),
            Self::arg(positions),
            sign,
            size as u32,
            width as u32,
            len as u32,
        );
    }

    fn tiles(&self, starts: &[usize]) -> Buffer {
        let (mut tiles, mut squares) = (Vec::new(), 0);
        for pair in starts.windows(2) {
            if let &[begin, end] = pair {
                for first in (begin..end).step_by(attention::TILE as usize) {
                    tiles.extend([begin as u32, end as u32, first as u32, squares as u32]);
                }
                squares += (end - begin) * (end - begin);
            }
        }
        self.upload_places(&tiles)
    }

    fn attention(&self, form: Attention<'_>, qkv: &Buffer, context: &Buffer, sums: &Buffer) -> Result<()> {
        self.has_room_for(form.size)?;
        let stride = 3 * form.heads * form.size;
        let related = self.related(form.relations, (qkv, stride), None, (form.rows, form.heads, form.size));
        let (numbers, theta, kinds, knows) = self.kinds(form.relations);
        launch!(
            self,
            attention::forward,
            CubeCount::Static((form.tiles.len / 4) as u32, form.heads as u32, 1),
            attention::TILE,
            Self::arg(qkv),
            Self::arg(form.tiles),
            Self::arg(form.slopes.unwrap_or(&self.nothing)),
            Self::arg(numbers),
            Self::arg(&related),
            Self::arg(theta),
            Self::arg(context),
            Self::arg(sums),
            Self::form(form),
            Self::masks(form.masks),
            kinds,
            form.size as u32,
            form.slopes.is_some(),
            form.masks.dropout.is_some(),
            knows,
        );
        Ok(())
    }

    fn attention_backward(
        &self,
        form: Attention<'_>,
        qkv: &Buffer,
        context: &Buffer,
        sums: &Buffer,
        dcontext: &Buffer,
        dqkv: &Buffer,
        gradient: &Buffer,
    ) {
        let along = self.room(form.heads * form.rows);
        launch!(
            self,
            attention::along,
            Self::entries(along.len),
            UNITS,
            Self::arg(dcontext),
            Self::arg(context),
            Self::arg(&along),
            form.rows as u32,
            form.heads as u32,
            form.size as u32,
            along.len as u32,
        );
        let (width, relations) = (form.heads * form.size, form.relations);
        let shape = (form.rows, form.heads, form.size);
        let related = self.related(relations, (qkv, 3 * width), Some((dcontext, width)), shape);
        let (numbers, _, kinds, knows) = self.kinds(relations);
        let by_number = match relations {
            Some(of) if !of.tables.is_empty() => self.room(2 * form.rows * form.heads * of.count),
            _ => self.nothing.clone(),
        };
        launch!(
            self,
            attention::backward_queries,
            CubeCount::Static((form.tiles.len / 4) as u32, form.heads as u32, 1),
            attention::TILE,
            Self::arg(qkv),
            Self::arg(form.tiles),
            Self::arg(form.slopes.unwrap_or(&self.nothing)),
            Self::arg(dcontext),
            Self::arg(sums),
            Self::arg(&along),
            Self::arg(numbers),
            Self::arg(&related),
            Self::arg(dqkv),
            Self::arg(&by_number),
            Self::form(form),
            Self::masks(form.masks),
            kinds,
            form.size as u32,
            form.slopes.is_some(),
            form.masks.dropout.is_some(),
            knows,
        );
        let (_, _, kinds, _) = self.kinds(relations);
        launch!(
            self,
            attention::backward_keys,
            CubeCount::Static((form.tiles.len / 4) as u32, form.heads as u32, 1),
            attention::TILE,
            Self::arg(qkv),
            Self::arg(form.tiles),
            Self::arg(form.slopes.unwrap_or(&self.nothing)),
            Self::arg(dcontext),
            Self::arg(sums),
            Self::arg(&along),
            Self::arg(numbers),
            Self::arg(&related),
            Self::arg(dqkv),
            Self::form(form),
            Self::masks(form.masks),
            kinds,
            form.size as u32,
            form.slopes.is_some(),
            form.masks.dropout.is_some(),
            knows,
        );
        if let Some(of) = relations {
            self.tables_backward(of, form, (qkv, dcontext, dqkv), &by_number, gradient);
        }
    }

    fn keep(&self, qkv: &Buffer, places: &Buffer, cache: &Buffer, width: usize) {
        let len = places.len * 2 * width;
        launch!(
            self,
            attention::keep,
            Self::entries(len),
            UNITS,
            Self::arg(qkv),
            Self::arg(places),
            Self::arg(cache),
            width as u32,
            len as u32,
        );
    }

    fn attention_of_newest(
        &self,
        form: Newest<'_>,
        qkv: &Buffer,
        cache: &Buffer,
        context: &Buffer,
    ) -> Result<()> {
        self.has_room_for(form.size)?;
        let hypotheses = form.starts.len - 1;
        let scale = 1.0 / (form.size as f32).sqrt();
        let (stride, shape) = (3 * form.heads * form.size, (hypotheses, form.heads, form.size));
        let related = self.related(form.relations, (qkv, stride), None, shape);
        let (numbers, theta, kinds, knows) = self.kinds(form.relations);
        launch!(
            self,
            attention::newest,
            CubeCount::Static(hypotheses as u32, form.heads as u32, 1),
            attention::TILE,
            Self::arg(qkv),
            Self::arg(cache),
            Self::arg(form.starts),
            Self::arg(form.members),
            Self::arg(form.slopes.unwrap_or(&self.nothing)),
            Self::arg(numbers),
            Self::arg(&related),
            Self::arg(theta),
            Self::arg(context),
            attention::FormLaunch::new(form.heads as u32, hypotheses as u32, scale),
            kinds,
            form.size as u32,
            form.slopes.is_some(),
            knows,
        );
        Ok(())
    }

    fn activate(&self, kind: Activation, x: &Buffer, slope: &Buffer) {
        let kind = match kind {
            Activation::Gelu => 0,
            Activation::GeluTanh => 1,
            Activation::Relu => 2,
        };
        launch!(
            self,
            rows::activate,
            Self::entries(x.len),
            UNITS,
            Self::arg(x),
            Self::arg(slope),
            x.len as u32,
            kind
        );
    }

    fn multiply(&self, x: &Buffer, y: &Buffer) {
        launch!(self, rows::multiply, Self::entries(x.len), UNITS, Self::arg(x), Self::arg(y), x.len as u32);
    }

    fn add(&self, x: Part<'_>, y: &Buffer) {
        launch!(
            self,
            rows::add,
            Self::entries(y.len),
            UNITS,
            Self::arg(x.of),
            Self::arg(y),
            x.at as u32,
            y.len as u32
        );
    }

    fn drop_in_place(&self, masks: Masks, x: &Buffer, width: usize) {
        if masks.dropout.is_some() {
            launch!(
                self,
                rows::drop_in_place,
                Self::entries(x.len),
                UNITS,
                Self::arg(x),
                Self::masks(masks),
                width as u32,
                x.len as u32
            );
        }
    }

    fn add_dropped(&self, masks: Masks, to: &Buffer, x: &Buffer, width: usize) {
        if masks.dropout.is_none() {
            return self.add(Part { of: to, at: 0 }, x);
        }
        launch!(
            self,
            rows::add_dropped,
            Self::entries(x.len),
            UNITS,
            Self::arg(to),
            Self::arg(x),
            Self::masks(masks),
            width as u32,
            x.len as u32
        );
    }

    fn cross_entropy(
        &self,
        logits: &Buffer,
        targets: &Buffer,
        smoothing: f32,
        losses: &Buffer,
        shape: Rows,
        gradient: bool,
    ) {
        launch!(
            self,
            rows::cross_entropy,
            Self::cubes(shape.rows),
            UNITS,
            Self::arg(logits),
            Self::arg(targets),
            Self::arg(losses),
            smoothing,
            shape.rows as u32,
            shape.width as u32,
            gradient,
        );
    }

    fn add_groups(&self, x: &Buffer, groups: &Groups, total: Part<'_>, scale: f32, width: usize) {
        let len = (groups.starts.len - 1) * width;
        launch!(
            self,
            rows::add_groups,
            Self::entries(len),
            UNITS,
            Self::arg(x),
            Self::arg(&groups.to),
            Self::arg(&groups.starts),
            Self::arg(&groups.members),
            Self::arg(total.of),
            total.at as u32,
            scale,
            width as u32,
            len as u32,
        );
    }

    fn gather(&self, x: &Buffer, places: &Buffer, y: &Buffer) {
        launch!(
            self,
            rows::gather,
            Self::entries(y.len),
            UNITS,
            Self::arg(x),
            Self::arg(places),
            Self::arg(y),
            y.len as u32
        );
    }

    fn gather_sum(&self, x: &Buffer, starts: &Buffer, members: &Buffer, y: &Buffer) {
        launch!(
            self,
            rows::gather_sum,
            Self::entries(y.len),
            UNITS,
            Self::arg(x),
            Self::arg(starts),
            Self::arg(members),
            Self::arg(y),
            y.len as u32,
        );
    }

    fn add_columns(&self, x: &Buffer, total: Part<'_>, shape: Rows) {
        self.sum_columns(x, None, total, shape);
    }

    fn add_patterns(&self, h: &Buffer, decay: Part<'_>, starts: &Buffer, entries: &Buffer, shape: Rows) {
        launch!(
            self,
            rows::add_patterns,
            Self::entries(shape.len()),
            UNITS,
            Self::arg(h),
            Self::arg(decay.of),
            Self::arg(starts),
            Self::arg(entries),
            decay.at as u32,
            shape.width as u32,
            shape.len() as u32,
        );
    }

    fn patterns_backward(
        &self,
        dh: &Buffer,
        starts: &Buffer,
        entries: &Buffer,
        total: Part<'_>,
        depths: usize,
        shape: Rows,
    ) {
        let partial = self.room(shape.rows * depths);
        launch!(
            self,
            rows::pattern_sums,
            Self::entries(partial.len),
            UNITS,
            Self::arg(dh),
            Self::arg(starts),
            Self::arg(entries),
            Self::arg(&partial),
            depths as u32,
            shape.width as u32,
            partial.len as u32,
        );
        self.add_columns(&partial, total, Rows { rows: shape.rows, width: depths });
    }

    fn sum(&self, x: &Buffer, squared: bool, out: &Buffer, at: usize) {
        let stretches = x.len.div_ceil(update::STRETCH as usize).max(1);
        let partial = self.room(stretches);
        launch!(
            self,
            update::stretch_sums,
            Self::cubes(stretches),
            UNITS,
            Self::arg(x),
            Self::arg(&partial),
            x.len as u32,
            stretches as u32,
            squared,
        );
        launch!(
            self,
            update::total,
            Self::cubes(1),
            UNITS,
            Self::arg(&partial),
            Self::arg(out),
            at as u32,
            stretches as u32
        );
    }

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
    ) {
        let Step { clip, beta1, beta2, rate, correction, eps } = step;
        launch!(
            self,
            update::adamw,
            Self::entries(len),
            UNITS,
            Self::arg(theta),
            Self::arg(m),
            Self::arg(v),
            Self::arg(gradient),
            update::StepLaunch::new(clip, beta1, beta2, rate, correction, eps),
            keep,
            at as u32,
            len as u32,
        );
    }

    fn average(&self, average: &Buffer, theta: &Buffer, beta: f32) {
        launch!(
            self,
            update::average,
            Self::entries(theta.len),
            UNITS,
            Self::arg(average),
            Self::arg(theta),
            beta,
            theta.len as u32
        );
    }
}

#[cfg(test)]
impl<R: Runtime> On<R> {
    /// A kernel of more units than a cube may have: it is refused before a driver sees it.
    pub(crate) fn launch_beyond(&self, x: &Buffer) {
        launch!(self, rows::fill, Self::entries(x.len), 1 << 20, Self::arg(x), 2.0, x.len as u32);
    }

    /// Waits so long for a reading.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// A kernel that takes long: x ← x/2 + 1, so many times.
    pub(crate) fn launch_long(&self, x: &Buffer, rounds: u32) {
        launch!(self, rows::many_halves, Self::entries(x.len), UNITS, Self::arg(x), rounds, x.len as u32);
    }

    /// A kernel of numbers of 64 bits, which are no feature of WebGPU: it does not compile.
    pub(crate) fn launch_doubles(&self, x: &Buffer) {
        launch!(self, rows::doubled, Self::entries(x.len), UNITS, Self::arg(x), x.len as u32);
    }
}

impl<R: Runtime> On<R> {
    /// Refuses a head for whose tiles of keys and values there is no room.
    fn has_room_for(&self, size: usize) -> Result<()> {
        let has = self.client.properties().hardware.max_shared_memory_size;
        let bytes = (2 * size + 3) * attention::TILE as usize * size_of::<f32>();
        if bytes <= has {
            return Ok(());
        }
        let what = format!("a head of {size} columns wants {bytes} bytes of shared memory, and it has {has}");
        Err(Refusal::Limit { name: self.name.clone(), what })
    }

    fn form(form: Attention<'_>) -> attention::FormLaunch<R> {
        let scale = 1.0 / (form.size as f32).sqrt();
        attention::FormLaunch::new(form.heads as u32, form.rows as u32, scale)
    }

    /// What a kernel is told of relations: their numbers, the parameters, and which there are.
    fn kinds<'a>(
        &'a self,
        relations: Option<Related<'a>>,
    ) -> (&'a Buffer, &'a Buffer, attention::KindsLaunch<R>, attention::Knows) {
        let Some(of) = relations else {
            let (none, knows) = (attention::KindsLaunch::new(0, 0, 0, 0), attention::Knows::default());
            return (&self.no_places, &self.nothing, none, knows);
        };
        let (from, number) = of.hidden.unwrap_or((0, 0));
        let values = of.tables.values.unwrap_or(0);
        let kinds =
            attention::KindsLaunch::new(of.count as u32, from as u32, u32::from(number), values as u32);
        (of.numbers, of.theta, kinds, of.knows())
    }

    /// Of rows of heads of a size, \[rows, heads, count\]: what each relation adds to a score, from the queries; and with the
    /// gradient of the context what its vector of the values gives along that. Each operand comes with its stride.
    fn related(
        &self,
        relations: Option<Related<'_>>,
        (qkv, of_qkv): (&Buffer, usize),
        dcontext: Option<(&Buffer, usize)>,
        (rows, heads, size): (usize, usize, usize),
    ) -> Buffer {
        let Some(of) = relations.filter(|of| !of.tables.is_empty()) else { return self.nothing.clone() };
        let len = rows * heads * of.count;
        let related = self.room(if dcontext.is_some() { 2 * len } else { len });
        let relate = |x: &Buffer, stride: usize, table: Option<usize>, bias: Option<usize>, scale, at| {
            launch!(
                self,
                attention::relate,
                Self::entries(len),
                UNITS,
                Self::arg(x),
                Self::arg(of.theta),
                Self::arg(&related),
                stride as u32,
                heads as u32,
                size as u32,
                of.count as u32,
                table.unwrap_or(0) as u32,
                bias.unwrap_or(0) as u32,
                scale,
                at as u32,
                len as u32,
                table.is_some(),
                bias.is_some(),
            );
        };
        relate(qkv, of_qkv, of.tables.keys, of.tables.bias, 1.0 / (size as f32).sqrt(), 0);
        if let Some((dcontext, stride)) = dcontext {
            relate(dcontext, stride, of.tables.values, None, 1.0, len);
        }
        related
    }

    /// The gradients of the tables of relations from what was summed by number, and what the keys' table gives the queries.
    fn tables_backward(
        &self,
        of: Related<'_>,
        form: Attention<'_>,
        (qkv, dcontext, dqkv): (&Buffer, &Buffer, &Buffer),
        by_number: &Buffer,
        gradient: &Buffer,
    ) {
        const ROWS: usize = 64;
        let Attention { heads, size, rows, .. } = form;
        let (width, scale) = (heads * size, 1.0 / (size as f32).sqrt());
        if let Some(at) = of.tables.bias {
            let shape = Rows { rows, width: heads * of.count };
            self.sum_columns(by_number, None, Part { of: gradient, at }, shape);
        }
        let table = |x: &Buffer, stride: usize, from: usize, scale: f32, at: usize| {
            let blocks = rows.div_ceil(ROWS).max(1);
            let partial = self.room(blocks * of.count * size);
            launch!(
                self,
                attention::table_blocks,
                Self::entries(partial.len),
                UNITS,
                Self::arg(by_number),
                Self::arg(x),
                Self::arg(&partial),
                from as u32,
                stride as u32,
                rows as u32,
                ROWS as u32,
                heads as u32,
                size as u32,
                of.count as u32,
                scale,
                partial.len as u32,
            );
            self.add_partial(&partial, Part { of: gradient, at }, of.count * size, blocks);
        };
        if let Some(at) = of.tables.values {
            table(dcontext, width, rows * heads * of.count, 1.0, at);
        }
        let Some(at) = of.tables.keys else { return };
        table(qkv, 3 * width, 0, scale, at);
        launch!(
            self,
            attention::relate_backward,
            Self::entries(rows * width),
            UNITS,
            Self::arg(by_number),
            Self::arg(of.theta),
            Self::arg(dqkv),
            3 * width as u32,
            heads as u32,
            size as u32,
            of.count as u32,
            at as u32,
            scale,
            (rows * width) as u32,
        );
    }

    /// total\[at ..\] += Σ over the rows of x, or of x·y.
    fn sum_columns(&self, x: &Buffer, y: Option<&Buffer>, total: Part<'_>, shape: Rows) {
        const ROWS: usize = 64;
        let blocks = shape.rows.div_ceil(ROWS).max(1);
        let partial = self.room(blocks * shape.width);
        launch!(
            self,
            rows::column_blocks,
            Self::entries(partial.len),
            UNITS,
            Self::arg(x),
            Self::arg(y.unwrap_or(&self.nothing)),
            Self::arg(&partial),
            shape.rows as u32,
            shape.width as u32,
            ROWS as u32,
            partial.len as u32,
            y.is_some(),
        );
        self.add_partial(&partial, total, shape.width, blocks);
    }

    /// total\[at ..\] ← the sum of `parts` stretches of `width` entries; with a bias of so many columns, and added to what is there.
    fn totals(
        &self,
        partial: &Buffer,
        total: Part<'_>,
        width: usize,
        parts: usize,
        bias: Option<(Part<'_>, usize)>,
        added: bool,
    ) {
        let (of, columns) = bias.unwrap_or((Part { of: &self.nothing, at: 0 }, 1));
        launch!(
            self,
            rows::column_totals,
            Self::entries(width),
            UNITS,
            Self::arg(partial),
            Self::arg(of.of),
            Self::arg(total.of),
            total.at as u32,
            of.at as u32,
            columns as u32,
            width as u32,
            parts as u32,
            added,
            bias.is_some(),
        );
    }

    /// total\[at ..\] += the sum of `parts` stretches of `width` entries.
    fn add_partial(&self, partial: &Buffer, total: Part<'_>, width: usize, parts: usize) {
        self.totals(partial, total, width, parts, None, true);
    }
}
