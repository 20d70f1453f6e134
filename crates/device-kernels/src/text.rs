//! The kernels as the text that a driver's compiler gets: what can be compiled and looked at where there is no card.
//!
//! CubeCL makes a kernel's text from a description, and the description wants the properties of some device: Vulkan's, which
//! may be Mesa's software driver.

use std::sync::{Mutex, PoisonError};

use cubecl::codegen::KernelSettings;
use cubecl::prelude::*;
use cubecl::server::ExecutionMode;
use cubecl::wgpu::WgpuRuntime;
use cubecl::{Compiler, CubeDim};

use crate::error::{Refusal, Result};
use crate::kernels::rows::{MasksCompilationArg, UNITS};
use crate::kernels::{attention, fragments, mma, product, rows, update};
use crate::sixteen::Sixteen;

/// HIP's C++ of every kernel in the forms that a model launches, with its name; those for tensor cores are left out: they
/// are other instructions on other cards.
///
/// # Errors
/// There is no Vulkan device of this number, or a kernel has no text.
#[cfg(feature = "rocm")]
pub fn hip(number: usize) -> Result<Vec<(String, String)>> {
    texts::<cubecl::hip::runtime::HipCompiler>(number, false)
}

/// All of them in CUDA's C++.
///
/// # Errors
/// There is no Vulkan device of this number, or a kernel has no text.
#[cfg(feature = "cuda")]
pub fn cuda(number: usize) -> Result<Vec<(String, String)>> {
    texts::<cubecl::cuda::CudaCompiler>(number, true)
}

/// CubeCL 0.10 numbers the helping variables of a text by one counter of the process, which each kernel sets to 0: of two texts
/// that are made at once, one declares a variable twice.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn texts<C: Compiler + Default>(number: usize, cores: bool) -> Result<Vec<(String, String)>> {
    let spec = training::DeviceSpec::Vulkan(number);
    let client = crate::device::vulkan_client(number)?;
    let mut texts = Vec::new();
    for (name, kernel) in kernels(&client).into_iter().filter(|(name, _)| cores || !name.ends_with(ON_CORES))
    {
        let address = kernel.address_type();
        // From the beginning of its compilation until its text is written.
        let text = {
            let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
            let text = C::default()
                .compile(kernel.define(), &Default::default(), ExecutionMode::Unchecked, address)
                .map_err(|e| Refusal::Device { name: spec.to_string(), reason: format!("{name}: {e}") })?;
            text.to_string()
        };
        texts.push((name, text));
    }
    Ok(texts)
}

fn array() -> ArrayCompilationArg {
    ArrayCompilationArg { inplace: None }
}

fn masks() -> MasksCompilationArg {
    MasksCompilationArg { key_high: (), key_low: (), threshold: (), scale: (), first_row: () }
}

/// How the names of what wants tensor cores end.
pub const ON_CORES: &str = "_on_cores";

type Named = (String, Box<dyn CubeKernel>);

