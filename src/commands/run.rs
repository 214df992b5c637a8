//! `rungate run`: policy, request, decision, claims, slots, exec, each once and in this order.

use std::{
    env,
    ffi::OsStr,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    commands::{
        ad_hoc,
        claims::Claims,
        expired,
        journal::Journal,
        order::{Order, Voice},
        recursion,
        refusal::{Denial, Refusal},
        situation::Situation,
        turn::{Turn, Watch},
        wishes::Wishes,
    },
    decision::{Claim, Decision, Terms, Verdict, decide},
    error::Error,
    exit_status::ExitStatus,
    launch::{
        depth::Depth,
        environment::{HELD, parse_held},
        program::Program,
        program_error::ProgramError,
        shim::Shim,
        start::{Command, StartError, start},
    },
    output::{stream, visible::visible},
    policy::{Invocation, Opened, Policy},
    repository::{
        acquisition::Launch,
        admitted::Admitted,
        claim::{self, Demand, NamedSlots},
        error::RepositoryError,
        file::Opening,
        hold::Hold,
        refused::Refused,
        waiting::Waited,
    },
    sys::{
        child::{self, Ending},
        descriptor::{DEFAULT_FLOOR, Inherited},
    },
};

/// Starts a command, or says why not.
pub(super) fn run(order: &Order) -> Result<u8, Error> {
    let mut run = Run::prepare(order)?;
    loop {
        if let Some(status) = run.attempt()? {
            return Ok(status);
        }
    }
}

/// What stays the same however often a launch is decided.
struct Run<'a> {
    order: &'a Order,
    situation: Situation,
    wishes: Wishes,
    ancestors: Vec<NamedSlots>,
    depth: Depth,
    /// Looked at before any file of ours is open.
    inherited: Inherited,
    turn: Turn,
}

impl<'a> Run<'a> {
    fn prepare(order: &'a Order) -> Result<Self, Error> {
        Ok(Self {
            order,
            situation: Situation::of_this_process()?,
            wishes: Wishes::of(order),
            ancestors: env::var(HELD).map_or_else(|_| Vec::new(), |text| parse_held(&text)),
            depth: Depth::of_environment(),
            inherited: Inherited::scan(),
            turn: Turn::begin(),
        })
    }

    /// Decides, takes and starts. None when the policy, or the time that it asks for, changed while the launch stood in line:
    /// then all of it is done again.
    fn attempt(&mut self) -> Result<Option<u8>, Error> {
        let Self { order, situation, ancestors, depth, inherited, .. } = self;
        let command = &order.command;
        let typed = order.typed_as.as_ref().unwrap_or(command);
        let sources = situation.sources(order.policy.clone());
        let faulty = |faults| situation.faulty(&faults).keeps_from_starting(&visible(command));
        let opened = match Opened::open(&sources) {
            Ok(opened) => opened,
            Err(_) if self.turn.pause() => return Ok(None),
            Err(faults) => return Err(faulty(faults)),
        };
        if opened.is_empty() && order.cap.is_none() {
            return Err(no_policy(order));
        }
        let named = |name: &OsStr| opened.executable(name);
        let program = find(named, command, order.shim.as_ref(), &situation.directory)?;
        let depth = recursion::deeper(order, depth, &program)?;
        let policy = match opened.policy_for(&Invocation::new(typed, &program.path, &program.canonical)) {
            Ok(policy) => policy,
            Err(_) if self.turn.pause() => return Ok(None),
            Err(faults) => return Err(faulty(faults)),
        };
        let request = situation.request(typed, &order.arguments, &program);
        let decision = decide(&policy, &request);
        let name = Path::new(typed).file_name().unwrap_or(typed).to_string_lossy();
        let journal = Journal::open(&policy, &name, situation.credentials.uid);
        let terms = match judge(typed, &decision, &journal) {
            Ok(terms) => terms,
            Err(refused) if order.voice == Voice::Quiet && refused.status() == ExitStatus::Denied => {
                return Ok(Some(ExitStatus::Denied as u8));
            }
            Err(refused) => return Err(refused),
        };
        let claims = Claims::of(&terms.demands, &situation.runtime);
        let mut demands = claims.demands;
        demands.extend(ad_hoc::claim(order, situation).map(Demand::One));
        let options = options(order);
        let asked = Asked { terms, demands: &demands, judged: &claims.judged, options: &options };

        let hold = self.wishes.hold(terms);
        let launch = Launch {
            command: &name,
            host: &situation.host.to_string_lossy(),
            uid: situation.credentials.uid,
            ancestors,
            opening: Opening { inherited, floor: floor(&policy), hold },
            on_expired: &|claim, overdue, fate| {
                if order.voice != Voice::Quiet {
                    stream::complain(&expired::describe(&claim.name, overdue, fate));
                }
                journal.expired(claim, overdue, fate);
            },
        };
        let is_quiet = order.voice == Voice::Quiet;
        let watch = Watch { policy: &policy, decided: request.now, command: typed, is_quiet };
        let waited = self.turn.take(&demands, &launch, self.wishes.wait(terms), &watch);
        match waited.map_err(|error| cannot_take(typed, &error))? {
            Waited::Interrupted => Ok(None),
            Waited::Admitted(admitted) => {
                self.start(program, &depth, hold, admitted, &asked, &journal).map(Some)
            }
            Waited::Refused(refused) => Ok(Some(self.refuse(&asked, &refused, None, &journal))),
            Waited::TimedOut(refused) => {
                Ok(Some(self.refuse(&asked, &refused, Some(self.turn.waited()), &journal)))
            }
        }
    }

