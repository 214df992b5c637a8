//! `rungate policy` on the command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};

/// `rungate policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyAction {
    /// Report every fault, warning and failed test of a policy
    Check(CheckArguments),
    /// Compare two policies by meaning: rules and limits, not lines
    Diff(DiffArguments),
    /// Edit a policy file; check it before it is replaced
    Edit(EditArguments),
    /// Check files, then put them in place as the policy
    Install(InstallPolicyArguments),
    /// Show the last ten changes of the system's policy
    Log,
    /// Put the system's policy in place as it was before a change
    Undo(UndoArguments),
    /// Print the JSON Schema of policies, for editors
    Schema,
    /// Print the policy in force, with all files merged
    Show,
}

/// `rungate policy check`.
#[derive(Args, Debug)]
pub struct CheckArguments {
    /// Check these files instead of the policy in force
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Check one FILE as if it were already in place: policy.toml, or the name of a drop-in
    #[arg(long = "as", value_name = "NAME", requires = "files", conflicts_with = "policy")]
    pub in_place: Option<OsString>,

    /// Also replay the launches of this log: those that started must start again
    #[arg(long, value_name = "LOG")]
    pub from: Vec<PathBuf>,

    /// Look up the log's users and groups in the files passwd and group of this directory
    #[arg(long, value_name = "DIRECTORY", requires = "from")]
    pub accounts: Option<PathBuf>,

    /// Let warnings count as faults
    #[arg(long)]
    pub strict: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `rungate policy diff`.
#[derive(Args, Debug)]
pub struct DiffArguments {
    /// Policy to compare: a file, a directory with policy.toml and policy.d, or - for standard input
    #[arg(value_name = "OLD")]
    pub old: PathBuf,

    /// Policy that OLD is compared with: a file, a directory, or -
    #[arg(value_name = "NEW")]
    pub new: PathBuf,
}

/// What `edit` and `install` do without a question.
#[derive(Args, Clone, Copy, Debug)]
pub struct ConsentOptions {
    /// Do not prompt if the resulting policy is valid
    #[arg(short, long)]
    pub yes: bool,

    /// Accept that slots which are held now would not be counted any more
    #[arg(long)]
    pub allow_uncounted: bool,
}

/// `rungate policy edit`.
#[derive(Args, Debug)]
pub struct EditArguments {
    /// File to edit: the system's policy, one of its drop-ins, your own policy, or any other; default: for
    /// root the system's, else your own
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened field has no help of its own")]
    pub consent: ConsentOptions,
}

/// `rungate policy install`.
#[derive(Args, Debug)]
pub struct InstallPolicyArguments {
    /// Files to install: policy.toml, drop-ins by their names, or a directory with policy.toml and policy.d
    #[arg(value_name = "FILE", required_unless_present = "remove")]
    pub files: Vec<PathBuf>,

    /// Remove this drop-in of the system, with the same checks; may be given several times
    #[arg(long, value_name = "NAME")]
    pub remove: Vec<OsString>,

    /// Install the file under this name: policy.toml, or the name of a drop-in
    #[arg(long, value_name = "NAME")]
    pub name: Option<OsString>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened field has no help of its own")]
    pub consent: ConsentOptions,

    /// Only show what would change, and what is wrong
    #[arg(long)]
    pub dry_run: bool,
}

/// `rungate policy undo`.
#[derive(Args, Debug)]
pub struct UndoArguments {
    /// How many changes to undo, as numbered by rungate policy log
    #[arg(value_name = "CHANGES", default_value_t = 1)]
    pub changes: u8,

    #[command(flatten)]
    #[expect(missing_docs, reason = "a flattened field has no help of its own")]
    pub consent: ConsentOptions,
}