fn kernels(client: &ComputeClient<WgpuRuntime>) -> Vec<Named> {
    let settings = |units: u32| KernelSettings::default().cube_dim(CubeDim::new_1d(units));
    let by_rows = || settings(UNITS);
    let (a, c) = (array, || client.clone());
    let mut all: Vec<Named> = Vec::new();
    let mut add = |name: &str, kernel: Box<dyn CubeKernel>| all.push((name.to_owned(), kernel));

    for (name, a_turned, b_turned, accumulate, with_bias) in [
        ("product_forward", false, true, false, true),
        ("product_to_input", false, false, false, false),
        ("product_to_input_added", false, false, true, false),
        ("product_to_weights", true, false, false, false),
    ] {
        let sizes = || product::SizesCompilationArg { m: (), n: (), k: () };
        let place = || product::PlaceCompilationArg { at: (), stride: () };
        // A macro: what tensor cores multiply is a type, which only their kernel has.
        macro_rules! kernel {
            ($name:expr, $units:expr, $kernel:ty, $($how:expr),*) => {
                let made = <$kernel>::new(
                    settings($units),
                    c(),
                    a(),
                    a(),
                    a(),
                    sizes(),
                    place(),
                    place(),
                    place(),
                    (),
                    (),
                    a_turned,
                    b_turned,
                    accumulate,
                    with_bias,
                    $($how,)*
                );
                add($name, Box::new(made));
            };
        }
        type OnCores<E> = fragments::product_on_cores::ProductOnCores<E, WgpuRuntime>;
        let on_cores = |of: Sixteen| format!("{name}_{}{ON_CORES}", of.name());
        for (tile, whole) in
            [(product::SMALL, false), (product::LARGE, false), (product::LARGE_OF_VECTORS, true)]
        {
            let all = product::Whole { a: whole, b: whole, c: whole, shared: whole };
            let name = format!("{name}_{}_{}", tile.side, tile.depth);
            kernel!(&name, tile.units(), product::product::Product<WgpuRuntime>, tile, None, all);
        }
        kernel!(&on_cores(Sixteen::Bf16), fragments::UNITS, OnCores<half::bf16>, 32);
        kernel!(&on_cores(Sixteen::F16), fragments::UNITS, OnCores<half::f16>, 32);
        type ByMma<E> = mma::product_by_mma::ProductByMma<E, WgpuRuntime>;
        let [large, small] = mma::TILES;
        for (tile, what) in [(large, true), (small, true), (small, false)] {
            let whole = mma::Whole { a: what, b: what, c: what };
            let [rows, columns] = tile.side;
            let name = |of: Sixteen| {
                let what = if what { "whole" } else { "ragged" };
                format!("{name}_{what}_{rows}x{columns}_{}_mma{ON_CORES}", of.name())
            };
            kernel!(&name(Sixteen::Bf16), tile.units(), ByMma<half::bf16>, tile, whole);
            if tile == small {
                kernel!(&name(Sixteen::F16), tile.units(), ByMma<half::f16>, tile, whole);
            }
        }
    }
    for placed in [false, true] {
        let made = rows::embed::Embed::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            a(),
            a(),
            (),
            (),
            (),
            (),
            (),
            placed,
        );
        add(if placed { "embed_placed" } else { "embed" }, Box::new(made));
    }
    add(
        "add_rows",
        Box::new(rows::add_rows::AddRows::<WgpuRuntime>::new(by_rows(), c(), a(), a(), a(), (), (), ())),
    );
    add(
        "norm",
        Box::new(rows::norm_rows::NormRows::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            a(),
            a(),
            (),
            (),
            (),
            (),
            (),
        )),
    );
    add(
        "norm_backward",
        Box::new(rows::norm_backward::NormBackward::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            a(),
            (),
            (),
            (),
        )),
    );
    for (name, kind) in [("gelu", 0), ("gelu_tanh", 1), ("relu", 2)] {
        add(name, Box::new(rows::activate::Activate::<WgpuRuntime>::new(by_rows(), c(), a(), a(), (), kind)));
    }
    add("multiply", Box::new(rows::multiply::Multiply::<WgpuRuntime>::new(by_rows(), c(), a(), a(), ())));
    add("add", Box::new(rows::add::Add::<WgpuRuntime>::new(by_rows(), c(), a(), a(), (), ())));
    add("fill", Box::new(rows::fill::Fill::<WgpuRuntime>::new(by_rows(), c(), a(), (), ())));
    add("copy", Box::new(rows::copy::Copy::<WgpuRuntime>::new(by_rows(), c(), a(), a(), ())));
    add(
        "drop_in_place",
        Box::new(rows::drop_in_place::DropInPlace::<WgpuRuntime>::new(by_rows(), c(), a(), masks(), (), ())),
    );
    add(
        "add_dropped",
        Box::new(rows::add_dropped::AddDropped::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            masks(),
            (),
            (),
        )),
    );
    for gradient in [false, true] {
        let made = rows::cross_entropy::CrossEntropy::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            (),
            (),
            (),
            gradient,
        );
        add(if gradient { "cross_entropy_gradient" } else { "cross_entropy" }, Box::new(made));
    }
    for times in [false, true] {
        let made = rows::column_blocks::ColumnBlocks::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            (),
            (),
            (),
            (),
            times,
        );
        add(if times { "column_blocks_times" } else { "column_blocks" }, Box::new(made));
    }
    for (name, added, with_bias) in [
        ("column_totals_added", true, false),
        ("column_totals", false, false),
        ("column_totals_biased", false, true),
    ] {
        let made = rows::column_totals::ColumnTotals::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            (),
            (),
            (),
            (),
            (),
            added,
            with_bias,
        );
        add(name, Box::new(made));
    }
    add(
        "add_groups",
        Box::new(rows::add_groups::AddGroups::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            a(),
            a(),
            (),
            (),
            (),
            (),
        )),
    );
    add("gather", Box::new(rows::gather::Gather::<WgpuRuntime>::new(by_rows(), c(), a(), a(), a(), ())));
    add(
        "gather_sum",
        Box::new(rows::gather_sum::GatherSum::<WgpuRuntime>::new(by_rows(), c(), a(), a(), a(), a(), ())),
    );
    add(
        "add_patterns",
        Box::new(rows::add_patterns::AddPatterns::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            a(),
            (),
            (),
            (),
        )),
    );
    add(
        "pattern_sums",
        Box::new(rows::pattern_sums::PatternSums::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            a(),
            (),
            (),
            (),
        )),
    );
    add(
        "rotary",
        Box::new(rows::rotary::Rotary::<WgpuRuntime>::new(by_rows(), c(), a(), a(), a(), (), (), (), ())),
    );
    for squared in [false, true] {
        let made =
            update::stretch_sums::StretchSums::<WgpuRuntime>::new(by_rows(), c(), a(), a(), (), (), squared);
        add(if squared { "stretch_squares" } else { "stretch_sums" }, Box::new(made));
    }
    add("total", Box::new(update::total::Total::<WgpuRuntime>::new(by_rows(), c(), a(), a(), (), ())));
    let step =
        update::StepCompilationArg { clip: (), beta1: (), beta2: (), rate: (), correction: (), eps: () };
    add(
        "adamw",
        Box::new(update::adamw::Adamw::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            a(),
            step,
            (),
            (),
            (),
        )),
    );
    add("average", Box::new(update::average::Average::<WgpuRuntime>::new(by_rows(), c(), a(), a(), (), ())));
    add(
        "attention_along",
        Box::new(attention::along::Along::<WgpuRuntime>::new(by_rows(), c(), a(), a(), a(), (), (), (), ())),
    );
    add("keep", Box::new(attention::keep::Keep::<WgpuRuntime>::new(by_rows(), c(), a(), a(), a(), (), ())));
    add(
        "relate",
        Box::new(attention::relate::Relate::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            (),
            (),
            (),
            (),
            (),
            (),
            (),
            (),
            (),
            true,
            true,
        )),
    );
    add(
        "relate_backward",
        Box::new(attention::relate_backward::RelateBackward::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            (),
            (),
            (),
            (),
            (),
            (),
            (),
        )),
    );
    add(
        "table_blocks",
        Box::new(attention::table_blocks::TableBlocks::<WgpuRuntime>::new(
            by_rows(),
            c(),
            a(),
            a(),
            a(),
            (),
            (),
            (),
            (),
            (),
            (),
            (),
            (),
            (),
        )),
    );
    let all_of_it = attention::Knows { scored: true, valued: true, hidden: true };
    let nothing = attention::Knows::default();
    for (size, penalised, dropped, knows) in [
        (32, false, false, nothing),
        (64, true, true, nothing),
        (5, false, true, nothing),
        (16, true, true, all_of_it),
    ] {
        let of_tiles = || settings(attention::TILE);
        let kinds = || attention::KindsCompilationArg { count: (), from: (), hidden: (), values: () };
        let form = || attention::FormCompilationArg { heads: (), rows: (), scale: () };
        let name = |part: &str| format!("attention_{part}_{size}");
        let made = attention::forward::Forward::<WgpuRuntime>::new(
            of_tiles(),
            c(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            form(),
            masks(),
            kinds(),
            size,
            penalised,
            dropped,
            knows,
        );
        add(&name("forward"), Box::new(made));
        let made = attention::backward_queries::BackwardQueries::<WgpuRuntime>::new(
            of_tiles(),
            c(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            form(),
            masks(),
            kinds(),
            size,
            penalised,
            dropped,
            knows,
        );
        add(&name("backward_queries"), Box::new(made));
        let made = attention::backward_keys::BackwardKeys::<WgpuRuntime>::new(
            settings(attention::TILE * attention::SHARES),
            c(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            form(),
            masks(),
            kinds(),
            size,
            penalised,
            dropped,
            knows,
        );
        add(&name("backward_keys"), Box::new(made));
        let made = attention::newest::Newest::<WgpuRuntime>::new(
            of_tiles(),
            c(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            a(),
            form(),
            kinds(),
            size,
            penalised,
            knows,
        );
        add(&name("newest"), Box::new(made));
    }
    all
}
