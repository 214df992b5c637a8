//! "Slots with names": the program is told them, slots that are out of order are given to nobody, and the
//! others keep theirs.

use crate::{
    policy::examples::run,
    support::{Running, Site, Test, needs_root},
};

const POLICY: &str = r#"
    [repository.gpu]
    names = ["0", "1", "gpu:2", "3"]

    [[rule]]
    name     = "a device for each"
    commands = ["train"]
    acquire  = ["gpu"]

    [[rule]]
    name     = "all devices"
    commands = ["all"]
    acquire  = [{ repository = "gpu", slots = "all" }]
"#;

fn site(policy: &str) -> Site {
    let site = Site::with_policy(policy);
    for program in ["train", "all"] {
        site.script(program, "#!/bin/sh\necho \"$RUNGATE_NAME_GPU $RUNGATE_SLOT_GPU\"\nexec cat\n");
    }
    site
}

fn broken(names: &str) -> String {
    POLICY.replace("names =", &format!("out_of_order = {names}\n    names ="))
}

/// Starts one, and says which device it was given, and which slot.
fn start(test: &Test) -> (String, Running) {
    let mut running = test.background();
    let line = running.read_line();
    running.wait_for_echo();
    (line.trim().to_owned(), running)
}

fn train(site: &Site) -> Test {
    site.test().args(["run", "--", "train"])
}

/// Slot n has the nth name, given to the program as `RUNGATE_NAME_GPU=0,3`.
#[test]
pub(crate) fn a_program_is_told_the_names_of_its_slots() {
    let site = site(POLICY);
    let (mut devices, running): (Vec<String>, Vec<Running>) = (0..4).map(|_| start(&train(&site))).unzip();
    devices.sort();
    assert_eq!(devices, ["0 1", "1 2", "3 4", "gpu:2 3"]);
    train(&site)
        .stderr("rungate: train: not started: the limit is reached\n  gpu  4 of 4 used\n...\n")
        .status(75);
    let list = site.test().args(["list", "gpu"]).outcome().stdout;
    let is_listed =
        |slot: &str, name: &str| list.lines().any(|line| line.split_whitespace().take(2).eq([slot, name]));
    assert!(is_listed("SLOT", "NAME") && is_listed("3", "gpu:2") && is_listed("4", "3"), "{list}");
    let json = site.test().args(["list", "--json"]).outcome().stdout;
    assert!(json.contains("\"gpu:2\""), "{json}");
    drop(running);
    let (all, _running) = start(&site.test().args(["run", "--", "all"]));
    assert_eq!(all, "0,1,gpu:2,3 1-4");
}

