//! The kernels as HIP's and CUDA's C++, compiled where clang with the device libraries, or NVRTC, is installed: no card is
//! needed. Each is compiled for one of two cards, which of them the seed says; `CALCULEMUS_SLOW=1` takes both.

#[cfg(feature = "rocm")]
use std::path::Path;
#[cfg(feature = "cuda")]
use std::path::PathBuf;
#[cfg(feature = "rocm")]
use std::process::Command;

#[cfg(feature = "cuda")]
use device_kernels::Sixteen;

#[cfg(any(feature = "cuda", feature = "rocm"))]
fn is_slow() -> bool {
    std::env::var_os("CALCULEMUS_SLOW").is_some()
}

/// Those of two cards that a text is compiled for.
#[cfg(any(feature = "cuda", feature = "rocm"))]
fn cards(of: [&str; 2], text: usize) -> Vec<&str> {
    if is_slow() { of.to_vec() } else { vec![of[(text + seeded::test_seed() as usize) % 2]] }
}

/// NVRTC is a library: `LD_LIBRARY_PATH` may say where it lies.
#[cfg(feature = "cuda")]
#[test]
fn every_kernel_compiles_for_cards_of_nvidia() {
    use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};

    let texts = match device_kernels::text::cuda(0) {
        Ok(texts) => texts,
        Err(refusal) => return calculemus_base::stream::say(&format!("not tested: {refusal}")),
    };
    assert!(texts.len() > 40 && texts.iter().all(|(_, text)| text.contains("__global__")));
    #[expect(unsafe_code, reason = "the question whether a library can be loaded has no safe form")]
    // SAFETY: it loads NVRTC by its usual name, and calls nothing of it.
    let there = unsafe { cudarc::nvrtc::sys::is_culib_present() };
    if !there {
        return calculemus_base::stream::say("texts not compiled: this needs NVRTC (pip: nvidia-cuda-nvrtc)");
    }
    let headers = std::env::var_os("CUDA_PATH").map(|path| PathBuf::from(path).join("include"));
    let headers = headers.filter(|include| include.join("mma.h").is_file());
    if headers.is_none() {
        calculemus_base::stream::say(
            "texts for tensor cores not compiled: CUDA_PATH names no folder of headers",
        );
    }
    for (at, (name, text)) in texts.into_iter().enumerate() {
        let on_cores = name.ends_with(device_kernels::text::ON_CORES);
        let include_paths: Vec<String> = headers.iter().map(|path| path.display().to_string()).collect();
        if on_cores && include_paths.is_empty() {
            continue;
        }
        // NVRTC knows what that header says; the library alone has no headers.
        let text = text.replace("#include <cuda_runtime.h>\n", "");
        // Tensor cores multiply bf16 from Ampere on, and fragments of these sizes as PTX says; f16 from Volta on, which NVRTC 13 has
        // forgotten.
        let late = name.contains("bf16") || name.ends_with("_mma_on_cores");
        for arch in cards([if late { "compute_80" } else { "compute_75" }, "compute_90"], at) {
            let include_paths = if on_cores { include_paths.clone() } else { Vec::new() };
            let options = CompileOptions { arch: Some(arch), include_paths, ..CompileOptions::default() };
            let compiled = compile_ptx_with_opts(&text, options);
            assert!(compiled.is_ok(), "{name} for {arch}: {compiled:?}\n{text}");
        }
    }
}

/// A product of random sizes in its place, and what it is in f64.
#[cfg(feature = "cuda")]
struct Case {
    grid: [u32; 3],
    scalars: Vec<u32>,
    buffers: [Vec<f32>; 3],
    right: Vec<f64>,
}

