//! Rules: their selectors and claims, whether their keys can be combined, and whether their layer allows
//! them.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap, HashSet, hash_map::Entry},
    sync::Arc,
};

use super::{LayerFile, SymbolTable};
use crate::{
    judge::terms::{Keeper, MOST_AT_SITE, MOST_SHARED},
    policy::{
        Acquisition, Action, At, Charge, ClaimTerms, Idle, Invocation, Limit, Placeholder, QuickHash,
        Repository, Rule, SELECTORS, Section, Selectors, SlotsFrom, Value, Written,
        fault::Fault,
        limit::digits,
        place::Place,
        rule::Slots,
        warning::Warning,
        written::{WrittenAcquisition, WrittenAlternative, WrittenClaim, WrittenRule},
    },
};

/// The rules of all files. Each is read and checked, and then, if they are for one command, kept only if it
/// may be for that.
#[derive(Default)]
pub(super) struct Rules<'w> {
    pub(super) kept: Vec<Rule>,
    /// Where each of them is.
    pub(super) places: Vec<At>,
    /// The times of those that were left out.
    pub(super) idle: Vec<Idle>,
    /// The names in each file.
    names: Vec<RuleNames<'w>>,
}

/// The names of the rules of a file, and which of them were left out.
#[derive(Default)]
struct RuleNames<'w> {
    names: HashMap<&'w str, (At, bool), QuickHash>,
    /// The numbers of those that were left out and have no name.
    unnamed: Vec<usize>,
}

impl RuleNames<'_> {
    /// Whether a skipped rule has this name, or this number as its name.
    fn omit(&self, name: &str) -> bool {
        let number = || (digits(name.strip_prefix("rule ")?, 10)? as usize).checked_sub(1);
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
}

/// The name of a rule without a name.
fn by_number(number: usize) -> String {
    format!("rule {}", number + 1)
}

