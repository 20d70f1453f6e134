//! `cargo xtask train --dry-run`: what a run would be, and one step of it in memory. Nothing is written.

use anyhow::{Result, bail};
use fol::notation::Code;
use serde_json::{Value, json};
use symbolic_transformer::batch::Batch;
use symbolic_transformer::learner::Corpus;
use symbolic_transformer::network::{Network, Noise};
use symbolic_transformer::order::{BatchUnit, Order};

use super::config::Config;
use super::{code, network};
use crate::draw::numbers::{count, duration};
use crate::run_folder::peak_bytes;
use crate::texts::Texts;
use crate::{data, inference};

/// What a run would be.
pub(crate) fn forecast(config: &Config) -> Result<Value> {
    let of_texts = data::is_texts(&config.data);
    let written = if of_texts { Some(Texts::open(&config.data)?) } else { None };
    let is_tasks = !of_texts && data::is_inference(&config.data);
    let present = if is_tasks || of_texts { None } else { data::open_if_present(&config.data)? };
    let tasks = if is_tasks { inference::open_if_present(&config.data)? } else { None };
    let mut document = json!({
        "schema": "xtask/1", "command": "train", "params": null, "targets_per_epoch": null,
        "updates_per_epoch": null, "total_updates": null, "warmup_steps": null, "lr_probe": null, "config": toml::Table::try_from(config)?,
        "data_present": present.is_some() || tasks.is_some() || of_texts,
    });
    let Value::Object(fields) = &mut document else { bail!("no document") };
    if !config.model.has_weights() {
        fields.insert("params".to_owned(), json!(0));
    } else {
        // Without the data set as many texts of its law, drawn in memory.
        let few = if config.batch_unit == BatchUnit::Formulas { config.batch as u64 } else { 64 };
        let corpus = match (&present, &tasks, &written) {
            (Some(data), ..) => data.train()?.first(config.train_limit),
            (_, Some(tasks), _) => tasks.corpus("train", config.train_limit)?,
            (.., Some(texts)) => texts.train().clone().first(config.train_limit),
            _ if is_tasks => inference::in_memory(&config.data, few)?,
            _ => data::in_memory(&config.data, few)?,
        };
        let code = if config.is_plain() {
            Code::PLAIN
        } else {
            let law = match &present {
                Some(data) => data.law.clone(),
                None => data::law_of_run(&config.data)?,
            };
            code::to_train(config, None, &law, || Ok(corpus.clone()))?
        };
        let corpus = corpus.in_code(&code, "train")?;
        let mut network = network::to_train(config, None, &corpus)?;
        fields.insert("params".to_owned(), json!(network.layout().len()));
        fields.insert("parameters".to_owned(), parameters(network.as_ref()));
        let mut order =
            Order::new(corpus.lengths(), config.batching, config.batch_unit, config.batch, config.seed);
        let batch = corpus.batch(order.batch(0, 0).iter().map(|&i| i as usize));
        let step = one_step(network.as_mut(), config, &batch, code.size())?;
        if tasks.is_some() || of_texts {
            schedule(config, &corpus, &order, &step, fields)?;
        } else if let Some(data) = &present {
            let optimum = data.optimum().map(|nats| code::optimum(nats, &corpus));
            fields.insert("optimum_nats_per_token".to_owned(), json!(optimum));
            schedule(config, &corpus, &order, &step, fields)?;
        } else if config.max_steps > 0 {
            // How many updates is known without the data set, and how long they take by the batch at hand.
            let total = |key: &str| Some(step.get(key)?.as_f64()? * config.max_steps as f64);
            fields.insert("seconds_estimated".to_owned(), json!(total("seconds")));
            fields.insert("flop_estimated".to_owned(), json!(total("flop")));
        }
        fields.insert("step".to_owned(), step);
        fields.insert("peak_bytes".to_owned(), json!(peak_bytes()));
    }
    Ok(document)
}

/// Updates, rates and the whole time.
fn schedule(
    config: &Config,
    corpus: &Corpus,
    order: &Order,
    step: &Value,
    fields: &mut serde_json::Map<String, Value>,
) -> Result<()> {
    let per_epoch = order.batches() as u64;
    let total = config.total_updates(per_epoch);
    let schedule = config.schedule(total)?;
    // The places that a reader checks: 0, w/2, w, (w+T)/2, T.
    let (w, t) = (schedule.warmup, total);
    let probe = [0, w / 2, w, w.midpoint(t), t].map(|u| (u, schedule.rate(u)));
    let number = |key: &str| step.get(key).and_then(Value::as_f64);
    let targets = total as f64 / per_epoch as f64 * corpus.targets() as f64;
    for (key, value) in [
        ("targets_per_epoch", json!(corpus.targets())),
        ("updates_per_epoch", json!(per_epoch)),
        ("total_updates", json!(total)),
        ("warmup_steps", json!(w)),
        ("lr_probe", json!(probe)),
        ("seconds_estimated", json!(number("seconds_per_target").map(|s| s * targets))),
        ("flop_estimated", json!(number("flop_per_token").map(|f| f * targets))),
    ] {
        fields.insert(key.to_owned(), value);
    }
    Ok(())
}

