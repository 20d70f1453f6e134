//! Directives, and the options of files: that they exist, and take what they are given.
//!
//! Enter at [`check`]. A directive is a row of [`DIRECTIVES`]: where it stands, and what its
//! arguments may be.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use super::words::{TYPES, advice, listed, nearest};
use crate::ast::{
    Argument, Directive, Goal, Name, Number, Program, Reference, RightSide, Span, Statement, StatementKind,
    Value,
};
use crate::error::{Code, Refusal};
use crate::names::walk::{self, Visitor};
use crate::program::default_rate;

/// Where a directive stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    Alone,
    BehindQueries,
}

/// What an argument may be.
#[derive(Debug, Clone, Copy)]
enum Takes {
    /// A whole number, not below the one given.
    Whole(u64),
    /// A number in an interval.
    Between(f64, f64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// 0 or 1.
    Bit,
    /// An index.
    Index,
    /// A tensor of the program.
    Tensor,
    /// Any name.
    Name,
    /// One of these words, or a tensor of the program.
    WordOrTensor(&'static [&'static str]),
}

/// The arguments without a key.
#[derive(Debug, Clone, Copy)]
enum Positional {
    None,
    /// Exactly these.
    These(&'static [Takes]),
    /// One or more of this kind.
    Many(Takes),
}

struct Rule {
    name: &'static str,
    stands: Stands,
    positional: Positional,
    keyed: &'static [(&'static str, Takes)],
}

const POSITIVE: Takes = Takes::Between(0.0, f64::MAX);
const PART: Takes = Takes::Between(0.0, 1.0);
const YES_NO: Takes = Takes::Word(&["yes", "no"]);
const SEMIRINGS: Takes = Takes::Word(TYPES);

const DIRECTIVES: &[Rule] = &[
    Rule {
        name: "minimize",
        stands: Stands::BehindQueries,
        positional: Positional::None,
        keyed: &[
            ("opt", Takes::Word(&["sgd", "adam", "adamw"])),
            ("lr", POSITIVE),
            ("schedule", Takes::Word(&["constant", "linear", "cosine"])),
            ("warmup", Takes::Whole(0)),
            ("min_lr", POSITIVE),
            ("momentum", POSITIVE),
            ("beta1", PART),
            ("beta2", PART),
            ("eps", POSITIVE),
            ("weight_decay", POSITIVE),
            ("clip", POSITIVE),
            ("steps", Takes::Whole(0)),
            ("epochs", Takes::Whole(0)),
            ("batch", Takes::Index),
            ("size", Takes::Whole(1)),
            ("shuffle", Takes::Bit),
            ("valid", PART),
            ("patience", Takes::Whole(1)),
            ("lift", YES_NO),
        ],
    },
    Rule {
        name: "sample",
        stands: Stands::BehindQueries,
        positional: Positional::None,
        keyed: &[("n", Takes::Whole(1)), ("seed", Takes::Whole(0))],
    },
    Rule {
        name: "embed",
        stands: Stands::BehindQueries,
        positional: Positional::None,
        keyed: &[
            ("D", Takes::Whole(1)),
            ("seed", Takes::Whole(0)),
            ("theta", PART),
            ("T", POSITIVE),
            ("certify", YES_NO),
            ("emb", Takes::WordOrTensor(&["random", "identity"])),
        ],
    },
    Rule {
        name: "semiring",
        stands: Stands::BehindQueries,
        positional: Positional::These(&[SEMIRINGS]),
        keyed: &[],
    },
    Rule { name: "explain", stands: Stands::BehindQueries, positional: Positional::None, keyed: &[] },
    Rule { name: "const", stands: Stands::Alone, positional: Positional::Many(Takes::Tensor), keyed: &[] },
    Rule { name: "tol", stands: Stands::Alone, positional: Positional::These(&[POSITIVE]), keyed: &[] },
    Rule {
        name: "rounds",
        stands: Stands::Alone,
        positional: Positional::These(&[Takes::Whole(1)]),
        keyed: &[],
    },
    Rule {
        name: "seed",
        stands: Stands::Alone,
        positional: Positional::These(&[Takes::Whole(0)]),
        keyed: &[],
    },
    Rule {
        name: "exclusive",
        stands: Stands::Alone,
        positional: Positional::These(&[Takes::Tensor, Takes::Whole(0)]),
        keyed: &[],
    },
    // Its arguments have the names of the included file: `include::expand` reads them, and leaves no such directive.
    Rule { name: "include", stands: Stands::Alone, positional: Positional::None, keyed: &[] },
    Rule { name: "export", stands: Stands::Alone, positional: Positional::Many(Takes::Name), keyed: &[] },
];

