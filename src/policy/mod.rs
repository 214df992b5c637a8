//! The policy: from the text of its files to rules and repositories that hold together. Three stages, each with its own
//! types: as written (with spans), validated (here), decided ([`crate::decision`]). Nothing takes a written one once it
//! is validated, and nothing of a policy with a fault is ever applied.

mod acquisition;
mod choice;
mod compiled;
mod coverage;
mod family;
mod fault;
mod faults;
mod findings;
mod hold;
mod invocation;
mod keys;
mod layer;
mod limit;
mod log;
mod member;
mod names;
mod opened;
mod path_syntax;
mod pattern;
mod place;
mod principal;
mod printed;
mod reader;
mod repository;
mod rule;
mod safe_value;
mod scenario;
mod schema;
mod selectors;
mod shared_names;
mod source;
mod span_of_time;
mod spelling;
mod syntax;
mod template;
mod toml_text;
mod unmatched;
mod validation;
mod warning;
mod window;
mod written;
mod zone;

pub(crate) use acquisition::{Acquisition, ClaimTerms, SlotsFrom};
pub(crate) use pattern::Pattern;
pub(crate) use principal::{GroupEntry, Principal};
pub(crate) use scenario::{ExpectedClaim, Held};
pub(crate) use selectors::{ArgumentEntry, CommandEntry, EnvironmentEntry, EnvironmentValue, Selectors};
pub(crate) use template::Placeholder;
pub(crate) use window::Window;

pub use acquisition::Slots;
pub use compiled::{Compilation, CompileError};
pub use faults::Faults;
pub use hold::Hold;
pub use invocation::Invocation;
pub use layer::{Layer, LayerKind};
pub use limit::{HIGHEST_LIMIT, Limit};
pub use log::{Log, LogEvents, LogTarget};
pub use member::Member;
pub use names::{LookupError, Names};
pub use opened::Opened;
pub use place::Place;
pub use repository::{
    Charge, EXPIRE_GRACE, ElapsedFrom, ExpireKill, Nested, Pace, Repository, Reservation, TooSoon,
};
pub use rule::{Action, Admit, Rule};
pub use scenario::{Expectation, Scenario};
pub use schema::schema;
pub use selectors::Selector;
pub use source::{LayerText, SYSTEM_POLICY, Sources};
pub use span_of_time::{Wait, parse_duration, show_duration};
pub use unmatched::Unmatched;
pub use zone::{named_zone, parse_time, system_zone};

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::{Timestamp, tz::TimeZone};

use self::{
    compiled::Parts,
    fault::Fault,
    findings::Findings,
    keys::FILE,
    place::At,
    reader::Section,
    source::{Found, Stamps},
    validation::LayerFile,
    warning::Warning,
    written::WrittenFile,
};
use crate::diagnostic::{Diagnostic, SourceText};

/// The whole of the policy files, validated.
#[derive(Debug, Default)]
pub struct Policy {
    layers: Vec<Layer>,
    rules: Vec<Rule>,
    repositories: Vec<Repository>,
    /// The programs behind commands, each with the layer that says so.
    executables: HashMap<String, (usize, PathBuf)>,
    /// The order in which rules are judged.
    sequence: Vec<usize>,
    scenarios: Vec<Scenario>,
    files: Vec<Arc<SourceText>>,
    warnings: Vec<Diagnostic>,
    stamps: Stamps,
}

impl Policy {
    /// Reads and validates every file. Where there is none the policy is empty.
    pub fn load(sources: &Sources) -> Result<Policy, Faults> {
        Self::of_found(sources.read(), sources.caller == 0, None, None)
    }

    /// The same, and looks for what is likely not meant; `names` says who exists.
    pub fn check(sources: &Sources, names: &dyn Names) -> Result<Policy, Faults> {
        Self::of_found(sources.read(), sources.caller == 0, Some(names), None)
    }

    /// Reads and checks files that were named one by one, as if together they were the system's policy.
    pub fn check_files(paths: &[PathBuf], caller: u32, names: &dyn Names) -> Result<Policy, Faults> {
        Self::of_found(source::read_files(paths, caller), true, Some(names), None)
    }

    /// Validates text in memory.
    pub fn of_layers(layers: Vec<LayerText>, caller_is_root: bool) -> Result<Policy, Faults> {
        Self::of_found(Found { layers, ..Found::default() }, caller_is_root, None, None)
    }

    /// Validates text in memory, and looks for what is likely not meant.
    pub fn check_layers(
        layers: Vec<LayerText>,
        caller_is_root: bool,
        names: &dyn Names,
    ) -> Result<Policy, Faults> {
        Self::of_found(Found { layers, ..Found::default() }, caller_is_root, Some(names), None)
    }

    /// Validates one text as the system's policy.
    pub fn of_text(path: impl Into<PathBuf>, text: impl Into<String>) -> Result<Policy, Faults> {
        let files = vec![SourceText::new(path, text)];
        Self::of_layers(vec![LayerText { kind: LayerKind::System, files }], false)
    }