pub(super) fn validate<'w>(
    book: &SymbolTable<'w>,
    repositories: &[Repository],
    only_for: Option<&Invocation<'_>>,
) -> Rules<'w> {
    let mut all = Rules::default();
    let mut families: HashMap<(usize, &str), Vec<At>> = HashMap::new();
    let mut family_numbers: HashMap<(usize, &str), usize> = HashMap::new();
    let missing = RefCell::new(Missing::default());
    let extents: Vec<Extent> = repositories.iter().map(Extent::of).collect();
    for file in book.files {
        let mut known = RuleNames::default();
        for (number, written) in WrittenRule::each(&file.section).enumerate() {
            let family = written.first_of.map(|family| {
                families.entry((file.layer, family.value)).or_default().push(family.at);
                let next = family_numbers.len();
                *family_numbers.entry((file.layer, family.value)).or_insert(next)
            });
            let (extents, missing) = (&extents, &missing);
            let reading = Reading { book, repositories, extents, written: &written, file, missing };
            let checked = reading.check();
            let is_kept = only_for.is_none_or(|command| checked.selectors.may_be_for(command));
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
                all.kept.push(reading.rule(checked, number, family));
            } else {
                let (after, layer) = (all.kept.len(), file.layer);
                let tables = std::iter::once(checked.selectors).chain(checked.except);
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

/// The parts of a rule that are checked against others.
struct Checked {
    selectors: Selectors,
    captures: bool,
    except: Vec<Selectors>,
    action: Action,
    acquire: Vec<Acquisition>,
    from: Option<Vec<usize>>,
}

impl<'w> Reading<'_, 'w> {
    /// Checks a rule. Most rules are for other commands, and needed no further.
    fn check(&self) -> Checked {
        let written = self.written;
        let action = written.action.map(|action| action.value).unwrap_or_default();
        if !written.action_unknown {
            self.check_keys(action);
        }
        self.check_layer(action);
        if let (Some(order), None) = (written.order, written.first_of) {
            self.book.warn(order.at, || Warning::OrderAlone);
        }
        let selectors = Selectors::read(&written.section, &self.book.aliases);
        let captures = Captures::of_selectors(self.book);
        self.missing.borrow_mut().add(&captures);
        let acquire = self.acquire(&selectors, &captures);
        captures.report_unused(self.claimed(&acquire), self.book);
        let except = |except: Section<'w>| {
            if except.is_empty() {
                self.fault(except.at, Fault::EmptyException);
            }
            let except = Selectors::read(&except, &self.book.aliases);
            Captures::of_selectors(self.book).report_unused(std::iter::empty(), self.book);
            except
        };
        let from = written.from.as_ref().map(|from| from.value.iter());
        let exempted = |name: &Written<&'w str>| {
            let repository = self.book.repository(*name)?;
            self.check_keeper(*name, repository);
            Some(repository)
        };
        Checked {
            selectors,
            captures: !captures.is_empty(),
            except: written.section.each("except", &SELECTORS).map(except).collect(),
            action,
            acquire,
            from: from.map(|from| from.filter_map(exempted).collect()),
        }
    }

    /// The repositories that it claims, not only lowers.
    fn claimed(&self, acquire: &[Acquisition]) -> impl Iterator<Item = &Repository> {
        let claims = acquire.iter().flat_map(Acquisition::terms).filter(|terms| !terms.lowers);
        claims.map(|terms| &self.repositories[terms.repository])
    }

    /// The rule that was checked.
    fn rule(&self, checked: Checked, number: usize, family: Option<usize>) -> Rule {
        let written = self.written;
        let Checked { selectors, captures, except, action, acquire, from } = checked;
        let needs_groups = self.claimed(&acquire).any(Repository::is_by_group);
        Rule {
            name: written.name.map_or_else(|| by_number(number), |name| name.value.to_owned()),
            shown_name: Arc::default(),
            place: Place::new(&self.file.source, written.section.at.start),
            layer: self.file.layer,
            selectors,
            captures,
            except,
            family,
            first_of: written.first_of.map(|family| family.value.to_owned()),
            order: value(written.order).unwrap_or_default(),
            action,
            message: written.message.map(|message| message.value.into()),
            contact: written.contact.map(|contact| contact.value.into()),
            default_contact: self.book.layers[self.file.layer].contact.clone(),
            acquire,
            from,
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
            if written.acquire.is_none() {
                self.fault(written.section.at, Fault::NothingToDo);
            }
            let takes_nothing = written.acquire.is_some_and(|acquire| acquire.is_empty_list());
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
            ("acquire", written.acquire.filter(Value::is_list).map(|acquire| acquire.at)),
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
        let entries = self.written.acquire.into_iter().flat_map(WrittenAcquisition::each);
        let acquisition = |entry: WrittenAcquisition<'w>| match entry {
            WrittenAcquisition::One(claim) => self.terms(&claim, selected, captures).map(Acquisition::One),
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
                self.warn_of_unreached(&alternatives, &lists);
                Some(Acquisition::AnyOf(lists))
            }
        };
        entries.filter_map(acquisition).collect()
    }

    /// Alternatives that are only available when an earlier one is also available. Each is compared with
    /// all before it, which only a check does.
    fn warn_of_unreached(&self, written: &[WrittenAlternative<'_>], lists: &[Vec<ClaimTerms>]) {
        if self.book.aliases.checking.is_none() {
            return;
        }
        for (index, list) in lists.iter().enumerate() {
            let before = lists[..index].iter().position(|before| {
                let is_less = |less: &ClaimTerms| list.iter().any(|more| less.wants_no_more_than(more));
                !before.is_empty() && before.iter().all(is_less)
            });
            if let Some(before) = before {
                let names =
                    lists[before].iter().map(|terms| self.repositories[terms.repository].name.as_str());
                let before = names.collect::<Vec<_>>().join(" + ");
                self.book.warn(written[index].at, || Warning::NeverReached { before });
            }
        }
    }
}

// A rule during validation.

