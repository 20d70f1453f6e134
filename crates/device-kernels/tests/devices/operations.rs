//! Each operation, with random sizes, beside loops in f64 or the kernels of the CPU.

use device_kernels::{
    Attention, Buffer, Groups, Machine, Masks, Newest, Part, Products, Related, Rows, Sixteen, Step,
};
use seeded::{Family, Stream};
use training::kernels::{
    self, Activation, AttentionDropout, Dropout, LayerNorm, Relations, Sequences, Tables,
};

/// The device that is tested: `CALCULEMUS_DEVICE`, as `--device` names it, or the first of Vulkan; nothing where its driver is
/// not installed: the suite says so once.
fn machine() -> Option<Box<dyn Machine>> {
    let spec = std::env::var("CALCULEMUS_DEVICE");
    match device_kernels::open(spec.map_or(training::DeviceSpec::Vulkan(0), |name| name.parse().unwrap())) {
        Ok(machine) => Some(machine),
        Err(refusal) => {
            calculemus_base::stream::say(&format!("not tested: {refusal}"));
            None
        }
    }
}

fn stream(name: &str) -> Stream {
    Family::named(&format!("device-kernels:{name}")).stream(seeded::test_seed())
}

fn normal(s: &mut Stream, len: usize) -> Vec<f32> {
    (0..len).map(|_| s.normal() as f32).collect()
}

/// The largest distance, in units of the largest entry.
fn distance(found: &[f32], right: &[f64]) -> f64 {
    assert_eq!(found.len(), right.len());
    let largest = right.iter().fold(1e-30_f64, |m, v| m.max(v.abs()));
    found.iter().zip(right).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max) / largest
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&v| f64::from(v)).collect()
}

fn read(m: &dyn Machine, b: &Buffer) -> Vec<f32> {
    m.read(b).unwrap()
}

#[test]
fn products() {
    let Some(m) = machine() else { return };
    let mut s = stream("products");
    for case in 0..20 {
        let made_of = (case >= 12).then(|| Sixteen::ALL[case % 2]);
        m.multiply_in(made_of.map_or(Products::Single, Products::Rounded));
        // What a product is made of.
        let of = |x: f32| f64::from(made_of.map_or(x, |of| of.round(x)));
        // Every fifth is large enough for the large tiles.
        let [rows, inner, out] = if case % 5 == 4 { [700, 300, 640] } else { [150, 90, 140] };
        let least = if case % 5 == 4 { 0.7 } else { 0.0 };
        let mut below = |most: usize| {
            let from = (least * most as f64) as usize;
            1 + from + s.below((most - from) as u64) as usize
        };
        let (rows, inner, out) = (below(rows), below(inner), below(out));
        let at = s.below(7) as usize;
        let (x, dy) = (normal(&mut s, rows * inner), normal(&mut s, rows * out));
        let theta = normal(&mut s, at + out * inner + out);
        let (w, b) = (&theta[at..][..out * inner], &theta[at + out * inner..]);
        let bias_at = at + out * inner;
        let shape = Rows { rows, width: inner };
        let (on_x, on_dy, on_theta) = (m.upload(&x), m.upload(&dy), m.upload(&theta));

        let y = m.room(rows * out);
        m.linear(&on_x, &on_theta, at, bias_at, &y, shape, out);
        let right: Vec<f64> = (0..rows * out)
            .map(|e| {
                let (r, c) = (e / out, e % out);
                let dot: f64 = (0..inner).map(|i| of(x[r * inner + i]) * of(w[c * inner + i])).sum();
                dot + f64::from(b[c])
            })
            .collect();
        assert!(distance(&read(&*m, &y), &right) < 1e-6, "{rows} {inner} {out}");

        let before = normal(&mut s, rows * inner);
        let dx = m.upload(&before);
        m.linear_backward_input(&on_dy, &on_theta, at, &dx, shape, out, true);
        let right: Vec<f64> = (0..rows * inner)
            .map(|e| {
                let (r, c) = (e / inner, e % inner);
                let dot: f64 = (0..out).map(|o| of(dy[r * out + o]) * of(w[o * inner + c])).sum();
                dot + f64::from(before[e])
            })
            .collect();
        assert!(distance(&read(&*m, &dx), &right) < 1e-6);

        let gradient = normal(&mut s, theta.len());
        let on_gradient = m.upload(&gradient);
        m.linear_backward_weights(&on_dy, &on_x, &on_gradient, at, bias_at, shape, out);
        let mut right = wide(&gradient);
        for r in 0..rows {
            for o in 0..out {
                for i in 0..inner {
                    right[at + o * inner + i] += of(dy[r * out + o]) * of(x[r * inner + i]);
                }
                right[bias_at + o] += f64::from(dy[r * out + o]);
            }
        }
        assert!(distance(&read(&*m, &on_gradient), &right) < 1e-6);
    }
}

