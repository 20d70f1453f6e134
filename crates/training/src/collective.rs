//! Training by several processes: what they say to one another, and a sum that does not depend on how many they are.
//!
//! A batch is cut into a fixed number of pieces, whoever computes them; the gradients of the pieces are the leaves of one binary
//! tree, and every node is the sum of its two halves. A process has neighbouring pieces: it adds up the largest
//! subtrees that are its own, and what is left of the tree is added by slices, each process one. So one process and
//! twelve add the same numbers in the same order, and their weights have the same bits.
//!
//! The way back through the last piece of a process makes the gradient of the last parameters first. What stands is sent while
//! the rest is computed: the tree is one of each number, so its order is what it was.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::error::{Refusal, Result};
use crate::parameters::Layout;

/// What data-parallel training needs of other processes. Everybody calls the same methods in the same order; who does not come
/// within a time is named in the refusal.
pub trait Collective: std::fmt::Debug {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn world(&self) -> usize;

    /// What everybody says, by rank.
    ///
    /// # Errors
    /// A process that is gone, or does not come.
    fn gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>>;

    /// `to[r]` goes to rank r, and nobody waits for it; what everybody sent to this rank is [`collect`](Self::collect)ed later.
    ///
    /// # Errors
    /// A process that is gone.
    fn post(&mut self, to: Vec<Vec<f32>>) -> Result<()>;

    /// What everybody [`post`](Self::post)ed to this rank, by rank: of all posts the first that was not collected.
    ///
    /// # Errors
    /// A process that is gone, or does not come.
    fn collect(&mut self) -> Result<Vec<Vec<f32>>>;

    /// Both at once.
    ///
    /// # Errors
    /// A process that is gone, or does not come.
    fn exchange(&mut self, to: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>> {
        self.post(to)?;
        self.collect()
    }

    /// Ends all ranks where that is possible, after a fault of which the others do not know: they would wait.
    fn abort(&mut self) {}
}

/// One process alone.
#[derive(Debug, Default)]
pub struct Alone {
    posted: VecDeque<Vec<Vec<f32>>>,
}

impl Collective for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn world(&self) -> usize {
        1
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![own.to_vec()])
    }

    fn post(&mut self, to: Vec<Vec<f32>>) -> Result<()> {
        self.posted.push_back(to);
        Ok(())
    }

    fn collect(&mut self) -> Result<Vec<Vec<f32>>> {
        self.posted.pop_front().ok_or_else(nothing_posted)
    }
}

/// A conversation whose beginning is missing.
pub fn nothing_posted() -> Refusal {
    Refusal::Others("numbers were asked for that nobody was asked to send".to_owned())
}

/// What threads send one another.
enum Message {
    Bytes(Vec<u8>),
    Numbers(Vec<f32>),
}

/// A thread that is a process to the others: for tests, and for whoever wants to see what several processes would do.
pub struct Thread {
    rank: usize,
    to: Vec<Sender<Message>>,
    from: Vec<Receiver<Message>>,
    /// Numbers that came before bytes that were waited for, by rank.
    early: Vec<VecDeque<Vec<f32>>>,
    patience: Duration,
}

impl std::fmt::Debug for Thread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Thread").field("rank", &self.rank).finish_non_exhaustive()
    }
}

/// So many threads that know one another; who does not come within `patience` is gone.
pub fn threads(world: usize, patience: Duration) -> Vec<Thread> {
    let mut from: Vec<Vec<Receiver<Message>>> = (0..world).map(|_| Vec::new()).collect();
    let mut to: Vec<Vec<Sender<Message>>> = (0..world).map(|_| Vec::new()).collect();
    for sender in &mut to {
        for receiver in &mut from {
            let (send, receive) = channel();
            sender.push(send);
            receiver.push(receive);
        }
    }
    let pairs = to.into_iter().zip(from).enumerate();
    let early = || (0..world).map(|_| VecDeque::new()).collect();
    pairs.map(|(rank, (to, from))| Thread { rank, to, from, early: early(), patience }).collect()
}

