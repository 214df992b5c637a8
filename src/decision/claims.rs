//! From rules that count to demands: paths, limits, slots and zones, resolved for one request.

use super::{
    claim::{Claim, Demand},
    matching::Matcher,
    values,
    zones::zones,
};
use crate::policy::{
    Acquisition, Charge, ClaimTerms, Limit, LookupError, Member, Placeholder, Policy, Repository, Rule,
    Slots, SlotsFrom,
};

/// The demands of the rules so far.
pub(super) struct Demands<'p, 'm> {
    policy: &'p Policy,
    matcher: &'m Matcher<'m>,
    pub(super) list: Vec<Demand<'p>>,
    /// The rules behind them.
    pub(super) rules: Vec<&'p Rule>,
}

impl<'p, 'm> Demands<'p, 'm> {
    pub(super) fn new(policy: &'p Policy, matcher: &'m Matcher<'m>) -> Self {
        Demands { policy, matcher, list: Vec::new(), rules: Vec::new() }
    }

    /// Adds what a rule acquires, save what the launch is exempt from.
    pub(super) fn add(
        &mut self,
        rule: &'p Rule,
        admit_always: bool,
        exempt: impl Fn(usize) -> bool,
    ) -> Result<(), LookupError> {
        let mut gids = Vec::new();
        if let Some(groups) = rule.selectors.groups.as_deref().filter(|_| rule.needs_groups) {
            gids = self.matcher.lookups.gids_of_any(groups)?;
        }
        for acquisition in &rule.acquire {
            // An alternative that need not be taken can always be had, so nothing else has to be.
            if acquisition.terms().iter().any(|terms| exempt(terms.repository)) {
                continue;
            }
            match acquisition {
                Acquisition::One(terms) => {
                    let claims = self.claims(rule, terms, &gids, admit_always)?;
                    if self.charge(rule, terms) == Charge::Any {
                        self.add_any(claims);
                    } else {
                        for claim in claims {
                            self.add_one(claim);
                        }
                    }
                }
                Acquisition::AnyOf(alternatives) => {
                    let mut claims = Vec::new();
                    for terms in alternatives {
                        claims.extend(self.claims(rule, terms, &gids, admit_always)?);
                    }
                    self.add_any(claims);
                }
            }
        }
        self.rules.push(rule);
        Ok(())
    }

