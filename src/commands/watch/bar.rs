//! A bar that shows how full a repository is, in characters that every terminal has where the locale does not
//! promise more. Its length says what its colour says, for people and terminals without colours.

use std::env;

use ratatui::{
    style::{Style, Stylize},
    text::{Line, Span},
};

/// What bars, lines and scrollbars are made of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Glyphs {
    pub(super) used: &'static str,
    kept: &'static str,
    free: &'static str,
    /// A piece of a horizontal line, and of a vertical one.
    pub(super) line: &'static str,
    pub(super) track: &'static str,
}

impl Glyphs {
    /// Those of the locale: blocks where its encoding is UTF-8.
    pub(super) fn of_locale() -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(env::var_os)
            .find(|value| !value.is_empty())
            .map(|value| value.to_string_lossy().to_ascii_lowercase());
        if locale.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8")) {
            Self { used: "█", kept: "▒", free: "░", line: "─", track: "│" }
        } else {
            Self::ASCII
        }
    }

    pub(super) const ASCII: Self = Self { used: "#", kept: "=", free: ".", line: "-", track: "|" };

    /// A bar so wide. Whatever is used shows, and only what is all used has no gap.
    pub(super) fn bar(self, columns: u16, used: u64, kept: u64, limit: u64) -> Line<'static> {
        let all = u64::from(columns);
        let is_full = used.saturating_add(kept) >= limit;
        let share = |part: u64| part.saturating_mul(all).checked_div(limit).unwrap_or(all).min(all);
        let longest = if is_full { all } else { all.saturating_sub(1) };
        let filled = share(used).max(u64::from(used > 0)).min(longest);
        let idle = if is_full { all - filled } else { share(kept).min(all - filled) };
        let style = match used {
            used if used >= limit => Style::new().red(),
            used if used.saturating_add(kept).saturating_mul(5) >= limit.saturating_mul(4) => {
                Style::new().yellow()
            }
            _ => Style::new().green(),
        };
        let piece = |glyph: &str, length: u64| glyph.repeat(usize::try_from(length).unwrap_or(0));
        let rest = piece(self.kept, idle) + &piece(self.free, all - filled - idle);
        // The selected row is reversed, and its bar would say the opposite.
        Line::from(vec![Span::styled(piece(self.used, filled), style), rest.dim()]).not_reversed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn case(used: u64, kept: u64, limit: u64, expected: &str) {
        assert_eq!(Glyphs::ASCII.bar(10, used, kept, limit).to_string(), expected);
    }

    #[test]
    fn there_may_be_no_room() {
        assert_eq!(Glyphs::ASCII.bar(0, 1, 0, 4).to_string(), "");
        assert_eq!(Glyphs::ASCII.bar(0, 1, 1, 4).to_string(), "");
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