/// "Slots out of order are not given; limit, "all" and reservations shrink by them; `status` says `1 out of
/// order`."
#[test]
pub(crate) fn what_is_out_of_order_is_given_to_nobody() {
    let site = site(&broken(r#"["gpu:2"]"#));
    let (mut devices, running): (Vec<String>, Vec<Running>) = (0..3).map(|_| start(&train(&site))).unzip();
    devices.sort();
    assert_eq!(devices, ["0 1", "1 2", "3 4"]);
    train(&site)
        .stderr(
            "rungate: train: not started: the limit is reached\n  gpu  3 of 3 used (1 out of order)\n...\n",
        )
        .status(75);
    site.test()
        .args(["status"])
        .stdout("REPOSITORY[..]\ngpu[gap]3[gap]3[gap]0[gap][..]1 out of order\n")
        .status(0);
    let status = site.test().args(["status", "--json"]).outcome().stdout;
    assert!(status.contains("\"out_of_order\": [\n      \"gpu:2\"\n    ]"), "{status}");
    let explained = site.test().args(["explain", "--", "train"]).outcome().stdout;
    assert!(explained.contains("(1 out of order)"), "{explained}");
    let metrics = site.test().args(["metrics"]).outcome().stdout;
    assert!(metrics.contains("rungate_slots_out_of_order{repository=\"gpu\"} 1\n"), "{metrics}");
    assert!(metrics.contains("rungate_slots_limit{repository=\"gpu\"} 3\n"), "{metrics}");
    drop(running);
    let (all, _running) = start(&site.test().args(["run", "--", "all"]));
    assert_eq!(all, "0,1,3 1,2,4");
}

/// "Holders stay": one that has the slot when it breaks keeps it and counts; and the others keep their
/// numbers.
#[test]
pub(crate) fn a_holder_keeps_the_slot_that_breaks() {
    let site = site(POLICY);
    let (devices, mut running): (Vec<String>, Vec<Running>) = (0..2).map(|_| start(&train(&site))).unzip();
    let [first, second] =
        [0, 1].map(|index: usize| devices[index].split(' ').next().unwrap_or_default().to_owned());
    site.policy(&broken(&format!("[\"{first}\"]")));
    let (third, _third) = start(&train(&site));
    assert!(!third.starts_with(&format!("{first} ")) && !third.starts_with(&format!("{second} ")), "{third}");
    // Three of three: the one that has the broken slot is one of them.
    train(&site)
        .stderr("rungate: train: not started: [..]\n  gpu  3 of 3 used (1 out of order)\n...\n")
        .status(75);
    drop(running.remove(0));
    let (fourth, _fourth) = start(&train(&site));
    assert!(!fourth.starts_with(&format!("{first} ")), "{fourth}");
}

/// `out_of_order = { dgx2 = ["2"] }`: on that host only. A lower limit means the first names.
#[test]
pub(crate) fn a_host_has_what_is_out_of_order_there_and_a_lower_limit_the_first_names() {
    needs_root!();
    let site = Site::new();
    site.system_policy(
        r#"
        [repository.gpu]
        per          = "host"
        names        = ["0", "1", "2", "3"]
        limit        = 4
        limits       = { dgx3 = 2 }
        out_of_order = { dgx2 = ["0"], "dgx*" = ["3"] }
        reserve      = [{ users = ["nobody-of-that-name"], slots = 2 }]

        [[rule]]
        name     = "a device for each"
        commands = ["train"]
        acquire  = ["gpu"]
        "#,
    );
    site.account("ann", &[]);
    site.script("train", "#!/bin/sh\necho \"$RUNGATE_NAME_GPU\"\nexec cat\n");
    let on = |host: &str| run(&site, "ann", &["train"]).host(host);
    // Of two that are kept one is broken, and so is one of the others.
    let (device, _running) = start(&on("dgx2.example.org"));
    assert_eq!(device, "2");
    on("dgx2.example.org")
        .stderr(
            "rungate: train: not started: [..]\n  gpu [dgx2.example.org]  1 of 2 used (2 out of order)\n      \
            only 1 of 2 for you: 1 kept for nobody-of-that-name\n...\n",
        )
        .status(75);
    let (device, _running) = start(&on("ws1"));
    assert!(["2", "3"].contains(&device.as_str()), "{device}");
    // The first two names, and both are kept.
    on("dgx3")
        .stderr("rungate: train: not started: [..]\n  gpu [dgx3]  1 slot wanted of 2\n...\n")
        .status(78);
    let status = site.test().args(["status"]).outcome().stdout;
    let line = status.lines().find(|line| line.contains("dgx2")).unwrap_or_default();
    assert!(line.contains("1 kept for nobody-of-that-name, 2 out of order"), "{status}");
    assert_eq!(line.split_whitespace().take(5).collect::<Vec<_>>(), ["dgx2.example.org", "1", "2", "0", "1"]);
}

/// What is out of order on another host is listed as that host has it, also if all have one limit.
#[test]
fn what_is_out_of_order_elsewhere_is_listed_as_it_is_there() {
    needs_root!();
    let site = Site::new();
    site.system_policy(
        r#"
        [repository.gpu]
        per          = "host"
        names        = ["0", "1", "2", "3"]
        out_of_order = { dgx2 = ["0", "3"] }

        [[rule]]
        name     = "a device for each"
        commands = ["train"]
        acquire  = ["gpu"]
        "#,
    );
    site.account("ann", &[]);
    site.script("train", "#!/bin/sh\necho \"$RUNGATE_NAME_GPU\"\nexec cat\n");
    let running = ["dgx2", "ws1"].map(|host| start(&run(&site, "ann", &["train"]).host(host)).1);
    for on in ["dgx2", "ws1"] {
        let status = site.test().host(on).args(["status"]).outcome().stdout;
        for (host, used, limit) in [("dgx2", "1", "2"), ("ws1", "1", "4")] {
            let line = status.lines().find(|line| line.contains(host)).unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().take(3).collect();
            assert_eq!(words, [host, used, limit], "{status}");
            assert_eq!(line.contains("2 out of order"), host == "dgx2", "{status}");
        }
    }
    drop(running);
}

/// A program that knows no names, such as exectimes, takes any slot, one that is out of order too; it counts,
/// and nothing more is let in than there are.
#[test]
pub(crate) fn a_peer_may_sit_in_a_slot_that_is_out_of_order() {
    let site = site(POLICY);
    drop(start(&train(&site)));
    let lock_file = site.repository("gpu.lock");
    let peer = site.test().args(["exectimes", lock_file.to_str().expect("a path"), "4", "cat"]).spawn();
    let slot = site.held_numbers("gpu.lock")[0];
    let name = ["0", "1", "gpu:2", "3"][usize::try_from(slot - 1).expect("one of four")];
    site.policy(&broken(&format!("[\"{name}\"]")));
    let (devices, _running): (Vec<String>, Vec<Running>) = (0..2).map(|_| start(&train(&site))).unzip();
    assert!(devices.iter().all(|device| !device.starts_with(&format!("{name} "))), "{devices:?}");
    train(&site)
        .stderr("rungate: train: not started: [..]\n  gpu  3 of 3 used (1 out of order)\n...\n")
        .status(75);
    // Once it has ended there is one more, and it is another one.
    drop(peer);
    let (device, _running) = start(&train(&site));
    assert!(!device.starts_with(&format!("{name} ")), "{device}");
}

/// No name beyond the last: somebody who is always admitted elsewhere finds no device that does not exist.
#[test]
pub(crate) fn nobody_is_admitted_beyond_the_last_name() {
    let site = site(
        r#"
        [repository.gpu]
        names = ["0"]

        [repository.licences]
        limit = 1

        [[rule]]
        name     = "a device for each"
        commands = ["train"]
        acquire  = ["gpu"]

        [[rule]]
        name     = "always a licence"
        commands = ["train"]
        acquire  = ["licences"]
        action   = "count"
        "#,
    );
    let (device, running) = start(&train(&site));
    assert_eq!(device, "0 1");
    train(&site).stderr("rungate: train: not started: [..]\n  gpu  1 of 1 used\n...\n").status(75);
    drop(running);
    assert_eq!(start(&train(&site)).0, "0 1");
}

/// A launch below a holder that joins its slot is told the same name.
#[test]
pub(crate) fn a_launch_that_joins_is_told_the_same_name() {
    let site = site(&POLICY.replace("names =", "hold = \"descriptor\"\n    names ="));
    let launcher = site.rungate().to_str().expect("a plain path");
    let again = format!("[ \"$1\" ] || exec {launcher} run -- train inner");
    site.script("train", &format!("#!/bin/sh\necho \"$RUNGATE_NAME_GPU\"\n{again}\n"));
    let outcome = train(&site).outcome();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(lines.len() == 2 && lines[0] == lines[1], "{outcome:?}");
}
