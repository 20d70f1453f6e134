//! The moderator: sensors of how much goes through the layers, and a gain g that multiplies what each branch adds.
//!
//! ```text
//! h = x + g · attention(x),   h = x + g · feed-forward(x)
//! ```
//! A branch ends in a linear map, so g is a factor of that map: the model stays what it is. While it trains, the maps of the
//! weights that are trained are multiplied by g, and so are their gradients ([`Actuator`]); what is judged and stored has
//! the factor in it, and is a plain model with the plain file. With g = 1 nothing differs in any bit.
//!
//! The sensors give κ, which is 1 where as much comes out of a layer as went in; a [`Policy`] makes g from it. No gradient
//! goes through sensors or g.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use training::kernels::add_into;
use training::{Loss, Refusal, Result};

use crate::batch::Batch;
use crate::config::ModelConfig;
use crate::network::{Network, Noise, Reading, Sensing};
use crate::places::{Linear, Places};

/// The smallest and the largest gain, but for the shutdown of [`Policy::Trn`].
pub const GAINS: [f64; 2] = [0.4, 1.6];

/// κ above which [`Policy::Trn`] closes.
const TRN: f64 = 1.1;

/// How g is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// g = 1; the sensors are read all the same.
    Off,
    /// Open loop: the gain of a state that the configuration names.
    Document,
    /// log g ← log g − rate · (κ − 1), within [`GAINS`].
    #[serde(alias = "on")]
    Homeostatic,
    /// 1 up to κ = 1.1, above it 0.4, and 0 above the shutdown.
    Trn,
}

/// What κ is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sensor {
    /// σ, the active components behind a layer over those before it.
    Branching,
    /// χ, by which a layer multiplies the square of a gradient.
    Gain,
    /// ρ, the spectral radius of attention and values.
    Rho,
}

/// How κ is made of σ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// The geometric mean over layers.
    Mean,
    /// The decay of the regression over several lags (Wilting and Priesemann 2018), which a part of the units suffices for.
    MultiLag,
}

/// The three states of [`Policy::Document`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regime {
    /// g < 1
    Subcritical,
    /// g = 1
    NearCritical,
    /// g > 1
    Supercritical,
}

/// The moderator of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How g is made.
    pub policy: Policy,
    /// What κ is made of.
    pub sensor: Sensor,
    /// How, of σ.
    pub estimator: Estimator,
    /// η of [`Policy::Homeostatic`].
    pub rate: f64,
    /// α of κ ← (1 − α) κ + α κ_raw.
    pub smoothing: f64,
    /// θ: a component of a normalised state is active beyond it.
    pub threshold: f64,
    /// The state of [`Policy::Document`].
    pub regime: Regime,
    /// Its gains: subcritical, near-critical, supercritical.
    pub values: [f64; 3],
    /// κ above which [`Policy::Trn`] lets nothing through.
    pub shutdown: Option<f64>,
    /// Texts of each batch that the sensors look at.
    pub sequences: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::Homeostatic,
            sensor: Sensor::Gain,
            estimator: Estimator::Mean,
            rate: 0.05,
            smoothing: 0.05,
            threshold: 1.0,
            regime: Regime::NearCritical,
            values: [0.8, 1.0, 1.2],
            shutdown: None,
            sequences: 8,
        }
    }
}

