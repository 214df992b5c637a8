//! Judges: threads that load only the system's policy, and compute what a launch needs. The agent's own
//! thread judges what needs neither a disk nor a name service, so that never depends on them. A judge that
//! waits for one of these for long is replaced by another one.

use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use jiff::Timestamp;

use super::{AcquireRequest, FairQueue, PolicyReader, request::of_agent};
use crate::{
    judge::{
        Request, Verdict, decide_within,
        terms::{Expiry, Keeper, LookupError, NamedSlots, Names},
    },
    keeper::agent::message::{Answer, Take},
    launch::parse_held,
    policy::{Faults, Policy, Repository},
    sys::{Bell, Failure, LookupFailure, accounts},
};

/// The directory that lock files of the caller would be in.
const RUNTIME: &str = "/run/rungate-agent";

/// A request of up to this many bytes is judged immediately.
const SMALL: usize = 8 * 1024;

/// How many patterns a judge compares with the arguments of one launch, each with 32 bytes: less than a
/// second.
const MOST_EFFORT: u64 = 10_000_000;

/// The same for the one thread that must not wait.
const MOST_EFFORT_AT_ONCE: u64 = 20_000;

/// How long the thread that must not wait judges before it does other work.
const LONGEST_AT_ONCE: Duration = Duration::from_millis(2);

/// The number of judges that work, besides those that are stuck.
const JUDGES: usize = 8;

/// How many of them one user may have, so that some stay available for others.
const OF_ONE_USER: usize = 2;

/// The same with those that are stuck. So each judge that is stuck can be replaced.
const MOST_OF_ONE_USER: usize = 4;

/// A judge that has had a request for this long is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(1);

/// How many stuck judges are replaced. Beyond that, requests wait until one of them has an answer.
const MOST_STUCK: usize = 64;

/// The requests to judges.
#[derive(Debug)]
pub(super) enum Question {
    /// What a launch needs.
    Launch(Case),
    /// When holders of a table of the site are overdue, for the holding with this number.
    Expiry(u64, String),
}

#[derive(Debug)]
pub(super) enum Answered {
    Launch(Judgement),
    /// None if no holder is ever overdue, or that is unknown.
    Expiry(u64, String, Option<Expiry>),
}

/// A launch to be judged, and its caller.
#[derive(Debug)]
pub(super) struct Case {
    /// The conversation.
    pub(super) session: u64,
    pub(super) question: u64,
    pub(super) take: Arc<Take>,
    pub(super) uid: u32,
    /// The groups of the caller, unless these come from the database.
    pub(super) groups: Option<Vec<u32>>,
}

/// The result.
#[derive(Debug)]
pub(super) struct Judgement {
    pub(super) session: u64,
    pub(super) question: u64,
    pub(super) outcome: Outcome,
}

/// What a launch needs, or why that is not known.
pub(super) type Outcome = Result<AcquireRequest, NoRequest>;

/// Why it is not known what a launch needs.
#[derive(Debug)]
pub(super) enum NoRequest {
    /// It needs nothing, because it gets this answer.
    Refused(Box<Answer>),
    /// A look-up failed. The next one may not.
    LookUpFailed(String),
}

impl From<Answer> for NoRequest {
    fn from(answer: Answer) -> Self {
        Self::Refused(Box::new(answer))
    }
}

/// The judges, and their requests.
pub(super) struct Judges {
    questions: Questions,
    names: &'static (dyn Names + Sync),
    bell: Arc<Bell>,
    /// Each judge takes the next request. One that takes none ends.
    cases: Sender<Option<Question>>,
    to_judge: Arc<Mutex<Receiver<Option<Question>>>>,
    results: Sender<Answered>,
    answers: Receiver<Answered>,
    judge: Judge,
}

