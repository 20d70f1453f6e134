//! The dialogue of `tl repl`, the notebook below it, and what `tl explain` says.

use std::path::Path;

use crate::common;
use tensor_logic::analyse::analyse;
use tensor_logic::console::{Console, Next, Reaction};
use tensor_logic::explain::explain;
use tensor_logic::function::UserFunctions;
use tensor_logic::lower::{NoFiles, Options};
use tensor_logic::notebook::{Array, EngineKind, Notebook};

/// Lines in, what is said out: complaints begin with `!` and are cut to their first line.
fn talk(console: &mut Console, lines: &[&str]) -> Vec<String> {
    let mut said = Vec::new();
    for line in lines {
        for reaction in console.line(line).0 {
            said.push(match reaction {
                Reaction::Say(text) => text,
                Reaction::Complain(text) => format!("! {}", text.lines().next().unwrap_or("")),
            });
        }
    }
    said
}

fn console() -> Console {
    Console::new(Notebook::new(""))
}

#[test]
fn statements_stay_and_queries_answer() {
    let mut console = console();
    let said = talk(
        &mut console,
        &[
            "Edge(Ann, Bob); Edge(Bob, Cal)",
            "Reach(x, y) <- Edge(x, y)",
            "Reach(x, z) <- Reach(x, y),",
            "Edge(y, z)",
            "Reach(Ann, x)?",
        ],
    );
    assert_eq!(said, ["Reach(Ann, x)?\n  x = Bob\n  x = Cal"]);
    let said = talk(&mut console, &["W = [[1, 2],", "[3, 4]]", "Y = W[i, i]; Y?", ":list"]);
    assert_eq!(said[0], "Y?\n  5.0");
    assert_eq!(said.len(), 1 + 6, "{said:?}");
}

#[test]
fn a_refused_statement_is_not_kept() {
    let mut console = console();
    let said = talk(
        &mut console,
        &["A = [1, 2]", "B = [1, 2, 3]", "Y = A[i] B[i]", "Y = A[i]; Y?", "A[?", ")", ":nonsense"],
    );
    assert!(said[0].starts_with("! error[size-conflict]"), "{said:?}");
    assert_eq!(said[1], "Y?\n  3.0");
    assert!(said[2].starts_with("! error[syntax]"), "{said:?}");
    assert!(said.last().unwrap().starts_with("! there is no `:nonsense`"), "{said:?}");
}

#[test]
fn names_are_dropped_completed_and_loaded() {
    let mut console = console();
    assert!(talk(&mut console, &["Alpha = 2", "Beta = 3 Alpha"]).is_empty());
    assert_eq!(console.completions("Al"), ["Alpha"]);
    assert_eq!(console.completions("soft"), ["softmax", "softplus"]);
    assert!(talk(&mut console, &[":drop Beta", "Beta = 5 Alpha"]).is_empty());
    assert_eq!(talk(&mut console, &["Beta?"]), ["Beta?\n  10.0"]);
    assert_eq!(talk(&mut console, &[":drop Gamma"]), ["! no statement defines `Gamma`"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("more.tl");
    std::fs::write(&path, "# comment\nGamma = Beta + 1\nGamma?\n").unwrap();
    let load = format!(":load {}", path.display());
    assert_eq!(talk(&mut console, &[&load]), ["Gamma?\n  11.0"]);
    assert!(matches!(console.load(Path::new("none.tl")).as_slice(), [Reaction::Complain(_)]));
    assert_eq!(console.line(":quit").1, Next::Quit);
}

#[test]
fn an_empty_line_ends_what_goes_on() {
    let mut console = console();
    assert_eq!(console.line("Y = (1 +").1, Next::Rest);
    let (said, next) = console.line("");
    assert_eq!(next, Next::Statement);
    assert!(matches!(said.as_slice(), [Reaction::Complain(_)]));
}

#[test]
fn what_is_learned_stays() {
    let mut notebook = Notebook::new("W ~ 0; X = [1, 2, 3]; Y = [2, 4, 6]; Loss = (W X[i] - Y[i])^2");
    notebook.ask("Loss? @minimize(opt=sgd, lr=0.02, steps=200)").unwrap();
    let learned = notebook.ask("W?").unwrap().number().unwrap();
    assert!((learned - 2.0).abs() < 1e-6, "{learned}");
    notebook.set("W", 1.0);
    assert_eq!(notebook.ask("Loss?").unwrap().number(), Some(14.0));
}

#[test]
fn data_from_outside_replaces_that_of_the_text() {
    for engine in [EngineKind::Auto, EngineKind::Reference] {
        let mut notebook =
            Notebook::new("N = 2; A = [1, 2, 3]; E(0, 1); Y[i] = N A[i]; S(y) += E(x, y) A[x]\nY?");
        notebook.set_engine(engine);
        assert_eq!(notebook.run().unwrap()[0].values(), [2.0, 4.0, 6.0]);
        notebook.set("A", [5.0, 6.0]);
        notebook.set("N", 3.0);
        notebook.relation("E", [(0, 7), (1, 7)]);
        let reply = notebook.ask("Y[i]?").unwrap();
        assert_eq!((reply.values(), reply.shape()), (&[15.0, 18.0][..], vec![2]));
        let reply = notebook.ask("S(y)?").unwrap();
        assert_eq!((reply.tuples(), reply.values()), (vec![vec![7.into()]], &[11.0][..]));
        assert_eq!(notebook.ask("E(1, 7)?").unwrap().holds(), Some(true));
        notebook.set("A", Array::new([2, 2], [1.0; 4]));
        let refused = notebook.ask("Y[i]?").unwrap_err();
        assert!(refused.to_string().contains("rank"), "{refused}");
    }
}

/// Rows, elements and files of the text give way too; what is a rule or an equation stays.
#[test]
fn data_in_parts_is_replaced_and_only_a_run_writes() {
    let folder = tempfile::tempdir().unwrap();
    let text = "A[0, j] = [1, 2]; A[1, 0] = 3; A[k, 1] = B[k]; B = [5, 6]\n\
                C = \"none.npy\"; R(0) = 2; S(x) += R(x); \"out.csv\" = B\nA?";
    let mut notebook = Notebook::new(text);
    notebook.set_folder(folder.path());
    notebook.set("A", [[10.0, 0.0], [20.0, 0.0]]);
    notebook.set("C", [7.0]);
    notebook.valued("R", [((3,), 1.5)]);
    assert_eq!(notebook.ask("A?").unwrap().values(), [10.0, 5.0, 20.0, 6.0]);
    assert_eq!(notebook.ask("C?").unwrap().values(), [7.0]);
    let reply = notebook.ask("S(x)?").unwrap();
    assert_eq!((reply.tuples(), reply.values()), (vec![vec![3.into()]], &[1.5][..]));
    assert!(!folder.path().join("out.csv").exists());
    assert_eq!(notebook.run().unwrap().len(), 1);
    assert!(folder.path().join("out.csv").exists());
}

#[test]
fn every_program_of_the_corpus_is_explained() {
    for (name, text) in common::programs() {
        let analysed = analyse(&text, &mut NoFiles, &UserFunctions::default(), &Options::default());
        let Some(analysed) = common::legal(&name, analysed) else { continue };
        let explanation = explain(&analysed.program, &text);
        let fields = explanation.fields();
        let keys: Vec<&str> = fields.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["tensors", "components", "equations", "plans"]);
        for (key, json) in &fields {
            let parsed: serde_json::Value = serde_json::from_str(json).unwrap();
            assert!(parsed.is_array(), "{name}: {key}");
        }
        assert!(explanation.text().starts_with("Tensors\n"));
    }
}
