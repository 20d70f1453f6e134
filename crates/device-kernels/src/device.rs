//! Which devices there are, and how one is opened.
//!
//! Drivers are asked whether they are there before anything of theirs is called: a missing HIP library ends the process from
//! inside an `extern "C"`, and CUDA's and HIP's headers are wanted when a kernel is compiled.

use training::DeviceSpec;

use crate::error::{Refusal, Result};

/// A device that was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What `--device` takes.
    pub spec: DeviceSpec,
    /// What the driver calls it.
    pub name: String,
    /// The driver with its version.
    pub driver: String,
    /// Bytes: of the device where its driver tells, and else of the largest buffer that it takes.
    pub memory: u64,
    /// Why it cannot be used, if it cannot.
    pub fault: Option<String>,
}

/// The devices of this machine that this build can reach, and of each path without one why there is none.
pub fn available() -> Vec<Found> {
    #[cfg_attr(not(feature = "kernels"), expect(unused_mut, reason = "nothing is found"))]
    let mut found = Vec::new();
    #[cfg(feature = "vulkan")]
    found.extend(graphics::found(graphics::Api::Vulkan));
    #[cfg(feature = "metal")]
    found.extend(graphics::found(graphics::Api::Metal));
    #[cfg(feature = "cuda")]
    found.extend(cuda::found());
    #[cfg(feature = "rocm")]
    found.extend(rocm::found());
    found
}

/// A path without a device.
#[cfg(feature = "kernels")]
fn none(spec: DeviceSpec, fault: String) -> Vec<Found> {
    vec![Found { spec, name: String::new(), driver: String::new(), memory: 0, fault: Some(fault) }]
}

fn refused(spec: DeviceSpec, reason: impl Into<String>) -> Refusal {
    Refusal::Device { name: spec.to_string(), reason: reason.into() }
}

fn not_built(spec: DeviceSpec) -> Refusal {
    match spec.feature() {
        Some(feature) => refused(spec, format!("this build was made without the feature `{feature}`")),
        None => refused(spec, "the CPU has kernels of its own, in the crate `training`"),
    }
}

/// Opens a device.
///
/// # Errors
/// It is not in this build, there is none of this number, or its driver refuses; the reason is the driver's.
#[cfg(feature = "kernels")]
pub fn open(spec: DeviceSpec) -> Result<Box<dyn crate::Machine>> {
    match spec {
        #[cfg(feature = "vulkan")]
        DeviceSpec::Vulkan(number) => graphics::open(spec, graphics::Api::Vulkan, number),
        #[cfg(feature = "metal")]
        DeviceSpec::Metal(number) => graphics::open(spec, graphics::Api::Metal, number),
        #[cfg(feature = "cuda")]
        DeviceSpec::Cuda(number) => cuda::open(spec, number),
        #[cfg(feature = "rocm")]
        DeviceSpec::Rocm(number) => rocm::open(spec, number),
        _ => Err(not_built(spec)),
    }
}

/// A device, and what destroys it.
#[cfg(any(feature = "vulkan", feature = "metal"))]
pub type ToLose = (Box<dyn crate::Machine>, Box<dyn FnOnce() + Send>);

/// Opens a device with something that destroys it, as a driver does that gives a card up: what a program makes of that can be
/// tried so. wgpu alone can.
///
/// # Errors
/// As of [`open`].
#[cfg(any(feature = "vulkan", feature = "metal"))]
pub fn open_to_lose(spec: DeviceSpec) -> Result<ToLose> {
    match spec {
        #[cfg(feature = "vulkan")]
        DeviceSpec::Vulkan(number) => graphics::open_to_lose(spec, graphics::Api::Vulkan, number),
        #[cfg(feature = "metal")]
        DeviceSpec::Metal(number) => graphics::open_to_lose(spec, graphics::Api::Metal, number),
        _ => Err(refused(spec, "only a device of wgpu can be destroyed")),
    }
}

/// Opens a device: none is in this build.
///
/// # Errors
/// Always.
#[cfg(not(feature = "kernels"))]
pub fn open(spec: DeviceSpec) -> Result<std::convert::Infallible> {
    Err(not_built(spec))
}

