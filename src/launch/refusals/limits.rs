//! What a refused caller reads: every repository that refused, with its use and limit, the rule behind it and
//! its place, who has held it longest, what the rule's author has to say, and what to do next.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fmt,
    time::{Duration, SystemTime},
};

use super::{
    advice::{advice, slots_of_caller, to_free},
    hints::Hints,
    waits,
};
use crate::{
    acquire::refusal::{Full, Reason, Refusal, Refused},
    judge::terms::{
        claim::Claim,
        location::Location,
        pace::{ElapsedFrom, Pause},
        provenance::{self, Origin, Place, rule_title},
        slots_wanted::Amount,
    },
    keeper::{Holder, Known},
    launch::{
        run::launch_spec::{LaunchSpec, rules},
        situation::SystemNames,
    },
    policy::show_duration,
    sys::{accounts::NameCache, credentials::own_uid},
    text::{
        clock::{Clock, age},
        error::contact_line,
        escape::{visible, visible_lines},
        exit_status::ExitStatus,
    },
};

/// How many holders a refusal names for each repository.
const HOLDERS: usize = 4;

/// The whole message: it speaks of the command by the name that rules see, and repeats it as it was typed.
pub(crate) fn describe(
    name: &OsStr,
    wanted: &LaunchSpec<'_>,
    refusal: &Refusal<'_>,
    hints: &Hints,
) -> String {
    let mut message = Message { clock: Clock::now(), names: NameCache::new(), lines: Vec::new(), hints };
    if refusal.is_too_soon() {
        message.too_soon(name, refusal);
    } else {
        let what = if refusal.claims().all(is_behind_others) {
            "others stand in line for what is left".to_owned()
        } else if let ([_], Some(neither)) =
            (refusal.unmet.as_slice(), refusal.unmet.iter().find_map(waits::neither))
        {
            neither
        } else {
            what_is_full(refusal.claims().count(), wanted.claims().count(), refusal.status())
        };
        message.lines.push(headline(name, &what, refusal.waited));
        let mut seen = Vec::new();
        for refused in refusal.claims() {
            // Alternatives may have claims in common.
            let about = (refused.table, &refused.claim.amount);
            if !seen.contains(&about) {
                message.claim(refused);
                seen.push(about);
            }
        }
    }
    message.words_of_rules(refusal);
    message.lines.push(advice(hints, refusal));
    message.lines.extend(contacts(refusal).into_iter().map(contact_line));
    message.lines.join("\n")
}

/// Whom the rules that refuse name, each once.
pub(crate) fn contacts<'c>(refusal: &Refusal<'c>) -> Vec<&'c str> {
    let mut contacts = Vec::new();
    for contact in refusal.claims().flat_map(|refused| &refused.claim.origins).filter_map(|o| o.contact) {
        if !contacts.contains(&contact) {
            contacts.push(contact);
        }
    }
    contacts
}

fn headline(command: &OsStr, what: &str, waited: Option<Duration>) -> String {
    let waited = waited.map_or_else(String::new, |waited| format!("waited {}, and still ", age(waited)));
    format!("rungate: {}: not started: {waited}{what}", visible(command))
}

fn what_is_full(refused: usize, all: usize, status: ExitStatus) -> String {
    match (status, refused, all) {
        (ExitStatus::Policy, ..) => "it can never have what it needs".to_owned(),
        (_, 1, 1) => "the limit is reached".to_owned(),
        (_, 2, 2) => "both limits are reached".to_owned(),
        (_, refused, all) if refused == all => format!("all {all} limits are reached"),
        (_, 1, all) => format!("1 of {all} limits is reached"),
        (_, refused, all) => format!("{refused} of {all} limits are reached"),
    }
}

/// Whether there is room, and only the line of those who came before stands in the way.
fn is_behind_others(refused: &Refused<'_>) -> bool {
    let amount = &refused.claim.amount;
    let has_room = |full: &Full| full.used() + amount.wanted() <= amount.reach();
    matches!(&refused.reason, Reason::Full(full) if has_room(full) && full.waiting() > 0)
}

struct Message<'h> {
    clock: Clock,
    names: NameCache,
    lines: Vec<String>,
    hints: &'h Hints,
}

