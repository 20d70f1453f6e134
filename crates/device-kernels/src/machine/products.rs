//! Products of matrices.

use cubecl::prelude::*;

use super::on::On;
use super::{Buffer, Machine, Part, Products};
use crate::kernels::{fragments, mma, product};
use crate::sixteen::Sixteen;

/// Small tiles that a product is cut into along its terms if it has fewer, and the fewest terms of a part.
const ENOUGH: usize = 512;
const LEAST: usize = 128;

/// The same for the gradient of a weight, which has few entries beside a device's units, and many terms.
const ENOUGH_OF_WEIGHTS: usize = 1024;
const LEAST_OF_WEIGHTS: usize = 256;

/// What the terms of a part are a multiple of, so that a part begins where a vector does.
const MULTIPLE: usize = 64;

/// Whether vectors of so many numbers begin where each of these does.
fn multiple(of: usize, numbers: &[usize]) -> bool {
    numbers.iter().all(|x| x.is_multiple_of(of))
}

impl<R: Runtime> On<R> {
    /// Whether there is room for a large tile, and enough of them that half of a device's multiprocessors have one: where only as
    /// many as seven eighths counted, updates of base took an H200 longer.
    fn fills(&self, shared_bytes: usize, [x, y, z]: [u32; 3]) -> bool {
        let hardware = &self.client.properties().hardware;
        let enough = hardware.num_streaming_multiprocessors.unwrap_or(16) / 2;
        shared_bytes <= hardware.max_shared_memory_size && x * y * z >= enough
    }

    /// A product that is cut along its terms where its tiles alone are few: parts of it are summed in their order. The cut
    /// depends on the sizes alone, so a result depends on no device.
    pub(super) fn multiply_in_parts(&self, p: Product<'_>) {
        let (m, n, k) = p.sizes;
        let tiles = m.div_ceil(64) * n.div_ceil(64);
        // The terms of a weight's gradient are rows, along which neither operand lies.
        let (enough, least) =
            if p.a_turned { (ENOUGH_OF_WEIGHTS, LEAST_OF_WEIGHTS) } else { (ENOUGH, LEAST) };
        let chunk = k.div_ceil(enough.div_ceil(tiles.max(1))).next_multiple_of(MULTIPLE).max(least);
        let parts = k.div_ceil(chunk);
        if parts < 2 {
            return self.multiply_matrices(p, k);
        }
        let partial = self.room(parts * m * n);
        let (total, bias) = (Part { of: p.c.0, at: p.c.1 }, p.bias.map(|at| (Part { of: p.b.0, at }, n)));
        self.multiply_matrices(Product { c: (&partial, 0, n), bias: None, accumulate: false, ..p }, chunk);
        self.totals(&partial, total, m * n, parts, bias, p.accumulate);
    }

    /// c ← a·b (+ c, + bias), in chunks of its terms, each of which has a matrix of its own.
    fn multiply_matrices(&self, p: Product<'_>, chunk: usize) {
        let (m, n, k) = p.sizes;
        let chunk = chunk.max(1);
        let cubes = |[rows, columns]: [u32; 2]| {
            let tiles = |entries: usize, side: u32| entries.div_ceil(side as usize).max(1) as u32;
            [tiles(n, columns), tiles(m, rows), k.div_ceil(chunk).max(1) as u32]
        };
        // A macro: what tensor cores multiply is a type, which only their kernels have.
        macro_rules! multiply {
            ($kernel:path, [$($of:ty)?], $side:expr, $units:expr, [$($how:expr),*]) => {{
                use $kernel as kernel;
                let [x, y, z] = cubes($side);
                // SAFETY: every access of a kernel is inside the sizes that it is given, and these are those of its buffers.
                #[expect(unsafe_code, reason = "bounds are checked in the kernel once, not at every access")]
                unsafe {
                    kernel::launch_unchecked::<$($of,)? R>(
                        &self.client,
                        CubeCount::Static(x, y, z),
                        CubeDim::new_1d($units),
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
        // Rows of terms or of entries of the tile, whichever lie beside each other.
        let whole_a = multiple(4, &[p.a.1, p.a.2, if p.a_turned { m } else { k }]);
        let whole_b = multiple(4, &[p.b.1, p.b.2, if p.b_turned { k } else { n }]);
        let products = self.products.get();
        let (fragments, by_mma) = match products {
            Products::OnCores(of) => self.cores.of(of),
            Products::Single | Products::Rounded(_) => (false, false),
        };
        match products {
            Products::OnCores(of) if by_mma => {
                let [large, small] = mma::TILES;
                let tile = if self.fills(large.shared_bytes(), cubes(large.side)) { large } else { small };
                let whole = mma::Whole { a: whole_a, b: whole_b, c: multiple(2, &[p.c.1, p.c.2, n]) };
                match of {
                    Sixteen::Bf16 => {
                        multiply!(mma::product_by_mma, [half::bf16], tile.side, tile.units(), [tile, whole])
                    }
                    Sixteen::F16 => {
                        multiply!(mma::product_by_mma, [half::f16], tile.side, tile.units(), [tile, whole])
                    }
                }
            }
            Products::OnCores(of) if fragments => {
                let (side, units, plane) = ([fragments::SIDE; 2], fragments::UNITS, self.cores.plane);
                match of {
                    Sixteen::Bf16 => {
                        multiply!(fragments::product_on_cores, [half::bf16], side, units, [plane])
                    }
                    Sixteen::F16 => multiply!(fragments::product_on_cores, [half::f16], side, units, [plane]),
                }
            }
            Products::Single | Products::OnCores(_) | Products::Rounded(_) => {
                let round = if let Products::Rounded(round) = products { Some(round) } else { None };
                let large = if self.vectors { product::LARGE_OF_VECTORS } else { product::LARGE };
                let tile = if self.fills(large.shared_bytes(), cubes([large.side; 2])) {
                    large
                } else {
                    product::SMALL
                };
                let whole = product::Whole {
                    a: self.vectors && whole_a,
                    b: self.vectors && whole_b,
                    c: self.vectors && multiple(4, &[p.c.1, p.c.2, n]),
                    shared: self.vectors,
                };
                multiply!(product::product, [], [tile.side; 2], tile.units(), [tile, round, whole]);
            }
        }
    }
}

/// A product of matrices in buffers, each with its place and its stride.
#[derive(Clone, Copy)]
pub(super) struct Product<'a> {
    pub(super) a: (&'a Buffer, usize, usize),
    pub(super) b: (&'a Buffer, usize, usize),
    pub(super) c: (&'a Buffer, usize, usize),
    pub(super) sizes: (usize, usize, usize),
    pub(super) a_turned: bool,
    pub(super) b_turned: bool,
    pub(super) accumulate: bool,
    pub(super) bias: Option<usize>,
}
