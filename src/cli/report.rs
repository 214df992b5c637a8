//! `rungate report` on the command line.

use std::path::PathBuf;

use clap::Args;

use crate::cli::{PolicyOption, Span};

/// `rungate report`.
#[derive(Args, Debug)]
pub struct ReportArguments {
    /// The logs, `-` for standard input; those of several hosts are merged; default: the one that the policy
    /// names
    #[arg(value_name = "LOG")]
    pub files: Vec<PathBuf>,

    /// Write the page to this file, as a whole or not at all; otherwise to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// What stands above it
    #[arg(long, value_name = "TEXT", default_value = "Use of limited programs")]
    pub title: String,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened field has no help of its own")]
    pub span: Span,

    /// Look users and groups up in passwd and group of this directory, as of another machine
    #[arg(long, value_name = "DIRECTORY")]
    pub accounts: Option<PathBuf>,

    /// Print the tables of all figures as JSON instead
    #[arg(long, conflicts_with_all = ["csv", "openmetrics"])]
    pub json: bool,

    /// Print them as CSV instead: figure, row, column, value
    #[arg(long, conflicts_with = "openmetrics")]
    pub csv: bool,

    /// Print use, limits, starts and refusals of each hour with timestamps instead, for Prometheus to fill in
    /// the past
    #[arg(long)]
    pub openmetrics: bool,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened field has no help of its own")]
    pub policy: PolicyOption,
}
