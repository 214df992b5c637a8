//! Faults and warnings about two rules, claims, repositories or files, and about numbers at their bounds. Of two
//! policies that differ in a word only one has something wrong: the other one shows that the finding is true.

use super::Case;

const MAIN: &str = "/etc/rungate/policy.toml";

/// The codes of all that is shown of these files.
fn codes_of(files: &[(&str, &str)]) -> Vec<&'static str> {
    let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
    Case { about: String::new(), files: files.iter().map(owned).collect() }.check().1
}

/// A policy of one file has this finding alone, or none.
#[track_caller]
fn case(policy: &str, code: Option<&str>) {
    assert_eq!(codes_of(&[(MAIN, policy)]), Vec::from_iter(code), "{policy}");
}

/// "The rule never counts: … comes first, and matches all that it matches".
#[test]
fn a_rule_is_shadowed_by_a_rule_that_matches_all_that_it_matches() {
    let family = |wide: &str, narrow: &str, is_shadowed: bool| {
        let rule = |keys: &str| format!("[[rule]]\nfirst_of = 'f'\n{keys}\n");
        let (wide, narrow) =
            (rule(&format!("acquire = ['a']\n{wide}")), rule(&format!("acquire = []\n{narrow}")));
        case(&format!("[repository.a]\nlimit = 5\n{wide}{narrow}"), is_shadowed.then_some("shadowed"));
    };
    for (wide, narrow) in [
        ("", "users = ['ann']"),
        ("users = ['ann', '*']", ""),
        ("users = ['ann', 'bob']", "users = ['ann']"),
        ("users = ['a*']", "users = ['ann']"),
        ("users = ['1000-1999']", "users = ['1200-1300']"),
        ("users = ['%cad']", "users = ['%cad']"),
        ("users = ['+lab']", "users = ['+lab']"),
        ("groups = ['100-199']", "groups = [150]"),
        ("groups = ['*']", "groups = [150]"),
        ("users = ['*']", "users = ['%cad']"),
        ("users = ['ann']", "users = ['ann']\nhosts = ['ws1']"),
        ("hosts = ['ws*']", "hosts = ['WS1']"),
        ("commands = ['mat*']", "commands = ['matlab']"),
        ("directories = ['/proj/**']", "directories = ['/proj/a', '/proj']"),
        ("when = ['Fri']", "when = ['Fri']"),
        ("environment = { A = true }", "environment = { A = ['x'], B = true }"),
        ("environment = { A = ['x', 'y'] }", "environment = { A = ['x'] }"),
        ("arguments = ['-a', '-b']", "arguments = ['-a']"),
        ("arguments = [['-n', '*']]", "arguments = [['-n', '4']]"),
        ("arguments = ['-a']", "arguments = { all = ['-a', '-b'] }"),
        ("arguments = ['-a', '-b']", "arguments = { all = ['-a'] }"),
        ("arguments = { all = ['-a'] }", "arguments = { all = ['-a', '-b'] }"),
        ("arguments = { exactly = ['-a', '**'] }", "arguments = { exactly = ['-a', '**'] }"),
        ("arguments = { exactly = ['*'] }", "arguments = { exactly = ['-a'] }"),
        ("arguments = { exactly = ['**'] }", "arguments = { exactly = ['-a', '-b'] }"),
        ("arguments = { exactly = ['**'] }", "arguments = ['-a']"),
    ] {
        family(wide, narrow, true);
    }
    for (wide, narrow) in [
        ("users = ['ann']", ""),
        ("users = ['ann']", "users = ['ann', 'bob']"),
        ("users = ['ann']", "users = ['a*']"),
        ("users = ['1000-1999']", "users = ['1500-2500']"),
        ("users = ['1000-1999']", "users = ['500-1500']"),
        ("users = ['%cad']", "users = ['%sim']"),
        ("users = ['+lab']", "users = ['+offices']"),
        ("users = ['ann']\nhosts = ['ws1']", "users = ['ann']"),
        ("hosts = ['ws*']", "hosts = ['lab1']"),
        ("commands = ['matlab']", "commands = ['mex']"),
        ("commands = ['matlab']", "commands = ['/opt/matlab']"),
        ("directories = ['/proj/*']", "directories = ['/proj/a/b']"),
        ("directories = ['/proj/*']", "directories = ['/scratch/*']"),
        ("when = ['Fri']", "when = ['Sat']"),
        ("environment = { A = true }", "environment = { B = true }"),
        ("environment = { A = true }", "environment = { A = false }"),
        ("environment = { A = true, B = true }", "environment = { A = true }"),
        ("environment = { A = ['x'] }", "environment = { A = ['x', 'y'] }"),
        ("environment = { A = ['x'] }", "environment = { A = ['y'] }"),
        ("arguments = ['-a']", "arguments = ['-a', '-b']"),
        ("arguments = [['-n', '4']]", "arguments = [['-n', '*']]"),
        ("arguments = [['-n', '4']]", "arguments = ['-n']"),
        ("arguments = ['-a']", "arguments = { all = ['-b', '-c'] }"),
        ("arguments = { all = ['-a', '-b'] }", "arguments = { all = ['-a'] }"),
        ("arguments = { all = ['-a'] }", "arguments = ['-a']"),
        ("arguments = { exactly = ['-a', '**'] }", "arguments = { exactly = ['-a', '-b'] }"),
        ("arguments = { exactly = ['-a'] }", "arguments = { exactly = ['-a', '-b'] }"),
        ("arguments = { exactly = ['-a'] }", "arguments = { exactly = ['-b'] }"),
    ] {
        family(wide, narrow, false);
    }
}

