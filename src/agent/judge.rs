//! Judges: threads that load only the system's policy, and compute what a launch needs. A name service that
//! does not answer, or a policy on a slow disk, delays a judge and nothing else.

use std::{
    cell::Cell,
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt, mem,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Instant,
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

/// The number of judges.
const JUDGES: usize = 4;

/// The number of requests that keep them busy until the next ones come.
const AT_ONCE: usize = 2 * JUDGES;

/// The maximum of one user, so that some judges stay available for others.
const OF_ONE_USER: usize = JUDGES / 2;

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
    pub(super) uid: u32,
    pub(super) session: u64,
    pub(super) question: u64,
    pub(super) outcome: Outcome,
}

/// What a launch needs, or the answer that it gets instead.
pub(super) type Outcome = Result<AcquireRequest, Box<Answer>>;

/// The judges, and their requests.
pub(super) struct Judges {
    questions: Questions,
    cases: Sender<Question>,
    answers: Receiver<Answered>,
    judge: Judge,
}

impl Judges {
    /// Starts them: requests go in, answers come out, and the bell rings for each. One more judge serves
    /// callers that must not wait.
    pub(super) fn start(names: &'static (dyn Names + Sync), bell: &Arc<Bell>) -> Result<Self, Failure> {
        let (cases, to_judge) = channel::<Question>();
        let (answers, answered) = channel();
        let to_judge = Arc::new(Mutex::new(to_judge));
        let judge = Judge { policies: Arc::default() };
        for _ in 0..JUDGES {
            let (to_judge, answers, bell) = (Arc::clone(&to_judge), answers.clone(), Arc::clone(bell));
            let one = judge.clone();
            let judge = move || {
                loop {
                    let question = to_judge.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(question) = question else { return };
                    if answers.send(one.answer(names, question)).is_err() {
                        return;
                    }
                    bell.ring();
                }
            };
            thread::Builder::new().name("judge".to_owned()).spawn(judge).map_err(Failure::of_io("clone"))?;
        }
        Ok(Self { questions: Questions::default(), cases, answers: answered, judge })
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
    }

    /// Sends a request. If the judges are gone, there is no answer.
    pub(super) fn ask(&self, question: Question) {
        let _ = self.cases.send(question);
    }

    /// Takes the requests whose turn it is. If the judges are idle and nothing blocks, judges one here and
    /// returns it: waking a judge takes longer than judging.
    pub(super) fn work(&mut self, case_of: impl Fn(u64) -> Option<Case>) -> Option<Judgement> {
        let (mut is_at_rest, mut judgement) = (self.questions.judged.is_empty(), None);
        while let Some((uid, session)) = self.questions.next() {
            let Some(case) = case_of(session) else {
                self.questions.on_judged(uid);
                continue;
            };
            match mem::take(&mut is_at_rest).then(|| self.judge.judge_at_once(&case)).flatten() {
                Some(outcome) => {
                    self.questions.on_judged(uid);
                    judgement = Some(Judgement { uid, session, question: case.question, outcome });
                }
                None => self.ask(Question::Launch(case)),
            }
        }
        judgement
    }

    pub(super) fn answer(&mut self) -> Option<Answered> {
        let answer = self.answers.try_recv().ok()?;
        if let Answered::Launch(judgement) = &answer {
            self.questions.on_judged(judgement.uid);
        }
        Some(answer)
    }
}

/// Requests that no judge has yet.
#[derive(Debug, Default)]
struct Questions {
    turns: FairQueue,
    /// How many requests of each user the judges have.
    judged: BTreeMap<u32, usize>,
}

impl Questions {
    /// One request of this user was judged.
    fn on_judged(&mut self, uid: u32) {
        if let Some(count) = self.judged.get_mut(&uid) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.judged.remove(&uid);
            }
        }
    }

    /// The user whose request a judge may take now.
    fn next(&mut self) -> Option<(u32, u64)> {
        if self.judged.values().sum::<usize>() >= AT_ONCE {
            return None;
        }
        let judged = &self.judged;
        let next = self.turns.next_of(|uid| judged.get(&uid).is_none_or(|count| *count < OF_ONE_USER))?;
        *self.judged.entry(next.0).or_default() += 1;
        Some(next)
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
                Answered::Launch(Judgement {
                    uid: case.uid,
                    session: case.session,
                    question: case.question,
                    outcome,
                })
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
        let faulty =
            |faults: Faults| Box::new(Answer::Faulty((faults.to_string().trim_end().to_owned(), true)));
        let policy = self.policies.current().map_err(faulty)?;
        judge_by(&policy, names, &case.take, (case.uid, &groups), MOST_EFFORT).unwrap_or_else(|rule| {
            Err(Box::new(Answer::Failed(format!(
                "{rule} has too many patterns for this number of arguments: use fewer arguments, or ask the \
                    owner of the file for fewer patterns"
            ))))
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
        Err(errno) => return Ok(Err(Box::new(Answer::Failed(format!("gethostname: {}", errno.desc()))))),
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
        return Ok(Err(Box::new(Answer::Faulty((faults.to_string().trim_end().to_owned(), false)))));
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
            Err(Box::new(Answer::Differs(format!("{} ({}) refuses it", rule.title(), rule.place()))))
        }
        Verdict::Unmatched => Err(Box::new(Answer::Differs("no rule allows it".to_owned()))),
        Verdict::LookupFailed { failure, .. } => Err(look_up_failed(failure)),
    })
}

