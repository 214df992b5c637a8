//! Policies that were damaged at random. Whatever the text, reading it ends with a policy or with faults that
//! can be shown, and what is judged by a policy that was read is judged to an end.

use std::fs;

use proptest::{collection::vec, prelude::*, sample::select};
use rungate::policy::{Policy, codes};

use super::{
    cases,
    request::{Launch, launches},
};
use crate::docs::manual::{has_key, keys_of_a_policy};

/// A policy in which every key of the language stands, and every form of its values.
pub(super) const EVERYTHING: &str = r#"
version = 1
[defaults]
directory = "/run/rungate"
wait = "10m"
hold = "process"
unmatched = "refuse"
enforce = true
create_mode = "0666"
contact = "lab-help@example.org"
time_zone = "UTC"
[alias]
matlab = ["matlab", "mex"]
service = ["svc-*", "%daemons"]
people = ["ann", "%cad", 4711]
[delegate."20-cad.toml"]
owner = "ann"
users = ["%cad"]
commands = ["@matlab", "cad-*"]
[log]
to = "/var/log/{host}.log"
replay = true
[command.matlab]
exec = "/opt/matlab"
[repository.matlab]
limit = 50
reserve = [{ users = ["%cad"], slots = 10, lend = 6 }, { hosts = ["lab*"], when = ["22:00-06:00"], slots = "20%" }]
limits = [{ when = ["Sat,Sun"], limit = 40 }]
nested = "take"
wait = "2h"
queue = 20
queue_per_user = 2
max_wait = "3h"
[repository.each]
per = ["user", "host"]
limit = "2/cpu"
limits = [{ users = ["%cad", "@people"], hosts = ["ws*"], limit = 4 }, { when = ["22:00-06:00"], limit = 9 }]
[repository.person]
per = "user"
limit = 3
limits = { ann = 8, "%cad" = 6, "5000-5999" = 1, "@people" = 2 }
[repository.tokens]
limit = 100
outside = { command = ["/usr/lib/rungate/outside/lmstat", "--server", "27000@lic1", "MATLAB"], counts = "all", of = "site", every = "15s", stale_after = "2m", when_stale = "refuse", settle = "30s" }
[repository.shared]
keeper = "agent"
limit = 3
shared_by = ["user", "host"]
linger = "90s"
[repository.group]
per = "group"
limit = 10
limits = { cad = 20, "s*" = 5 }
charge = "any"
[repository.job]
per = ["{project}", "{job}"]
limit = 0
limits = [{ when = ["2026-11-20 18:00..2026-11-22 20:00"], limit = 1 }]
[repository.gpu]
names = ["0", "1", "2", "3"]
out_of_order = { "ws*" = ["2"], lab = ["0", "1"] }
[repository.port]
per = "host"
names = ["8001", "8002"]
out_of_order = ["8002"]
limit = 2
[repository.kept]
limit = 4
keeper = "agent"
unreachable = "start"
[repository.seats]
limit = 4
keeper = "site"
on_lost = "stop"
[repository.nightly]
path = "n/{command}-{arg1}.lock"
limit = 1
if_elapsed = "15m"
if_elapsed_from = "end"
too_soon = "ok"
expire_after = "1h30m"
expire_grace = "2s"
expire_kill = "group"
hold = "tree"
[[rule]]
name = "seats"
commands = ["@matlab", "/opt/**/m*"]
arguments = ["-batch", ["-np", "*"]]
users = ["ann", "%cad", "+lab", "1000-9999", 5]
groups = ["cad", "sim"]
hosts = ["ws*"]
directories = ["/proj/**"]
environment = { PROJECT = ["apollo"], DEBUG = false }
when = ["Mon-Fri 08:00-18:00", "2026-12-24..2026-12-26", "Fri 18:00..Sun 20:00"]
except = [{ users = ["@service"] }]
first_of = "f"
order = -1
acquire = ["each", { repository = "matlab", ceiling = 30, slots = 2, wait = "0s" }, { any_of = ["group", "nightly"] }]
wait = "forever"
hold = "supervisor"
message = "no"
[[rule]]
name = "jobs"
directories = ["/proj/{project}/**"]
arguments = [["--job", "{job}"], "--job={job}"]
acquire = ["job", { repository = "person", ceiling = "60%" }]
[[rule]]
name = "all of them"
arguments = { all = ["-batch", ["-np", "*"]] }
acquire = [{ any_of = [["gpu", { repository = "port", slots = "all" }], "person"] }, "kept"]
[[rule]]
name = "exactly these"
arguments = { exactly = ["push", "**"] }
environment = { JOB = ["{job}"], PROJECT = ["x-{project}"] }
acquire = ["job"]
[[rule]]
name = "free"
first_of = "f"
acquire = [{ repository = "matlab", ceiling = "97%", slots = 0, slots_from = { after = "-np", most = 16, unclear = "refuse" } }, { repository = "tokens", slots_from = { after = ["cpus", "gpus"], absent = 1, table = { 1 = 50, 2 = 59 } } }]
action = "count"
enforce = false
[[rule]]
name = "no"
action = "deny"
[[rule]]
name = "exempt"
users = ["root"]
action = "exempt"
from = ["matlab"]
[[test]]
name = "t"
user = 2000
groups = ["cad", 2001, "+lab"]
command = "matlab"
path = "/opt/matlab"
arguments = ["-batch"]
host = "ws17"
directory = "/proj/apollo"
environment = { PROJECT = "apollo" }
time = "2026-11-20 14:02"
cpus = 4
use = { matlab = 3, "person [ann]" = [{ user = "ann", groups = ["cad", "+lab"], slots = 2 }] }
waiting = { matlab = 2, "person [ann]" = [{ user = "ann", groups = ["cad", "+lab"] }] }
expect = "wait"
wait = "1h"
hold = "supervisor"
[[test]]
name = "u"
command = "free"
expect = "would-refuse"
by = "free"
claims = ["matlab", { repository = "person [ann]", slots = 1, limit = 2 }]
"#;

