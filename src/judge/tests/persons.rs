//! What `explain` says of everything that a user starts: the same that a launch of it would get.

use super::site::under;

const SEATS: &str = r#"
    [repository.seats]
    limit = 5
    [repository.each]
    per = "command"
    limit = 2
    [[rule]]
    name = "seats"
    commands = ["matlab"]
    acquire = ["seats", "each"]
"#;

#[test]
fn a_rule_that_refuses_everything_is_enforced_and_has_no_exception() {
    let deny = |text: &str| under(&format!("{SEATS}[[rule]]\nname = \"no\"\naction = \"deny\"\n{text}\n"));
    deny("").gives("denied by no: command \"matlab\"").allows("denied by no");
    deny("commands = [\"*\"]").allows("denied by no");
    deny("enforce = false").gives("would be denied by no, 1 of 5 seats, 1 of 2 each [matlab]");
    deny("enforce = false").allows("1 of 5 seats, each by command");
    deny("except = [{ commands = [\"matlab\"] }]").allows("1 of 5 seats, each by command");
    deny("except = [{ users = [\"bob\"], commands = [\"matlab\"] }]").allows("denied by no");
    deny("except = [{ users = [\"ann\"] }]").allows("1 of 5 seats, each by command");
}

/// What a person may start is shown for all commands, whatever the request is about.
#[test]
fn rules_for_other_commands_are_told_too() {
    under(SEATS).command("less").gives("free").allows("1 of 5 seats, each by command");
    let selector = "commands = [\"matlab\"]\narguments = [\"-x\"]\ndirectories = [\"/proj\"]";
    let narrow = SEATS.replace("commands = [\"matlab\"]", selector);
    under(&narrow).gives("free").allows("1 of 5 seats, each by command");
}

#[test]
fn the_first_rule_of_a_family_counts_here_too() {
    let nobody = "[[rule]]\nname = \"nobody\"\naction = \"deny\"\nfirst_of = \"f\"\n";
    let may = |selector: &str| {
        let rule = format!("[[rule]]\nname = \"may\"\nacquire = []\nfirst_of = \"f\"\n{selector}\n");
        under(&format!("{rule}{nobody}{SEATS}"))
    };
    may("users = [\"ann\"]").allows("1 of 5 seats, each by command");
    may("users = [\"bob\"]").allows("denied by nobody");
    // What matlab may, other commands may not.
    may("commands = [\"matlab\"]").allows("1 of 5 seats, each by command");
    let few = r#"
        [repository.seats]
        limit = 5
        [[rule]]
        name = "bob"
        users = ["bob"]
        first_of = "f"
        acquire = [{ repository = "seats", ceiling = 4 }]
        [[rule]]
        name = "most"
        first_of = "f"
        acquire = [{ repository = "seats", ceiling = 2 }]
    "#;
    // A rule that refuses nothing, and not for all commands, shadows none.
    let tried = "[[rule]]\naction = \"deny\"\nenforce = false\nfirst_of = \"f\"\ncommands = [\"comsol\"]\n";
    under(&few.replacen("[[rule]]", &format!("{tried}[[rule]]"), 1)).allows("1 of 2 seats");
    under(few).allows("1 of 2 seats");
    under(few).user("bob").allows("1 of 4 seats");
}

#[test]
fn an_exemption_is_for_its_layer_and_those_before() {
    let system = format!("{SEATS}[[rule]]\nname = \"free\"\naction = \"exempt\"\n");
    let own = "[repository.mine]\nlimit = 2\n[[rule]]\nacquire = [\"mine\"]\n";
    under(&system).gives("exempt by free").allows("exempt by free");
    under(&system).own(own).gives("1 of 2 mine").allows("1 of 2 mine");
    under(&format!("{system}from = [\"seats\"]\n")).own(own).allows("1 of 2 mine, each by command");
}

#[test]
fn a_ceiling_of_a_delegated_rule_lowers_what_is_claimed_and_claims_nothing() {
    let system = |users: &str| {
        under(&format!(
            "[delegate.\"20-cad.toml\"]\nowner = \"tutor1\"\nusers = [\"%cad\"]\ncommands = [\"*\"]\n\
             [repository.seats]\nlimit = 5\n[[rule]]\nusers = [\"{users}\"]\nacquire = [\"seats\"]\n"
        ))
        .delegated("20-cad.toml", "[[rule]]\nacquire = [{ repository = \"seats\", ceiling = 3 }]\n")
    };
    system("ann").allows("1 of 5 seats");
    system("ann").groups(["cad"]).gives("1 of 3 seats").allows("1 of 5 seats, 1 of 3 seats");
    system("bob").groups(["cad"]).gives("free").allows("");
}

