//! The policy in force, written as one file for each layer: all drop-ins merged, aliases replaced, defaults spelled out.
//! What is printed decides as the original does; comments, spelling and `[[test]]` tables are not kept.

use std::collections::{HashMap, HashSet};

use super::{
    Policy,
    acquisition::{Acquisition, ClaimTerms, Slots},
    choice::Choice,
    layer::{Layer, LayerKind},
    limit::Limit,
    log::{Log, LogEvents, LogTarget},
    pattern::Pattern,
    repository::{ElapsedFrom, ExpireKill, Nested, Repository, TooSoon},
    rule::{Action, Rule},
    selectors::{ArgumentEntry, EnvironmentValue, Selector, Selectors},
    span_of_time::show_duration,
    toml_text::{Document, inline_table, key, list, string},
};

impl Policy {
    /// The text of every layer, the system's first.
    pub fn print(&self) -> Vec<(LayerKind, String)> {
        let names = Names::new(self);
        let print = |(index, layer): (usize, &Layer)| {
            (layer.kind, Printing { policy: self, names: &names, index }.text(layer))
        };
        self.layers.iter().enumerate().map(print).collect()
    }
}

/// The names of repositories, unique within a layer: those that two files share are told apart by a number.
struct Names(Vec<String>);

impl Names {
    fn new(policy: &Policy) -> Self {
        let mut taken = HashSet::new();
        let unique = |repository: &Repository| {
            let numbered = (2..).map(|number| format!("{}-{number}", repository.name));
            let mut candidates = std::iter::once(repository.name.clone()).chain(numbered);
            let free = |name: &String| taken.insert((repository.layer, name.clone()));
            candidates.find(free).unwrap_or_default()
        };
        Names(policy.repositories.iter().map(unique).collect())
    }
}

struct Printing<'p> {
    policy: &'p Policy,
    names: &'p Names,
    index: usize,
}

impl Printing<'_> {
    fn text(&self, layer: &Layer) -> String {
        let mut text = Document::default();
        text.set("version", 1);
        text.table("[defaults]");
        defaults(&mut text, layer);
        if let Some(log) = &layer.log {
            text.table("[log]");
            print_log(&mut text, log);
        }
        let mut commands: Vec<_> =
            self.policy.executables.iter().filter(|(_, (layer, _))| *layer == self.index).collect();
        commands.sort();
        for (command, (_, program)) in commands {
            text.table(&format!("[command.{}]", key(command)));
            text.set("exec", string(&program.to_string_lossy()));
        }
        for (number, repository) in self.policy.repositories.iter().enumerate() {
            if repository.layer == self.index {
                text.table(&format!("[repository.{}]", key(&self.names.0[number])));
                print_repository(&mut text, repository);
            }
        }
        let mut taken: HashMap<String, usize> = HashMap::new();
        for rule in self.policy.rules.iter().filter(|rule| rule.layer == self.index) {
            text.table("[[rule]]");
            let uses = taken.entry(rule.shown_name.clone()).or_default();
            *uses += 1;
            let name =
                if *uses == 1 { rule.shown_name.clone() } else { format!("{} ({uses})", rule.shown_name) };
            text.set("name", string(&name));
            self.rule(&mut text, rule);
        }
        text.finish()
    }

    fn rule(&self, text: &mut Document, rule: &Rule) {
        for (selector, entries) in selectors(&rule.selectors) {
            text.set(selector.key(), entries);
        }
        if !rule.except.is_empty() {
            text.set(
                "except",
                list(rule.except.iter().map(|except| {
                    inline_table(
                        selectors(except).into_iter().map(|(selector, entries)| (selector.key(), entries)),
                    )
                })),
            );
        }
        text.set_some("first_of", rule.first_of.as_deref().map(string));
        text.set_some("order", Some(rule.order).filter(|order| *order != 0));
        text.set_some("enabled", Some(rule.enabled).filter(|enabled| !enabled));
        if rule.action == Action::Limit {
            text.set("acquire", list(rule.acquire.iter().map(|acquisition| self.acquisition(acquisition))));
        } else {
            text.set("action", string(rule.action.word()));
        }
        let names = |from: &Vec<usize>| list(from.iter().map(|index| string(&self.names.0[*index])));
        text.set_some("from", rule.from.as_ref().map(names));
        text.set_some("charge", rule.charge.map(|charge| string(charge.word())));
        if rule.is_always_admitted() {
            text.set("admit", string(rule.admit.word()));
        }
        text.set_some("enforce", rule.enforce);
        text.set_some("wait", rule.wait.map(|wait| string(&wait.to_string())));
        text.set_some("hold", rule.hold.map(|hold| string(hold.word())));
        text.set_some("message", rule.message.as_deref().map(string));
    }

    fn acquisition(&self, acquisition: &Acquisition) -> String {
        match acquisition {
            Acquisition::One(terms) => self.claim(terms),
            Acquisition::AnyOf(alternatives) => {
                inline_table([("any_of", list(alternatives.iter().map(|terms| self.claim(terms))))])
            }
        }
    }

    fn claim(&self, terms: &ClaimTerms) -> String {
        let name = string(&self.names.0[terms.repository]);
        let mut keys = vec![("repository", name.clone())];
        keys.extend(terms.ceiling.map(|ceiling| ("ceiling", ceiling.to_string())));
        keys.extend(terms.leave.map(|leave| ("leave", leave.to_string())));
        match terms.slots {
            Slots::Number(1) => {}
            Slots::Number(number) => keys.push(("slots", number.to_string())),
            Slots::All => keys.push(("slots", string("all"))),
        }
        keys.extend(terms.slots_from.as_ref().map(|from| {
            let most = from.most.map(|most| ("most", most.to_string()));
            ("slots_from", inline_table([("after", string(&from.after))].into_iter().chain(most)))
        }));
        if keys.len() == 1 { name } else { inline_table(keys) }
    }
}

