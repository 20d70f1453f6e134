//! Draws instances and says how well their numbers tell their labels: `shallow [INSTANCES] [FORMAT] [DEPTH]`.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;

use fol_inference::audit::judge;
use fol_inference::generate::Maker;
use fol_inference::instance::{Format, Label, Order};
use fol_inference::shallow::features;
use fol_inference::space::Space;
use seeded::Family;

type Answer<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Answer<()> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().map_or(Ok(200), |n| n.parse())?;
    let only = arguments.next().and_then(|name| Format::named(&name));
    let depth: Option<usize> = arguments.next().map(|n| n.parse()).transpose()?;
    let mut out = std::io::stdout();
    for order in Order::ALL {
        for format in
            [Format::Conclusion, Format::Question].into_iter().filter(|f| only.is_none_or(|o| o == *f))
        {
            let mut space = Space::usual(order)?;
            space.formats = Format::ALL.map(|f| u64::from(f == format));
            if let Some(depth) = depth {
                space.depths = vec![(depth, 1)];
            }
            let mut maker = Maker::new(space)?;
            let clock = Instant::now();
            let (mut rows, mut labels, mut tokens) = (Vec::new(), Vec::new(), 0);
            let (mut rules, mut edits) = (BTreeMap::new(), BTreeMap::new());
            let family = Family::named("shallow");
            for item in 0..count {
                let instance = maker.instance(&mut family.stream(item))?;
                tokens += fol::task::encode(&instance.task).len();
                rows.push(features(instance.premises(), instance.asked()).to_vec());
                labels.push(instance.label);
                if let Some(edit) = instance.edit {
                    *edits.entry(edit.name()).or_insert(0) += 1;
                }
                for rule in &instance.rules {
                    *rules.entry(rule.name()).or_insert(0) += 1;
                }
                if item < 6 {
                    let text = fol::task::print(&instance.task, fol::Style::Unicode);
                    writeln!(
                        out,
                        "  {} {} {:?}: {text}",
                        instance.depth,
                        instance.label.name(),
                        instance.edit
                    )?;
                }
            }
            let each = clock.elapsed().as_secs_f64() * 1e3 / count as f64;
            let (name, of) = (order.name(), format.name());
            writeln!(out, "{name} {of}: {each:.1} ms, {:.0} tokens each", tokens as f64 / count as f64)?;
            writeln!(out, "  rules {rules:?}\n  edits {edits:?}")?;
            for label in Label::ALL {
                let is: Vec<bool> = labels.iter().map(|l| *l == label).collect();
                if is.iter().any(|l| *l) {
                    let (area, error) = judge(&rows, &is);
                    writeln!(out, "  {}: area {area:.4} ± {error:.4}", label.name())?;
                }
            }
        }
    }
    Ok(())
}
