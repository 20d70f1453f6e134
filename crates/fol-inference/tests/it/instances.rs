//! Labels and certificates of instances, judged by what does not draw them.

use fol::ast::Formula;
use fol::symbol::SymbolId;
use fol::task::{Answer, Task};
use fol_inference::asked::{Asked, asked};
use fol_inference::derivation::RULES;
use fol_inference::fragment::is_certain;
use fol_inference::generate::{Maker, check_proof};
use fol_inference::instance::{Format, Instance, Label, Order};
use fol_prover::prove::EVALUATIONS;
use fol_prover::rules::same;
use fol_prover::{Problem, check_model};

use crate::common::{drawn, follows, instances, space};

fn text(instance: &Instance) -> String {
    fol::task::print(&instance.task, fol::Style::Unicode)
}

fn not(formula: &Formula) -> Formula {
    Formula::Not(Box::new(formula.clone()))
}

/// The conclusion that an instance's certificate is about.
fn proved(instance: &Instance) -> Formula {
    match (&instance.task, instance.label) {
        (Task::Question { asked, .. }, Label::Follows) => asked.clone(),
        (Task::Question { asked: Formula::Not(body), .. }, Label::Denied) => body.as_ref().clone(),
        (Task::Question { asked, .. }, Label::Denied) => not(asked),
        (Task::Deduction { steps, .. }, _) => steps.last().unwrap().clone(),
        _ => unreachable!(),
    }
}

fn check(instance: &Instance, max_tokens: usize) {
    let (premises, all) = (instance.premises(), text(instance));
    let tokens = fol::task::encode(&instance.task);
    assert_eq!(fol::task::decode(&tokens).unwrap(), instance.task, "{all}");
    assert!(tokens.len() + 2 <= max_tokens, "{all}");
    assert_eq!(instance.rules.len(), instance.depth, "{all}");
    assert!(!follows(premises, &Formula::Truth(false)), "{all}: the premises contradict one another");
    assert!(is_certain(premises, None), "{all}");
    match instance.label {
        Label::Follows | Label::Denied => {
            let goal = proved(instance);
            assert!(is_certain(premises, Some(&goal)), "{all}");
            assert!(follows(premises, &goal), "{all}");
            assert!(!premises.iter().any(|premise| same(premise, &goal)), "{all}");
            assert_eq!(instance.proof.len(), instance.depth, "{all}");
            assert_eq!(check_proof(premises, &instance.proof), Ok(()), "{all}");
            assert!(same(&instance.proof.last().unwrap().conclusion, &goal), "{all}");
            assert!(instance.models.is_empty() && instance.edit.is_none());
            // Each premise that the proof uses is needed, whatever else is given.
            for at in 0..premises.len() {
                let is_used = instance.proof.iter().any(|step| step.from.contains(&at));
                let mut others = premises.to_vec();
                others.remove(at);
                assert_eq!(follows(&others, &goal), !is_used, "{all}: premise {at}");
            }
            // A step that is left out leaves a hole.
            if instance.proof.len() > 1 {
                assert!(check_proof(premises, &instance.proof[1..]).is_err(), "{all}");
            }
        }
        Label::Unknown => {
            assert!(instance.proof.is_empty() && instance.edit.is_some());
            if let Some(question) = instance.asked() {
                assert!(!follows(premises, question) && !follows(premises, &not(question)), "{all}");
                assert_eq!(instance.models.len(), 2);
                // One model makes the question false, the other one true.
                let goals = [question.clone(), not(question)];
                for goal in goals {
                    let problem = Problem::new(premises.to_vec(), Some(goal)).unwrap();
                    let fits =
                        instance.models.iter().filter(|m| check_model(&problem, m, EVALUATIONS).is_ok());
                    assert_eq!(fits.count(), 1, "{all}");
                }
            } else {
                assert_eq!(asked(premises), Asked::Nothing, "{all}");
                let problem = Problem::new(premises.to_vec(), Some(Formula::Truth(false))).unwrap();
                for model in &instance.models {
                    assert_eq!(check_model(&problem, model, EVALUATIONS), Ok(()), "{all}");
                }
            }
        }
    }
    match (&instance.task, instance.label) {
        (Task::Question { answer, .. }, label) => {
            let wanted = match label {
                Label::Follows => Answer::True,
                Label::Denied => Answer::False,
                Label::Unknown => Answer::Unknown,
            };
            assert_eq!(*answer, wanted);
        }
        (Task::Deduction { steps, .. }, Label::Unknown) => assert!(steps.is_empty()),
        (Task::Deduction { steps, .. }, _) => {
            assert!(matches!(asked(premises), Asked::For(_)), "{all}");
            let wanted = if instance.format == Format::Steps { instance.depth } else { 1 };
            assert_eq!(steps.len(), wanted, "{all}");
            let last = &instance.proof[instance.proof.len() - steps.len()..];
            assert!(last.iter().zip(steps).all(|(application, step)| application.conclusion == *step));
        }
        _ => unreachable!(),
    }
}

