//! Files: what is read, what is written and read back, and that no bytes make a reader stumble.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::path::Path;

use crate::common;
use tensor_logic::ast::{Name, Span, Text};
use tensor_logic::engine::{Tuples, Value};
use tensor_logic::error::{Code, Warning};
use tensor_logic::files::table::{Dialect, Layout, Rows};
use tensor_logic::files::{Dense, Files, npy, safe, table, words};
use tensor_logic::lower::{FileSource, Loaded, Wanted};
use tensor_logic::program::{Combine, Facts, Kind, Place, Program, Role, Style, Tensor, TensorId};
use tensor_logic::value::{Const, Domain, Symbols};

const PLAIN: Layout = Layout { values: false, header: false };
const VALUES: Layout = Layout { values: true, header: false };

/// Tuples as `A 3 = 0.5`.
fn show(facts: &Facts, symbols: &Symbols) -> Vec<String> {
    let tuple = |at: usize| {
        let cells: Vec<String> = facts.tuple(at).iter().map(|constant| symbols.show(*constant)).collect();
        let value = facts.values.get(at).map(|value| format!(" = {value:?}"));
        format!("{}{}", cells.join(" "), value.unwrap_or_default())
    };
    (0..facts.count).map(tuple).collect()
}

fn rows(bytes: &[u8], dialect: Dialect, layout: Layout) -> Result<Vec<String>, String> {
    let mut symbols = Symbols::default();
    let facts = table::read(bytes, dialect, layout, &mut symbols).map_err(|fault| fault.to_string())?;
    assert!(facts.constants.len() == facts.count * facts.arity && facts.spans.is_empty());
    Ok(show(&facts, &symbols))
}

