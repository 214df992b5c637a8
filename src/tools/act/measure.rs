//! `rungate measure`: run the commands that count use outside rungate, and put their samples in place. As
//! root the commands run as `nobody`. One that fails leaves the last sample, which grows stale.

use std::{
    fs::{self, DirBuilder, Permissions},
    io::Read,
    os::unix::{
        fs::{DirBuilderExt, PermissionsExt},
        process::CommandExt,
    },
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime},
};

use serde::Serialize;

use super::past_rungate;
use crate::{
    cli::MeasureArguments,
    judge::{sample_of, terms::outside::Of},
    keeper::outside::{Head, Line, parse_lines},
    launch::{
        journal,
        log::event::{Event, Kind, micros},
        situation::Situation,
    },
    policy::{LayerKind, Log, Measuring, Policy, Repository},
    sys::{
        Failure, accounts,
        process::{self, PidFd},
        replaced_file,
    },
    text::{
        error::{Error, ExitStatus},
        escape::visible,
        stream::{self, print},
    },
};

/// Everybody reads it.
const MODE: u32 = 0o644;
const LONGEST_OUTPUT: u64 = 1 << 20;
const LONGEST_RUN: Duration = Duration::from_secs(60);
/// How often the policy is read again.
const TURN: Duration = Duration::from_secs(1);
/// How often use that does not change is logged nevertheless: logs are rotated.
const LOGGED_AGAIN: Duration = Duration::from_secs(60 * 60);

/// Measures once, or again and again.
pub(crate) fn run(arguments: &MeasureArguments, situation: &Situation) -> Result<u8, Error> {
    if let Some(repository) = &arguments.processes {
        let lines = past_rungate::lines(repository, situation)?;
        let text = lines.iter().map(json).collect::<Result<String, String>>();
        return print(&text.map_err(|why| Error::new(ExitStatus::Repository, why))?);
    }
    // Delegated files name nothing to measure, and one may be on a server that does not answer.
    let load = || {
        let policy = Policy::load_undelegated(&situation.sources());
        policy.map_err(|faults| situation.faulty(&faults))
    };
    if !arguments.every {
        let policy = Arc::new(load()?);
        let all = 0..measured(&policy).count();
        let threads: Vec<Thread> = all.map(|index| begin(index, &policy, situation, None)).collect();
        let ended = threads.into_iter().map(|thread| thread.join().is_ok_and(|(is_well, _)| is_well));
        let is_well = ended.filter(|is_well| !is_well).count() == 0;
        return Ok(if is_well { ExitStatus::Success } else { ExitStatus::Repository } as u8);
    }
    let mut last: Vec<(String, Instant, Thread)> = Vec::new();
    let mut complaint = None;
    loop {
        let policy = load().map_err(|error| error.to_string());
        // It is read again soon, and the same faults are reported once.
        if let Err(faults) = &policy
            && complaint.as_ref() != Some(faults)
        {
            stream::complain(faults);
        }
        complaint = policy.as_ref().err().cloned();
        if let Ok(policy) = policy.map(Arc::new) {
            for (index, (repository, of)) in measured(&policy).enumerate() {
                let known = last.iter().position(|(name, ..)| name == repository.name());
                let is_due = |(_, began, thread): &(_, Instant, Thread)| {
                    began.elapsed() >= of.every && thread.is_finished()
                };
                if known.is_some_and(|known| !is_due(&last[known])) {
                    continue;
                }
                let logged = known.and_then(|known| last.swap_remove(known).2.join().ok()?.1);
                let began = Instant::now();
                let thread = begin(index, &policy, situation, logged);
                last.push((repository.name().to_owned(), began, thread));
            }
        }
        thread::sleep(TURN);
    }
}

/// The repositories that this user measures: root also those of the system.
fn measured(policy: &Policy) -> impl Iterator<Item = (&Repository, &Measuring)> {
    // Root starts nothing that the admins of departments name.
    let is_own = |repository: &&Repository| {
        let layer = &policy.layers()[repository.layer];
        !layer.is_of_system() || accounts::is_root() && layer.delegation().is_none()
    };
    let repositories = policy.repositories().iter().filter(is_own);
    repositories.filter_map(|repository| Some((repository, repository.outside.as_ref()?)))
}

