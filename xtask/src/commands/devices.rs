//! `cargo xtask devices`: what a model can be trained on here, and why not on the rest. `cargo xtask device-check`: every
//! kernel of a device beside the CPU's, and steps of a model on both.

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use training::DeviceSpec;

use crate::answer::give;

/// Options of `devices`.
#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

/// A device in the list.
struct Entry {
    device: String,
    name: String,
    driver: String,
    memory: Option<u64>,
    /// Why not, if not.
    fault: Option<String>,
}

/// The list: the CPU first, then whatever was found, then what this build has not.
fn entries() -> Vec<Entry> {
    let cpu = Entry {
        device: "cpu".to_owned(),
        name: format!("{} instructions", training::kernels::instruction_set()),
        driver: String::new(),
        memory: memory(),
        fault: None,
    };
    let mut entries = vec![cpu];
    #[cfg(feature = "device")]
    entries.extend(device_kernels::available().into_iter().map(|found| Entry {
        device: found.spec.to_string(),
        name: found.name,
        driver: found.driver,
        memory: Some(found.memory),
        fault: found.fault,
    }));
    for spec in [DeviceSpec::Vulkan(0), DeviceSpec::Cuda(0), DeviceSpec::Rocm(0), DeviceSpec::Metal(0)] {
        if let (Some(feature), false) = (spec.feature(), spec.has_kernels()) {
            let fault = format!("this build was made without the feature `{feature}`");
            entries.push(missing(feature, fault));
        }
    }
    entries
}

fn missing(name: &str, fault: String) -> Entry {
    let (device, name) = (name.to_owned(), String::new());
    Entry { device, name, driver: String::new(), memory: None, fault: Some(fault) }
}

/// Bytes of memory of this machine, where the system tells.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    kilobytes.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// `cargo xtask devices`; returns the exit status.
pub(crate) fn run(args: &DevicesArgs) -> Result<u8> {
    let entries = entries();
    let devices: Vec<Value> = entries
        .iter()
        .map(|e| {
            json!({
                "device": e.device, "name": e.name, "driver": e.driver, "bytes": e.memory,
                "usable": e.fault.is_none(), "fault": e.fault,
            })
        })
        .collect();
    let document = json!({ "schema": "xtask/1", "command": "devices", "devices": devices });
    give(args.json, &document, || entries.iter().map(line).collect())?;
    Ok(0)
}

fn line(entry: &Entry) -> String {
    let memory = entry.memory.map_or_else(String::new, |b| format!(", {:.1} GB", b as f64 / 1e9));
    let driver = if entry.driver.is_empty() { String::new() } else { format!(", {}", entry.driver) };
    match &entry.fault {
        None => format!("{:<10} {}{driver}{memory}\n", entry.device, entry.name),
        Some(fault) => format!("{:<10} not usable: {fault}\n", entry.device),
    }
}

#[cfg(feature = "device")]
pub(crate) use check::run as check;

/// Options of `device-check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The device, as `cargo xtask devices` lists it.
    #[arg(long, default_value = "vulkan")]
    device: String,
    /// A model of tiny's sizes alone: for a device that is a program.
    #[arg(long)]
    small: bool,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

/// In a build without devices: hands over to one that has them.
#[cfg(not(feature = "device"))]
pub(crate) fn check(args: &CheckArgs) -> Result<u8> {
    let device: DeviceSpec =
        args.device.parse().map_err(|e: training::Refusal| crate::answer::usage(e.to_string()))?;
    let Some(feature) = device.feature() else {
        return Err(crate::answer::usage("--device: the CPU is what a device is compared with"));
    };
    if !crate::place::has_sources() {
        device.check_built().map_err(|e| crate::answer::usage(e.to_string()))?;
    }
    crate::elsewhere::hand_over(feature)
}

#[cfg(feature = "device")]
mod check {
    use std::fmt::Write as _;
    use std::time::Instant;

    use anyhow::Result;
    use device_kernels::check::Checked;
    use device_kernels::{Products, Sixteen};
    use fol::notation::Code;
    use serde_json::json;
    use symbolic_transformer::batch::Batch;
    use symbolic_transformer::config::ModelConfig;
    use symbolic_transformer::explicit::Explicit;
    use symbolic_transformer::network::{Network, Noise};
    use symbolic_transformer::on_device::OnDevice;
    use training::optimiser::{AdamW, Moments, Update, clip_factor, global_norm};
    use training::{DeviceSpec, Resident as _};

