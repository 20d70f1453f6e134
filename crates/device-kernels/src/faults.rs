//! What a driver says when nobody asked it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
#[cfg(any(feature = "vulkan", feature = "metal"))]
use std::time::{Duration, Instant};

/// The lines of a driver's message that say something, in one.
pub(crate) fn short(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let useful = lines.filter(|line| !line.starts_with("Caused by") && !line.contains("acktrace"));
    useful.take(12).collect::<Vec<_>>().join(" / ")
}

/// So long after another fault a loss may still be told: not before what was handed over earlier has ended.
#[cfg(any(feature = "vulkan", feature = "metal"))]
const SOON: Duration = Duration::from_secs(2);

/// The first fault of a device, mostly one that its driver told of by itself, for whoever reads from it next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    told: Arc<Mutex<Told>>,
    #[cfg(any(feature = "vulkan", feature = "metal"))]
    device: Option<wgpu::Device>,
}

#[derive(Debug, Default)]
struct Told {
    /// Before all else: what follows from it is often told first.
    #[cfg(any(feature = "vulkan", feature = "metal"))]
    lost: Option<String>,
    other: Option<String>,
}

impl Faults {
    /// Whether anything was told.
    pub(crate) fn any(&self) -> bool {
        self.told().other.is_some()
    }

    /// Tells of a fault that was seen here.
    pub(crate) fn tell(&self, fault: String) {
        self.told().other.get_or_insert(fault);
    }

    /// Why the device failed, if it is known here. wgpu tells that a device is lost when it is asked, so it is asked.
    pub(crate) fn why(&self) -> Option<String> {
        #[cfg(any(feature = "vulkan", feature = "metal"))]
        {
            let until = Instant::now() + SOON;
            while let Some(device) = &self.device {
                // Whether it could be asked is not the question here.
                let _ = device.poll(wgpu::PollType::Poll);
                if let Some(lost) = self.told().lost.clone() {
                    return Some(lost);
                }
                if Instant::now() >= until {
                    break;
                }
                std::thread::sleep(SOON / 100);
            }
        }
        self.told().other.clone()
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// wgpu tells of the faults of a device here; without this it panics, on a thread of its own.
    #[cfg(any(feature = "vulkan", feature = "metal"))]
    pub(crate) fn of(device: &wgpu::Device) -> Self {
        let faults = Self { told: Arc::default(), device: Some(device.clone()) };
        let told = faults.told.clone();
        let tell =
            move |what: &dyn Fn(&mut Told)| what(&mut told.lock().unwrap_or_else(PoisonError::into_inner));
        let tells = tell.clone();
        device.set_device_lost_callback(move |reason, text| {
            let destroyed = matches!(reason, wgpu::DeviceLostReason::Destroyed);
            let why = if destroyed { "it was destroyed" } else { "its driver gave it up" };
            let lost = format!("the device is lost, {why}: {}", short(&text));
            tells(&|told| {
                told.lost.get_or_insert_with(|| lost.clone());
                told.other.get_or_insert_with(|| lost.clone());
            });
        });
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let error = short(&error.to_string());
            tell(&|told| {
                told.other.get_or_insert_with(|| error.clone());
            });
        }));
        faults
    }
}