#[test]
fn tables() {
    use Dialect::{Commas, RawTabs, Tabs};
    let both = Layout { values: true, header: true };
    for (bytes, dialect, layout, expected) in [
        (b"Ann,3\nBob,-4\n" as &[u8], Commas, PLAIN, &["Ann 3", "Bob -4"] as &[_]),
        (b"Ann,3\r\nBob,04", Commas, PLAIN, &["Ann 3", "Bob 4"]),
        (b"\xef\xbb\xbf1\n\n2\n", Commas, PLAIN, &["1", "2"]),
        (b"\"a,b\",\"say \"\"x\"\"\"\n", Commas, PLAIN, &["\"a,b\" \"say \\\"x\\\"\""]),
        (b"from,to\nAnn,Bob\n", Commas, Layout { values: false, header: true }, &["Ann Bob"]),
        (b"Ann,0.5\nBob,2\n", Commas, VALUES, &["Ann = 0.5", "Bob = 2.0"]),
        (b"x,v\nAnn,-inf\n", Commas, both, &["Ann = -inf"]),
        (
            b"1.5,9223372036854775807,9223372036854775808",
            Commas,
            PLAIN,
            &["\"1.5\" 9223372036854775807 \"9223372036854775808\""],
        ),
        (b"A b\t1\n", Tabs, PLAIN, &["\"A b\" 1"]),
        (b"\"A\tb\"\t1\n", Tabs, PLAIN, &["\"A\\tb\" 1"]),
        (b"\"A\tb\"\n", RawTabs, PLAIN, &["\"\\\"A\" \"b\\\"\""]),
        (b"", Commas, PLAIN, &[]),
    ] {
        assert_eq!(rows(bytes, dialect, layout).unwrap(), expected, "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn faults_of_tables_name_the_line() {
    let fault = |bytes: &[u8], layout| rows(bytes, Dialect::Commas, layout).unwrap_err();
    assert_eq!(fault(b"a,b\nc\n", PLAIN), "line 2: 1 cells, the first line has 2");
    let header = Layout { values: false, header: true };
    assert_eq!(fault(b"x,y,z\na,b\n", header), "line 2: 2 cells, the first line has 3");
    assert_eq!(fault(b"a,1\nb,x\n", VALUES), "line 2: the value `x` is no number");
    assert_eq!(fault(b"a\n\xff\n", PLAIN), "line 2: this is no UTF-8");
}

#[test]
fn texts() {
    let mut symbols = Symbols::default();
    let facts = words::read("Alice  loves\nBob 7\n".as_bytes(), &mut symbols).unwrap();
    assert_eq!(show(&facts, &symbols), ["0 Alice", "1 \"loves\"", "2 Bob", "3 \"7\""]);
    let fault = words::read(b"a\nb \xc0", &mut symbols).unwrap_err();
    assert_eq!(fault.to_string(), "line 2: this is no UTF-8");
}

/// A `.npy` file with this dictionary and these data.
fn file(version: u8, dictionary: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend(u16::try_from(dictionary.len()).unwrap().to_le_bytes()),
        _ => bytes.extend(u32::try_from(dictionary.len()).unwrap().to_le_bytes()),
    }
    bytes.extend(dictionary.as_bytes());
    bytes.extend(data);
    bytes
}

fn dictionary(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
}

#[test]
fn arrays_of_all_types() {
    for (descr, data, expected) in [
        ("<f8", &1.5_f64.to_le_bytes() as &[u8], 1.5),
        (">f8", &1.5_f64.to_be_bytes(), 1.5),
        ("<f4", &(-2.5_f32).to_le_bytes(), -2.5),
        (">f4", &(-2.5_f32).to_be_bytes(), -2.5),
        ("<f2", &[0x00, 0x3c], 1.0),
        (">f2", &[0xc0, 0x00], -2.0),
        ("<f2", &[0xff, 0x7b], 65504.0),
        ("<f2", &[0x01, 0x00], 5.960464477539063e-8),
        ("<f2", &[0x00, 0x7c], f64::INFINITY),
        ("<i8", &(-3_i64).to_le_bytes(), -3.0),
        (">i4", &(-3_i32).to_be_bytes(), -3.0),
        ("<i2", &(-300_i16).to_le_bytes(), -300.0),
        ("|i1", &[0xff], -1.0),
        ("<u8", &u64::MAX.to_le_bytes(), 18446744073709551615.0),
        ("<u4", &u32::MAX.to_le_bytes(), 4294967295.0),
        (">u2", &[1, 0], 256.0),
        ("|u1", &[0xff], 255.0),
        ("|b1", &[1], 1.0),
        ("=f8", &1.5_f64.to_ne_bytes(), 1.5),
    ] {
        for version in 1..=3 {
            let bytes = file(version, &dictionary(descr, "False", "()"), data);
            // 2⁶⁴ - 1 is 1 less than the nearest of 53 digits.
            let rest = if descr == "<u8" { vec![-1.0] } else { vec![] };
            let expected = Dense { shape: vec![], values: vec![expected], rest };
            assert_eq!(npy::read(&bytes).unwrap(), expected, "{descr}");
        }
    }
}

/// Counts of arrays have all their digits, in whatever order they stand, and on both engines.
/// A dense file under a relation gives a tuple with a value for each entry, as an array in the text does.
#[test]
fn arrays_of_files_are_relations_too() {
    let folder = tempfile::tempdir().unwrap();
    let data: Vec<u8> = [0.0, 1.0, 2.5, -3.0].iter().flat_map(|value: &f64| value.to_le_bytes()).collect();
    let array = file(1, &dictionary("<f8", "False", "(2, 2)"), &data);
    std::fs::write(folder.path().join("n.npy"), array).unwrap();
    let text = |given: &str| format!("k : {{P, Q}}\nA(k, x) = {given}\nA(k, x)?\nS[k] = A(k, x)\nS?\n");
    let run = |given: &str, engine: &str| {
        std::fs::write(folder.path().join("p.tl"), text(given)).unwrap();
        let (status, said, _) =
            common::command::tl(folder.path(), &["run", "p.tl", "--json", "--engine", engine], b"");
        assert_eq!(status, Some(0), "{said}");
        said
    };
    for engine in ["auto", "reference"] {
        let wanted = run("[[0, 1], [2.5, -3]]", engine);
        assert!(wanted.contains("[1.0, -0.5]"), "{wanted}");
        assert_eq!(run("\"n.npy\"", engine), wanted);
    }
}

#[test]
fn counts_of_arrays_have_all_their_digits() {
    let folder = tempfile::tempdir().unwrap();
    let counts = [9_007_199_254_740_993_i64, 2, -4_611_686_018_427_387_905, i64::MAX, 5, 6];
    let data: Vec<u8> = counts.iter().flat_map(|count| count.to_be_bytes()).collect();
    let beyond = file(1, &dictionary("<u8", "False", "(1,)"), &(1_u64 << 63).to_le_bytes());
    let halves = file(1, &dictionary("<f8", "False", "(1,)"), &0.5_f64.to_le_bytes());
    let array = file(1, &dictionary(">i8", "True", "(2, 3)"), &data);
    for (name, bytes) in [("n.npy", array), ("b.npy", beyond), ("h.npy", halves)] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let run = |text: &str, engine: &str| {
        std::fs::write(folder.path().join("p.tl"), text).unwrap();
        common::command::tl(folder.path(), &["run", "p.tl", "--json", "--engine", engine], b"")
    };
    for engine in ["auto", "reference"] {
        let (_, said, _) = run("N[i, j] : count\nN = \"n.npy\"\nN?\n", engine);
        let rows = "[[9007199254740993, -4611686018427387905, 5], [2, 9223372036854775807, 6]]";
        assert!(said.contains(rows), "{engine}: {said}");
        for (name, code) in [("b.npy", "overflow"), ("h.npy", "type-conflict")] {
            let (_, said, _) = run(&format!("N[i] : count\nN = \"{name}\"\nN?\n"), engine);
            assert!(said.contains(&format!("\"code\": \"{code}\"")), "{engine}: {said}");
        }
    }
}

#[test]
fn arrays_in_both_orders() {
    let data = [0_u8, 1, 2, 3, 4, 5];
    let read = |fortran| npy::read(&file(1, &dictionary("|u1", fortran, "(2, 3)"), &data)).unwrap();
    assert_eq!(read("False").values, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(read("True").values, [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    let cube: Vec<u8> = (0..24).collect();
    let turned = npy::read(&file(1, &dictionary("|u1", "True", "(2, 3, 4)"), &cube)).unwrap().values;
    for (i, j, k) in (0..2).flat_map(|i| (0..3).flat_map(move |j| (0..4).map(move |k| (i, j, k)))) {
        assert_eq!(turned[(i * 3 + j) * 4 + k], (i + 2 * (j + 3 * k)) as f64);
    }
    let spaced = "{ \"shape\":(3L,),\"descr\" : \"|u1\", \"fortran_order\":True}";
    assert_eq!(npy::read(&file(2, spaced, &[7, 8, 9])).unwrap().values, [7.0, 8.0, 9.0]);
    let empty = npy::read(&file(1, &dictionary("<f8", "True", "(0, 3)"), &[])).unwrap();
    assert_eq!(empty, Dense { shape: vec![0, 3], values: vec![], rest: vec![] });
}

#[test]
fn hostile_arrays_are_refused_before_anything_is_allocated() {
    let refused = |bytes: &[u8], word: &str| {
        let fault = npy::read(bytes).unwrap_err().to_string();
        assert!(fault.contains(word), "{fault}");
    };
    let one = 1.5_f64.to_le_bytes();
    refused(&file(1, &dictionary("<f8", "False", "(1099511627776,)"), &one), "8 bytes follow");
    refused(&file(1, &dictionary("<f8", "False", "(1099511627776, 1099511627776)"), &one), "bytes follow");
    refused(&file(1, &dictionary("<f8", "False", "(99999999999999999999,)"), &one), "no shape");
    refused(&file(1, &dictionary("<f8", "False", "(2,)"), &one), "8 bytes follow");
    refused(&file(1, &dictionary("<f8", "False", "()"), &[0; 9]), "9 bytes follow");
    refused(&file(1, &dictionary("<f8", "False", "(1099511627776, 0)"), &[]), "no elements");
    refused(&file(1, &dictionary("<c16", "False", "()"), &[0; 16]), "`<c16`");
    refused(&file(1, &dictionary("|O", "False", "()"), &one), "`|O`");
    refused(&file(4, &dictionary("<f8", "False", "()"), &one), "version");
    refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "ends within its header");
    refused(b"PK", "no .npy file");
    refused(&file(1, "{'descr': [('a', '<f8')], }", &one), "no simple element type");
    refused(&file(1, "{'descr': '<f8'", &one), "no `,`");
}

#[test]
fn arrays_come_back() {
    let dense = |shape: &[usize], values: &[f64]| Dense {
        shape: shape.to_vec(),
        values: values.to_vec(),
        rest: vec![],
    };
    for shape in [vec![], vec![3], vec![2, 3], vec![2, 0, 4]] {
        let count = shape.iter().product::<usize>();
        let values: Vec<f64> = (0..count).map(|at| 0.1 * at as f64 - 1.0).collect();
        let mut bytes = Vec::new();
        npy::write(&shape, &values, &mut bytes).unwrap();
        assert_eq!((bytes.len() - 8 * count) % 64, 0);
        assert_eq!(npy::read(&bytes).unwrap(), dense(&shape, &values));
        let mut bytes = Vec::new();
        safe::write(None, "W", &shape, &values, &mut bytes).unwrap();
        assert_eq!(safe::read(&bytes, None, "Other").unwrap(), dense(&shape, &values));
    }
}

#[test]
fn safetensors_are_added_and_replaced() {
    let write = |before: Option<&[u8]>, name: &str, value: f64| {
        let mut bytes = Vec::new();
        safe::write(before, name, &[1], &[value], &mut bytes).unwrap();
        bytes
    };
    let one = write(None, "W", 1.0);
    let two = write(Some(&one), "V", 2.0);
    let three = write(Some(&two), "W", 3.0);
    let read = |wanted, tensor| safe::read(&three, wanted, tensor).map(|dense| dense.values[0]);
    assert_eq!(read(Some("w"), "X").unwrap(), 3.0);
    assert_eq!(read(None, "V").unwrap(), 2.0);
    assert_eq!(read(Some("x"), "V").unwrap_err().to_string(), "there is no tensor `x`; it holds V, W");
    assert!(read(None, "X").is_err());
    assert!(safe::write(Some(b"no such file"), "W", &[], &[1.0], &mut Vec::new()).is_err());
}

/// Layers of other libraries have names with dots.
#[test]
fn safetensors_of_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    safe::write(None, "layers.0.weight", &[2], &[1.0, 2.0], &mut bytes).unwrap();
    std::fs::write(folder.path().join("m.safetensors"), bytes).unwrap();
    let answer = |option: &str| {
        let text = format!("W = \"m.safetensors\" as {option}\nW?\n");
        let (_, said, objected) = common::command::tl(folder.path(), &["run", "-"], text.as_bytes());
        said + &objected
    };
    assert_eq!(answer("\"layers.0.weight\""), "W?\n  [1.0, 2.0]\n");
    assert!(
        answer("\"layers.1.weight\"")
            .contains("there is no tensor `layers.1.weight`; it holds layers.0.weight")
    );
    assert!(answer("layers").contains("there is no tensor `layers`"));
}

#[test]
fn hostile_safetensors_are_refused() {
    let header = |text: &str, data: usize| {
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        bytes
    };
    for bytes in [
        header("{\"W\":{\"dtype\":\"F64\",\"shape\":[1099511627776],\"data_offsets\":[0,8796093022208]}}", 8),
        header("{\"W\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8),
        header("{\"W\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}", 8),
        header("{\"W\":{\"dtype\":\"F64\",\"shape\":[1099511627776,0],\"data_offsets\":[0,0]}}", 0),
        header("{\"W\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,0]}}", 8),
        u64::MAX.to_le_bytes().to_vec(),
        b"\xff\xff\xff\xff\xff\xff\xff\x7f{}".to_vec(),
        Vec::new(),
    ] {
        assert!(safe::read(&bytes, None, "W").is_err());
    }
}

/// No bytes, random or nearly right, make a reader panic, hang or allocate more than they hold.
#[test]
fn random_bytes() {
    let mut stream = common::stream("files");
    let mut valid: Vec<Vec<u8>> = vec![
        b"Ann,3,0.5\r\n\"x\"\"y\",4,1e3\n".to_vec(),
        file(1, &dictionary("<f4", "True", "(2, 3)"), &[1; 24]),
        file(3, &dictionary(">i2", "False", "(3,)"), &[1; 6]),
    ];
    for name in ["W", "V"] {
        let mut bytes = Vec::new();
        safe::write(valid.get(3).map(Vec::as_slice), name, &[2, 2], &[1.0; 4], &mut bytes).unwrap();
        valid.push(bytes);
    }
    for _ in 0..4_000 {
        let mut bytes = match stream.below(8) as usize {
            at if at < valid.len() => valid[at].clone(),
            _ => (0..stream.below(80)).map(|_| stream.below(256) as u8).collect(),
        };
        for _ in 0..stream.below(4) {
            let at = stream.below(bytes.len() as u64 + 1) as usize;
            match stream.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, stream.below(256) as u8),
                2 => bytes.insert(at, b"0123456789,()'\"{}\t\n"[stream.below(19) as usize]),
                _ => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= 1 << stream.below(8);
                    }
                }
            }
        }
        let mut symbols = Symbols::default();
        for layout in [PLAIN, VALUES] {
            for dialect in [Dialect::Commas, Dialect::Tabs, Dialect::RawTabs] {
                let _ = table::read(&bytes, dialect, layout, &mut symbols);
            }
        }
        let _ = words::read(&bytes, &mut symbols);
        let arrays = [npy::read(&bytes).ok(), safe::read(&bytes, None, "W").ok()];
        for array in arrays.into_iter().flatten() {
            assert_eq!(array.values.len(), array.shape.iter().product::<usize>());
            assert!(array.values.len() <= bytes.len());
        }
    }
}

