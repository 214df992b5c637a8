//! The command line as typed. Help, completions and the check of the manual come from this one definition.
//! Options of `run` end at the first operand; what follows belongs to the program, byte for byte.

pub(crate) mod help;

use std::{ffi::OsString, path::PathBuf};

pub use self::help::{command, refuse_unread_policy};
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Start programs under a policy: limits for everybody, for each user, each group.
#[derive(Debug, Parser)]
#[command(
    name = "rungate",
    bin_name = "rungate",
    version,
    max_term_width = 80,
    arg_required_else_help = true
)]
pub struct CommandLine {
    /// Add this policy file; where a system policy exists it can only tighten it
    #[arg(long, value_name = "FILE", global = true)]
    pub policy: Option<PathBuf>,

    /// What to do.
    #[command(subcommand)]
    pub action: Action,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Acquire the slots the policy requires, then execute the command
    Run(RunArguments),
    /// Acquire slots for part of a script, kept by its descriptors
    Acquire(AcquireArguments),
    /// Explain how the policy applies to a command or to you
    Explain(ExplainArguments),
    /// Show use and limit of every repository
    Status(StatusArguments),
    /// Show who holds the slots, and who waits for them
    List(ListArguments),
    /// Check, compare, edit and install policies
    #[command(subcommand)]
    Policy(PolicyAction),
    /// Forget when repositories were last used
    Reset(ResetArguments),
    /// Remove lock files of members that are not used any more
    Prune(PruneArguments),
    /// End programs that hold slots: named ones, or overdue ones
    End(EndArguments),
    /// Show the events of the log
    History(HistoryArguments),
    /// Report use, refusals and waits of a log, and suggest limits
    Report(ReportArguments),
    /// Replay a log under another policy: who would be refused or wait
    Simulate(SimulateArguments),
    /// Print use, limits and refusals as Prometheus metrics
    Metrics(MetricsArguments),
    /// Measure use that rungate did not start, as the policy says
    Measure(MeasureArguments),
    /// Start programs through links to rungate
    #[command(subcommand)]
    Shim(ShimAction),
    /// Write a first policy: yours or, as root, the system's
    Init(InitArguments),
    /// Check this host and suggest fixes
    Doctor(DoctorArguments),
    /// Print a shell completion script
    Completions(CompletionsArguments),
    /// Work like exectimes: LOCK-FILE MAX COMMAND, or check, or list
    #[command(disable_help_flag = true)]
    Exectimes(ExectimesArguments),
}

/// Which part of a log counts.
#[derive(Args, Clone, Debug, Default)]
pub struct Span {
    /// Use only events at or after this time: 14:02, yesterday, "2026-11-20 14:02", or 7d for the last seven
    /// days
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,

    /// Use only events before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
}

/// `rungate run`.
#[derive(Args, Debug)]
pub struct RunArguments {
    /// Wait in the queue for up to this time (90s, 10m, 1h30m, forever) when a limit is reached
    #[arg(short = 'w', long, value_name = "TIME")]
    pub wait: Option<String>,

    /// Do not wait: refuse at once when a limit is reached
    #[arg(short = 'n', long, conflicts_with = "wait")]
    pub nonblock: bool,

    /// Announce the end of a wait: bell and title of the terminal, and notify-send where it is installed
    #[arg(long)]
    pub notify: bool,

    /// Let rules see this as the command's name (for interpreters, containers, cron lines)
    #[arg(long = "as", value_name = "NAME")]
    pub typed_as: Option<OsString>,

    /// Choose what keeps the slots; cannot weaken what the policy requires
    #[arg(long, value_parser = ["process", "descriptor", "supervisor", "tree"])]
    pub hold: Option<String>,

    /// Exit with this status if a limit is reached or the wait times out
    #[arg(short = 'E', long, value_name = "N")]
    pub conflict_exit_code: Option<u8>,

