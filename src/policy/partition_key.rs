//! `per`: a file for each.

use crate::terms::keyword::Choice;

/// For whom or what a repository has a file each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Per {
    User,
    Group,
    Host,
    Command,
    Directory,
}

/// One entry of `per`: a word, or the name of what rules capture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum By<'a> {
    Each(Per),
    Captured(&'a str),
}

impl By<'_> {
    /// As a policy writes it.
    pub(super) fn text(self) -> String {
        match self {
            By::Each(per) => per.word().to_owned(),
            By::Captured(name) => format!("{{{name}}}"),
        }
    }
}

impl Choice for Per {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("user", Per::User),
        ("group", Per::Group),
        ("host", Per::Host),
        ("command", Per::Command),
        ("directory", Per::Directory),
    ];
}
