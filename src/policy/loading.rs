//! From files that were found to a policy: each is parsed and written down, and then all are validated
//! together. A launch says for which command, and then no more is parsed than can matter to it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use toml::de::DeTable;

use super::{
    Policy,
    aliases::Aliases,
    delegation::FORBIDDEN,
    eval_context::Invocation,
    fault::Fault,
    findings::{Faults, Findings},
    keys::FILE,
    layer::LayerKind,
    names::Names,
    place::At,
    reader::Section,
    skim::{Choice, Extract, Idle, KeptRules, Outline},
    source::{self, Found, Proposal, Sources},
    syntax,
    times::file_of_zone,
    validation::{self, LayerFile},
    warning::Warning,
    written::WrittenFile,
};
use crate::text::diagnostic::SourceText;

/// A command, and the outlines of all files, for whoever wants to read no more of them than it needs.
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

/// Reports what cannot be used. What stands for a file that has no text is appended, so that the indices of
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

/// Whether it has nothing but comments: a file that was cut short, mostly, for the version stands in every
/// policy.
fn says_nothing(text: &str) -> bool {
    text.lines().all(|line| matches!(line.trim_start().bytes().next(), None | Some(b'#')))
}

// Policies that are not in force: what somebody named instead, or would put in its place.

impl Policy {
    /// Reads and checks every file as it would be if these texts stood at their paths.
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
