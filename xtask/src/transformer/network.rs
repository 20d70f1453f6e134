//! The network that a configuration names, and the files of its weights.

use std::path::Path;

use anyhow::{Context, Result, bail};
#[cfg(feature = "candle")]
use candle_core::DType;
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::lstm::Lstm;
#[cfg(feature = "candle")]
use symbolic_transformer::model::Composed;
use symbolic_transformer::network::Network;
use training::DeviceSpec;

use super::config::{Config, Model};
use crate::run_folder;

/// The network that a configuration names, on its device.
pub(crate) fn of(config: &Config) -> Result<Box<dyn Network>> {
    let device: DeviceSpec = config.device.parse()?;
    let shape = config.shape()?;
    if config.model == Model::Lstm {
        if device != DeviceSpec::Cpu {
            bail!("model = \"lstm\" runs on the cpu only");
        }
        return Ok(Box::new(Lstm::new(&shape)?));
    }
    match device {
        DeviceSpec::Cpu => Ok(Box::new(Explicit::new(shape)?)),
        #[cfg(feature = "candle")]
        _ => Ok(Box::new(Composed::new(shape, DType::F32, device.open()?)?)),
        #[cfg(not(feature = "candle"))]
        _ => {
            device.check_built()?;
            bail!("device {device} needs a build with --features candle")
        }
    }
}

/// The network and the weights of a checkpoint that is still there: their average where there is one.
pub(crate) fn load_checkpoint(
    folder: &Path,
    config: &Config,
    step: u64,
) -> Result<(Box<dyn Network>, Vec<f32>)> {
    let network = of(config)?;
    let last = folder.join("last");
    let there = training::checkpoint::list(&last)?;
    let Some((_, path)) = there.iter().find(|(s, _)| *s == step) else {
        let steps: Vec<String> = there.iter().map(|(s, _)| s.to_string()).collect();
        bail!("{}: no checkpoint of update {step}; there are: {}", last.display(), steps.join(", "));
    };
    let found = training::checkpoint::Checkpoint::load(path, network.layout())?;
    Ok((network, found.moments.ema.unwrap_or(found.theta)))
}

/// The network and the best weights of a run.
pub(crate) fn load(folder: &Path, config: &Config) -> Result<(Box<dyn Network>, Vec<f32>)> {
    if config.model == Model::Ngram {
        bail!("{}: an n-gram run has no weights", folder.display());
    }
    let network = of(config)?;
    let path = run_folder::weights(folder);
    let theta =
        training::checkpoint::load_weights(&path, network.layout()).context("the model of the run")?;
    Ok((network, theta))
}
