//! Every file of `policies/`, executed: the admissions and refusals that its comments promise, with real
//! processes.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;

use crate::support::{Account, Ending, Outcome, ProcessState, Running, Site, Test, eventually, needs_root};

pub(crate) fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("policies")
}

/// The text of one of the policies, changed in one place as its comment says.
pub(crate) fn shared(policy: &str) -> String {
    let text = fs::read_to_string(directory().join(policy)).expect("a policy");
    assert!(text.contains("directory = \"{runtime}\""), "{policy} must run for whoever has cloned it");
    text.replace("{runtime}", "$DIR/repositories")
}

/// A site that has one of the policies for one user.
fn site(policy: &str) -> Site {
    Site::with_policy(&shared(policy))
}

/// A site that has one of the policies as the system's, to share its slots between users.
fn shared_site(policy: &str) -> Site {
    let site = Site::new();
    site.system_policy(&shared(policy));
    site
}

pub(crate) fn run(site: &Site, user: &str, command: &[&str]) -> Test {
    site.test().user(user).args(["run", "--"]).args(command)
}

/// `4 of 4 used`, and the reason of the limit if there is one.
fn whole(use_of: &str) -> String {
    if use_of.contains("used") { use_of.to_owned() } else { format!("{use_of} used") }
}

/// The launch is refused, and the message names exactly these repositories, each with its use and limit.
#[track_caller]
pub(crate) fn full(test: &Test, repositories: &[(&str, &str)]) {
    let outcome = test.outcome();
    assert_eq!(outcome.ending, Ending::Status(75), "{outcome:?}");
    let named = outcome
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let expected: Vec<String> =
        repositories.iter().map(|(name, use_of)| format!("{name}  {}", whole(use_of))).collect();
    assert_eq!(named.collect::<Vec<&str>>(), expected, "{}", outcome.stderr);
}

/// The policies that stand alone; `departments` is a site's file with its drop-ins.
pub(crate) fn policies() -> Vec<Vec<PathBuf>> {
    let files_of = |directory: PathBuf| -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).expect("a directory of policies");
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        files.retain(|file| file.is_file());
        files.sort();
        files
    };
    let mut policies: Vec<Vec<PathBuf>> = files_of(directory()).into_iter().map(|file| vec![file]).collect();
    let departments = directory().join("departments");
    policies.push([files_of(departments.clone()), files_of(departments.join("policy.d"))].concat());
    policies
}

/// A policy has no fault, nothing in it is doubtful, and its tests come out.
#[track_caller]
pub(crate) fn keeps_what_it_intends(files: &[PathBuf]) {
    let checked = has_nothing_doubtful(files);
    assert!(checked.stdout.ends_with(" passed\n"), "{checked:?}");
}

/// `policy check`, which plays the tests as well, finds nothing. Groups and users of other sites do not exist
/// here, which is worth a warning.
#[track_caller]
pub(crate) fn has_nothing_doubtful(files: &[PathBuf]) -> Outcome {
    let checked = Test::new().args(["policy", "check"]).args(files).outcome();
    assert_eq!(checked.ending, Ending::Status(0), "{files:?}: {}", checked.stderr);
    let unknown = checked.stderr.matches("[unknown-").count();
    assert_eq!(checked.stderr.matches(": warning: ").count(), unknown, "{}", checked.stderr);
    checked
}

/// Whoever reads a policy learns who wants it, and what it says is checked: it has no fault, and what it
/// intends comes out.
#[test]
fn every_policy_says_who_wants_it_and_keeps_what_it_intends() {
    let policies = policies();
    assert!(policies.len() >= 20, "{policies:?}");
    let readme = fs::read_to_string(directory().with_file_name("docs/policies.md")).expect("the README");
    for files in policies {
        let text = fs::read_to_string(&files[0]).expect("a policy");
        let is_first = files[0].ends_with("quick-start.toml");
        assert!(
            text.lines().nth(1).is_some_and(|line| line.starts_with("# "))
                && (is_first || text.contains("# Who needs it:")),
            "{files:?}"
        );
        assert!(text.contains("[[test]]"), "{files:?} does not say what it intends");
        let place = files[0].strip_prefix(env!("CARGO_MANIFEST_DIR")).expect("a policy of ours");
        let place = if place.ends_with("departments/policy.toml") { place.parent() } else { Some(place) };
        let link = place.expect("a place").to_str().expect("a plain name");
        assert!(readme.contains(&format!("(../{link})")), "{link} cannot be found in docs/policies.md");
        keeps_what_it_intends(&files);
    }
}

