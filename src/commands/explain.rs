//! `rungate explain`: what the policy says of a command, and why. The same evaluator as `run`; nothing is taken.

use std::{
    ffi::{OsStr, OsString},
    fmt::Write as _,
    path::Path,
};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    cli::ExplainArguments,
    commands::{
        look::{Look, Prospect, looks_of},
        names::{SystemNames, failed},
        print,
        run::find,
        situation::Situation,
        supposed::Supposed,
    },
    decision::{Decision, Outcome, Request, Terms, Verdict, decide},
    diagnostic::SourceText,
    error::Error,
    exit_status::ExitStatus,
    launch::program::Program,
    output::{clock::Clock, json, table::Table, visible::visible},
    policy::{Policy, Selector, Wait, show_duration},
    sys::accounts,
};

/// Explains.
pub(super) fn explain(arguments: &ExplainArguments) -> Result<u8, Error> {
    let mut situation = Situation::of_this_process()?;
    if let Some(user) = &arguments.user {
        become_user(&mut situation, user)?;
    }
    let policy = situation.load_policy(arguments.policy.policy.clone())?;
    let Some((command, words)) = arguments.command.split_first() else {
        return Err(Error::new(ExitStatus::Usage, "no command"));
    };
    let found = find(|name| policy.executable(name), command, None, &situation.directory);
    let is_missing = found.is_err();
    let program = found.unwrap_or_else(|_| Program::supposed(command, &situation.directory));
    let supposed = Supposed::of(arguments, &policy, &mut situation)?;
    let typed = arguments.typed_as.as_ref().unwrap_or(command);
    let request = Request {
        environment: &|name| supposed.variable(name),
        now: supposed.now,
        ..situation.request(typed, words, &program)
    };
    let decision = decide(&policy, &request);
    let looks = looks_of(&decision, &situation);
    let explained = Explained {
        arguments,
        situation: &situation,
        policy: &policy,
        program: &program,
        is_missing,
        decision: &decision,
        now: supposed.now,
        looks,
    };
    let text = if arguments.json { explained.json(command) } else { explained.text(command) };
    print(&text)
}

/// Another user's groups are those of the database: there is no process of his to ask.
fn become_user(situation: &mut Situation, user: &str) -> Result<(), Error> {
    let account = match user.parse() {
        Ok(uid) => accounts::account_of_uid(uid),
        Err(_) => accounts::account_of_name(user),
    };
    let lookup = |error| Error::new(ExitStatus::System, failed(error).to_string());
    let Some(account) = account.map_err(lookup)? else {
        return Err(Error::new(ExitStatus::Usage, format!("there is no user \"{}\"", visible(user))));
    };
    situation.credentials.groups = accounts::groups_of(&account).map_err(lookup)?;
    situation.credentials.gid = account.gid;
    if situation.credentials.uid != account.uid {
        situation.credentials.uid = account.uid;
        situation.forget_caller();
    }
    Ok(())
}

struct Explained<'d, 'p> {
    arguments: &'d ExplainArguments,
    situation: &'d Situation,
    policy: &'p Policy,
    program: &'d Program,
    /// The command is not on this machine: rules are judged by its name.
    is_missing: bool,
    decision: &'d Decision<'p>,
    now: Timestamp,
    looks: Vec<Look<'d, 'p>>,
}

impl Explained<'_, '_> {
    fn text(&self, command: &OsString) -> String {
        let mut text = self.request(command);
        text.push('\n');
        text += &self.rules();
        if !self.looks.is_empty() {
            text.push('\n');
            text += &self.claims();
        }
        text.push('\n');
        text += &self.now();
        text
    }

    fn request(&self, command: &OsString) -> String {
        let Situation { credentials, host, .. } = self.situation;
        let user = accounts::user_name(credentials.uid)
            .ok()
            .flatten()
            .map_or_else(|| credentials.uid.to_string(), |name| format!("{name} ({})", credentials.uid));
        let groups: Vec<String> = credentials
            .groups
            .iter()
            .map(|gid| accounts::group_name(*gid).ok().flatten().unwrap_or_else(|| gid.to_string()))
            .collect();
        let clock = Clock::in_zone(self.policy.time_zone());
        let zone = self.policy.time_zone_name().map_or_else(String::new, |name| format!(" {name}"));
        let program = if self.is_missing {
            "not found here, judged by its name".to_owned()
        } else {
            visible(&self.program.canonical)
        };
        let shim =
            self.program.shim.as_ref().map_or_else(String::new, |shim| format!(" (shim {})", visible(shim)));
        let mut text = format!("request  {} -> {program}{shim}\n", visible(command));
        let _ = writeln!(
            text,
            "         {}, groups {}, host {}, {}{}",
            visible(user),
            visible(groups.join(" ")),
            visible(host),
            clock.day_and_time(self.now.into()),
            visible(zone)
        );
        let files: Vec<String> = self.policy.files().map(SourceText::shown_path).collect();
        let _ = match files.as_slice() {
            [] => writeln!(text, "policy   none"),
            [only] => writeln!(text, "policy   {only}"),
            [first, more @ ..] => writeln!(text, "policy   {first} and {} more", more.len()),
        };
        text + &self.session()
    }

