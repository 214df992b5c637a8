//! Whether the other hosts see this host, and until when: its key, and when a read last found it. The agent
//! saves this, and grants no slot before. An agent that starts while etcd cannot be reached continues from
//! there, as if its predecessor had lived. It uses the predecessor's ttl, because the others know no other.

use std::{
    sync::mpsc::Sender,
    thread,
    time::{Duration, Instant},
};

use super::{Command, Level, PATIENCE, Site, TICK, etcd::EtcdError, lease_keeper::THIRD, log};
use crate::{
    agent::{
        Topic,
        ledger::{
            holding::{Alive, Holding},
            state::{SavedSilence, State},
        },
        service::local::Local,
    },
    judge::terms::{OnLost, name_on_site, table_of_site},
    sys::{Signal, process},
    text::visible,
};

/// The presence; times are since boot.
pub(super) struct Presence {
    /// What the settings say.
    own: SavedSilence,
    /// What counts since the last confirmation: until this agent has written the host's key, the settings of
    /// the agent before it.
    silence: SavedSilence,
    /// When this agent began to write the host's key: since then the others may know its ttl. None as soon as
    /// it knows that they do.
    began: Option<Duration>,
    commands: Sender<Command>,
    /// The revision of the host's key as this agent wrote it; none while it is being written again.
    registration: Option<i64>,
    /// When the agent heard of that.
    registered: Option<Duration>,
    /// When the last read was sent that found it so.
    confirmed: Option<Duration>,
    /// The last saved time.
    saved: Option<Duration>,
    /// Until when another host is considered to have the same name, the message about it, and since when.
    twin: Option<(Duration, String, Instant)>,
    /// What is wrong, and since when.
    trouble: Option<(EtcdError, Instant)>,
    /// How often the lease was lost.
    leases_lost: u64,
    /// Whether the first half of the deadline is logged as passed.
    has_warned: bool,
}

impl Presence {
    /// Continues from the saved state. If there is none, this agent kept the site's tables alone.
    pub(super) fn new(ttl: Duration, margin: Duration, commands: Sender<Command>, state: &State) -> Self {
        let (own, silence, confirmed) = (SavedSilence { ttl, margin }, state.silence(), state.confirmation());
        Self {
            own,
            silence: silence.unwrap_or(own),
            began: process::since_boot(),
            commands,
            registration: None,
            registered: None,
            confirmed,
            saved: confirmed.filter(|_| silence == Some(own)),
            twin: None,
            trouble: None,
            leases_lost: 0,
            has_warned: false,
        }
    }

    /// The revision of the host's key as this agent wrote it; none while it is being written again.
    pub(super) fn registration(&self) -> Option<i64> {
        self.registration
    }

    /// The host's key was written with this revision; the agent has heard of it now.
    pub(super) fn on_registered(&mut self, revision: i64, now: Duration) {
        (self.registration, self.registered) = (Some(revision), Some(now));
    }

    /// Whether the host's key was written after the deadline, and is not confirmed since: before that, other
    /// hosts may have deleted its slots. A host that was never confirmed is no different: the slots of its
    /// programs may be those of an agent that kept the tables alone.
    pub(super) fn was_dead(&self) -> bool {
        let is_over = |registered| self.deadline().is_none_or(|deadline| registered > deadline);
        self.registered.is_some_and(is_over)
    }

    /// Requests that the host's key is written again, so that no earlier transaction can be committed.
    pub(super) fn register_anew(&mut self) {
        self.registration = None;
        let _ = self.commands.send(Command::Anew);
    }

    /// Requests an immediate check of the host's key.
    pub(super) fn look(&self) {
        let _ = self.commands.send(Command::Look);
    }

    pub(super) fn lost_lease(&mut self) {
        self.leases_lost = self.leases_lost.saturating_add(1);
    }

    pub(super) fn leases_lost(&self) -> u64 {
        self.leases_lost
    }

