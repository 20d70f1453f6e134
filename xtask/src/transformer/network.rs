//! The network that a configuration names, and the files of its weights.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
#[cfg(feature = "candle")]
use candle_core::DType;
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::learner::Corpus;
use symbolic_transformer::lstm::Lstm;
#[cfg(feature = "candle")]
use symbolic_transformer::model::Composed;
use symbolic_transformer::moderator::Moderator;
use symbolic_transformer::network::Network;
use training::DeviceSpec;
use training::kernels::{Precision, multiplies_half};

#[cfg(feature = "device")]
use device_kernels::{Products, Sixteen};
use fol::notation::Code;

use super::config::{Config, Model};
use crate::{place, run_folder};

/// The network that a configuration names, over the tokens of a code, on its device.
pub(crate) fn of(config: &Config, code: &Code) -> Result<Box<dyn Network>> {
    let device: DeviceSpec = config.device.parse()?;
    let shape = config.shape(code.size())?;
    if config.model == Model::Lstm {
        if device != DeviceSpec::Cpu {
            bail!("model = \"lstm\" runs on the cpu only");
        }
        return Ok(Box::new(Lstm::new(&shape)?));
    }
    match device {
        DeviceSpec::Cpu => {
            let precision = if config.is_half() { Precision::Half } else { Precision::Single };
            let network = Explicit::in_code(shape, code)?.with_precision(precision);
            Ok(Box::new(if config.gradient_checkpointing {
                network.with_gradient_checkpointing()
            } else {
                network
            }))
        }
        #[cfg(feature = "device")]
        _ if device.has_kernels() => {
            use symbolic_transformer::on_device::OnDevice;
            let products = if config.is_half() { Products::OnCores(Sixteen::Bf16) } else { Products::Single };
            let device = of_rank(device, &config.device)?;
            let network = OnDevice::new(shape, code, device_kernels::open(device)?)?;
            Ok(Box::new(network.with_products(products).context("precision = \"bf16\"")?))
        }
        _ if config.is_half() && device.check_built().is_ok() => {
            bail!("precision = \"bf16\": what is composed of candle's operations has it not")
        }
        #[cfg(feature = "candle")]
        _ => Ok(Box::new(Composed::in_code(shape, code, DType::F32, device.open()?)?)),
        #[cfg(not(feature = "candle"))]
        _ => {
            device.check_built()?;
            bail!("device {device} needs a build with --features candle")
        }
    }
}

/// The device of a rank, where several were started and none is chosen by its number: each has its own of those that it sees.
/// Schedulers show a rank one device, or all.
#[cfg(feature = "device")]
pub(crate) fn of_rank(device: DeviceSpec, named: &str) -> Result<DeviceSpec> {
    let Some(number) = training_mpi::on_its_host().filter(|_| !named.contains(':')) else {
        return Ok(device);
    };
    let found = device_kernels::available();
    let alike = |f: &&device_kernels::Found| f.fault.is_none() && f.spec.feature() == device.feature();
    let count = found.iter().filter(alike).count();
    if count > 1 && number >= count {
        bail!(
            "--device {named}: this is process {number} of its host, counted from 0, which has {count} such devices; \
             start at most as many processes, or share one as --device {named}:0"
        );
    }
    Ok(if count > 1 { device.with_number(number) } else { device })
}

/// The network that judges or writes with the weights of a run. What was trained on a device that this build has not is
/// judged on the CPU, which has the same files, and it is said.
fn to_judge(config: &Config, code: &Code) -> Result<Box<dyn Network>> {
    let device: DeviceSpec = config.device.parse()?;
    if device.check_built().is_err() {
        crate::answer::say!("on the cpu: this build has no {device}, on which the run was trained");
        return of(&Config { device: "cpu".to_owned(), ..config.clone() }, code);
    }
    of(config, code)
}

/// The decoder of a run on its device, if that is one and this build has it.
#[cfg(feature = "device")]
pub(crate) fn on_device(
    config: &Config,
    code: &Code,
    theta: &[f32],
) -> Result<Option<symbolic_transformer::on_device::DecoderOnDevice>> {
    use symbolic_transformer::on_device::{DecoderOnDevice, OnDevice};

    let device: DeviceSpec = config.device.parse()?;
    if !device.has_kernels() {
        return Ok(None);
    }
    let model = OnDevice::new(config.shape(code.size())?, code, device_kernels::open(device)?)?;
    Ok(Some(DecoderOnDevice::new(model, theta)?))
}

