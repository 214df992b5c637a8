//! The machine's own files of users and groups, read to doubt an absence. Of several databases the C library
//! gives the answer of the last one that was asked: where that has nothing, nobody hears that another one
//! could not be read. What those files cannot be asked either is not absent.

use std::fs;

use nix::errno::Errno;

use crate::sys::failure::errno_of;

/// A file with a line for each entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum OwnDatabase {
    Passwd,
    Group,
}

impl OwnDatabase {
    /// Asks the C library. Nothing, where it has nothing and these files, if there are any, have nothing
    /// either.
    pub(super) fn find<T>(
        self,
        key: Key<'_>,
        ask: impl Fn() -> Result<Option<T>, Errno>,
    ) -> Result<Option<T>, Errno> {
        if let Some(found) = ask()? {
            return Ok(Some(found));
        }
        if !self.has(key)? {
            return Ok(None);
        }
        // It could not be read a moment ago.
        ask()?.map(Some).ok_or(Errno::EAGAIN)
    }

    fn has(self, key: Key<'_>) -> Result<bool, Errno> {
        let path = match self {
            Self::Passwd => "/etc/passwd",
            Self::Group => "/etc/group",
        };
        match fs::read(path).map_err(|error| errno_of(&error)) {
            Ok(bytes) => Ok(bytes.split(|byte| *byte == b'\n').any(|line| key.is_of(line))),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

/// What an entry is looked for by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Key<'a> {
    Name(&'a str),
    Id(u32),
}

impl Key<'_> {
    /// Comments, and what refers to other databases, are no entries to the C library either.
    fn is_of(self, line: &[u8]) -> bool {
        let line = line.trim_ascii_start();
        if matches!(line.first(), None | Some(b'#' | b'+' | b'-')) {
            return false;
        }
        let mut fields = line.split(|byte| *byte == b':');
        match self {
            Self::Name(name) => fields.next() == Some(name.as_bytes()),
            Self::Id(id) => fields.nth(2) == Some(id.to_string().as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_its_name_first_and_its_number_third() {
        let line = b"games:x:60:ann,bob";
        assert!(Key::Name("games").is_of(line) && Key::Id(60).is_of(line));
        for key in [Key::Name("game"), Key::Name("x"), Key::Name(""), Key::Id(6), Key::Id(600)] {
            assert!(!key.is_of(line), "{key:?}");
        }
    }

    #[test]
    fn a_comment_is_no_entry() {
        for line in [&b"#games:x:60:"[..], b" #games:x:60:", b"+games:x:60:", b"-games:x:60:", b""] {
            assert!(!Key::Id(60).is_of(line) && !Key::Name("#games").is_of(line), "{line:?}");
        }
    }

    #[test]
    fn an_absence_is_believed_where_the_files_have_nothing_either() {
        assert_eq!(OwnDatabase::Passwd.find(Key::Id(0), || Ok(None::<()>)), Err(Errno::EAGAIN));
        assert_eq!(OwnDatabase::Group.find(Key::Name("no such group"), || Ok(None::<()>)), Ok(None));
        assert_eq!(OwnDatabase::Group.find(Key::Id(0), || Ok(Some(7))), Ok(Some(7)));
        assert_eq!(
            OwnDatabase::Passwd.find(Key::Id(0), || Err::<Option<()>, _>(Errno::EIO)),
            Err(Errno::EIO)
        );
    }
}