    /// Where only parts of the files are wanted, their other parts are not looked at.
    fn of_found(
        found: Found,
        caller_is_root: bool,
        checking: Option<&dyn Names>,
        parts: Option<&Parts>,
    ) -> Result<Policy, Faults> {
        let findings = Findings::default();
        let kinds: Vec<LayerKind> = found.layers.iter().map(|layer| layer.kind).collect();
        let mut files: Vec<Arc<SourceText>> = Vec::new();
        let mut layer_of_file = Vec::new();
        for (index, layer) in found.layers.into_iter().enumerate() {
            layer_of_file.extend(std::iter::repeat_n(index, layer.files.len()));
            files.extend(layer.files.into_iter().map(Arc::new));
        }
        // What stands for a file that has no text is appended, so that the indices of the others stay.
        let whole = |files: &mut Vec<Arc<SourceText>>, path: PathBuf| {
            files.push(Arc::new(SourceText::new(path, String::new())));
            At::whole(files.len() - 1)
        };
        let read = layer_of_file.len();
        for (path, fault) in found.faults {
            let at = whole(&mut files, path);
            findings.fault(at, fault);
        }
        for (path, name) in found.skipped {
            let at = whole(&mut files, path);
            findings.warning(at, Warning::SkippedFile { name });
        }

        let parts_of = |file: usize| parts.and_then(|parts| parts.files.get(file));
        let parsed: Vec<_> = files[..read]
            .iter()
            .enumerate()
            .map(|(index, file)| {
                let text = parts_of(index).map_or(file.text(), |parts| parts.text.as_str());
                syntax::parse(index, text, &findings)
            })
            .collect();
        let written: Vec<LayerFile<'_>> = parsed
            .iter()
            .enumerate()
            .map(|(index, table)| LayerFile {
                source: Arc::clone(&files[index]),
                layer: layer_of_file[index],
                written: WrittenFile::read(&Section::new(table, At::whole(index), &FILE, &findings)),
                parts: parts_of(index),
            })
            .collect();
        let policy = validation::validate(
            &kinds,
            caller_is_root,
            &written,
            &findings,
            checking,
            parts.map(|parts| &parts.shared),
        );
        let warnings = findings.close(&files)?;
        files.truncate(read);
        Ok(Policy { files, warnings, stamps: found.stamps, ..policy })
    }

    /// Whether no file says anything: there is no rule, and nothing is refused.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The files, in the order in which they count.
    pub fn files(&self) -> impl Iterator<Item = &SourceText> {
        self.files.iter().map(Arc::as_ref)
    }

    /// The layers, the system's first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Every rule, in the order of the files.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Every repository, in the order of the files.
    pub fn repositories(&self) -> &[Repository] {
        &self.repositories
    }

    /// The tests that the policy carries.
    pub fn scenarios(&self) -> &[Scenario] {
        &self.scenarios
    }

    /// The zone in which the policy tells the time: the first that a layer names, else the system's.
    pub fn time_zone(&self) -> TimeZone {
        let named = self.layers.iter().find(|layer| layer.zone_name.is_some());
        named.and_then(|layer| layer.zone.clone()).unwrap_or_else(system_zone)
    }

    /// What that zone is called, where a layer names one.
    pub fn time_zone_name(&self) -> Option<&str> {
        self.layers.iter().find_map(|layer| layer.zone_name.as_deref())
    }

    /// Of every rule and exception that asks for the time, whether it is its time. As long as this stays the same, so does what
    /// comes out of a request.
    pub fn times_at(&self, now: Timestamp) -> Vec<bool> {
        let asked = self.rules.iter().flat_map(|rule| {
            let tables = [&rule.selectors].into_iter().chain(&rule.except);
            tables.filter_map(|table| Some((self.layers[rule.layer].zone.as_ref()?, table.when.as_ref()?)))
        });
        asked
            .map(|(zone, when)| {
                let local = zone.to_datetime(now);
                when.iter().any(|window| window.contains(local))
            })
            .collect()
    }

    /// The program that `[command.NAME] exec` names for a command.
    pub fn executable(&self, command: &OsStr) -> Option<&Path> {
        self.executables.get(command.to_str()?).map(|(_, program)| program.as_path())
    }

    /// The names of commands that it is written for: those that rules name literally, and those with a program.
    pub fn command_names(&self) -> BTreeSet<&str> {
        let rules = self.rules.iter().filter(|rule| rule.enabled).flat_map(Rule::literal_commands);
        rules.chain(self.executables.keys().map(String::as_str)).collect()
    }

    /// What is likely not meant; only a policy that was checked has any.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The lowest descriptor that may hold a slot, where a layer says.
    pub fn fd_floor(&self) -> Option<u32> {
        self.layers.iter().filter_map(|layer| layer.fd_floor).max()
    }

    /// The logs that its layers ask for, each with whether it is the system's own wish.
    pub fn logs(&self) -> impl Iterator<Item = (LayerKind, &Log)> {
        self.layers.iter().filter_map(|layer| layer.log.as_ref().map(|log| (layer.kind, log)))
    }

    /// Whether a file of the policy came, went or changed since it was read: as many `stat` calls as there are files.
    pub fn is_stale(&self) -> bool {
        self.stamps.are_stale()
    }

    pub(crate) fn sequence(&self) -> &[usize] {
        &self.sequence
    }
}

/// The codes of all faults and warnings.
pub fn codes() -> impl Iterator<Item = &'static str> {
    Fault::CODES.iter().chain(Warning::CODES).copied()
}
