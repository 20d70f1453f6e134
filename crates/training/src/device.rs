//! Where a model runs: the one place that names candle's devices.

#[cfg(feature = "candle")]
use candle_core::Device;

use crate::error::{Refusal, Result};

/// A device as the user names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceSpec {
    /// `cpu`
    Cpu,
    /// `cuda` or `cuda:N`
    Cuda(usize),
    /// `metal` or `metal:N`
    Metal(usize),
    /// `rocm` or `rocm:N`
    Rocm(usize),
    /// `vulkan` or `vulkan:N`
    Vulkan(usize),
}

impl std::str::FromStr for DeviceSpec {
    type Err = Refusal;

    fn from_str(s: &str) -> Result<Self> {
        let (name, number) = match s.split_once(':') {
            Some((name, n)) => (name, n.parse().map_err(|_| unknown(s))?),
            None => (s, 0),
        };
        match name {
            "cpu" if !s.contains(':') => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(number)),
            "metal" => Ok(Self::Metal(number)),
            "rocm" => Ok(Self::Rocm(number)),
            "vulkan" => Ok(Self::Vulkan(number)),
            _ => Err(unknown(s)),
        }
    }
}

fn unknown(s: &str) -> Refusal {
    Refusal::Device(format!(
        "device `{s}` is not known; say cpu, vulkan, cuda, rocm or metal, the last four with :N for one of several"
    ))
}

impl std::fmt::Display for DeviceSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(n) => write!(f, "cuda:{n}"),
            Self::Metal(n) => write!(f, "metal:{n}"),
            Self::Rocm(n) => write!(f, "rocm:{n}"),
            Self::Vulkan(n) => write!(f, "vulkan:{n}"),
        }
    }
}

impl DeviceSpec {
    /// Another one of its kind.
    #[must_use]
    pub fn with_number(self, number: usize) -> Self {
        match self {
            Self::Cpu => Self::Cpu,
            Self::Cuda(_) => Self::Cuda(number),
            Self::Metal(_) => Self::Metal(number),
            Self::Rocm(_) => Self::Rocm(number),
            Self::Vulkan(_) => Self::Vulkan(number),
        }
    }

    /// The feature whose kernels train the explicit engine on it, and whether this build has them.
    fn kernels(self) -> Option<(&'static str, bool)> {
        match self {
            Self::Cpu => None,
            Self::Vulkan(_) => Some(("vulkan", cfg!(feature = "vulkan"))),
            Self::Cuda(_) => Some(("cuda", cfg!(feature = "cuda"))),
            Self::Metal(_) => Some(("metal", cfg!(feature = "metal"))),
            Self::Rocm(_) => Some(("rocm", cfg!(feature = "rocm"))),
        }
    }

    /// Whether this build has the kernels that train the explicit engine on it.
    pub fn has_kernels(self) -> bool {
        self.kernels().is_some_and(|(_, built)| built)
    }

    /// The feature of the kernels that train the explicit engine on it; none for the CPU.
    pub fn feature(self) -> Option<&'static str> {
        self.kernels().map(|(feature, _)| feature)
    }

    /// Whether candle can open it in this build, for the composed engine.
    fn in_candle(self) -> bool {
        match self {
            Self::Cpu => true,
            Self::Cuda(_) => cfg!(feature = "candle-cuda"),
            Self::Metal(_) => cfg!(feature = "candle-metal"),
            Self::Rocm(_) | Self::Vulkan(_) => false,
        }
    }

    /// Whether this build can try it; the message of the refusal says what can be tried.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_built(self) -> Result<()> {
        let Some((feature, _)) = self.kernels() else { return Ok(()) };
        if self.has_kernels() || self.in_candle() {
            return Ok(());
        }
        let all = [Self::Cpu, Self::Vulkan(0), Self::Cuda(0), Self::Rocm(0), Self::Metal(0)];
        let built = all.into_iter().filter(|d| d.kernels().is_none() || d.has_kernels() || d.in_candle());
        let names: Vec<&str> = built.map(|d| d.feature().unwrap_or("cpu")).collect();
        let available = names.join(", ");
        Err(Refusal::Device(format!(
            "device `{self}` is not in this build: this build was made without the feature `{feature}`. Available here: {available}."
        )))
    }

    /// Whether this build can run what is composed of candle's operations on it: that a build has the kernels of the explicit
    /// engine there is not enough.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_composed(self) -> Result<()> {
        self.check_built()?;
        if self.in_candle() { Ok(()) } else { Err(self.not_composed()) }
    }

    fn not_composed(self) -> Refusal {
        Refusal::Device(format!(
            "device `{self}`: this build has the explicit engine of the transformer there, and nothing else; \
             `candle-cuda` and `candle-metal` are the features of the composed engines"
        ))
    }

    /// The device, or the driver's reason. There is no silent fallback to the CPU.
    #[cfg(feature = "candle")]
    pub fn open(self) -> Result<Device> {
        self.check_composed()?;
        match self {
            Self::Cpu => Ok(Device::Cpu),
            Self::Cuda(n) => open_cuda(n),
            Self::Metal(n) => Ok(Device::new_metal(n)?),
            Self::Rocm(_) | Self::Vulkan(_) => Err(self.not_composed()),
        }
    }

    /// The device, with products of f32 in f32: a recurrent state repeats what is rounded.
    #[cfg(feature = "candle")]
    pub fn open_exact(self) -> Result<Device> {
        let device = self.open()?;
        #[cfg(feature = "candle-cuda")]
        candle_core::cuda::set_gemm_reduced_precision_f32(false);
        Ok(device)
    }
}

/// Opens a CUDA device and lets f32 products use TF32.
#[cfg(feature = "candle-cuda")]
fn open_cuda(n: usize) -> Result<Device> {
    let device = Device::new_cuda(n)?;
    candle_core::cuda::set_gemm_reduced_precision_f32(true);
    Ok(device)
}

#[cfg(all(feature = "candle", not(feature = "candle-cuda")))]
fn open_cuda(n: usize) -> Result<Device> {
    Ok(Device::new_cuda(n)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!("cuda:1".parse::<DeviceSpec>().unwrap(), DeviceSpec::Cuda(1));
        assert_eq!("cuda".parse::<DeviceSpec>().unwrap(), DeviceSpec::Cuda(0));
        assert_eq!("cpu".parse::<DeviceSpec>().unwrap(), DeviceSpec::Cpu);
        for bad in ["", "gpu", "cuda:", "cuda:x", "cpu:0", "tpu:1", "cuda:-1"] {
            assert!(bad.parse::<DeviceSpec>().is_err(), "{bad}");
        }
    }

    /// A build of the tests has no device unless somebody asks for one.
    #[test]
    fn absent_features_are_named() {
        for (spec, feature) in [
            (DeviceSpec::Cuda(0), "cuda"),
            (DeviceSpec::Rocm(1), "rocm"),
            (DeviceSpec::Vulkan(0), "vulkan"),
            (DeviceSpec::Metal(2), "metal"),
        ] {
            assert_eq!(spec.feature(), Some(feature));
            // Kernels alone compose nothing, and never is it the CPU instead.
            assert_eq!(spec.check_composed().is_ok(), spec.in_candle());
            #[cfg(feature = "candle")]
            assert!(spec.in_candle() || spec.open().is_err());
            let Err(refusal) = spec.check_built() else { continue };
            let right = format!(
                "device `{spec}` is not in this build: this build was made without the feature `{feature}`. Available here: cpu"
            );
            assert!(refusal.to_string().starts_with(&right), "{refusal}");
        }
    }
}