    /// Start only if fewer than N of this command run; needs no policy, and rules still apply
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(0..=1_048_575)
    )]
    pub limit: Option<u32>,

    /// Use this lock file for --limit; default: your own file, named after the command
    #[arg(long, value_name = "FILE", requires = "limit")]
    pub repository: Option<PathBuf>,

    /// Acquire K slots instead of one
    #[arg(
        long,
        value_name = "K",
        requires = "limit",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1_048_575)
    )]
    pub slots: Option<u32>,
    /// Print which slots were acquired, and why
    #[arg(short, long)]
    pub verbose: bool,

    /// Print nothing when the command is refused
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `rungate acquire`.
#[derive(Args, Debug)]
pub struct AcquireArguments {
    /// Keep the slots of a lock file with this descriptor, open for reading; repeat for each file
    #[arg(
        long,
        value_name = "N",
        required_unless_present = "path",
        value_parser = clap::value_parser!(i32).range(0..)
    )]
    pub fd: Vec<i32>,

    /// Print the lock files to open, one in a line, and acquire nothing
    #[arg(long, conflicts_with_all = ["fd", "export", "wait"])]
    pub path: bool,

    /// Print the slots as shell variables, so that commands below use them: eval "$(...)"
    #[arg(long)]
    pub export: bool,

    /// Wait in the queue for up to this time (90s, 10m, 1h30m, forever) when a limit is reached
    #[arg(short = 'w', long, value_name = "TIME")]
    pub wait: Option<String>,

    /// Limit a command that no policy limits, with a lock file of your own that is named after it
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(0..=1_048_575)
    )]
    pub limit: Option<u32>,

    /// The command whose rules count, with its arguments; it is not started
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `rungate explain`.
#[derive(Args, Debug)]
pub struct ExplainArguments {
    /// Explain for another user, with the groups of the user database
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,

    /// Explain for another time: 14:02, "2026-11-20 14:02", or with a zone as in RFC 3339
    #[arg(long, value_name = "TIME", requires = "command")]
    pub at: Option<String>,

    /// Explain for another host
    #[arg(long, value_name = "NAME", requires = "command")]
    pub host: Option<OsString>,

    /// Let rules see this as the command's name
    #[arg(long = "as", value_name = "NAME", requires = "command")]
    pub typed_as: Option<OsString>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Also show rules whose commands do not match
    #[arg(short, long, requires = "command")]
    pub verbose: bool,

    /// The command and its arguments; default: show your limits, your slots and your places in queues
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `rungate status`.
#[derive(Args, Debug)]
pub struct StatusArguments {
    #[command(flatten)]
    pub listing: ListingArguments,

    /// Update the display each second, with holders and queues, until q is pressed
    #[arg(long, conflicts_with = "json")]
    pub watch: bool,
}

/// `rungate list`.
#[derive(Args, Debug)]
pub struct ListArguments {
    #[command(flatten)]
    pub listing: ListingArguments,

    /// Show only the slots and the places in queues of this user, by name or number
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
}

/// `rungate status` and `rungate list`.
#[derive(Args, Debug)]
pub struct ListingArguments {
    /// Repositories by name, or lock files by path (with a slash); default: all in the policy; list shows
    /// those in use
    #[arg(value_name = "REPOSITORY")]
    pub repositories: Vec<OsString>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `rungate reset`.
#[derive(Args, Debug)]
pub struct ResetArguments {
    /// Repositories by name, or lock files by path (with a slash)
    #[arg(value_name = "REPOSITORY", required = true)]
    pub repositories: Vec<OsString>,
}

/// `rungate prune`.
#[derive(Args, Debug)]
pub struct PruneArguments {
    /// Repositories with members or placeholders, by name; default: all of them
    #[arg(value_name = "REPOSITORY")]
    pub repositories: Vec<OsString>,

    /// Show which lock files would be removed, and remove none
    #[arg(long)]
    pub dry_run: bool,
}

/// `rungate end`.
#[derive(Args, Debug)]
pub struct EndArguments {
    /// Repository by name, or lock file by path (with a slash); with --overdue the default is all in the
    /// policy
    #[arg(value_name = "REPOSITORY")]
    pub repository: Option<OsString>,

    /// Holders to end: by process id, by user, or by the number (slot:3) or the name (name:gpu3) of a slot;
    /// default: all that you may end
    #[arg(value_name = "PID|USER|slot:N|name:NAME")]
    pub holders: Vec<OsString>,

