//! What a refused caller reads: every repository that refused, with its use and limit, the rule behind it and its place, who
//! has held it longest, what the rule's author has to say, and what to do next.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fmt,
    time::{Duration, SystemTime},
};

use crate::{
    commands::{names::SystemNames, run::Asked},
    decision,
    error::Error,
    exit_status::ExitStatus,
    output::{age::age, clock::Clock, visible::visible},
    policy::{Rule, Wait, show_duration},
    repository::{
        claim::{Claim, Nested},
        hold::Hold,
        holder::Holder,
        refused::{Reason, Refused},
    },
    sys::{accounts::NameCache, process},
};

/// How many holders a refusal names for each repository.
const HOLDERS: usize = 4;

/// The wait that is suggested to those who did not ask for one.
const USUAL_WAIT: Duration = Duration::from_secs(30 * 60);

/// A launch that does not get what it needs.
pub(super) struct Refusal {
    text: String,
    status: ExitStatus,
    is_silent: bool,
}

impl Refusal {
    /// Puts the message together, which speaks of the command by the name that rules see, and repeats it as it was typed.
    /// `waited` says how long the launch stood in line.
    pub(super) fn new(
        name: &OsStr,
        command: &OsStr,
        asked: &Asked<'_>,
        refused: &[Refused],
        waited: Option<Duration>,
    ) -> Self {
        let Asked { judged, .. } = asked;
        let claims = asked.claims();
        let mut message = Message { clock: Clock::now(), names: NameCache::new(), lines: Vec::new() };
        let mut status = match waited {
            _ if is_hopeless(asked, refused) => ExitStatus::Policy,
            Some(_) => ExitStatus::TimedOut,
            None => ExitStatus::Full,
        };
        // Among several alternatives one may be too soon, and another one full: that is what there is to wait for.
        let is_too_soon = is_too_soon(refused);
        if is_too_soon {
            status = ExitStatus::TooSoon;
            message.too_soon(name, refused, &claims);
        } else {
            let what = if refused.iter().all(|refused| is_behind_others(refused, claims[refused.claim])) {
                "others stand in line for what is left".to_owned()
            } else {
                what_is_full(refused.len(), claims.len(), status)
            };
            message.lines.push(headline(name, &what, waited));
            for refused in refused {
                let judged = judged.get(refused.claim).copied();
                message.claim(claims[refused.claim], judged, &refused.reason);
            }
        }
        message.words_of_rules(refused.iter().filter_map(|refused| judged.get(refused.claim).copied()));
        message.lines.push(advice(command, asked, refused, &claims, waited));
        let is_silent = is_too_soon
            && refused.iter().all(|refused| matches!(refused.reason, Reason::TooSoon { silent: true, .. }));
        Self { text: message.lines.join("\n"), status, is_silent }
    }

    /// The status to end with.
    pub(super) fn status(&self) -> ExitStatus {
        self.status
    }

