//! Item 7 is the same on every machine, whatever else was drawn.
use seeded::Family;

fn main() {
    let family = Family::new("my-experiment", "train", 42);
    let dice = |item| {
        let mut stream = family.stream(item);
        (0..10).map(|_| 1 + stream.below(6)).collect::<Vec<u64>>()
    };
    let seven = dice(7);
    assert_ne!(dice(8), seven);
    assert_eq!(dice(7), seven);
}
