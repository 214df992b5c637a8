//! Drop-ins of departments: whom they reach, and what they can do to others, which is nothing.

use super::site::{Launch, under};

const SITE: &str = r#"
[alias]
matlab = ["matlab", "mex"]
[delegate."20-cad.toml"]
owner    = "tutor1"
users    = ["%cad"]
commands = ["@matlab", "cad-*"]
[delegate."30-sim.toml"]
owner    = 4712
users    = ["%sim"]
commands = ["*"]
[repository.matlab]
limit = 8
[[rule]]
name     = "seats"
commands = ["@matlab"]
acquire  = ["matlab"]
[[rule]]
name   = "root"
users  = ["root"]
action = "exempt"
"#;

fn cad(text: &str) -> Launch {
    under(SITE).delegated("20-cad.toml", text).groups(["cad"])
}

const THREE: &str =
    "[[rule]]\nname = \"cad uses three\"\nacquire = [{ repository = \"matlab\", ceiling = 3 }]\n";

#[test]
fn its_rules_are_for_its_users_and_commands_alone() {
    let deny = "[[rule]]\nname = \"none\"\naction = \"deny\"\n";
    cad(deny).gives("denied by none: command \"matlab\"");
    cad(deny).command("cad-view").gives("denied by none: command \"cad-view\"");
    cad(deny).command("less").gives("free").traces(["no: commands", "no: users (root)", "no: commands"]);
    cad(deny).groups(["sim"]).gives("1 of 8 matlab").traces([
        "counts",
        "no: users (root)",
        "no: delegated for %cad",
    ]);
    // The commands are decided first, and whoever starts another one is not looked up.
    cad(deny).command("less").asks(["getpwuid(4711)"]);
}

/// A rule that takes long to compare is passed over for others, and compared for its own people.
#[test]
fn a_costly_rule_counts_for_its_people() {
    let patterns: Vec<String> = (0..200).map(|number| format!("\"p{number}\"")).collect();
    let deny =
        format!("[[rule]]\nname = \"none\"\naction = \"deny\"\narguments = [{}]\n", patterns.join(", "));
    let arguments = || (0..1000).map(|_| "x").chain(["p7"]);
    cad(&deny).arguments(arguments()).gives("denied by none: command \"matlab\"");
    cad(&deny).groups(["sim"]).arguments(arguments()).gives("1 of 8 matlab");
}

/// Many rules count together, and what an exception compares counts too: no caller is looked up before that,
/// and every caller after it.
#[test]
fn rules_that_are_costly_together_are_passed_over_for_others() {
    let patterns: Vec<String> = (0..60).map(|number| format!("\"p{number}\"")).collect();
    let patterns = patterns.join(", ");
    let rules =
        |count: usize| format!("[[rule]]\naction = \"deny\"\narguments = [{patterns}]\n").repeat(count);
    let excepted = |count: usize| {
        format!("[[rule]]\naction = \"deny\"\nexcept = [{{ arguments = [{patterns}] }}]\n").repeat(count)
    };
    let judged = |rules: &str| {
        let launch = cad(rules).groups(["sim"]).arguments((0..1000).map(|_| "x"));
        launch.gives("1 of 8 matlab")
    };
    // Each of these compares 60,000, and the second one is too much.
    let (seats, root, no) = ("counts", "no: users (root)", "no: arguments (p0, p1, p2, …)");
    let theirs = "no: delegated for %cad";
    judged(&rules(1)).traces([seats, root, no]);
    judged(&rules(3)).traces([seats, root, no, theirs, theirs]);
    judged(&excepted(2)).traces([seats, root, theirs, theirs]);
}

/// Where a judge may compare only so much, a rule that needs more is the answer, and never passed over.
#[test]
fn a_rule_that_compares_too_much_lets_nobody_off() {
    let deny = "[[rule]]\nname = \"none\"\naction = \"deny\"\narguments = [\"p1\", \"p2\"]\n";
    let launch = cad(deny).arguments(["x", "p2"]).gives("denied by none: command \"matlab\"");
    assert_eq!(launch.costly(3).as_deref(), Some("none"));
    assert_eq!(launch.costly(4), None);
}

