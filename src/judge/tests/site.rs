//! A site with a few users and groups, as a double of the system's databases, and the requests that its users
//! make.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::databases::{Databases, GROUPS, USERS};
use crate::{
    judge::{
        Decision, Request, Unenforced, Verdict, decide, decide_within, limit_of_most, listed, personal,
        terms::{Admit, Claim, Demand, FileLocation, Location, Slots},
    },
    policy::{LayerKind, LayerText, Policy},
    text::SourceText,
};

/// One launch at the site: ann, of the group users, starts matlab on ws17 on a Friday afternoon, unless said
/// otherwise.
pub(super) struct Launch {
    layers: Vec<LayerText>,
    by_root: bool,
    typed: OsString,
    path: PathBuf,
    canonical: PathBuf,
    arguments: Vec<OsString>,
    uid: u32,
    gids: Vec<u32>,
    host: OsString,
    directory: PathBuf,
    environment: Vec<(String, OsString)>,
    now: Timestamp,
    cpus: u32,
    databases: Databases,
}

/// A launch under a system policy with this text.
pub(super) fn under(policy: &str) -> Launch {
    Launch {
        layers: vec![layer(LayerKind::System, "/etc/rungate/policy.toml", policy)],
        by_root: false,
        typed: "matlab".into(),
        path: "/opt/rungate/bin/matlab".into(),
        canonical: "/opt/matlab/R2024a/bin/matlab".into(),
        arguments: Vec::new(),
        uid: 4711,
        gids: vec![100],
        host: "ws17.example".into(),
        directory: "/home/ann".into(),
        environment: Vec::new(),
        now: "2026-11-20T13:02:00Z".parse().expect("a time"),
        cpus: 8,
        databases: Databases::default(),
    }
}

fn layer(kind: LayerKind, path: &str, text: &str) -> LayerText {
    LayerText { kind, files: vec![SourceText::new(path, text)] }
}

impl Launch {
    /// Adds a drop-in to the last layer.
    pub(super) fn drop_in(mut self, name: &str, text: &str) -> Self {
        let file = SourceText::new(format!("/etc/rungate/policy.d/{name}"), text);
        self.layers.last_mut().expect("a layer").files.push(file);
        self
    }

    /// Adds a drop-in that is delegated.
    pub(super) fn delegated(mut self, name: &str, text: &str) -> Self {
        self.layers.push(layer(LayerKind::Delegated, &format!("/etc/rungate/policy.d/{name}"), text));
        self
    }

    pub(super) fn given(mut self, text: &str) -> Self {
        self.layers.push(layer(LayerKind::Given, "/home/ann/given.toml", text));
        self
    }

    pub(super) fn own(mut self, text: &str) -> Self {
        self.layers.push(layer(LayerKind::Own, "/home/ann/.config/rungate/policy.toml", text));
        self
    }

    pub(super) fn by_root(mut self) -> Self {
        self.by_root = true;
        self.user("root")
    }

    pub(super) fn user(self, name: &str) -> Self {
        let uid = USERS.iter().find(|(_, known)| *known == name).expect("a user of the site").0;
        self.uid(uid)
    }

    pub(super) fn uid(mut self, uid: u32) -> Self {
        self.uid = uid;
        self
    }

    pub(super) fn groups<const N: usize>(mut self, names: [&str; N]) -> Self {
        let gid =
            |name: &str| GROUPS.iter().find(|(_, known)| *known == name).expect("a group of the site").0;
        self.gids = names.into_iter().map(gid).collect();
        self
    }

    pub(super) fn gids<const N: usize>(mut self, gids: [u32; N]) -> Self {
        self.gids = gids.into();
        self
    }

    pub(super) fn command(mut self, typed: &str) -> Self {
        let name = typed.rsplit('/').next().unwrap_or(typed);
        self.typed = typed.into();
        self.path = if typed.starts_with('/') { typed.into() } else { Path::new("/usr/bin").join(name) };
        self.canonical.clone_from(&self.path);
        self
    }

