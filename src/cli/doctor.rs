//! `rungate doctor` on the command line.

use clap::{Args, ValueEnum};

/// `rungate doctor`.
#[derive(Args, Debug)]
pub struct DoctorArguments {
    /// Look at these alone; default: at everything
    #[arg(value_name = "TOPIC")]
    pub topics: Vec<Topic>,

    /// Also show what is right, and notes
    #[arg(short, long)]
    pub verbose: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What the doctor looks at, in the order of the page.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Topic {
    /// The programs of rungate themselves
    Installation,
    /// Who can read the policy, and what is wrong with it
    Policy,
    /// Directories and lock files: owners, modes, file systems
    Repositories,
    /// What is gone after the next boot, and whether it is made again
    Boot,
    /// The programs behind commands
    Programs,
    /// Links to rungate, and where they lead
    Shims,
    /// Whether each way to start a command comes by the shims
    Ways,
    /// The databases of users and groups
    Names,
    /// Whether events can be written
    Log,
    /// Whether overdue holders are ended
    Expiry,
    /// The keeper of the host
    Agent,
    /// The keeper of the site
    Site,
}

impl Topic {
    /// The word for it on the command line and on the page.
    pub fn word(self) -> &'static str {
        match self {
            Self::Installation => "installation",
            Self::Policy => "policy",
            Self::Repositories => "repositories",
            Self::Boot => "boot",
            Self::Programs => "programs",
            Self::Shims => "shims",
            Self::Ways => "ways",
            Self::Names => "names",
            Self::Log => "log",
            Self::Expiry => "expiry",
            Self::Agent => "agent",
            Self::Site => "site",
        }
    }
}
