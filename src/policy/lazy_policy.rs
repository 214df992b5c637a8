//! A policy as a launch uses it: found, and not yet read to the end. First it says which program a command
//! means, and only then which rules apply to this program.

use std::{
    borrow::Borrow,
    collections::HashMap,
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

use toml::de::DeTable;

use super::{
    Policy,
    aliases::Aliases,
    delegation::{Delegation, FORBIDDEN},
    eval_context::{EvalContext, Invocation, Request},
    fault::Fault,
    findings::{Faults, Findings},
    keys::FILE,
    layer::LayerKind,
    names::Names,
    place::At,
    reader::Section,
    skim::{Choice, Extract, Idle, KeptRules, Outline},
    source::{self, Found, LayerText, Proposal, Sources, Stamps},
    syntax,
    times::file_of_zone,
    validation::{self, LayerFile},
    warning::Warning,
    written::WrittenFile,
};
use crate::text::diagnostic::{Diagnostic, SourceText};

/// The files of a policy, and what they say of programs.
pub struct LazyPolicy<'s> {
    sources: &'s Sources,
    state: State,
}

enum State {
    Whole(Policy),
    /// Every file has an outline, so that parts of it can stay unread.
    Outlined {
        found: Found,
        outlines: Vec<Outline>,
        programs: HashMap<String, PathBuf>,
    },
}

impl<'s> LazyPolicy<'s> {
    /// Finds the files, without those that are delegated, which name no programs; and validates them where
    /// they have to be read as a whole.
    pub fn open(sources: &'s Sources) -> Result<Self, Faults> {
        let found = sources.read(&|_| false);
        let state = match outlines(&found) {
            Some((outlines, programs)) => State::Outlined { found, outlines, programs },
            None => State::Whole(Policy::of_found(found, sources.caller == 0, None, None)?),
        };
        Ok(LazyPolicy { sources, state })
    }

    /// Whether no file says anything.
    pub fn is_empty(&self) -> bool {
        match &self.state {
            State::Whole(policy) => policy.is_empty(),
            State::Outlined { outlines, .. } => outlines.is_empty(),
        }
    }

    /// The program that `[command.NAME] exec` names for a command.
    pub fn executable(&self, command: &OsStr) -> Option<&Path> {
        match &self.state {
            State::Whole(policy) => policy.executable(command),
            State::Outlined { programs, .. } => programs.get(command.to_str()?).map(PathBuf::as_path),
        }
    }

    /// The policy, as far as it can matter to this command, which is that of this request; `None` where it
    /// was changed since it was opened, so that another program may be meant.
    pub fn policy_for(
        self,
        command: &Invocation<'_>,
        request: &Request<'_>,
    ) -> Result<Option<Policy>, Faults> {
        let sources = self.sources;
        let facts = EvalContext::new(request, []);
        let is_delegated = match &self.state {
            State::Whole(policy) => may_be_for(&policy.delegations, &facts),
            State::Outlined { found, .. } => may_be_for(&found.delegations, &facts),
        };
        if !is_delegated {
            return self.undelegated(command);
        }
        let is_wanted = |delegation: &Delegation| delegation.may_be_for(&facts);
        let found = sources.read(&is_wanted);
        if !found.stamps.are_those_of_everybody(self.stamps()) {
            return Ok(None);
        }
        let faults = match skimmed(found, sources.caller == 0, command) {
            Some(policy) => return Ok(Some(policy)),
            None => match Policy::load_for(sources, &is_wanted) {
                Ok(policy) => {
                    let is_same = policy.stamps.are_those_of_everybody(self.stamps());
                    return Ok(Some(policy).filter(|_| is_same));
                }
                Err(faults) => faults,
            },
        };
        // What is not delegated has none, or those are everybody's.
        let Some(policy) = self.undelegated(command)? else { return Ok(None) };
        let is_delegated = |fault: &Diagnostic| {
            sources.is_drop_in(&fault.path)
                && policy.delegations.iter().any(|delegation| delegation.is_of(&fault.path))
        };
        Err(faults.of_delegated(is_delegated))
    }

    fn stamps(&self) -> &Stamps {
        match &self.state {
            State::Whole(policy) => &policy.stamps,
            State::Outlined { found, .. } => &found.stamps,
        }
    }

