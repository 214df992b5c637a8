//! Judges: threads that load the system's policy, and no other, and say what a launch needs by it. A name
//! service that does not answer, or a policy on a slow disk, holds up a judge and nobody else.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use jiff::Timestamp;

use super::{
    order::{About, Order},
    unasked::Unasked,
};
use crate::{
    decision::{Request, Verdict, decide_within},
    keeper::agent::message::Take,
    launch::environment::parse_held,
    policy::{Policy, Repository, Sources},
    sys::{
        accounts::{self, LookupFailure},
        failure::Failure,
        host,
        poller::Bell,
    },
    terms::{keeper::Keeper, named_slots::NamedSlots, names::Names, pace::Expiry},
};

/// Where lock files of the caller's would be.
const RUNTIME: &str = "/run/rungate-agent";

/// A question of so many bytes is judged in no time.
const SMALL: usize = 8 * 1024;

/// How many patterns a judge compares with the arguments of one launch, each with 32 bytes: less than a
/// second.
const MOST_EFFORT: u64 = 10_000_000;

/// The same for the one thread that must not wait.
const MOST_EFFORT_AT_ONCE: u64 = 20_000;

/// How many judge at once.
pub(super) const JUDGES: usize = 4;

/// What judges are asked.
#[derive(Debug)]
pub(super) enum Question {
    /// What a launch needs.
    Launch(Case),
    /// When holders of a table of the site are overdue, for a holding with this number.
    Expiry(u64, String),
}

/// What they answer.
#[derive(Debug)]
pub(super) enum Answered {
    Launch(Judgement),
    /// None where nobody is ever overdue, or nobody can tell.
    Expiry(u64, String, Option<Expiry>),
}

/// A launch to be judged, and who asks.
#[derive(Debug)]
pub(super) struct Case {
    /// The conversation.
    pub(super) session: u64,
    /// Which of its questions.
    pub(super) question: u64,
    pub(super) take: Arc<Take>,
    pub(super) uid: u32,
    /// Their groups, where it is not the database that says which.
    pub(super) groups: Option<Vec<u32>>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Judgement {
    pub(super) uid: u32,
    pub(super) session: u64,
    pub(super) question: u64,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    /// This is needed.
    Needs(Order),
    /// The launch should not have asked: by the system's policy it does not start like this.
    Differs(String),
    /// It cannot be judged.
    Failed(String),
    /// It cannot be judged, because the policy has these faults.
    Faulty(String),
    /// It takes too long to judge by this rule.
    TooCostly(String),
}

/// Starts the judges: cases go in, judgements come out, and the bell rings for each. One more is for whoever
/// must not wait.
pub(super) fn start(
    names: &'static (dyn Names + Sync),
    bell: &Arc<Bell>,
) -> Result<(Sender<Question>, Receiver<Answered>, Judge), Failure> {
    let (cases, to_judge) = channel::<Question>();
    let (judgements, judged) = channel();
    let to_judge = Arc::new(Mutex::new(to_judge));
    let one_more = Judge { last: Arc::default() };
    for _ in 0..JUDGES {
        let (to_judge, judgements, bell) = (Arc::clone(&to_judge), judgements.clone(), Arc::clone(bell));
        let judge = one_more.clone();
        let judge = move || {
            loop {
                let case = to_judge.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(case) = case else { return };
                let answer = match case {
                    Question::Launch(Case { session, question, take, uid, groups }) => {
                        let outcome = judge.judge(names, &take, uid, groups);
                        Answered::Launch(Judgement { uid, session, question, outcome })
                    }
                    Question::Expiry(holding, table) => {
                        let expiry = judge.expiry(&table);
                        Answered::Expiry(holding, table, expiry)
                    }
                };
                if judgements.send(answer).is_err() {
                    return;
                }
                bell.ring();
            }
        };
        thread::Builder::new().name("judge".to_owned()).spawn(judge).map_err(Failure::of_io("clone"))?;
    }
    Ok((cases, judged, one_more))
}

/// A policy that was read.
#[derive(Clone, Debug)]
struct Read {
    policy: Arc<Policy>,
    /// Whether the kernel can tell without asking anybody that it is the same still.
    is_local: bool,
}

/// One of those who judge.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    /// The policy as one of them has read it last.
    last: Arc<Mutex<Option<Read>>>,
}

impl Judge {
    /// The policy as it is now.
    pub(super) fn policy(&self) -> Result<Arc<Policy>, String> {
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last().clone();
        if let Some(known) = known.filter(|known| !known.policy.is_stale()) {
            return Ok(known.policy);
        }
        // Not under the lock, because the disk may be slow. A fault in a delegated file is only for the
        // launches that the file is for.
        let loaded = Policy::load_sound(&Sources::system(0)).map(Arc::new);
        let read = loaded
            .as_ref()
            .ok()
            .map(|policy| Read { policy: Arc::clone(policy), is_local: policy.is_local() });
        *last() = read;
        loaded.map_err(|faults| faults.to_string().trim_end().to_owned())
    }

