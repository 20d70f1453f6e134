//! Term questions, answered by following equations.

use std::collections::BTreeMap;

use fol::task::Task;
use fol_inference::instance::{Format, Order};

use crate::common::{instances, space};

#[test]
fn the_answer_is_the_end_of_the_chain() {
    let mut space = space(Order::RuleFirst, Format::Term);
    space.depths = (1..=8).map(|depth| (depth, 1)).collect();
    let few = fol_inference::space::Space { names: 19, ..space.clone() };
    let all = instances("terms", space, 400).into_iter().map(|instance| (instance, 625));
    for (instance, names) in all.chain(instances("few terms", few, 400).into_iter().map(|i| (i, 19))) {
        let Task::Term { equations, asked, answer } = &instance.task else { panic!() };
        assert!(equations.iter().all(|(left, right)| left.0 < names && right.0 < names));
        let next: BTreeMap<_, _> = equations.iter().copied().collect();
        assert_eq!(next.len(), equations.len(), "no variable is on the left twice");
        let (mut at, mut steps) = (*asked, 0);
        while let Some(other) = next.get(&at) {
            (at, steps) = (*other, steps + 1);
            assert!(steps <= equations.len(), "a circle");
        }
        assert_eq!((at, steps), (*answer, instance.depth));
        assert_eq!(fol::task::decode(&fol::task::encode(&instance.task)).unwrap(), instance.task);
    }
}
