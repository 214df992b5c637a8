//! Requests out of a small vocabulary, so that the rules of a random policy match now and then, and decisions
//! as text, so that two of them can be compared.

use std::{ffi::OsString, fmt::Write, path::PathBuf};

use proptest::{collection::vec, prelude::Strategy, sample::select};
use rungate::{
    judge::{
        Decision, Request, Unenforced, Verdict, decide,
        terms::{
            claim::Claim,
            claim::{LookupError, Names},
        },
    },
    policy::Policy,
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
    /// Whether its command begins so and its user is in this group.
    pub(super) fn is_of(&self, command: &str, group: &str) -> bool {
        self.command.starts_with(command)
            && numbered(GROUPS, group).is_some_and(|gid| self.groups.contains(&gid))
    }

    /// What a policy says of it, to the last detail, except what things are called.
    pub(super) fn judged_by(&self, policy: &Policy) -> String {
        let path = PathBuf::from("/usr/bin").join(self.command);
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
        show(&decision)
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
            let _ = writeln!(text, "exempt {} {:?}", terms.exempt.is_some(), terms.hold);
            for demand in &terms.demands {
                let lengths: Vec<usize> = demand.alternatives().map(<[_]>::len).collect();
                let _ = writeln!(text, "one of {lengths:?}");
                for claim in demand.claims() {
                    let Claim {
                        repository: _,
                        member,
                        origins,
                        location,
                        amount,
                        limit_of,
                        names,
                        out_of_order,
                        kept,
                        pace,
                        nested,
                        wait,
                        queue,
                        reserved,
                        unclear,
                        outside,
                    } = claim;
                    let _ = writeln!(text, "{member:?} {location:?} {amount:?} {pace:?} {nested:?}");
                    // What is printed has aliases replaced, so that whom an entry is for is another text.
                    let until = limit_of.as_ref().and_then(|limit_of| limit_of.until.as_ref());
                    let kept: Vec<_> = kept.iter().map(|kept| (kept.slots, &kept.whom.until)).collect();
                    let _ = writeln!(text, "{until:?} {kept:?} {reserved:?} {names:?} {out_of_order:?}");
                    let _ = writeln!(text, "{wait:?} {queue:?} {unclear:?} {outside:?}");
                    let _ = writeln!(
                        text,
                        "{:?}",
                        origins.iter().map(|origin| &origin.message).collect::<Vec<_>>()
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