/// Only an earlier rule of the same family shadows a rule.
#[test]
fn a_rule_outside_of_a_family_shadows_none_of_it() {
    let rule = |command: &str, family: &str| {
        format!("[[rule]]\ncommands = ['{command}']\n{family}\nacquire = ['a']\n")
    };
    let a = "[repository.a]\nlimit = 5\n";
    let family = rule("matlab", "first_of = 'f'") + &rule("mex", "first_of = 'f'");
    let another = rule("a*", "first_of = 'g'") + &rule("m*", "first_of = 'g'");
    case(&format!("{a}{}{family}", rule("*", "")), None);
    case(&format!("{a}{another}{family}"), None);
    case(&format!("{a}{}{}", rule("m*", "first_of = 'f'"), rule("mex", "first_of = 'f'")), Some("shadowed"));
}

/// "The rule has no effect: … decides all launches that it matches".
#[test]
fn a_rule_is_overruled_by_a_rule_that_decides_all_its_launches() {
    let beside = |other: &str, is_overruled: bool| {
        let repositories = "[repository.a]\nlimit = 5\n[repository.b]\nlimit = 5\n";
        let rule = "[[rule]]\ncommands = ['matlab']\nacquire = ['a', 'b']\n";
        let code = is_overruled.then_some("overruled");
        case(&format!("{repositories}{rule}[[rule]]\nname = 'other'\n{other}\n"), code);
    };
    beside("action = 'exempt'", true);
    beside("action = 'exempt'\nfrom = ['a']", false);
    beside("action = 'deny'", true);
    beside("action = 'deny'\nenforce = false", false);
    beside("action = 'deny'\nexcept = [{ users = ['ann'] }]", false);
    beside("action = 'deny'\ncommands = ['mex']", false);
    beside("action = 'count'\nacquire = ['a']", false);
}

/// The system exempts from no rule of the caller. What a department says is for its people, so it makes only
/// rules of its own useless.
#[test]
fn a_rule_of_another_layer_makes_no_rule_useless() {
    let own = "[repository.b]\nlimit = 1\n[[rule]]\nacquire = ['b']\n";
    let exempt = "[[rule]]\naction = 'exempt'\n";
    assert_eq!(codes_of(&[(MAIN, exempt), ("/home/ann/policy.toml", own)]), [] as [&str; 0]);
    assert_eq!(codes_of(&[(MAIN, &format!("{own}{exempt}"))]), ["overruled"]);
    let main = "[delegate.\"20-cad.toml\"]\nowner = 'ann'\nusers = ['%cad']\ncommands = ['matlab']\n\
                [repository.a]\nlimit = 5\n[[rule]]\ncommands = ['matlab']\nacquire = ['a']\n";
    let of_cad = |text: &str| codes_of(&[(MAIN, main), ("/etc/rungate/policy.d/20-cad.toml", text)]);
    assert_eq!(of_cad("[[rule]]\naction = 'deny'\n"), [] as [&str; 0]);
    let family = "[repository.pool]\nlimit = 2\n[[rule]]\nfirst_of = 'f'\nacquire = ['pool']\n\
                  [[rule]]\nfirst_of = 'f'\ncommands = ['matlab']\nacquire = []\n";
    assert_eq!(of_cad(family), ["shadowed"]);
}

/// An alternative charges one group: the rule names one, or the repository says which.
#[test]
fn an_alternative_charges_one_group() {
    let rule = |charge: &str, groups: &str| {
        let repository = format!("[repository.a]\nper = 'group'\nlimit = 5\n{charge}\n");
        format!("{repository}[[rule]]\ngroups = [{groups}]\nacquire = [{{ any_of = ['a'] }}]\n")
    };
    case(&rule("", "'cad'"), None);
    case(&rule("", "'c*'"), Some("charge-in-any-of"));
    case(&rule("", "'cad', 'sim'"), Some("charge-in-any-of"));
    case(&rule("charge = 'first'", "'cad', 'sim'"), None);
    case(&rule("charge = 'any'", "'cad', 'sim'"), None);
}

/// One of several exceptions is enough for a rule that can never match.
#[test]
fn a_rule_can_never_match_if_one_of_its_exceptions_matches_everything() {
    let except = |tables: &str| {
        format!(
            "[repository.a]\nlimit = 5\n[[rule]]\nacquire = ['a']\nexcept = [{{ users = ['bob'] }}{tables}]\n"
        )
    };
    case(&except(""), None);
    case(&except(", { users = ['*'] }"), Some("never-matches"));
}

