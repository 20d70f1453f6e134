//! The dialogue of `tl repl`, the notebook below it, and what `tl explain` says.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::common;
use tensor_logic::analyse::analyse;
use tensor_logic::console::{Console, Next, Reaction};
use tensor_logic::error::{Code, Refusal};
use tensor_logic::explain::explain;
use tensor_logic::fast::Precision;
use tensor_logic::function::UserFunctions;
use tensor_logic::lower::{NoFiles, Options};
use tensor_logic::notebook::{Array, EngineKind, Notebook};
use tensor_logic::profile::{Executor, Profile};

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

/// A parameter that is dropped starts anew; until then it is what was learned.
#[test]
fn what_was_learned_of_a_name_is_dropped_with_it() {
    let mut console = console();
    let learn = "Loss? @minimize(opt=sgd, lr=0.5, steps=1)";
    talk(&mut console, &["W ~ 0", "Loss = (W - 3)^2", learn]);
    assert_eq!(talk(&mut console, &["W?"]), ["W?\n  3.0"]);
    assert_eq!(talk(&mut console, &[":drop W", "W ~ 5", "W?"]), ["W?\n  5.0"]);
    talk(&mut console, &[learn]);
    assert_eq!(talk(&mut console, &["W?"]), ["W?\n  3.0"]);
}

/// What an `@minimize` learned without a declaration is a parameter behind it too, until it is dropped or given.
#[test]
fn what_was_learned_without_a_declaration_is_read() {
    for engine in [EngineKind::Auto, EngineKind::Reference] {
        let mut notebook = Notebook::new("");
        notebook.set_engine(engine);
        let mut console = Console::new(notebook);
        let learn = "Loss? @minimize(opt=sgd, lr=0.5, steps=1)";
        let text = "i : {Ann, Bob}\nX[Ann] = 1; X[Bob] = 2; Loss = sum[i]((W[i] - X[i])^2)";
        assert_eq!(talk(&mut console, &[text, "W[i]?"]).len(), 1, "nothing is learned yet");
        talk(&mut console, &[learn]);
        let said = talk(&mut console, &["W[i]?", "Loss?"]);
        assert_eq!(said, ["W[i]?\n  [Ann 1.0, Bob 2.0]", "Loss?\n  0.0"]);
        assert_eq!(talk(&mut console, &["Y = W[Bob]", "Y?"]), ["Y?\n  2.0"]);
        let gradient = talk(&mut console, &[":grad Loss"]);
        assert_eq!(gradient[0], "Loss\n  0.0", "{gradient:?}");
        // Data are what the program says.
        assert_eq!(talk(&mut console, &["W = [4, 2]", "Loss?", ":drop W"]), ["Loss?\n  9.0"]);
        let said = talk(&mut console, &["Y?"]);
        assert!(said[0].starts_with("! error[missing-data]"), "{said:?}");
        assert_eq!(talk(&mut console, &[":drop W"]), ["! no statement defines `W`"]);
        talk(&mut console, &[learn]);
        assert!(talk(&mut console, &[":drop W"]).is_empty(), "what was learned is dropped");
        assert!(talk(&mut console, &["Y?"])[0].starts_with("! error[missing-data]"));
    }
}

/// What an `@minimize` did not move is a parameter all the same, and what a query is warned of is said.
#[test]
fn what_stays_where_it_started_is_read_too() {
    let mut console = console();
    let said = talk(
        &mut console,
        &[
            "X = [1, 2]",
            "d : 2",
            "Loss = sum[d]((W[d] - X[d])^2)",
            "Loss? @minimize(lr=0, steps=3)",
            "W?",
            "Loss?",
        ],
    );
    assert_eq!(said.len(), 4, "{said:?}");
    assert!(said[1].starts_with("! warning[implicit-parameter]: `W` has no data"), "{said:?}");
    assert!(said[2].starts_with("W?\n") && said[3].starts_with("Loss?\n"), "{said:?}");
    let said = talk(
        &mut console,
        &["Los? @minimize(opt=sgd, lr=0.1, steps=10)", "Age(Ann) = 3; Age(Bob) = 4", "Age(x) > 5?"],
    );
    assert!(said.iter().any(|line| line.starts_with("! warning[implicit-parameter]: `Los`")), "{said:?}");
    assert!(said.iter().any(|line| line.starts_with("! warning[scope]")), "{said:?}");
}

