//! The policy: from the text of its files to consistent rules and repositories, which are read and checked in
//! one pass. [`crate::judge`] decides by them. Nothing of a policy with a fault is applied.

mod agent_file;
mod aliases;
mod capture;
mod coded;
mod difference;
mod eval_context;
mod fault;
mod findings;
mod key;
mod keys;
mod layer;
mod lazy_policy;
mod limit;
mod log;
mod malformed;
mod named;
mod path_syntax;
mod pattern;
mod place;
mod printed;
mod reader;
mod repository;
mod rule;
mod scenario;
mod schema;
mod selector;
mod source;
mod spelling;
mod syntax;
mod tape;
mod template;
mod times;
mod toml_text;
mod validation;
mod warning;
mod written;

pub use self::{
    agent_file::{AgentFile, AgentLimits, LONGEST_MESSAGE, SiteSettings},
    capture::Captured,
    difference::{Change, Detail, Difference, KeyChange, LayerName, Turn},
    eval_context::{Invocation, RelevantInputs, Request},
    findings::{Affected, Faults},
    layer::{Delegation, Layer, LayerKind, SYSTEM_POLICY, Unmatched},
    lazy_policy::LazyPolicy,
    limit::{HIGHEST_LIMIT, Limit, Share},
    log::{Log, LogFile, LogTarget},
    printed::PartKind,
    repository::{Charge, Repository, Reservation},
    rule::{Action, Rule},
    scenario::{Expectation, Scenario},
    schema::schema,
    selector::Selector,
    source::{LayerText, Proposal, Sources},
    times::{Hours, named_zone, parse_time, system_zone},
    validation::Purpose,
};
use self::{
    aliases::{Aliases, Definition, Definitions, Meaning, QuickHash, WrittenEntry, WrittenList},
    capture::Capture,
    findings::Findings,
    key::{Key, Keys, Shape, Together},
    keys::{
        ALTERNATIVE, CLAIM, COMMAND, DEFAULTS, EXPECTED_CLAIM, FILE, HOLDER, LOG, RULE, SELECTORS,
        SLOTS_FROM, TEST, WAITER,
    },
    layer::{DELEGATE, FORBIDDEN},
    limit::{LONGEST_QUEUE, SLOT_COUNT, SLOT_COUNT_OR_NONE, SLOT_COUNT_OR_SHARE},
    malformed::ECHOES,
    place::{At, Written},
    reader::{Section, Value},
    repository::REPOSITORY,
    source::{Found, IsWanted, Stamps},
    tape::{Item, Kind, Nodes, Tape},
    template::{END_OF_VALUE, HASH_LENGTH, LONGEST_NAME, PartitionKey, Per},
    times::{Idle, zone_of},
    toml_text::Table,
    validation::LayerFile,
    written::{WrittenAlias, WrittenDelegation, WrittenFile},
};
pub(crate) use self::{
    eval_context::{EvalContext, Lookups},
    layer::SYSTEM_DIRECTORY,
    path_syntax::Directory,
    pattern::{Pattern, Subject},
    repository::{FileOf, OtherLimit, Standing, outside::Measuring},
    rule::{Acquisition, ClaimTerms, IfUnclear, SlotsFrom, member_of},
    scenario::{ExpectedClaim, Held, Holder, Person, Users, Waiting},
    selector::{CommandEntry, GroupEntry, Principal, Selectors, UNNAMED},
    source::{Watch, files_of, is_drop_in},
    spelling::nearest,
    template::{Name, PathTemplate, Piece, Placeholder, Start},
};

// The types that judge and keepers share.
pub use crate::judge::terms::{Wait, parse_duration, show_duration};
use crate::{
    judge::terms::Names,
    text::{Diagnostic, SourceText},
};

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::tz::TimeZone;

use self::{fault::Fault, warning::Warning};

/// The whole of the policy files, validated.
#[derive(Debug, Default)]
pub struct Policy {
    layers: Vec<Layer>,
    rules: Vec<Rule>,
    repositories: Vec<Repository>,
    /// The programs behind commands, each with its layer.
    executables: HashMap<String, (usize, PathBuf)>,
    /// The order in which rules are judged.
    sequence: Vec<usize>,
    scenarios: Vec<Scenario>,
    files: Vec<Arc<SourceText>>,
    warnings: Vec<Diagnostic>,
    stamps: Stamps,
    /// The times of rules that are left out because they are for other commands.
    idle: Vec<Idle>,
    delegations: Vec<Arc<Delegation>>,
    /// Delegated files with faults, each with its faults: their content is missing here.
    withheld: Vec<(Arc<Delegation>, Faults)>,
}