/// A program keeps its slot if the strongest hold of its rule and its repositories, or else the default, is
/// enough; and a rule without a claim has no slot to keep.
#[test]
fn a_hold_is_weak_only_if_no_stronger_one_counts() {
    let held = |defaults: &str, repository: &str, rule: &str, is_weak: bool| {
        let policy =
            format!("{defaults}[repository.a]\nlimit = 5\n{repository}\n[[rule]]\nacquire = ['a']\n{rule}\n");
        case(&policy, is_weak.then_some("weak-hold"));
    };
    held("", "", "commands = ['ssh']\nhold = 'descriptor'", true);
    held("", "", "commands = ['ssh']\nhold = 'supervisor'", false);
    held("", "", "commands = ['tmux']\nhold = 'supervisor'", true);
    held("", "", "commands = ['tmux']\nhold = 'tree'", false);
    held("", "hold = 'tree'", "commands = ['tmux']\nhold = 'process'", false);
    let defaults = "[defaults]\nhold = 'supervisor'\n";
    held(defaults, "", "commands = ['ssh']", false);
    held(defaults, "", "commands = ['ssh']\nhold = 'process'", true);
    case("[[rule]]\ncommands = ['ssh']\nacquire = []\n", None);
}

/// An alternative is never reached if an earlier one wants no more and has no lower limit.
#[test]
fn an_alternative_is_reached_if_an_earlier_one_wants_more() {
    let any_of = |first: &str, second: &str, is_reached: bool| {
        let rule = format!("[[rule]]\nacquire = [{{ any_of = [{first}, {second}] }}]\n");
        case(&format!("[repository.a]\nlimit = 5\n{rule}"), (!is_reached).then_some("never-reached"));
    };
    let of = |keys: &str| format!("{{ repository = 'a', {keys} }}");
    any_of("'a'", &of("ceiling = 2"), false);
    any_of(&of("ceiling = 2"), "'a'", true);
    any_of(&of("ceiling = 4"), &of("ceiling = 2"), false);
    any_of(&of("ceiling = 2"), &of("ceiling = 4"), true);
    any_of(&of("ceiling = 2"), &of("ceiling = 2, slots = 2"), false);
    any_of(&of("ceiling = '50%'"), &of("ceiling = 2"), true);
    any_of(&of("slots = 2"), "'a'", true);
    any_of(&of("slots_from = { after = '-n' }"), "'a'", true);
    case("[[rule]]\nacquire = [{ any_of = [[]] }]\n", Some("empty-list"));
    let list = "[[rule]]\nacquire = [{ any_of = [['a', 'b'], 'a'] }]\n";
    case(&format!("[repository.a]\nlimit = 5\n[repository.b]\nlimit = 5\n{list}"), None);
}

/// A ceiling that is no lower than the limit has no effect. A limit of 0 is for a while.
#[test]
fn a_ceiling_binds_below_the_limit_and_beside_a_closed_repository() {
    let claim = |limit: u32, ceiling: u32| {
        format!(
            "[repository.a]\nlimit = {limit}\n[[rule]]\nacquire = [{{ repository = 'a', ceiling = {ceiling} }}]\n"
        )
    };
    case(&claim(5, 4), None);
    case(&claim(5, 5), Some("never-binds"));
    case(&claim(0, 1), None);
    case(&claim(5, 0), None);
    case(&claim(5, 1_048_575), Some("never-binds"));
    case(&claim(5, 1_048_576), Some("out-of-range"));
}

/// A caller who chooses the lock file evades a limit that is about people, and a list of members that also
/// admits others.
#[test]
fn a_file_that_the_caller_chooses_is_no_limit_for_people() {
    let job = |limits: &str, who: &str| {
        format!(
            "[repository.job]\nper = '{{job}}'\n{limits}\n[[rule]]\narguments = ['--job={{job}}']\n{who}\n\
             acquire = ['job']\n"
        )
    };
    let chosen = Some("chosen-by-caller");
    case(&job("limit = 1", ""), None);
    case(&job("limit = 1", "hosts = ['ws1']"), None);
    case(&job("limit = 1", "users = ['ann']"), chosen);
    case(&job("limit = 1", "groups = ['cad']"), chosen);
    case(&job("limit = 1\nlimits = { x = 2 }", ""), chosen);
    case(&job("limit = 0\nlimits = { x = 2 }", ""), None);
    let listed = "limit = 1\nlimits = { '/proj' = 2 }\n[[rule]]\nacquire = ['here']\n";
    case(&format!("[repository.here]\nper = 'directory'\n{listed}"), None);
    case(&format!("[repository.here]\nper = 'directory'\n{listed}users = ['ann']\n"), chosen);
}

