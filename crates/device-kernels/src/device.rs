//! Which devices there are, and how one is opened.

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
    /// `discrete`, `integrated`, `virtual`, `software` or `other`.
    pub kind: &'static str,
    /// Bytes of the largest buffer that it takes: wgpu tells no more of its memory.
    pub largest: u64,
    /// Why it cannot be used, if it cannot.
    pub fault: Option<String>,
}

/// The devices of this machine that this build can use, and those that it cannot with the reason.
pub fn available() -> Vec<Found> {
    #[cfg(feature = "vulkan")]
    {
        vulkan::found()
    }
    #[cfg(not(feature = "vulkan"))]
    {
        Vec::new()
    }
}

fn refused(spec: DeviceSpec, reason: impl Into<String>) -> Refusal {
    Refusal::Device { name: spec.to_string(), reason: reason.into() }
}

/// Opens a device.
///
/// # Errors
/// It is not in this build, there is none of this number, or its driver refuses; the reason is the driver's.
#[cfg(feature = "vulkan")]
pub fn open(spec: DeviceSpec) -> Result<Box<dyn crate::Machine>> {
    match spec {
        DeviceSpec::Vulkan(number) => vulkan::open(spec, number),
        _ => Err(refused(spec, "these kernels do not run there in this build")),
    }
}

/// Opens a device: none is in this build.
///
/// # Errors
/// Always.
#[cfg(not(feature = "vulkan"))]
pub fn open(spec: DeviceSpec) -> Result<std::convert::Infallible> {
    Err(refused(spec, "this build was made without the feature `vulkan`"))
}

#[cfg(feature = "vulkan")]
mod vulkan {
    use cubecl::Runtime as _;
    use cubecl::wgpu::{RuntimeOptions, WgpuRuntime, WgpuSetup, init_device};
    use training::DeviceSpec;

    use super::{Found, refused};
    use crate::error::Result;
    use crate::machine::{Machine, On};

    fn adapters() -> (wgpu::Instance, Vec<wgpu::Adapter>) {
        let backends = wgpu::Backends::VULKAN;
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = cubecl::future::block_on(instance.enumerate_adapters(backends));
        (instance, adapters)
    }

    pub(super) fn found() -> Vec<Found> {
        let (_instance, adapters) = adapters();
        let describe = |(number, adapter): (usize, &wgpu::Adapter)| {
            let info = adapter.get_info();
            let driver = format!("{} {}", info.driver, info.driver_info).trim().to_owned();
            let kind = match info.device_type {
                wgpu::DeviceType::DiscreteGpu => "discrete",
                wgpu::DeviceType::IntegratedGpu => "integrated",
                wgpu::DeviceType::VirtualGpu => "virtual",
                wgpu::DeviceType::Cpu => "software",
                wgpu::DeviceType::Other => "other",
            };
            let largest = adapter.limits().max_storage_buffer_binding_size;
            let fault = fault(adapter);
            Found { spec: DeviceSpec::Vulkan(number), name: info.name, driver, kind, largest, fault }
        };
        adapters.iter().enumerate().map(describe).collect()
    }

    /// What the kernels need and an adapter does not have.
    fn fault(adapter: &wgpu::Adapter) -> Option<String> {
        let limits = adapter.limits();
        let needed = [
            ("storage buffers in one kernel", limits.max_storage_buffers_per_shader_stage, 9),
            ("units in a cube", limits.max_compute_invocations_per_workgroup, 256),
            ("bytes of shared memory", limits.max_compute_workgroup_storage_size, 16 * 1024),
        ];
        let short = needed.iter().find(|(_, has, needs)| has < needs);
        short.map(|(what, has, needs)| format!("it has {has} {what}, and the kernels need {needs}"))
    }

    pub(super) fn open(spec: DeviceSpec, number: usize) -> Result<Box<dyn Machine>> {
        let (instance, mut adapters) = adapters();
        if adapters.is_empty() {
            return Err(refused(
                spec,
                "no Vulkan driver is installed (Debian: mesa-vulkan-drivers has one for the CPU too)",
            ));
        }
        if number >= adapters.len() {
            let names: Vec<String> =
                (0..).zip(&adapters).map(|(n, a)| format!("vulkan:{n} {}", a.get_info().name)).collect();
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
        let setup = WgpuSetup { instance, adapter, device, queue, backend: wgpu::Backend::Vulkan };
        let device = init_device(setup, RuntimeOptions::default());
        Ok(Box::new(On::<WgpuRuntime>::new(WgpuRuntime::client(&device), spec.to_string())?))
    }
}