fn look_up_failed(failure: impl fmt::Display) -> Box<Answer> {
    Box::new(Answer::Failed(format!("a look-up failed: {failure}")))
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
    use std::{os::fd::AsFd, time::Duration};

    use super::*;
    use crate::{
        agent::tests::take,
        judge::terms::Hold,
        launch::SystemNames,
        sys::{Interest, Poller},
    };

    #[test]
    fn users_take_turns_and_each_has_an_order() {
        let mut turns = Questions::default();
        for session in 1..=20 {
            turns.turns.wait(7, session);
        }
        let first: Vec<_> = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(first, [(7, 1), (7, 2)], "others find judges too");
        turns.turns.wait(9, 100);
        turns.turns.wait(5, 200);
        turns.turns.wait(5, 201);
        turns.turns.give_up(7, 3);
        // Nobody waits for a user who has given up.
        turns.turns.wait(6, 300);
        turns.turns.give_up(6, 300);
        let mut next = |judged| {
            turns.on_judged(judged);
            turns.next()
        };
        let order: Vec<_> = [0, 7, 7, 0].into_iter().map(&mut next).collect();
        assert_eq!(order, [Some((9, 100)), Some((5, 200)), Some((7, 4)), Some((5, 201))]);
    }

    /// The judges have a limited number of requests. For each one that they have judged, they get one more,
    /// also of the same user.
    #[test]
    fn the_judges_have_a_limited_number_of_requests() {
        let mut turns = Questions::default();
        for uid in 1..=20 {
            turns.turns.wait(uid, u64::from(uid));
        }
        let users: Vec<u32> = std::iter::from_fn(|| turns.next()).map(|(uid, _)| uid).collect();
        assert_eq!(users, (1..=8).collect::<Vec<_>>());
        turns.on_judged(3);
        assert_eq!((turns.next(), turns.next()), (Some((9, 9)), None));
        let mut of_one = Questions::default();
        for session in 1..=5 {
            of_one.turns.wait(7, session);
        }
        assert_eq!([(); 3].map(|()| of_one.next()), [Some((7, 1)), Some((7, 2)), None]);
        of_one.on_judged(7);
        assert_eq!([(); 2].map(|()| of_one.next()), [Some((7, 3)), None]);
    }

    /// The agent is woken by an answer of a judge. Then the judges may get another request of that user.
    #[test]
    fn an_answer_makes_room_for_the_next_request() {
        let (bell, poller) = (Arc::new(Bell::new().expect("a bell")), Poller::new().expect("a poller"));
        poller.add(bell.as_fd(), 5, Interest::Read).expect("a bell");
        let mut judges = Judges::start(&SystemNames, &bell).expect("threads");
        judges.wait(7, 1);
        let case =
            |session| Some(Case { session, question: 3, take: Arc::new(take()), uid: 7, groups: None });
        assert!(judges.work(case).is_none(), "its groups must be looked up");
        assert_eq!(judges.questions.judged, BTreeMap::from([(7, 1)]));
        assert_eq!(poller.wait(Some(Duration::from_secs(30))), Ok(vec![5]));
        let Some(Answered::Launch(judgement)) = judges.answer() else { panic!("it has an answer") };
        assert_eq!((judgement.uid, judgement.session, judgement.question), (7, 1, 3));
        assert!(judges.questions.judged.is_empty() && judges.answer().is_none());
    }

    impl Judges {
        /// This policy was just read.
        pub(in crate::agent) fn have_read(&mut self, text: &str) {
            self.judge.policies = Arc::new(PolicyReader::of(text, true));
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
        assert!(judges.work(|_| None).is_none());
        assert_eq!((judges.questions.turns.users(), judges.questions.judged.len()), (0, 0));
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
        judges.wait(7, 1);
        judges.wait(9, 2);
        let case_of = |session| Some(case(session, if session == 1 { 7 } else { 9 }, Some(vec![7])));
        let judgement = judges.work(case_of).expect("the judges are idle");
        assert_eq!((judgement.uid, judgement.session, judgement.question), (7, 1, 3));
        assert_eq!(judges.questions.judged, BTreeMap::from([(9, 1)]), "they have the other one");
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
