//! The policy of a storm: random, valid, and with limits that change while it rages.

use std::fmt::Write as _;
use std::fs;

use crate::support::{Account, Dice, Site};

/// The users of a storm.
pub(super) const USERS: [&str; 4] = ["games", "www-data", "backup", "nobody"];

/// The commands of a storm: `c0`, `c1`, …
pub(super) const COMMANDS: usize = 6;

const HIGHEST: usize = 6;

/// A repository of the storm.
struct Repository {
    limit: usize,
    for_each_user: bool,
    /// More of its keys.
    keys: String,
    /// Whether rules let launches in beyond the limit.
    is_open: bool,
}

/// The policy of a storm.
pub(super) struct Climate {
    repositories: Vec<Repository>,
    rules: String,
    /// The lowest limit that a repository ever gets, for peers, who bring their own.
    pub(super) least: usize,
}

impl Climate {
    /// A random one.
    pub(super) fn any(dice: &mut Dice) -> Self {
        let mut repositories: Vec<Repository> = (0..5)
            .map(|number| Repository {
                limit: dice.between(2, HIGHEST),
                for_each_user: number == 3,
                keys: random_keys(dice),
                is_open: number == 4,
            })
            .collect();
        repositories[4].keys.push_str("enforce = false\n");
        let mut rules = String::new();
        for command in 0..COMMANDS {
            let mut wanted: Vec<usize> = (0..5).filter(|_| dice.percent(40)).collect();
            if wanted.is_empty() {
                wanted.push(0);
            }
            let mut claims: Vec<String> = wanted.iter().map(|number| claim(dice, *number)).collect();
            if dice.percent(30) {
                claims.push(r#"{ any_of = ["r1", "r2"] }"#.to_owned());
            }
            let _ = write!(
                rules,
                "[[rule]]\nname = \"rule {command}\"\ncommands = [\"c{command}\"]\nacquire = [{}]\n",
                claims.join(", ")
            );
        }
        let user = USERS[dice.below(USERS.len())];
        let _ = write!(
            rules,
            "[[rule]]\nname = \"one user\"\ncommands = [\"c*\"]\nusers = [\"{user}\"]\nacquire = [\"r0\"]\n"
        );
        Self { repositories, rules, least: 2 }
    }

    /// One repository that everybody wants, with room for two.
    #[cfg(feature = "deliberate-faults")]
    pub(super) fn narrow() -> Self {
        let repositories =
            vec![Repository { limit: 2, for_each_user: false, keys: String::new(), is_open: false }];
        let rules = "[[rule]]\nname = \"all\"\ncommands = [\"c*\"]\nacquire = [\"r0\"]\n".to_owned();
        Self { repositories, rules, least: 2 }
    }

    /// Other limits. The referee hears of a higher one before anybody can use it, and of a lower one when nobody starts under
    /// the higher any more.
    pub(super) fn change(&mut self, site: &Site, dice: &mut Dice) {
        let before: Vec<usize> = self.repositories.iter().map(|repository| repository.limit).collect();
        for repository in &mut self.repositories {
            repository.limit = dice.between(self.least, HIGHEST);
        }
        let highest: Vec<usize> =
            self.repositories.iter().zip(before).map(|(now, before)| now.limit.max(before)).collect();
        self.announce(site, &highest);
        self.publish(site);
        self.announce_all(site);
    }

    /// Begins.
    pub(super) fn begin(&self, site: &Site) {
        self.publish(site);
        self.announce_all(site);
    }

    fn announce_all(&self, site: &Site) {
        let limits: Vec<usize> = self.repositories.iter().map(|repository| repository.limit).collect();
        self.announce(site, &limits);
    }

    fn announce(&self, site: &Site, limits: &[usize]) {
        let mut text = String::new();
        for (number, (repository, limit)) in self.repositories.iter().zip(limits).enumerate() {
            let limit = if repository.is_open { "*".to_owned() } else { limit.to_string() };
            if repository.for_each_user {
                for user in USERS.map(Account::named) {
                    let _ = writeln!(text, "r{number} {uid} r{number}.{uid}.lock {limit}", uid = user.uid);
                }
            } else {
                let _ = writeln!(text, "r{number} * r{number}.lock {limit}");
            }
        }
        replace(site, "work/caps", &text);
    }

    fn publish(&self, site: &Site) {
        let mut text =
            "version = 1\ndefaults.directory = \"$DIR/repositories\"\ndefaults.create_mode = \"0666\"\n\
            log = { to = \"off\" }\n"
                .to_owned();
        for (number, Repository { limit, for_each_user, keys, .. }) in self.repositories.iter().enumerate() {
            let per = if *for_each_user { "per = \"user\"\n" } else { "" };
            let _ = write!(text, "[repository.r{number}]\nlimit = {limit}\n{per}{keys}");
        }
        text.push_str(&self.rules);
        replace(site, "policy.toml", &text);
    }
}

fn random_keys(dice: &mut Dice) -> String {
    let mut keys = String::new();
    if dice.percent(25) {
        keys.push_str("hold = \"descriptor\"\n");
    }
    if dice.percent(30) {
        keys.push_str("expire_after = \"300ms\"\nexpire_grace = \"100ms\"\n");
    }
    if dice.percent(15) {
        keys.push_str("if_elapsed = \"5ms\"\n");
    }
    keys
}

fn claim(dice: &mut Dice, number: usize) -> String {
    match dice.below(10) {
        0 | 1 => format!("{{ repository = \"r{number}\", slots = 2 }}"),
        2 => format!("{{ repository = \"r{number}\", leave = 1 }}"),
        _ => format!("\"r{number}\""),
    }
}

/// Nobody ever sees half of it.
fn replace(site: &Site, path: &str, text: &str) {
    let new = format!("{path}.new");
    site.write(&new, text);
    fs::rename(site.path(new), site.path(path)).expect("put a file in the place of another");
}