#[cfg(feature = "cuda")]
impl Case {
    /// `name` says how the operands lie, and the tile; where it says that they are whole, vectors are read of them.
    fn new(name: &str, s: &mut seeded::Stream) -> Self {
        let by_mma = name.ends_with("_mma_on_cores");
        let multiple = if name.contains("_whole_") { 4 } else { 1 };
        let side =
            |part: &str| part.split_once('x').and_then(|(r, c)| Some([r.parse().ok()?, c.parse().ok()?]));
        let [tile_rows, tile_columns]: [usize; 2] = name.split('_').find_map(side).unwrap_or([64, 64]);
        let (a_turned, b_turned) = (name.contains("to_weights"), name.contains("forward"));
        let made_of = Sixteen::ALL.into_iter().find(|of| name.contains(&format!("_{}_", of.name()))).unwrap();
        let (added, with_bias) = (name.contains("added"), name.contains("forward"));
        let [m, n, k] = [100, 140, 70].map(|most| multiple * (1 + s.below(most / multiple as u64) as usize));
        // Parts that `mma` makes are whole fragments.
        let chunk = if !a_turned {
            k
        } else if by_mma {
            16
        } else {
            1 + s.below(k as u64) as usize
        };
        let parts = k.div_ceil(chunk);
        let [a_at, b_at, c_at] = [(); 3].map(|()| multiple * s.below(5) as usize);
        let (a_stride, b_stride) = (if a_turned { m } else { k }, if b_turned { k } else { n });
        let bias_at = b_at + n * k;
        let mut draw = |len: usize| -> Vec<f32> { (0..len).map(|_| s.normal() as f32).collect() };
        let (a, b, c) = (draw(a_at + m * k), draw(bias_at + n), draw(c_at + parts * m * n));
        let mut right: Vec<f64> = c.iter().map(|&x| f64::from(x)).collect();
        for part in 0..parts {
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let terms = part * chunk..k.min((part + 1) * chunk);
                let dot: f64 = terms
                    .map(|t| {
                        let x = a[a_at + if a_turned { t * a_stride + i } else { i * a_stride + t }];
                        let y = b[b_at + if b_turned { j * b_stride + t } else { t * b_stride + j }];
                        f64::from(made_of.round(x)) * f64::from(made_of.round(y))
                    })
                    .sum();
                let entry = &mut right[c_at + part * m * n + i * n + j];
                *entry = dot
                    + if added { *entry } else { 0.0 }
                    + if with_bias { f64::from(b[bias_at + j]) } else { 0.0 };
            }
        }
        let scalars = [m, n, k, a_at, a_stride, b_at, b_stride, c_at, n, bias_at, chunk];
        Self {
            grid: [n.div_ceil(tile_columns), m.div_ceil(tile_rows), parts].map(|x| x as u32),
            scalars: scalars.map(|x| x as u32).to_vec(),
            buffers: [a, b, c],
            right,
        }
    }

    fn bytes(&self, units: u32) -> Vec<u8> {
        let lengths = self.buffers.iter().map(|b| b.len() as u32);
        let head = self.grid.into_iter().chain([units, self.scalars.len() as u32]).chain(lengths);
        let whole = head.chain(self.scalars.iter().copied()).flat_map(u32::to_le_bytes);
        whole.chain(self.buffers.iter().flatten().flat_map(|x| x.to_le_bytes())).collect()
    }
}

/// A text without the functions that it defines in PTX.
#[cfg(feature = "cuda")]
fn without_ptx(text: &str) -> String {
    let mut parts = text.split("inline __device__ void");
    let mut rest = parts.next().unwrap().to_owned();
    for part in parts {
        let (function, behind) = part.split_once("\n    }").unwrap();
        assert!(function.contains("asm volatile"), "{function}");
        rest.push_str(behind);
    }
    rest
}

