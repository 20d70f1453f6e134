//! The corpus on the reference interpreter: text in, JSON out, compared with what is expected.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its cases has failed")]

use crate::common;
use serde_json::Value as Json;
use tensor_logic::analyse::analyse;
use tensor_logic::answer::json;
use tensor_logic::ast;
use tensor_logic::engine::{Budget, Engine, Parameters, Value};
use tensor_logic::error::{Places, Refusal};
use tensor_logic::function::UserFunctions;
use tensor_logic::lower::{InSemiring, NoFiles, Options};
use tensor_logic::program::Program;
use tensor_logic::reference::Reference;
use tensor_logic::run::{Host, Outcome, refusals as refusals_without_a_run, run};

const BUDGET: Budget = Budget { tuples: 100_000, bytes: 1 << 30 };

fn analysed(text: &str, semiring: Option<InSemiring>) -> Result<Program, Vec<Refusal>> {
    let options = Options { semiring, ..Options::default() };
    let analysed = analyse(text, &mut NoFiles, &UserFunctions::default(), &options)?;
    Ok(analysed.program)
}

/// A host without a world.
pub(crate) struct Alone<'a>(pub(crate) &'a str);

impl Host for Alone<'_> {
    fn write(
        &mut self,
        _: &Program,
        _: &str,
        _: tensor_logic::program::TensorId,
        _: &Value,
        _: ast::Span,
    ) -> Result<(), Refusal> {
        Ok(())
    }

    fn minimize(
        &mut self,
        _: &mut dyn Engine,
        _: &Program,
        _: Budget,
        _: &mut Parameters,
        _: tensor_logic::program::TensorId,
        minimize: &tensor_logic::program::Minimize,
    ) -> Result<tensor_logic::answer::Minimized, Refusal> {
        Err(Refusal::new(tensor_logic::error::Code::NotYet, minimize.span, "learning"))
    }

    fn in_semiring(&mut self, asked: InSemiring) -> Result<Program, Refusal> {
        analysed(self.0, Some(asked)).map_err(|mut reports| reports.remove(0))
    }
}

fn answers(text: &str) -> (Outcome, Program) {
    let program = analysed(text, None);
    assert_eq!(program.as_ref().err(), None, "{text}");
    let program = program.unwrap();
    let outcome = run(&program, text, BUDGET, &mut Reference::default(), &mut Alone(text));
    (outcome, program)
}

fn queries(outcome: &Outcome, program: &Program) -> Json {
    let mut out = String::new();
    json::list(&mut out, &outcome.answers, |out, answer| json::answer(out, &program.symbols, answer));
    serde_json::from_str(&out).unwrap()
}

#[test]
fn answers_and_reports_are_these_bytes() {
    let text = "i : 2\nA[i] = [0.1, 1e300]\nR(\"a \\\"b\\\"\", 3) = -0.5\nB max= A[i+5]\nA?\nR(x, y)?\nB?\nZ = A[i]\nZ[i | i=7]?";
    let (outcome, program) = answers(text);
    let mut found = String::new();
    for answer in &outcome.answers {
        json::answer(&mut found, &program.symbols, answer);
        found.push('\n');
    }
    json::report(&mut found, &Places::new(text), outcome.refusal.as_ref().unwrap());
    let wanted = concat!(
        r#"{"text": "A?", "line": 5, "kind": "tensor", "type": "real", "indices": ["0"], "domains": [{"from": 0, "to": 1}], "values": [0.1, 1e300]}"#,
        "\n",
        r#"{"text": "R(x, y)?", "line": 6, "kind": "relation", "type": "real", "indices": ["x", "y"], "tuples": [["a \"b\"", 3]], "values": [-0.5]}"#,
        "\n",
        r#"{"text": "B?", "line": 7, "kind": "scalar", "type": "real", "value": "-inf"}"#,
        "\n",
        r#"{"code": "unknown-evidence", "message": "`i` takes no value `7`", "line": 9, "column": 7, "end_line": 9, "end_column": 8, "labels": [], "help": "its values are: 0, 1"}"#,
    );
    assert_eq!(found, wanted);
}