impl Settings {
    /// Everything that is wrong, all at once, under the keys of a configuration.
    pub fn problems(&self) -> Vec<String> {
        let [least, most] = GAINS;
        let [sub, near, over] = self.values;
        let within = self.values.iter().all(|g| (least..=most).contains(g));
        let share = |x: f64| x > 0.0 && x <= 1.0;
        let trn = self.shutdown.is_none_or(|limit| self.policy == Policy::Trn && limit > TRN);
        let lags = self.estimator == Estimator::Mean || self.sensor == Sensor::Branching;
        [
            (share(self.rate), format!("moderator_rate = {}: above 0, at most 1", self.rate)),
            (share(self.smoothing), format!("moderator_smoothing = {}: above 0, at most 1", self.smoothing)),
            (
                self.threshold > 0.0 && self.threshold.is_finite(),
                format!("moderator_threshold = {}: above 0", self.threshold),
            ),
            (
                within && sub < 1.0 && (near - 1.0).abs() < f64::EPSILON && over > 1.0,
                format!("moderator_values: below 1, 1, above 1, from {least} to {most}"),
            ),
            (trn, format!("moderator_shutdown: a number above {TRN}, and moderator = \"trn\"")),
            (self.sequences > 0, "moderator_sequences = 0: at least 1".to_owned()),
            (
                lags,
                "moderator_estimator = \"multi-lag\": moderator_sensor = \"branching\" has lags".to_owned(),
            ),
        ]
        .into_iter()
        .filter(|(holds, _)| !holds)
        .map(|(_, message)| message)
        .collect()
    }
}

/// Where the gains act: the last linear map of each branch.
#[derive(Debug, Clone)]
pub struct Actuator {
    /// For each layer the outputs of attention and of the feed-forward block.
    maps: Vec<[Linear; 2]>,
}

impl Actuator {
    /// Of a model of this shape.
    pub fn new(config: &ModelConfig) -> Self {
        let (_, places) = Places::new(config);
        Self { maps: places.layers.into_iter().map(|block| [block.output, block.down]).collect() }
    }

    /// Multiplies the maps of each layer by its gain.
    fn scale(&self, flat: &mut [f32], gains: &[f64]) {
        for (maps, &gain) in self.maps.iter().zip(gains) {
            for range in maps.iter().flat_map(|map| [map.weight.clone(), map.bias.clone()]) {
                if let Some(entries) = flat.get_mut(range) {
                    entries.iter_mut().for_each(|entry| *entry *= gain as f32);
                }
            }
        }
    }

    /// The weights of the plain model that computes x + g · f(x).
    pub fn folded(&self, theta: &[f32], gains: &[f64]) -> Vec<f32> {
        let mut folded = theta.to_vec();
        self.scale(&mut folded, gains);
        folded
    }

    /// As [`Network::gradient`], of the moderated model in the weights that are trained; g is a constant.
    ///
    /// # Errors
    /// As of the network.
    pub fn gradient(
        &self,
        network: &mut dyn Network,
        theta: &[f32],
        gains: &[f64],
        batch: &Batch,
        noise: Noise,
        gradient: &mut [f32],
    ) -> Result<Loss> {
        if are_one(gains) {
            return network.gradient(theta, batch, noise, gradient);
        }
        let mut own = vec![0.0; gradient.len()];
        let loss = network.gradient(&self.folded(theta, gains), batch, noise, &mut own)?;
        // d/dW f(gW) = g · f′(gW)
        self.scale(&mut own, gains);
        add_into(gradient, &own);
        Ok(loss)
    }
}

fn are_one(gains: &[f64]) -> bool {
    gains.iter().all(|gain| gain.to_bits() == 1.0_f64.to_bits())
}

/// The controller of a run.
#[derive(Debug, Clone)]
pub struct Moderator {
    settings: Settings,
    actuator: Actuator,
    kappa: f64,
    gain: f64,
    /// The last update whose sensors were read.
    update: u64,
    /// κ of the last reading, and the reading.
    last: Option<(f64, Reading)>,
}

/// What a checkpoint keeps.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    kappa: f64,
    gain: f64,
    update: u64,
}

impl Moderator {
    /// At κ = 1, before any update.
    ///
    /// # Errors
    /// Settings that cannot be.
    pub fn new(settings: Settings, config: &ModelConfig) -> Result<Self> {
        let problems = settings.problems();
        if !problems.is_empty() {
            return Err(Refusal::Setting(problems.join("\n")));
        }
        let actuator = Actuator::new(config);
        let mut moderator = Self { settings, actuator, kappa: 1.0, gain: 1.0, update: 0, last: None };
        moderator.act();
        Ok(moderator)
    }

