//! Requests out of a small vocabulary, so that the rules of a random policy match now and then, and decisions as text,
//! so that two of them can be compared.

use std::{
    ffi::OsString,
    fmt::Write,
    path::{Path, PathBuf},
};

use proptest::{collection::vec, prelude::Strategy, sample::select};
use rungate::{
    decision::{Decision, Demand, Request, Unenforced, Verdict, decide},
    policy::{Invocation, LookupError, Names, Policy},
};

pub(super) const COMMANDS: &[&str] = &["matlab", "mex", "solver", "svc-a"];
pub(super) const USERS: &[&str] = &["ann", "bob", "tutor1"];
pub(super) const GROUPS: &[&str] = &["cad", "sim", "students"];
pub(super) const HOSTS: &[&str] = &["ws17", "farm2", "lab"];
pub(super) const DIRECTORIES: &[&str] = &["/", "/proj/a", "/proj/a/b"];
pub(super) const ARGUMENTS: &[&str] = &["-np", "8", "-batch", "x/y", ""];

/// The databases: users and groups have the number of their place in the vocabulary.
struct Databases;

const FIRST: u32 = 2000;

fn named(names: &[&str], number: u32) -> Option<String> {
    names.get(usize::try_from(number.checked_sub(FIRST)?).ok()?).map(|name| (*name).to_owned())
}

fn numbered(names: &[&str], name: &str) -> Option<u32> {
    (FIRST..).zip(names).find(|(_, known)| **known == name).map(|(number, _)| number)
}

impl Names for Databases {
    fn user_name(&self, uid: u32) -> Result<Option<String>, LookupError> {
        Ok(named(USERS, uid))
    }

    fn user_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        Ok(numbered(USERS, name))
    }

    fn group_id(&self, name: &str) -> Result<Option<u32>, LookupError> {
        Ok(numbered(GROUPS, name))
    }

    fn group_name(&self, gid: u32) -> Result<Option<String>, LookupError> {
        Ok(named(GROUPS, gid))
    }

    fn in_netgroup(&self, netgroup: &str, _: &str, user: &str) -> Result<bool, LookupError> {
        Ok(netgroup == "lab" && user == "ann")
    }
}

/// A request that owns what it is made of.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    command: &'static str,
    arguments: Vec<OsString>,
    user: u32,
    groups: Vec<u32>,
    host: &'static str,
    directory: &'static str,
    project: Option<&'static str>,
    hour: i64,
}

/// Any launch.
pub(super) fn launches() -> impl Strategy<Value = Launch> {
    let people = (0..4u32, vec(0..4u32, 0..3));
    let place =
        (select(HOSTS), select(DIRECTORIES), select(vec![None, Some("apollo"), Some("")]), 0..24 * 7i64);
    (select(COMMANDS), vec(select(ARGUMENTS), 0..4), people, place).prop_map(
        |(command, arguments, (user, groups), (host, directory, project, hour))| Launch {
            command,
            arguments: arguments.into_iter().map(OsString::from).collect(),
            user: FIRST + user,
            groups: groups.into_iter().map(|group| FIRST + group).collect(),
            host,
            directory,
            project,
            hour,
        },
    )
}

impl Launch {
    /// Where its program is.
    pub(super) fn program(&self) -> PathBuf {
        PathBuf::from("/usr/bin").join(self.command)
    }

    /// Its command as the entries of `commands` see it.
    pub(super) fn invocation<'a>(&self, program: &'a Path) -> Invocation<'a> {
        Invocation::new(self.command.as_ref(), program, program)
    }

    /// What a policy says of it, to the last detail, save what things are called.
    pub(super) fn judged_by(&self, policy: &Policy) -> String {
        self.decided_by(policy, show)
    }

    /// What a policy says of it, and what the rules are called that matter, save what becomes of the others.
    pub(super) fn told_by(&self, policy: &Policy) -> String {
        self.decided_by(policy, |decision| {
            let mut text = verdict(decision);
            for entry in decision.trace.iter().filter(|entry| entry.matches()) {
                let _ = writeln!(text, "{} {}", entry.rule.shown_name(), entry.rule.place());
            }
            if let Verdict::Start(terms) = &decision.verdict {
                for claim in terms.demands.iter().flat_map(Demand::claims) {
                    let _ = writeln!(text, "{} {}", claim.repository.shown_name(), claim.repository.place());
                }
            }
            text
        })
    }

    fn decided_by(&self, policy: &Policy, tell: impl Fn(&Decision<'_>) -> String) -> String {
        let path = self.program();
        let environment = |name: &str| self.project.filter(|_| name == "PROJECT").map(OsString::from);
        let now = jiff::Timestamp::from_second(1_795_000_000 + 3600 * self.hour).expect("a time");
        let decision = decide(
            policy,
            &Request {
                typed: self.command.as_ref(),
                arguments: &self.arguments,
                path: &path,
                canonical: &path,
                uid: self.user,
                gids: &self.groups,
                host: self.host.as_ref(),
                directory: self.directory.as_ref(),
                environment: &environment,
                now,
                cpus: &|| 4,
                runtime: "/run/user/2000/rungate".as_ref(),
                names: &Databases,
            },
        );
        tell(&decision)
    }
}

fn show(decision: &Decision<'_>) -> String {
    let mut text = verdict(decision);
    for entry in &decision.trace {
        let _ = writeln!(text, "{:?}", entry.outcome);
    }
    text
}

fn verdict(decision: &Decision<'_>) -> String {
    let mut text = String::new();
    match &decision.verdict {
        Verdict::Start(terms) => {
            for refusal in &terms.would_refuse {
                let _ = match refusal {
                    Unenforced::Denied(rule) => writeln!(text, "would refuse {:?}", rule.message()),
                    Unenforced::Unmatched => writeln!(text, "would refuse the unmatched"),
                };
            }
            let _ = writeln!(text, "exempt {} {:?} {:?}", terms.exempt.is_some(), terms.wait, terms.hold);
            for demand in &terms.demands {
                let _ = writeln!(text, "one of {}", demand.claims().len());
                for claim in demand.claims() {
                    let numbers = (claim.limit, claim.ceiling, claim.slots, &claim.zones, claim.owner);
                    let creation = (&claim.base, claim.create_base, claim.create_mode, claim.directory_mode);
                    let kind = (claim.nested, claim.admit_always, claim.enforce, claim.repository.pace());
                    let _ = writeln!(
                        text,
                        "{} {:?} {numbers:?} {creation:?} {kind:?}",
                        claim.path.display(),
                        claim.member
                    );
                    let _ = writeln!(
                        text,
                        "{:?}",
                        claim.rules.iter().map(|rule| rule.message()).collect::<Vec<_>>()
                    );
                }
            }
        }
        Verdict::Denied { rule, matches } => {
            let _ = writeln!(text, "denied {:?} {matches}", rule.message());
        }
        Verdict::Unmatched => text.push_str("unmatched"),
        Verdict::LookupFailed { failure, .. } => text.push_str(&failure.to_string()),
    }
    text
}
