//! Every key of the language, once. The reader takes the known names from here, and the schema is written
//! from the same tables. Keys of selectors and of repositories are beside their types.

use super::{
    Action, DELEGATE, Expectation, HIGHEST_LIMIT, IfUnclear, Key, Keys, LONGEST_QUEUE, REPOSITORY,
    SLOT_COUNT, SLOT_COUNT_OR_NONE, Shape, Together, Unmatched, key::key, selector,
};
use crate::judge::terms::{Hold, Keeper, Keyword};

pub(super) static FILE: Keys = Keys {
    what: "a policy",
    groups: &[&[
        key(
            "version",
            Shape::Number { least: 1, most: 1 },
            "The version of the policy language: 1.",
            "Every file: a later rungate then knows how to read it.",
        ),
        key(
            "defaults",
            Shape::Table(&DEFAULTS),
            "Values for rules and repositories that do not set their own.",
            "Sites that want one setting for all repositories.",
        ),
        key(
            "alias",
            Shape::TextsOrNumbersByName,
            "Lists that selectors use as \"@name\".",
            "Sites that name the same users, hosts or commands in several rules.",
        ),
        key(
            "repository",
            Shape::TableByName(&REPOSITORY),
            "Lock files. Each byte is a slot.",
            "Every policy that limits how many programs run.",
        ),
        key(
            "rule",
            Shape::Tables(&RULE),
            "Rules: the users and commands that a limit, a denial or an exemption applies to.",
            "Every policy.",
        ),
        key(
            "command",
            Shape::TableByName(&COMMAND),
            "The programs that commands start.",
            "Shims in PATH before the programs, and commands whose program is not in PATH.",
        ),
        key(
            "delegate",
            Shape::TableByName(&DELEGATE),
            "Drop-ins that belong to the admins of departments.",
            "Sites whose departments set limits of their own without root.",
        ),
        key(
            "log",
            Shape::Table(&LOG),
            "Where events are logged.",
            "Sites that want history, report, simulate or policy check --from.",
        ),
        key(
            "test",
            Shape::Tables(&TEST),
            "A request with its expected decision.",
            "Policies that several people edit: policy check runs the tests before a change counts.",
        ),
    ]],
    together: &[],
};

pub(super) static DEFAULTS: Keys = Keys {
    what: "[defaults]",
    groups: &[&[
        key(
            "directory",
            Shape::Text,
            "Directory in which relative repository paths start; \"{runtime}\" is the caller's own.",
            "Lock files outside /run/rungate, as on a shared file system.",
        ),
        key(
            "wait",
            Shape::Wait,
            "How long a launch waits without -w if no rule or repository has a wait.",
            "Hosts where most launches should wait and not be refused.",
        ),
        key(
            "hold",
            Shape::OneOf(Hold::words),
            "What keeps a slot if no rule or repository has a hold.",
            "Hosts where most programs fork, close descriptors, or run as a tree.",
        ),
        key(
            "unmatched",
            Shape::OneOf(Unmatched::words),
            "What happens to a launch that no rule matches.",
            "Hosts where only named commands may start.",
        ),
        key(
            "enforce",
            Shape::Flag,
            "false: log what would be refused, and start it.",
            "Roll-out: watch the log for a week before the limits count.",
        ),
        key(
            "create_mode",
            Shape::Mode,
            "File mode of repositories that are created, regardless of the umask.",
            "Users without root who share lock files by a policy of their own: \"0660\".",
        ),
        key(
            "keeper",
            Shape::OneOf(Keeper::words),
            "What keeps the slots of repositories without a keeper of their own.",
            "Hosts whose users do not trust each other (agent), and limits over several hosts (site).",
        ),
        key(
            "contact",
            Shape::Text,
            "Person or address that refusals name in their last line.",
            "Sites whose users should ask a person about refusals.",
        ),
        key(
            "time_zone",
            Shape::Text,
            "Time zone of `when`, such as \"Europe/Berlin\"; default: the zone of the system.",
            "Limits by office hours on hosts that run in UTC.",
        ),
    ]],
    together: &[],
};

pub(super) static SELECTORS: Keys = Keys { what: "an exception", groups: &[selector::KEYS], together: &[] };