/// The first difference between what came out and what is expected, as the cases' README says.
fn difference(found: &Json, wanted: &Json, path: &str) -> Option<String> {
    match wanted {
        Json::Object(wanted) => wanted.iter().find_map(|(key, value)| {
            if let Some(name) = key.strip_suffix("_between") {
                let number = found[name].as_f64().unwrap_or(f64::NAN);
                let inside = value[0].as_f64()? <= number && number <= value[1].as_f64()?;
                return (!inside).then(|| format!("{path}.{name}: {number} is not in {value}"));
            }
            difference(&found[key], value, &format!("{path}.{key}"))
        }),
        Json::Array(items) => {
            if found.as_array().is_none_or(|found| found.len() != items.len()) {
                return Some(format!("{path}: {found} instead of {wanted}"));
            }
            let pairs = items.iter().enumerate();
            pairs.into_iter().find_map(|(at, item)| difference(&found[at], item, &format!("{path}[{at}]")))
        }
        Json::Number(number) => {
            let wanted = number.as_f64()?;
            let close =
                found.as_f64().is_some_and(|found| (found - wanted).abs() <= 1e-9 * wanted.abs().max(1.0));
            (!close).then(|| format!("{path}: {found} instead of {wanted}"))
        }
        _ => (found != wanted).then(|| format!("{path}: {found} instead of {wanted}")),
    }
}