/// What describes kernels where their text alone is wanted.
#[cfg(all(any(feature = "cuda", feature = "rocm"), feature = "vulkan"))]
pub(crate) fn vulkan_client(
    number: usize,
) -> Result<cubecl::prelude::ComputeClient<cubecl::wgpu::WgpuRuntime>> {
    let device = graphics::device(DeviceSpec::Vulkan(number), graphics::Api::Vulkan, number)?;
    Ok(<cubecl::wgpu::WgpuRuntime as cubecl::Runtime>::client(&device))
}

/// Refuses a number that no device has.
#[cfg(any(feature = "cuda", feature = "rocm"))]
fn check_number(spec: DeviceSpec, number: usize, found: &[Found]) -> Result<()> {
    match found.iter().find(|f| f.spec == spec) {
        Some(Found { fault: None, .. }) => Ok(()),
        Some(Found { fault: Some(fault), .. }) => Err(refused(spec, fault.as_str())),
        None => match found {
            [Found { fault: Some(fault), .. }] => Err(refused(spec, fault.as_str())),
            _ => Err(refused(
                spec,
                format!("there are {} of them, and none has the number {number}", found.len()),
            )),
        },
    }
}

/// Vulkan and Metal, both through wgpu.
#[cfg(any(feature = "vulkan", feature = "metal"))]
mod graphics {
    use cubecl::Runtime as _;
    #[cfg(all(any(feature = "cuda", feature = "rocm"), feature = "vulkan"))]
    use cubecl::wgpu::WgpuDevice;
    use cubecl::wgpu::{RuntimeOptions, WgpuRuntime, WgpuSetup, init_device};
    use training::DeviceSpec;

    use super::{Found, ToLose, none, refused};
    use crate::error::Result;
    use crate::faults::Faults;
    use crate::kernels::product;
    use crate::machine::{Machine, On};