/// A rule without an effect costs nothing: it is not the answer, and leaves everything for the next one.
#[test]
fn a_rule_that_another_shadows_compares_nothing() {
    let first = "[[rule]]\nname = \"first\"\nfirst_of = \"f\"\nacquire = []\n";
    let second =
        "[[rule]]\nname = \"second\"\nfirst_of = \"f\"\nacquire = []\narguments = [\"p1\", \"p2\"]\n";
    let launch = cad(&format!("{first}{second}")).arguments(["x", "y"]);
    assert_eq!(launch.costly(3), None);
    let third = "[[rule]]\nname = \"third\"\naction = \"deny\"\narguments = [\"y\"]\n";
    let launch = cad(&format!("{first}{second}{third}")).arguments(["x", "y"]);
    assert_eq!(launch.costly(2), None);
    assert_eq!(launch.costly(1).as_deref(), Some("third"));
    launch.gives("denied by third: command \"matlab\"").traces([
        "counts",
        "no: users (root)",
        "counts (first of 2)",
        "no: arguments (p1, p2)",
        "counts",
    ]);
}

#[test]
fn it_lowers_what_its_people_may_use_and_claims_nothing() {
    cad(THREE).gives("1 of 3 matlab");
    cad(THREE).groups(["sim"]).gives("1 of 8 matlab");
    cad("[[rule]]\nacquire = [{ repository = \"matlab\", ceiling = 2 }]\n").gives("1 of 2 matlab");
    cad("[[rule]]\nacquire = [{ repository = \"matlab\", ceiling = 30 }]\n").gives("1 of 8 matlab");
    // A second repository with the file of the first is lowered too.
    let twin = "[repository.twin]\npath = \"/run/rungate/matlab.lock\"\nlimit = 8\n";
    under(&format!("{SITE}{twin}[[rule]]\ncommands = [\"@matlab\"]\nacquire = [\"twin\"]\n"))
        .delegated("20-cad.toml", "[[rule]]\nacquire = [{ repository = \"twin\", ceiling = 2 }]\n")
        .groups(["cad"])
        .gives("1 of 2 matlab");
    // Where nothing is claimed there is nothing to lower.
    cad(THREE).command("cad-view").gives("free");
    let both = format!("{THREE}[[rule]]\nacquire = [{{ repository = \"matlab\", ceiling = 2 }}]\n");
    cad(&both).gives("1 of 2 matlab");
    cad(THREE).claims(|claims| {
        let rules: Vec<&str> = claims[0].origins.iter().map(|origin| &*origin.rule).collect();
        assert_eq!(rules, ["cad uses three", "seats"], "who binds is named first");
    });
}

/// The rule that binds is named first: a ceiling that is no lower than the limit does not bind.
#[test]
fn a_ceiling_that_lowers_nothing_is_named_last() {
    let rule = "[[rule]]\nname = \"cad may all\"\nacquire = [{ repository = \"matlab\", ceiling = 8 }]\n";
    cad(rule).gives("1 of 8 matlab").claims(|claims| {
        let rules: Vec<&str> = claims[0].origins.iter().map(|origin| &*origin.rule).collect();
        assert_eq!(rules, ["seats", "cad may all"]);
    });
}

#[test]
fn its_matlab_is_its_own_and_the_sites_stays() {
    let own = "[repository.matlab]\nlimit = 2\n[[rule]]\nacquire = [\"matlab\"]\n";
    cad(own)
        .gives("1 of 8 matlab, 1 of 2 matlab (20-cad.toml)")
        .locks(["/run/rungate/matlab.lock", "/run/rungate/@20-cad/matlab.lock"]);
    // Neither another department's file nor somebody's own means it.
    cad(own)
        .delegated("30-sim.toml", "[[rule]]\nacquire = [{ repository = \"matlab\", ceiling = 5 }]\n")
        .groups(["cad", "sim"])
        .gives("1 of 5 matlab, 1 of 2 matlab (20-cad.toml)");
    cad(own)
        .own("[[rule]]\nacquire = [{ repository = \"matlab\", ceiling = 4 }]\n")
        .locks(["/run/rungate/matlab.lock", "/run/rungate/@20-cad/matlab.lock"]);
}