fn wanted(name: &str) -> Json {
    let path = common::folder().join(format!("{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_corpus_answers_as_it_should() {
    // These need files or embedding space.
    let others = ["run-04-text-file", "run-37-embedding-space"];
    let mut wrong = Vec::new();
    for (name, text) in common::programs() {
        let runs = name.starts_with("run-") || name.starts_with("explain-");
        if !runs || others.contains(&name.as_str()) {
            continue;
        }
        let program = match analysed(&text, None) {
            Ok(program) => program,
            Err(reports) => {
                wrong.push(format!("{name}: refused {reports:?}"));
                continue;
            }
        };
        let outcome = run(&program, &text, BUDGET, &mut Reference::default(), &mut Alone(&text));
        let found = queries(&outcome, &program);
        let difference = difference(&found, &wanted(&name)["queries"], "queries");
        if let Some(refusal) = &outcome.refusal {
            wrong.push(format!("{name}: {refusal:?}"));
        } else if let Some(difference) = difference {
            wrong.push(format!("{name}: {difference}"));
        }
    }
    assert!(wrong.is_empty(), "{} cases\n{}", wrong.len(), wrong.join("\n"));
}

/// Code, line and column of the refusals of a program.
fn refusals(text: &str) -> Vec<(String, usize, usize)> {
    let reports = match analysed(text, None) {
        Err(reports) => reports,
        Ok(program) => {
            let budget = Budget { tuples: 1000, ..BUDGET };
            let outcome = run(&program, text, budget, &mut Reference::default(), &mut Alone(text));
            outcome.refusal.into_iter().collect()
        }
    };
    let places = Places::new(text);
    let place = |report: &Refusal| {
        let (line, column) = places.of(report.span.start);
        (report.code.name().to_owned(), line, column)
    };
    reports.iter().map(place).collect()
}

/// What is no distribution over the values of its targets is answered, and told.
#[test]
fn what_is_no_model_is_warned_of() {
    let cases = [
        ("P = [0.5, 0.25]; Z = exp(P[x]); Z[x | ]?", 33),
        ("P = [0.5, 0.25]; Z max= P[x]; Z[x | ]?", 31),
        ("P = [0.5, 0.25]; Z = P[x] + 1; Z[x | ]?", 32),
        ("P = [0.5, 0.25]; Z = P[x] - P[y]; Z[x | y=1]?", 35),
        ("P = [0.5, 0.25]; Z = P[x] P[y] + P[x]; Z[y | ]?", 40),
        ("P = [0.5, 0.25]; T = [[0.5, 0.5], [0.1, 0.9]]; Z = P[x] T[x, y]; Z[x | y=1]?", 0),
        ("P = [0.5, -0.25]; Z = P[x] P[y]; Z[x, y | ]?", 0),
        ("P = [0.5, 0.25]; Z = exp(P[x]); Z[x=1 | ]?", 0),
    ];
    for (text, column) in cases {
        let (outcome, _) = answers(text);
        let found: Vec<(&str, usize)> =
            outcome.warnings.iter().map(|report| (report.code.name(), report.span.start + 1)).collect();
        let wanted: Vec<(&str, usize)> =
            (column > 0).then_some(("not-a-model", column)).into_iter().collect();
        assert_eq!(found, wanted, "{text}");
        assert_eq!(outcome.refusal, None, "{text}");
    }
}

#[test]
fn refusals_of_a_run_stand_where_they_should() {
    let cases = [
        ("E(A, B); E(B, A); N[x, z] = E(x, z) + E(x, y) N[y, z]; N?", "divergence", 19),
        ("Y = step(W[i] X[i]); Y?", "missing-data", 10),
        ("W ~ [1, 2]; Y[i] = W[i]; Y? @minimize(steps=1)", "not-scalar", 26),
        ("A = [1, 2]; Loss = A[i]^2; Loss? @minimize(steps=1)", "nothing-to-learn", 34),
        ("P = [0.5, 0.5]; P | x=1 ?", "not-a-model", 17),
        ("P = [0.5, 0.5]; Z = P[x]; Z | w=1 ?", "unknown-evidence", 31),
        ("P = [0, 1]; Z = P[x]; Z[x | x=0]?", "zero-evidence", 23),
        ("N[t] : count; N[0] = 1; N[t+1] = 10 N[t]; N[20]?", "overflow", 25),
        ("N(0); N(y) <- N(x), y = x + 1; N(x)?", "budget", 7),
        ("i, j, k : 100000; T[i, j, k] = 1; T?", "too-large", 19),
    ];
    for (text, code, column) in cases {
        assert_eq!(refusals(text), [(code.to_owned(), 1, column)], "{text}");
        let early = refusals_without_a_run(&analysed(text, None).unwrap());
        let found: Vec<&str> = early.iter().map(|report| report.code.name()).collect();
        let evaluated = ["divergence", "zero-evidence", "overflow", "budget", "too-large"].contains(&code);
        assert_eq!(found, if evaluated { vec![] } else { vec![code] }, "{text}");
    }
}

#[test]
fn gradients_of_the_corpus() {
    for (name, text) in common::programs() {
        if !name.starts_with("grad-") {
            continue;
        }
        let program = analysed(&text, None).unwrap();
        let wanted = wanted(&name);
        let id = |name: &Json| {
            let ids = (0u32..).map(tensor_logic::program::TensorId);
            let mut named = ids.zip(&program.tensors);
            named.find(|(_, tensor)| Some(tensor.name.as_str()) == name.as_str()).unwrap().0
        };
        let parameters = Parameters::new();
        let request =
            tensor_logic::engine::Request { program: &program, parameters: &parameters, budget: BUDGET };
        for gradient in wanted["gradients"].as_array().unwrap() {
            let by = id(&gradient["tensor"]);
            let (value, found) = Reference::default().gradient(&request, id(&wanted["of"]), &[by]).unwrap();
            assert_eq!(difference(&Json::from(value), &wanted["value"], "value"), None, "{name}");
            let domains: Vec<_> =
                program.tensor(by).places.iter().map(|place| place.domain.clone().unwrap()).collect();
            let mut out = String::new();
            json::nested(
                &mut out,
                &domains,
                json::Figures { kind: tensor_logic::program::Kind::Real, values: &found[0], counts: None },
            );
            let found: Json = serde_json::from_str(&out).unwrap();
            assert_eq!(difference(&found, &gradient["values"], "values"), None, "{name}");
        }
    }
}

/// What a query says: its value, values or tuples.
fn said(query: &Json) -> &Json {
    let content = [&query["value"], &query["values"], &query["tuples"], &Json::Null];
    content.into_iter().find(|value| !value.is_null()).unwrap_or(content[3])
}

#[test]
fn examples_of_the_specification() {
    for (text, wanted) in EXAMPLES {
        let (outcome, program) = answers(text);
        assert_eq!(outcome.refusal, None, "{text}");
        let found = queries(&outcome, &program);
        assert_eq!(found.as_array().unwrap().len(), wanted.len(), "{text}");
        for (query, wanted) in found.as_array().unwrap().iter().zip(*wanted) {
            let wanted: Json = serde_json::from_str(wanted).unwrap();
            assert_eq!(difference(said(query), &wanted, "value"), None, "{text}");
        }
    }
}

/// Programs with what their queries must say.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("i : 4\nX(1); X(2)\nN = X[i]\nX[i]?\nX(i)?\nN?", &["[0, 1, 1, 0]", "[[1], [2]]", "2.0"]),
    ("Score(Ann, Art) = -5; Score(Ann, Law) = -7\nBest(x) max= Score(x, y)\nBest(Ann)?", &["-5"]),
    (
        "U = [1, 2]; V = [3, 4]\nA = (U[i] V[i])^2\nB = (U[i] - V[i])^2\nG max= U[i] + V[i]\n\
         P[i] = U[i] / sum[j](U[j])\nM = max[i](U[i])\nC = count[i](U[i] | U[i] > 1)\n\
         Z = sum[i](U[i] | U[i] > 5)\nH[i] = U[i] + max[j](V[j] | U[j] > 9)\nA?\nB?\nG?\nP?\nM?\nC?\nZ?\nH?",
        &["121", "8", "6", "[0.3333333333333333, 0.6666666666666666]", "2", "1", "0", "[1, 2]"],
    ),
    ("D = [-1, 2]; E = [3, -4]\nY[i] = relu(D[i])\nY[i] = relu(E[i])\nY?", &["[3, 2]"]),
    ("X = 0.5 X + 1\nX?", &["2.0"]),
    (
        "A = [1, 4, 9, 16]\nD[x] = A[x+1] - A[x]\nu : 4\nP[u] = A[u+1] - A[u]\nT[u] max= A[u+1]\n\
         H[x/2] = A[x]\nL = 2\nEmb[0] = 1\nEmb[l+1] = 3 Emb[l]\ns : 0..3\nDay(0)\nDay(s+1) <- Day(s)\n\
         D?\nP?\nT?\nH?\nEmb[L]?\nDay(x)?",
        &["[3, 5, 7]", "[3, 5, 7, -16]", "[4, 9, 16, \"-inf\"]", "[5, 25]", "9", "[[0], [1], [2], [3]]"],
    ),
    (
        "Road(A, B) = 4; Road(A, C) = 1; Road(C, B) = 2; Road(B, A) = 1\nDist(A) min= 0\n\
         Dist(y) min= Dist(x) + Road(x, y)\nDist(B)?\nDist(D)?",
        &["3", "null"],
    ),
    (
        "x : 4\nN(1); N(2)\nSquare[x] = sig(N(x))\nRound(x) += sig(N(x))\nS = [1, 2, 3]\n\
         P[i.] = softmax(S[i] | i < 2)\nSquare?\nRound(x)?\nP?",
        &[
            "[0.5, 0.7310585786300049, 0.7310585786300049, 0.5]",
            "[0.7310585786300049, 0.7310585786300049]",
            "[0.2689414213699951, 0.7310585786300049, 0.0]",
        ],
    ),
    ("K[k] = concat(T[h, d], U[i])\nT[h, d] = [[0, 1], [2, 3]]\nU = [7, 8]\nK?", &["[0, 1, 2, 3, 7, 8]"]),
    (
        "Edge(1, 2); Edge(2, 1); Edge(2, 3)\nF[1] = 2; F[2] = -1; F[3] = -5\n\
         A(x) += relu(Edge(x, y) F[y])\nB(x) += Edge(x, y) relu(F[y])\nA(x)?\nB(x)?",
        &["[0, 0]", "[0, 2]"],
    ),
    (
        "Atom(1, A, C); Atom(1, B, O); Atom(2, A, C); Atom(2, B, C); Atom(2, D, O)\n\
         Bond(1, A, B); Bond(1, B, A); Bond(2, A, B); Bond(2, B, A); Bond(2, B, D); Bond(2, D, B)\n\
         Emb[C, d] = [1, 0]\nEmb[O, d] = [0, 1]\nW = [[1, 2], [0, 1]]\nWo = [1, -1]\n\
         H(s, x, d) += Bond(s, y, x) Atom(s, y, t) Emb[t, e] W[d, e]\nPool(s, d) avg= H(s, x, d)\n\
         Out[s] = sig(Wo[d] Pool(s, d))\nTarget[1] = 1\nTarget[2] = 0\n\
         Loss avg= -Target[s] log(Out[s]) - (1 - Target[s]) log(1 - Out[s])\nOut?\nLoss?",
        &["[0.7310585786300049, 0.791391472673955]", "0.9402787729645522"],
    ),
    // A model over relations; a target that is evidence; a value that is not there.
    (
        "R(A) = 0.25; R(B) = 0.75\nS(A, C) = 0.5; S(A, D) = 0.5; S(B, C) = 1\nZ = R(x) S(x, y)\n\
         Z[y | x=A]?\nZ | x=A ?\nZ[x | y=D]?\nZ[x | x=B]?\nZ[x=A, y=C | ]?",
        &["[0.5, 0.5]", "0.25", "[1, 0]", "[0, 1]", "0.125"],
    ),
    // Counts are integers, Boolean scalars truth values.
    (
        "E(0, 1); E(0, 2); E(1, 3); E(2, 3)\nP(x, z) : count\nP(x, z) <- E(x, z)\nP(x, z) <- E(x, y), P(y, z)\n\
         P[0, x]?\nP(0, 3)?\nE(0, 1)?\nE(1, 0)?",
        &["[0, 1, 1, 2]", "2", "true", "false"],
    ),
];

/// The proof of the last query, as nested lists of atoms.
fn proof(text: &str) -> String {
    let (outcome, program) = answers(text);
    fn tree(step: &Json) -> String {
        let from: Vec<String> = step["from"].as_array().unwrap().iter().map(tree).collect();
        let (atom, kind, line) = (&step["atom"], &step["kind"], &step["line"]);
        let here = format!("{} {} {line}", atom.as_str().unwrap(), kind.as_str().unwrap());
        if from.is_empty() { here } else { format!("{here} [{}]", from.join("; ")) }
    }
    let found = queries(&outcome, &program);
    let proof = &found.as_array().unwrap().last().unwrap()["explain"]["proof"];
    if proof.is_null() { "none".to_owned() } else { tree(proof) }
}

#[test]
fn proofs_are_least_and_in_the_order_of_the_body() {
    let rules = "E(1, 2); E(2, 3); E(3, 1); E(1, 3)\nT(x, z) <- T(x, y), E(y, z)\nT(x, y) <- E(x, y)\n\
                 Node(x) <- E(x, _)\nN(x, y) <- Node(x), x < y, Node(y), not E(x, y), Even(y)\n\
                 D(y) <- y = x + 1, Node(x)\nW = [0.5, 2]\nBig(i) <- W[i] > 1, Odd(i)\n";
    let cases = [
        ("E(1, 2)?", "E(1, 2) fact 1"),
        ("T(1, 3)?", "T(1, 3) rule 3 [E(1, 3) fact 1]"),
        ("T(1, 1)?", "T(1, 1) rule 2 [T(1, 3) rule 3 [E(1, 3) fact 1]; E(3, 1) fact 1]"),
        ("N(1, 4)?", "none"),
        ("D(4)?", "D(4) rule 6 [4 = 3 + 1 builtin 6; Node(3) rule 4 [E(3, 1) fact 1]]"),
        ("Big(1)?", "Big(1) rule 8 [2.0 > 1.0 builtin 8; Odd(1) builtin 8]"),
        ("not T(1, 4)?", "not T(1, 4) negation 9"),
        ("E(1, _)?", "E(1, 2) fact 1"),
        (
            "E(1, 2), not E(2, 1), 1 < 2?",
            "E(1, 2), not E(2, 1), 1 < 2 rule 9 [E(1, 2) fact 1; not E(2, 1) negation 9; 1 < 2 builtin 9]",
        ),
        ("E(x, 2)?", "none"),
    ];
    for (query, wanted) in cases {
        assert_eq!(proof(&format!("{rules}{query} @explain")), wanted, "{query}");
    }
    let negated =
        "Q(1); Q(2); Q(4)\nP(x, y) <- Q(x), x < y, Q(y), not R(x, y), Even(y)\nR(1, 2)\nP(1, 4)? @explain";
    assert_eq!(
        proof(negated),
        "P(1, 4) rule 2 [Q(1) fact 1; 1 < 4 builtin 2; Q(4) fact 1; not R(1, 4) negation 2; Even(4) builtin 2]"
    );
}

#[test]
fn a_long_proof_is_no_deep_recursion() {
    let chain: Vec<String> = (0..3000).map(|at| format!("E({at}, {})", at + 1)).collect();
    let text = format!("{}\nR(0)\nR(y) <- R(x), E(x, y)\nR(3000)? @explain", chain.join("\n"));
    let program = analysed(&text, None).unwrap();
    let query = program.actions.iter().find_map(|action| match action {
        tensor_logic::program::Action::Query(query) => Some(query),
        tensor_logic::program::Action::Write { .. } => None,
    });
    let query = query.unwrap();
    // The relation as any engine would leave it.
    struct Known(Vec<(String, u64)>);
    impl Engine for Known {
        fn values(
            &mut self,
            request: &tensor_logic::engine::Request<'_>,
            goals: &[tensor_logic::program::TensorId],
        ) -> Result<Vec<Value>, Refusal> {
            let mut edges = Reference::default();
            let of = |id: &tensor_logic::program::TensorId| match request.program.name(*id) {
                "R" => {
                    let tuples = (0..3001).map(|at| vec![tensor_logic::value::Const::Int(at)]).collect();
                    Ok(Value::Tuples(tensor_logic::engine::Tuples {
                        tuples,
                        values: vec![1.0; 3001],
                        counts: Vec::new(),
                    }))
                }
                "E" => Ok(edges.values(request, &[*id])?.remove(0)),
                _ => Ok(Value::Tuples(tensor_logic::engine::Tuples {
                    tuples: vec![Vec::new()],
                    values: vec![1.0],
                    counts: Vec::new(),
                })),
            };
            goals.iter().map(of).collect()
        }
        fn derived(&self) -> &[(String, u64)] {
            &self.0
        }
    }
    let request =
        tensor_logic::engine::Request { program: &program, parameters: &Parameters::new(), budget: BUDGET };
    let proof =
        tensor_logic::reference::prove(&request, &mut Known(Vec::new()), query, &text, &[]).unwrap().unwrap();
    let (mut depth, mut at) = (0, proof.root());
    while let Some(next) = proof.step(at).and_then(|step| step.from.first()) {
        depth += 1;
        at = *next;
    }
    assert_eq!(depth, 3000);
}

#[test]
fn samples_are_unbiased_and_repeat() {
    let model = "F = [[2, 1], [1, 2]]\nR(A) = 3; R(B) = 5\nZ = F[a, b] F[b, c] + R(x) F[a, 0]\n";
    let exact = answers(&format!("{model}Z?")).0.answers[0].content.numbers()[0];
    let estimate = |n: u64, seed: u64| {
        let (outcome, _) = answers(&format!("{model}Z? @sample(n={n}, seed={seed})"));
        let answer = &outcome.answers[0];
        (answer.content.numbers()[0], answer.sample.as_ref().unwrap().standard_errors.as_ref().unwrap()[0])
    };
    let estimates: Vec<(f64, f64)> = (0..40).map(|seed| estimate(500, seed)).collect();
    let mean = estimates.iter().map(|(value, _)| value).sum::<f64>() / 40.0;
    let error = estimates.iter().map(|(_, error)| error).sum::<f64>() / 40.0;
    let spread = (estimates.iter().map(|(value, _)| (value - exact).powi(2)).sum::<f64>() / 40.0).sqrt();
    assert!((mean - exact).abs() < 4.0 * error / 40f64.sqrt(), "{mean} {exact} {error}");
    assert!((0.6..1.6).contains(&(spread / error)), "{spread} {error}");
    assert_eq!(estimate(500, 3), estimate(500, 3));
}

/// Random rules and sums against loops over all assignments.
#[test]
fn plans_find_the_bindings_that_loops_find() {
    let mut stream = common::stream("plans");
    for _ in 0..300 {
        let mut below = |n: u64| stream.below(n) as usize;
        let mut facts = [[[false; 4]; 4]; 2];
        let mut text = String::new();
        for (relation, name) in ["A", "B"].iter().enumerate() {
            for (x, y) in (0..16).map(|at| (at / 4, at % 4)) {
                if x + y == 0 || below(3) == 0 {
                    facts[relation][x][y] = true;
                    text += &format!("{name}({x}, {y})\n");
                }
            }
        }
        // Positive literals over x, y, z, then negations and comparisons of what they bind.
        let names = ["x", "y", "z"];
        let positive: Vec<(usize, usize, usize)> =
            (0..1 + below(3)).map(|_| (below(2), below(3), below(3))).collect();
        let bound: Vec<usize> =
            (0..3).filter(|v| positive.iter().any(|(_, a, b)| a == v || b == v)).collect();
        let pick = |at: usize| bound[at % bound.len()];
        let negative: Vec<(usize, usize, usize)> =
            (0..below(2)).map(|_| (below(2), pick(below(9)), pick(below(9)))).collect();
        let less: Vec<(usize, usize)> = (0..below(2)).map(|_| (pick(below(9)), pick(below(9)))).collect();
        let head = (pick(below(9)), pick(below(9)));
        let relation = ["A", "B"];
        let literal =
            |(r, a, b): &(usize, usize, usize)| format!("{}({}, {})", relation[*r], names[*a], names[*b]);
        let mut guards: Vec<String> = negative.iter().map(|each| format!("not {}", literal(each))).collect();
        guards.extend(less.iter().map(|(a, b)| format!("{} <= {}", names[*a], names[*b])));
        let reads: Vec<String> = positive.iter().map(literal).collect();
        let body: Vec<String> = guards.iter().chain(&reads).cloned().collect();
        let (a, b) = (names[head.0], names[head.1]);
        text += &format!("P({a}, {b}) <- {}\n", body.join(", "));
        let guard = if guards.is_empty() { String::new() } else { format!(" | {}", guards.join(", ")) };
        text += &format!("N = {}{guard}\nP(u, v)?\nN?\n", reads.join(" "));

        let mut pairs = std::collections::BTreeSet::new();
        let mut count = 0.0;
        let mut assignments = std::collections::BTreeSet::new();
        for values in (0..64).map(|at| [at / 16, at / 4 % 4, at % 4]) {
            let there = |(r, a, b): &(usize, usize, usize)| facts[*r][values[*a]][values[*b]];
            let holds = positive.iter().all(there)
                && !negative.iter().any(there)
                && less.iter().all(|(a, b)| values[*a] <= values[*b]);
            let key: Vec<usize> = bound.iter().map(|at| values[*at]).collect();
            if holds && assignments.insert(key) {
                pairs.insert([values[head.0], values[head.1]]);
                count += 1.0;
            }
        }
        let (outcome, program) = answers(&text);
        assert_eq!(outcome.refusal, None, "{text}");
        let found = queries(&outcome, &program);
        let wanted: Vec<Json> = pairs.iter().map(|pair| Json::from(pair.to_vec())).collect();
        assert_eq!(found[0]["tuples"], Json::from(wanted), "{text}");
        assert_eq!(found[1]["value"], Json::from(count), "{text}");
    }
}
