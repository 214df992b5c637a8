//! The defaults of each layer, merged from its files. A layer sets a default once: two files with different
//! values are a fault, because neither author expects to be overridden.

use std::sync::Arc;

use super::LayerFile;
use crate::{
    judge::terms::{Keeper, Keyword},
    policy::{
        Delegation, Directory, Findings, Layer, LayerKind, Log, LogTarget, SYSTEM_DIRECTORY, Section,
        Unmatched, Value, Written,
        fault::Fault,
        limit::digits,
        repository::keeping::check_defaults,
        times::{named_zone, system_zone},
    },
};

pub(super) fn validate(
    kinds: &[LayerKind],
    caller_is_root: bool,
    files: &[LayerFile<'_>],
    findings: &Findings,
    delegations: &[Arc<Delegation>],
) -> Vec<Layer> {
    let system_counts = kinds.contains(&LayerKind::System);
    let mut layers: Vec<Layer> = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        let files: Vec<&LayerFile<'_>> = files.iter().filter(|file| file.layer == index).collect();
        let system = layers.iter().find(|layer| layer.kind == LayerKind::System);
        layers.push(match (kind, system) {
            (LayerKind::Delegated, Some(system)) => delegated(system, &files, delegations),
            _ => {
                let may_loosen = *kind == LayerKind::System || !system_counts || caller_is_root;
                put_together(*kind, may_loosen, &files, findings)
            }
        });
    }
    layers
}

