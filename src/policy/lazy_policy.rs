//! A policy as a launch uses it: found, and not yet read to the end. First the program of a command is
//! determined, and then the rules that apply to it.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Acquisition, Affected, At, Delegation, EvalContext, FILE, FORBIDDEN, Faults, Findings, Found, Hours,
    Invocation, Item, LayerFile, LayerKind, LayerText, Nodes, Placeholder, Policy, Proposal, Purpose,
    RelevantInputs, Repository, Request, Reservation, Section, Selectors, Sources, Stamps, Tape, WrittenFile,
    fault::Fault, repository::limits::Whom, selector::inputs_of, source, syntax, times::file_of_zone,
    validation, warning::Warning,
};
use crate::judge::terms::Names;
use crate::text::{Diagnostic, SourceText};

/// The files of a policy, and their settings for programs.
pub struct LazyPolicy<'s> {
    sources: &'s Sources,
    delegations: Vec<Delegation>,
    files: ParsedFiles,
    programs: HashMap<String, PathBuf>,
}

impl<'s> LazyPolicy<'s> {
    /// Finds the files, without those that are delegated, which name no programs.
    pub fn open(sources: &'s Sources) -> Self {
        let mut found = sources.read(&|_| false);
        let delegations = std::mem::take(&mut found.delegations);
        let files = ParsedFiles::of(found);
        LazyPolicy { sources, delegations, programs: files.programs(), files }
    }

    /// Whether all files are empty.
    pub fn is_empty(&self) -> bool {
        self.files.nodes.is_empty()
    }

    /// The program that `[command.NAME] exec` names for a command.
    pub fn executable(&self, command: &OsStr) -> Option<&Path> {
        self.programs.get(command.to_str()?).map(PathBuf::as_path)
    }

    /// The part of the policy that can matter to the command of this request. `None` if the policy was
    /// changed since it was opened, because then the program may be a different one.
    pub fn policy_for(
        self,
        command: &Invocation<'_>,
        request: &Request<'_>,
    ) -> Result<Option<Policy>, Faults> {
        let (sources, is_root) = (self.sources, self.sources.caller == 0);
        let facts = EvalContext::new(request, []);
        let is_wanted = |delegation: &Delegation| delegation.may_be_for(&facts);
        if !self.delegations.iter().any(is_wanted) {
            return self.files.policy_of(sources, Some(command)).map(Some);
        }
        let found = sources.read(&is_wanted);
        if !found.stamps.are_those_of_everybody(&self.files.stamps) {
            return Ok(None);
        }
        let faults = match Policy::of_found(found, is_root, Purpose::Launches(Some(command))) {
            Ok(policy) => return Ok(Some(policy)),
            Err(faults) => faults,
        };
        // Files that are not delegated have no faults, or their faults apply to all users.
        let policy = self.files.policy_of(sources, Some(command))?;
        let is_delegated = |fault: &Diagnostic| {
            sources.is_drop_in(&fault.path)
                && policy.delegations.iter().any(|delegation| delegation.is_of(&fault.path))
        };
        Err(faults.affecting(Affected::Department, is_delegated))
    }

    /// The faults of the whole, for a caller without a request.
    pub fn faults(self) -> Result<(), Faults> {
        self.files.policy_of(self.sources, None).map(drop)
    }
}

impl Policy {
    /// Validates text in memory.
    pub fn of_layers_for(
        layers: Vec<LayerText>,
        caller_is_root: bool,
        purpose: Purpose<'_>,
    ) -> Result<Policy, Faults> {
        Self::of_found(Found { layers, ..Found::default() }, caller_is_root, purpose)
    }

    pub(super) fn of_found(
        found: Found,
        caller_is_root: bool,
        purpose: Purpose<'_>,
    ) -> Result<Policy, Faults> {
        ParsedFiles::of(found).policy(caller_is_root, purpose)
    }
}

/// The maximum size of a delegated file, in KiB. The agent reads it for all users, and whatever it has costs
/// time and memory.
const LONGEST_DELEGATED: usize = 256;

// From the files to a policy: each is parsed, and then all are validated together. For a launch, all rules
// are checked, but only those for its command are kept.