    /// κ, smoothed over the updates.
    pub fn kappa(&self) -> f64 {
        self.kappa
    }

    /// g of each layer.
    pub fn gains(&self) -> Vec<f64> {
        vec![self.gain; self.actuator.maps.len()]
    }

    /// The weights as the moderated model has them; none where g = 1.
    pub fn folded(&self, theta: &[f32]) -> Option<Vec<f32>> {
        let gains = self.gains();
        (!are_one(&gains)).then(|| self.actuator.folded(theta, &gains))
    }

    /// Reads the sensors before an update and sets the gains, once for each update, whatever pieces its batch is cut into.
    ///
    /// # Errors
    /// An engine without sensors.
    pub fn moderate(
        &mut self,
        network: &mut dyn Network,
        theta: &[f32],
        batch: &Batch,
        seed: u64,
        update: u64,
    ) -> Result<()> {
        if self.update == update || batch.rows() == 0 {
            return Ok(());
        }
        let some = batch.piece(0..self.settings.sequences.min(batch.sequences()));
        let how = Sensing { seed, update, threshold: self.settings.threshold };
        let folded = self.folded(theta);
        let reading = network.sense(folded.as_deref().unwrap_or(theta), &some, how)?;
        let without = || Refusal::Learner("moderator: the engine of this device has no sensors".to_owned());
        self.read(update, reading.ok_or_else(without)?);
        Ok(())
    }

    /// One reading: κ moves, and g after it.
    pub fn read(&mut self, update: u64, reading: Reading) {
        self.update = update;
        let raw = self.settings.kappa_of(&reading);
        self.last = Some((raw, reading));
        // A pass that left the numbers says nothing; the trainer will skip its update.
        if raw.is_finite() {
            self.kappa = smoothed(self.kappa, raw, self.settings.smoothing);
            self.act();
        }
    }

    fn act(&mut self) {
        let Settings { policy, rate, regime, values: [sub, near, over], shutdown, .. } = self.settings;
        let [least, most] = GAINS;
        self.gain = match policy {
            Policy::Off => 1.0,
            Policy::Document => match regime {
                Regime::Subcritical => sub,
                Regime::NearCritical => near,
                Regime::Supercritical => over,
            },
            Policy::Homeostatic => (self.gain.ln() - rate * (self.kappa - 1.0)).exp().clamp(least, most),
            Policy::Trn if shutdown.is_some_and(|limit| self.kappa > limit) => 0.0,
            Policy::Trn if self.kappa > TRN => least,
            Policy::Trn => 1.0,
        };
    }

    /// As [`Network::gradient`], of the moderated model.
    ///
    /// # Errors
    /// As of the network.
    pub fn gradient(
        &self,
        network: &mut dyn Network,
        theta: &[f32],
        batch: &Batch,
        noise: Noise,
        gradient: &mut [f32],
    ) -> Result<Loss> {
        self.actuator.gradient(network, theta, &self.gains(), batch, noise, gradient)
    }

    /// What a checkpoint keeps.
    pub fn memory(&self) -> Value {
        json!(Memory { kappa: self.kappa, gain: self.gain, update: self.update })
    }

    /// Goes on from what a checkpoint kept.
    ///
    /// # Errors
    /// Something else.
    pub fn recall(&mut self, memory: &Value) -> Result<()> {
        let found: Memory = serde_json::from_value(memory.clone())
            .map_err(|e| Refusal::Learner(format!("the checkpoint has no moderator: {e}")))?;
        (self.kappa, self.gain, self.update, self.last) = (found.kappa, found.gain, found.update, None);
        Ok(())
    }

