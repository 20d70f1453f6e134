//! The kernels as HIP's and CUDA's C++, compiled where clang with the device libraries, or NVRTC, is installed: no card is
//! needed.

#[cfg(feature = "rocm")]
use std::path::Path;
#[cfg(feature = "rocm")]
use std::process::Command;

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
        return calculemus_base::stream::say(
            "texts not compiled: this needs NVRTC (pip: nvidia-cuda-nvrtc-cu12)",
        );
    }
    for (name, text) in texts {
        // NVRTC knows what that header says; the library alone has no headers.
        let text = text.replace("#include <cuda_runtime.h>\n", "");
        for arch in ["compute_75", "compute_90"] {
            let options = CompileOptions { arch: Some(arch), ..CompileOptions::default() };
            let compiled = compile_ptx_with_opts(&text, options);
            assert!(compiled.is_ok(), "{name} for {arch}: {compiled:?}\n{text}");
        }
    }
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
    for (name, text) in texts {
        let path = folder.path().join(format!("{name}.hip"));
        std::fs::write(&path, &text).unwrap();
        for card in CARDS {
            let output = clang(&path, card).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name} for {card}:\n{said}\n{text}");
        }
    }
}
