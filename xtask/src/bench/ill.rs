//! Speeds of the crate `linear-logic` on one core, beside its goals. Smaller is better.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::rc::Rc;

use anyhow::{Result, anyhow, ensure};
use linear_logic::argument::denote;
use linear_logic::compile::{Backend, compile};
use linear_logic::denote::Dense;
use linear_logic::elaborate::{Extension, Mode, elaborate};
use linear_logic::error::{Refusal, Source};
use linear_logic::json::Json;
use linear_logic::literal::Order;
use linear_logic::parse;
use linear_logic::program::{Checked, Program};
use linear_logic::reduce::{Limits, normalize};
use linear_logic::ring::{Double, Modular, Ring};
use linear_logic::stack::on_large_stack;

use super::{Figure, median};

fn refused(refusal: Refusal) -> anyhow::Error {
    anyhow!("{refusal}")
}

const PRIME: u64 = 1_000_000_007;
const MATRICES: [&str; 2] = ["[[1,2],[3,4]]", "[[0,1],[1,1]]"];

pub(super) fn figures() -> Result<Vec<Figure>> {
    // Proofs may be deep.
    on_large_stack(|| {
        let mut figures = repeat()?;
        figures.extend(whole_command()?);
        figures.push(check()?);
        figures.push(mult()?);
        figures.push(long_word()?);
        Ok(figures)
    })?
}

fn program() -> Result<Program> {
    Program::new(Order::Literal, Mode::default()).map_err(refused)
}

fn read(program: &Program, text: &str) -> Result<Checked> {
    let source = Source::new("bench", text.as_bytes().to_vec());
    parse::query(&source).and_then(|query| elaborate(program, &source, &query)).map_err(refused)
}

/// `repeat` nested 20 times around a word of length 2: a word of length 2²¹.
fn nested() -> String {
    (0..20).fold("0b01".to_owned(), |text, _| format!("repeat [{text}]"))
}

/// The value at two matrices of 2×2, and the multiplications of numbers that it took.
fn value<R: Ring>(ring: R, program: &Program, subject: &Checked, at: &[Json]) -> Result<usize> {
    let carrier = Dense::new(ring, BTreeMap::from([(Rc::from("a"), 2)]));
    let mut denotation = denote(carrier, program, subject, at, Extension::None).map_err(refused)?;
    std::hint::black_box(denotation.coordinates().map_err(refused)?);
    Ok(denotation.evaluator.carrier().work())
}

fn matrices(texts: [&str; 2]) -> Result<Vec<Json>> {
    texts.iter().map(|text| Json::parse(text).map_err(refused)).collect()
}

fn repeat() -> Result<Vec<Figure>> {
    let (program, at) = (program()?, matrices(MATRICES)?);
    let modular = || Modular::new(PRIME).ok_or_else(|| anyhow!("{PRIME} is no modulus"));
    let subject = read(&program, &nested())?;
    let products = value(modular()?, &program, &subject, &at)?.div_ceil(2 * 2 * 2);
    let plan = || compile(&program, std::slice::from_ref(&subject), &[], Backend::Matrix).map_err(refused);
    let instructions = plan()?.count("mul");
    let evaluation = median(21, || value(modular()?, &program, &subject, &at).map(drop))?;
    let all = median(21, || {
        let program = self::program()?;
        let subject = read(&program, &nested())?;
        value(modular()?, &program, &subject, &at)?;
        compile(&program, &[subject], &[], Backend::Matrix).map_err(refused)?;
        Ok(())
    })?;
    Ok(vec![
        Figure::new("repeat nested 20 times, products", products as f64, "").against("goal", 42.0),
        Figure::new("repeat nested 20 times, compiled, products", instructions as f64, "")
            .against("goal", 42.0),
        Figure::new("repeat nested 20 times, evaluation", evaluation * 1e3, "ms").against("goal", 1.0),
        Figure::new("repeat nested 20 times, from text to value and program", all * 1e3, "ms")
            .against("goal", 50.0),
    ])
}

/// The same as commands, if `ill` has been built beside this program.
fn whole_command() -> Result<Vec<Figure>> {
    let ill = std::env::current_exe()?.with_file_name(format!("ill{}", std::env::consts::EXE_SUFFIX));
    if !ill.is_file() {
        crate::answer::say!("{} is not built; the time of the whole command is left out", ill.display());
        return Ok(Vec::new());
    }
    let text = nested();
    let ring = format!("mod:{PRIME}");
    let [x, y] = MATRICES;
    let denote = ["denote", "-e", &text, "--ring", &ring, "--arg", x, "--arg", y, "--json"];
    let compile = ["compile", "-e", &text, "--json"];
    let time = |args: &[&str]| {
        median(11, || {
            let status = Command::new(&ill).args(args).stdout(Stdio::null()).status()?;
            ensure!(status.success(), "ill {}: {status}", args.first().unwrap_or(&""));
            Ok(())
        })
    };
    Ok(vec![
        Figure::new("the same, ill denote", time(&denote)? * 1e3, "ms").against("goal", 50.0),
        Figure::new("the same, ill compile", time(&compile)? * 1e3, "ms").against("goal", 50.0),
    ])
}

fn check() -> Result<Figure> {
    // Each uses the one before, and copies, discards and literals are inserted.
    let definition = |n: usize| match n {
        0 => "def f0 : int -o int = \\m. add m 1;\n".to_owned(),
        n => format!("def f{n} : int -o int = \\m. f{} (add m (mult [2] {}));\n", n - 1, n % 7),
    };
    let text: String = (0..1000).map(definition).collect();
    let source = Source::new("bench", text.into_bytes());
    let seconds = median(5, || {
        let mut program = program()?;
        let loaded = program.load(&source);
        match loaded.refusals.into_iter().next() {
            None => Ok(()),
            Some(refusal) => Err(refused(refusal)),
        }
    })?;
    Ok(Figure::new("check, 1000 definitions", seconds * 1e3, "ms").against("goal", 100.0))
}

fn mult() -> Result<Figure> {
    let program = program()?;
    let subject = read(&program, "mult [30] 30")?;
    let seconds = median(5, || {
        let normal =
            normalize(&subject.term, Order::Literal, Limits::default(), |_, _| Ok(())).map_err(refused)?;
        ensure!(normal.is_normal, "no normal form");
        Ok(())
    })?;
    Ok(Figure::new("normalize, mult [30] 30", seconds * 1e3, "ms").against("goal", 1e3))
}

fn long_word() -> Result<Figure> {
    let program = program()?;
    let mut stream = seeded::Family::named("bench").stream(1);
    let digits: String = (0..1_000_000).map(|_| if stream.below(2) == 0 { '0' } else { '1' }).collect();
    let subject = read(&program, &format!("0b{digits}"))?;
    // Rotations, so that a million of them stay numbers.
    let at = matrices(["[[0.6,-0.8],[0.8,0.6]]", "[[0.28,-0.96],[0.96,0.28]]"])?;
    let seconds = median(5, || value(Double, &program, &subject, &at).map(drop))?;
    Ok(Figure::new("denote, word of length 10⁶ at 2×2, f64", seconds * 1e3, "ms").against("goal", 50.0))
}
