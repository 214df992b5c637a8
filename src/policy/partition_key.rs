//! `per`: one file for each member; and `shared_by`: one slot for each group.

use crate::judge::terms::keyword::Keyword;

/// By what a repository has one file each.
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
pub(super) enum PartitionKey<'a> {
    Each(Per),
    Captured(&'a str),
}

impl PartitionKey<'_> {
    /// As a policy writes it.
    pub(super) fn text(self) -> String {
        match self {
            PartitionKey::Each(per) => per.word().to_owned(),
            PartitionKey::Captured(name) => format!("{{{name}}}"),
        }
    }
}

impl Keyword for Per {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("user", Per::User),
        ("group", Per::Group),
        ("host", Per::Host),
        ("command", Per::Command),
        ("directory", Per::Directory),
    ];
}
