//! A device behind one kind of driver: handing over, waiting, saying what failed.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

use cubecl::prelude::*;
use cubecl::server::Handle;
use cubecl::stream_id::StreamId;

use super::{Buffer, Masks, Products};
use crate::error::{Refusal, Result};
use crate::faults::Faults;
use crate::kernels::rows::{MasksLaunch, UNITS};
use crate::kernels::{fragments, mma};
use crate::sixteen::Sixteen;

/// How long a reading waits for what was handed over before it. An update takes seconds where it takes longest, on a driver for
/// the CPU.
const PATIENCE: Duration = Duration::from_secs(600);

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
pub(super) use launch;

/// What one reading gives: what a driver does not do, its runtime says by an error or by a panic.
pub(super) type Read =
    std::thread::Result<std::result::Result<cubecl::bytes::Bytes, cubecl::server::ServerError>>;

/// A thread that waits for a device. A driver waits for as long as a kernel runs, and one that does not end would be waited for
/// without end.
pub(super) struct Reading {
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
    pub(super) fn read(&self, handle: Handle, patience: Duration) -> Option<Read> {
        self.ask.send(handle).ok()?;
        self.answer.recv_timeout(patience).ok()
    }
}

/// A device of one kind of driver.
pub(crate) struct On<R: Runtime> {
    pub(super) client: ComputeClient<R>,
    pub(super) name: String,
    /// What a kernel gets where it reads nothing.
    pub(super) nothing: Buffer,
    pub(super) no_places: Buffer,
    pub(super) products: Cell<Products>,
    pub(super) faults: Faults,
    pub(super) reading: Reading,
    pub(super) patience: Duration,
    pub(super) cores: Cores,
    /// Whether a kernel may read a buffer of numbers as one of vectors: WGSL has no words for it.
    pub(super) vectors: bool,
}

/// The tensor cores of a device, each time for each of [`Sixteen::ALL`].
#[derive(Clone, Copy, Default)]
pub(super) struct Cores {
    /// Units that work as one.
    pub(super) plane: u32,
    /// They multiply fragments of 16 × 16 × 16 that they lay out themselves.
    pub(super) fragments: [bool; 2],
    /// They multiply as PTX says, 16 × 8 × 16, and load as it says.
    pub(super) mma: [bool; 2],
}

impl Cores {
    /// Whether each way is there.
    pub(super) fn of(self, made_of: Sixteen) -> (bool, bool) {
        let i = usize::from(made_of == Sixteen::F16);
        (self.fragments[i], self.mma[i])
    }
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
        let vectors = !R::name(&client).starts_with("wgpu");
        let reading = Reading::of(client.clone())
            .map_err(|e| Refusal::Failed { name: name.clone(), reason: format!("no thread for it: {e}") })?;
        let products = Cell::default();
        Ok(Self {
            client,
            name,
            nothing,
            no_places,
            products,
            faults,
            reading,
            patience: PATIENCE,
            cores,
            vectors,
        })
    }

    pub(super) fn failed(&self, reason: String) -> Refusal {
        Refusal::Failed { name: self.name.clone(), reason }
    }

    /// Cubes for so many, laid out in two directions: one has at most 65,535.
    pub(super) fn cubes(count: usize) -> CubeCount {
        const SIDE: usize = 32_768;
        let count = count.max(1);
        CubeCount::Static(count.min(SIDE) as u32, count.div_ceil(SIDE) as u32, 1)
    }

    /// A unit for each of `len` entries.
    pub(super) fn entries(len: usize) -> CubeCount {
        Self::cubes(len.div_ceil(UNITS as usize))
    }

    pub(super) fn arg(buffer: &Buffer) -> ArrayArg<R> {
        // SAFETY: the buffer was made with this length.
        #[expect(unsafe_code, reason = "the only way to hand a buffer to a kernel")]
        unsafe {
            ArrayArg::from_raw_parts(buffer.handle.clone(), buffer.len)
        }
    }

    pub(super) fn masks(masks: Masks) -> MasksLaunch<R> {
        let (key, threshold, scale) = masks.dropout.map_or((0, 0, 1.0), |d| d.counters());
        MasksLaunch::new((key >> 32) as u32, key as u32, threshold, scale, masks.first_row as u32)
    }
}

/// The tensor cores that there are; none where the number of units that work as one is not known before a kernel runs.
fn cores<R: Runtime>(client: &ComputeClient<R>) -> Cores {
    use cubecl::ir::features::MmaConfig;
    use cubecl::ir::{ElemType, FloatKind, StorageType};

    let properties = client.properties();
    let hardware = &properties.hardware;
    let plane = hardware.plane_size_max;
    if hardware.plane_size_min != plane || !matches!(plane, 32 | 64) {
        return Cores::default();
    }
    let of = |kind| StorageType::Scalar(ElemType::Float(kind));
    let half = |made_of| {
        of(match made_of {
            Sixteen::Bf16 => FloatKind::BF16,
            Sixteen::F16 => FloatKind::F16,
        })
    };
    let config = |made_of, n| MmaConfig {
        a_type: half(made_of),
        b_type: half(made_of),
        cd_type: of(FloatKind::F32),
        m: 16,
        n,
        k: 16,
    };
    let matmul = &properties.features.matmul;
    Cores {
        plane,
        fragments: Sixteen::ALL
            .map(|made_of| matmul.cmma.contains(&config(made_of, fragments::FRAGMENT as u32))),
        mma: Sixteen::ALL.map(|made_of| {
            plane == mma::PLANE
                && matmul.mma.contains(&config(made_of, 8))
                && matmul.ldmatrix.contains(&half(made_of))
        }),
    }
}

/// What a panic of a driver said.
pub(super) fn said(panic: &Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason is known").to_owned()
}
