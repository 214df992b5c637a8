//! The tables of one layer, printed key by key.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    path::PathBuf,
};

use crate::{
    judge::terms::{Keeper, Keyword},
    policy::{
        Acquisition, Action, ClaimTerms, Layer, LayerKind, Log, LogTarget, Policy, Repository, Reservation,
        Rule, SlotsFrom, Table,
        place::Place,
        repository::{limits, outside::Measuring, pace},
        rule::Slots,
        toml_text::{inline_table, key, list, string},
    },
};

/// A layer of a policy that is being printed.
pub(super) struct Printing<'p, 'n> {
    pub(super) policy: &'p Policy,
    pub(super) names: &'n RepositoryNames,
    pub(super) index: usize,
}

impl<'p> Printing<'p, '_> {
    /// Its tables, in the order in which they are printed.
    pub(super) fn parts(&self, layer: &'p Layer) -> Vec<Part<'p>> {
        let mut parts = Vec::new();
        // A delegated file has the defaults of the system, and cannot change them.
        if layer.kind != LayerKind::Delegated {
            parts.push(Part::only(PartKind::Defaults, defaults(layer)));
        }
        if layer.kind == LayerKind::System {
            parts.extend(self.delegations());
        }
        parts.extend(layer.log.iter().map(|log| Part::only(PartKind::Log, print_log(log))));
        parts.extend(self.commands());
        parts.extend(self.repositories());
        parts.extend(self.rules());
        parts
    }

    fn delegations(&self) -> impl Iterator<Item = Part<'p>> {
        self.policy.delegations.iter().map(|delegation| {
            let mut keys = Table::default();
            delegation.printed().for_each(|(key, value)| keys.set(key, value));
            Part { name: delegation.file().to_owned(), ..Part::only(PartKind::Delegation, keys) }
        })
    }

    fn commands(&self) -> Vec<Part<'p>> {
        let is_here = |(_, (layer, _)): &(&String, &(usize, _))| *layer == self.index;
        let mut commands: Vec<_> = self.policy.executables.iter().filter(is_here).collect();
        commands.sort();
        let part = |(command, (_, program)): (&String, &(usize, PathBuf))| {
            let mut keys = Table::default();
            keys.set("exec", string(&program.to_string_lossy()));
            Part { name: command.clone(), ..Part::only(PartKind::Command, keys) }
        };
        commands.into_iter().map(part).collect()
    }

    fn repositories(&self) -> impl Iterator<Item = Part<'p>> {
        let here = self.policy.repositories.iter().enumerate();
        let here = here.filter(|(_, repository)| repository.layer == self.index);
        here.map(|(number, repository)| Part {
            kind: PartKind::Repository,
            name: self.names.of(number).to_owned(),
            place: Some(repository.place()),
            keys: print_repository(repository),
        })
    }

    fn rules(&self) -> impl Iterator<Item = Part<'p>> {
        let mut taken: HashMap<&str, usize> = HashMap::new();
        self.policy.rules.iter().filter(|rule| rule.layer == self.index).map(move |rule| {
            let uses = taken.entry(&rule.shown_name).or_default();
            *uses += 1;
            let name = if *uses == 1 {
                rule.shown_name.to_string()
            } else {
                format!("{} ({uses})", rule.shown_name)
            };
            Part { kind: PartKind::Rule, name, place: Some(rule.place()), keys: self.rule(rule) }
        })
    }

    fn rule(&self, rule: &Rule) -> Table {
        let Rule {
            name: _,
            shown_name: _,
            place: _,
            layer: _,
            selectors,
            captures: _,
            except,
            family: _,
            first_of,
            order,
            action,
            message,
            contact,
            default_contact: _,
            acquire,
            from,
            enforce,
            wait,
            hold,
            needs_groups: _,
        } = rule;
        let mut text = Table::default();
        for (key, entries) in selectors.printed() {
            text.set(key, entries);
        }
        if !except.is_empty() {
            text.set("except", list(except.iter().map(|except| inline_table(except.printed()))));
        }
        text.set_some("first_of", first_of.as_deref().map(string));
        text.set_some("order", Some(*order).filter(|order| *order != 0));
        if *action != Action::Limit {
            text.set("action", string(action.word()));
        }
        if action.acquires() {
            text.set("acquire", list(acquire.iter().map(|acquisition| self.acquisition(acquisition))));
        }
        let names = |from: &Vec<usize>| list(from.iter().map(|index| string(self.names.of(*index))));
        text.set_some("from", from.as_ref().map(names));
        text.set_some("enforce", *enforce);
        text.set_some("wait", wait.map(|wait| string(&wait.to_string())));
        text.set_some("hold", hold.map(|hold| string(hold.word())));
        text.set_some("message", message.as_deref().map(string));
        text.set_some("contact", contact.as_deref().map(string));
        text
    }

    fn acquisition(&self, acquisition: &Acquisition) -> String {
        match acquisition {
            Acquisition::One(terms) => self.claim(terms),
            Acquisition::AnyOf(alternatives) => {
                inline_table([("any_of", list(alternatives.iter().map(|terms| self.alternative(terms))))])
            }
        }
    }

    fn alternative(&self, terms: &[ClaimTerms]) -> String {
        match terms {
            [only] => self.claim(only),
            several => list(several.iter().map(|terms| self.claim(terms))),
        }
    }

    fn claim(&self, terms: &ClaimTerms) -> String {
        let name = string(self.names.of(terms.repository));
        let mut keys = vec![("repository", name.clone())];
        keys.extend(terms.ceiling.map(|ceiling| ("ceiling", ceiling.printed())));
        match terms.slots {
            Slots::Number(1) => {}
            Slots::Number(number) => keys.push(("slots", number.to_string())),
            Slots::All => keys.push(("slots", string("all"))),
        }
        keys.extend(terms.slots_from.as_ref().map(|from| {
            let after = match from.after.as_slice() {
                [only] => string(only),
                several => list(several.iter().map(|name| string(name))),
            };
            let mut keys = vec![("after", after)];
            keys.extend(from.most.map(|most| ("most", most.to_string())));
            if !from.table.is_empty() {
                let entries = from.table.iter().map(|(number, slots)| format!("{number} = {slots}"));
                keys.push(("table", format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))));
            }
            if from.unclear != SlotsFrom::default_unclear(&from.table) {
                keys.push(("unclear", string(from.unclear.word())));
            }
            ("slots_from", inline_table(keys))
        }));
        keys.extend(terms.wait.map(|wait| ("wait", string(&wait.to_string()))));
        if keys.len() == 1 { name } else { inline_table(keys) }
    }
}

