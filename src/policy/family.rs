//! The lock files of a repository that has one for each member, found by their names: what a path template
//! makes of values, read back. Names that were shortened or changed to be safe read back as what they became,
//! with their hash: good enough to be shown, and only for that.

use std::path::{Path, PathBuf};

use super::{
    member::Member,
    repository::Repository,
    safe_value::{HASH_LENGTH, LONGEST_NAME, is_changed},
    template::{Name, Piece, Placeholder},
};

impl Repository {
    /// The directory below which its files are.
    pub fn base(&self, runtime: &Path) -> PathBuf {
        self.path.base(runtime)
    }

    /// How many names its path has below the base: those of directories, and that of the file.
    pub fn depth(&self) -> usize {
        self.path.names.len()
    }

    /// The placeholders of its path, in order.
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.path.placeholders()
    }

    /// What a name at this depth says of the member; none when it is no name of this repository.
    pub fn read_name(&self, depth: usize, name: &str) -> Option<Vec<Member>> {
        self.path.names.get(depth)?.read(name)
    }

    /// Whether values had to be changed for a name that was read at this depth.
    pub fn is_changed(&self, depth: usize, name: &str) -> bool {
        let values = self.path.names.get(depth).and_then(|pattern| pattern.values(name));
        values.is_some_and(|values| !values.hash.is_empty())
    }
}

/// The values that a name was made of, as they stand in it.
pub(super) struct Values<'a> {
    /// Each without the hash.
    pub(super) each: Vec<(&'a Placeholder, &'a str)>,
    /// Of all of them, where one was changed or the name was shortened; it stands behind the last.
    pub(super) hash: &'a str,
}

impl Name {
    pub(super) fn read(&self, name: &str) -> Option<Vec<Member>> {
        let Values { each, hash } = self.values(name)?;
        let is_partly = name.len() == LONGEST_NAME || each.len() < self.placeholders().count();
        let read = |(index, (placeholder, text)): (usize, &(&Placeholder, &str))| {
            // A number may have lost its last digits, or have something else behind it.
            if is_partly && index + 1 == each.len() {
                text_member(text, hash)
            } else {
                member(placeholder, text, hash)
            }
        };
        let mut members: Vec<Member> = each.iter().enumerate().map(read).collect::<Option<_>>()?;
        // The last of those that may have been changed keeps it, so that no two look the same.
        let last_text = members.iter_mut().rev().find_map(|member| match member {
            Member::Text(text) => Some(text),
            Member::User(_) | Member::Group(_) => None,
        });
        if let Some(text) = last_text {
            text.push_str(hash);
        }
        Some(members)
    }

    pub(super) fn values<'a>(&'a self, name: &'a str) -> Option<Values<'a>> {
        let mut each = Vec::new();
        let mut hash = "";
        let mut rest = name;
        let mut pieces = self.pieces.as_slice();
        while let [piece, left @ ..] = pieces {
            pieces = left;
            match piece {
                Piece::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                Piece::Value(placeholder) => {
                    let end = match left {
                        // The last text is at the very end; one in between where it first occurs.
                        [Piece::Literal(last)] => rest.len().checked_sub(last.len())?,
                        [Piece::Literal(next), ..] => match rest.find(next.as_str()) {
                            Some(end) => end,
                            // What came behind this value was cut off, save for the last text.
                            None if name.len() == LONGEST_NAME => {
                                (pieces, rest) = (&[], rest.strip_suffix(self.kept_ending())?);
                                rest.len()
                            }
                            None => return None,
                        },
                        // Nobody can tell where the one ends and the other begins.
                        [Piece::Value(_), ..] => {
                            let last = match left.last() {
                                Some(Piece::Literal(last)) => last.as_str(),
                                _ => "",
                            };
                            (pieces, rest) = (&[], rest.strip_suffix(last)?);
                            rest.len()
                        }
                        [] => rest.len(),
                    };
                    let (value, behind) = (rest.get(..end)?, rest.get(end..)?);
                    rest = behind;
                    let is_last = !pieces.iter().any(|piece| matches!(piece, Piece::Value(_)));
                    let length = if is_last { without_hash(value).len() } else { end };
                    hash = value.get(length..)?;
                    each.push((placeholder, value.get(..length)?));
                }
            }
        }
        rest.is_empty().then_some(Values { each, hash })
    }
}

/// The value without the hash that stands behind the last of a name.
fn without_hash(value: &str) -> &str {
    if is_changed(value) {
        value.get(..value.len().saturating_sub(HASH_LENGTH)).unwrap_or(value)
    } else {
        value
    }
}

/// A member by its text; a number has no part in a hash that stands behind it.
pub(super) fn member(placeholder: &Placeholder, text: &str, hash: &str) -> Option<Member> {
    match placeholder {
        Placeholder::Uid => text.parse().ok().map(Member::User),
        Placeholder::Gid => text.parse().ok().map(Member::Group),
        _ => text_member(text, hash),
    }
}

fn text_member(text: &str, hash: &str) -> Option<Member> {
    (!text.is_empty() || !hash.is_empty()).then(|| Member::Text(text.to_owned()))
}