/// Parameters by module, and with and without decay.
fn parameters(network: &dyn Network) -> Value {
    let mut modules: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    let mut decayed = 0;
    for p in network.layout().iter() {
        let module: Vec<&str> =
            p.name.split('.').take(if p.name.starts_with("layers.") { 2 } else { 1 }).collect();
        *modules.entry(module.join(".")).or_default() += p.range.len();
        if p.decay == training::Decay::Yes {
            decayed += p.range.len();
        }
    }
    let all = network.layout().len();
    // Weights, gradient and two moments.
    json!({"all": all, "with_decay": decayed, "without_decay": all - decayed, "modules": modules, "state_bytes": 16 * all})
}

/// Forward and backward through the first batch of the run, without an update.
fn one_step(network: &mut dyn Network, config: &Config, batch: &Batch, size: usize) -> Result<Value> {
    let theta = network.layout().initialise(config.seed);
    let mut gradient = vec![0.0; theta.len()];
    let noise = Noise { seed: config.seed, update: 1, smoothing: 0.0 };
    let clock = std::time::Instant::now();
    let loss = network.gradient(&theta, batch, noise, &mut gradient)?;
    let mut seconds = clock.elapsed().as_secs_f64();
    // The first step of a small model is mostly memory that it asks for.
    let mut again = 0;
    while again < 3 && clock.elapsed().as_secs_f64() < 0.5 {
        let clock = std::time::Instant::now();
        network.gradient(&theta, batch, noise, &mut gradient)?;
        seconds = seconds.min(clock.elapsed().as_secs_f64());
        again += 1;
    }
    let targets = loss.targets.max(1) as f64;
    let flop = 6 * theta.len();
    Ok(json!({
        "formulas": batch.sequences(), "targets": loss.targets, "loss": loss.sum / targets,
        "ln_vocabulary": (size as f64).ln(), "flop_per_token": flop,
        "activation_bytes": network.activation_bytes(), "flop": flop as f64 * targets, "padding": 0.0, "seconds": seconds, "seconds_per_target": seconds / targets,
        "items": loss.targets, "unit": "targets",
    }))
}

/// The same for people.
pub(crate) fn in_words(config: &Config, document: &Value) -> String {
    let at = |path: &str| document.pointer(path).and_then(Value::as_f64);
    let whole = |path: &str| count(document.pointer(path).and_then(Value::as_u64));
    let mega = |path: &str| at(path).map_or_else(|| "–".to_owned(), |b| format!("{:.1} MB", b / 1e6));
    let flop = |path: &str| at(path).map_or_else(|| "–".to_owned(), |f| format!("{:.3} TFLOP", f / 1e12));
    let mut text = String::new();
    let mut line = |what: &str, value: String| text.push_str(&format!("{what:18} {value}\n"));
    line("parameters", format!("{}, of which {} decay", whole("/params"), whole("/parameters/with_decay")));
    line(
        "memory",
        format!(
            "{} of weights, gradient and moments, {} of activations{}; the process had {} at its peak, the data included",
            mega("/parameters/state_bytes"),
            mega("/step/activation_bytes"),
            if config.gradient_checkpointing { " with gradient checkpointing" } else { "" },
            mega("/peak_bytes")
        ),
    );
    line(
        "one update",
        format!(
            "{} formulas, {} targets, {}, {:.3} s",
            whole("/step/formulas"),
            whole("/step/targets"),
            flop("/step/flop"),
            at("/step/seconds").unwrap_or(f64::NAN)
        ),
    );
    line(
        "loss at first",
        format!(
            "{:.3}; ln of the vocabulary {:.3}{}",
            at("/step/loss").unwrap_or(f64::NAN),
            at("/step/ln_vocabulary").unwrap_or(f64::NAN),
            at("/optimum_nats_per_token").map_or_else(String::new, |o| format!(", optimum {o:.4}"))
        ),
    );
    if document.get("data_present") == Some(&Value::Bool(true)) {
        line(
            "the run",
            format!(
                "{} updates, {} an epoch, warm-up {}; {}, about {}",
                whole("/total_updates"),
                whole("/updates_per_epoch"),
                whole("/warmup_steps"),
                flop("/flop_estimated"),
                duration(at("/seconds_estimated"))
            ),
        );
    } else {
        line("data", format!("{} is not there; `train` would generate it", config.data));
    }
    text
}
