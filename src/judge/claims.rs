//! From rules that apply to demands: paths, limits, slots and zones, resolved for one request.

use std::{ffi::OsString, os::unix::ffi::OsStrExt, sync::Arc};

use super::{
    locations::{self, file_location, table_name},
    terms::{
        Admit, AgentLocation, Amount, Claim, Demand, Keeper, Location, LookupError, Member, Nested, Setting,
        Slots, Unclear, Wait, WhyUnclear, common, table_of_site,
    },
    zones::zones,
};
use crate::policy::{
    Acquisition, Captured, Charge, ClaimTerms, EvalContext, FileOf, GroupEntry, IfUnclear, Placeholder,
    Policy, Repository, Rule, SlotsFrom,
};

/// The demands of the rules so far.
pub(super) struct Demands<'p, 'm> {
    policy: &'p Policy,
    facts: &'m EvalContext<'m>,
    /// For each demand its alternatives.
    list: Vec<Vec<Vec<Draft<'p>>>>,
    /// Ceilings of rules for what other rules claim.
    lowered: Vec<(&'p Rule, &'p ClaimTerms)>,
    /// The captures of the rule that is being added.
    captured: Vec<Captured>,
    /// The rules behind them.
    pub(super) rules: Vec<&'p Rule>,
    /// Where the command line should name a number of slots, and names none.
    pub(super) unclear: Vec<Unclear>,
}

impl<'p, 'm> Demands<'p, 'm> {
    pub(super) fn new(policy: &'p Policy, facts: &'m EvalContext<'m>) -> Self {
        Demands {
            policy,
            facts,
            list: Vec::new(),
            lowered: Vec::new(),
            captured: Vec::new(),
            rules: Vec::new(),
            unclear: Vec::new(),
        }
    }

    /// Adds what a rule acquires, except what the launch is exempt from.
    pub(super) fn add(
        &mut self,
        rule: &'p Rule,
        admit_always: bool,
        exempt: impl Fn(usize) -> bool,
    ) -> Result<(), LookupError> {
        self.captured = if rule.captures { rule.selectors.captured(self.facts) } else { Vec::new() };
        let gids = self.charged(rule)?;
        for terms in rule.acquire.iter().flat_map(Acquisition::terms) {
            self.unclear.extend(self.slots(terms).1);
        }
        for acquisition in &rule.acquire {
            let is_spared = |terms: &&ClaimTerms| exempt(terms.repository) || self.is_absent(terms);
            match acquisition {
                Acquisition::One(terms) if is_spared(&terms) => {}
                Acquisition::One(terms) if terms.lowers => self.lowered.push((rule, terms)),
                Acquisition::One(terms) => {
                    let claims = self.claims(rule, terms, &gids, admit_always)?;
                    if self.charge(terms) == Charge::Any {
                        self.add_any(claims.into_iter().map(|claim| vec![claim]).collect());
                    } else {
                        for claim in claims {
                            self.add_one(claim);
                        }
                    }
                }
                // An alternative that needs no slots is always available, so no other is needed.
                Acquisition::AnyOf(lists)
                    if lists.iter().any(|list| list.iter().all(|terms| is_spared(&terms))) => {}
                Acquisition::AnyOf(lists) => {
                    let mut alternatives = Vec::new();
                    for list in lists {
                        let wanted = list.iter().filter(|terms| !is_spared(terms));
                        alternatives.extend(self.alternatives(rule, wanted, &gids, admit_always)?);
                    }
                    self.add_any(alternatives);
                }
            }
        }
        self.rules.push(rule);
        Ok(())
    }