/// Products with 1 are the numbers themselves, rounded: of every size, ties, and what is no number.
#[test]
fn rounding_to_sixteen_bits() {
    let Some(m) = machine() else { return };
    let mut s = stream("sixteen");
    let mut x: Vec<f32> = (0..20_000).map(|_| f32::from_bits(s.below(1 << 32) as u32)).collect();
    for _ in 0..20_000 {
        // In the range of f16 and a little around it, with few digits, so that there are ties.
        let digits = s.below(1 << 13) as f32 - 4096.0;
        x.push(digits * (s.below(32) as f32 - 28.0).exp2());
    }
    x.extend([65_504.0, 65_519.0, 65_520.0, 65_536.0, -65_520.0, f32::INFINITY, f32::NAN, f32::MAX]);
    // Subnormal numbers of f32 are zeros on many devices.
    x.retain(|x| x.is_nan() || *x == 0.0 || x.abs() >= f32::MIN_POSITIVE);
    let (on_x, on_theta, y) = (m.upload(&x), m.upload(&[1.0, 0.0]), m.room(x.len()));
    for made_of in Sixteen::ALL {
        m.multiply_in(Products::Rounded(made_of));
        m.linear(&on_x, &on_theta, 0, 1, &y, Rows { rows: x.len(), width: 1 }, 1);
        for (x, y) in x.iter().zip(read(&*m, &y)) {
            let right = made_of.round(*x);
            let same = right == y || right.is_nan() && y.is_nan();
            assert!(same, "{x:e} is {y:e} and not {right:e} in {}", made_of.name());
        }
    }
}

#[test]
fn norms() {
    let Some(m) = machine() else { return };
    let mut s = stream("norms");
    for mean in [0.0, 1000.0] {
        let (rows, width) = (1 + s.below(200) as usize, 1 + s.below(300) as usize);
        let x: Vec<f32> = normal(&mut s, rows * width).iter().map(|v| v + mean).collect();
        let theta = normal(&mut s, 2 * width + 3);
        let (weight, bias) = (3, 3 + width);
        let (on_x, on_theta) = (m.upload(&x), m.upload(&theta));
        let (n, inverse, y) = (m.room(x.len()), m.room(rows), m.room(x.len()));
        let shape = Rows { rows, width };
        m.norm(&on_x, &on_theta, weight, bias, &n, &inverse, &y, shape);
        let (mut right_n, mut right_y, mut right_inverse) = (x.clone(), vec![0.0; x.len()], vec![0.0; rows]);
        let norm = LayerNorm { weight: &theta[weight..][..width], bias: &theta[bias..] };
        kernels::layer_norm(norm, &mut right_n, &mut right_y, &mut right_inverse);
        let tolerance = if mean > 0.0 { 3e-4 } else { 1e-6 };
        assert!(distance(&read(&*m, &y), &wide(&right_y)) < tolerance, "{rows} {width}");

        let dy = normal(&mut s, x.len());
        let gradient = normal(&mut s, theta.len());
        let (on_dy, on_gradient) = (m.upload(&dy), m.upload(&gradient));
        let (n, inverse) = (m.upload(&right_n), m.upload(&right_inverse));
        m.norm_backward(&on_theta, weight, bias, &on_dy, &n, &inverse, &on_gradient, shape);
        let (mut right_dx, mut right_gradient) = (dy.clone(), gradient.clone());
        let (w, b) = right_gradient[weight..].split_at_mut(width);
        kernels::layer_norm_backward(norm.weight, &mut right_dx, &right_n, &right_inverse, w, b);
        assert!(distance(&read(&*m, &on_dy), &wide(&right_dx)) < 2e-6);
        assert!(distance(&read(&*m, &on_gradient), &wide(&right_gradient)) < 2e-6);
    }
}