impl Judges {
    /// Starts them: requests go in, answers come out, and the bell rings for each. One more judge, in the
    /// caller's thread, serves what must not wait.
    pub(super) fn start(names: &'static (dyn Names + Sync), bell: &Arc<Bell>) -> Result<Self, Failure> {
        let (cases, to_judge) = channel();
        let (results, answers) = channel();
        let to_judge = Arc::new(Mutex::new(to_judge));
        let judge = Judge { policies: Arc::default() };
        let (questions, bell) = (Questions::default(), Arc::clone(bell));
        let judges = Self { questions, names, bell, cases, to_judge, results, answers, judge };
        for _ in 0..JUDGES {
            judges.add().map_err(Failure::of_io("clone"))?;
        }
        Ok(judges)
    }

    /// Starts one more judge.
    fn add(&self) -> io::Result<()> {
        let (names, to_judge, results) = (self.names, Arc::clone(&self.to_judge), self.results.clone());
        let (one, bell) = (self.judge.clone(), Arc::clone(&self.bell));
        let judge = move || {
            loop {
                let question = to_judge.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(Some(question)) = question else { return };
                if results.send(one.answer(names, question)).is_err() {
                    return;
                }
                bell.ring();
            }
        };
        thread::Builder::new().name("judge".to_owned()).spawn(judge).map(drop)
    }

    /// What reads the policy for them.
    pub(super) fn policies(&self) -> &Arc<PolicyReader> {
        &self.judge.policies
    }

    /// A session of this user has a request.
    pub(super) fn wait(&mut self, uid: u32, session: u64) {
        self.questions.turns.wait(uid, session);
    }

    /// It is over.
    pub(super) fn give_up(&mut self, uid: u32, session: u64) {
        self.questions.turns.give_up(uid, session);
        self.questions.hard.give_up(uid, session);
    }

    /// Sends a request. If the judges are gone, there is no answer.
    pub(super) fn ask(&self, question: Question) {
        let _ = self.cases.send(Some(question));
    }

    /// Judges requests of all users in turn, as many as time permits, and returns what it has judged. What
    /// must wait for a disk or a name service is for the judges.
    pub(super) fn work(&mut self, case_of: impl Fn(u64) -> Option<Case>) -> Vec<Judgement> {
        let (begun, mut judgements) = (Instant::now(), Vec::new());
        while begun.elapsed() < LONGEST_AT_ONCE
            && let Some((uid, session)) = self.questions.turns.next_of(|_| true)
        {
            let Some(case) = case_of(session) else { continue };
            match self.judge.judge_at_once(&case) {
                Some(outcome) => {
                    judgements.push(Judgement { session, question: case.question, outcome });
                }
                None => self.questions.hard.wait(uid, session),
            }
        }
        self.replace_stuck();
        while let Some((uid, session)) = self.questions.next() {
            if let Some(case) = case_of(session) {
                self.questions.begin(uid, (session, case.question));
                self.ask(Question::Launch(case));
            }
        }
        judgements
    }

    /// When there is work again, even if no judge answers before.
    pub(super) fn next_due(&self) -> Option<Instant> {
        if self.questions.turns.users() > 0 {
            return Some(Instant::now());
        }
        self.questions.may_be_stuck().filter_map(|(_, of)| of.since.checked_add(STUCK_AFTER)).min()
    }

    /// Replaces judges that are stuck.
    fn replace_stuck(&mut self) {
        while let Some(asked) = self.questions.next_stuck() {
            let added = self.add();
            let Some(of) = self.questions.judged.get_mut(&asked) else { return };
            match added {
                Ok(()) => of.is_stuck = true,
                // The host has no room for another thread now.
                Err(_) => of.since = Instant::now(),
            }
        }
    }

    pub(super) fn answer(&mut self) -> Option<Answered> {
        let answer = self.answers.try_recv().ok()?;
        if let Answered::Launch(Judgement { session, question, .. }) = &answer
            && self.questions.end((*session, *question))
        {
            // It was replaced, so there is one too many.
            let _ = self.cases.send(None);
        }
        Some(answer)
    }
}

/// A request, by its conversation and its number there.
type Asked = (u64, u64);

/// A request that a judge has.
#[derive(Debug)]
struct Judged {
    uid: u32,
    since: Instant,
    /// Whether its judge was replaced.
    is_stuck: bool,
}

