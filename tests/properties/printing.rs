//! `policy show`: what is printed decides as what was read does.

use proptest::{collection::vec, option, prelude::*, sample::select, strategy::Union};
use rungate::{
    policy::{Difference, LayerKind, LayerText, PartKind, Policy},
    text::diagnostic::SourceText,
};

use super::request::{ARGUMENTS, COMMANDS, DIRECTORIES, GROUPS, HOSTS, USERS, launches};

/// Lines of a table, each there or not.
fn lines(keys: Vec<BoxedStrategy<String>>) -> impl Strategy<Value = String> {
    let maybe: Vec<_> = keys.into_iter().map(|key| option::of(key).boxed()).collect();
    maybe.prop_map(|lines| lines.into_iter().flatten().map(|line| line + "\n").collect())
}

/// One of some lines as they stand.
fn any_line(lines: &[&str]) -> BoxedStrategy<String> {
    select(lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()).boxed()
}

/// `key = ["…", …]` with one or two of some entries.
fn list(key: &'static str, entries: &[&str]) -> BoxedStrategy<String> {
    let entries: Vec<String> = entries.iter().map(|entry| format!("\"{entry}\"")).collect();
    vec(select(entries), 1..3).prop_map(move |chosen| format!("{key} = [{}]", chosen.join(", "))).boxed()
}

fn with<'a>(words: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [words, more].concat()
}

fn selectors() -> Vec<BoxedStrategy<String>> {
    vec![
        list("commands", &with(COMMANDS, &["mat*", "@tools", "/usr/bin/*", "/**/mex", "*"])),
        list("arguments", &with(&ARGUMENTS[..3], &["*", "-*"])),
        any_line(&[
            "arguments = { all = [\"-batch\", [\"-np\", \"*\"]] }",
            "arguments = { exactly = [\"-*\", \"**\"] }",
            "arguments = { exactly = [] }",
        ]),
        any_line(&[
            "arguments = [[\"-np\", \"*\"]]",
            "arguments = [\"-batch\", [\"-np\", \"8\"]]",
            "arguments = [[\"@tools\"]]",
        ]),
        list("users", &with(USERS, &["t*", "%cad", "+lab", "2000-2001", "2002", "*", "%s*"])),
        list("groups", &with(GROUPS, &["s*", "2001", "*"])),
        list("hosts", &with(HOSTS, &["ws*", "FARM2"])),
        list("directories", &with(DIRECTORIES, &["/proj/**", "/proj/*"])),
        any_line(&[
            "environment = { PROJECT = [\"apollo\"] }",
            "environment = { PROJECT = false, X = false }",
        ]),
        list(
            "when",
            &[
                "Mon-Fri 08:00-18:00",
                "22:00-06:00",
                "Sat,Sun",
                "2026-11-20..2026-12-01",
                "Fri 18:00..Sun 20:00",
                "2026-11-20 18:00..2026-11-22 20:00",
            ],
        ),
    ]
}

/// What a rule selects.
pub(super) fn selectors_of_a_rule() -> impl Strategy<Value = String> {
    lines(selectors()).prop_map(|lines| once(&lines))
}

/// A key may stand once only: of several lines for one the first stays.
pub(super) fn once(text: &str) -> String {
    let mut seen = Vec::new();
    let mut kept = String::new();
    for line in text.lines() {
        let key = line.split(' ').next().unwrap_or_default().to_owned();
        if line.starts_with('[') {
            seen.clear();
        } else if !seen.contains(&key) {
            seen.push(key);
        } else {
            continue;
        }
        kept.extend([line, "\n"]);
    }
    kept
}