/// A relation of every kind of word comes back as it was.
#[test]
fn tables_come_back() {
    let mut stream = common::stream("tables");
    for dialect in [Dialect::Commas, Dialect::Tabs, Dialect::RawTabs] {
        for _ in 0..300 {
            let mut symbols = Symbols::default();
            let letters = if dialect == Dialect::RawTabs { "aÄ \"'," } else { "aÄ \"',\t\n\r" };
            let letters: Vec<char> = letters.chars().collect();
            let mut tuples = Tuples::default();
            for _ in 0..stream.below(5) {
                let word: String = (0..1 + stream.below(4))
                    .map(|_| letters[stream.below(letters.len() as u64) as usize])
                    .collect();
                let number = Const::Int(stream.next_u64() as i64);
                tuples.tuples.push(vec![Const::Symbol(symbols.intern(&word)), number]);
                tuples.values.push(stream.normal());
            }
            let value = Value::Tuples(tuples.clone());
            let mut bytes = Vec::new();
            let rows = Rows { value: &value, domains: &[], kind: Kind::Real };
            table::write(&rows, &symbols, dialect, &mut bytes).unwrap();
            let facts = table::read(&bytes, dialect, VALUES, &mut symbols).unwrap();
            let read: Vec<Vec<Const>> = (0..facts.count).map(|at| facts.tuple(at).to_vec()).collect();
            assert_eq!(read, tuples.tuples, "{:?}", String::from_utf8_lossy(&bytes));
            assert_eq!(facts.values, tuples.values);
        }
    }
}