/// The use that was logged last, and when.
type Logged = (Vec<Line>, Instant);

/// Returns whether a repository was measured, and its use that was logged last.
type Thread = JoinHandle<(bool, Option<Logged>)>;

/// Begins to measure the repository at this index of those that are measured. A command that hangs delays no
/// other repository.
fn begin(index: usize, policy: &Arc<Policy>, situation: &Situation, mut logged: Option<Logged>) -> Thread {
    let (policy, situation) = (Arc::clone(policy), situation.clone());
    thread::spawn(move || {
        let repository = measured(&policy).nth(index);
        let measure = |(repository, of)| measure(repository, of, &policy, &situation, &mut logged);
        (repository.is_some_and(measure), logged)
    })
}

/// Logs the use for simulations, if it is another than before.
fn log(repository: &Repository, lines: &[Line], took: Duration, policy: &Policy, situation: &Situation) {
    let is_replayed = |(_, log): &(LayerKind, &Log)| log.replay;
    let mut event = Event::now(Kind::Measured, "measure", situation.credentials.uid, &situation.host);
    event.decided = Some(micros(SystemTime::now()));
    event.seconds = Some(took.as_secs_f64());
    event.repositories = vec![repository.shown_name().to_owned()];
    event.outside = Some(lines.to_vec());
    for (_, log) in policy.logs().filter(is_replayed) {
        if let Err(error) = journal::sink(log, &situation.host).write(&event) {
            let name = visible(repository.name());
            stream::complain(&format!("rungate: {name}: not logged: {}", visible(error.to_string())));
        }
    }
}

/// Measures one repository. Says what went wrong.
fn measure(
    repository: &Repository,
    of: &Measuring,
    policy: &Policy,
    situation: &Situation,
    logged: &mut Option<Logged>,
) -> bool {
    let start = Instant::now();
    let layer = &policy.layers()[repository.layer];
    let mut situation = situation.clone();
    let (path, _) = sample_of(repository, layer, &situation.runtime, situation.credentials.uid);
    let mut put = || -> Result<Vec<Line>, String> {
        let (Some(boot), Some(began)) = (process::boot_id(), process::since_boot_of_host()) else {
            return Err("the time since boot is unknown".to_owned());
        };
        let printed = output_of(&of.command, LONGEST_RUN.min(of.stale_after))?;
        let printed = String::from_utf8(printed).map_err(|_| "it printed what is not UTF-8".to_owned())?;
        // The host may have been renamed since the last sample.
        situation.host = accounts::name().map_err(|errno| format!("gethostname: {}", errno.desc()))?;
        let numbered = printed.lines().enumerate().map(|(index, line)| (index + 1, line));
        let lines =
            parse_lines(numbered)?.into_iter().map(|line| completed(line, repository, of, &situation));
        let lines = lines.collect::<Result<Vec<Line>, String>>()?;
        let began = u64::try_from(began.as_millis()).unwrap_or(u64::MAX);
        let total = lines.iter().map(|line| u64::from(line.amount)).sum();
        let mut content = json(&Head { boot: boot.to_owned(), began, total })?;
        for line in &lines {
            content.push_str(&json(line)?);
        }
        let directory = path.parent().unwrap_or(Path::new("/"));
        make(directory, &situation.runtime).map_err(|error| format!("{}: {error}", visible(directory)))?;
        replaced_file::replace(&path, content.as_bytes(), MODE)
            .map_err(|error| format!("{}: {error}", visible(&path)))?;
        Ok(lines)
    };
    let done = put();
    if let Ok(lines) = &done {
        let is_known = |(before, at): &Logged| before == lines && at.elapsed() < LOGGED_AGAIN;
        if !logged.as_ref().is_some_and(is_known) {
            log(repository, lines, start.elapsed(), policy, &situation);
            *logged = Some((lines.clone(), start));
        }
    }
    if let Err(why) = &done {
        let (name, program) =
            (visible(repository.name()), visible(of.command.first().map_or("", |word| word)));
        stream::complain(&format!("rungate: {name}: not measured: {program}: {}", visible(why)));
    }
    done.is_ok()
}

