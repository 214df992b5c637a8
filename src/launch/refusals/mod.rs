//! The messages of all refusals, each with its advice, so that they are easy to find and change. Those of
//! limits are in [`limits`], predictions of `explain` in [`foretold`], and those of exectimes in
//! `launch/exectimes`.

pub(crate) mod foretold;
pub(crate) mod limits;

use std::{ffi::OsStr, path::Path};

use super::{LaunchOptions, NoTools, Program, ProgramError, Shim, StartError, TooDeep};
use crate::{
    judge::terms::{Claim, Hold, Keyword, Location, LookupError},
    keeper::KeeperError,
    policy::{Delegation, Faults, Policy, Rule, SYSTEM_POLICY, Wait},
    sys::{accounts, executable, process},
    text::{Change, Clock, Diagnostic, Error, ExitStatus, visible, visible_lines, word},
};

/// rungate has the rights of another user.
pub(crate) fn set_id() -> Error {
    let text = "rungate is installed set-user-id or set-group-id, and refuses to run";
    Error::new(ExitStatus::Policy, text).advise(format!(
        "It needs no privilege, and a program started so loses part of its environment. \
             Ask your administrator to remove the bit: chmod ug-s {}",
        executable::own_path().map_or_else(|| "rungate".to_owned(), |own| word(&own))
    ))
}

/// There is no second program.
pub(crate) fn no_tools(failure: &NoTools) -> Error {
    Error::new(ExitStatus::System, failure.to_string()).advise(failure.advice().to_owned())
}

/// The refusal of a link that cannot start a program.
pub(crate) fn link(Shim { name, path }: &Shim, what: &str) -> Error {
    let text = format!("{}: not started: {} is {what}", visible(name), visible(path));
    Error::new(ExitStatus::Policy, text).advise(remove(path, "the link"))
}

/// There is no policy.
pub(crate) fn no_policy(options: &LaunchOptions) -> Error {
    let command = visible(&options.command);
    let init = format!("Write one to begin with: {}", init(&options.command));
    let advice = match &options.shim {
        None => format!("{init}\nOr give a limit without one: {}", Hints::of(options).limit()),
        Some(shim) => format!("{init}\n{}", remove(&shim.path, "the shim")),
    };
    let text = format!("{command}: not started: there is no policy that says what may start");
    Error::new(ExitStatus::Policy, text).advise(advice)
}

/// There is no program for the command.
pub(crate) fn no_program(error: &ProgramError) -> Error {
    Error::new(status_without_program(error), error.to_string()).advise(error.advice())
}

/// The policy names a file that is not a program.
pub(crate) fn no_named_program(command: &OsStr, error: &ProgramError) -> Error {
    let advice = error.advice().unwrap_or_else(|| {
        format!("The policy names that as the program: [command.{}] exec", visible(command))
    });
    Error::new(status_without_program(error), error.to_string()).advise(advice)
}

fn status_without_program(error: &ProgramError) -> ExitStatus {
    if error.was_found() { ExitStatus::CannotExecute } else { ExitStatus::NotFound }
}

/// The command has started itself too often.
pub(crate) fn too_deep(name: &OsStr, too_deep: &TooDeep, program: &Program) -> Error {
    let (command, path) = (visible(name), visible(&program.path));
    let leads = match &program.shim {
        Some(shim) => format!("the shim {} leads to {path}", visible(shim)),
        None => format!("the command leads to {path}"),
    };
    let text = format!("{command}: not started: {too_deep}\n  {leads}, and that leads back here");
    Error::new(ExitStatus::CannotExecute, text)
        .advise(format!("Name the program itself in the policy: [command.{command}] exec = \"/path\""))
}

/// A delegated file has faults, and is left out of what is shown.
pub(crate) fn withheld(delegation: &Delegation, faults: &Faults) -> String {
    let (file, owner) = (visible(delegation.file()), visible(delegation.owner()));
    let first = faults.iter().next().map_or_else(String::new, Diagnostic::headline);
    format!(
        "rungate: {file} has faults, so its rules are not shown, and launches that it applies to are \
            refused\n  \
         {first}\nTell {owner}, or your administrator: rungate policy check"
    )
}