/// The directives of a statement, and the options of its file.
pub(super) fn check(statement: &Statement, known: &Known<'_>, reports: &mut Vec<Refusal>) {
    match &statement.kind {
        StatementKind::Query { goal, directives } => {
            for asked in directives {
                directive(asked, Stands::BehindQueries, known, reports);
                condition(goal, asked, reports);
            }
            either(directives, reports);
        }
        StatementKind::Directive(asked) => directive(asked, Stands::Alone, known, reports),
        StatementKind::Equation { right: RightSide::File { file, options }, .. } => {
            file_options(&file.value, options, reports);
        }
        _ => {}
    }
}

/// What is drawn from a sum is no answer of embedding space, and none of what is learned; nothing is asked for twice.
fn either(directives: &[Directive], reports: &mut Vec<Refusal>) {
    for (at, later) in directives.iter().enumerate() {
        let (earlier, name) = (&directives[..at], later.name.text.as_str());
        let excluded: &[&str] = match name {
            "sample" => &["embed", "minimize"],
            "embed" | "minimize" => &["sample"],
            _ => &[],
        };
        // One reason is enough, whatever stands before it how often.
        let message = earlier.iter().map(|before| before.name.text.as_str()).find_map(|before| {
            let excludes = || format!("`@{before}` and `@{name}` exclude each other");
            match before == name {
                true => Some(format!("`@{name}` stands here twice")),
                false => excluded.contains(&before).then(excludes),
            }
        });
        reports.extend(message.map(|message| Refusal::new(Code::UnknownDirective, later.name.span, message)));
    }
}

/// What is learned knows no evidence, and neither does embedding space.
fn condition(goal: &Goal, asked: &Directive, reports: &mut Vec<Refusal>) {
    let (message, help) = match (goal, asked.name.text.as_str()) {
        (Goal::Conditional { name, .. } | Goal::Restricted { name, .. }, "minimize") => (
            "`@minimize` does not stand behind a query with evidence",
            format!("write `{}? @minimize(…)`, and the evidence as data", name.text),
        ),
        (Goal::Conditional { .. } | Goal::Restricted { .. }, "embed") => (
            "`@embed` does not stand behind a query with evidence",
            "it answers Boolean queries, as `P(x, y)? @embed`".to_owned(),
        ),
        _ => return,
    };
    reports.push(Refusal::new(Code::UnknownDirective, asked.name.span, message).help(help));
}

fn directive(asked: &Directive, stands: Stands, known: &Known<'_>, reports: &mut Vec<Refusal>) {
    let name = asked.name.text.as_str();
    let Some(rule) = DIRECTIVES.iter().find(|rule| rule.name == name && rule.stands == stands) else {
        reports.push(unknown(&asked.name, stands));
        return;
    };
    if name == "include" {
        let report = bad(asked.span, "no file is included here".to_owned());
        reports.push(report.help("expand the text first: `include::expand`"));
        return;
    }
    let given = asked.arguments.as_deref().unwrap_or(&[]);
    let mut seen: Vec<&str> = Vec::new();
    let mut count = 0;
    for argument in given {
        let takes = match &argument.key {
            Some(key) => {
                let row = rule.keyed.iter().find(|(known, _)| *known == key.text);
                let Some((name, takes)) = row else {
                    reports.push(unknown_key(rule, key, argument.span));
                    continue;
                };
                if seen.contains(name) {
                    reports.push(bad(argument.span, format!("`{name}` is given twice")));
                }
                seen.push(name);
                Some(*takes)
            }
            None => {
                count += 1;
                match rule.positional {
                    Positional::None => None,
                    Positional::These(kinds) => kinds.get(count - 1).copied(),
                    Positional::Many(kind) => Some(kind),
                }
            }
        };
        match takes {
            Some(takes) => value(rule, argument, takes, known, reports),
            None => reports.push(superfluous(rule, argument.span)),
        }
    }
    let wanted = match rule.positional {
        Positional::None => 0,
        Positional::These(kinds) => kinds.len(),
        Positional::Many(_) => 1,
    };
    if count < wanted {
        let message = format!("`@{name}` needs {wanted} argument{}", if wanted == 1 { "" } else { "s" });
        reports.push(bad(asked.span, message));
    }
    match name {
        "minimize" => together(given, reports),
        "embed" => rows_are_given(given, reports),
        _ => {}
    }
}

fn bad(span: Span, message: String) -> Refusal {
    Refusal::new(Code::BadArgument, span, message)
}

fn unknown(name: &Name, stands: Stands) -> Refusal {
    let word = name.text.as_str();
    if DIRECTIVES.iter().any(|rule| rule.name == word) {
        let (message, help) = match stands {
            Stands::Alone => ("stands behind a query", format!("write `Y? @{word}`")),
            Stands::BehindQueries => {
                ("is a statement of its own", "write it on a line of its own".to_owned())
            }
        };
        return Refusal::new(Code::UnknownDirective, name.span, format!("`@{word}` {message}")).help(help);
    }
    let known: Vec<&str> = DIRECTIVES.iter().map(|rule| rule.name).collect();
    let report = Refusal::new(Code::UnknownDirective, name.span, format!("there is no directive `@{word}`"));
    match nearest(word, known.iter().copied()) {
        Some(near) => report.help(format!("`@{near}` is nearest")),
        None => report.help(format!("there are {}", listed(known))),
    }
}