    fn start(
        &self,
        program: Program,
        depth: &Depth,
        hold: Hold,
        admitted: Admitted,
        asked: &Asked<'_>,
        journal: &Journal<'_>,
    ) -> Result<u8, Error> {
        let Order { command: typed, zeroth, arguments, .. } = self.order;
        if self.order.voice == Voice::Verbose {
            report(typed, asked, &admitted);
        }
        if self.turn.has_waited() {
            journal.waited(self.turn.waited());
        }
        journal.started(asked, &admitted);
        let started = Instant::now();
        // A launch that others follow need not be told of, as long as those see by its slots that they are below it.
        let is_below = !self.depth.is_none() || !self.ancestors.is_empty();
        let is_told = self.order.shim.is_some() || is_below || admitted.slots().is_empty();
        let depth = is_told.then_some(depth);
        let command = Command { program, name: zeroth, arguments, ancestors: &self.ancestors, depth };
        match start(command, hold, admitted) {
            Ok(ending) => {
                journal.ended(started.elapsed(), ending);
                Ok(match ending {
                    Ending::Exited(status) => status,
                    Ending::Killed(signal) => child::die_of(signal),
                })
            }
            Err(error) => {
                journal.not_executed();
                Err(not_started(typed, &error))
            }
        }
    }

    fn refuse(
        &self,
        asked: &Asked<'_>,
        refused: &[Refused],
        waited: Option<Duration>,
        journal: &Journal<'_>,
    ) -> u8 {
        journal.refused(asked, refused, waited);
        let Order { command, typed_as, .. } = self.order;
        let refusal = Refusal::new(typed_as.as_ref().unwrap_or(command), command, asked, refused, waited);
        if refusal.is_silent() {
            return ExitStatus::Success as u8;
        }
        if self.order.voice != Voice::Quiet {
            stream::complain(&refusal.to_string());
        }
        match (refusal.status(), self.order.conflict_status) {
            (ExitStatus::Full | ExitStatus::TimedOut, Some(status)) => status,
            (status, _) => status as u8,
        }
    }
}

/// What a launch asks for: as it was decided, and as it is asked of the lock files, numbered alike. What only the command line
/// asks for comes last, and was not judged.
pub(super) struct Asked<'a> {
    pub(super) terms: &'a Terms<'a>,
    pub(super) demands: &'a [Demand],
    pub(super) judged: &'a [&'a Claim<'a>],
    /// What of the command line another call has to repeat, with a blank in front.
    pub(super) options: &'a Options,
}

/// Options that have to be repeated for the same result.
pub(super) struct Options {
    /// For `run`.
    pub(super) run: String,
    /// For `explain`, which knows nothing of `--limit`.
    pub(super) explain: String,
}

fn options(order: &Order) -> Options {
    let option = |name: &str, value: Option<String>| {
        value.map_or_else(String::new, |value| format!(" --{name} {}", quoted(&value)))
    };
    let typed_as = option("as", order.typed_as.as_ref().map(visible));
    let policy = option("policy", order.policy.as_ref().map(visible));
    let explain = format!("{policy}{typed_as}");
    let cap = order.cap.as_ref();
    let repository = option("repository", cap.and_then(|cap| cap.repository.as_ref()).map(visible));
    let limit = option("limit", cap.map(|cap| cap.limit.to_string()));
    let slots = option("slots", cap.and_then(|cap| cap.slots).map(|slots| slots.to_string()));
    Options { run: format!("{explain}{repository}{limit}{slots}"), explain }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "%+,-./:=@_".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

impl Asked<'_> {
    /// The claims on lock files, by number.
    pub(super) fn claims(&self) -> Vec<&claim::Claim> {
        self.demands.iter().flat_map(Demand::options).collect()
    }
}