/// Nothing can be shown if nothing is limited.
pub(crate) fn nothing_to_show() -> Error {
    Error::new(ExitStatus::Policy, "there is no policy, and so no repository to show").advise(
        "Write one to begin with: rungate init COMMAND. A lock file is named by a path with a slash."
            .to_owned(),
    )
}

/// The policy has faults: where, since when, and who can correct it. A user who cannot correct any of them
/// gets the first. `words` are the files that `policy check` must name, because they are not in force.
pub(crate) fn faulty(caller: u32, faults: &Faults, words: &str) -> Error {
    let check = format!("rungate policy check{words}");
    let count = match faults.count() {
        1 => "1 fault".to_owned(),
        count => format!("{count} faults"),
    };
    let is_of_system = |fault: &Diagnostic| {
        Path::new(SYSTEM_POLICY).parent().is_some_and(|directory| fault.path.starts_with(directory))
    };
    let is_theirs = |change: Option<Change>| caller == 0 || change.is_none_or(|change| change.by == caller);
    let mut each = faults.into_iter();
    if let (Some(first), Some(_)) = (each.next(), each.next())
        && !faults.into_iter().any(|fault| is_theirs(fault.change()))
    {
        let text = format!("the policy has {count}, the first of them\n{}", first.headline());
        let owner = first.change().map_or(0, |change| change.by);
        let whom = if owner == 0 { "your administrator" } else { &accounts::shown(owner) };
        return Error::new(ExitStatus::Policy, text).advise(format!("Tell {whom}: {check}"));
    }
    let clock = Clock::now();
    let mut changes: Vec<(String, Change)> = Vec::new();
    for fault in faults {
        let path = visible(&fault.path);
        if let Some(change) = fault.change()
            && changes.iter().all(|(known, _)| *known != path)
        {
            changes.push((path, change));
        }
    }
    let mut text = format!("the policy has {count}\n{}", faults.to_string().trim_end());
    for (path, change) in &changes {
        let who = accounts::shown(change.by);
        text.push_str(&format!("\n{path} was changed {} by {who}", clock.short(change.at)));
    }
    let others: Vec<String> = changes
        .iter()
        .filter(|(_, change)| change.by != caller)
        .map(|(_, change)| accounts::shown(change.by))
        .collect();
    let advice = match others.first() {
        Some(other) if *other != accounts::shown(0) => {
            format!("Tell {other}, or your administrator: {check}")
        }
        Some(_) => format!("Tell your administrator: {check}"),
        None if caller != 0 && changes.is_empty() && faults.iter().all(is_of_system) => {
            "Tell your administrator: rungate doctor".to_owned()
        }
        None => format!("After you correct it, check it: {check}"),
    };
    Error::new(ExitStatus::Policy, text).advise(advice)
}

/// The message if a `deny` rule refuses.
pub(crate) fn denied(command: &OsStr, rule: &Rule, matches: &str) -> Error {
    let text = format!(
        "{}: refused: {}\n  ({}) matches {}",
        visible(command),
        rule.title(),
        rule.place(),
        visible(matches)
    );
    Error::new(ExitStatus::Denied, text)
        .advise(
            rule.message()
                .map(visible_lines)
                .or_else(|| Some("If that is wrong, ask your administrator.".to_owned())),
        )
        .contact(rule.contact())
}

/// The message if `unmatched = "refuse"` does.
pub(crate) fn unmatched(command: &OsStr, policy: &Policy, hints: &Hints) -> Error {
    let command = visible(command);
    let text = format!("{command}: refused: no rule of the policy allows it (unmatched = \"refuse\")");
    Error::new(ExitStatus::Denied, text)
        .advise(format!("To see each rule: {}", hints.explain_all()))
        .contact(policy.contact())
}

/// Groups that could not be looked up.
pub(crate) fn lookup_failed(command: &OsStr, rule: &Rule, failure: &LookupError) -> Error {
    let text = format!(
        "{}: not started: your groups could not be looked up\n  {failure}\n  needed by {}, {}",
        visible(command),
        rule.title(),
        rule.place()
    );
    Error::new(ExitStatus::System, text)
        .advise("A limit that cannot be checked is not skipped. Tell your administrator.".to_owned())
        .contact(rule.contact())
}

