//! Which tensors move with the steps of a long recursion, in which pass, and how their steps lie to each other.
//!
//! Enter at [`Windows::of`]. From large stepped components it spreads along equations whose left side and reads have
//! one index in common. What spreads too far, as to a tensor that is also normalised along the steps, is given up
//! again as long as it does not depend on the largest; else there are no windows.

use std::collections::{BTreeMap, BTreeSet};

use super::along::{Along, FAR, NEAR, Places, along, is_looked_at, is_summed};
use super::spread::{by_value, can_move, dependent, ends, moving, spread, volume};
use super::sums::apart;
use super::{Moved, Timing, Windows};
use crate::program::{Class, Component, Equation, EquationId, Program, Range, Read, Role, Style, TensorId};
use crate::value::Domain;

/// What an attempt fails at: tensors that need not move.
type Blame = Vec<TensorId>;

impl Windows {
    /// How a program is gone through for these goals, if its largest stepped component has at least so many
    /// elements, and at least so many steps.
    pub fn of(program: &Program, goals: &[TensorId], large: u128, long: usize) -> Option<Windows> {
        let sized = program.components.iter().filter_map(|component| {
            let Class::Stepped(steps) = &component.class else { return None };
            let volume = component.tensors.iter().map(|id| volume(program, *id)).sum::<u128>();
            let moves = component.tensors.iter().all(|id| can_move(program, *id));
            let (places, _) = (volume >= large && moves).then(|| moving(component, steps))??;
            let steps = |(id, place): (&TensorId, &usize)| {
                let domain = program.tensor(*id).places.get(*place).and_then(|place| place.domain.as_ref());
                domain.map_or(0, Domain::len)
            };
            (places.iter().map(steps).max()? >= long).then_some((volume, places))
        });
        let mut seeds: Vec<(u128, Places)> = sized.collect();
        seeds.first()?;
        let needed = program.needs(goals);
        seeds.retain(|(_, places)| places.keys().all(|id| needed.contains(id)));
        seeds.sort_by_key(|(volume, _)| std::cmp::Reverse(*volume));
        seeds.first()?;
        let mut still: BTreeSet<TensorId> = BTreeSet::new();
        loop {
            match attempt(program, goals, &needed, &seeds, &still) {
                Ok(windows) => return Some(windows),
                Err(blame) => {
                    let before = still.len();
                    still.extend(blame);
                    if still.len() == before {
                        return None;
                    }
                }
            }
        }
    }
}

fn attempt(
    program: &Program,
    goals: &[TensorId],
    needed: &BTreeSet<TensorId>,
    seeds: &[(u128, Places)],
    still: &BTreeSet<TensorId>,
) -> Result<Windows, Blame> {
    let mut places: Places = seeds.iter().flat_map(|(_, places)| places.clone()).collect();
    places.retain(|id, _| !still.contains(id));
    let places = spread(program, needed, places, still);
    let mut program = program.clone();
    apart(&mut program, &places, needed).ok_or_else(Blame::new)?;
    let needed = program.needs(goals);
    let first = seeds.first().into_iter().flat_map(|(_, places)| places.keys());
    let dependent = dependent(&program, first.copied().collect());
    let mut finder = Finder {
        program,
        places,
        dependent,
        passes: BTreeMap::new(),
        levels: BTreeMap::new(),
        shifts: BTreeMap::new(),
        up: None,
        windows: Windows {
            program: Program::default(),
            moved: Vec::new(),
            sums: Vec::new(),
            inputs: Vec::new(),
            passes: Vec::new(),
            up: true,
            timings: Vec::new(),
            standing: Vec::new(),
            reach: None,
        },
        back: BTreeMap::new(),
    };
    let own = |component: &&Component| component.tensors.iter().any(|id| needed.contains(id));
    let components: Vec<Component> = finder.program.components.iter().filter(own).cloned().collect();
    for component in &components {
        finder.pass_of(component)?;
    }
    for component in &components {
        finder.shift(component)?;
    }
    finder.finish(goals, &needed)
}