    use super::CheckArgs;
    use crate::answer::{give, usage};
    use crate::run_folder;

    /// The gradient of a model on both, and an update as training makes it: forward, backward, norm, AdamW.
    struct Step {
        model: &'static str,
        products: Products,
        rows: usize,
        /// The largest distance of a parameter's gradient, over its length.
        apart: f64,
        parameter: String,
        seconds: f64,
        cpu: f64,
    }

    /// What is allowed of a whole step: its sums are longer than those of one operation.
    const ALLOWED: f64 = 1e-4;

    /// And where numbers are rounded to sixteen bits on the way: one on the edge of two may fall to either side, and in each
    /// layer more of them do (5·10⁻³ on an H200). Each product by itself is held to 10⁻⁵.
    const ALLOWED_ROUNDED: f64 = 1e-2;

    impl Step {
        fn right(&self) -> bool {
            let rounded = self.products != Products::Single;
            self.apart <= if rounded { ALLOWED_ROUNDED } else { ALLOWED }
        }
    }

    /// An update of a model of so many sequences of a length. What tensor cores make is compared with the same products of
    /// rounded numbers without them, and all else with the CPU.
    fn step(
        model: &'static str,
        device: DeviceSpec,
        (sequences, length): (usize, usize),
        products: Products,
    ) -> Result<Step> {
        let config = ModelConfig::size(model).unwrap_or_else(|| unreachable!("a size that is named here"));
        let on_device = |products: Products| {
            let network = OnDevice::new(config.clone(), &Code::PLAIN, device_kernels::open(device)?)?;
            Ok::<_, anyhow::Error>(network.with_products(products)?)
        };
        let mut there = on_device(products)?;
        let mut here = Explicit::new(config.clone())?;
        let theta = here.layout().initialise(0);
        let token = |i: usize, t: usize| ((i * 131 + t * 71) % 663) as u16;
        let texts: Vec<Vec<u16>> =
            (0..sequences).map(|i| (0..=length).map(|t| token(i, t)).collect()).collect();
        let batch = Batch::new(texts.iter().map(Vec::as_slice));
        let noise = Noise { seed: 0, update: 1, smoothing: 0.0 };
        let gradient = |network: &mut dyn Network| -> Result<Vec<f32>> {
            let mut gradient = vec![0.0; theta.len()];
            network.gradient(&theta, &batch, noise, &mut gradient)?;
            Ok(gradient)
        };
        let found = gradient(&mut there)?;
        let right = match products {
            Products::OnCores(of) => gradient(&mut on_device(Products::Rounded(of))?)?,
            Products::Single | Products::Rounded(_) => gradient(&mut here)?,
        };
        let seconds = updates(9, |number| {
            let noise = Noise { update: number, ..noise };
            if number == 1 {
                there.load(&theta, &Moments::new(&theta, 0.0))?;
            }
            let loss = Network::gradient(&mut there, &[], &batch, noise, &mut [])?;
            let (_, norm) = there.measure()?;
            let factor = clip_factor(norm / loss.targets as f64, 1.0) / loss.targets as f64;
            Ok(there.update(here.layout(), &ADAMW.into(), Update { number, lr: 1e-4, factor })?)
        })?;
        let (mut weights, mut moments) = (theta.clone(), Moments::new(&theta, 0.0));
        let mut room = vec![0.0; theta.len()];
        let cpu = updates(3, |number| {
            let loss = here.gradient(&weights, &batch, Noise { update: number, ..noise }, &mut room)?;
            let norm = global_norm(here.layout(), &room) / loss.targets as f64;
            let factor = clip_factor(norm, 1.0) / loss.targets as f64;
            let update = Update { number, lr: 1e-4, factor };
            ADAMW.update(here.layout(), &mut weights, &mut moments, &mut room, update);
            Ok(())
        })?;
        let distance = |a: &[f32], b: &[f32]| {
            let length = b.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            let far =
                a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>().sqrt();
            if far.is_finite() { far / length.max(1e-12) } else { f64::INFINITY }
        };
        // What is rounded may fall to either side, and a parameter of a small gradient is far off then: all of them together.
        let (mut apart, mut parameter) = (distance(&found, &right), "all together".to_owned());
        let each =
            here.layout().iter().filter(|p| products == Products::Single && !p.name.ends_with("key.bias"));
        for p in each {
            let of = |g: &[f32]| g.get(p.range.clone()).unwrap_or_default().to_vec();
            let far = distance(&of(&found), &of(&right));
            if far > apart {
                (apart, parameter) = (far, p.name.clone());
            }
        }
        Ok(Step { model, products, rows: batch.rows(), apart, parameter, seconds, cpu })
    }