    /// The sensors and what became of them, for the record of a run.
    pub fn fields(&self) -> Map<String, Value> {
        let (raw, reading) = match &self.last {
            Some((raw, reading)) => (Some(*raw), reading.clone()),
            None => (None, Reading::default()),
        };
        let fields = json!({
            "kappa": self.kappa, "kappa_raw": raw, "gain": self.gain,
            "branching": branching(&reading), "chi": reading.chi, "rho": reading.rho,
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

impl Settings {
    /// κ of one reading.
    fn kappa_of(&self, reading: &Reading) -> f64 {
        match (self.sensor, self.estimator) {
            (Sensor::Branching, Estimator::Mean) => geometric_mean(&branching(reading)),
            (Sensor::Branching, Estimator::MultiLag) => {
                let rows = reading.active.first().map_or(0, Vec::len);
                let path = |row: usize| reading.active.iter().filter_map(|a| a.get(row).copied()).collect();
                multi_lag(&(0..rows).map(path).collect::<Vec<Vec<u32>>>())
            }
            (Sensor::Gain, _) => geometric_mean(&reading.chi),
            (Sensor::Rho, _) => geometric_mean(&reading.rho),
        }
    }
}

/// κ ← (1 − α) κ + α κ_raw
fn smoothed(kappa: f64, raw: f64, alpha: f64) -> f64 {
    (1.0 - alpha) * kappa + alpha * raw
}

/// σ of each layer.
pub fn branching(reading: &Reading) -> Vec<f64> {
    let counts: Vec<f64> =
        reading.active.iter().map(|rows| rows.iter().map(|&n| f64::from(n)).sum()).collect();
    counts.windows(2).map(|pair| pair[1] / pair[0].max(1.0)).collect()
}

/// NaN of nothing, 0 if one is 0.
fn geometric_mean(x: &[f64]) -> f64 {
    (x.iter().map(|x| x.ln()).sum::<f64>() / x.len() as f64).exp()
}

/// The branching ratio m of paths of which a share was seen: the slope of activity on that k steps before is b · mᵏ, and seeing
/// less changes b alone. The regression of its logarithm on k gives m.
pub fn multi_lag(paths: &[Vec<u32>]) -> f64 {
    let longest = paths.iter().map(Vec::len).max().unwrap_or(0);
    let slopes = (1..longest.min(LAGS + 1)).map_while(|lag| {
        let slope = slope(paths.iter().flat_map(|path| {
            path.iter().zip(path.iter().skip(lag)).map(|(&a, &b)| (f64::from(a), f64::from(b)))
        }));
        (slope > 0.0).then(|| (lag as f64, slope.ln()))
    });
    let slopes: Vec<(f64, f64)> = slopes.collect();
    match slopes.as_slice() {
        [] => 0.0,
        [(_, only)] => only.exp(),
        several => slope(several.iter().copied()).exp(),
    }
}

/// The most lags that are looked at.
const LAGS: usize = 10;

/// Of the least squares of y on x; NaN if all x are the same.
fn slope(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let n = pairs.clone().count() as f64;
    let [mx, my] = pairs.clone().fold([0.0, 0.0], |[a, b], (x, y)| [a + x, b + y]).map(|sum: f64| sum / n);
    let [xy, xx] =
        pairs.fold([0.0, 0.0], |[xy, xx], (x, y)| [xy + (x - mx) * (y - my), xx + (x - mx) * (x - mx)]);
    xy / xx
}

#[cfg(test)]
mod tests {
    use super::*;
    use seeded::{Family, test_seed};

    fn moderator(settings: Settings) -> Moderator {
        Moderator::new(settings, &ModelConfig::size("tiny").unwrap()).unwrap()
    }

    fn of(chi: f64) -> Reading {
        Reading { chi: vec![chi; 2], rho: vec![1.0; 2], active: vec![vec![1]; 3] }
    }

    #[test]
    fn kappa_is_smoothed_from_one() {
        let mut m = moderator(Settings { policy: Policy::Off, ..Settings::default() });
        let mut kappa = 1.0;
        for (update, raw) in (1..).zip([2.0, 0.5, 1.0, 4.0]) {
            m.read(update, of(raw));
            kappa = 0.95 * kappa + 0.05 * raw;
            assert!((m.kappa() - kappa).abs() < 1e-12);
            assert_eq!(m.gains(), [1.0, 1.0]);
        }
        // 0.95ⁿ of what κ was is left.
        (0..1000).for_each(|i| m.read(10 + i, of(1.3)));
        assert!((m.kappa() - 1.3).abs() < 1e-9);
        m.read(5000, of(f64::NAN));
        assert!((m.kappa() - 1.3).abs() < 1e-9);
    }

    #[test]
    fn policies_make_their_gains() {
        let gain = |settings: Settings, raws: &[f64]| {
            let mut m = moderator(settings);
            raws.iter().enumerate().for_each(|(i, &raw)| m.read(i as u64 + 1, of(raw)));
            m.gain
        };
        let at_once = Settings { smoothing: 1.0, ..Settings::default() };
        let homeostatic = gain(at_once.clone(), &[1.5, 0.8]);
        assert!((homeostatic - (-0.05 * (0.5 - 0.2_f64)).exp()).abs() < 1e-12);
        assert!((gain(at_once.clone(), &[9.0; 99]) - 0.4).abs() < 1e-12);
        assert!((gain(at_once.clone(), &[0.0; 99]) - 1.6).abs() < 1e-12);
        let trn = Settings { policy: Policy::Trn, shutdown: Some(3.0), ..at_once.clone() };
        let gains: Vec<f64> =
            [1.09, 1.11, 2.99, 3.01].iter().map(|&kappa| gain(trn.clone(), &[kappa])).collect();
        assert_eq!(gains, [1.0, 0.4, 0.4, 0.0]);
        for (regime, g) in
            [(Regime::Subcritical, 0.8), (Regime::NearCritical, 1.0), (Regime::Supercritical, 1.2)]
        {
            let settings = Settings { policy: Policy::Document, regime, ..at_once.clone() };
            assert_eq!([gain(settings.clone(), &[]), gain(settings, &[7.0])], [g, g]);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_every_reason() {
        let wrong = Settings {
            rate: 0.0,
            smoothing: f64::NAN,
            threshold: -1.0,
            values: [1.0, 1.0, 1.2],
            shutdown: Some(2.0),
            sequences: 0,
            estimator: Estimator::MultiLag,
            ..Settings::default()
        };
        assert_eq!(wrong.problems().len(), 7);
        assert!(Moderator::new(wrong, &ModelConfig::size("tiny").unwrap()).is_err());
    }

    #[test]
    fn a_memory_is_recalled_to_the_bit() {
        let mut m = moderator(Settings::default());
        m.read(1, of(1.37));
        let text = m.memory().to_string();
        let mut again = moderator(Settings::default());
        again.recall(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(
            (m.kappa.to_bits(), m.gain.to_bits(), m.update),
            (again.kappa.to_bits(), again.gain.to_bits(), again.update)
        );
        assert!(again.recall(&json!({"kappa": 1.0})).is_err());
    }

    /// Offspring in the mean m of each, immigrants, and a tenth of all seen: the slope at lag 1 is far too small.
    #[test]
    fn several_lags_see_through_a_part() {
        let mut s = Family::new("branching", "test", test_seed()).stream(0);
        let (m, immigrants, seen) = (0.9, 20.0, 0.1);
        let mut whole = immigrants / (1.0 - m);
        let mut path = Vec::new();
        for _ in 0..60_000 {
            // Poisson of a large mean, as a rounded normal number; of those each is seen or not.
            let mean: f64 = m * whole + immigrants;
            whole = (mean + mean.sqrt() * s.normal()).round().max(0.0);
            path.push((0..whole as u64).filter(|_| s.uniform() < seen).count() as u32);
        }
        let one = slope(path.windows(2).map(|w| (f64::from(w[0]), f64::from(w[1]))));
        let many = multi_lag(&[path]);
        assert!((many - m).abs() < 0.05, "{many}");
        assert!(one < 0.5, "{one}");
    }
}
