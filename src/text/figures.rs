//! Numbers for people: digits in groups, shares in percent, and rounded waits.

use std::time::Duration;

use super::clock::age;

/// `5,012,345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `99.2%`; never `100.0%` if it is not all, nor `0.0%` if it is not nothing.
pub(crate) fn percent(share: f64) -> String {
    let shown = format!("{:.1}", share * 100.0);
    match shown.as_str() {
        "100.0" if share >= 1.0 => "100%".to_owned(),
        "0.0" if share <= 0.0 => "0%".to_owned(),
        "100.0" => ">99.9%".to_owned(),
        "0.0" => "<0.1%".to_owned(),
        _ => shown + "%",
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
pub(crate) fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

/// A wait in microseconds: `-` if there is none.
pub(crate) fn wait(micros: u64) -> String {
    match micros {
        0 => "-".to_owned(),
        1..1_000_000 => format!("{}ms", micros.div_ceil(1000)),
        _ => age(Duration::from_micros(micros)),
    }
}

#[cfg(test)]
mod tests {
    use crate::text::figures::*;

    #[test]
    fn a_number_is_apart_and_a_share_is_honest() {
        assert_eq!([0, 999, 1000, 5_012_345].map(count), ["0", "999", "1,000", "5,012,345"]);
        assert_eq!([0.0, 0.0001, 0.5, 0.9999, 1.0].map(percent), ["0%", "<0.1%", "50.0%", ">99.9%", "100%"]);
        assert_eq!([0, 1, 999_000, 61_000_000].map(wait), ["-", "1ms", "999ms", "1m01s"]);
    }
}