fn defaults(text: &mut Document, layer: &Layer) {
    text.set("directory", string(&layer.directory.text()));
    text.set("unmatched", string(layer.unmatched.word()));
    text.set("enforce", layer.enforce);
    text.set_some("wait", layer.wait.map(|wait| string(&wait.to_string())));
    text.set_some("hold", layer.hold.map(|hold| string(hold.word())));
    text.set("create_mode", string(&format!("{:04o}", layer.create_mode())));
    text.set_some("time_zone", layer.zone_name.as_deref().map(string));
    text.set_some("fd_floor", layer.fd_floor);
}

fn print_log(text: &mut Document, log: &Log) {
    let to = match &log.to {
        LogTarget::Off => "off".into(),
        LogTarget::Journald => "journald".into(),
        LogTarget::Syslog => "syslog".into(),
        LogTarget::File(path) => path.to_string_lossy().into_owned(),
    };
    text.set("to", string(&to));
    text.set("events", string(LogEvents::word(log.events)));
}

fn print_repository(text: &mut Document, repository: &Repository) {
    text.set("path", string(repository.path.text()));
    text.set("limit", limit(repository.limit));
    if !repository.limits.is_empty() {
        let limits = repository.limits.iter();
        text.set("limits", inline_table(limits.map(|own| (key(own.member.text()), limit(own.limit)))));
    }
    if !repository.reservations.is_empty() {
        text.set(
            "reserve",
            list(repository.reservations.iter().map(|kept| {
                let principals = list(kept.principals.iter().map(|principal| string(&principal.to_string())));
                let lend = ("lend", kept.lend.to_string());
                inline_table([("for", principals), ("slots", kept.slots.to_string()), lend])
            })),
        );
    }
    text.set_some("charge", repository.charge.map(|charge| string(charge.word())));
    if repository.nested != Nested::default() {
        text.set("nested", string(repository.nested.word()));
    }
    text.set_some("enforce", repository.enforce);
    text.set_some("wait", repository.wait.map(|wait| string(&wait.to_string())));
    text.set_some("hold", repository.hold.map(|hold| string(hold.word())));
    let pace = repository.pace;
    let duration = |duration| string(&show_duration(duration));
    text.set_some("if_elapsed", pace.if_elapsed.map(duration));
    if pace.if_elapsed_from != ElapsedFrom::default() {
        text.set("if_elapsed_from", string(pace.if_elapsed_from.word()));
    }
    if pace.too_soon != TooSoon::default() {
        text.set("too_soon", string(pace.too_soon.word()));
    }
    text.set_some("expire_after", pace.expire_after.map(duration));
    text.set_some("expire_grace", pace.expire_grace.map(duration));
    if pace.expire_kill != ExpireKill::default() {
        text.set("expire_kill", string(pace.expire_kill.word()));
    }
}

fn limit(limit: Limit) -> String {
    match limit {
        Limit::Fixed(slots) => slots.to_string(),
        Limit::PerCpu(_) => string(&limit.to_string()),
    }
}

/// The selectors that are there, each with its entries.
fn selectors(selectors: &Selectors) -> Vec<(Selector, String)> {
    let entries = |selector| match selector {
        Selector::Arguments => list(selectors.arguments.iter().flatten().map(argument)),
        Selector::Environment => inline_table(selectors.environment.iter().map(|entry| {
            let value = match &entry.value {
                EnvironmentValue::Unset => "false".into(),
                EnvironmentValue::Set => "true".into(),
                EnvironmentValue::OneOf(patterns) => patterns_of(patterns),
            };
            (key(&entry.variable), value)
        })),
        other => list(selectors.shown(other).iter().map(|entry| string(entry))),
    };
    selectors.selectors().map(|selector| (selector, entries(selector))).collect()
}

fn argument(entry: &ArgumentEntry) -> String {
    match entry.patterns.as_slice() {
        [only] => string(only.text()),
        several => patterns_of(several),
    }
}

fn patterns_of(patterns: &[Pattern]) -> String {
    list(patterns.iter().map(|pattern| string(pattern.text())))
}
