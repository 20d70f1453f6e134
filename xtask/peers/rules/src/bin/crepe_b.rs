//! usage: crepe_b tc DIR     (one thread)
use crepe::crepe;
use rules::*;

#[global_allocator]
static G: mimalloc::MiMalloc = mimalloc::MiMalloc;

crepe! {
    @input struct Arc(u32, u32);
    @output struct Tc(u32, u32);
    Tc(x, y) <- Arc(x, y);
    Tc(x, z) <- Tc(x, y), Arc(y, z);
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    assert!(args.len() == 3 && args[1] == "tc", "usage: crepe_b tc DIR");
    let arc = load2(&format!("{}/arc.facts", args[2]));
    let t = std::time::Instant::now();
    let mut rt = Crepe::new();
    rt.extend(arc.into_iter().map(|(x, y)| Arc(x, y)));
    let (tc,) = rt.run();
    report("crepe tc", t, tc.len());
}
