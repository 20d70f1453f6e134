//! Data sets in the text format of NeuraLogic: what is written is what was read, the program learns, and what does not fit
//! is refused at its place.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot write files has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tensor_logic::auto::Auto;
use tensor_logic::fast::Fast;
use tensor_logic::neuralogic::{Constant, DataSet, Failure, Literal};

use crate::common::answers::calculated;
use crate::common::stream;

/// Writes a folder with examples and queries.
fn set(folder: &Path, examples: &[u8], queries: Option<&[u8]>) -> PathBuf {
    let folder = folder.join("toy");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("examples.txt"), examples).unwrap();
    if let Some(queries) = queries {
        std::fs::write(folder.join("queries.txt"), queries).unwrap();
    }
    folder
}

fn read(examples: &str, queries: Option<&str>) -> Result<DataSet, Failure> {
    let folder = tempfile::tempdir().unwrap();
    DataSet::read(&set(folder.path(), examples.as_bytes(), queries.map(str::as_bytes)), None)
}

/// The tables that are written, by their names, and the program.
fn written(data: &DataSet) -> (BTreeMap<String, Vec<String>>, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = data.write(folder.path()).unwrap();
    let program = std::fs::read_to_string(paths.pop().unwrap()).unwrap();
    let table = |path: &PathBuf| {
        let lines = std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
        (path.file_name().unwrap().to_string_lossy().into_owned(), lines)
    };
    (paths.iter().map(table).collect(), program)
}

/// Runs what is written: the loss before and after.
fn learned(data: &DataSet) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let paths = data.write(folder.path()).unwrap();
    let text = std::fs::read_to_string(paths.last().unwrap()).unwrap();
    let found = calculated(&text, folder.path(), 0, &mut Auto::new(Box::new(Fast::default())));
    let found = found.unwrap_or_else(|reports| panic!("{reports:?}\n{text}"));
    assert!(found.outcome.refusal.is_none(), "{:?}\n{text}", found.outcome.refusal);
    let learned = found.outcome.answers[0].minimize.as_ref().unwrap();
    (learned.first, learned.last)
}

