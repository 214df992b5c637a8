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
        accounts::{self, Credentials},
        process::{self, Process},
    },
    text::error::{Error, ExitStatus},
    tools::shared::{listed_file::ListedFile, repositories},
};

/// A launch is decided, and its slot visible, long before that.
const YOUNG: Duration = Duration::from_secs(2);

/// A line for each of them.
pub(super) fn lines(repository: &OsString, situation: &Situation) -> Result<Vec<Line>, Error> {
    let policy = situation.load_policy()?;
    let files = repositories::wanted(&policy, situation, std::slice::from_ref(repository))?;
    let mut known = BTreeSet::new();
    for file in files.iter().flat_map(|repository| &repository.files) {
        let failed = |error: KeeperError| Error::new(ExitStatus::Repository, error.to_string());
        known.append(&mut processes_of(file).map_err(failed)?);
    }
    let name = files.first().map_or("", |repository| repository.name.as_str());
    let mut users = BTreeMap::new();
    let mut lines = Vec::new();
    for process in process::all() {
        if process.is_zombie() || process.age().is_none_or(|age| age < YOUNG) {
            continue;
        }
        // Whoever is below a holder has its slot.
        if process::lineage(process.pid).chain([process.pid]).any(|pid| known.contains(&pid)) {
            continue;
        }
        let Some([uid, _]) = process::users(process.pid) else { continue };
        let credentials = users.entry(uid).or_insert_with(|| credentials_of(uid));
        let mut of_user = situation.clone();
        of_user.credentials.clone_from(credentials);
        let amount = wanted(&process, name, &policy, &of_user);
        lines.extend(amount.map(|amount| Line {
            user: accounts::user_name(uid).ok().flatten().unwrap_or_else(|| uid.to_string()),
            uid: Some(uid),
            host: situation.host.to_string_lossy().into_owned(),
            amount,
            pid: Some(process.pid),
            command: Some(process.name.clone()),
            ..Line::default()
        }));
    }
    Ok(lines)
}

/// The processes that have a slot, or wait for one, as the kernel or the agent knows.
fn processes_of(file: &ListedFile) -> Result<BTreeSet<i32>, KeeperError> {
    if let Some(place) = file.place() {
        return Ok(holder::processes(&place)?);
    }
    let TableSnapshot { holders, waiting, .. } = file.survey()?;
    let keepers = holders.iter().flat_map(Holder::all).filter_map(|holder| holder.keeper);
    Ok(keepers.chain(waiting.iter().filter_map(|waiter| waiter.process.pid)).collect())
}

fn credentials_of(uid: u32) -> Credentials {
    let account = accounts::account_of_uid(uid).ok().flatten();
    let groups = account.as_ref().and_then(|account| accounts::groups_of(account).ok()).unwrap_or_default();
    Credentials { uid, gid: account.map_or(uid, |account| account.gid), groups }
}

/// How many slots the rules want for the command line of a process: of a script, for that of the script.
fn wanted(process: &Process, repository: &str, policy: &Policy, of_user: &Situation) -> Option<u32> {
    let words = process::command_line(process.pid);
    let is_script = words.get(1).is_some_and(|script| script.as_bytes().starts_with(b"/"));
    let mut starts = [Some(0), is_script.then_some(1)].into_iter().flatten();
    starts.find_map(|start| {
        let (command, arguments) = words.get(start..)?.split_first()?;
        // A shell for logins is `-sh`.
        if Path::new(command).file_name()?.as_bytes().starts_with(b"-") {
            return None;
        }
        let program = Program::supposed(command, Path::new("/"));
        let request = Request { environment: &|_| None, ..of_user.request(command, arguments, &program) };
        let Verdict::Start(start) = decide(policy, &request).verdict else { return None };
        let mut claims = start.demands.iter().flat_map(Demand::claims);
        let claim = claims.find(|claim| *claim.repository == *repository)?;
        u32::try_from(claim.amount.wanted()).ok().filter(|amount| *amount > 0)
    })
}
