//! Every key of the language, once: its name, the shape of its value and what it means. The reader takes the names from
//! here to tell what it does not know, and the schema is written from the same tables.

use super::{
    choice::Choice,
    hold::Hold,
    limit::HIGHEST_LIMIT,
    log::LogEvents,
    repository::{Charge, ElapsedFrom, ExpireKill, Nested, Per, TooSoon},
    rule::{Action, Admit},
    scenario::Expectation,
    unmatched::Unmatched,
};

/// A key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) about: &'static str,
    /// Whether the table must have it.
    pub(super) is_required: bool,
    /// Whether its list, where it is one, must have an entry.
    pub(super) is_filled: bool,
}

impl Key {
    const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    const fn filled(mut self) -> Self {
        self.is_filled = true;
        self
    }
}

/// Which keys of a table go together.
#[derive(Clone, Copy, Debug)]
pub(super) enum Together {
    /// The first means something only beside the second.
    Needs(&'static str, &'static str),
    /// Not both.
    Either(&'static str, &'static str),
    /// One of them, and not both.
    One(&'static str, &'static str),
    /// This one; the table shares it with others that need not have it.
    Must(&'static str),
}

/// The keys of one kind of table.
#[derive(Debug)]
pub(super) struct Keys {
    /// What the table is, for messages: "a rule".
    pub(super) what: &'static str,
    /// The keys, in groups, because some kinds of table share some.
    pub(super) groups: &'static [&'static [Key]],
    /// What an editor can say of keys that do or do not go together.
    pub(super) together: &'static [Together],
}

impl Keys {
    /// The keys that the table must have, whatever else it has.
    pub(super) fn required(&self) -> impl Iterator<Item = &'static str> {
        let must = self.together.iter().filter_map(|together| match together {
            Together::Must(key) => Some(*key),
            _ => None,
        });
        self.iter().filter(|key| key.is_required).map(|key| key.name).chain(must)
    }

    /// Whether the table may have to have a key.
    pub(super) fn may_require(&self, key: &str) -> bool {
        let one = |together: &Together| matches!(together, Together::One(one, _) if *one == key);
        self.required().any(|required| required == key) || self.together.iter().any(one)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'static Key> {
        self.groups.iter().copied().flatten()
    }
}

