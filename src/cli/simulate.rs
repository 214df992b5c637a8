//! `rungate simulate` on the command line.

use std::path::PathBuf;

use clap::Args;

use crate::cli::Span;

/// `rungate simulate`.
#[derive(Args, Debug)]
pub struct SimulateArguments {
    /// The policy to try, as if it were the system's; of a directory policy.toml and what is in policy.d
    #[arg(value_name = "POLICY")]
    pub tried: PathBuf,

    /// The logs, `-` for standard input; those of several hosts are merged; default: the one that the policy
    /// in force names
    #[arg(value_name = "LOG")]
    pub files: Vec<PathBuf>,

    /// Try each of these limits of a repository: matlab=8..16
    #[arg(long, value_name = "NAME=LOWEST..HIGHEST")]
    pub limit: Option<String>,

    /// Find the lowest of these limits that starts this share of the launches at once
    #[arg(long, value_name = "PERCENT", requires = "limit")]
    pub seats_for: Option<String>,

    /// Let launches wait up to this time, whatever they said themselves
    #[arg(short = 'w', long, value_name = "TIME")]
    pub wait: Option<String>,

    /// Let everything count as enforced
    #[arg(long)]
    pub enforced: bool,

    /// Each host has lock files of its own; otherwise all share them
    #[arg(long)]
    pub each_host: bool,

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