/// A rule that is being read, and where.
pub(super) struct Reading<'b, 'w> {
    pub(super) book: &'b SymbolTable<'w>,
    pub(super) repositories: &'b [Repository],
    /// Of each of these repositories.
    extents: &'b [Extent],
    pub(super) written: &'b WrittenRule<'w>,
    pub(super) file: &'b LayerFile<'w>,
    pub(super) missing: &'b RefCell<Missing<'w>>,
}

/// What is counted once for all claims on a repository: both can be as many as the file has room for.
struct Extent {
    placeholders: u32,
    highest_limit: Option<u32>,
}

impl Extent {
    fn of(repository: &Repository) -> Self {
        let placeholders = repository.path.placeholders().chain(repository.sharing.placeholders()).count();
        Extent {
            placeholders: u32::try_from(placeholders).unwrap_or(u32::MAX),
            highest_limit: repository.highest_fixed_limit(),
        }
    }
}

impl Reading<'_, '_> {
    pub(super) fn fault(&self, at: At, fault: Fault) {
        self.book.findings.fault(at, fault);
    }
}

/// The value, without its place.
pub(super) fn value<T>(written: Option<Written<T>>) -> Option<T> {
    written.map(|written| written.value)
}

// The captures of rules, checked against the repositories that use them.

/// The captures of one rule, each with its first place.
pub(super) struct Captures(BTreeMap<String, At>);

impl Captures {
    /// The captures of the selectors that were read last.
    pub(super) fn of_selectors(book: &SymbolTable<'_>) -> Self {
        let mut known: BTreeMap<String, At> = BTreeMap::new();
        for Written { value: name, at } in book.aliases.captures.take() {
            if let Some(first) = known.get(&name) {
                book.findings.fault(at, Fault::CapturedTwice { name, first: *first });
            } else {
                known.insert(name, at);
            }
        }
        Captures(known)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A capture that no claim of the rule uses was probably not intended.
    pub(super) fn report_unused<'r>(
        &self,
        claimed: impl Iterator<Item = &'r Repository>,
        book: &SymbolTable<'_>,
    ) {
        if self.is_empty() {
            return;
        }
        let used: HashSet<&str> = claimed.flat_map(by_captures).collect();
        for (name, at) in self.0.iter().filter(|(name, _)| !used.contains(name.as_str())) {
            book.findings.fault(*at, Fault::UnusedCapture { name: name.clone() });
        }
    }
}

/// The captures of rules, and claims whose capture is missing.
#[derive(Default)]
pub(super) struct Missing<'w> {
    captured: HashSet<String>,
    claims: Vec<(Written<&'w str>, usize, String)>,
}

impl<'w> Missing<'w> {
    pub(super) fn add(&mut self, captures: &Captures) {
        self.captured.extend(captures.0.keys().cloned());
    }

    /// Compares a claim on the repository with this index with the captures of its rule.
    pub(super) fn claim(
        &mut self,
        claim: &WrittenClaim<'w>,
        index: usize,
        repository: &Repository,
        captures: &Captures,
    ) {
        for name in by_captures(repository) {
            if !captures.0.contains_key(name) {
                self.claims.push((claim.repository, index, name.to_owned()));
            }
        }
    }

    /// If no rule captures this name, and it resembles a known placeholder, it is a typing error in the path.
    pub(super) fn report(self, book: &SymbolTable<'_>) {
        let mut slips = HashSet::new();
        for (claim, index, name) in self.claims {
            let nearest = Placeholder::nearest(&name).filter(|_| !self.captured.contains(&name));
            let path = book.path_of_repository(index);
            match (nearest, path) {
                (Some(nearest), Some(path)) => {
                    if slips.insert((index, name.clone())) {
                        let fault = Fault::UnknownPlaceholder { name, nearest: Some(nearest) };
                        book.findings.fault(path, fault);
                    }
                }
                _ => {
                    let repository = claim.value.to_owned();
                    book.findings.fault(claim.at, Fault::NotCaptured { repository, name });
                }
            }
        }
    }
}

