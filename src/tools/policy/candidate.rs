//! A policy that is being checked: the present one, or one with new texts in some of its files. It has the
//! faults, the results of the tests, and the changes.

use std::{
    cell::OnceCell,
    collections::HashSet,
    ffi::{OsStr, OsString},
    fmt::Write as _,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Step, question, target::names};
use crate::{
    cli::ConsentOptions,
    judge::terms::Member,
    keeper::Holder,
    launch::{Program, Situation, SystemNames},
    policy::{Difference, Faults, Placeholder, Policy, Proposal, Purpose, Repository, Request, Sources},
    sys::{accounts, process},
    text::{Diagnostic, Error, Show, print, stream, table::Table, visible},
    tools::shared::{
        ListedFile, RepositoryFiles,
        rehearsal::{self, Rehearsal, rehearse_one},
        repositories, wanted,
    },
};

/// A policy with its findings.
pub(super) struct Candidate {
    proposals: Vec<Proposal>,
    /// The policy that it would replace, as launches use it: without delegated files that have faults. None
    /// if other files have faults.
    old: Option<Policy>,
    /// The same with the proposals.
    new: Option<Policy>,
    /// All faults with the proposals.
    faults: Option<Faults>,
    /// Faults of the present policy that would affect the same launches as now.
    standing: Vec<Diagnostic>,
    /// Delegated files that are not among the proposals. Their tests are not run, and their rules make no
    /// other test fail: a department could refuse every change, or delay it.
    unasked: HashSet<PathBuf>,
    /// The policy without those, if there are any.
    own: Option<Policy>,
    tests: OnceCell<Vec<TestResult>>,
}

/// The output about a candidate before it is put in place.
pub(super) struct Review {
    /// Why it may not be put in place, in a few words.
    pub(super) obstacle: Option<String>,
    /// Why held slots would not be counted any more, or may not be, so that `--yes` alone is not enough.
    pub(super) uncounted: Option<&'static str>,
}

impl Review {
    /// Whether it can be put in place without a prompt.
    pub(super) fn is_agreed(&self, consent: ConsentOptions) -> bool {
        let ConsentOptions { yes, allow_uncounted } = consent;
        self.obstacle.is_none() && yes && (allow_uncounted || self.uncounted.is_none())
    }
}

impl Candidate {
    /// A policy that replaces nothing.
    pub(super) fn as_it_is(policy: Result<Policy, Faults>) -> Self {
        let (new, faults) = match policy {
            Ok(policy) => (Some(policy), None),
            Err(faults) => (None, Some(faults)),
        };
        let old = Some(Policy::default());
        let (proposals, standing, unasked) = (Vec::new(), Vec::new(), HashSet::new());
        Self { proposals, old, new, faults, standing, unasked, own: None, tests: OnceCell::new() }
    }

    /// The policy as it would be after these steps.
    pub(super) fn after(steps: &[Step], sources: &Sources) -> Self {
        let proposals: Vec<Proposal> = steps.iter().map(Step::proposal).collect();
        // A file that is not there yet replaces nothing.
        let given = sources.given.clone().filter(|given| given.exists());
        let (old, old_faults) = read(&Sources { given, ..sources.clone() }, &[]);
        let (new, faults) = read(sources, &proposals);
        let (before, after) = (sources.delegations_with(&[]), sources.delegations_with(&proposals));
        let stays = |fault: &&Diagnostic| {
            sources.delegation_of(&before, &fault.path) == sources.delegation_of(&after, &fault.path)
        };
        let standing = old_faults.iter().flatten().filter(stays).cloned().collect();
        let is_unasked = |path: &PathBuf| {
            let is_proposed = proposals.iter().any(|proposal| proposal.path == *path);
            !is_proposed && sources.delegation_of(&after, path).is_some()
        };
        let drop_ins = sources.drop_ins();
        let present = names(&drop_ins).into_iter().map(|name| drop_ins.join(name));
        let unasked: HashSet<PathBuf> = present.filter(is_unasked).collect();
        let without = unasked.iter().map(|path| Proposal { path: path.clone(), text: None });
        let without: Vec<Proposal> = proposals.iter().cloned().chain(without).collect();
        let own = (!unasked.is_empty()).then(|| read(sources, &without).0).flatten();
        Self { proposals, old, new, faults, standing, unasked, own, tests: OnceCell::new() }
    }