    /// Where the groups of this session and those of the database differ: a frequent surprise after a change of groups.
    fn session(&self) -> String {
        let credentials = &self.situation.credentials;
        let Ok(Some(account)) = accounts::account_of_uid(credentials.uid) else { return String::new() };
        let Ok(database) = accounts::groups_of(&account) else { return String::new() };
        let name = |gid: &u32| accounts::group_name(*gid).ok().flatten().unwrap_or_else(|| gid.to_string());
        let missing: Vec<String> =
            database.iter().filter(|gid| !credentials.groups.contains(gid)).map(name).collect();
        let extra: Vec<String> =
            credentials.groups.iter().filter(|gid| !database.contains(gid)).map(name).collect();
        let mut text = String::new();
        if !missing.is_empty() {
            let _ = writeln!(
                text,
                "note     not in this session, only in the database: {} (log in again)",
                visible(missing.join(" "))
            );
        }
        if !extra.is_empty() {
            let _ = writeln!(
                text,
                "note     only in this session, not in the database: {}",
                visible(extra.join(" "))
            );
        }
        text
    }

    fn rules(&self) -> String {
        let is_shown =
            |outcome: &Outcome| self.arguments.verbose || !matches!(outcome, Outcome::No(Selector::Commands));
        let mut table = Table::new(&["RULE", "WHERE", "RESULT"]);
        let mut hidden = 0;
        for entry in &self.decision.trace {
            if is_shown(&entry.outcome) {
                table.row([
                    visible(entry.rule.shown_name()),
                    visible(short_place(&entry.rule.place().to_string())),
                    entry.describe(self.policy).to_string(),
                ]);
            } else {
                hidden += 1;
            }
        }
        let mut text = table.render();
        if hidden > 0 {
            let _ = writeln!(text, "... {hidden} more, for other commands (-v)");
        }
        text
    }

    fn claims(&self) -> String {
        let clock = Clock::now();
        let mut table = Table::new(&["CLAIM", ">WANT", ">USED", ">LIMIT", ">WAITING", "VERDICT"]);
        for look in &self.looks {
            let unknown = || "?".to_owned();
            let survey = look.survey.as_ref();
            table.row([
                look.title(),
                look.slots().to_string(),
                survey.map_or_else(|_| unknown(), |survey| survey.used.to_string()),
                look.claim.effective_limit().to_string(),
                survey.map_or_else(|_| unknown(), |survey| survey.waiting.len().to_string()),
                look.verdict(&clock),
            ]);
        }
        table.render()
    }

    fn now(&self) -> String {
        let (verdict, status) = self.verdict();
        let mut text = match status {
            None => format!("now   {verdict}\n"),
            Some(status) => format!("now   refused, status {}: {verdict}\n", status as u8),
        };
        if let Verdict::Start(terms) = &self.decision.verdict
            && !terms.demands.is_empty()
        {
            text += &wait_and_hold(terms);
        }
        text + "Nothing was taken.\n"
    }

    /// What would happen now, and the status of a refusal.
    fn verdict(&self) -> (String, Option<ExitStatus>) {
        if self.policy.is_empty() {
            return ("there is no policy that says what may start".to_owned(), Some(ExitStatus::Policy));
        }
        match &self.decision.verdict {
            Verdict::Denied { rule, matches } => (
                format!("rule \"{}\" matches {}", visible(rule.shown_name()), visible(matches)),
                Some(ExitStatus::Denied),
            ),
            Verdict::Unmatched => {
                ("no rule allows it (unmatched = \"refuse\")".to_owned(), Some(ExitStatus::Denied))
            }
            Verdict::LookupFailed { rule, failure } => (
                format!("{failure}, needed by rule \"{}\"", visible(rule.shown_name())),
                Some(ExitStatus::System),
            ),
            Verdict::Start(terms) => self.start(terms),
        }
    }