fn defaults(layer: &Layer) -> Table {
    let mut text = Table::default();
    if layer.keeper == Keeper::File {
        text.set("create_mode", string(&format!("{:04o}", layer.create_mode())));
        text.set("directory", string(&layer.directory.text()));
    }
    text.set("unmatched", string(layer.unmatched.word()));
    text.set("enforce", layer.enforce);
    text.set_some("wait", layer.wait.map(|wait| string(&wait.to_string())));
    text.set_some("hold", layer.hold.map(|hold| string(hold.word())));
    text.set_some("keeper", layer.keeper.unless_default().map(string));
    text.set_some("contact", layer.contact.as_deref().map(string));
    text.set_some("time_zone", layer.zone_name.as_deref().map(string));
    text
}

fn print_log(log: &Log) -> Table {
    let mut text = Table::default();
    let to = match &log.to {
        LogTarget::Off => "off".into(),
        LogTarget::Journald => "journald".into(),
        LogTarget::Syslog => "syslog".into(),
        LogTarget::File(path) => path.text().to_owned(),
    };
    text.set("to", string(&to));
    text.set_some("replay", log.replay.then_some(true));
    text
}

impl Repository {
    /// Its keys with their values, a line for each.
    pub fn printed(&self) -> String {
        print_repository(self).to_string()
    }
}