#[test]
fn relations_hold_what_the_files_say() {
    let examples = "% two molecules\n\
                    bond(d1_1, d1_2, 0), c(d1_1), <0.5> b_1(0), [1, -2e1] charge(d1_2). // the first\n\
                    \n\
                    bond(d2_1, \"Big, one\", -3), c(d2_1), /* over\nlines */ 1 c(d2_1),\n  carbon(solid), dry";
    let queries = "1.0 predict, 0 solid(d1_1).\n-0.25 predict\n";
    let data = read(examples, Some(queries)).unwrap();
    assert_eq!((data.name.as_str(), data.samples.len()), ("toy", 2));
    let (tables, _) = written(&data);
    let table = |name: &str| tables[name].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(table("Bond.csv"), ["0,d1_1,d1_2,0", "1,d2_1,\"Big, one\",-3"]);
    assert_eq!(table("C.csv"), ["0,d1_1", "1,d2_1"]);
    assert_eq!(table("B_1.csv"), ["0,0,0.5"]);
    assert_eq!(table("Charge.csv"), ["0,d1_2,0,1.0", "0,d1_2,1,-20.0"]);
    assert_eq!(table("Carbon.csv"), ["1,solid"]);
    assert_eq!(table("Dry.csv"), ["1"]);
    assert_eq!(table("Target_Predict.csv"), ["0,1.0", "1,-0.25"]);
    assert_eq!(table("Target_Solid.csv"), ["0,d1_1,0.0"]);
    assert_eq!(
        table("Node.csv"),
        ["0,d1_1,0", "0,d1_2,1", "0,0,2", "1,d2_1,0", "1,\"Big, one\",1", "1,-3,2", "1,solid,3"]
    );
    // Nothing is overwritten.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("C.csv"), "mine").unwrap();
    assert!(matches!(data.write(folder.path()), Err(Failure::InTheWay { .. })));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn predicates_get_names_of_their_own() {
    let examples =
        "c(a), 'C'(a), C(a), p(a), p(a, b), has-part(a), \"has part\"(a), \"1st\"(a), node(a), straße(a)";
    let data = read(examples, Some("1 loss, 0 c(a)")).unwrap();
    let (tables, _) = written(&data);
    let names: Vec<&str> = tables.keys().map(String::as_str).collect();
    for name in
        ["C.csv", "C_2.csv", "P_1.csv", "P_2.csv", "Has_part.csv", "Has_part_2.csv", "P_1st.csv", "Node.csv"]
    {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    // Disks that do not tell cases apart keep all of them.
    let folded: BTreeSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
    assert_eq!(folded.len(), names.len());
    let (first, last) = learned(&data);
    assert!(last < first, "{first} {last}");
}

/// Every kind of data set gives a program that runs as it stands, and learns.
#[test]
fn the_program_learns() {
    let mut molecules = String::new();
    let mut classes = String::new();
    for sample in 0..10 {
        let atom = |at: u32| format!("d{sample}_{at}");
        let kinds = if sample % 2 == 0 { ["c", "o"] } else { ["c", "c"] };
        molecules += &format!("bond({0}, {1}, 0), bond({1}, {0}, 0), b_1(0), ", atom(1), atom(2));
        molecules += &format!("{}({}), {}({}).\n", kinds[0], atom(1), kinds[1], atom(2));
        classes += if sample % 2 == 0 { "1.0 predict.\n" } else { "0.0 predict.\n" };
    }
    let cases: &[(&str, Option<&str>)] = &[
        (&molecules, Some(&classes)),
        ("horse(aida), parent(star, aida).", Some("1.0 foal(star).\n0.0 negFoal(star).")),
        (
            "<0> xor :- <0> a, <0> b.\n<1> xor :- <0> a, <1> b.\n<1> xor :- <1> a, <0> b.\n<0> xor :- <1> a, <1> b.",
            None,
        ),
        ("0 xor :- [0, 0] xy.\n1 xor :- [0, 1] xy.\n1 xor :- [1, 0] xy.", None),
        (
            "[[1, 0], [0, 1]] m(a), 2 n(a)\n[[0, 1], [1, 0]] m(a), 3 n(a)",
            Some("[1, 0, 0] class(a)\n[0, 0, 1] class(a)"),
        ),
        ("shape(1, rect), near(1, 2), near(2, 1)", Some("-1 direction(1)\n1 direction(2)\n5 far(1, 2, 1)")),
        ("p(a)\nq(a)", Some("7 r(b)\n-3 r(b)")),
        ("r(a, a, a, a, a, a)", Some("1 p")),
    ];
    for (examples, queries) in cases {
        let (first, last) = learned(&read(examples, *queries).unwrap());
        assert!(last < first, "{first} -> {last}: {examples}");
    }
}

#[test]
fn a_file_of_examples_may_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("trainExamples.txt"), "p(a)").unwrap();
    std::fs::write(at("trainQueries.txt"), "1 q").unwrap();
    std::fs::write(at("other.txt"), "0 q").unwrap();
    let data = DataSet::read(&at("trainExamples.txt"), None).unwrap();
    assert_eq!((data.name.as_str(), data.samples[0].queries[0].numbers()), ("trainExamples", &[1.0][..]));
    let data = DataSet::read(&at("trainExamples.txt"), Some(&at("other.txt"))).unwrap();
    assert_eq!(data.samples[0].queries[0].numbers(), [0.0]);
    let failure = DataSet::read(&at("other.txt"), Some(&at("none.txt"))).unwrap_err();
    assert!(matches!(failure, Failure::Unreadable { .. }), "{failure}");
    assert!(
        DataSet::is_at(&at("other.txt"))
            && !DataSet::is_at(folder.path())
            && !DataSet::is_at(&at("none.txt"))
    );
}

/// File, line and column of the refusal, and a part of what it says.
fn refused(examples: &[u8], queries: Option<&[u8]>) -> (String, usize, usize, String) {
    let folder = tempfile::tempdir().unwrap();
    let failure = DataSet::read(&set(folder.path(), examples, queries), None).unwrap_err();
    let Failure::Wrong { text, line, report } = failure else { panic!("{failure}") };
    let before = &text.text[..report.span.start];
    let column = 1 + before.rsplit('\n').next().unwrap_or("").chars().count();
    (Path::new(&text.file).file_name().unwrap().to_string_lossy().into_owned(), line, column, report.message)
}

