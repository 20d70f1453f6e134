//! Several processes on one machine, each the test itself in another role, and those that do not meet.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use datarel::{RelationId, Ring};
use datarel_dataflow::{Cluster, Holder, Options, Refusal, evaluate};
use seeded::Family;

use crate::generate::{Program, Tuples, agree, has_nan, oracle, program, tuples};
use crate::shapes::closure;

/// Addresses that nobody listens on.
fn addresses(count: usize) -> Vec<String> {
    let listeners: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

fn cluster(hosts: &[String], process: usize, wait: u64, token: u64) -> Option<Cluster> {
    Some(Cluster { hosts: hosts.to_vec(), process, wait: Duration::from_millis(wait), token })
}

const ROLE: &str = "DATAREL_DATAFLOW_ROLE";

/// Starts a process of this test that plays a role: hosts, process, workers, number of the program, token.
fn play(hosts: &[String], process: usize, workers: usize, seed: u64, token: u64) -> Child {
    let role = format!("{} {process} {workers} {seed} {token}", hosts.join(","));
    let mut call = Command::new(std::env::current_exe().unwrap());
    call.args(["--exact", "processes::a_role_is_played", "--nocapture"]).env(ROLE, role);
    call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn drawn(seed: u64) -> Program {
    program(&mut Family::named("processes").stream(seed))
}

/// What the other processes do; without a role, nothing.
#[test]
fn a_role_is_played() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let hosts: Vec<String> = words[0].split(',').map(str::to_owned).collect();
    let program = drawn(number(3));
    let cluster = cluster(&hosts, number(1) as usize, 20_000, number(4));
    let options = Options { workers: number(2) as usize, cluster, ..Options::default() };
    let mut database = program.database();
    let found = evaluate(&mut database, &program.rules, &program.all(), &options);
    println!("role: {found:?}");
}

fn said(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.split_once("role: ")).map_or(text.clone(), |(_, said)| said.to_owned())
}

#[test]
fn two_and_three_processes_agree_with_the_engine() {
    let most = if std::env::var("CALCULEMUS_SLOW").is_ok() { 30 } else { 4 };
    let mut derived = 0;
    let mut seed = seeded::test_seed();
    for number in 0..most {
        let (program, expected) = loop {
            seed = seed.wrapping_add(1);
            let program = drawn(seed);
            match oracle(&program) {
                Ok(expected) if !has_nan(&program, &expected) => break (program, expected),
                _ => {}
            }
        };
        let (processes, workers) = (2 + number % 2, 1 + number / 2 % 2);
        let hosts = addresses(processes);
        let others: Vec<Child> =
            (1..processes).map(|process| play(&hosts, process, workers, seed, 7)).collect();
        let options = Options { workers, cluster: cluster(&hosts, 0, 20_000, 7), ..Options::default() };
        let mut database = program.database();
        let holder = evaluate(&mut database, &program.rules, &program.all(), &options);
        let said: Vec<String> = others.into_iter().map(said).collect();
        assert_eq!(holder, Ok(Holder::Here), "seed {seed}: {said:?}");
        assert!(said.iter().all(|said| said == "Ok(Elsewhere)"), "seed {seed}: {said:?}");
        let found = tuples(&database, program.relations.len());
        assert!(agree(&program, &expected, &found), "seed {seed}, {processes} of {workers}: {program:?}");
        derived += found.iter().map(Tuples::len).sum::<usize>();
    }
    assert!(derived > 4 * most, "{derived}");
}

/// What goes wrong in one process is known to all.
#[test]
fn a_refusal_is_the_same_in_all_processes() {
    let mut seed = seeded::test_seed();
    // One in some hundreds diverges.
    while !matches!(oracle(&drawn(seed)), Err(datarel::Failure::Divergence { .. })) {
        seed = seed.wrapping_add(1);
    }
    let hosts = addresses(2);
    let other = play(&hosts, 1, 2, seed, 7);
    let program = drawn(seed);
    let options = Options { workers: 2, cluster: cluster(&hosts, 0, 20_000, 7), ..Options::default() };
    let mut database = program.database();
    let refusal = evaluate(&mut database, &program.rules, &program.all(), &options).unwrap_err();
    assert!(matches!(refusal, Refusal::Failure(datarel::Failure::Divergence { .. })), "{refusal:?}");
    let said = said(other);
    assert!(said.starts_with("Err(Failure(Divergence"), "{said}");
}