struct Finder {
    program: Program,
    places: Places,
    /// What depends on the recursion.
    dependent: BTreeSet<TensorId>,
    /// The passes of what moves.
    passes: BTreeMap<TensorId, usize>,
    /// How many passes must have ended before another is there.
    levels: BTreeMap<TensorId, usize>,
    shifts: BTreeMap<TensorId, i64>,
    back: BTreeMap<TensorId, i64>,
    /// Whether the first pass goes up.
    up: Option<bool>,
    windows: Windows,
}

impl Finder {
    /// Tensors at which an equation fails and that need not move.
    fn blame(&self, equation: &Equation) -> Blame {
        let mut found = vec![equation.tensor];
        equation.visit_reads(&mut |read, _| found.push(read.tensor));
        found.retain(|id| self.places.contains_key(id) && !self.dependent.contains(id));
        found
    }

    fn equations(&self, component: &Component) -> Vec<(EquationId, Equation)> {
        let own = component.equations.iter().map(|at| (*at, self.program.equation(*at).clone()));
        own.filter(|(_, equation)| !equation.terms.is_empty()).collect()
    }

    /// Where the left side of a tensor that moves stands.
    fn head(&self, equation: &Equation) -> Option<Along> {
        let place = self.places.get(&equation.tensor)?;
        Some(equation.head.get(*place).map_or(Along::Elsewhere, Along::of))
    }

    fn pass_of(&mut self, component: &Component) -> Result<(), Blame> {
        let moves = component.tensors.iter().any(|id| self.places.contains_key(id));
        let equations = self.equations(component);
        let blame = |finder: &Finder| {
            let all = equations.iter().flat_map(|(_, equation)| finder.blame(equation));
            let own = component.tensors.iter().filter(|id| !finder.dependent.contains(id)).copied();
            all.chain(own.filter(|id| finder.places.contains_key(id))).collect::<Blame>()
        };
        let mut turned = None;
        if moves {
            turned = match &component.class {
                Class::Plain => None,
                Class::Stepped(steps) => {
                    let found = moving(component, steps);
                    let same = |(places, _): &(Places, bool)| {
                        places.iter().all(|(id, place)| self.places.get(id) == Some(place))
                            && places.keys().all(|id| self.program.tensor(*id).style == Style::Square)
                    };
                    let (_, up) = found.filter(same).ok_or_else(|| blame(self))?;
                    Some(up)
                }
                _ => return Err(blame(self)),
            };
        }
        let (mut level, mut summed) = (0, false);
        for (_, equation) in &equations {
            let head = self.head(equation);
            let fixed = matches!(head, Some(Along::Fixed(_)));
            let mut fine = true;
            equation.visit_reads(&mut |read, _| {
                if component.tensors.contains(&read.tensor) {
                    return;
                }
                level = level.max(match along(&self.places, read) {
                    None => self.levels.get(&read.tensor).copied().unwrap_or(0),
                    Some(along) => {
                        let pass = self.passes.get(&read.tensor).copied().unwrap_or(0);
                        fine &= along != Along::Elsewhere;
                        pass + usize::from(matches!(along, Along::Fixed(_)) && !fixed)
                    }
                });
            });
            for term in &equation.terms {
                summed |= !moves && is_summed(term, &self.places);
            }
            if !fine {
                return Err(self.blame(equation));
            }
        }
        if let Some(up) = turned
            && (level == 0) != (*self.up.get_or_insert(up) == up)
        {
            level += 1;
        }
        if level > 1 && (moves || summed) {
            return Err(Blame::new());
        }
        for id in &component.tensors {
            if moves {
                self.passes.insert(*id, level);
            }
            if summed {
                self.windows.sums.push((*id, level));
            }
            self.levels.insert(*id, level + usize::from(summed));
        }
        Ok(())
    }

