//! The table of symbol vectors: stored, or computed from the pictures of the symbols.
//!
//! A glyph embedding is a function of the 663 pictures, so one table is computed for a whole batch, and the
//! gradient of the table goes back through that function once.

use training::kernels::{
    Activation, Mat, MatMut, Precision, Real, activate, activate_backward, linear, linear_backward_input,
    product,
};

use crate::places::{EmbeddingPlaces, Linear};

/// The pictures: [663, 625], 1 for a black cell.
pub(crate) fn glyph_cells() -> Vec<f32> {
    let cells = fol::symbol::SymbolId::all().flat_map(|symbol| fol::glyph::Glyph::of(symbol).0.concat());
    cells.map(|black| if black { 1.0 } else { 0.0 }).collect()
}

/// A 3×3 convolution of stride 2 with one cell of white around it, as patches for a product.
#[derive(Debug, Clone, Copy)]
struct Convolution {
    channels: usize,
    side: usize,
}

impl Convolution {
    fn out_side(self) -> usize {
        (self.side - 1) / 2 + 1
    }

    /// For each entry of a patch matrix [pictures·out², channels·9], the entry of the input [pictures, side², channels]
    /// that stands there, or `None` on the border.
    fn visit(self, pictures: usize, mut f: impl FnMut(usize, Option<usize>)) {
        let (out, side, mut entry) = (self.out_side(), self.side, 0);
        for p in 0..pictures {
            for (y, x) in (0..out).flat_map(|y| (0..out).map(move |x| (y, x))) {
                for c in 0..self.channels {
                    for (dy, dx) in (0..3).flat_map(|dy| (0..3).map(move |dx| (dy, dx))) {
                        let (row, column) = ((2 * y + dy).checked_sub(1), (2 * x + dx).checked_sub(1));
                        let inside = match (row, column) {
                            (Some(r), Some(k)) if r < side && k < side => {
                                Some(((p * side + r) * side + k) * self.channels + c)
                            }
                            _ => None,
                        };
                        f(entry, inside);
                        entry += 1;
                    }
                }
            }
        }
    }

    fn patches<T: Real>(self, input: &[T], pictures: usize) -> Vec<T> {
        let mut patches = vec![T::ZERO; pictures * self.out_side().pow(2) * self.channels * 9];
        self.visit(pictures, |entry, place| {
            if let (Some(to), Some(from)) = (patches.get_mut(entry), place.and_then(|p| input.get(p))) {
                *to = *from;
            }
        });
        patches
    }

    fn patches_backward(self, dpatches: &[f32], pictures: usize) -> Vec<f32> {
        let mut dinput = vec![0.0; pictures * self.side.pow(2) * self.channels];
        self.visit(pictures, |entry, place| {
            if let (Some(g), Some(to)) = (dpatches.get(entry), place.and_then(|p| dinput.get_mut(p))) {
                *to += g;
            }
        });
        dinput
    }
}

const SYMBOLS: usize = fol::symbol::VOCABULARY;
const FIRST: Convolution = Convolution { channels: 1, side: 25 };
const SECOND: Convolution = Convolution { channels: 16, side: 13 };

/// [pictures·49, 16] ↔ [pictures, 16·49]: channels first, as convolutional libraries flatten.
fn channels_first<T: Real>(x: &[T], back: bool) -> Vec<T> {
    let mut y = vec![T::ZERO; x.len()];
    for (p, picture) in x.chunks_exact(784).enumerate() {
        for (i, &v) in picture.iter().enumerate() {
            let to = if back { (i % 49) * 16 + i / 49 } else { (i % 16) * 49 + i / 16 };
            if let Some(slot) = y.get_mut(p * 784 + to) {
                *slot = v;
            }
        }
    }
    y
}

/// The two convolutions as places, for a device that gathers.
#[cfg(feature = "device")]
pub(crate) struct GlyphPlan {
    /// What the first convolution reads, [663·169, 9]
    pub(crate) patches: Vec<f32>,
    /// Entries of [663·169, 16] that the second reads, [663·49, 144]; `u32::MAX` on the border.
    pub(crate) second: Vec<u32>,
    /// Of each entry of [663·169, 16] the patches that it stands in: where they begin, and which.
    pub(crate) back_starts: Vec<u32>,
    pub(crate) back_members: Vec<u32>,
    /// [663·49, 16] with its channels first, and back.
    pub(crate) first: Vec<u32>,
    pub(crate) last: Vec<u32>,
}

