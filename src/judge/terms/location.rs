//! Where the slots of a claim are kept. Only the named keeper looks into it.

use std::path::{Path, PathBuf};

use super::keyword::{OnLost, Unreachable};

/// One table of slots, by its keeper.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Location {
    /// A lock file.
    File(FileLocation),
    /// A table of the agent's.
    Agent(AgentLocation),
    /// A table in the memory of this process, by its name.
    Memory(String),
}

impl Location {
    /// Whether both lead to one table, as far as the text shows.
    pub fn is_same_table(&self, other: &Location) -> bool {
        match (self, other) {
            (Self::File(one), Self::File(other)) => one.path == other.path,
            (Self::Agent(one), Self::Agent(other)) => one.table == other.table,
            (Self::Memory(one), Self::Memory(other)) => one == other,
            (Self::File(_) | Self::Agent(_) | Self::Memory(_), _) => false,
        }
    }

    /// The name of the table, if it is one in memory.
    pub fn in_memory(&self) -> Option<&str> {
        match self {
            Self::Memory(name) => Some(name),
            Self::File(_) | Self::Agent(_) => None,
        }
    }

    /// The path of the lock file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(&file.path),
            Self::Agent(_) | Self::Memory(_) => None,
        }
    }
}

/// A table of the agent's.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AgentLocation {
    /// Its name: the repository's, and the member's where there is a table for each.
    pub table: String,
    /// What happens to the launch when the agent, or its site, cannot be reached.
    pub unreachable: Unreachable,
    /// What happens to the program when its host loses the site; none if the agent keeps the table alone.
    pub on_lost: Option<OnLost>,
}

/// The most slots that a launch can take of the site: one transaction of etcd has room for this many.
pub const MOST_AT_SITE: u32 = 100;

/// The prefix of the names of the site's tables. No name of another table has a slash.
const OF_SITE: &str = "site/";

/// The agent's name of a table that all agents keep together.
pub fn table_of_site(name: &str) -> String {
    format!("{OF_SITE}{name}")
}

/// The name of a table on every host, if all agents keep it together.
pub fn name_on_site(table: &str) -> Option<&str> {
    table.strip_prefix(OF_SITE)
}

/// A lock file, and how it is created if it is missing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileLocation {
    /// Absolute.
    pub path: PathBuf,
    /// The required owner of the file, if other users may create files beside it.
    pub owner: Option<u32>,
    /// How it is created.
    pub creation: Creation,
}

impl FileLocation {
    /// A file that the caller names by its path. No directories are made for it.
    pub fn named(path: PathBuf, file_mode: u32) -> Self {
        let creation = Creation::by_hand(&path, file_mode);
        Self { path, owner: None, creation }
    }
}

/// How a missing lock file is created.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Creation {
    /// The directory below which missing directories are created.
    pub base: PathBuf,
    /// Whether `base` itself is created (0700) if it is missing.
    pub create_base: bool,
    /// A directory at or above `base` that is created if it is missing. It must belong to the caller alone,
    /// because in `/tmp` others could have created it.
    pub private: Option<PathBuf>,
    /// Permission bits of the file, exactly.
    pub file_mode: u32,
    /// Permission bits of directories below `base`, exactly.
    pub directory_mode: u32,
    /// Whether the file was named on the command line. Then an existing file must look like a repository,
    /// because a typing error must not overwrite anything.
    pub by_hand: bool,
}

impl Creation {
    /// For a file that the caller named, in an existing directory.
    pub fn by_hand(path: &Path, file_mode: u32) -> Self {
        let base = path.parent().unwrap_or(path).to_owned();
        Self { base, file_mode, by_hand: true, ..Self::default() }
    }
}
