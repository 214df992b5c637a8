//! "A launch is admitted when `held + slots <= limit`."

use crate::support::Site;

const SEATS: &str = r#"
    [repository.seats]
    limit = LIMIT

    [[rule]]
    name     = "some seats"
    commands = ["matlab"]
    acquire  = ["seats"]
"#;

const REFUSED: &str = "rungate: matlab: not started: [..]\n...\n";

fn seats(limit: u32) -> String {
    SEATS.replace("LIMIT", &limit.to_string())
}

/// "A lowered limit kills nobody: `used` may exceed `limit` in every listing."
#[test]
fn a_lowered_limit_kills_nobody_and_admits_nobody_until_use_falls_below() {
    let site = Site::with_policy(&seats(5));
    site.program("matlab");
    let matlab = site.test().args(["run", "--", "matlab"]);
    let mut holders: Vec<_> = (0..5).map(|_| matlab.spawn()).collect();
    site.policy(&seats(4));
    let status =
        |line: &str| site.test().args(["status"]).stdout(&format!("REPOSITORY[..]\n{line}\n")).status(0);
    status("seats[gap]5[gap]4[gap][..]");
    matlab.clone().stderr(REFUSED).status(75);
    assert_eq!(site.held_numbers("seats.lock"), [1, 2, 3, 4, 5], "all of them still run");

    // Those with the low slots go first: what sits above the limit still counts.
    holders.remove(0).kill();
    status("seats[gap]4[gap]4[gap][..]");
    matlab.clone().stderr(REFUSED).status(75);
    holders.remove(0).kill();
    status("seats[gap]3[gap]4[gap][..]");
    let running = matlab.spawn();
    matlab.clone().stderr(REFUSED).status(75);
    drop(running);
    matlab.status(0);
}

/// "`limit = 0` drains."
#[test]
fn a_limit_of_nothing_drains() {
    let site = Site::with_policy(&seats(1));
    site.program("matlab");
    let matlab = site.test().args(["run", "--", "matlab"]);
    let running = matlab.spawn();
    site.policy(&seats(0));
    matlab.clone().stderr(REFUSED).status(75);
    assert_eq!(site.held("seats.lock")[0].pid, running.pid());
    running.kill();
    matlab.clone().stderr(REFUSED).status(75);
    site.policy(&seats(1));
    matlab.status(0);
}

/// A launch that takes three of five slots leaves too little for a second one, and enough for a smaller one.
#[test]
fn slots_are_taken_together_or_not_at_all() {
    let site = Site::with_policy(
        r#"
        [repository.tokens]
        limit = 5

        [[rule]]
        name     = "three tokens"
        commands = ["spectre"]
        acquire  = [{ repository = "tokens", slots = 3 }]

        [[rule]]
        name     = "two tokens"
        commands = ["viewer"]
        acquire  = [{ repository = "tokens", slots = 2 }]
        "#,
    );
    site.program("spectre");
    site.program("viewer");
    let spectre = site.test().args(["run", "--", "spectre"]);
    let first = spectre.spawn();
    assert_eq!(site.held_numbers("tokens.lock"), [1, 2, 3]);
    spectre.clone().stderr("rungate: spectre: not started: [..]\n...\n").status(75);
    assert_eq!(site.held_numbers("tokens.lock"), [1, 2, 3], "the refused one kept nothing");
    let second = site.test().args(["run", "--", "viewer"]).spawn();
    assert_eq!(site.held_numbers("tokens.lock"), [1, 2, 3, 4, 5]);
    assert!(site.held("tokens.lock")[3..].iter().all(|slot| slot.pid == second.pid()));
    drop(first);
    assert_eq!(site.held_numbers("tokens.lock"), [4, 5]);
    spectre.status(0);
}

/// "`ceiling = 30` lowers that for this rule's launches: only while everybody's use together, this launch included,
/// stays at or below 30."
#[test]
fn a_ceiling_counts_everybody_and_binds_only_its_rule() {
    let site = Site::with_policy(
        r#"
        [repository.seats]
        limit = 3

        [[rule]]
        name     = "anybody"
        commands = ["matlab"]
        acquire  = ["seats"]

        [[rule]]
        name     = "batch leaves one free"
        commands = ["batch"]
        acquire  = [{ repository = "seats", ceiling = 2 }]
        "#,
    );
    site.program("matlab");
    site.program("batch");
    let matlab = site.test().args(["run", "--", "matlab"]);
    let batch = site.test().args(["run", "--", "batch"]);
    let first = matlab.spawn();
    let second = batch.spawn();
    batch.clone().stderr("rungate: batch: not started: [..]\n...\n").status(75);
    let third = matlab.spawn();
    matlab.clone().stderr(REFUSED).status(75);
    drop((first, third));
    batch.status(0);
    drop(second);
}

/// "Slots above the limit can never be had: refused at once with 78, and a fault of `policy check` where it can be seen
/// there."
#[test]
fn more_slots_than_the_limit_can_never_be_had() {
    let site = Site::new();
    site.program("matlab");
    site.test()
        .args([
            "run",
            "--repository",
            "$DIR/repositories/seats",
            "--limit",
            "2",
            "--slots",
            "3",
            "--",
            "matlab",
        ])
        .stderr(
            "
            rungate: matlab: not started: it can never have what it needs
              seats  3 slots wanted of 2
                  --limit 2, $DIR/repositories/seats
            Ask for fewer slots, or ask your administrator: rungate explain -- matlab
            ",
        )
        .status(78);
    assert_eq!(site.held("seats"), []);
}
