//! The command lines that refusals suggest: what the caller typed, with the options that the next command
//! needs, quoted for a shell. A hint works when its reader pastes it.

use std::{ffi::OsStr, path::Path};

use crate::{
    judge::terms::{claim::Claim, keyword::Hold, location::Location},
    launch::run::launch_options::LaunchOptions,
    policy::Wait,
    sys::{executable, process},
    text::escape::word,
};

/// Longer command lines are not repeated with all of their arguments.
const LONGEST: usize = 200;

/// The command line of a launch, to be repeated.
pub(crate) struct Hints {
    /// The command with its arguments.
    words: String,
    /// ` --policy FILE`, with its leading space.
    policy: String,
    named: String,
    /// Everything but the wait.
    options: String,
    /// Whether `--as` gives the command another name.
    is_renamed: bool,
}

impl Hints {
    /// The hints for a launch.
    pub(crate) fn of(options: &LaunchOptions) -> Self {
        let policy = option("policy", options.policy.as_ref());
        let named = format!("{policy}{}", option("as", options.typed_as.as_ref()));
        let cap = options.cap.as_ref();
        let others = [
            option("repository", cap.and_then(|cap| cap.repository.as_ref())),
            option("limit", cap.map(|cap| cap.limit.to_string())),
            option("slots", cap.and_then(|cap| cap.slots).map(|slots| slots.to_string())),
            option("hold", options.hold.map(Hold::name)),
        ];
        Self {
            words: words(&options.command, &options.arguments),
            options: format!("{named}{}", others.concat()),
            policy,
            named,
            is_renamed: options.typed_as.is_some(),
        }
    }

    /// The same launch, in the queue.
    pub(super) fn wait(&self, wait: Wait) -> String {
        format!("rungate run --wait {wait}{} -- {}", self.options, self.words)
    }

    /// The same launch under a limit of its own.
    pub(super) fn limit(&self) -> String {
        format!("rungate run --limit 1{} -- {}", self.options, self.words)
    }

    /// What the policy says of the launch.
    pub(super) fn explain(&self) -> String {
        format!("rungate explain{} -- {}", self.named, self.words)
    }

    /// The same with every rule.
    pub(super) fn explain_all(&self) -> String {
        format!("rungate explain -v{} -- {}", self.named, self.words)
    }

    /// Who holds the slots of a claim.
    pub(super) fn list(&self, claim: &Claim<'_>, title: &str) -> String {
        format!("rungate list{}", self.repository(claim, title))
    }

    /// Ends a holder of a claim's repository.
    pub(super) fn end(&self, claim: &Claim<'_>, pid: i32) -> String {
        format!("rungate end{} {pid}", self.repository(claim, claim.repository.as_ref()))
    }

    /// A repository with `--policy`, after a space; a file that the policy does not name is named by its
    /// path.
    fn repository(&self, claim: &Claim<'_>, title: &str) -> String {
        match (&claim.location, claim.origins.iter().any(|origin| origin.place.is_some())) {
            (Location::File(file), false) => format!(" {}", word(&file.path)),
            _ => format!("{} {}", self.policy, word(title)),
        }
    }

    /// Lets the repositories of these claims be used again at once. The file of one member is named by its
    /// path, so that nothing else is reset.
    pub(super) fn reset(&self, claims: &[&Claim<'_>]) -> String {
        let named = |claim: &&Claim<'_>| match &claim.location {
            Location::File(file) if !claim.member.is_empty() => word(&file.path),
            _ => word(claim.repository.as_ref()),
        };
        let words: Vec<String> = claims.iter().map(named).collect();
        // A path needs no policy.
        let policy = if words.iter().any(|word| !word.contains('/')) { self.policy.as_str() } else { "" };
        format!("rungate reset{policy} {}", words.join(" "))
    }

    /// Whether no user could have given options: PAM or sshd started the launch for a login. A command that
    /// sshd is configured to start has another name there, or no rule could match it.
    pub(super) fn are_of_no_use(&self) -> bool {
        let is_of_sshd = || process::parent_name().is_some_and(|name| name.starts_with("sshd"));
        std::env::var_os("PAM_TYPE").is_some() || self.is_renamed && is_of_sshd()
    }
}

/// A first policy for a command. It accepts plain names, and without any it shows how to begin.
pub(super) fn init(command: &OsStr) -> String {
    let name = Path::new(command).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
        return "rungate init".to_owned();
    }
    format!("rungate init {name}")
}

/// The hint to remove a file, for a reader who may, and for one who has to ask.
pub(super) fn remove(file: &Path, what: &str) -> String {
    let command = format!("rm {}", word(file));
    if file.parent().is_some_and(executable::can_write) {
        format!("Remove {what}: {command}")
    } else {
        format!("Ask your administrator to remove {what}: {command}")
    }
}

/// A command with its arguments, or with dots if these are too long.
fn words(command: &OsStr, arguments: &[impl AsRef<OsStr>]) -> String {
    let command = word(command);
    let all = arguments.iter().fold(command.clone(), |all, argument| {
        if all.len() > LONGEST { all } else { format!("{all} {}", word(argument)) }
    });
    if all.len() > LONGEST { format!("{command} ...") } else { all }
}

fn option(name: &str, value: Option<impl AsRef<OsStr>>) -> String {
    value.map_or_else(String::new, |value| format!(" --{name} {}", word(value)))
}