#[test]
fn its_repositories_lie_in_a_directory_of_their_own() {
    let path = |path: &str| {
        cad(&format!("[repository.pool]\nlimit = 1\npath = \"{path}\"\n[[rule]]\nacquire = [\"pool\"]\n"))
            .command("cad-view")
    };
    path("a/{user}.lock").locks(["/run/rungate/@20-cad/a/ann.lock"]);
    path("/run/rungate/matlab.lock").faults(["delegated-path"]);
    path("{runtime}/x").faults(["delegated-path"]);
    path("../matlab.lock").faults(["dots-in-path"]);
    let created = |launch: Launch| launch.claims(|claims| super::site::file(claims[0]).creation.clone());
    let creation = created(path("x.lock"));
    assert_eq!(creation.base, std::path::PathBuf::from("/run/rungate"));
    assert_eq!((creation.file_mode, creation.directory_mode, creation.create_base), (0o666, 0o1777, false));
    // Only the last ending of its name is left out, so that no other drop-in has the directory.
    let delegate = |name: &str| {
        format!("[delegate.\"{name}\"]\nowner = \"tutor1\"\nusers = [\"*\"]\ncommands = [\"*\"]\n")
    };
    let own = "[repository.pool]\nlimit = 1\n[[rule]]\nacquire = [\"pool\"]\n";
    under(&format!("{}{}", delegate("a.toml"), delegate("a.toml.toml")))
        .delegated("a.toml", own)
        .delegated("a.toml.toml", own)
        .locks(["/run/rungate/@a/pool.lock", "/run/rungate/@a.toml/pool.lock"]);
    // No value of a placeholder leads there.
    let site = format!(
        "{SITE}[repository.x]\npath = \"{{env.X}}/matlab.lock\"\nlimit = 1\n[[rule]]\nacquire = [\"x\"]\n"
    );
    let paths = under(&site).variable("X", "@20-cad").paths();
    assert!(!paths[1].starts_with("/run/rungate/@20-cad"));
}

#[test]
fn it_has_the_defaults_of_the_system_and_families_of_its_own() {
    let tried = SITE.replace("[alias]", "[defaults]\nenforce = false\n[alias]");
    under(&tried).delegated("20-cad.toml", THREE).groups(["cad"]).gives("1 of 3 matlab tried");
    let family = SITE.replace("name     = \"seats\"", "name = \"seats\"\nfirst_of = \"f\"");
    let first =
        "[[rule]]\nfirst_of = \"f\"\norder = -1\nacquire = []\n[[rule]]\nfirst_of = \"f\"\nacquire = []\n";
    under(&family).delegated("20-cad.toml", first).groups(["cad"]).gives("1 of 8 matlab");
    // The site's exemption does not reach into what a department asks of its own people.
    let own = "[repository.pool]\nlimit = 2\n[[rule]]\nacquire = [\"pool\"]\n";
    under(SITE).delegated("20-cad.toml", own).groups(["cad"]).user("root").gives("1 of 2 pool");
}

#[test]
fn it_loosens_nothing_whoever_starts_the_launch() {
    let by_root = |text: &str| cad(text).by_root();
    by_root("[[rule]]\naction = \"exempt\"\n").faults(["loosens"]);
    by_root("[[rule]]\naction = \"count\"\nacquire = []\n").faults(["loosens"]);
    by_root("[[rule]]\nenforce = false\nacquire = []\n").faults(["loosens"]);
    by_root("[repository.x]\nlimit = 1\nenforce = false\n[[rule]]\nacquire = [\"x\"]\n").faults(["loosens"]);
}

#[test]
fn a_look_up_that_fails_refuses_and_lets_nobody_off() {
    cad(THREE).broken("getgrnam(\"cad\")").gives("cad uses three: getgrnam(\"cad\"): Connection timed out");
}