    /// Adds each table that a rule can charge to a person, and that does not depend on the command. Returns
    /// the repositories whose tables do.
    pub(super) fn add_for_person(
        &mut self,
        rule: &'p Rule,
        admit_always: bool,
        exempt: impl Fn(usize) -> bool,
    ) -> Result<Vec<&'p Repository>, LookupError> {
        let gids = self.charged(rule)?;
        let mut open = Vec::new();
        let terms = rule.acquire.iter().flat_map(Acquisition::terms);
        for terms in terms.filter(|terms| !exempt(terms.repository)) {
            if terms.lowers {
                self.lowered.push((rule, terms));
                continue;
            }
            let repository = &self.policy.repositories()[terms.repository];
            let is_personal = |placeholder: &Placeholder| {
                use Placeholder::{Gid, Group, Host, Uid, User};
                matches!(placeholder, User | Uid | Group | Gid | Host)
            };
            if repository.placeholders().all(is_personal) {
                let claims = self.claims(rule, terms, &gids, admit_always)?;
                self.list.extend(claims.into_iter().map(|claim| vec![vec![claim]]));
            } else {
                open.push(repository);
            }
        }
        Ok(open)
    }

    /// The groups that a rule can charge.
    fn charged(&self, rule: &Rule) -> Result<Vec<u32>, LookupError> {
        let groups = rule.selectors.groups.as_deref().filter(|_| rule.needs_groups);
        groups.map_or(Ok(Vec::new()), |groups| GroupEntry::gids_of_any(groups, self.facts))
    }

    /// The repositories of a layer's rules that are claimed.
    pub(super) fn repositories(&self, layer: usize) -> impl Iterator<Item = &'p Repository> {
        let drafts = self.list.iter().flatten().flatten();
        let drafts = drafts.filter(move |draft| draft.layers.contains(&layer));
        drafts.flat_map(|draft| &draft.repositories).copied()
    }

    /// Applies the ceilings of delegated files, which do not make claims themselves.
    fn lower(&mut self) {
        for (rule, terms) in std::mem::take(&mut self.lowered) {
            let repository = &self.policy.repositories()[terms.repository];
            let reached = when_reached(self.policy, rule, repository);
            let claimed = self.list.iter_mut().flatten().flatten();
            for draft in claimed.filter(|draft| draft.is_for(repository)) {
                draft.lower(rule, terms, reached);
            }
        }
    }

    /// The claims of rules one by one, and each once more under the ceiling of each delegated rule.
    pub(super) fn into_claims(self) -> Vec<Claim> {
        let mut drafts: Vec<Draft<'p>> = self.list.into_iter().flatten().flatten().collect();
        let claimed = drafts.len();
        for (rule, terms) in self.lowered {
            let repository = &self.policy.repositories()[terms.repository];
            for index in 0..claimed {
                if drafts[index].is_for(repository) {
                    let mut lowered = drafts[index].clone();
                    lowered.lower(rule, terms, when_reached(self.policy, rule, repository));
                    drafts.push(lowered);
                }
            }
        }
        drafts.into_iter().map(Draft::into_claim).collect()
    }

    /// What must be available, in the order of the rules.
    pub(super) fn into_demands(mut self) -> Vec<Demand> {
        self.lower();
        let claims = |drafts: Vec<Draft<'p>>| drafts.into_iter().map(Draft::into_claim).collect();
        let demand = |mut alternatives: Vec<Vec<Draft<'p>>>| match alternatives.as_mut_slice() {
            [only] if only.len() == 1 => only.pop().map(|draft| Demand::One(draft.into_claim())),
            _ => Some(Demand::AnyOf(alternatives.into_iter().map(claims).collect())),
        };
        self.list.into_iter().filter_map(demand).collect()
    }

    /// Two rules that want the same file make one claim: the lowest ceiling, the largest number of slots.
    /// They are not merged if only one of them is enforced, because a limit on trial must not bind.
    fn add_one(&mut self, draft: Draft<'p>) {
        let is_on_trial = |one: &Draft<'p>| one.claim.amount.admit == Admit::Unenforced;
        let is_same = |other: &&mut Draft<'p>| {
            other.claim.location.is_same_table(&draft.claim.location)
                && is_on_trial(other) == is_on_trial(&draft)
        };
        let single = self.list.iter_mut().filter(|alternatives| alternatives.len() == 1).flatten().flatten();
        match single.into_iter().find(is_same) {
            Some(other) => other.merge(draft),
            None => self.list.push(vec![vec![draft]]),
        }
    }

    /// A single alternative is an ordinary claim.
    fn add_any(&mut self, mut alternatives: Vec<Vec<Draft<'p>>>) {
        match alternatives.pop() {
            Some(only) if alternatives.is_empty() => {
                for draft in only {
                    self.add_one(draft);
                }
            }
            last => {
                alternatives.extend(last);
                self.list.push(alternatives);
            }
        }
    }

    /// The alternatives of a list of claims: several if any of several groups can be charged.
    fn alternatives<'t>(
        &self,
        rule: &'p Rule,
        list: impl Iterator<Item = &'t ClaimTerms>,
        gids: &[u32],
        admit_always: bool,
    ) -> Result<Vec<Vec<Draft<'p>>>, LookupError> {
        let mut alternatives: Vec<Vec<Draft<'p>>> = vec![Vec::new()];
        for terms in list {
            let claims = self.claims(rule, terms, gids, admit_always)?;
            let with_each = |before: Vec<Draft<'p>>| {
                claims
                    .iter()
                    .map(move |claim| before.iter().chain([claim]).cloned().collect())
                    .collect::<Vec<_>>()
            };
            alternatives = alternatives.into_iter().flat_map(with_each).collect();
        }
        Ok(alternatives)
    }

    fn charge(&self, terms: &ClaimTerms) -> Charge {
        self.policy.repositories()[terms.repository].settings.charge.unwrap_or_default()
    }

    /// The claims of one entry of `acquire`: several if several groups are charged.
    fn claims(
        &self,
        rule: &'p Rule,
        terms: &ClaimTerms,
        gids: &[u32],
        admit_always: bool,
    ) -> Result<Vec<Draft<'p>>, LookupError> {
        let repository = &self.policy.repositories()[terms.repository];
        let one = |gid| self.claim(rule, terms, repository, gid, admit_always);
        if !repository.is_by_group() {
            return Ok(vec![one(None)?]);
        }
        let charged = if self.charge(terms) == Charge::First { &gids[..gids.len().min(1)] } else { gids };
        charged.iter().map(|gid| one(Some(*gid))).collect()
    }

    fn claim(
        &self,
        rule: &'p Rule,
        terms: &ClaimTerms,
        repository: &'p Repository,
        gid: Option<u32>,
        admit_always: bool,
    ) -> Result<Draft<'p>, LookupError> {
        let request = self.facts.request;
        let layer = &self.policy.layers()[repository.layer];
        let of_rule = &self.policy.layers()[rule.layer];
        let wait = [terms.wait, rule.wait(), repository.settings.wait].into_iter().flatten().min();
        let mut member: Vec<Member> = Vec::new();
        let mut owner = None;
        let mut text = Vec::new();
        let path = repository.path.expand(request.runtime, |placeholder| {
            let value = locations::value(placeholder, gid, &self.captured, request, self.facts)?;
            let known = locations::member(placeholder, &value, gid, request);
            if matches!(known, Member::User(_)) {
                owner = Some(request.uid);
            }
            if !member.contains(&known) {
                member.push(known);
            }
            text.clone_from(&value);
            Ok(value)
        })?;
        let file = FileOf { facts: self.facts, gid, value: &text };
        let (limit, limit_of) = repository.limit_for(&file)?;
        let (highest, out_of_order) = repository.names.under(limit.resolve(request.cpus), self.facts);
        let limit = highest - u32::try_from(out_of_order.len()).unwrap_or(highest);
        let ceiling = terms.ceiling.map(|ceiling| ceiling.ceiling(limit).min(limit));
        let zones = zones(
            highest,
            &out_of_order,
            repository.reservations(),
            |reservation| reservation.standing(self.facts, repository.layer),
            |reservation| reservation.because(self.facts, repository.layer),
        )?;
        let enforce = enforced(rule, repository, layer.enforce && of_rule.enforce);
        let default_wait = of_rule.wait.filter(|_| wait.is_none());
        let (slots, unclear) = self.slots(terms);
        let location = match repository.keeper() {
            Keeper::File => Location::File(file_location(path, owner, repository, layer, request.runtime)),
            Keeper::Agent => Location::Agent(AgentLocation {
                table: table_name(&path),
                unreachable: repository.keeping.unreachable,
                on_lost: None,
            }),
            Keeper::Site => Location::Agent(AgentLocation {
                table: table_of_site(&table_name(&path)),
                unreachable: repository.keeping.unreachable,
                on_lost: Some(repository.keeping.on_lost),
            }),
        };
        let claim = Claim {
            repository: Arc::clone(&repository.shown_name),
            member,
            origins: vec![rule.origin()],
            location,
            amount: Amount {
                limit: u64::from(limit),
                ceiling: ceiling.map(u64::from),
                slots,
                zones: zones.open,
                // There is no name beyond the last.
                linger: repository.sharing.linger(),
                group: repository.sharing.group(|placeholder| {
                    locations::value(placeholder, gid, &self.captured, request, self.facts)
                })?,
                admit: match (admit_always && repository.names.most().is_none(), enforce) {
                    (true, _) => Admit::Always,
                    (false, true) => Admit::WithinLimit,
                    (false, false) => Admit::Unenforced,
                },
            },
            limit_of,
            kept: zones.kept,
            reserved: zones.reserved,
            names: Arc::clone(repository.names.all()),
            out_of_order,
            outside: locations::outside(self.policy, repository, request),
            pace: repository.pace(),
            nested: repository.nested(),
            wait: Setting { bound: repository.settings.max_wait, default: wait.or(default_wait) },
            queue: repository.queue(),
            unclear: unclear.filter(Unclear::refuses),
        };
        Ok(Draft {
            claim,
            number: if let Slots::Number(number) = slots { number } else { 0 },
            repositories: vec![repository],
            layers: vec![rule.layer],
            wait,
            default_wait,
        })
    }

    /// Whether no slots are wanted: the number comes from the command line only, and it names none.
    fn is_absent(&self, terms: &ClaimTerms) -> bool {
        terms.slots == Slots::Number(0) && self.slots(terms).0 == Slots::Number(0)
    }

    /// How many slots an entry of `acquire` takes, and what is unclear about it.
    fn slots(&self, terms: &ClaimTerms) -> (Slots, Option<Unclear>) {
        let Some(from) = &terms.slots_from else { return (terms.slots, None) };
        let name = self.policy.repositories()[terms.repository].shown_name();
        slots(from, self.facts.request.arguments, terms.slots, name)
    }
}

