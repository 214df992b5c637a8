//! Reads and checks the files, and returns a consistent policy. It reports every fault that it finds and
//! continues with a harmless substitute, so its result is a policy only if nothing was reported.

mod delegations;
mod layers;
mod repositories;
mod rules;
mod scenarios;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(super) use self::delegations::delegations_of;
use self::rules::Rules;
use super::{
    Acquisition, Action, Aliases, At, COMMAND, Definition, Definitions, Findings, Invocation, Layer,
    LayerKind, Meaning, Policy, Repository, Rule, Section, Written, WrittenFile, fault::Fault,
    warning::Warning,
};
use crate::judge::terms::{Hold, Names};
use crate::text::SourceText;

/// What a policy is read for.
#[derive(Clone, Copy)]
pub enum Purpose<'a> {
    /// Launches: those of one command, or all. Tests are not even read: whatever is in them stops no launch.
    Launches(Option<&'a Invocation<'a>>),
    /// To show or compare it, with its tests.
    Review,
    /// To check it, with its tests and with warnings; these know the existing users and groups.
    Check(&'a dyn Names),
}

impl<'a> Purpose<'a> {
    fn names(self) -> Option<&'a dyn Names> {
        match self {
            Purpose::Check(names) => Some(names),
            Purpose::Launches(_) | Purpose::Review => None,
        }
    }

    fn command(self) -> Option<&'a Invocation<'a>> {
        match self {
            Purpose::Launches(command) => command,
            Purpose::Review | Purpose::Check(_) => None,
        }
    }
}

/// A file that is being validated.
pub(super) struct LayerFile<'a> {
    pub(super) source: Arc<SourceText>,
    /// The index of its layer.
    pub(super) layer: usize,
    /// Whether it is the system's main file.
    pub(super) is_main: bool,
    /// All of its text, from which repositories, rules, commands and tests are read.
    pub(super) section: Section<'a>,
    /// What must be known of it before.
    pub(super) written: WrittenFile<'a>,
}