    /// The driver's interface.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Api {
        #[cfg(feature = "vulkan")]
        Vulkan,
        #[cfg(feature = "metal")]
        Metal,
    }

    impl Api {
        fn backends(self) -> wgpu::Backends {
            match self {
                #[cfg(feature = "vulkan")]
                Self::Vulkan => wgpu::Backends::VULKAN,
                #[cfg(feature = "metal")]
                Self::Metal => wgpu::Backends::METAL,
            }
        }

        fn backend(self) -> wgpu::Backend {
            match self {
                #[cfg(feature = "vulkan")]
                Self::Vulkan => wgpu::Backend::Vulkan,
                #[cfg(feature = "metal")]
                Self::Metal => wgpu::Backend::Metal,
            }
        }

        fn spec(self, number: usize) -> DeviceSpec {
            match self {
                #[cfg(feature = "vulkan")]
                Self::Vulkan => DeviceSpec::Vulkan(number),
                #[cfg(feature = "metal")]
                Self::Metal => DeviceSpec::Metal(number),
            }
        }

        fn no_driver(self) -> &'static str {
            match self {
                #[cfg(feature = "vulkan")]
                Self::Vulkan => {
                    "no Vulkan driver is installed (Debian: mesa-vulkan-drivers has one for the CPU too)"
                }
                #[cfg(feature = "metal")]
                Self::Metal => "no device of Metal is here: it is of macOS",
            }
        }
    }

    fn adapters(api: Api) -> (wgpu::Instance, Vec<wgpu::Adapter>) {
        let backends = api.backends();
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = cubecl::future::block_on(instance.enumerate_adapters(backends));
        (instance, adapters)
    }

    /// What the kernels need and an adapter does not have.
    fn fault(adapter: &wgpu::Adapter) -> Option<String> {
        short_of(&adapter.limits())
    }

    fn short_of(limits: &wgpu::Limits) -> Option<String> {
        let needed = [
            ("storage buffers in one kernel", limits.max_storage_buffers_per_shader_stage, 12),
            ("units in a cube", limits.max_compute_invocations_per_workgroup, 256),
            (
                "bytes of shared memory",
                limits.max_compute_workgroup_storage_size,
                product::SMALL.shared_bytes() as u32,
            ),
        ];
        let short = needed.iter().find(|(_, has, needs)| has < needs);
        short.map(|(what, has, needs)| format!("it has {has} {what}, and the kernels need {needs}"))
    }

    pub(super) fn found(api: Api) -> Vec<Found> {
        let (_instance, adapters) = adapters(api);
        if adapters.is_empty() {
            return none(api.spec(0), api.no_driver().to_owned());
        }
        let describe = |(number, adapter): (usize, &wgpu::Adapter)| {
            let info = adapter.get_info();
            let kind = match info.device_type {
                wgpu::DeviceType::DiscreteGpu => "discrete",
                wgpu::DeviceType::IntegratedGpu => "integrated",
                wgpu::DeviceType::VirtualGpu => "virtual",
                wgpu::DeviceType::Cpu => "software",
                wgpu::DeviceType::Other => "of unknown kind",
            };
            Found {
                spec: api.spec(number),
                name: format!("{}, {kind}", info.name),
                driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
                memory: adapter.limits().max_storage_buffer_binding_size,
                fault: fault(adapter),
            }
        };
        adapters.iter().enumerate().map(describe).collect()
    }

    pub(super) fn open(spec: DeviceSpec, api: Api, number: usize) -> Result<Box<dyn Machine>> {
        Ok(Box::new(on(setup(spec, api, number)?, spec)?))
    }

    /// What is done on a device of wgpu.
    fn on(setup: WgpuSetup, spec: DeviceSpec) -> Result<On<WgpuRuntime>> {
        let faults = Faults::of(&setup.device);
        let device = init_device(setup, RuntimeOptions::default());
        On::new(|| WgpuRuntime::client(&device), spec.to_string(), faults)
    }

    /// As of [`super::open_to_lose`].
    pub(super) fn open_to_lose(spec: DeviceSpec, api: Api, number: usize) -> Result<ToLose> {
        let setup = setup(spec, api, number)?;
        let device = setup.device.clone();
        Ok((Box::new(on(setup, spec)?), Box::new(move || device.destroy())))
    }

    /// A device of wgpu, for a client.
    #[cfg(all(any(feature = "cuda", feature = "rocm"), feature = "vulkan"))]
    pub(super) fn device(spec: DeviceSpec, api: Api, number: usize) -> Result<WgpuDevice> {
        Ok(init_device(setup(spec, api, number)?, RuntimeOptions::default()))
    }

    fn setup(spec: DeviceSpec, api: Api, number: usize) -> Result<WgpuSetup> {
        let (instance, mut adapters) = adapters(api);
        if adapters.is_empty() {
            return Err(refused(spec, api.no_driver()));
        }
        if number >= adapters.len() {
            let names = (0..).zip(&adapters).map(|(n, a)| format!("{} {}", api.spec(n), a.get_info().name));
            let names: Vec<String> = names.collect();
            return Err(refused(
                spec,
                format!("there is none of this number; here are {}", names.join(", ")),
            ));
        }
        let adapter = adapters.swap_remove(number);
        if let Some(fault) = fault(&adapter) {
            return Err(refused(spec, fault));
        }
        let asked = wgpu::DeviceDescriptor {
            label: Some("calculemus"),
            required_features: adapter.features() & wgpu::Features::all_webgpu_mask(),
            required_limits: adapter.limits(),
            ..wgpu::DeviceDescriptor::default()
        };
        let opened = cubecl::future::block_on(adapter.request_device(&asked));
        let (device, queue) = opened.map_err(|e| refused(spec, e.to_string()))?;
        Ok(WgpuSetup { instance, adapter, device, queue, backend: api.backend() })
    }

    #[cfg(all(test, feature = "vulkan"))]
    mod tests {
        use super::*;
        use crate::machine::Rows;

        #[expect(clippy::unwrap_used, reason = "a test stops at what should not be")]
        fn within_a_minute<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
            let (send, receive) = std::sync::mpsc::channel();
            std::thread::spawn(move || send.send(what()));
            receive.recv_timeout(std::time::Duration::from_secs(60)).unwrap()
        }

        #[test]
        fn what_an_old_driver_has_too_little_of_is_named() {
            let new = wgpu::Limits {
                max_storage_buffers_per_shader_stage: 12,
                max_compute_invocations_per_workgroup: 256,
                max_compute_workgroup_storage_size: 32 << 10,
                ..wgpu::Limits::default()
            };
            assert_eq!(short_of(&new), None);
            let old = wgpu::Limits { max_storage_buffers_per_shader_stage: 8, ..new.clone() };
            let said = "it has 8 storage buffers in one kernel, and the kernels need 12";
            assert_eq!(short_of(&old).as_deref(), Some(said));
            let old = wgpu::Limits { max_compute_invocations_per_workgroup: 128, ..new.clone() };
            assert!(short_of(&old).is_some_and(|said| said.starts_with("it has 128 units in a cube")));
            let old = wgpu::Limits { max_compute_workgroup_storage_size: 16 << 10, ..new };
            assert!(short_of(&old).is_some_and(|said| said.contains("16384 bytes of shared memory")));
        }

        #[test]
        fn a_device_that_is_lost_is_an_error_and_no_panic() {
            let spec = DeviceSpec::Vulkan(0);
            let (machine, lose) = match open_to_lose(spec, Api::Vulkan, 0) {
                Ok(opened) => opened,
                Err(refusal) => return eprintln!("not tested: {refusal}"),
            };
            let x = machine.upload(&[1.0, 2.0]);
            machine.multiply(&x, &x);
            assert_eq!(machine.read(&x).expect("it works"), [1.0, 4.0]);
            lose();
            let refusals = within_a_minute(move || {
                let y = machine.upload(&[1.0; 1000]);
                let z = machine.room(1 << 20);
                machine.fill(&z, 1.0);
                machine.multiply(&x, &x);
                machine.add_columns(&y, crate::machine::Part { of: &x, at: 0 }, Rows { rows: 500, width: 2 });
                [machine.read(&x), machine.read(&z), machine.read(&x)].map(|r| r.map_err(|e| e.to_string()))
            });
            for refusal in refusals {
                let refusal = refusal.expect_err("it is lost");
                assert!(
                    refusal.contains("device `vulkan:0` failed: the device is lost, it was destroyed"),
                    "{refusal}"
                );
                assert!(refusal.contains("goes on from its last checkpoint"), "{refusal}");
            }
        }

        #[test]
        fn a_device_that_does_not_answer_is_given_up() {
            let spec = DeviceSpec::Vulkan(0);
            let setup = match setup(spec, Api::Vulkan, 0) {
                Ok(setup) => setup,
                Err(refusal) => return eprintln!("not tested: {refusal}"),
            };
            let machine = on(setup, spec).expect("it opens");
            let x = machine.upload(&[0.0; 300]);
            machine.launch_long(&x, 100);
            assert_eq!(machine.read(&x).expect("it is soon done"), [2.0; 300]);
            let machine = machine.with_patience(std::time::Duration::from_millis(20));
            // Mesa's software driver leaves a loop after 65,536 rounds, so it takes long by its entries (2 s of two
            // cores), and a card by its rounds.
            let y = machine.upload(&vec![0.0; 30_000]);
            machine.launch_long(&y, 1 << 28);
            for _ in 0..2 {
                let refusal = machine.read(&y).expect_err("it is not done so soon").to_string();
                assert!(refusal.contains("device `vulkan:0` failed: no answer in 0.02 s"), "{refusal}");
            }
        }

        #[test]
        fn a_kernel_that_the_driver_refuses_is_told_by_the_next_reading() {
            let spec = DeviceSpec::Vulkan(0);
            let setup = match setup(spec, Api::Vulkan, 0) {
                Ok(setup) => setup,
                Err(refusal) => return eprintln!("not tested: {refusal}"),
            };
            let machine = on(setup, spec).expect("it opens");
            let x = machine.upload(&[1.0, 2.0]);
            machine.launch_doubles(&x);
            let (read, machine, x) = within_a_minute(move || (machine.read(&x), machine, x));
            let refusal = read.expect_err("it does not compile").to_string();
            assert!(refusal.contains("compilation failed for kernel `doubled`"), "{refusal}");
            machine.launch_beyond(&x);
            let refusal = machine.read(&x).expect_err("no cube is so large").to_string();
            assert!(refusal.contains("Requested (1048576, 1, 1), max is"), "{refusal}");
            // What is refused once is not told of what comes after it.
            machine.fill(&x, 3.0);
            assert_eq!(machine.read(&x).expect("it works"), [3.0, 3.0]);
        }
    }
}