impl Thread {
    fn send(&self, rank: usize, message: Message) -> Result<()> {
        let sent = self.to.get(rank).is_some_and(|to| to.send(message).is_ok());
        if sent { Ok(()) } else { Err(gone(rank)) }
    }

    fn receive(&self, rank: usize) -> Result<Message> {
        let from = self.from.get(rank).ok_or_else(|| gone(rank))?;
        from.recv_timeout(self.patience).map_err(|e| match e {
            RecvTimeoutError::Timeout => late(rank, self.patience),
            RecvTimeoutError::Disconnected => gone(rank),
        })
    }
}

/// A process that is not there any more.
pub fn gone(rank: usize) -> Refusal {
    Refusal::Others(format!(
        "rank {rank} is gone; the run goes on from its last checkpoint, with any number of ranks"
    ))
}

/// A process that did not come.
pub fn late(rank: usize, patience: Duration) -> Refusal {
    Refusal::Others(format!(
        "rank {rank} said nothing for {} seconds; the run goes on from its last checkpoint, with any number of ranks",
        patience.as_secs_f64()
    ))
}

fn other_words(rank: usize) -> Refusal {
    Refusal::Others(format!("rank {rank} said something else than was its turn: is it another program?"))
}

impl Collective for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.to.len()
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        for rank in 0..self.world() {
            self.send(rank, Message::Bytes(own.to_vec()))?;
        }
        let mut said = Vec::with_capacity(self.world());
        for rank in 0..self.world() {
            said.push(loop {
                match self.receive(rank)? {
                    Message::Bytes(bytes) => break bytes,
                    Message::Numbers(numbers) => {
                        self.early.get_mut(rank).ok_or_else(|| gone(rank))?.push_back(numbers);
                    }
                }
            });
        }
        Ok(said)
    }

    fn post(&mut self, to: Vec<Vec<f32>>) -> Result<()> {
        for (rank, numbers) in to.into_iter().enumerate() {
            self.send(rank, Message::Numbers(numbers))?;
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<Vec<Vec<f32>>> {
        let mut received = Vec::with_capacity(self.world());
        for rank in 0..self.world() {
            let early = self.early.get_mut(rank).and_then(VecDeque::pop_front);
            received.push(match early {
                Some(numbers) => numbers,
                None => match self.receive(rank)? {
                    Message::Numbers(numbers) => numbers,
                    Message::Bytes(_) => return Err(other_words(rank)),
                },
            });
        }
        Ok(received)
    }
}

/// The pieces of a rank.
fn own(pieces: usize, rank: usize, world: usize) -> Range<usize> {
    rank * pieces / world..(rank + 1) * pieces / world
}

/// The two halves of a node with more than one leaf.
fn halves(node: &Range<usize>) -> Option<[Range<usize>; 2]> {
    let middle = node.start + node.len() / 2;
    (node.len() > 1).then_some([node.start..middle, middle..node.end])
}

/// The largest subtrees below a node whose leaves are all in `own`, in their order.
fn subtrees(node: Range<usize>, own: &Range<usize>, found: &mut Vec<Range<usize>>) {
    if node.end <= own.start || own.end <= node.start {
        return;
    }
    if own.start <= node.start && node.end <= own.end {
        return found.push(node);
    }
    for half in halves(&node).into_iter().flatten() {
        subtrees(half, own, found);
    }
}

pub(crate) fn add(a: &mut [f32], b: &[f32]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
}

/// Where this rank computes the gradients of pieces and adds them up: a stack, in this process's memory or on a device.
pub(crate) trait Stack {
    /// The gradient of a piece, on top.
    fn piece(&mut self, piece: usize) -> Result<()>;

    /// In the place of the two on top their sum: the lower one is the first summand.
    fn add(&mut self) -> Result<()>;

    /// The losses of the pieces since the last time, in their order.
    fn losses(&mut self) -> Result<Vec<Cost>>;

    /// The one on top comes off.
    fn take(&mut self) -> Result<Vec<f32>>;

    /// One more on top.
    fn put(&mut self, gradient: Vec<f32>) -> Result<()>;

    /// The gradient of a piece, with so many sums behind it, and off the stack: `ready` is told of the sum, whose numbers from a
    /// place on change no more, and at the end from place 0 on.
    fn last(&mut self, piece: usize, sums: usize, ready: OnSum<'_>) -> Result<()> {
        self.piece(piece)?;
        for _ in 0..sums {
            self.add()?;
        }
        let sum = self.take()?;
        ready(&sum, 0)
    }
}

/// Who hears of a sum and of the place from which on it stands.
pub(crate) type OnSum<'a> = &'a mut dyn FnMut(&[f32], usize) -> Result<()>;

/// The sum over a node, on top.
fn from_leaves(node: &Range<usize>, stack: &mut dyn Stack) -> Result<()> {
    match halves(node) {
        None => stack.piece(node.start),
        Some([left, right]) => {
            from_leaves(&left, stack)?;
            from_leaves(&right, stack)?;
            stack.add()
        }
    }
}

/// All of a node but its last leaf: that leaf, and the number of sums that are left to do.
fn all_but_the_last(node: &Range<usize>, stack: &mut dyn Stack) -> Result<(usize, usize)> {
    match halves(node) {
        None => Ok((node.start, 0)),
        Some([left, right]) => {
            from_leaves(&left, stack)?;
            let (leaf, sums) = all_but_the_last(&right, stack)?;
            Ok((leaf, sums + 1))
        }
    }
}

/// A gradient goes in at least so many parts, so that most of it can go while the rest is computed...
const PARTS: usize = 16;

/// ... of so many numbers: fewer are not worth a message, and more than 1 MiB only wait for one another.
const PART: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 18;

/// The chunks of a gradient, the last numbers first.
fn chunks(len: usize) -> Vec<Range<usize>> {
    let size = len.div_ceil(PARTS).clamp(*PART.start(), *PART.end());
    (0..len.div_ceil(size)).rev().map(|i| i * size..len.min((i + 1) * size)).collect()
}

/// The sum over a node, from sums over subtrees that cover it.
fn from_subtrees(node: &Range<usize>, sums: &mut BTreeMap<(usize, usize), Vec<f32>>) -> Option<Vec<f32>> {
    if let Some(sum) = sums.remove(&(node.start, node.end)) {
        return Some(sum);
    }
    let [left, right] = halves(node)?;
    let mut sum = from_subtrees(&left, sums)?;
    add(&mut sum, &from_subtrees(&right, sums)?);
    Some(sum)
}

/// The loss of a piece, summed over its targets, and their number.
pub(crate) type Cost = (f64, u64);

/// The sum of the gradients of all pieces, of `len` numbers each, on top of every rank's stack; and their losses, summed in the
/// order of pieces, with the seconds that the sum took from when the last rank had its gradients.
pub(crate) fn sum_of_pieces(
    others: &mut dyn Collective,
    pieces: usize,
    len: usize,
    stack: &mut dyn Stack,
) -> Result<(Cost, f64)> {
    let (rank, world) = (others.rank(), others.world());
    // One rank has the whole tree, whose sum is where it belongs.
    if world == 1 {
        from_leaves(&(0..pieces), stack)?;
        let said = said(stack, 0.0)?;
        return costs(&others.gather(&said)?, pieces);
    }
    let chunks = chunks(len);
    send(others, pieces, &chunks, stack)?;
    let clock = Instant::now();
    // Of each subtree every rank has its slice; it adds the tree up, and gives its slice of the sum to all.
    for chunk in &chunks {
        let received = others.collect()?;
        let sum = sum_of_slices(&received, pieces, slice(chunk, rank, world).len())?;
        others.post(vec![sum; world])?;
    }
    let mut whole = vec![0.0; len];
    for chunk in &chunks {
        let sum = others.collect()?.concat();
        let place = whole.get_mut(chunk.clone()).filter(|place| place.len() == sum.len());
        let place = place
            .ok_or_else(|| Refusal::Others("the slices of a gradient do not make a whole".to_owned()))?;
        place.copy_from_slice(&sum);
    }
    // The rank that was last waited for nobody.
    let said = said(stack, clock.elapsed().as_secs_f64())?;
    let costs = costs(&others.gather(&said)?, pieces)?;
    stack.put(whole)?;
    Ok(costs)
}

/// The slice of a rank.
fn slice(chunk: &Range<usize>, rank: usize, world: usize) -> Range<usize> {
    let at = |rank: usize| chunk.start + rank * chunk.len() / world;
    at(rank)..at(rank + 1)
}

/// The largest subtrees of a rank.
fn of_rank(pieces: usize, rank: usize, world: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    subtrees(0..pieces, &own(pieces, rank, world), &mut found);
    found
}

/// Computes the pieces of this rank; of its subtrees every rank gets its slices, a chunk as soon as it stands.
fn send(
    others: &mut dyn Collective,
    pieces: usize,
    chunks: &[Range<usize>],
    stack: &mut dyn Stack,
) -> Result<()> {
    let (rank, world) = (others.rank(), others.world());
    let nodes = of_rank(pieces, rank, world);
    let Some((last, before)) = nodes.split_last() else { return Err(other_words(rank)) };
    let mut sums = Vec::new();
    for node in before {
        from_leaves(node, stack)?;
        sums.push(stack.take()?);
    }
    let (leaf, left) = all_but_the_last(last, stack)?;
    let mut chunks = chunks.iter().peekable();
    stack.last(leaf, left, &mut |sum, from| {
        while let Some(chunk) = chunks.next_if(|chunk| from <= chunk.start) {
            let to = (0..world).map(|rank| {
                let parts = sums.iter().map(Vec::as_slice).chain([sum]);
                parts
                    .map(|sum| sum.get(slice(chunk, rank, world)).unwrap_or_default())
                    .collect::<Vec<_>>()
                    .concat()
            });
            others.post(to.collect())?;
        }
        Ok(())
    })
}

/// The sum of all pieces in a slice of `width` numbers, from the subtrees of every rank.
fn sum_of_slices(received: &[Vec<f32>], pieces: usize, width: usize) -> Result<Vec<f32>> {
    let mut sums = BTreeMap::new();
    for (from, numbers) in received.iter().enumerate() {
        let nodes = of_rank(pieces, from, received.len());
        if numbers.len() != nodes.len() * width {
            return Err(other_words(from));
        }
        for (i, node) in nodes.into_iter().enumerate() {
            let part = numbers.get(i * width..(i + 1) * width).unwrap_or_default();
            sums.insert((node.start, node.end), part.to_vec());
        }
    }
    Ok(from_subtrees(&(0..pieces), &mut sums).unwrap_or_default())
}

/// What a rank says of its pieces: the seconds of the sum, then their losses.
fn said(stack: &mut dyn Stack, seconds: f64) -> Result<Vec<u8>> {
    let losses = stack.losses()?;
    let losses = losses.iter().flat_map(|(sum, targets)| [sum.to_le_bytes(), targets.to_le_bytes()].concat());
    Ok(seconds.to_le_bytes().into_iter().chain(losses).collect())
}

/// The losses that all ranks said, in the order of pieces, and the least seconds.
fn costs(said_by: &[Vec<u8>], pieces: usize) -> Result<(Cost, f64)> {
    let (mut loss, mut seconds) = ((0.0, 0), f64::INFINITY);
    for (rank, said) in said_by.iter().enumerate() {
        if said.len() != 8 + 16 * own(pieces, rank, said_by.len()).len() {
            return Err(other_words(rank));
        }
        let (own_seconds, losses) = said.split_at(8);
        seconds = seconds.min(f64::from_le_bytes(own_seconds.try_into().unwrap_or_default()));
        for piece in losses.chunks_exact(16) {
            let (sum, targets) = piece.split_at(8);
            loss.0 += f64::from_le_bytes(sum.try_into().unwrap_or_default());
            loss.1 += u64::from_le_bytes(targets.try_into().unwrap_or_default());
        }
    }
    Ok((loss, seconds))
}

/// Refuses what no number of processes could agree on: pieces that the ranks do not divide.
///
/// # Errors
/// The number of ranks does not divide that of the pieces.
pub fn check_pieces(pieces: usize, world: usize) -> Result<()> {
    if world > 1 && (pieces == 0 || !pieces.is_multiple_of(world)) {
        let message = if pieces == 0 {
            format!(
                "{world} ranks: the configuration says in how many `pieces` a batch is cut (12, say); it says 0"
            )
        } else {
            format!("pieces = {pieces}: {world} ranks do not divide it")
        };
        return Err(Refusal::Others(message));
    }
    Ok(())
}

/// What a rank is about to do.
#[derive(Debug, Clone, Copy)]
pub struct Intent<'a> {
    /// The digest of the configuration.
    pub configuration: &'a str,
    /// The digest of the data set.
    pub data_set: &'a str,
    /// The parameters: their names and shapes.
    pub layout: &'a Layout,
    /// Version and commit.
    pub build: &'a str,
    /// What computes: `cpu`, or the kind of device. Two kinds do not round alike.
    pub device: &'a str,
}