/// A rule of the system that counts does not undo the ceiling of a department.
#[test]
fn a_ceiling_of_a_delegated_rule_counts_under_a_rule_that_counts() {
    let system = |defaults: &str, ceiling: u32| {
        under(&format!(
            "{defaults}[delegate.\"20-cad.toml\"]\nowner = \"tutor1\"\nusers = [\"%cad\"]\ncommands = [\"*\"]\n\
             [repository.seats]\nlimit = 5\n[[rule]]\naction = \"count\"\nacquire = [\"seats\"]\n",
        ))
        .delegated(
            "20-cad.toml",
            &format!("[[rule]]\nacquire = [{{ repository = \"seats\", ceiling = {ceiling} }}]\n"),
        )
    };
    system("", 3).gives("1 of 5 seats always");
    system("", 3).groups(["cad"]).gives("1 of 3 seats");
    system("", 9).groups(["cad"]).gives("1 of 5 seats always");
    system("[defaults]\nenforce = false\n", 3).groups(["cad"]).gives("1 of 3 seats tried");
}

/// A department lowers only the repository that it names.
#[test]
fn a_ceiling_of_a_delegated_rule_leaves_other_repositories_alone() {
    let system = r#"
        [delegate."20-cad.toml"]
        owner    = "tutor1"
        users    = ["%cad"]
        commands = ["*"]
        [repository.seats]
        limit = 5
        [repository.tokens]
        limit = 9
        [[rule]]
        acquire = ["seats", "tokens"]
    "#;
    under(system)
        .delegated("20-cad.toml", "[[rule]]\nacquire = [{ repository = \"seats\", ceiling = 3 }]\n")
        .groups(["cad"])
        .gives("1 of 3 seats, 1 of 9 tokens")
        .allows("1 of 5 seats, 1 of 9 tokens, 1 of 3 seats");
}

/// A department that denies its commands denies everything only if it is delegated for all of them.
#[test]
fn a_department_denies_no_more_than_its_commands() {
    let system = |commands: &str| {
        under(&format!(
            "[delegate.\"20-cad.toml\"]\nowner = \"tutor1\"\nusers = [\"%cad\"]\ncommands = [{commands}]\n\
             [repository.seats]\nlimit = 5\n[[rule]]\nacquire = [\"seats\"]\n"
        ))
        .delegated("20-cad.toml", "[[rule]]\nname = \"no\"\naction = \"deny\"\n")
        .groups(["cad"])
    };
    system("\"matlab\"").gives("denied by no: command \"matlab\"").allows("1 of 5 seats");
    system("\"matlab\", \"*\"").gives("denied by no: command \"matlab\"").allows("denied by no");
}

/// A repository that depends on the command is named once, and limits a person whom the system exempts.
#[test]
fn what_depends_on_the_command_is_named_once_and_is_a_limit() {
    let twice = "[[rule]]\nname = \"again\"\nacquire = [\"each\"]\n";
    under(&format!("{SEATS}{twice}")).allows("1 of 5 seats, each by command");
    let free = "[[rule]]\nname = \"free\"\naction = \"exempt\"\n";
    let own = "[repository.mine]\nper = \"command\"\nlimit = 2\n[[rule]]\nacquire = [\"mine\"]\n";
    under(free).allows("exempt by free");
    under(free).own(own).allows("mine by command");
}

#[test]
fn where_no_rule_allows_anything_everything_is_refused() {
    let system = |user: &str| {
        under(&format!(
            "[defaults]\nunmatched = \"refuse\"\n[[rule]]\nusers = [\"{user}\"]\ncommands = [\"matlab\"]\n\
             acquire = []\n"
        ))
    };
    system("ann").gives("free").allows("");
    system("bob").gives("unmatched").allows("unmatched");
    // What is denied starts by no other rule.
    let deny = "[[rule]]\nname = \"no\"\ncommands = [\"matlab\"]\naction = \"deny\"\n";
    under(&format!("[defaults]\nunmatched = \"refuse\"\n{deny}"))
        .gives("denied by no: command \"matlab\"")
        .allows("unmatched");
}