    /// The new texts.
    pub(super) fn proposals(&self) -> &[Proposal] {
        &self.proposals
    }

    /// The policy; none if others than delegated files have faults.
    pub(super) fn policy(&self) -> Option<&Policy> {
        self.new.as_ref()
    }

    pub(super) fn faults(&self) -> impl Iterator<Item = &Diagnostic> {
        self.faults.iter().flatten()
    }

    /// Its warnings, if there is a policy.
    pub(super) fn warnings(&self) -> &[Diagnostic] {
        self.new.as_ref().map(Policy::warnings).unwrap_or_default()
    }

    /// The results of its tests, if there is a policy.
    pub(super) fn tests(&self) -> &[TestResult] {
        self.tests.get_or_init(|| {
            let (Some(new), now) = (&self.new, Timestamp::now()) else { return Vec::new() };
            let asked = new.scenarios().iter();
            let asked = asked.filter(|scenario| !self.unasked.contains(scenario.place.path()));
            let results = asked.enumerate().map(|(index, scenario)| {
                let own = self.own.as_ref().and_then(|own| Some((own, own.scenarios().get(index)?)));
                let alone = own.map(|(own, scenario)| (own, rehearse_one(own, scenario, now)));
                let passed = alone.filter(|(_, alone)| alone.passed);
                let (policy, played) = passed.unwrap_or_else(|| (new, rehearse_one(new, scenario, now)));
                TestResult::of(policy, &played)
            });
            results.collect()
        })
    }

    /// The tests that failed, in lines for people.
    pub(super) fn failed_tests(&self) -> impl Iterator<Item = &str> {
        self.tests().iter().filter_map(|test| test.failure.as_deref())
    }

    /// Whether it may be put in place: it has neither a fault nor a failed test. Existing faults of other
    /// files do not prevent it if they affect the same launches as now. Otherwise two files with faults could
    /// never be corrected one after the other.
    pub(super) fn is_sound(&self) -> bool {
        self.obstacle().is_none()
    }

    /// Why it may not.
    fn obstacle(&self) -> Option<String> {
        let faults = self.faults().filter(|fault| !self.was_there(fault)).count();
        let what = [(faults, "fault"), (self.failed_tests().count(), "failed test")];
        what.into_iter().find(|(number, _)| *number > 0).map(|(number, what)| counted(number, what))
    }

    fn was_there(&self, fault: &Diagnostic) -> bool {
        let is_proposed = self.proposals.iter().any(|proposal| proposal.path == fault.path);
        !is_proposed && self.standing.iter().any(|standing| is_same(standing, fault))
    }

    /// Where the first fault is, for editors that can be sent to a line.
    pub(super) fn first_line(&self) -> Option<usize> {
        let of_ours = |fault: &&Diagnostic| self.proposals.iter().any(|ours| ours.path == fault.path);
        self.faults().find(of_ours)?.line_column().map(|(line, _)| line)
    }

    /// Shows its faults and the changes.
    pub(super) fn review(&self, situation: &Situation) -> Result<Review, Error> {
        let complaints = self.complaints();
        if !complaints.is_empty() {
            stream::complain(&complaints.join("\n"));
        }
        print(&self.changes(situation))?;
        let uncounted = match (&self.old, &self.new) {
            (Some(old), Some(new)) => {
                let forgotten = describe(old, new, situation);
                print(&forgotten)?;
                (!forgotten.is_empty()).then_some(question::UNCOUNTED)
            }
            _ => Some(question::PERHAPS_UNCOUNTED),
        };
        Ok(Review { obstacle: self.obstacle(), uncounted })
    }

    /// Its faults and new warnings, each with its line.
    fn complaints(&self) -> Vec<String> {
        let known = self.old.as_ref().map_or(&[][..], Policy::warnings);
        let is_new = |warning: &&Diagnostic| !known.iter().any(|known| is_same(known, warning));
        let warnings = self.warnings().iter().filter(is_new).map(with_lines);
        let faults = self.faults().map(with_lines);
        let remain = (self.faults.is_some() && self.is_sound()).then(|| {
            let blind = " Because of them, no test was run, and changes are not shown.";
            let blind = if self.new.is_none() { blind } else { "" };
            format!("These faults already exist in other files.{blind}")
        });
        faults.chain(remain).chain(warnings).chain(self.failed_tests().map(str::to_owned)).collect()
    }