#[test]
fn activations() {
    let Some(m) = machine() else { return };
    let mut s = stream("activations");
    let mut x: Vec<f32> = normal(&mut s, 3000).iter().map(|v| v * 4.0).collect();
    x.extend([0.0, -0.0, 100.0, -100.0, 1e-20]);
    for kind in [Activation::Gelu, Activation::GeluTanh, Activation::Relu] {
        let (on_x, slope) = (m.upload(&x), m.room(x.len()));
        m.activate(kind, &on_x, &slope);
        let (mut right, mut right_slope) = (x.clone(), vec![0.0; x.len()]);
        kernels::activate(kind, &mut right, &mut right_slope, 1);
        assert!(distance(&read(&*m, &on_x), &wide(&right)) < 1e-6, "{kind:?}");
        assert!(distance(&read(&*m, &slope), &wide(&right_slope)) < 1e-6, "{kind:?}");
        let g = m.upload(&x);
        m.multiply(&g, &slope);
        let right: Vec<f64> =
            x.iter().zip(&right_slope).map(|(a, b)| f64::from(*a) * f64::from(*b)).collect();
        assert!(distance(&read(&*m, &g), &right) < 1e-6);
    }
}

#[test]
fn masks_are_those_of_the_cpu_bit_for_bit() {
    let Some(m) = machine() else { return };
    let mut s = stream("masks");
    for _ in 0..4 {
        let (rows, width) = (1 + s.below(100) as usize, 1 + s.below(100) as usize);
        let first_row = s.below(100_000) as usize;
        let dropout = Dropout::new(0.3, s.below(u64::MAX), s.below(1 << 40), s.below(100));
        let masks = Masks { dropout, first_row };
        let (x, to) = (normal(&mut s, rows * width), normal(&mut s, rows * width));
        let on_x = m.upload(&x);
        m.drop_in_place(masks, &on_x, width);
        let mut right = x.clone();
        kernels::dropout_in_place(dropout, &mut right, width, first_row);
        assert!(read(&*m, &on_x) == right);
        let (on_to, on_x) = (m.upload(&to), m.upload(&x));
        m.add_dropped(masks, &on_to, &on_x, width);
        let mut right = to.clone();
        kernels::add_dropout(dropout, &mut right, &x, width, first_row);
        // A device may round x · scale before it adds: half an ulp of it, and one of the sum.
        for ((found, right), to) in read(&*m, &on_to).iter().zip(&right).zip(&to) {
            assert!(
                (found - right).abs() <= f32::EPSILON * ((right - to).abs() + right.abs()),
                "{found} {right}"
            );
        }
    }
}

/// Relations of random rows: each table or none of it, and heads that see what is related alone.
struct Drawn {
    numbers: Vec<u8>,
    count: usize,
    theta: Vec<f32>,
    tables: Tables<usize>,
    hidden: Option<(usize, u8)>,
}

impl Drawn {
    /// `which` has a bit for each of the tables and one for what is hidden; nothing without any.
    fn new(s: &mut Stream, which: usize, pairs: usize, (heads, size): (usize, usize)) -> Option<Self> {
        let count = 1 + s.below(7) as usize;
        let mut theta = normal(s, 3);
        let mut table = |bit: usize, len: usize| {
            let at = theta.len();
            (which & bit != 0).then(|| {
                theta.extend(normal(s, len));
                at
            })
        };
        let tables = Tables {
            bias: table(1, heads * count),
            keys: table(2, count * size),
            values: table(4, count * size),
        };
        let hidden = (which & 8 != 0).then(|| (s.below(heads as u64) as usize, s.below(count as u64) as u8));
        let numbers = (0..pairs).map(|_| s.below(count as u64) as u8).collect();
        (which != 0).then_some(Self { numbers, count, theta, tables, hidden })
    }

