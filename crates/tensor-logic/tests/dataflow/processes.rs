//! `tl run --workers`, alone and with hosts.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{tl, with_program};

const GRAPH: &str = "
Road(A, B) = 4; Road(A, C) = 1; Road(C, B) = 2; Road(B, A) = 1; Road(D, E) = 7
Way(x, y) <- Road(x, y)
Way(x, z) <- Way(x, y), Road(y, z)
Dist(A) min= 0
Dist(y) min= Dist(x) + Road(x, y)
Lone(x) <- Way(x, y), not Way(y, x)
Many(x) += Way(x, y)
Way(x, y)?
Dist(x)?
Lone(x)?
Many(x)?
Way(A, \"loves\")?
";

fn addresses(count: usize) -> Vec<String> {
    let listeners: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

#[test]
fn workers_and_processes_print_what_the_engine_prints() {
    let folder = with_program(GRAPH);
    let (status, plain, _) = tl(folder.path(), &["run", "p.tl", "--json"], "");
    assert_eq!(status, Some(0));
    assert!(plain.contains("[\"C\"]") && plain.contains("3.0"), "{plain}");
    for workers in ["1", "2", "3"] {
        let (status, found, said) = tl(folder.path(), &["run", "p.tl", "--json", "--workers", workers], "");
        assert_eq!((status, found.as_str()), (Some(0), plain.as_str()), "{said}");
    }
    for (processes, workers) in [(2, "1"), (3, "2")] {
        let hosts = addresses(processes).join("\n") + "   # on one machine\n";
        std::fs::write(folder.path().join("hosts"), hosts).unwrap();
        let start = |process: usize| {
            let mut call = Command::new(env!("CARGO_BIN_EXE_tl"));
            call.current_dir(folder.path()).args(["run", "p.tl", "--json", "--workers", workers]);
            call.args(["--hosts", "hosts", "--process", &process.to_string()]);
            call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let children: Vec<Child> = (0..processes).map(start).collect();
        for (process, child) in children.into_iter().enumerate() {
            let output = child.wait_with_output().unwrap();
            let (found, said) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.status.code(), Some(0), "{found} {said}");
            if process == 0 {
                assert_eq!(found, plain);
            } else {
                assert!(found.contains("\"queries\": []"), "{found}");
                assert!(said.contains(&format!("process {process} is done")), "{said}");
            }
        }
    }
}

#[test]
fn hosts_that_are_none_or_do_not_answer_are_refused_with_their_places() {
    let folder = with_program(GRAPH);
    let two = addresses(2);
    let free = two.join("\n");
    let cases: [(&str, &str, Option<i32>, &[&str]); 8] = [
        ("one:1\n two:x\n", "0", Some(1), &["error[file-format]", "hosts:2:6", "`x` is no port"]),
        ("nowhere\n", "0", Some(1), &["error[file-format]", "hosts:1:1", "`nowhere` has no port"]),
        ("", "0", Some(1), &["error[file-format]", "hosts:1:1", "there is no host"]),
        ("a:1 b:1", "0", Some(1), &["error[file-format]", "hosts:1:4", "something follows"]),
        (&free, "7", Some(2), &["--process 7", "2 hosts"]),
        (
            &free,
            "0",
            Some(1),
            &["error[budget]", "hosts:2:1", "(process 1) did not answer within 1 s", "--wait"],
        ),
        (
            &free,
            "1",
            Some(1),
            &["error[budget]", "hosts:1:1", "(process 0) did not answer within 1 s", "--wait"],
        ),
        (
            "192.0.2.1:9\n127.0.0.1:9",
            "0",
            Some(1),
            &["error[file-format]", "hosts:1:1", "cannot be listened on"],
        ),
    ];
    for (hosts, process, wanted, parts) in cases {
        std::fs::write(folder.path().join("hosts"), hosts).unwrap();
        let since = Instant::now();
        let call = ["run", "p.tl", "--workers", "1", "--hosts", "hosts", "--process", process, "--wait", "1"];
        let (status, _, said) = tl(folder.path(), &call, "");
        assert_eq!(status, wanted, "{hosts:?}: {said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{hosts:?}: {said}");
        assert!(since.elapsed() < Duration::from_secs(20));
        assert!(!said.contains("panicked"), "{said}");
    }
    let usage: [&[&str]; 6] = [
        &["--workers", "0"],
        &["--workers", "257"],
        &["--hosts", "hosts", "--process", "0"],
        &["--workers", "1", "--hosts", "hosts"],
        &["--workers", "1", "--hosts", "missing", "--process", "0"],
        &["--workers", "1", "--engine", "reference"],
    ];
    for more in usage {
        let call = [&["run", "p.tl"], more].concat();
        let (status, _, said) = tl(folder.path(), &call, "");
        assert_eq!(status, Some(2), "{more:?}: {said}");
    }
}

/// Processes that run different programs do not work together.
#[test]
fn processes_with_other_programs_are_refused() {
    let folder = with_program(GRAPH);
    std::fs::write(folder.path().join("q.tl"), GRAPH.replace("Road(D, E) = 7", "Road(D, E) = 8")).unwrap();
    std::fs::write(folder.path().join("hosts"), addresses(2).join("\n")).unwrap();
    let start = |program: &str, process: &str| {
        let mut call = Command::new(env!("CARGO_BIN_EXE_tl"));
        call.current_dir(folder.path()).args(["run", program, "--workers", "1", "--hosts", "hosts"]);
        call.args(["--process", process]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for child in [start("p.tl", "0"), start("q.tl", "1")] {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("its program, data or options are others"), "{said}");
    }
}

/// What does not go there, each with its place and its name.
#[test]
fn constructs_that_are_no_rules_are_named() {
    let cases = [
        ("W ~ 1\nX(1)\nY(x) += W X(x)\nY(x)?", "1:1", "learned parameter"),
        ("A = [1, 2]\nB = [3, 4]\nY[i] = A[i] B[i]\nY?", "3:1", "dense tensor"),
        (
            "E(1, 2)\nN(x, z) += E(x, z)\nN(x, z) += E(x, y) N(y, z)\nN(x, z)?",
            "2:1",
            "`N` is a sum in a recursion",
        ),
        ("0.5 :: R(A)\nR(A)?", "", "probabilities of proofs"),
        ("E(1) = 2; E(2) = 4\nM avg= E(x)\nM?", "2:1", "avg="),
        ("E(1) = 2; E(2) = 4\nM() *= E(x)\nM()?", "2:1", "product of contributions"),
        ("E(1)\nE(x)? @explain", "2:1", "@explain"),
        ("N(0)\nN(x+x+1) <- N(x)\nN(x)?", "2:1", "beyond ±2^29"),
    ];
    for (text, place, part) in cases {
        let folder = with_program(text);
        let (status, _, said) = tl(folder.path(), &["run", "p.tl", "--workers", "2"], "");
        assert_eq!(status, Some(1), "{text}: {said}");
        assert!(said.contains("error[not-yet]") && said.contains(part), "{text}: {said}");
        assert!(said.contains(&format!("p.tl:{place}")), "{text}: {said}");
    }
    // What the evaluation refuses has the code and place that it has without workers.
    let cases = [
        ("E(A, B) = -1; E(B, A) = -1\nD(A) min= 0\nD(y) min= D(x) + E(x, y)\nD(x)?", "divergence"),
        ("N(1)\nN(x+1) <- N(x)\nN(x)?", "budget"),
    ];
    for (text, code) in cases {
        let folder = with_program(text);
        let of = |more: &[&str]| {
            let call = [&["run", "p.tl", "--max-tuples", "1000"], more].concat();
            let (status, _, said) = tl(folder.path(), &call, "");
            assert_eq!(status, Some(1), "{said}");
            let lines: Vec<String> = said.lines().take(2).map(str::to_owned).collect();
            (lines[0].split(':').next().unwrap().to_owned(), lines[1].clone())
        };
        let plain = of(&[]);
        assert_eq!(plain.0, format!("error[{code}]"));
        assert_eq!(of(&["--workers", "2"]), plain, "{text}");
    }
}

/// Arrangements take more than the tuples in them: the memory of the process is what is looked at.
#[test]
#[cfg(target_os = "linux")]
fn what_outgrows_its_memory_is_refused() {
    let mut text: String = (0..3000).map(|n| format!("N({n})\n")).collect();
    text.push_str("P(x, y) <- N(x), N(y)\nP(0, y)?\n");
    let folder = with_program(&text);
    let call = ["run", "p.tl", "--workers", "2", "--max-bytes", "150000000"];
    let (status, found, said) = tl(folder.path(), &call, "");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("error[budget]") && said.contains("150000000"), "{said}");
    assert!(found.is_empty(), "{found}");
}