    fn start(&self, terms: &Terms<'_>) -> (String, Option<ExitStatus>) {
        if let Some(rule) = terms.exempt {
            return (format!("starts, exempt by rule \"{}\"", visible(rule.shown_name())), None);
        }
        if terms.demands.is_empty() {
            return ("starts, with no slot: nothing limits it".to_owned(), None);
        }
        let mut looks = self.looks.iter();
        let mut refused: Vec<&Look<'_, '_>> = Vec::new();
        let mut never: Vec<String> = Vec::new();
        for demand in &terms.demands {
            let options: Vec<&Look<'_, '_>> = looks.by_ref().take(demand.claims().len()).collect();
            let passes = |look: &&Look<'_, '_>| {
                look.prospect() == Prospect::Room || look.claim.admit_always || !look.claim.enforce
            };
            if options.iter().any(passes) {
                continue;
            }
            if options.iter().all(|look| look.prospect() == Prospect::Never) {
                never.extend(options.iter().map(|look| look.title()));
            }
            refused.extend(options);
        }
        let titles = |wanted: &dyn Fn(Prospect) -> bool| -> Vec<String> {
            refused.iter().filter(|look| wanted(look.prospect())).map(|look| look.title()).collect()
        };
        let too_soon = titles(&|prospect| matches!(prospect, Prospect::TooSoon(_)));
        let full = titles(&|prospect| !matches!(prospect, Prospect::TooSoon(_) | Prospect::Never));
        if !too_soon.is_empty() {
            let text = format!("too soon after the last launch ({})", too_soon.join(", "));
            return (text, Some(ExitStatus::TooSoon));
        }
        if !never.is_empty() {
            let text = format!("{} can never give that many slots", never.join(", "));
            return (text, Some(ExitStatus::Policy));
        }
        match full.as_slice() {
            [] => ("starts".to_owned(), None),
            full => {
                let are = if full.len() == 1 { "is" } else { "are" };
                (format!("{} {are} full", full.join(", ")), Some(ExitStatus::Full))
            }
        }
    }

    fn json(&self, command: &OsString) -> String {
        let Situation { credentials, host, directory, .. } = self.situation;
        let (verdict, status) = self.verdict();
        let rules: Vec<Value> = self
            .decision
            .trace
            .iter()
            .map(|entry| {
                json!({
                    "rule": entry.rule.shown_name(),
                    "place": entry.rule.place().to_string(),
                    "matches": entry.matches(),
                    "result": entry.describe(self.policy).to_string(),
                })
            })
            .collect();
        let claims: Vec<Value> = self
            .looks
            .iter()
            .map(|look| {
                let survey = look.survey.as_ref();
                json!({
                    "repository": look.claim.repository.shown_name(),
                    "member": look.claim.member_name(&SystemNames),
                    "path": visible(&look.claim.path),
                    "wanted": look.slots(),
                    "limit": look.claim.effective_limit(),
                    "used": survey.ok().map(|survey| survey.used),
                    "waiting": survey.ok().map(|survey| survey.waiting.len()),
                    "error": survey.err(),
                    "has_room": look.prospect() == Prospect::Room,
                    "rules": look.claim.rules.iter().map(|rule| rule.shown_name()).collect::<Vec<_>>(),
                })
            })
            .collect();
        let value = json!({
            "command": command.to_string_lossy(),
            "path": visible(&self.program.path),
            "canonical": visible(&self.program.canonical),
            "found": !self.is_missing,
            "shim": self.program.shim.as_ref().map(visible),
            "uid": credentials.uid,
            "gids": credentials.groups,
            "host": host.to_string_lossy(),
            "directory": visible(directory),
            "rules": rules,
            "claims": claims,
            "starts": status.is_none(),
            "status": status.map(|status| status as u8),
            "verdict": verdict,
        });
        json::render(&value)
    }
}

fn wait_and_hold(terms: &Terms<'_>) -> String {
    let wait = match terms.wait.resolve(None) {
        Wait::For(longest) if longest.is_zero() => "none".to_owned(),
        Wait::For(longest) => format!("up to {}", show_duration(longest)),
        Wait::Forever => "until it is its turn".to_owned(),
    };
    format!("wait  {wait}\nhold  {}\n", terms.hold.resolve(None))
}

/// The last name of a path, and the one before it for a drop-in, are enough to tell policy files apart.
fn short_place(place: &str) -> String {
    let mut names = place.rsplitn(3, '/');
    match (names.next(), names.next()) {
        (Some(file), Some(directory)) if Path::new(directory).extension() == Some(OsStr::new("d")) => {
            format!("{directory}/{file}")
        }
        (file, _) => file.unwrap_or(place).to_owned(),
    }
}
