//! Shared by subcommands: the files of repositories, names, and the ways by which commands are started.

pub(crate) mod file_accounts;
pub(crate) mod listed_file;
pub(crate) mod repositories;
pub(crate) mod unseen_ends;
pub(crate) mod ways_in;