impl Message<'_> {
    /// `nightly-sync: too soon: last started by backup at 03:00:00 (4m12s ago), next allowed at 03:15:00`
    fn too_soon(&mut self, command: &OsStr, refusal: &Refusal<'_>) {
        for refused in refusal.claims() {
            let (Reason::TooSoon { last, uid }, Some(pause)) = (&refused.reason, refused.claim.pace.pause)
            else {
                continue;
            };
            let what = match pause.from {
                ElapsedFrom::Start => "started",
                ElapsedFrom::End => "ended",
            };
            let who = uid.map_or_else(String::new, |uid| format!(" by {}", visible(self.names.user(uid))));
            let ago = self.clock.system_time().duration_since(*last).unwrap_or_default();
            self.lines.push(format!(
                "rungate: {}: too soon: last {what}{who} at {} ({} ago), next allowed at {}\n  \
                 repository {}, if_elapsed = \"{}\"",
                visible(command),
                self.clock.time(*last),
                age(ago),
                self.clock.time(*last + pause.length),
                visible(refused.claim.repository.as_ref()),
                show_duration(pause.length)
            ));
        }
    }

    fn claim(&mut self, refused: &Refused<'_>) {
        let Refused { claim, reason, .. } = refused;
        let limit = claim.amount.effective_limit();
        let wanted = claim.amount.wanted();
        let why = claim.reason_of_limit().map_or_else(String::new, |why| format!(" ({why})"));
        let numbers = match reason {
            Reason::Never => {
                let slots = if wanted == 1 { "slot" } else { "slots" };
                format!("{} {slots} wanted of {limit}{why}", waits::wanted(&claim.amount))
            }
            Reason::TooSoon { last, .. } => self.not_before(*last, claim.pace.pause),
            Reason::Full(_) if limit == 0 => format!("closed: its limit is 0{why}"),
            Reason::Full(full) => {
                let more = if wanted > 1 { format!(", {wanted} more wanted") } else { String::new() };
                let line = waits::not_waited_for(refused).unwrap_or_else(|| match full.waiting() {
                    0 => String::new(),
                    waiting => format!(", {} waiting", claim.queue.show(waiting)),
                });
                let least = if full.is_more_used() { "at least " } else { "" };
                format!("{least}{} of {limit} used{why}{more}{line}", full.used())
            }
        };
        self.lines.push(format!("  {}  {numbers}", visible(claim.title(&SystemNames))));
        self.reasons(claim);
        if let Reason::Full(full) = reason {
            let to_free = to_free(claim, full).into_iter().max().filter(|_| limit > 0).unwrap_or(0);
            if to_free > 1 {
                let of_whom = of_whom(to_free, slots_of_caller(claim, full));
                self.lines.push(format!("      {to_free} slots must be freed before it can start{of_whom}"));
            }
            self.holders(full.known_holders(), claim, to_free > 1);
            if is_behind_others(refused) {
                self.first_in_line(full);
            }
            if full.only_ancestors {
                self.lines.push(
                    "      held by a process that waits for this command: it would wait forever".to_owned(),
                );
            }
        }
    }

    fn not_before(&self, last: SystemTime, pause: Option<Pause>) -> String {
        let length = pause.map_or(Duration::ZERO, |pause| pause.length);
        let time = self.clock.time(last + length);
        format!("too soon: not before {time} (if_elapsed = \"{}\")", show_duration(length))
    }

    /// Why the claim is for so few slots, and which rules ask for it.
    fn reasons(&mut self, claim: &Claim<'_>) {
        if rules(claim).next().is_some() {
            self.ceiling(&claim.amount);
            self.kept(claim);
            self.lines.extend(rules(claim).map(|rule| format!("      {}", Named(rule))));
        } else if let Location::File(file) = &claim.location {
            self.lines.push(format!("      --limit {}, {}", claim.amount.limit, visible(&file.path)));
        }
    }

    fn ceiling(&mut self, amount: &Amount) {
        if let Some(ceiling) = amount.ceiling.filter(|ceiling| *ceiling < amount.limit) {
            self.lines.push(format!(
                "      only up to {ceiling} of {} for this rule; the rest is kept for others",
                amount.limit
            ));
        }
    }

    fn kept(&mut self, claim: &Claim<'_>) {
        let (limit, kept) = (claim.amount.effective_limit(), provenance::list(&claim.kept));
        match claim.amount.reach() {
            reach if reach >= limit => {}
            0 => self.lines.push(format!("      none for you: {kept}")),
            reach => self.lines.push(format!("      only {reach} of {limit} for you: {kept}")),
        }
    }

    /// The holders of a table, the longest first; or the caller's own before those.
    fn holders(&mut self, known: &Known, claim: &Claim<'_>, own_first: bool) {
        let mut longest = by_process(&known.holders);
        let is_later = |holder: &Holder| own_first && holder.uid != Some(own_uid());
        // Those of whom something is known come first: of many holders an agent describes only some.
        longest.sort_by_key(|(holder, _)| (holder.pid.is_none(), is_later(holder), holder.since));
        for (holder, slots) in longest.iter().take(HOLDERS) {
            let line = self::holder(holder, *slots, &self.clock, &self.names);
            self.lines.push(format!("      {line}"));
        }
        let more = longest.len().saturating_sub(HOLDERS) as u64 + known.others;
        let is_unknown = longest.iter().any(|(holder, _)| holder.pid.is_none());
        let list = || self.hints.list(claim, &claim.title(&SystemNames));
        if more > 0 {
            self.lines.push(format!("      and {more} more: {}", list()));
        } else if is_unknown && own_uid() != 0 {
            self.lines.push(format!("      ask your administrator who that is: {}", list()));
        }
    }

    /// `first in line: PID 9001 cid matlab, 2 slots wanted, since 13:40 (22m00s)`
    fn first_in_line(&mut self, full: &Full) {
        let others = full.others();
        let Some((first, pid)) = others.first().and_then(|first| Some((first, first.process.pid?))) else {
            return;
        };
        let host =
            first.process.host.as_deref().map_or_else(String::new, |host| format!(" on {}", visible(host)));
        let user = first.uid().map_or_else(|| "?".to_owned(), |uid| visible(self.names.user(uid)));
        let command = first.command().map_or_else(|| "?".to_owned(), visible);
        let wants = full.table().wants(first).filter(|wants| *wants > 1);
        let wants = wants.map_or_else(String::new, |wants| format!(", {wants} slots wanted"));
        let since = first.waited().and_then(|waited| {
            let since = self.clock.system_time().checked_sub(waited)?;
            Some(format!(", since {} ({})", self.clock.short(since), age(waited)))
        });
        self.lines.push(format!(
            "      first in line: PID {pid} {user} {command}{host}{wants}{}",
            since.unwrap_or_default()
        ));
    }

    /// What the authors of the rules have to say, each thing once.
    fn words_of_rules(&mut self, refusal: &Refusal<'_>) {
        let mut said: Vec<&str> = Vec::new();
        let origins = refusal.claims().flat_map(|refused| &refused.claim.origins);
        for message in origins.filter_map(|origin| origin.message) {
            if !said.contains(&message) {
                said.push(message);
                self.lines.push(visible_lines(message));
            }
        }
    }
}