/// What drops a size can be mended statement by statement, sizes may come behind what has them, and what counts twice is told.
#[test]
fn statements_mend_what_is_no_program_any_more() {
    let mut console = console();
    let said = talk(
        &mut console,
        &["i : 3", "j : 2", "X[i, j] ~ 1", "Q = 5", ":drop i", ":drop j", "j : 2", "i : 3", "Q?", "X?"],
    );
    assert!(said[0].starts_with("! error[unknown-size]"), "{said:?}");
    assert_eq!(said[said.len() - 2], "Q?\n  5.0", "{said:?}");
    assert!(said.last().unwrap().starts_with("X?\n"), "{said:?}");
    let said = talk(&mut console, &["Y[s, d] = X[s, d]", "W[e] ~ 0", "Z = [1, 2]", "P = W[e] Z[e]", "P?"]);
    assert!(said[0].starts_with("! error[unknown-size]"), "{said:?}");
    assert_eq!(said.last().unwrap(), "P?\n  0.0", "{said:?}");
    let said = talk(&mut console, &["T = sum[e](Z[e])", "T = sum[e](Z[e])", "T?"]);
    assert!(said[0].starts_with("! warning: `T = sum[e](Z[e])` stands there already"), "{said:?}");
    assert_eq!(said.last().unwrap(), "T?\n  6.0");
}

/// What was learned belongs to elements: others may come, go, or stand in another order.
#[test]
fn what_was_learned_of_an_element_stays_its_own() {
    let mut console = console();
    let program = |listed: &str| format!("i : {{{listed}}}");
    let text = "W[i] ~ 7; T(Bob) = 1; T(Cal) = 5; Loss = sum[i]((W[i] - T(i))^2)";
    talk(&mut console, &[&program("Bob, Cal"), text, "Loss? @minimize(opt=sgd, lr=0.5, steps=1)"]);
    for (listed, wanted) in [
        ("Bob, Cal", "[Bob 1.0, Cal 5.0]"),
        ("Cal, Bob", "[Cal 5.0, Bob 1.0]"),
        ("Ann, Cal, Dan, Bob", "[Ann 7.0, Cal 5.0, Dan 7.0, Bob 1.0]"),
        ("Bob, Eve", "[Bob 1.0, Eve 7.0]"),
        ("Bob, Cal", "[Bob 1.0, Cal 5.0]"),
    ] {
        let said = talk(&mut console, &[":drop T", ":drop i", &program(listed), "W?"]);
        assert_eq!(said.last().unwrap(), &format!("W?\n  {wanted}"), "{listed}: {said:?}");
        talk(&mut console, &["T(Bob) = 1"]);
    }
    // In two places, and numbers.
    let mut notebook =
        Notebook::new("M[i, j] ~ 0; A = [[1, 2], [3, 4]]; Loss = sum[i, j]((M[i, j] - A[i, j])^2)");
    notebook.ask("Loss? @minimize(opt=sgd, lr=0.5, steps=1)").unwrap();
    notebook.set_text("i : 3; j : 1..2; M[i, j] ~ 0");
    assert_eq!(notebook.ask("M?").unwrap().values(), [2.0, 0.0, 4.0, 0.0, 0.0, 0.0]);
    notebook.set_text("M[i] ~ 9; i : 2");
    assert_eq!(notebook.ask("M?").unwrap().values(), [9.0, 9.0], "another tensor of this name");
    // What only started has learned nothing.
    let mut notebook = Notebook::new("i : 2; M[i] ~ 9; N[i] ~ normal(0, 1)");
    let before = notebook.ask("N?").unwrap().values().to_vec();
    notebook.ask("M?").unwrap();
    notebook.set_seed(77);
    assert_ne!(notebook.ask("N?").unwrap().values(), before);
    notebook.set_text("i : 2; M[i] ~ 8");
    assert_eq!(notebook.ask("M?").unwrap().values(), [8.0, 8.0]);
}