const RULE_KEYS: &[Key] = &[
    key(
        "name",
        Shape::Text,
        "Name of the rule in messages, log and tests.",
        "Policies with more than one rule.",
    ),
    key(
        "except",
        Shape::Tables(&SELECTORS),
        "Selectors of launches that the rule does not apply to.",
        "All students except the tutors, say.",
    ),
    key(
        "first_of",
        Shape::Text,
        "Name of a family of rules; only the first that matches counts.",
        "Tiers: staff 5, students 2, all others 1.",
    ),
    key(
        "order",
        Shape::Number { least: i64::MIN, most: i64::MAX },
        "Position in the family; lower first.",
        "Families whose rules are spread over drop-ins.",
    ),
    key(
        "action",
        Shape::OneOf(Action::words),
        "What the rule does: limit (default), count but never refuse, deny, or exempt.",
        "Operators and backups that count and are never refused; denials; exemptions.",
    ),
    key(
        "message",
        Shape::Text,
        "Text for the user whom the rule refuses.",
        "Refusals that need a reason of the site's own.",
    ),
    key(
        "contact",
        Shape::Text,
        "Person or address that refusals of this rule name.",
        "Programs that another department looks after.",
    ),
    key(
        "acquire",
        Shape::Claims(&CLAIM),
        "Slots that a launch must get before it starts.",
        "Every rule that limits.",
    ),
    key(
        "from",
        Shape::Texts,
        "The repositories that the rule exempts from.",
        "Exemptions from one limit of several.",
    )
    .filled(),
    key(
        "enforce",
        Shape::Flag,
        "false: log what would be refused, and start it.",
        "Roll-out: watch the log for a week before the limits count.",
    ),
    key(
        "wait",
        Shape::Wait,
        "How long a launch waits for its claims without -w; the shortest counts.",
        "Batch users who wait while others are refused.",
    ),
    key(
        "hold",
        Shape::OneOf(Hold::words),
        "What keeps its slots; the strongest counts.",
        "Programs that fork, close descriptors, or run as a tree.",
    ),
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
    key("repository", Shape::Text, "The repository.", "Every claim."),
    key(
        "ceiling",
        COUNT_OR_SHARE,
        "Start only while the use by all users stays at or below this number, or share of the limit: \"60%\".",
        "Students may fill the pool to 60%, and the rest stays free for staff.",
    ),
    key(
        "slots",
        Shape::Slots { least: 0 },
        "How many slots to take, or \"all\"; 0: none except those of slots_from.",
        "Programs that use several licences or processors at once.",
    ),
    key(
        "slots_from",
        Shape::Table(&SLOTS_FROM),
        "Where the command line has the number of slots.",
        "Programs such as \"solver -np 8\".",
    ),
    key(
        "wait",
        Shape::Wait,
        "How long a launch waits for it without -w; the shortest counts.",
        "One scarce repository among several.",
    ),
];

const ANY_OF_KEYS: &[Key] = &[key(
    "any_of",
    Shape::Alternatives(&ALTERNATIVE),
    "Alternatives: claims, or lists of claims. The first one that is completely free is taken.",
    "Two licence pools or several GPUs, if one of them is enough.",
)
.filled()];

pub(super) static SLOTS_FROM: Keys = Keys {
    what: "slots_from",
    groups: &[&[
        key(
            "after",
            Shape::TextOrTexts,
            "The argument before the number, or several whose numbers add up.",
            "Every slots_from.",
        )
        .required()
        .filled(),
        key(
            "most",
            SLOT_COUNT,
            "Upper bound of the number.",
            "Command lines that users write, so that a typing error does not wait for ever.",
        ),
        key(
            "absent",
            SLOT_COUNT_OR_NONE,
            "The number of the first argument if it is missing; default: slots of the claim.",
            "Programs that use one processor if the command line names none.",
        ),
        key(
            "table",
            Shape::SlotsByNumber,
            "The slots for each number; a number between two takes the entry of the greater one.",
            "Licences that count tokens, such as Abaqus: 50, 59, 67, 76 for 1 to 4 processors.",
        ),
        key(
            "unclear",
            Shape::OneOf(IfUnclear::words),
            "An argument without a number: \"refuse\", the default with a table, or \"absent\".",
            "Licences that must not be counted too low.",
        ),
    ]],
    together: &[],
};

pub(super) static COMMAND: Keys = Keys {
    what: "a command",
    groups: &[&[key("exec", Shape::Text, "The program, as an absolute path.", "Every command.").required()]],
    together: &[],
};