fn print_repository(repository: &Repository) -> Table {
    let Repository {
        name: _,
        shown_name: _,
        place: _,
        layer: _,
        path,
        limit,
        limits,
        reservations,
        names,
        outside,
        settings,
        keeping,
        pace,
        sharing,
    } = repository;
    let mut text = Table::default();
    match keeping.keeper {
        Keeper::File => text.set("path", string(path.text())),
        Keeper::Agent | Keeper::Site => {
            let per = path.per();
            text.set_some(
                "per",
                (!per.is_empty()).then(|| list(per.into_iter().map(|by| string(&by.text())))),
            );
        }
    }
    text.set("limit", limit.printed());
    if !limits.is_empty() {
        text.set("limits", limits::print(limits));
    }
    if !reservations.is_empty() {
        text.set("reserve", list(reservations.iter().map(Reservation::printed)));
    }
    names.print(&mut text);
    sharing.print(&mut text);
    text.set_some("outside", outside.as_ref().map(Measuring::printed));
    settings.print(&mut text);
    keeping.print(&mut text);
    pace::print(pace, &mut text);
    text
}

// One table of a policy, with its keys in their order, as under one header.

/// The kinds of tables, in the order in which they are printed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PartKind {
    Defaults,
    /// The delegation of a drop-in.
    Delegation,
    /// Where events go.
    Log,
    /// The program behind a command.
    Command,
    Repository,
    Rule,
    /// The order of rules of a family.
    Family,
    /// The order of all rules of a layer.
    Order,
    Test,
}

impl PartKind {
    pub fn word(self) -> &'static str {
        match self {
            PartKind::Defaults => "defaults",
            PartKind::Delegation => "delegation",
            PartKind::Log => "log",
            PartKind::Command => "command",
            PartKind::Repository => "repository",
            PartKind::Rule => "rule",
            PartKind::Family => "family",
            PartKind::Order => "order of rules",
            PartKind::Test => "test",
        }
    }
}

/// One table.
#[derive(Debug)]
pub(in crate::policy) struct Part<'p> {
    pub(in crate::policy) kind: PartKind,
    /// Unique among those of its kind in a layer; empty if there is only one.
    pub(in crate::policy) name: String,
    /// Where it was written, if that is one place.
    pub(in crate::policy) place: Option<&'p Place>,
    pub(in crate::policy) keys: Table,
}

impl Part<'_> {
    /// Tables that exist only once.
    pub(super) fn only(kind: PartKind, keys: Table) -> Self {
        Part { kind, name: String::new(), place: None, keys }
    }
}

impl fmt::Display for Part<'_> {
    /// An empty line, the header, and a line for each key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { kind, name, place: _, keys } = self;
        match kind {
            PartKind::Defaults => writeln!(f, "\n[defaults]")?,
            PartKind::Delegation => writeln!(f, "\n[delegate.{}]", key(name))?,
            PartKind::Log => writeln!(f, "\n[log]")?,
            PartKind::Command => writeln!(f, "\n[command.{}]", key(name))?,
            PartKind::Repository => writeln!(f, "\n[repository.{}]", key(name))?,
            PartKind::Rule => writeln!(f, "\n[[rule]]\nname = {}", string(name))?,
            PartKind::Test => writeln!(f, "\n[[test]]\nname = {}", string(name))?,
            // Rules contain their family, and have their order.
            PartKind::Family | PartKind::Order => return Ok(()),
        }
        write!(f, "{keys}")
    }
}

// The names of repositories in the printed policy.

/// The names of repositories, unique within a layer: a number distinguishes those that two files share.
pub(super) struct RepositoryNames(Vec<String>);

impl RepositoryNames {
    pub(super) fn new(policy: &Policy) -> Self {
        let mut taken = HashSet::new();
        let unique = |repository: &Repository| {
            let numbered = (2..).map(|number| format!("{}-{number}", repository.name));
            let mut candidates = std::iter::once(repository.name.clone()).chain(numbered);
            let free = |name: &String| taken.insert((repository.layer, name.clone()));
            candidates.find(free).unwrap_or_default()
        };
        RepositoryNames(policy.repositories.iter().map(unique).collect())
    }

    /// The name of a repository, by its index.
    pub(super) fn of(&self, repository: usize) -> &str {
        &self.0[repository]
    }
}
