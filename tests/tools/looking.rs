//! What people see of limits: colours, whom to contact, and what is theirs.

use serde_json::Value;

use crate::support::{Account, Ending, Site, Terminal, eventually, needs_root, needs_tmux};

/// A policy with a contact for everything, and other ones for some.
const CONTACTS: &str = r#"
    defaults.contact   = "lab-help@example.org"
    defaults.unmatched = "refuse"

    [repository.seats]
    limit = 0

    [repository.nightly]
    limit      = 1
    if_elapsed = "1h"

    [[rule]]
    name     = "seats"
    commands = ["matlab"]
    acquire  = ["seats"]

    [[rule]]
    name     = "nightly"
    commands = ["true"]
    contact  = "operators, phone 4711"
    acquire  = ["nightly"]

    [[rule]]
    name     = "nobody"
    commands = ["virtuoso"]
    action   = "deny"
    contact  = "licences@example.org"

    [[rule]]
    name     = "nobody else"
    commands = ["spectre"]
    action   = "deny"
"#;

/// The last line of every refusal by a rule or a limit is `Contact: lab-help@example.org`. The contact of a
/// rule counts instead for what that rule refuses.
#[test]
fn the_last_line_of_a_refusal_says_whom_to_contact() {
    let site = Site::with_policy(CONTACTS);
    for program in ["matlab", "virtuoso", "spectre", "unknown"] {
        site.program(program);
    }
    site.test().args(["run", "--", "true"]).status(0);
    for (command, contact, status) in [
        ("matlab", "lab-help@example.org", 75),
        ("true", "operators, phone 4711", 69),
        ("virtuoso", "licences@example.org", 77),
        ("spectre", "lab-help@example.org", 77),
        ("unknown", "lab-help@example.org", 77),
    ] {
        let outcome = site.test().args(["run", "--", command]).outcome();
        let last = outcome.stderr.lines().last();
        assert_eq!(last, Some(format!("Contact: {contact}").as_str()), "{outcome:?}");
        assert_eq!(outcome.stderr.matches("Contact: ").count(), 1, "{outcome:?}");
        let explained = site.test().args(["explain", "--", command]).outcome().stdout;
        assert!(explained.contains(&format!("\nContact: {contact}\nNothing was taken.\n")), "{explained}");
        let json = site.test().args(["explain", "--json", "--", command]).outcome().stdout;
        let json: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["contacts"], serde_json::json!([contact]), "{json}");
        assert_eq!((outcome.ending, json["status"].as_i64()), (Ending::Status(status), Some(status.into())));
    }
    // Without a contact in the policy there is no such line.
    site.policy(&CONTACTS.replace("defaults", "# defaults").replace("    contact", "    # contact"));
    for command in ["matlab", "virtuoso", "spectre"] {
        let outcome = site.test().args(["run", "--", command]).outcome();
        assert!(!outcome.stderr.is_empty() && !outcome.stderr.contains("Contact"), "{outcome:?}");
    }
    let explained = site.test().args(["explain", "--", "unknown"]).outcome().stdout;
    assert!(!explained.contains("Contact"), "{explained}");
}

/// Several rules refuse: each contact once.
#[test]
fn each_contact_is_named_once() {
    let rule = |name: &str, contact: &str| {
        format!(
            "[repository.{name}]\nlimit = 0\n[[rule]]\nname = \"{name}\"\ncontact = \"{contact}\"\n\
             commands = [\"matlab\"]\nacquire = [\"{name}\"]\n"
        )
    };
    let contact = "\u{1b}[31mred\u{202e}";
    let site = Site::with_policy(&[rule("a", "ann"), rule("b", "bob"), rule("c", "ann")].concat());
    site.program("matlab");
    let told = |site: &Site| site.test().args(["run", "--", "matlab"]).outcome().stderr;
    assert!(told(&site).ends_with("\nContact: ann\nContact: bob\n"), "{}", told(&site));
    // What a terminal would obey is shown.
    site.policy(&rule("a", &contact.replace('\u{1b}', "\\u001b")));
    assert!(told(&site).ends_with("\nContact: \\u{1b}[31mred\\u{202e}\n"), "{}", told(&site));
    // It is printed, compared and checked like every key.
    let shown = site.test().args(["policy", "show"]).outcome().stdout;
    assert!(shown.contains("contact = "), "{shown}");
    site.write("old.toml", &rule("a", "ann"));
    site.write("new.toml", &rule("a", "bob"));
    let compared = site.test().args(["policy", "diff", "$DIR/old.toml", "$DIR/new.toml"]).outcome().stdout;
    assert!(
        compared.contains("contact") && compared.contains("ann") && compared.contains("bob"),
        "{compared}"
    );
    for wrong in [String::new(), " ".to_owned(), "two\\nlines".to_owned(), "x".repeat(201)] {
        site.policy(&rule("a", &wrong));
        let outcome = site.test().args(["policy", "check"]).outcome();
        assert!(outcome.stderr.contains("[bad-contact]"), "{wrong:?}: {outcome:?}");
        let refused = site.test().args(["run", "--", "cat"]).outcome();
        assert_eq!(refused.ending, Ending::Status(78), "{wrong:?}: {refused:?}");
    }
    site.policy(&rule("a", &"ä".repeat(200)));
    site.test().args(["policy", "check"]).status(0);
}