/// Pieces of the language and of what does not belong there.
const PIECES: &[&str] = &[
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "\n",
    "#",
    "\\",
    "0",
    "-1",
    "1e9",
    "true",
    "@",
    "!",
    "%",
    "*",
    "{user}",
    "{",
    "..",
    "/",
    "\u{0}",
    "\u{1b}[31m",
    "\u{9b}",
    "ü",
    "\u{202e}",
    "\"\"\"",
    "limit = 0",
    "[rule]",
    "[[rule]]\n",
    "action = \"exempt\"\n",
    "acquire = []\n",
    "99999999999999999999",
    "2026-01-01",
    "\r\n",
    "\r",
    "\u{feff}",
];

#[derive(Clone, Debug)]
pub(super) enum Damage {
    Remove(usize, usize),
    Insert(usize, &'static str),
    Repeat(usize, usize),
    Swap(usize, usize),
}

pub(super) fn damages() -> impl Strategy<Value = Damage> {
    let anywhere = || 0..10_000usize;
    prop_oneof![
        (anywhere(), 1..40usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        (anywhere(), select(PIECES)).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        (anywhere(), anywhere()).prop_map(|(line, to)| Damage::Repeat(line, to)),
        (anywhere(), anywhere()).prop_map(|(line, with)| Damage::Swap(line, with)),
    ]
}

pub(super) fn damage(text: &str, damage: &Damage) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut lines: Vec<&str> = text.lines().collect();
    let within = |number: usize, length: usize| number % length.max(1);
    match *damage {
        Damage::Remove(at, length) => {
            let at = within(at, characters.len());
            let until = (at + length).min(characters.len());
            characters[..at].iter().chain(&characters[until..]).collect()
        }
        Damage::Insert(at, piece) => {
            let at = within(at, characters.len());
            let (before, after): (String, String) =
                (characters[..at].iter().collect(), characters[at..].iter().collect());
            format!("{before}{piece}{after}")
        }
        Damage::Repeat(line, to) if !lines.is_empty() => {
            let line = lines[within(line, lines.len())];
            lines.insert(within(to, lines.len()), line);
            lines.join("\n")
        }
        Damage::Swap(line, with) if !lines.is_empty() => {
            let (line, with) = (within(line, lines.len()), within(with, lines.len()));
            lines.swap(line, with);
            lines.join("\n")
        }
        Damage::Repeat(..) | Damage::Swap(..) => text.to_owned(),
    }
}

/// The policies that are damaged: the one above, and those that come with rungate.
fn originals() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/policies");
    let files =
        fs::read_dir(folder).expect("the example policies").map(|entry| entry.expect("an entry").path());
    let toml = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let texts = toml.map(|path| fs::read_to_string(path).expect("a policy"));
    texts.chain([EVERYTHING.to_owned()]).collect()
}

fn judge(text: &str, launch: &Launch) -> Result<(), TestCaseError> {
    match Policy::of_text("/p.toml", text) {
        Ok(policy) => drop(launch.judged_by(&policy)),
        Err(faults) => {
            prop_assert!(faults.count() > 0);
            let shown = faults.to_string();
            let harmful = |c: char| c.is_control() && c != '\n';
            prop_assert!(!shown.contains(harmful), "control characters are shown: {shown:?}");
            for fault in &faults {
                prop_assert!(codes().any(|code| code == fault.code));
                prop_assert!(fault.headline().starts_with("/p.toml"));
            }
        }
    }
    Ok(())
}

#[test]
fn the_policy_in_which_every_key_stands_has_them_all_and_no_fault() {
    if let Err(faults) = Policy::of_text("/p.toml", EVERYTHING) {
        panic!("{faults}");
    }
    let dictionary =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/policy.dict")).expect("the dictionary");
    for key in keys_of_a_policy() {
        assert!(has_key(EVERYTHING, &key), "{key}");
        assert!(dictionary.contains(&format!("\"{key}\"")), "{key} is not in the fuzzers' dictionary");
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn a_damaged_policy_is_read_to_an_end_and_never_starts_anything_by_accident(
        text in select(originals()),
        damages in vec(damages(), 1..6),
        launch in launches(),
    ) {
        let damaged = damages.iter().fold(text, |text, one| damage(&text, one));
        judge(&damaged, &launch)?;
    }
}
