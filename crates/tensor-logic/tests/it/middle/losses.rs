//! Random parameters, sparse tensors that hang on them, and losses.

use super::drawn::{Class, Drawn, INDICES, Task};
use super::terms::read;

impl Drawn<'_> {
    pub(super) fn parameters(&mut self) {
        self.exact = false;
        self.lines.push("W[d] ~ [0.5, -1, 0.25]".to_owned());
        self.know("W", false, Vec::new(), true);
        let mut weights = vec!["W[d]", "W[0]", "W[1]", "W[i%3]"];
        if self.chance(50) {
            self.lines.push("U ~ 0.7".to_owned());
            self.know("U", false, Vec::new(), false);
            weights.extend(["U", "U"]);
        }
        // As many parameters as there are elements; an index of theirs is declared.
        if self.chance(40) {
            let mut own: Vec<&str> = Vec::new();
            if self.chance(60) {
                self.lines.push("P[i] ~ normal(0, 1)".to_owned());
                self.know("P", false, vec![Class::First], false);
                own.push("P[i]");
                own.extend((!self.rectangle).then_some("P[j]"));
            }
            if self.chance(60) {
                self.lines.push("G[i, j] ~ normal(0, 1)".to_owned());
                let classes = ["i", "j"].map(|index| self.class(index)).to_vec();
                self.know("G", false, classes, false);
                own.push("G[i, j]");
                own.extend((!self.rectangle).then_some("G[j, i]"));
            }
            for _ in 0..2 {
                weights.extend(&own);
            }
            for index in INDICES {
                if !self.declared.contains(&index) {
                    let size = if self.class(index) == Class::Second { self.sizes.1 } else { self.sizes.0 };
                    self.lines.insert(0, format!("{index} : {size}"));
                }
            }
        }
        let relations = self.matching(|known| known.round && known.places.len() == 2);
        for _ in 0..self.one(&[1, 2]) {
            let (known, other) = (self.one(&relations), self.one(&relations));
            let (name, round) = (self.name("X"), self.chance(33));
            let turned = if self.rectangle { "i-1, j" } else { "j, i" };
            let places = self.one(&["i, j", "i, j", "i-1, j", "i, j+1", turned]);
            let weight = self.one(&weights);
            let block = if known.block { ", d" } else { "" };
            let mut body = format!("{weight} {}({places}{block})", known.name);
            match self.below(5) {
                0 | 1 => body = format!("tanh({body})"),
                2 => {}
                _ => {
                    let places = self.one(&["i, j", turned, "i, j-2"]);
                    let block = if other.block { ", _" } else { "" };
                    body = format!("{body} + {weight} {}({places}{block})", other.name);
                }
            }
            let guards = self.guards(&["i", "j"], 20);
            let sign = if round { "+=" } else { "=" };
            let places = ["i", "j"].map(str::to_owned);
            self.lines.push(format!("{} {sign} {body}{guards}", read(&name, round, &places)));
            // Most of what follows reads these.
            for _ in 0..3 {
                self.derive(&name, round, &["i", "j"], false);
            }
        }
    }

    pub(super) fn loss(&mut self) {
        let derived = self.matching(|known| known.derived);
        let (mut seen, mut terms) = (Vec::new(), Vec::new());
        for known in derived.iter().rev() {
            if seen.contains(&&known.name) || terms.len() > 2 {
                continue;
            }
            seen.push(&known.name);
            let names = known.places.iter().zip([("i", "j"), ("k", "m")]);
            let of = |(class, (first, second)): (&Class, (&str, &str))| {
                if *class == Class::Second { second.to_owned() } else { first.to_owned() }
            };
            let mut places: Vec<String> = names.map(of).collect();
            if known.block {
                places.push("d".to_owned());
            }
            let (element, all) = (read(&known.name, self.chance(50), &places), places.join(", "));
            terms.push(match self.below(10) {
                0 | 1 => format!("{element}^2"),
                2 | 3 => format!("{element} {element}"),
                4 | 5 if places.len() == 2 => format!("0.1 {element} ({} + {})", places[0], places[1]),
                6 | 7 => format!("sum[{all}](tanh({element}))"),
                8 if places.len() == 1 => format!("sum[{all}](({element} - 1)^2)"),
                _ => format!("tanh({element})^2"),
            });
            if self.chance(40) {
                break;
            }
        }
        self.lines.push(format!("Loss = {}", terms.join(" + ")));
        if self.task == Task::Gradients {
            self.lines.push("Loss?".to_owned());
            return;
        }
        let how = self.one(&[
            "opt=adam, lr=0.1",
            "opt=sgd, lr=0.001",
            "opt=adamw, lr=0.05, weight_decay=0.01",
            "opt=adam, lr=0.1, clip=1",
            "opt=sgd, lr=0.001, momentum=0.9",
        ]);
        self.lines.push(format!("Loss? @minimize(steps=3, {how})"));
    }
}