impl Policy {
    /// The contact for refusals without a rule.
    pub fn contact(&self) -> Option<&str> {
        self.layers.iter().find_map(|layer| layer.contact.as_deref())
    }

    /// Reads and validates every file, as launches do. If there is none, the policy is empty.
    pub fn load(sources: &Sources) -> Result<Policy, Faults> {
        Self::of_found(sources.read(&|_| true), sources.caller == 0, Purpose::Launches(None))
    }

    /// The same without any delegated file: none is even opened.
    pub fn load_undelegated(sources: &Sources) -> Result<Policy, Faults> {
        Self::of_found(sources.read(&|_| false), sources.caller == 0, Purpose::Launches(None))
    }

    /// The same without delegated files that have faults: those affect no other user.
    pub fn load_sound(sources: &Sources) -> Result<Policy, Faults> {
        Self::propose_sound(sources, &[], Purpose::Launches(None))
    }

    /// The same as if these texts were at their paths.
    pub fn propose_sound(
        sources: &Sources,
        proposals: &[Proposal],
        purpose: Purpose<'_>,
    ) -> Result<Policy, Faults> {
        Self::sound(sources, purpose, None, &|is_wanted| sources.read_with(proposals, is_wanted))
    }

    /// The same as [`load_sound`](Self::load_sound), also without delegated files whose file system does not
    /// answer.
    pub(crate) fn load_watched(sources: &Sources, watch: &dyn Watch) -> Result<Policy, Faults> {
        let found = |is_wanted: IsWanted<'_>| sources.read_watched(watch, is_wanted);
        Self::sound(sources, Purpose::Launches(None), Some(watch), &found)
    }