/// What happens when the ceiling of a delegated rule is reached.
fn when_reached(policy: &Policy, rule: &Rule, repository: &Repository) -> Admit {
    let is_enforced = [rule.layer, repository.layer].iter().all(|layer| policy.layers()[*layer].enforce);
    if enforced(rule, repository, is_enforced) { Admit::WithinLimit } else { Admit::Unenforced }
}

/// Whether a claim refuses. If one origin is on trial, the claim is; otherwise the first origin with a value
/// decides.
fn enforced(rule: &Rule, repository: &Repository, default: bool) -> bool {
    match (rule.enforce, repository.settings.enforce) {
        (Some(false), _) | (_, Some(false)) => false,
        (None, None) => default,
        _ => true,
    }
}

// A claim while it is made: two rules that want slots of one table make one claim.

/// A claim, and what only its making needs to know.
#[derive(Clone)]
pub(super) struct Draft<'p> {
    pub(super) claim: Claim,
    /// The most slots that a rule wants by number, also if another rule wants all slots.
    number: u32,
    /// The repositories that it is for: several may have one file.
    pub(super) repositories: Vec<&'p Repository>,
    /// The layers of the rules behind it.
    pub(super) layers: Vec<usize>,
    /// The shortest wait that a claim, a rule or a repository names.
    pub(super) wait: Option<Wait>,
    /// The shortest default of the layers, if none of these names a wait.
    pub(super) default_wait: Option<Wait>,
}

