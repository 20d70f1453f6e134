//! The optimiser that configuration keys name (sections 8 and 10.1), and its exact course on given gradients.
//!
//! [`Optimiser::fused`] is what trains, in f32; [`trace`] runs the same rule in f64.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};
use training::optimiser::{AdamW, RmsProp, clip_factor};
use training::rules::{Pace, Rule, State};

use crate::error::{Refusal, Result};
use crate::nearest::did_you_mean;

/// How weights move: the rule and its constants.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the keys of section 10.1")]
pub enum Method {
    AdamW { beta1: f64, beta2: f64, eps: f64, weight_decay: f64 },
    RmsProp { decay: f64, momentum: f64, eps: f64 },
}

/// A rule, its rate, and the greatest norm of a gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Optimiser {
    /// The rule.
    pub method: Method,
    /// The learning rate.
    pub lr: f64,
    /// The greatest global norm; 0: nothing is clipped.
    pub clip: f64,
}

/// Keys of both rules.
const SHARED: [&str; 4] = ["optimizer", "lr", "eps", "clip"];
const ADAMW: [&str; 3] = ["beta1", "beta2", "weight_decay"];
const RMSPROP: [&str; 2] = ["decay", "momentum"];

/// Any number that is not negative.
const POSITIVE: RangeInclusive<f64> = 0.0..=f64::MAX;
/// A factor by which something is kept; 1 would divide by 0 where a bias is corrected.
const BELOW_ONE: RangeInclusive<f64> = 0.0..=1.0 - f64::EPSILON / 2.0;

impl Optimiser {
    /// Reads the keys of the rule that `optimizer` names, `adamw` if it names none; other keys are left alone. `clip`
    /// is what holds without the key.
    pub fn from_keys(keys: &Map<String, Value>, clip: f64) -> Result<Self> {
        let number = |key, default, range| number(keys, key, default, range);
        let name = keys.get("optimizer").map_or(Some("adamw"), Value::as_str);
        let (method, lr) = match name {
            Some("adamw") => {
                let (beta1, beta2) = (number("beta1", 0.9, BELOW_ONE)?, number("beta2", 0.999, BELOW_ONE)?);
                let (eps, weight_decay) =
                    (number("eps", 1e-8, POSITIVE)?, number("weight_decay", 0.01, POSITIVE)?);
                (Method::AdamW { beta1, beta2, eps, weight_decay }, 1e-3)
            }
            Some("rmsprop") => {
                let (decay, momentum) =
                    (number("decay", 0.9, 0.0..=1.0)?, number("momentum", 0.9, 0.0..=1.0)?);
                (Method::RmsProp { decay, momentum, eps: number("eps", 1e-10, POSITIVE)? }, 1e-4)
            }
            _ => {
                let given = keys.get("optimizer").cloned().unwrap_or_default();
                let near = did_you_mean(given.as_str().unwrap_or_default(), ["adamw", "rmsprop"]);
                return Err(Refusal::config(format!("there is no optimizer {given}{near}")));
            }
        };
        Ok(Self { method, lr: number("lr", lr, POSITIVE)?, clip: number("clip", clip, POSITIVE)? })
    }

    /// What the trainer takes. All weights decay where the layout says so of all.
    pub fn fused(&self) -> training::Optimiser {
        match self.method {
            Method::AdamW { beta1, beta2, eps, weight_decay } => {
                AdamW { beta1, beta2, eps, weight_decay, ema: 0.0 }.into()
            }
            Method::RmsProp { decay, momentum, eps } => RmsProp { decay, momentum, eps }.into(),
        }
    }

    /// The rule in f64, and its weight decay.
    fn rule(&self) -> (Rule, f64) {
        match self.method {
            Method::AdamW { beta1, beta2, eps, weight_decay } => {
                (Rule::Adam { beta1, beta2, epsilon: eps, decoupled: true }, weight_decay)
            }
            Method::RmsProp { decay, momentum, eps } => {
                (Rule::RmsProp { decay, momentum, epsilon: eps }, 0.0)
            }
        }
    }
}

fn number(keys: &Map<String, Value>, key: &str, default: f64, range: RangeInclusive<f64>) -> Result<f64> {
    let Some(value) = keys.get(key) else { return Ok(default) };
    value.as_f64().filter(|x| range.contains(x)).ok_or_else(|| {
        let bound = match *range.end() {
            f64::MAX => "a number that is not negative",
            1.0 => "a number from 0 to 1",
            _ => "a number from 0 to less than 1",
        };
        Refusal::config(format!("{key} is {value}; it is {bound}"))
    })
}

