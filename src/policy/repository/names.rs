//! Slots with names: the first slot has the first name, and so on. A name that is out of order keeps its
//! slot, so that the others keep their numbers, and no launch gets this slot.

use std::{borrow::Cow, slice, sync::Arc};

use crate::policy::{
    Aliases, At, EvalContext, Section, Table, Value, Written, WrittenEntry,
    fault::Fault,
    selector::{Entry, HostEntry, entries_of},
    spelling::nearest,
    toml_text::{inline_table, key, list, string},
};

/// The names of a repository's slots.
#[derive(Debug, Default)]
pub(crate) struct SlotNames {
    names: Arc<[String]>,
    out_of_order: Vec<OutOfOrder>,
}

/// Slots that no launch gets.
#[derive(Debug)]
struct OutOfOrder {
    /// The hosts for which that is true; all if none is named.
    host: Option<HostEntry>,
    /// Counted from 1.
    slots: Vec<u32>,
}

impl SlotNames {
    /// The names, in the order of the slots.
    pub(crate) fn all(&self) -> &Arc<[String]> {
        &self.names
    }

    /// The maximum number of slots; unlimited if they have no names.
    pub(crate) fn most(&self) -> Option<u32> {
        (!self.names.is_empty()).then(|| u32::try_from(self.names.len()).unwrap_or(u32::MAX))
    }

    /// The highest slot under a limit, and the slots up to it that no launch gets on the host of a request,
    /// in ascending order.
    pub(crate) fn under(&self, limit: u32, facts: &EvalContext<'_>) -> (u32, Vec<u32>) {
        let highest = limit.min(self.most().unwrap_or(u32::MAX));
        let is_here =
            |broken: &&OutOfOrder| broken.host.as_ref().is_none_or(|host| host.matches(facts, 0) == Ok(true));
        let mut slots: Vec<u32> =
            self.out_of_order.iter().filter(is_here).flat_map(|broken| &broken.slots).copied().collect();
        slots.sort_unstable();
        slots.dedup();
        slots.retain(|slot| *slot <= highest);
        (highest, slots)
    }

    pub(in crate::policy) fn print(&self, text: &mut Table) {
        let SlotNames { names, out_of_order } = self;
        if names.is_empty() {
            return;
        }
        text.set("names", list(names.iter().map(|name| string(name))));
        let named = |slots: &[u32]| {
            list(slots.iter().filter_map(|slot| names.get(*slot as usize - 1)).map(|name| string(name)))
        };
        let by_host = |broken: &OutOfOrder| {
            let host = broken.host.as_ref().map_or_else(|| "*".to_owned(), Entry::text);
            (key(&host), named(&broken.slots))
        };
        match out_of_order.as_slice() {
            [] => {}
            [OutOfOrder { host: None, slots }] => text.set("out_of_order", named(slots)),
            by_hosts => text.set("out_of_order", inline_table(by_hosts.iter().map(by_host))),
        }
    }
}

/// Equal texts are equal.
impl PartialEq for SlotNames {
    fn eq(&self, other: &Self) -> bool {
        let printed = |names: &Self| {
            let mut text = Table::default();
            names.print(&mut text);
            text
        };
        printed(self) == printed(other)
    }
}

type Names<'a> = Vec<Written<&'a str>>;

/// Names, and the host.
type WrittenOutOfOrder<'a> = (Option<WrittenEntry<'a>>, Names<'a>);

/// `names` and `out_of_order` as written.
pub(in crate::policy) struct WrittenNames<'a> {
    names: Option<Names<'a>>,
    /// Well or badly.
    pub(in crate::policy) is_there: bool,
    /// Each with its host, if it has one.
    out_of_order: Option<(At, Vec<WrittenOutOfOrder<'a>>)>,
}

impl<'a> WrittenNames<'a> {
    pub(in crate::policy) fn read(section: &Section<'a>) -> Self {
        let list = |value: Value<'a>, instead: &'static str| -> Option<Names<'a>> {
            let names = value.list("a list of strings")?.value;
            value.filled(names.iter().filter_map(Value::text).collect(), instead).map(|names| names.value)
        };
        let broken = |value| list(value, "leave it out where all are in order");
        let by_host = |value: Value<'a>| {
            if value.is_list() {
                return Some((value.at, vec![(None, broken(value)?)]));
            }
            if !value.is_table() {
                value.wrong("a list of names, or a table of hosts with such lists");
                return None;
            }
            let hosts = value.by_name()?.into_iter();
            Some((
                value.at,
                hosts
                    .filter_map(|(host, value)| {
                        let host = Written { value: Cow::Borrowed(host.value), at: host.at };
                        Some((Some(host), broken(value)?))
                    })
                    .collect(),
            ))
        };
        WrittenNames {
            is_there: section.get("names").is_some(),
            names: section.get("names").and_then(|value| list(value, "leave it out for slots without names")),
            out_of_order: section.get("out_of_order").and_then(by_host),
        }
    }

    /// How many there are.
    pub(in crate::policy) fn count(&self) -> Option<u32> {
        self.names.as_ref().map(|names| u32::try_from(names.len()).unwrap_or(u32::MAX))
    }

    pub(in crate::policy) fn validate(&self, aliases: &Aliases<'_>) -> SlotNames {
        let mut known: Vec<String> = Vec::new();
        for name in self.names.iter().flatten() {
            let is_word = |c: char| !c.is_control() && !c.is_whitespace() && c != ',';
            if name.value.is_empty() || !name.value.chars().all(is_word) {
                aliases.findings.fault(name.at, Fault::BadSlotName { name: name.value.to_owned() });
            } else if known.iter().any(|other| other == name.value) {
                aliases.findings.fault(name.at, Fault::NameTwice { name: name.value.to_owned() });
            }
            known.push(name.value.to_owned());
        }
        let Some((at, by_host)) = &self.out_of_order else {
            return SlotNames { names: known.into(), out_of_order: Vec::new() };
        };
        if self.names.is_none() {
            aliases.findings.fault(*at, Fault::NeedsKey { key: "out_of_order", needs: "\"names\"" });
        }
        let slot = |name: &Written<&str>| {
            let place = known.iter().position(|other| other == name.value);
            if place.is_none() && self.names.is_some() {
                let nearest = nearest(name.value, known.iter().map(String::as_str));
                aliases.findings.fault(name.at, Fault::UnknownName { name: name.value.to_owned(), nearest });
            }
            place.and_then(|place| u32::try_from(place + 1).ok())
        };
        let mut out_of_order: Vec<OutOfOrder> = Vec::new();
        for (host, names) in by_host {
            let slots: Vec<u32> = names.iter().filter_map(slot).collect();
            let Some(host) = host else {
                out_of_order.push(OutOfOrder { host: None, slots });
                continue;
            };
            let hosts: Vec<HostEntry> = entries_of(slice::from_ref(host), aliases);
            for host in hosts {
                let is_same = |other: &&mut OutOfOrder| {
                    other.host.as_ref().is_some_and(|other| other.text() == host.text())
                };
                match out_of_order.iter_mut().find(is_same) {
                    Some(other) => other.slots.extend(&slots),
                    None => out_of_order.push(OutOfOrder { host: Some(host), slots: slots.clone() }),
                }
            }
        }
        SlotNames { names: known.into(), out_of_order }
    }
}