/// Validates the files of all layers, in the order in which they count. Everything in them is checked, except
/// the tests, which are left out for launches. For one command, only rules that may be for it are kept.
pub(super) fn validate(
    kinds: &[LayerKind],
    caller_is_root: bool,
    files: &[LayerFile<'_>],
    findings: &Findings,
    purpose: Purpose<'_>,
) -> Policy {
    let (checking, only_for) = (purpose.names(), purpose.command());
    let layer_of_file: Vec<usize> = files.iter().map(|file| file.layer).collect();
    let delegations = delegations::validate(kinds, files, &layer_of_file, findings, checking);
    let layers = layers::validate(kinds, caller_is_root, files, findings, &delegations);
    let book = SymbolTable::new(&layers, files, &layer_of_file, findings, checking);
    let mut repositories = repositories::validate(&book);
    let mut all = rules::validate(&book, &repositories, only_for);
    let executables = executables(&book);
    book.report_unused();
    show_names(&mut all, &mut repositories, files, kinds);
    let sequence = sequence(&all.kept);
    if checking.is_some() {
        for (at, warning) in advise(&layers, &all.kept, &all.places, &sequence, &repositories) {
            findings.warning(at, warning);
        }
    }
    let scenarios = match purpose {
        Purpose::Launches(_) => Vec::new(),
        Purpose::Review | Purpose::Check(_) => scenarios::validate(&book, &all.kept, &repositories),
    };
    let Rules { kept: rules, idle, .. } = all;
    Policy {
        layers,
        rules,
        repositories,
        executables,
        sequence,
        scenarios,
        idle,
        delegations,
        ..Policy::default()
    }
}

/// The programs that commands start. That of a later layer replaces an earlier one if the layer may loosen.
fn executables(book: &SymbolTable<'_>) -> HashMap<String, (usize, PathBuf)> {
    let mut found: HashMap<&str, (usize, Written<&str>)> = HashMap::new();
    for file in book.files {
        for (name, value) in file.section.by_name("command") {
            let Some(command) = value.section(&COMMAND) else { continue };
            let Some(exec) = command.require("exec").and_then(|value| value.text()) else { continue };
            if !exec.value.starts_with('/') {
                book.findings.fault(exec.at, Fault::RelativePath { key: "exec" });
            }
            if let Some((layer, first)) = found.get(name.value) {
                if *layer == file.layer {
                    let fault = Fault::DuplicateCommand { name: name.value.to_owned(), first: first.at };
                    book.findings.fault(name.at, fault);
                } else if !book.layers[file.layer].may_loosen {
                    let fault = Fault::Loosens { what: "another program for this command" };
                    book.findings.fault(name.at, fault);
                }
            }
            found.insert(name.value, (file.layer, exec));
        }
    }
    found.into_iter().map(|(name, (layer, exec))| (name.to_owned(), (layer, exec.value.into()))).collect()
}

/// The order in which rules are judged: within a family the lowest `order` first, otherwise as written.
fn sequence(rules: &[Rule]) -> Vec<usize> {
    let mut sequence: Vec<usize> = (0..rules.len()).collect();
    if rules.iter().any(|rule| rule.order != 0) {
        sequence.sort_by_key(|&index| rules[index].order);
    }
    sequence
}

// Effects between rules: one that never counts because another always precedes it, or cancels it. Only
// `policy check` asks; a launch has no use for it.

/// Programs that close the descriptors they inherited, and with them the lock, when they start.
const CLOSERS: &[&str] = &["autossh", "mosh", "scp", "sftp", "ssh", "sudo"];

/// Programs that leave a process behind and end, and with them the lock.
const LEAVERS: &[&str] =
    &["daemonize", "dtach", "gpg-agent", "screen", "ssh-agent", "start-stop-daemon", "systemd-run", "tmux"];

/// The faults and warnings of each rule, with its index.
fn advise(
    layers: &[Layer],
    rules: &[Rule],
    places: &[At],
    sequence: &[usize],
    repositories: &[Repository],
) -> Vec<(At, Warning)> {
    let mut advice = Vec::new();
    let mut weak: Vec<Weak<'_>> = Vec::new();
    for (position, &index) in sequence.iter().enumerate() {
        let rule = &rules[index];
        if rule.except.iter().any(|except| except.cover(&rule.selectors)) {
            let because = "an exception matches everything that its selectors match".to_owned();
            advice.push((places[index], Warning::NeverMatches { because }));
            continue;
        }
        let always = |other: &&usize| {
            let other = &rules[**other];
            // Delegated rules apply only to some users, whatever their selectors are.
            let is_for_all = layers[other.layer].kind != LayerKind::Delegated || other.layer == rule.layer;
            is_for_all && other.except.is_empty() && other.selectors.cover(&rule.selectors)
        };
        let before = &sequence[..position];
        let sibling = before
            .iter()
            .filter(|&&other| rule.family.is_some() && rules[other].family == rule.family)
            .find(always);
        if let Some(&other) = sibling {
            let by = rules[other].shown_name().to_owned();
            advice.push((places[index], Warning::Shadowed { by, first: places[other] }));
            continue;
        }
        if rule.action().acquires()
            && let Some(&other) =
                sequence.iter().filter(|&&other| overrules(&rules[other], rule)).find(always)
        {
            let by = rules[other].shown_name().to_owned();
            advice.push((places[index], Warning::Overruled { by, first: places[other] }));
        }
        let of_rule = weak_holds(rule, repositories, layers);
        weak.extend(of_rule.map(|(command, ending)| Weak { index, command, ending }));
    }
    for ending in ["supervisor", "tree"] {
        advice.extend(of_weak_holds(rules, places, weak.iter().filter(|weak| weak.ending == ending), ending));
    }
    advice
}

/// A command of a rule that releases its slot while it still runs.
struct Weak<'r> {
    index: usize,
    command: &'r str,
    ending: &'static str,
}