/// What an interrupt clears is gone, and directives are forgotten by their names.
#[test]
fn lines_are_cleared_and_directives_forgotten() {
    let mut console = console();
    assert_eq!(console.line("A = [1,").1, Next::Rest);
    assert!(console.clear() && !console.clear());
    assert_eq!(talk(&mut console, &["B = 2", "B?"]), ["B?\n  2.0"]);
    let said = talk(&mut console, &["W ~ 1", "@const(W)", ":drop W", "A = 1", ":drop @const", "A?"]);
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[..2].iter().all(|said| said.starts_with("! ")) && said[2] == "A?\n  1.0", "{said:?}");
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

#[test]
fn the_console_checks_explains_profiles_and_differentiates() {
    let mut console = console();
    let said = talk(
        &mut console,
        &[
            "W ~ [1, 2]; X = [3, 4]",
            "P = W[i] X[i]; Loss = (P - 10)^2",
            ":grad Loss",
            ":grad Loss W",
            ":check",
        ],
    );
    // Loss is (11 - 10)^2, and its slope 2 (11 - 10) X.
    assert_eq!(said[0], "Loss\n  1.0");
    assert_eq!(said[1], "dLoss/dW\n  [6.0, 8.0]");
    assert_eq!(said[2..4], said[..2]);
    assert_eq!(said[4], "no warning");
    assert!(
        talk(&mut console, &["D(1, 2)", "F = D(x, y) Nothing(x)", ":check"])[1].contains("empty-relation")
    );
    let said = talk(&mut console, &[":explain Loss?", ":profile Loss?", ":grad Absent", ":grad", ":profile"]);
    assert!(said[0].starts_with("Tensors\n") && said[0].contains("whole equations"), "{said:?}");
    assert!(said[1].starts_with("Loss?\n") && said[2].starts_with("Components\n"), "{said:?}");
    assert!(said[3].starts_with("! error[missing-data]"), "{said:?}");
    assert_eq!(said[4..], ["! `:grad` needs a scalar", "! `:profile` needs a query"]);
    // What is learned is where the gradient is taken.
    let said = talk(&mut console, &["Loss? @minimize(opt=sgd, lr=0.01, steps=200)", ":grad Loss"]);
    let gradient: Vec<f64> =
        said[2].split(['[', ']', ',']).filter_map(|word| word.trim().parse().ok()).collect();
    assert!(gradient.len() == 2 && gradient.iter().all(|slope| slope.abs() < 1e-6), "{said:?}");
}

/// How often rules derived a tensor, or blocks computed it.
fn calls(profile: &Profile, name: &str) -> u64 {
    let of = profile.of(name).filter(|component| component.executor != Executor::Given);
    of.map(|component| component.calls).sum()
}

/// A graph, its closure by rules, and a table of numbers over it.
const GRAPH: &str = "Reach(x, y) <- Edge(x, y)\nReach(x, z) <- Reach(x, y), Edge(y, z)\n\
                     Far[x] = Reach(x, y) Weight[y]\nFarther[x] = exp(Far[x] / 100)\n";

fn graph() -> Notebook {
    let mut notebook = Notebook::new(GRAPH);
    notebook.relation("Edge", (0..50_i64).map(|at| (at, (7 * at + 1) % 50)).chain([(3, 9), (8, 0)]));
    notebook.set("Weight", (0..50).map(|at| f64::from(at) / 50.0).collect::<Vec<f64>>());
    notebook
}