/// Requests of launches.
#[derive(Debug, Default)]
struct Questions {
    /// Those that may not need a judge.
    turns: FairQueue,
    /// Those that wait for one.
    hard: FairQueue,
    /// Those that the judges have.
    judged: BTreeMap<Asked, Judged>,
}

impl Questions {
    /// A judge gets this request.
    fn begin(&mut self, uid: u32, asked: Asked) {
        self.judged.insert(asked, Judged { uid, since: Instant::now(), is_stuck: false });
    }

    /// It was judged. Returns whether its judge was stuck.
    fn end(&mut self, asked: Asked) -> bool {
        self.judged.remove(&asked).is_some_and(|of| of.is_stuck)
    }

    fn count(&self, is_counted: impl Fn(&Judged) -> bool) -> usize {
        self.judged.values().filter(|of| is_counted(of)).count()
    }

    /// The user whose request a judge may take now.
    fn next(&mut self) -> Option<(u32, u64)> {
        if self.count(|of| !of.is_stuck) >= JUDGES {
            return None;
        }
        let judged = &self.judged;
        let of_user = |uid| judged.values().filter(move |of| of.uid == uid);
        let working = |uid| of_user(uid).filter(|of| !of.is_stuck).count();
        self.hard.next_of(|uid| working(uid) < OF_ONE_USER && of_user(uid).count() < MOST_OF_ONE_USER)
    }

    /// The requests whose judges are replaced when they are stuck.
    fn may_be_stuck(&self) -> impl Iterator<Item = (&Asked, &Judged)> {
        let is_room = self.count(|of| of.is_stuck) < MOST_STUCK;
        self.judged.iter().filter(move |(_, of)| is_room && !of.is_stuck)
    }

    /// A request whose judge is to be replaced.
    fn next_stuck(&self) -> Option<Asked> {
        let stuck = self.may_be_stuck().find(|(_, of)| of.since.elapsed() > STUCK_AFTER);
        stuck.map(|(asked, _)| *asked)
    }
}

/// What each thread that judges launches has.
#[derive(Clone, Debug)]
struct Judge {
    policies: Arc<PolicyReader>,
}

impl Judge {
    fn answer(&self, names: &dyn Names, question: Question) -> Answered {
        match question {
            Question::Launch(case) => {
                let outcome = self.judge(names, &case);
                Answered::Launch(Judgement { session: case.session, question: case.question, outcome })
            }
            Question::Expiry(holding, table) => {
                let expiry = self.expiry(&table);
                Answered::Expiry(holding, table, expiry)
            }
        }
    }