    /// The agent of another host has written this host's key, and may do so again within its ttl. Two hosts
    /// of one name write in turns. One of them is gone if it was not seen for a whole ttl.
    pub(super) fn on_twin(&mut self, text: String, ttl: Duration) {
        self.registration = None;
        let is_new = !self.is_disputed();
        let until = process::since_boot().unwrap_or_default().saturating_add(ttl);
        if is_new {
            log(Level::Error, &text);
        }
        match &mut self.twin {
            // By now it may be a third one.
            Some(twin) if !is_new => (twin.0, twin.1) = (until, text),
            twin => *twin = Some((until, text, Instant::now())),
        }
    }

    /// The message about another host of the same name, and since when there is one.
    pub(super) fn twin(&self) -> Option<(&str, Instant)> {
        let now = process::since_boot().unwrap_or_default();
        let twin = self.twin.as_ref().filter(|(until, ..)| now <= *until);
        twin.map(|(_, text, since)| (text.as_str(), *since))
    }

    pub(super) fn is_disputed(&self) -> bool {
        self.twin().is_some()
    }

    /// Whether no other host has this name: a live one would have written the key meanwhile. It may have read
    /// the key a third of the ttl after this host wrote it, and been cut off since: its programs are over one
    /// ttl later.
    pub(super) fn is_alone_by_its_name(&self) -> bool {
        let now = process::since_boot().unwrap_or_default();
        let ttl = self.own.ttl;
        let is_over = |registered| now.saturating_sub(registered) > ttl.saturating_add(ttl / THIRD);
        self.registered.is_some_and(is_over) && !self.is_disputed()
    }

    /// A read that was sent then found the host's key unchanged: nothing is wrong.
    pub(super) fn confirm(&mut self, sent: Duration, state: &State) {
        let now = process::since_boot().unwrap_or_default();
        let was_lost = self.deadline().is_some_and(|deadline| deadline < now);
        if std::mem::replace(&mut self.has_warned, false) {
            let text = if was_lost {
                "the site is back; this host had been considered dead"
            } else {
                "the site is back"
            };
            log(Level::Notice, text);
        }
        self.trouble = None;
        self.extend(sent, state);
    }

    /// A read that was sent then found a key of this host, which no other host had considered dead before.
    /// That is saved at most ten times per ttl: an older saved time is earlier, so no program runs for too
    /// long because of it.
    pub(super) fn extend(&mut self, sent: Duration, state: &State) {
        let confirmed = self.confirmed.max(Some(sent)).unwrap_or(sent);
        self.confirmed = Some(confirmed);
        if self.registered.is_some() && self.began.take().is_some() && self.silence != self.own {
            (self.silence, self.saved) = (self.own, None);
        }
        if self.saved.is_none_or(|saved| confirmed.saturating_sub(saved) > self.silence.ttl / 10)
            && (self.saved.is_some() || state.write_silence(&self.silence).is_ok())
            && state.write_confirmation(confirmed).is_ok()
        {
            self.saved = Some(confirmed);
        }
    }

    /// When the last read was sent that found the host's key.
    pub(super) fn confirmed(&self) -> Option<Duration> {
        self.confirmed
    }

    /// Until when no host can have considered this one dead.
    pub(super) fn deadline(&self) -> Option<Duration> {
        Some(self.limit()?.0)
    }

    /// The same, and the ttl by which it counts.
    fn limit(&self) -> Option<(Duration, Duration)> {
        let after = |since: Duration, of: SavedSilence| {
            (since.saturating_add(of.ttl).saturating_sub(of.margin), of.ttl)
        };
        let limit = after(self.confirmed?, self.silence);
        Some(self.began.map_or(limit, |began| limit.min(after(began, self.own))))
    }

    /// When programs that must stop get TERM and KILL. Without faults, the last read that found the host's
    /// key is at most a third of the ttl old.
    pub(super) fn ends_at(&self) -> Option<(Duration, Duration)> {
        let (deadline, ttl) = self.limit()?;
        Some((deadline.saturating_sub(ttl / 4), deadline.saturating_sub(ttl / 10)))
    }

    /// Whether slots may be acquired: nothing is started that would have to be ended at once.
    pub(super) fn is_certain(&self) -> bool {
        let now = process::since_boot().unwrap_or(Duration::MAX);
        self.registration.is_some()
            && self.saved.is_some()
            && !self.is_disputed()
            && self.ends_at().is_some_and(|(first, _)| now < first)
    }

