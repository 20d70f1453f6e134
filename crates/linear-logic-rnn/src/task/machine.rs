//! A task whose targets are states, as the automaton that it asks for.

use super::Task;

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
    /// The table of the automaton of a task that asks for the state at every step, where the next state depends on the
    /// state and the symbol alone. `None` for others, and for a table of more than 65536 entries.
    pub fn machine(&self) -> Option<Machine> {
        let automaton = self.automaton().filter(|automaton| !automaton.looks_back())?;
        let (states, symbols) = (self.classes(), self.symbols());
        if u64::from(states) * u64::from(symbols) > MOST_ENTRIES {
            return None;
        }
        let row = |state: u32| {
            (0..symbols).map(|symbol| automaton.step(state, automaton.first(), symbol)).collect()
        };
        let next = (0..states).map(row).collect::<Option<Vec<Vec<u32>>>>()?;
        Some(Machine { start: automaton.start(), next })
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
        // Sums, generators, letters, numerals; words look back.
        assert_eq!(found, 2 + 3 + 5 + 2);
        let large = Settings { modulus: Some(1 << 20), ..Settings::default() };
        assert_eq!(Task::new("mod-sum", &large).unwrap().machine(), None);
    }
}