    /// Whether this is no failure, and nothing to be talked about: `too_soon = "ok"`.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Whether everything that refuses does so because the last start, or end, was too short a time ago.
pub(super) fn is_too_soon(refused: &[Refused]) -> bool {
    !refused.is_empty() && refused.iter().all(|refused| matches!(refused.reason, Reason::TooSoon { .. }))
}

/// Whether something that is needed can never be had, whatever falls free: none of its alternatives.
fn is_hopeless(asked: &Asked<'_>, refused: &[Refused]) -> bool {
    let never: Vec<usize> = refused
        .iter()
        .filter(|refused| matches!(refused.reason, Reason::Never))
        .map(|refused| refused.claim)
        .collect();
    let mut next = 0;
    asked.demands.iter().any(|demand| {
        let mut options = next..next + demand.options().len();
        next = options.end;
        !options.is_empty() && options.all(|option| never.contains(&option))
    })
}

fn headline(command: &OsStr, what: &str, waited: Option<Duration>) -> String {
    let waited = waited.map_or_else(String::new, |waited| format!("waited {}, and still ", age(waited)));
    format!("rungate: {}: not started: {waited}{what}", visible(command))
}

fn what_is_full(refused: usize, all: usize, status: ExitStatus) -> String {
    match (status, refused, all) {
        (ExitStatus::Policy, _, _) => "it can never have what it needs".to_owned(),
        (_, 1, 1) => "the limit is reached".to_owned(),
        (_, refused, all) if refused == all => format!("all {all} limits are reached"),
        (_, 1, all) => format!("1 of {all} limits is reached"),
        (_, refused, all) => format!("{refused} of {all} limits are reached"),
    }
}

/// Whether there is room, and only the line of those who came before stands in the way.
fn is_behind_others(refused: &Refused, claim: &Claim) -> bool {
    match &refused.reason {
        Reason::Full { used, waiting, .. } => {
            *waiting > 0 && used + claim.slots.under(claim.limit) <= claim.reach()
        }
        Reason::Never | Reason::TooSoon { .. } => false,
    }
}

struct Message {
    clock: Clock,
    names: NameCache,
    lines: Vec<String>,
}

impl Message {
    /// `nightly-sync: too soon: started at 03:00:00 by backup, 4m12s ago`
    fn too_soon(&mut self, command: &OsStr, refused: &[Refused], claims: &[&Claim]) {
        for refused in refused {
            let Reason::TooSoon { last, uid, pause, from_end, .. } = &refused.reason else { continue };
            let what = if *from_end { "ended" } else { "started" };
            let who = uid.map_or_else(String::new, |uid| format!(" by {}", visible(self.names.user(uid))));
            let ago = self.clock.system_time().duration_since(*last).unwrap_or_default();
            self.lines.push(format!(
                "rungate: {}: too soon: {what} at {}{who}, {} ago;",
                visible(command),
                self.clock.time(*last),
                age(ago)
            ));
            self.lines.push(format!(
                "  not before {} (repository {}, if_elapsed = \"{}\")",
                self.clock.time(*last + *pause),
                visible(&claims[refused.claim].name),
                show_duration(*pause)
            ));
        }
    }