impl<'p> Draft<'p> {
    fn is_for(&self, repository: &Repository) -> bool {
        self.repositories.iter().any(|known| std::ptr::eq(*known, repository))
    }

    /// Applies the ceiling of a delegated rule, and what happens if it is reached.
    fn lower(&mut self, rule: &'p Rule, terms: &ClaimTerms, reached: Admit) {
        let amount = &mut self.claim.amount;
        let before = amount.effective_limit();
        let limit = u32::try_from(amount.limit).unwrap_or(u32::MAX);
        let lowered = terms.ceiling.map(|ceiling| ceiling.ceiling(limit));
        // A rule that admits beyond the limit does so for its own layer.
        if amount.admit == Admit::Always && lowered.is_some_and(|ceiling| ceiling < limit) {
            amount.admit = reached;
        }
        amount.ceiling = amount.ceiling.into_iter().chain(lowered.map(u64::from)).min();
        // The rule that binds first is the one to be named first.
        let at = if amount.effective_limit() < before { 0 } else { self.claim.origins.len() };
        self.claim.origins.insert(at, rule.origin());
    }

    /// Merges another claim on the same table: the lowest limit, the most slots, the zones that both allow,
    /// the strictest effect of a reached limit. The rule that binds first is the one to be named first.
    pub(super) fn merge(&mut self, other: Draft<'p>) {
        let (one, other_amount) = (&mut self.claim.amount, &other.claim.amount);
        let binds = other_amount.effective_limit() < one.effective_limit();
        let at = if binds { 0 } else { self.claim.origins.len() };
        self.claim.origins.splice(at..at, other.claim.origins);
        self.layers.extend(other.layers);
        self.repositories.extend(other.repositories);
        // Two repositories with one file may be of two layers, and have other settings.
        self.claim.pace = self.claim.pace.and(other.claim.pace);
        if other.claim.nested == Nested::Take {
            self.claim.nested = Nested::Take;
        }
        self.claim.outside = self.claim.outside.take().or(other.claim.outside);
        if other_amount.limit < one.limit {
            self.claim.limit_of = other.claim.limit_of;
        }
        if self.claim.names.is_empty() {
            self.claim.names = other.claim.names;
        }
        if self.claim.out_of_order.len() < other.claim.out_of_order.len() {
            self.claim.out_of_order = other.claim.out_of_order;
        }
        for kept in other.claim.kept {
            if !self.claim.kept.contains(&kept) {
                self.claim.kept.push(kept);
            }
        }
        let zones = common(one.reserved_zones(), other_amount.reserved_zones());
        one.ceiling = one.ceiling.into_iter().chain(other_amount.ceiling).min();
        one.limit = one.limit.min(other_amount.limit);
        one.zones = zones.unwrap_or_else(|| Amount::plain(one.slots, one.limit).zones);
        one.slots = one.slots.max(other_amount.slots);
        self.number = self.number.max(other.number);
        self.claim.unclear = self.claim.unclear.take().or(other.claim.unclear);
        one.admit = one.admit.min(other_amount.admit);
        one.linger = one.linger.max(other_amount.linger);
        one.group = one.group.take().filter(|group| other.claim.amount.group.as_ref() == Some(group));
        self.wait = shortest(self.wait, other.wait);
        self.default_wait = shortest(self.default_wait, other.default_wait);
        // A default applies if its layer has no value.
        if self.wait.is_some() && self.layers.iter().all(|layer| self.layers.first() == Some(layer)) {
            self.default_wait = None;
        }
        self.claim.wait = Setting {
            bound: shortest(self.claim.wait.bound, other.claim.wait.bound),
            default: shortest(self.wait, self.default_wait),
        };
        self.claim.queue = self.claim.queue.and(other.claim.queue);
    }