fn rule() -> impl Strategy<Value = String> {
    let claims = [
        "\"a\"",
        "\"each\"",
        "\"group\"",
        "\"env\"",
        "\"project\"",
        "{ repository = \"a\", ceiling = 3 }",
        "{ repository = \"a\", ceiling = \"60%\" }",
        "{ repository = \"a\", ceiling = 5, slots = 2 }",
        "{ repository = \"each\", ceiling = \"30%\" }",
        "{ repository = \"env\", slots = \"all\" }",
        "{ repository = \"a\", slots_from = { after = \"-np\", most = 4 } }",
        "{ repository = \"a\", slots = 0, slots_from = { after = \"-np\" } }",
        "{ repository = \"a\", slots_from = { after = [\"cpus\", \"gpus\"], absent = 2, table = { 1 = 2, 4 = 3 } } }",
        "{ repository = \"a\", slots_from = { after = [\"-x\"], table = { 1 = 1 }, unclear = \"absent\" } }",
        "{ repository = \"a\", wait = \"0s\" }",
        "\"gpu\"",
        "{ repository = \"gpu\", slots = \"all\" }",
        "{ any_of = [\"each\", \"a\"] }",
        "{ any_of = [[\"a\", \"each\"], [{ repository = \"a\", wait = \"1h\" }, \"env\"], \"env\"] }",
        "{ any_of = [{ repository = \"env\", slots = 2 }, \"each\"] }",
    ];
    let captures = [
        "directories = [\"/proj/{project}/**\", \"/{project}\"]\narguments = [\"-batch\", \"-np\"]\n",
        "arguments = { all = [\"-np\", [\"-batch\", \"{project}\"]] }\n",
        "arguments = { exactly = [\"-*\", \"**\", \"{project}\"] }\n",
        "arguments = [[\"-np\", \"{project}\"], \"-{project}\"]\n",
        "environment = { PROJECT = [\"{project}\"] }\n",
    ];
    let limit = (
        vec(select(claims.to_vec()), 0..3),
        select(captures.to_vec()),
        lines(vec![
            any_line(&["action = \"count\""]),
            any_line(&["wait = \"5m\"", "wait = \"forever\""]),
            any_line(&["hold = \"tree\"", "hold = \"descriptor\""]),
            any_line(&["enforce = false", "enforce = true"]),
            any_line(&["first_of = \"f\"", "first_of = \"g\""]),
        ]),
    );
    let limit = limit.prop_map(|(claims, captures, rest)| {
        let groups =
            if claims.contains(&"\"group\"") { "groups = [\"cad\", \"s*\", \"2001\"]\n" } else { "" };
        let captures = if claims.contains(&"\"project\"") { captures } else { "" };
        // There is no name beyond the last.
        let has_names = claims.iter().any(|claim| claim.contains("gpu"));
        let rest = if has_names { rest.replace("action = \"count\"\n", "") } else { rest };
        let rest: Vec<&str> =
            rest.lines().filter(|line| !claims.is_empty() || !line.starts_with("wait")).collect();
        format!("{groups}{captures}acquire = [{}]\n{}\n", claims.join(", "), rest.join("\n"))
    });
    let deny = any_line(&[
        "action = \"deny\"",
        "action = \"deny\"\nenforce = false",
        "action = \"deny\"\nfirst_of = \"f\"",
    ]);
    let exempt = any_line(&["action = \"exempt\"", "action = \"exempt\"\nfrom = [\"a\", \"each\"]"]);
    let action = Union::new_weighted(vec![
        (6, limit.boxed()),
        (1, deny.prop_map(|line| line + "\n").boxed()),
        (1, exempt.prop_map(|line| line + "\n").boxed()),
    ]);
    let except = option::of(lines(selectors()).prop_map(|keys| keys.replace('\n', ", ")));
    let rest = any_line(&["order = -1", "order = 7"]).prop_map(|line| line + "\n");
    (0..10_000u32, action, lines(selectors()), except, rest).prop_map(
        |(number, action, selectors, except, rest)| {
            let except =
                except.map(|keys| keys.trim_end_matches(", ").to_owned()).filter(|keys| !keys.is_empty());
            let except = except.map_or_else(String::new, |keys| {
                // Within one line a key may stand once only as well.
                let single = once(&keys.replace("], ", "]\n").replace("}, ", "}\n"));
                format!("except = [{{ {} }}]\n", single.trim_end().replace('\n', ", "))
            });
            once(&format!("[[rule]]\nmessage = \"{number}\"\n{action}{selectors}{except}{rest}"))
        },
    )
}