/// With the agent, and of a delegated drop-in.
#[test]
fn the_agent_and_delegated_files_name_their_contacts() {
    needs_root!();
    let policy = "
        defaults.contact = \"lab-help@example.org\"
        [delegate.\"20-cad.toml\"]
        owner    = \"games\"
        users    = [\"nobody\"]
        commands = [\"virtuoso\"]
        [repository.tokens]
        keeper = \"agent\"
        limit  = 0
        [[rule]]
        commands = [\"matlab\"]
        acquire  = [\"tokens\"]
        ";
    let (site, _agent) = Site::with_agent(policy);
    for program in ["matlab", "virtuoso"] {
        site.program(program);
    }
    let told = |command: &str| site.test().user("nobody").args(["run", "--", command]).outcome().stderr;
    assert!(told("matlab").ends_with("\nContact: lab-help@example.org\n"), "{}", told("matlab"));
    for (contact, expected) in [("", "lab-help@example.org"), ("contact = \"cad\"\n", "cad")] {
        let rule = format!("[[rule]]\ncommands = [\"virtuoso\"]\n{contact}action = \"deny\"\n");
        site.system_file("policy.d/20-cad.toml", &rule);
        let file = site.path("etc/rungate/policy.d/20-cad.toml");
        std::os::unix::fs::chown(&file, Some(site.user("games").uid), None).expect("another owner");
        assert!(told("virtuoso").ends_with(&format!("\nContact: {expected}\n")), "{}", told("virtuoso"));
    }
}

/// Listings, explanations, reports and what the doctor and `policy check` find are coloured on a terminal.
/// Words always say the same as the colours.
#[test]
fn colour_is_for_terminals_and_never_for_scripts() {
    let site = Site::with_policy(
        r#"
        [log]
        to     = "$DIR/log.jsonl"
        [repository.seats]
        limit = 1
        [repository.unused]
        limit = 1
        [[rule]]
        commands = ["matlab"]
        acquire  = ["seats"]
        "#,
    );
    site.program("matlab");
    let _running = site.test().args(["run", "--", "matlab"]).spawn();
    let plain = |words: &[&str]| site.test().args(words);
    let both = |test: &crate::support::Test| {
        let outcome = test.outcome();
        outcome.stdout + &outcome.stderr
    };
    for words in [
        &["status"][..],
        &["list"],
        &["explain"],
        &["explain", "--", "matlab"],
        &["doctor"],
        &["policy", "check"],
        &["report"],
    ] {
        let text = both(&plain(words));
        assert!(!text.is_empty() && !text.contains('\u{1b}'), "{words:?}: {text:?}");
        let forced = both(&plain(words).env("CLICOLOR_FORCE", "1"));
        assert!(forced.contains('\u{1b}'), "{words:?}: {forced:?}");
        let mut stripped = forced;
        for sequence in ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[32m", "\u{1b}[1;31m", "\u{1b}[1;35m"]
        {
            stripped = stripped.replace(sequence, "");
        }
        let without_times = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
        assert_eq!(without_times(&stripped), without_times(&text), "{words:?}");
        let refused = both(&plain(words).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1"));
        assert!(!refused.contains('\u{1b}'), "{words:?}: {refused:?}");
        if *words != ["explain", "--", "matlab"] {
            let json = both(&plain(words).args(["--json"]).env("CLICOLOR_FORCE", "1"));
            assert!(!json.contains('\u{1b}'), "{words:?}: {json:?}");
        }
    }
    let refusal = both(&plain(&["run", "--", "matlab"]).env("CLICOLOR_FORCE", "1"));
    assert!(refusal.contains("not started") && !refusal.contains('\u{1b}'), "{refusal:?}");
}

/// The same on a real terminal of each width: colours, and no line that the terminal has to break.
#[test]
fn a_terminal_shows_colours_and_whole_lines() {
    needs_tmux!();
    let site = Site::with_policy(CONTACTS);
    site.program("matlab");
    let rungate = site.rungate().display().to_string();
    for columns in [80, 120, 200] {
        let terminal = Terminal::open_for(site.test(), (columns, 50));
        for command in ["status", "explain", "explain -- matlab"] {
            terminal.command(&format!("clear; {rungate} {command}; echo 'the end'"));
            let screen = terminal.shows("\nthe end\n");
            assert!(screen.lines().all(|line| line.chars().count() <= columns), "{screen}");
            assert!(terminal.painted_screen().contains("\u{1b}["), "{screen}");
            terminal.command(&format!("clear; NO_COLOR=1 {rungate} {command}; echo 'plain end'"));
            terminal.shows("\nplain end\n");
            assert!(!terminal.painted_screen().contains("\u{1b}["), "{}", terminal.painted_screen());
        }
    }
}

/// Without a command it shows what concerns the caller alone.
#[test]
fn explain_without_a_command_shows_what_is_mine() {
    needs_root!();
    let site = Site::with_policy(
        r#"
        [log]
        to     = "$DIR/log.jsonl"

        [repository.seats]
        limit = 3

        [repository.each]
        per    = "user"
        limit  = 2
        limits = { games = 4 }

        [repository.by-directory]
        per   = "directory"
        limit = 1

        [repository.others]
        limit = 9

        [[rule]]
        name     = "seats"
        commands = ["matlab"]
        acquire  = ["seats", "each"]

        [[rule]]
        name     = "small"
        commands = ["viewer"]
        acquire  = [{ repository = "seats", ceiling = 1 }, "by-directory"]

        [[rule]]
        name     = "others"
        commands = ["matlab"]
        users    = ["root"]
        acquire  = ["others"]
        "#,
    );
    site.program("matlab");
    std::fs::write(site.path("log.jsonl"), "").expect("a log");
    crate::support::set_mode(&site.path("log.jsonl"), 0o666);
    let matlab = |user: &str| site.test().user(user).args(["run", "-w", "forever", "--", "matlab"]);
    let mine = |user: &str, words: &[&str]| site.test().user(user).args(["explain"]).args(words).outcome();
    let of = |user: &str| -> Value {
        let outcome = mine(user, &["--json"]);
        assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(0), ""), "{outcome:?}");
        serde_json::from_str(&outcome.stdout).expect("JSON")
    };
    let numbers = |json: &Value| -> Vec<String> {
        let limits = json["limits"].as_array().expect("limits").iter();
        limits
            .map(|limit| {
                format!(
                    "{} {} {} {}",
                    limit["repository"].as_str().expect("a name"),
                    limit["limit"],
                    limit["mine"],
                    limit["used"]
                )
            })
            .collect()
    };
    // Nobody has used anything yet, and what is not for this user is not shown.
    assert_eq!(numbers(&of("games")), ["seats 3 0 0", "each 4 0 0"]);
    assert_eq!(of("games")["limits"][0]["lower"][0]["rule"], "small");
    assert_eq!(of("games")["by_command"], serde_json::json!(["by-directory"]));
    assert_eq!(numbers(&of("root")), ["seats 3 0 0", "each 2 0 0", "others 9 0 0"]);

    let first = matlab("games").spawn();
    let _second = matlab("games").spawn();
    let holder = matlab("nobody").spawn();
    let waiter = matlab("games").background();
    site.stands_in_line("seats.lock", &waiter);
    let json = of("games");
    assert_eq!(numbers(&json), ["seats 3 2 3", "each 4 2 2"]);
    assert_eq!(json["held"].as_array().map(Vec::len), Some(4));
    assert_eq!(
        (&json["held"][0]["repository"], &json["held"][0]["pid"]),
        (&"seats".into(), &first.pid().into())
    );
    assert_eq!((&json["waiting"][0]["place"], &json["waiting"][0]["of"]), (&1.into(), &1.into()));
    assert_eq!(json["waiting"][0]["pid"], waiter.pid());
    assert_eq!(numbers(&of("nobody")), ["seats 3 1 3", "each 2 1 1"]);
    assert_eq!(of("nobody")["waiting"], serde_json::json!([]));
    let text = mine("games", &[]).stdout;
    for expected in [
        "\nREPOSITORY   LIMIT OWN ALL WAIT NOTE\n",
        "seats            3   2   3    1 1 by rule \"small\"\n",
        "by-directory     -   -   -    - depends on the command: rungate explain -- COMMAND\n",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    assert!(text.contains("\nHELD ") && text.contains("\nQUEUE ") && text.contains(" 1 of 1 "), "{text}");
    // Root asks for them.
    let asked: Value =
        serde_json::from_str(&mine("root", &["--json", "--user", "games"]).stdout).expect("JSON");
    assert_eq!(numbers(&asked), numbers(&json));

    // "How long launches waited for these repositories in the last 30 days, and how many gave up."
    let gave_up = site.test().user("nobody").args(["run", "-w", "100ms", "--", "matlab"]).outcome();
    assert_eq!(gave_up.ending, Ending::Status(124), "{gave_up:?}");
    drop(holder);
    eventually("the waiter starts", || (of("games")["waiting"] == serde_json::json!([])).then_some(()));
    let waits = eventually("its wait is logged", || {
        let waits = of("games")["waits"].clone();
        (waits[0]["started"] == 1 && waits[0]["gave_up"] == 1).then_some(waits)
    });
    assert_eq!(waits[0]["repository"], "seats");
    assert!(waits[0]["median_seconds"].as_f64().expect("seconds") > 0.0, "{waits}");
    let text = mine("games", &[]).stdout;
    assert!(text.contains("\nWaits for seats in the last 30 days: 1 took "), "{text}");
    assert!(text.contains(", 1 gave up\n"), "{text}");
    // "If the log of the policy can be read."
    crate::support::set_mode(&site.path("log.jsonl"), 0o600);
    let text = mine("games", &[]).stdout;
    assert!(text.contains("\nPast waits are not known: the log "), "{text}");
    assert!(text.contains("log.jsonl cannot be read: Permission denied\n"), "{text}");
    drop(waiter);
}

/// What needs a command says so, and rules for everything are named.
#[test]
fn explain_without_a_command_knows_rules_for_everything() {
    let site = Site::with_policy("[[rule]]\nname = \"no\"\naction = \"deny\"\n");
    let own = Account::own().name;
    let text = site.test().args(["explain"]).outcome().stdout;
    assert!(text.contains("\neverything is refused by rule \"no\", "), "{text}");
    site.policy("[[rule]]\nname = \"free\"\naction = \"exempt\"\n");
    let text = site.test().args(["explain"]).outcome().stdout;
    assert!(text.contains("\nnothing is limited by rule \"free\", "), "{text}");
    site.policy("defaults.unmatched = \"refuse\"\n");
    let text = site.test().args(["explain"]).outcome().stdout;
    assert!(text.contains("\neverything is refused: no rule allows it (unmatched = \"refuse\")\n"), "{text}");
    let json = site.test().args(["explain", "--json"]).outcome().stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["unmatched"], &json["denied"]), (&true.into(), &Value::Null));
    site.policy("[repository.a]\nlimit = 1\n[[rule]]\nusers = [\"daemon\"]\nacquire = [\"a\"]\n");
    let text = site.test().args(["explain"]).outcome().stdout;
    assert!(text.contains(&format!("\nNo rule of the policy limits what {own} starts.\n")), "{text}");
    for option in [&["--at", "14:02"][..], &["--as", "x"], &["-v"], &["--host", "x"]] {
        let outcome = site.test().args(["explain"]).args(option).outcome();
        assert_eq!(outcome.ending, Ending::Status(64), "{option:?}: {outcome:?}");
    }
}