    fn precision(products: Products) -> &'static str {
        match products {
            Products::Single => "f32",
            Products::OnCores(of) | Products::Rounded(of) => of.name(),
        }
    }

    const ADAMW: AdamW = AdamW { beta1: 0.9, beta2: 0.98, eps: 1e-9, weight_decay: 0.01, ema: 0.0 };

    /// Seconds of one update, as training makes it: the median of so many, after a first one. Where one takes a CPU seconds, a few
    /// are enough: a card waits for them.
    fn updates(count: u64, mut update: impl FnMut(u64) -> Result<()>) -> Result<f64> {
        update(1)?;
        let mut times = Vec::new();
        for number in 2..count + 2 {
            let clock = Instant::now();
            update(number)?;
            times.push(clock.elapsed().as_secs_f64());
        }
        times.sort_by(f64::total_cmp);
        Ok(times.get(times.len() / 2).copied().unwrap_or(f64::NAN))
    }

    fn row(c: &Checked) -> String {
        let speed = if c.operations > 0.0 {
            format!("{:.1} GFLOP/s", c.operations / c.seconds / 1e9)
        } else {
            String::new()
        };
        let verdict = if c.right() { "right" } else { "WRONG" };
        format!(
            "{verdict} {:<45} {:<44} {:.1e}  {:>9.3} ms  {speed}\n",
            c.operation,
            c.shape,
            c.apart,
            c.seconds * 1e3
        )
    }

    /// `cargo xtask device-check`; returns the exit status: 1 if something is wrong.
    pub(crate) fn run(args: &CheckArgs) -> Result<u8> {
        let device: DeviceSpec = args.device.parse().map_err(|e: training::Refusal| usage(e.to_string()))?;
        if device.feature().is_some() && !device.has_kernels() && crate::place::has_sources() {
            return crate::elsewhere::hand_over(device.feature().unwrap_or_default());
        }
        let machine = device_kernels::open(device)?;
        let (rows, d) = if args.small { (512, 128) } else { (4096, 512) };
        let checked = device_kernels::check::operations(&*machine, rows, d)?;
        let mut steps = vec![step("tiny", device, (64, 32), Products::Single)?];
        if !args.small {
            // What a batch of formulas is, and longer ones.
            let cores = Products::OnCores(Sixteen::Bf16);
            let all = [Products::Single, cores].into_iter().filter(|&products| machine.has(products).is_ok());
            for (products, shape) in all.flat_map(|products| [(products, (32, 17)), (products, (32, 128))]) {
                steps.push(step("base", device, shape, products)?);
            }
        }
        let wrong = checked.iter().any(|c| !c.right()) || steps.iter().any(|s| !s.right());
        let found = device_kernels::available().into_iter().find(|found| found.spec == device);
        let name = found.map_or_else(String::new, |f| format!("{}, {}", f.name, f.driver));
        let document = json!({
            "schema": "xtask/1", "command": "device-check", "device": device.to_string(), "name": name,
            "commit": run_folder::commit(), "machine": run_folder::machine(), "right": !wrong,
            "operations": checked.iter().map(|c| json!({
                "operation": c.operation, "shape": c.shape, "apart": c.apart, "allowed": c.allowed,
                "seconds": c.seconds, "flop": c.operations,
            })).collect::<Vec<_>>(),
            "steps": steps.iter().map(|s| json!({
                "model": s.model, "precision": precision(s.products), "rows": s.rows, "apart": s.apart, "parameter": s.parameter,
                "seconds": s.seconds, "seconds_cpu": s.cpu,
            })).collect::<Vec<_>>(),
        });
        give(args.json, &document, || {
            let mut text =
                format!("{device}: {name}\ncommit {}, {}\n", run_folder::commit(), run_folder::machine());
            text.extend(checked.iter().map(row));
            for s in &steps {
                let verdict = if s.right() { "right" } else { "WRONG" };
                let _ = writeln!(
                    text,
                    "{verdict} an update of {:<14} {:<44} {:.1e}  {:>9.3} ms  (cpu {:.3} ms); worst: {}",
                    s.model,
                    format!("{} rows, {}", s.rows, precision(s.products)),
                    s.apart,
                    s.seconds * 1e3,
                    s.cpu * 1e3,
                    s.parameter
                );
            }
            text
        })?;
        Ok(u8::from(wrong))
    }
}
