//! The syntax of a repository's path: `{placeholder}` in names, `{runtime}` at the start, everything else
//! literal; and of `per`, from which the name of a file follows. A path that could leave the directory, or is
//! ambiguous, is a fault here, so that expansion cannot fail.

use std::path::{Path, PathBuf};

use super::{
    LONGEST_NAME, Name, PartitionKey, PathTemplate, Piece, Placeholder, Start, Value, Written,
    capture::{is_name, name_in_braces},
    fault::Fault,
    spelling::nearest,
};

const RUNTIME: &str = "{runtime}";

/// How many values the members of a repository can differ in. Each is compared with the others.
const MOST_MEMBERS: usize = 100;

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Directory {
    pub(super) start: Start,
    pub(super) below: PathBuf,
    /// The subdirectory for repositories of a delegated file, which cannot name a path elsewhere.
    pub(super) delegated: Option<String>,
}

impl Directory {
    pub(super) fn runtime() -> Self {
        Directory { start: Start::Runtime, below: PathBuf::new(), delegated: None }
    }

    /// An absolute directory that is known to be well-formed.
    pub(super) fn at(path: &str) -> Self {
        let below = PathBuf::from(path.trim_start_matches('/'));
        Directory { start: Start::At(PathBuf::from("/")), below, delegated: None }
    }

    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let (start, names) = start(text)?;
        let start = start.ok_or(Fault::RelativePath { key: "directory" })?;
        let literal = |name: &Name| name.literal().map(str::to_owned).ok_or(Fault::PlaceholderInDirectory);
        let below = names.iter().map(literal).collect::<Result<_, _>>()?;
        Ok(Directory { start, below, delegated: None })
    }

    /// As it is written in a policy.
    pub(super) fn text(&self) -> String {
        let path = match &self.start {
            Start::At(root) => root.join(&self.below),
            Start::Runtime if self.below == Path::new("") => PathBuf::from(RUNTIME),
            Start::Runtime => Path::new(RUNTIME).join(&self.below),
        };
        path.to_string_lossy().into_owned()
    }
}

impl PathTemplate {
    pub(super) fn parse(text: &str, directory: &Directory) -> Result<Self, Fault> {
        let (start, mut names) = start(text)?;
        if names.is_empty() || text.ends_with('/') {
            return Err(Fault::EmptyPath);
        }
        let Some(start) = start else {
            return Ok(Self::below(directory, names, text));
        };
        if directory.delegated.is_some() {
            return Err(Fault::DelegatedPath);
        }
        // The directories before the first placeholder exist before any launch.
        let given = names.iter().take(names.len() - 1).take_while(|name| name.literal().is_some()).count();
        let base = names.drain(..given).filter_map(|name| name.literal().map(str::to_owned)).collect();
        Ok(PathTemplate { start, base, names, text: text.to_owned() })
    }

