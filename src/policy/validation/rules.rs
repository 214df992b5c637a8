//! Rules: what they select and take, whether their keys go together, and whether their layer may say so.

use std::collections::HashMap;

use super::{LayerFile, book::Book, selectors};
use crate::policy::{
    acquisition::{Acquisition, ClaimTerms, Slots, SlotsFrom},
    fault::Fault,
    place::{At, Written},
    principal::GroupEntry,
    repository::{Charge, Repository},
    rule::{Action, Admit, Rule},
    selectors::Selectors,
    warning::Warning,
    written::{WrittenAcquisition, WrittenClaim, WrittenRule},
};

pub(super) fn validate(book: &Book<'_>, repositories: &[Repository]) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut families: HashMap<(usize, &str), Vec<At>> = HashMap::new();
    let mut family_numbers: HashMap<(usize, &str), usize> = HashMap::new();
    for file in book.files {
        let mut names: HashMap<&str, At> = HashMap::new();
        for (index, written) in file.written.rules.iter().enumerate() {
            if let Some(name) = written.name {
                if let Some(first) = names.get(name.value) {
                    let fault = Fault::DuplicateRule { name: name.value.to_owned(), first: *first };
                    book.findings.fault(name.at, fault);
                } else {
                    names.insert(name.value, name.at);
                }
            }
            let family = written.first_of.map(|family| {
                families.entry((file.layer, family.value)).or_default().push(family.at);
                let next = family_numbers.len();
                *family_numbers.entry((file.layer, family.value)).or_insert(next)
            });
            let reading = Reading { book, repositories, written, file };
            rules.push(reading.rule(file.rule_number(index), family));
        }
    }
    for ((_, family), places) in families {
        if let [only] = places.as_slice() {
            book.warn(*only, || Warning::FamilyOfOne { family: family.to_owned() });
        }
    }
    rules
}

struct Reading<'b, 'w> {
    book: &'b Book<'w>,
    repositories: &'b [Repository],
    written: &'w WrittenRule<'w>,
    file: &'b LayerFile<'w>,
}

impl Reading<'_, '_> {
    fn fault(&self, at: At, fault: Fault) {
        self.book.findings.fault(at, fault);
    }

    fn rule(&self, number: usize, family: Option<usize>) -> Rule {
        let written = self.written;
        let action = written.action.map(|action| action.value).unwrap_or_default();
        if !written.action_unknown {
            self.check_keys(action);
        }
        self.check_layer(action);
        if let (Some(order), None) = (written.order, written.first_of) {
            self.book.warn(order.at, || Warning::OrderAlone);
        }
        let selected = selectors::validate(self.book, &written.selectors);
        let acquire = self.acquire(&selected);
        let needs_groups = acquire
            .iter()
            .flat_map(Acquisition::terms)
            .any(|terms| self.repositories[terms.repository].is_by_group());
        Rule {
            name: written.name.map_or_else(|| format!("rule {}", number + 1), |name| name.value.to_owned()),
            shown_name: String::new(),
            place: self.file.place(written.at),
            layer: self.file.layer,
            selectors: selected,
            except: written
                .except
                .iter()
                .map(|except| {
                    if !except.any {
                        self.fault(except.at, Fault::EmptyException);
                    }
                    selectors::validate(self.book, except)
                })
                .collect(),
            family,
            first_of: written.first_of.map(|family| family.value.to_owned()),
            order: value(written.order).unwrap_or_default(),
            enabled: value(written.enabled).unwrap_or(true),
            action,
            message: written.message.map(|message| message.value.to_owned()),
            acquire,
            charge: value(written.charge),
            admit: value(written.admit).unwrap_or_default(),
            from: written
                .from
                .as_ref()
                .map(|from| from.value.iter().filter_map(|name| self.book.repository(*name)).collect()),
            enforce: value(written.enforce),
            wait: value(written.wait),
            hold: value(written.hold),
            needs_groups,
        }
    }

    /// Keys that do not go together.
    fn check_keys(&self, action: Action) {
        let written = self.written;
        if action == Action::Limit {
            if !written.acquires {
                self.fault(written.at, Fault::NothingToDo);
            }
            if let Some(from) = &written.from {
                self.fault(from.at, Fault::NeedsKey { key: "from", needs: "action = \"exempt\"" });
            }
            return;
        }
        let other = if action == Action::Deny { "action = \"deny\"" } else { "action = \"exempt\"" };
        let beside = [
            ("acquire", written.acquire.as_ref().map(|acquire| acquire.at)),
            ("charge", written.charge.map(|charge| charge.at)),
            ("admit", written.admit.map(|admit| admit.at)),
            ("wait", written.wait.map(|wait| wait.at)),
            ("hold", written.hold.map(|hold| hold.at)),
            ("from", written.from.as_ref().filter(|_| action == Action::Deny).map(|from| from.at)),
            ("enforce", written.enforce.filter(|_| action == Action::Exempt).map(|enforce| enforce.at)),
        ];
        for (key, at) in beside {
            if let Some(at) = at {
                self.fault(at, Fault::Contradiction { key, other });
            }
        }
        if let (Action::Exempt, Some(family)) = (action, written.first_of) {
            self.fault(family.at, Fault::ExemptInFamily);
        }
        if let Some(from) = written.from.as_ref().filter(|from| from.value.is_empty()) {
            self.fault(
                from.at,
                Fault::EmptyList { key: "from".into(), instead: "leave it out to exempt from everything" },
            );
        }
    }

