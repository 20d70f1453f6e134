//! Laws as tables: presets, changes, refusals, bounds.

use fol::error::Kind;
use fol::law::Law;
use fol::sample::{Sampler, family};
use fol::score::{ExactScorer, Scorer};

fn changed(name: &str, changes: &[(&str, &str)]) -> Result<Law, (Kind, String)> {
    Law::named(name, &crate::common::changes(changes))
        .map_err(|refusal| (refusal.kind, refusal.help.unwrap_or_default()))
}

fn law(name: &str, changes: &[(&str, &str)]) -> Law {
    changed(name, changes).unwrap()
}

#[test]
fn what_a_law_shows_is_the_law() {
    for name in Law::presets() {
        let shown = law(name, &[]);
        let table: toml::Table = serde_json::from_value(shown.to_json()).unwrap();
        let again = Law::from_table(table, &[]).unwrap();
        assert_eq!((again.digest(), again), (shown.digest(), shown));
    }
}

#[test]
fn a_file_is_a_preset_with_changes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::write(
        &file,
        "preset = \"seed\"\nconstants = 7\n[kinds]\natom = 2\nquantifier = 1\nconnective = 1",
    )
    .unwrap();
    let read = law(file.to_str().unwrap(), &[("kinds.quantifier", "3")]);
    let kinds = ("kinds", "{ atom = 2, quantifier = 3, connective = 1 }");
    assert_eq!(read, law("seed", &[("constants", "7"), kinds]));
    std::fs::write(&file, "constants = 7").unwrap();
    assert_eq!(changed(file.to_str().unwrap(), &[]).unwrap_err().0, Kind::BadValue);
    assert_eq!(
        changed("sead", &[]).unwrap_err(),
        (Kind::NotFound, "the nearest built-in law is seed".to_owned())
    );
}

#[test]
fn predicates_and_overloaded_replace_each_other() {
    let fixed = law("public", &[("predicates", "[[2,3]]")]);
    assert_eq!(fixed.signature().predicates, vec![vec![2]; 3]);
    let drawn = law("seed", &[("overloaded.names", "2")]);
    assert_eq!(drawn.signature().predicates, vec![vec![1, 2]; 2]);
}

#[test]
fn mistakes_are_refused() {
    let unknown = |name: &str, key: &str, near: &str| {
        let wanted = (Kind::UnknownKey, format!("the nearest known key is {near}"));
        assert_eq!(changed(name, &[(key, "1")]).unwrap_err(), wanted);
    };
    unknown("public", "constant", "constants");
    unknown("public", "kinds.atoms", "atom");
    unknown("full", "statements.kind", "kinds");
    unknown("pr", "size", "sizes");
    let bad = |name: &str, changes: &[(&str, &str)]| {
        assert_eq!(changed(name, changes).map_err(|e| e.0), Err(Kind::BadValue), "{changes:?}");
    };
    bad("public", &[("names", "-1")]);
    bad("public", &[("names", "0")]);
    bad("public", &[("names", "many")]);
    bad("public", &[("kinds", "{}")]);
    bad("public", &[("depth_mix", "[]")]);
    bad("public", &[("depth_mix", "[[1,2,3]]")]);
    bad("public", &[("arguments", "terms")]);
    bad("public", &[("family", "count")]);
    bad("public", &[("levels", "[[5,1]]")]);
    bad("public", &[("depth_mix", "[[1,1]]"), ("levels", "[[4,1]]")]);
    bad("public", &[("depth_mix", "[[900,1]]"), ("kinds", "{ connective = 1 }")]);
    bad("seed", &[("functions", "[[0,1]]")]);
    bad("seed", &[("shadow", "5")]);
    bad("seed", &[("vacuous", "5")]);
    bad("public", &[("recent", "70")]);
    bad("full", &[("recent", "70")]);
    bad("full", &[("parentheses", "15")]);
    bad("full", &[("binder", "apart")]);
    bad("public-advanced", &[("shadow", "101")]);
    bad("public-advanced", &[("vacuous", "100")]);
    bad("public-advanced", &[("recent", "-1")]);
    bad("public-advanced", &[("parentheses", "100")]);
    bad("public-advanced", &[("names", "3")]);
    // Below a binder that binds nothing a term can only be a constant.
    bad("public-advanced", &[("constants", "0"), ("depth_mix", "[[1,1]]"), ("kinds", "{ quantifier = 1 }")]);
    bad("full", &[("statements.count", "[[0,1]]")]);
    bad("full", &[("levels", "[[1,1]]")]);
    bad("boltzmann", &[("connectives", "[\"NOT\"]")]);
    bad("boltzmann", &[("nodes", "0")]);
    bad("boltzmann", &[("nodes", "1000")]);
    bad("boltzmann", &[("tolerance", "51")]);
    bad("boltzmann", &[("scope", "101")]);
    bad("boltzmann", &[("pool", "31")]);
    bad("boltzmann", &[("family", "count")]);
    bad("pr", &[("sizes", "[3,2]")]);
    bad("pr", &[("connectives", "[\"XOR\"]")]);
    bad("uniform", &[("pool", "3")]);
    bad("uniform", &[("sizes", "[[1,1,1]]")]);
}

