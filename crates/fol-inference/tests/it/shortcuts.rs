//! Numbers of an instance do not tell its label: a logistic regression, fitted on instances and judged on others.

use fol_inference::audit::{Logistic, area, judge, standard_error};
use fol_inference::generate::Maker;
use fol_inference::instance::{Format, Instance, Label, Order};
use fol_inference::shallow::features;
use rayon::prelude::*;

use crate::common::{drawn, space};

/// Half of them are judged: the error of an area is below .014, a quarter of what is allowed.
const INSTANCES: u64 = 6_000;
/// The largest area that is allowed.
const ALLOWED: f64 = 0.55;

fn sample(order: Order, format: Format) -> Vec<Instance> {
    let maker = Maker::new(space(order, format)).unwrap();
    let name = format!("shortcuts {} {}", order.name(), format.name());
    (0..INSTANCES)
        .into_par_iter()
        .map_init(|| maker.clone(), |maker, item| maker.instance(&mut drawn(&name, item)).unwrap())
        .collect()
}

fn rows(instances: &[Instance]) -> Vec<Vec<f64>> {
    instances.iter().map(|instance| features(instance.premises(), instance.asked()).to_vec()).collect()
}

fn is(instances: &[Instance], label: Label) -> Vec<bool> {
    instances.iter().map(|instance| instance.label == label).collect()
}

/// Both samplers, each for itself and across: fitted on the one, judged on the other.
#[test]
fn shallow_features_do_not_tell_labels() {
    for format in [Format::Conclusion, Format::Question] {
        let samples = Order::ALL.map(|order| sample(order, format));
        let labels: &[Label] =
            if format == Format::Question { &Label::ALL } else { &[Label::Follows, Label::Unknown] };
        for label in labels {
            let name = format!("{}, {}", format.name(), label.name());
            for (instances, order) in samples.iter().zip(Order::ALL) {
                let (found, error) = judge(&rows(instances), &is(instances, *label));
                assert!(error < 0.014, "{error}");
                assert!(found <= ALLOWED, "{name}, {}: {found} ± {error}", order.name());
            }
            for (fitted, judged) in [(0, 1), (1, 0)] {
                let model = Logistic::fit(&rows(&samples[fitted]), &is(&samples[fitted], *label));
                let scores: Vec<f64> = rows(&samples[judged]).iter().map(|row| model.score(row)).collect();
                let wanted = is(&samples[judged], *label);
                let found = area(&scores, &wanted);
                let positives = wanted.iter().filter(|label| **label).count();
                let error = standard_error(found, positives, wanted.len() - positives);
                assert!(found <= ALLOWED, "{name}, across: {found} ± {error}");
            }
        }
        // The instrument sees what there would be to see: a premise that is dropped and not replaced.
        let instances = &samples[0];
        let dropped: Vec<Vec<f64>> = instances
            .iter()
            .map(|instance| {
                let from = usize::from(instance.label == Label::Unknown);
                let premises = instance.premises().get(from..).unwrap_or_default();
                features(premises, instance.asked()).to_vec()
            })
            .collect();
        let (found, _) = judge(&dropped, &is(instances, Label::Unknown));
        assert!(found > ALLOWED + 0.05, "{found}");
    }
}