/// The layer of a delegated file has the defaults of the system, and may loosen nothing, for every caller.
fn delegated(system: &Layer, files: &[&LayerFile<'_>], delegations: &[Arc<Delegation>]) -> Layer {
    let is_of_file =
        |delegation: &&Arc<Delegation>| files.iter().all(|file| delegation.is_of(file.source.path()));
    let delegation = delegations.iter().find(is_of_file).cloned();
    let below = delegation.as_ref().map(|delegation| delegation.directory());
    let zone = || system.zone_name.as_deref().and_then(named_zone).unwrap_or_else(system_zone);
    Layer {
        kind: LayerKind::Delegated,
        may_loosen: false,
        directory: Directory { delegated: below, ..system.directory.clone() },
        unmatched: Unmatched::default(),
        enforce: system.enforce,
        wait: system.wait,
        hold: system.hold,
        create_mode: system.create_mode,
        // The tables of the agent have no directory.
        keeper: Keeper::File,
        contact: system.contact.clone(),
        zone: system.zone.clone().or_else(|| ask_for_the_time(files).then(zone)),
        zone_name: system.zone_name.clone(),
        log: None,
        delegation,
    }
}

fn ask_for_the_time(files: &[&LayerFile<'_>]) -> bool {
    files.iter().any(|file| file.written.asks_for_the_time)
}

fn put_together(kind: LayerKind, may_loosen: bool, files: &[&LayerFile<'_>], findings: &Findings) -> Layer {
    let tables = files.iter().filter_map(|file| file.written.defaults.as_ref()).collect();
    let once = Once { findings, tables };
    let directory = once.of("directory", Section::text);
    let enforce = once.of("enforce", Section::flag);
    let keeper: Option<Written<Keeper>> = once.of("keeper", Section::choice);
    let create_mode = once.of("create_mode", |section, key| section.get(key).and_then(mode));
    if let Some(keeper) = keeper {
        if keeper.value != Keeper::File && kind != LayerKind::System {
            findings.fault(keeper.at, Fault::AgentOutsideSystem { keeper: keeper.value.word() });
        }
        let about_files =
            [("directory", directory.map(|said| said.at)), ("create_mode", create_mode.map(|said| said.at))];
        check_defaults(keeper.value, &about_files, findings);
    }
    let zone_name = once.of("time_zone", Section::text);
    if let Some(Written { value: false, at }) = enforce
        && !may_loosen
    {
        findings.fault(at, Fault::Loosens { what: "enforce = false" });
    }
    let zone = zone_name.map(|name| {
        named_zone(name.value).unwrap_or_else(|| {
            findings.fault(name.at, Fault::UnknownZone { name: name.value.to_owned() });
            jiff::tz::TimeZone::UTC
        })
    });

    Layer {
        kind,
        may_loosen,
        directory: directory.map_or_else(|| directory_of(kind), |written| read_directory(written, findings)),
        unmatched: value(once.of("unmatched", Section::choice)).unwrap_or_default(),
        enforce: value(enforce).unwrap_or(true),
        wait: value(once.of("wait", Section::wait)),
        hold: value(once.of("hold", Section::choice)),
        create_mode: value(create_mode),
        keeper: value(keeper).unwrap_or_default(),
        contact: value(once.of("contact", Section::contact)).map(Arc::from),
        zone: zone.or_else(|| ask_for_the_time(files).then(system_zone)),
        zone_name: zone_name.map(|name| name.value.to_owned()),
        log: log(files, findings, kind),
        delegation: None,
    }
}

fn value<T>(written: Option<Written<T>>) -> Option<T> {
    written.map(|written| written.value)
}

fn directory_of(kind: LayerKind) -> Directory {
    if kind == LayerKind::System { Directory::at(SYSTEM_DIRECTORY) } else { Directory::runtime() }
}

fn read_directory(written: Written<&str>, findings: &Findings) -> Directory {
    Directory::parse(written.value).unwrap_or_else(|fault| {
        findings.fault(written.at, fault);
        Directory::runtime()
    })
}

/// A layer without a log has the default of its kind: the system's refusals go to the journal, those of a
/// caller's own policy do not.
fn log(files: &[&LayerFile<'_>], findings: &Findings, kind: LayerKind) -> Option<Log> {
    let once = Once { findings, tables: files.iter().filter_map(|file| file.written.log.as_ref()).collect() };
    let to = value(once.of("to", |section, key| section.get(key).and_then(log_target)));
    let replay = value(once.of("replay", Section::flag));
    if to.is_none() && replay.is_none() {
        return None;
    }
    let usual = if kind == LayerKind::System { LogTarget::Journald } else { LogTarget::Off };
    Some(Log { to: to.unwrap_or(usual), replay: replay.unwrap_or_default() })
}

fn log_target(value: Value<'_>) -> Option<Written<LogTarget>> {
    let text = value.text()?;
    match LogTarget::parse(text.value) {
        Ok(Some(target)) => return Some(Written { value: target, at: text.at }),
        Ok(None) => value.unknown_word(text.value, LogTarget::WORDS.to_vec()),
        Err(fault) => value.fault(fault),
    }
    None
}

/// A mode is a string of octal digits, because TOML reads a bare 0666 as a mistake and 666 as a decimal
/// number.
fn mode(value: Value<'_>) -> Option<Written<u32>> {
    let parse = |text: &str| {
        let octal = text.strip_prefix("0o").unwrap_or(text);
        digits(octal, 8).filter(|mode| *mode <= 0o777 && octal.len() >= 3)
    };
    value.parsed("a string such as \"0666\"", parse, |_, text| Fault::BadMode { text })
}

/// The same table in each file of a layer.
struct Once<'f, 'w> {
    findings: &'f Findings,
    tables: Vec<&'f Section<'w>>,
}

impl<'w> Once<'_, 'w> {
    /// The value of a key. The first counts, and a later different one is a fault.
    fn of<T: PartialEq>(
        &self,
        key: &'static str,
        read: impl Fn(&Section<'w>, &'static str) -> Option<Written<T>>,
    ) -> Option<Written<T>> {
        let mut said = self.tables.iter().filter_map(|table| read(table, key));
        let first = said.next()?;
        for other in said.filter(|other| other.value != first.value) {
            self.findings.fault(other.at, Fault::ConflictingDefault { key, first: first.at });
        }
        Some(first)
    }
}
