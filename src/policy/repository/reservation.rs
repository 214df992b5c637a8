//! Slots that are kept for some users, some hosts, or some hours.

use std::sync::Arc;

use crate::{
    judge::terms::{LookupError, Provenance},
    policy::{
        Aliases, At, EvalContext, HIGHEST_LIMIT, Keys, Limit, Principal, RelevantInputs, SLOT_COUNT_OR_NONE,
        SLOT_COUNT_OR_SHARE, Section, Share, Together, Written, WrittenList,
        eval_context::any,
        fault::Fault,
        key::key,
        selector::{Entry, HostEntry, Window, entries_of, inputs_of, until},
        toml_text::{inline_table, list, string},
    },
};

pub(in crate::policy) static RESERVE: Keys = Keys {
    what: "a reservation",
    groups: &[&[
        Principal::KEY,
        HostEntry::KEY,
        Window::KEY,
        key(
            "slots",
            SLOT_COUNT_OR_SHARE,
            "How many slots are kept, or a share of the limit: \"20%\".",
            "Every reservation.",
        )
        .required(),
        key(
            "lend",
            SLOT_COUNT_OR_NONE,
            "How many of them others may use while they are idle.",
            "Reservations that should not leave seats empty.",
        ),
    ]],
    together: &[Together::Some("users", "hosts")],
};

/// One reservation: slots for some users or hosts.
#[derive(Debug)]
pub struct Reservation {
    /// For all users if none is named but hosts are.
    principals: Vec<Principal>,
    /// On any host if none is named.
    hosts: Vec<HostEntry>,
    /// Always if empty.
    pub(in crate::policy) when: Vec<Window>,
    slots: Share,
    lend: u32,
    /// The users that it is for, as the policy writes them.
    shown: Arc<str>,
}

/// The effect of a reservation on a launch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Standing {
    /// It is kept for launches like this one.
    Own,
    /// It is kept for others.
    Others,
    /// It is for no launch at this time.
    Nobodys,
}

impl Reservation {
    /// Reads all of a repository. The sum of the reserved slots must fit into each of the limits.
    pub(in crate::policy) fn read_all(
        section: &Section<'_>,
        limits: impl Iterator<Item = Limit>,
        aliases: &Aliases<'_>,
    ) -> Vec<Self> {
        // Limit 0 admits none, reserved or not.
        let mut limits: Vec<u32> = limits.filter_map(Limit::fixed).filter(|limit| *limit > 0).collect();
        limits.sort_unstable();
        limits.dedup();
        let mut reserved = vec![0u32; limits.len()];
        let read = |section: Section<'_>| {
            let list = |key: &'static str| section.get(key).and_then(WrittenList::read);
            let (principals, hosts) = (list(Principal::KEY.name), list(HostEntry::KEY.name));
            let when = section.get(Window::KEY.name);
            if section.get(Principal::KEY.name).or(section.get(HostEntry::KEY.name)).is_none() {
                let at = when.map_or(section.at, |when| when.at);
                section.fault(at, Fault::KeptForEverybody { when: when.is_some() });
            }
            let when = when.and_then(WrittenList::read);
            let slots = section.require("slots").and_then(|value| value.share(1));
            let lend = section.count("lend", 0, HIGHEST_LIMIT);
            let Written { value: slots, at } = slots?;
            let lends = lend.map_or(0, |lend| lend.value);
            if let (Some(lend), Share::Slots(slots)) = (lend.filter(|_| !slots.holds(lends)), slots) {
                section.fault(lend.at, Fault::LendAboveSlots { lend: lends, slots });
            }
            for (reserved, limit) in reserved.iter_mut().zip(&limits) {
                *reserved = reserved.saturating_add(slots.down(*limit));
            }
            fits(&reserved, &limits, at, &section);
            let shown: Vec<String> =
                [&principals, &hosts].into_iter().flatten().map(WrittenList::shown).collect();
            Some(Reservation {
                principals: entries(principals.as_ref(), aliases),
                hosts: entries(hosts.as_ref(), aliases),
                when: entries(when.as_ref(), aliases),
                slots,
                lend: lends,
                shown: shown.join(" on ").into(),
            })
        };
        section.each("reserve", &RESERVE).filter_map(read).collect()
    }
}

/// Reports the lowest limit that they do not fit into.
fn fits(reserved: &[u32], limits: &[u32], at: At, section: &Section<'_>) {
    let above = reserved.iter().zip(limits).filter(|(reserved, limit)| reserved > limit);
    if let Some((&reserved, &limit)) = above.min_by_key(|(_, limit)| **limit) {
        section.fault(at, Fault::ReservedAboveLimit { reserved, limit });
    }
}

fn entries<E: Entry>(written: Option<&WrittenList<'_>>, aliases: &Aliases<'_>) -> Vec<E> {
    written.map_or_else(Vec::new, |written| entries_of(&written.entries, aliases))
}

impl Reservation {
    /// The inputs that make a difference to whom it is for.
    pub(in crate::policy) fn inputs(&self) -> RelevantInputs {
        inputs_of(&self.hosts).or(inputs_of(&self.principals))
    }

    /// How many slots of a limit are kept.
    pub fn slots(&self, limit: u32) -> u32 {
        self.slots.down(limit)
    }

    /// How many of them, the last ones, others may use while they are idle.
    pub fn lend(&self, limit: u32) -> u32 {
        self.lend.min(self.slots(limit))
    }

    /// Its effect on a launch. If it is for none, no name is looked up.
    pub(crate) fn standing(&self, facts: &EvalContext<'_>, layer: usize) -> Result<Standing, LookupError> {
        if !self.is_on(facts, layer) {
            return Ok(Standing::Nobodys);
        }
        if !self.hosts.is_empty() && !any(&self.hosts, |host| host.matches(facts, layer))? {
            return Ok(Standing::Others);
        }
        let is_own = self.principals.is_empty() || Principal::any(&self.principals, facts)?;
        Ok(if is_own { Standing::Own } else { Standing::Others })
    }

    /// Whether it applies at this time.
    pub(crate) fn is_on(&self, facts: &EvalContext<'_>, layer: usize) -> bool {
        self.when.is_empty() || any(&self.when, |window| window.matches(facts, layer)) == Ok(true)
    }

    /// The users that it is for, and until when.
    pub(crate) fn because(&self, facts: &EvalContext<'_>, layer: usize) -> Provenance {
        Provenance { whom: Arc::clone(&self.shown), until: until(&self.when, facts, layer) }
    }

    pub(in crate::policy) fn printed(&self) -> String {
        fn texts<E: Entry>(key: &'static str, entries: &[E]) -> Option<(&'static str, String)> {
            let texts = || list(entries.iter().map(|entry| string(&entry.text())));
            (!entries.is_empty()).then(|| (key, texts()))
        }
        let Reservation { principals, hosts, when, slots, lend, shown: _ } = self;
        let selectors = [
            texts(Principal::KEY.name, principals),
            texts(HostEntry::KEY.name, hosts),
            texts(Window::KEY.name, when),
        ];
        let numbers = [("slots", slots.printed()), ("lend", lend.to_string())];
        inline_table(selectors.into_iter().flatten().chain(numbers))
    }
}

/// Whether it is for the same users, as far as known.
impl PartialEq for Reservation {
    fn eq(&self, other: &Self) -> bool {
        (self.printed(), &self.shown) == (other.printed(), &other.shown)
    }
}