/// The second start is refused with status 75, and is told which repository is full and who has the slot.
/// When the first one has ended, by whatever means, its slot is free. By whoever has cloned it, with the
/// file as it is.
#[test]
fn quick_start() {
    let site = Site::new();
    let policy = directory().join("quick-start.toml");
    let sleep = |time| site.test().args(["run", "--policy"]).args([&policy]).args(["--", "sleep", time]);
    let running = sleep("1000").background();
    ProcessState::of(running.pid(), "sleep");
    sleep("0")
        .stderr(&format!(
            "
            rungate: sleep: not started: the limit is reached
              sleepers  1 of 1 used
                  rule \"one sleeper at a time\", {}:16
                  PID {} {} sleep, since [time] ([age])
            Close one of yours, or wait in the queue: rungate run --wait 30m --policy {} -- sleep 0
            To see why: rungate explain --policy {} -- sleep 0
            To end the oldest of yours: rungate end --policy [..] sleepers [pid]
            ",
            policy.display(),
            running.pid(),
            Account::own().name,
            policy.display(),
            policy.display(),
        ))
        .status(75);
    running.kill();
    sleep("0").status(0);
}

#[test]
fn licence_seats() {
    needs_root!();
    let site = shared_site("licence-seats.toml");
    site.program("matlab");
    for (name, groups) in [
        ("ann", &["cad"][..]),
        ("bob", &["cad"]),
        ("cid", &["cad", "sim"]),
        ("dan", &["sim"]),
        ("eve", &["users"]),
        ("fay", &[]),
    ] {
        site.account(name, groups);
    }
    let matlab = |user| run(&site, user, &["matlab"]);
    // "No person takes more than 4 of them."
    let ann: Vec<Running> = (0..4).map(|_| matlab("ann").spawn()).collect();
    full(&matlab("ann"), &[("matlab-per-user [ann]", "4 of 4")]);
    // "And the two departments no more than 6 each."
    let bob: Vec<Running> = (0..2).map(|_| matlab("bob").spawn()).collect();
    full(&matlab("bob"), &[("matlab-per-group [cad]", "6 of 6")]);
    // "Somebody in both departments counts against both": cad is full, so cid gets none, though sim has room.
    full(&matlab("cid"), &[("matlab-per-group [cad]", "6 of 6")]);
    drop(bob);
    let _cid: Vec<Running> = (0..2).map(|_| matlab("cid").spawn()).collect();
    let _dan: Vec<Running> = (0..4).map(|_| matlab("dan").spawn()).collect();
    full(&matlab("dan"), &[("matlab-per-user [dan]", "4 of 4"), ("matlab-per-group [sim]", "6 of 6")]);
    // "Somebody in neither is only held to the 12 and the 4": 4 + 2 + 4 are taken.
    let _eve: Vec<Running> = (0..2).map(|_| matlab("eve").spawn()).collect();
    full(&matlab("eve"), &[("matlab", "12 of 12")]);
    // "Takes a slot in each of them or in none."
    full(&matlab("fay"), &[("matlab", "12 of 12")]);
    drop(ann);
    matlab("fay").status(0);
    matlab("eve").status(0);
}