    /// Each table of what lies where the parameters do.
    fn of<'a>(&self, theta: &'a [f32], (heads, size): (usize, usize)) -> Tables<&'a [f32]> {
        let Tables { bias, keys, values } = self.tables;
        let part = |at: Option<usize>, len: usize| at.map(|at| &theta[at..at + len]);
        Tables {
            bias: part(bias, heads * self.count),
            keys: part(keys, self.count * size),
            values: part(values, self.count * size),
        }
    }

    fn upload(&self, m: &dyn Machine) -> (Buffer, Buffer) {
        let numbers: Vec<u32> = self.numbers.iter().map(|&number| u32::from(number)).collect();
        (m.upload_places(&numbers), m.upload(&self.theta))
    }

    fn related<'a>(&self, (numbers, theta): &'a (Buffer, Buffer)) -> Related<'a> {
        Related { numbers, count: self.count, theta, tables: self.tables, hidden: self.hidden }
    }
}

#[test]
fn attention() {
    let Some(m) = machine() else { return };
    let mut s = stream("attention");
    for (case, size) in
        [(0, 16), (1, 32), (2, 5), (3, 24)].into_iter().chain((4_usize..20).map(|case| (case, 8)))
    {
        let heads = 1 + s.below(3) as usize;
        let mut starts = vec![0];
        for _ in 0..1 + s.below(5) {
            // Some sequences of one row, some of more than two tiles.
            starts.push(starts.last().unwrap() + 1 + s.below(if case == 1 { 90 } else { 40 }) as usize);
        }
        let (rows, width) = (*starts.last().unwrap(), heads * size);
        let slopes: Vec<f32> = (1..=heads).map(|h| 0.5_f32.powi(h as i32)).collect();
        let dropout = if s.below(2) == 0 { Dropout::new(0.2, 3, 5, 7) } else { None };
        let first_row = s.below(1000) as usize;
        let (qkv, dcontext) = (normal(&mut s, rows * 3 * width), normal(&mut s, rows * width));
        let (on_tiles, on_slopes) = (m.tiles(&starts), m.upload(&slopes));
        let penalised = case < 2 || case == 19;
        let sequences = Sequences { starts: &starts };
        let shape = (heads, size);
        // Every set of tables and of what is hidden, from none on.
        let drawn = Drawn::new(&mut s, case.saturating_sub(4), sequences.squares(), shape);
        let there = drawn.as_ref().map(|drawn| drawn.upload(&*m));
        let form = Attention {
            heads,
            size,
            rows,
            slopes: penalised.then_some(&on_slopes),
            masks: Masks { dropout, first_row },
            tiles: &on_tiles,
            relations: drawn.as_ref().zip(there.as_ref()).map(|(drawn, there)| drawn.related(there)),
        };
        let on_qkv = m.upload(&qkv);
        let (context, sums) = (m.room(rows * width), m.room(heads * rows));
        m.attention(form, &on_qkv, &context, &sums).unwrap();
        let right_form = kernels::Attention {
            relations: drawn.as_ref().map(|drawn| Relations {
                numbers: &drawn.numbers,
                count: drawn.count,
                tables: drawn.of(&drawn.theta, shape),
                hidden: drawn.hidden,
            }),
            heads,
            size,
            slopes: penalised.then_some(&slopes),
            prefixes: None,
            dropout: dropout.map(|dropout| AttentionDropout { dropout, first_row }),
        };
        let mut weights = vec![0.0; heads * sequences.squares()];
        let mut right = vec![0.0; rows * width];
        kernels::attention(right_form, sequences, &qkv, &mut weights, &mut right);
        assert!(distance(&read(&*m, &context), &wide(&right)) < 2e-6, "{case}");

        // Gradients are added to.
        let before = drawn.as_ref().map_or_else(Vec::new, |drawn| normal(&mut s, drawn.theta.len()));
        let (on_dcontext, dqkv, gradient) = (m.upload(&dcontext), m.room(qkv.len()), m.upload(&before));
        m.attention_backward(form, &on_qkv, &context, &sums, &on_dcontext, &dqkv, &gradient);
        let mut right = vec![0.0; qkv.len()];
        let of_tables =
            kernels::attention_backward(right_form, sequences, &qkv, &weights, &dcontext, &mut right);
        assert!(distance(&read(&*m, &dqkv), &wide(&right)) < 3e-6, "{case}");
        if let Some(drawn) = &drawn {
            let found = read(&*m, &gradient);
            let mut right = wide(&before);
            let Tables { bias, keys, values } = drawn.tables;
            let all = [(bias, of_tables.bias), (keys, of_tables.keys), (values, of_tables.values)];
            for (at, table) in all {
                assert_eq!(at.is_some(), table.is_some(), "{case}");
                for (i, d) in at.into_iter().flat_map(|at| at..).zip(table.iter().flatten()) {
                    right[i] += f64::from(*d);
                }
            }
            assert!(distance(&found, &right) < 1e-5, "{case}");
        }
    }
}

