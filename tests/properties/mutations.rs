//! Policies that were damaged at random. Whatever the text, reading it ends with a policy or with faults that can be
//! shown, and what is judged by a policy that was read is judged to an end.

use std::fs;

use proptest::{collection::vec, prelude::*, sample::select};
use rungate::policy::{Policy, codes};

use super::request::{Launch, launches};

/// A policy in which every key of the language stands.
const EVERYTHING: &str = r#"
version = 1
[defaults]
directory = "/run/rungate"
wait = "10m"
hold = "process"
unmatched = "refuse"
enforce = true
create_mode = "0666"
time_zone = "UTC"
fd_floor = 200
[alias]
matlab = ["matlab", "mex"]
service = ["svc-*", "%daemons"]
[log]
to = "journald"
events = "all"
[command.matlab]
exec = "/opt/matlab"
[repository.matlab]
limit = 50
reserve = [{ for = ["%cad"], slots = 10, lend = 6 }]
nested = "take"
[repository.each]
per = ["user", "host"]
limit = "2/cpu"
[repository.group]
per = "group"
limit = 10
limits = { cad = 20, "s*" = 5 }
charge = "any"
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
when = ["Mon-Fri 08:00-18:00", "2026-12-24..2026-12-26"]
except = [{ users = ["@service"] }]
first_of = "f"
order = -1
acquire = ["each", { repository = "matlab", ceiling = 30, slots = 2 }, { any_of = ["group", "nightly"] }]
wait = "forever"
hold = "supervisor"
message = "no"
[[rule]]
name = "free"
first_of = "f"
acquire = [{ repository = "matlab", leave = 3, slots_from = { after = "-np", most = 16 } }]
admit = "always"
enforce = false
[[rule]]
name = "no"
enabled = false
action = "deny"
[[rule]]
name = "exempt"
users = ["root"]
action = "exempt"
from = ["matlab"]
[[test]]
name = "t"
user = "ann"
command = "matlab"
expect = "start"
use = { matlab = 3 }
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
enum Damage {
    Remove(usize, usize),
    Insert(usize, &'static str),
    Repeat(usize, usize),
    Swap(usize, usize),
}

fn damages() -> impl Strategy<Value = Damage> {
    let anywhere = || 0..10_000usize;
    prop_oneof![
        (anywhere(), 1..40usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        (anywhere(), select(PIECES)).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        (anywhere(), anywhere()).prop_map(|(line, to)| Damage::Repeat(line, to)),
        (anywhere(), anywhere()).prop_map(|(line, with)| Damage::Swap(line, with)),
    ]
}

fn damage(text: &str, damage: &Damage) -> String {
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
fn the_policy_in_which_every_key_stands_is_none_with_a_fault() {
    let text = EVERYTHING.replace("\"group\", \"nightly\"", "\"nightly\"").replace("if_elapsed_from", "#");
    if let Err(faults) = Policy::of_text("/p.toml", EVERYTHING) {
        panic!("{faults}\n{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

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