    /// The claim, once its limit is known: a number that exceeds it counts also if a rule wants all slots.
    fn into_claim(mut self) -> Claim {
        let amount = &mut self.claim.amount;
        if u64::from(self.number) > amount.wanted() {
            amount.slots = Slots::Number(self.number);
        }
        self.claim
    }
}

fn shortest(one: Option<Wait>, other: Option<Wait>) -> Option<Wait> {
    one.into_iter().chain(other).min()
}

// The number of slots that the command line names (`slots_from`).

/// For a launch with an unknown number of slots: more than there can ever be.
const UNKNOWN: Slots = Slots::Number(u32::MAX);

/// How many slots a claim takes, and what is unclear about it. The numbers of all arguments add up; the first
/// counts as `absent` if it is missing.
fn slots(
    from: &SlotsFrom,
    arguments: &[OsString],
    absent: Slots,
    repository: &str,
) -> (Slots, Option<Unclear>) {
    let Slots::Number(absent) = absent else { return (absent, None) };
    let unclear = |why, slots| Some(Unclear { why, repository: repository.to_owned(), slots });
    let (mut sum, mut is_given, mut no_number) = (0u32, false, None);
    for (index, after) in from.after.iter().enumerate() {
        let is_first = index == 0;
        // 0 is a valid number except for the first argument: "gpus=0" counts, "cpus=0" does not.
        let found = number_after(after, arguments, u32::from(is_first)).unwrap_or_else(|text| {
            no_number.get_or_insert(WhyUnclear::NoNumber { after: after.clone(), text });
            None
        });
        is_given |= found.is_some();
        sum = sum.saturating_add(found.unwrap_or(if is_first { absent } else { 0 }));
    }
    if no_number.is_some() && from.unclear == IfUnclear::Refuse {
        return (UNKNOWN, no_number.and_then(|why| unclear(why, None)));
    }
    let most = from.most.filter(|_| is_given).unwrap_or(u32::MAX);
    match from.slots_for(sum.min(most)) {
        Ok(slots) => (Slots::Number(slots), no_number.and_then(|why| unclear(why, Some(slots)))),
        Err(greatest) => (UNKNOWN, unclear(WhyUnclear::AboveTable { number: sum, greatest }, None)),
    }
}