    fn claim(&mut self, claim: &Claim, judged: Option<&decision::Claim<'_>>, reason: &Reason) {
        let member = judged
            .and_then(|judged| judged.member_name(&SystemNames))
            .map_or_else(String::new, |member| format!(" [{}]", visible(member)));
        let name = format!("{}{member}", visible(&claim.name));
        let wanted = claim.slots.under(claim.limit);
        let numbers = match reason {
            Reason::Never => {
                let slots = if wanted == 1 { "slot" } else { "slots" };
                format!("{wanted} {slots} wanted of {}", claim.limit)
            }
            Reason::TooSoon { last, pause, .. } => format!(
                "too soon: not before {} (if_elapsed = \"{}\")",
                self.clock.time(*last + *pause),
                show_duration(*pause)
            ),
            Reason::Full { .. } if claim.limit == 0 => "closed: its limit is 0".to_owned(),
            Reason::Full { used, waiting, .. } => {
                let more = if wanted > 1 { format!(", {wanted} more wanted") } else { String::new() };
                let line = match waiting {
                    0 => String::new(),
                    waiting => format!(", {waiting} waiting"),
                };
                format!("{used} of {} used{more}{line}", claim.limit)
            }
        };
        self.lines.push(format!("  {name}  {numbers}"));
        match judged {
            Some(judged) => {
                self.ceiling(judged);
                self.kept(claim);
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

    fn kept(&mut self, claim: &Claim) {
        match claim.reach() {
            reach if reach >= claim.limit => {}
            0 => self.lines.push("      all of them are kept for others".to_owned()),
            reach => self
                .lines
                .push(format!("      only {reach} of {} for you; the rest is kept for others", claim.limit)),
        }
    }

    fn holders(&mut self, holders: &[Holder], name: &str) {
        let mut longest = by_process(holders);
        longest.sort_by_key(|(holder, _)| holder.since.unwrap_or(SystemTime::UNIX_EPOCH));
        for (holder, slots) in longest.iter().take(HOLDERS) {
            let line = self.holder(holder, *slots);
            self.lines.push(format!("      {line}"));
        }
        if longest.len() > HOLDERS {
            let more = longest.len() - HOLDERS;
            self.lines.push(format!("      and {more} more: rungate list {}", visible(name)));
        }
    }

    /// `PID 8123 ann matlab, since 14 Nov 09:50 (6d04h)`
    fn holder(&mut self, holder: &Holder, slots: u64) -> String {
        let Some(pid) = holder.pid else {
            return format!("slot {}: a holder that cannot be seen from here", holder.slots.0);
        };
        let user = holder.uid.map_or_else(|| "?".to_owned(), |uid| visible(self.names.user(uid)));
        let command = holder.command.as_ref().map_or_else(|| "?".to_owned(), visible);
        let since = holder.since.map_or_else(String::new, |since| {
            let held = holder.age(self.clock.system_time()).unwrap_or_default();
            format!(", since {} ({})", self.clock.short(since), age(held))
        });
        let slots = if slots > 1 { format!(", {slots} slots") } else { String::new() };
        format!("PID {pid} {user} {command}{slots}{since}")
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

/// Each process once, with the number of its slots. Holders without a process stay apart.
fn by_process(holders: &[Holder]) -> Vec<(&Holder, u64)> {
    let mut processes: Vec<(&Holder, u64)> = Vec::new();
    let mut places: HashMap<i32, usize> = HashMap::new();
    for holder in holders {
        let count = holder.slots.1 - holder.slots.0 + 1;
        let next = processes.len();
        match holder.pid.map(|pid| *places.entry(pid).or_insert(next)) {
            Some(place) if place < next => processes[place].1 += count,
            _ => processes.push((holder, count)),
        }
    }
    processes
}

/// What there is to do where only programs above this one stand in the way. An administrator hears of what is not yet so.
fn among_ancestors(full: &[(&Refused, &[Holder], bool)], claims: &[&Claim]) -> String {
    let alone = full.iter().filter(|(_, _, only_ancestors)| *only_ancestors);
    let (mut takes, mut is_weak) = (false, false);
    for (refused, holders, _) in alone {
        takes |= claims[refused.claim].nested == Nested::Take;
        is_weak |= holders.iter().any(|holder| holder.hold.is_none_or(|hold| hold == Hold::Process));
    }
    let missing = match (takes, is_weak) {
        (true, true) => "nested = \"join\" and hold = \"descriptor\"",
        (true, false) => "nested = \"join\"",
        (false, true) => "hold = \"descriptor\"",
        (false, false) => {
            return "Start it outside of the program that holds the slot.\n\
                    The slot can be shared, but only for the same command, and by one program at a time."
                .to_owned();
        }
    };
    format!(
        "Start it outside of the program that holds the slot.\n\
         An administrator can let it share that slot: {missing}."
    )
}

fn advice(
    command: &OsStr,
    asked: &Asked<'_>,
    refused: &[Refused],
    claims: &[&Claim],
    waited: Option<Duration>,
) -> String {
    let command = visible(command);
    let full: Vec<(&Refused, &[Holder], bool)> = refused
        .iter()
        .filter_map(|refused| match &refused.reason {
            Reason::Full { holders, only_ancestors, .. } => {
                Some((refused, holders.as_slice(), *only_ancestors))
            }
            Reason::Never | Reason::TooSoon { .. } => None,
        })
        .collect();
    if let Some(refused) = refused.first().filter(|_| is_too_soon(refused)) {
        let name = visible(&claims[refused.claim].name);
        return format!("To start it now all the same: rungate reset {name}");
    }
    if is_hopeless(asked, refused) {
        return format!(
            "Ask for fewer slots, or ask your administrator: rungate explain{} -- {command}",
            asked.options.explain
        );
    }
    if full.iter().any(|(_, _, only_ancestors)| *only_ancestors) {
        return among_ancestors(&full, claims);
    }
    if full.iter().any(|(refused, _, _)| claims[refused.claim].limit == 0) {
        return "Nothing new may start there now. Ask your administrator how long.".to_owned();
    }
    let me = process::owner(process::own_pid());
    let mine = full
        .iter()
        .any(|(_, holders, _)| holders.iter().any(|holder| holder.uid.is_some() && holder.uid == me));
    let first = if mine { "Close one of yours" } else { "Try again later" };
    // What the launch could wait at the most, if it asked for more than it did.
    let next = match asked.terms.wait.resolve(Some(Wait::Forever)) {
        _ if waited.is_some() => ", or wait longer".to_owned(),
        Wait::For(Duration::ZERO) if mine => ", or try again later".to_owned(),
        Wait::For(Duration::ZERO) => String::new(),
        most => {
            let wait = most.min(Wait::For(USUAL_WAIT));
            format!(", or stand in line: rungate run --wait {wait}{} -- {command}", asked.options.run)
        }
    };
    // A claim of the command line is all there in the message already.
    let why = if full.iter().any(|(refused, _, _)| refused.claim < asked.judged.len()) {
        format!("\nTo see why: rungate explain{} -- {command}", asked.options.explain)
    } else {
        String::new()
    };
    format!("{first}{next}{why}")
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