    pub(super) fn canonical(mut self, path: &str) -> Self {
        self.canonical = path.into();
        self
    }

    pub(super) fn arguments<T: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
        self
    }

    pub(super) fn host(mut self, host: &str) -> Self {
        self.host = host.into();
        self
    }

    pub(super) fn directory(mut self, directory: &str) -> Self {
        self.directory = directory.into();
        self
    }

    pub(super) fn variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    pub(super) fn at(mut self, instant: &str) -> Self {
        self.now = instant.parse().expect("an instant");
        self
    }

    pub(super) fn broken(mut self, call: &str) -> Self {
        self.databases.broken.push(call.into());
        self
    }

    fn policy(&self) -> Policy {
        let copy = |layer: &LayerText| LayerText {
            kind: layer.kind,
            files: layer.files.iter().map(|file| SourceText::new(file.path(), file.text())).collect(),
        };
        let policy = Policy::of_layers(self.layers.iter().map(copy).collect(), self.by_root);
        policy.unwrap_or_else(|faults| panic!("the policy has faults:\n{faults}"))
    }

    /// Judges the launch and hands the decision on.
    pub(super) fn with<T>(&self, look: impl FnOnce(&Policy, &Decision<'_>) -> T) -> T {
        self.with_request(|policy, request| look(policy, &decide(policy, request)))
    }

    /// The rule that would compare more than this, if there is one.
    pub(super) fn costly(&self, most: u64) -> Option<String> {
        self.with_request(|policy, request| {
            decide_within(policy, request, most).err().map(|rule| rule.shown_name().to_string())
        })
    }

    fn with_request<T>(&self, look: impl FnOnce(&Policy, &Request<'_>) -> T) -> T {
        let policy = self.policy();
        let environment = |name: &str| {
            let found = self.environment.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        let request = Request {
            typed: &self.typed,
            arguments: &self.arguments,
            path: &self.path,
            canonical: &self.canonical,
            uid: self.uid,
            gids: &self.gids,
            host: &self.host,
            directory: &self.directory,
            environment: &environment,
            now: self.now,
            cpus: &|| self.cpus,
            runtime: Path::new("/run/user/4711/rungate"),
            names: &self.databases,
        };
        look(&policy, &request)
    }

    /// What is to be done, in one line.
    #[track_caller]
    pub(super) fn gives(self, expected: &str) -> Self {
        self.with(|_, decision| assert_eq!(show(&decision.verdict), expected));
        self
    }

    /// What the caller is told of everything that they start, in one line.
    #[track_caller]
    pub(super) fn allows(self, expected: &str) -> Self {
        self.with_request(|policy, request| {
            let personal = personal(policy, request).expect("look-ups");
            let mut parts: Vec<String> = personal.claims.iter().map(show_claim).collect();
            parts.extend(personal.open.iter().map(|one| format!("{} by command", one.shown_name())));
            parts.extend(personal.denied.map(|rule| format!("denied by {}", rule.shown_name())));
            parts.extend(personal.unmatched.then(|| "unmatched".to_owned()));
            parts.extend(personal.exempt.map(|rule| format!("exempt by {}", rule.shown_name())));
            assert_eq!(parts.join(", "), expected);
        });
        self
    }

    /// The limit of the members of each repository that are not named.
    pub(super) fn limits_of_most(&self) -> Vec<u64> {
        self.with_request(|policy, request| {
            policy.repositories().iter().map(|one| limit_of_most(policy, one, request)).collect()
        })
    }

    /// What a listing says is kept of the slots of each repository, and for whom.
    pub(super) fn listed_as_kept(&self) -> Vec<String> {
        self.with_request(|policy, request| {
            let kept = |one| listed(policy, one, request, None, b"").expect("look-ups").kept;
            let kept = policy.repositories().iter().flat_map(kept);
            kept.map(|(slots, whom)| format!("{}-{} for {whom}", slots.start(), slots.end())).collect()
        })
    }

    /// The result of every rule.
    #[track_caller]
    pub(super) fn traces<const N: usize>(self, expected: [&str; N]) -> Self {
        self.with(|policy, decision| {
            let trace: Vec<String> = decision.trace.iter().map(|entry| entry.describe(policy)).collect();
            assert_eq!(trace, expected);
        });
        self
    }

    /// The files of all claims.
    #[track_caller]
    pub(super) fn locks<const N: usize>(self, expected: [&str; N]) -> Self {
        assert_eq!(self.paths(), expected.map(PathBuf::from));
        self
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.claims(|claims| claims.iter().map(|claim| file(claim).path.clone()).collect())
    }

    /// Hands on all claims, alternatives one after the other.
    pub(super) fn claims<T>(&self, look: impl FnOnce(&[&Claim]) -> T) -> T {
        self.with(|_, decision| {
            let Verdict::Start(terms) = &decision.verdict else { panic!("it does not start") };
            let claims: Vec<&Claim> = terms.demands.iter().flat_map(Demand::claims).collect();
            look(&claims)
        })
    }

    /// The look-ups that were made.
    #[track_caller]
    pub(super) fn asks<const N: usize>(self, expected: [&str; N]) -> Self {
        self.databases.asked.borrow_mut().clear();
        self.with(|_, _| ());
        assert_eq!(*self.databases.asked.borrow(), expected);
        self
    }

    /// The codes of the faults of the policy.
    #[track_caller]
    pub(super) fn faults<const N: usize>(self, expected: [&str; N]) {
        let faults = Policy::of_layers(self.layers, self.by_root).expect_err("a policy with faults");
        let codes: Vec<&str> = faults.iter().map(|fault| fault.code).collect();
        assert_eq!(codes, expected, "\n{faults}");
    }
}

fn show(verdict: &Verdict<'_>) -> String {
    let mut parts = Vec::new();
    match verdict {
        Verdict::Start(terms) => {
            for refusal in &terms.would_refuse {
                parts.push(match refusal {
                    Unenforced::Denied(rule) => format!("would be denied by {}", rule.shown_name()),
                    Unenforced::Unmatched => "would be unmatched".into(),
                });
            }
            if let Some(rule) = terms.exempt {
                parts.push(format!("exempt by {}", rule.shown_name()));
            }
            for demand in &terms.demands {
                let show = |claims: &[Claim]| claims.iter().map(show_claim).collect::<Vec<_>>().join(" + ");
                parts.push(demand.alternatives().map(show).collect::<Vec<_>>().join(" or "));
            }
            if parts.is_empty() {
                parts.push("free".into());
            }
        }
        Verdict::Denied { rule, matches } => {
            parts.push(format!("denied by {}: {matches}", rule.shown_name()));
        }
        Verdict::Unmatched => parts.push("unmatched".into()),
        Verdict::LookupFailed { rule, failure } => parts.push(format!("{}: {failure}", rule.shown_name())),
    }
    parts.join(", ")
}

/// Where a claim's slots are kept.
pub(super) fn file(claim: &Claim) -> &FileLocation {
    match &claim.location {
        Location::File(file) => file,
        Location::Agent(other) => panic!("{} is no lock file", other.table),
        Location::Memory(name) => panic!("{name} is no lock file"),
    }
}

/// A claim as `slots of limit repository [member]`, with what is unusual about it.
fn show_claim(claim: &Claim) -> String {
    let slots = match claim.amount.slots {
        Slots::Number(number) => number.to_string(),
        Slots::All => "all".into(),
    };
    let member =
        claim.member_name(&Databases::default()).map_or_else(String::new, |member| format!(" [{member}]"));
    let admit = match claim.amount.admit {
        Admit::WithinLimit => "",
        Admit::Always => " always",
        Admit::Unenforced => " tried",
    };
    format!("{slots} of {} {}{member}{admit}", claim.amount.effective_limit(), claim.repository)
}