/// A program could not be started.
pub(crate) fn not_started(command: &OsStr, error: &StartError) -> Error {
    match error {
        StartError::Keeper(error) => cannot_take(command, error),
        StartError::Call(_) => Error::new(ExitStatus::System, format!("{}: {error}", visible(command))),
        StartError::Exec { .. } => {
            let status = if error.is_missing() { ExitStatus::NotFound } else { ExitStatus::CannotExecute };
            Error::new(status, error.to_string())
        }
    }
}

/// Slots could not be checked or taken.
pub(crate) fn cannot_take(command: &OsStr, error: &KeeperError) -> Error {
    let status = if error.is_fault_of_policy() { ExitStatus::Policy } else { ExitStatus::Repository };
    Error::new(status, format!("{}: not started: {error}", visible(command))).advise(error.advice())
}

// The command lines that refusals suggest: what the caller typed, with the options that the next command
// needs, quoted for a shell. A hint works when its reader pastes it.

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
            option("hold", options.hold.map(Hold::word)),
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
    fn wait(&self, wait: Wait) -> String {
        format!("rungate run --wait {wait}{} -- {}", self.options, self.words)
    }

    /// The same launch under a limit of its own.
    fn limit(&self) -> String {
        format!("rungate run --limit 1{} -- {}", self.options, self.words)
    }

    /// The command that explains the launch.
    fn explain(&self) -> String {
        format!("rungate explain{} -- {}", self.named, self.words)
    }

    /// The same with every rule.
    fn explain_all(&self) -> String {
        format!("rungate explain -v{} -- {}", self.named, self.words)
    }

    /// Who holds the slots of a claim.
    fn list(&self, claim: &Claim, title: &str) -> String {
        format!("rungate list{}", self.repository(claim, title))
    }

    /// Ends a holder of a claim's repository.
    fn end(&self, claim: &Claim, pid: i32) -> String {
        format!("rungate end{} {pid}", self.repository(claim, claim.repository.as_ref()))
    }

    /// A repository with `--policy`, after a space; a file that the policy does not name is named by its
    /// path.
    fn repository(&self, claim: &Claim, title: &str) -> String {
        match (&claim.location, claim.origins.iter().any(|origin| origin.place.is_some())) {
            (Location::File(file), false) => format!(" {}", word(&file.path)),
            _ => format!("{} {}", self.policy, word(title)),
        }
    }

    /// Lets the repositories of these claims be used again at once. The file of one member is named by its
    /// path, so that nothing else is reset.
    fn reset(&self, claims: &[&Claim]) -> String {
        let named = |claim: &&Claim| match &claim.location {
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
    fn are_of_no_use(&self) -> bool {
        let is_of_sshd = || process::parent_name().is_some_and(|name| name.starts_with("sshd"));
        std::env::var_os("PAM_TYPE").is_some() || self.is_renamed && is_of_sshd()
    }
}

/// A first policy for a command. It accepts plain names, and without any it shows how to begin.
fn init(command: &OsStr) -> String {
    let name = Path::new(command).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    if name.is_empty() || name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
        return "rungate init".to_owned();
    }
    format!("rungate init {name}")
}

