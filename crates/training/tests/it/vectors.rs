//! The same bits with every set of vector instructions that the processor has.

use std::process::Command;

use seeded::Family;
use training::kernels::{
    Activation, Attention, AttentionDropout, Dropout, LayerNorm, LstmSaved, LstmStep, Relations, Sequences,
    Tables, VECTORS, activate, activate_backward, add_columns, add_dropout, attention, attention_backward,
    cross_entropy, dropout_in_place, exp, instruction_set, instruction_sets, layer_norm, layer_norm_backward,
    log_sum_exp, lstm_step, lstm_step_backward, rotary, rotary_table, scale_in_place, softmax_in_place,
};

/// The digest of what every kernel makes of the same numbers, on sizes that leave rests behind whole vectors.
fn digest() -> String {
    let mut stream = Family::named("vectors").stream(0);
    let mut random = |len: usize| -> Vec<f32> { (0..len).map(|_| 2.0 * stream.normal() as f32).collect() };
    let mut hasher = blake3::Hasher::new();
    let mut keep = |x: &[f32]| {
        for v in x {
            hasher.update(&v.to_bits().to_le_bytes());
        }
    };
    for (rows, width) in [(1, 1), (3, 17), (65, 33), (130, 7), (2, 257)] {
        let n = rows * width;
        let x = random(n);
        keep(&x.iter().map(|&v| exp(v)).collect::<Vec<f32>>());
        for kind in [Activation::Gelu, Activation::GeluTanh, Activation::Relu] {
            let (mut y, mut slope, mut g) = (x.clone(), vec![0.0; n], random(n));
            activate(kind, &mut y, &mut slope, width);
            activate_backward(&mut g, &slope, width);
            [y, slope, g].iter().for_each(|v| keep(v));
        }
        let (weight, bias) = (random(width), random(width));
        let (mut normal, mut y, mut inverse) = (x.clone(), vec![0.0; n], vec![0.0; rows]);
        layer_norm(LayerNorm { weight: &weight, bias: &bias }, &mut normal, &mut y, &mut inverse);
        let (mut g, mut gw, mut gb) = (random(n), vec![0.0; width], vec![0.0; width]);
        layer_norm_backward(&weight, &mut g, &normal, &inverse, &mut gw, &mut gb);
        [y, normal, inverse, g, gw, gb].iter().for_each(|v| keep(v));
        let mut soft = x.clone();
        soft.chunks_mut(width).for_each(|row| {
            keep(&[log_sum_exp(row)]);
            softmax_in_place(row);
        });
        let targets: Vec<u32> = (0..rows).map(|r| (r * 7 % width) as u32).collect();
        let mut logits = x.clone();
        let entropy = cross_entropy(&mut logits, &targets, 0.1, true);
        keep(&[entropy.loss as f32]);
        let dropout = Dropout::new(0.3, 1, 2, 3);
        let (mut dropped, mut added) = (x.clone(), random(n));
        dropout_in_place(dropout, &mut dropped, width, 5);
        add_dropout(dropout, &mut added, &x, width, 5);
        let mut columns = vec![0.0; width];
        add_columns(&x, &mut columns);
        let mut scaled = x.clone();
        scale_in_place(&mut scaled, 0.3);
        [soft, logits, dropped, added, columns, scaled].iter().for_each(|v| keep(v));

        let (mut gates, before) = (random(4 * n), random(n));
        let (mut cell, mut squashed, mut output) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let step =
            LstmStep { gates: &mut gates, cell: &mut cell, squashed: &mut squashed, output: &mut output };
        lstm_step(step, &before, width);
        let saved = LstmSaved { gates: &gates, squashed: &squashed, before: &before };
        let (dh, mut dcell, mut dgates) = (random(n), random(n), vec![0.0; 4 * n]);
        lstm_step_backward(saved, &dh, &mut dcell, &mut dgates, width);
        [gates, cell, squashed, output, dcell, dgates].iter().for_each(|v| keep(v));
    }
    // Two heads of six; sequences of one, nine and five rows.
    let (heads, size, starts) = (2, 6, [0, 1, 10, 15]);
    let width = heads * size;
    let mut qkv = random(15 * 3 * width);
    let positions: Vec<usize> = (0..15).collect();
    rotary(&rotary_table(15, size), &mut qkv, &positions, heads, size, false);
    let dropout = Dropout::new(0.2, 4, 5, 6).map(|dropout| AttentionDropout { dropout, first_row: 3 });
    let sequences = Sequences { starts: &starts };
    let numbers: Vec<u8> = (0..sequences.squares()).map(|i| (i * i % 7) as u8).collect();
    let (bias, table) = (random(2 * 7), random(7 * 6));
    let tables = Tables { bias: Some(bias.as_slice()), keys: Some(&table), values: Some(&table) };
    let relations = Some(Relations { numbers: &numbers, count: 7, tables, hidden: Some((1, 3)) });
    let form = Attention { heads, size, slopes: Some(&[0.5, 0.25]), prefixes: None, relations, dropout };
    let (mut weights, mut context) = (vec![0.0; heads * sequences.squares()], vec![0.0; 15 * width]);
    attention(form, sequences, &qkv, &mut weights, &mut context);
    let (dcontext, mut dqkv) = (random(15 * width), vec![0.0; 15 * 3 * width]);
    let tables = attention_backward(form, sequences, &qkv, &weights, &dcontext, &mut dqkv);
    [tables.bias, tables.keys, tables.values].into_iter().flatten().for_each(|v| keep(&v));
    [qkv, weights, context, dqkv].iter().for_each(|v| keep(v));
    hasher.finalize().to_hex().to_string()
}

#[test]
fn the_instruction_set_changes_no_bit() {
    if std::env::var_os(VECTORS).is_some() {
        println!("found {} {}", instruction_set(), digest());
        return;
    }
    let here = digest();
    let sets: Vec<&str> = instruction_sets().collect();
    assert!(sets.contains(&"plain"));
    for set in sets {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["the_instruction_set", "--nocapture"]).env(VECTORS, set).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(&format!("found {set} {here}")), "{set}, wanted {here}:\n{said}");
    }
}

/// Every kernel against its composed form, with each set of instructions.
#[test]
fn every_instruction_set_agrees_with_the_composed_forms() {
    if std::env::var_os(VECTORS).is_some() {
        return;
    }
    for set in instruction_sets() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.arg("composed::").env(VECTORS, set).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{set}:\n{said}");
        assert!(said.contains("test composed::norms ... ok"), "{set} ran no test:\n{said}");
    }
}