/// Rows are kept at places in no order, hypotheses share some of them, and only the newest token of each asks.
#[test]
fn attention_of_the_newest_tokens() {
    let Some(m) = machine() else { return };
    let mut s = stream("newest");
    let cases =
        [(0, 16), (1, 32), (2, 5), (3, 24), (4, 64)].into_iter().chain((5_usize..21).map(|case| (case, 8)));
    for (case, size) in cases {
        let (heads, penalised) = (1 + s.below(3) as usize, case % 2 == 0);
        let (room, width) = (150, heads * size);
        let slopes: Vec<f32> = (1..=heads).map(|h| 0.5_f32.powi(h as i32)).collect();
        // What no hypothesis has must not be read: it is not a number.
        let mut cache = vec![f32::NAN; room * 2 * width];
        let on_cache = m.upload(&cache);
        let mut members: Vec<u32> = Vec::new();
        let mut starts = vec![0_u32];
        let mut places: Vec<u32> = (0..room as u32).collect();
        for _ in 0..1 + s.below(6) {
            let earlier = members.clone();
            for _ in 0..s.below(70) {
                let shared = !earlier.is_empty() && (s.below(2) == 0 || places.len() < 10);
                let from = if shared { earlier.len() } else { places.len() };
                let at = s.below(from as u64) as usize;
                members.push(if shared { earlier[at] } else { places.swap_remove(at) });
            }
            members.push(places.swap_remove(0));
            starts.push(members.len() as u32);
        }
        // First what was read before, then the newest: both by the kernel that keeps.
        let before: Vec<u32> = (0..room as u32).filter(|place| members.contains(place)).collect();
        let newest: Vec<u32> = starts[1..].iter().map(|&end| members[end as usize - 1]).collect();
        let mut qkv = Vec::new();
        for rows in [&before, &newest] {
            qkv = normal(&mut s, rows.len() * 3 * width);
            m.keep(&m.upload(&qkv), &m.upload_places(rows), &on_cache, width);
            for (row, &place) in qkv.chunks(3 * width).zip(rows) {
                cache[place as usize * 2 * width..][..2 * width].copy_from_slice(&row[width..]);
            }
        }
        let found = read(&*m, &on_cache);
        assert!(
            found.iter().zip(&cache).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
        );

        let context = m.room(newest.len() * width);
        let (on_starts, on_members) = (m.upload_places(&starts), m.upload_places(&members));
        let on_slopes = m.upload(&slopes);
        let drawn = Drawn::new(&mut s, case.saturating_sub(5), members.len(), (heads, size));
        let there = drawn.as_ref().map(|drawn| drawn.upload(&*m));
        let form = Newest {
            heads,
            size,
            slopes: penalised.then_some(&on_slopes),
            starts: &on_starts,
            members: &on_members,
            relations: drawn.as_ref().zip(there.as_ref()).map(|(drawn, there)| drawn.related(there)),
        };
        m.attention_of_newest(form, &m.upload(&qkv), &on_cache, &context).unwrap();
        let mut right = vec![0.0; newest.len() * width];
        for (r, ends) in starts.windows(2).enumerate() {
            let own = &members[ends[0] as usize..ends[1] as usize];
            // What relations add: to a score, and to a column of a value.
            let number =
                |j: usize| drawn.as_ref().map_or(0, |d| usize::from(d.numbers[ends[0] as usize + j]));
            let tables = drawn.as_ref().map(|d| d.of(&d.theta, (heads, size))).unwrap_or_default();
            let entry = |table: Option<&[f32]>, at: usize| table.map_or(0.0, |table| f64::from(table[at]));
            let count = drawn.as_ref().map_or(0, |d| d.count);
            let unseen = |head: usize, j: usize| {
                let hidden = drawn.as_ref().and_then(|d| d.hidden);
                let hides = |(from, hidden)| head >= from && number(j) == usize::from(hidden);
                hidden.is_some_and(hides) && j > 0 && j + 1 < own.len()
            };
            for head in 0..heads {
                let key =
                    |place: u32, c: usize| f64::from(cache[place as usize * 2 * width + head * size + c]);
                let score = |(j, &place): (usize, &u32)| {
                    let q = |c| f64::from(qkv[r * 3 * width + head * size + c]);
                    let related = |c: usize| entry(tables.keys, number(j) * size + c);
                    let dot: f64 = (0..size).map(|c| q(c) * (key(place, c) + related(c))).sum();
                    let bias = entry(tables.bias, head * count + number(j));
                    let away = (own.len() - 1 - j) as f64;
                    let penalty = if penalised { f64::from(slopes[head]) * away } else { 0.0 };
                    if unseen(head, j) {
                        f64::NEG_INFINITY
                    } else {
                        dot / (size as f64).sqrt() - penalty + bias
                    }
                };
                let scores: Vec<f64> = own.iter().enumerate().map(score).collect();
                let peak = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = scores.iter().map(|z| (z - peak).exp()).sum();
                for (j, (z, &place)) in scores.iter().zip(own).enumerate() {
                    for c in 0..size {
                        let value = key(place, width + c) + entry(tables.values, number(j) * size + c);
                        right[r * width + head * size + c] += (z - peak).exp() / sum * value;
                    }
                }
            }
        }
        assert!(distance(&read(&*m, &context), &right) < 2e-6, "{case}");
    }
}

