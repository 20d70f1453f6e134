//! usage: datafrog_b tc|sg|tri|reach DIR     (one thread)
use datafrog::{Iteration, Relation, RelationLeaper};
use rules::*;
use std::time::Instant;

#[global_allocator]
static G: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    assert!(args.len() == 3, "usage: datafrog_b tc|sg|tri|reach DIR");
    let arc = load2(&format!("{}/arc.facts", args[2]));
    let t = Instant::now();
    match args[1].as_str() {
        "tc" => {
            let mut it = Iteration::new();
            let tc = it.variable::<(u32, u32)>("tc"); // keyed by target: (y, x)
            let arcs: Relation<(u32, u32)> = arc.iter().cloned().collect();
            tc.insert(arc.iter().map(|&(x, y)| (y, x)).collect());
            while it.changed() {
                tc.from_join(&tc, &arcs, |_y, &x, &z| (z, x));
            }
            report("datafrog tc", t, tc.complete().len())
        }
        "sg" => {
            let mut it = Iteration::new();
            let sg = it.variable::<(u32, u32)>("sg");
            let mid = it.variable::<(u32, u32)>("mid");
            let arcs: Relation<(u32, u32)> = arc.iter().cloned().collect();
            let mut init = Vec::new();
            let v = &arcs[..];
            let mut i = 0;
            while i < v.len() {
                let mut j = i;
                while j < v.len() && v[j].0 == v[i].0 {
                    j += 1;
                }
                for p in i..j {
                    for q in i..j {
                        if p != q {
                            init.push((v[p].1, v[q].1));
                        }
                    }
                }
                i = j;
            }
            sg.insert(init.into());
            while it.changed() {
                mid.from_join(&sg, &arcs, |_a, &b, &x| (b, x));
                sg.from_join(&mid, &arcs, |_b, &x, &y| (x, y));
            }
            report("datafrog sg", t, sg.complete().len())
        }
        "tri" => {
            // tri(a,b,c) :- arc(a,b), arc(b,c), arc(c,a): leap on c, worst-case optimal
            let arcs: Relation<(u32, u32)> = arc.iter().cloned().collect();
            let back: Relation<(u32, u32)> = arc.iter().map(|&(x, y)| (y, x)).collect();
            let mut it = Iteration::new();
            let ab = it.variable::<(u32, u32)>("ab");
            let tri = it.variable::<(u32, u32, u32)>("tri");
            ab.insert(arcs.clone());
            while it.changed() {
                tri.from_leapjoin(
                    &ab,
                    (arcs.extend_with(|&(_a, b)| b), back.extend_with(|&(a, _b)| a)),
                    |&(a, b), &c| (a, b, c),
                );
            }
            report("datafrog tri", t, tri.complete().len())
        }
        "reach" => {
            let mut it = Iteration::new();
            let reach = it.variable::<(u32, ())>("reach");
            let arcs: Relation<(u32, u32)> = arc.iter().cloned().collect();
            reach.insert(vec![(0, ())].into());
            while it.changed() {
                reach.from_join(&reach, &arcs, |_x, &(), &y| (y, ()));
            }
            report("datafrog reach", t, reach.complete().len())
        }
        other => panic!("unknown case {other}"),
    }
}
