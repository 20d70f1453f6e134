//! Sums of weights that may be too small for numbers.
//!
//! Enter at [`Sums::at_scale`].

/// Sums of weights, each divided by e to the power of `scale`.
#[derive(Debug, Clone)]
pub(crate) struct Sums {
    pub(crate) scale: f64,
    pub(crate) weight: f64,
    pub(crate) square: f64,
    /// For each state of each variable.
    pub(crate) weights: Vec<f64>,
    pub(crate) squares: Vec<f64>,
}

impl Sums {
    pub(crate) fn new(cells: usize) -> Sums {
        Sums {
            scale: f64::NEG_INFINITY,
            weight: 0.0,
            square: 0.0,
            weights: vec![0.0; cells],
            squares: vec![0.0; cells],
        }
    }

    /// Brings the sums to another scale; returns by what weights of that one are multiplied.
    pub(crate) fn at_scale(&mut self, scale: f64) -> f64 {
        if scale > self.scale {
            let factor = if self.scale == f64::NEG_INFINITY { 0.0 } else { (self.scale - scale).exp() };
            self.weight *= factor;
            self.square *= factor * factor;
            self.weights.iter_mut().for_each(|sum| *sum *= factor);
            self.squares.iter_mut().for_each(|sum| *sum *= factor * factor);
            self.scale = scale;
        }
        if scale == f64::NEG_INFINITY { 0.0 } else { (scale - self.scale).exp() }
    }

    /// Adds other sums.
    pub(crate) fn join(&mut self, other: &Sums) {
        let factor = self.at_scale(other.scale);
        self.weight += other.weight * factor;
        self.square += other.square * factor * factor;
        self.weights.iter_mut().zip(&other.weights).for_each(|(sum, own)| *sum += own * factor);
        self.squares.iter_mut().zip(&other.squares).for_each(|(sum, own)| *sum += own * factor * factor);
    }
}
