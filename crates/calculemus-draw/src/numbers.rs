//! Numbers for people: a fixed number of digits, units, a real minus sign, and `–` for what is not there.

/// What stands for a missing number, or one that is not finite.
pub const MISSING: &str = "–";
/// A narrow space that breaks no line: between thousands, and before a unit.
const THIN: char = '\u{202f}';

/// Digits behind the point, with a real minus sign.
pub fn fixed(value: Option<f64>, digits: usize) -> String {
    let Some(value) = value.filter(|v| v.is_finite()) else { return MISSING.to_owned() };
    let text = format!("{value:.digits$}");
    // A negative number that rounds to zero shows no sign.
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.to_owned(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

/// `a ± b`.
pub fn plus_minus(value: Option<f64>, half: Option<f64>, digits: usize) -> String {
    match half.filter(|h| h.is_finite()) {
        Some(_) => format!("{} ± {}", fixed(value, digits), fixed(half, digits)),
        None => fixed(value, digits),
    }
}

/// A mean with half its 95 % interval, from its standard error.
pub fn interval(mean: Option<f64>, se: Option<f64>) -> String {
    plus_minus(mean, se.map(|se| 1.96 * se), 4)
}

/// A share in per cent.
pub fn percent(value: Option<f64>, digits: usize) -> String {
    match value.filter(|v| v.is_finite()) {
        Some(value) => format!("{}{THIN}%", fixed(Some(100.0 * value), digits)),
        None => MISSING.to_owned(),
    }
}

/// A whole number with its thousands apart.
pub fn count(value: Option<u64>) -> String {
    let Some(value) = value else { return MISSING.to_owned() };
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(THIN);
        }
        text.push(digit);
    }
    text
}

/// Seconds, minutes and seconds, or hours and minutes.
pub fn duration(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds.filter(|s| s.is_finite() && *s >= 0.0) else { return MISSING.to_owned() };
    let whole = seconds.round() as u64;
    match whole {
        0..10 => format!("{seconds:.1}{THIN}s"),
        10..120 => format!("{whole}{THIN}s"),
        120..7200 => format!("{}{THIN}min {}{THIN}s", whole / 60, whole % 60),
        _ => format!("{}{THIN}h {}{THIN}min", whole / 3600, whole % 3600 / 60),
    }
}

/// Three significant digits for a p-value, plainly or as a power of ten.
pub fn p_value(p: Option<f64>) -> String {
    let Some(p) = p.filter(|p| p.is_finite()) else { return MISSING.to_owned() };
    if p >= 1e-3 {
        return format!("{p:.3}");
    }
    if p <= 0.0 {
        return "0".to_owned();
    }
    power_of_ten(p, 1)
}

/// `2.9·10⁻⁸⁹`.
pub fn power_of_ten(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let raised: String = exponent.chars().map(superscript).collect();
    match mantissa {
        "1" => format!("10{raised}"),
        _ => format!("{mantissa}·10{raised}"),
    }
}

fn superscript(c: char) -> char {
    match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '0' | '4'..='9' => char::from_u32('⁰' as u32 + c.to_digit(10).unwrap_or(0)).unwrap_or(c),
        other => other,
    }
}

/// A label of an axis whose ticks lie `step` apart: thousands as k, millions as M.
pub fn tick(value: f64, step: f64) -> String {
    let (scale, unit) = match step.abs().max(value.abs()) {
        large if large >= 1e9 => (1e9, "G"),
        large if large >= 1e6 => (1e6, "M"),
        large if large >= 1e4 => (1e3, "k"),
        _ if step.abs() < 1e-3 => return power_of_ten_or_zero(value, step.abs()),
        _ => (1.0, ""),
    };
    let step = (step / scale).abs();
    let digits =
        (0..6).find(|&d| (step * 10f64.powi(d)).fract().min(1.0 - (step * 10f64.powi(d)).fract()) < 1e-6);
    let text = fixed(Some(value / scale), digits.unwrap_or(0) as usize);
    if unit.is_empty() { text } else { format!("{text}{THIN}{unit}") }
}

/// With as many digits as the number needs, three at most.
fn power_of_ten_or_zero(value: f64, step: f64) -> String {
    if value.abs() <= step * 1e-6 {
        return "0".to_owned();
    }
    let exact = |d: &usize| {
        format!("{value:.d$e}", d = *d).parse::<f64>().is_ok_and(|v| (v / value - 1.0).abs() < 1e-6)
    };
    power_of_ten(value, (0..3).find(exact).unwrap_or(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_signs_and_units() {
        assert_eq!(fixed(Some(-0.01348), 4), "−0.0135");
        assert_eq!(fixed(Some(-0.00001), 3), "0.000");
        assert_eq!(fixed(Some(f64::NAN), 3), MISSING);
        assert_eq!(plus_minus(Some(0.5), Some(0.25), 2), "0.50 ± 0.25");
        assert_eq!(plus_minus(Some(0.5), None, 2), "0.50");
        assert_eq!(percent(Some(0.9929), 1), "99.3\u{202f}%");
        assert_eq!(count(Some(567_191)), "567\u{202f}191");
        assert_eq!(count(Some(12)), "12");
        assert_eq!(duration(Some(3725.0)), "62\u{202f}min 5\u{202f}s");
        assert_eq!(duration(Some(2.25)), "2.2\u{202f}s");
        assert_eq!(duration(None), MISSING);
    }

    #[test]
    fn powers_of_ten_and_ticks() {
        assert_eq!(p_value(Some(2.887e-89)), "2.9·10⁻⁸⁹");
        assert_eq!(p_value(Some(0.25)), "0.250");
        assert_eq!(power_of_ten(1e-4, 0), "10⁻⁴");
        assert_eq!(tick(0.75, 0.25), "0.75");
        assert_eq!(tick(2e6, 2e6), "2\u{202f}M");
        assert_eq!(tick(2.5e6, 5e5), "2.5\u{202f}M");
        assert_eq!(tick(3.0, 1.0), "3");
        assert_eq!(tick(2e-4, 2e-4), "2·10⁻⁴");
        assert_eq!(tick(1.5e-3, 5e-4), "1.5·10⁻³");
        assert_eq!((tick(0.0, 5e-4), tick(0.0, 0.0)), ("0".to_owned(), "0".to_owned()));
    }
}
