//! `rungate shim` on the command line.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand};

/// `rungate shim`.
#[derive(Debug, Subcommand)]
pub enum ShimAction {
    /// Make a link to rungate for each command
    Install(InstallArguments),
    /// Show which program each shim starts, and which rules match
    List(ShimListArguments),
    /// Remove links to rungate
    Remove(RemoveArguments),
}

/// `rungate shim install`.
#[derive(Args, Debug)]
pub struct InstallArguments {
    /// Directory for the shims; must precede the programs' directories in PATH
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,

    /// The commands; default: all that the policy names literally
    #[arg(value_name = "NAME")]
    pub names: Vec<OsString>,

    /// Only show which links would be made
    #[arg(long)]
    pub dry_run: bool,
}

/// `rungate shim list`.
#[derive(Args, Debug)]
pub struct ShimListArguments {
    /// Where; default: all of PATH
    #[arg(value_name = "DIRECTORY")]
    pub directories: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `rungate shim remove`.
#[derive(Args, Debug)]
pub struct RemoveArguments {
    /// Where
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,

    /// The commands; default: all shims
    #[arg(value_name = "NAME")]
    pub names: Vec<OsString>,
}
