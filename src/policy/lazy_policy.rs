//! A policy as a launch uses it: found, and not yet read to the end. First it says which program a command
//! means, and only then which rules apply to this program.

use std::{
    collections::HashMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Policy,
    delegation::{Delegation, FORBIDDEN},
    eval_context::{EvalContext, Invocation, Request},
    fault::Fault,
    findings::{Faults, Findings},
    keys::FILE,
    layer::LayerKind,
    names::Names,
    place::At,
    reader::Section,
    source::{self, Found, LayerText, Proposal, Sources, Stamps},
    syntax,
    tape::{Item, Nodes, Tape},
    times::file_of_zone,
    validation::{self, LayerFile},
    warning::Warning,
    written::WrittenFile,
};
use crate::text::diagnostic::{Diagnostic, SourceText};

/// The files of a policy, and what they say of programs.
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

    /// Whether no file says anything.
    pub fn is_empty(&self) -> bool {
        self.files.nodes.is_empty()
    }

    /// The program that `[command.NAME] exec` names for a command.
    pub fn executable(&self, command: &OsStr) -> Option<&Path> {
        self.programs.get(command.to_str()?).map(PathBuf::as_path)
    }

    /// The policy, as far as it can matter to this command, which is that of this request; `None` where it
    /// was changed since it was opened, so that another program may be meant.
    pub fn policy_for(
        self,
        command: &Invocation<'_>,
        request: &Request<'_>,
    ) -> Result<Option<Policy>, Faults> {
        let (sources, is_root) = (self.sources, self.sources.caller == 0);
        let facts = EvalContext::new(request, []);
        let is_wanted = |delegation: &Delegation| delegation.may_be_for(&facts);
        if !self.delegations.iter().any(is_wanted) {
            return self.files.policy(is_root, Some(command)).map(Some);
        }
        let found = sources.read(&is_wanted);
        if !found.stamps.are_those_of_everybody(&self.files.stamps) {
            return Ok(None);
        }
        let faults = match ParsedFiles::of(found).policy(is_root, Some(command)) {
            Ok(policy) => return Ok(Some(policy)),
            Err(faults) => faults,
        };
        // Files that are not delegated have none, or theirs apply to all users.
        let policy = self.files.policy(is_root, Some(command))?;
        let is_delegated = |fault: &Diagnostic| {
            sources.is_drop_in(&fault.path)
                && policy.delegations.iter().any(|delegation| delegation.is_of(&fault.path))
        };
        Err(faults.of_delegated(is_delegated))
    }

    /// The faults of the whole, for a caller without a request.
    pub fn faults(self) -> Result<(), Faults> {
        self.files.policy(self.sources.caller == 0, None).map(drop)
    }
}

impl Policy {
    /// Validates text in memory, and keeps the rules that may be for a command.
    pub fn of_layers_for(
        layers: Vec<LayerText>,
        caller_is_root: bool,
        command: &Invocation<'_>,
    ) -> Result<Policy, Faults> {
        ParsedFiles::of(Found { layers, ..Found::default() }).policy(caller_is_root, Some(command))
    }

    pub(super) fn of_found(
        found: Found,
        caller_is_root: bool,
        checking: Option<&dyn Names>,
    ) -> Result<Policy, Faults> {
        match Self::as_far_as_sound(found, caller_is_root, checking) {
            (policy, None) => Ok(policy),
            (_, Some(faults)) => Err(faults),
        }
    }

    /// The same, with what validation made of a policy that has faults.
    pub(super) fn as_far_as_sound(
        found: Found,
        caller_is_root: bool,
        checking: Option<&dyn Names>,
    ) -> (Policy, Option<Faults>) {
        ParsedFiles::of(found).validate(caller_is_root, checking, None)
    }
}

// From files that were found to a policy: each is parsed, and then all are validated together. A launch says
// for which command: then no other rules are kept, but all are checked.

/// Files that were read, and what is wrong with them so far.
struct ParsedFiles {
    kinds: Vec<LayerKind>,
    layer_of_file: Vec<usize>,
    /// The files with a text, then the unusable ones.
    files: Vec<Arc<SourceText>>,
    nodes: Vec<Nodes>,
    findings: Findings,
    stamps: Stamps,
}

impl ParsedFiles {
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
        let parse = |(file, source): (usize, &Arc<SourceText>)| syntax::parse(file, source.text(), &findings);
        let nodes = files[..read].iter().enumerate().map(parse).collect();
        ParsedFiles { kinds, layer_of_file, files, nodes, findings, stamps: found.stamps }
    }

    /// The programs behind commands, the last of which counts.
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

    fn policy(self, caller_is_root: bool, only_for: Option<&Invocation<'_>>) -> Result<Policy, Faults> {
        match self.validate(caller_is_root, None, only_for) {
            (policy, None) => Ok(policy),
            (_, Some(faults)) => Err(faults),
        }
    }

    fn validate(
        self,
        caller_is_root: bool,
        checking: Option<&dyn Names>,
        only_for: Option<&Invocation<'_>>,
    ) -> (Policy, Option<Faults>) {
        let ParsedFiles { kinds, layer_of_file, mut files, nodes, findings, mut stamps } = self;
        let tapes: Vec<Tape<'_>> =
            files.iter().zip(&nodes).map(|(source, nodes)| Tape { text: source.text(), nodes }).collect();
        let layer_files = tapes.iter().enumerate().map(|(index, tape)| {
            let layer = layer_of_file[index];
            let section = Section::new(tape.root(), At::whole(index), &FILE, &findings);
            if kinds[layer] == LayerKind::Delegated {
                section.forbid(&FORBIDDEN, |key| Fault::DelegatedKey { key });
            }
            let written = WrittenFile::read(&section);
            LayerFile { source: Arc::clone(&files[index]), layer, section, written }
        });
        let layer_files: Vec<LayerFile<'_>> = layer_files.collect();
        let policy =
            validation::validate(&kinds, caller_is_root, &layer_files, &findings, checking, only_for);
        drop(layer_files);
        drop(tapes);
        let (warnings, faults) = match findings.close(&files) {
            Ok(warnings) => (warnings, None),
            Err(faults) => (Vec::new(), Some(faults)),
        };
        files.truncate(nodes.len());
        for layer in policy.layers.iter().filter(|layer| layer.zone.is_some()) {
            stamps.see_zone(file_of_zone(layer.zone_name.as_deref()));
        }
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
        names: Option<&dyn Names>,
    ) -> Result<Policy, Faults> {
        Self::of_found(sources.read_with(proposals), sources.caller == 0, names)
    }

    /// Reads and checks files that were named one by one, as if together they were the system's policy.
    pub fn check_files(paths: &[PathBuf], caller: u32, names: &dyn Names) -> Result<Policy, Faults> {
        let mut policy = Self::of_found(source::read_files(paths, caller), true, Some(names))?;
        // It is not known yet whose policy such a file is, and in a user's own policy {runtime} is right.
        policy.warnings.retain(|warning| warning.code != Warning::RuntimeOfCaller.code());
        Ok(policy)
    }

    /// Reads the policy that a path leads to, a file or a directory with files, as if it were the system's.
    pub fn at(path: &Path, caller: u32) -> Result<Policy, Faults> {
        Self::of_found(source::read_place(path, caller), true, None)
    }
}