#[test]
fn student_lab() {
    needs_root!();
    // During the day, whenever this is run.
    let policy = shared("student-lab.toml");
    let hours = r#"["Mon-Fri 08:00-18:00"]"#;
    assert!(policy.contains(hours), "{policy}");
    let site = Site::new();
    site.system_policy(&policy.replace(hours, r#"["Mon-Sun 00:00-24:00"]"#));
    site.program("spss");
    for (name, groups) in [
        ("stu1", &["students"][..]),
        ("stu2", &["students"]),
        ("stu3", &["students"]),
        ("stu4", &["students"]),
        ("tutor1", &["students"]),
        ("prof", &[]),
    ] {
        site.account(name, groups);
    }
    let spss = |user| run(&site, user, &["spss"]);
    // "Each of them has one."
    let first = spss("stu1").spawn();
    full(&spss("stu1"), &[("spss-per-student [stu1]", "1 of 1")]);
    // "The third student gets in and the fourth does not; a lecturer still does, twice."
    let _students = [spss("stu2").spawn(), spss("stu3").spawn()];
    spss("stu4")
        .stderr(
            "
            rungate: spss: not started: 1 of [..]
              spss [..]3 of [..]
            ...
            Two seats are kept for staff. The lab is yours before eight and after six.
            ...
            ",
        )
        .status(75);
    let _staff = spss("prof").spawn();
    // "Tutors are students too, but are not held to that."
    let _tutor = spss("tutor1").spawn();
    full(&spss("prof"), &[("spss", "5 of 5")]);
    full(&spss("tutor1"), &[("spss", "5 of 5")]);
    // A seat that falls free above the students' three is not for them.
    drop(first);
    full(&spss("stu4"), &[("spss", "4 of 3")]);
    spss("prof").status(0);
}

#[test]
fn overflow_pool() {
    needs_root!();
    let site = shared_site("overflow-pool.toml");
    site.program("vsim");
    site.account("asim", &["asic"]);
    site.account("bob", &[]);
    let vsim = |user| run(&site, user, &["vsim"]);
    let held = || site.held_numbers("simulator.lock");
    // "Uses those first; when they are taken it may use the other 3."
    let mut asic: Vec<Running> = Vec::new();
    for expected in [&[1][..], &[1, 2], &[1, 2, 3]] {
        asic.push(vsim("asim").spawn());
        assert_eq!(held(), expected);
    }
    // "Like everybody else. Nobody else gets asic's seats."
    drop(asic.remove(0));
    let _others = [vsim("bob").spawn(), vsim("bob").spawn()];
    assert_eq!(held(), [2, 3, 4, 5]);
    full(&vsim("bob"), &[("simulator", "4 of 5")]);
    let _own = vsim("asim").spawn();
    assert_eq!(held(), [1, 2, 3, 4, 5]);
    full(&vsim("asim"), &[("simulator", "5 of 5")]);
}

#[test]
fn one_per_project() {
    let site = Site::with_policy(&shared("one-per-project.toml").replace("\"/srv/deploy/", "\"$DIR/work/"));
    site.script("terraform", "#!/bin/sh\nexec cat\n");
    for project in ["web/modules", "mail"] {
        fs::create_dir_all(site.path("work").join(project)).expect("a project");
    }
    let terraform = |project: &str, verb| {
        site.test().directory(&format!("work/{project}")).args(["run", "--", "terraform", verb])
    };
    let web = terraform("web", "apply").spawn();
    // "Two deployments of different projects may run side by side."
    let mail = terraform("mail", "apply").spawn();
    for verb in ["apply", "destroy", "import"] {
        terraform("web", verb)
            .stderr("rungate: terraform: not started: [..]\n  deployment [..]1 of 1 [..]\n...\n")
            .status(75);
    }
    // "Where in its directory one is started makes no difference."
    terraform("web/modules", "apply").stderr("...\n  deployment [web]  1 of 1 [..]\n...\n").status(75);
    // "Looking is free."
    terraform("web", "plan").status(0);
    drop((web, mail));
    terraform("web", "destroy").status(0);
}

#[test]
fn one_per_file() {
    let site = site("one-per-file.toml");
    site.script("encode", "#!/bin/sh\nexec cat\n");
    let encode = |file| site.test().args(["run", "--", "encode", file]);
    let first = encode("/media/a.mkv").spawn();
    encode("/media/a.mkv")
        .stderr("rungate: encode: not started: [..]\n  recording [..]1 of 1 [..]\n...\n")
        .status(75);
    // "Different recordings are encoded side by side, but no more than 3 at once."
    let _more = [encode("/media/b.mkv").spawn(), encode("/media_a.mkv").spawn()];
    encode("/media/d.mkv")
        .stderr("rungate: encode: not started: [..]\n  encoders [..]3 of 3 [..]\n...\n")
        .status(75);
    drop(first);
    encode("/media/d.mkv").status(0);
    encode("/media/a.mkv").status(0);
}

#[test]
fn untrusted_users() {
    needs_root!();
    let text = fs::read_to_string(directory().join("untrusted-users.toml")).expect("a policy");
    let (site, _agent) = Site::with_agent(&text);
    site.program("solver");
    for (name, groups) in [("ann", &["users"][..]), ("bob", &[]), ("op", &["operator"])] {
        site.account(name, groups);
    }
    let at_once = |user| site.test().user(user).args(["run", "-n", "--", "solver"]);
    // "20 seats of a solver, 4 for one person": the fifth of one waits, and others do not.
    let mut ann = [(); 4].map(|()| run(&site, "ann", &["solver"]).spawn());
    full(&at_once("ann"), &[("solver-per-user [ann]", "4 of 4")]);
    at_once("bob").status(0);
    // "A run that a solver left behind keeps the seat", also when its launcher was killed.
    let [first, ..] = &mut ann;
    first.signal(Signal::SIGKILL);
    full(&at_once("ann"), &[("solver-per-user [ann]", "4 of 4")]);
    first.close_stdin();
    eventually("the seat is free", || (at_once("ann").outcome().ending == Ending::Status(0)).then_some(()));
    run(&site, "op", &["solver"]).status(0);
    for run in &mut ann {
        run.close_stdin();
    }
}

#[test]
fn shared_host() {
    needs_root!();
    let site = shared_site("shared-host.toml");
    for program in ["nastran", "fluent", "gnuplot", "firefox"] {
        site.program(program);
    }
    for (name, groups) in [
        ("ann", &["users"][..]),
        ("bob", &[]),
        ("cid", &[]),
        ("adm1", &["sudo"]),
        ("con1", &["contractors"]),
        ("con2", &["contractors", "sudo"]),
    ] {
        site.account(name, groups);
    }
    // "Solvers have 4 slots, at most 2 for one person."
    let _ann = [run(&site, "ann", &["nastran"]).spawn(), run(&site, "ann", &["fluent"]).spawn()];
    full(&run(&site, "ann", &["nastran"]), &[("solvers-per-user [ann]", "2 of 2")]);
    let _bob = [run(&site, "bob", &["nastran"]).spawn(), run(&site, "bob", &["nastran"]).spawn()];
    full(&run(&site, "cid", &["fluent"]), &[("solvers", "4 of 4")]);
    // "The small tools that go with them are free."
    run(&site, "cid", &["gnuplot"]).status(0);
    // "Everything else is refused."
    run(&site, "cid", &["firefox"]).stderr("rungate: firefox: refused: [..]\n...\n").status(77);
    // "Administrators start what they like", without a slot; "contractors may not start the export-controlled
    // solver".
    for program in ["firefox", "fluent"] {
        run(&site, "adm1", &[program]).status(0);
    }
    for user in ["con1", "con2"] {
        run(&site, user, &["fluent"])
            .stderr(
                "
                rungate: fluent: refused: rule \"contractors do not run fluent\"
                  [..]policy.toml:[..] matches your group \"contractors\"
                Not covered by our export licence. Ask for a run to be started for you.
                ",
            )
            .status(77);
    }
    full(&run(&site, "con1", &["nastran"]), &[("solvers", "4 of 4")]);
    run(&site, "con2", &["nastran"]).status(0);
}

/// Tests of older policies name members of several parts with blanks alone.
#[test]
fn blanks_between_the_parts_of_a_member_are_understood() {
    let text = fs::read_to_string(directory().join("one-per-user.toml")).expect("a policy");
    let old = text.replace("[ann, ", "[ann ").replace("[bob, ", "[bob ");
    assert_ne!(old, text);
    let site = Site::new();
    site.write("old.toml", &old);
    site.test().args(["policy", "check", "$DIR/old.toml"]).stdout("[..] passed\n").status(0);
}
