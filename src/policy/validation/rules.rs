//! Rules: what they select and take, whether their keys go together, and whether their layer may say so.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeSet, HashMap, hash_map::Entry},
};

use super::{
    captures::{Captures, Missing},
    reading::{Reading, value},
    symbol_table::SymbolTable,
};
use crate::judge::terms::keyword::Keeper;
use crate::policy::{
    eval_context::Invocation,
    fault::Fault,
    place::{At, Place, Written},
    quick_hash::QuickHash,
    repository::Repository,
    rule::{Acquisition, Action, ClaimTerms, Rule},
    selector::Selectors,
    times::Idle,
    warning::Warning,
    written::{WrittenAcquisition, WrittenAlternative, WrittenClaim, WrittenRule},
};

/// The rules of all files. Each is read and checked, and then, if they are for one command, kept only if it
/// may be for that.
#[derive(Default)]
pub(super) struct Rules<'w> {
    pub(super) kept: Vec<Rule>,
    /// Where each of them is.
    pub(super) places: Vec<At>,
    /// When those hold that were left out.
    pub(super) idle: Vec<Idle>,
    /// Whether none may be left out.
    pub(super) are_all: bool,
    /// The names in each file.
    names: Vec<RuleNames<'w>>,
}

/// What the rules of a file are called, and which of them were left out.
#[derive(Default)]
struct RuleNames<'w> {
    names: HashMap<&'w str, (At, bool), QuickHash>,
    /// The numbers of those that were left out and have no name.
    unnamed: Vec<usize>,
}

impl RuleNames<'_> {
    /// Whether a skipped rule has this name, or this number as its name.
    fn omit(&self, name: &str) -> bool {
        let number = || name.strip_prefix("rule ")?.parse::<usize>().ok()?.checked_sub(1);
        self.names.get(name).is_some_and(|(_, is_kept)| !is_kept)
            || !self.unnamed.is_empty()
                && number().is_some_and(|number| self.unnamed.binary_search(&number).is_ok())
    }
}

impl Rules<'_> {
    /// Whether one that was left out of a file has this name.
    pub(super) fn omit(&self, file: usize, name: &str) -> bool {
        self.names[file].omit(name)
    }

    /// Whether one of all rules has this name.
    pub(super) fn have(&self, name: &str) -> bool {
        self.kept.iter().any(|rule| rule.name == name || rule.shown_name == name)
            || self.names.iter().any(|names| names.omit(name))
    }

    /// The names of all rules, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let written = self.names.iter().flat_map(|names| names.names.keys().map(|name| (*name).to_owned()));
        let numbers = self.names.iter().flat_map(|names| names.unnamed.iter().copied().map(by_number));
        let kept = self.kept.iter().map(|rule| rule.name.clone());
        let names: BTreeSet<String> = written.chain(numbers).chain(kept).collect();
        names.into_iter().collect()
    }
}

/// What a rule is called that has no name.
fn by_number(number: usize) -> String {
    format!("rule {}", number + 1)
}

pub(super) fn validate<'w>(
    book: &SymbolTable<'w>,
    repositories: &[Repository],
    only_for: Option<&Invocation<'_>>,
) -> Rules<'w> {
    let mut all = Rules { are_all: only_for.is_none(), ..Rules::default() };
    let mut families: HashMap<(usize, &str), Vec<At>> = HashMap::new();
    let mut family_numbers: HashMap<(usize, &str), usize> = HashMap::new();
    let missing = RefCell::new(Missing::default());
    for file in book.files {
        let mut known = RuleNames::default();
        for (number, written) in WrittenRule::each(&file.section).enumerate() {
            let family = written.first_of.map(|family| {
                families.entry((file.layer, family.value)).or_default().push(family.at);
                let next = family_numbers.len();
                *family_numbers.entry((file.layer, family.value)).or_insert(next)
            });
            let reading = Reading { book, repositories, written: &written, file, missing: &missing };
            let rule = reading.rule(number, family);
            let is_kept = only_for.is_none_or(|command| rule.may_be_for(command));
            match written.name {
                Some(name) => match known.names.entry(name.value) {
                    Entry::Vacant(entry) => drop(entry.insert((name.at, is_kept))),
                    Entry::Occupied(entry) => {
                        let (name, at) = (name.value.to_owned(), name.at);
                        book.findings.fault(at, Fault::DuplicateRule { name, first: entry.get().0 });
                    }
                },
                None if is_kept => {}
                None => known.unnamed.push(number),
            }
            if is_kept {
                all.places.push(written.place());
                all.kept.push(rule);
            } else {
                let (after, layer) = (all.kept.len(), file.layer);
                let tables = std::iter::once(rule.selectors).chain(rule.except);
                all.idle.extend(tables.filter_map(|table| Some(Idle { after, layer, times: table.when? })));
            }
        }
        all.names.push(known);
    }
    missing.into_inner().report(book);
    for ((_, family), places) in families {
        if let [only] = places.as_slice() {
            book.warn(*only, || Warning::FamilyOfOne { family: family.to_owned() });
        }
    }
    all
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
            name: written.name.map_or_else(|| by_number(number), |name| name.value.to_owned()),
            shown_name: String::new(),
            place: Place::new(&self.file.source, written.at.start),
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
            action,
            message: written.message.map(|message| message.value.to_owned()),
            contact: written.contact.map(|contact| contact.value.to_owned()),
            default_contact: self.book.layers[self.file.layer].contact.clone(),
            acquire,
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

    /// Keys that exclude each other.
    fn check_keys(&self, action: Action) {
        let written = self.written;
        if action.acquires() {
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

    /// Settings that only a layer that may loosen can have.
    fn check_layer(&self, action: Action) {
        if self.book.layers[self.file.layer].may_loosen {
            return;
        }
        let written = self.written;
        let loosens = match action {
            Action::Limit | Action::Deny => None,
            Action::Count => Some("action = \"count\""),
            Action::Exempt => Some("an exempt rule"),
        };
        if let (Some(what), Some(action)) = (loosens, written.action) {
            self.fault(action.at, Fault::Loosens { what });
        }
        if let Some(Written { value: false, at }) = written.enforce {
            self.fault(at, Fault::Loosens { what: "enforce = false" });
        }
    }

    fn acquire(&self, selected: &Selectors, captures: &Captures) -> Vec<Acquisition> {
        let entries = self.written.acquire.iter().flat_map(|acquire| &acquire.value);
        let acquisition = |entry: &WrittenAcquisition<'w>| match entry {
            WrittenAcquisition::One(claim) => self.terms(claim, selected, captures).map(Acquisition::One),
            WrittenAcquisition::AnyOf(alternatives) => {
                let first = Cell::new(None);
                let terms = |claim: &WrittenClaim<'w>| {
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
                    |written: &WrittenAlternative<'w>| written.claims.iter().filter_map(terms).collect();
                let lists: Vec<Vec<ClaimTerms>> = alternatives.iter().map(list).collect();
                self.warn_of_unreached(alternatives, &lists);
                Some(Acquisition::AnyOf(lists))
            }
        };
        entries.filter_map(acquisition).collect()
    }

    /// Alternatives that are only available when an earlier one is also available.
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