#[test]
fn what_does_not_fit_is_refused_at_its_place() {
    let in_examples: &[(&str, usize, usize, &str)] = &[
        ("", 1, 1, "nothing stands here"),
        ("% only\n// comments\n", 1, 1, "nothing stands here"),
        ("p(a), q(b", 1, 10, "`,` or `)` is expected here, and not the end of the file"),
        ("p(a\nq(b)", 2, 1, "`,` or `)` is expected here, and not `q`"),
        ("p(a))", 1, 5, "`,`, `.` or the end of the line is expected here, and not `)`"),
        ("p(a) q(b)", 1, 6, "is expected here, and not `q`"),
        ("p(a),", 1, 6, "a literal is expected here, and not the end of the file"),
        ("p(a), , q(b)", 1, 7, "a literal is expected"),
        ("p(,)", 1, 3, "a constant is expected"),
        ("p(a,)", 1, 5, "a constant is expected here, and not `)`"),
        ("p(X)", 1, 3, "`X` is a variable, and a constant is expected: `\"X\"`"),
        ("p(_)", 1, 3, "`_` is a variable"),
        ("p(f(a))", 1, 4, "`,` or `)` is expected here, and not `(`"),
        ("p(3d)", 1, 4, "`,` or `)` is expected here, and not `d`"),
        ("p(\"a)\n", 1, 3, "this quotation does not end on its line"),
        ("~p(a)", 1, 1, "a negation is not read"),
        ("{1} p(a)", 1, 1, "a weight that is learned stands in a template"),
        ("$w=1 p(a)", 1, 1, "a weight that is learned"),
        ("<0.5 p(a)", 1, 6, "`>` is expected here, and not `p`"),
        ("<x> p(a)", 1, 2, "a finite number is expected here, and not `x`"),
        ("1e999 p(a)", 1, 1, "a finite number is expected"),
        ("- p(a)", 1, 1, "a finite number is expected"),
        ("0.5", 1, 4, "a literal is expected here, and not the end of the file"),
        ("0.5.", 1, 4, "a literal is expected here, and not `.`"),
        ("[] p", 1, 2, "a finite number is expected here, and not `]`"),
        ("[1, 2 p", 1, 7, "`,` or `]` is expected here, and not `p`"),
        ("[[1, 2], [3]] p", 1, 1, "a row of 1 numbers after one of 2"),
        ("p(a). /* no end", 1, 7, "this comment does not end"),
        (
            "0.5 p(a), p(b)\np(c), [1] p(a)",
            2,
            7,
            "a vector of 1 is the value of `p` here, and a number in line 1",
        ),
        ("0.5 p(a),\n0.25 p(a)", 2, 1, "this fact of `p` has another value in line 1"),
        ("p(a), 0.5 p(a)", 1, 7, "this fact of `p` has another value in line 1"),
        ("1 q :- p(a)", 1, 1, "an example has none of its own"),
        ("p(a)\np(b)\np(c), q(c)", 3, 1, "2 lines of queries for 3 examples"),
    ];
    for (examples, line, column, message) in in_examples {
        let found = refused(examples.as_bytes(), Some(b"1 r\n0 r\n"));
        assert!(found.3.contains(message), "{examples:?}: {found:?}");
        assert_eq!(
            (found.0.as_str(), found.1, found.2),
            ("examples.txt", *line, *column),
            "{examples:?}: {found:?}"
        );
    }
    let in_queries: &[(&str, usize, usize, &str)] = &[
        ("", 1, 1, "nothing stands here"),
        ("1 r\nr(a)\n", 2, 1, "a query has a value before it: `1.0 r`"),
        ("1 r\n0 r\n0 r\n", 3, 1, "3 lines of queries for 2 examples"),
        ("1 r, 0 r\n0 r", 1, 6, "this query of `r` has another value"),
        ("1 r\n[0] r", 2, 1, "a vector of 1 is the value of `r` here, and a number in line 1"),
        ("1 r :- 1 p\n0 r", 1, 1, "lines belong to examples by their order"),
    ];
    for (queries, line, column, message) in in_queries {
        let found = refused(b"p(a).\np(b).\n", Some(queries.as_bytes()));
        assert!(found.3.contains(message), "{queries:?}: {found:?}");
        assert_eq!(
            (found.0.as_str(), found.1, found.2),
            ("queries.txt", *line, *column),
            "{queries:?}: {found:?}"
        );
    }
    let found = refused(b"p(a)\np(b)", None);
    assert!(found.3.contains("no example has a query"), "{found:?}");
    let found = refused(b"1 q :- p(a)\nr :- p(b)", None);
    assert!(found.1 == 2 && found.3.contains("a query has a value before it"), "{found:?}");
    let found = refused(b"p(a)\nq(\xff)", Some(b"1 r"));
    assert!((found.1, found.2) == (2, 3) && found.3.contains("no text of UTF-8"), "{found:?}");
    // A long line, wrong at its end.
    let long = "p(a), ".repeat(100_000) + "p(";
    let found = refused(long.as_bytes(), Some(b"1 r"));
    assert_eq!((found.1, found.2), (1, 600_003));
    let name = "x".repeat(1000);
    let data = read(&format!("{name}({name})"), Some("1 r")).unwrap();
    assert!(learned(&data).1 < 1.0);
}

