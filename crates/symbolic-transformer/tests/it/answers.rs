//! What is learned of tasks: the symbols behind ENTAILS or `<answer>`, and nothing of what is given.

use fol::notation::Code;
use fol::symbol::SymbolId;
use symbolic_transformer::batch::Batch;
use symbolic_transformer::config::ModelConfig;
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::learner::{Corpus, validate};
use symbolic_transformer::lstm::Lstm;
use symbolic_transformer::network::{Network, Noise};
use training::kernels::log_sum_exp;

const NOISE: Noise = Noise { seed: 0, update: 1, smoothing: 0.0 };

fn small() -> ModelConfig {
    ModelConfig {
        d_model: 16,
        n_layers: 2,
        n_heads: 2,
        d_ff: 32,
        dropout: 0.0,
        max_len: 64,
        ..ModelConfig::size("tiny").unwrap()
    }
}

fn networks() -> Vec<(&'static str, Box<dyn Network>)> {
    vec![
        ("transformer", Box::new(Explicit::in_code(small(), &Code::PLAIN).unwrap())),
        ("lstm", Box::new(Lstm::new(&small()).unwrap())),
    ]
}

fn corpus() -> Corpus {
    let mut corpus = Corpus::new();
    for words in [
        "PRED 0 COMMA LPAREN PRED 0 IMPLIES PRED 1 RPAREN ENTAILS PRED 1",
        "PRED 3 ENTAILS <unknown>",
        "PRED 0 COMMA PRED 2 <query> NOT PRED 2 <answer> FALSE",
        "VAR 0 EQUALS VAR 1 <sep> <query> VAR 0 <answer> VAR 1",
    ] {
        let symbols = words.split(' ').map(|label| SymbolId::from_label(label).unwrap());
        corpus.push(symbols, f64::NAN);
    }
    corpus
}

/// The loss by its definition: the logits of every row, and the targets of those behind the sign.
fn by_definition(network: &mut dyn Network, theta: &[f32], corpus: &Corpus) -> (f64, u64) {
    let (mut sum, mut count) = (0.0, 0);
    for sequence in corpus.iter() {
        let batch = Batch::new([sequence]);
        let logits = network.logits(theta, &batch).unwrap();
        let width = logits.len() / batch.rows();
        let sign = sequence.iter().position(|s| [SymbolId::ENTAILS, SymbolId::ANSWER].contains(s)).unwrap();
        for row in sign..sequence.len() - 1 {
            let row_logits = &logits[row * width..(row + 1) * width];
            let target = sequence[row + 1].index();
            sum += f64::from(log_sum_exp(row_logits)) - f64::from(row_logits[target]);
            count += 1;
        }
    }
    (sum, count)
}

#[test]
fn the_loss_is_that_of_the_answers() {
    let (all, answers) = (corpus(), corpus().answers_only().unwrap());
    // PRED 1 <eos>; <unknown> <eos>; FALSE <eos>; VAR 1 <eos>.
    assert_eq!((answers.targets(), answers.lengths()), (3 + 2 + 2 + 3, all.lengths()));
    for (name, mut network) in networks() {
        let theta = network.layout().initialise(3);
        let (sum, count) = by_definition(network.as_mut(), &theta, &all);
        assert_eq!(count, answers.targets());
        let batch = answers.batch(0..answers.len());
        let mut gradient = vec![0.0; theta.len()];
        let loss = network.gradient(&theta, &batch, NOISE, &mut gradient).unwrap();
        assert_eq!(loss.targets, count, "{name}");
        assert!((loss.sum - sum).abs() < 1e-4 * sum, "{name}: {} and {sum}", loss.sum);
        let scores = validate(network.as_mut(), &theta, &answers).unwrap();
        assert_eq!(scores.targets, count);
        assert!((scores.nll - sum).abs() < 1e-4 * sum, "{name}");
    }
}

/// The gradient of every parameter by central differences of the loss by its definition, along random directions within each
/// parameter; and none of it from what is given alone.
#[test]
fn the_gradient_is_that_of_the_answers() {
    for (name, mut network) in networks() {
        let (all, answers) = (corpus(), corpus().answers_only().unwrap());
        let theta = network.layout().initialise(5);
        let batch = answers.batch(0..answers.len());
        let mut gradient = vec![0.0; theta.len()];
        network.gradient(&theta, &batch, NOISE, &mut gradient).unwrap();
        let parameters: Vec<_> = network.layout().iter().map(|p| (p.name.clone(), p.range.clone())).collect();
        for (number, (parameter, range)) in parameters.into_iter().enumerate() {
            let own = &gradient[range.clone()];
            let norm = own.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            // The key's bias moves all scores of a row alike.
            let has_none = parameter.ends_with("k.bias") || parameter.contains("key.bias");
            assert!(norm.is_finite() && (has_none || norm > 0.0), "{name} {parameter}: {norm}");
            let mut draw = seeded::Family::named("directions").stream(number as u64);
            let direction: Vec<f64> = range.clone().map(|_| draw.normal()).collect();
            let length = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
            let step = 2e-2;
            let mut at = |sign: f64| {
                let mut moved = theta.clone();
                for (value, d) in moved[range.clone()].iter_mut().zip(&direction) {
                    *value += (sign * step * d / length) as f32;
                }
                by_definition(network.as_mut(), &moved, &all).0
            };
            let wanted = (at(1.0) - at(-1.0)) / (2.0 * step);
            let found = own.iter().zip(&direction).map(|(g, d)| f64::from(*g) * d).sum::<f64>() / length;
            assert!(
                (found - wanted).abs() < 2e-2 * wanted.abs().max(0.1),
                "{name} {parameter}: {found}, {wanted}"
            );
        }
        // A text without an answer gives no gradient at all.
        let mut given = Corpus::new();
        given.push([SymbolId::PRED, SymbolId::new(0).unwrap()], f64::NAN);
        let given = given.answers_only().unwrap();
        let mut nothing = vec![0.0; theta.len()];
        let loss = network.gradient(&theta, &given.batch(0..1), NOISE, &mut nothing).unwrap();
        assert_eq!((loss.targets, loss.sum), (0, 0.0));
        assert!(nothing.iter().all(|g| *g == 0.0));
    }
}

#[test]
fn answers_are_of_canonical_symbols_alone() {
    let law = fol::law::Law::named("uniform", &[]).unwrap();
    let code = Code::new(
        fol::notation::Tokenization::Compositional,
        fol::notation::Notation::Prefix,
        &law.signature(),
        None,
    )
    .unwrap();
    let mut corpus = Corpus::new();
    corpus.push([SymbolId::TRUE], 0.0);
    let coded = corpus.in_code(&code, "train").unwrap();
    assert!(coded.answers_only().is_err());
}