/// Files that were read, and their faults so far.
struct ParsedFiles {
    kinds: Vec<LayerKind>,
    layer_of_file: Vec<usize>,
    /// The files with a text, then the unusable ones.
    files: Vec<Arc<SourceText>>,
    nodes: Vec<Nodes>,
    findings: Findings,
    stamps: Stamps,
    /// Whether the first file is not the system's main file.
    lacks_main: bool,
}

impl ParsedFiles {
    /// Where there is a policy of the system, faults of files that the caller adds are the caller's.
    fn policy_of(self, sources: &Sources, command: Option<&Invocation<'_>>) -> Result<Policy, Faults> {
        let has_system = self.kinds.contains(&LayerKind::System);
        let is_callers = |fault: &Diagnostic| {
            let mut added = sources.given.iter().chain(&sources.own);
            has_system && added.any(|path| *path == fault.path) && !sources.is_of_system(&fault.path)
        };
        let read = self.policy(sources.caller == 0, Purpose::Launches(command));
        read.map_err(|faults| faults.affecting(Affected::Caller, is_callers))
    }

    fn of(found: Found) -> Self {
        let findings = Findings::default();
        let kinds: Vec<LayerKind> = found.layers.iter().map(|layer| layer.kind).collect();
        let mut files: Vec<Arc<SourceText>> = Vec::new();
        let mut layer_of_file = Vec::new();
        for (index, layer) in found.layers.into_iter().enumerate() {
            layer_of_file.extend(std::iter::repeat_n(index, layer.files.len()));
            files.extend(layer.files.into_iter().map(Arc::new));
        }
        let read = files.len();
        report(found.faults, found.skipped, &mut files, &findings);
        for (file, source) in files.iter().enumerate().take(read) {
            // The owner of a delegated drop-in may begin with an empty one.
            if kinds[layer_of_file[file]] != LayerKind::Delegated && says_nothing(source.text()) {
                findings.fault(At::whole(file), Fault::Empty);
            }
        }
        let parse = |(file, source): (usize, &Arc<SourceText>)| {
            let is_delegated = kinds[layer_of_file[file]] == LayerKind::Delegated;
            if is_delegated && source.text().len() > LONGEST_DELEGATED * 1024 {
                let reason = format!("is longer than {LONGEST_DELEGATED} KiB, as no delegated file can be");
                findings.fault(At::whole(file), Fault::Unreadable { reason });
                return syntax::parse(file, "", &findings);
            }
            syntax::parse(file, source.text(), &findings)
        };
        let nodes = files[..read].iter().enumerate().map(parse).collect();
        let Found { stamps, lacks_main, .. } = found;
        ParsedFiles { kinds, layer_of_file, files, nodes, findings, stamps, lacks_main }
    }

    /// The programs behind commands; the last one counts.
    fn programs(&self) -> HashMap<String, PathBuf> {
        let mut programs = HashMap::new();
        for (source, nodes) in self.files.iter().zip(&self.nodes) {
            let tape = Tape { text: source.text(), nodes };
            for command in tape.root().get("command").into_iter().flat_map(Item::items) {
                let program = command.get("exec").and_then(Item::text);
                programs.extend(program.map(|program| (command.key().to_owned(), program.into())));
            }
        }
        programs
    }

    fn policy(self, caller_is_root: bool, purpose: Purpose<'_>) -> Result<Policy, Faults> {
        let (policy, faults) = self.validate(caller_is_root, purpose);
        faults.map_or(Ok(policy), Err)
    }