#[test]
fn a_host_that_does_not_answer_is_named_in_time() {
    let (mut database, rules) = closure(&[(0, 1, 1.0)], 3, [Ring::BOOLEAN; 2]);
    let hosts = addresses(3);
    // Nobody calls process 0; process 2 calls nobody.
    for (process, silent) in [(0, 1), (2, 0)] {
        let since = Instant::now();
        let options = Options { cluster: cluster(&hosts, process, 300, 7), ..Options::default() };
        match evaluate(&mut database, &rules, &[RelationId(1)], &options).unwrap_err() {
            Refusal::Silent { host, process, .. } => {
                assert_eq!((host.as_str(), process), (hosts[silent].as_str(), silent))
            }
            other => panic!("{other:?}"),
        }
        assert!(since.elapsed() < Duration::from_secs(3));
    }
    // One that listens and says nothing, and one whose name has no address.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    for host in [mute.local_addr().unwrap().to_string(), "no-such-host.invalid:7".to_owned()] {
        let hosts = [host.clone(), addresses(1).remove(0)];
        let options = Options { cluster: cluster(&hosts, 1, 300, 7), ..Options::default() };
        let refusal = evaluate(&mut database, &rules, &[RelationId(1)], &options).unwrap_err();
        assert!(matches!(&refusal, Refusal::Silent { host: silent, .. } if *silent == host), "{refusal:?}");
    }
    let options = Options { cluster: cluster(&hosts, 3, 300, 7), ..Options::default() };
    let refusal = evaluate(&mut database, &rules, &[RelationId(1)], &options).unwrap_err();
    assert_eq!(refusal, Refusal::Process { process: 3, processes: 3 });
    // An address of another machine (192.0.2.0/24 is nobody's).
    let away = ["192.0.2.1:7".to_owned(), hosts[0].clone()];
    let options = Options { cluster: cluster(&away, 0, 300, 7), ..Options::default() };
    let refusal = evaluate(&mut database, &rules, &[RelationId(1)], &options).unwrap_err();
    assert!(matches!(refusal, Refusal::Listen { .. }), "{refusal:?}");
}

#[test]
fn processes_that_do_something_else_are_refused_on_both_sides() {
    let (mut database, rules) = closure(&[(0, 1, 1.0)], 3, [Ring::BOOLEAN; 2]);
    for (workers, token, part) in
        [(1, 8, "its program, data or options are others"), (2, 7, "it has 2 workers, and not 1")]
    {
        let hosts = addresses(2);
        let other = play(&hosts, 1, workers, 0, token);
        let options = Options { cluster: cluster(&hosts, 0, 20_000, 7), ..Options::default() };
        let refusal = evaluate(&mut database, &rules, &[RelationId(1)], &options).unwrap_err();
        assert!(matches!(&refusal, Refusal::Other { reason, .. } if reason.contains(part)), "{refusal:?}");
        let said = said(other);
        assert!(said.starts_with("Err(Other"), "{said}");
    }
}

/// A stranger at the door is sent away, and who should come is still waited for.
#[test]
fn strangers_are_sent_away() {
    use std::io::Write;
    let hosts = addresses(2);
    let address = hosts[0].clone();
    let stranger = std::thread::spawn(move || {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(5) {
            if let Ok(mut socket) = std::net::TcpStream::connect(&address) {
                return socket.write_all(b"GET / HTTP/1.1\r\n\r\n").is_ok();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    });
    let seed = (0..).find(|seed| oracle(&drawn(*seed)).is_ok()).unwrap();
    let program = drawn(seed);
    let options = Options { cluster: cluster(&hosts, 0, 20_000, 7), ..Options::default() };
    let waiting = {
        let (program, options) = (program.clone(), options.clone());
        std::thread::spawn(move || {
            evaluate(&mut program.database(), &program.rules, &program.all(), &options)
        })
    };
    assert!(stranger.join().unwrap());
    let other = play(&hosts, 1, 1, seed, 7);
    assert_eq!(waiting.join().unwrap(), Ok(Holder::Here));
    assert_eq!(said(other), "Ok(Elsewhere)");
}

/// A process that goes in the middle of the work is a refusal of the others, and no panic of theirs.
#[test]
fn a_process_that_goes_is_a_refusal() {
    use std::io::{Read, Write};
    let hosts = addresses(2);
    // Says who it is, as process 1 would, and goes.
    let address = hosts[0].clone();
    let ghost = std::thread::spawn(move || {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(5) {
            if let Ok(mut socket) = std::net::TcpStream::connect(&address) {
                let mut hello = b"datarel\x01".to_vec();
                [1u64, 2, 1, 7].iter().for_each(|number| hello.extend(number.to_be_bytes()));
                socket.write_all(&hello).unwrap();
                let mut answer = [0; 40];
                return socket.read_exact(&mut answer).is_ok();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    });
    let (mut database, rules) = closure(&[(0, 1, 1.0)], 3, [Ring::BOOLEAN; 2]);
    let options = Options { cluster: cluster(&hosts, 0, 5_000, 7), ..Options::default() };
    let refusal = evaluate(&mut database, &rules, &[RelationId(1)], &options).unwrap_err();
    assert!(ghost.join().unwrap());
    assert!(matches!(refusal, Refusal::Lost { .. }), "{refusal:?}");
}
