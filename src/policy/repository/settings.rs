//! Settings of a repository for every launch that uses it. A key that means the same for every such launch,
//! and needs no other check than its own value, is added only here.

use crate::{
    judge::terms::{Hold, Keyword, Nested, Queue, Wait},
    policy::{Key, LONGEST_QUEUE, Section, Shape, Table, Written, key::key, toml_text::string},
};

pub(in crate::policy) const KEYS: &[Key] = &[
    key(
        "charge",
        Shape::OneOf(Charge::words),
        "Which of the caller's groups are charged.",
        "Repositories for each group, if users are in several.",
    ),
    key(
        "nested",
        Shape::OneOf(Nested::words),
        "What a launch does that a holder of the repository started.",
        "Programs that start each other: one seat or several.",
    ),
    key(
        "enforce",
        Shape::Flag,
        "false: log what would be refused, and start it.",
        "Roll-out of one repository.",
    ),
    key(
        "wait",
        Shape::Wait,
        "How long a launch waits for it without -w; the shortest counts.",
        "One repository where launches should wait.",
    ),
    key(
        "max_wait",
        Shape::Wait,
        "Longest wait for it, whatever -w requests.",
        "Hosts where launches that wait use memory.",
    ),
    key(
        "queue",
        QUEUE,
        "Maximum length of the queue; a launch that finds it full is refused.",
        "Users who should go elsewhere if the queue is long.",
    ),
    key(
        "queue_per_user",
        QUEUE,
        "How many launches of one user may wait for it.",
        "One user who fills the queue.",
    ),
    key(
        "hold",
        Shape::OneOf(Hold::words),
        "What keeps its slots; the strongest counts.",
        "Programs that fork, close descriptors, or run as a tree.",
    ),
];

/// The form of a number of launches in the queue.
const QUEUE: Shape = Shape::Number { least: 1, most: LONGEST_QUEUE as i64 };

/// Which groups are charged, if a repository has a file for each group and the caller is in several of the
/// rule's.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Charge {
    #[default]
    All,
    /// The first, in the order of the rule's `groups`.
    First,
    /// The first that has room.
    Any,
}

impl Keyword for Charge {
    const WORDS: &'static [(&'static str, Self)] =
        &[("all", Charge::All), ("first", Charge::First), ("any", Charge::Any)];
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) charge: Option<Charge>,
    pub(in crate::policy) nested: Nested,
    pub(crate) enforce: Option<bool>,
    pub(crate) wait: Option<Wait>,
    pub(crate) max_wait: Option<Wait>,
    pub(in crate::policy) queue: Queue,
    pub(crate) hold: Option<Hold>,
}

impl Settings {
    pub(in crate::policy) fn read(section: &Section<'_>) -> Self {
        Settings {
            charge: value(section.choice("charge")),
            nested: value(section.choice("nested")).unwrap_or_default(),
            enforce: value(section.flag("enforce")),
            wait: value(section.wait("wait")),
            max_wait: value(section.wait("max_wait")),
            queue: Queue {
                most: value(section.count("queue", 1, LONGEST_QUEUE)),
                per_user: value(section.count("queue_per_user", 1, LONGEST_QUEUE)),
            },
            hold: value(section.choice("hold")),
        }
    }

    pub(in crate::policy) fn print(&self, text: &mut Table) {
        let Settings { charge, nested, enforce, wait, max_wait, queue: Queue { most, per_user }, hold } =
            self;
        let charge = charge.filter(|charge| *charge != Charge::default());
        text.set_some("charge", charge.map(|charge| string(charge.word())));
        text.set_some("nested", nested.unless_default().map(string));
        text.set_some("enforce", *enforce);
        text.set_some("wait", wait.map(|wait| string(&wait.to_string())));
        text.set_some("max_wait", max_wait.map(|wait| string(&wait.to_string())));
        text.set_some("queue", *most);
        text.set_some("queue_per_user", *per_user);
        text.set_some("hold", hold.map(|hold| string(hold.word())));
    }
}

fn value<T>(written: Option<Written<T>>) -> Option<T> {
    written.map(|written| written.value)
}
