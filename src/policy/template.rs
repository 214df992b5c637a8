//! The path of a repository, with placeholders for what differs from launch to launch. Expansion never leaves
//! the directory and never gives two launches with different values the same file by accident; how values are
//! made safe is said in `safe_value`, how several of them share one name is said here.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    per::{By, Per},
    safe_value::{END_OF_VALUE, HASH_LENGTH, LONGEST_NAME, encoded, hash_suffix, is_safe},
};

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Placeholder {
    User,
    Uid,
    Group,
    Gid,
    Command,
    Host,
    Directory,
    /// The argument with this number, counted from 1.
    Argument(usize),
    Arguments,
    Environment(String),
    /// What the rule captured under this name.
    Captured(String),
}

impl Placeholder {
    /// Whether callers can give it any value they like.
    pub(super) fn is_chosen(&self) -> bool {
        match self {
            Placeholder::Directory
            | Placeholder::Argument(_)
            | Placeholder::Arguments
            | Placeholder::Environment(_)
            | Placeholder::Captured(_) => true,
            Placeholder::User
            | Placeholder::Uid
            | Placeholder::Group
            | Placeholder::Gid
            | Placeholder::Command
            | Placeholder::Host => false,
        }
    }

    /// Whether its values are numbers.
    pub(super) fn is_number(&self) -> bool {
        matches!(self, Placeholder::Uid | Placeholder::Gid)
    }
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Piece {
    Literal(String),
    Value(Placeholder),
}

impl Piece {
    pub(super) fn literal_length(&self) -> usize {
        match self {
            Piece::Literal(text) => text.len(),
            Piece::Value(_) => 0,
        }
    }
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Start {
    At(PathBuf),
    Runtime,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct PathTemplate {
    /// Where the directory starts that is there before any launch.
    pub(super) start: Start,
    /// The directories below `start` that belong to it.
    pub(super) base: PathBuf,
    /// The names below that directory; the last is the file's.
    pub(super) names: Vec<Name>,
    /// As it is written in a policy, for `policy show` and for messages.
    pub(super) text: String,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Name {
    pub(super) pieces: Vec<Piece>,
    /// The characters of the text between its values, where a value that holds one could be taken for
    /// another.
    reserved: Vec<u8>,
    /// Whether each value but the last is followed by a mark of its end: values stand side by side, or the
    /// text between them could be part of one.
    pub(super) is_ended: bool,
}

impl Name {
    pub(super) fn new(written: Vec<Piece>) -> Name {
        let mut pieces: Vec<Piece> = Vec::with_capacity(written.len());
        for piece in written {
            match (pieces.last_mut(), piece) {
                (Some(Piece::Literal(text)), Piece::Literal(more)) => text.push_str(&more),
                (_, piece) => pieces.push(piece),
            }
        }
        let (reserved, is_ended) = ambiguity(&pieces);
        Name { pieces, reserved, is_ended }
    }

    pub(super) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(placeholder) => Some(placeholder),
            Piece::Literal(_) => None,
        })
    }

    /// The name, where it holds no placeholder.
    pub(super) fn literal(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    pub(super) fn expand<E>(
        &self,
        value: &mut impl FnMut(&Placeholder) -> Result<Vec<u8>, E>,
    ) -> Result<String, E> {
        if let Some(text) = self.literal() {
            return Ok(text.to_owned());
        }
        let values = self.placeholders().map(value).collect::<Result<Vec<_>, E>>()?;
        let mut left = values.iter();
        let mut name = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => name.push_str(text),
                Piece::Value(_) => {
                    let value = left.next().map_or(&[][..], Vec::as_slice);
                    name.push_str(&encoded(value, &self.reserved));
                    if self.is_ended && left.len() > 0 {
                        name.push_str(END_OF_VALUE);
                    }
                }
            }
        }
        let hash = || hash_suffix(values.iter().map(Vec::as_slice));
        Ok(if name.len() < LONGEST_NAME { name } else { self.shortened(&name, &hash()) })
    }

    /// What stands at the end of a name even where it is shortened.
    pub(super) fn kept_ending(&self) -> &str {
        match self.pieces.last() {
            Some(Piece::Literal(text)) if text.len() <= LONGEST_NAME / 4 => text.as_str(),
            _ => "",
        }
    }

