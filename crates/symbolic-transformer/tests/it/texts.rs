//! Batches of texts that are read from a data set as they are wanted: those of the same texts in memory.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use fol::data::{Config, Dataset, Options, Outcome, Watch, generate};
use fol::law::Law;
use fol::notation::{Code, Notation, Tokenization};
use symbolic_transformer::learner::Corpus;
use symbolic_transformer::order::{BatchUnit, Batching, Order};
use symbolic_transformer::texts::{OnDisk, Texts};

/// A set of so many texts, in files of `each`.
fn set(folder: &Path, texts: usize, each: usize) -> Dataset {
    let text = format!(
        "seed = 5\nlaw = \"seed\"\nstream = {{ train = {texts}, val = 2, test = 2 }}\niid = 2\nfile_formulas = {each}"
    );
    let watch = Watch { progress: &|_, _| {}, cancelled: &AtomicBool::new(false) };
    let made = generate(&Config::read(&text, &[]).unwrap(), folder, Options::default(), &watch).unwrap();
    assert!(matches!(made, Outcome::Done(_)));
    Dataset::open(folder).unwrap()
}

#[test]
fn batches_are_those_of_texts_in_memory_whatever_the_files() {
    const TEXTS: usize = 4_000;
    let law = Law::named("seed", &[]).unwrap();
    let prefix = Code::new(Tokenization::Compositional, Notation::Prefix, &law.signature(), None).unwrap();
    let doubled = Code::PLAIN.with_doubled(40).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for each in [TEXTS, 777] {
        let set = set(&folder.path().join(each.to_string()), TEXTS, each);
        let split = set.split("train").unwrap();
        let mut corpus = Corpus::new();
        for (tokens, record) in split.iter() {
            corpus.push(Corpus::inner(tokens).iter().copied(), record.nll);
        }
        for (code, batching, unit, size, limit) in [
            (&Code::PLAIN, Batching::Bucket, BatchUnit::Formulas, 3, 0),
            (&Code::PLAIN, Batching::Plain, BatchUnit::Tokens, 900, TEXTS - 1),
            (&prefix, Batching::Bucket, BatchUnit::Tokens, 500, 0),
            (&doubled, Batching::Plain, BatchUnit::Formulas, 64, 1_500),
        ] {
            let held = corpus.clone().first(limit).in_code(code, "train").unwrap();
            let reader = set.reader("train").unwrap().first(limit as u64);
            let (read, lengths) = OnDisk::new(reader, code, "train").unwrap();
            assert_eq!(lengths, held.lengths());
            let mut order = Order::new(lengths, batching, unit, size, 9);
            let (mut read, mut held) = (Texts::OnDisk(read), Texts::from(held));
            assert_eq!(read.targets(), held.targets());
            assert_eq!(read.code().size(), held.code().size());
            let batches = order.batches();
            assert!(batches > 20, "more than a window: {batches}");
            let forth = (0..2).flat_map(|epoch| (0..batches).map(move |index| (epoch, index)));
            // As after a resumed run, and back.
            let back = [(1, batches - 1), (0, 0), (1, batches / 2), (0, batches)];
            for (epoch, index) in forth.chain(back) {
                let [found, wanted] =
                    [&mut read, &mut held].map(|texts| texts.batch(&mut order, epoch, index).unwrap());
                assert_eq!(
                    (&found.tokens, &found.targets, &found.starts),
                    (&wanted.tokens, &wanted.targets, &wanted.starts),
                    "epoch {epoch}, batch {index}"
                );
                assert_eq!(index < batches, found.rows() > 0);
            }
        }
    }
}

#[test]
fn a_set_that_is_gone_stops_what_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let set = set(folder.path(), 50, 50);
    let (texts, lengths) = OnDisk::new(set.reader("train").unwrap(), &Code::PLAIN, "train").unwrap();
    let mut order = Order::new(lengths, Batching::Plain, BatchUnit::Formulas, 8, 0);
    let mut texts = Texts::OnDisk(texts);
    std::fs::remove_file(folder.path().join("train-00000.tok")).unwrap();
    let refusal = texts.batch(&mut order, 0, 0).unwrap_err().to_string();
    assert!(refusal.contains("train-00000.tok"), "{refusal}");
}