/// Two repositories may have one file only if all their settings are the same.
#[test]
fn two_repositories_with_one_file_have_the_same_settings() {
    let policy = |keys: &str| {
        format!(
            "[repository.a]\nlimit = 5\n{keys}\n[repository.b]\npath = '/run/rungate/a.lock'\nlimit = 5\n\
             [[rule]]\nacquire = ['a', 'b']\n"
        )
    };
    case(&policy(""), None);
    for keys in [
        "limits = [{ when = ['Fri'], limit = 2 }]",
        "reserve = [{ users = ['ann'], slots = 1 }]",
        "names = ['0', '1', '2', '3', '4']",
        "outside = { command = ['/bin/true'] }",
        "wait = '1m'",
        "if_elapsed = '1h'",
        "shared_by = 'user'",
    ] {
        case(&policy(keys), Some("same-path"));
    }
    let both = |one: &str, other: &str| policy(one).replace("[[rule]]", &format!("{other}\n[[rule]]"));
    for (keys, other) in [
        ("limits = [{ when = ['Fri'], limit = 2 }]", "limits = [{ when = ['Fri'], limit = 3 }]"),
        ("reserve = [{ users = ['ann'], slots = 1 }]", "reserve = [{ users = ['ann'], slots = 2 }]"),
        ("names = ['0', '1', '2', '3', '4']", "names = ['0', '1', '2', '4', '3']"),
        ("outside = { command = ['/bin/true'] }", "outside = { command = ['/bin/false'] }"),
        ("wait = '1m'", "wait = '2m'"),
        ("if_elapsed = '1h'", "if_elapsed = '2h'"),
        ("shared_by = 'user'", "shared_by = 'host'"),
    ] {
        case(&both(keys, keys), None);
        case(&both(keys, other), Some("same-path"));
    }
}

/// Two files may say the same of a default, and nothing else.
#[test]
fn a_default_that_two_files_give_the_same_value_is_no_conflict() {
    let wait = |wait: &str| format!("[defaults]\nwait = '{wait}'\n");
    let both =
        |other: &str| codes_of(&[(MAIN, &wait("1m")), ("/etc/rungate/policy.d/10.toml", &wait(other))]);
    assert_eq!(both("1m"), [] as [&str; 0]);
    assert_eq!(both("2m"), ["conflicting-default"]);
}

/// A number is allowed up to its bound, and above it is a fault.
#[test]
fn a_number_is_allowed_up_to_its_bound() {
    let at_site = |keys: &str| {
        format!(
            "[repository.a]\nkeeper = 'site'\nlimit = 500\n[[rule]]\nacquire = [{{ repository = 'a', {keys} }}]\n"
        )
    };
    for (keys, beyond, code) in [
        ("slots = 100", "slots = 101", "too-many-for-site"),
        ("slots = 'all', ceiling = 100", "slots = 'all', ceiling = 101", "too-many-for-site"),
        ("slots = 'all', ceiling = '20%'", "slots = 'all', ceiling = '21%'", "too-many-for-site"),
        (
            "slots_from = { after = '-n', most = 100 }",
            "slots_from = { after = '-n', most = 101 }",
            "too-many-for-site",
        ),
        (
            "slots_from = { after = '-n', table = { 1 = 100 } }",
            "slots_from = { after = '-n', table = { 1 = 101 } }",
            "table-too-great-for-site",
        ),
    ] {
        case(&at_site(keys), None);
        case(&at_site(beyond), Some(code));
        // A lock file has no such bound.
        case(&at_site(beyond).replace("'site'", "'file'"), None);
    }
    let absent = |number: u32| {
        let from = format!("slots_from = {{ after = '-n', absent = {number} }}");
        let rule = format!("[[rule]]\nacquire = [{{ repository = 'a', {from} }}]\n");
        format!("[repository.a]\nlimit = 1048575\n{rule}")
    };
    case(&absent(1_048_575), None);
    case(&absent(1_048_576), Some("out-of-range"));
    // With a table the greatest number is no number of slots.
    case(&at_site("slots_from = { after = '-n', most = 500, table = { 1 = 100 } }"), None);
    let waits = |repository: &str, claim: &str| {
        let rule = format!("[[rule]]\nacquire = [{{ repository = 'a', {claim} }}]\n");
        format!("[repository.a]\nlimit = 5\nmax_wait = '1h'\n{repository}\n{rule}")
    };
    case(&waits("wait = '1h'", "wait = '1h'"), None);
    case(&waits("wait = '61m'", "wait = '1h'"), Some("wait-above-max"));
    case(&waits("wait = '1h'", "wait = '61m'"), Some("wait-above-max"));
    let pace = |expire: &str| {
        let keys = format!("if_elapsed = '10m'\nexpire_after = '{expire}'");
        format!("[repository.a]\nlimit = 5\n{keys}\n[[rule]]\nacquire = ['a']\n")
    };
    for key in
        ["if_elapsed_from = 'start'", "too_soon = 'ok'", "expire_grace = '9s'", "expire_kill = 'group'"]
    {
        let alone = format!("[repository.a]\nlimit = 5\n{key}\n[[rule]]\nacquire = ['a']\n");
        case(&alone, Some("needs-key"));
        case(&alone.replace(key, &format!("if_elapsed = '1m'\nexpire_after = '2m'\n{key}")), None);
    }
    case(&pace("11m"), None);
    case(&pace("10m"), Some("expire-not-above-elapsed"));
    let named = |length: usize| {
        let name = "a".repeat(length);
        format!("[repository.{name}]\nlimit = 5\n[[rule]]\nacquire = ['{name}']\n")
    };
    case(&named(100), None);
    case(&named(101), Some("name-too-long"));
    let path = |length: usize| {
        let name = "a".repeat(length);
        format!("[repository.a]\nlimit = 5\npath = '{name}'\n[[rule]]\nacquire = ['a']\n")
    };
    case(&path(199), None);
    case(&path(200), Some("name-too-long"));
    // The text of a placeholder is none of the name.
    case(&path(199).replace("path = '", "path = '{user}"), None);
    let lent = |lend: u32| {
        let reserve = format!("reserve = [{{ users = ['ann'], slots = '50%', lend = {lend} }}]");
        format!("[repository.a]\nlimit = 5\n{reserve}\n[[rule]]\nacquire = ['a']\n")
    };
    case(&lent(0), None);
    case(&lent(1_048_575), None);
    case(&lent(1_048_576), Some("out-of-range"));
}