    fn sign(&self, pass: usize) -> i64 {
        if self.up.unwrap_or(true) == (pass == 0) { 1 } else { -1 }
    }

    /// How the steps of a component lie to those that it reads.
    fn shift(&mut self, component: &Component) -> Result<(), Blame> {
        let sum = self.windows.sums.iter().find(|(id, _)| component.tensors.contains(id)).copied();
        let Some(pass) = sum
            .map(|(_, pass)| pass)
            .or_else(|| component.tensors.first().and_then(|id| self.passes.get(id)).copied())
        else {
            return self.stands(component);
        };
        let sign = self.sign(pass);
        let equations = self.equations(component);
        let inner = |id: TensorId| match &component.class {
            Class::Stepped(steps) => {
                let own = steps.places.iter().find(|(other, _)| *other == id);
                own.and_then(|(_, moving)| moving.first()).map_or(0, |moving| sign * moving.shift)
            }
            _ => 0,
        };
        // Which index moves each equation, and how its reads lie to the left side.
        let mut offset: Option<i64> = None;
        let mut reads: Vec<(TensorId, TensorId, i64)> = Vec::new();
        let mut timings: Vec<(EquationId, TensorId, Along)> = Vec::new();
        for (at, equation) in &equations {
            let (step, distances) = self.distances(equation, sum.is_some(), pass)?;
            timings.push((*at, equation.tensor, step));
            for (read, distance) in distances {
                let same = self.passes.get(&read) == Some(&pass);
                reads.push((equation.tensor, read, distance));
                if same && !component.tensors.contains(&read) {
                    let shift = self.shifts.get(&read).copied().unwrap_or(0);
                    let least = shift + sign * distance - inner(equation.tensor);
                    offset = Some(offset.map_or(least, |offset| offset.max(least)));
                }
            }
        }
        for id in &component.tensors {
            self.shifts.insert(*id, inner(*id) + offset.unwrap_or(0));
        }
        for (head, read, distance) in reads {
            let (own, other) = (self.shift_of(head), self.shift_of(read));
            if self.passes.get(&read) == Some(&pass) {
                let lag = own - other - sign * distance;
                if !(0..NEAR as i64).contains(&lag) {
                    return Err(Blame::new());
                }
                let back = self.back.entry(read).or_insert(0);
                *back = lag.max(*back);
            } else {
                let at = own + other - sign * distance;
                let (low, high) = self.windows.reach.unwrap_or((at, at));
                self.windows.reach = Some((low.min(at), high.max(at)));
            }
        }
        for (at, id, along) in timings {
            match along {
                Along::Fixed(value) => {
                    let step = sign * value + self.shift_of(id);
                    self.windows.standing.push((at, pass, step));
                }
                Along::Steps { index, by, from } => {
                    let from = sign * from + self.shift_of(id);
                    let timing = Timing { index, pass, by: sign * by, from };
                    let known = self.windows.timings.iter().find(|known| known.index == index);
                    if known.is_some_and(|known| *known != timing) {
                        return Err(Blame::new());
                    }
                    self.windows.timings.push(timing);
                }
                Along::Elsewhere => return Err(Blame::new()),
            }
        }
        Ok(())
    }

    fn shift_of(&self, id: TensorId) -> i64 {
        self.shifts.get(&id).copied().unwrap_or(0)
    }