/// `{"optimizer", its keys, "param", "grads"}` to `{"ok", "params"}`: the weights after each update. Without `clip`
/// nothing is clipped. Refused: `config`, and `shape` for a gradient of another length.
pub fn trace(document: &Value) -> Result<Value> {
    let Value::Object(keys) = document else {
        return Err(Refusal::config("the configuration is no JSON object"));
    };
    let optimiser = Optimiser::from_keys(keys, 0.0)?;
    let own: &[&str] = match optimiser.method {
        Method::AdamW { .. } => &ADAMW,
        Method::RmsProp { .. } => &RMSPROP,
    };
    let known: Vec<&str> = SHARED.iter().chain(own).chain(&["param", "grads"]).copied().collect();
    if let Some(key) = keys.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(Refusal::config(format!("unknown key \"{key}\"{}", did_you_mean(key, known))));
    }
    let mut weights = numbers("param", keys.get("param"))?;
    let Some(Value::Array(gradients)) = keys.get("grads") else {
        return Err(Refusal::config("`grads` is a list of gradients, one for each update"));
    };
    let (rule, weight_decay) = optimiser.rule();
    let (mut state, mut after) = (State::default(), Vec::new());
    for (number, gradient) in (1..).zip(gradients) {
        let gradient = numbers("grads", Some(gradient))?;
        if gradient.len() != weights.len() {
            let (found, wanted) = (gradient.len(), weights.len());
            return Err(Refusal::shape(format!(
                "gradient {number} has {found} entries, `param` has {wanted}"
            )));
        }
        // In units of the largest, whose square may overflow.
        let largest = gradient.iter().fold(0.0_f64, |largest, g| largest.max(g.abs()));
        let norm = match largest {
            0.0 => 0.0,
            largest => largest * gradient.iter().map(|g| (g / largest).powi(2)).sum::<f64>().sqrt(),
        };
        let factor = clip_factor(norm, optimiser.clip);
        rule.step(
            &mut state,
            &mut weights,
            &gradient,
            Pace { number, rate: optimiser.lr, weight_decay, factor },
        );
        if let Some(at) = weights.iter().position(|weight| !weight.is_finite()) {
            return Err(Refusal::config(format!("weight {at} is not finite after update {number}")));
        }
        after.push(weights.clone());
    }
    Ok(json!({"ok": true, "params": after}))
}

fn numbers(key: &str, value: Option<&Value>) -> Result<Vec<f64>> {
    let all = value
        .and_then(Value::as_array)
        .map(|all| all.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>());
    all.flatten().ok_or_else(|| Refusal::config(format!("`{key}` is missing, or is no list of numbers")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    #[test]
    fn defaults_are_those_of_each_rule() {
        let of = |document: Value| Optimiser::from_keys(document.as_object().unwrap(), 1.0).unwrap();
        let adamw = Method::AdamW { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01 };
        assert_eq!(of(json!({})), Optimiser { method: adamw, lr: 1e-3, clip: 1.0 });
        let rmsprop = Method::RmsProp { decay: 0.9, momentum: 0.9, eps: 1e-10 };
        let wanted = Optimiser { method: rmsprop, lr: 1e-4, clip: 0.0 };
        assert_eq!(of(json!({"optimizer": "rmsprop", "clip": 0, "beta1": 0.5})), wanted);
        assert_eq!(wanted.fused(), RmsProp { decay: 0.9, momentum: 0.9, eps: 1e-10 }.into());
    }

    #[test]
    fn refusals() {
        for (document, kind, part) in [
            (json!([]), Kind::Config, "object"),
            (json!({"optimizer": "rmsprob", "param": [], "grads": []}), Kind::Config, "\"rmsprop\""),
            (json!({"optimizer": 3, "param": [], "grads": []}), Kind::Config, "3"),
            (json!({"lrr": 1, "param": [], "grads": []}), Kind::Config, "\"lr\""),
            (json!({"decay": 0.5, "param": [], "grads": []}), Kind::Config, "decay"),
            (json!({"beta1": 1, "param": [], "grads": []}), Kind::Config, "less than 1"),
            (json!({"lr": -1, "param": [], "grads": []}), Kind::Config, "negative"),
            (json!({"lr": "a", "param": [], "grads": []}), Kind::Config, "lr"),
            (json!({"grads": []}), Kind::Config, "param"),
            (json!({"param": [1, null], "grads": []}), Kind::Config, "param"),
            (json!({"param": [1]}), Kind::Config, "grads"),
            (json!({"param": [1], "grads": [[1], 2]}), Kind::Config, "grads"),
            (json!({"param": [1], "grads": [[1], [1, 2]]}), Kind::Shape, "gradient 2"),
        ] {
            let refused = trace(&document).unwrap_err();
            assert!(refused.kind == kind && refused.message.contains(part), "{document}: {refused}");
        }
        assert_eq!(trace(&json!({"param": [1.0], "grads": []})).unwrap(), json!({"ok": true, "params": []}));
    }

    #[test]
    fn what_is_large_is_clipped_and_what_is_none_refused() {
        let of = |document: Value| trace(&document);
        let large = json!({"optimizer": "adamw", "clip": 1, "weight_decay": 0, "param": [1, 1], "grads": [[1e200, 1e200]]});
        let found = of(large).unwrap();
        let small = 0.5_f64.sqrt();
        let same =
            json!({"optimizer": "adamw", "weight_decay": 0, "param": [1, 1], "grads": [[small, small]]});
        assert_eq!(found, of(same).unwrap());
        let none = of(json!({"optimizer": "adamw", "eps": 0, "param": [1], "grads": [[0]]})).unwrap_err();
        assert!(none.message.contains("weight 0 is not finite after update 1"), "{none}");
    }
}