    /// The changes: in the policy, and for running programs.
    fn changes(&self, situation: &Situation) -> String {
        let Some(new) = &self.new else { return String::new() };
        let nothing = Policy::default();
        let old = self.old.as_ref().unwrap_or(&nothing);
        let mut text = Difference::between(old, new).to_string();
        if self.old.is_none() {
            text.insert_str(0, "The current policy has faults, so all of the new one is shown.\n");
        }
        let _ = write!(text, "{}", Present::of(old, situation).refused_by(new, old));
        text
    }
}

/// The policy with these texts, without delegated files that have faults, and the faults of all files.
fn read(sources: &Sources, proposals: &[Proposal]) -> (Option<Policy>, Option<Faults>) {
    let purpose = Purpose::Check(&SystemNames);
    match Policy::propose(sources, proposals, purpose) {
        Ok(policy) => (Some(policy), None),
        Err(faults) => (Policy::propose_sound(sources, proposals, purpose).ok(), Some(faults)),
    }
}

pub(super) struct TestResult {
    json: Value,
    /// The expected and the actual result, and that of every rule.
    failure: Option<String>,
}

impl TestResult {
    fn of(policy: &Policy, played: &Rehearsal<'_>) -> Self {
        let Rehearsal { scenario, passed, expected, got, trace, beside } = played;
        let failure = || {
            let mut text = format!("{}: test \"{}\" failed", scenario.place, visible(&scenario.name));
            let _ = write!(text, "\n  expected  {}\n  got       {}", visible(expected), visible(got));
            for table in beside {
                let _ = write!(text, "\n  use       {}: the launch does not need it", visible(table));
            }
            for entry in trace {
                let rule = visible(entry.rule.shown_name());
                let _ = write!(text, "\n  rule      {rule}: {}", entry.describe(policy));
            }
            text
        };
        let json = json!({
            "name": scenario.name,
            "path": visible(scenario.place.path()),
            "line": scenario.place.line(),
            "passed": passed,
            "expected": expected,
            "got": got,
        });
        Self { json, failure: (!passed).then(failure) }
    }

    /// For scripts.
    pub(super) fn to_json(&self) -> Value {
        self.json.clone()
    }
}

/// A fault or a warning with its lines.
pub(super) fn with_lines(diagnostic: &Diagnostic) -> String {
    diagnostic.to_string().trim_end().to_owned()
}

/// `1 fault`, `2 faults`.
pub(super) fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Whether two findings are about the same, on any line.
fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    (&one.path, one.code, &one.message) == (&other.path, other.code, &other.message)
}

// Holders of slots that a new policy would not count: no repository of it has the place where they are held.

/// A line for each place in which slots are held that would not be counted, or may be.
fn describe(old: &Policy, new: &Policy, situation: &Situation) -> String {
    let (before, after) = (tables(old, situation), tables(new, situation));
    let is_counted = |(known, file): &(&Repository, ListedFile)| {
        let mut those = after.iter().filter(|(_, new)| place(new) == place(file));
        those.any(|(by, new)| is_for_members_of((by, &new.values), (known, &file.values)))
    };
    let mut text = String::new();
    for (_, file) in before.iter().filter(|one| !is_counted(one)) {
        let title = visible(file.title());
        let _ = match file.survey().map(|survey| survey.used) {
            Ok(0) => Ok(()),
            Ok(used) => {
                let (slots, are) = if used == 1 { ("slot", "is") } else { ("slots", "are") };
                let place =
                    file.path().map_or_else(|| "the agent".to_owned(), |path| path.shown().to_string());
                writeln!(text, "{used} {slots} of {title} {are} held in {place}, and would not be counted.")
            }
            Err(error) => {
                writeln!(text, "Slots of {title} may be held, and would not be counted: {error}.")
            }
        };
    }
    if !text.is_empty() {
        text.push_str("Until these programs end, more can run than the limit allows.\n");
    }
    text
}