/// A literal that is written in one of the ways that mean it.
fn spelled(literal: &Literal, stream: &mut seeded::Stream) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut text = match literal.value.as_ref() {
        None => String::new(),
        Some(value) => {
            let numbers: Vec<String> = value.numbers.iter().map(|number| format!("{number:?}")).collect();
            let inner =
                if value.shape.is_empty() { numbers[0].clone() } else { format!("[{}]", numbers.join(", ")) };
            if stream.below(2) == 0 { format!("<{inner}> ") } else { format!("{inner} ") }
        }
    };
    text += &literal.predicate;
    let constants: Vec<String> = literal
        .arguments
        .iter()
        .map(|constant| match constant {
            Constant::Int(number) => number.to_string(),
            Constant::Word(word) if word.starts_with('w') && stream.below(2) == 0 => word.clone(),
            Constant::Word(word) => quoted(word),
        })
        .collect();
    if constants.is_empty() && stream.below(2) == 0 {
        return text;
    }
    text + "(" + &constants.join([",", ", ", " ,\n "][stream.below(3) as usize]) + ")"
}

fn literal(stream: &mut seeded::Stream, has_value: bool) -> Literal {
    let predicate = ["p", "q", "rEL", "s_1", "t-x"][stream.below(5) as usize].to_owned();
    let words =
        ["w1", "w_2", "wX-3", "Capital", "two words", "a, b", "say \"no\"", "back\\slash", "é", "1.5"];
    let arguments = (0..stream.below(4))
        .map(|_| match stream.below(3) {
            0 => Constant::Int(stream.below(7) as i64 - 3),
            _ => Constant::Word(words[stream.below(words.len() as u64) as usize].to_owned()),
        })
        .collect();
    // The value of a literal is decided by what it says, so that it has one value only.
    let mut literal = Literal { predicate, arguments, value: None };
    if has_value || literal.predicate == "s_1" || literal.predicate == "q" {
        let sum = format!("{:?}", literal.arguments).len() as f64;
        let (shape, numbers) = match literal.predicate.as_str() {
            "s_1" => (vec![2], vec![sum, -sum / 8.0]),
            _ => (Vec::new(), vec![sum / 16.0 - 200.25]),
        };
        literal.value = Some(tensor_logic::neuralogic::Value { shape, numbers });
    }
    literal
}

/// The tables that random samples must become, by the predicate and its arity: written in plain loops.
fn expected(
    samples: &[(Vec<Literal>, Vec<Literal>)],
    queries: bool,
) -> BTreeMap<(String, usize), BTreeSet<Vec<String>>> {
    let mut tables: BTreeMap<(String, usize), BTreeSet<Vec<String>>> = BTreeMap::new();
    for (at, sample) in samples.iter().enumerate() {
        for literal in if queries { &sample.1 } else { &sample.0 } {
            let mut row = vec![at.to_string()];
            row.extend(literal.arguments.iter().map(|constant| match constant {
                Constant::Int(number) => number.to_string(),
                Constant::Word(word) => word.clone(),
            }));
            let table = tables.entry((literal.predicate.clone(), literal.arguments.len())).or_default();
            match &literal.value {
                None => {
                    table.insert(row);
                }
                Some(value) if value.shape.is_empty() => {
                    table.insert(row.into_iter().chain([format!("{:?}", value.numbers[0])]).collect());
                }
                Some(value) => {
                    for (place, number) in value.numbers.iter().enumerate() {
                        let cells = [place.to_string(), format!("{number:?}")];
                        table.insert(row.iter().cloned().chain(cells).collect());
                    }
                }
            }
        }
    }
    tables
}