    /// The path of a repository without one: `NAME.lock`, or with a file for each member `NAME.MEMBER.lock`.
    pub(super) fn of_name(name: &str, per: &[PartitionKey<'_>], directory: &Directory) -> Self {
        let mut pieces = vec![Piece::Literal(name.to_owned())];
        let mut text = name.to_owned();
        for (index, by) in per.iter().enumerate() {
            // A comma never occurs in a value, so that values cannot run into each other.
            let before = if index == 0 { "." } else { "," };
            let placeholder = by.placeholder();
            text.extend([before, "{", &placeholder.name(), "}"]);
            pieces.extend([Piece::Literal(before.into()), Piece::Value(placeholder)]);
        }
        text.push_str(".lock");
        pieces.push(Piece::Literal(".lock".into()));
        Self::below(directory, vec![Name::new(pieces)], &text)
    }

    fn below(directory: &Directory, names: Vec<Name>, text: &str) -> Self {
        let own = directory.delegated.iter().map(|own| Name::new(vec![Piece::Literal(own.clone())]));
        PathTemplate {
            start: directory.start.clone(),
            base: directory.below.clone(),
            names: own.chain(names).collect(),
            text: text.to_owned(),
        }
    }
}

impl<'a> PartitionKey<'a> {
    /// One entry, or a list of them, each once; `is_known` reports entries that are not allowed here.
    /// `instead` is the advice for an empty list.
    pub(in crate::policy) fn list(
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
        let mut members = Vec::new();
        for element in value.elements("a list of strings")? {
            if members.len() == MOST_MEMBERS {
                element.fault(Fault::TooManyEntries);
                return None;
            }
            let member = read(element)?;
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
}

/// Parses a path; without a start it is relative.
fn start(text: &str) -> Result<(Option<Start>, Vec<Name>), Fault> {
    if text.is_empty() {
        return Err(Fault::EmptyPath);
    }
    if text.chars().any(char::is_control) {
        return Err(Fault::ControlCharacter);
    }
    let (start, rest) = match text.strip_prefix(RUNTIME) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => (Some(Start::Runtime), rest),
        _ if text.starts_with('/') => (Some(Start::At("/".into())), text),
        _ => (None, text),
    };
    let names = rest.split('/').filter(|name| !name.is_empty()).map(name).collect::<Result<_, _>>()?;
    Ok((start, names))
}

fn name(text: &str) -> Result<Name, Fault> {
    if text == "." || text == ".." {
        return Err(Fault::DotsInPath);
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some(brace) = rest.find(['{', '}']) else {
            pieces.push(Piece::Literal(rest.to_owned()));
            break;
        };
        if brace > 0 {
            pieces.push(Piece::Literal(rest[..brace].to_owned()));
        }
        let inner = rest[brace..].strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (inner, after) = inner.filter(|(inner, _)| !inner.contains('{')).ok_or(Fault::OpenBrace)?;
        pieces.push(Piece::Value(Placeholder::parse(inner)?));
        rest = after;
    }
    let literal: usize = pieces.iter().map(Piece::literal_length).sum();
    if literal >= LONGEST_NAME {
        return Err(Fault::LongName { most: LONGEST_NAME - 1 });
    }
    Ok(Name::new(pieces))
}

impl Placeholder {
    const NAMES: &'static [(&'static str, Placeholder)] = &[
        ("user", Placeholder::User),
        ("uid", Placeholder::Uid),
        ("group", Placeholder::Group),
        ("gid", Placeholder::Gid),
        ("command", Placeholder::Command),
        ("host", Placeholder::Host),
        ("cwd", Placeholder::Directory),
        ("args", Placeholder::Arguments),
    ];

    /// A name that is not a placeholder must be a capture of a rule; the rules are checked for that.
    pub(super) fn parse(name: &str) -> Result<Placeholder, Fault> {
        if name == "runtime" {
            return Err(Fault::RuntimeNotFirst);
        }
        if let Some((_, placeholder)) = Self::NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(placeholder.clone());
        }
        if let Some(number) = name.strip_prefix("arg").and_then(|digits| digits.parse().ok())
            && name.len() == 4
            && number != 0
        {
            return Ok(Placeholder::Argument(number));
        }
        let identifier = |name: &&str| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && !name.is_empty()
        };
        if let Some(variable) = name.strip_prefix("env.").filter(identifier) {
            return Ok(Placeholder::Environment(variable.to_owned()));
        }
        if is_name(name) {
            return Ok(Placeholder::Captured(name.to_owned()));
        }
        Err(Fault::UnknownPlaceholder { name: name.to_owned(), nearest: Self::nearest(name) })
    }

    /// The known placeholder that this one was probably meant to be.
    pub(super) fn nearest(name: &str) -> Option<String> {
        nearest(name, Self::names().chain(["arg1", "env.NAME"]))
    }

    /// The placeholders of every path, except those with a number or a variable in them.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name).chain(["runtime"])
    }

    pub(super) fn name(&self) -> String {
        match self {
            Placeholder::Argument(number) => format!("arg{number}"),
            Placeholder::Environment(variable) => format!("env.{variable}"),
            Placeholder::Captured(name) => name.clone(),
            other => {
                let known = Self::NAMES.iter().find(|(_, placeholder)| placeholder == other);
                known.map_or_else(String::new, |(name, _)| (*name).to_owned())
            }
        }
    }
}