    /// What only a layer that may loosen can say.
    fn check_layer(&self, action: Action) {
        if self.book.layers[self.file.layer].may_loosen {
            return;
        }
        let written = self.written;
        if let (Action::Exempt, Some(action)) = (action, written.action) {
            self.fault(action.at, Fault::Loosens { what: "an exempt rule" });
        }
        if let Some(Written { value: Admit::Always, at }) = written.admit {
            self.fault(at, Fault::Loosens { what: "admit = \"always\"" });
        }
        if let Some(Written { value: false, at }) = written.enforce {
            self.fault(at, Fault::Loosens { what: "enforce = false" });
        }
    }

    fn acquire(&self, selected: &Selectors) -> Vec<Acquisition> {
        let entries = self.written.acquire.iter().flat_map(|acquire| &acquire.value);
        let acquisition = |entry: &WrittenAcquisition<'_>| match entry {
            WrittenAcquisition::One(claim) => self.terms(claim).map(Acquisition::One),
            WrittenAcquisition::AnyOf(claims) => {
                let alternatives = claims.iter().filter_map(|claim| {
                    let terms = self.terms(claim)?;
                    self.check_alternative(claim, terms.repository, selected);
                    Some(terms)
                });
                Some(Acquisition::AnyOf(alternatives.collect()))
            }
        };
        entries.filter_map(acquisition).collect()
    }

    fn terms(&self, claim: &WrittenClaim<'_>) -> Option<ClaimTerms> {
        let repository = self.book.repository(claim.repository)?;
        if self.repositories[repository].is_by_group() && self.written.selectors.groups.is_none() {
            let name = claim.repository.value.to_owned();
            self.fault(claim.repository.at, Fault::GroupWithoutGroups { repository: name });
        }
        let slots = value(claim.slots).unwrap_or(Slots::Number(1));
        self.check_numbers(claim, slots, &self.repositories[repository]);
        Some(ClaimTerms {
            repository,
            ceiling: value(claim.ceiling),
            leave: value(claim.leave),
            slots,
            slots_from: claim
                .slots_from
                .as_ref()
                .map(|from| SlotsFrom { after: from.after.to_owned(), most: from.most }),
        })
    }

    /// Slots that can never be had, and ceilings that say nothing, where that can be seen without a request.
    fn check_numbers(&self, claim: &WrittenClaim<'_>, slots: Slots, repository: &Repository) {
        let Some(limit) = repository.highest_fixed_limit() else { return };
        let ceiling = claim.ceiling.map(|ceiling| ceiling.value);
        let left = claim.leave.map(|leave| limit.saturating_sub(leave.value));
        let most = ceiling.or(left).map_or(limit, |most| most.min(limit));
        if let Slots::Number(slots) = slots
            && most > 0
            && slots > most
        {
            let at = claim.slots.map_or(claim.at, |slots| slots.at);
            self.fault(
                at,
                Fault::SlotsAboveLimit { slots, limit: most, repository: repository.name.clone() },
            );
        }
        if let Some(ceiling) = claim.ceiling.filter(|ceiling| ceiling.value >= limit && limit > 0) {
            self.book.warn(ceiling.at, || Warning::NeverBinds { ceiling: ceiling.value, limit });
        }
    }

    /// An alternative is one file: it cannot stand for several groups at once.
    fn check_alternative(&self, claim: &WrittenClaim<'_>, repository: usize, selected: &Selectors) {
        let repository = &self.repositories[repository];
        let charge = value(self.written.charge).or(repository.charge).unwrap_or_default();
        let one_group = match selected.groups.as_deref() {
            Some([GroupEntry::Named(name)]) => name.literal().is_some(),
            Some([GroupEntry::Gids(gids)]) => gids.start() == gids.end(),
            _ => false,
        };
        if repository.is_by_group() && charge == Charge::All && !one_group {
            let name = claim.repository.value.to_owned();
            self.fault(claim.repository.at, Fault::ChargeAllInAnyOf { repository: name });
        }
    }
}

fn value<T>(written: Option<Written<T>>) -> Option<T> {
    written.map(|written| written.value)
}
