//! usage: dd_tc FACTS [-w THREADS] [-n PROCESSES -p INDEX -h HOSTS]     (timely's flags; HOSTS: one host:port a line)
use differential_dataflow::input::Input;
use differential_dataflow::operators::*;
use timely::dataflow::operators::probe::Handle;

#[global_allocator]
static G: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let path = std::env::args().nth(1).expect("usage: dd_tc FACTS [-w N]");
    timely::execute_from_args(std::env::args().skip(2), move |worker| {
        let t = std::time::Instant::now();
        let probe = Handle::new();
        let (me, peers) = (worker.index(), worker.peers());
        let mut arcs = worker.dataflow::<u32, _, _>(|scope| {
            let (h, arc) = scope.new_collection::<(u32, u32), isize>();
            let tc = arc.clone().iterate(|scope, inner| {
                let arc = arc.clone().enter(scope);
                inner
                    .map(|(x, y)| (y, x))
                    .join_map(arc.clone(), |_y, &x, &z| (x, z))
                    .concat(arc)
                    .distinct()
            });
            tc.map(|_| ()).consolidate().inspect(|x| println!("tc {:?}", x.2)).probe_with(&probe);
            h
        });
        for (i, e) in rules::load2(&path).into_iter().enumerate() {
            if i % peers == me {
                arcs.insert(e);
            }
        }
        arcs.close();
        while worker.step_or_park(None) {}
        if me == 0 {
            println!("differential tc {:.3}s workers {}", t.elapsed().as_secs_f64(), peers);
        }
    })
    .unwrap();
}