/// CUDA by its driver and NVRTC, which are loaded when they are called.
#[cfg(feature = "cuda")]
mod cuda {
    use cubecl::Runtime as _;
    use cubecl::cuda::{CudaDevice, CudaRuntime};
    use cudarc::driver::result;
    use training::DeviceSpec;

    use super::{Found, check_number, none};
    use crate::error::Result;
    use crate::faults::Faults;
    use crate::machine::{Machine, On};

    /// What is missing before anything of CUDA may be called.
    fn missing() -> Option<String> {
        #[expect(unsafe_code, reason = "the question whether a library can be loaded has no safe form")]
        // SAFETY: they load libraries by their usual names, whose initialisers are NVIDIA's, and call nothing of them.
        let (driver, compiler) =
            unsafe { (cudarc::driver::sys::is_culib_present(), cudarc::nvrtc::sys::is_culib_present()) };
        if !driver {
            return Some("no NVIDIA driver is installed (libcuda)".to_owned());
        }
        if !compiler {
            return Some("NVRTC is not installed (libnvrtc): it compiles the kernels".to_owned());
        }
        let home = std::env::var_os("CUDA_PATH").map(std::path::PathBuf::from);
        let usual = ["/usr/local/cuda", "/opt/cuda", "/usr"].map(std::path::PathBuf::from);
        let headers = home.into_iter().chain(usual).any(|path| path.join("include/cuda_runtime.h").is_file());
        (!headers).then(|| "its headers are not found: CUDA_PATH says where CUDA lies".to_owned())
    }