    /// End holders that are overdue; all operands are repositories
    #[arg(long)]
    pub overdue: bool,

    /// Show which holders would be ended, and end none
    #[arg(long)]
    pub dry_run: bool,

    /// Do not prompt
    #[arg(short, long)]
    pub yes: bool,
}

/// `rungate init`.
#[derive(Args, Debug)]
pub struct InitArguments {
    /// Commands to limit; without any, write a policy that limits nothing yet and shows how
    #[arg(value_name = "COMMAND")]
    pub commands: Vec<String>,

    /// Write the example policy for this place, instead of one for commands
    #[arg(long = "for", value_name = "PLACE", value_enum, conflicts_with_all = ["commands", "repositories"])]
    pub place: Option<Place>,

    /// Create the directories and lock files of the policy in force, owned by root
    #[arg(long, conflicts_with_all = ["commands", "limit"])]
    pub repositories: bool,

    /// Allow this many of each command at once
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        requires = "commands",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=1_048_575)
    )]
    pub limit: u32,

    /// Only show what would be created
    #[arg(long)]
    pub dry_run: bool,
}

/// Where a first policy is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Place {
    /// Coding agents, and what they build and test
    Agents,
    /// A machine with GPUs
    Gpu,
    /// Licences with a limit for all, for each user and group
    Licences,
    /// A job that neither comes too soon nor hangs
    Cron,
    /// A host with CI runners of its own
    Ci,
}

/// `rungate metrics`.
#[derive(Args, Debug)]
pub struct MetricsArguments {
    /// Write to this file instead of standard output, and replace it in one step
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `rungate measure`.
#[derive(Args, Debug)]
pub struct MeasureArguments {
    /// Measure again and again, each repository as often as its `every` says
    #[arg(long)]
    pub every: bool,

    /// Print the programs that need a slot of this repository and run without one
    #[arg(long, value_name = "REPOSITORY", conflicts_with = "every")]
    pub processes: Option<OsString>,
}

/// `rungate completions`.
#[derive(Args, Debug)]
pub struct CompletionsArguments {
    /// Shell to print the script for
    #[arg(value_parser = ["bash", "zsh", "fish", "tcsh"])]
    pub shell: String,

    /// Print the completions of the last of these words; the script calls this
    #[arg(last = true, value_name = "WORD")]
    pub words: Vec<OsString>,
}

/// `rungate exectimes`.
#[derive(Args, Debug)]
pub struct ExectimesArguments {
    /// The arguments of exectimes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARG")]
    pub arguments: Vec<OsString>,
}

// The command line of `rungate-agent`.

/// Keep slots that no user can take, forge, keep or delete.
#[derive(Debug, Parser)]
#[command(name = "rungate-agent", version, max_term_width = 80)]
pub struct AgentArguments {
    /// Listen on this socket, unless the service manager passes one
    #[arg(long, value_name = "PATH", default_value = "/run/rungate-agent/socket")]
    pub socket: PathBuf,
    /// Save the state in this directory
    #[arg(long, value_name = "DIR", default_value = "/run/rungate-agent/state")]
    pub state: PathBuf,
    /// Read the settings from this file only [default: /etc/rungate/agent.toml, if it exists]
    #[arg(long, value_name = "PATH")]
    pub settings: Option<PathBuf>,
    /// Check the settings and the policy, then exit
    #[arg(long)]
    pub check: bool,
}

// `rungate report` on the command line.

/// `rungate report`.
#[derive(Args, Debug)]
pub struct ReportArguments {
    /// Logs to read, `-` for standard input; logs of several hosts are merged; default: the policy's log with
    /// its rotated files
    #[arg(value_name = "LOG")]
    pub files: Vec<PathBuf>,

    /// Write an HTML page to this file, completely or not at all; `-` for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub html: Option<PathBuf>,

    #[command(flatten)]
    pub span: Span,

    /// Look up users and groups in the files passwd and group of this directory, as on another machine
    #[arg(long, value_name = "DIRECTORY")]
    pub accounts: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

// `rungate history` on the command line.

/// `rungate history`.
#[derive(Args, Debug)]
pub struct HistoryArguments {
    /// Logs to read: JSON lines, from the journal or from syslog, `-` for standard input; default: the
    /// policy's log with its rotated files
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub span: Span,

