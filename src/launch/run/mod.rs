//! `rungate run`, in stages: the policy and the program, the judgement, the claims, the slots, the start.
//! Each stage gives the next one what it needs. If the policy changes while the launch waits, all stages run
//! again.

#[cfg(feature = "tools")]
pub(crate) mod acquire;
pub(crate) mod launch_options;
pub(crate) mod launch_spec;
mod launch_wait;
pub(crate) mod plain_run;

pub(crate) use self::{launch_options::LaunchOptions, launch_spec::LaunchSpec};

use std::{
    env,
    ffi::{CString, OsStr},
    path::{Path, PathBuf},
    time::Instant,
};

use self::{
    launch_options::Voice,
    launch_wait::{LaunchWait, UsedVariables, Watch},
};
use super::{
    Command, Depth, HELD, Hints, Journal, Program, Shim, Situation,
    environment::parse_held,
    journal,
    log::event::Circumstances,
    refusals::{self, limits::describe},
    start::start,
};
#[cfg(feature = "tools")]
use crate::cli::RunArguments;
use crate::{
    acquire::{AcquireContext, Clock, Grant, Outcome, Refusal},
    judge::{
        Request, Start, Verdict, decide,
        terms::{Hold, Launch, NamedSlots},
    },
    keeper::{KeeperError, Keepers, file::Guardian},
    policy::{Affected, Faults, Invocation, LazyPolicy, Policy},
    sys::{Ending, Inherited, executable, process},
    text::{Error, ExitStatus, age, stream, visible},
};

/// Starts a command, or reports why not.
#[cfg(feature = "tools")]
pub(crate) fn run(arguments: &RunArguments, policy: Option<PathBuf>) -> Result<u8, Error> {
    launch(&LaunchOptions { policy, ..LaunchOptions::typed(arguments)? })
}

/// The same, for any form of the command line.
pub(crate) fn launch(options: &LaunchOptions) -> Result<u8, Error> {
    Session::begin(options)?.run(&Execute)
}

/// What happens with the slots of a launch.
trait Purpose {
    /// Finds the program of the launch.
    fn locate(&self, session: &Session<'_>, opened: &LazyPolicy<'_>) -> Result<Located, Error>;

    /// Looks at what the launch asks for before it takes anything. If it returns a status, the launch ends.
    fn consider(
        &self,
        _: &Session<'_>,
        _: &LaunchSpec,
        _: &Policy,
        _: &Request<'_>,
    ) -> Result<Option<u8>, Error> {
        Ok(None)
    }

    /// Uses the slots.
    fn use_slots(
        &self,
        session: &Session<'_>,
        located: Located,
        wanted: &LaunchSpec,
        grant: Grant<'_>,
        journal: &Journal<'_>,
        turn: &LaunchWait,
    ) -> Result<u8, Error>;
}

/// The program gets them.
struct Execute;

impl Purpose for Execute {
    fn locate(&self, session: &Session<'_>, opened: &LazyPolicy<'_>) -> Result<Located, Error> {
        locate(session.options, opened, &session.situation, &session.depth)
    }

    fn use_slots(
        &self,
        session: &Session<'_>,
        located: Located,
        wanted: &LaunchSpec,
        grant: Grant<'_>,
        journal: &Journal<'_>,
        turn: &LaunchWait,
    ) -> Result<u8, Error> {
        session.start(located, wanted, grant, journal, turn)
    }
}

/// How an attempt ended.
enum Attempt {
    /// Finally, with this status.
    Ended(u8),
    /// The policy, or its time window, changed while the launch waited.
    Again,
}

/// The facts that stay the same over all decisions on a launch.
struct Session<'a> {
    options: &'a LaunchOptions,
    situation: Situation,
    ancestors: Vec<NamedSlots>,
    depth: Depth,
    /// Read before rungate opens any file.
    inherited: Inherited,
}

impl<'a> Session<'a> {
    fn begin(options: &'a LaunchOptions) -> Result<Self, Error> {
        Ok(Self {
            options,
            situation: Situation::of_this_process(options.policy.clone())?,
            ancestors: ancestors(),
            depth: Depth::of_environment(),
            inherited: Inherited::scan(),
        })
    }

    /// Decides until the launch has its slots, or is refused.
    fn run(&self, purpose: &impl Purpose) -> Result<u8, Error> {
        let mut turn = LaunchWait::begin();
        loop {
            if let Attempt::Ended(status) = self.attempt(purpose, &mut turn)? {
                return Ok(status);
            }
        }
    }