#[test]
fn empty_classes_are_refused() {
    let empty = |name: &str, changes: &[(&str, &str)]| {
        let law = law(name, changes);
        assert_eq!(Sampler::new(&law).err().map(|r| r.kind), Some(Kind::EmptySize));
        assert_eq!(Scorer::new(&law).err().map(|r| r.kind), Some(Kind::EmptySize));
    };
    empty("pr", &[("sizes", "[1,5]")]);
    empty(
        "pr",
        &[("connectives", "[\"AND\"]"), ("quantifiers", "[]"), ("constants", "1"), ("sizes", "[1,2]")],
    );
    empty("uniform", &[("levels", "[[1,1]]"), ("sizes", "[[1,1,2]]")]);
    empty("uniform", &[("levels", "[[2,1]]"), ("sizes", "[[2,1,2]]")]);
    empty("uniform", &[("levels", "[[4,1]]"), ("sizes", "[[4,2,5]]")]);
    empty("uniform", &[("levels", "[[3,1]]"), ("sizes", "[[3,2,5]]"), ("quantifiers", "[]")]);
    // Where each binder leads to more atoms, nearly all small formulas have few of them.
    let far = Sampler::new(&law("boltzmann", &[("scope", "20")]));
    assert_eq!(far.err().map(|r| r.kind), Some(Kind::BadValue));
    // Without NOT and binders all sizes are odd.
    let odd = [("connectives", "[\"AND\"]"), ("scope", "0"), ("tolerance", "0"), ("nodes", "4")];
    empty("boltzmann", &odd);
    assert!(Sampler::new(&law("boltzmann", &[&odd[..3], &[("nodes", "5")]].concat())).is_ok());
    empty("boltzmann", &[("constants", "0"), ("scope", "0")]);
    assert_eq!(Sampler::of_size(&law("boltzmann", &[]), 5).err().map(|r| r.kind), Some(Kind::BadValue));
    assert_eq!(Sampler::of_size(&law("pr", &[]), 1).err().map(|r| r.kind), Some(Kind::EmptySize));
    assert_eq!(Sampler::of_size(&law("seed", &[]), 1).err().map(|r| r.kind), Some(Kind::BadValue));
}

#[test]
fn the_longest_text_is_known() {
    let bound = |name: &str| law(name, &[]).max_tokens_bound();
    assert_eq!((bound("public"), bound("atomic"), bound("full")), (Some(191), Some(11), None));
    for (law, number) in [
        (law("public", &[("depth_mix", "[[1,1]]")]), 2000),
        (law("public", &[("depth_mix", "[[2,1]]"), ("levels", "[[1,1]]")]), 2000),
        (law("pr", &[("sizes", "[2,4]")]), 5000),
        (
            law(
                "boltzmann",
                &[
                    ("nodes", "3"),
                    ("tolerance", "34"),
                    ("scope", "1"),
                    ("pool", "700"),
                    ("constants", "0"),
                    ("predicates", "[[1,1]]"),
                ],
            ),
            20000,
        ),
        (law("seed", &[("depth_mix", "[[1,1]]"), ("levels", "[[1,1],[2,1],[3,1]]")]), 5000),
        (law("uniform", &[("levels", "[[4,1]]"), ("sizes", "[[4,3,4]]"), ("pool", "700")]), 20000),
    ] {
        let mut sampler = Sampler::new(&law).unwrap();
        let mut tokens = Vec::new();
        let longest = (0..number)
            .map(|item| {
                sampler.sample(&mut family("test", 0).stream(item), &mut tokens);
                tokens.len() + 2
            })
            .max();
        assert_eq!(longest, law.max_tokens_bound(), "{}", law.to_json());
    }
}

#[test]
fn large_sizes_are_scored_in_range() {
    for law in [
        law("pr", &[("sizes", "[150,160]"), ("max_tokens", "5000")]),
        law(
            "uniform",
            &[
                ("levels", "[[2,1],[3,1],[4,1]]"),
                ("sizes", "[[2,80,80],[3,90,100],[4,100,100]]"),
                ("max_tokens", "5000"),
            ],
        ),
    ] {
        let (mut sampler, mut scorer) = (Sampler::new(&law).unwrap(), Scorer::new(&law).unwrap());
        let mut tokens = Vec::new();
        for item in 0..2 {
            sampler.sample(&mut family("test", 0).stream(item), &mut tokens);
            scorer.reset();
            for &token in &tokens {
                assert!((scorer.next_dist().iter().sum::<f64>() - 1.0).abs() < 1e-12);
                scorer.push(token).unwrap();
            }
        }
    }
}
