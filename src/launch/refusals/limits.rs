//! The message to a refused caller. It names every repository that refused, with its use and limit, the rule
//! and its place, the oldest holders, the message of the rule's author, and what to do next.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fmt,
    ops::RangeInclusive,
    time::{Duration, SystemTime},
};

use super::Hints;
use crate::{
    acquire::{Alternative, Full, Reason, Refusal, Refused, Unmet, Unwaited},
    judge::terms::{
        Amount, Claim, ElapsedFrom, Hold, LAST_SLOT, Location, Nested, Origin, Pause, Place, Queue,
        WhyUnclear, provenance, rule_title,
    },
    keeper::{Holder, Known, Occupancy},
    launch::{LaunchSpec, SystemNames},
    policy::{Wait, show_duration},
    sys::{NameCache, own_uid},
    text::{Clock, ExitStatus, age, contact_line, visible, visible_lines},
};

/// How many holders a refusal names for each repository.
const HOLDERS: usize = 4;

/// The whole message. It names the command as rules see it, and repeats it as it was typed.
pub(crate) fn describe(name: &OsStr, wanted: &LaunchSpec, refusal: &Refusal<'_>, hints: &Hints) -> String {
    let mut message = Message { clock: Clock::now(), names: NameCache::new(), lines: Vec::new(), hints };
    if refusal.is_too_soon() {
        message.too_soon(name, refusal);
    } else {
        let what = if refusal.claims().all(is_behind_others) {
            "others wait in the queue for what is left".to_owned()
        } else if let ([_], Some(neither)) =
            (refusal.unmet.as_slice(), refusal.unmet.iter().find_map(neither))
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

/// The contacts of the rules that refuse, each once.
pub(crate) fn contacts<'c>(refusal: &Refusal<'c>) -> Vec<&'c str> {
    let mut contacts = Vec::new();
    let origins = refusal.claims().flat_map(|refused| &refused.claim.origins);
    for contact in origins.filter_map(|origin| origin.contact.as_deref()) {
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
        (ExitStatus::Policy, ..) => "it needs more than it can ever get".to_owned(),
        (_, 1, 1) => "the limit is reached".to_owned(),
        (_, 2, 2) => "both limits are reached".to_owned(),
        (_, refused, all) if refused == all => format!("all {all} limits are reached"),
        (_, 1, all) => format!("1 of {all} limits is reached"),
        (_, refused, all) => format!("{refused} of {all} limits are reached"),
    }
}

