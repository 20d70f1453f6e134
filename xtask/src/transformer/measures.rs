//! What sweeps compare, and how it is called.

/// What is compared: key of a run, name for people with the unit, digits.
pub(super) const MEASURES: [(&str, &str, usize); 11] = [
    ("excess", "excess, nats per token", 4),
    ("excess_renamed", "excess on what is new up to renaming, nats per token", 4),
    ("excess_bits", "excess per formula, bits", 3),
    ("kl", "mean KL, nats per token", 4),
    ("top1_ratio", "top-1 ratio", 4),
    ("parsed", "parsed, share", 4),
    ("bits_per_text", "bits per text", 3),
    ("valid", "valid answers, share", 3),
    ("relevant", "valid and relevant answers, share", 3),
    ("exact", "exact answers, share", 3),
    ("valid_deep", "valid answers at depths that were not trained, share", 3),
];

/// A measure and its unit, for people.
pub(super) fn in_words(measure: &str) -> String {
    if let Some((_, words, _)) = MEASURES.iter().find(|m| m.0 == measure) {
        return (*words).to_owned();
    }
    match measure {
        "bits_per_formula" => "bits per formula".to_owned(),
        "nats_per_token" => "nats per token".to_owned(),
        "excess_seen" => "excess on what was seen, nats per token".to_owned(),
        "excess_new" => "excess on what is new, nats per token".to_owned(),
        _ => match (measure.strip_prefix("transfer/"), measure.strip_prefix("valid/")) {
            (Some(data), _) => format!("excess on {data}, nats per token"),
            (_, Some(data)) => format!("valid answers on {data}, share"),
            _ => measure.replace('_', " "),
        },
    }
}
