//! `rungate measure --processes`: which programs run that need a slot of a repository by its rules, and have
//! none. The measuring command `processes` is this.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    os::unix::ffi::OsStrExt,
    path::Path,
    time::Duration,
};

use crate::{
    judge::{Request, Verdict, decide, terms::claim::Demand},
    keeper::{
        KeeperError,
        file::holder::{self, Holder, TableSnapshot},
        outside::Line,
    },
    launch::{program::Program, situation::Situation},
    policy::Policy,
    sys::{
        accounts,
        mount::{may_hide_processes, sees_others},
        process::{self, Process},
    },
    text::{
        error::{Error, ExitStatus},
        escape::visible,
    },
    tools::shared::{listed_file::ListedFile, repositories},
};

/// A launch is decided, and its slot visible, long before that.
const YOUNG: Duration = Duration::from_secs(2);

/// A line for each of them.
pub(super) fn lines(repository: &OsString, situation: &Situation) -> Result<Vec<Line>, Error> {
    if !accounts::is_root() && may_hide_processes() && !sees_others() {
        let text = format!(
            "{}: not counted: /proc hides the processes of other users (hidepid)",
            visible(repository)
        );
        return Err(Error::new(ExitStatus::Repository, text).advise(
            "The last sample stays until stale_after. For the fix, as root: rungate doctor".to_owned(),
        ));
    }
    let policy = situation.load_policy()?;
    let files = repositories::wanted(&policy, situation, std::slice::from_ref(repository))?;
    let (mut known, mut left) = (BTreeSet::new(), BTreeMap::new());
    for file in files.iter().flat_map(|repository| &repository.files) {
        let failed = |error: KeeperError| Error::new(ExitStatus::Repository, error.to_string());
        known.append(&mut processes_of(file, &mut left).map_err(failed)?);
    }
    let name = files.first().map_or("", |repository| repository.name.as_str());
    let mut lines = Vec::new();
    for process in process::all() {
        if process.is_zombie() || process.age().is_none_or(|age| age < YOUNG) {
            continue;
        }
        // Whoever is below a holder has its slot.
        if process::lineage(process.pid).chain([process.pid]).any(|pid| known.contains(&pid)) {
            continue;
        }
        let Some(credentials) = process::credentials(process.pid) else { continue };
        let uid = credentials.uid;
        let mut of_user = situation.clone();
        of_user.credentials = credentials;
        let Some(amount) = wanted(&process, name, &policy, &of_user)? else { continue };
        let left = left.entry(uid).or_default();
        let covered = amount.min(*left);
        *left -= covered;
        if covered == amount {
            known.insert(process.pid);
            continue;
        }
        lines.push(Line {
            user: accounts::user_name(uid).ok().flatten().unwrap_or_else(|| uid.to_string()),
            uid: Some(uid),
            host: situation.host.to_string_lossy().into_owned(),
            amount: amount - covered,
            pid: Some(process.pid),
            command: Some(process.name.clone()),
            ..Line::default()
        });
    }
    Ok(lines)
}

/// The processes that have a slot, or wait for one, as the kernel or the agent knows. `left` gets the number
/// of slots of each user whose process has ended: what it has started keeps them by a FIFO. Which processes
/// have that only root sees, but each such slot is already counted, so it covers a program of its user.
fn processes_of(file: &ListedFile, left: &mut BTreeMap<u32, u32>) -> Result<BTreeSet<i32>, KeeperError> {
    if let Some(place) = file.place() {
        return Ok(holder::processes(&place)?);
    }
    let TableSnapshot { holders, waiting, .. } = file.survey()?;
    for holder in holders.iter().flat_map(Holder::all) {
        let has_ended = |pid| Process::find(pid).is_none_or(|process| process.is_zombie());
        if let Some(uid) = holder.uid.filter(|_| holder.keeper.is_some_and(has_ended)) {
            let slots = holder.slots.1.saturating_sub(holder.slots.0).saturating_add(1);
            let left = left.entry(uid).or_default();
            *left = left.saturating_add(u32::try_from(slots).unwrap_or(u32::MAX));
        }
    }
    let keepers = holders.iter().flat_map(Holder::all).filter_map(|holder| holder.keeper);
    Ok(keepers.chain(waiting.iter().filter_map(|waiter| waiter.process.pid)).collect())
}

/// How many slots the rules want for the command line of a process: of a script, for that of the script.
fn wanted(
    process: &Process,
    repository: &str,
    policy: &Policy,
    of_user: &Situation,
) -> Result<Option<u32>, Error> {
    let words = process::command_line(process.pid);
    let is_script = words.get(1).is_some_and(|script| script.as_bytes().starts_with(b"/"));
    for start in 0..=usize::from(is_script) {
        let Some((command, arguments)) = words.get(start..).and_then(<[OsString]>::split_first) else {
            break;
        };
        // A shell for logins is `-sh`.
        if Path::new(command).file_name().is_none_or(|name| name.as_bytes().starts_with(b"-")) {
            continue;
        }
        let program = Program::supposed(command, Path::new("/"));
        let request = Request { environment: &|_| None, ..of_user.request(command, arguments, &program) };
        let start = match decide(policy, &request).verdict {
            Verdict::Start(start) => start,
            Verdict::Denied { .. } | Verdict::Unmatched => continue,
            Verdict::LookupFailed { rule, failure } => {
                let text = format!(
                    "{}: not counted: it is unknown whether {} (PID {}) needs a slot\n  {failure}\n  needed by {}, {}",
                    visible(repository),
                    visible(&process.name),
                    process.pid,
                    rule.title(),
                    rule.place()
                );
                return Err(Error::new(ExitStatus::System, text)
                    .advise("The last sample stays until stale_after. Repair the name service.".to_owned()));
            }
        };
        let mut claims = start.demands.iter().flat_map(Demand::claims);
        let claim = claims.find(|claim| *claim.repository == *repository);
        let amount = claim.and_then(|claim| u32::try_from(claim.amount.wanted()).ok());
        if let Some(amount) = amount.filter(|amount| *amount > 0) {
            return Ok(Some(amount));
        }
    }
    Ok(None)
}
