//! Whether the other hosts see this host, and until when: its key, and when a read last found it. The agent
//! writes this down, and gives no slot before it has. An agent that starts while etcd cannot be reached
//! continues from there, as if its predecessor had lived.

use std::{
    sync::mpsc::Sender,
    time::{Duration, Instant},
};

use super::{PATIENCE, etcd::EtcdError, lease_keeper::Command, log};
use crate::{agent::ledger::state::State, sys::process};

/// It; times are since boot.
pub(super) struct Presence {
    ttl: Duration,
    margin: Duration,
    commands: Sender<Command>,
    /// The revision of the host's key as this agent wrote it; none while it is being written anew.
    registration: Option<i64>,
    /// When that was.
    registered: Duration,
    /// When the last read was sent that found it so.
    confirmed: Option<Duration>,
    /// The same as it was written down last.
    saved: Option<Duration>,
    /// Until when another host counts as having the same name, what is said of that, and since when.
    twin: Option<(Duration, String, Instant)>,
    /// What is wrong, and since when.
    trouble: Option<(EtcdError, Instant)>,
    /// How often the lease was lost.
    leases_lost: u64,
    /// Whether the first half of the deadline was said to be over.
    has_warned: bool,
}

impl Presence {
    /// Counts on from what was written down. Where nothing was, this agent kept the site's tables alone.
    pub(super) fn new(ttl: Duration, margin: Duration, commands: Sender<Command>, state: &State) -> Self {
        let saved = state.confirmation();
        Self {
            ttl,
            margin,
            commands,
            registration: None,
            registered: Duration::ZERO,
            confirmed: saved,
            saved,
            twin: None,
            trouble: None,
            leases_lost: 0,
            has_warned: false,
        }
    }

    /// The revision of the host's key as this agent wrote it; none while it is being written anew.
    pub(super) fn registration(&self) -> Option<i64> {
        self.registration
    }

    /// The host's key was written, and this is its revision; asked for then.
    pub(super) fn is_registered(&mut self, revision: i64, sent: Duration) {
        (self.registration, self.registered) = (Some(revision), sent);
    }

    /// Has the host's key written anew, so that whatever was sent before can no longer be done.
    pub(super) fn register_anew(&mut self) {
        self.registration = None;
        let _ = self.commands.send(Command::Anew);
    }

    /// Has it looked at once whether the host's key is as it was written.
    pub(super) fn look(&self) {
        let _ = self.commands.send(Command::Look);
    }

    pub(super) fn lost_lease(&mut self) {
        self.leases_lost = self.leases_lost.saturating_add(1);
    }

    pub(super) fn leases_lost(&self) -> u64 {
        self.leases_lost
    }

    /// The agent of another host has written this one's key, and may do so again within its ttl: twins take
    /// turns, and whoever of them is gone has not been seen for a whole ttl.
    pub(super) fn has_twin(&mut self, text: String, ttl: Duration) {
        self.registration = None;
        let is_new = !self.is_disputed();
        let until = process::since_boot().unwrap_or_default().saturating_add(ttl);
        if is_new {
            log(&text);
        }
        match &mut self.twin {
            Some(twin) if !is_new => twin.0 = until,
            twin => *twin = Some((until, text, Instant::now())),
        }
    }

    /// What is said of another host of the same name, and since when there is one.
    pub(super) fn twin(&self) -> Option<(&str, Instant)> {
        let now = process::since_boot().unwrap_or_default();
        let twin = self.twin.as_ref().filter(|(until, ..)| now <= *until);
        twin.map(|(_, text, since)| (text.as_str(), *since))
    }

    pub(super) fn is_disputed(&self) -> bool {
        self.twin().is_some()
    }

    /// Whether no other host has this one's name: one that lives would have written the key meanwhile.
    pub(super) fn is_alone_by_its_name(&self) -> bool {
        let now = process::since_boot().unwrap_or_default();
        now.saturating_sub(self.registered) > self.ttl && !self.is_disputed()
    }

    /// The host's key was found as it was written, by a read that was sent then. That is written down ten
    /// times in a ttl at most: what was written before is earlier, and no program runs for too long by it.
    pub(super) fn confirm(&mut self, sent: Duration, state: &State) {
        let now = process::since_boot().unwrap_or_default();
        let was_lost = self.deadline().is_some_and(|deadline| deadline < now);
        if std::mem::replace(&mut self.has_warned, false) {
            log(if was_lost {
                "the site is back; this host had been taken for gone"
            } else {
                "the site is back"
            });
        }
        let confirmed = self.confirmed.max(Some(sent)).unwrap_or(sent);
        self.confirmed = Some(confirmed);
        self.trouble = None;
        if self.saved.is_none_or(|saved| confirmed.saturating_sub(saved) > self.ttl / 10)
            && state.write_confirmation(confirmed).is_ok()
        {
            self.saved = Some(confirmed);
        }
    }

    /// When the last read was sent that found the host's key.
    pub(super) fn confirmed(&self) -> Option<Duration> {
        self.confirmed
    }

    /// Until when nobody can have taken this host for gone.
    pub(super) fn deadline(&self) -> Option<Duration> {
        Some(self.confirmed?.saturating_add(self.ttl).saturating_sub(self.margin))
    }

    /// When programs that are to be stopped get TERM and KILL. The last read that found the host's key is at
    /// most a third of the ttl old as long as all is well.
    pub(super) fn ends_at(&self) -> Option<(Duration, Duration)> {
        let deadline = self.deadline()?;
        Some((deadline.saturating_sub(self.ttl / 4), deadline.saturating_sub(self.ttl / 10)))
    }

    /// Whether slots may be taken: nothing is begun that would have to be ended at once.
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

    /// Nothing is wrong: etcd has done what it should.
    pub(super) fn is_well(&mut self) {
        self.trouble = None;
    }

    /// What is wrong, and since when.
    pub(super) fn trouble(&self) -> Option<&(EtcdError, Instant)> {
        self.trouble.as_ref()
    }

    /// What is to be said in the log, once, where this host is about to lose the site or never reached it.
    pub(super) fn warning(&mut self) -> Option<String> {
        let (_, since) = self.trouble.as_ref().filter(|_| !self.has_warned)?;
        let now = process::since_boot().unwrap_or_default();
        let (is_late, then) = match self.confirmed {
            Some(confirmed) => {
                let is_late = now.saturating_sub(confirmed) > self.ttl / 2;
                (is_late, format!("after {} s this host is taken for gone", self.ttl.as_secs()))
            }
            None => (since.elapsed() > PATIENCE, "until then it gives no slots".to_owned()),
        };
        self.has_warned = is_late;
        is_late.then_some(then)
    }
}