/// Twenty queries over one closure cost one; each says what a notebook says that was asked nothing before.
#[test]
fn what_was_computed_is_kept_between_queries() {
    let mut notebook = graph();
    let (first, profile) = notebook.profile("Reach(x, y)?").unwrap();
    assert_eq!(calls(&profile, "Reach"), 1);
    assert!(!first.tuples().is_empty());
    for at in 0..20 {
        let query = match at % 4 {
            0 => format!("Reach({at}, y)?"),
            1 => format!("Reach(x, {at}), Edge({at}, x)?"),
            2 => format!("Farther[{at}]?"),
            _ => "N = 3?".replace("N = 3", "Far[x]"),
        };
        let (reply, profile) = notebook.profile(&query).unwrap();
        assert_eq!(reply.to_string(), graph().ask(&query).unwrap().to_string(), "{query}");
        assert_eq!(calls(&profile, "Reach"), 0, "{query}: {profile:?}");
        assert!(calls(&profile, "Far") <= u64::from(at <= 3), "{query}: {profile:?}");
    }
}

/// What changed is computed anew, and so is what reads it.
#[test]
fn what_changes_is_not_kept() {
    let mut notebook = graph();
    notebook.ask("Farther[x]?").unwrap();
    notebook.set("Weight", vec![1.0; 50]);
    let (reply, profile) = notebook.profile("Farther[x]?").unwrap();
    assert_eq!((calls(&profile, "Reach"), calls(&profile, "Far")), (0, 1), "{profile:?}");
    let mut other = graph();
    other.set("Weight", vec![1.0; 50]);
    assert_eq!(reply.values(), other.ask("Farther[x]?").unwrap().values());
    // Another graph of the same size.
    let arcs: Vec<(i64, i64)> = (0..52).map(|at| (at % 50, (at * at + 3) % 50)).collect();
    notebook.relation("Edge", arcs.clone());
    other.relation("Edge", arcs);
    for query in ["Reach(x, y)?", "Farther[x]?"] {
        assert_eq!(
            notebook.ask(query).unwrap().to_string(),
            other.ask(query).unwrap().to_string(),
            "{query}"
        );
    }
    // Another rule, another statement before all others, a domain, a setting.
    for text in [
        format!("{GRAPH}Reach(0, x) <- Edge(x, x)\n"),
        format!("Zero = 0\nOne(A, B)\n{GRAPH}"),
        format!("y : 40\n{GRAPH}"),
        GRAPH.replace("exp(Far", "sin(Far"),
        format!("@tol(0.001)\n{GRAPH}"),
    ] {
        notebook.set_text(&*text);
        for query in ["Farther[x]?", "Reach(7, x)?"] {
            let mut fresh = other.clone();
            fresh.set_text(&*text);
            let [said, expected] = [&mut notebook, &mut fresh].map(|notebook| match notebook.ask(query) {
                Ok(reply) => reply.to_string(),
                Err(refused) => refused.to_string(),
            });
            assert_eq!(said, expected, "{query} of {text}");
        }
    }
    // The constants of a query may be those that a recursion goes to.
    let mut steps = Notebook::new("X[0] = 1; X[t+1] = 2 X[t]");
    for at in [3, 5, 4, 5] {
        assert_eq!(steps.ask(&format!("X[{at}]?")).unwrap().number(), Some(f64::from(1 << at)));
    }
    // A function of the same name.
    let mut notebook = Notebook::new("Y = f(3)");
    for factor in [2.0, 5.0] {
        notebook.function("f", move |x| factor * x, move |_| factor);
        assert_eq!(notebook.ask("Y?").unwrap().number(), Some(3.0 * factor));
    }
}

/// Whether a goal is made by rules is asked anew of every query.
#[test]
fn a_query_after_another_is_by_rules_as_well() {
    let mut notebook =
        Notebook::new("K(i, j) : maxtimes\nK(2, 1) = -0\nK(1, 1) = 1\nT[j, i] = K(1, j) K(2, i)\n");
    notebook.ask("T[a, b]?").unwrap();
    let alone = notebook.clone().ask("K(i, j)?").unwrap().to_string();
    let (reply, profile) = notebook.profile("K(i, j)?").unwrap();
    assert_eq!(reply.to_string(), alone);
    assert!(profile.components.iter().any(|of| of.method == Some("each once")), "{profile:?}");
}