/// Whether all ranks are about to do the same. `ready` is what went wrong on this rank before, if anything did.
///
/// # Errors
/// The rank that differs from rank 0 or failed, and how.
pub fn agree(others: &mut dyn Collective, ready: std::result::Result<Intent<'_>, String>) -> Result<()> {
    let says = match &ready {
        Err(fault) => serde_json::json!({"fault": fault}),
        Ok(Intent { configuration, data_set, layout, build, device }) => {
            let mut hasher = blake3::Hasher::new();
            for p in layout.iter() {
                hasher.update(format!("{} {:?}\n", p.name, p.shape).as_bytes());
            }
            serde_json::json!({
                "configuration": configuration, "data set": data_set,
                "shape of the parameters": hasher.finalize().to_hex().to_string(), "build": build, "device": device,
            })
        }
    };
    let said = others.gather(says.to_string().as_bytes())?;
    let read = |bytes: &Vec<u8>| serde_json::from_slice::<serde_json::Value>(bytes).ok();
    let said: Vec<Option<serde_json::Value>> = said.iter().map(read).collect();
    for (rank, says) in said.iter().enumerate() {
        let Some(says) = says else { return Err(other_words(rank)) };
        if let Some(fault) = says.get("fault").and_then(|f| f.as_str()) {
            return Err(Refusal::Others(format!("rank {rank} cannot begin: {fault}")));
        }
    }
    let first = said.first().cloned().flatten().unwrap_or_default();
    for (rank, says) in said.iter().flatten().enumerate() {
        for what in ["build", "configuration", "data set", "shape of the parameters", "device"] {
            if says.get(what) != first.get(what) {
                let of = |says: &serde_json::Value| says.get(what).cloned().unwrap_or_default().to_string();
                return Err(Refusal::Others(format!(
                    "rank {rank} has another {what} than rank 0: {}, not {}",
                    of(says),
                    of(&first)
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gradients that are known.
    struct Known<'a> {
        of: &'a dyn Fn(usize) -> Vec<f32>,
        stack: Vec<Vec<f32>>,
        losses: Vec<Cost>,
    }

    impl Stack for Known<'_> {
        fn piece(&mut self, piece: usize) -> Result<()> {
            self.losses.push((piece as f64 * 0.1, piece as u64));
            self.put((self.of)(piece))
        }

        fn add(&mut self) -> Result<()> {
            let top = self.take()?;
            add(self.stack.last_mut().unwrap(), &top);
            Ok(())
        }

        fn losses(&mut self) -> Result<Vec<Cost>> {
            Ok(std::mem::take(&mut self.losses))
        }

        fn take(&mut self) -> Result<Vec<f32>> {
            Ok(self.stack.pop().unwrap())
        }

        fn put(&mut self, gradient: Vec<f32>) -> Result<()> {
            self.stack.push(gradient);
            Ok(())
        }
    }

    fn sum(
        others: &mut dyn Collective,
        pieces: usize,
        len: usize,
        of: &dyn Fn(usize) -> Vec<f32>,
    ) -> (Vec<f32>, Cost) {
        let mut known = Known { of, stack: Vec::new(), losses: Vec::new() };
        let (loss, _) = sum_of_pieces(others, pieces, len, &mut known).unwrap();
        assert_eq!(known.stack.len(), 1, "the sum alone");
        (known.take().unwrap(), loss)
    }

    /// The sum on every rank, where piece p has the gradient that `of` says.
    fn sums(
        world: usize,
        pieces: usize,
        len: usize,
        of: &(dyn Fn(usize) -> Vec<f32> + Sync),
    ) -> Vec<Vec<f32>> {
        std::thread::scope(|scope| {
            let ranks = threads(world, Duration::from_secs(30)).into_iter().map(|mut rank| {
                scope.spawn(move || {
                    let (sum, loss) = sum(&mut rank, pieces, len, of);
                    assert_eq!(loss.1, (pieces * (pieces - 1) / 2) as u64);
                    sum
                })
            });
            let ranks: Vec<_> = ranks.collect();
            ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn any_number_of_ranks_has_the_bits_of_one() {
        let mut stream = seeded::Family::named("collective").stream(seeded::test_seed());
        for (pieces, len) in [(1, 5), (2, 1), (12, 1001), (12, 3), (24, 64), (30, 17), (60, 9)] {
            let gradients: Vec<Vec<f32>> = (0..pieces)
                .map(|_| {
                    (0..len).map(|_| (stream.normal() * 10_f64.powf(stream.normal() * 4.0)) as f32).collect()
                })
                .collect();
            let of = |p: usize| gradients[p].clone();
            let one = sum(&mut Alone::default(), pieces, len, &of).0;
            // It is the sum.
            for (i, &found) in one.iter().enumerate() {
                let right: f64 = gradients.iter().map(|g| f64::from(g[i])).sum();
                let size: f64 = gradients.iter().map(|g| f64::from(g[i].abs())).sum();
                assert!((f64::from(found) - right).abs() <= 1e-6 * size, "{found} {right}");
            }
            for world in (1..=pieces).filter(|world| pieces % world == 0 && *world <= 12) {
                for sum in sums(world, pieces, len, &of) {
                    assert!(
                        sum.iter().zip(&one).all(|(a, b)| a.to_bits() == b.to_bits()),
                        "{world} {pieces}"
                    );
                }
            }
        }
    }

    #[test]
    fn subtrees_cover_the_pieces_of_a_rank_once() {
        for pieces in 1..40 {
            for world in (1..=pieces).filter(|world| pieces % world == 0) {
                let mut covered = Vec::new();
                for rank in 0..world {
                    let mut found = Vec::new();
                    subtrees(0..pieces, &own(pieces, rank, world), &mut found);
                    covered.extend(found.into_iter().flatten());
                }
                assert!(covered.into_iter().eq(0..pieces), "{pieces} {world}");
            }
        }
    }

    #[test]
    fn who_does_not_come_is_named() {
        let mut ranks = threads(2, Duration::from_millis(50));
        let second = ranks.pop().unwrap();
        let mut first = ranks.pop().unwrap();
        assert!(first.gather(b"x").unwrap_err().to_string().contains("rank 1 said nothing for 0.05"));
        drop(second);
        assert!(first.gather(b"x").unwrap_err().to_string().contains("rank 1 is gone"));
        assert!(check_pieces(12, 5).unwrap_err().to_string().contains("5 ranks do not divide"));
        assert!(check_pieces(0, 2).unwrap_err().to_string().contains("`pieces`"));
        assert!(check_pieces(0, 1).is_ok() && check_pieces(12, 4).is_ok());
    }
}