    /// A name that is too long, cut to exactly the longest length, which no other name has.
    fn shortened(&self, name: &str, hash: &str) -> String {
        let ending = self.kept_ending();
        let mut kept = LONGEST_NAME - HASH_LENGTH - ending.len();
        let mut padding = 0;
        while !name.is_char_boundary(kept) {
            kept -= 1;
            padding += 1;
        }
        format!("{}{:_<padding$}{hash}{ending}", &name[..kept], "")
    }
}

/// The characters that must not occur in the values of a name, because with them another set of values could
/// give the same name; and whether nothing tells where a value ends, because no text separates it from the
/// next, or a text with a `%`, as bytes of values have it.
fn ambiguity(pieces: &[Piece]) -> (Vec<u8>, bool) {
    let values: Vec<usize> =
        (0..pieces.len()).filter(|&index| matches!(pieces[index], Piece::Value(_))).collect();
    let mut reserved = Vec::new();
    for pair in values.windows(2) {
        let Piece::Literal(between) = &pieces[pair[0] + 1] else { return (reserved, true) };
        if between.contains('%') {
            return (reserved, true);
        }
        // No value ever holds a character that is not safe.
        if !between.bytes().all(is_safe) {
            continue;
        }
        // With two values of which one is a number, the number ends where the text that is none begins.
        let number =
            |index: usize| matches!(&pieces[index], Piece::Value(placeholder) if placeholder.is_number());
        let no_digit = |byte: Option<u8>| byte.is_some_and(|byte| !byte.is_ascii_digit());
        let told_apart = values.len() == 2
            && (number(pair[0]) && no_digit(between.bytes().next())
                || number(pair[1]) && no_digit(between.bytes().next_back()));
        if !told_apart {
            reserved.extend(between.bytes());
        }
    }
    (reserved, false)
}

impl PathTemplate {
    /// Every placeholder, in the order of the path.
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.names.iter().flat_map(Name::placeholders)
    }

    /// For what there is one each, where that is all that the path depends on.
    pub(super) fn per(&self) -> Vec<By<'_>> {
        let by = self.placeholders().filter_map(|placeholder| match placeholder {
            Placeholder::User | Placeholder::Uid => Some(By::Each(Per::User)),
            Placeholder::Group | Placeholder::Gid => Some(By::Each(Per::Group)),
            Placeholder::Host => Some(By::Each(Per::Host)),
            Placeholder::Command => Some(By::Each(Per::Command)),
            Placeholder::Directory => Some(By::Each(Per::Directory)),
            Placeholder::Captured(name) => Some(By::Captured(name.as_str())),
            Placeholder::Argument(_) | Placeholder::Arguments | Placeholder::Environment(_) => None,
        });
        by.collect()
    }

    /// The path as a policy writes it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The directory that is there before any launch.
    pub(crate) fn base(&self, runtime: &Path) -> PathBuf {
        let start = match &self.start {
            Start::At(directory) => directory,
            Start::Runtime => runtime,
        };
        start.join(&self.base)
    }

    /// The file for the values that `value` gives.
    pub(crate) fn expand<E>(
        &self,
        runtime: &Path,
        mut value: impl FnMut(&Placeholder) -> Result<Vec<u8>, E>,
    ) -> Result<PathBuf, E> {
        let mut path = self.base(runtime);
        for name in &self.names {
            path.push(OsStr::from_bytes(name.expand(&mut value)?.as_bytes()));
        }
        Ok(path)
    }

    /// The file, where it is the same for every launch.
    pub(crate) fn fixed(&self, runtime: &Path) -> Option<PathBuf> {
        let mut path = self.base(runtime);
        for name in &self.names {
            path.push(name.literal()?);
        }
        Some(path)
    }

    /// Where it starts and the names below that: the same for templates that always mean the same file,
    /// however the two are written.
    pub(super) fn whole(&self) -> (Start, Vec<Name>) {
        let literal = |name: &OsStr| Name::new(vec![Piece::Literal(name.to_string_lossy().into_owned())]);
        (self.start.clone(), self.base.iter().map(literal).chain(self.names.iter().cloned()).collect())
    }
}