    fn undelegated(self, command: &Invocation<'_>) -> Result<Option<Policy>, Faults> {
        let LazyPolicy { sources, state } = self;
        match state {
            State::Whole(policy) => Ok(Some(policy)),
            State::Outlined { found, outlines, .. } => {
                let skim = Skim { outlines: &outlines, command };
                let stamps = found.stamps.clone();
                let skimmed = Policy::of_found(found, sources.caller == 0, None, Some(&skim));
                skimmed.map(Some).or_else(|_| {
                    let policy = Policy::load_undelegated(sources)?;
                    Ok(Some(policy).filter(|policy| policy.stamps.are_those_of_everybody(&stamps)))
                })
            }
        }
    }

    /// The faults of the whole, for a caller without a request.
    pub fn faults(self) -> Result<(), Faults> {
        match self.state {
            State::Whole(_) => Ok(()),
            State::Outlined { .. } => Policy::load_undelegated(self.sources).map(drop),
        }
    }
}

impl Policy {
    /// Text in memory, read as far as it can matter to a command; `None` where the whole has to be read.
    pub fn skimmed(layers: Vec<LayerText>, caller_is_root: bool, command: &Invocation<'_>) -> Option<Policy> {
        skimmed(Found { layers, ..Found::default() }, caller_is_root, command)
    }
}

fn skimmed(found: Found, caller_is_root: bool, command: &Invocation<'_>) -> Option<Policy> {
    let (outlines, _) = outlines(&found)?;
    let skim = Skim { outlines: &outlines, command };
    Policy::of_found(found, caller_is_root, None, Some(&skim)).ok()
}

/// Whether something is delegated that can be for a launch.
fn may_be_for<D: Borrow<Delegation>>(delegations: &[D], facts: &EvalContext<'_>) -> bool {
    delegations.iter().any(|delegation| delegation.borrow().may_be_for(facts))
}

/// The outlines of all files, and the programs behind commands, the last of which counts. `None` if the whole
/// must be read.
fn outlines(found: &Found) -> Option<(Vec<Outline>, HashMap<String, PathBuf>)> {
    if !found.faults.is_empty() {
        return None;
    }
    let mut programs = HashMap::new();
    let outline = |file: &SourceText| {
        let outline = Outline::of(file.text())?;
        programs
            .extend(outline.programs(file.text()).map(|(name, program)| (name.to_owned(), program.into())));
        Some(outline)
    };
    let outlines = found.layers.iter().flat_map(|layer| &layer.files).map(outline).collect::<Option<_>>()?;
    Some((outlines, programs))
}

// From files that were found to a policy: each is parsed and written down, and then all are validated
// together. A launch says for which command, and then no more is parsed than can matter to it.

/// A command, and the outlines of all files, for a caller that reads no more of them than it needs.
pub(super) struct Skim<'a> {
    pub(super) outlines: &'a [Outline],
    pub(super) command: &'a Invocation<'a>,
}

impl Policy {
    /// Where it was skimmed, an error says only that the whole has to be read.
    pub(super) fn of_found(
        found: Found,
        caller_is_root: bool,
        checking: Option<&dyn Names>,
        skim: Option<&Skim<'_>>,
    ) -> Result<Policy, Faults> {
        match Self::as_far_as_sound(found, caller_is_root, checking, skim) {
            (policy, None) => Ok(policy),
            (_, Some(faults)) => Err(faults),
        }
    }