    /// Show only launches of this user, by name or number
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,

    /// Show only commands that match this pattern
    #[arg(long, value_name = "PATTERN")]
    pub command: Option<String>,

    /// Show only events of this repository
    #[arg(long, value_name = "REPOSITORY")]
    pub repository: Option<String>,

    /// Keep printing events as they are logged; without --since only new ones
    #[arg(short, long, conflicts_with = "until")]
    pub follow: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

// `rungate simulate` on the command line.

/// `rungate simulate`.
#[derive(Args, Debug)]
pub struct SimulateArguments {
    /// Policy to try as if it were the system's: a file, or a directory with policy.toml and policy.d
    #[arg(value_name = "POLICY")]
    pub tried: PathBuf,

    /// Logs to read, `-` for standard input; logs of several hosts are merged; default: the log of the policy
    /// in force
    #[arg(value_name = "LOG")]
    pub files: Vec<PathBuf>,

    /// Try each of these limits of a repository: matlab=8..16
    #[arg(long, value_name = "NAME=LOWEST..HIGHEST")]
    pub limit: Option<String>,

    /// Find the lowest of these limits at which this share of the launches starts at once
    #[arg(long, value_name = "PERCENT", requires = "limit")]
    pub seats_for: Option<String>,

    /// Let launches wait up to this time, and ignore the waits that they requested
    #[arg(short = 'w', long, value_name = "TIME")]
    pub wait: Option<String>,

    /// Enforce all rules and limits, also those with enforce = false
    #[arg(long)]
    pub enforced: bool,

    /// Give each host lock files of its own; by default all hosts share them
    #[arg(long)]
    pub each_host: bool,

    #[command(flatten)]
    pub span: Span,

    /// Look up users and groups in the files passwd and group of this directory, as on another machine
    #[arg(long, value_name = "DIRECTORY")]
    pub accounts: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

// `rungate shim` on the command line.

/// `rungate shim`.
#[derive(Debug, Subcommand)]
pub enum ShimAction {
    /// Create a link to rungate for each command
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

    /// Commands to create shims for; default: all that the policy names literally
    #[arg(value_name = "NAME")]
    pub names: Vec<OsString>,

    /// Only show which links would be created
    #[arg(long)]
    pub dry_run: bool,
}

/// `rungate shim list`.
#[derive(Args, Debug)]
pub struct ShimListArguments {
    /// Directories to list; default: all in PATH
    #[arg(value_name = "DIRECTORY")]
    pub directories: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `rungate shim remove`.
#[derive(Args, Debug)]
pub struct RemoveArguments {
    /// Directory of the shims
    #[arg(value_name = "DIRECTORY")]
    pub directory: PathBuf,

    /// Commands whose shims to remove; default: all
    #[arg(value_name = "NAME")]
    pub names: Vec<OsString>,
}

// `rungate doctor` on the command line.

/// `rungate doctor`.
#[derive(Args, Debug)]
pub struct DoctorArguments {
    /// Check only these topics; default: all
    #[arg(value_name = "TOPIC")]
    pub topics: Vec<Topic>,

    /// Also show passed checks, and notes
    #[arg(short, long)]
    pub verbose: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What the doctor looks at, in the order of the page.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Topic {
    /// The installed programs of rungate
    Installation,
    /// Who can read the policy, and what is wrong with it
    Policy,
    /// Directories and lock files: owners, modes, file systems
    Repositories,
    /// Files that the next boot removes, and whether it creates them again
    Boot,
    /// The programs behind commands
    Programs,
    /// Links to rungate, and what they point to
    Shims,
    /// Ways to start a command, and whether they use the shims
    Ways,
    /// The databases of users and groups
    Names,
    /// Whether events can be written
    Log,
    /// Whether overdue holders are ended
    Expiry,
    /// The agent of this host
    Agent,
    /// The site that this host belongs to
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

// `rungate policy` on the command line.

/// `rungate policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyAction {
    /// Report the faults, warnings and failed tests of a policy
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
    pub consent: ConsentOptions,
}