    /// Remembers what is wrong, and since when.
    pub(super) fn note(&mut self, trouble: EtcdError) {
        let since = self.trouble.as_ref().map_or_else(Instant::now, |(_, since)| *since);
        self.trouble = Some((trouble, since));
    }

    /// Nothing is wrong: etcd works.
    pub(super) fn clear_trouble(&mut self) {
        self.trouble = None;
    }

    /// What is wrong, and since when.
    pub(super) fn trouble(&self) -> Option<&(EtcdError, Instant)> {
        self.trouble.as_ref()
    }

    /// The log message, once, if this host is about to lose the site or never reached it.
    pub(super) fn warning(&mut self) -> Option<String> {
        let (_, since) = self.trouble.as_ref().filter(|_| !self.has_warned)?;
        let now = process::since_boot().unwrap_or_default();
        let (is_late, then) = match self.confirmed {
            Some(confirmed) => {
                let ttl = self.silence.ttl;
                let is_late = now.saturating_sub(confirmed) > ttl / 2;
                (is_late, format!("after {} s this host is considered dead", ttl.as_secs()))
            }
            None => (since.elapsed() > PATIENCE, "until then it grants no slots".to_owned()),
        };
        self.has_warned = is_late;
        is_late.then_some(then)
    }
}

// A host that loses the site. Programs that must stop are gone before other hosts can get their slots. Other
// programs continue. Their slots are acquired again when the site is back, if necessary beyond the limit, so
// that all running programs are counted.

/// How often one pass searches for processes to kill.
const LOOKS: usize = 4;

/// How long it kills the children of all holders after each look, and how long it waits for killed ones to
/// end: a program that starts another and ends is gone before a look has found it.
const CHASE: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_millis(1);

/// Why a program is ended.
const LOST: &str = "the site is lost";

/// The signal was sent before, because writing to the log may take its time.
fn log_signal(holding: &Holding, signal: Signal, why: &str) {
    let saved = &holding.saved;
    let table =
        saved.tables.iter().find(|of| of.on_lost == Some(OnLost::Stop)).map_or("", |of| of.table.as_str());
    let text = format!(
        "{}: sent {} to PID {} ({}) of user {}: {why}, and on_lost is \"stop\"",
        visible(name_on_site(table).unwrap_or(table)),
        signal.as_str(),
        saved.pid,
        visible(&saved.command),
        saved.uid,
    );
    crate::agent::log::log(Level::Notice, Topic::End, &text);
}

fn kill_all(holdings: &[&Holding]) {
    for _ in 0..LOOKS {
        let alive = Alive::look();
        let found = holdings.iter().map(|holding| holding.kill(&alive)).max();
        if found.unwrap_or(0) == 0 {
            return;
        }
        let until = Instant::now() + CHASE;
        while holdings.iter().map(|holding| holding.kill_children()).sum::<usize>() > 0
            && Instant::now() < until
        {
            thread::sleep(PAUSE);
        }
    }
}

impl Site {
    /// Ends programs that must be gone before others can get their slots.
    pub(super) fn end_what_is_lost(&mut self, local: &Local) {
        if let Some(then) = self.presence.warning() {
            log(Level::Error, &format!("{}; {then}", self.why()));
        }
        let Some((term, kill)) = self.presence.ends_at() else { return };
        let now = process::since_boot().unwrap_or_default();
        if now < term {
            return;
        }
        let is_concerned = |holding: &Holding| holding.on_lost() == Some(OnLost::Stop);
        let lost = local.ledger().holdings().iter().filter(|(_, holding)| is_concerned(holding));
        let lost: Vec<u64> = lost.map(|(number, _)| *number).collect();
        if now >= kill {
            return self.kill_lost(local, &lost, LOST);
        }
        let is_new = |number: &u64| !self.ended.contains_key(number);
        let told: Vec<u64> = lost.into_iter().filter(is_new).collect();
        if told.is_empty() {
            return;
        }
        let alive = Alive::look();
        for number in told {
            self.ended.insert(number, None);
            if let Some(holding) = local.ledger().holdings().get(&number) {
                holding.terminate(&alive);
                log_signal(holding, Signal::SIGTERM, LOST);
            }
        }
    }

