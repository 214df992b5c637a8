//! `per`: one file for each member; and `shared_by`: one slot for each group.

use super::{capture::name_in_braces, fault::Fault, place::Written, reader::Value, template::Placeholder};
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

impl<'a> PartitionKey<'a> {
    /// One entry, or a list of them, each once; `is_known` reports what is none here. Who wants none is told
    /// what to do `instead`.
    pub(super) fn list(
        value: Value<'a>,
        is_known: &dyn Fn(Value<'a>, PartitionKey<'a>) -> bool,
        instead: &'static str,
    ) -> Option<Written<Vec<PartitionKey<'a>>>> {
        let read = |value| Self::read(value).filter(|by| is_known(value, *by));
        if !value.is_list() {
            if value.as_text().is_none() {
                value.wrong(
                    "one of \"user\", \"group\", \"host\", \"command\", \"directory\", or a list of them",
                );
                return None;
            }
            return Some(Written { value: vec![read(value)?], at: value.at });
        }
        let list = value.list("a list of strings")?;
        let mut members = Vec::new();
        for element in &list.value {
            let member = read(*element)?;
            if members.contains(&member) {
                element.fault(Fault::Repeated { word: element.as_text().unwrap_or_default().to_owned() });
            }
            members.push(member);
        }
        value.filled(members, instead)
    }

    fn read(value: Value<'a>) -> Option<Self> {
        let is_capture = |name: &&str| matches!(Placeholder::parse(name), Ok(Placeholder::Captured(_)));
        match value.as_text().and_then(name_in_braces).filter(is_capture) {
            Some(name) => Some(PartitionKey::Captured(name)),
            None => value.choice().map(|word| PartitionKey::Each(word.value)),
        }
    }

    /// What differs between its members.
    pub(super) fn placeholder(self) -> Placeholder {
        match self {
            PartitionKey::Each(Per::User) => Placeholder::Uid,
            PartitionKey::Each(Per::Group) => Placeholder::Gid,
            PartitionKey::Each(Per::Host) => Placeholder::Host,
            PartitionKey::Each(Per::Command) => Placeholder::Command,
            PartitionKey::Each(Per::Directory) => Placeholder::Directory,
            PartitionKey::Captured(name) => Placeholder::Captured(name.to_owned()),
        }
    }

    /// The entry for a placeholder, where there is one.
    pub(super) fn of(placeholder: &'a Placeholder) -> Option<Self> {
        match placeholder {
            Placeholder::User | Placeholder::Uid => Some(PartitionKey::Each(Per::User)),
            Placeholder::Group | Placeholder::Gid => Some(PartitionKey::Each(Per::Group)),
            Placeholder::Host => Some(PartitionKey::Each(Per::Host)),
            Placeholder::Command => Some(PartitionKey::Each(Per::Command)),
            Placeholder::Directory => Some(PartitionKey::Each(Per::Directory)),
            Placeholder::Captured(name) => Some(PartitionKey::Captured(name.as_str())),
            Placeholder::Argument(_) | Placeholder::Arguments | Placeholder::Environment(_) => None,
        }
    }

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