    /// Decides, takes and uses the slots, once.
    fn attempt(&self, purpose: &impl Purpose, turn: &mut LaunchWait) -> Result<Attempt, Error> {
        let Self { options, situation, .. } = self;
        let sources = situation.sources();
        let opened = LazyPolicy::open(&sources);
        let located = match purpose.locate(self, &opened) {
            Ok(located) => located,
            // A policy with faults is reported first, even if it was not read to the end.
            Err(error) => {
                return match self.unless_edited(opened.faults(), turn)? {
                    Some(()) => Err(error),
                    None => Ok(Attempt::Again),
                };
            }
        };
        let typed = options.name_for_rules();
        let Located { program, .. } = &located;
        let invocation = Invocation::new(typed, &program.path, &program.canonical);
        let variables = UsedVariables::default();
        let environment = |name: &str| variables.variable(name);
        let request =
            Request { environment: &environment, ..situation.request(typed, &options.arguments, program) };
        let Some(Some(policy)) = self.unless_edited(opened.policy_for(&invocation, &request), turn)? else {
            return Ok(Attempt::Again);
        };
        let name = Path::new(typed).file_name().unwrap_or(typed).to_string_lossy();
        let is_verbose = options.voice == Voice::Verbose;
        let journal = Journal::open(&policy, &name, situation.credentials.uid, &situation.host, is_verbose);
        let told = || Circumstances {
            wait: options.wait.map(|wait| wait.to_string()),
            environment: variables.logged(&policy),
            ..circumstances(&policy, &request)
        };
        let hints = Hints::of(options);
        let start = match judge(typed, &policy, &request, &journal, &hints, told) {
            Judged::Start(start) => start,
            Judged::Refused(refused)
                if options.voice == Voice::Quiet && refused.status() == ExitStatus::Denied =>
            {
                return Ok(Attempt::Ended(ExitStatus::Denied as u8));
            }
            Judged::Refused(refused) => return Err(refused),
        };
        let would_refuse = start.would_refuse.clone();
        if is_verbose {
            for unclear in &start.unclear {
                stream::complain(&format!("rungate: {}: {unclear}", visible(typed)));
            }
        }
        let wanted = LaunchSpec::of(start, options, situation);
        if let Some(status) = purpose.consider(self, &wanted, &policy, &request)? {
            return Ok(Attempt::Ended(status));
        }
        if wanted.hold >= Hold::Supervisor {
            Guardian::wait_for_older_children();
        }
        let is_quiet = options.voice == Voice::Quiet;
        let asker = AcquireContext {
            launch: Launch {
                command: &name,
                host: &situation.host.to_string_lossy(),
                uid: situation.credentials.uid,
                ancestors: &self.ancestors,
                hold: wanted.hold,
            },
            keepers: Keepers::of(&self.inherited),
            generation: policy.generation(request.now),
            on_expired: &|claim, overdue, fate| {
                if !is_quiet {
                    stream::complain(&journal::describe(
                        &claim.repository,
                        claim.location.path(),
                        overdue,
                        fate,
                    ));
                }
                journal.expired(claim, overdue, fate);
            },
            clock: Clock::default(),
        };
        let take = variables.of_agent(&request, &wanted, options.opened);
        let take = take.as_ref();
        let watch = Watch { policy: &policy, decided: request.now, command: typed, is_quiet, take };
        let outcome = match turn.take(&wanted, &asker, &watch) {
            // The agent has found faults that did not exist when this process read the policy.
            Err(error) if error.is_fault_of_policy() => {
                let faults = LazyPolicy::open(&sources).faults();
                return match self.unless_edited(faults, turn)? {
                    Some(()) if !error.costs_the_place() && turn.pause(Affected::Everybody) => {
                        Ok(Attempt::Again)
                    }
                    Some(()) => Err(refusals::cannot_take(typed, &error)),
                    None => Ok(Attempt::Again),
                };
            }
            // It could not even check whether there is room, but its wait is over.
            Err(error) if error.is_busy() => match turn.ran_out_after() {
                Some(time) => return Ok(Attempt::Ended(self.out_of_time(&error.after(time, false)))),
                None => return Err(refusals::cannot_take(typed, &error).contact(policy.contact())),
            },
            outcome => {
                outcome.map_err(|error| refusals::cannot_take(typed, &error).contact(policy.contact()))?
            }
        };
        match outcome {
            Outcome::Interrupted => Ok(Attempt::Again),
            Outcome::Granted(grant) => {
                if let Some(script) = self.inherited.keeper_of_carriers() {
                    journal.continue_for(script);
                }
                if let Some(waited) = turn.waited() {
                    journal.waited(&grant, waited, turn.since());
                }
                journal.would_refuse(&would_refuse, grant.unenforced());
                let used = purpose.use_slots(self, located, &wanted, grant, &journal, turn);
                used.map(Attempt::Ended)
            }
            Outcome::Refused(refusal) => {
                Ok(Attempt::Ended(self.refuse(&wanted, refusal, &asker, &journal, turn, &hints)))
            }
        }
    }

