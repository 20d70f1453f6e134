//! usage: ascent_b tc|tcp|sg|sgp|cspa|and|onto|reach|short DIR     (tcp, sgp: parallel; WORKERS=n sets the threads)
use ascent::{ascent, ascent_par, Dual};
use rules::*;
use std::time::Instant;

#[global_allocator]
static G: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod tc {
    use super::*;
    ascent! { pub struct P; relation arc(u32, u32); relation tc(u32, u32);
        tc(x, y) <-- arc(x, y); tc(x, z) <-- tc(x, y), arc(y, z); }
}
mod tcp {
    use super::*;
    ascent_par! { pub struct P; relation arc(u32, u32); relation tc(u32, u32);
        tc(x, y) <-- arc(x, y); tc(x, z) <-- tc(x, y), arc(y, z); }
}
mod sg {
    use super::*;
    ascent! { pub struct P; relation arc(u32, u32); relation sg(u32, u32);
        sg(x, y) <-- arc(p, x), arc(p, y), if x != y; sg(x, y) <-- arc(a, x), sg(a, b), arc(b, y); }
}
mod sgp {
    use super::*;
    ascent_par! { pub struct P; relation arc(u32, u32); relation sg(u32, u32);
        sg(x, y) <-- arc(p, x), arc(p, y), if x != y; sg(x, y) <-- arc(a, x), sg(a, b), arc(b, y); }
}
mod cspa {
    use super::*;
    ascent! { pub struct P; relation assign(u32, u32); relation deref(u32, u32);
        relation vf(u32, u32); relation ma(u32, u32); relation va(u32, u32);
        vf(y, x) <-- assign(y, x); vf(x, y) <-- assign(x, z), ma(z, y); vf(x, y) <-- vf(x, z), vf(z, y);
        ma(x, w) <-- deref(y, x), va(y, z), deref(z, w);
        va(x, y) <-- vf(z, x), vf(z, y); va(x, y) <-- vf(z, x), ma(z, w), vf(w, y);
        vf(x, x) <-- assign(x, _y); vf(x, x) <-- assign(_y, x);
        ma(x, x) <-- assign(_y, x); ma(x, x) <-- assign(x, _y); }
}
mod and {
    use super::*;
    ascent! { pub struct P; relation addr(u32, u32); relation assign(u32, u32);
        relation load(u32, u32); relation store(u32, u32); relation pt(u32, u32);
        pt(y, x) <-- addr(y, x); pt(y, x) <-- assign(y, z), pt(z, x);
        pt(y, w) <-- load(y, x), pt(x, z), pt(z, w); pt(z, w) <-- store(y, x), pt(y, z), pt(x, w); }
}
mod onto {
    use super::*;
    ascent! { pub struct P; relation class(u32); relation sub(u32, u32); relation conj(u32, u32, u32);
        relation exr(u32, u32, u32); relation exl(u32, u32, u32); relation role(u32, u32);
        relation s(u32, u32); relation e(u32, u32, u32);
        s(x, x) <-- class(x); s(x, z) <-- s(x, y), sub(y, z);
        s(x, c) <-- s(x, a), conj(a, b, c), s(x, b);
        e(x, r, y) <-- s(x, a), exr(a, r, y); e(x, q, y) <-- e(x, r, y), role(r, q);
        s(x, z) <-- e(x, r, y), s(y, a), exl(r, a, z); }
}
mod reach {
    use super::*;
    ascent! { pub struct P; relation arc(u32, u32); relation reach(u32); reach(y) <-- reach(x), arc(x, y); }
}
mod short {
    use super::*;
    ascent! { pub struct P; relation arc(u32, u32, u64); lattice d(u32, u32, Dual<u64>);
        d(x, y, Dual(*w)) <-- arc(x, y, w);
        d(x, z, Dual(l.0 + w)) <-- d(x, y, l), arc(y, z, w); }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    assert!(args.len() == 3, "usage: ascent_b tc|tcp|sg|sgp|cspa|and|onto|reach|short DIR");
    let dir = &args[2];
    let f = |n: &str| load2(&format!("{dir}/{n}.facts"));
    let f3 = |n: &str| load3(&format!("{dir}/{n}.facts"));
    let f1 = |n: &str| rows(&format!("{dir}/{n}.facts")).iter().map(|r| (r[0],)).collect::<Vec<_>>();
    if let Ok(w) = std::env::var("WORKERS") {
        ascent::rayon::ThreadPoolBuilder::new().num_threads(w.parse().unwrap()).build_global().unwrap();
    }
    match args[1].as_str() {
        "tc" => { let mut p = tc::P::default(); p.arc = f("arc");
            let t = Instant::now(); p.run(); report("ascent tc", t, p.tc.len()) }
        "tcp" => { let mut p = tcp::P::default(); p.arc = f("arc").into_iter().collect();
            let t = Instant::now(); p.run(); report("ascent_par tc", t, p.tc.len()) }
        "sg" => { let mut p = sg::P::default(); p.arc = f("arc");
            let t = Instant::now(); p.run(); report("ascent sg", t, p.sg.len()) }
        "sgp" => { let mut p = sgp::P::default(); p.arc = f("arc").into_iter().collect();
            let t = Instant::now(); p.run(); report("ascent_par sg", t, p.sg.len()) }
        "cspa" => { let mut p = cspa::P::default(); p.assign = f("assign"); p.deref = f("dereference");
            let t = Instant::now(); p.run(); report("ascent cspa vf", t, p.vf.len());
            println!("ma {} va {}", p.ma.len(), p.va.len()) }
        "and" => { let mut p = and::P::default(); p.addr = f("addressOf"); p.assign = f("assign");
            p.load = f("load"); p.store = f("store");
            let t = Instant::now(); p.run(); report("ascent andersen", t, p.pt.len()) }
        "onto" => { let mut p = onto::P::default(); p.class = f1("class"); p.sub = f("sub"); p.conj = f3("conj");
            p.exr = f3("exr"); p.exl = f3("exl"); p.role = f("role");
            let t = Instant::now(); p.run(); report("ascent onto s", t, p.s.len()); println!("e {}", p.e.len()) }
        "reach" => { let mut p = reach::P::default(); p.arc = f("arc"); p.reach = f1("source");
            let t = Instant::now(); p.run(); report("ascent reach", t, p.reach.len()) }
        "short" => { let mut p = short::P::default();
            p.arc = f3("arc").into_iter().map(|(x, y, w)| (x, y, w as u64)).collect();
            let t = Instant::now(); p.run(); report("ascent short", t, p.d.len());
            println!("sum {}", p.d.iter().map(|r| r.2 .0).sum::<u64>()) }
        other => panic!("unknown case {other}"),
    }
}