/// No card, and no driver that emulates one, has tensor cores here: the texts for them run as C++, with CUDA's words in
/// `emulated_cuda.h`.
#[cfg(feature = "cuda")]
#[test]
fn products_on_cores_are_those_of_rounded_numbers() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    const WORDS: &str = include_str!("../data/emulated_cuda.h");
    let texts = match device_kernels::text::cuda(0) {
        Ok(texts) => texts,
        Err(refusal) => return calculemus_base::stream::say(&format!("not tested: {refusal}")),
    };
    let compiler = "clang++-15";
    if Command::new(compiler).arg("--version").output().is_err() {
        return calculemus_base::stream::say(&format!("texts not run: this needs {compiler}"));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut s = seeded::Family::named("device-kernels:cores").stream(seeded::test_seed());
    let on_cores = texts.iter().filter(|(name, _)| name.ends_with(device_kernels::text::ON_CORES));
    // Products that fragments make, and those of `mma`.
    let times = if is_slow() { [3, 2] } else { [1, 1] };
    let mut count = 0;
    for (name, text) in on_cores {
        let lines = text.lines().filter(|line| !line.starts_with("#include"));
        let body = without_ptx(&lines.flat_map(|line| [line, "\n"]).collect::<String>());
        // `__launch_bounds__(UNITS) kernel(…`
        let (_, signature) = body.split_once("__launch_bounds__(").unwrap();
        let (units, kernel) = signature.split_once(')').unwrap();
        let (kernel, _) = kernel.split_once('(').unwrap();
        let main = format!(
            "int main() {{ return run([](float *a, float *b, float *c, uint32_t *info) {{ \
             {kernel}(a, b, c, reinterpret_cast<info_st *>(info)); }}); }}\n"
        );
        let units = units.parse().unwrap();
        let (source, program) = (folder.path().join("kernel.cpp"), folder.path().join(name));
        std::fs::write(&source, format!("{WORDS}{body}{main}")).unwrap();
        let mut command = Command::new(compiler);
        command
            .args(["-std=c++20", "-O1", "-pthread", "-ffp-contract=off", "-fno-strict-aliasing", "-o"])
            .args([&program, &source]);
        let made = command.output().unwrap();
        assert!(made.status.success(), "{name}: {}", String::from_utf8_lossy(&made.stderr));
        for _ in 0..times[usize::from(name.ends_with("_mma_on_cores"))] {
            let case = Case::new(name, &mut s);
            let mut running =
                Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut to = running.stdin.take().unwrap();
            let bytes = case.bytes(units);
            let writer = std::thread::spawn(move || to.write_all(&bytes));
            let out = running.wait_with_output().unwrap();
            assert!(writer.join().unwrap().is_ok() && out.status.success(), "{name}: {:?}", out.status);
            let found: Vec<f32> =
                out.stdout.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
            assert_eq!(found.len(), case.right.len());
            let largest = case.right.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
            for (i, (a, b)) in found.iter().zip(&case.right).enumerate() {
                assert!((f64::from(*a) - b).abs() < 2e-6 * largest, "{name} {:?} {i}: {a} {b}", case.scalars);
            }
            count += 1;
        }
    }
    assert_eq!(count, 8 * times[0] + 20 * times[1]);
}

#[cfg(feature = "rocm")]
/// Cards: an MI250 and a Radeon RX 6800.
const CARDS: [&str; 2] = ["gfx90a", "gfx1030"];

#[cfg(feature = "rocm")]
/// Debian's device libraries lie where clang does not look for them, and are of its version 15.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode";

#[cfg(feature = "rocm")]
fn clang(text: &Path, card: &str) -> Command {
    let mut command = Command::new("clang-15");
    command.args([
        "-x",
        "hip",
        "--cuda-device-only",
        "-std=c++17",
        "-O1",
        "-S",
        "-o",
        "/dev/null",
        "-nogpuinc",
    ]);
    command.args(["-D__HIP_PLATFORM_AMD__", "-include", "__clang_hip_runtime_wrapper.h"]);
    command
        .arg(format!("--offload-arch={card}"))
        .arg(format!("--rocm-device-lib-path={LIBRARIES}"))
        .arg(text);
    command
}

#[cfg(feature = "rocm")]
#[test]
fn every_kernel_compiles_for_cards_of_amd() {
    let texts = match device_kernels::text::hip(0) {
        Ok(texts) => texts,
        Err(refusal) => return calculemus_base::stream::say(&format!("not tested: {refusal}")),
    };
    assert!(texts.len() > 40, "{}", texts.len());
    assert!(texts.iter().all(|(_, text)| text.contains("__global__")));
    let folder = tempfile::tempdir().unwrap();
    let probe = folder.path().join("probe.hip");
    std::fs::write(
        &probe,
        "#include <hip/hip_runtime.h>\n__global__ void probe(float* x) { x[0] = 1.0f; }\n",
    )
    .unwrap();
    if !clang(&probe, CARDS[0]).output().is_ok_and(|o| o.status.success()) {
        let what = "clang-15, rocm-device-libs and libamdhip64-dev of Debian";
        return calculemus_base::stream::say(&format!("texts not compiled: this needs {what}"));
    }
    for (at, (name, text)) in texts.into_iter().enumerate() {
        let path = folder.path().join(format!("{name}.hip"));
        std::fs::write(&path, &text).unwrap();
        for card in cards(CARDS, at) {
            let output = clang(&path, card).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name} for {card}:\n{said}\n{text}");
        }
    }
}
