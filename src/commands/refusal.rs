//! What a refused caller reads: every repository that refused, with its use and limit, the rule behind it and its place, who
//! has held it longest, what the rule's author has to say, and what to do next.

use std::{ffi::OsStr, fmt, time::SystemTime};

use crate::{
    commands::names::SystemNames,
    decision,
    error::Error,
    exit_status::ExitStatus,
    output::{age::age, clock::Clock, visible::visible},
    policy::Rule,
    repository::{
        acquisition::{Reason, Refused},
        claim::{Claim, Demand},
        holder::Holder,
    },
    sys::{accounts::NameCache, process},
};

/// How many holders a refusal names for each repository.
const HOLDERS: usize = 4;

/// A launch that found no room.
pub(super) struct Refusal {
    text: String,
    is_final: bool,
}

impl Refusal {
    /// Puts the message together. `judged` are the claims of the policy, numbered as in `refused`; what comes after them was
    /// asked for on the command line.
    pub(super) fn new(
        command: &OsStr,
        demands: &[Demand],
        judged: &[&decision::Claim<'_>],
        refused: &[Refused],
    ) -> Self {
        let claims: Vec<&Claim> = demands.iter().flat_map(Demand::options).collect();
        let is_final = refused.iter().all(|refused| matches!(refused.reason, Reason::Never));
        let mut message = Message { clock: Clock::now(), names: NameCache::new(), lines: Vec::new() };
        message.lines.push(headline(command, refused.len(), claims.len(), is_final));
        for refused in refused {
            message.claim(claims[refused.claim], judged.get(refused.claim).copied(), &refused.reason);
        }
        message.words_of_rules(refused.iter().filter_map(|refused| judged.get(refused.claim).copied()));
        message.lines.push(advice(command, refused, &claims));
        Self { text: message.lines.join("\n"), is_final }
    }

    /// Whether waiting or trying again will never help.
    pub(super) fn is_final(&self) -> bool {
        self.is_final
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

fn headline(command: &OsStr, refused: usize, all: usize, is_final: bool) -> String {
    let command = visible(command);
    let what = match (is_final, refused, all) {
        (true, _, _) => "it can never have what it needs".to_owned(),
        (false, 1, 1) => "the limit is reached".to_owned(),
        (false, refused, all) if refused == all => format!("all {all} limits are reached"),
        (false, 1, all) => format!("1 of {all} limits is reached"),
        (false, refused, all) => format!("{refused} of {all} limits are reached"),
    };
    format!("rungate: {command}: not started: {what}")
}

struct Message {
    clock: Clock,
    names: NameCache,
    lines: Vec<String>,
}

impl Message {
    fn claim(&mut self, claim: &Claim, judged: Option<&decision::Claim<'_>>, reason: &Reason) {
        let member = judged
            .and_then(|judged| judged.member_name(&SystemNames))
            .map_or_else(String::new, |member| format!(" [{}]", visible(member)));
        let name = format!("{}{member}", visible(&claim.name));
        let wanted = claim.slots.under(claim.limit);
        let numbers = match reason {
            Reason::Never => format!("{wanted} slots wanted of {}", claim.limit),
            Reason::Full { .. } if claim.limit == 0 => "closed: its limit is 0".to_owned(),
            Reason::Full { used, .. } => {
                let more = if wanted > 1 { format!(", {wanted} more wanted") } else { String::new() };
                format!("{used} of {} used{more}", claim.limit)
            }
        };
        self.lines.push(format!("  {name}  {numbers}"));
        match judged {
            Some(judged) => {
                self.ceiling(judged);
                for rule in &judged.rules {
                    self.lines.push(format!("      rule {}", Origin(rule)));
                }
            }
            None => self.lines.push(format!("      --limit {}, {}", claim.limit, visible(&claim.path))),
        }
        if let Reason::Full { holders, only_ancestors, .. } = reason {
            self.holders(holders, &claim.name);
            if *only_ancestors {
                self.lines
                    .push("      held by a process that waits for this command: that ends never".to_owned());
            }
        }
    }

    fn ceiling(&mut self, judged: &decision::Claim<'_>) {
        if let Some(ceiling) = judged.ceiling.filter(|ceiling| *ceiling < judged.limit) {
            self.lines.push(format!(
                "      only up to {ceiling} of {} for this rule; the rest is kept for others",
                judged.limit
            ));
        }
    }

    fn holders(&mut self, holders: &[Holder], name: &str) {
        let mut longest: Vec<&Holder> = holders.iter().collect();
        longest.sort_by_key(|holder| holder.since.unwrap_or(SystemTime::UNIX_EPOCH));
        for holder in longest.iter().take(HOLDERS) {
            let line = self.holder(holder);
            self.lines.push(format!("      {line}"));
        }
        if longest.len() > HOLDERS {
            let more = longest.len() - HOLDERS;
            self.lines.push(format!("      and {more} more: rungate list {}", visible(name)));
        }
    }

    /// `PID 8123 ann matlab, since 14 Nov 09:50 (6d04h)`
    fn holder(&mut self, holder: &Holder) -> String {
        let Some(pid) = holder.pid else {
            return format!("slot {}: a holder that cannot be seen from here", holder.slots.0);
        };
        let user = holder.uid.map_or_else(|| "?".to_owned(), |uid| visible(self.names.user(uid)));
        let command = holder.command.as_ref().map_or_else(|| "?".to_owned(), visible);
        let since = holder.since.map_or_else(String::new, |since| {
            let held = holder.age(self.clock.system_time()).unwrap_or_default();
            format!(", since {} ({})", self.clock.short(since), age(held))
        });
        format!("PID {pid} {user} {command}{since}")
    }

    /// What the authors of the rules have to say, each thing once.
    fn words_of_rules<'c, 'p: 'c>(&mut self, claims: impl Iterator<Item = &'c decision::Claim<'p>>) {
        let mut said: Vec<&str> = Vec::new();
        for message in claims.flat_map(|claim| &claim.rules).filter_map(|rule| rule.message()) {
            if !said.contains(&message) {
                said.push(message);
                self.lines.push(visible_lines(message));
            }
        }
    }
}

fn advice(command: &OsStr, refused: &[Refused], claims: &[&Claim]) -> String {
    let command = visible(command);
    let full: Vec<(&Refused, &[Holder], bool)> = refused
        .iter()
        .filter_map(|refused| match &refused.reason {
            Reason::Full { holders, only_ancestors, .. } => {
                Some((refused, holders.as_slice(), *only_ancestors))
            }
            Reason::Never => None,
        })
        .collect();
    if full.is_empty() {
        return format!("Ask for fewer slots, or ask your administrator: rungate explain -- {command}");
    }
    if full.iter().any(|(_, _, only_ancestors)| *only_ancestors) {
        return "Start it outside of the program that holds the slot.".to_owned();
    }
    if full.iter().any(|(refused, _, _)| claims[refused.claim].limit == 0) {
        return "Nothing new may start there now. Ask your administrator how long.".to_owned();
    }
    let me = process::owner(process::own_pid());
    let mine = full
        .iter()
        .any(|(_, holders, _)| holders.iter().any(|holder| holder.uid.is_some() && holder.uid == me));
    let close = if mine { "Close one of yours, or try again later" } else { "Try again later" };
    format!("{close}. To see why: rungate explain -- {command}")
}

/// A rule's name and place.
struct Origin<'a>(&'a Rule);

impl fmt::Display for Origin<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\", {}", visible(self.0.shown_name()), self.0.place())
    }
}

/// A message of the policy may have several lines; anything else that a terminal would obey is escaped.
fn visible_lines(message: &str) -> String {
    message.lines().map(visible).collect::<Vec<_>>().join("\n")
}

/// Refusals that have nothing to do with slots.
pub(super) struct Denial;

impl Denial {
    /// A `deny` rule.
    pub(super) fn of_rule(command: &OsStr, rule: &Rule, matches: &str) -> Error {
        let text = format!(
            "{}: refused: rule \"{}\"\n  ({}) matches {}",
            visible(command),
            visible(rule.shown_name()),
            rule.place(),
            visible(matches)
        );
        Error::new(ExitStatus::Denied, text).advise(
            rule.message()
                .map(visible_lines)
                .or_else(|| Some("If that is wrong, ask your administrator.".to_owned())),
        )
    }

    /// `unmatched = "refuse"`.
    pub(super) fn unmatched(command: &OsStr) -> Error {
        let command = visible(command);
        let text = format!("{command}: refused: no rule of the policy allows it (unmatched = \"refuse\")");
        Error::new(ExitStatus::Denied, text)
            .advise(format!("To see each rule: rungate explain -v -- {command}"))
    }
}