    /// The version of NVRTC, which is there.
    fn compiler() -> (i32, i32) {
        let (mut major, mut minor) = (0, 0);
        #[expect(unsafe_code, reason = "the compiler's question has no safe form")]
        // SAFETY: the library is there, and it writes two numbers.
        unsafe {
            cudarc::nvrtc::sys::nvrtcVersion(&raw mut major, &raw mut minor);
        }
        (major, minor)
    }

    /// A driver loads what compilers of its own CUDA and of earlier ones made (NVIDIA, CUDA Compatibility): within one major
    /// version the minor ones do not matter.
    fn too_old(driver: i32, (major, minor): (i32, i32)) -> Option<String> {
        (driver / 1000 < major).then(|| {
            format!(
                "its driver is of CUDA {}.{}, and the compiler that is installed, NVRTC {major}.{minor}, makes what that does not load: a newer driver, or NVRTC {}",
                driver / 1000,
                driver % 1000 / 10,
                driver / 1000
            )
        })
    }

    pub(super) fn found() -> Vec<Found> {
        if let Some(missing) = missing() {
            return none(DeviceSpec::Cuda(0), missing);
        }
        let devices = || -> std::result::Result<Vec<Found>, result::DriverError> {
            result::init()?;
            let mut version = 0;
            #[expect(unsafe_code, reason = "the driver's question has no safe form")]
            // SAFETY: the library is there, and it writes one number.
            unsafe {
                cudarc::driver::sys::cuDriverGetVersion(&raw mut version).result()?;
            }
            let driver = format!("CUDA driver {}.{}", version / 1000, version % 1000 / 10);
            let fault = too_old(version, compiler());
            let describe = |number: i32| {
                let device = result::device::get(number)?;
                #[expect(unsafe_code, reason = "the driver's question has no safe form")]
                // SAFETY: the device was just given by the driver.
                let memory = unsafe { result::device::total_mem(device)? };
                let name = result::device::get_name(device)?;
                let spec = DeviceSpec::Cuda(usize::try_from(number).unwrap_or(0));
                Ok(Found { spec, name, driver: driver.clone(), memory: memory as u64, fault: fault.clone() })
            };
            (0..result::device::get_count()?).map(describe).collect()
        };
        match devices() {
            Ok(found) if found.is_empty() => none(DeviceSpec::Cuda(0), "the driver knows no card".to_owned()),
            Ok(found) => found,
            Err(e) => none(DeviceSpec::Cuda(0), format!("the driver refuses: {e}")),
        }
    }

