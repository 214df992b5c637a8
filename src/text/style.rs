//! Colour on a terminal: five meanings, each of which the text also expresses in words. It is off if standard
//! output is no terminal, with `NO_COLOR` (<https://no-color.org>), `CLICOLOR=0` or `TERM=dumb`.
//! `CLICOLOR_FORCE` turns it on (<https://bixense.com/clicolors>).
//!
//! The colours can be read on a dark and on a light background: no yellow, no white and no blue.

use std::{borrow::Cow, env, ffi::OsString, sync::OnceLock};

use crate::sys::terminal;

/// What a part of a text means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Style {
    /// As it should be.
    Good,
    /// Worth a look.
    Warning,
    /// Wrong, or refused.
    Fault,
    /// Less important than the rest: titles, and what is idle.
    Dim,
    /// The name of what the text is about.
    Name,
}

const END: char = '\u{e007f}';

impl Style {
    const ALL: [Self; 5] = [Self::Good, Self::Warning, Self::Fault, Self::Dim, Self::Name];

    /// Marks the style in a text. It has no width, and text of others never has it, because
    /// [`is_unsafe`](crate::text::escape::is_unsafe) is true for it. So tables and wrapped lines need not
    /// know of styles.
    fn mark(self) -> char {
        match self {
            Self::Good => '\u{e0041}',
            Self::Warning => '\u{e0042}',
            Self::Fault => '\u{e0043}',
            Self::Dim => '\u{e0044}',
            Self::Name => '\u{e0045}',
        }
    }

    fn sequence(self) -> &'static str {
        match self {
            Self::Good => "\x1b[32m",
            Self::Warning => "\x1b[1;35m",
            Self::Fault => "\x1b[1;31m",
            Self::Dim => "\x1b[2m",
            Self::Name => "\x1b[1m",
        }
    }

    /// The text in this style, for an answer, if answers are coloured.
    pub(crate) fn paint(self, text: &str) -> String {
        if is_on() { self.marked(text) } else { text.to_owned() }
    }

    /// The same for a message on standard error.
    pub(crate) fn paint_message(self, text: &str) -> String {
        static IS_ON: OnceLock<bool> = OnceLock::new();
        let is_on = IS_ON.get_or_init(|| is_wanted(|name| env::var_os(name), terminal::is_error));
        if *is_on { self.marked(text) } else { text.to_owned() }
    }

    /// Each word separately, because lines are broken between words.
    fn marked(self, text: &str) -> String {
        let word = |word: &str| match word {
            "" => String::new(),
            word => format!("{}{word}{END}", self.mark()),
        };
        text.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }
}

/// Whether answers are coloured.
pub(crate) fn is_on() -> bool {
    static IS_ON: OnceLock<bool> = OnceLock::new();
    *IS_ON.get_or_init(|| is_wanted(|name| env::var_os(name), terminal::is_output))
}

/// Whether text is coloured, by these variables of the environment.
fn is_wanted(var_os: impl Fn(&str) -> Option<OsString>, is_terminal: impl Fn() -> bool) -> bool {
    let is_set = |value: Option<OsString>| value.is_some_and(|value| !value.is_empty());
    if is_set(var_os("NO_COLOR")) {
        return false;
    }
    let is_forced = var_os("CLICOLOR_FORCE").filter(|value| value != "0");
    if is_set(is_forced) {
        return true;
    }
    let is_refused = var_os("CLICOLOR").is_some_and(|value| value == "0");
    let is_dumb = var_os("TERM").is_some_and(|value| value == "dumb");
    !is_refused && !is_dumb && is_terminal()
}

/// Removes the style of a text, and returns a function that applies it again.
pub(crate) fn split(text: &str) -> (String, impl Fn(&str) -> String + use<>) {
    let style = Style::ALL.into_iter().find(|style| text.starts_with(style.mark()));
    let plain = if style.is_some() { without(text) } else { text.to_owned() };
    (plain, move |part: &str| style.map_or_else(|| part.to_owned(), |style| style.marked(part)))
}

/// The text without its styles.
pub(crate) fn without(text: &str) -> String {
    text.chars().filter(|c| *c != END && Style::ALL.iter().all(|style| style.mark() != *c)).collect()
}

/// The text with its styles as a terminal obeys them.
pub(crate) fn rendered(text: &str) -> Cow<'_, str> {
    if !text.contains(END) {
        return Cow::Borrowed(text);
    }
    let marks = Style::ALL.iter();
    let text = marks.fold(text.to_owned(), |text, style| text.replace(style.mark(), style.sequence()));
    Cow::Owned(text.replace(END, "\x1b[0m"))
}

#[cfg(test)]
mod tests {
    use crate::text::{columns::width, escape::is_unsafe, style::*};

    #[track_caller]
    fn case(variables: &[(&str, &str)], is_terminal: bool, expected: bool) {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        assert_eq!(is_wanted(variable, || is_terminal), expected, "{variables:?} {is_terminal}");
    }

    #[test]
    fn colour_is_for_terminals_and_users_decide() {
        case(&[], true, true);
        case(&[], false, false);
        case(&[("NO_COLOR", "")], true, true);
        case(&[("NO_COLOR", "0")], true, false);
        case(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true, false);
        case(&[("CLICOLOR_FORCE", "1")], false, true);
        case(&[("CLICOLOR_FORCE", "0")], false, false);
        case(&[("CLICOLOR", "0")], true, false);
        case(&[("CLICOLOR", "0"), ("CLICOLOR_FORCE", "1")], true, true);
        case(&[("TERM", "dumb")], true, false);
    }

    #[test]
    fn a_style_takes_no_room_and_cannot_come_from_others() {
        for style in Style::ALL {
            let marked = style.marked("two words");
            assert_eq!((width(&marked), without(&marked).as_str()), (9, "two words"));
            let end = "\x1b[0m";
            let expected = format!("{0}two{end} {0}words{end}", style.sequence());
            assert_eq!(rendered(&marked), expected);
            assert!(is_unsafe(style.mark()) && is_unsafe(END));
            let (plain, painted) = split(&marked);
            assert_eq!((plain.as_str(), painted("two words")), ("two words", marked.clone()));
        }
        assert_eq!(rendered("no style"), "no style");
    }
}