fn text(value: &str) -> Text {
    Text { value: value.to_owned(), span: Span { start: 4, end: 9 } }
}

fn code(files: &mut Files, file: &str, options: &[&str]) -> Option<Code> {
    let option = |text: &&str| Name { text: (*text).to_owned(), span: Span::default() };
    let options: Vec<Name> = options.iter().map(option).collect();
    files
        .load(&Wanted { tensor: "M", file: &text(file), options: &options }, &mut Symbols::default())
        .err()
        .map(|report| report.code)
}

#[test]
fn paths_and_endings() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("in")).unwrap();
    std::fs::write(folder.path().join("in/a.csv"), "1,2\n3\n").unwrap();
    std::fs::write(folder.path().join("b.txt"), "x y\n").unwrap();
    std::fs::write(folder.path().join("c.doc"), "x y\n").unwrap();
    let mut files = Files::new(folder.path());
    for (file, expected) in [
        ("b.txt", None),
        ("./b.txt", None),
        ("in/a.csv", Some(Code::FileFormat)),
        ("c.doc", Some(Code::FileFormat)),
        ("no.txt", Some(Code::FileNotFound)),
        ("../b.txt", Some(Code::FileNotFound)),
        ("in/../b.txt", Some(Code::FileNotFound)),
        ("/etc/hosts.txt", Some(Code::FileNotFound)),
        ("in.txt", Some(Code::FileNotFound)),
        ("a\0.txt", Some(Code::FileNotFound)),
        (".csv", Some(Code::FileFormat)),
    ] {
        assert_eq!(code(&mut files, file, &[]), expected, "{file}");
    }
    std::fs::create_dir(folder.path().join("d.txt")).unwrap();
    assert_eq!(code(&mut files, "d.txt", &[]), Some(Code::FileNotFound));
    assert_eq!(code(&mut files, "b.txt", &["values"]), Some(Code::BadArgument));
    let mut presence = Files::presence(folder.path());
    assert_eq!(code(&mut presence, "in/a.csv", &[]), None);
    assert_eq!(code(&mut presence, "no.txt", &[]), Some(Code::FileNotFound));
}

