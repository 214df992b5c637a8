//! `[defaults]` as written.

use crate::{
    policy::{
        fault::Fault,
        hold::Hold,
        place::Written,
        reader::{Section, Value},
        span_of_time::Wait,
        unmatched::Unmatched,
    },
    terms::keeper::Keeper,
};

pub(in crate::policy) struct WrittenDefaults<'a> {
    pub(in crate::policy) directory: Option<Written<&'a str>>,
    pub(in crate::policy) wait: Option<Written<Wait>>,
    pub(in crate::policy) hold: Option<Written<Hold>>,
    pub(in crate::policy) unmatched: Option<Written<Unmatched>>,
    pub(in crate::policy) enforce: Option<Written<bool>>,
    pub(in crate::policy) create_mode: Option<Written<u32>>,
    pub(in crate::policy) keeper: Option<Written<Keeper>>,
    pub(in crate::policy) contact: Option<Written<&'a str>>,
    pub(in crate::policy) time_zone: Option<Written<&'a str>>,
}

impl<'a> WrittenDefaults<'a> {
    pub(super) fn read(section: &Section<'a>) -> Self {
        WrittenDefaults {
            directory: section.text("directory"),
            wait: section.wait("wait"),
            hold: section.choice("hold"),
            unmatched: section.choice("unmatched"),
            enforce: section.flag("enforce"),
            create_mode: section.get("create_mode").and_then(mode),
            keeper: section.choice("keeper"),
            contact: section.contact("contact"),
            time_zone: section.text("time_zone"),
        }
    }
}

/// A mode is a string of octal digits, because TOML reads a bare 0666 as a mistake and 666 as a decimal
/// number.
fn mode(value: Value<'_>) -> Option<Written<u32>> {
    let parse = |text: &str| {
        let octal = text.strip_prefix("0o").unwrap_or(text);
        u32::from_str_radix(octal, 8).ok().filter(|mode| *mode <= 0o777 && octal.len() >= 3)
    };
    value.parsed("a string such as \"0666\"", parse, |_, text| Fault::BadMode { text })
}