    fn validate(self, caller_is_root: bool, purpose: Purpose<'_>) -> (Policy, Option<Faults>) {
        let ParsedFiles { kinds, layer_of_file, mut files, nodes, findings, mut stamps, lacks_main } = self;
        let tapes: Vec<Tape<'_>> =
            files.iter().zip(&nodes).map(|(source, nodes)| Tape { text: source.text(), nodes }).collect();
        let layer_files = tapes.iter().enumerate().map(|(index, tape)| {
            let layer = layer_of_file[index];
            let section = Section::new(tape.root(), At::whole(index), &FILE, &findings);
            if kinds[layer] == LayerKind::Delegated {
                section.forbid(&FORBIDDEN, |key| Fault::DelegatedKey { key });
            }
            let written = WrittenFile::read(&section);
            let is_main = index == 0 && kinds[layer] == LayerKind::System && !lacks_main;
            LayerFile { source: Arc::clone(&files[index]), layer, is_main, section, written }
        });
        let layer_files: Vec<LayerFile<'_>> = layer_files.collect();
        // Before validation reads zones: one that is replaced at that moment is seen to have changed.
        let zones = layer_files.iter().filter_map(|file| {
            let named = file.written.defaults.as_ref().and_then(|defaults| defaults.get("time_zone"));
            let named = named.and_then(|value| value.as_text());
            (named.is_some() || file.written.asks_for_the_time).then_some(named)
        });
        for zone in zones.collect::<BTreeSet<Option<&str>>>() {
            stamps.see_zone(file_of_zone(zone));
        }
        let policy = validation::validate(&kinds, caller_is_root, &layer_files, &findings, purpose);
        drop(layer_files);
        drop(tapes);
        let (warnings, faults) = match findings.close(&files) {
            Ok(warnings) => (warnings, None),
            Err(faults) => (Vec::new(), Some(faults)),
        };
        files.truncate(nodes.len());
        (Policy { files, warnings, stamps, ..policy }, faults)
    }
}

/// Reports what cannot be used. A placeholder is appended for a file that has no text, so that the indices of
/// the others stay.
fn report(
    faults: Vec<(PathBuf, Fault)>,
    skipped: Vec<(PathBuf, String)>,
    files: &mut Vec<Arc<SourceText>>,
    findings: &Findings,
) {
    let mut whole = |path: PathBuf| {
        files.push(Arc::new(SourceText::new(path, String::new())));
        At::whole(files.len() - 1)
    };
    for (path, fault) in faults {
        findings.fault(whole(path), fault);
    }
    for (path, name) in skipped {
        findings.warning(whole(path), Warning::SkippedFile { name });
    }
}

/// Whether it has nothing but comments: usually a file that was cut short, because every policy has the
/// version.
fn says_nothing(text: &str) -> bool {
    text.lines().all(|line| matches!(line.trim_start().bytes().next(), None | Some(b'#')))
}

// Policies that are not in force: files that are named instead, or that would replace it.

impl Policy {
    /// Reads and checks every file as if these texts were at their paths.
    pub fn propose(
        sources: &Sources,
        proposals: &[Proposal],
        purpose: Purpose<'_>,
    ) -> Result<Policy, Faults> {
        Self::of_found(sources.read_with(proposals, &|_| true), sources.caller == 0, purpose)
    }

    /// Reads and checks files that were named one by one, as if together they were the system's policy.
    pub fn check_files(paths: &[PathBuf], caller: u32, names: &dyn Names) -> Result<Policy, Faults> {
        let mut policy = Self::of_found(source::read_files(paths, caller), true, Purpose::Check(names))?;
        // It is not known yet to whom such a file belongs, and in a user's own policy {runtime} is right.
        policy.warnings.retain(|warning| warning.code != Warning::RuntimeOfCaller.code());
        Ok(policy)
    }

    /// Reads the policy that a path leads to, a file or a directory with files, as if it were the system's.
    pub fn at(path: &Path, caller: u32) -> Result<Policy, Faults> {
        Self::of_found(source::read_place(path, caller), true, Purpose::Review)
    }
}

// The inputs that a policy uses. Launches that differ only in other inputs are equal for it.

impl Policy {
    /// The inputs that it uses, or may use.
    pub fn relevant_inputs(&self) -> RelevantInputs {
        let delegations = self.delegations.iter().map(|delegation| inputs_of(&delegation.users));
        let selectors =
            self.rules.iter().flat_map(|rule| std::iter::once(&rule.selectors).chain(&rule.except));
        let mut terms = self.rules.iter().flat_map(|rule| &rule.acquire).flat_map(Acquisition::terms);
        let counted = terms.find_map(|terms| terms.slots_from.as_ref().map(|_| RelevantInputs::ARGUMENTS));
        delegations
            .chain(selectors.map(Selectors::inputs))
            .chain(counted)
            .chain(self.repositories.iter().map(of_repository))
            .fold(RelevantInputs::NONE, RelevantInputs::or)
    }

    /// The hours of the day, in the policy's time zone.
    pub fn hours(&self) -> Hours {
        Hours::in_zone(self.time_zone())
    }
}