    /// When holders of a table of the site are overdue. If its name fits several repositories, the longest
    /// time counts.
    fn expiry(&self, table: &str) -> Option<Expiry> {
        let policy = self.policies.current().ok()?;
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

    fn judge(&self, names: &dyn Names, case: &Case) -> Outcome {
        let groups = case.groups.clone().map_or_else(|| groups_of_user(case.uid), Ok);
        let groups = groups.map_err(look_up_failed)?;
        let faulty = |faults: Faults| Answer::Faulty((faults.to_string().trim_end().to_owned(), true));
        let policy = self.policies.current().map_err(faulty)?;
        judge_by(&policy, names, &case.take, (case.uid, &groups), MOST_EFFORT).unwrap_or_else(|rule| {
            let text = format!(
                "{rule} has too many patterns for this number of arguments: use fewer arguments, or ask the \
                    owner of the file for fewer patterns"
            );
            Err(Answer::Failed(text).into())
        })
    }

    /// Judges for callers that must not wait. None if that needs a disk or a name service, or would take
    /// long.
    fn judge_at_once(&self, case: &Case) -> Option<Outcome> {
        let groups = case.groups.as_ref().filter(|_| case.take.size() <= SMALL)?;
        let policy = self.policies.at_once()?;
        let unasked = NoLookups::default();
        let outcome = judge_by(&policy, &unasked, &case.take, (case.uid, groups), MOST_EFFORT_AT_ONCE).ok();
        outcome.filter(|_| !unasked.was_asked())
    }
}

/// Judges. The error is the rule that takes too long.
fn judge_by(
    policy: &Policy,
    names: &dyn Names,
    take: &Take,
    (uid, gids): (u32, &[u32]),
    most: u64,
) -> Result<Outcome, String> {
    let host = match accounts::name() {
        Ok(host) => host,
        Err(errno) => return Ok(Err(Answer::Failed(format!("gethostname: {}", errno.desc())).into())),
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
        gids,
        host: &host,
        directory: Path::new(&take.directory),
        environment: &environment,
        now: Timestamp::now(),
        cpus: &accounts::processors,
        // Only lock files are there.
        runtime: Path::new(RUNTIME),
        names,
    };
    if let Some(faults) = policy.faults_for(&request) {
        // A fault in a delegated file: it must not block other launches.
        return Ok(Err(Answer::Faulty((faults.to_string().trim_end().to_owned(), false)).into()));
    }
    let verdict = decide_within(policy, &request, most)
        .map_err(|rule| format!("{} ({})", rule.title(), rule.place()))?;
    Ok(match verdict {
        Verdict::Start(start) => {
            let (demands, locations) = of_agent(start.demands, take.wait);
            Ok(AcquireRequest {
                demands,
                locations,
                hold: start.hold.with(Some(take.hold)).resolve(),
                longest: take.wait,
                generation: policy.generation(request.now),
                command: shortened(Path::new(&take.typed).file_name().unwrap_or(&take.typed)),
                host: host.to_string_lossy().into_owned(),
                uid,
                ancestors: ancestors(take),
                may_end: take.may_end,
                judged: Instant::now(),
                without: Vec::new(),
            })
        }
        Verdict::Denied { rule, .. } => {
            Err(Answer::Differs(format!("{} ({}) refuses it", rule.title(), rule.place())).into())
        }
        Verdict::Unmatched => Err(Answer::Differs("no rule allows it".to_owned()).into()),
        Verdict::LookupFailed { failure, .. } => Err(look_up_failed(failure)),
    })
}

fn look_up_failed(failure: impl fmt::Display) -> NoRequest {
    NoRequest::LookUpFailed(format!("a look-up failed: {failure}"))
}

/// The maximum number of ranges of slots of one repository that the agent reads for an ancestor. They stay in
/// memory while the launch waits.
const MOST_RUNS: usize = 1024;

/// The slots that ancestors hold, according to the environment.
fn ancestors(take: &Take) -> Vec<NamedSlots> {
    let mut ancestors = parse_held(&take.held.to_string_lossy());
    ancestors.retain(|held| held.slots.iter().count() <= MOST_RUNS);
    ancestors
}

/// A name as it is stored and shown, cut to the length of a file name.
pub(super) fn shortened(name: &OsStr) -> String {
    let mut name = name.to_string_lossy().into_owned();
    let end = (0..=LONGEST_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or(0));
    name
}

/// The longest name of a file, in bytes.
const LONGEST_NAME: usize = 255;

/// The groups of a user by the database; none if the user is not in it.
fn groups_of_user(uid: u32) -> Result<Vec<u32>, LookupFailure> {
    accounts::account_of_uid(uid)?.map_or_else(|| Ok(Vec::new()), |account| accounts::groups_of(&account))
}

/// The databases of users and groups for callers that must not wait for them: nothing is looked up, but it
/// records whether a look-up was needed.
#[derive(Debug, Default)]
struct NoLookups {
    was_asked: Cell<bool>,
}

impl NoLookups {
    /// Whether a look-up was needed.
    fn was_asked(&self) -> bool {
        self.was_asked.get()
    }

    fn ask<T>(&self) -> Result<T, LookupError> {
        self.was_asked.set(true);
        Err(LookupError { call: "none".to_owned(), error: "nobody is looked up here".to_owned() })
    }
}

impl Names for NoLookups {
    fn user_name(&self, _uid: u32) -> Result<Option<String>, LookupError> {
        self.ask()
    }

    fn user_id(&self, _name: &str) -> Result<Option<u32>, LookupError> {
        self.ask()
    }

    fn group_id(&self, _name: &str) -> Result<Option<u32>, LookupError> {
        self.ask()
    }

    fn group_name(&self, _gid: u32) -> Result<Option<String>, LookupError> {
        self.ask()
    }