/// Random programs asked in one notebook say what they say alone.
#[test]
fn a_dialogue_says_what_programs_say_alone() {
    let mut stream = common::stream("dialogue");
    let (mut asked, mut same) = (0, 0);
    for _ in 0..150 {
        let lines = common::generator::program(&mut stream);
        let (queries, text): (Vec<&String>, Vec<&String>) =
            lines.iter().partition(|line| line.contains('?') && !line.contains('@'));
        let text =
            text.into_iter().filter(|line| !line.contains('?')).cloned().collect::<Vec<_>>().join("\n");
        let mut notebook = Notebook::new(&*text);
        notebook.set_budget(tensor_logic::engine::Budget { tuples: 100_000, bytes: 1 << 28 });
        for query in queries.iter().chain(&queries) {
            let shown = |notebook: &mut Notebook| match notebook.ask(query) {
                Ok(reply) => reply.to_string(),
                // How many rounds went by is not the same.
                Err(refused) => {
                    let one = |report: &Refusal| format!("{} at {}", report.code.name(), report.span.start);
                    refused.reports.iter().map(one).collect::<Vec<_>>().join(", ")
                }
            };
            // A copy keeps nothing.
            let alone = shown(&mut notebook.clone());
            assert_eq!(shown(&mut notebook), alone, "{query}\n{text}");
            asked += 1;
            same += usize::from(alone.contains('?'));
        }
    }
    assert!(asked > 300 && same > 150, "{asked} {same}");
}

#[test]
fn the_notebook_has_settings_and_watchers() {
    let mut notebook = Notebook::new("W ~ [1, 2]; V ~ 3; Loss = (W[i] V - 1)^2; Y[i] = blend(W[i], V, 2)");
    notebook.function_of(
        "blend",
        3,
        |x| x[0] * x[1] + x[2],
        |x, by| match by {
            0 => x[1],
            1 => x[0],
            _ => 1.0,
        },
    );
    assert_eq!(notebook.ask("Y?").unwrap().values(), [5.0, 8.0]);
    let found = notebook.gradients("Y[1]", &["V", "W"]).unwrap();
    assert_eq!(found.value, 8.0);
    let by: Vec<(&str, &[f64])> = found.by.iter().map(|(name, reply)| (&**name, reply.values())).collect();
    assert_eq!(by, [("V", &[2.0][..]), ("W", &[0.0, 3.0])]);
    assert_eq!(notebook.gradients("W", &[]).unwrap_err().reports[0].code, Code::NotScalar);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&seen);
    notebook.set_progress(move |step, steps, loss| told.lock().unwrap().push((step, steps, loss)));
    notebook.ask("Loss? @minimize(steps=3, lr=0.1)").unwrap();
    let seen = seen.lock().unwrap().clone();
    assert_eq!(
        seen.iter().map(|(step, steps, _)| (*step, *steps)).collect::<Vec<_>>(),
        [(0, 3), (1, 3), (2, 3)]
    );
    assert!(seen[0].2 > seen[2].2, "{seen:?}");
    assert!(notebook.set_device("cpu").is_ok());
    for (device, code) in [
        ("cuda", Code::NotYet),
        ("cuda:1", Code::NotYet),
        ("metal", Code::NotYet),
        ("abacus", Code::BadArgument),
    ] {
        let refused = notebook.set_device(device).unwrap_err();
        assert_eq!(refused.reports[0].code, code);
        assert!(refused.to_string().contains(&format!("`{device}`")), "{refused}");
    }
    assert!(notebook.set_threads(0).is_err());
    // 2^25 + 1 has too many digits for 32 bits; answers do not depend on threads.
    let mut numbers = Notebook::new("N = 33554433; Y = N + 0.5; L = log(Y - Y)");
    assert_eq!(numbers.ask("Y?").unwrap().number(), Some(33_554_433.5));
    numbers.set_precision(Precision::Single);
    assert_eq!(numbers.ask("Y?").unwrap().number(), Some(33_554_432.0));
    assert!(numbers.ask("L?").unwrap().number().unwrap().is_infinite());
    assert!(numbers.warnings().iter().any(|warning| warning.code == Code::NonFinite));
    let (mut one, mut many) = (graph(), graph());
    one.set_threads(1).unwrap();
    many.set_threads(3).unwrap();
    assert_eq!(one.ask("Farther[x]?").unwrap().values(), many.ask("Farther[x]?").unwrap().values());
}