fn of_repository(repository: &super::Repository) -> RelevantInputs {
    let all = repository.path.placeholders().chain(repository.sharing.placeholders());
    let placeholders = all.map(|placeholder| match placeholder {
        Placeholder::Directory => RelevantInputs::DIRECTORIES,
        Placeholder::Argument(_) | Placeholder::Arguments => RelevantInputs::ARGUMENTS,
        Placeholder::Environment(_) => RelevantInputs::ENVIRONMENT,
        Placeholder::Host => RelevantInputs::HOSTS,
        _ => RelevantInputs::NONE,
    });
    let whom = repository.limits.iter().flat_map(|other| &other.whom).map(|whom| match whom {
        Whom::Hosts(hosts) => inputs_of(hosts),
        Whom::Directories(directories) => inputs_of(directories),
        Whom::Users(users) => inputs_of(users),
        Whom::Commands(_) | Whom::Groups(_) | Whom::Value(_) => RelevantInputs::NONE,
    });
    let reserved = repository.reservations().iter().map(Reservation::inputs);
    // If slots have names, a host may have some of them out of order. Who takes over a lingering slot, and
    // whose use outside it is, depends on the host.
    let is_by_host = repository.names.most().is_some()
        || repository.sharing.linger().is_some()
        || repository.outside.is_some();
    let named = if is_by_host { RelevantInputs::HOSTS } else { RelevantInputs::NONE };
    placeholders.chain(whom).chain(reserved).fold(named, RelevantInputs::or)
}

// What can be shown of a policy with faults: its repositories, except those that a fault may have changed.
// It is not used for launches, so it has no rules.

/// Tables whose faults change no repository.
const HARMLESS: [&str; 5] = ["rule", "test", "command", "log", "delegate"];

impl Policy {
    /// The policy; or, if it has faults, its sound repositories and the faults.
    pub fn salvage(sources: &Sources) -> (Policy, Option<Faults>) {
        let faults = match Self::load_sound(sources) {
            Ok(policy) => return (policy, None),
            Err(faults) => faults,
        };
        let found = ParsedFiles::of(sources.read(&|_| true));
        let (read, _) = found.validate(sources.caller == 0, Purpose::Launches(None));
        let Policy { layers, mut repositories, files, .. } = read;
        let texts: Vec<(&Path, &str)> = files.iter().map(|file| (file.path(), file.text())).collect();
        repositories.retain(|known| !faults.iter().any(|fault| may_change(fault, known, &texts, sources)));
        (Policy { layers, repositories, files, ..Policy::default() }, Some(faults))
    }
}

/// Whether a fault may have changed a repository.
fn may_change(fault: &Diagnostic, known: &Repository, texts: &[(&Path, &str)], sources: &Sources) -> bool {
    let (file, of) = (fault.path.as_path(), known.place.path());
    let text = texts.iter().find(|(path, _)| *path == file).map(|(_, text)| text);
    let (Some(text), Some((line, _))) = (text, fault.line_column()) else { return false };
    match repositories_at(text, line) {
        Some(names) => of == file && names.contains(&known.name()),
        // Defaults and aliases are the layer's, and only the system's layer has several files.
        None => of == file || (sources.is_of_system(of) && sources.is_of_system(file)),
    }
}

/// The repositories to whose tables a line belongs; none if it may belong to a part that all have in common.
fn repositories_at(text: &str, line: usize) -> Option<Vec<&str>> {
    let headers = text.lines().enumerate().filter_map(|(index, text)| Some((index + 1, header(text)?)));
    let before: Vec<(usize, &str)> = headers.take_while(|(at, _)| *at <= line).collect();
    // The keys below a damaged header belong to the table before it.
    let count = if before.last()?.0 == line { 2 } else { 1 };
    let mut found = Vec::new();
    for (_, header) in before.iter().rev().take(count) {
        let mut names = header.split('.').map(|name| name.trim().trim_matches(['"', '\'']));
        match (names.next(), names.next()) {
            (Some(table), _) if HARMLESS.contains(&table) => {}
            (Some("repository"), Some(name)) => found.push(name),
            _ => return None,
        }
    }
    Some(found)
}