/// The number behind an argument; none if the argument is missing. If it is given more than once the
/// largest counts, because it is unknown which of them the program uses. An argument without a number is
/// returned with what follows it.
fn number_after(after: &str, arguments: &[OsString], least: u32) -> Result<Option<u32>, Option<OsString>> {
    let number = |text: &str| number(text).filter(|number| *number >= least);
    let separate = arguments.windows(2).filter(|pair| pair[0] == *after).filter_map(|pair| pair[1].to_str());
    // In `-np8` and `-np=8` alike; behind a digit a digit is a part of the option.
    let ends_in_digit = after.ends_with(|last: char| last.is_ascii_digit());
    let joined = arguments.iter().filter_map(|argument| {
        let value = argument.to_str()?.strip_prefix(after)?;
        value.strip_prefix('=').or(Some(value).filter(|_| !ends_in_digit))
    });
    if let Some(largest) = separate.chain(joined).filter_map(number).max() {
        return Ok(Some(largest));
    }
    let joined = |argument: &OsString| argument.as_bytes().strip_prefix(after.as_bytes())?.first().copied();
    if let Some(argument) = arguments.iter().find(|argument| joined(argument) == Some(b'=')) {
        return Err(Some(argument.clone()));
    }
    let Some(at) = arguments.iter().position(|argument| *argument == *after) else { return Ok(None) };
    Err(arguments.get(at + 1).map(|next| {
        let mut text = OsString::from(after);
        text.push(" ");
        text.push(next);
        text
    }))
}

/// The number that a text is.
fn number(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Digits that are too many for a number are a very large number.
    is_number.then(|| text.parse().unwrap_or(u32::MAX))
}