    fn in_netgroup(&self, _netgroup: &str, _host: &str, _user: &str) -> Result<bool, LookupError> {
        self.ask()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::{
        agent::tests::take,
        judge::terms::Hold,
        launch::SystemNames,
        sys::{Interest, Poller},
    };

    /// A judge takes the next request, if it may.
    fn takes(questions: &mut Questions) -> Option<(u32, u64)> {
        let (uid, session) = questions.next()?;
        questions.begin(uid, (session, 1));
        Some((uid, session))
    }

    /// The agent's thread has tried all requests, however long a round takes. Returns what it has judged.
    fn try_all(judges: &mut Judges, case_of: impl Fn(u64) -> Option<Case>) -> Vec<Judgement> {
        let mut judged = Vec::new();
        while judges.questions.turns.users() > 0 {
            judged.extend(judges.work(&case_of));
        }
        judged
    }

    #[test]
    fn users_take_turns_and_each_has_an_order() {
        let mut questions = Questions::default();
        for session in 1..=20 {
            questions.hard.wait(7, session);
        }
        let first: Vec<_> = std::iter::from_fn(|| takes(&mut questions)).collect();
        assert_eq!(first, [(7, 1), (7, 2)], "others find judges too");
        questions.hard.wait(9, 100);
        questions.hard.wait(5, 200);
        questions.hard.wait(5, 201);
        questions.hard.give_up(7, 3);
        // Nobody waits for a user who has given up.
        questions.hard.wait(6, 300);
        questions.hard.give_up(6, 300);
        let mut next = |judged| {
            questions.end((judged, 1));
            takes(&mut questions)
        };
        let order: Vec<_> = [0, 1, 2, 0].into_iter().map(&mut next).collect();
        assert_eq!(order, [Some((9, 100)), Some((5, 200)), Some((7, 4)), Some((5, 201))]);
    }

    /// The judges have a limited number of requests. For each one that they have judged, they get one more,
    /// also of the same user.
    #[test]
    fn the_judges_have_a_limited_number_of_requests() {
        let mut questions = Questions::default();
        for uid in 1..=20 {
            questions.hard.wait(uid, u64::from(uid));
        }
        let users: Vec<u32> = std::iter::from_fn(|| takes(&mut questions)).map(|(uid, _)| uid).collect();
        assert_eq!(users, (1..=8).collect::<Vec<_>>());
        questions.end((3, 1));
        assert_eq!((takes(&mut questions), takes(&mut questions)), (Some((9, 9)), None));
        let mut of_one = Questions::default();
        for session in 1..=5 {
            of_one.hard.wait(7, session);
        }
        assert_eq!([(); 3].map(|()| takes(&mut of_one)), [Some((7, 1)), Some((7, 2)), None]);
        of_one.end((1, 1));
        assert_eq!([(); 2].map(|()| takes(&mut of_one)), [Some((7, 3)), None]);
    }

    /// Stuck judges are replaced, up to a number for each user and for all. So the requests of one user leave
    /// judges to others.
    #[test]
    fn stuck_judges_are_replaced_up_to_a_number() {
        let mut questions = Questions::default();
        for uid in 1..=20 {
            for number in 1..=10 {
                questions.hard.wait(uid, u64::from(100 * uid + number));
            }
        }
        // Whatever the judges have is stuck.
        loop {
            while takes(&mut questions).is_some() {}
            for of in questions.judged.values_mut() {
                of.since = Instant::now().checked_sub(STUCK_AFTER * 2).expect("a moment");
            }
            let Some(asked) = questions.next_stuck() else { break };
            questions.judged.get_mut(&asked).expect("a judge has it").is_stuck = true;
        }
        let stuck =
            |uid: Option<u32>| questions.count(|of| of.is_stuck && uid.is_none_or(|uid| uid == of.uid));
        assert_eq!(stuck(None), MOST_STUCK);
        assert!((1..=20).all(|uid| stuck(Some(uid)) <= MOST_OF_ONE_USER));
        assert_eq!(questions.count(|of| !of.is_stuck), JUDGES);
        // One that has an answer makes room for another one.
        let (asked, _) = questions.judged.iter().find(|(_, of)| of.is_stuck).expect("they are stuck");
        let asked = *asked;
        assert!(questions.end(asked) && questions.next_stuck().is_some());
    }

    /// Names of users that are found when the test says so.
    #[derive(Debug)]
    struct Silent(Mutex<()>);

    impl Names for Silent {
        fn user_name(&self, _uid: u32) -> Result<Option<String>, LookupError> {
            drop(self.0.lock());
            Ok(None)
        }

        fn user_id(&self, _name: &str) -> Result<Option<u32>, LookupError> {
            drop(self.0.lock());
            Ok(None)
        }

        fn group_id(&self, _name: &str) -> Result<Option<u32>, LookupError> {
            Ok(None)
        }

        fn group_name(&self, _gid: u32) -> Result<Option<String>, LookupError> {
            Ok(None)
        }

        fn in_netgroup(&self, _netgroup: &str, _host: &str, _user: &str) -> Result<bool, LookupError> {
            Ok(false)
        }
    }

    /// While every judge of some users waits for a name service, another user's request is judged. When the
    /// name service answers, so are theirs, and there are as many judges as before.
    #[test]
    fn judges_that_a_name_service_keeps_are_replaced() {
        static NAMES: Silent = Silent(Mutex::new(()));
        let (bell, poller) = (Arc::new(Bell::new().expect("a bell")), Poller::new().expect("a poller"));
        poller.add(bell.as_fd(), 5, Interest::Read).expect("a bell");
        let mut judges = Judges::start(&NAMES, &bell).expect("threads");
        judges.have_read("[[rule]]\nusers = [\"ann\"]\nacquire = []\n");
        let silence = NAMES.0.lock().expect("it answers");
        for uid in 1..=8 {
            judges.wait(uid, u64::from(uid));
        }
        let case_of = |session: u64| Some(case(session, 7, Some(vec![7])));
        assert!(try_all(&mut judges, case_of).is_empty());
        assert_eq!(judges.questions.judged.len(), JUDGES);
        judges.wait(9, 9);
        while judges.questions.judged.len() < 9 {
            assert!(judges.work(case_of).is_empty());
            let due = judges.next_due().map(|due| due.saturating_duration_since(Instant::now()));
            poller.wait(due.or(Some(Duration::ZERO))).expect("a moment");
        }
        assert!(judges.questions.count(|of| of.is_stuck) > 0);
        drop(silence);
        let mut answered = 0;
        while answered < 9 {
            poller.wait(Some(Duration::from_secs(30))).expect("an answer");
            bell.hush();
            answered += std::iter::from_fn(|| judges.answer()).count();
        }
        assert!(judges.questions.judged.is_empty() && judges.next_due().is_none());
    }

    /// The agent is woken by an answer of a judge. Then the judges may get another request of that user.
    #[test]
    fn an_answer_makes_room_for_the_next_request() {
        let (bell, poller) = (Arc::new(Bell::new().expect("a bell")), Poller::new().expect("a poller"));
        poller.add(bell.as_fd(), 5, Interest::Read).expect("a bell");
        let mut judges = Judges::start(&SystemNames, &bell).expect("threads");
        judges.wait(7, 1);
        assert!(judges.next_due().is_some(), "it is not tried yet");
        let case =
            |session| Some(Case { session, question: 3, take: Arc::new(take()), uid: 7, groups: None });
        assert!(try_all(&mut judges, case).is_empty(), "its groups must be looked up");
        assert_eq!(judges.questions.judged.keys().collect::<Vec<_>>(), [&(1, 3)]);
        assert_eq!(poller.wait(Some(Duration::from_secs(30))), Ok(vec![5]));
        let Some(Answered::Launch(judgement)) = judges.answer() else { panic!("it has an answer") };
        assert_eq!((judgement.session, judgement.question), (1, 3));
        assert!(judges.questions.judged.is_empty() && judges.answer().is_none());
    }

    impl Judges {
        /// This policy was just read.
        pub(in crate::agent) fn have_read(&self, text: &str) {
            self.judge.policies.has_read(text, true);
        }
    }

    /// What the agent decides about this request by these rules.
    fn judged(rules: &str, take: &Take) -> Outcome {
        let text = format!("[repository.seats]\nkeeper = \"agent\"\nlimit = 3\n{rules}");
        let policy = Policy::of_text("/etc/rungate/policy.toml", text).expect("a policy");
        judge_by(&policy, &SystemNames, take, (1000, &[1000]), MOST_EFFORT).expect("it is quick")
    }

    /// A launch needs what the rules say for its command and its environment, each variable under its own
    /// name. It is kept as the launch asks.
    #[test]
    fn a_launch_needs_what_the_rules_say() {
        let rules = r#"
            [[rule]]
            commands = ["matlab"]
            environment = { B = ["yes"] }
            acquire = ["seats"]
        "#;
        for (one, other, hold, needs) in [
            ("yes", "no", Hold::Process, &[][..]),
            ("no", "yes", Hold::Process, &["seats"]),
            ("no", "yes", Hold::Tree, &["seats"]),
        ] {
            let variable = |name: &str, value: &str| (name.to_owned(), Some(value.into()));
            let environment = vec![variable("A", one), variable("B", other)];
            let request = judged(rules, &Take { environment, hold, ..take() }).expect("it may start");
            assert_eq!(request.tables().collect::<Vec<_>>(), needs);
            assert_eq!((request.command.as_str(), request.uid, request.hold), ("matlab", 1000, hold));
        }
    }

    /// A launch that the rules refuse hears that the agent decides so.
    #[test]
    fn a_launch_that_the_rules_refuse_is_told_so() {
        let denied = r#"
            [[rule]]
            name = "none"
            commands = ["matlab"]
            action = "deny"
        "#;
        let unmatched = r#"
            [defaults]
            unmatched = "refuse"
            [[rule]]
            commands = ["octave"]
            acquire = ["seats"]
        "#;
        for (rules, words) in [(denied, "refuses it"), (unmatched, "no rule allows it")] {
            let refused = judged(rules, &take()).expect_err("it is refused");
            let NoRequest::Refused(refused) = refused else { panic!("nothing is looked up") };
            let Answer::Differs(why) = *refused else { panic!("the rules refuse it") };
            assert!(why.ends_with(words), "{why}");
        }
    }

    /// A judge that must not wait learns from the rules that a user would have to be looked up.
    #[test]
    fn a_look_up_that_is_needed_is_noticed() {
        for (selector, is_asked) in [("users = [\"ann\"]", true), ("commands = [\"matlab\"]", false)] {
            let rule = format!("[[rule]]\n{selector}\nacquire = []\n");
            let policy = Policy::of_text("/etc/rungate/policy.toml", rule).expect("a policy");
            let names = NoLookups::default();
            let outcome = judge_by(&policy, &names, &take(), (1000, &[1000]), MOST_EFFORT);
            let has_failed = outcome.expect("it is quick").is_err();
            assert_eq!((has_failed, names.was_asked()), (is_asked, is_asked));
        }
    }

    /// What the environment says of ancestors is read, but no list that would take much memory.
    #[test]
    fn long_lists_of_slots_of_ancestors_are_not_read() {
        let list = |count: usize| {
            let slots: Vec<String> = (0..count).map(|index| (2 * index + 1).to_string()).collect();
            format!("long={} seats=4,5", slots.join(","))
        };
        for (count, expected) in [(MOST_RUNS, &["long", "seats"][..]), (MOST_RUNS + 1, &["seats"])] {
            let ancestors = ancestors(&Take { held: list(count).into(), ..take() });
            assert_eq!(ancestors.iter().map(|of| of.name.as_str()).collect::<Vec<_>>(), expected);
        }
    }

    /// A request whose launch has gone is not judged, and delays no other one of its user.
    #[test]
    fn a_request_of_a_launch_that_has_gone_does_not_count() {
        let bell = Arc::new(Bell::new().expect("a bell"));
        let mut judges = Judges::start(&SystemNames, &bell).expect("threads");
        for session in 1..=20 {
            judges.wait(7, session);
        }
        judges.wait(9, 30);
        judges.give_up(9, 30);
        assert_eq!(judges.questions.turns.users(), 1);
        assert!(try_all(&mut judges, |_| None).is_empty());
        assert_eq!((judges.questions.turns.users(), judges.questions.judged.len()), (0, 0));
        // The same while it waits for a judge.
        for session in 1..=4 {
            judges.wait(7, session);
        }
        assert!(try_all(&mut judges, |session| Some(case(session, 7, None))).is_empty());
        judges.give_up(7, 3);
        judges.give_up(7, 4);
        assert_eq!((judges.questions.hard.users(), judges.questions.judged.len()), (0, 2));
    }

    /// A judge with this policy, whose files are unchanged.
    fn judge_of(text: &str) -> Judge {
        Judge { policies: Arc::new(PolicyReader::of(text, true)) }
    }

    /// This user asks, over this connection.
    fn case(session: u64, uid: u32, groups: Option<Vec<u32>>) -> Case {
        Case { session, question: 3, take: Arc::new(take()), uid, groups }
    }

    /// A request is judged at once if nothing has to be looked up for it: neither the groups of its user, nor
    /// a user that the rules name.
    #[test]
    fn a_request_that_needs_no_look_up_is_judged_at_once() {
        let plain = judge_of("[[rule]]\ncommands = [\"matlab\"]\nacquire = []\n");
        let of_user = judge_of("[[rule]]\nusers = [\"ann\"]\nacquire = []\n");
        assert!(plain.judge_at_once(&case(1, 7, Some(vec![7]))).is_some_and(|outcome| outcome.is_ok()));
        assert!(plain.judge_at_once(&case(1, 7, None)).is_none());
        assert!(of_user.judge_at_once(&case(1, 7, Some(vec![7]))).is_none());
        let bell = Arc::new(Bell::new().expect("a bell"));
        let mut judges = Judges::start(&SystemNames, &bell).expect("threads");
        judges.judge = plain;
        for session in 1..=3 {
            judges.wait(7, session);
        }
        let groups_of = |session| (session != 2).then(|| vec![7]);
        let judged = try_all(&mut judges, |session| Some(case(session, 7, groups_of(session))));
        assert_eq!(judged.iter().map(|of| of.session).collect::<Vec<_>>(), [1, 3]);
        assert!(judged.iter().all(|of| of.question == 3 && of.outcome.is_ok()));
        assert_eq!(judges.questions.judged.keys().collect::<Vec<_>>(), [&(2, 3)], "a judge has it");
    }

    /// Holders of a table of the site are overdue as its repository says. Other tables have no such time.
    #[test]
    fn the_repository_says_when_holders_are_overdue() {
        let of = |name: &str, more: &str| format!("[repository.{name}]\nlimit = 2\n{more}\n");
        let judge = judge_of(
            &[
                of("seats", "keeper = \"site\"\nexpire_after = \"1m\""),
                of("gpus", "keeper = \"site\"\nexpire_after = \"2m\""),
                of("endless", "keeper = \"site\""),
                of("local", "keeper = \"agent\"\nexpire_after = \"1m\""),
            ]
            .concat(),
        );
        for (table, minutes) in [("seats", Some(1)), ("gpus", Some(2)), ("endless", None), ("local", None)] {
            let question = Question::Expiry(5, table.to_owned());
            let Answered::Expiry(holding, name, expiry) = judge.answer(&SystemNames, question) else {
                panic!("it answers the question")
            };
            assert_eq!((holding, name.as_str()), (5, table));
            assert_eq!(expiry.map(|expiry| expiry.after.as_secs()), minutes.map(|minutes| minutes * 60));
        }
        assert!(judge.expiry("other").is_none());
    }

    /// A name is cut to the length of a file name, and never within a character.
    #[test]
    fn a_long_name_is_cut_between_two_characters() {
        let short = |name: &str| shortened(OsStr::new(name));
        assert_eq!(short("matlab"), "matlab");
        assert_eq!(short(&"x".repeat(300)), "x".repeat(255));
        assert_eq!(short(&"é".repeat(200)), "é".repeat(127));
    }
}
