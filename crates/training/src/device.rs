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
    /// `rocm` or `rocm:N`: understood, and refused.
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
    /// Whether this build can try it; the message of the refusal says what can be tried.
    pub fn check_built(self) -> Result<()> {
        let feature = match self {
            Self::Cpu => return Ok(()),
            Self::Cuda(_) if cfg!(feature = "cuda") => return Ok(()),
            Self::Metal(_) if cfg!(feature = "metal") => return Ok(()),
            Self::Vulkan(_) if cfg!(feature = "vulkan") => return Ok(()),
            Self::Vulkan(_) => "this build was made without the feature `vulkan`",
            Self::Cuda(_) => "this build was made without the feature `cuda`",
            Self::Metal(_) => "this build was made without the feature `metal`",
            Self::Rocm(_) => "there is no `rocm` feature yet",
        };
        let built = [
            ("cpu", true),
            ("vulkan", cfg!(feature = "vulkan")),
            ("cuda", cfg!(feature = "cuda")),
            ("metal", cfg!(feature = "metal")),
        ];
        let available: Vec<&str> = built.iter().filter_map(|(name, built)| built.then_some(*name)).collect();
        let available = available.join(", ");
        Err(Refusal::Device(format!(
            "device `{self}` is not in this build: {feature}. Available here: {available}."
        )))
    }

    /// The device, or the driver's reason. There is no silent fallback to the CPU.
    #[cfg(feature = "candle")]
    pub fn open(self) -> Result<Device> {
        self.check_built()?;
        match self {
            Self::Cuda(n) => open_cuda(n),
            Self::Metal(n) => Ok(Device::new_metal(n)?),
            Self::Vulkan(_) => {
                let reason =
                    format!("device `{self}` trains the explicit engine; this model has the composed one");
                Err(Refusal::Device(reason))
            }
            Self::Cpu | Self::Rocm(_) => Ok(Device::Cpu),
        }
    }

    /// The device, with products of f32 in f32: a recurrent state repeats what is rounded.
    #[cfg(feature = "candle")]
    pub fn open_exact(self) -> Result<Device> {
        let device = self.open()?;
        #[cfg(feature = "cuda")]
        candle_core::cuda::set_gemm_reduced_precision_f32(false);
        Ok(device)
    }
}

/// Opens a CUDA device and lets f32 products use TF32.
#[cfg(feature = "cuda")]
fn open_cuda(n: usize) -> Result<Device> {
    let device = Device::new_cuda(n)?;
    candle_core::cuda::set_gemm_reduced_precision_f32(true);
    Ok(device)
}

#[cfg(all(feature = "candle", not(feature = "cuda")))]
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

    #[test]
    fn rocm_is_understood_and_refused() {
        let e = DeviceSpec::Rocm(0).check_built().unwrap_err().to_string();
        assert!(
            e.starts_with(
                "device `rocm:0` is not in this build: there is no `rocm` feature yet. Available here: cpu"
            ),
            "{e}"
        );
    }

    #[cfg(not(any(feature = "cuda", feature = "metal")))]
    #[test]
    fn absent_features_are_named() {
        let e = DeviceSpec::Cuda(0).check_built().unwrap_err().to_string();
        assert_eq!(
            e,
            "device `cuda:0` is not in this build: this build was made without the feature `cuda`. Available here: cpu."
        );
    }
}
