//! The thread that keeps the host's key: it writes `h/HOST` under a lease and `g/HOST` beside it without one,
//! renews the lease, and reads the key, so that the agent knows until when nobody can have taken this host
//! for gone. Whoever asks for it has the keys written anew, by which every older transaction of this agent
//! fails, however late it is committed.

use std::{
    collections::BTreeMap,
    sync::mpsc::{Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use super::{
    etcd::{Client, Operation, Range, Transaction, Trouble},
    key::{Key, Keys},
    record::{HostRecord, bytes, read},
    report::{Report, Reporter},
};
use crate::sys::process;

/// What it may be told.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Command {
    /// Write the keys anew, at once.
    Anew,
    /// See at once whether they are as they were written.
    Look,
    /// Write them anew, with this about the repositories of the site.
    Publish(BTreeMap<String, String>),
}

/// How long it rests after something went wrong.
const REST: Duration = Duration::from_millis(200);

/// What it goes by.
pub(super) struct Registrar {
    pub(super) client: Client,
    pub(super) keys: Keys,
    pub(super) host: String,
    pub(super) record: HostRecord,
    pub(super) ttl: Duration,
    pub(super) reporter: Reporter,
    pub(super) commands: Receiver<Command>,
}

/// The keys as they were written.
#[derive(Clone, Copy, Debug)]
struct Written {
    lease: i64,
    revision: i64,
}

/// What became of a key that was written.
enum Found {
    AsWritten,
    Gone,
    /// Written by somebody else, of this boot.
    Another(String),
}

impl Registrar {
    /// Goes on for as long as anybody listens.
    pub(super) fn start(self) {
        thread::spawn(move || self.run());
    }

    fn run(mut self) {
        let mut written: Option<Written> = None;
        let mut lease = None;
        loop {
            let rest = match self.go_on(&mut written, &mut lease) {
                Ok(()) => self.ttl / 3,
                Err(trouble) => {
                    if !self.reporter.tell(Report::Unreached(trouble)) {
                        return;
                    }
                    REST.min(self.ttl / 3)
                }
            };
            let mut command = match self.commands.recv_timeout(rest) {
                Ok(command) => Some(command),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // Several may have asked meanwhile: once is enough.
            while let Some(heard) = command {
                match heard {
                    Command::Anew => written = None,
                    Command::Look => {}
                    Command::Publish(repositories) => {
                        self.record.repositories = repositories;
                        written = None;
                    }
                }
                command = self.commands.try_recv().ok();
            }
        }
    }

    fn go_on(&self, written: &mut Option<Written>, lease: &mut Option<i64>) -> Result<(), Trouble> {
        let Some(known) = *written else {
            *written = Some(self.write(lease)?);
            return Ok(());
        };
        if let Err(trouble) = self.client.keep_alive(known.lease) {
            if !trouble.is_lease_gone() {
                return Err(trouble);
            }
            self.reporter.tell(Report::LeaseLost);
            *lease = None;
            *written = None;
            *written = Some(self.write(lease)?);
            return Ok(());
        }
        let sent = process::since_boot().unwrap_or_default();
        let (found, revision, generation) = self.find(known.revision)?;
        match found {
            Found::AsWritten => {
                self.reporter.tell(Report::Confirmed { sent, revision, generation });
            }
            Found::Another(boot) if boot != self.record.boot => {
                *written = None;
                self.reporter.tell(Report::Twin(boot));
            }
            Found::Gone | Found::Another(_) => {
                if matches!(found, Found::Gone) {
                    self.reporter.tell(Report::LeaseLost);
                }
                *written = None;
                *written = Some(self.write(lease)?);
            }
        }
        Ok(())
    }

    /// Writes both keys, in one transaction. Where it is not known whether that was done it is done again: a
    /// late one of both is found, because the revision is then another.
    fn write(&self, lease: &mut Option<i64>) -> Result<Written, Trouble> {
        let seconds = i64::try_from(self.ttl.as_secs()).unwrap_or(i64::MAX).max(1);
        let current = match *lease {
            Some(lease) => lease,
            None => self.client.grant_lease(seconds)?,
        };
        *lease = Some(current);
        // What outlives the host tells only that it was there.
        let lasting = HostRecord { repositories: BTreeMap::new(), ..self.record.clone() };
        let transaction = Transaction {
            compares: Vec::new(),
            operations: vec![
                Operation::PutUnderLease(
                    self.keys.name(&Key::Host(self.host.clone())),
                    bytes(&self.record),
                    current,
                ),
                Operation::Put(self.keys.name(&Key::Written(self.host.clone())), bytes(&lasting)),
            ],
        };
        let sent = process::since_boot().unwrap_or_default();
        let done = self.client.carry_out(&transaction).inspect_err(|trouble| {
            if trouble.is_lease_gone() {
                *lease = None;
            }
        })?;
        let (revision, generation) = (done.revision, done.generation);
        self.reporter.tell(Report::Registered { revision, generation, sent });
        Ok(Written { lease: current, revision: done.revision })
    }

    fn find(&self, revision: i64) -> Result<(Found, i64, u64), Trouble> {
        let snapshot = self.client.read(&Range::key(self.keys.name(&Key::Host(self.host.clone()))))?;
        let found = match snapshot.pairs.first() {
            None => Found::Gone,
            Some(pair) if pair.revision == revision => Found::AsWritten,
            Some(pair) => {
                Found::Another(read::<HostRecord>(&pair.value).map_or_else(String::new, |record| record.boot))
            }
        };
        Ok((found, snapshot.revision, snapshot.generation))
    }
}
