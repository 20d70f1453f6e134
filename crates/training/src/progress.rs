//! What people see while they wait: one bar on a terminal, plain lines elsewhere, nothing with `--quiet`.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How progress is shown. Standard output is never touched.
#[derive(Debug)]
pub enum Progress {
    /// A bar on standard error.
    Bar(ProgressBar),
    /// A plain line now and then.
    Lines,
    /// Warnings and errors only.
    Quiet,
}

impl Progress {
    /// A bar of `total` steps if standard error is a terminal, else plain lines.
    pub fn new(total: u64, quiet: bool) -> Self {
        if quiet {
            return Self::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(10));
        let template = "{bar:30} {pos}/{len}  {msg}  {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self::Bar(bar)
    }

    /// Moves the bar.
    pub fn set(&self, position: u64) {
        if let Self::Bar(bar) = self {
            bar.set_position(position);
        }
    }

    /// What stands beside the bar, or one plain line.
    pub fn note(&self, message: impl Into<String>) {
        match self {
            Self::Bar(bar) => bar.set_message(message.into()),
            Self::Lines => say(format_args!("{}", message.into())),
            Self::Quiet => {}
        }
    }

    /// A line that stays.
    pub fn say(&self, message: &str) {
        match self {
            Self::Bar(bar) => bar.println(message),
            Self::Lines => say(format_args!("{message}")),
            Self::Quiet => {}
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// One line on standard error. A reader that has gone away, or a full disk behind it, stops no run.
pub fn say(message: std::fmt::Arguments<'_>) {
    calculemus_base::stream::say(&message.to_string());
}