/// Random data sets, written in every spelling, come back as the same tuples.
#[test]
fn what_is_written_is_what_was_meant() {
    let mut stream = stream("neuralogic");
    for case in 0..100 {
        let many = 1 + stream.below(4);
        let samples: Vec<(Vec<Literal>, Vec<Literal>)> = (0..many)
            .map(|_| {
                let facts = (0..1 + stream.below(6)).map(|_| literal(&mut stream, false)).collect();
                (facts, (0..1 + stream.below(3)).map(|_| literal(&mut stream, true)).collect())
            })
            .collect();
        let mut line = |literals: &[Literal], end: &str| {
            let mut text = String::new();
            for (at, literal) in literals.iter().enumerate() {
                let between = [", ", ",", ",\n", " % why\n  , ", " /* , */ , "][stream.below(5) as usize];
                text += if at > 0 { between } else { "" };
                text += &spelled(literal, &mut stream);
            }
            text + [end, ".\n\n", ".  // so\n", "\n"][stream.below(4) as usize]
        };
        let labelled = case % 3 == 0;
        let (mut examples, mut queries) = (String::new(), String::new());
        for (facts, asked) in &samples {
            match labelled {
                true => {
                    examples += &format!(
                        "{} :- {}",
                        line(asked, "").trim_end_matches(['.', '\n', ' ']).trim_end_matches(".  // so"),
                        line(facts, ".")
                    )
                }
                false => {
                    examples += &line(facts, ".");
                    queries += &line(asked, ".");
                }
            }
        }
        let data = read(&examples, (!labelled).then_some(&queries))
            .unwrap_or_else(|failure| panic!("{failure}\n{examples}\n{queries}"));
        let (tables, _) = written(&data);
        let found = |path: &str| -> BTreeSet<Vec<String>> {
            let text = tables[path].join("\n");
            let mut reader =
                csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
            reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
        };
        for (is_query, prefix) in [(false, ""), (true, "Target_")] {
            let expected = expected(&samples, is_query);
            for ((predicate, arity), rows) in &expected {
                let several = expected.keys().filter(|(other, _)| other == predicate).count() > 1;
                let mut name = predicate.replace('-', "_");
                name[..1].make_ascii_uppercase();
                let suffix = if several { format!("_{arity}") } else { String::new() };
                assert_eq!(
                    &found(&format!("{prefix}{name}{suffix}.csv")),
                    rows,
                    "{predicate}/{arity}\n{examples}\n{queries}"
                );
            }
        }
    }
}

/// No text is too strange for an answer.
#[test]
fn every_text_is_read_or_refused() {
    let pieces = [
        "p", "X", "1", "-", "0.5", "1e", "(", ")", "[", "]", "<", ">", ",", ".", ":-", "<=", "\"", "'", "%",
        "//", "/*", "*/", "\n", " ", "~", "{", "é", "\u{feff}", "\\",
    ];
    let mut stream = stream("neuralogic soup");
    let mut legal = 0;
    for _ in 0..1000 {
        let mut soup = || -> String {
            (0..stream.below(12)).map(|_| pieces[stream.below(pieces.len() as u64) as usize]).collect()
        };
        let (examples, queries) = (soup(), soup());
        legal += usize::from(read(&format!("p(a)\n{examples}"), Some(&format!("1 p\n{queries}"))).is_ok());
    }
    assert!(legal > 0);
}

#[cfg(feature = "cli")]
#[test]
fn the_command_knows_the_format_by_the_names() {
    use crate::common::command::tl;
    let folder = tempfile::tempdir().unwrap();
    set(folder.path(), b"p(a)\nq(a)", Some(b"1 r\n0 r"));
    let (status, text, errors) = tl(folder.path(), &["import", "toy", "out"], b"");
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    assert!(text.starts_with("toy: 2 samples, 2 facts, 2 queries\n"), "{text}");
    let (status, text, errors) = tl(folder.path(), &["run", "out/toy.tl", "--strict"], b"");
    assert_eq!((status, errors.as_str()), (Some(0), ""), "{text}");
    std::fs::write(folder.path().join("toy/queries.txt"), "1 r\nr").unwrap();
    let (status, _, errors) = tl(folder.path(), &["import", "toy", "again"], b"");
    assert_eq!(status, Some(1));
    assert!(errors.contains("error[file-format]") && errors.contains("queries.txt:2:1"), "{errors}");
    assert!(!folder.path().join("again").exists());
    let (status, _, errors) = tl(folder.path(), &["import", "toy", "again", "--format", "tudataset"], b"");
    assert!(status == Some(2) && errors.contains("toy_graph_labels.txt"), "{errors}");
}
