//! `rungate policy check --from LOG`: what happened is what is expected of the policy. A launch that started
//! has to start again, at once or after a wait. One that was refused and would start now is told, and is no
//! failure: most changes are made for that.

use std::{
    collections::{BTreeMap, HashSet},
    path::PathBuf,
};

use serde_json::{Value, json};

use crate::{
    judge::terms::names::Names,
    launch::situation::Situation,
    policy::Policy,
    text::{error::Error, escape::visible, figures::count},
    tools::{
        logs::{
            simulate,
            simulation::{judge::Terms, sweep::Trial},
            statistics::fate::Fate,
        },
        shared::file_accounts::KnownAccounts,
    },
};

/// Launches of one user with one command that went otherwise.
pub(super) struct Changed {
    user: String,
    command: String,
    then: Fate,
    now: Fate,
    launches: u64,
}

/// What came of a log.
pub(super) struct FromLog {
    launches: u64,
    /// Who started, and would be refused.
    refused: Vec<Changed>,
    /// Who was refused, and would start.
    started: Vec<Changed>,
    /// Launches that would start or not, depending on ends that the log does not tell.
    undecided: u64,
}

impl FromLog {
    /// Plays the launches of logs under the policy.
    pub(super) fn play(
        policy: &Policy,
        logs: &[PathBuf],
        accounts: &KnownAccounts,
        situation: &Situation,
    ) -> Result<Self, Error> {
        let traffic = simulate::traffic_of(situation, policy, logs)?;
        let trial = Trial { traffic: &traffic, accounts, terms: Terms::default(), seed: 1 };
        let undecided: HashSet<usize> = trial.undecided(policy).into_iter().collect();
        let mut changes: BTreeMap<(u32, Fate, Fate), u64> = BTreeMap::new();
        trial.play(policy, 0, &mut |launch, outcome| {
            let then = outcome.then.unwrap_or(outcome.fate);
            if undecided.contains(&launch) {
                return;
            }
            if then.has_started() != outcome.fate.has_started() {
                *changes.entry((traffic.launches[launch].kind, then, outcome.fate)).or_default() += 1;
            }
        });
        let mut by_name: BTreeMap<(String, String, Fate, Fate), u64> = BTreeMap::new();
        for ((kind, then, now), launches) in changes {
            let kind = &traffic.kinds[kind as usize];
            let user = accounts.user_name(kind.uid).ok().flatten().unwrap_or_else(|| kind.uid.to_string());
            *by_name.entry((user, kind.command.clone(), then, now)).or_default() += launches;
        }
        let changed = by_name.into_iter().map(|((user, command, then, now), launches)| Changed {
            user,
            command,
            then,
            now,
            launches,
        });
        let mut changed: Vec<Changed> = changed.collect();
        changed.sort_by_key(|changed| std::cmp::Reverse(changed.launches));
        let (refused, started) = changed.into_iter().partition(|changed| changed.then.has_started());
        Ok(Self {
            launches: traffic.launches.len() as u64,
            refused,
            started,
            undecided: undecided.len() as u64,
        })
    }

    /// Whether nobody is refused who was not.
    pub(super) fn has_passed(&self) -> bool {
        self.refused.is_empty()
    }

    /// In words: whom it would refuse, and who would start.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        if self.undecided > 0 {
            text = format!(
                "{} launches of the log: unknown for {}, because the log does not tell when programs ended before them\n\
                 To have ends logged, set replay = true in [log] and run \"rungate end --overdue\" every few minutes, or set hold \
                 = \"supervisor\".\n",
                count(self.launches),
                count(self.undecided)
            );
        } else if self.has_passed() {
            text = format!("{} launches of the log: nobody is refused who was not\n", count(self.launches));
        }
        text.extend(self.refused.iter().chain(&self.started).map(Changed::to_text));
        text
    }

    /// For scripts.
    pub(super) fn to_json(&self) -> Value {
        let all = |changed: &[Changed]| changed.iter().map(Changed::to_json).collect::<Vec<_>>();
        let (refused, started) = (all(&self.refused), all(&self.started));
        json!({ "launches": self.launches, "refused": refused, "started": started, "unknown": self.undecided })
    }
}

impl Changed {
    fn to_text(&self) -> String {
        format!(
            "{}, {}: {} launches {} then, {} now\n",
            visible(&self.user),
            visible(&self.command),
            count(self.launches),
            self.then.word(),
            self.now.word()
        )
    }

    fn to_json(&self) -> Value {
        json!({
            "user": self.user,
            "command": self.command,
            "launches": self.launches,
            "then": self.then.word(),
            "now": self.now.word(),
        })
    }
}
