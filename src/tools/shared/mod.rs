//! Shared by subcommands: the files of repositories, names, and the ways by which commands are started.

pub(crate) mod file_accounts;
pub(crate) mod listed_file;
pub(crate) mod rehearsal;
pub(crate) mod repositories;
pub(crate) mod unseen_ends;
pub(crate) mod ways_in;

use self::listed_file::{KeptAt, Owner, Terms};
pub(crate) use self::{
    file_accounts::KnownAccounts,
    listed_file::{Free, ListedFile, WaitsFor},
    repositories::{NONE, RepositoryFiles, elsewhere, not_for_users, wanted},
    ways_in::{Reach, WayIn},
};