/// A program reads its files when it is analysed; a tensor read as a whole has the file's rank.
#[test]
fn programs_read_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("r.csv"), "Ann,3,0.5\nBob,4,0.25\n").unwrap();
    let mut bytes = Vec::new();
    npy::write(&[2, 3], &[1.0; 6], &mut bytes).unwrap();
    std::fs::write(folder.path().join("w.npy"), bytes).unwrap();
    let analyse = |text: &str| {
        let functions = tensor_logic::function::UserFunctions::default();
        let options = tensor_logic::lower::Options::default();
        tensor_logic::analyse::analyse(text, &mut Files::new(folder.path()), &functions, &options)
    };
    for (text, rank, kind) in [
        ("M = \"r.csv\"\nM?", 3, Kind::Bool),
        ("M = \"r.csv\" as values\nM?", 2, Kind::Real),
        ("M = \"r.csv\" as values\nM(Ann, x)?", 2, Kind::Real),
        ("M = \"w.npy\"\nM?", 2, Kind::Real),
        ("M = \"w.npy\"\nY = M[i, j]\nY?", 2, Kind::Real),
    ] {
        let analysed = analyse(text).unwrap();
        let tensor = analysed.program.tensors.iter().find(|tensor| tensor.name == "M").unwrap();
        assert_eq!((tensor.places.len(), tensor.kind), (rank, kind), "{text}");
    }
    // What has two values has their sum, and somebody may not know that.
    std::fs::write(folder.path().join("twice.csv"), "Ann,3,0.5\nBob,4,0.25\nAnn,3,1\n").unwrap();
    for (text, warned) in [("M = \"twice.csv\" as values\nM?", 1), ("M = \"r.csv\" as values\nM?", 0)] {
        let warnings = analyse(text).unwrap().warnings;
        assert_eq!(warnings.len(), warned, "{text}");
        let said = |warning: &Warning| {
            warning.code == Code::DuplicateFact && warning.message.contains("`M(Ann, 3)` a value twice")
        };
        assert!(warnings.iter().all(said), "{warnings:?}");
    }
    let refused = |text: &str| analyse(text).unwrap_err()[0].code;
    assert_eq!(refused("M = \"r.csv\"\nM(x, y)?"), Code::FileFormat);
    assert_eq!(refused("M = \"missing.txt\"; M?"), Code::FileNotFound);
}

