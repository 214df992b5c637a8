//! Findings with stable codes: one table for each kind, in which a finding is one entry with its evidence,
//! its code and its text.

use std::{fmt, time::Duration};

use crate::{judge::terms::show_duration, text::Show};

/// Defines an enum of findings together with their codes and texts, so that no finding can be without one.
///
/// A text is a format string that names the evidence, and shows it as [`Word`] does; or, in parentheses, an
/// expression for a `String`.
macro_rules! coded {
    ($(#[$about:meta])* $name:ident {
        $($variant:ident $({ $($field:ident: $type:ty),+ $(,)? })? = $code:literal, $text:tt;)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub(super) enum $name { $($variant $({ $($field: $type),+ })?,)+ }

        impl $name {
            pub(super) const CODES: &'static [&'static str] = &[$($code),+];

            pub(super) fn code(&self) -> &'static str {
                match self { $($name::$variant { .. } => $code,)+ }
            }
        }

        impl std::fmt::Display for $name {
            #[allow(unused_variables, reason = "a text need not show all of its evidence")]
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $($name::$variant $({ $($field),+ })? => coded!(@text f, [$($($field)+)?] $text),)+
                }
            }
        }
    };
    (@text $f:ident, [$($field:ident)*] ($text:expr)) => { $f.write_str(&$text) };
    (@text $f:ident, [$($field:ident)*] $text:literal) => {{
        $(let $field = crate::policy::coded::Word($field);)*
        write!($f, $text)
    }};
}
pub(super) use coded;

/// Evidence as a text shows it: a name or a value in quotes, a suggestion with its question.
pub(super) struct Word<'a, T>(pub(super) &'a T);

/// How much of a name or a value a message repeats. A string that is not closed extends to the end of the
/// file.
const REPEATED: usize = 60;

/// A name in a message.
pub(super) fn quoted(name: &str) -> String {
    match name.char_indices().nth(REPEATED) {
        Some((end, _)) => format!("\"{}...\"", name.get(..end).unwrap_or(name).shown()),
        None => format!("\"{}\"", name.shown()),
    }
}

/// Several names in a message.
pub(super) fn all_quoted<S: AsRef<str>>(names: &[S]) -> String {
    names.iter().map(|name| quoted(name.as_ref())).collect::<Vec<_>>().join(", ")
}

/// The likely intention, at the end of a message.
pub(super) fn suggestion(nearest: Option<&String>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean {}?", quoted(nearest)))
}

/// Shows evidence of these types.
macro_rules! words {
    ($($type:ty => |$word:ident| $shown:expr;)+) => {
        $(impl fmt::Display for Word<'_, $type> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $word = self.0;
                write!(f, "{}", $shown)
            }
        })+
    };
}

words! {
    String => |name| quoted(name);
    Option<String> => |nearest| suggestion(nearest.as_ref());
    Vec<String> => |names| all_quoted(names);
    Vec<&'static str> => |names| all_quoted(names);
    Duration => |time| show_duration(*time);
    super::Share => |share| share;
    &'static str => |text| text;
    u32 => |number| number;
    u64 => |number| number;
    i64 => |number| number;
    usize => |number| number;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message repeats the beginning of a long name, by characters.
    #[test]
    fn a_long_name_is_cut_in_a_message() {
        let longest = "ü".repeat(REPEATED);
        assert_eq!(quoted(&longest), format!("\"{longest}\""));
        assert_eq!(quoted(&format!("{longest}x")), format!("\"{longest}...\""));
        assert_eq!(longest.chars().count(), 60);
    }
}
