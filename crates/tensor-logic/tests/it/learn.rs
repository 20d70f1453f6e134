//! Steps that cost what they touch: the parameters that come of them are, to the last bit, those of an engine that
//! gives whole gradients.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request, Slope, Value};
use tensor_logic::error::Result;
use tensor_logic::fast::{Fast, Storage};
use tensor_logic::learn::minimize;
use tensor_logic::program::{Action, TensorId};
use tensor_logic::start::all_start_values;

const BUDGET: Budget = Budget { tuples: 1 << 30, bytes: 4 << 30 };

/// An engine that lists nothing and keeps its parameters.
struct Whole(Auto);

impl Engine for Whole {
    fn values(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Value>> {
        self.0.values(request, goals)
    }
    fn derived(&self) -> &[(String, u64)] {
        self.0.derived()
    }
}

/// An engine that counts what it lists.
struct Counted(Auto, usize);

impl Engine for Counted {
    fn values(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Value>> {
        self.0.values(request, goals)
    }
    fn listed(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Slope>> {
        let slopes = self.0.listed(request, goals)?;
        self.1 += slopes.iter().filter(|slope| matches!(slope, Slope::Listed(_))).count();
        Ok(slopes)
    }
    fn release(&mut self, parameter: TensorId) {
        self.0.release(parameter);
    }
    fn derived(&self) -> &[(String, u64)] {
        self.0.derived()
    }
}

fn learned(text: &str, engine: &mut dyn Engine) -> (f64, Vec<(TensorId, Vec<u64>)>) {
    let program =
        crate::common::engines::analysed(text).unwrap_or_else(|reports| panic!("{text}\n{reports:?}"));
    let query = program.actions.iter().find_map(|action| match action {
        Action::Query(query) => Some((query.tensor, query.directives.minimize.clone()?)),
        _ => None,
    });
    let (goal, settings) = query.unwrap();
    let mut parameters: Parameters = all_start_values(&program);
    let done =
        minimize(engine, &program, BUDGET, &mut parameters, goal, &settings, &mut |_, _, _| {}).unwrap();
    let mut found: Vec<(TensorId, Vec<u64>)> =
        parameters.iter().map(|(id, values)| (*id, values.iter().map(|v| v.to_bits()).collect())).collect();
    found.sort_by_key(|(id, _)| *id);
    (done.last, found)
}

const LISTS: &str = "n : 600\nd : 3\n
E[n, d] ~ normal(0, 1)
W[d] ~ normal(0, 1)
Pick(1, 7); Pick(1, 9); Pick(2, 599); Pick(3, 7); Pick(4, 100); Pick(5, 0); Pick(6, 9); Pick(7, 300)
";

#[test]
fn listed_steps_are_those_of_whole_gradients() {
    let bodies = [
        // Smooth: a batch looks at what its gradient lists.
        "H(s, d) += Pick(s, n) E[n, d]\nOut(s) += W[d] tanh(H(s, d))\nLoss += (Out(s) - s)^2",
        // What is chosen by a value is looked at without a gradient.
        "H(s, d) max= Pick(s, n) E[n, d]\nOut(s) += W[d] H(s, d)\nLoss += (Out(s) - s)^2",
        "H(s, d) += (Pick(s, n) E[n, d] | E[n, d] > 0)\nOut(s) += W[d] H(s, d)\nLoss += (Out(s) - s)^2",
        "H(s, d) += Pick(s, n) E[n, d] step(E[n, 0])\nOut(s) += W[d] H(s, d)\nLoss += (Out(s) - s)^2",
        // The gradient has all elements.
        "H(s, d) += Pick(s, n) E[n, d]\nOut(s) += W[d] H(s, d)\nLoss += (Out(s) - s)^2 + 0.01 E[n, d]^2",
        // A rule over the index of the batches.
        "Seen(n) <- Pick(s, n)\nH[n, d] = Seen(n) E[n, d]\nLoss += (Pick(s, n) H[n, d] W[d] - s)^2",
    ];
    let options = [
        "opt=sgd, lr=0.01, steps=9",
        "opt=sgd, lr=0.01, momentum=0.9, steps=9",
        "opt=adam, lr=0.01, steps=9",
        "opt=adam, lr=0.01, clip=0.1, steps=9",
        "opt=adam, lr=0.01, weight_decay=0.1, steps=5",
        "opt=adamw, lr=0.01, weight_decay=0.1, epochs=4, batch=s, size=2",
        "opt=adam, lr=0.01, epochs=5, batch=s, size=2, shuffle=1",
        "opt=adam, lr=0.01, epochs=5, batch=s, size=3, clip=0.5",
        "opt=sgd, lr=0.01, momentum=0.5, epochs=5, batch=s, size=1",
        // What catches up takes every missed step at that step's own rate.
        "opt=adam, lr=0.01, schedule=cosine, min_lr=0.001, warmup=3, epochs=5, batch=s, size=2",
        "opt=adamw, lr=0.01, weight_decay=0.2, schedule=linear, epochs=4, batch=s, size=3, shuffle=1",
    ];
    let mut listed = 0;
    for body in bodies {
        for option in options {
            let text = format!("{LISTS}{body}\nLoss? @minimize({option})");
            let auto = || Auto::new(Box::new(Fast::with_storage(Storage::Sparse)));
            let whole = learned(&text, &mut Whole(auto()));
            let mut engine = Counted(auto(), 0);
            let found = learned(&text, &mut engine);
            listed += usize::from(engine.1 > 0);
            assert_eq!(found.0.to_bits(), whole.0.to_bits(), "{text}: {} and {}", found.0, whole.0);
            for ((id, found), (other, whole)) in found.1.iter().zip(&whole.1) {
                assert_eq!(id, other);
                let differs = found.iter().zip(whole).position(|(a, b)| a != b);
                assert_eq!(differs, None, "{text}: tensor {}", id.0);
            }
        }
    }
    assert!(listed > 30, "only {listed} runs had listed gradients");
}

/// The start values of `W` by the tuples of its elements, written out.
fn started(text: &str) -> std::collections::BTreeMap<String, u64> {
    let program = crate::common::engines::analysed(text).unwrap();
    let (id, values) = all_start_values(&program).into_iter().next().unwrap();
    let places = &program.tensor(id).places;
    let domains: Vec<_> = places.iter().filter_map(|place| place.domain.clone()).collect();
    let named = |at| {
        let tuple = tensor_logic::value::element(&domains, at);
        tuple.iter().map(|value| program.symbols.show(*value)).collect::<Vec<_>>().join(", ")
    };
    values.iter().enumerate().map(|(at, value)| (named(at), value.to_bits())).collect()
}

#[test]
fn start_values_are_of_elements_wherever_they_are_stored() {
    let more = [
        // The second place grows, and everything moves.
        ("i : 3\nj : 4", "i : 5\nj : 7"),
        // A place begins elsewhere.
        ("i : 1..3\nj : 2", "i : -2..4\nj : 0..5"),
        // Names that come before and between the others.
        ("i : {Bob, Dora}\nj : 2", "i : {Alice, Bob, Carol, Dora}\nj : 3"),
        // Integers with gaps and symbols.
        ("i : {2, 9}\nj : {Red, Blue}", "i : {2, 5, 9}\nj : {Green, Red, Blue}"),
    ];
    for start in ["normal(0, 1)", "uniform(-1, 1)"] {
        for (small, large) in more {
            let of = |domains| started(&format!("{domains}\nW[i, j] ~ {start}\nY = W[i, j]\nY?"));
            let (small, large) = (of(small), of(large));
            assert!(small.len() < large.len());
            for (element, value) in &small {
                assert_eq!(Some(value), large.get(element), "{element}");
            }
            let distinct: std::collections::BTreeSet<u64> = large.values().copied().collect();
            assert_eq!(distinct.len(), large.len(), "no two elements start alike");
        }
    }
    // Another name or seed, and every element starts elsewhere.
    let of = |text: &str| started(&format!("i : 4\n{text}"));
    let one = of("W[i] ~ normal(0, 1)\nY = W[i]\nY?");
    for other in ["V[i] ~ normal(0, 1)\nY = V[i]\nY?", "@seed(1)\nW[i] ~ normal(0, 1)\nY = W[i]\nY?"] {
        assert!(of(other).values().zip(one.values()).all(|(a, b)| a != b), "{other}");
    }
}
