//! The parameters of a model: names, shapes and places in one flat f32 buffer.
//!
//! One registry replaces a map of variables: its order is fixed, each parameter is drawn from a stream of its own
//! name (so that adding one changes no other), and an optimiser step is one pass over one buffer.

use std::ops::Range;

use seeded::Family;

use crate::error::{Refusal, Result};

/// How a parameter begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initial {
    /// All entries are this number.
    Constant(f32),
    /// N(0, σ²), σ given.
    Normal(f64),
    /// Uniform in ±√(6/(fan_in + fan_out)) (Glorot & Bengio 2010).
    XavierUniform {
        /// Entries summed by one output.
        fan_in: usize,
        /// Outputs that one entry reaches.
        fan_out: usize,
    },
    /// A number in entries `from..to`, 0 in the others.
    Segment {
        /// The number.
        value: f32,
        /// The first entry.
        from: usize,
        /// The entry behind the last.
        to: usize,
    },
    /// A number, plus uniform ±`spread`.
    Around {
        /// The number.
        centre: f32,
        /// The largest distance from it.
        spread: f64,
    },
    /// A stack of square matrices, each the identity, plus uniform ±`spread`.
    NearIdentity {
        /// Rows of a matrix.
        size: usize,
        /// The largest distance from the identity.
        spread: f64,
    },
}

/// Whether weight decay acts on a parameter: on weight matrices only, not on biases, norms and embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the two answers")]
pub enum Decay {
    Yes,
    No,
}

/// One named tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The name in `model.safetensors`.
    pub name: String,
    /// The shape, row-major.
    pub shape: Vec<usize>,
    /// Whether it decays.
    pub decay: Decay,
    /// How it begins.
    pub initial: Initial,
    /// Its entries in the flat buffer.
    pub range: Range<usize>,
}

/// The registry: parameters in the order of the flat buffer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layout {
    parameters: Vec<Parameter>,
    len: usize,
}