pub(super) static LOG: Keys = Keys {
    what: "[log]",
    groups: &[&[
        key(
            "to",
            Shape::LogTarget,
            "Target of events: journald, syslog, off, or the path of a JSON Lines file.",
            "Every log: a file for history and report, journald for everything else.",
        ),
        key(
            "replay",
            Shape::Flag,
            "Log every event, with the facts that decisions used.",
            "Admins who test a new policy with past launches, by policy check --from or simulate.",
        ),
    ]],
    together: &[],
};

pub(super) static TEST: Keys = Keys { what: "a test", groups: &[TEST_KEYS, PERSON_KEYS], together: &[] };

/// A holder of slots at the time of a test's launch.
pub(super) static HOLDER: Keys = Keys {
    what: "a holder",
    groups: &[
        PERSON_KEYS,
        &[key(
            "slots",
            SLOT_COUNT,
            "How many slots they hold; default: 1.",
            "Tests of programs that hold several slots.",
        )],
    ],
    together: &[],
};

/// A launch that waits at the time of a test's launch.
pub(super) static WAITER: Keys = Keys { what: "a waiting launch", groups: &[PERSON_KEYS], together: &[] };

const PERSON_KEYS: &[Key] = &[
    key(
        "user",
        Shape::TextOrNumber,
        "The user who starts the command: a name, or a uid; default: \"user\", with uid 1000.",
        "Tests of rules for users, or for ranges of uids.",
    ),
    key(
        "groups",
        Shape::TextsOrNumbers,
        "The groups of the user, and with a plus sign the netgroups: \"+lab\".",
        "Tests of rules for groups.",
    ),
];

const TEST_KEYS: &[Key] = &[
    key("name", Shape::Text, "Name of the test in reports.", "Every test.").required(),
    key("command", Shape::Text, "The command as typed.", "Every test.").required(),
    key(
        "path",
        Shape::Text,
        "The path of the program; default: below /usr/bin.",
        "Tests of rules that name paths.",
    ),
    key("arguments", Shape::Texts, "The arguments.", "Tests of rules for arguments, and of slots_from."),
    key(
        "host",
        Shape::Text,
        "Node name of the host; default: \"localhost\".",
        "Policies that several hosts share.",
    ),
    key(
        "directory",
        Shape::Text,
        "The working directory; default: \"/\".",
        "Tests of rules for directories.",
    ),
    key("environment", Shape::TextByName, "The variables that are set.", "Tests of rules for variables."),
    key(
        "time",
        Shape::Time,
        "Local time, such as \"2026-11-20 14:02\"; default: now.",
        "Tests of rules with times.",
    ),
    key(
        "cpus",
        Shape::Number { least: 1, most: 1_000_000 },
        "Number of online processors; default: 1.",
        "Tests of limits such as \"2/cpu\".",
    ),
    key(
        "use",
        Shape::UsersByName { most: HIGHEST_LIMIT as i64, keys: &HOLDER },
        "Slots in use, by repository and member: a number, or a list of holders.",
        "Tests of what happens when a repository is full.",
    ),
    key(
        "waiting",
        Shape::UsersByName { most: LONGEST_QUEUE as i64, keys: &WAITER },
        "Launches that wait, by repository and member: a number of others, or a list of users.",
        "Tests of queue lengths.",
    ),
    key("expect", Shape::OneOf(Expectation::words), "The expected decision.", "Every test.").required(),
    key(
        "by",
        Shape::Text,
        "The rule that refuses or exempts.",
        "Tests that must fail if another rule has the same effect.",
    ),
    key(
        "claims",
        Shape::Expected(&EXPECTED_CLAIM),
        "All claims that the launch acquires.",
        "Tests of how many slots a launch takes, and where.",
    ),
    key("wait", Shape::Wait, "How long it may wait for the slots that are in use.", "Tests of waits."),
    key("hold", Shape::OneOf(Hold::words), "What keeps its slots.", "Tests of holds."),
];

pub(super) static EXPECTED_CLAIM: Keys = Keys {
    what: "an expected claim",
    groups: &[&[
        key(
            "repository",
            Shape::Text,
            "The repository, with the member: \"matlab\", or \"matlab-per-user [ann]\".",
            "Every claim.",
        )
        .required(),
        key(
            "slots",
            Shape::Slots { least: 1 },
            "How many slots.",
            "Tests of programs that take several slots.",
        ),
        key(
            "limit",
            SLOT_COUNT_OR_NONE,
            "The limit that applies to this launch.",
            "Tests of other limits for some users or hours.",
        ),
    ]],
    together: &[],
};