/// The network that is trained: the one that a configuration names, or the program that says the same. A program is
/// compared with the code by hand, which judges the run later, before anything is trained.
#[cfg(feature = "programs")]
pub(crate) fn to_train(config: &Config, folder: Option<&Path>, sample: &Corpus) -> Result<Box<dyn Network>> {
    use crate::written::transformer::Written;
    use tensor_logic::fast::Precision;

    let Some(name) = &config.program else { return by_hand(config, sample) };
    let (place, text) = program(name, folder)?;
    let shape = config.shape(sample.code().size())?;
    let refused = || place.display().to_string();
    let mut written = Written::new(&text, shape.clone(), Precision::Single).with_context(refused)?;
    let mut by_hand = Explicit::new(symbolic_transformer::config::ModelConfig { dropout: 0.0, ..shape })?;
    // Weights on which every part of the network leaves its mark.
    let theta: Vec<f32> = by_hand.layout().initialise(config.seed).iter().map(|w| w + 0.02).collect();
    let batch = sample.batch(0..sample.len().min(3));
    let logits = |network: &mut dyn Network| anyhow::Ok(network.logits(&theta, &batch)?.to_vec());
    let (found, wanted) = (logits(&mut written).with_context(refused)?, logits(&mut by_hand)?);
    let scale = wanted.iter().fold(1.0_f32, |scale, x| scale.max(x.abs()));
    let apart = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    if found.len() != wanted.len() || apart.is_nan() || apart > 1e-3 * scale {
        bail!(
            "{}: its `Logit` is {apart} away from that of the network that judges it; it says another network",
            place.display()
        );
    }
    Ok(Box::new(written))
}

/// A build without the language trains what is written by hand.
#[cfg(not(feature = "programs"))]
pub(crate) fn to_train(config: &Config, _: Option<&Path>, sample: &Corpus) -> Result<Box<dyn Network>> {
    if config.program.is_some() {
        bail!("program: this build has no equation language; `cargo xtask train` makes one that has it");
    }
    by_hand(config, sample)
}

/// What is trained by hand. A processor without products of bf16 would be slower by them.
fn by_hand(config: &Config, sample: &Corpus) -> Result<Box<dyn Network>> {
    if config.is_half() && config.device == "cpu" && !multiplies_half() {
        bail!(
            "precision = \"bf16\": this processor does not multiply bf16 (AVX-512 BF16); f32 is faster here"
        );
    }
    of(config, sample.code())
}

/// The program of a configuration: the copy that a run keeps, a path as it is given, or one of the programs of the
/// language.
pub(crate) fn program(name: &str, folder: Option<&Path>) -> Result<(PathBuf, String)> {
    let kept = folder.map(|folder| folder.join(PROGRAM)).filter(|kept| kept.is_file());
    let given = [Path::new(name).to_owned(), place::programs().join(name)];
    let found = kept.or_else(|| given.iter().find(|path| path.is_file()).cloned());
    let found = found.with_context(|| {
        format!("program = \"{name}\": there is neither {} nor {}", given[0].display(), given[1].display())
    })?;
    let text = std::fs::read_to_string(&found).with_context(|| found.display().to_string())?;
    Ok((found, text))
}

/// The copy of its program in the folder of a run.
pub(crate) const PROGRAM: &str = "program.tl";

/// The file of the checkpoint of an update.
pub(crate) fn checkpoint(folder: &Path, step: u64) -> Result<PathBuf> {
    let last = folder.join("last");
    let there = training::checkpoint::list(&last)?;
    let steps: Vec<String> = there.iter().map(|(s, _)| s.to_string()).collect();
    let found = there.into_iter().find(|(s, _)| *s == step);
    found.map(|(_, path)| path).ok_or_else(|| {
        anyhow!("{}: no checkpoint of update {step}; there are: {}", last.display(), steps.join(", "))
    })
}

/// The network and the weights of a checkpoint that is still there: their average where there is one.
pub(crate) fn load_checkpoint(
    folder: &Path,
    config: &Config,
    code: &Code,
    step: u64,
) -> Result<(Box<dyn Network>, Vec<f32>)> {
    let network = to_judge(config, code)?;
    let found = training::checkpoint::Checkpoint::load(&checkpoint(folder, step)?, network.layout())?;
    let theta = found.moments.ema.unwrap_or(found.theta);
    // A checkpoint has what is trained; what is judged has the gains in it.
    if let (Some(settings), Some(memory)) = (config.moderator(), &found.state.learner) {
        let mut moderator = Moderator::new(settings, &config.shape(code.size())?)?;
        moderator.recall(memory)?;
        return Ok((network, moderator.folded(&theta).unwrap_or(theta)));
    }
    Ok((network, theta))
}

/// The network and the best weights of a run.
pub(crate) fn load(folder: &Path, config: &Config, code: &Code) -> Result<(Box<dyn Network>, Vec<f32>)> {
    if !config.model.has_weights() {
        bail!("{}: a run of model = \"{}\" has no weights", folder.display(), config.model.name());
    }
    let network = to_judge(config, code)?;
    let path = run_folder::weights(folder);
    let theta =
        training::checkpoint::load_weights(&path, network.layout()).context("the model of the run")?;
    Ok((network, theta))
}