/// Whether there is room, and only earlier waiters block the launch.
fn is_behind_others(refused: &Refused<'_>) -> bool {
    let claim = refused.claim;
    let has_room =
        |full: &Full| full.used() + full.outside.slots() + full.wanted(claim) <= claim.amount.usable_slots();
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
        let why = claim.reason_of_limit().map_or_else(String::new, |why| format!(" ({why})"));
        let numbers = match reason {
            Reason::Never => format!("{}{why}", never(claim)),
            Reason::TooSoon { last, .. } => self.not_before(*last, claim.pace.pause),
            Reason::Full(_) if limit == 0 => format!("closed: its limit is 0{why}"),
            Reason::Full(full) => {
                let wanted = full.wanted(claim);
                let more = if wanted > 1 { format!(", {wanted} more wanted") } else { String::new() };
                let line = not_waited_for(refused).unwrap_or_else(|| match full.waiting() {
                    0 => String::new(),
                    waiting => format!(", {} waiting", claim.queue.show(waiting)),
                });
                let least = if full.is_more_used() { "at least " } else { "" };
                let outside = match full.outside.slots() {
                    0 => String::new(),
                    slots => format!(", {slots} in use outside rungate"),
                };
                format!("{least}{} of {limit} used{outside}{why}{more}{line}", full.used())
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
    fn reasons(&mut self, claim: &Claim) {
        if claim.rules().next().is_some() {
            self.ceiling(&claim.amount);
            self.kept(claim);
            self.lines.extend(claim.rules().map(|rule| format!("      {}", Named(rule))));
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

    fn kept(&mut self, claim: &Claim) {
        let (limit, kept) = (claim.amount.effective_limit(), provenance::list(&claim.kept));
        match claim.amount.usable_slots() {
            usable if usable >= limit => {}
            0 => self.lines.push(format!("      none for you: {kept}")),
            usable => self.lines.push(format!("      only {usable} of {limit} for you: {kept}")),
        }
    }

    /// The holders of a table, oldest first; the caller's own may precede them.
    fn holders(&mut self, known: &Known, claim: &Claim, own_first: bool) {
        let mut longest = by_process(&known.holders);
        let is_later = |holder: &Holder| own_first && holder.uid != Some(own_uid());
        // Known holders come first: an agent describes only some of many.
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

    /// The messages of the rules' authors, each once.
    fn words_of_rules(&mut self, refusal: &Refusal<'_>) {
        let mut said: Vec<&str> = Vec::new();
        let origins = refusal.claims().flat_map(|refused| &refused.claim.origins);
        for message in origins.filter_map(|origin| origin.message.as_deref()) {
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

/// Each process once, with the number of its slots. Holders without a process are not merged.
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
struct Named<'a>(&'a Origin);

impl fmt::Display for Named<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.0.place.as_ref().map_or_else(String::new, Place::to_string);
        write!(formatter, "{}, {place}", rule_title(&self.0.rule))
    }
}

// What the reader of a refusal can do next, in one sentence and one or two commands. Nothing is suggested
// that would be refused again, or that the reader may not do.

/// The suggested wait if the launch requested none.
const USUAL_WAIT: Duration = Duration::from_secs(30 * 60);

/// What to do next, in one sentence and one or two commands.
pub(super) fn advice(hints: &Hints, refusal: &Refusal<'_>) -> String {
    let full: Vec<(&Claim, &Full)> = refusal.claims().filter_map(full_claim).collect();
    if refusal.is_too_soon() {
        let claims: Vec<&Claim> = refusal.too_soon().map(|refused| refused.claim).collect();
        let is_of_agent = claims.iter().any(|claim| matches!(claim.location, Location::Agent(_)));
        let reset = hints.reset(&claims);
        // Only root may ask the agent for that.
        return match own_uid() {
            uid if uid != 0 && is_of_agent => format!("Ask your administrator to let it start now: {reset}"),
            _ => format!("To start it now anyway: {reset}"),
        };
    }
    if refusal.is_hopeless() {
        let is_kept = |refused: &Refused<'_>| {
            matches!(refused.reason, Reason::Never) && refused.claim.amount.is_kept_for_others()
        };
        let explain = hints.explain();
        let has_no_number = |refused: &Refused<'_>| {
            let unclear = refused.claim.unclear.as_ref();
            unclear.is_some_and(|unclear| matches!(unclear.why, WhyUnclear::NoNumber { .. }))
        };
        return if refusal.claims().any(has_no_number) {
            format!("Write the number on the command line, or ask your administrator: {explain}")
        } else if refusal.claims().any(is_kept) {
            format!(
                "Fewer slots would not help. To see for whom they are kept: {explain}\n\
                 If that is wrong, ask your administrator."
            )
        } else {
            format!("Ask for fewer slots, or ask your administrator: {explain}")
        };
    }
    if full.iter().any(|(_, full)| full.only_ancestors) {
        return among_ancestors(&full);
    }
    if refusal.unmet.iter().any(is_closed) {
        return "Nothing new may start there now. Ask your administrator how long.".to_owned();
    }
    let (first, is_mine) = what_helps(refusal);
    let next = match longest_wait(refusal).filter(|_| !hints.are_of_no_use()) {
        Some(most) if refusal.waited.is_some() && could_wait_longer(refusal) => {
            format!(", or wait longer: {}", hints.wait(most.min(longer(refusal))))
        }
        _ if refusal.waited.is_some() && is_mine => ", or try again later".to_owned(),
        _ if refusal.waited.is_some() => String::new(),
        None if is_mine => ", or try again later".to_owned(),
        None => String::new(),
        Some(most) => format!(", or wait in the queue: {}", hints.wait(most.min(Wait::For(USUAL_WAIT)))),
    };
    // A claim of the command line is already complete in the message.
    let why = if full.iter().any(|(claim, _)| claim.rules().next().is_some()) {
        format!("\nTo see why: {}", hints.explain())
    } else {
        String::new()
    };
    let end = if is_mine { end_of_own(hints, &full) } else { None };
    let end = end.map_or_else(String::new, |end| format!("\nTo end the oldest of yours: {end}"));
    format!("{first}{next}{why}{end}")
}

/// Ends the caller's program that has held its slots longest, if its end alone makes room.
fn end_of_own(hints: &Hints, full: &[(&Claim, &Full)]) -> Option<String> {
    let (first, others) = full.split_first()?;
    let frees = |pid: i32, (claim, full): &(&Claim, &Full)| {
        let zones = &claim.amount.zones;
        let slots = |holder: &Holder| within(zones, &(holder.slots.0..=holder.slots.1));
        let own = full.holders_of(own_uid(), claim).into_iter();
        let all: u64 = own.filter(|holder| holder.pid == Some(pid)).map(slots).sum();
        to_free(claim, full).into_iter().all(|missing| all >= missing)
    };
    // A lock file does not prove the holder of a slot that a descriptor keeps.
    let is_proved = |holder: &&Holder| {
        let (claim, _) = first;
        let is_of_file = matches!(claim.location, Location::File(_));
        !is_of_file || holder.hold != Some(Hold::Descriptor) || claim.pace.expiry.is_some()
    };
    let mut holders = first.1.holders_of(own_uid(), first.0);
    holders.retain(is_proved);
    holders.sort_by_key(|holder| holder.since);
    let pids = holders.into_iter().filter_map(|holder| holder.pid);
    let pid = pids.into_iter().find(|pid| [first].into_iter().chain(others).all(|of| frees(*pid, of)))?;
    Some(hints.end(first.0, pid))
}

/// A longer wait than the one that timed out, in whole minutes.
fn longer(refusal: &Refusal<'_>) -> Wait {
    let minutes = refusal.waited.unwrap_or_default().as_secs() / 30 + 1;
    Wait::For(Duration::from_secs(minutes * 60).max(USUAL_WAIT))
}

fn full_claim<'r, 'c>(refused: &'r Refused<'c>) -> Option<(&'c Claim, &'r Full)> {
    match &refused.reason {
        Reason::Full(full) => Some((refused.claim, full)),
        Reason::Never | Reason::TooSoon { .. } => None,
    }
}

/// Whether each alternative needs a repository whose limit is 0.
fn is_closed(unmet: &Unmet<'_>) -> bool {
    unmet.alternatives.iter().all(alternative_is_closed)
}

fn alternative_is_closed(alternative: &Alternative<'_>) -> bool {
    let mut full = alternative.refused.iter().filter_map(full_claim);
    full.any(|(claim, _)| claim.amount.effective_limit() == 0)
}

/// How many slots must be freed before a claim can be met: of all, and of those that are not kept for others.
pub(super) fn to_free(claim: &Claim, full: &Full) -> [u64; 2] {
    let Amount { zones, .. } = &claim.amount;
    let (wanted, limit) = (full.wanted(claim), claim.amount.effective_limit());
    let open: u64 = zones.iter().map(|zone| zone.end() + 1 - zone.start()).sum();
    let spans = full.occupancy().map_or(&[][..], Occupancy::spans);
    let held: u64 = spans.iter().map(|span| within(zones, &span.slots)).sum();
    let beside = full.outside.slots() + wanted;
    [(full.used() + beside).saturating_sub(limit), (held + beside).saturating_sub(open)]
}

/// How many of these slots are in the zones.
fn within(zones: &[RangeInclusive<u64>], slots: &RangeInclusive<u64>) -> u64 {
    let common = |zone: &RangeInclusive<u64>| {
        (1 + *slots.end().min(zone.end())).saturating_sub(*slots.start().max(zone.start()))
    };
    zones.iter().map(common).sum()
}

/// How many slots the caller holds of those that the claim could get.
pub(super) fn slots_of_caller(claim: &Claim, full: &Full) -> u64 {
    own_slots(claim, full).map(|slots| within(&claim.amount.zones, &slots)).sum()
}

fn own_slots(claim: &Claim, full: &Full) -> impl Iterator<Item = RangeInclusive<u64>> {
    full.holders_of(own_uid(), claim).into_iter().map(|holder| holder.slots.0..=holder.slots.1)
}

/// What the reader can do besides waiting, and whether that is to close a program of their own. This is shown
/// only if the same launch would start afterwards.
fn what_helps(refusal: &Refusal<'_>) -> (String, bool) {
    let helps = |unmet: &Unmet<'_>| {
        let open = unmet.alternatives.iter().filter(|alternative| !alternative_is_closed(alternative));
        open.map(help_for).min_by_key(|help| (!help.is_enough, help.slots)).unwrap_or_default()
    };
    let all: Vec<Help> = refusal.unmet.iter().map(helps).collect();
    let slots = all.iter().map(|help| help.slots).max().unwrap_or(1);
    let is_enough = all.iter().all(|help| help.is_enough);
    let text = match (is_enough, slots) {
        (true, 1) => "Close one of yours".to_owned(),
        (true, slots) => format!("Close programs of yours that hold {slots} slots"),
        (false, 0 | 1) => "Try again later".to_owned(),
        (false, slots) => format!("Try again once {slots} slots are freed"),
    };
    (text, is_enough)
}

/// What would help one alternative.
#[derive(Default)]
struct Help {
    /// The most slots that have to be freed in one repository.
    slots: u64,
    /// Whether the reader holds that many in each full repository, and no other launch gets them first.
    is_enough: bool,
}

fn help_for(alternative: &Alternative<'_>) -> Help {
    let mut help = Help { slots: 1, is_enough: true };
    for (claim, full) in alternative.refused.iter().filter_map(full_claim) {
        let [of_all, of_open] = to_free(claim, full);
        let mine_of_all: u64 = own_slots(claim, full).map(|slots| slots.end() + 1 - slots.start()).sum();
        let mine_of_open = slots_of_caller(claim, full);
        let slots = of_all.max(of_open);
        help.slots = help.slots.max(slots);
        // Waiting launches come first.
        help.is_enough &=
            slots > 0 && mine_of_all >= of_all && mine_of_open >= of_open && full.waiting() == 0;
    }
    help
}

// What to do where a launch would wait for itself.

/// What to do if only programs above this one block the launch. An administrator learns which settings are
/// missing.
pub(super) fn among_ancestors(full: &[(&Claim, &Full)]) -> String {
    let (mut takes, mut is_weak) = (false, false);
    for (claim, full) in full.iter().filter(|(_, full)| full.only_ancestors) {
        takes |= claim.nested == Nested::Take;
        is_weak |= full.holders().iter().any(|holder| holder.hold.is_none_or(|hold| hold == Hold::Process));
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

// The part of a refusal or prediction about waiting: how long, how long at most, and why not.

/// Why the launch does not wait for a full claim, after its numbers. Without a requested wait no reason is
/// needed.
pub(crate) fn not_waited_for(refused: &Refused<'_>) -> Option<String> {
    Some(match refused.unwaited? {
        Unwaited::Never if refused.claim.wait.is_forbidden() => ", never waited for".to_owned(),
        Unwaited::Never => return None,
        Unwaited::Over(_) => {
            let wait = refused.claim.wait;
            let longest = wait.bound.filter(|longest| *longest == wait.resolve())?;
            format!(", waited for no longer than {longest}")
        }
        Unwaited::Queue { waiting, most } => format!(", and {waiting} of {most} wait"),
        Unwaited::OwnQueue { waiting, most } => format!(", and {waiting} of {most} of yours wait"),
    })
}

/// Why there can never be enough slots for a claim.
pub(crate) fn never(claim: &Claim) -> String {
    if let Some(unclear) = &claim.unclear {
        return unclear.why.to_string();
    }
    let slots = if claim.amount.wanted() == 1 { "slot" } else { "slots" };
    format!("{} {slots} wanted of {}", wanted(claim), claim.amount.effective_limit())
}

/// How many slots are wanted; a number that no limit reaches is not repeated.
pub(crate) fn wanted(claim: &Claim) -> String {
    match claim.amount.wanted() {
        _ if claim.unclear.is_some() => "?".to_owned(),
        wanted if wanted > LAST_SLOT => format!("more than {LAST_SLOT}"),
        wanted => wanted.to_string(),
    }
}

/// The message to a caller whose wait the policy shortens, claim by claim.
pub(crate) fn cut(command: &OsStr, claim: &Claim, asked: Option<Wait>) -> Option<String> {
    let (longest, asked) = (claim.wait.cut(asked)?, asked?);
    let (command, name) = (visible(command), visible(claim.repository.as_ref()));
    Some(format!(
        "rungate: {command}: waits for {name} no longer than {longest}, not {asked}: repository {name} has max_wait = \"{longest}\""
    ))
}

/// Whether its queue is full, for all or for the user, also for a launch that does not wait.
pub(crate) fn is_at_the_end(refused: &Refused<'_>) -> bool {
    let Queue { most, per_user } = refused.claim.queue;
    let reached = |most: Option<u32>, waiting: &dyn Fn() -> usize| {
        most.is_some_and(|most| waiting() >= usize::try_from(most).unwrap_or(usize::MAX))
    };
    match (&refused.reason, refused.unwaited) {
        (_, Some(Unwaited::Queue { .. } | Unwaited::OwnQueue { .. })) => true,
        (Reason::Full(full), Some(Unwaited::Never)) => {
            reached(most, &|| full.waiting()) || reached(per_user, &|| full.waiting_of(own_uid()))
        }
        _ => false,
    }
}

/// The longest possible wait of the launch; none if it may not wait.
pub(crate) fn longest_wait(refusal: &Refusal<'_>) -> Option<Wait> {
    wait_by(refusal, &|refused| refused.claim.wait.bound.unwrap_or(Wait::Forever))
}

/// Whether a launch that has waited could have requested a longer wait.
pub(crate) fn could_wait_longer(refusal: &Refusal<'_>) -> bool {
    longest_wait(refusal) > wait_by(refusal, &|refused| refused.claim.wait.resolve())
}

fn wait_by(refusal: &Refusal<'_>, of_claim: &dyn Fn(&Refused<'_>) -> Wait) -> Option<Wait> {
    let of_alternative = |alternative: &Alternative<'_>| {
        let is_in_vain = |refused: &Refused<'_>| refused.is_final() || is_at_the_end(refused);
        if alternative.refused.iter().any(is_in_vain) {
            return Some(Wait::NONE);
        }
        alternative.refused.iter().map(of_claim).min()
    };
    let of_demand = |unmet: &Unmet<'_>| unmet.alternatives.iter().filter_map(of_alternative).max();
    refusal.unmet.iter().filter_map(of_demand).min().filter(|wait| *wait != Wait::NONE)
}

/// How a launch that is refused as full would wait, in words.
pub(crate) fn foretold(refusal: &Refusal<'_>) -> String {
    if let Some(wait) = refusal.wait() {
        return at_most(wait);
    }
    let unwaited = refusal.unmet.iter().find(|unmet| unmet.is_unwaited() && !unmet.is_final());
    let why = unwaited.into_iter().flat_map(Unmet::claims).find_map(|refused| {
        let name = visible(refused.claim.repository.as_ref());
        match refused.unwaited? {
            Unwaited::Never => refused.claim.wait.is_forbidden().then(|| format!("{name} allows no wait")),
            Unwaited::Over(_) => None,
            Unwaited::Queue { waiting, most } => Some(format!("{waiting} of {most} wait for {name}")),
            Unwaited::OwnQueue { waiting, most } => {
                Some(format!("{waiting} of {most} of yours wait for {name}"))
            }
        }
    });
    why.map_or_else(|| "none".to_owned(), |why| format!("none: {why}"))
}

/// `; with -w up to 2h`, if the policy allows a longer wait than it gives, and names the longest.
pub(crate) fn with_option(refusal: &Refusal<'_>) -> String {
    match longest_wait(refusal) {
        Some(longest @ Wait::For(_)) if could_wait_longer(refusal) => {
            format!("; with -w {}", at_most(longest))
        }
        _ => String::new(),
    }
}

/// `none`, `up to 2h`, `until it is its turn`.
pub(crate) fn at_most(wait: Wait) -> String {
    match wait {
        Wait::NONE => "none".to_owned(),
        Wait::For(longest) => format!("up to {}", show_duration(longest)),
        Wait::Forever => "until it is its turn".to_owned(),
    }
}

/// `neither drc + lvs (lvs 3 of 3) nor bundle (2 of 2)`, if claims belong together; none if each alternative
/// is one claim.
pub(crate) fn neither(unmet: &Unmet<'_>) -> Option<String> {
    if unmet.alternatives.iter().all(|alternative| alternative.claims.len() == 1) {
        return None;
    }
    let shown: Vec<String> = unmet.alternatives.iter().map(alternative).collect();
    let (last, others) = shown.split_last()?;
    Some(format!("neither {} nor {last}", others.join(", ")))
}

fn alternative(alternative: &Alternative<'_>) -> String {
    let names = alternative.claims.iter().map(|claim| visible(claim.repository.as_ref()));
    let names = names.collect::<Vec<_>>().join(" + ");
    let is_alone = alternative.claims.len() == 1;
    let why = alternative.refused.iter().map(|refused| {
        let limit = refused.claim.amount.effective_limit();
        let numbers = match &refused.reason {
            Reason::Full(full) => format!("{} of {limit}", full.used()),
            Reason::Never => format!("{} wanted of {limit}", wanted(refused.claim)),
            Reason::TooSoon { .. } => "too soon".to_owned(),
        };
        let name = visible(refused.claim.repository.as_ref());
        if is_alone { numbers } else { format!("{name} {numbers}") }
    });
    format!("{names} ({})", why.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{
        acquire::{self, AcquireContext, Outcome, acquire_at_once},
        judge::terms::{Demand, FileLocation, Launch, Setting, Slots},
        keeper::{Class, Keepers, Number, Store, WaitingProcess},
        sys::Inherited,
    };

    /// A claim on one slot, with the longest wait for it and the usual one, in hours.
    fn claim(name: &str, longest: Option<u64>, usual: u64) -> Claim {
        let hours = |hours: u64| Wait::For(Duration::from_secs(3600 * hours));
        let file = FileLocation::named(PathBuf::from(name), 0o600);
        Claim {
            repository: name.into(),
            location: Location::Memory(name.to_owned()),
            wait: Setting { bound: longest.map(hours), default: Some(hours(usual)) },
            ..Claim::outside_the_policy(file, Amount::plain(Slots::Number(1), 1), "--limit")
        }
    }

    /// The message to a launch that gets no slots of these tables.
    fn of_refusal<T>(store: &Store, demands: &[Demand], tell: impl FnOnce(&Refusal<'_>) -> T) -> T {
        let inherited = Inherited::default();
        let asker = AcquireContext {
            launch: Launch { command: "job", host: "ws1", uid: 1000, ancestors: &[], hold: Hold::Process },
            keepers: Keepers { inherited: &inherited, memory: store.clone() },
            generation: 0,
            on_expired: &|_, _, _| {},
            clock: acquire::Clock::default(),
        };
        let Ok(Outcome::Refused(refusal)) = acquire_at_once(demands, &asker) else { panic!("it has room") };
        tell(&refusal)
    }

    /// How long a launch would wait, and could wait, where `a` and `b` are full.
    fn told(demands: &[Demand]) -> [String; 3] {
        let store = Store::default();
        let _held = ["a", "b"].map(|name| store.table(name).take(&[1]).expect("it is free"));
        of_refusal(&store, demands, |refusal| {
            let longest = longest_wait(refusal).map_or_else(|| "none".to_owned(), at_most);
            [foretold(refusal), longest, with_option(refusal)]
        })
    }

    /// A launch waits until its first demand, the last alternative or the first claim of a list cannot be met
    /// any more. An option is named only if the policy allows a longer wait.
    #[test]
    fn a_launch_is_told_how_long_it_can_wait() {
        let one = |longest, usual| Demand::One(claim("a", longest, usual));
        let two = [Demand::One(claim("a", Some(1), 0)), Demand::One(claim("b", Some(2), 0))];
        let [a, b] = [claim("a", Some(1), 1), claim("b", Some(2), 2)];
        let either = Demand::AnyOf(vec![vec![a.clone()], vec![b.clone()]]);
        let list = Demand::AnyOf(vec![vec![a, b]]);
        assert_eq!(told(&[one(Some(2), 1)]), ["up to 1h", "up to 2h", "; with -w up to 2h"]);
        assert_eq!(told(&[one(Some(2), 2)]), ["up to 2h", "up to 2h", ""]);
        assert_eq!(told(&[one(None, 1)]), ["up to 1h", "until it is its turn", ""]);
        assert_eq!(told(&[one(Some(0), 1)]), ["none: a allows no wait", "none", ""]);
        assert_eq!(told(&two), ["none", "up to 1h", "; with -w up to 1h"]);
        assert_eq!(told(&[either]), ["up to 2h", "up to 2h", ""]);
        assert_eq!(told(&[list]), ["up to 1h", "up to 1h", ""]);
    }

    /// No launch can wait for what has a full queue, and each can wait for an alternative.
    #[test]
    fn a_full_queue_leaves_the_alternatives_to_wait_for() {
        let full = || Claim { queue: Queue { most: Some(0), per_user: None }, ..claim("a", None, 1) };
        let other = || claim("b", Some(2), 1);
        assert_eq!(told(&[Demand::One(full())]), ["none: 0 of 0 wait for a", "none", ""]);
        let either = Demand::AnyOf(vec![vec![full()], vec![other()]]);
        assert_eq!(told(&[either]), ["up to 1h", "up to 2h", "; with -w up to 2h"]);
        let list = Demand::AnyOf(vec![vec![full(), other()]]);
        assert_eq!(told(&[list]), ["none: 0 of 0 wait for a", "none", ""]);
        // Also for a launch that does not wait.
        for queue in [Queue { most: Some(0), per_user: None }, Queue { most: None, per_user: Some(0) }] {
            let claim = Claim { queue, ..claim("a", None, 0) };
            assert_eq!(told(&[Demand::One(claim)]), ["none", "none", ""]);
        }
    }

    fn hints() -> Hints {
        let [words, policy, named, options] = [(); 4].map(|()| String::new());
        Hints { words, policy, named, options, is_renamed: false }
    }

    /// So many slots of `a` with this limit.
    fn slots(wanted: u32, limit: u64) -> Vec<Demand> {
        let amount = Amount::plain(Slots::Number(wanted), limit);
        vec![Demand::One(Claim { amount, ..claim("a", None, 1) })]
    }

    /// The whole message to a launch that wants this.
    fn message(store: &Store, demands: Vec<Demand>) -> String {
        let wanted = LaunchSpec { demands, hold: Hold::Process, longest: None };
        let tell = |refusal: &Refusal<'_>| describe(OsStr::new("job"), &wanted, refusal, &hints());
        of_refusal(store, &wanted.demands, tell)
    }

    /// The holders that are known come first, the oldest of them before the others. If the end of several
    /// programs is needed, those of the reader come before those of other users.
    #[test]
    fn holders_are_named_in_the_order_of_their_age() {
        let store = Store::default();
        let table = store.table("a");
        let _held = table.take(&[1, 2, 3, 4]).expect("they are free");
        let now = SystemTime::now();
        for (slot, pid, uid, minutes) in
            [(2, 12, own_uid(), 1), (3, 13, own_uid() ^ 1, 3), (4, 14, own_uid(), 2)]
        {
            let since = now.checked_sub(Duration::from_secs(60 * minutes));
            let holder = Holder::unknown(slot..=slot);
            table.describe(&[slot], Holder { pid: Some(pid), uid: Some(uid), since, ..holder });
        }
        let order = |wanted| {
            let message = message(&store, slots(wanted, 4));
            let is_holder = |line: &&str| line.starts_with("      PID ") || line.starts_with("      slot ");
            let words = message.lines().filter(is_holder).filter_map(|line| line.split_whitespace().nth(1));
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(order(1), ["13", "14", "12", "1:"]);
        assert_eq!(order(2), ["14", "12", "13", "1:"]);
        let advice = message(&store, slots(1, 4));
        assert!(advice.ends_with("\nTo end the oldest of yours: rungate end a 14"), "{advice}");
        let to_free = message(&store, slots(2, 4));
        assert!(to_free.contains("\n      2 slots must be freed before it can start, yours\n"), "{to_free}");
    }

    /// A claim that two alternatives have in common is shown once.
    #[test]
    fn a_common_claim_of_alternatives_is_told_once() {
        let store = Store::default();
        let _held = ["a", "b"].map(|name| store.table(name).take(&[1]).expect("it is free"));
        let [a, b] = ["a", "b"].map(|name| claim(name, None, 1));
        let message = message(&store, vec![Demand::AnyOf(vec![vec![a.clone()], vec![a, b]])]);
        assert_eq!(message.matches("  1 of 1 used").count(), 2, "{message}");
    }

    /// The first in the queue is named, with the number of slots that it wants if it wants several.
    #[test]
    fn the_first_in_the_queue_is_named() {
        let first = |wants: u64| {
            let store = Store::default();
            let mut place = store.table("a").take_place(Number(1)).expect("a number of its own");
            let (host, command) = (Some("lab2".into()), Some("large".into()));
            place.belongs_to(&WaitingProcess { pid: Some(7), host, command, ..WaitingProcess::default() });
            place.stand(&[Class { generation: 0, capacity: 3 }]);
            place.wants(wants);
            let message = message(&store, slots(1, 3));
            message.lines().find_map(|line| line.strip_prefix("      first in line: ")).map(str::to_owned)
        };
        assert_eq!(first(1).as_deref(), Some("PID 7 ? large on lab2"));
        assert_eq!(first(2).as_deref(), Some("PID 7 ? large on lab2, 2 slots wanted"));
    }

    /// Who has waited in vain is advised to wait for twice as long, and for half an hour at least.
    #[test]
    fn a_longer_wait_is_twice_as_long() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let after = |waited| longer(&Refusal { unmet: Vec::new(), waited: Some(minutes(waited)) });
        assert_eq!(after(60), Wait::For(minutes(121)));
        assert_eq!(after(1), Wait::For(minutes(30)));
    }

    /// A reader who cannot see a holder is advised to ask the administrator. Root is not.
    #[test]
    fn root_is_not_told_to_ask_the_administrator() {
        let store = Store::default();
        let _held = store.table("a").take(&[1]).expect("it is free");
        let message = message(&store, slots(1, 1));
        assert!(message.contains("      slot 1: a process that cannot be seen from here\n"), "{message}");
        let asks = message.contains("      ask your administrator who that is: rungate list");
        assert_eq!(asks, own_uid() != 0, "{message}");
    }

    /// Programs of the reader are named if their end makes room: of all slots, and of those that the launch
    /// may take.
    #[test]
    fn the_end_of_own_programs_is_advised_if_it_makes_room() {
        let hints = hints();
        let advice = |limit, wanted, zone: RangeInclusive<u64>, own: &[u64], others: &[u64]| {
            let (store, mut claim) = (Store::default(), claim("a", None, 1));
            claim.amount = Amount { zones: vec![zone], ..Amount::plain(Slots::Number(wanted), limit) };
            let table = store.table("a");
            let _held = [own, others].map(|slots| table.take(slots).expect("they are free"));
            for (pid, uid, slots) in [(7, own_uid(), own), (8, own_uid() ^ 1, others)] {
                let holder = Holder::unknown(1..=1);
                table.describe(slots, Holder { pid: Some(pid), uid: Some(uid), ..holder });
            }
            of_refusal(&store, &[Demand::One(claim)], |refusal| {
                let full: Vec<(&Claim, &Full)> = refusal.claims().filter_map(full_claim).collect();
                let (text, is_enough) = what_helps(refusal);
                (text, is_enough, end_of_own(&hints, &full))
            })
        };
        let enough = |text: &str| (text.to_owned(), true, Some("rungate end a 7".to_owned()));
        assert_eq!(advice(2, 1, 1..=2, &[1], &[2]), enough("Close one of yours"));
        assert_eq!(advice(2, 2, 1..=2, &[1, 2], &[]), enough("Close programs of yours that hold 2 slots"));
        let vain = |text: &str| (text.to_owned(), false, None);
        assert_eq!(advice(2, 2, 1..=2, &[1], &[2]), vain("Try again once 2 slots are freed"));
        assert_eq!(advice(2, 1, 1..=2, &[], &[1, 2]), vain("Try again later"));
        assert_eq!(advice(3, 1, 1..=1, &[2], &[1]), vain("Try again later"), "it may take slot 1 only");
        assert_eq!(advice(2, 1, 1..=2, &[1], &[2, 3]), vain("Try again once 2 slots are freed"));
    }

    /// To close own programs is advised only if that makes room in every repository that is full.
    #[test]
    fn own_programs_are_named_only_if_their_end_is_enough_everywhere() {
        let helps = |uid: u32| {
            let store = Store::default();
            let _held = [("a", own_uid()), ("b", uid)].map(|(name, uid)| {
                let table = store.table(name);
                let held = table.take(&[1]).expect("it is free");
                table.describe(&[1], Holder { pid: Some(7), uid: Some(uid), ..Holder::unknown(1..=1) });
                held
            });
            let demands = ["a", "b"].map(|name| Demand::One(claim(name, None, 1)));
            of_refusal(&store, &demands, what_helps)
        };
        assert_eq!(helps(own_uid()), ("Close one of yours".to_owned(), true));
        assert_eq!(helps(own_uid() ^ 1), ("Try again later".to_owned(), false));
    }
}
