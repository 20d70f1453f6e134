//! Products of matrices.

use cubecl::prelude::*;

use super::on::On;
use super::{Buffer, Machine, Part, Products};
use crate::kernels::product;
use crate::sixteen::Sixteen;

/// Small tiles that a product is cut into along its terms if it has fewer, and the fewest terms of a part.
const ENOUGH: usize = 512;
const LEAST: usize = 128;

impl<R: Runtime> On<R> {
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
    pub(super) fn multiply_in_parts(&self, p: Product<'_>) {
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
    pub(super) fn multiply_matrices(&self, p: Product<'_>) {
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
    /// Terms of each partial product, where the product is cut along its terms.
    pub(super) chunk: Option<usize>,
}
