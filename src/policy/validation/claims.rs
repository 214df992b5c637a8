//! The claims of a rule: their slots, and whether they can ever be met.

use super::{
    captures::{Captures, by_captures},
    reading::{Reading, value},
};
use crate::{
    judge::terms::{group::MOST_SHARED, keyword::Keeper},
    policy::{
        fault::Fault,
        limit::Limit,
        repository::{Charge, Repository, keeping::MOST_AT_SITE},
        rule::{Action, ClaimTerms, Slots, SlotsFrom},
        selector::Selectors,
        warning::Warning,
        written::WrittenClaim,
    },
};

impl<'w> Reading<'_, 'w> {
    /// The slots of a claim; none if its name is unknown.
    pub(super) fn terms(
        &self,
        claim: &WrittenClaim<'w>,
        selected: &Selectors,
        captures: &Captures,
    ) -> Option<ClaimTerms> {
        let repository = self.book.repository(claim.repository)?;
        if self.book.is_of_others(self.file.layer, &self.repositories[repository]) {
            return Some(self.lowered(claim, repository));
        }
        self.missing.borrow_mut().claim(claim, repository, &self.repositories[repository], captures);
        if self.repositories[repository].is_by_group() && self.written.selectors.groups.is_none() {
            let name = claim.repository.value.to_owned();
            self.fault(claim.repository.at, Fault::GroupWithoutGroups { repository: name });
        }
        self.check_choice(claim, &self.repositories[repository], selected);
        let slots = value(claim.slots).unwrap_or(Slots::Number(1));
        let slots_from = claim.slots_from.as_ref().map(|from| {
            let table: Vec<(u32, u32)> =
                from.table.iter().map(|(number, slots)| (*number, slots.value)).collect();
            let unclear = from.unclear.unwrap_or_else(|| SlotsFrom::default_unclear(&table));
            let after = from.after.iter().map(|&name| name.to_owned()).collect();
            SlotsFrom { after, most: from.most, table, unclear }
        });
        let least = match (slots, &slots_from) {
            (Slots::Number(number), Some(from)) => Slots::Number(from.slots_for(number).unwrap_or(number)),
            _ => slots,
        };
        self.check_numbers(claim, least, &self.repositories[repository]);
        self.check_site(claim, slots, &self.repositories[repository]);
        self.check_shared(claim, slots, &self.repositories[repository]);
        if let Some(action) = self.written.action.filter(|action| action.value == Action::Count)
            && self.repositories[repository].names.most().is_some()
        {
            let repository = claim.repository.value.to_owned();
            self.fault(action.at, Fault::BeyondNames { repository });
        }
        if let (Some(wait), Some(longest)) = (claim.wait, self.repositories[repository].settings.max_wait)
            && wait.value > longest
        {
            let repository = claim.repository.value.to_owned();
            self.fault(wait.at, Fault::WaitAboveMax { longest: longest.to_string(), repository });
        }
        Some(ClaimTerms {
            repository,
            ceiling: value(claim.ceiling),
            slots,
            slots_from,
            wait: value(claim.wait),
            lowers: false,
        })
    }

    /// One transaction has room for this many slots.
    fn check_site(&self, claim: &WrittenClaim<'_>, slots: Slots, repository: &Repository) {
        let most = match slots {
            Slots::Number(number) => Some(number),
            Slots::All => repository.limit.fixed(),
        };
        let from = claim.slots_from.as_ref();
        let most = most.max(from.filter(|from| from.table.is_empty()).and_then(|from| from.most));
        if repository.keeper() != Keeper::Site {
            return;
        }
        if let Some(entry) = from
            .into_iter()
            .flat_map(|from| &from.table)
            .map(|(_, slots)| slots)
            .find(|slots| slots.value > MOST_AT_SITE)
        {
            self.fault(entry.at, Fault::TableTooGreatForSite { most: MOST_AT_SITE });
        } else if most.is_some_and(|most| most > MOST_AT_SITE) {
            self.fault(claim.at, Fault::TooManyForSite { most: MOST_AT_SITE });
        }
    }

    /// A group has so many ranks.
    fn check_shared(&self, claim: &WrittenClaim<'_>, slots: Slots, repository: &Repository) {
        let is_few = |number: u32| u64::from(number) <= MOST_SHARED;
        let from = claim.slots_from.as_ref();
        let are_few = matches!(slots, Slots::Number(number) if is_few(number))
            && from.is_none_or(|from| match from.table.as_slice() {
                [] => from.most.is_some_and(is_few),
                table => table.iter().all(|(_, slots)| is_few(slots.value)),
            });
        if repository.sharing.is_there() && !are_few {
            self.fault(claim.at, Fault::SharedSlots { most: MOST_SHARED });
        }
    }

    fn lowered(&self, claim: &WrittenClaim<'_>, repository: usize) -> ClaimTerms {
        let ceiling = value(claim.ceiling);
        let takes = claim.slots.is_some() || claim.slots_from.is_some() || claim.wait.is_some();
        if takes || ceiling.is_none() {
            let repository = claim.repository.value.to_owned();
            self.fault(claim.at, Fault::MayOnlyLower { repository });
        }
        let slots = Slots::Number(1);
        ClaimTerms { repository, ceiling, slots, slots_from: None, wait: None, lowers: true }
    }

    /// In a rule about users, a caller who can choose the file is not limited by it.
    fn check_choice(&self, claim: &WrittenClaim<'_>, repository: &Repository, selected: &Selectors) {
        let chosen = repository.path.placeholders().find(|placeholder| placeholder.is_chosen());
        // A policy that lists members of a capture but also admits others restricts no one.
        let is_open = || {
            let is_listed = !repository.limits.is_empty() && by_captures(repository).next().is_some();
            is_listed && repository.limit() != Limit::Fixed(0)
        };
        if let Some(placeholder) = chosen
            && self.book.layers[repository.layer].is_of_system()
            && (selected.ask_who() || is_open())
        {
            self.book.warn(claim.repository.at, || Warning::ChosenByCaller {
                repository: repository.name.clone(),
                placeholder: placeholder.name(),
            });
        }
    }

    /// Unavailable slots, and ceilings without effect, if that is visible without a request.
    fn check_numbers(&self, claim: &WrittenClaim<'_>, slots: Slots, repository: &Repository) {
        let Some(limit) = repository.highest_fixed_limit() else { return };
        let ceiling = claim.ceiling.map(|ceiling| ceiling.value.ceiling(limit));
        let most = ceiling.map_or(limit, |most| most.min(limit));
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
        if let Some(ceiling) = claim.ceiling.filter(|ceiling| ceiling.value.is_all_of(limit)) {
            self.book.warn(ceiling.at, || Warning::NeverBinds { ceiling: ceiling.value, limit });
        }
    }

    /// An alternative is one file: it cannot charge several groups at once.
    pub(super) fn check_alternative(
        &self,
        claim: &WrittenClaim<'_>,
        repository: usize,
        selected: &Selectors,
    ) {
        let repository = &self.repositories[repository];
        let charge = repository.settings.charge.unwrap_or_default();
        let one_group = matches!(selected.groups.as_deref(), Some([group]) if group.is_one());
        if repository.is_by_group() && charge == Charge::All && !one_group {
            let name = claim.repository.value.to_owned();
            self.fault(claim.repository.at, Fault::ChargeAllInAnyOf { repository: name });
        }
    }
}
