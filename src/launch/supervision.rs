//! A parent that stays, waits for the command, and gives the slots back itself: also those that a daemon
//! which the command left behind would keep. It passes signals on, stops and continues with the command, ends
//! as the command ended, and is otherwise not there.

use std::{ffi::CString, path::Path};

use crate::{
    acquire::grant::Grant,
    judge::terms::keyword::Hold,
    sys::{
        child::{self, Change, Ending},
        executable::{self, Entry},
        failure::{Errno, Failure},
        signals::{self, Event, SupervisedSignals},
    },
};

/// Why a supervised command did not start, or not under its parent's eyes.
#[derive(Debug)]
pub enum NotSpawned {
    /// The kernel did not execute the file.
    Exec(Errno),
    /// The parent could not get ready.
    Call(Failure),
    /// It was started and runs on with its slots, but its parent cannot wait for it.
    Lost(Failure),
}

/// Starts the command as a child and stays until it has ended; with [`Hold::Tree`], until all of its
/// descendants have.
pub fn supervise(
    program: &Path,
    words: &[CString],
    environment: &[Entry],
    hold: Hold,
    grant: &mut Grant<'_>,
) -> Result<Ending, NotSpawned> {
    let failed = |call: &'static str| move |errno: Errno| NotSpawned::Call(Failure { call, errno });
    let mut signals = SupervisedSignals::block().map_err(failed("sigprocmask"))?;
    if hold == Hold::Tree {
        child::adopt_orphans().map_err(failed("prctl(PR_SET_CHILD_SUBREAPER)"))?;
    }
    let spawned = child::spawn(|| match signals.restore() {
        Ok(()) => executable::replace_process(program, words, environment),
        Err(errno) => errno,
    });
    let command = match spawned {
        Ok(Ok(command)) => command,
        Ok(Err(errno)) => {
            let _ = signals.restore();
            return Err(NotSpawned::Exec(errno));
        }
        Err(failure) => {
            let _ = signals.restore();
            return Err(NotSpawned::Call(failure));
        }
    };
    // A record is for people: the slots are held whether it could be written or not.
    let _ = grant.record_command(command);
    let waited = wait(command, hold, &mut signals, grant);
    let _ = signals.end();
    waited.map_err(Failure::of("waitid")).map_err(NotSpawned::Lost)
}

fn wait(
    command: i32,
    hold: Hold,
    signals: &mut SupervisedSignals,
    grant: &mut Grant<'_>,
) -> Result<Ending, Errno> {
    let mut ending = None;
    loop {
        match child::next_change() {
            Ok(Some(Change::Ended(pid, how))) if pid == command => {
                ending = Some(how);
                if hold == Hold::Tree {
                    signals.let_through()?;
                } else {
                    // First the slots, then the child: whoever waits for its end finds room.
                    let _ = grant.finish();
                    child::reap(command)?;
                    return Ok(how);
                }
                child::reap(command)?;
            }
            Ok(Some(Change::Ended(pid, _))) => child::reap(pid)?,
            Ok(Some(Change::Stopped(pid, signal))) if pid == command => signals::stop_too(signal),
            Ok(Some(Change::Stopped(..))) => {}
            Ok(None) => {
                if let Event::Forward(signal) = signals.next()?
                    && ending.is_none()
                {
                    signals::forward(signal, command);
                }
            }
            Err(Errno::ECHILD) => {
                let _ = grant.finish();
                return ending.ok_or(Errno::ECHILD);
            }
            Err(errno) => return Err(errno),
        }
    }
}