#[cfg(feature = "device")]
impl GlyphPlan {
    pub(crate) fn new() -> Self {
        let mut second = Vec::new();
        let mut readers = vec![Vec::new(); SYMBOLS * 169 * 16];
        SECOND.visit(SYMBOLS, |entry, place| {
            second.push(place.map_or(u32::MAX, |place| place as u32));
            if let Some(readers) = place.and_then(|place| readers.get_mut(place)) {
                readers.push(entry as u32);
            }
        });
        let (mut back_starts, mut back_members) = (vec![0], Vec::new());
        for mut of_entry in readers {
            back_members.append(&mut of_entry);
            back_starts.push(back_members.len() as u32);
        }
        // A gather reads: entry `to` of the result comes from `from`, the other way around than `channels_first` goes.
        let turned = |back: bool| {
            (0..SYMBOLS as u32 * 784)
                .map(|to| {
                    let (picture, i) = (to / 784 * 784, to % 784);
                    picture + if back { (i % 16) * 49 + i / 16 } else { (i % 49) * 16 + i / 49 }
                })
                .collect()
        };
        let patches = FIRST.patches(&glyph_cells(), SYMBOLS);
        Self { patches, second, back_starts, back_members, first: turned(false), last: turned(true) }
    }
}

/// The intermediate values of the convolutional embedding.
#[derive(Debug, Default)]
struct Convolved {
    patches1: Vec<f32>,
    slope1: Vec<f32>,
    patches2: Vec<f32>,
    slope2: Vec<f32>,
    features: Vec<f32>,
}

/// The computed table, with what its backward pass needs.
#[derive(Debug, Default)]
pub(crate) struct Table {
    cells: Vec<f32>,
    values: Vec<f32>,
    convolved: Convolved,
}

impl Table {
    /// The table [V, d] for these parameters.
    pub(crate) fn forward<'a>(&'a mut self, places: &EmbeddingPlaces, theta: &'a [f32]) -> &'a [f32] {
        match places {
            EmbeddingPlaces::Table(range) => &theta[range.clone()],
            EmbeddingPlaces::GlyphLinear(map) => {
                self.load_cells(map.bias.len());
                linear(
                    &self.cells,
                    &theta[map.weight.clone()],
                    &theta[map.bias.clone()],
                    &mut self.values,
                    SYMBOLS,
                );
                &self.values
            }
            EmbeddingPlaces::GlyphCnn(maps) => {
                self.load_cells(maps[2].bias.len());
                self.convolve(maps, theta);
                &self.values
            }
        }
    }

    fn load_cells(&mut self, d: usize) {
        if self.cells.is_empty() {
            self.cells = glyph_cells();
        }
        self.values.resize(SYMBOLS * d, 0.0);
    }

    fn convolve(&mut self, [first, second, last]: &[Linear; 3], theta: &[f32]) {
        let apply = |map: &Linear, patches: &[f32], rows: usize| {
            let mut y = vec![0.0; rows * 16];
            linear(patches, &theta[map.weight.clone()], &theta[map.bias.clone()], &mut y, rows);
            let mut slope = vec![0.0; y.len()];
            activate(Activation::Relu, &mut y, &mut slope, 16);
            (y, slope)
        };
        let c = &mut self.convolved;
        c.patches1 = FIRST.patches(&self.cells, SYMBOLS); // [663·169, 9]
        let (y, slope) = apply(first, &c.patches1, SYMBOLS * 169); // [663·169, 16]
        c.slope1 = slope;
        c.patches2 = SECOND.patches(&y, SYMBOLS); // [663·49, 144]
        let (y, slope) = apply(second, &c.patches2, SYMBOLS * 49); // [663·49, 16]
        c.slope2 = slope;
        c.features = channels_first(&y, false); // [663, 784]
        let (weight, bias) = (&theta[last.weight.clone()], &theta[last.bias.clone()]);
        linear(&c.features, weight, bias, &mut self.values, SYMBOLS); // [663, d]
    }

