//! The regression and the area, by their definitions.

use fol_inference::audit::{Logistic, area, judge, standard_error};

use crate::common::drawn;

#[test]
fn the_area_is_the_share_of_pairs_in_order() {
    for item in 0..200 {
        let mut draw = drawn("area", item);
        let n = 1 + draw.below(30);
        let scores: Vec<f64> = (0..n).map(|_| draw.below(6) as f64).collect();
        let labels: Vec<bool> = (0..n).map(|_| draw.below(2) == 0).collect();
        let (mut sum, mut pairs) = (0.0, 0.0);
        for (a, is) in scores.iter().zip(&labels) {
            for (b, other) in scores.iter().zip(&labels).filter(|_| *is) {
                if !other {
                    pairs += 1.0;
                    sum += if a > b {
                        1.0
                    } else if a == b {
                        0.5
                    } else {
                        0.0
                    };
                }
            }
        }
        let wanted = if pairs == 0.0 { 0.5 } else { sum / pairs };
        assert!((area(&scores, &labels) - wanted).abs() < 1e-12);
    }
}

/// At the optimum no weight can be moved for the better.
#[test]
fn the_fit_is_an_optimum_and_finds_its_law() {
    let mut draw = drawn("fit", 0);
    let rows: Vec<Vec<f64>> = (0..4_000)
        .map(|_| {
            let x = draw.normal();
            // The third feature is the first one again, the fourth says nothing.
            vec![3.0 + 2.0 * x, draw.normal(), 3.0 + 2.0 * x, 7.0]
        })
        .collect();
    let labels: Vec<bool> = rows
        .iter()
        .map(|row| draw.uniform() < 1.0 / (1.0 + (-(row[0] - 3.0 - row[1] + 0.5)).exp()))
        .collect();
    let model = Logistic::fit(&rows, &labels);
    let error: Vec<f64> = rows
        .iter()
        .zip(&labels)
        .map(|(row, label)| f64::from(u8::from(*label)) - 1.0 / (1.0 + (-model.score(row)).exp()))
        .collect();
    for at in 0..2 {
        let gradient: f64 = rows.iter().zip(&error).map(|(row, e)| row[at] * e).sum();
        assert!(gradient.abs() / 4_000.0 < 1e-3, "{gradient}");
    }
    let slope = |a: [f64; 2], b: [f64; 2]| {
        model.score(&[a[0], a[1], a[0], 7.0]) - model.score(&[b[0], b[1], b[0], 7.0])
    };
    assert!((slope([4.0, 0.0], [3.0, 0.0]) - 1.0).abs() < 0.2);
    assert!((slope([3.0, 1.0], [3.0, 0.0]) + 1.0).abs() < 0.2);
    assert!(judge(&rows, &labels).0 > 0.8);
}

/// The formula of the error beside the spread of areas of labels that are told by nothing.
#[test]
fn the_error_is_the_spread() {
    let areas: Vec<f64> = (0..300)
        .map(|item| {
            let mut draw = drawn("spread", item);
            let scores: Vec<f64> = (0..200).map(|_| draw.normal()).collect();
            let labels: Vec<bool> = (0..200).map(|at| at % 2 == 0).collect();
            area(&scores, &labels)
        })
        .collect();
    let mean = areas.iter().sum::<f64>() / 300.0;
    let spread = (areas.iter().map(|a| (a - mean).powi(2)).sum::<f64>() / 299.0).sqrt();
    let wanted = standard_error(0.5, 100, 100);
    assert!((spread / wanted - 1.0).abs() < 0.25, "{spread} and {wanted}");
    assert!((mean - 0.5).abs() < 5.0 * wanted / 300f64.sqrt());
}