/// The tables of a policy, each with its repository.
fn tables<'p>(policy: &'p Policy, situation: &Situation) -> Vec<(&'p Repository, ListedFile)> {
    let all = wanted(policy, situation, &[]).unwrap_or_default();
    let of = |(known, listed): (&'p Repository, RepositoryFiles)| {
        listed.files.into_iter().map(move |file| (known, file))
    };
    policy.repositories().iter().zip(all).flat_map(of).collect()
}

/// Whether a table is also that of the same member for this repository: a file of the user 1000 also has the
/// name of a file of the command "1000". This one may distinguish less, unless the name was cut: then it ends
/// with a hash of all values.
fn is_for_members_of(this: (&Repository, &[Member]), other: (&Repository, &[Member])) -> bool {
    let (own, others) = (values(this), values(other));
    let is_cut = others.iter().any(|(_, value)| value.is_none());
    own == others || !is_cut && own.iter().all(|one| others.contains(one))
}

/// What the values in the name of a table are, and these; none where the name was cut.
fn values<'t>(
    (known, values): (&'t Repository, &'t [Member]),
) -> Vec<(Option<&'t Placeholder>, Option<&'t Member>)> {
    known.placeholders().enumerate().map(|(index, of)| (kind(of), values.get(index))).collect()
}

/// What the members are. Values that callers choose are the same by any name.
fn kind(placeholder: &Placeholder) -> Option<&Placeholder> {
    match placeholder {
        Placeholder::Argument(_)
        | Placeholder::Arguments
        | Placeholder::Environment(_)
        | Placeholder::Captured(_) => None,
        fixed => Some(fixed),
    }
}

/// The table of the slots, as listings distinguish tables.
fn place(file: &ListedFile) -> (Option<&Path>, Option<&str>) {
    (file.path(), file.table())
}

// The visible running launches, each with the facts that a policy uses.

struct Running {
    pid: i32,
    uid: u32,
    groups: Vec<u32>,
    command: OsString,
    arguments: Vec<OsString>,
    program: Program,
    directory: PathBuf,
    environment: Vec<OsString>,
    since: Option<SystemTime>,
}

/// All of them, in the order in which they came.
struct Present<'s> {
    situation: &'s Situation,
    running: Vec<Running>,
}

impl<'s> Present<'s> {
    /// The holders of a policy's slots.
    fn of(policy: &Policy, situation: &'s Situation) -> Self {
        let repositories = repositories::wanted(policy, situation, &[]).unwrap_or_default();
        let surveys = repositories.iter().flat_map(|repository| &repository.files).map(ListedFile::survey);
        let mut running: Vec<Running> = Vec::new();
        let holders: Vec<Holder> = surveys.filter_map(Result::ok).flat_map(|survey| survey.holders).collect();
        for holder in holders.iter().flat_map(Holder::all) {
            let is_known = running.iter().any(|known| Some(known.pid) == holder.pid);
            running.extend(Running::of(holder, policy, situation).filter(|_| !is_known));
        }
        running.sort_by_key(|running| running.since);
        Self { situation, running }
    }

    /// The launches that only one of two policies would refuse, in lines for people; may be empty.
    fn refused_by(&self, new: &Policy, old: &Policy) -> String {
        let (by_new, by_old) = (self.judge(new), self.judge(old));
        let all = self.running.iter().zip(by_new).zip(by_old);
        let newly: Vec<(&Running, String)> = all
            .filter(|(_, by_old)| by_old.is_none())
            .filter_map(|((running, why), _)| why.map(|why| (running, why)))
            .collect();
        if newly.is_empty() {
            return String::new();
        }
        let mut table = Table::new(&["  USER", ">PID", "COMMAND", "WHY"]);
        for (running, why) in &newly {
            let user = format!("  {}", accounts::shown(running.uid));
            table.row([user, running.pid.to_string(), visible(&running.command), visible(why)]);
        }
        format!(
            "Of {} that run now, {} would be refused if they started again. None is ended.\n{}",
            self.running.len(),
            newly.len(),
            table.render()
        )
    }

    fn judge(&self, policy: &Policy) -> Vec<Option<String>> {
        let now = Timestamp::now();
        let variables = |running| move |name: &str| Running::variable(running, name);
        let environments: Vec<_> = self.running.iter().map(variables).collect();
        let pairs = self.running.iter().zip(&environments);
        let requests: Vec<Request<'_>> =
            pairs.map(|(running, environment)| request(running, environment, self.situation, now)).collect();
        rehearsal::refused(policy, &requests)
    }
}