    /// Adds the gradient of the embedding's parameters, given that of the table [V, d].
    pub(crate) fn backward(
        &self,
        places: &EmbeddingPlaces,
        theta: &[f32],
        dtable: &[f32],
        gradient: &mut [f32],
    ) {
        match places {
            EmbeddingPlaces::Table(range) => {
                training::kernels::add_into(&mut gradient[range.clone()], dtable)
            }
            EmbeddingPlaces::GlyphLinear(map) => {
                weights_backward(map, dtable, &self.cells, gradient, SYMBOLS)
            }
            EmbeddingPlaces::GlyphCnn([first, second, last]) => {
                let c = &self.convolved;
                weights_backward(last, dtable, &c.features, gradient, SYMBOLS);
                let mut dfeatures = vec![0.0; c.features.len()];
                linear_backward_input(dtable, &theta[last.weight.clone()], &mut dfeatures, SYMBOLS, false);
                let mut dy = channels_first(&dfeatures, true); // [663·49, 16]
                activate_backward(&mut dy, &c.slope2, 16);
                weights_backward(second, &dy, &c.patches2, gradient, SYMBOLS * 49);
                let mut dpatches = vec![0.0; c.patches2.len()];
                linear_backward_input(&dy, &theta[second.weight.clone()], &mut dpatches, SYMBOLS * 49, false);
                let mut dy = SECOND.patches_backward(&dpatches, SYMBOLS); // [663·169, 16]
                activate_backward(&mut dy, &c.slope1, 16);
                weights_backward(first, &dy, &c.patches1, gradient, SYMBOLS * 169);
            }
        }
    }
}

/// The vectors of the symbols [V, d] in f64, not scaled: the stored table, or what the glyphs give.
pub(crate) fn symbol_vectors(places: &EmbeddingPlaces, theta: &[f32]) -> Vec<f64> {
    let wide = |range: &std::ops::Range<usize>| -> Vec<f64> {
        theta.get(range.clone()).unwrap_or_default().iter().map(|&x| f64::from(x)).collect()
    };
    let apply = |map: &Linear, x: &[f64], rows: usize| {
        let (weight, bias) = (wide(&map.weight), wide(&map.bias));
        let (inner, out) = (x.len() / rows.max(1), bias.len());
        let mut y: Vec<f64> = bias.iter().copied().cycle().take(rows * out).collect();
        let w = Mat::new(&weight, out, inner).t();
        product(MatMut::new(&mut y, rows, out), true, 1.0, Mat::new(x, rows, inner), w, false);
        y // [rows, out]
    };
    let relu = |y: Vec<f64>| y.into_iter().map(|x| x.max(0.0)).collect::<Vec<f64>>();
    let cells = || glyph_cells().into_iter().map(f64::from).collect::<Vec<f64>>();
    match places {
        EmbeddingPlaces::Table(range) => wide(range),
        EmbeddingPlaces::GlyphLinear(map) => apply(map, &cells(), SYMBOLS),
        EmbeddingPlaces::GlyphCnn([first, second, last]) => {
            let y = relu(apply(first, &FIRST.patches(&cells(), SYMBOLS), SYMBOLS * 169)); // [663·169, 16]
            let y = relu(apply(second, &SECOND.patches(&y, SYMBOLS), SYMBOLS * 49)); // [663·49, 16]
            apply(last, &channels_first(&y, false), SYMBOLS) // [663, d]
        }
    }
}

/// dW and db of a linear map into the flat gradient. Its weight stands right before its bias.
pub(crate) fn weights_backward(map: &Linear, dy: &[f32], x: &[f32], gradient: &mut [f32], rows: usize) {
    weights_backward_in(Precision::Single, map, dy, x, gradient, rows);
}

/// The same with products of a precision.
pub(crate) fn weights_backward_in(
    precision: Precision,
    map: &Linear,
    dy: &[f32],
    x: &[f32],
    gradient: &mut [f32],
    rows: usize,
) {
    let (before, from_bias) = gradient.split_at_mut(map.bias.start);
    let dweight = &mut before[map.weight.clone()];
    let dbias = &mut from_bias[..map.bias.len()];
    precision.linear_backward_weights(dy, x, dweight, dbias, rows);
}

#[cfg(test)]
#[cfg(feature = "candle")]
mod tests {
    use candle_core::{DType, Device};

    use super::*;
    use crate::config::{Embedding, ModelConfig};
    use crate::model::Composed;
    use crate::network::Network as _;
    use crate::places::Places;

    #[test]
    fn vectors_by_hand_are_those_of_the_composed_model() {
        for embedding in [Embedding::Learned, Embedding::GlyphLinear, Embedding::GlyphCnn] {
            let config = ModelConfig { embedding, ..ModelConfig::size("tiny").unwrap() };
            let composed = Composed::new(config.clone(), DType::F64, Device::Cpu).unwrap();
            let theta = composed.layout().initialise(5);
            let by_hand = symbol_vectors(&Places::new(&config).1.embedding, &theta);
            let right = composed.symbol_vectors(&theta).unwrap();
            assert_eq!((by_hand.len(), right.len()), (SYMBOLS * 128, SYMBOLS * 128));
            let worst = by_hand.iter().zip(&right).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-12, "{embedding:?}: {worst}");
            assert!(right.iter().any(|x| x.abs() > 1e-3));
        }
    }
}
