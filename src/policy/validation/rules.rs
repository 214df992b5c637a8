//! Rules: what they select and take, whether their keys go together, and whether their layer may say so.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

use super::{
    captures::{Captures, Missing},
    reading::{Reading, value},
    symbol_table::SymbolTable,
};
use crate::judge::terms::keyword::Keeper;
use crate::policy::{
    fault::Fault,
    place::{At, Written},
    repository::Repository,
    rule::{Acquisition, Action, Admission, ClaimTerms, Rule},
    selector::Selectors,
    warning::Warning,
    written::{WrittenAcquisition, WrittenAlternative, WrittenClaim},
};

pub(super) fn validate(book: &SymbolTable<'_>, repositories: &[Repository]) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut families: HashMap<(usize, &str), Vec<At>> = HashMap::new();
    let mut family_numbers: HashMap<(usize, &str), usize> = HashMap::new();
    let missing = RefCell::new(Missing::default());
    for file in book.files {
        let mut names: HashMap<&str, At> = HashMap::new();
        for (number, written) in file.rule_numbers().into_iter().zip(&file.written.rules) {
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
            let reading = Reading { book, repositories, written, file, missing: &missing };
            rules.push(reading.rule(number, family));
        }
    }
    missing.into_inner().report(book);
    for ((_, family), places) in families {
        if let [only] = places.as_slice() {
            book.warn(*only, || Warning::FamilyOfOne { family: family.to_owned() });
        }
    }
    rules
}

impl<'w> Reading<'_, 'w> {
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
        let selected = written.selectors.validate(&self.book.aliases);
        let captures = Captures::of_selectors(self.book);
        self.missing.borrow_mut().add(&captures);
        let acquire = self.acquire(&selected, &captures);
        let claimed = acquire.iter().flat_map(Acquisition::terms).filter(|terms| !terms.lowers);
        captures.report_unused(claimed.map(|terms| &self.repositories[terms.repository]), self.book);
        let needs_groups = acquire
            .iter()
            .flat_map(Acquisition::terms)
            .any(|terms| !terms.lowers && self.repositories[terms.repository].is_by_group());
        Rule {
            name: written.name.map_or_else(|| format!("rule {}", number + 1), |name| name.value.to_owned()),
            shown_name: String::new(),
            place: self.file.place_of_rule(written.at),
            layer: self.file.layer,
            selectors: selected,
            captures: !captures.is_empty(),
            except: written
                .except
                .iter()
                .map(|except| {
                    if !except.any {
                        self.fault(except.at, Fault::EmptyException);
                    }
                    let except = except.validate(&self.book.aliases);
                    Captures::of_selectors(self.book).report_unused(std::iter::empty(), self.book);
                    except
                })
                .collect(),
            family,
            first_of: written.first_of.map(|family| family.value.to_owned()),
            order: value(written.order).unwrap_or_default(),
            enabled: value(written.enabled).unwrap_or(true),
            action,
            message: written.message.map(|message| message.value.to_owned()),
            contact: written.contact.map(|contact| contact.value.to_owned()),
            default_contact: self.book.layers[self.file.layer].contact.clone(),
            acquire,
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
            let takes_nothing = written.acquire.as_ref().is_some_and(|acquire| acquire.value.is_empty());
            if let Some(wait) = written.wait.filter(|_| takes_nothing) {
                self.fault(wait.at, Fault::WaitWithoutClaim);
            }
            if let Some(from) = &written.from {
                self.fault(from.at, Fault::NeedsKey { key: "from", needs: "action = \"exempt\"" });
            }
            return;
        }
        let other = if action == Action::Deny { "action = \"deny\"" } else { "action = \"exempt\"" };
        let beside = [
            ("acquire", written.acquire.as_ref().map(|acquire| acquire.at)),
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
        if let Some(Written { value: Admission::Always, at }) = written.admit {
            self.fault(at, Fault::Loosens { what: "admit = \"always\"" });
        }
        if let Some(Written { value: false, at }) = written.enforce {
            self.fault(at, Fault::Loosens { what: "enforce = false" });
        }
    }

    fn acquire(&self, selected: &Selectors, captures: &Captures) -> Vec<Acquisition> {
        let entries = self.written.acquire.iter().flat_map(|acquire| &acquire.value);
        let acquisition = |entry: &'w WrittenAcquisition<'w>| match entry {
            WrittenAcquisition::One(claim) => self.terms(claim, selected, captures).map(Acquisition::One),
            WrittenAcquisition::AnyOf(alternatives) => {
                let first = Cell::new(None);
                let terms = |claim: &'w WrittenClaim<'w>| {
                    let terms = self.terms(claim, selected, captures)?;
                    if terms.lowers {
                        let other = "a repository of others";
                        self.fault(claim.at, Fault::Contradiction { key: "any_of", other });
                    }
                    self.check_alternative(claim, terms.repository, selected);
                    // The agent decides on its tables and on those of the site at once.
                    let keeper = self.repositories[terms.repository].keeper() == Keeper::File;
                    if first.get().is_some_and(|first| first != keeper) {
                        let name = claim.repository.value.to_owned();
                        self.fault(claim.repository.at, Fault::MixedKeepers { repository: name });
                    }
                    first.set(first.get().or(Some(keeper)));
                    Some(terms)
                };
                let list =
                    |written: &'w WrittenAlternative<'w>| written.claims.iter().filter_map(terms).collect();
                let lists: Vec<Vec<ClaimTerms>> = alternatives.iter().map(list).collect();
                self.warn_of_unreached(alternatives, &lists);
                Some(Acquisition::AnyOf(lists))
            }
        };
        entries.filter_map(acquisition).collect()
    }

    /// Alternatives that can only be had where an earlier one could be had as well.
    fn warn_of_unreached(&self, written: &[WrittenAlternative<'_>], lists: &[Vec<ClaimTerms>]) {
        for (index, list) in lists.iter().enumerate() {
            let before = lists[..index].iter().position(|before| {
                let is_less = |less: &ClaimTerms| list.iter().any(|more| less.wants_no_more_than(more));
                !before.is_empty() && before.iter().all(is_less)
            });
            if let Some(before) = before.filter(|_| !list.is_empty()) {
                let names =
                    lists[before].iter().map(|terms| self.repositories[terms.repository].name.as_str());
                let before = names.collect::<Vec<_>>().join(" + ");
                self.book.warn(written[index].at, || Warning::NeverReached { before });
            }
        }
    }
}