    /// Which steps an equation stands in, and how far behind each read of what moves lies, in values.
    fn distances(
        &self,
        equation: &Equation,
        summed: bool,
        pass: usize,
    ) -> Result<(Along, Vec<(TensorId, i64)>), Blame> {
        let mut step = self.head(equation);
        let mut fine = true;
        let mut found = Vec::new();
        let own = |read: &Read| self.passes.get(&read.tensor) == Some(&pass);
        equation.visit_reads(&mut |read, _| match along(&self.places, read) {
            Some(Along::Steps { index, by, from }) => {
                let over = || equation.terms.iter().any(|term| term.over.contains(&index));
                match *step.get_or_insert(Along::Steps { index, by, from: 0 }) {
                    Along::Steps { index: i, by: b, from: f } if (i, b) == (index, by) => {
                        fine &= if summed { over() } else { equation.left.contains(&index) };
                        found.push((read.tensor, from - f));
                    }
                    _ => fine = false,
                }
            }
            Some(Along::Fixed(value)) => match step {
                Some(Along::Fixed(head)) if own(read) => found.push((read.tensor, value - head)),
                // It will be the read of a slice.
                _ => fine &= !own(read),
            },
            Some(Along::Elsewhere) => fine = false,
            None => {}
        });
        // Every term of a sum moves.
        if summed {
            fine &= equation.terms.iter().all(|term| is_summed(term, &self.places));
        }
        match step {
            Some(Along::Steps { index, .. }) => {
                let known = match &self.program.index(index).range {
                    Range::Domain(Domain::Interval { from, to }) => {
                        from.unsigned_abs() <= FAR && to.unsigned_abs() <= FAR
                    }
                    _ => false,
                };
                fine &= known && !is_looked_at(equation, index);
            }
            Some(Along::Fixed(_)) => {}
            Some(Along::Elsewhere) | None => fine = false,
        }
        match step {
            Some(step) if fine => Ok((step, found)),
            _ => Err(self.blame(equation)),
        }
    }

    /// What does not move reads single slices only.
    fn stands(&self, component: &Component) -> Result<(), Blame> {
        for (_, equation) in &self.equations(component) {
            let mut fine = true;
            equation.visit_reads(&mut |read, _| {
                fine &= matches!(along(&self.places, read), None | Some(Along::Fixed(_)));
            });
            if !fine {
                return Err(self.blame(equation));
            }
        }
        Ok(())
    }