    /// The repositories of a layer's rules that are claimed.
    pub(super) fn repositories(&self, layer: usize) -> impl Iterator<Item = &'p Repository> {
        let claims = self.list.iter().flat_map(Demand::claims);
        claims
            .filter(move |claim| claim.rules.iter().any(|rule| rule.layer == layer))
            .map(|claim| claim.repository)
    }

    /// Two rules that want the same file make one claim: the lowest ceiling, the largest number of slots. Not where one
    /// is enforced and the other is not, because a limit that is only tried out must not bind.
    fn add_one(&mut self, claim: Claim<'p>) {
        let same = self.list.iter_mut().find_map(|demand| match demand {
            Demand::One(other) if other.path == claim.path && other.enforce == claim.enforce => Some(other),
            _ => None,
        });
        match same {
            Some(other) => other.merge(claim),
            None => self.list.push(Demand::One(claim)),
        }
    }

    /// Alternatives of which there is only one are none.
    fn add_any(&mut self, mut claims: Vec<Claim<'p>>) {
        match claims.pop() {
            Some(only) if claims.is_empty() => self.add_one(only),
            last => {
                claims.extend(last);
                self.list.push(Demand::AnyOf(claims));
            }
        }
    }

    fn charge(&self, rule: &Rule, terms: &ClaimTerms) -> Charge {
        rule.charge.or(self.policy.repositories()[terms.repository].charge).unwrap_or_default()
    }

    /// The claims that one entry of `acquire` stands for: several where several groups are charged.
    fn claims(
        &self,
        rule: &'p Rule,
        terms: &ClaimTerms,
        gids: &[u32],
        admit_always: bool,
    ) -> Result<Vec<Claim<'p>>, LookupError> {
        let repository = &self.policy.repositories()[terms.repository];
        let one = |gid| self.claim(rule, terms, repository, gid, admit_always);
        if !repository.is_by_group() {
            return Ok(vec![one(None)?]);
        }
        let charged =
            if self.charge(rule, terms) == Charge::First { &gids[..gids.len().min(1)] } else { gids };
        charged.iter().map(|gid| one(Some(*gid))).collect()
    }

    fn claim(
        &self,
        rule: &'p Rule,
        terms: &ClaimTerms,
        repository: &'p Repository,
        gid: Option<u32>,
        admit_always: bool,
    ) -> Result<Claim<'p>, LookupError> {
        let request = self.matcher.request;
        let layer = &self.policy.layers()[repository.layer];
        let mut member: Vec<Member> = Vec::new();
        let mut owner = None;
        let mut text = Vec::new();
        let path = repository.path.expand(request.runtime, |placeholder| {
            let value = values::value(placeholder, gid, request, self.matcher)?;
            let known = values::member(placeholder, &value, gid, request);
            if matches!(known, Member::User(_)) {
                owner = Some(request.uid);
            }
            if !member.contains(&known) {
                member.push(known);
            }
            text.clone_from(&value);
            Ok(value)
        })?;
        let limit = self.limit(repository, member.first(), &text)?.resolve(request.cpus);
        let left = terms.leave.map(|leave| limit.saturating_sub(leave));
        let principal =
            |principals: &[_]| super::lookups::any(principals, |one| self.matcher.lookups.is(one));
        Ok(Claim {
            repository,
            member,
            path,
            base: repository.path.base(request.runtime),
            create_base: !layer.is_systems(),
            limit,
            ceiling: terms.ceiling.or(left).map(|ceiling| ceiling.min(limit)),
            slots: terms.slots_from.as_ref().map_or(terms.slots, |from| self.slots(from, terms.slots)),
            zones: zones(limit, repository.reservations(), |reservation| principal(&reservation.principals))?,
            owner,
            create_mode: layer.create_mode(),
            directory_mode: layer.directory_mode(),
            nested: repository.nested(),
            admit_always,
            enforce: enforced(rule, repository, layer.enforce && self.policy.layers()[rule.layer].enforce),
            rules: vec![rule],
        })
    }

    /// The limit of a member; `text` is the value of the placeholder.
    fn limit(
        &self,
        repository: &Repository,
        member: Option<&Member>,
        text: &[u8],
    ) -> Result<Limit, LookupError> {
        let mut names: Option<Vec<Vec<u8>>> = None;
        for own in &repository.limits {
            // A number needs no look-up, and what is not asked cannot fail.
            let is_number =
                own.member.literal().is_some_and(|member| member.bytes().all(|byte| byte.is_ascii_digit()));
            let number = match member {
                Some(Member::User(id) | Member::Group(id)) => Some(id.to_string()),
                _ => None,
            };
            if let (true, Some(number)) = (is_number, number) {
                if own.member.matches(number.as_bytes()) {
                    return Ok(own.limit);
                }
                continue;
            }
            if names.is_none() {
                names = Some(self.member_names(repository, member, text)?);
            }
            if names.iter().flatten().any(|name| own.member.matches(name)) {
                return Ok(own.limit);
            }
        }
        Ok(repository.limit())
    }

    /// What a member may be called in `limits`.
    fn member_names(
        &self,
        repository: &Repository,
        member: Option<&Member>,
        text: &[u8],
    ) -> Result<Vec<Vec<u8>>, LookupError> {
        let lookups = &self.matcher.lookups;
        Ok(match member {
            Some(Member::User(_)) => {
                lookups.user_name()?.iter().map(|name| name.as_bytes().to_vec()).collect()
            }
            Some(Member::Group(gid)) => {
                lookups.group_name(*gid)?.into_iter().map(String::into_bytes).collect()
            }
            _ => {
                let is_host =
                    repository.path.placeholders().any(|placeholder| *placeholder == Placeholder::Host);
                let label = text.split(|byte| *byte == b'.').next().filter(|_| is_host);
                [Some(text), label].into_iter().flatten().map(<[u8]>::to_vec).collect()
            }
        })
    }

    /// The number on the command line; where there is none, what the policy says otherwise. Where it is given more than
    /// once the largest counts, because nobody knows which of them the program takes.
    fn slots(&self, from: &SlotsFrom, otherwise: Slots) -> Slots {
        let after = from.after.as_str();
        let arguments = self.matcher.request.arguments;
        let separate = arguments.windows(2).filter(|pair| pair[0] == after).map(|pair| pair[1].to_str());
        let joined =
            arguments.iter().map(|argument| argument.to_str()?.strip_prefix(after)?.strip_prefix('='));
        let number = |text: Option<&str>| {
            let text =
                text.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty())?;
            // Digits that are too many for a number are a very large number.
            Some(text.parse().unwrap_or(u32::MAX)).filter(|number| *number > 0)
        };
        let largest = separate.chain(joined).filter_map(number).max();
        largest.map_or(otherwise, |number| Slots::Number(number.min(from.most.unwrap_or(u32::MAX))))
    }
}

/// Whether a claim refuses: anybody who is being tried out makes it a trial, and else whoever says something decides.
fn enforced(rule: &Rule, repository: &Repository, default: bool) -> bool {
    match (rule.enforce, repository.enforce) {
        (Some(false), _) | (_, Some(false)) => false,
        (None, None) => default,
        _ => true,
    }
}