/// No user has the highest number.
#[test]
fn a_uid_is_allowed_up_to_its_bound() {
    let deny = |user: &str| format!("[[rule]]\nusers = [{user}]\naction = 'deny'\n");
    case(&deny("0"), None);
    case(&deny("4294967294"), None);
    case(&deny("4294967295"), Some("out-of-range"));
    case(&deny("'4294967294'"), None);
    case(&deny("'4294967295'"), Some("id-too-large"));
    case(&deny("-1"), Some("out-of-range"));
    // A range has a number at both ends.
    case(&deny("'1000-1999'"), None);
    case(&deny("'1000-x'"), Some("unknown-user"));
    case(&deny("'x-1000'"), Some("unknown-user"));
}

/// The owner of a drop-in may begin with an empty one. Another file that is empty is a fault.
#[test]
fn only_a_delegated_drop_in_may_be_empty() {
    let main = "[delegate.\"20-cad.toml\"]\nowner = 'ann'\nusers = ['%cad']\ncommands = ['matlab']\n";
    let beside = |name: &str, text: &str| codes_of(&[(MAIN, main), (name, text)]);
    for text in ["", "\n", "# seats of cad\n"] {
        assert_eq!(beside("/etc/rungate/policy.d/20-cad.toml", text), [] as [&str; 0]);
        assert_eq!(beside("/etc/rungate/policy.d/30-sim.toml", text), ["empty-file"]);
        assert_eq!(beside("/home/ann/policy.toml", text), ["empty-file"]);
    }
}

/// Each entry of a list captures the same names, also if only one of them captures any.
#[test]
fn an_entry_that_captures_nothing_is_uneven() {
    let project = |directories: &str| {
        let repository = "[repository.a]\nper = '{project}'\nlimit = 1\n";
        format!("{repository}[[rule]]\ndirectories = [{directories}]\nacquire = ['a']\n")
    };
    case(&project("'/proj/{project}/**', '/{project}'"), None);
    case(&project("'/proj/{project}/**', '/scratch'"), Some("uneven-captures"));
    case(&project("'/scratch', '/proj/{project}/**'"), Some("uneven-captures"));
    // What is captured is a whole part.
    case(&project("'/proj/{project}x/**'"), Some("partial-capture"));
    case(&project("'/proj/x{project}/**'"), Some("partial-capture"));
}

/// A name like that of a placeholder is a capture if any rule captures it. Then a rule that does not is at
/// fault, and otherwise the path.
#[test]
fn a_name_that_no_rule_captures_is_a_slip_in_the_path() {
    let path = "[repository.a]\npath = '{usr}.lock'\nlimit = 1\n";
    let rule = |keys: &str| format!("[[rule]]\nacquire = ['a']\n{keys}\n");
    case(&format!("{path}{}", rule("")), Some("unknown-placeholder"));
    let captures = rule("directories = ['/home/{usr}/**']");
    case(&format!("{path}{captures}"), None);
    case(&format!("{path}{captures}{}", rule("")), Some("not-captured"));
}

