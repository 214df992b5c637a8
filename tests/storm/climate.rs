//! The policy of a storm: random, valid, and with limits that change while it rages.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use crate::support::{Account, Dice, Site};

/// The users of a storm.
pub(super) const USERS: [&str; 4] = ["games", "www-data", "backup", "nobody"];

/// The commands of a storm: `c0`, `c1`, …
pub(super) const COMMANDS: usize = 6;

const HIGHEST: usize = 6;

/// In this one holders are always overdue soon, and root sweeps.
pub(super) const SWEPT: usize = 2;

/// What a command wants.
#[derive(Clone, Default)]
struct Wish {
    repositories: Vec<usize>,
    alternatives: Vec<usize>,
    /// Whether it leaves slots to others.
    leaves: bool,
}

/// A repository of the storm.
struct Repository {
    limit: usize,
    for_each_user: bool,
    /// More of its keys.
    keys: String,
    /// Whether rules let launches in beyond the limit.
    is_open: bool,
    /// Whether it can be too soon.
    is_paused: bool,
}

/// Commands with users whose launches nobody may pass in a line.
pub(super) type Firm = BTreeSet<(usize, &'static str)>;

/// The policy of a storm.
pub(super) struct Climate {
    repositories: Vec<Repository>,
    rules: String,
    wishes: Vec<Wish>,
    /// Who wants the first repository, whatever the command.
    user: Option<&'static str>,
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
                keys: random_keys(dice, number == SWEPT),
                is_open: number == 4,
                is_paused: false,
            })
            .collect();
        repositories[4].keys.push_str("enforce = false\n");
        for repository in &mut repositories {
            if dice.percent(15) {
                repository.is_paused = true;
                repository.keys.push_str("if_elapsed = \"5ms\"\n");
            }
        }
        let mut rules = String::new();
        let mut wishes = Vec::new();
        for command in 0..COMMANDS {
            let (wish, claims) = random_wish(dice, command);
            wishes.push(wish);
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
        Self { repositories, rules, wishes, user: Some(user), least: 2 }
    }

    /// Whether a launch of this command keeps its place in every line in which it stands, from the first
    /// moment to the last, and nobody younger is allowed more than it is: one demand that nothing but a slot
    /// can meet, up to the very limit.
    fn is_firm(&self, command: usize, user: &str) -> bool {
        let Wish { repositories, alternatives, leaves } = &self.wishes[command];
        let of_user = self.user.filter(|one| *one == user).map(|_| 0);
        let mut single: Vec<usize> = repositories.iter().copied().chain(of_user).collect();
        single.retain(|number| !self.repositories[*number].is_open);
        single.sort_unstable();
        single.dedup();
        let are_always_there = alternatives.iter().all(|number| !self.repositories[*number].is_paused);
        let demands = single.len() + usize::from(!alternatives.is_empty());
        demands == 1 && !leaves && are_always_there
    }

    /// All such launches.
    pub(super) fn firm(&self) -> Firm {
        let all = (0..COMMANDS).flat_map(|command| USERS.map(|user| (command, user)));
        all.filter(|(command, user)| self.is_firm(*command, user)).collect()
    }

    /// One repository that everybody wants, with room for two.
    pub(super) fn narrow() -> Self {
        let repositories = vec![Repository {
            limit: 2,
            keys: String::new(),
            for_each_user: false,
            is_open: false,
            is_paused: false,
        }];
        let rules = "[[rule]]\nname = \"all\"\ncommands = [\"c*\"]\nacquire = [\"r0\"]\n".to_owned();
        let wishes = vec![Wish { repositories: vec![0], ..Wish::default() }; COMMANDS];
        Self { repositories, rules, wishes, user: None, least: 2 }
    }

    /// Other limits. The referee hears of a higher one before anybody can use it, and of a lower one when
    /// nobody starts under the higher any more.
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

    /// Whether somebody waits for one of those that everybody shares.
    pub(super) fn is_waited_for(site: &Site) -> bool {
        (0..3).any(|number| !site.line(&format!("r{number}.lock")).is_empty())
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
        text.push_str(FARM);
        replace(site, "policy.toml", &text);
    }
}

/// Its directories are made by the first launch, or by whoever was there before.
const FARM: &str = "\
    [repository.farm]\npath = \"farm/{command}/seat\"\nlimit = 2\n\
    [[rule]]\nname = \"farm\"\ncommands = [\"f0\"]\nacquire = [\"farm\"]\n";

fn random_keys(dice: &mut Dice, is_swept: bool) -> String {
    let mut keys = String::new();
    if dice.percent(25) {
        keys.push_str("hold = \"descriptor\"\n");
    }
    if is_swept || dice.percent(30) {
        keys.push_str("expire_after = \"300ms\"\nexpire_grace = \"100ms\"\n");
    }
    keys
}

/// What a command wants, and how that is written. Of each kind of line there is one in which nobody can be
/// passed.
fn random_wish(dice: &mut Dice, command: usize) -> (Wish, Vec<String>) {
    let repositories = (0..5).filter(|_| dice.percent(40)).collect();
    let mut wish = Wish { repositories, ..Wish::default() };
    if wish.repositories.is_empty() || command == 0 {
        wish.repositories = vec![0];
    }
    if command == 1 || dice.percent(50) {
        // Alone, it stands in two lines for nothing else.
        if command == 1 || dice.percent(50) {
            wish.repositories.clear();
        }
        wish.alternatives.clone_from(dice.one_of(&[vec![1, 2], vec![0, 2], vec![0, 1, 3]]));
    }
    let mut claims = Vec::new();
    for number in &wish.repositories {
        claims.push(match dice.below(10) {
            0 | 1 => format!("{{ repository = \"r{number}\", slots = 2 }}"),
            2 if command > 0 => {
                wish.leaves = true;
                format!("{{ repository = \"r{number}\", ceiling = 1 }}")
            }
            _ => format!("\"r{number}\""),
        });
    }
    if !wish.alternatives.is_empty() {
        let alternatives: Vec<String> =
            wish.alternatives.iter().map(|number| format!("\"r{number}\"")).collect();
        claims.push(format!("{{ any_of = [{}] }}", alternatives.join(", ")));
    }
    (wish, claims)
}

/// Nobody ever sees half of it.
fn replace(site: &Site, path: &str, text: &str) {
    let new = format!("{path}.new");
    site.write(&new, text);
    fs::rename(site.path(new), site.path(path)).expect("put a file in the place of another");
}