fn repositories() -> impl Strategy<Value = String> {
    let common = || {
        vec![
            any_line(&["nested = \"take\""]),
            any_line(&["wait = \"1h\"", "max_wait = \"2h\""]),
            any_line(&["queue = 20", "queue_per_user = 2"]),
            any_line(&["hold = \"supervisor\""]),
            any_line(&["enforce = false", "enforce = true"]),
            any_line(&[
                "if_elapsed = \"15m\"\ntoo_soon = \"ok\"",
                "expire_after = \"1h30m\"\nexpire_kill = \"group\"",
            ]),
        ]
    };
    let seats = [
        common(),
        vec![any_line(&[
            "reserve = [{ users = [\"%cad\"], slots = 3, lend = 2 }]",
            "reserve = [{ users = [\"ann\", \"%sim\"], slots = 1 }, { users = [\"+lab\"], slots = 2, lend = 2 }]",
            "reserve = [{ hosts = [\"ws*\"], slots = \"20%\" }, { users = [\"%cad\"], hosts = [\"lab\"], slots = 1 }]",
            "reserve = [{ users = [\"@folk\"], when = [\"Mon-Fri 08:00-18:00\"], slots = \"50%\", lend = 1 }]",
        ])],
        vec![any_line(&[
            "limits = [{ when = [\"22:00-06:00\"], limit = 6 }, { when = [\"Fri 18:00..Sun 20:00\"], limit = \"1/cpu\" }]",
        ])],
    ]
    .concat();
    let each = [
        common(),
        vec![any_line(&[
            "per = \"user\"",
            "per = [\"user\", \"host\"]",
            "path = \"x/{user}.lock\"",
            "path = \"/v/{uid}/l\"",
            "per = \"user\"\nlimits = { bob = 1, \"%cad\" = 3, \"2000-2001\" = 2, \"@folk\" = 4, \"t*\" = 5 }",
            "per = \"user\"\nlimits = { \"@folk\" = 4, \"+lab\" = 2, \"*\" = 7, ann = 1 }",
            "per = [\"user\", \"host\"]\nlimits = [{ users = [\"%cad\", \"@folk\"], hosts = [\"ws*\"], limit = 4 }, { hosts = [\"FARM2\"], when = [\"22:00-06:00\"], limit = 1 }]",
        ])],
    ]
    .concat();
    let group = [
        common(),
        vec![
            any_line(&["charge = \"first\"", "charge = \"any\""]),
            any_line(&[
                "limits = { cad = 2, \"s*\" = \"1/cpu\", 2001 = 9 }",
                "limits = { \"2000-2001\" = 2, \"@some\" = 3, sim = 1 }",
                "limits = [{ groups = [\"s*\"], when = [\"Sat,Sun\"], limit = 9 }, { groups = [\"@some\"], limit = 2 }]",
            ]),
        ],
    ]
    .concat();
    let env = [
        common(),
        vec![any_line(&["path = \"env/{env.PROJECT}-{arg1}\"", "path = \"{runtime}/env/{command}\""])],
    ]
    .concat();
    let project = any_line(&[
        "per = [\"{project}\", \"user\"]",
        "per = \"{project}\"\nlimits = { apollo = 3, \"a*\" = 1, \"@some\" = 2 }",
        "path = \"of/{project}/{user}-{project}.lock\"",
    ]);
    let kept = vec![
        any_line(&["per = \"user\"", "per = [\"host\", \"command\"]"]),
        any_line(&["unreachable = \"start\"", "unreachable = \"refuse\""]),
        any_line(&["nested = \"take\""]),
        any_line(&["if_elapsed = \"15m\""]),
    ];
    let gpu = [
        common(),
        vec![
            any_line(&["limit = 2", "limit = \"3/cpu\""]),
            any_line(&["per = \"host\"", "reserve = [{ users = [\"%cad\"], slots = \"50%\", lend = 1 }]"]),
            any_line(&[
                "out_of_order = [\"b\"]",
                "out_of_order = { ws17 = [\"a\", \"c\"], \"ws*\" = [\"a\"], lab = [\"b\"] }",
                "out_of_order = { farm2 = [\"a\", \"b\", \"c\"] }",
            ]),
        ],
    ]
    .concat();
    (lines(seats), lines(each), lines(group), lines(env), lines(gpu), lines(kept), project).prop_map(
        |(seats, each, group, env, gpu, kept, project)| {
            format!(
                "[repository.a]\nlimit = 6\n{seats}[repository.each]\nlimit = \"1/cpu\"\n{each}\
             [repository.kept]\nlimit = 2\nkeeper = \"agent\"\n{kept}\
             [repository.group]\nlimit = 3\nper = \"group\"\n{group}[repository.env]\nlimit = 2\n{env}\
             [repository.project]\nlimit = 2\n{project}\n\
             [repository.gpu]\nnames = [\"a\", \"b\", \"c\"]\n{gpu}"
            )
        },
    )
}