    /// A policy that is being edited costs no launch its place in the queue: nothing starts until it has no
    /// fault again. If only a delegated file has faults other launches continue, and none may block them
    /// meanwhile.
    fn unless_edited<T>(&self, read: Result<T, Faults>, turn: &mut LaunchWait) -> Result<Option<T>, Error> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(faults) if faults.affected() != Affected::Department && turn.pause(faults.affected()) => {
                Ok(None)
            }
            Err(faults) => Err(self.situation.faulty(&faults).not_started(&visible(&self.options.command))),
        }
    }

    fn start(
        &self,
        located: Located,
        wanted: &LaunchSpec,
        grant: Grant<'_>,
        journal: &Journal<'_>,
        turn: &LaunchWait,
    ) -> Result<u8, Error> {
        let LaunchOptions { command: typed, argv0, arguments, .. } = self.options;
        let Located { program, depth } = located;
        if self.options.notify
            && let Some(waited) = turn.waited()
        {
            let command = visible(typed);
            notify(&format!("{command} starts"), &format!("{command} has its slots, after {}", age(waited)));
        }
        if self.options.voice == Voice::Verbose {
            report(typed, &grant);
        }
        journal.started(wanted, &grant, turn.since());
        let started = Instant::now();
        // An ancestor need not be reported, because launches below it see its slots.
        let is_below = !self.depth.is_none() || !self.ancestors.is_empty();
        let is_told = self.options.shim.is_some() || is_below || grant.slots().is_empty();
        let depth = is_told.then_some(&depth);
        let command = Command { program, name: argv0, arguments, ancestors: &self.ancestors, depth };
        match start(command, wanted.hold, grant) {
            Ok(ending) => {
                journal.ended(started.elapsed(), ending);
                Ok(match ending {
                    Ending::Exited(status) => status,
                    Ending::Killed(signal) => process::die_of(signal),
                })
            }
            Err(error) => {
                journal.not_executed();
                Err(refusals::not_started(typed, &error))
            }
        }
    }

    fn out_of_time(&self, busy: &KeeperError) -> u8 {
        if self.options.voice != Voice::Quiet {
            stream::complain(&refusals::cannot_take(self.options.name_for_rules(), busy).to_string());
        }
        self.options.conflict_status.unwrap_or(ExitStatus::TimedOut as u8)
    }

    fn refuse(
        &self,
        wanted: &LaunchSpec,
        mut refusal: Refusal<'_>,
        asker: &AcquireContext<'_>,
        journal: &Journal<'_>,
        turn: &LaunchWait,
        hints: &Hints,
    ) -> u8 {
        journal.refused(&refusal, || wanted.met(&refusal, asker), asker.clock.last(), turn.since());
        if self.options.notify
            && let Some(waited) = refusal.waited
        {
            let command = visible(self.options.name_for_rules());
            notify(&format!("{command} gave up"), &format!("{command} waited for {} in vain", age(waited)));
        }
        if !refusal.is_silent() && self.options.voice != Voice::Quiet {
            // The refusal remains, even if that cannot be determined.
            let _ = refusal.look_for_ancestors(asker);
            stream::complain(&describe(self.options.name_for_rules(), wanted, &refusal, hints));
        }
        match (refusal.status(), self.options.conflict_status) {
            (ExitStatus::Full | ExitStatus::TimedOut, Some(status)) => status,
            (status, _) => status as u8,
        }
    }
}

/// The environment's hint about slots that ancestors hold.
pub(crate) fn ancestors() -> Vec<NamedSlots> {
    env::var(HELD).map_or_else(|_| Vec::new(), |text| parse_held(&text))
}

/// The log's facts about a launch, except its environment.
fn circumstances(policy: &Policy, request: &Request<'_>) -> Circumstances {
    let told = policy.named_arguments(request.arguments).into_iter().zip(request.arguments);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    Circumstances {
        groups: request.gids.to_vec(),
        program: text(request.path),
        canonical: (request.canonical != request.path).then(|| text(request.canonical)),
        directory: text(request.directory),
        arguments: told.map(|(is_told, one)| is_told.then(|| one.to_string_lossy().into_owned())).collect(),
        ..Circumstances::default()
    }
}