/// Two repositories can share a file only if a value can be what follows in the other name: a uid has digits.
#[test]
fn paths_meet_only_if_a_value_can_be_the_text() {
    let repositories = |per: &str, other: &str| {
        format!(
            "[repository.a]\nper = '{per}'\nlimit = 1\n[repository.'a.{other}']\nper = 'user'\nlimit = 1\n\
             [[rule]]\nacquire = ['a', 'a.{other}']\n"
        )
    };
    case(&repositories("user", "b"), None);
    case(&repositories("command", "b"), Some("paths-meet"));
    case(&repositories("directory", "b"), None);
    let paths = |one: &str, other: &str| {
        format!(
            "[repository.a]\npath = '{one}'\nlimit = 1\n[repository.b]\npath = '{other}'\nlimit = 1\n\
             [[rule]]\nacquire = ['a', 'b']\n"
        )
    };
    case(&paths("x/{user}.lock", "x{user}.lock"), None);
    case(&paths("x{user}.lock", "x-{user}.lock"), Some("paths-meet"));
    case(&paths("x/{user}.lock", "x/{user}-.lock"), Some("paths-meet"));
    case(&paths("x/{user}.lock", "x/a.lock"), Some("paths-meet"));
    // What separates two values is no digit.
    case(&paths("x/{user}{host}.lock", "x/{user}%.ws1.lock"), Some("paths-meet"));
    case(&paths("x/{user}{host}.lock", "x/{uid}.lock"), None);
    // Directly below the root, and by the whole path or not.
    case(&paths("/{user}.lock", "/x{user}.lock"), Some("paths-meet"));
    case(&paths("/x/{user}.lock", "/{user}/x.lock"), Some("paths-meet"));
    let runtime = |paths: String| {
        let codes = codes_of(&[(MAIN, &format!("[defaults]\ndirectory = '{{runtime}}'\n{paths}"))]);
        codes.into_iter().filter(|code| *code == "paths-meet").count()
    };
    assert_eq!(runtime(paths("x/{user}.lock", "{runtime}/x/{arg1}.lock")), 1);
    assert_eq!(runtime(paths("{arg1}.lock", "{runtime}/x{user}.lock")), 1);
    assert_eq!(runtime(paths("x/{user}.lock", "{runtime}/x{user}.lock")), 0);
}

/// Between two samples, none would count.
#[test]
fn a_sample_is_not_stale_before_the_next_one_begins() {
    let outside = |keys: &str| {
        format!(
            "[repository.a]\nlimit = 1\noutside = {{ command = ['/bin/true']{keys} }}\n[[rule]]\nacquire = ['a']\n"
        )
    };
    for (keys, code) in [
        (", every = '5m'", None),
        (", every = '5m', stale_after = '5m'", None),
        (", every = '5m', stale_after = '4m59s'", Some("too-short")),
        (", every = '15s', stale_after = '14s'", Some("too-short")),
        // Another timer may run the command.
        (", stale_after = '14s'", None),
    ] {
        case(&outside(keys), code);
    }
}

/// A value that is none hides nothing of what follows in its table.
#[test]
fn what_follows_a_damaged_value_is_told() {
    let defaults = "[defaults]\nhold = tree\ncontact = ' '\n";
    assert_eq!(codes_of(&[(MAIN, defaults)]), ["syntax", "bad-contact"]);
}

/// What a damaged line may have defined is not told as missing.
#[test]
fn what_a_damaged_line_names_is_not_missing() {
    let header = "version = 1\n[repository.seats\nlimit = 5\n";
    case(&format!("{header}[[rule]]\nacquire = ['seats']\n"), Some("syntax"));
    let alias = "version = 1\n[alias]\ntools = matlab\n[[rule]]\nacquire = []\n";
    let commands = "commands = ['@tools']\n";
    case(&format!("{alias}{commands}"), Some("syntax"));
    assert_eq!(codes_of(&[(MAIN, &format!("{alias}{commands}message = no\n"))]), ["syntax", "syntax"]);
}

/// A damaged line hides nothing in another file, nor what has nothing to do with it.
#[test]
fn a_damaged_line_hides_no_other_fault() {
    let damaged = (MAIN, "[repository.a\nlimit = 5\n");
    let other = ("/etc/rungate/policy.d/10.toml", "[defaults]          # of this host\nwaits = 1\n");
    assert_eq!(codes_of(&[damaged, other]), ["syntax", "unknown-key"]);
    let open = "[[rule]]\nacquire = ['other']\n[repository.a]\nlimit = 1\nlimits = { ann = 2,\n";
    assert!(codes_of(&[(MAIN, open)]).contains(&"unknown-repository"));
}

/// A department lowers a limit of others by a ceiling, and takes no slots for that.
#[test]
fn what_lowers_a_limit_has_a_ceiling_alone() {
    let main = "[delegate.\"20-cad.toml\"]\nowner = 'ann'\nusers = ['%cad']\ncommands = ['matlab']\n\
                [repository.seats]\nlimit = 9\n[[rule]]\nacquire = ['seats']\n";
    let lowers = |keys: &str| {
        let rule = format!("[[rule]]\nacquire = [{{ repository = 'seats', {keys} }}]\n");
        codes_of(&[(MAIN, main), ("/etc/rungate/policy.d/20-cad.toml", &rule)])
    };
    assert_eq!(lowers("ceiling = 3"), [] as [&str; 0]);
    for keys in ["slots = 2", "slots_from = { after = '-n' }", "wait = '1m'"] {
        assert_eq!(lowers(keys), ["may-only-lower"], "{keys}");
        assert_eq!(lowers(&format!("ceiling = 3, {keys}")), ["may-only-lower"], "{keys}");
    }
}

