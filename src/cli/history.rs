//! `rungate history` on the command line.

use std::path::PathBuf;

use clap::Args;

use crate::cli::Span;

/// `rungate history`.
#[derive(Args, Debug)]
pub struct HistoryArguments {
    /// The logs, as JSON lines, from the journal or from syslog, `-` for standard input; default: the one
    /// that the policy names, with the files that rotation made of it
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened field has no help of its own")]
    pub span: Span,

    /// Only what this user started; a name or a number
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,

    /// Only commands that match this pattern
    #[arg(long, value_name = "PATTERN")]
    pub command: Option<String>,

    /// Only what is about this repository
    #[arg(long, value_name = "REPOSITORY")]
    pub repository: Option<String>,

    /// Keep printing events as they are logged; without --since only new ones
    #[arg(short, long, conflicts_with = "until")]
    pub follow: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