    /// When holders of a table of the site are overdue. Where its name could be that of several
    /// repositories' the most patient one counts.
    fn expiry(&self, table: &str) -> Option<Expiry> {
        let policy = self.policy().ok()?;
        let file = format!("{table}.lock");
        let is_theirs = |known: &&Repository| {
            let fixed = known.fixed_path(Path::new(RUNTIME));
            let is_it = |path: PathBuf| path.file_stem().is_some_and(|name| name == table);
            known.keeper() == Keeper::Site && fixed.map_or_else(|| known.read_name(0, &file).is_some(), is_it)
        };
        let found: Option<Vec<Expiry>> =
            policy.repositories().iter().filter(is_theirs).map(|known| known.pace().expiry).collect();
        found?.into_iter().max_by_key(|expiry| expiry.after)
    }

    fn judge(&self, names: &dyn Names, take: &Take, uid: u32, groups: Option<Vec<u32>>) -> Outcome {
        let groups = match groups.map_or_else(|| groups_of_user(uid), Ok) {
            Ok(groups) => groups,
            Err(failure) => return Outcome::Failed(format!("a look-up failed: {failure}")),
        };
        match self.policy() {
            Ok(policy) => Self::judge_by(&policy, names, take, (uid, &groups), MOST_EFFORT),
            Err(why) => Outcome::Faulty(why),
        }
    }

    /// Judges for whoever must not wait for a disk or a name service; none where that takes either, or would
    /// take long.
    pub(super) fn judge_at_once(&self, take: &Take, uid: u32, groups: &[u32]) -> Option<Outcome> {
        if take.size() > SMALL {
            return None;
        }
        let Read { policy, is_local } = self.last.try_lock().ok()?.clone()?;
        let unasked = Unasked::default();
        let is_fresh = is_local && policy.is_surely_fresh();
        let outcome =
            is_fresh.then(|| Self::judge_by(&policy, &unasked, take, (uid, groups), MOST_EFFORT_AT_ONCE));
        outcome.filter(|outcome| !unasked.was_asked() && !matches!(outcome, Outcome::TooCostly(_)))
    }

    fn judge_by(
        policy: &Policy,
        names: &dyn Names,
        take: &Take,
        (uid, groups): (u32, &[u32]),
        most: u64,
    ) -> Outcome {
        let host = match host::name() {
            Ok(host) => host,
            Err(errno) => return Outcome::Failed(format!("gethostname: {}", errno.desc())),
        };
        let environment = |name: &str| -> Option<OsString> {
            take.environment.iter().find(|(known, _)| known == name)?.1.clone()
        };
        let request = Request {
            typed: &take.typed,
            arguments: &take.arguments,
            path: Path::new(&take.path),
            canonical: Path::new(&take.canonical),
            uid,
            gids: groups,
            host: &host,
            directory: Path::new(&take.directory),
            environment: &environment,
            now: Timestamp::now(),
            cpus: &host::processors,
            // Only lock files are there.
            runtime: Path::new(RUNTIME),
            names,
        };
        if let Some(faults) = policy.faults_for(&request) {
            return Outcome::Faulty(faults.to_string().trim_end().to_owned());
        }
        let decision = match decide_within(policy, &request, most) {
            Ok(decision) => decision,
            Err(rule) => return Outcome::TooCostly(format!("{} ({})", rule.title(), rule.place())),
        };
        let start = match decision.verdict {
            Verdict::Start(start) => start,
            Verdict::Denied { rule, .. } => {
                return Outcome::Differs(format!("{} ({}) refuses it", rule.title(), rule.place()));
            }
            Verdict::Unmatched => return Outcome::Differs("no rule allows it".to_owned()),
            Verdict::LookupFailed { failure, .. } => {
                return Outcome::Failed(format!("a look-up failed: {failure}"));
            }
        };
        let name = Path::new(&take.typed).file_name().unwrap_or(&take.typed);
        let about = About {
            hold: start.hold.with(Some(take.hold)).resolve(),
            longest: take.wait,
            generation: policy.generation(request.now),
            command: shortened(name),
            host: host.to_string_lossy().into_owned(),
            uid,
            ancestors: ancestors(take),
            may_end: take.may_end,
        };
        Outcome::Needs(Order::of(&start.demands, about))
    }
}

/// How many runs of slots of one repository an ancestor can have had, for the agent to look at them: they
/// stay in its memory for as long as the launch waits.
const MOST_RUNS: usize = 1024;

/// What the environment says of slots that ancestors hold.
fn ancestors(take: &Take) -> Vec<NamedSlots> {
    let mut ancestors = parse_held(&take.held.to_string_lossy());
    ancestors.retain(|held| held.slots.iter().count() <= MOST_RUNS);
    ancestors
}

/// A name as it is stored and shown: no more of it than a file's name could have.
pub(super) fn shortened(name: &OsStr) -> String {
    let mut name = name.to_string_lossy().into_owned();
    let end = (0..=LONGEST_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or(0));
    name
}

/// The longest name of a file, in bytes.
const LONGEST_NAME: usize = 255;

/// The groups of a user by the database; none of whoever is not in it.
fn groups_of_user(uid: u32) -> Result<Vec<u32>, LookupFailure> {
    accounts::account_of_uid(uid)?.map_or_else(|| Ok(Vec::new()), |account| accounts::groups_of(&account))
}