/// Everything that the same key would correct, as one finding.
fn of_weak_holds<'w>(
    rules: &[Rule],
    places: &[At],
    weak: impl Iterator<Item = &'w Weak<'w>>,
    ending: &'static str,
) -> Option<(At, Warning)> {
    let weak: Vec<&Weak<'_>> = weak.collect();
    let first = weak.first()?.index;
    let (mut commands, mut names): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let add = |all: &mut Vec<String>, name: &str| {
        if !all.iter().any(|known| known == name) {
            all.push(name.to_owned());
        }
    };
    for weak in weak {
        add(&mut commands, weak.command);
        add(&mut names, rules[weak.index].shown_name());
    }
    Some((places[first], Warning::WeakHold { commands, rules: names, ending }))
}

/// Whether a rule cancels all claims of a limit, whenever both match.
fn overrules(other: &Rule, rule: &Rule) -> bool {
    let counts_alone = other.family.is_none() && other.layer >= rule.layer;
    match other.action() {
        Action::Exempt => counts_alone && other.from.is_none(),
        Action::Deny => counts_alone && other.enforce != Some(false),
        Action::Limit | Action::Count => false,
    }
}

/// The commands of a rule that release their slots while they still run, each with the hold that would keep
/// it.
fn weak_holds<'r>(
    rule: &'r Rule,
    repositories: &[Repository],
    layers: &[Layer],
) -> impl Iterator<Item = (&'r str, &'static str)> {
    let claimed =
        || rule.acquire.iter().flat_map(Acquisition::terms).map(|terms| &repositories[terms.repository]);
    let said = claimed().filter_map(|repository| repository.settings.hold).chain(rule.hold()).max();
    let hold = said.or(layers[rule.layer].hold).unwrap_or_default();
    let claims = claimed().next().is_some();
    rule.literal_commands().filter(move |_| claims).filter_map(move |name| {
        let ending = if CLOSERS.contains(&name) && hold < Hold::Supervisor {
            "supervisor"
        } else if LEAVERS.contains(&name) && hold < Hold::Tree {
            "tree"
        } else {
            return None;
        };
        Some((name, ending))
    })
}

// Names that several files use, and the names of such rules and repositories in messages.

/// Sets the shown names of rules and repositories: with the file's name if another file uses them too. The
/// names of the system's are not changed by other layers: which of those are read depends on the launch, and
/// programs, the agent and logs know slots by these names.
fn show_names(
    all: &mut Rules<'_>,
    repositories: &mut [Repository],
    files: &[LayerFile<'_>],
    kinds: &[LayerKind],
) {
    if files.len() < 2 {
        // The names of repositories stand there already.
        all.kept.iter_mut().for_each(|rule| rule.shown_name = rule.name.as_str().into());
        return;
    }
    let is_of_system = |layer: usize| kinds[layer] == LayerKind::System;
    let counts = |other: usize, own: usize| is_of_system(other) || !is_of_system(own);
    let is_omitted = |(name, path, layer): (&str, &Path, usize)| {
        let mut files = files.iter().enumerate().filter(|(_, file)| counts(file.layer, layer));
        files.any(|(index, file)| file.source.path() != path && all.omit(index, name))
    };
    let shown = |names: Vec<(&str, &Path, usize)>, is_elsewhere: &dyn Fn((&str, &Path, usize)) -> bool| {
        let mut uses: HashMap<&str, Vec<(&Path, usize)>> = HashMap::new();
        for (name, path, layer) in &names {
            let uses = uses.entry(name).or_default();
            if uses.last() != Some(&(*path, *layer)) {
                uses.push((path, *layer));
            }
        }
        let shown = |(name, path, layer): (&str, &Path, usize)| -> Arc<str> {
            let is_another = |(other, of): &(&Path, usize)| *other != path && counts(*of, layer);
            if !uses[name].iter().any(is_another) && !is_elsewhere((name, path, layer)) {
                return name.into();
            }
            let counting = files.iter().filter(|file| counts(file.layer, layer));
            let namesakes = counting.filter(|file| file.source.path().file_name() == path.file_name());
            let file = path.file_name().filter(|_| namesakes.count() == 1).unwrap_or(path.as_os_str());
            format!("{name} ({})", file.to_string_lossy()).into()
        };
        names.into_iter().map(shown).collect::<Vec<_>>()
    };
    let rules = all.kept.iter().map(|rule| (rule.name.as_str(), rule.place.path(), rule.layer)).collect();
    let of_rules = shown(rules, &is_omitted);
    let tables = repositories.iter().map(|one| (one.name.as_str(), one.place.path(), one.layer)).collect();
    let of_tables = shown(tables, &|_| false);
    all.kept.iter_mut().zip(of_rules).for_each(|(rule, shown)| rule.shown_name = shown);
    repositories.iter_mut().zip(of_tables).for_each(|(repository, shown)| repository.shown_name = shown);
}

// The repositories and aliases of all files, by name.

struct SymbolTable<'w> {
    layers: &'w [Layer],
    files: &'w [LayerFile<'w>],
    findings: &'w Findings,
    aliases: Aliases<'w>,
    repositories: Definitions<'w>,
}