#[test]
fn losses() {
    let Some(m) = machine() else { return };
    let mut s = stream("losses");
    let (rows, width) = (50, 663);
    let logits: Vec<f32> = normal(&mut s, rows * width).iter().map(|v| v * 5.0).collect();
    let mut targets: Vec<u32> = (0..rows).map(|_| s.below(width as u64) as u32).collect();
    targets[7] = u32::MAX;
    for smoothing in [0.0, 0.1] {
        let (on_logits, on_targets) = (m.upload(&logits), m.upload_places(&targets));
        let (losses, total) = (m.room(rows), m.upload(&[0.0; 3]));
        m.cross_entropy(&on_logits, &on_targets, smoothing, &losses, Rows { rows, width }, true);
        m.sum(&losses, false, &total, 2);
        let mut right = logits.clone();
        let ce = kernels::cross_entropy(&mut right, &targets, smoothing, true);
        assert!(distance(&read(&*m, &on_logits), &wide(&right)) < 1e-6);
        let found = f64::from(read(&*m, &total)[2]);
        assert!((found / ce.loss - 1.0).abs() < 1e-6, "{found} {}", ce.loss);
    }
}

#[test]
fn rows_that_are_picked_and_added() {
    let Some(m) = machine() else { return };
    let mut s = stream("rows");
    let (rows, d, tokens) = (70, 24, 30);
    let theta = normal(&mut s, 5 + tokens * d + 40 * d);
    let ids: Vec<u32> = (0..rows).map(|_| s.below(tokens as u64) as u32).collect();
    let places: Vec<u32> = (0..rows).map(|_| s.below(40) as u32).collect();
    let at = 5 + tokens * d;
    let (on_theta, on_ids, on_places) = (m.upload(&theta), m.upload_places(&ids), m.upload_places(&places));
    let (h, shape) = (m.room(rows * d), Rows { rows, width: d });
    let vectors = Part { of: &on_theta, at: 5 };
    let apart = m.upload(&theta[at..]);
    for (part, placed) in
        [(Part { of: &on_theta, at }, true), (Part { of: &apart, at: 0 }, true), (vectors, false)]
    {
        m.embed(vectors, placed.then_some((part, &on_places)), &on_ids, 3.0, &h, shape);
        let right: Vec<f64> = (0..rows * d)
            .map(|e| {
                let (r, c) = (e / d, e % d);
                let own = f64::from(theta[5 + ids[r] as usize * d + c]);
                let place = if placed { f64::from(theta[at + places[r] as usize * d + c]) } else { 0.0 };
                3.0 * own + place
            })
            .collect();
        assert!(distance(&read(&*m, &h), &right) < 1e-6);
    }

    let (x, gradient) = (normal(&mut s, rows * d), normal(&mut s, theta.len()));
    let (on_x, on_gradient) = (m.upload(&x), m.upload(&gradient));
    let groups = Groups::new(&*m, ids.iter().map(|&id| id as usize));
    m.add_groups(&on_x, &groups, Part { of: &on_gradient, at: 5 }, 2.0, d);
    let mut right = wide(&gradient);
    for (r, &id) in ids.iter().enumerate() {
        for c in 0..d {
            right[5 + id as usize * d + c] += 2.0 * f64::from(x[r * d + c]);
        }
    }
    assert!(distance(&read(&*m, &on_gradient), &right) < 1e-6);

    let picks: Vec<u32> =
        (0..500).map(|i| if i % 7 == 0 { u32::MAX } else { s.below(x.len() as u64) as u32 }).collect();
    let y = m.room(picks.len());
    m.gather(&on_x, &m.upload_places(&picks), &y);
    let right: Vec<f64> = picks.iter().map(|&p| x.get(p as usize).map_or(0.0, |&v| f64::from(v))).collect();
    assert!(wide(&read(&*m, &y)) == right);
    let starts: Vec<u32> = (0..=100).map(|i| i * 5).collect();
    let members: Vec<u32> = (0..500).map(|_| s.below(x.len() as u64) as u32).collect();
    let y = m.room(100);
    m.gather_sum(&on_x, &m.upload_places(&starts), &m.upload_places(&members), &y);
    let right: Vec<f64> =
        members.chunks(5).map(|c| c.iter().map(|&p| f64::from(x[p as usize])).sum()).collect();
    assert!(distance(&read(&*m, &y), &right) < 1e-6);

    let to = m.upload(&x);
    m.add(Part { of: &to, at: 0 }, &on_x);
    m.copy(&h, &to);
    let right: Vec<f32> = x.iter().map(|v| v + v).collect();
    assert!(read(&*m, &h) == right);
    m.fill(&h, 2.5);
    assert!(read(&*m, &h).iter().all(|&v| v == 2.5));
}