    fn sound(
        sources: &Sources,
        purpose: Purpose<'_>,
        watch: Option<&dyn Watch>,
        found: &dyn Fn(IsWanted<'_>) -> Found,
    ) -> Result<Policy, Faults> {
        let read = |is_wanted: IsWanted<'_>| Self::of_found(found(is_wanted), sources.caller == 0, purpose);
        let stamps = |faults: &Faults| Stamps::of(faults.iter().map(|fault| fault.path.clone()), watch);
        let mut seen = match read(&|_| true) {
            Ok(policy) => return Ok(policy),
            Err(faults) => vec![stamps(&faults)],
        };
        // Read again: the stamps detect later changes.
        let mut faults: Vec<Diagnostic> = match read(&|_| true) {
            Ok(policy) => return Ok(policy),
            Err(faults) => faults.iter().cloned().collect(),
        };
        let is_in = |fault: &Diagnostic, delegation: &Delegation| {
            delegation.is_of(&fault.path) && sources.is_drop_in(&fault.path)
        };
        let is_new = |fault: &Diagnostic, faults: &[Diagnostic]| {
            sources.is_drop_in(&fault.path) && !faults.iter().any(|known| known.path == fault.path)
        };
        let mut policy = loop {
            let is_sound = |delegation: &Delegation| !faults.iter().any(|fault| is_in(fault, delegation));
            match read(&is_sound) {
                Ok(policy) => break policy,
                // What follows from a fault is not reported, and can be in another file.
                Err(hidden) if hidden.iter().any(|fault| is_new(fault, &faults)) => {
                    seen.push(stamps(&hidden));
                    faults.extend(hidden.iter().cloned());
                }
                Err(faults) => return Err(faults),
            }
        };
        let is_sound = |delegation: &Delegation| !faults.iter().any(|fault| is_in(fault, delegation));
        for delegation in policy.delegations.iter().filter(|delegation| !is_sound(delegation)) {
            let own = faults.iter().filter(|fault| is_in(fault, delegation)).cloned().collect();
            policy.withheld.push((Arc::clone(delegation), Faults::new(own)));
        }
        for seen in seen {
            policy.stamps.add_delegated(seen);
        }
        Ok(policy)
    }

    /// The same with warnings; `names` knows the existing users and groups.
    pub fn check(sources: &Sources, names: &dyn Names) -> Result<Policy, Faults> {
        Self::of_found(sources.read(&|_| true), sources.caller == 0, Purpose::Check(names))
    }

    /// Validates text in memory, with its tests.
    pub fn of_layers(layers: Vec<LayerText>, caller_is_root: bool) -> Result<Policy, Faults> {
        Self::of_layers_for(layers, caller_is_root, Purpose::Review)
    }

    /// Validates text in memory, with warnings.
    pub fn check_layers(
        layers: Vec<LayerText>,
        caller_is_root: bool,
        names: &dyn Names,
    ) -> Result<Policy, Faults> {
        Self::of_layers_for(layers, caller_is_root, Purpose::Check(names))
    }

    /// Validates one text as the system's policy.
    pub fn of_text(path: impl Into<PathBuf>, text: impl Into<String>) -> Result<Policy, Faults> {
        let files = vec![SourceText::new(path, text)];
        Self::of_layers(vec![LayerText { kind: LayerKind::System, files }], false)
    }

    /// A request, with the facts that the rules of this policy need.
    pub(crate) fn facts<'a>(&'a self, request: &'a Request<'a>) -> EvalContext<'a> {
        EvalContext::new(request, self.layers.iter().map(|layer| layer.zone.as_ref()))
    }

    /// Whether any rule is for the command of this request, whoever starts it.
    pub(crate) fn has_rule_for(&self, request: &Request<'_>) -> bool {
        let facts = EvalContext::new(request, []);
        self.rules.iter().any(|rule| rule.selectors.are_for_command(&facts))
    }

    /// The delegations of the system's policy.
    pub fn delegations(&self) -> &[Arc<Delegation>] {
        &self.delegations
    }

    /// Delegated files that are left out because they have faults, and these faults.
    pub fn withheld(&self) -> &[(Arc<Delegation>, Faults)] {
        &self.withheld
    }

    /// The faults that refuse a launch, because their file applies to it.
    pub fn faults_for(&self, request: &Request<'_>) -> Option<&Faults> {
        let facts = EvalContext::new(request, []);
        let mut withheld = self.withheld.iter();
        withheld.find(|(delegation, _)| delegation.may_be_for(&facts)).map(|(_, faults)| faults)
    }

    /// Whether all files are empty: there is no rule, and nothing is refused.
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

    /// The tests that the policy carries, if it was not read for launches.
    pub fn scenarios(&self) -> &[Scenario] {
        &self.scenarios
    }

    /// The time zone of the policy: the first that a layer names, else the system's.
    pub fn time_zone(&self) -> TimeZone {
        zone_of(&self.layers)
    }

    /// The name of that zone, if a layer names one.
    pub fn time_zone_name(&self) -> Option<&str> {
        self.layers.iter().find_map(|layer| layer.zone_name.as_deref())
    }

    /// The program that `[command.NAME] exec` names for a command.
    pub fn executable(&self, command: &OsStr) -> Option<&Path> {
        self.executables.get(command.to_str()?).map(|(_, program)| program.as_path())
    }

    /// The names of the commands in it: those that rules name literally, and those with a program.
    pub fn command_names(&self) -> BTreeSet<&str> {
        let rules = self.rules.iter().flat_map(Rule::literal_commands);
        rules.chain(self.executables.keys().map(String::as_str)).collect()
    }

    /// Warnings; only a policy that was checked has any.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The logs of its layers, each with whether it is the system's.
    pub fn logs(&self) -> impl Iterator<Item = (LayerKind, &Log)> {
        self.layers.iter().filter_map(|layer| layer.log.as_ref().map(|log| (layer.kind, log)))
    }

    /// The same with another limit for a repository, except for members and hours that have one of their own;
    /// none if there is no such repository.
    #[must_use]
    pub fn with_limit(mut self, repository: &str, limit: u32) -> Option<Self> {
        let known = self.repositories.iter_mut().find(|known| known.shown_name() == repository)?;
        known.limit = Limit::Fixed(limit);
        Some(self)
    }

    /// Whether a file of the policy was added, removed or changed since it was read: one `stat` call for each
    /// file.
    pub fn is_stale(&self) -> bool {
        self.stamps.are_stale(None)
    }

    /// The same where others watch. A delegated file that does not answer counts as changed.
    pub(crate) fn is_stale_watched(&self, watch: &dyn Watch) -> bool {
        self.stamps.are_stale(Some(watch))
    }

    /// Whether [`is_surely_fresh`](Self::is_surely_fresh) may be called: it only uses file systems of this
    /// host. This may have to wait for the disk or a server.
    pub(crate) fn is_local(&self, watch: &dyn Watch) -> bool {
        self.stamps.are_local(Some(watch))
    }

    /// Whether it is certainly unchanged, according to the kernel's cache: this never waits for a disk. If it
    /// is unknown, [`is_stale`](Self::is_stale) tells.
    pub(crate) fn is_surely_fresh(&self) -> bool {
        self.stamps.are_surely_fresh()
    }

    pub(crate) fn sequence(&self) -> &[usize] {
        &self.sequence
    }
}

/// The codes of all faults and warnings.
pub fn codes() -> impl Iterator<Item = &'static str> {
    Fault::CODES.iter().chain(Warning::CODES).copied()
}