/// An alias is used if only a delegation names it.
#[test]
fn an_alias_of_a_delegation_is_used() {
    let delegate = "[delegate.\"20-cad.toml\"]\nowner = 'ann'\nusers = ['@people']\ncommands = ['@tools']\n";
    let aliases = "[alias]\npeople = ['@staff']\nstaff = ['%cad']\ntools = ['matlab']\n";
    case(&format!("{aliases}{delegate}"), None);
    case(&format!("{aliases}other = ['x']\n{delegate}"), Some("unused-alias"));
}

/// Numbers in a test of the policy are allowed up to their bounds too.
#[test]
fn a_number_of_a_test_is_allowed_up_to_its_bound() {
    let test = |keys: &str| {
        format!(
            "[repository.a]\nlimit = 5\n[[rule]]\nacquire = ['a']\n[[test]]\nname = 't'\ncommand = 'x'\n\
             expect = 'start'\n{keys}\n"
        )
    };
    for (allowed, beyond) in [
        ("claims = [{ repository = 'a', slots = 1 }]", "claims = [{ repository = 'a', slots = 0 }]"),
        (
            "claims = [{ repository = 'a', slots = 1048575 }]",
            "claims = [{ repository = 'a', slots = 1048576 }]",
        ),
        ("claims = [{ repository = 'a', limit = 0 }]", "claims = [{ repository = 'a', limit = -1 }]"),
        (
            "claims = [{ repository = 'a', limit = 1048575 }]",
            "claims = [{ repository = 'a', limit = 1048576 }]",
        ),
        ("use = { a = 0 }", "use = { a = -1 }"),
        ("use = { a = 1048575 }", "use = { a = 1048576 }"),
        ("use = { a = [{ user = 'ann', slots = 1 }] }", "use = { a = [{ user = 'ann', slots = 0 }] }"),
        ("waiting = { a = 0 }", "waiting = { a = -1 }"),
        ("waiting = { a = 1000 }", "waiting = { a = 1001 }"),
        ("cpus = 1", "cpus = 0"),
        ("cpus = 1000000", "cpus = 1000001"),
        ("user = 0", "user = -1"),
        ("user = 4294967294", "user = 4294967295"),
    ] {
        case(&test(allowed), None);
        case(&test(beyond), Some("out-of-range"));
    }
}

/// Only a repository with a file for each member has members that can have slots in a test.
#[test]
fn a_member_of_a_test_is_one_of_the_repository() {
    let test = |per: &str| {
        format!(
            "[repository.a]\nlimit = 5\n{per}\n[[rule]]\nacquire = ['a']\n[[test]]\nname = 't'\ncommand = 'x'\n\
             expect = 'start'\nuse = {{ 'a [ann]' = 1 }}\n"
        )
    };
    case(&test("per = 'user'"), None);
    case(&test(""), Some("no-members"));
}

/// A rule that takes no slots has no key about them, and one that refuses exempts from nothing.
#[test]
fn a_rule_that_takes_no_slots_has_no_key_about_them() {
    let rule = |action: &str, keys: &str| {
        let first = "[repository.a]\nlimit = 5\n[[rule]]\ncommands = ['x']\nacquire = ['a']\n";
        format!("{first}[[rule]]\ncommands = ['y']\naction = '{action}'\n{keys}\n")
    };
    for (action, allowed) in [("deny", "enforce = false"), ("exempt", "from = ['a']")] {
        case(&rule(action, ""), None);
        case(&rule(action, allowed), None);
        for keys in ["acquire = ['a']", "wait = '1m'", "hold = 'tree'"] {
            case(&rule(action, keys), Some("contradiction"));
        }
    }
    case(&rule("deny", "from = ['a']"), Some("contradiction"));
    case(&rule("exempt", "enforce = true"), Some("contradiction"));
}

/// Only a rule that admits launches beyond a limit may need more slots than there are names.
#[test]
fn a_rule_within_the_limit_needs_no_more_slots_than_names() {
    let rule = |action: &str| {
        format!("[repository.a]\nnames = ['x', 'y']\n[[rule]]\nacquire = ['a']\naction = '{action}'\n")
    };
    case(&rule("limit"), None);
    case(&rule("count"), Some("beyond-names"));
}

/// A rule that admits launches beyond a limit may want more slots than there are, also where their number is
/// read from the command line.
#[test]
fn a_rule_beyond_the_limit_may_want_more_slots_than_there_are() {
    let rule = |action: &str, keys: &str| {
        let claim = format!("{{ repository = 'a', {keys} }}");
        format!("[repository.a]\nlimit = 3\n[[rule]]\nacquire = [{claim}]\naction = '{action}'\n")
    };
    for keys in ["slots = 5", "slots = 2, ceiling = 1", "slots = 5, slots_from = { after = '-n' }"] {
        case(&rule("limit", keys), Some("slots-above-limit"));
        case(&rule("count", keys), None);
    }
    case(&rule("limit", "slots = 3"), None);
}

