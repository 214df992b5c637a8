//! `rungate report` on the command line.

use std::path::PathBuf;

use clap::Args;

use crate::cli::Span;

/// `rungate report`.
#[derive(Args, Debug)]
pub struct ReportArguments {
    /// The logs, `-` for standard input; those of several hosts are merged; default: the one that the policy
    /// names, with the files that rotation made of it
    #[arg(value_name = "LOG")]
    pub files: Vec<PathBuf>,

    /// Write a page to this file, as a whole or not at all; `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub html: Option<PathBuf>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened field has no help of its own")]
    pub span: Span,

    /// Look users and groups up in passwd and group of this directory, as of another machine
    #[arg(long, value_name = "DIRECTORY")]
    pub accounts: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