fn request<'a>(
    running: &'a Running,
    environment: &'a dyn Fn(&str) -> Option<OsString>,
    situation: &'a Situation,
    now: Timestamp,
) -> Request<'a> {
    Request {
        typed: &running.command,
        arguments: &running.arguments,
        path: &running.program.path,
        canonical: &running.program.canonical,
        uid: running.uid,
        gids: &running.groups,
        host: &situation.host,
        directory: &running.directory,
        environment,
        now,
        cpus: &accounts::processors,
        runtime: Path::new("/run/user/rungate"),
        names: &SystemNames,
    }
}

impl Running {
    /// A holder on this host whose command is known.
    fn of(holder: &Holder, policy: &Policy, situation: &Situation) -> Option<Self> {
        let (pid, uid) = (holder.pid?, holder.uid?);
        let command = OsString::from(holder.command.as_ref()?);
        if holder.host.as_ref().is_some_and(|host| **host != *situation.host) {
            return None;
        }
        let account = accounts::account_of_uid(uid).ok()??;
        let directory = process::directory(pid).unwrap_or_default();
        let program = match policy.executable(&command) {
            Some(program) => Program::supposed(program.as_os_str(), &directory),
            None => Program::find(&command, &directory)
                .unwrap_or_else(|_| Program::supposed(&command, &directory)),
        };
        Some(Self {
            pid,
            uid,
            groups: accounts::groups_of(&account).ok()?,
            arguments: arguments(process::command_line(pid), &command),
            environment: process::environment(pid),
            command,
            program,
            directory,
            since: holder.since,
        })
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        let value = |entry: &OsString| {
            let value = entry.as_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(OsStr::from_bytes(value).to_owned())
        };
        self.environment.iter().find_map(value)
    }
}

/// The arguments after the command; an interpreter may precede it.
fn arguments(words: Vec<OsString>, command: &OsStr) -> Vec<OsString> {
    let is_it = |word: &OsString| Path::new(word).file_name() == Path::new(command).file_name();
    let at = words.iter().position(is_it).unwrap_or_default();
    words.into_iter().skip(at + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(keys: &str) -> Policy {
        let text = format!("[repository.matlab]\nlimit = 5\n{keys}\n[[rule]]\nacquire = [\"matlab\"]\n");
        Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"))
    }

    /// Whether the file with this name is that of the same member before and afterwards.
    fn is_for_same_members(before: &str, after: &str, name: &str) -> bool {
        let [old, new] = [before, after].map(policy);
        let [old, new] = [&old, &new].map(|policy| &policy.repositories()[0]);
        let known = old.read_name(0, name).unwrap_or_else(|| panic!("it has this file: {name}"));
        new.read_name(0, name).is_some_and(|read| is_for_members_of((new, &read), (old, &known)))
    }

    /// The values in a name count, and what they are. A repository that distinguishes less may have the same
    /// file as one that distinguishes more.
    #[test]
    fn a_file_is_that_of_the_same_values() {
        let cut = format!("matlab.%2F{:x<168}-{:016x}.lock", "", 1);
        for (before, after, name, is_same) in [
            ("per = 'user'", "path = 'matlab.{uid}.lock'", "matlab.4711.lock", true),
            ("per = 'user'", "per = 'command'", "matlab.4711.lock", false),
            ("per = ['user', 'command']", "per = 'command'", "matlab.4711,matlab.lock", false),
            ("per = ['user', 'host']", "per = 'host'", "matlab.4711,ws17.lock", false),
            ("path = '{uid}.{command}.lock'", "path = '{command}.lock'", "4711.matlab.lock", false),
            ("path = '{command}.{uid}.lock'", "path = 'matlab.{uid}.lock'", "matlab.4711.lock", true),
            ("path = 'matlab.{uid}.lock'", "path = '{command}.{uid}.lock'", "matlab.4711.lock", false),
            ("per = ['directory', 'user']", "path = 'matlab.{cwd},{uid}.lock'", &cut, true),
            ("per = ['directory', 'user', 'host']", "per = ['directory', 'user']", &cut, false),
        ] {
            assert_eq!(is_for_same_members(before, after, name), is_same, "{before}, {after}");
        }
    }
}