fn defaults() -> impl Strategy<Value = String> {
    let keys = lines(vec![
        any_line(&["unmatched = \"refuse\""]),
        any_line(&["enforce = false"]),
        any_line(&["wait = \"1m\""]),
        any_line(&["hold = \"descriptor\""]),
        any_line(&["directory = \"/srv\"", "directory = \"{runtime}/x\""]),
        any_line(&["create_mode = \"0600\""]),
        any_line(&["contact = \"help@example.org\""]),
        any_line(&["time_zone = \"UTC\""]),
    ]);
    keys.prop_map(|keys| {
        format!("[defaults]\n{keys}[alias]\ntools = [\"mex\", \"@more\"]\nmore = [\"sol*\"]\nfolk = [\"ann\", \"bob\", \"%sim\"]\nsome = [\"cad\", \"students\"]\n")
    })
}

/// A main file and a drop-in.
pub(super) fn policies() -> impl Strategy<Value = [String; 2]> {
    (defaults(), repositories(), vec(rule(), 0..6), vec(rule(), 0..4)).prop_map(
        |(defaults, repositories, main, more)| {
            let own = "[repository.a]\nlimit = 7\npath = \"own.lock\"\n";
            [format!("{defaults}{repositories}{}", main.concat()), format!("{own}{}", more.concat())]
        },
    )
}

fn read(texts: &[String]) -> Result<Policy, String> {
    let files = (0..)
        .zip(texts)
        .map(|(number, text)| SourceText::new(format!("/etc/p/{number}.toml"), text.as_str()));
    let layer = LayerText { kind: LayerKind::System, files: files.collect() };
    Policy::of_layers(vec![layer], false).map_err(|faults| faults.to_string())
}

proptest! {
    #![proptest_config(super::cases(150))]

    #[test]
    fn a_printed_policy_decides_as_the_original_does(texts in policies(), launches in vec(launches(), 8)) {
        let original = read(&texts).map_err(|faults| TestCaseError::fail(format!("{faults}\n{}", texts.join("\n"))))?;
        let printed = original.print().into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        let again = read(&printed).map_err(|faults| TestCaseError::fail(format!("{faults}\n{}", printed.join("\n"))))?;
        for launch in launches {
            prop_assert_eq!(launch.judged_by(&original), launch.judged_by(&again), "{}", printed.join("\n"));
        }
        let twice = again.print().into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        prop_assert_eq!(&printed, &twice, "what is printed prints itself");
        let difference = Difference::between(&original, &again);
        let changes = difference.changes().iter().filter(|change| change.kind != PartKind::Family);
        prop_assert!(changes.count() == 0, "{:?}\n{}", difference, printed.join("\n"));
    }
}