/// What a value may look like.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// A string.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Number { least: i64, most: i64 },
    /// A length of time: `"1h30m"`.
    Duration,
    /// A length of time, or `"forever"`.
    Wait,
    /// A number of slots, or `"2/cpu"`.
    Limit,
    /// A number of slots, or `"all"`.
    Slots,
    /// A file mode: `"0666"`.
    Mode,
    /// One of a few words.
    OneOf(fn() -> Vec<&'static str>),
    /// One of a few words, or a list of them.
    SomeOf(fn() -> Vec<&'static str>),
    /// A target of the log: one of a few words, or an absolute path.
    LogTarget,
    /// A list of strings.
    Texts,
    /// A list of strings and whole numbers.
    TextsOrNumbers,
    /// A list of strings, and of lists of strings.
    TextsOrLists,
    /// Names with strings.
    TextByName,
    /// Names with lists of strings and numbers.
    TextsOrNumbersByName,
    /// Names with limits.
    LimitByName,
    /// Names with numbers of slots.
    NumberByName,
    /// Names of variables with lists of strings, or with `false` or `true`.
    Environment,
    /// A list of claims: names of repositories, or tables.
    Claims(&'static Keys),
    /// A list of expected claims: names of repositories, or tables.
    Expected(&'static Keys),
    /// A point in time.
    Time,
    /// A table.
    Table(&'static Keys),
    /// A list of tables.
    Tables(&'static Keys),
    /// Names with tables.
    TableByName(&'static Keys),
}

const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, about, is_required: false, is_filled: false }
}

const SLOT_COUNT: Shape = Shape::Number { least: 1, most: HIGHEST_LIMIT as i64 };
const SLOT_COUNT_OR_NONE: Shape = Shape::Number { least: 0, most: HIGHEST_LIMIT as i64 };

pub(super) static FILE: Keys = Keys {
    what: "a policy",
    groups: &[&[
        key("version", Shape::Number { least: 1, most: 1 }, "The version of the language: 1."),
        key("defaults", Shape::Table(&DEFAULTS), "What holds where rules and repositories are silent."),
        key("alias", Shape::TextsOrNumbersByName, "Lists to be used as \"@name\" in selectors."),
        key("repository", Shape::TableByName(&REPOSITORY), "Lock files whose bytes are slots."),
        key("rule", Shape::Tables(&RULE), "Whom and what a limit, a refusal or an exemption is for."),
        key("command", Shape::TableByName(&COMMAND), "The programs behind commands."),
        key("log", Shape::Table(&LOG), "Where starts and refusals are logged."),
        key("test", Shape::Tables(&TEST), "What is to come out of a request."),
    ]],
    together: &[],
};

pub(super) static DEFAULTS: Keys = Keys {
    what: "[defaults]",
    groups: &[&[
        key(
            "directory",
            Shape::Text,
            "Where relative paths of repositories start; \"{runtime}\" is the caller's own.",
        ),
        key("wait", Shape::Wait, "How long a launch waits where no rule or repository says."),
        key("hold", Shape::OneOf(Hold::words), "What keeps a slot where no rule or repository says."),
        key("unmatched", Shape::OneOf(Unmatched::words), "What happens when no rule matches."),
        key("enforce", Shape::Flag, "false: log what would have been refused, and start all the same."),
        key("create_mode", Shape::Mode, "The mode of repositories that are created, whatever the umask."),
        key("time_zone", Shape::Text, "The time zone of `when`, as \"Europe/Berlin\"; else the system's."),
        key(
            "fd_floor",
            Shape::Number { least: 3, most: 1_000_000 },
            "The lowest descriptor that may hold a slot.",
        ),
    ]],
    together: &[],
};

pub(super) static REPOSITORY: Keys = Keys {
    what: "a repository",
    groups: &[&[
        key("path", Shape::Text, "The lock file, with placeholders; defaults to NAME.lock."),
        key("per", Shape::SomeOf(Per::words), "A file for each user, group, host, command or directory.")
            .filled(),
        key("limit", Shape::Limit, "How many slots may be held at once; 0 drains.").required(),
        key("limits", Shape::LimitByName, "Other limits for some members of `per`."),
        key("charge", Shape::OneOf(Charge::words), "Which of the caller's groups are charged."),
        key("reserve", Shape::Tables(&RESERVE), "Slots kept for some users."),
        key("nested", Shape::OneOf(Nested::words), "What a launch below a holder does."),
        key("enforce", Shape::Flag, "false: log what would have been refused, and start all the same."),
        key("wait", Shape::Wait, "How long a launch waits for it; the shortest counts."),
        key("hold", Shape::OneOf(Hold::words), "What keeps its slots; the strongest counts."),
        key("if_elapsed", Shape::Duration, "Not started again within this time."),
        key("if_elapsed_from", Shape::OneOf(ElapsedFrom::words), "What `if_elapsed` counts from."),
        key(
            "too_soon",
            Shape::OneOf(TooSoon::words),
            "Whether a start that comes too soon is refused or is silently fine.",
        ),
        key("expire_after", Shape::Duration, "A holder older than this is ended when its slot is wanted."),
        key("expire_grace", Shape::Duration, "The time between the signals that end it."),
        key("expire_kill", Shape::OneOf(ExpireKill::words), "Whether the process or its group is ended."),
    ]],
    together: &[
        Together::Needs("if_elapsed_from", "if_elapsed"),
        Together::Needs("too_soon", "if_elapsed"),
        Together::Needs("expire_grace", "expire_after"),
        Together::Needs("expire_kill", "expire_after"),
        Together::Either("path", "per"),
    ],
};

pub(super) static RESERVE: Keys = Keys {
    what: "a reservation",
    groups: &[&[
        key("for", Shape::TextsOrNumbers, "For whom, as in `users`.").required(),
        key("slots", SLOT_COUNT, "How many slots are kept.").required(),
        key("lend", SLOT_COUNT_OR_NONE, "How many of them others may use while they are idle."),
    ]],
    together: &[],
};

pub(super) static SELECTORS: Keys = Keys { what: "an exception", groups: &[SELECTOR_KEYS], together: &[] };

const SELECTOR_KEYS: &[Key] = &[
    key("commands", Shape::Texts, "Names or paths of commands.").filled(),
    key("arguments", Shape::TextsOrLists, "Arguments; a list is for consecutive ones.").filled(),
    key("users", Shape::TextsOrNumbers, "Names, %groups, +netgroups, uids and ranges of uids.").filled(),
    key("groups", Shape::TextsOrNumbers, "Names and gids of groups.").filled(),
    key("hosts", Shape::Texts, "Names of hosts, in full or up to the first dot.").filled(),
    key("directories", Shape::Texts, "Working directories.").filled(),
    key("environment", Shape::Environment, "Variables: their values, false where unset."),
    key("when", Shape::Texts, "Times: \"Mon-Fri 08:00-18:00\".").filled(),
];

const RULE_KEYS: &[Key] = &[
    key("name", Shape::Text, "What it is called in messages."),
    key("except", Shape::Tables(&SELECTORS), "What it is not for, whatever the selectors say."),
    key("first_of", Shape::Text, "A family of rules, of which the first that matches counts."),
    key("order", Shape::Number { least: i64::MIN, most: i64::MAX }, "The place in the family; lower first."),
    key("enabled", Shape::Flag, "false: it never counts."),
    key("action", Shape::OneOf(Action::words), "What it does; \"limit\" unless it says otherwise."),
    key("message", Shape::Text, "What to tell whom it refuses."),
    key("acquire", Shape::Claims(&CLAIM), "What it takes."),
    key("charge", Shape::OneOf(Charge::words), "Which of the caller's groups are charged, for this rule."),
    key("admit", Shape::OneOf(Admit::words), "\"always\": beyond the limit if need be."),
    key("from", Shape::Texts, "The repositories that an exempt rule exempts from.").filled(),
    key("enforce", Shape::Flag, "false: log what would have been refused, and start all the same."),
    key("wait", Shape::Wait, "How long its launches wait; the shortest counts."),
    key("hold", Shape::OneOf(Hold::words), "What keeps its slots; the strongest counts."),
];

pub(super) static RULE: Keys = Keys { what: "a rule", groups: &[SELECTOR_KEYS, RULE_KEYS], together: &[] };

pub(super) static CLAIM: Keys = Keys {
    what: "a claim",
    groups: &[CLAIM_KEYS, ANY_OF_KEYS],
    together: &[Together::One("repository", "any_of"), Together::Either("ceiling", "leave")],
};

pub(super) static ALTERNATIVE: Keys = Keys {
    what: "an alternative",
    groups: &[CLAIM_KEYS],
    together: &[Together::Must("repository"), Together::Either("ceiling", "leave")],
};

const CLAIM_KEYS: &[Key] = &[
    key("repository", Shape::Text, "The repository."),
    key("ceiling", SLOT_COUNT_OR_NONE, "Only while everybody's use together stays at or below this."),
    key("leave", SLOT_COUNT_OR_NONE, "Only while so many slots stay free."),
    key("slots", Shape::Slots, "How many slots are taken, or \"all\"."),
    key("slots_from", Shape::Table(&SLOTS_FROM), "Where on the command line the number of slots stands."),
];

const ANY_OF_KEYS: &[Key] =
    &[key("any_of", Shape::Claims(&ALTERNATIVE), "Claims of which the first that can be had is taken.")
        .filled()];

pub(super) static SLOTS_FROM: Keys = Keys {
    what: "slots_from",
    groups: &[&[
        key("after", Shape::Text, "The argument before the number.").required(),
        key("most", SLOT_COUNT, "No more than this, whatever the number is."),
    ]],
    together: &[],
};

pub(super) static COMMAND: Keys = Keys {
    what: "a command",
    groups: &[&[key("exec", Shape::Text, "The program, as an absolute path.").required()]],
    together: &[],
};

pub(super) static LOG: Keys = Keys {
    what: "[log]",
    groups: &[&[
        key(
            "to",
            Shape::LogTarget,
            "Where events go: journald, syslog, off, or the path of a JSON Lines file.",
        ),
        key("events", Shape::OneOf(LogEvents::words), "Which events are logged."),
    ]],
    together: &[],
};

pub(super) static TEST: Keys = Keys {
    what: "a test",
    groups: &[&[
        key("name", Shape::Text, "What it is called in reports.").required(),
        key("user", Shape::Text, "Who starts the command; \"user\" unless it says otherwise."),
        key(
            "uid",
            Shape::Number { least: 0, most: u32::MAX as i64 - 1 },
            "The number of the user; 1000, and of root 0.",
        ),
        key("groups", Shape::TextsOrNumbers, "The groups that the user is in."),
        key("netgroups", Shape::Texts, "The netgroups that the user is in on this host."),
        key("command", Shape::Text, "The command as typed.").required(),
        key("path", Shape::Text, "The path that would be executed; below /usr/bin unless it says otherwise."),
        key("arguments", Shape::Texts, "The arguments."),
        key("host", Shape::Text, "The node name; \"localhost\" unless it says otherwise."),
        key("directory", Shape::Text, "The working directory; \"/\" unless it says otherwise."),
        key("environment", Shape::TextByName, "The variables that are set."),
        key("time", Shape::Time, "Local time: \"2026-11-20 14:02\"; now unless it says otherwise."),
        key(
            "cpus",
            Shape::Number { least: 1, most: 1_000_000 },
            "How many processors are online; 1 unless it says otherwise.",
        ),
        key(
            "use",
            Shape::NumberByName,
            "How many slots are held in repositories, as \"matlab\" or \"matlab-per-user [ann]\".",
        ),
        key("expect", Shape::OneOf(Expectation::words), "What is to come out.").required(),
        key("by", Shape::Text, "The rule that refuses or exempts."),
        key("claims", Shape::Expected(&EXPECTED_CLAIM), "The claims of a start, all of them."),
    ]],
    together: &[],
};

pub(super) static EXPECTED_CLAIM: Keys = Keys {
    what: "an expected claim",
    groups: &[&[
        key("repository", Shape::Text, "The repository.").required(),
        key("member", Shape::Text, "Whose file of it."),
        key("slots", Shape::Slots, "How many slots."),
        key("limit", SLOT_COUNT_OR_NONE, "The limit for this launch."),
    ]],
    together: &[],
};
