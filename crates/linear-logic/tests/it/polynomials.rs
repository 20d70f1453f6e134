//! Polynomial maps: what is given, what is generic and what is named are different variables.
use std::collections::BTreeMap;
use std::rc::Rc;

use linear_logic::elaborate::{Mode, elaborate};
use linear_logic::error::{Kind, Refusal, Source};
use linear_logic::json::Json;
use linear_logic::literal::Order;
use linear_logic::parse;
use linear_logic::polynomial::{Polynomialised, polynomial};
use linear_logic::program::Program;
use num_rational::BigRational;
use seeded::{Family, Stream};

use crate::terms::numbers;

fn map(text: &str, arguments: &[&str], dimensions: &[(&str, usize)]) -> Result<Polynomialised, Refusal> {
    let program = Program::new(Order::Literal, Mode::default()).unwrap();
    let source = Source::new("<test>", text.as_bytes().to_vec());
    let subject = elaborate(&program, &source, &parse::query(&source).unwrap()).unwrap();
    let arguments: Vec<Json> = arguments.iter().map(|argument| Json::parse(argument).unwrap()).collect();
    let dimensions = dimensions.iter().map(|(atom, n)| (Rc::from(*atom), *n)).collect();
    polynomial(&program, &subject, &arguments, &dimensions)
}

fn texts(found: &Polynomialised) -> Vec<String> {
    found.entries.iter().map(|entry| found.text(entry)).collect()
}