#[test]
fn turns() {
    let Some(m) = machine() else { return };
    let mut s = stream("turns");
    let (rows, heads, size) = (40, 3, 8);
    let table = kernels::rotary_table(60, size);
    let positions: Vec<usize> = (0..rows).map(|_| s.below(60) as usize).collect();
    let qkv = normal(&mut s, rows * 3 * heads * size);
    let places: Vec<u32> = positions.iter().map(|&p| p as u32).collect();
    let (on_table, on_qkv, on_places) = (m.upload(&table), m.upload(&qkv), m.upload_places(&places));
    m.rotary(&on_table, &on_qkv, &on_places, heads, size, false);
    let mut right = qkv.clone();
    kernels::rotary(&table, &mut right, &positions, heads, size, false);
    assert!(distance(&read(&*m, &on_qkv), &wide(&right)) < 1e-6);
    m.rotary(&on_table, &on_qkv, &on_places, heads, size, true);
    assert!(distance(&read(&*m, &on_qkv), &wide(&qkv)) < 1e-6);
}

#[test]
fn a_hundred_updates() {
    let Some(m) = machine() else { return };
    let mut s = stream("updates");
    let n = 5000;
    let theta = normal(&mut s, n);
    let (beta1, beta2, eps, lr, decay, ema): (f64, f64, f64, f64, f64, f64) =
        (0.9, 0.98, 1e-9, 1e-2, 0.1, 0.95);
    let mut right = wide(&theta);
    let (mut rm, mut rv, mut average) = (vec![0.0; n], vec![0.0; n], right.clone());
    let on = [m.upload(&theta), m.upload(&vec![0.0; n]), m.upload(&vec![0.0; n]), m.upload(&theta)];
    let gradient = m.room(n);
    for t in 1..=100 {
        let g = normal(&mut s, n);
        m.copy(&gradient, &m.upload(&g));
        let norm = m.upload(&[0.0]);
        m.sum(&gradient, true, &norm, 0);
        let square: f64 = g.iter().map(|&v| f64::from(v).powi(2)).sum();
        assert!((f64::from(read(&*m, &norm)[0]) / square - 1.0).abs() < 1e-6);
        let step = Step {
            clip: 0.5,
            beta1: beta1 as f32,
            beta2: beta2 as f32,
            rate: (lr / (1.0 - beta1.powi(t))) as f32,
            correction: (1.0 / (1.0 - beta2.powi(t))) as f32,
            eps: eps as f32,
        };
        // The first 3,000 decay, the others do not.
        m.adamw(&on[0], &on[1], &on[2], &gradient, step, (1.0 - lr * decay) as f32, 0, 3000);
        m.adamw(&on[0], &on[1], &on[2], &gradient, step, 1.0, 3000, n - 3000);
        m.average(&on[3], &on[0], ema as f32);
        for i in 0..n {
            let gi = 0.5 * f64::from(g[i]);
            rm[i] = beta1 * rm[i] + (1.0 - beta1) * gi;
            rv[i] = beta2 * rv[i] + (1.0 - beta2) * gi * gi;
            let (mh, vh): (f64, f64) = (rm[i] / (1.0 - beta1.powi(t)), rv[i] / (1.0 - beta2.powi(t)));
            let lambda = if i < 3000 { decay } else { 0.0 };
            right[i] -= lr * (mh / (vh.sqrt() + eps) + lambda * right[i]);
            average[i] = ema * average[i] + (1.0 - ema) * right[i];
        }
        assert!(t % 20 != 0 || read(&*m, &gradient).iter().all(|&v| v == 0.0));
    }
    assert!(distance(&read(&*m, &on[0]), &right) < 2e-5);
    assert!(distance(&read(&*m, &on[3]), &average) < 2e-5);
}