/// The names of the captures that a repository is by.
pub(super) fn by_captures(repository: &Repository) -> impl Iterator<Item = &str> {
    let all = repository.path.placeholders().chain(repository.sharing.placeholders());
    all.filter_map(|placeholder| match placeholder {
        Placeholder::Captured(name) => Some(name.as_str()),
        _ => None,
    })
}

// The claims of a rule: their slots, and whether they can ever be met.

impl<'w> Reading<'_, 'w> {
    /// The slots of a claim; none if its name is unknown.
    pub(super) fn terms(
        &self,
        claim: &WrittenClaim<'w>,
        selected: &Selectors,
        captures: &Captures,
    ) -> Option<ClaimTerms> {
        let repository = self.book.repository(claim.repository)?;
        self.check_keeper(claim.repository, repository);
        if self.book.is_of_others(self.file.layer, &self.repositories[repository]) {
            return Some(self.lowered(claim, repository));
        }
        // A claim is compared with each of them.
        self.book.aliases.spend(claim.at, self.extents[repository].placeholders).then_some(())?;
        self.missing.borrow_mut().claim(claim, repository, &self.repositories[repository], captures);
        if self.repositories[repository].is_by_group() && selected.groups.is_none() {
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
        self.check_numbers(claim, least, repository);
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

    /// The agent decides alone, by the policy that it reads.
    pub(super) fn check_keeper(&self, named: Written<&str>, repository: usize) {
        let is_of_system = |layer: usize| self.book.layers[layer].is_of_system();
        let known = &self.repositories[repository];
        if known.keeper() != Keeper::File && is_of_system(known.layer) && !is_of_system(self.file.layer) {
            let repository = named.value.to_owned();
            self.fault(named.at, Fault::RepositoryOfAgent { repository });
        }
    }

    /// One transaction has room for this many slots.
    fn check_site(&self, claim: &WrittenClaim<'_>, slots: Slots, repository: &Repository) {
        if repository.keeper() != Keeper::Site {
            return;
        }
        let of_limit = |limit| claim.ceiling.map_or(limit, |ceiling| ceiling.value.ceiling(limit).min(limit));
        let most = match slots {
            Slots::Number(number) => Some(number),
            Slots::All => repository.all_limits().filter_map(Limit::fixed).map(of_limit).max(),
        };
        let from = claim.slots_from.as_ref();
        let most = most.max(from.filter(|from| from.table.is_empty()).and_then(|from| from.most));
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

    /// A group has this many ranks.
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

    /// A rule about users does not limit a caller who can choose the file.
    fn check_choice(&self, claim: &WrittenClaim<'_>, repository: &Repository, selected: &Selectors) {
        let chosen = repository.path.placeholders().find(|placeholder| placeholder.is_chosen());
        // A policy that lists members of a capture but also admits others restricts no one.
        let is_open = || {
            let is_listed = !repository.limits.is_empty() && by_captures(repository).next().is_some();
            is_listed && repository.limit() != Limit::Fixed(0)
        };
        if let Some(placeholder) = chosen
            && self.book.layers[repository.layer].is_of_system()
            && (selected.need_lookup() || is_open())
        {
            self.book.warn(claim.repository.at, || Warning::ChosenByCaller {
                repository: repository.name.clone(),
                placeholder: placeholder.name(),
            });
        }
    }

    /// Unavailable slots, and ceilings without effect, if that is visible without a request.
    fn check_numbers(&self, claim: &WrittenClaim<'_>, slots: Slots, repository: usize) {
        let Some(limit) = self.extents[repository].highest_limit else { return };
        let ceiling = claim.ceiling.map(|ceiling| ceiling.value.ceiling(limit));
        let most = ceiling.map_or(limit, |most| most.min(limit));
        let counts = self.written.action.is_some_and(|action| action.value == Action::Count);
        if let Slots::Number(slots) = slots
            && !counts
            && most > 0
            && slots > most
        {
            let at = claim.slots.map_or(claim.at, |slots| slots.at);
            self.fault(
                at,
                Fault::SlotsAboveLimit {
                    slots,
                    limit: most,
                    repository: self.repositories[repository].name.clone(),
                },
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