impl<'w> SymbolTable<'w> {
    fn new(
        layers: &'w [Layer],
        files: &'w [LayerFile<'w>],
        layer_of_file: &'w [usize],
        findings: &'w Findings,
        checking: Option<&'w dyn Names>,
    ) -> Self {
        let mut repositories = Definitions::new(layer_of_file);
        for repository in files.iter().flat_map(|file| &file.written.repositories) {
            repositories.add(repository.name);
        }
        let aliases = files.iter().flat_map(|file| &file.written.aliases);
        let mut aliases = Aliases::new(aliases, layer_of_file, findings, checking);
        let is_private = |file: usize| layers[layer_of_file[file]].kind == LayerKind::Delegated;
        if layers.iter().any(|layer| layer.kind == LayerKind::Delegated) {
            repositories.keep_private(is_private);
            aliases.keep_private(is_private);
        }
        for delegation in files.iter().flat_map(|file| &file.written.delegations) {
            delegation.lists().for_each(|list| aliases.mark_used(&list.entries));
        }
        SymbolTable { layers, files, findings, aliases, repositories }
    }

    /// The repository that a name means in a file; reports when it means none, or several.
    fn repository(&self, name: Written<&str>) -> Option<usize> {
        self.definition(name).map(Definition::mark_used)
    }

    /// The same, for code that names a repository without using it.
    fn mentioned(&self, name: Written<&str>) -> Option<usize> {
        self.definition(name).map(|definition| definition.index)
    }

    /// Where the repository with this index names its path, if it does.
    fn path_of_repository(&self, index: usize) -> Option<At> {
        let written = self.files.iter().flat_map(|file| &file.written.repositories).nth(index)?;
        written.section.get("path").filter(|path| path.as_text().is_some()).map(|path| path.at)
    }

    fn definition(&self, name: Written<&str>) -> Option<&Definition> {
        let owned = || name.value.to_owned();
        let fault = match self.repositories.meaning(name.value, name.at.file) {
            Meaning::One(definition) => return Some(definition),
            Meaning::Several(first) => Fault::AmbiguousRepository { name: owned(), first: first.at },
            Meaning::Nothing => {
                let known = self.repositories.seen_in(name.at.file);
                let nearest = self.findings.nearest(name.at, name.value, known);
                Fault::UnknownRepository { name: owned(), nearest }
            }
        };
        self.findings.fault(name.at, fault);
        None
    }

    /// Whether a delegated file, of this layer, would use a repository that is not its own.
    fn is_of_others(&self, layer: usize, repository: &Repository) -> bool {
        self.layers[layer].kind == LayerKind::Delegated && repository.layer != layer
    }

    /// Warns, if the policy is checked.
    fn warn(&self, at: At, warning: impl FnOnce() -> Warning) {
        self.aliases.warn(at, warning);
    }

    /// Warns of definitions that are never used.
    fn report_unused(&self) {
        for (at, name) in self.repositories.unused() {
            self.warn(at, || Warning::UnusedRepository { name: name.to_owned() });
        }
        for (at, name) in self.aliases.unused() {
            self.warn(at, || Warning::UnusedAlias { name: name.to_owned() });
        }
    }
}