impl Layout {
    /// Adds a parameter behind the others and returns its entries in the flat buffer.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        shape: &[usize],
        decay: Decay,
        initial: Initial,
    ) -> Range<usize> {
        let range = self.len..self.len + shape.iter().product::<usize>();
        self.len = range.end;
        self.parameters.push(Parameter {
            name: name.into(),
            shape: shape.to_vec(),
            decay,
            initial,
            range: range.clone(),
        });
        range
    }

    /// The number of entries of all parameters.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no parameter.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The parameters in buffer order.
    pub fn iter(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter()
    }

    /// The parameters in name order: the order of every sum over parameters.
    pub fn by_name(&self) -> Vec<&Parameter> {
        let mut all: Vec<&Parameter> = self.parameters.iter().collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The parameter of this name.
    pub fn get(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|p| p.name == name)
    }

    /// Draws all parameters: each from the stream `training-v1:init:SEED:NAME`.
    pub fn initialise(&self, seed: u64) -> Vec<f32> {
        let mut flat = vec![0.0; self.len];
        for p in &self.parameters {
            let mut stream = Family::named(&format!("training-v1:init:{seed}:{}", p.name)).stream(0);
            let Some(entries) = flat.get_mut(p.range.clone()) else { continue };
            match p.initial {
                Initial::Constant(c) => entries.fill(c),
                Initial::Normal(deviation) => {
                    entries.fill_with(|| (stream.normal() * deviation) as f32);
                }
                Initial::XavierUniform { fan_in, fan_out } => {
                    let bound = (6.0 / (fan_in + fan_out) as f64).sqrt();
                    entries.fill_with(|| ((2.0 * stream.uniform() - 1.0) * bound) as f32);
                }
                Initial::Segment { value, from, to } => {
                    entries.get_mut(from..to).into_iter().flatten().for_each(|entry| *entry = value);
                }
                Initial::Around { centre, spread } => {
                    entries.fill_with(|| centre + ((2.0 * stream.uniform() - 1.0) * spread) as f32);
                }
                Initial::NearIdentity { size, spread } => {
                    for (place, entry) in entries.iter_mut().enumerate() {
                        // Behind each entry of the diagonal stand `size` others, but none behind the last.
                        let diagonal = place % (size * size).max(1) % (size + 1) == 0;
                        let noise = (2.0 * stream.uniform() - 1.0) * spread;
                        *entry = f32::from(u8::from(diagonal)) + noise as f32;
                    }
                }
            }
        }
        flat
    }

    /// Refuses a buffer with an entry that is not finite, by the first such tensor in name order.
    pub fn check_finite(&self, flat: &[f32]) -> Result<()> {
        for p in self.by_name() {
            let entries = flat.get(p.range.clone()).unwrap_or_default();
            if let Some((entry, &found)) = entries.iter().enumerate().find(|(_, x)| !x.is_finite()) {
                return Err(Refusal::NotFinite { name: p.name.clone(), found, entry });
            }
        }
        Ok(())
    }

    /// Gathers a flat buffer from named tensors; `get` gives shape and entries of a name. Missing tensors and
    /// wrong shapes are refused, and so are the names in `present` that this layout does not know.
    pub fn gather<'a>(
        &self,
        present: impl Iterator<Item = &'a str>,
        mut get: impl FnMut(&str) -> Option<(Vec<usize>, Vec<f32>)>,
    ) -> Result<Vec<f32>> {
        let mut flat = vec![0.0; self.len];
        for name in present {
            if self.get(name).is_none() {
                return Err(Refusal::UnknownTensor { name: name.to_owned() });
            }
        }
        for p in &self.parameters {
            let Some((shape, entries)) = get(&p.name) else {
                return Err(Refusal::MissingTensor { name: p.name.clone() });
            };
            match flat.get_mut(p.range.clone()) {
                Some(to) if shape == p.shape && to.len() == entries.len() => to.copy_from_slice(&entries),
                _ => {
                    let (name, expected) = (p.name.clone(), p.shape.clone());
                    return Err(Refusal::TensorShape { name, found: shape, expected });
                }
            }
        }
        Ok(flat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(extra: bool) -> Layout {
        let mut l = Layout::default();
        if extra {
            l.add("a.extra", &[5], Decay::No, Initial::Normal(1.0));
        }
        l.add("w", &[64, 32], Decay::Yes, Initial::XavierUniform { fan_in: 32, fan_out: 64 });
        l.add("e", &[100, 64], Decay::No, Initial::Normal(0.02));
        l.add("n", &[64], Decay::No, Initial::Constant(1.0));
        l
    }

    #[test]
    fn a_tensor_does_not_depend_on_its_neighbours() {
        let (a, b) = (layout(false).initialise(3), layout(true).initialise(3));
        assert_eq!(a, b[5..]);
        assert_ne!(a, layout(false).initialise(4));
    }

    #[test]
    fn distributions() {
        let l = layout(false);
        let x = l.initialise(0);
        let w = &x[l.get("w").unwrap().range.clone()];
        let bound = (6.0_f32 / 96.0).sqrt();
        assert!(w.iter().all(|v| v.abs() <= bound) && w.iter().any(|v| v.abs() > 0.98 * bound));
        let e = &x[l.get("e").unwrap().range.clone()];
        let deviation = (e.iter().map(|v| v * v).sum::<f32>() / e.len() as f32).sqrt();
        assert!((deviation - 0.02).abs() < 0.001, "{deviation}");
        assert!(x[l.get("n").unwrap().range.clone()].iter().all(|&v| v == 1.0));
    }

    #[test]
    fn around_a_number_and_near_the_identity() {
        let mut l = Layout::default();
        let ones = l.add("ones", &[3, 5], Decay::Yes, Initial::Around { centre: 1.0, spread: 0.1 });
        let near = l.add("near", &[3, 4, 4], Decay::Yes, Initial::NearIdentity { size: 4, spread: 0.1 });
        let x = l.initialise(0);
        assert!(x[ones].iter().all(|v| (v - 1.0).abs() <= 0.1 && *v != 1.0));
        for (place, v) in x[near].iter().enumerate() {
            let (row, column) = (place / 4 % 4, place % 4);
            let wanted = if row == column { 1.0 } else { 0.0 };
            assert!((v - wanted).abs() <= 0.1 && *v != wanted, "{place}: {v}");
        }
    }

    #[test]
    fn gathering_refuses_missing_unknown_and_misshapen() {
        let l = layout(false);
        let right = |n: &str| l.get(n).map(|p| (p.shape.clone(), vec![0.5; p.range.len()]));
        assert!(l.gather(["w", "e", "n"].into_iter(), right).is_ok());
        assert!(matches!(l.gather(["zz"].into_iter(), right), Err(Refusal::UnknownTensor { .. })));
        let missing = |n: &str| if n == "e" { None } else { right(n) };
        assert!(matches!(l.gather([].into_iter(), missing), Err(Refusal::MissingTensor { .. })));
        let turned = |n: &str| {
            right(n).map(|(mut s, v)| {
                (
                    if n == "w" {
                        s.reverse();
                        s
                    } else {
                        s
                    },
                    v,
                )
            })
        };
        assert!(matches!(l.gather([].into_iter(), turned), Err(Refusal::TensorShape { .. })));
    }
}
