//! "Which rules count", case by case: what a launch takes, as the program itself sees it in `RUNGATE_HELD`,
//! or the status with which it was refused.

use crate::support::{Account, Ending, Site, needs_root, unindent};

const REPOSITORIES: &str = r#"
    version = 1

    [defaults]
    directory = "$DIR/repositories"
    create_mode = "0666"

    [repository.a]
    limit = 5

    [repository.b]
    limit = 5

    [repository.full]
    limit = 0

    [repository.each-group]
    per   = "group"
    limit = 5
"#;

/// What must come of a launch.
enum Expected {
    /// It starts and holds a slot in each of these.
    Holds(&'static [&'static str]),
    /// It is refused with this status.
    Status(i32),
}

use Expected::{Holds, Status};

/// Launches `tool` with the rules in force, as the user that runs the tests.
#[track_caller]
fn case(rules: &str, words: &[&str], expected: &Expected) {
    judge(&site(rules), None, words, expected);
}

/// The same as games, who is in these groups besides their own.
#[track_caller]
fn case_of_games(rules: &str, groups: &[&'static str], expected: &Expected) {
    judge(&site(rules), Some(groups), &[], expected);
}

fn site(rules: &str) -> Site {
    let site = Site::with_policy(&format!("{}{rules}", unindent(REPOSITORIES)));
    site.script("tool", "#!/bin/sh\nprintf '%s\\n' \"${RUNGATE_HELD-none}\"\n");
    site
}

#[track_caller]
fn judge(site: &Site, groups: Option<&[&'static str]>, words: &[&str], expected: &Expected) {
    let mut test = site.test().args(["run", "--", "tool"]).args(words);
    if let Some(groups) = groups {
        test = test.user("games").groups(groups.iter().copied());
    }
    let outcome = test.outcome();
    match expected {
        Holds(repositories) => {
            assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
            let mut held: Vec<&str> = outcome
                .stdout
                .split_whitespace()
                .filter(|word| *word != "none")
                .map(|entry| entry.split('=').next().unwrap_or(entry))
                .collect();
            held.sort_unstable();
            assert_eq!(&held, repositories);
        }
        Status(status) => {
            assert_eq!(outcome.ending, Ending::Status(*status), "{}{}", outcome.stdout, outcome.stderr);
            assert_eq!(outcome.stdout, "", "it was not started");
        }
    }
}

/// All that match. … every claim of every one of them is taken.
#[test]
fn every_rule_that_matches_counts() {
    let both = r#"
        [[rule]]
        name     = "first"
        commands = ["tool"]
        acquire  = ["a"]

        [[rule]]
        name     = "second"
        commands = ["t*"]
        acquire  = ["b"]

        [[rule]]
        name     = "another"
        commands = ["other"]
        acquire  = ["full"]
    "#;
    case(both, &[], &Holds(&["a", "b"]));
    case(&both.replace("commands = [\"t*\"]", "commands = [\"x*\"]"), &[], &Holds(&["a"]));
    case(&both.replace("commands = [\"other\"]", ""), &[], &Status(75));
}

/// A match of `except` **always wins** over inclusion: also over one that names the very user, in any
/// order.
#[test]
fn exclusion_beats_inclusion() {
    needs_root!();
    let rule = r#"
        [[rule]]
        name    = "included and excluded"
        users   = ["games", "*"]
        groups  = ["users"]
        except  = [{ users = ["nobody"] }, { users = ["g*"], groups = ["audio"] }]
        acquire = ["a"]
    "#;
    case_of_games(rule, &["users"], &Holds(&["a"]));
    // "The keys of one table must all match, the tables are alternatives."
    case_of_games(rule, &["users", "audio"], &Holds(&[]));
    case_of_games(&rule.replace("\"nobody\"", "\"games\""), &["users"], &Holds(&[]));
}

/// Rules with the same `first_of` are alternatives: only the first that matches counts; `order` (lower
/// first), then file order, decides.
#[test]
fn the_first_of_a_family_shadows_the_rest() {
    let family = r#"
        [[rule]]
        name     = "first"
        first_of = "family"
        commands = ["FIRST"]
        acquire  = ["a"]

        [[rule]]
        name     = "second"
        first_of = "family"
        acquire  = ["b"]
        #ORDER
    "#;
    case(&family.replace("FIRST", "tool"), &[], &Holds(&["a"]));
    case(&family.replace("FIRST", "other"), &[], &Holds(&["b"]));
    case(&family.replace("FIRST", "tool").replace("#ORDER", "order = -1"), &[], &Holds(&["b"]));
    case(&family.replace("FIRST", "tool").replace("#ORDER", "order = 1"), &[], &Holds(&["a"]));
    // A rule outside of the family is not concerned.
    let outside = "\n[[rule]]\nname = \"outside\"\nacquire = [\"b\"]\n";
    case(&(family.replace("FIRST", "tool") + outside), &[], &Holds(&["a", "b"]));
}

/// So that a drop-in can stand before the main file.
#[test]
fn order_lets_a_drop_in_stand_before_the_main_file() {
    needs_root!();
    let site = Site::new();
    let main = r#"
        [[rule]]
        name     = "site"
        first_of = "family"
        acquire  = ["a"]
    "#;
    let drop_in = r#"
        version = 1

        [[rule]]
        name     = "department"
        first_of = "family"
        acquire  = ["b"]
    "#;
    site.system_policy(&format!("{}{main}", unindent(REPOSITORIES)));
    site.script("tool", "#!/bin/sh\nprintf '%s\\n' \"${RUNGATE_HELD-none}\"\n");
    site.system_file("policy.d/50-department.toml", drop_in);
    judge(&site, None, &[], &Holds(&["a"]));
    site.system_file(
        "policy.d/50-department.toml",
        &drop_in.replace("first_of", "order = -1\n        first_of"),
    );
    judge(&site, None, &[], &Holds(&["b"]));
}

/// Among the rules that count a `deny` refuses; otherwise an `exempt` starts the program with no slot;
/// otherwise every claim is taken.
#[test]
fn deny_beats_exempt_beats_limit() {
    let rule = |name: &str, action: &str| format!("\n[[rule]]\nname = \"{name}\"\n{action}\n");
    let limit = rule("limit", "acquire = [\"a\"]");
    let exempt = rule("exempt", "action = \"exempt\"");
    let deny = rule("deny", "action = \"deny\"");
    // In every order in which they can stand.
    for rules in [[&limit, &exempt], [&exempt, &limit]] {
        case(&rules.map(String::as_str).concat(), &[], &Holds(&[]));
    }
    for rules in [[&limit, &exempt, &deny], [&deny, &exempt, &limit], [&exempt, &deny, &limit]] {
        case(&rules.map(String::as_str).concat(), &[], &Status(77));
    }
    case(&[&*limit, &deny].concat(), &[], &Status(77));
    // An exemption also from what is full.
    case(&[&*exempt, "\n[[rule]]\nname = \"f\"\nacquire = [\"full\"]\n"].concat(), &[], &Holds(&[]));
}

/// A launch that finds its rule's repository full does not try the next rule.
#[test]
fn there_is_no_falling_through() {
    let family = r#"
        [[rule]]
        name     = "first"
        first_of = "family"
        acquire  = ["full"]

        [[rule]]
        name     = "second"
        first_of = "family"
        acquire  = ["a"]
    "#;
    case(family, &[], &Status(75));
    case(&family.replace("first_of = \"family\"", ""), &[], &Status(75));
    // What is meant to be tried next is said so.
    let any = "\n[[rule]]\nname = \"any\"\nacquire = [{ any_of = [\"full\", \"a\", \"b\"] }]\n";
    case(any, &[], &Holds(&["a"]));
}

/// A member of two departments counts against both.
#[test]
fn a_member_of_two_groups_counts_against_both() {
    needs_root!();
    let rule = r#"
        [[rule]]
        name    = "departments"
        groups  = ["audio", "video", "users"]
        acquire = ["each-group"]
    "#;
    let site = site(rule);
    site.program("tool");
    let tool =
        |groups: [&'static str; 2]| site.test().user("games").groups(groups).args(["run", "--", "tool"]);
    let _running = tool(["audio", "video"]).spawn();
    let files = |group| site.held(&format!("each-group.{}.lock", Account::group_id(group))).len();
    assert_eq!(["audio", "video", "users"].map(files), [1, 1, 0]);
    let _another = tool(["video", "users"]).spawn();
    assert_eq!(["audio", "video", "users"].map(files), [1, 2, 1]);
}

/// In `commands` and `directories` `*` does not cross `/`; elsewhere it does.
#[test]
fn a_star_does_not_cross_a_slash_in_commands() {
    let rule = |commands: &str| {
        format!("\n[[rule]]\nname = \"x\"\ncommands = [\"{commands}\"]\nacquire = [\"a\"]\n")
    };
    case(&rule("$DIR/*"), &[], &Holds(&[]));
    case(&rule("$DIR/*/tool"), &[], &Holds(&["a"]));
    case(&rule("/**/tool"), &[], &Holds(&["a"]));
    case(&rule("$DIR/bin/t??l"), &[], &Holds(&["a"]));
    case(&rule("$DIR/bin/t{oo,ee}l"), &[], &Holds(&["a"]));
    case(&rule("[st]ool"), &[], &Holds(&["a"]));
    case(&rule("Tool"), &[], &Holds(&[]));
}

/// A command entry without `/` is matched against the last component of the command as typed and of its
/// canonical path; one with `/` against the absolute path that would be executed and against its canonical
/// path.
#[test]
fn a_command_is_known_by_its_typed_and_by_its_canonical_name() {
    let rule = |commands: &str| {
        format!("\n[[rule]]\nname = \"x\"\ncommands = [\"{commands}\"]\nacquire = [\"a\"]\n")
    };
    for (entry, held) in
        [("link", true), ("tool", true), ("$DIR/bin/link", true), ("$DIR/bin/tool", true), ("bin", false)]
    {
        let site = site(&rule(entry));
        std::os::unix::fs::symlink("tool", site.path("bin/link")).expect("a link");
        for typed in ["link", "$DIR/bin/link", "../bin/link"] {
            let expected = if held { "a=[pid]\n" } else { "none\n" };
            site.test().args(["run", "--", typed]).stdout(expected).status(0);
        }
    }
}

/// Elsewhere it does: the value of an argument is any text. An entry is matched against each argument.
#[test]
fn arguments_select() {
    let rule =
        |arguments: &str| format!("\n[[rule]]\nname = \"x\"\narguments = {arguments}\nacquire = [\"a\"]\n");
    case(&rule("[\"-batch\"]"), &["-r", "x", "-batch"], &Holds(&["a"]));
    case(&rule("[\"-batch\"]"), &["-r", "x"], &Holds(&[]));
    case(&rule("[\"-batch\"]"), &[], &Holds(&[]));
    case(&rule("[\"*.sim\"]"), &["/work/deep/run.sim"], &Holds(&["a"]));
    case(&rule("[\"-a\", \"-b\"]"), &["-b"], &Holds(&["a"]));
    // "An entry that is a list is matched against consecutive arguments."
    case(&rule("[[\"-np\", \"*\"]]"), &["-np", "8"], &Holds(&["a"]));
    case(&rule("[[\"-np\", \"8\"]]"), &["-np", "4", "8"], &Holds(&[]));
    case(&rule("[[\"-np\", \"*\"]]"), &["8", "-np"], &Holds(&[]));
}

/// `users` takes names, `%group`, uids and uid ranges; `groups` names and gids.
#[test]
fn users_are_known_by_name_number_range_and_group() {
    needs_root!();
    let rule = |users: &str| format!("\n[[rule]]\nname = \"x\"\nusers = [\"{users}\"]\nacquire = [\"a\"]\n");
    let games = Account::named("games");
    let range = format!("{}-{}", games.uid - 1, games.uid + 1);
    for entry in ["games", "g*", "%users", "%games", &games.uid.to_string(), &range] {
        case_of_games(&rule(entry), &["users"], &Holds(&["a"]));
    }
    for entry in ["nobody", "%audio", "%nobody-knows", "6000-7000", "game"] {
        case_of_games(&rule(entry), &["users"], &Holds(&[]));
    }
}

/// Group membership is what the kernel says of the calling process: a gid without a name still matches its
/// number.
#[test]
fn a_group_without_a_name_matches_its_number() {
    needs_root!();
    let rule = "\n[[rule]]\nname = \"x\"\ngroups = [\"60123\"]\nacquire = [\"a\", \"each-group\"]\n";
    case_of_games(rule, &["60123"], &Holds(&["a", "each-group"]));
    case_of_games(rule, &["60124"], &Holds(&[]));
    // What the database says of games does not count, what the kernel says does.
    let audio = "\n[[rule]]\nname = \"x\"\ngroups = [\"audio\"]\nacquire = [\"a\"]\n";
    case_of_games(audio, &["audio"], &Holds(&["a"]));
    case_of_games(audio, &[], &Holds(&[]));
}

/// `hosts` is matched against the node name and its first label.
#[test]
fn hosts_select() {
    let host = nix::unistd::gethostname().expect("a host name").into_string().expect("a plain name");
    let rule = |hosts: &str| format!("\n[[rule]]\nname = \"x\"\nhosts = [\"{hosts}\"]\nacquire = [\"a\"]\n");
    let label = host.split('.').next().expect("a first label");
    for entry in [&host, label, "*"] {
        case(&rule(entry), &[], &Holds(&["a"]));
    }
    case(&rule("elsewhere"), &[], &Holds(&[]));
}

/// `exempt` inside `first_of` is a fault that says 'write acquire = []'.
#[test]
fn an_empty_acquire_takes_nothing() {
    let family = r#"
        [[rule]]
        name     = "first"
        first_of = "family"
        acquire  = []

        [[rule]]
        name     = "second"
        first_of = "family"
        acquire  = ["full"]
    "#;
    case(family, &[], &Holds(&[]));
    case(&family.replace("acquire  = []", "action = \"exempt\""), &[], &Status(78));
}

/// What happens when no rule matches: it runs, or is refused. A rule that matches and acquires nothing is a
/// match.
#[test]
fn unmatched() {
    let rule = "\n[[rule]]\nname = \"x\"\ncommands = [\"TOOL\"]\nacquire = []\n";
    let refusing = |rule: &str| {
        let site = site(rule);
        let text = format!("{}{rule}", unindent(REPOSITORIES));
        site.policy(&text.replace("[defaults]", "[defaults]\nunmatched = \"refuse\""));
        site
    };
    case(&rule.replace("TOOL", "other"), &[], &Holds(&[]));
    judge(&refusing(&rule.replace("TOOL", "other")), None, &[], &Status(77));
    judge(&refusing(&rule.replace("TOOL", "tool")), None, &[], &Holds(&[]));
}
