//! What comes over the processes and files of a storm: kills, stops, and files that are truncated, overwritten and replaced.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Dice, Site, state_of};

/// What has come over them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weather {
    pub(super) killed: usize,
    pub(super) stopped: usize,
    pub(super) damaged: usize,
    pub(super) replaced: usize,
}

impl Weather {
    /// Whoever was stopped goes on, and so does a supervisor that stopped with its command.
    pub(super) fn clear_up(site: &Site) {
        for pid in processes(site) {
            if state_of(pid.as_raw()) == Some('T') {
                let _ = kill(pid, Signal::SIGCONT);
            }
        }
    }

    /// One of the things that may come.
    pub(super) fn strike(&mut self, site: &Site, dice: &mut Dice) {
        match dice.below(10) {
            0..=3 => self.kill(site, dice),
            4..=6 => self.stop(site, dice),
            7 | 8 => self.damage(site, dice),
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
        let path = site.path("work/stopped");
        let mut told = OpenOptions::new().create(true).append(true).open(path).expect("work/stopped");
        writeln!(told, "{pid}").expect("write work/stopped");
        if kill(pid, Signal::SIGSTOP).is_ok() {
            self.stopped += 1;
            sleep(Duration::from_millis(dice.between(1, 300).try_into().expect("a small number")));
            Self::clear_up(site);
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
            // Somebody may be faster.
            if let Ok(file) = File::create_new(site.repository(&name)) {
                drop(file);
                crate::support::set_mode(&site.repository(&name), 0o666);
            }
        }
    }
}

fn lock_file(site: &Site, dice: &mut Dice) -> Option<String> {
    let files = fs::read_dir(site.repository("")).expect("the repositories").flatten();
    let mut names: Vec<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    (!names.is_empty()).then(|| dice.one_of(&names).clone())
}

/// A process of the storm that is not to be spared.
fn victim(site: &Site, dice: &mut Dice) -> Option<Pid> {
    let victims: Vec<Pid> =
        processes(site).into_iter().filter(|pid| !has(*pid, "STORM_SPARED=yes")).collect();
    (!victims.is_empty()).then(|| *dice.one_of(&victims))
}

fn processes(site: &Site) -> Vec<Pid> {
    let mark = site.expand("STORM_SITE=$DIR");
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw));
    pids.filter(|pid| has(*pid, &mark)).collect()
}

/// Whether a process has this in its environment.
fn has(pid: Pid, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
}
