//! `tl profile`, and what `tl run --profile` and `tl explain --measure` say of a run.

use std::time::Duration;

use clap::Args;
use tensor_logic::answer::json;
use tensor_logic::profile::{self, Profile};
use tensor_logic::source::Source;

use crate::answer::{Answer, Shape};
use crate::evaluate::{self, Run};

/// `tl profile`
#[derive(Debug, Args)]
pub(crate) struct ProfileOf {
    #[command(flatten)]
    run: Run,
}

/// Runs a program, and answers where the time went in place of its answers.
pub(crate) fn profile(args: &ProfileOf) -> anyhow::Result<Answer> {
    let (ran, profile, total) = evaluate::ran(&args.run, true)?;
    let source = Source::new(ran.file.clone(), ran.program.as_bytes());
    let mut answer = Answer::new(&source, Shape::Warnings);
    let mut file = String::new();
    json::string(&mut file, &ran.file);
    answer.fields.push(("file", file));
    answer.fields.extend(profile::fields(&profile, &ran.program, total));
    answer.text = profile::text(&profile, &ran.program, total);
    (answer.errors, answer.warnings, answer.fails) = (ran.errors, ran.warnings, ran.fails);
    answer.interrupted = ran.interrupted;
    Ok(answer)
}

/// Adds a profile behind the answers of a run.
pub(crate) fn add(answer: &mut Answer, profile: &Profile, total: Duration) {
    answer.text.push('\n');
    answer.text.push_str(&profile::text(profile, &answer.program, total));
    let mut object = String::from("{");
    for (at, (key, value)) in profile::fields(profile, &answer.program, total).iter().enumerate() {
        object.push_str(if at == 0 { "" } else { ", " });
        json::string(&mut object, key);
        object.push_str(": ");
        object.push_str(value);
    }
    object.push('}');
    answer.fields.push(("profile", object));
}