    pub(super) fn open(spec: DeviceSpec, number: usize) -> Result<Box<dyn Machine>> {
        check_number(spec, number, &found())?;
        let client = || CudaRuntime::client(&CudaDevice { index: number });
        Ok(Box::new(On::<CudaRuntime>::new(client, spec.to_string(), Faults::default())?))
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn a_driver_that_is_older_than_the_compiler_is_named() {
            for (driver, compiler) in
                [(13_000, (13, 0)), (13_000, (13, 2)), (13_000, (12, 8)), (12_020, (12, 9))]
            {
                assert_eq!(super::too_old(driver, compiler), None);
            }
            #[expect(unsafe_code, reason = "the question whether a library can be loaded has no safe form")]
            // SAFETY: it loads NVRTC by its usual name, and calls nothing of it.
            let there = unsafe { cudarc::nvrtc::sys::is_culib_present() };
            assert!(!there || super::compiler().0 >= 11, "NVRTC says which it is");
            let said = super::too_old(12_040, (13, 0)).expect("it is older");
            assert!(
                said.contains("of CUDA 12.4") && said.contains("NVRTC 13.0") && said.ends_with("or NVRTC 12")
            );
        }
    }
}

/// ROCm by HIP and HIPRTC, which are loaded when they are called.
#[cfg(feature = "rocm")]
mod rocm {
    use cubecl::Runtime as _;
    use cubecl::hip::{AmdDevice, HipRuntime};
    use training::DeviceSpec;

    use super::{Found, check_number, none};
    use crate::error::Result;
    use crate::faults::Faults;
    use crate::machine::{Machine, On};

    /// What is missing before anything of HIP may be called.
    fn missing() -> Option<String> {
        if !cubecl_hip_sys::is_available() {
            return Some(
                "ROCm is not installed (libamdhip64, libhiprtc), or ROCM_PATH does not say where".to_owned(),
            );
        }
        cubecl_hip_sys::get_hip_include_path()
            .err()
            .map(|e| format!("its headers are not found, which `hipconfig` would tell: {e}"))
    }

    pub(super) fn found() -> Vec<Found> {
        if let Some(missing) = missing() {
            return none(DeviceSpec::Rocm(0), missing);
        }
        let mut count = 0;
        #[expect(unsafe_code, reason = "the driver's question has no safe form")]
        // SAFETY: the library is there, and it writes one number.
        let status = unsafe { cubecl_hip_sys::hipGetDeviceCount(&raw mut count) };
        if status != cubecl_hip_sys::HIP_SUCCESS || count < 1 {
            return none(DeviceSpec::Rocm(0), format!("HIP knows no card (status {status})"));
        }
        let describe = |number: i32| {
            let mut bytes = 0;
            #[expect(unsafe_code, reason = "the driver's question has no safe form")]
            // SAFETY: there is a device of this number, and one number is written.
            unsafe {
                cubecl_hip_sys::hipDeviceTotalMem(&raw mut bytes, number);
            }
            Found {
                spec: DeviceSpec::Rocm(usize::try_from(number).unwrap_or(0)),
                name: format!("card {number}"),
                driver: "HIP".to_owned(),
                memory: bytes as u64,
                fault: None,
            }
        };
        (0..count).map(describe).collect()
    }

    pub(super) fn open(spec: DeviceSpec, number: usize) -> Result<Box<dyn Machine>> {
        check_number(spec, number, &found())?;
        let client = || HipRuntime::client(&AmdDevice { index: number });
        Ok(Box::new(On::<HipRuntime>::new(client, spec.to_string(), Faults::default())?))
    }
}