fn report(command: &OsStr, grant: &Grant<'_>) {
    let held: Vec<String> = grant.slots().iter().map(described).collect();
    let what = if held.is_empty() { "no slot".to_owned() } else { held.join(", ") };
    let without = grant
        .unenforced()
        .iter()
        .map(|claim| format!("; {} is full, but not enforced", visible(claim.repository.as_ref())));
    let without: Vec<String> = without.collect();
    stream::complain(&format!("rungate: {}: starts with {what}{}", visible(command), without.concat()));
}

fn described(held: &NamedSlots) -> String {
    let called = held.called.join(",");
    let called = if called.is_empty() { called } else { format!(" ({})", visible(called)) };
    format!("{} slot {}{called}", visible(&held.name), held.slots)
}

// `--notify`: tells the user that a wait is over, by the bell and the title of the terminal and, where there
// is a desktop, by notify-send(1). A failure costs the launch nothing.

/// Does not wait for notify-send, and leaves no child behind that the program would find.
const SCRIPT: &str = "notify-send -- \"$1\" \"$2\" </dev/null >/dev/null 2>&1 &";

/// Tells it. Both texts are escaped.
fn notify(title: &str, text: &str) {
    stream::ring(title);
    let words: Vec<CString> = ["sh", "-c", SCRIPT, "sh", title, text]
        .into_iter()
        .filter_map(|word| executable::c_string(word.as_ref()))
        .collect();
    let environment = executable::environment();
    let shell = Path::new("/bin/sh");
    if let Ok(child) = process::spawn(|| executable::replace_process(shell, &words, &environment)) {
        let _ = process::reap(child.pid);
    }
}

// The stages of a launch before it acquires anything: which program it is, and whether it may start.

/// A program that was found, and how many launches of it are above.
struct Located {
    program: Program,
    depth: Depth,
}

/// Finds the program of a command line that a policy or its own `--limit` applies to.
fn locate(
    options: &LaunchOptions,
    opened: &LazyPolicy<'_>,
    situation: &Situation,
    depth: &Depth,
) -> Result<Located, Error> {
    if opened.is_empty() && options.cap.is_none() {
        return Err(refusals::no_policy(options));
    }
    let named = |name: &OsStr| opened.executable(name);
    let program = find(named, &options.command, options.shim.as_ref(), &situation.directory)?;
    let depth = deeper(options, depth, &program)?;
    Ok(Located { program, depth })
}

/// The program of a command: the one that the policy names, or the one that is found. A shim is never the
/// program.
pub(crate) fn find<'p>(
    named: impl Fn(&OsStr) -> Option<&'p Path>,
    command: &OsStr,
    shim: Option<&Shim>,
    directory: &Path,
) -> Result<Program, Error> {
    let typed = if shim.is_none() { Shim::at(Path::new(command)) } else { None };
    let shim = shim.or(typed.as_ref());
    let name = shim.map_or(command, |shim| &shim.name);
    let found = match (named(name), shim) {
        (Some(path), shim) => {
            return Program::named(path, directory)
                .map(|program| Program { shim: shim.map(|shim| shim.path.clone()), ..program })
                .map_err(|error| refusals::no_named_program(name, &error));
        }
        (None, Some(shim)) => Program::behind(shim, directory),
        (None, None) => Program::find(command, directory),
    };
    found.map_err(|error| refusals::no_program(&error))
}

/// The decision of the policy on a launch.
#[must_use]
enum Judged<'p> {
    Start(Start<'p>),
    Refused(Error),
}

/// Judges a launch; a denied one is written into the journal. `told` is the part that a log may contain.
fn judge<'p>(
    command: &OsStr,
    policy: &'p Policy,
    request: &Request<'_>,
    journal: &Journal<'_>,
    hints: &Hints,
    told: impl FnOnce() -> Circumstances,
) -> Judged<'p> {
    let decision = decide(policy, request);
    journal.tell(told);
    Judged::Refused(match decision.verdict {
        Verdict::Start(start) => return Judged::Start(start),
        Verdict::Denied { rule, matches } => {
            journal.denied(Some(rule));
            refusals::denied(command, rule, &matches)
        }
        Verdict::Unmatched => {
            journal.denied(None);
            refusals::unmatched(command, policy, hints)
        }
        Verdict::LookupFailed { rule, failure } => refusals::lookup_failed(command, rule, &failure),
    })
}

// A command that is launched below itself: a wrapper that finds itself instead of the program, or two
// wrappers that find each other. Some recursion is intended, endless recursion is not.

/// How many launches of the command are above it, or that these are too many.
pub(crate) fn deeper(options: &LaunchOptions, depth: &Depth, program: &Program) -> Result<Depth, Error> {
    let name = Path::new(&options.command).file_name().unwrap_or(&options.command);
    depth.clone().below(name).map_err(|too_deep| refusals::too_deep(name, &too_deep, program))
}
