//! Notes by which machines tell one another who does what.

use std::time::{Duration, SystemTime};

use object_folders::{Board, Kind, Options};

use crate::common::Server;

/// The same on a server and in a folder.
fn both(work: impl Fn(&str, &Options)) {
    let server = Server::start();
    work("s3://sets/sweep of ∀/claims", &server.options());
    let folder = tempfile::tempdir().unwrap();
    work(&format!("file://{}/claims", folder.path().display()), &Options::with(Vec::new()));
}

#[test]
fn a_note_is_created_once_and_written_often() {
    both(|url, options| {
        let board = Board::open(url, options).unwrap();
        assert_eq!(board.read("a/0.json").unwrap(), None);
        assert!(board.list("a").unwrap().is_empty());
        assert!(board.create("a/0.json", b"first").unwrap());
        assert!(!board.create("a/0.json", b"second").unwrap());
        assert_eq!(board.read("a/0.json").unwrap().as_deref(), Some(&b"first"[..]));
        let before = board.list("a").unwrap();
        std::thread::sleep(Duration::from_millis(1100));
        board.write("a/0.json", b"again").unwrap();
        board.write("a/1.json", b"new").unwrap();
        board.write("ab/0.json", b"of another point").unwrap();
        let after = board.list("a").unwrap();
        assert_eq!(after.keys().map(String::as_str).collect::<Vec<_>>(), ["a/0.json", "a/1.json"]);
        assert!(after["a/0.json"] > before["a/0.json"]);
        assert_eq!(board.read("a/0.json").unwrap().as_deref(), Some(&b"again"[..]));
        // Both clocks are this machine's here; the store's may leave out parts of a second.
        let (now, here) = (board.now(".clock-w:1").unwrap(), SystemTime::now());
        let apart = here.duration_since(now).unwrap_or_default();
        assert!(apart < Duration::from_secs(5), "{apart:?}");
        // Another one sees what the first wrote.
        let other = Board::open(url, options).unwrap();
        assert!(!other.create("a/1.json", b"x").unwrap());
    });
}

#[test]
fn of_many_who_ask_at_once_one_gets_it() {
    both(|url, options| {
        for round in 0..10 {
            let got = std::thread::scope(|scope| {
                let asked: Vec<_> = (0..6)
                    .map(|i| {
                        scope.spawn(move || {
                            let board = Board::open(url, options).unwrap();
                            board.create(&format!("p{round}/0"), format!("{i}").as_bytes()).unwrap()
                        })
                    })
                    .collect();
                asked.into_iter().map(|a| a.join().unwrap()).filter(|got| *got).count()
            });
            assert_eq!(got, 1, "{url}, round {round}");
        }
    });
}

/// A store that creates what is there would give one point to all.
#[test]
fn a_store_without_conditions_is_no_board() {
    let server = Server::start();
    server.fail(|kind, _| (kind == "put").then(|| (200, String::new())));
    let refusal = Board::open("s3://sets/claims", &server.options()).unwrap_err();
    assert_eq!(refusal.kind, Kind::Refused);
    assert!(refusal.to_string().contains("If-None-Match"), "{refusal}");
    server.fail_no_more();
    let nobody = Board::open("s3://sets/claims", &server.options_of("nobody", "x")).unwrap_err();
    assert_eq!(nobody.kind, Kind::NoRights, "{nobody}");
}
