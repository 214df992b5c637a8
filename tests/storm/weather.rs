//! What comes over the processes and files of a storm: kills, stops, and files that are truncated,
//! overwritten and replaced.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Dice, Site, set_mode, state_of};

/// How the sky is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sky {
    /// Nothing comes.
    Clear,
    /// Whoever is first in the queue falls silent.
    Silent,
    /// Whatever may come.
    Wild,
}

/// Longer than somebody in the queue may keep others from what is free.
const SILENCE: Duration = Duration::from_secs(20);

/// What has come over them.
#[derive(Debug, Default)]
pub(super) struct Weather {
    pub(super) killed: usize,
    pub(super) stopped: usize,
    /// Stopped in the queue, for so long that others pass.
    pub(super) silenced: usize,
    pub(super) damaged: usize,
    pub(super) replaced: usize,
    silent: Vec<(Pid, Instant)>,
}

impl Weather {
    /// Whoever was stopped goes on, and so does a supervisor that stopped with its command.
    pub(super) fn clear_up(&mut self, site: &Site) {
        self.silent.clear();
        self.wake(site);
    }

    /// The same, but for those who are to be silent for longer.
    fn wake(&mut self, site: &Site) {
        self.silent.retain(|(_, since)| since.elapsed() < SILENCE);
        for pid in processes(site) {
            if self.silent.iter().all(|(silent, _)| *silent != pid) && state_of(pid.as_raw()) == Some('T') {
                let _ = kill(pid, Signal::SIGCONT);
            }
        }
    }

    /// One of the things that may come.
    pub(super) fn strike(&mut self, sky: Sky, site: &Site, dice: &mut Dice) {
        if sky == Sky::Clear {
            return;
        }
        if self.silent.iter().any(|(_, since)| since.elapsed() >= SILENCE) {
            self.wake(site);
        }
        if sky == Sky::Silent {
            return self.silence(site, dice);
        }
        match dice.below(11) {
            0..=3 => self.kill(site, dice),
            4..=6 => self.stop(site, dice),
            7 | 8 => self.damage(site, dice),
            9 => self.silence(site, dice),
            _ => self.replace(site, dice),
        }
    }

    fn kill(&mut self, site: &Site, dice: &mut Dice) {
        if let Some(pid) = victim(site, dice) {
            // It may have ended by itself.
            self.killed += usize::from(kill(pid, Signal::SIGKILL).is_ok());
        }
    }

    /// Not for long: whoever has the mutex of a file stops all others.
    fn stop(&mut self, site: &Site, dice: &mut Dice) {
        let Some(pid) = victim(site, dice) else { return };
        if stop(site, pid) {
            self.stopped += 1;
            sleep(Duration::from_millis(dice.between(1, 300).try_into().expect("a small number")));
            self.wake(site);
        }
    }

    /// Somebody in the queue, who is to be passed then; never one who has a mutex, for that stops all others.
    /// Those in another PID namespace cannot see that it is stopped.
    fn silence(&mut self, site: &Site, dice: &mut Dice) {
        let Some(name) = lock_file(site, dice) else { return };
        let line: Vec<Pid> = site.line(&name).iter().map(|waiter| Pid::from_raw(waiter.pid)).collect();
        let Some(pid) = line.first().copied().filter(|pid| is_exposed(*pid, site)) else { return };
        if !self.silent.is_empty() || !stop(site, pid) {
            return;
        }
        let is_stopped = || state_of(pid.as_raw()).is_none_or(|state| matches!(state, 'T' | 'Z'));
        while !is_stopped() {
            std::thread::yield_now();
        }
        let locks = fs::read_to_string("/proc/locks").expect("/proc/locks");
        let has_mutex = locks.lines().any(|lock| {
            let fields: Vec<&str> = lock.split_whitespace().collect();
            matches!(fields.as_slice(), [.., owner, _, "0", "7"] if *owner == pid.to_string())
        });
        if has_mutex {
            self.wake(site);
        } else {
            self.silenced += 1;
            self.silent.push((pid, Instant::now()));
        }
    }

    fn damage(&mut self, site: &Site, dice: &mut Dice) {
        let Some(name) = lock_file(site, dice) else { return };
        let Ok(file) = OpenOptions::new().write(true).open(site.repository(&name)) else { return };
        self.damaged += 1;
        if dice.percent(50) {
            file.set_len(dice.below(10_000) as u64).expect("truncate a lock file");
        } else {
            let bytes: Vec<u8> =
                (0..dice.below(9000)).map(|_| u8::try_from(dice.below(256)).expect("a byte")).collect();
            file.write_all_at(&bytes, dice.below(5000) as u64).expect("overwrite a lock file");
        }
    }

    /// The old one is moved to where the referee finds it.
    fn replace(&mut self, site: &Site, dice: &mut Dice) {
        let Some(name) = lock_file(site, dice) else { return };
        self.replaced += 1;
        let old = site.path(format!("old/{name}.{}", self.replaced));
        let is_shared = name.matches('.').count() == 1;
        // The next one of a user must be the user's own.
        if fs::rename(site.repository(&name), old).is_ok() && is_shared && dice.percent(50) {
            // Complete at once, for nobody may meet it without its mode; somebody may be faster.
            let next = site.path("work/next.lock");
            File::create(&next).expect("a lock file");
            set_mode(&next, 0o666);
            let _ =
                renameat2(AT_FDCWD, &next, AT_FDCWD, &site.repository(&name), RenameFlags::RENAME_NOREPLACE);
        }
    }
}

/// Stops a process, and says so before.
fn stop(site: &Site, pid: Pid) -> bool {
    let path = site.path("work/stopped");
    let mut told = OpenOptions::new().create(true).append(true).open(path).expect("work/stopped");
    writeln!(told, "{pid}").expect("write work/stopped");
    kill(pid, Signal::SIGSTOP).is_ok()
}

fn lock_file(site: &Site, dice: &mut Dice) -> Option<String> {
    let files = fs::read_dir(site.repository("")).expect("the repositories").flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "lock")).collect();
    names.sort();
    (!names.is_empty()).then(|| dice.one_of(&names).clone())
}

/// A process of the storm that is not to be spared.
fn victim(site: &Site, dice: &mut Dice) -> Option<Pid> {
    let victims: Vec<Pid> = processes(site).into_iter().filter(|pid| is_exposed(*pid, site)).collect();
    (!victims.is_empty()).then(|| *dice.one_of(&victims))
}

fn processes(site: &Site) -> Vec<Pid> {
    let mark = site.expand("STORM_SITE=$DIR");
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw));
    pids.filter(|pid| has(*pid, &mark)).collect()
}

fn is_exposed(pid: Pid, site: &Site) -> bool {
    has(pid, &site.expand("STORM_SITE=$DIR")) && !has(pid, "STORM_SPARED=yes")
}

/// Whether a process has this in its environment.
fn has(pid: Pid, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
}
