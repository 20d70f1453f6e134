//! A task whose targets are states, as the automaton that it asks for.

use super::{Form, Task};

/// A finite automaton: what is to be told after a sequence is the state that it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The state before the first symbol.
    pub start: u32,
    /// The next state, for each state and each symbol.
    pub next: Vec<Vec<u32>>,
}

/// The most entries of a table.
const MOST_ENTRIES: u64 = 1 << 16;

impl Task {
    /// The automaton of a task that asks for the state at every step: groups, sums. `None` for others, and for a table of
    /// more than 65536 entries.
    pub fn machine(&self) -> Option<Machine> {
        match &self.form {
            Form::Group(group) => {
                let next = (0..group.order()).map(|state| group.row(state).to_vec()).collect();
                Some(Machine { start: group.identity(), next })
            }
            Form::Sum(modulus) if u64::from(*modulus) * u64::from(*modulus) <= MOST_ENTRIES => {
                let row = |state: u32| (0..*modulus).map(|letter| (state + letter) % modulus).collect();
                Some(Machine { start: 0, next: (0..*modulus).map(row).collect() })
            }
            Form::Aligned(_) | Form::Sum(_) | Form::Tape(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::settings::Settings;

    #[test]
    fn it_says_what_the_task_says() {
        let mut found = 0;
        for name in Task::names() {
            let patterns = Some(vec![vec![1]]);
            let settings = Settings { pattern: Some(vec![1]), patterns, ..Settings::default() };
            let task = Task::new(name, &settings).unwrap();
            let Some(machine) = task.machine() else { continue };
            found += 1;
            let mut stream = seeded::Family::named("machine").stream(found);
            let example = task.draw(300, &mut stream).unwrap();
            let mut state = machine.start;
            for (letter, wanted) in example.input.iter().zip(&example.target) {
                state = machine.next[state as usize][*letter as usize];
                assert_eq!(state, *wanted, "{name}");
            }
            assert_eq!(machine.next.len(), task.classes() as usize);
            assert!(machine.next.iter().all(|row| row.len() == task.symbols() as usize));
        }
        assert_eq!(found, 5);
        let large = Settings { modulus: Some(1 << 20), ..Settings::default() };
        assert_eq!(Task::new("mod-sum", &large).unwrap().machine(), None);
    }
}