/// `PID 8123 ann matlab, since 14 Nov 09:50 (6d04h)`
pub(crate) fn holder(holder: &Holder, slots: u64, clock: &Clock, names: &NameCache) -> String {
    let Some(pid) = holder.pid else {
        return format!("slot {}: a process that cannot be seen from here", holder.slots.0);
    };
    let user = holder.uid.map_or_else(|| "?".to_owned(), |uid| visible(names.user(uid)));
    let command = holder.command.as_ref().map_or_else(|| "?".to_owned(), visible);
    let since = holder.since.map_or_else(String::new, |since| {
        let held = holder.age(clock.system_time()).unwrap_or_default();
        format!(", since {} ({})", clock.short(since), age(held))
    });
    let slots = if slots > 1 { format!(", {slots} slots") } else { String::new() };
    let host = holder.elsewhere().map_or_else(String::new, |host| format!(" on {}", visible(host)));
    format!("PID {pid} {user} {command}{host}{slots}{since}")
}

/// `: 1 of yours and 2 of others`; nothing if the caller has none of them.
fn of_whom(to_free: u64, own: u64) -> String {
    match to_free.saturating_sub(own) {
        _ if own == 0 => String::new(),
        0 => ", yours".to_owned(),
        others => format!(": {own} of yours and {others} of others"),
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

/// A rule's name and place.
struct Named<'a>(&'a Origin<'a>);

impl fmt::Display for Named<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.0.place.map_or_else(String::new, Place::to_string);
        write!(formatter, "{}, {place}", rule_title(self.0.rule))
    }
}
