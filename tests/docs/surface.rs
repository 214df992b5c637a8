//! What a person has to learn, counted: subcommands, options and JSON documents. Each option has a sentence
//! that says who needs it and when; an option without one does not pass.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clap::CommandFactory;
use rungate::cli::CommandLine;

use crate::support::tell;

/// How many subcommands there are on the first level, options, each as often as a subcommand has it, options
/// that mean different things, and JSON documents.
const COUNTS: [usize; 4] = [19, 77, OPTIONS.len(), 9];

/// An option that means the same wherever it is, or one of a subcommand; and who needs it when.
const OPTIONS: [(&str, &str); 63] = [
    ("--policy", "a user without a system policy, or an author who tries a file before root installs it"),
    ("--json", "a script, which must not read tables for people"),
    ("--since", "an administrator who asks about last week, in a log of years"),
    ("--until", "an administrator who compares one month with the next"),
    ("--accounts", "an administrator who looks at the log of another machine, which has numbers for users"),
    ("run --wait", "a user who would rather wait than come again"),
    ("run --nonblock", "a script that has something else to do if a limit is reached"),
    ("run --notify", "a user who waits for hours, and does something else meanwhile"),
    ("run --as", "a crontab line, an interpreter or a container, whose program is not what the rule names"),
    (
        "run --hold",
        "a user whose program leaves children or closes descriptors, where the policy does not say so",
    ),
    (
        "run --conflict-exit-code",
        "a script written for flock(1), which tells refusals by a status of its own",
    ),
    ("run --limit", "a user who limits a program of their own without writing a policy"),
    ("run --repository", "two commands or two users that share such a limit"),
    ("run --slots", "a program that counts for more than one of such a limit"),
    ("run --verbose", "a user who wants to know which seats a start took"),
    ("run --quiet", "a crontab line, whose output cron would mail"),
    ("acquire --fd", "a script that locks a part of itself, as with flock 9"),
    ("acquire --path", "the same script, which has to open the lock file first"),
    ("acquire --export", "a script that starts limited commands within that part, or needs the slot's name"),
    ("acquire --wait", "a script that would rather wait than give up"),
    ("acquire --limit", "a user who locks a part of a script without writing a policy"),
    ("explain --user", "an administrator who answers why somebody else was refused"),
    ("explain --at", "an author of rules for hours, who does not want to wait until night"),
    ("explain --host", "an author of rules for hosts, on one of them"),
    ("explain --as", "whoever starts with run --as"),
    ("explain --verbose", "an author who wonders why a rule for a similar command does not match"),
    ("status --watch", "somebody who waits for a seat, or looks after many"),
    ("list --user", "support, or a user, who looks for one person's slots and places among many"),
    ("history --user", "support, about one user's complaint"),
    ("history --command", "support, about one program"),
    (
        "history --repository",
        "an owner of licences, about their own seats with the ends, which name no repository",
    ),
    ("history --follow", "somebody who changes a policy and watches what it does"),
    ("metrics --output", "node_exporter's textfile collector, which must never meet half a file"),
    ("prune --dry-run", "an administrator who looks which files would go"),
    ("measure --every", "the service that measures, and hosts without systemd"),
    (
        "measure --processes",
        "the measuring command of that name, and an administrator who looks who goes around",
    ),
    ("end --overdue", "the timer that ends what has run for too long, whether somebody waits or not"),
    ("end --dry-run", "an administrator who looks whom it would end"),
    ("end --yes", "a script that frees seats without a terminal"),
    ("policy check --as", "configuration management, which validates a drop-in under a temporary name"),
    ("policy check --from", "an administrator who must not refuse people that could start until today"),
    ("policy check --strict", "a pipeline that accepts no warning"),
    ("policy edit --yes", "a script that edits by sed, without a terminal"),
    ("policy edit --allow-uncounted", "the same, when a repository moves while slots are held"),
    ("policy install --yes", "configuration management, without a terminal"),
    ("policy install --allow-uncounted", "the same, when a repository moves while slots are held"),
    ("policy undo --yes", "an administrator who takes a change back by a script"),
    ("policy undo --allow-uncounted", "the same, when a repository moves while slots are held"),
    ("policy install --dry-run", "an administrator who looks who would be refused before the change"),
    ("policy install --name", "a file that is not called what it is to be called, as one of a pipeline"),
    ("policy install --remove", "a drop-in that goes, with the checks that one that comes has"),
    ("report --html", "an administrator who mails the use of licences to those who pay"),
    ("simulate --limit", "a buyer of licences, who asks how many are enough"),
    ("simulate --seats-for", "the same, by the share that should start at once"),
    ("simulate --wait", "an author who asks what a queue would do, before there is one"),
    ("simulate --enforced", "a site with enforce = false, before it enforces"),
    ("simulate --each-host", "a site with lock files on each host, whose logs are merged"),
    ("doctor --verbose", "an administrator who wants to see what was looked at"),
    ("init --limit", "the first minute: a policy for a program in one line"),
    ("init --for", "somebody with coding agents, GPUs or CI runners, who begins with the example that fits"),
    ("init --repositories", "an administrator after a policy changed its directories, or a boot script"),
    ("init --dry-run", "a user who looks what init would write into their home"),
    ("shim install --dry-run", "an administrator who looks which commands the policy names"),
];

fn options(command: &clap::Command, above: &str) -> Vec<(String, String)> {
    let long = |argument: &clap::Arg| Some((above.to_owned(), format!("--{}", argument.get_long()?)));
    let mut found: Vec<(String, String)> = command.get_arguments().filter_map(long).collect();
    for inner in command.get_subcommands() {
        let path = format!("{above} {}", inner.get_name()).trim_start().to_owned();
        found.extend(options(inner, &path));
    }
    found
}

#[test]
fn what_a_person_has_to_learn_is_counted() {
    let command = CommandLine::command();
    let options = options(&command, "");
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/rungate-json.5");
    let manual = fs::read_to_string(manual).expect("the manual");
    let documents = manual.lines().filter(|line| line.starts_with(".It Nm rungate ")).count();
    let counts = [command.get_subcommands().count(), options.len(), OPTIONS.len(), documents];
    let [subcommands, all, different, documents] = counts;
    tell(&format!(
        "{subcommands} subcommands, {all} options ({different} different ones), {documents} JSON documents"
    ));
    // What becomes fewer is recorded here too, so that it does not come back unseen.
    assert_eq!(counts, COUNTS);
}

#[test]
fn every_option_has_a_sentence_that_says_who_needs_it() {
    let mut sentences: BTreeMap<&str, (&str, bool)> =
        OPTIONS.iter().map(|(option, sentence)| (*option, (*sentence, false))).collect();
    assert_eq!(sentences.len(), OPTIONS.len(), "an option has two sentences");
    let mut without = Vec::new();
    for (path, long) in options(&CommandLine::command(), "") {
        let own = format!("{path} {long}");
        let name = if sentences.contains_key(own.as_str()) { own.as_str() } else { long.as_str() };
        match sentences.get_mut(name) {
            Some((_, is_used)) => *is_used = true,
            None => without.push(own),
        }
    }
    assert!(without.is_empty(), "nobody says who needs them: {without:#?}");
    for (option, (sentence, is_used)) in sentences {
        assert!(is_used, "there is no {option}");
        assert!(sentence.split_whitespace().count() >= 4, "{option}: {sentence}");
    }
}
