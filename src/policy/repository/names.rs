//! Slots with names: the first slot has the first name, and so on. A name that is out of order keeps its
//! slot, so that the others keep their numbers, and no launch gets this slot.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use crate::policy::{
    Aliases, EvalContext, Section, Table, Value, Written,
    fault::Fault,
    selector::{Entry, HostEntry, entries_of},
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

impl SlotNames {
    /// Reads `names` and `out_of_order` of a repository.
    pub(in crate::policy) fn read(section: &Section<'_>, aliases: &Aliases<'_>) -> Self {
        let value = section.get("names");
        let written = value.and_then(|value| value.filled_texts("leave it out for slots without names"));
        let mut names: Vec<String> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for name in written.iter().flatten() {
            let is_word = |c: char| !c.is_control() && !c.is_whitespace() && c != ',';
            if name.value.is_empty() || !name.value.chars().all(is_word) {
                section.fault(name.at, Fault::BadSlotName { name: name.value.to_owned() });
            } else if places.contains_key(name.value) {
                section.fault(name.at, Fault::NameTwice { name: name.value.to_owned() });
            }
            places.entry(name.value).or_insert(names.len());
            names.push(name.value.to_owned());
        }
        let slot = |name: &Written<&str>| {
            let place = places.get(name.value);
            if place.is_none() && written.is_some() {
                let nearest = aliases.findings.nearest(name.at, name.value, names.iter().map(String::as_str));
                section.fault(name.at, Fault::UnknownName { name: name.value.to_owned(), nearest });
            }
            place.and_then(|place| u32::try_from(place + 1).ok())
        };
        let slots = |value: Value<'_>| -> Option<Vec<u32>> {
            let names = value.filled_texts("leave it out where all are in order")?;
            Some(names.iter().filter_map(slot).collect())
        };
        let mut out_of_order: Vec<OutOfOrder> = Vec::new();
        let mut of_hosts: HashMap<String, usize> = HashMap::new();
        match section.get("out_of_order") {
            None => {}
            Some(value) if value.is_list() => {
                out_of_order.extend(slots(value).map(|slots| OutOfOrder { host: None, slots }));
            }
            Some(value) if value.is_table() => {
                for (host, value) in value.by_name().unwrap_or_default() {
                    let Some(slots) = slots(value) else { continue };
                    let entry = Written { value: Cow::Borrowed(host.value), at: host.at };
                    let hosts: Vec<HostEntry> = entries_of([entry], aliases);
                    let count = u32::try_from(slots.len()).unwrap_or(u32::MAX);
                    // Each host of an alias has a copy of the list.
                    for one in hosts.into_iter().take_while(|_| aliases.spend(host.at, count)) {
                        let place = *of_hosts.entry(one.text()).or_insert(out_of_order.len());
                        if place == out_of_order.len() {
                            out_of_order.push(OutOfOrder { host: Some(one), slots: Vec::new() });
                        }
                        out_of_order[place].slots.extend(&slots);
                    }
                }
            }
            Some(value) => value.wrong("a list of names, or a table of hosts with such lists"),
        }
        // A list that cannot be read has a fault of its own.
        let value = section.get("out_of_order").filter(|value| value.is_table() || !out_of_order.is_empty());
        if let (Some(value), None) = (value, written) {
            section.fault(value.at, Fault::NeedsKey { key: "out_of_order", needs: "\"names\"" });
        }
        SlotNames { names: names.into(), out_of_order }
    }
}