/// A line with what this host knows, so that no launch has to look it up. Without the user, the use would
/// count for no user where each user has a limit: then a look-up that fails is a failure.
fn completed(
    line: Line,
    repository: &Repository,
    of: &Measuring,
    situation: &Situation,
) -> Result<Line, String> {
    let is_here = of.of == Of::Host && line.host.is_empty();
    let here = || situation.host.to_string_lossy().into_owned();
    let known = |name: &str| match accounts::account_of_name(name) {
        Ok(account) => Ok(account.map(|account| account.uid)),
        Err(failure) if repository.is_by_user() => Err(failure.to_string()),
        Err(_) => Ok(None),
    };
    let uid = match line.uid {
        Some(uid) => Some(uid),
        None => known(&line.user)?.map_or_else(|| known(&line.user.to_lowercase()), |uid| Ok(Some(uid)))?,
    };
    Ok(Line { uid, host: if is_here { here() } else { line.host }, ..line })
}

fn json(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map(|text| text + "\n").map_err(|error| error.to_string())
}

/// Makes the directory of the samples, and that of the caller where it is below it. The umask stays as it is,
/// because commands are started meanwhile.
fn make(directory: &Path, runtime: &Path) -> Result<(), Failure> {
    let of_caller = directory.starts_with(runtime).then_some((runtime, 0o700));
    for (path, mode) in of_caller.into_iter().chain([(directory, 0o755)]) {
        match DirBuilder::new().mode(mode).create(path) {
            Ok(()) => {
                let changed = fs::set_permissions(path, Permissions::from_mode(mode));
                changed.map_err(Failure::of_io("chmod"))?;
            }
            Err(error) if !path.is_dir() => return Err(Failure::of_io("mkdir")(error)),
            Err(_) => {}
        }
    }
    Ok(())
}

/// What a command prints, in a process group of its own, of which nothing remains.
fn output_of(words: &[String], longest: Duration) -> Result<Vec<u8>, String> {
    let (program, arguments) = words.split_first().ok_or("there is no command")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
    if accounts::is_root() {
        let nobody = accounts::account_of_name("nobody").ok().flatten().ok_or("there is no user nobody")?;
        command.uid(nobody.uid).gid(nobody.gid);
    }
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let until = Instant::now() + longest;
    let output = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut content = Vec::new();
        let read = output.map(|output| output.take(LONGEST_OUTPUT + 1).read_to_end(&mut content));
        // Nobody listens once the time is over.
        let _ = sender.send(read.map(|_| content));
    });
    let pid = i32::try_from(child.id()).unwrap_or_default();
    let mut content = None;
    let ended = PidFd::open(pid).map_err(|error| error.to_string()).map(|process| {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if process::wait_for_any([&process], left.min(Duration::from_millis(50))) == Ok(true) {
                return true;
            }
            content = content.take().or_else(|| receiver.try_recv().ok().flatten());
            let is_too_long = |content: &Vec<u8>| content.len() as u64 > LONGEST_OUTPUT;
            if left.is_zero() || content.as_ref().is_some_and(is_too_long) {
                return false;
            }
        }
    });
    // It is not waited for yet, so that its number is nobody else's.
    process::kill_group_of_child(pid);
    let status = child.wait().map_err(|error| error.to_string())?;
    let content = content.or_else(|| receiver.recv_timeout(Duration::from_secs(5)).ok().flatten());
    let content = content.ok_or("it left its output open")?;
    if content.len() as u64 > LONGEST_OUTPUT {
        return Err("it printed more than 1 MiB".to_owned());
    }
    if !ended? {
        Err(format!("it took longer than {} seconds", longest.as_secs()))
    } else if status.success() {
        Ok(content)
    } else {
        Err(format!("it ended with {status}"))
    }
}