#[test]
fn a_generic_operator_takes_a_letter_that_is_free() {
    let one = [("a", 1)];
    let found = map("comp", &[r#"{"gen":"x"}"#], &one).unwrap();
    assert_eq!(
        (found.variables.clone(), texts(&found)),
        (vec!["x11".into(), "y11".into()], vec!["x11*y11".into()])
    );
    let found = map("comp", &[r#"{"gen":"y"}"#], &one).unwrap();
    assert_eq!(texts(&found), ["y11*x11"]);
    // One letter is one operator.
    let found = map("comp", &[r#"{"gen":"x"}"#, r#"{"gen":"x"}"#], &one).unwrap();
    assert_eq!(texts(&found), ["x11^2"]);
    let found = map("comp", &[r#"[["x11"]]"#], &one).unwrap();
    assert_eq!(
        (found.variables.clone(), texts(&found)),
        (vec!["y11".into(), "x11".into()], vec!["y11*x11".into()])
    );
    // The text of a term and the letter of a generator are no scalars.
    let found = map("comp", &[r#"{"term":"id"}"#, r#"{"gen":"y"}"#], &one).unwrap();
    assert_eq!(texts(&found), ["y11"]);
}

#[test]
fn names_with_two_meanings_are_refused() {
    let refused = |text: &str, arguments: &[&str], dimensions: &[(&str, usize)], name: &str| {
        let refusal = map(text, arguments, dimensions).unwrap_err();
        assert_eq!(
            (refusal.kind, refusal.variable.as_deref()),
            (Kind::Argument, Some(name)),
            "{arguments:?}"
        );
    };
    refused("comp", &[r#"{"gen":"x"}"#, r#"[["x11"]]"#], &[("a", 1)], "x11");
    refused("comp", &[r#"[["x11"]]"#, r#"{"gen":"x"}"#], &[("a", 1)], "x11");
    refused("comp", &[r#"{"lin":[["q21",{"gen":"q"}]]}"#], &[("a", 2)], "q21");
    // The same letter at two atoms is two operators.
    let two = "\\f g. f * g : (a -o a) -o (b -o b) -o (a -o a) * (b -o b)";
    refused(two, &[r#"{"gen":"x"}"#, r#"{"gen":"x"}"#], &[("a", 1), ("b", 1)], "x");
    // Here the entry has another name.
    assert!(map("comp", &[r#"{"gen":"x"}"#, r#"{"lin":[["x11",{"term":"id"}]]}"#], &[("a", 10)]).is_ok());
}

/// What an operand of the composition is: a generic operator, one with a letter, or a matrix of names.
enum Operand {
    Generic,
    Letter(char),
    Names(Vec<&'static str>),
}

fn operand(stream: &mut Stream) -> Operand {
    const NAMES: [&str; 6] = ["s", "t", "x11", "x21", "y12", "z22"];
    match stream.below(3) {
        0 => Operand::Generic,
        1 => Operand::Letter(['x', 'y', 'p'][stream.below(3) as usize]),
        _ => Operand::Names((0..4).map(|_| NAMES[stream.below(6) as usize]).collect()),
    }
}

/// At random values of the variables, the polynomial is the product of the matrices.
#[test]
fn polynomials_take_the_values_of_what_they_are_made_of() {
    let (mut refused, mut compared) = (0, 0);
    // About one in eleven has letters that clash: of 300 there may be fewer than are wanted.
    for seed in numbers(1200) {
        let mut stream = Family::named("linear-logic:polynomials").stream(seed);
        let operands = [operand(&mut stream), operand(&mut stream)];
        // A generic operator can only stand behind what is given.
        let given = operands.iter().take_while(|operand| !matches!(operand, Operand::Generic)).count();
        let operands = &operands[..given];
        let arguments: Vec<String> = operands
            .iter()
            .map(|operand| match operand {
                Operand::Letter(letter) => format!("{{\"gen\":\"{letter}\"}}"),
                Operand::Names(names) => format!("[{:?},{:?}]", &names[..2], &names[2..]),
                Operand::Generic => unreachable!("it is not given"),
            })
            .collect();
        let entries = |letter: char| ["11", "12", "21", "22"].map(|place| format!("{letter}{place}"));
        let letters: Vec<char> = operands
            .iter()
            .filter_map(|o| if let Operand::Letter(l) = o { Some(*l) } else { None })
            .collect();
        let names: Vec<&str> = operands
            .iter()
            .flat_map(|o| if let Operand::Names(names) = o { names.clone() } else { Vec::new() })
            .collect();
        let clashes = |letter: char| entries(letter).iter().any(|entry| names.contains(&&**entry));
        let arguments: Vec<&str> = arguments.iter().map(|argument| &**argument).collect();
        let found = map("comp", &arguments, &[("a", 2)]);
        if letters.iter().any(|letter| clashes(*letter)) {
            assert_eq!(found.unwrap_err().kind, Kind::Argument, "seed {seed}: {arguments:?}");
            refused += 1;
            continue;
        }
        let found = found.unwrap();
        // The generic operators take the free letters in turn.
        let mut free = "xyzuvw".chars().filter(|letter| !letters.contains(letter) && !clashes(*letter));
        let mut values: BTreeMap<String, i64> = BTreeMap::new();
        let mut matrices = Vec::new();
        for operand in operands.iter().chain(std::iter::repeat_n(&Operand::Generic, 2 - given)) {
            let names = match operand {
                Operand::Letter(letter) => entries(*letter),
                Operand::Names(names) => [0, 1, 2, 3].map(|at: usize| names[at].to_owned()),
                Operand::Generic => entries(free.next().unwrap()),
            };
            matrices
                .push(names.map(|name| *values.entry(name).or_insert_with(|| stream.below(19) as i64 - 9)));
        }
        let mut variables = found.variables.clone();
        variables.sort();
        assert_eq!(variables, values.keys().cloned().collect::<Vec<_>>(), "seed {seed}: {arguments:?}");
        let [f, g] = <[[i64; 4]; 2]>::try_from(matrices).unwrap();
        for (at, entry) in found.entries.iter().enumerate() {
            let wanted = f[at / 2 * 2] * g[at % 2] + f[at / 2 * 2 + 1] * g[2 + at % 2];
            let mut total = BigRational::from_integer(0.into());
            for (coefficient, exponents) in entry {
                let powers = found.variables.iter().zip(exponents);
                let term = powers.map(|(name, e)| values[name].pow(*e as u32)).product::<i64>();
                total += coefficient * BigRational::from_integer(term.into());
            }
            assert_eq!(
                total,
                BigRational::from_integer(wanted.into()),
                "seed {seed}: {arguments:?}, entry {at}"
            );
        }
        compared += 1;
    }
    assert!(refused >= 20 && compared >= 100, "{refused} refused, {compared} compared");
}
