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
            Found { spec: DeviceSpec::Vulkan(number), name: info.name, driver, fault: None }
        };
        adapters.iter().enumerate().map(describe).collect()
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