fn unknown_key(rule: &Rule, key: &Name, span: Span) -> Refusal {
    let report = bad(span, format!("`@{}` has no argument `{}`", rule.name, key.text));
    let known: Vec<&str> = rule.keyed.iter().map(|(known, _)| *known).collect();
    if known.is_empty() { report } else { report.help(advice(&key.text, &known)) }
}

fn superfluous(rule: &Rule, span: Span) -> Refusal {
    let keys: Vec<&str> = rule.keyed.iter().map(|(known, _)| *known).collect();
    let report = bad(span, format!("`@{}` does not take this argument", rule.name));
    if keys.is_empty() { report } else { report.help(format!("its arguments have names: {}", listed(keys))) }
}

/// Whether a value is what an argument may be.
fn value(rule: &Rule, argument: &Argument, takes: Takes, known: &Known<'_>, reports: &mut Vec<Refusal>) {
    let number = argument.value.number().map(|number| number.value);
    let word = match &argument.value {
        Value::Name(name) => Some(name.text.as_str()),
        Value::Number(_) | Value::Text(_) => None,
    };
    let whole = argument.value.number().and_then(Number::whole);
    let small = |word: &str| !word.starts_with(char::is_uppercase);
    let (fits, allowed) = match takes {
        Takes::Whole(least) => {
            let below =
                if number.is_some_and(|value| value >= 2_f64.powi(53)) { " and below 2^64" } else { "" };
            (whole.is_some_and(|value| value >= least), format!("a whole number from {least} on{below}"))
        }
        Takes::Between(low, high) => {
            let allowed = match (low, high) {
                (0.0, 1.0) => "a number between 0 and 1",
                (0.0, _) => "a number that is not negative",
                _ => "a number",
            };
            (number.is_some_and(|value| (low..=high).contains(&value)), allowed.to_owned())
        }
        Takes::Bit => (number.is_some_and(|value| value == 0.0 || value == 1.0), "0 or 1".to_owned()),
        Takes::Word(words) => {
            let near = word.and_then(|word| nearest(word, words.iter().copied()));
            let near = near.map_or(String::new(), |near| format!(" (`{near}` is nearest)"));
            // `topk` has its number in it.
            let name = |word: &str| match rule.name {
                "semiring" => words.contains(&word.split('(').next().unwrap_or(word)),
                _ => words.contains(&word),
            };
            (word.is_some_and(name), format!("one of {}{near}", listed(words.iter().copied())))
        }
        Takes::Index => (word.is_some_and(small), "an index".to_owned()),
        Takes::Tensor => return tensor(rule, argument, word, known, reports),
        Takes::Name => (word.is_some(), "a name".to_owned()),
        Takes::WordOrTensor(words) => {
            if word.is_some_and(|word| !small(word)) {
                return tensor(rule, argument, word, known, reports);
            }
            let all = listed(words.iter().copied());
            (
                word.is_some_and(|word| words.contains(&word)),
                format!("one of {all}, or a tensor of the program"),
            )
        }
    };
    if fits {
        let keeps = |word: &str| word.starts_with("topk") && super::words::proofs(word).is_none();
        if rule.name == "semiring" && word.is_some_and(keeps) {
            let message = "`topk` needs the number of proofs that it keeps".to_owned();
            reports.push(bad(argument.span, message).help("write `topk(3)`"));
        }
        return;
    }
    let what = match &argument.key {
        Some(key) => format!("`{}`", key.text),
        None => format!("the argument of `@{}`", rule.name),
    };
    reports.push(bad(argument.span, format!("{what} must be {allowed}")));
}

/// An argument that names a tensor of the program.
fn tensor(
    rule: &Rule,
    argument: &Argument,
    word: Option<&str>,
    known: &Known<'_>,
    reports: &mut Vec<Refusal>,
) {
    match word {
        Some(word) if known.contains(word) => {}
        Some(word) => {
            let report =
                bad(argument.span, format!("`@{}` names `{word}`, and no statement does", rule.name));
            reports.push(match nearest(word, known.iter().copied()) {
                Some(near) => report.help(format!("`{near}` is nearest")),
                None => report,
            });
        }
        None => reports.push(bad(argument.span, format!("`@{}` takes the name of a tensor", rule.name))),
    }
}

/// The tensors that a program names, looked for when a directive names one.
pub(super) type Known<'a> = LazyCell<BTreeSet<&'a str>, Box<dyn FnOnce() -> BTreeSet<&'a str> + 'a>>;

