//! Every key of the language, once. The reader takes the names from here to tell what it does not know, and
//! the schema is written from the same tables. Those of selectors and of repositories stand with them.

use super::{
    delegation::DELEGATE,
    key::{Key, Keys, Shape, Together, key},
    keyword::{Hold, Keyword},
    layer::Unmatched,
    limit::{LONGEST_QUEUE, SLOT_COUNT, SLOT_COUNT_OR_NONE},
    log::LogEvents,
    repository::REPOSITORY,
    rule::{Action, Admission},
    scenario::Expectation,
    selector,
};
use crate::judge::terms::keyword::Keeper;

pub(super) static FILE: Keys = Keys {
    what: "a policy",
    groups: &[&[
        key("version", Shape::Number { least: 1, most: 1 }, "The version of the language: 1."),
        key("defaults", Shape::Table(&DEFAULTS), "What holds where rules and repositories are silent."),
        key("alias", Shape::TextsOrNumbersByName, "Lists to be used as \"@name\" in selectors."),
        key("repository", Shape::TableByName(&REPOSITORY), "Lock files whose bytes are slots."),
        key("rule", Shape::Tables(&RULE), "Whom and what a limit, a refusal or an exemption is for."),
        key("command", Shape::TableByName(&COMMAND), "The programs behind commands."),
        key("delegate", Shape::TableByName(&DELEGATE), "Drop-ins that belong to the admins of departments."),
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
        key("wait", Shape::Wait, "How long a launch waits without -w where no rule or repository says."),
        key("hold", Shape::OneOf(Hold::words), "What keeps a slot where no rule or repository says."),
        key("unmatched", Shape::OneOf(Unmatched::words), "What happens when no rule matches."),
        key("enforce", Shape::Flag, "false: log what would have been refused, and start all the same."),
        key("create_mode", Shape::Mode, "The mode of repositories that are created, whatever the umask."),
        key("keeper", Shape::OneOf(Keeper::words), "Who keeps slots where no repository says."),
        key("contact", Shape::Text, "Whom to write to or call: the last line of every refusal."),
        key("time_zone", Shape::Text, "The time zone of `when`, as \"Europe/Berlin\"; else the system's."),
    ]],
    together: &[],
};

pub(super) static SELECTORS: Keys = Keys { what: "an exception", groups: &[selector::KEYS], together: &[] };

const RULE_KEYS: &[Key] = &[
    key("name", Shape::Text, "What it is called in messages."),
    key("except", Shape::Tables(&SELECTORS), "What it is not for, whatever the selectors say."),
    key("first_of", Shape::Text, "A family of rules, of which the first that matches counts."),
    key("order", Shape::Number { least: i64::MIN, most: i64::MAX }, "The place in the family; lower first."),
    key("enabled", Shape::Flag, "false: it never counts."),
    key("action", Shape::OneOf(Action::words), "What it does; \"limit\" unless it says otherwise."),
    key("message", Shape::Text, "What to tell whom it refuses."),
    key("contact", Shape::Text, "Whom to write to or call about its refusals."),
    key("acquire", Shape::Claims(&CLAIM), "What it takes."),
    key("admit", Shape::OneOf(Admission::words), "\"always\": beyond the limit if need be."),
    key("from", Shape::Texts, "The repositories that an exempt rule exempts from.").filled(),
    key("enforce", Shape::Flag, "false: log what would have been refused, and start all the same."),
    key("wait", Shape::Wait, "How long its claims are waited for without -w; the shortest counts."),
    key("hold", Shape::OneOf(Hold::words), "What keeps its slots; the strongest counts."),
];

pub(super) static RULE: Keys = Keys { what: "a rule", groups: &[selector::KEYS, RULE_KEYS], together: &[] };

pub(super) static CLAIM: Keys = Keys {
    what: "a claim",
    groups: &[CLAIM_KEYS, ANY_OF_KEYS],
    together: &[Together::One("repository", "any_of")],
};

pub(super) static ALTERNATIVE: Keys =
    Keys { what: "an alternative", groups: &[CLAIM_KEYS], together: &[Together::Must("repository")] };

const COUNT_OR_SHARE: Shape = Shape::Share { least: 0 };

const CLAIM_KEYS: &[Key] = &[
    key("repository", Shape::Text, "The repository."),
    key(
        "ceiling",
        COUNT_OR_SHARE,
        "Only while everybody's use together stays at or below this, or this share of the limit: \"60%\".",
    ),
    key(
        "slots",
        Shape::Slots { least: 0 },
        "How many slots are taken, or \"all\"; 0: none but what slots_from finds.",
    ),
    key("slots_from", Shape::Table(&SLOTS_FROM), "Where on the command line the number of slots stands."),
    key("wait", Shape::Wait, "How long a launch waits for it without -w; the shortest counts."),
];

const ANY_OF_KEYS: &[Key] = &[key(
    "any_of",
    Shape::Alternatives(&ALTERNATIVE),
    "Claims, or lists of claims, of which the first that can be had as a whole is taken.",
)
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
        key(
            "replay",
            Shape::Flag,
            "Whether events tell what decisions looked at, so that they can be replayed.",
        ),
    ]],
    together: &[],
};

pub(super) static TEST: Keys = Keys { what: "a test", groups: &[TEST_KEYS, PERSON_KEYS], together: &[] };

/// Somebody who holds slots when the launch of a test comes.
pub(super) static HOLDER: Keys = Keys {
    what: "a holder",
    groups: &[
        PERSON_KEYS,
        &[key("slots", SLOT_COUNT, "How many slots they hold; 1 unless it says otherwise.")],
    ],
    together: &[],
};

const PERSON_KEYS: &[Key] = &[
    key("user", Shape::Text, "Who starts the command; \"user\" unless it says otherwise."),
    key(
        "uid",
        Shape::Number { least: 0, most: u32::MAX as i64 - 1 },
        "The number of the user; 1000, and of root 0.",
    ),
    key("groups", Shape::TextsOrNumbers, "The groups that the user is in."),
    key("netgroups", Shape::Texts, "The netgroups that the user is in on this host."),
];

const TEST_KEYS: &[Key] = &[
    key("name", Shape::Text, "What it is called in reports.").required(),
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
        Shape::HoldersByName(&HOLDER),
        "How many slots are held in repositories, as \"matlab\" or \"matlab-per-user [ann]\", or by whom.",
    ),
    key(
        "waiting",
        Shape::NumberByName { most: LONGEST_QUEUE as i64 },
        "How many launches wait for repositories.",
    ),
    key("expect", Shape::OneOf(Expectation::words), "What is to come out.").required(),
    key("by", Shape::Text, "The rule that refuses or exempts."),
    key("claims", Shape::Expected(&EXPECTED_CLAIM), "The claims of a start, all of them."),
    key("wait", Shape::Wait, "How long it may wait for what is in the way."),
    key("hold", Shape::OneOf(Hold::words), "What keeps its slots."),
];

pub(super) static EXPECTED_CLAIM: Keys = Keys {
    what: "an expected claim",
    groups: &[&[
        key("repository", Shape::Text, "The repository.").required(),
        key("member", Shape::Text, "Whose file of it."),
        key("slots", Shape::Slots { least: 1 }, "How many slots."),
        key("limit", SLOT_COUNT_OR_NONE, "The limit for this launch."),
    ]],
    together: &[],
};
