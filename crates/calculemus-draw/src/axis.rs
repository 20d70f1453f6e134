//! Axes: the range of the values, round ticks, and where a value stands in the picture.

use super::numbers;

/// How values are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from the smallest value.
    Linear,
    /// Evenly, with zero in view.
    FromZero,
    /// By logarithm; values that are not positive have no place.
    Log,
}

/// What an axis is, before its values are known.
#[derive(Debug, Clone)]
pub struct Axis {
    /// The quantity with its unit.
    pub label: String,
    /// The scale.
    pub scale: Scale,
    /// Both ends, where they are fixed.
    pub ends: Option<(f64, f64)>,
    /// Names at 0, 1, 2, … instead of numbers.
    pub names: Vec<String>,
}

impl Axis {
    /// An axis of numbers.
    pub fn new(label: &str, scale: Scale) -> Self {
        Self { label: label.to_owned(), scale, ends: None, names: Vec::new() }
    }

    /// An axis of names.
    pub fn named(label: &str, names: Vec<String>) -> Self {
        let ends = Some((-0.5, names.len().max(1) as f64 - 0.5));
        Self { label: label.to_owned(), scale: Scale::Linear, ends, names }
    }

    /// The same with fixed ends.
    pub fn within(mut self, low: f64, high: f64) -> Self {
        self.ends = Some((low, high));
        self
    }

    /// Whether a value has a place.
    pub fn takes(&self, value: f64) -> bool {
        value.is_finite() && (self.scale != Scale::Log || value > 0.0)
    }

    /// Fits the axis to its values.
    pub fn fit(&self, values: impl Iterator<Item = f64>) -> Fitted {
        let log = self.scale == Scale::Log;
        let (mut low, mut high) = self.ends.unwrap_or_else(|| {
            let start =
                if self.scale == Scale::FromZero { (0.0, 0.0) } else { (f64::INFINITY, f64::NEG_INFINITY) };
            values.filter(|&v| self.takes(v)).fold(start, |(a, b), v| (a.min(v), b.max(v)))
        });
        if !(low.is_finite() && high.is_finite()) {
            (low, high) = if log { (0.1, 1.0) } else { (0.0, 1.0) };
        }
        if high <= low {
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
            (low, high) = if log { (low / 1.5, low * 1.5) } else { (low - room, high + room) };
            if self.scale == Scale::FromZero {
                low = low.max(0.0);
            }
        }
        let mut fitted = Fitted { low, high, log, ticks: Vec::new() };
        if self.ends.is_none() {
            fitted.widen();
        }
        fitted.ticks = if !self.names.is_empty() {
            self.names.iter().enumerate().map(|(i, n)| (i as f64, n.clone())).collect()
        } else if log {
            log_ticks(fitted.low, fitted.high)
        } else {
            linear_ticks(fitted.low, fitted.high)
        };
        fitted
    }
}

/// An axis with its range and ticks.
#[derive(Debug, Clone)]
pub struct Fitted {
    low: f64,
    high: f64,
    log: bool,
    /// Value and label.
    pub ticks: Vec<(f64, String)>,
}

impl Fitted {
    /// A little room at both ends, but not beyond a zero.
    fn widen(&mut self) {
        if self.log {
            let room = (self.high / self.low).powf(0.04);
            (self.low, self.high) = (self.low / room, self.high * room);
        } else {
            let room = (self.high - self.low) * 0.04;
            if self.low != 0.0 {
                self.low -= room;
            }
            if self.high != 0.0 {
                self.high += room;
            }
        }
    }

    /// Where a value stands, from 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let place = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if place.is_finite() { place } else { 0.0 }
    }

    /// Whether a value lies within.
    pub fn holds(&self, value: f64) -> bool {
        value >= self.low && value <= self.high
    }
}

/// Three to seven round numbers 1, 2, 5 · 10ⁿ apart.
fn linear_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let rough = (high - low) / 7.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough).unwrap_or(rough);
    if !(step.is_finite() && step > 0.0) {
        return Vec::new();
    }
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last.min(first.saturating_add(20)))
        .map(|i| i as f64 * step)
        .map(|v| (v, if v == 0.0 { "0".to_owned() } else { numbers::tick(v, step) }))
        .collect()
}

/// Powers of ten with 2 and 5 between them, or all digits where the range is short.
fn log_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let decades = (high / low).log10();
    let parts: &[f64] = match decades {
        d if d < 0.5 => &[1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
        d if d < 1.2 => &[1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0],
        d if d < 3.2 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    if i64::from(last) - i64::from(first) > 40 {
        return Vec::new();
    }
    let values = (first..=last).flat_map(|e| parts.iter().map(move |p| p * 10f64.powi(e)));
    values
        .filter(|&v| v >= low * 0.999_999 && v <= high * 1.000_001)
        .map(|v| (v, numbers::tick(v, v)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64]) -> Vec<String> {
        Axis::new("", scale).fit(values.iter().copied()).ticks.into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(Scale::FromZero, &[0.3, 1.02]), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(Scale::Log, &[0.09, 5.0]), ["0.1", "0.2", "0.5", "1", "2", "5"]);
        assert_eq!(labels(Scale::Log, &[0.002, 50.0]), ["0.01", "0.1", "1", "10"]);
        assert_eq!(labels(Scale::Log, &[0.77, 6.4]), ["0.8", "1", "1.5", "2", "3", "4", "6"]);
    }

    #[test]
    fn nothing_constant_and_odd_values_still_make_an_axis() {
        for scale in [Scale::Linear, Scale::FromZero, Scale::Log] {
            for values in
                [&[][..], &[f64::NAN], &[0.0], &[5.0, 5.0], &[-1.0], &[f64::INFINITY, 1.0], &[1e-300, 1e300]]
            {
                let fitted = Axis::new("", scale).fit(values.iter().copied());
                assert!(fitted.low < fitted.high, "{scale:?} {values:?}");
                assert!(fitted.place(0.5).is_finite());
            }
        }
    }
}
