//! The lock files of a repository that has one for each member, found by their names: what a path template
//! makes of values, read back. Names that were shortened or changed to be safe read back as what they became,
//! with their hash: good enough to be shown, and only for that.

use std::path::{Path, PathBuf};

use super::{
    member::Member,
    repository::Repository,
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
}

impl Name {
    fn read(&self, name: &str) -> Option<Vec<Member>> {
        let mut members = Vec::new();
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
                        [Piece::Literal(next), ..] => rest.find(next.as_str())?,
                        [Piece::Value(_), ..] | [] => rest.len(),
                    };
                    members.push(member(placeholder, rest.get(..end)?)?);
                    rest = rest.get(end..)?;
                }
            }
        }
        rest.is_empty().then_some(members)
    }
}

fn member(placeholder: &Placeholder, text: &str) -> Option<Member> {
    match placeholder {
        Placeholder::Uid => text.parse().ok().map(Member::User),
        Placeholder::Gid => text.parse().ok().map(Member::Group),
        _ => (!text.is_empty()).then(|| Member::Text(text.to_owned())),
    }
}
