//! The world of a program in a shell: learning shows a bar.

use calculemus_base::stream;
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use tensor_logic::files::Files;
use tensor_logic::source::Source;
use tensor_logic::world::World;

/// The world of a program. Learning is drawn on standard error, and only on a terminal.
pub(crate) fn world(source: &Source, files: Files, seed: u64) -> World<'_> {
    Bar::default().world(source, files, seed)
}

/// How far learning is.
#[derive(Debug, Clone)]
pub(crate) struct Bar(ProgressBar);

impl Default for Bar {
    fn default() -> Bar {
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} loss {msg}");
        let bar = ProgressBar::new(0).with_finish(ProgressFinish::AndClear);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Bar(bar)
    }
}

impl Bar {
    /// The world of a program whose learning it shows.
    pub(crate) fn world<'a>(&self, source: &'a Source, files: Files, seed: u64) -> World<'a> {
        let bar = self.0.clone();
        World::new(source, files, seed).with_progress(Box::new(move |step, steps, loss| {
            bar.set_length(steps);
            bar.set_position(step);
            if !bar.is_hidden() {
                bar.set_message(format!("{loss:.6}"));
            }
        }))
    }

    /// Says something above the bar.
    pub(crate) fn say(&self, told: &str) {
        self.0.suspend(|| stream::say(&format!("tl: {told}")));
    }
}