#[test]
fn patterns() {
    let Some(m) = machine() else { return };
    let mut s = stream("patterns");
    for d in [8, 128, 200] {
        let rows = 40;
        let mut starts = vec![0];
        let mut entries = Vec::new();
        for _ in 0..rows {
            entries.extend((0..s.below(33) as u32).map(|depth| 4 * depth + s.below(4) as u32));
            starts.push(entries.len() as u32);
        }
        let (theta, h) = (normal(&mut s, 40), normal(&mut s, rows * d));
        let columns = |e: usize| (e..d.max(128)).step_by(128).map(move |c| c % d);
        let mut right = wide(&h);
        let mut decays = wide(&theta);
        for r in 0..rows {
            for &e in &entries[starts[r] as usize..starts[r + 1] as usize] {
                for c in columns(e as usize) {
                    right[r * d + c] += f64::from(theta[8 + e as usize / 4]);
                    decays[8 + e as usize / 4] += f64::from(h[r * d + c]);
                }
            }
        }
        let (on_theta, on_h) = (m.upload(&theta), m.upload(&h));
        let (on_starts, on_entries) = (m.upload_places(&starts), m.upload_places(&entries));
        let shape = Rows { rows, width: d };
        let gradient = m.upload(&theta);
        m.patterns_backward(&on_h, &on_starts, &on_entries, Part { of: &gradient, at: 8 }, 32, shape);
        assert!(distance(&read(&*m, &gradient), &decays) < 2e-6, "{d}");
        m.add_patterns(&on_h, Part { of: &on_theta, at: 8 }, &on_starts, &on_entries, shape);
        assert!(distance(&read(&*m, &on_h), &right) < 1e-6, "{d}");
    }
}