/// Few names: the same certificates, and no other name.
#[test]
fn instances_of_few_names() {
    for (order, names) in Order::ALL.into_iter().zip([16, 20]) {
        for format in [Format::Conclusion, Format::Question] {
            let mut space = space(order, format);
            space.names = names;
            let name = format!("few names {} {}", order.name(), format.name());
            for instance in instances(&name, space, 40) {
                check(&instance, 384);
                let tokens = fol::task::encode(&instance.task);
                let named = tokens.windows(2).filter(|pair| {
                    [SymbolId::PRED, SymbolId::CONST].contains(&pair[0]) && u32::from(pair[1]) >= names
                });
                assert_eq!(named.count(), 0, "{}", text(&instance));
            }
        }
    }
}

#[test]
fn every_label_has_its_certificate() {
    for order in Order::ALL {
        for format in [Format::Conclusion, Format::Steps, Format::Question] {
            let mut space = space(order, format);
            space.depths = (1..=8).map(|depth| (depth, 1)).collect();
            space.max_tokens = 512;
            let name = format!("certificates {} {}", order.name(), format.name());
            // One of eight depths is in none of so many with a probability of 5e-10.
            let all = instances(&name, space, 160);
            all.iter().for_each(|instance| check(instance, 512));
            for label in Label::ALL {
                let is_there = all.iter().any(|instance| instance.label == label);
                assert_eq!(
                    is_there,
                    format == Format::Question || label != Label::Denied,
                    "{}",
                    label.name()
                );
            }
            for depth in 1..=8 {
                assert!(all.iter().any(|instance| instance.depth == depth), "{depth}");
            }
        }
    }
}

/// Each rule is applied in some proof, and each small edit makes some label unknown.
#[test]
fn every_rule_and_every_edit_is_met() {
    let (mut rules, mut edits) = (Vec::new(), Vec::new());
    for order in Order::ALL {
        for instance in instances("rules", space(order, Format::Question), 600) {
            rules.extend(instance.proof.iter().map(|step| step.rule));
            edits.extend(instance.edit);
        }
    }
    for rule in RULES {
        assert!(rules.contains(&rule), "{}", rule.name());
    }
    for edit in fol_inference::edit::Edit::ALL {
        assert!(edits.contains(&edit), "{}", edit.name());
    }
    assert!(edits.contains(&fol_inference::edit::Edit::Rename));
}

/// Labels are fair, and depths are as their weights say: what fits more easily is not drawn more often.
#[test]
fn labels_and_depths_have_their_shares() {
    let count = 1_500;
    let all = instances("shares", space(Order::RuleFirst, Format::Question), count);
    let within = |found: usize, share: f64| {
        let (n, error) = (count as f64, (share * (1.0 - share) / count as f64).sqrt());
        assert!((found as f64 / n - share).abs() < 4.5 * error, "{found} of {n}, {share} expected");
    };
    for label in Label::ALL {
        within(all.iter().filter(|instance| instance.label == label).count(), 1.0 / 3.0);
    }
    for (depth, weight) in [(1, 100.0), (2, 40.0), (3, 35.0), (4, 20.0), (5, 5.0)] {
        within(all.iter().filter(|instance| instance.depth == depth).count(), weight / 200.0);
    }
    for label in Label::ALL {
        let of = |instance: &&Instance| instance.label == label;
        let negated = |instance: &&Instance| matches!(instance.asked(), Some(Formula::Not(_)));
        let (own, all) = (all.iter().filter(of).filter(negated).count(), all.iter().filter(of).count());
        let error = 0.5 / (all as f64).sqrt();
        assert!((own as f64 / all as f64 - 0.5).abs() < 4.5 * error, "{}: {own} of {all}", label.name());
    }
}

/// What was drawn before does not matter.
#[test]
fn an_instance_is_a_function_of_its_stream() {
    let mut one = Maker::new(space(Order::LabelFirst, Format::Conclusion)).unwrap();
    let mut other = one.clone();
    let forth: Vec<Instance> = (0..8).map(|item| one.instance(&mut drawn("order", item)).unwrap()).collect();
    let back: Vec<Instance> =
        (0..8).rev().map(|item| other.instance(&mut drawn("order", item)).unwrap()).collect();
    assert!(forth.iter().eq(back.iter().rev()));
    assert_ne!(forth[0], forth[1]);
}