/// A test that expects a start names no rule that refuses it.
#[test]
fn a_test_that_expects_a_start_is_refused_by_no_rule() {
    let test = |expect: &str| {
        let keys = format!("name = 't'\ncommand = 'x'\nexpect = '{expect}'\nby = 'rule 1'");
        format!("[[rule]]\nacquire = []\n[[test]]\n{keys}\n")
    };
    case(&test("refuse"), None);
    case(&test("start"), Some("contradiction"));
}

/// The moment of a test is a string, or as TOML writes it.
#[test]
fn the_moment_of_a_test_needs_no_quotes() {
    let test = |time: &str| {
        let keys = "name = 't'\ncommand = 'x'\nexpect = 'start'";
        format!("[[rule]]\nacquire = []\n[[test]]\n{keys}\ntime = {time}\n")
    };
    for time in ["'2026-11-20 14:02'", "2026-11-20T14:02:00", "2026-11-20 14:02:00", "2026-11-20T14:02:00Z"] {
        case(&test(time), None);
    }
    case(&test("'noon'"), Some("bad-time"));
    case(&test("20261120"), Some("wrong-type"));
}

/// What is a table in the language is a fault in any other form.
#[test]
fn a_table_is_nothing_else() {
    case("defaults = 1\n", Some("wrong-type"));
    case("log = 'off'\n", Some("wrong-type"));
    case("[[rule]]\nacquire = []\nexcept = ['x']\n", Some("wrong-type"));
    case(
        "[repository.a]\nlimit = 5\noutside = ['/bin/true']\n[[rule]]\nacquire = ['a']\n",
        Some("wrong-type"),
    );
}

/// A contact has 200 characters at most.
#[test]
fn a_contact_is_allowed_up_to_its_bound() {
    let contact = |length: usize| format!("[defaults]\ncontact = '{}'\n", "ü".repeat(length));
    case(&contact(200), None);
    case(&contact(201), Some("bad-contact"));
}

/// Of a file that is not TOML the first hundred mistakes are told.
#[test]
fn no_more_than_a_hundred_mistakes_of_syntax_are_told() {
    let lines: String = (0..150).map(|number| format!("key{number} = word\n")).collect();
    let told = codes_of(&[(MAIN, &lines)]).into_iter().filter(|code| *code == "syntax").count();
    assert!((1..=100).contains(&told), "{told}");
}

/// Each key that is there twice is a fault, also if another one of its table is too.
#[test]
fn each_key_that_stands_twice_is_a_fault() {
    let twice = "[repository.a]\nlimit = 1\nlimit = 2\nwait = '1m'\nwait = '2m'\n[[rule]]\nacquire = ['a']\n";
    assert_eq!(codes_of(&[(MAIN, twice)]), ["duplicate-key", "duplicate-key"]);
}

/// A loop of aliases is one fault, also if another alias leads into it.
#[test]
fn a_loop_of_aliases_is_one_fault_wherever_it_is_entered() {
    let aliases = "[alias]\nd = ['@a']\na = ['x', '@b']\nb = ['@a']\n";
    let deny = |user: &str| format!("[[rule]]\nusers = ['{user}']\naction = 'deny'\n");
    for users in [["@d", "@b"], ["@b", "@d"]] {
        case(&format!("{aliases}{}", users.map(deny).concat()), Some("alias-loop"));
    }
    let delegate = "[delegate.\"20-cad.toml\"]\nowner = 'ann'\nusers = ['@d']\ncommands = ['x']\n";
    case(&format!("{aliases}{delegate}"), Some("alias-loop"));
}

/// An alias may be in a list more than once, by itself and within another one.
#[test]
fn an_alias_that_is_reached_twice_is_no_loop() {
    let aliases = "[alias]\na = ['@b', '@c', '@b']\nb = ['@c']\nc = ['ann']\n";
    case(&format!("{aliases}[[rule]]\nusers = ['@a', '@c']\naction = 'deny'\n"), None);
}

/// A brace within a brace is one that is not closed, and no part of a name.
#[test]
fn a_placeholder_has_no_brace_in_its_name() {
    let path =
        |path: &str| format!("[repository.a]\nlimit = 5\npath = '{path}'\n[[rule]]\nacquire = ['a']\n");
    case(&path("x/{user}.lock"), None);
    case(&path("x/{{user}.lock"), Some("open-brace"));
    case(&path("x/{a{user}.lock"), Some("open-brace"));
    // Nor are there names that lead to the same directory or above it.
    for dots in ["./a.lock", "x/./a.lock", "x/../a.lock"] {
        case(&path(dots), Some("dots-in-path"));
    }
    case(&path("x/..a.lock"), None);
}