/// The hint to remove a file, for a reader who may, and for one who has to ask.
fn remove(file: &Path, what: &str) -> String {
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{
        acquire::{self, AcquireContext, Outcome, acquire_at_once},
        judge::terms::{Amount, Demand, FileLocation, Group, Launch, Seats, Slots},
        keeper::{Holder, Keepers, Store},
        launch::LaunchSpec,
        sys::{Inherited, own_uid},
    };

    /// The message to a launch of ann's group that wants this many of three slots. The group has slot 1, by a
    /// program of the reader. The others are held by programs of these users.
    fn refused_in_a_group(wanted: u32, others: [u32; 2]) -> String {
        let (store, group) = (Store::default(), Group::of("ann"));
        let table = store.table("a");
        let holder = |pid, uid| Holder { pid: Some(pid), uid: Some(uid), ..Holder::unknown(1..=1) };
        let own = table.take_with(&Seats { shared: Vec::new(), free: vec![1] }, Some(&group));
        let own = own.expect("it is free");
        own.describe(holder(7, own_uid()));
        let _others = table.take(&[2, 3]).expect("they are free");
        for (pid, slot, uid) in [(8, 2, others[0]), (9, 3, others[1])] {
            table.describe(&[slot], holder(pid, uid));
        }
        let amount = Amount { group: Some(group), ..Amount::plain(Slots::Number(wanted), 3) };
        let file = FileLocation::named(PathBuf::from("a"), 0o600);
        let location = Location::Memory("a".to_owned());
        let claim = Claim { location, ..Claim::outside_the_policy(file, amount, "--limit") };
        let wanted = LaunchSpec { demands: vec![Demand::One(claim)], hold: Hold::Process, longest: None };
        let inherited = Inherited::default();
        let asker = AcquireContext {
            launch: Launch { command: "job", host: "ws1", uid: 1000, ancestors: &[], hold: Hold::Process },
            keepers: Keepers { inherited: &inherited, memory: store.clone() },
            generation: 0,
            on_expired: &|_, _, _| {},
            clock: acquire::Clock::default(),
        };
        let Ok(Outcome::Refused(refusal)) = acquire_at_once(&wanted.demands, &asker) else {
            panic!("it has room")
        };
        let [words, policy, named, options] = [(); 4].map(|()| String::new());
        let hints = Hints { words, policy, named, options, is_renamed: false };
        limits::describe(OsStr::new("job"), &wanted, &refusal, &hints)
    }

    /// A refusal tells what a launch wants besides the slots of its group. The end of a program of the group
    /// makes no room for it.
    #[test]
    fn a_refusal_leaves_out_the_slots_of_the_group() {
        let (own, other) = (own_uid(), own_uid() ^ 1);
        let case = |wanted, others, lines: &[&str], others_not: &[&str]| {
            let message = refused_in_a_group(wanted, others);
            for line in lines {
                assert!(message.contains(line), "{line} in {message}");
            }
            for line in others_not {
                assert!(!message.contains(line), "{line} not in {message}");
            }
        };
        let used = "\n  a  3 of 3 used\n";
        case(2, [other, other], &[used, "\nTry again later"], &["must be freed", "rungate end"]);
        case(2, [own, other], &[used, "\nClose one of yours", ": rungate end a 8"], &["must be freed"]);
        let two = "\n  a  3 of 3 used, 2 more wanted\n";
        let freed = "\n      2 slots must be freed before it can start";
        let helps = "\nTry again once 2 slots are freed";
        case(3, [other, other], &[two, &format!("{freed}\n"), helps], &["rungate end"]);
        case(3, [own, other], &[two, &format!("{freed}: 1 of yours and 1 of others\n"), helps], &[]);
        let close = "\nClose programs of yours that hold 2 slots";
        case(3, [own, own], &[two, &format!("{freed}, yours\n"), close], &["rungate end"]);
    }

    /// A command line of up to 200 bytes is repeated with its arguments. Of a longer one only the command is
    /// repeated.
    #[test]
    fn a_long_command_line_is_repeated_without_its_arguments() {
        let shown = |length: usize| words(OsStr::new("job"), &["a".repeat(length)]);
        assert_eq!(shown(LONGEST - 4), format!("job {}", "a".repeat(LONGEST - 4)));
        assert_eq!(shown(LONGEST - 3), "job ...");
    }

    /// A first policy is suggested for a command with a plain name. Any other name is left out.
    #[test]
    fn a_first_policy_is_suggested_for_a_plain_name() {
        for name in ["matlab", "/opt/bin/matlab"] {
            assert_eq!(init(OsStr::new(name)), "rungate init matlab");
        }
        assert_eq!(init(OsStr::new("clang-16.0_x")), "rungate init clang-16.0_x");
        for name in ["", "/", ".hidden", "-n", "two words", "größe"] {
            assert_eq!(init(OsStr::new(name)), "rungate init", "{name}");
        }
    }
}