fn program(style: Style, kind: Kind, domains: Vec<Domain>, symbols: Symbols) -> Program {
    let place = |domain| Place { domain: Some(domain), limit: None, star: false };
    let tensor = Tensor {
        name: "W".to_owned(),
        version: 0,
        hidden: false,
        style,
        kind,
        combine: Combine::Sum,
        places: domains.into_iter().map(place).collect(),
        role: Role::Data,
        given: Vec::new(),
        start: None,
        span: Span::default(),
    };
    Program { symbols, tensors: vec![tensor], ..Program::default() }
}

#[test]
fn writing() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Files::new(folder.path());
    let mut symbols = Symbols::default();
    let [ann, bob] = ["Ann", "Bob"].map(|name| Const::Symbol(symbols.intern(name)));
    let span = Span::default();
    let domains = vec![Domain::listed([ann, bob]), Domain::size(2)];
    let square = program(Style::Square, Kind::Real, domains, symbols.clone());
    let dense = Value::Dense(vec![1.0, 0.1, 3.0, 4.0].into());
    for file in ["w.npy", "w.safetensors", "w.csv"] {
        files.write(&square, file, TensorId(0), &dense, span).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(folder.path().join("w.csv")).unwrap(),
        "Ann,0,1.0\nAnn,1,0.1\nBob,0,3.0\nBob,1,4.0\n"
    );
    for file in ["w.npy", "w.safetensors"] {
        let Loaded::Array { shape, values, .. } = files
            .load(&Wanted { tensor: "W", file: &text(file), options: &[] }, &mut Symbols::default())
            .unwrap()
        else {
            unreachable!("{file}")
        };
        assert_eq!((shape, values.to_vec()), (vec![2, 2], vec![1.0, 0.1, 3.0, 4.0]));
    }
    let relation = program(Style::Round, Kind::Bool, vec![], symbols);
    let tuples = vec![vec![Const::Int(0), ann], vec![Const::Int(1), bob]];
    let relation_value = Value::Tuples(Tuples { tuples, values: vec![1.0, 1.0], counts: Vec::new() });
    for (file, expected) in
        [("r.txt", "Ann Bob\n"), ("r.tsv", "0\tAnn\n1\tBob\n"), ("r.csv", "0,Ann\n1,Bob\n")]
    {
        files.write(&relation, file, TensorId(0), &relation_value, span).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join(file)).unwrap(), expected);
    }
    let refused = |program: &Program, file: &str, value: &Value| {
        files.write(program, file, TensorId(0), value, span).unwrap_err().code
    };
    assert_eq!(refused(&relation, "r.npy", &relation_value), Code::FileFormat);
    let tuples = vec![vec![Const::Int(0), Const::Int(7)]];
    let number = Value::Tuples(Tuples { tuples, values: vec![1.0], counts: Vec::new() });
    assert_eq!(refused(&relation, "r.txt", &number), Code::FileFormat, "7 would be read as \"7\"");
    assert_eq!(refused(&square, "w.txt", &dense), Code::FileFormat);
    assert_eq!(refused(&square, "../w.npy", &dense), Code::FileNotFound);
    assert_eq!(refused(&square, "no/w.npy", &dense), Code::FileNotFound);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 6, "no temporary file is left");
    assert!(Path::new(folder.path()).join("w.npy").exists());
}
