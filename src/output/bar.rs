//! A bar that shows how full something is, in characters that every terminal has where the locale does not promise more.

use std::env;

use crate::output::row::{Looks, Row};

/// What bars and lines are made of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Glyphs {
    used: char,
    kept: char,
    free: char,
    /// A piece of a horizontal line.
    pub line: char,
}

impl Glyphs {
    /// Those of the locale: blocks where its encoding is UTF-8.
    pub fn of_locale() -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(env::var_os)
            .find(|value| !value.is_empty())
            .map(|value| value.to_string_lossy().to_ascii_lowercase());
        if locale.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8")) {
            Self { used: '█', kept: '▒', free: '░', line: '─' }
        } else {
            Self::plain()
        }
    }

    /// Those of ASCII.
    pub fn plain() -> Self {
        Self { used: '#', kept: '=', free: '.', line: '-' }
    }

    /// Draws a bar. Whatever is used shows, and only what is all used has no gap.
    pub fn bar(self, row: &mut Row, columns: usize, used: u64, kept: u64, limit: u64) {
        let all = columns as u64;
        let share = |part: u64| part.saturating_mul(all).checked_div(limit).unwrap_or(all).min(all);
        let mut filled = share(used);
        if used > 0 {
            filled = filled.max(1).min(all);
        }
        if used + kept < limit {
            filled = filled.min(all.saturating_sub(1));
        }
        let mut idle = share(kept).min(all - filled);
        if used + kept >= limit {
            idle = all - filled;
        }
        let looks = match used {
            used if used >= limit => Looks::Bad,
            used if (used + kept).saturating_mul(5) >= limit.saturating_mul(4) => Looks::Near,
            _ => Looks::Good,
        };
        let piece = |glyph: char, length: u64| -> String { (0..length).map(|_| glyph).collect() };
        row.push(looks, &piece(self.used, filled));
        row.push(Looks::Faint, &(piece(self.kept, idle) + &piece(self.free, all - filled - idle)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(used: u64, kept: u64, limit: u64, expected: &str) {
        let mut row = Row::new(10);
        Glyphs::plain().bar(&mut row, 10, used, kept, limit);
        assert_eq!(row.text(), expected);
    }

    #[test]
    fn there_may_be_no_room() {
        let mut row = Row::new(10);
        Glyphs::plain().bar(&mut row, 0, 1, 0, 4);
        assert_eq!(row.text(), "");
    }

    #[test]
    fn a_little_is_not_nothing_and_nearly_all_is_not_all() {
        case(0, 0, 4, "..........");
        case(1, 0, 1000, "#.........");
        case(5, 0, 10, "#####.....");
        case(999, 0, 1000, "#########.");
        case(4, 0, 4, "##########");
        case(307, 0, 300, "##########");
        case(2, 3, 10, "##===.....");
        case(1, 1, 2, "#####=====");
        case(0, 0, 0, "##########");
    }
}
