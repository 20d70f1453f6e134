//! Decoding on a device: the keys and values of all hypotheses lie in one cache a layer, and a hypothesis is the list of its
//! tokens' places there. Hypotheses that branched off one another share what they have in common, and nothing is copied.

use std::cell::RefCell;
use std::rc::Rc;

use device_kernels::{Buffer, Newest, Products};
use fol::notation::{Structure, TreePlace};
use training::{Refusal, Result};

use super::{OnDevice, Pass, There, failed, fits};
use crate::config::{Position, Structured};
use crate::decode::Decoder;
use crate::{structure, tree};

/// Tokens that a cache has room for at first.
const FIRST: usize = 1024;

/// The place of a token in the caches; nobody's once no hypothesis has it.
#[derive(Debug)]
struct Kept {
    place: u32,
    free: Rc<RefCell<Vec<u32>>>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.free.borrow_mut().push(self.place);
    }
}

/// What a hypothesis remembers: its tokens' places, oldest first, where the next one stands in the tree, and what each so far
/// is to the newest.
#[derive(Debug, Clone, Default)]
pub struct Path {
    tokens: Vec<Rc<Kept>>,
    place: TreePlace,
    structure: Structure,
}

/// A transformer that decodes on a device.
#[derive(Debug)]
pub struct DecoderOnDevice {
    model: OnDevice,
    theta: Buffer,
    /// The vectors of the symbols where they are computed.
    vectors: Option<Buffer>,
    /// Of each layer keys and values, \[room, 2d\].
    caches: Vec<Buffer>,
    room: usize,
    free: Rc<RefCell<Vec<u32>>>,
    logits: Vec<f32>,
}

impl DecoderOnDevice {
    /// The decoder of a model with these parameters.
    ///
    /// # Errors
    /// Parameters of another model.
    pub fn new(mut model: OnDevice, theta: &[f32]) -> Result<Self> {
        let theta = model.show(theta)?;
        let (vectors, _) = model.vectors(&theta);
        let (caches, free) = (Vec::new(), Rc::default());
        let mut decoder = Self { model, theta, vectors, caches, room: 0, free, logits: Vec::new() };
        decoder.grow(FIRST)?;
        Ok(decoder)
    }

    /// Room for so many tokens at least; what is there stays.
    fn grow(&mut self, wanted: usize) -> Result<()> {
        let (m, d) = (&*self.model.machine, self.model.config.d_model);
        fits(m, wanted * 2 * d, || format!("keys and values of {wanted} tokens"))?;
        let caches = (0..self.model.config.n_layers).map(|n| {
            let cache = m.room(wanted * 2 * d);
            if let Some(old) = self.caches.get(n) {
                m.copy(&cache, old);
            }
            cache
        });
        self.caches = caches.collect();
        self.free.borrow_mut().extend((self.room as u32..wanted as u32).rev());
        self.room = wanted;
        Ok(())
    }

    fn check(&self, states: &[&mut Path], tokens: &[u32]) -> Result<()> {
        let (max, v) = (self.model.config.max_len, self.model.config.vocab_size);
        if states.iter().any(|state| state.tokens.len() >= max) {
            return Err(Refusal::Learner(format!("a sequence of more than max_len = {max} tokens")));
        }
        match tokens.iter().find(|&&token| token as usize >= v) {
            Some(token) => Err(Refusal::Learner(format!("token {token} is outside the vocabulary"))),
            None => Ok(()),
        }
    }

    /// A place in the caches for each hypothesis' newest token.
    fn place(&mut self, states: &mut [&mut Path]) -> Result<Vec<u32>> {
        let missing = states.len().saturating_sub(self.free.borrow().len());
        if missing > 0 {
            self.grow((2 * self.room).max(self.room + missing))?;
        }
        let free = &self.free;
        let new = states.iter_mut().map_while(|state| {
            let place = free.borrow_mut().pop()?;
            state.tokens.push(Rc::new(Kept { place, free: Rc::clone(free) }));
            Some(place)
        });
        Ok(new.collect())
    }

    /// The rows of a step: of each hypothesis its newest token.
    fn send(&self, states: &[&mut Path], tokens: &[u32]) -> There {
        let m = &*self.model.machine;
        let tree = self.model.config.position == Position::Tree;
        let paths =
            tree.then(|| self.model.send_paths(states.iter().map(|state| tree::entries(&state.place))));
        let place = |state: &&mut Path| match self.model.config.position {
            Position::Tree => Some(state.place.inside() as u32),
            Position::Sinusoidal | Position::Learned | Position::Rotary => {
                Some(state.tokens.len() as u32 - 1)
            }
            Position::Alibi | Position::None => None,
        };
        let places: Option<Vec<u32>> = states.iter().map(place).collect();
        let relations = (self.model.config.structure != Structured::None).then(|| {
            let all = states.iter().flat_map(|state| structure::newest(&state.structure));
            m.upload_places(&all.map(u32::from).collect::<Vec<_>>())
        });
        There {
            tokens: m.upload_places(tokens),
            places: places.map(|p| m.upload_places(&p)),
            paths,
            relations,
        }
    }
}

impl Decoder for DecoderOnDevice {
    type State = Path;

    fn start(&self) -> Path {
        Path::default()
    }

    fn step(&mut self, states: &mut [&mut Path], tokens: &[u32]) -> Result<&[f32]> {
        self.logits.clear();
        if states.is_empty() {
            return Ok(&self.logits);
        }
        self.check(states, tokens)?;
        let new = self.place(states)?;
        let model = &self.model;
        let (m, d) = (&*model.machine, model.config.d_model);
        if model.config.position == Position::Tree {
            for (state, &token) in states.iter_mut().zip(tokens) {
                tree::push(&mut state.place, &model.code, token);
            }
        }
        if model.config.structure != Structured::None {
            for (state, &token) in states.iter_mut().zip(tokens) {
                structure::push(&mut state.structure, &model.code, token);
            }
        }
        let there = self.send(states, tokens);
        let (mut starts, mut members) = (vec![0], Vec::new());
        for state in states.iter() {
            members.extend(state.tokens.iter().map(|kept| kept.place));
            starts.push(members.len() as u32);
        }
        let new = m.upload_places(&new);
        let (starts, members) = (m.upload_places(&starts), m.upload_places(&members));
        let form = Newest {
            heads: model.config.n_heads,
            size: model.config.head_size(),
            slopes: model.slopes.as_ref(),
            starts: &starts,
            members: &members,
            relations: None,
        };
        let attend = |n: usize, qkv: &Buffer, context: &Buffer, _: &Buffer| {
            model.turn(qkv, &there, false);
            let Some(cache) = self.caches.get(n) else { return Ok(()) };
            m.keep(qkv, &new, cache, d);
            let relations = model.related(&self.theta, there.relations.as_ref(), n);
            m.attention_of_newest(Newest { relations, ..form }, qkv, cache, context).map_err(failed)
        };
        let pass = Pass { rows: states.len(), noise: None, first_row: 0, attend: &attend };
        m.multiply_in(Products::Single);
        let through = model.through(&self.theta, self.vectors.as_ref(), &there, &pass)?;
        self.logits = m.read(&through.logits).map_err(failed)?;
        self.logits.truncate(states.len() * model.config.vocab_size);
        Ok(&self.logits)
    }

    fn vocabulary(&self) -> usize {
        self.model.config.vocab_size
    }
}
