//! What candle 0.11.1 gets wrong without an error, held as tests that expect the wrong result, each beside ours.
//!
//! A test that turns red after an upgrade is good news: candle has changed. Only then may the work-around that the
//! test names be dropped, and the entry of `.clippy.toml` with it. Numbers G… (gradients) and V… (values) are those
//! of this file alone; where candle's tracker knows the fault, its thread is named.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the traps are what is banned elsewhere"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use candle_core::backprop::GradStore;
use candle_core::{CpuStorage, CustomOp1, D, DType, Device, Layout, Module, Result, Shape, Tensor, Var};
use candle_nn::{LayerNorm, Linear, Optimizer, RmsNorm, SGD, ops};
use seeded::{Family, Stream};
use training::{composed, kernels};

const CPU: Device = Device::Cpu;

fn random(s: &mut Stream, shape: &[usize]) -> Tensor {
    let entries: Vec<f32> = (0..shape.iter().product()).map(|_| s.normal() as f32).collect();
    Tensor::from_vec(entries, shape, &CPU).unwrap()
}

fn var(entries: &[f32]) -> Var {
    Var::from_slice(entries, entries.len(), &CPU).unwrap()
}

fn flat(t: &Tensor) -> Vec<f32> {
    t.to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

fn gradient(store: &GradStore, var: &Var) -> Vec<f32> {
    flat(store.get(var).unwrap())
}

fn worst(a: &Tensor, b: &Tensor) -> f32 {
    flat(a).iter().zip(flat(b)).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Whether x, two steps before the end of Σ f(2x)², has a gradient.
fn reaches(f: impl Fn(&Tensor) -> Result<Tensor>) -> bool {
    let x = Var::from_tensor(&random(&mut Family::named("reaches").stream(0), &[1, 2, 3, 4])).unwrap();
    let y = f(&(x.as_tensor() * 2.0).unwrap()).unwrap();
    y.sqr().unwrap().sum_all().unwrap().backward().unwrap().get(&x).is_some()
}

/// G1 (#3011, #3752): the layer norm cuts the graph on contiguous input. G2 (#2168, #3526): so does the RMS norm.
/// G3 (#3569): so does the fast softmax. G4 (#3568): so does the fast rotation.
#[test]
fn g1_to_g4_fused_operations_cut_the_graph() {
    let (ones, zeros) =
        (Tensor::ones(4, DType::F32, &CPU).unwrap(), Tensor::zeros(4, DType::F32, &CPU).unwrap());
    assert!(!reaches(|x| LayerNorm::new(ones.clone(), zeros.clone(), 1e-5).forward(x)));
    assert!(!reaches(|x| ops::layer_norm(x, &ones, &zeros, 1e-5)));
    assert!(!reaches(|x| RmsNorm::new(ones.clone(), 1e-5).forward(x)));
    assert!(!reaches(|x| ops::rms_norm(x, &ones, 1e-5)));
    assert!(!reaches(ops::softmax_last_dim));
    let angles = random(&mut Family::named("angles").stream(0), &[3, 2]);
    assert!(!reaches(|x| candle_nn::rotary_emb::rope_i(x, &angles, &angles)));

    assert!(reaches(|x| composed::layer_norm(x, &ones, &zeros, 1e-5)));
    assert!(reaches(composed::softmax));
    assert!(reaches(|x| candle_nn::rotary_emb::rope_i_slow(x, &angles, &angles)));
}

/// G5, G6: the gradients of `scatter_add` and `scatter` with respect to the tensor they start from are swapped.
#[test]
fn g5_g6_scatter_and_scatter_add_have_each_others_gradient() {
    let weights = Tensor::new(&[1_f32, 2.0, 3.0, 4.0], &CPU).unwrap();
    let index = Tensor::new(&[1_u32, 2, 1, 2], &CPU).unwrap();
    let start_gradient = |f: &dyn Fn(&Tensor, &Tensor) -> Result<Tensor>| {
        let (start, source) = (var(&[0.0; 4]), var(&[5.0; 4]));
        let y = (f(&start, &source).unwrap() * &weights).unwrap();
        gradient(&y.sum_all().unwrap().backward().unwrap(), &start)
    };
    // Adding keeps what was there, so its gradient is the weights; setting places 1 and 2 hides what was there.
    assert_eq!(start_gradient(&|t, s| t.scatter_add(&index, s, 0)), [1.0, 0.0, 0.0, 4.0]);
    assert_eq!(start_gradient(&|t, s| t.scatter(&index, s, 0)), [1.0, 2.0, 3.0, 4.0]);
    // Right both ways:
    assert_eq!(start_gradient(&|t, s| t.index_add(&index, s, 0)), [1.0, 2.0, 3.0, 4.0]);
}

/// G7: the gradient of `max_pool2d` is divided by the kernel's area.
#[test]
fn g7_max_pooling_divides_its_gradient() {
    let x =
        Var::from_tensor(&Tensor::arange(0_f32, 4.0, &CPU).unwrap().reshape((1, 1, 2, 2)).unwrap()).unwrap();
    let store = x.max_pool2d(2).unwrap().sum_all().unwrap().backward().unwrap();
    assert_eq!(gradient(&store, &x), [0.0, 0.0, 0.0, 0.25]);
}

/// G8: each of several equal largest entries gets the whole gradient.
#[test]
fn g8_ties_of_max_count_twice() {
    let x = var(&[3.0, 3.0, 1.0]);
    assert_eq!(gradient(&x.max(0).unwrap().backward().unwrap(), &x), [1.0, 1.0, 0.0]);
}

/// G9: the slopes of `relu` and `abs` at 0 are 1; ours of ReLU is 0.
#[test]
fn g9_slopes_at_zero_are_one() {
    let x = var(&[0.0]);
    assert_eq!(gradient(&x.relu().unwrap().backward().unwrap(), &x), [1.0]);
    assert_eq!(gradient(&x.abs().unwrap().backward().unwrap(), &x), [1.0]);
    let (mut y, mut slope) = ([0.0], [7.0]);
    kernels::activate(kernels::Activation::Relu, &mut y, &mut slope, 1);
    assert_eq!((y, slope), ([0.0], [0.0]));
}

/// G10: the backward pass of `gelu_erf` has constants of six digits.
#[test]
fn g10_gelu_has_six_digits_backward() {
    let error = |f: &dyn Fn(&Tensor) -> Result<Tensor>| {
        let x: Vec<f64> = (-40..=40).map(|i| f64::from(i) * 0.1).collect();
        let v = Var::from_slice(&x, x.len(), &CPU).unwrap();
        let store = f(&v).unwrap().sum_all().unwrap().backward().unwrap();
        let got: Vec<f64> = store.get(&v).unwrap().to_vec1().unwrap();
        let slope = |x: f64| {
            let cdf = 0.5 * (1.0 + candle_core::cpu::erf::erf_f64(x / std::f64::consts::SQRT_2));
            cdf + x * (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt()
        };
        x.iter().zip(got).map(|(&x, g)| (slope(x) - g).abs()).fold(0.0, f64::max)
    };
    assert!(error(&|x| x.gelu_erf()) > 1e-7);
    assert!(error(&composed::gelu) < 1e-12);
}

/// G11: what has no gradient says nothing, and the variable is missing from the store.
#[test]
fn g11_no_gradient_is_no_error() {
    let x = var(&[1.5, -0.5]);
    let missing = |y: Result<Tensor>| y.unwrap().sum_all().unwrap().backward().unwrap().get(&x).is_none();
    assert!(missing(x.floor()) && missing(x.ceil()) && missing(x.round()) && missing(x.sign()));
    assert!(missing(x.affine(0.0, 1.0)));
}

/// A custom operation that says that its operand needs no gradient.
struct Silent;

impl CustomOp1 for Silent {
    fn name(&self) -> &'static str {
        "silent"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok((storage.clone(), layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, _: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }
}

/// G12: `None` from the backward form of a custom operation panics unless the operand is a variable itself.
#[test]
fn g12_a_custom_operation_without_gradient_panics() {
    let x = var(&[1.0, 2.0]);
    let run = |t: &Tensor| t.apply_op1(Silent).and_then(|y| y.sum_all()).and_then(|y| y.backward());
    assert!(run(&x).unwrap().get(&x).is_none());
    let inner = x.sqr().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| run(&inner))).is_err());
}

/// G13: an optimiser step leaves out a variable without a gradient, without a word. This is why G1 to G4 go unseen.
#[test]
fn g13_the_optimiser_skips_what_has_no_gradient() {
    let (x, unused) = (var(&[1.0]), var(&[1.0]));
    let mut sgd = SGD::new(vec![x.clone(), unused.clone()], 0.5).unwrap();
    sgd.backward_step(&x.sum_all().unwrap()).unwrap();
    assert_eq!((flat(&x), flat(&unused)), (vec![0.5], vec![1.0]));
}

/// G14: gradients at 0 that are not numbers, and `where_cond` does not protect from them.
#[test]
fn g14_gradients_at_zero_are_not_numbers() {
    let x = var(&[0.0]);
    let at_zero = |y: Result<Tensor>| gradient(&y.unwrap().sum_all().unwrap().backward().unwrap(), &x)[0];
    assert!(at_zero(x.norm()).is_nan());
    assert!(at_zero(x.sqrt()).is_infinite());
    let positive = x.gt(0.0).unwrap();
    assert!(at_zero(x.log().and_then(|l| positive.where_cond(&l, &x.zeros_like()?))).is_nan());
    // Clamped inside, before the dangerous function:
    let inside = positive.where_cond(&x, &x.ones_like().unwrap()).unwrap();
    assert_eq!(at_zero(inside.log().and_then(|l| positive.where_cond(&l, &x.zeros_like()?))), 0.0);
}

/// G15: `unfold` is recorded as a reshape.
#[test]
fn g15_unfold_has_no_right_gradient() {
    let x = var(&[1.0, 2.0, 3.0, 4.0]);
    let patches = x.unfold(0, 2, 1).unwrap(); // [3, 2]
    assert!(patches.sum_all().unwrap().backward().is_err());
}

/// G16: the way back through a strided `conv2d` is an error where height and width leave different remainders.
#[test]
fn g16_strided_convolutions_need_equal_remainders() {
    let kernel = Tensor::ones((1, 1, 3, 3), DType::F32, &CPU).unwrap();
    let back = |height: usize, width: usize| {
        let x = Var::ones((1, 1, height, width), DType::F32, &CPU).unwrap();
        x.conv2d(&kernel, 1, 2, 1, 1).unwrap().sum_all().unwrap().backward()
    };
    assert!(back(3, 4).is_err());
    assert!(back(3, 3).is_ok() && back(4, 4).is_ok() && back(25, 25).is_ok());
}

/// V1 (#3758), V2: a transposed left operand with a broadcast right one is multiplied wrongly, and the linear layer
/// does just that.
#[test]
fn v1_v2_strided_products_are_wrong() {
    let mut s = Family::named("strided").stream(0);
    let (x, w) = (random(&mut s, &[3, 5, 4]), random(&mut s, &[6, 5]));
    let x = x.transpose(1, 2).unwrap(); // [3, 4, 5]
    let right =
        composed::matmul(&x.contiguous().unwrap().reshape((12, 5)).unwrap(), &w.t().unwrap()).unwrap();
    let right = right.reshape((3, 4, 6)).unwrap();
    let broadcast = w.t().unwrap().broadcast_as((3, 5, 6)).unwrap();
    assert!(worst(&x.matmul(&broadcast).unwrap(), &right) > 0.5);
    assert!(worst(&Linear::new(w.clone(), None).forward(&x).unwrap(), &right) > 0.5);

    assert!(worst(&composed::matmul(&x, &broadcast).unwrap(), &right) < 1e-5);
    let zeros = Tensor::zeros(6, DType::F32, &CPU).unwrap();
    assert!(worst(&composed::linear(&x, &w, &zeros).unwrap(), &right) < 1e-5);
}

/// V5 (#3315): the fast layer norm subtracts squares of the mean.
#[test]
fn v5_the_layer_norm_loses_a_large_mean() {
    let mut s = Family::named("mean").stream(0);
    let rows = (random(&mut s, &[8, 64]) + 1000.0).unwrap();
    let (ones, zeros) =
        (Tensor::ones(64, DType::F32, &CPU).unwrap(), Tensor::zeros(64, DType::F32, &CPU).unwrap());
    let wide = |t: &Tensor| t.to_dtype(DType::F64).unwrap();
    let right = composed::layer_norm(&wide(&rows), &wide(&ones), &wide(&zeros), 1e-5).unwrap();
    assert!(worst(&ops::layer_norm(&rows, &ones, &zeros, 1e-5).unwrap(), &right) > 0.01);

    let (mut x, mut y, mut inverse) = (flat(&rows), vec![0.0; 512], vec![0.0; 8]);
    let norm = kernels::LayerNorm { weight: &[1.0; 64], bias: &[0.0; 64] };
    kernels::layer_norm(norm, &mut x, &mut y, &mut inverse);
    assert!(worst(&Tensor::from_vec(y, (8, 64), &CPU).unwrap(), &right) < 2e-4);
}

/// V6 (#3718): sums run along in their own precision.
#[test]
fn v6_sums_lose_digits() {
    let n = 1 << 24;
    let sum = Tensor::full(0.1_f32, n, &CPU).unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap();
    assert!((sum / (0.1 * n as f32) - 1.0).abs() > 1e-3, "{sum}");
    let bf16 = Tensor::ones(4096, DType::BF16, &CPU).unwrap().sum_all().unwrap();
    assert_eq!(flat(&bf16), [256.0]);
    let f16 = Tensor::ones(4096, DType::F16, &CPU).unwrap().sum_all().unwrap();
    assert_eq!(flat(&f16), [2048.0]);
}

/// V7: the binary cross-entropy on logits takes the logarithm of a rounded sigmoid.
#[test]
fn v7_binary_cross_entropy_overflows() {
    let target = Tensor::new(&[1_f32], &CPU).unwrap();
    let loss = |z: f32| {
        let z = Tensor::new(&[z], &CPU).unwrap();
        candle_nn::loss::binary_cross_entropy_with_logit(&z, &target).unwrap().to_scalar::<f32>().unwrap()
    };
    assert!(loss(200.0).is_nan()); // it is 0
    assert!(loss(-200.0).is_infinite()); // it is 200
}

/// V8: integers are averaged and summed as integers.
#[test]
fn v8_accuracy_is_zero() {
    let (a, b) = (Tensor::new(&[1_u32, 2, 3], &CPU).unwrap(), Tensor::new(&[1_u32, 2, 4], &CPU).unwrap());
    let hits = a.eq(&b).unwrap();
    assert_eq!(hits.mean_all().unwrap().to_scalar::<u8>().unwrap(), 0);
    let share = hits.to_dtype(DType::F32).unwrap().mean_all().unwrap().to_scalar::<f32>().unwrap();
    assert!((share - 2.0 / 3.0).abs() < 1e-6);
    // 300 hits are counted as 44, or panic where overflow is checked.
    let many = Tensor::ones(300, DType::U8, &CPU).unwrap();
    let counted = catch_unwind(AssertUnwindSafe(|| many.sum_all().unwrap().to_scalar::<u8>().unwrap()));
    assert!(counted.is_err() || counted.is_ok_and(|n| n == 44));
}

/// V9: not-a-number passes through `relu` and `max` unseen; a fully masked row is not a number.
#[test]
fn v9_not_a_number_disappears() {
    let x = Tensor::new(&[1.0, f32::NAN], &CPU).unwrap();
    assert_eq!(flat(&x.relu().unwrap()), [1.0, 0.0]);
    assert_eq!(flat(&x.max(0).unwrap()), [1.0]);
    let masked = Tensor::full(f32::NEG_INFINITY, (1, 3), &CPU).unwrap();
    assert!(flat(&ops::softmax(&masked, D::Minus1).unwrap()).iter().all(|v| v.is_nan()));

    let (mut y, mut slope) = ([f32::NAN], [0.0]);
    kernels::activate(kernels::Activation::Relu, &mut y, &mut slope, 1);
    assert!(y[0].is_nan());
}

/// V10: the largest index means "skip", and the mean loss still divides by all rows.
#[test]
fn v10_the_largest_index_is_skipped_and_counted() {
    let logits = Tensor::new(&[[1_f32, 2.0], [1.0, 2.0]], &CPU).unwrap();
    let loss = |targets: &[u32]| {
        let targets = Tensor::new(targets, &CPU).unwrap();
        let rows = logits.narrow(0, 0, targets.elem_count()).unwrap();
        candle_nn::loss::cross_entropy(&rows, &targets).unwrap().to_scalar::<f32>().unwrap()
    };
    assert!((loss(&[1, u32::MAX]) - loss(&[1]) / 2.0).abs() < 1e-6);
    let ours = kernels::cross_entropy(&mut flat(&logits), &[1, u32::MAX], 0.0, false);
    assert_eq!(ours.targets, 1);
    assert!((ours.loss - f64::from(loss(&[1]))).abs() < 1e-6);
}

/// V11: `set` writes in place, and everything that shares the storage sees it, a graph built before included.
#[test]
fn v11_setting_a_variable_changes_what_was_read_before() {
    let v = var(&[2.0]);
    let (detached, copied) = (v.as_tensor().detach(), v.copy().unwrap());
    let square = v.sqr().unwrap();
    v.set(&Tensor::new(&[5_f32], &CPU).unwrap()).unwrap();
    assert_eq!((flat(&detached), flat(&copied)), (vec![5.0], vec![2.0]));
    assert_eq!(gradient(&square.backward().unwrap(), &v), [10.0]);
}

/// V12: a variable made from a variable is that variable.
#[test]
fn v12_a_variable_from_a_variable_is_the_same() {
    let v = var(&[2.0]);
    let same = Var::from_tensor(v.as_tensor()).unwrap();
    let other = Var::from_tensor(&v.copy().unwrap()).unwrap();
    v.set(&Tensor::new(&[5_f32], &CPU).unwrap()).unwrap();
    assert_eq!((flat(&same), flat(&other)), (vec![5.0], vec![2.0]));
}

/// V14: metadata of several keys is written in random order; ours has one key.
#[test]
fn v14_metadata_has_no_order() {
    let written = |keys: usize| {
        let metadata = (0..keys).map(|k| (k.to_string(), String::new())).collect();
        let nothing: Vec<(String, safetensors::tensor::TensorView<'_>)> = Vec::new();
        safetensors::serialize(nothing, Some(metadata)).unwrap()
    };
    let differ = |keys: usize| (0..20).any(|_| written(keys) != written(keys));
    assert!(differ(6) && !differ(1));
}

/// V16: one entry that is not a number leaves a row unsorted.
#[test]
fn v16_sorting_stops_at_not_a_number() {
    let x = Tensor::new(&[3.0, f32::NAN, 1.0, 2.0], &CPU).unwrap();
    let (sorted, _) = x.sort_last_dim(true).unwrap();
    let sorted = flat(&sorted);
    assert!(sorted[0] == 3.0 && sorted[1].is_nan() && sorted[2..] == [1.0, 2.0]);
}