/// An interrupt leaves what was true: the next question is answered, and nothing is learned by half.
#[test]
fn an_interrupt_leaves_what_was_true() {
    let stop = Arc::new(AtomicBool::new(false));
    let mut notebook =
        Notebook::new("W ~ 0; Loss = (W - 3)^2; N(0); N(y) <- N(x), y = x + 1, x < 100000000; E(1, 2)");
    notebook.stop_when(Arc::clone(&stop));
    notebook.ask("Loss? @minimize(opt=sgd, lr=0.1, steps=2)").unwrap();
    let learned = notebook.ask("W?").unwrap().number();
    let steps = Arc::new(AtomicU64::new(0));
    let (told, flag) = (Arc::clone(&steps), Arc::clone(&stop));
    notebook.set_progress(move |step, steps, _| {
        told.store(step, Ordering::Relaxed);
        if step == 5 && steps > 1000 {
            flag.store(true, Ordering::Relaxed);
        }
    });
    for query in ["Loss? @minimize(opt=sgd, lr=0.1, steps=1000000)", "N(x)?"] {
        let flag = Arc::clone(&stop);
        // Learning stops itself at its fifth step, everything else after a while.
        let other = (!query.contains("minimize")).then(|| {
            std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(300));
                flag.store(true, Ordering::Relaxed);
            })
        });
        let refused = notebook.ask(query).unwrap_err();
        assert!(refused.is_interrupted(), "{query}: {refused}");
        if let Some(thread) = other {
            thread.join().unwrap();
        }
        // As long as it is set, nothing goes on.
        assert!(notebook.ask("W + 1 > 0?").unwrap_err().is_interrupted());
        stop.store(false, Ordering::Relaxed);
        assert_eq!(notebook.ask("W?").unwrap().number(), learned);
        assert_eq!(notebook.ask("E(1, 2)?").map(|reply| reply.holds()).unwrap(), Some(true));
    }
    assert_eq!(steps.load(Ordering::Relaxed), 5);
    notebook.ask("Loss? @minimize(opt=sgd, lr=0.1, steps=200)").unwrap();
    assert!((notebook.ask("W?").unwrap().number().unwrap() - 3.0).abs() < 1e-9);
}

/// Steps of numbers are interrupted, and so are rounds that never rest.
#[test]
fn steps_and_rounds_are_interrupted() {
    for text in [
        "k : 400; A[k] = k; X[0] = 0; X[t+1] = 0.5 X[t] + sum[k](A[k]) / 79800; X[3000000]?",
        "@rounds(1000000000)\n@tol(0)\nA = [[0, 1], [-1, 0]]; B = [1, 0]; X[i] = B[i] + A[i, j] X[j]; X[i]?",
    ] {
        let stop = Arc::new(AtomicBool::new(false));
        let mut notebook = Notebook::new(text);
        notebook.stop_when(Arc::clone(&stop));
        let flag = Arc::clone(&stop);
        let other = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            flag.store(true, Ordering::Relaxed);
        });
        let refused = notebook.run().unwrap_err();
        assert!(refused.is_interrupted(), "{refused}");
        other.join().unwrap();
    }
}
