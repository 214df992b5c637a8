//! Kinds of launches: those of one kind differ only in their time, as far as a policy can see.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
};

use crate::{
    launch::log::event::{Circumstances, Event},
    policy::RelevantInputs,
};

/// The inputs of a decision.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Kind {
    /// The caller.
    pub uid: u32,
    /// The command, as it was typed.
    pub command: String,
    /// Where it ran.
    pub host: String,
    /// The rest, if the log has it.
    pub told: Option<Box<Circumstances>>,
    /// The repositories for which an ancestor's slots were enough.
    pub shared: Vec<String>,
}

/// The facts of an event that a policy uses.
#[derive(Clone, Copy)]
struct Seen<'e> {
    event: &'e Event,
    looks: RelevantInputs,
    host: &'e str,
}

impl<'e> Seen<'e> {
    fn of(event: &'e Event, looks: RelevantInputs, is_by_host: bool) -> Self {
        Self { event, looks, host: if looks.hosts || is_by_host { &event.host } else { "" } }
    }

    fn shared(self) -> impl Iterator<Item = &'e str> {
        let shared = self.event.tables.iter().filter(|table| table.shared);
        shared.map(|table| table.repository.as_str())
    }

    /// The facts in the log that rules of the policy use.
    fn told(self) -> Option<Told<'e>> {
        let Circumstances { groups, program, canonical, directory, arguments, environment, wait } =
            self.event.launch.as_deref()?;
        let RelevantInputs { directories, arguments: at_arguments, environment: at_environment, hosts: _ } =
            self.looks;
        Some(Told {
            groups,
            program,
            canonical: canonical.as_deref(),
            directory: if directories { directory } else { "" },
            arguments: if at_arguments { arguments } else { &[] },
            environment: Some(environment).filter(|_| at_environment && !environment.is_empty()),
            wait: wait.as_deref(),
        })
    }

    /// Equal kinds have the same number; different kinds nearly never.
    fn hash(self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.event.uid, &self.event.command, self.host, self.told()).hash(&mut hasher);
        self.shared().for_each(|name| name.hash(&mut hasher));
        hasher.finish()
    }

    fn is(self, kind: &Kind) -> bool {
        let Kind { uid, command, host, told, shared } = kind;
        *uid == self.event.uid
            && *command == self.event.command
            && *host == self.host
            && told.as_deref().map(Told::of) == self.told()
            && self.shared().eq(shared.iter().map(String::as_str))
    }

    fn to_kind(self) -> Kind {
        Kind {
            uid: self.event.uid,
            command: self.event.command.clone(),
            host: self.host.to_owned(),
            told: self.told().map(|told| Box::new(told.to_circumstances())),
            shared: self.shared().map(str::to_owned).collect(),
        }
    }
}

/// Facts of another user's launch.
#[derive(Eq, Hash, PartialEq)]
struct Told<'e> {
    groups: &'e [u32],
    program: &'e str,
    canonical: Option<&'e str>,
    directory: &'e str,
    arguments: &'e [Option<String>],
    environment: Option<&'e BTreeMap<String, Option<String>>>,
    wait: Option<&'e str>,
}

impl<'e> Told<'e> {
    fn of(circumstances: &'e Circumstances) -> Self {
        let Circumstances { groups, program, canonical, directory, arguments, environment, wait } =
            circumstances;
        Self {
            groups,
            program,
            canonical: canonical.as_deref(),
            directory,
            arguments,
            environment: Some(environment).filter(|environment| !environment.is_empty()),
            wait: wait.as_deref(),
        }
    }

    fn to_circumstances(&self) -> Circumstances {
        Circumstances {
            groups: self.groups.to_vec(),
            program: self.program.to_owned(),
            canonical: self.canonical.map(str::to_owned),
            directory: self.directory.to_owned(),
            arguments: self.arguments.to_vec(),
            environment: self.environment.cloned().unwrap_or_default(),
            wait: self.wait.map(str::to_owned),
        }
    }
}

/// All kinds, by number.
#[derive(Debug, Default)]
pub struct Kinds {
    kinds: Vec<Kind>,
    /// The numbers of the kinds with the same hash. Nothing is copied from an event whose kind is known.
    numbers: HashMap<u64, Vec<u32>>,
}

impl Kinds {
    /// The number of the kind of an event, by the facts that rules of the policy use.
    pub fn number(&mut self, event: &Event, looks: RelevantInputs, is_by_host: bool) -> u32 {
        let seen = Seen::of(event, looks, is_by_host);
        let alike = self.numbers.entry(seen.hash()).or_default();
        if let Some(number) = alike.iter().find(|number| seen.is(&self.kinds[**number as usize])) {
            return *number;
        }
        let number = u32::try_from(self.kinds.len()).unwrap_or(u32::MAX);
        alike.push(number);
        self.kinds.push(seen.to_kind());
        number
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The user of a kind.
    pub fn uid(&self, number: u32) -> u32 {
        self.kinds.get(number as usize).map_or(0, |kind| kind.uid)
    }

    /// In the order of their numbers.
    pub fn into_list(self) -> Vec<Kind> {
        self.kinds
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use crate::launch::log::event::{Kind as EventKind, TableSeen};
    use crate::tools::logs::simulation::kind::*;

    fn event(change: impl Fn(&mut Event, &mut Circumstances)) -> Event {
        let mut event = Event::now(EventKind::Started, "matlab", 7, OsStr::new("ws17"));
        let mut told = Circumstances { groups: vec![1], ..Circumstances::default() };
        change(&mut event, &mut told);
        event.launch = Some(Box::new(told));
        event
    }

    #[test]
    fn what_a_policy_looks_at_makes_a_kind_and_nothing_else() {
        let all = RelevantInputs { directories: true, arguments: true, environment: true, hosts: true };
        let shared = TableSeen { repository: "seats".to_owned(), shared: true, ..TableSeen::default() };
        let same = [
            event(|event, _| event.time += 1),
            event(|event, _| event.pid += 1),
            event(|event, _| event.tables = vec![TableSeen { shared: false, ..shared.clone() }]),
        ];
        let always = [
            event(|event, _| event.uid = 8),
            event(|event, _| event.command = "spectre".to_owned()),
            event(|event, _| event.tables = vec![shared.clone()]),
            event(|_, told| told.groups.push(2)),
            event(|_, told| told.program = "/opt/matlab".to_owned()),
            event(|_, told| told.canonical = Some("/opt/matlab".to_owned())),
            event(|_, told| told.wait = Some("1m".to_owned())),
        ];
        let looked_at = [
            event(|event, _| event.host = "ws18".to_owned()),
            event(|_, told| told.directory = "/home".to_owned()),
            event(|_, told| told.arguments.push(None)),
            event(|_, told| drop(told.environment.insert("DISPLAY".to_owned(), None))),
        ];
        let count = |looks: RelevantInputs, is_by_host: bool| {
            let mut kinds = Kinds::default();
            let first = kinds.number(&event(|_, _| {}), looks, is_by_host);
            assert!(same.iter().all(|event| kinds.number(event, looks, is_by_host) == first));
            for _ in 0..2 {
                always.iter().chain(&looked_at).for_each(|event| {
                    kinds.number(event, looks, is_by_host);
                });
            }
            kinds.into_list().len()
        };
        assert_eq!((count(RelevantInputs::default(), false), count(RelevantInputs::default(), true)), (8, 9));
        assert_eq!(count(all, false), 12);
    }
}