    fn finish(mut self, goals: &[TensorId], needed: &BTreeSet<TensorId>) -> Result<Windows, Blame> {
        let mut slices: BTreeMap<(TensorId, i64), TensorId> = BTreeMap::new();
        for at in 0..self.program.equations.len() {
            let Some(equation) = self.program.equations.get(at).cloned() else { continue };
            let mut fixed: Vec<(TensorId, i64)> = Vec::new();
            let pass = self.passes.get(&equation.tensor);
            equation.visit_reads(&mut |read, _| {
                if let Some(Along::Fixed(value)) = along(&self.places, read)
                    && needed.contains(&equation.tensor)
                    && pass.is_none_or(|pass| self.passes.get(&read.tensor) != Some(pass))
                {
                    fixed.push((read.tensor, value));
                }
            });
            for slice in &fixed {
                slices.entry(*slice).or_insert_with(|| self.add_slice(*slice));
            }
            if let (false, Some(equation)) = (fixed.is_empty(), self.program.equations.get_mut(at)) {
                let places = &self.places;
                let mut change = |read: &mut Read| {
                    if let Some(Along::Fixed(value)) = along(places, read)
                        && let Some(slice) = slices.get(&(read.tensor, value))
                    {
                        read.tensor = *slice;
                    }
                };
                for term in &mut equation.terms {
                    term.body.change_reads(&mut change);
                    term.when.change_reads(&mut change);
                }
            }
        }
        let sliced: BTreeSet<TensorId> = slices.keys().map(|(id, _)| *id).collect();
        let second =
            self.passes.values().chain(self.windows.sums.iter().map(|(_, pass)| pass)).any(|p| *p > 0);
        let mut steps: Vec<Option<(i64, i64)>> = vec![None; 1 + usize::from(second)];
        let mut stands = |pass: usize, a: i64, b: i64| {
            if let Some(slot) = steps.get_mut(pass) {
                let (from, to) = slot.unwrap_or((a, a));
                *slot = Some((from.min(a).min(b), to.max(a).max(b)));
            }
        };
        for timing in &self.windows.timings {
            if let Range::Domain(Domain::Interval { from, to }) = &self.program.index(timing.index).range
                && from <= to
            {
                stands(timing.pass, timing.by * from + timing.from, timing.by * to + timing.from);
            }
        }
        for (id, place) in &self.places {
            let Some(pass) = self.passes.get(id).copied().filter(|_| needed.contains(id)) else { continue };
            let tensor = self.program.tensor(*id);
            let square = tensor.style == Style::Square;
            let domain = ends(&self.program, *id, *place).filter(|_| square);
            let back = self.back.get(id).copied().unwrap_or(0);
            let shift = self.shift_of(*id);
            let slices: BTreeMap<i64, TensorId> = slices
                .iter()
                .filter(|((of, value), _)| {
                    of == id && domain.is_some_and(|(from, to)| (from..=to).contains(value))
                })
                .map(|((_, value), slice)| (*value, *slice))
                .collect();
            let whole = goals.contains(id);
            let alone = back == 0 && !whole && !sliced.contains(id);
            if if square { domain.is_none() } else { !alone } {
                return Err(Blame::new());
            }
            let given = by_value(&self.program, *id, *place)
                .ok_or_else(|| if self.dependent.contains(id) { Blame::new() } else { vec![*id] })?;
            let mut size = 0;
            if let Some((from, to)) = domain {
                let sign = self.sign(pass);
                stands(pass, sign * from + shift, sign * to + shift);
                let all = usize::try_from(volume(&self.program, *id)).map_err(|_| Blame::new())?;
                size = all / (to - from + 1) as usize;
            }
            let place = *place;
            self.windows.moved.push(Moved {
                id: *id,
                place,
                pass,
                back,
                whole,
                slices,
                size,
                shift,
                domain,
                given,
            });
        }
        for pass in steps {
            let (from, to) = pass.ok_or_else(Blame::new)?;
            let back = self.windows.moved.iter().map(|moved| moved.back).max().unwrap_or(0);
            if (to - from) / 4 <= back {
                return Err(Blame::new());
            }
            self.windows.passes.push((from, to));
        }
        for pass in 0..self.windows.passes.len() {
            let mut inputs: BTreeSet<TensorId> = BTreeSet::new();
            for equation in &self.program.equations {
                let own = self.passes.get(&equation.tensor).or_else(|| {
                    let sum = self.windows.sums.iter().find(|(id, _)| *id == equation.tensor);
                    sum.map(|(_, pass)| pass)
                });
                if own.is_some_and(|own| *own <= pass) && needed.contains(&equation.tensor) {
                    equation.visit_reads(&mut |read, _| {
                        inputs.insert(read.tensor);
                    });
                }
            }
            inputs.retain(|id| {
                !self.places.contains_key(id)
                    && self.levels.get(id).is_none_or(|level| *level <= pass)
                    && matches!(self.program.tensor(*id).role, Role::Computed | Role::Parameter)
            });
            self.windows.inputs.push(inputs.into_iter().collect());
        }
        self.windows.up = self.up.unwrap_or(true);
        self.windows.program = self.program;
        Ok(self.windows)
    }

    /// A tensor for one slice of another.
    fn add_slice(&mut self, (id, value): (TensorId, i64)) -> TensorId {
        let mut tensor = self.program.tensor(id).clone();
        let place = self.places.get(&id).copied().unwrap_or(0);
        let inside = ends(&self.program, id, place).is_some_and(|(from, to)| (from..=to).contains(&value));
        if let Some(place) = tensor.places.get_mut(place) {
            place.domain = Some(Domain::Interval { from: value, to: if inside { value } else { value - 1 } });
            place.limit.clone_from(&place.domain);
        }
        (tensor.role, tensor.given, tensor.hidden) = (Role::Data, Vec::new(), true);
        self.program.tensors.push(tensor);
        TensorId(u32::try_from(self.program.tensors.len() - 1).unwrap_or(u32::MAX))
    }
}