/// The tensors that the program names.
pub(super) fn known(program: &Program) -> Known<'_> {
    LazyCell::new(Box::new(|| tensors(program)))
}

fn tensors(program: &Program) -> BTreeSet<&str> {
    struct Names<'a>(BTreeSet<&'a str>);
    impl<'a> Visitor<'a> for Names<'a> {
        fn reference(&mut self, reference: &'a Reference) {
            self.0.insert(&reference.name.text);
        }
    }
    let mut names = Names(BTreeSet::new());
    for statement in &program.statements {
        match &statement.kind {
            StatementKind::Bare { reference, .. }
            | StatementKind::Parameter { reference, .. }
            | StatementKind::Weighted { reference, .. } => names.reference(reference),
            StatementKind::Rule { head, .. } | StatementKind::Equation { head, .. } => names.reference(head),
            _ => {}
        }
        walk::reads(statement, &mut names);
    }
    names.0
}

/// Arguments of `@minimize` that exclude or need each other.
fn together(given: &[Argument], reports: &mut Vec<Refusal>) {
    let find =
        |key: &str| given.iter().find(|argument| argument.key.as_ref().is_some_and(|name| name.text == key));
    let optimiser = find("opt").and_then(|argument| match &argument.value {
        Value::Name(name) => Some(name.text.as_str()),
        _ => None,
    });
    let mut refuse = |argument: Option<&Argument>, message: &str| {
        reports.extend(argument.map(|argument| bad(argument.span, message.to_owned())));
    };
    if optimiser != Some("sgd") {
        refuse(find("momentum"), "`momentum` belongs to `opt=sgd`");
    } else {
        for key in ["beta1", "beta2", "eps"] {
            refuse(find(key), &format!("`{key}` belongs to `opt=adam` and `opt=adamw`"));
        }
    }
    let declines = find("schedule").is_some_and(|argument| match &argument.value {
        Value::Name(name) => name.text != "constant",
        _ => true,
    });
    let number = |key: &str| Some(find(key)?.value.number()?.value);
    let rate = number("lr").unwrap_or(default_rate(optimiser == Some("sgd")));
    if !declines {
        refuse(find("min_lr"), "`min_lr` belongs to `schedule=linear` and `schedule=cosine`");
    } else if rate < number("min_lr").unwrap_or(0.0) {
        refuse(find("min_lr"), &format!("`min_lr` is above `lr`, which is {rate}"));
    }
    if let (Some(steps), Some(epochs)) = (find("steps"), find("epochs")) {
        let later = if steps.span.start > epochs.span.start { steps } else { epochs };
        refuse(Some(later), "`steps` and `epochs` exclude each other");
    }
    for key in ["beta1", "beta2"] {
        if number(key) == Some(1.0) {
            refuse(find(key), &format!("`{key}` is below 1: a mean that forgets nothing has no end"));
        }
    }
    if number("valid").is_some_and(|part| part == 0.0 || part == 1.0) {
        refuse(find("valid"), "`valid` holds out some values of the batch index, not none and not all");
    }
    let needs = [
        ("epochs", "batch"),
        ("shuffle", "batch"),
        ("batch", "size"),
        ("size", "batch"),
        ("valid", "batch"),
        ("patience", "valid"),
    ];
    for (key, needed) in needs {
        if find(needed).is_none() {
            refuse(find(key), &format!("`{key}` needs `{needed}`"));
        }
    }
}

/// Vectors that a tensor gives have its dimension, and nothing random.
fn rows_are_given(given: &[Argument], reports: &mut Vec<Refusal>) {
    let find =
        |key: &str| given.iter().find(|argument| argument.key.as_ref().is_some_and(|name| name.text == key));
    let rows = match find("emb").map(|argument| &argument.value) {
        Some(Value::Name(name)) => name.text.starts_with(char::is_uppercase),
        _ => false,
    };
    for key in ["D", "seed"] {
        if let Some(argument) = find(key).filter(|_| rows) {
            reports.push(bad(argument.span, format!("`{key}` belongs to `emb=random`")));
        }
    }
}

/// The words behind `as`.
fn file_options(file: &str, options: &[Name], reports: &mut Vec<Refusal>) {
    let ending = file.rsplit('.').next().unwrap_or("");
    let known: &[&str] = match ending {
        "csv" | "tsv" | "facts" => &["values", "header"],
        "txt" | "npy" => &[],
        // A tensor's name in a `.safetensors` file; other endings are refused when they are read.
        _ => return,
    };
    for option in options.iter().filter(|option| !known.contains(&option.text.as_str())) {
        let report = bad(option.span, format!("a file `.{ending}` has no option `{}`", option.text));
        reports.push(if known.is_empty() { report } else { report.help(advice(&option.text, known)) });
    }
}