/// The name in a line that opens a table.
fn header(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix('[')?.trim_start_matches('[');
    Some(name.split([']', '#']).next().unwrap_or(name).trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Rule;

    /// A delegated file has 256 KiB at most, and one that is longer is not even parsed.
    #[test]
    fn a_delegated_file_is_only_so_long() {
        let faults = |kind: LayerKind, length: usize| {
            let text = format!("unknown = 1\n{}", "#".repeat(length - "unknown = 1\n".len()));
            let files = vec![SourceText::new("/p.d/20-cad.toml", text)];
            let faults = Policy::of_layers(vec![LayerText { kind, files }], false).expect_err("a fault");
            faults.iter().map(Diagnostic::headline).collect::<Vec<_>>()
        };
        let parsed = "/p.d/20-cad.toml:1:1: unknown key \"unknown\" in a policy [unknown-key]";
        for (kind, length) in [(LayerKind::Delegated, 262_144), (LayerKind::System, 262_145)] {
            assert_eq!(faults(kind, length), [parsed], "{length}");
        }
        let reason = "cannot be read: is longer than 256 KiB, as no delegated file can be [unreadable-file]";
        assert_eq!(faults(LayerKind::Delegated, 262_145), [format!("/p.d/20-cad.toml: {reason}")]);
    }

    #[test]
    fn a_line_belongs_to_the_table_above_it() {
        let text = "version = 1\n[alias]\na = 1\n[repository.one]\nlimit = 1\n[repository.\"two\"\nlimit = 2\n\
                    [[rule]]\nacquire = [\n[repository.one.limits]\n";
        let names = |line| repositories_at(text, line);
        assert_eq!((names(1), names(3)), (None, None));
        assert_eq!(names(5), Some(vec!["one"]));
        assert_eq!(names(6), Some(vec!["two", "one"]));
        assert_eq!(names(9), Some(Vec::new()));
        assert_eq!(names(10), Some(vec!["one"]));
    }

    /// A fault is the caller's if it is in a file that the caller adds. The directory of the drop-ins is the
    /// system's, also if the caller names it.
    #[test]
    fn faults_of_the_system_are_not_those_of_the_caller() {
        let affected = |given: &str, faulty: &[&str]| {
            let sources = Sources {
                system: "/etc/p.toml".into(),
                given: Some(given.into()),
                own: Some("/home/own.toml".into()),
                ..Sources::system(1000)
            };
            let files = vec![SourceText::new("/etc/p.toml", "version = 1\n")];
            let untrusted =
                |path: &&str| (PathBuf::from(path), Fault::Untrusted { reason: "open".to_owned() });
            let found = Found {
                layers: vec![LayerText { kind: LayerKind::System, files }],
                faults: faulty.iter().map(untrusted).collect(),
                ..Found::default()
            };
            let read = ParsedFiles::of(found).policy_of(&sources, None);
            let faults = read.expect_err("files that are not trusted");
            assert_eq!(faults.count(), faulty.len(), "{faults}");
            faults.affected()
        };
        let given = "/home/given.toml";
        assert_eq!(affected(given, &[given]), Affected::Caller);
        assert_eq!(affected(given, &[given, "/home/own.toml"]), Affected::Caller);
        for faulty in ["/etc/p.toml", "/etc/p.d", "/etc/p.d/1.toml"] {
            assert_eq!(affected(given, &[faulty]), Affected::Everybody, "{faulty}");
            assert_eq!(affected(given, &["/home/own.toml", faulty]), Affected::Everybody, "{faulty}");
            assert_eq!(affected(faulty, &[faulty]), Affected::Everybody, "{faulty} is named");
        }
    }

    /// A policy that is added to the system's loosens it only for root. That is so too if both are proposed.
    #[test]
    fn what_is_proposed_loosens_only_for_root() {
        let proposal = |path: &str, text: &str| Proposal { path: path.into(), text: Some(text.into()) };
        let proposals = [
            proposal("/nowhere/policy.toml", "version = 1\n"),
            proposal("/nowhere/own.toml", "[defaults]\nenforce = false\n"),
        ];
        let read = |caller: u32| {
            let sources = Sources {
                system: "/nowhere/policy.toml".into(),
                own: Some("/nowhere/own.toml".into()),
                ..Sources::system(caller)
            };
            let codes = |read: Result<Policy, Faults>| match read {
                Ok(_) => Vec::new(),
                Err(faults) => faults.iter().map(|fault| fault.code).collect::<Vec<_>>(),
            };
            (
                codes(Policy::propose(&sources, &proposals, Purpose::Review)),
                codes(Policy::propose_sound(&sources, &proposals, Purpose::Review)),
            )
        };
        assert_eq!(read(0), (vec![], vec![]));
        assert_eq!(read(1), (vec!["loosens"], vec!["loosens"]));
    }

    /// A delegated file whose only fault seems to follow from a fault of another one is left out too.
    #[test]
    fn a_fault_that_another_file_hides_stops_nobody_else() {
        let (main, cad, eda) = ("policy.toml", "policy.d/20-cad.toml", "policy.d/30-eda.toml");
        let keys = "owner = 1\nusers = [\"*\"]\ncommands = [\"*\"]\n";
        let delegations = ["20-cad", "30-eda"].map(|name| format!("[delegate.\"{name}.toml\"]\n{keys}"));
        let uses = "[[rule]]\nusers = [\"@staff\"]\naction = \"deny\"\n";
        let proposal = |(name, text): (&str, &str)| {
            let path = Path::new("/nowhere").join(name);
            Proposal { path, text: Some(text.to_owned()) }
        };
        let sources = Sources { system: "/nowhere/policy.toml".into(), ..Sources::system(0) };
        let delegations = delegations.concat();
        for misspelt in ["[aliass.staff]\n", "staff = oops\n"] {
            let proposals = [(main, delegations.as_str()), (cad, misspelt), (eda, uses)].map(proposal);
            let policy = Policy::propose_sound(&sources, &proposals, Purpose::Review);
            let policy = policy.unwrap_or_else(|faults| panic!("{faults}"));
            let withheld: Vec<(&str, &str)> = policy
                .withheld()
                .iter()
                .map(|(delegation, faults)| (delegation.file(), faults.iter().next().expect("a fault").code))
                .collect();
            let [first, second] = withheld.as_slice() else { panic!("{withheld:?}") };
            assert!(first.0 == "20-cad.toml" && ["unknown-key", "syntax"].contains(&first.1), "{first:?}");
            assert_eq!(*second, ("30-eda.toml", "unknown-alias"));
        }
    }

    /// A rule that is left out for a launch keeps its name: another file's rule of that name is shown with
    /// its file.
    #[test]
    fn a_rule_that_is_left_out_keeps_its_name() {
        let rule = |keys: &str| format!("[[rule]]\nacquire = []\n{keys}\n");
        let name = |name: &str| rule(&format!("name = \"{name}\"\ncommands = [\"z\"]"));
        let main = ["", "name = \"n\"", ""].map(|keys| rule(&format!("commands = [\"x\"]\n{keys}")));
        let drop_in = ["rule 1", "rule 2", "rule 3", "rule 4", "n", "m"].map(name);
        let files = [("/p.toml", main.concat()), ("/p.d/10.toml", drop_in.concat())];
        let files = files.into_iter().map(|(path, text)| SourceText::new(path, text)).collect();
        let layers = vec![LayerText { kind: LayerKind::System, files }];
        let path = Path::new("/usr/bin/z");
        let command = Invocation::new(OsStr::new("z"), path, path);
        let policy = Policy::of_layers_for(layers, false, Purpose::Launches(Some(&command)));
        let policy = policy.unwrap_or_else(|faults| panic!("{faults}"));
        let shown: Vec<&str> = policy.rules().iter().map(Rule::shown_name).collect();
        assert_eq!(shown, ["rule 1 (10.toml)", "rule 2", "rule 3 (10.toml)", "rule 4", "n (10.toml)", "m"]);
    }

    /// The times of rules that are left out for a launch count for what changes decisions.
    #[test]
    fn a_rule_that_is_left_out_keeps_its_times() {
        let when = "commands = [\"x\"]\nwhen = [\"08:00-18:00\"]\nexcept = [{ when = [\"12:00-13:00\"] }]";
        let text = format!(
            "[defaults]\ntime_zone = \"UTC\"\n[[rule]]\nacquire = []\n{when}\n\
             [[rule]]\ncommands = [\"z\"]\nacquire = []\nwhen = [\"12:00-24:00\"]\n\
             [[rule]]\ncommands = [\"y\"]\nacquire = []\nwhen = [\"20:00-21:00\"]\n"
        );
        let times = |purpose: Purpose<'_>, time: &str| {
            let files = vec![SourceText::new("/p.toml", text.as_str())];
            let layers = vec![LayerText { kind: LayerKind::System, files }];
            let policy = Policy::of_layers_for(layers, false, purpose);
            let moment = format!("2026-11-20T{time}Z").parse().expect("a moment");
            policy.unwrap_or_else(|faults| panic!("{faults}")).times_at(moment)
        };
        let path = Path::new("/usr/bin/z");
        let command = Invocation::new(OsStr::new("z"), path, path);
        for (time, expected) in [
            ("07:00:00", [false, false, false, false]),
            ("08:00:00", [true, false, false, false]),
            ("12:30:00", [true, true, true, false]),
            ("20:00:00", [false, false, true, true]),
        ] {
            assert_eq!(times(Purpose::Launches(Some(&command)), time), expected, "{time}");
            assert_eq!(times(Purpose::Launches(None), time), expected, "{time}");
        }
    }

    /// Launches that differ in one input are told apart if a selector, an exception, a path, a group, a
    /// number of slots, a limit or a reservation can depend on it, and only then.
    #[test]
    fn each_input_is_relevant_by_itself() {
        let none = RelevantInputs::default();
        let directories = RelevantInputs { directories: true, ..none };
        let arguments = RelevantInputs { arguments: true, ..none };
        let environment = RelevantInputs { environment: true, ..none };
        let hosts = RelevantInputs { hosts: true, ..none };
        let case = |repository: &str, rule: &str, expected: RelevantInputs| {
            let text = format!(
                "[repository.a]\n{repository}\n[repository.b]\nlimit = 9\n\
                 [[rule]]\nacquire = [\"b\"]\n[[rule]]\n{rule}\n"
            );
            let policy = Policy::of_text("/p.toml", text).unwrap_or_else(|faults| panic!("{faults}"));
            assert_eq!(policy.relevant_inputs(), expected, "{repository}, {rule}");
        };
        for (selector, expected) in [
            ("commands = [\"x\"]", none),
            ("users = [\"ann\"]", none),
            ("users = [\"+lab\"]", hosts),
            ("hosts = [\"ws1\"]", hosts),
            ("directories = [\"/proj\"]", directories),
            ("arguments = [\"-x\"]", arguments),
            ("environment = { X = true }", environment),
        ] {
            case("limit = 1", &format!("acquire = [\"a\"]\n{selector}"), expected);
            case("limit = 1", &format!("acquire = [\"a\"]\nexcept = [{{ {selector} }}]"), expected);
        }
        for (keys, expected) in [
            ("per = \"user\"\nlimit = 1", none),
            ("per = \"host\"\nlimit = 1", hosts),
            ("per = \"directory\"\nlimit = 1", directories),
            ("path = \"x/{arg1}.lock\"\nlimit = 1", arguments),
            ("path = \"x/{args}.lock\"\nlimit = 1", arguments),
            ("path = \"x/{env.X}.lock\"\nlimit = 1", environment),
            ("limit = 1\nshared_by = \"directory\"", directories),
            ("names = [\"x\"]", hosts),
            ("limit = 1\noutside = { command = [\"/bin/true\"] }", hosts),
            ("limit = 1\nreserve = [{ users = [\"ann\"], slots = 1 }]", none),
            ("limit = 1\nreserve = [{ hosts = [\"ws1\"], slots = 1 }]", hosts),
            ("limit = 1\nreserve = [{ users = [\"+lab\"], slots = 1 }]", hosts),
            ("limit = 1\nkeeper = \"agent\"\nlinger = \"9s\"", hosts),
            ("per = \"user\"\nlimit = 1\nlimits = { ann = 2 }", none),
            ("per = \"user\"\nlimit = 1\nlimits = { \"+lab\" = 2 }", hosts),
        ] {
            case(keys, "acquire = [\"a\"]", expected);
        }
        let counted = "acquire = [{ repository = \"a\", slots_from = { after = \"-n\" } }]";
        case("limit = 1", counted, arguments);
    }
}