/// The lowest number for descriptors that go to the program.
fn floor(policy: &Policy) -> i32 {
    policy.fd_floor().and_then(|floor| i32::try_from(floor).ok()).unwrap_or(DEFAULT_FLOOR)
}

/// The program of a command: the one that the policy names, or the one that is found. A shim is never the program.
pub(super) fn find<'p>(
    named: impl Fn(&OsStr) -> Option<&'p Path>,
    command: &OsStr,
    shim: Option<&Shim>,
    directory: &Path,
) -> Result<Program, Error> {
    let typed = if shim.is_none() { Shim::at(Path::new(command)) } else { None };
    let shim = shim.or(typed.as_ref());
    let found = match (named(shim.map_or(command, |shim| &shim.name)), shim) {
        (Some(path), shim) => Program::named(path, directory)
            .map(|program| Program { shim: shim.map(|shim| shim.path.clone()), ..program }),
        (None, Some(shim)) => Program::behind(shim, directory),
        (None, None) => Program::find(command, directory),
    };
    found.map_err(|error: ProgramError| {
        let status = if error.was_found() { ExitStatus::CannotExecute } else { ExitStatus::NotFound };
        Error::new(status, error.to_string()).advise(error.advice())
    })
}

fn judge<'d, 'p>(
    command: &OsStr,
    decision: &'d Decision<'p>,
    journal: &Journal<'_>,
) -> Result<&'d Terms<'p>, Error> {
    match &decision.verdict {
        Verdict::Start(terms) => Ok(terms),
        Verdict::Denied { rule, matches } => {
            journal.denied(Some(rule));
            Err(Denial::of_rule(command, rule, matches))
        }
        Verdict::Unmatched => {
            journal.denied(None);
            Err(Denial::unmatched(command))
        }
        Verdict::LookupFailed { rule, failure } => Err(Error::new(
            ExitStatus::System,
            format!(
                "{}: not started: your groups could not be looked up\n  {failure}\n  needed by rule \"{}\", {}",
                visible(command),
                visible(rule.shown_name()),
                rule.place()
            ),
        )
        .advise("A limit that cannot be checked is not skipped. Tell your administrator.".to_owned())),
    }
}

fn report(command: &OsStr, asked: &Asked<'_>, admitted: &Admitted) {
    let held: Vec<String> = admitted.slots().iter().map(described).collect();
    let what = if held.is_empty() { "no slot".to_owned() } else { held.join(", ") };
    let claims = asked.claims();
    let without: Vec<String> = admitted
        .unenforced()
        .iter()
        .filter_map(|number| claims.get(*number))
        .map(|claim| format!("; {} is full, but not enforced", visible(&claim.name)))
        .collect();
    stream::complain(&format!("rungate: {}: starts with {what}{}", visible(command), without.concat()));
}

fn described(held: &NamedSlots) -> String {
    let slots: Vec<String> = held.slots.iter().map(u64::to_string).collect();
    format!("{} slot {}", visible(&held.name), slots.join(","))
}

fn not_started(command: &OsStr, error: &StartError) -> Error {
    match error {
        StartError::Repository(error) => cannot_take(command, error),
        StartError::Call(_) => Error::new(ExitStatus::System, format!("{}: {error}", visible(command))),
        StartError::Exec { .. } => {
            let status = if error.is_missing() { ExitStatus::NotFound } else { ExitStatus::CannotExecute };
            Error::new(status, error.to_string())
        }
    }
}

fn cannot_take(command: &OsStr, error: &RepositoryError) -> Error {
    Error::new(ExitStatus::Repository, format!("{}: not started: {error}", visible(command)))
        .advise(error.advice())
}

fn no_policy(order: &Order) -> Error {
    let command = visible(&order.command);
    let advice = match &order.shim {
        None => {
            format!("Give one with --policy FILE, or a cap without one: rungate run --limit 1 -- {command}")
        }
        Some(shim) => format!(
            "Write one to begin with: rungate init {command}; or remove the shim: rm {}",
            visible(&shim.path)
        ),
    };
    let text = format!("{command}: not started: there is no policy that says what may start");
    Error::new(ExitStatus::Policy, text).advise(advice)
}