    /// The same, with what validation made of a policy that has faults.
    pub(super) fn as_far_as_sound(
        found: Found,
        caller_is_root: bool,
        checking: Option<&dyn Names>,
        skim: Option<&Skim<'_>>,
    ) -> (Policy, Option<Faults>) {
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
            // Whoever a drop-in is delegated to may begin with an empty one.
            if kinds[layer_of_file[file]] != LayerKind::Delegated && says_nothing(source.text()) {
                findings.fault(At::whole(file), Fault::Empty);
            }
        }
        let heads = skim.map(|skim| skim.heads(&files[..read]));
        let head = |file: usize| heads.as_ref().and_then(|heads| heads.get(file));
        let trees = parse(
            files[..read]
                .iter()
                .enumerate()
                .map(|(file, source)| head(file).map_or(source.text(), |head| &head.text)),
            &findings,
        );
        let mut written: Vec<LayerFile<'_>> = trees
            .iter()
            .enumerate()
            .map(|(index, tree)| {
                let layer = layer_of_file[index];
                let section = Section::new(tree, At::whole(index), &FILE, &findings);
                if kinds[layer] == LayerKind::Delegated {
                    section.forbid(&FORBIDDEN, |key| Fault::DelegatedKey { key });
                }
                LayerFile {
                    source: Arc::clone(&files[index]),
                    layer,
                    written: WrittenFile::read(&section),
                    head: head(index),
                    kept: None,
                }
            })
            .collect();
        let is_private = |file: usize| kinds[layer_of_file[file]] == LayerKind::Delegated;
        let kept = skim
            .map(|skim| skim.rules(&written, &layer_of_file, is_private, &files, &findings))
            .unwrap_or_default();
        let trees = parse(kept.iter().map(|kept| kept.extract.text.as_str()), &findings);
        for ((index, file), tree) in written.iter_mut().enumerate().zip(&trees) {
            file.written.read_rules(&Section::new(tree, At::whole(index), &FILE, &findings));
            file.kept = kept.get(index);
        }
        let policy = validation::validate(&kinds, caller_is_root, &written, &findings, checking);
        if skim.is_some() && !findings.are_clean() {
            return (policy, Some(Faults::new(Vec::new())));
        }
        let idle = idle(&written);
        let (warnings, faults) = match findings.close(&files) {
            Ok(warnings) => (warnings, None),
            Err(faults) => (Vec::new(), Some(faults)),
        };
        files.truncate(read);
        let mut stamps = found.stamps;
        for layer in policy.layers.iter().filter(|layer| layer.zone.is_some()) {
            stamps.see_zone(file_of_zone(layer.zone_name.as_deref()));
        }
        (Policy { files, warnings, stamps, idle, ..policy }, faults)
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

fn parse<'t>(texts: impl Iterator<Item = &'t str>, findings: &Findings) -> Vec<DeTable<'t>> {
    texts.enumerate().map(|(file, text)| syntax::parse(file, text, findings)).collect()
}

/// The times of all rules that were left out, in the order of the files.
fn idle(files: &[LayerFile<'_>]) -> Vec<Idle> {
    let mut before = 0;
    let mut idle = Vec::new();
    for file in files {
        idle.extend(file.kept.iter().flat_map(|kept| kept.idle(before, file.layer)));
        before += file.written.rules.len();
    }
    idle
}

impl Skim<'_> {
    /// What of each file every command needs.
    fn heads(&self, files: &[Arc<SourceText>]) -> Vec<Extract> {
        self.outlines.iter().zip(files).map(|(outline, file)| outline.head(file.text())).collect()
    }

    /// The rules of each file that can be for the command.
    fn rules<'o>(
        &'o self,
        written: &[LayerFile<'_>],
        layer_of_file: &[usize],
        is_private: impl Fn(usize) -> bool,
        files: &'o [Arc<SourceText>],
        findings: &Findings,
    ) -> Vec<KeptRules<'o>> {
        let aliases = written.iter().flat_map(|file| &file.written.aliases);
        let mut aliases = Aliases::new(aliases, layer_of_file, findings, None);
        aliases.keep_private(is_private);
        let mut choice = Choice::new(self.command, &aliases);
        let rules_of = |(index, (outline, file)): (usize, (&'o Outline, &'o Arc<SourceText>))| {
            choice.rules_of(outline, index, file.text())
        };
        self.outlines.iter().zip(files).enumerate().map(rules_of).collect()
    }
}

/// Whether it has nothing but comments: usually a file that was cut short, because every policy has the
/// version.
fn says_nothing(text: &str) -> bool {
    text.lines().all(|line| matches!(line.trim_start().bytes().next(), None | Some(b'#')))
}

// Policies that are not in force: what somebody named instead, or would put in its place.

impl Policy {
    /// Reads and checks every file as if these texts were at their paths.
    pub fn propose(
        sources: &Sources,
        proposals: &[Proposal],
        names: Option<&dyn Names>,
    ) -> Result<Policy, Faults> {
        Self::of_found(sources.read_with(proposals), sources.caller == 0, names, None)
    }

    /// Reads and checks files that were named one by one, as if together they were the system's policy.
    pub fn check_files(paths: &[PathBuf], caller: u32, names: &dyn Names) -> Result<Policy, Faults> {
        let mut policy = Self::of_found(source::read_files(paths, caller), true, Some(names), None)?;
        // Whose policy such a file is to be nobody has said yet, and in one's own {runtime} is right.
        policy.warnings.retain(|warning| warning.code != Warning::RuntimeOfCaller.code());
        Ok(policy)
    }

    /// Reads the policy that a path leads to, a file or a directory with files, as if it were the system's.
    pub fn at(path: &Path, caller: u32) -> Result<Policy, Faults> {
        Self::of_found(source::read_place(path, caller), true, None, None)
    }
}