    /// Kills all processes that keep the slots of these holdings, and searches again for new ones. Remaining
    /// ones are killed at the next tick: a program may start others faster than they are found. After the
    /// deadline, a search that took long is followed by a rest as long.
    fn kill_lost(&mut self, local: &Local, numbers: &[u64], why: &str) {
        let begun = Instant::now();
        let is_due =
            |number: &&u64| self.ended.get(number).copied().flatten().is_none_or(|next| next <= begun);
        let due: Vec<u64> = numbers.iter().filter(is_due).copied().collect();
        if due.is_empty() {
            return;
        }
        let holding = |number: &u64| local.ledger().holdings().get(number);
        kill_all(&due.iter().filter_map(holding).collect::<Vec<_>>());
        let is_first = |number: &&u64| self.ended.get(number).copied().flatten().is_none();
        for holding in due.iter().filter(is_first).filter_map(holding) {
            log_signal(holding, Signal::SIGKILL, why);
        }
        let now = process::since_boot();
        let is_over = self.presence.deadline().zip(now).is_some_and(|(over, now)| now >= over);
        let rest = if is_over { begun.elapsed().max(TICK / 2) } else { TICK / 2 };
        let next = Instant::now() + rest;
        self.ended.extend(due.iter().map(|number| (*number, Some(next))));
    }

    /// Another host has a slot that this host lost: its holders get another one, even beyond the limit, or
    /// their programs are ended. A slot that only stays taken after the end of its program moves too. So does
    /// one of a host that was considered dead, if its holder outlives KILL as a process of another user does.
    pub(super) fn move_slot(&mut self, local: &mut Local, name: &str, slot: u64) {
        let here = table_of_site(name);
        let mut lingering = local.ledger().lingering().values();
        let holdings = local.ledger().holdings().iter();
        let holders: Vec<(u64, &Holding)> =
            holdings.filter(|(_, of)| of.has(&here, slot)).map(|(number, of)| (*number, of)).collect();
        if holders.is_empty() && !lingering.any(|of| of.has(&here, slot)) {
            return;
        }
        // After a restore the other holder may be gone already, and no launch was admitted since.
        let stops = |(_, of): &&(u64, &Holding)| of.stops_without(&here);
        let stopped: Vec<u64> = holders.iter().filter(stops).map(|(number, _)| *number).collect();
        if !stopped.is_empty() && self.is_held_back().is_none() {
            let was_killed = |number: &u64| self.ended.get(number).copied().flatten().is_some();
            // Until it is counted, this host would stay closed.
            let is_counted = self.presence.was_dead() && stopped.iter().all(was_killed);
            self.kill_lost(local, &stopped, "another host has its slot");
            if !is_counted {
                return;
            }
        }
        let table = local.ledger().store().table(&here);
        let Some(another) = table.occupancy().free_among(1..=u64::MAX).next() else { return };
        if !local.move_slot(&table, slot, another) {
            return;
        }
        self.show(name, local.ledger().store());
        self.look_at_all_keys(local);
        self.reconcile(local);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    impl Presence {
        /// Without the thread that keeps the key of the host. Returns what that hears from now on.
        pub(in crate::agent::site) fn recorded(&mut self) -> Receiver<Command> {
            let (commands, commanded) = channel();
            self.commands = commands;
            commanded
        }
    }

    /// A host that never reached the site says so when it has failed for as long as a launch waits.
    #[test]
    fn a_host_that_never_reached_the_site_says_so() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = State::open(directory.path()).expect("it is new");
        let now = Instant::now();
        for (since, is_told) in
            [(now.checked_add(PATIENCE * 1000), false), (now.checked_sub(PATIENCE * 3 / 2), true)]
        {
            let mut presence = Presence::new(Duration::from_secs(60), Duration::ZERO, channel().0, &state);
            presence.trouble = Some((EtcdError::replaced(), since.expect("a moment")));
            let said = "until then it grants no slots".to_owned();
            assert_eq!(presence.warning(), is_told.then_some(said));
        }
    }
}
