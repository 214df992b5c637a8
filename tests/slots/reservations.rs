//! `reserve` keeps slots 1…n of the file for the members of `for`, who take those first and then others;
//! everybody else takes only slots above them, save the last `lend` of them while they are idle.

use std::thread;

use crate::support::{
    Account, Ending, Outcome, Running, Site, Test, Witness, eventually, needs_root, seats, storm_size,
};

/// Members are in the group audio, students in the group video.
const POLICY: &str = r#"
    [repository.seats]
    limit   = 12
    reserve = [{ users = ["%audio"], slots = 5, lend = 2 }]

    [[rule]]
    name     = "twelve seats"
    commands = ["matlab"]
    acquire  = ["seats"]

    [[rule]]
    name     = "students leave half of them"
    commands = ["matlab"]
    groups   = ["video"]
    acquire  = [{ repository = "seats", ceiling = 6 }]
"#;

const MEMBER: &str = "games";
const STRANGER: &str = "backup";
const STUDENT: &str = "news";

fn site() -> Site {
    let site = Site::with_policy(POLICY);
    site.program("matlab");
    site
}

/// A command of one of the three, in the groups that make them what they are.
fn by(site: &Site, user: &str) -> Test {
    let groups = match user {
        MEMBER => &["audio"][..],
        STUDENT => &["video"],
        _ => &[],
    };
    site.test().user(user).groups(groups.iter().copied())
}

fn matlab(site: &Site, user: &str) -> Test {
    by(site, user).args(["run", "--", "matlab"])
}

/// Starts one after the other; each must get the slot that is foretold.
#[track_caller]
fn take(site: &Site, user: &str, slots: impl IntoIterator<Item = i64>) -> Vec<Running> {
    let slots = slots.into_iter();
    slots
        .map(|slot| {
            let running = matlab(site, user).spawn();
            let held = site.held("seats.lock").into_iter().find(|held| held.pid == running.pid());
            assert_eq!(held.map(|held| held.number), Some(slot), "{user}");
            running
        })
        .collect()
}

#[track_caller]
fn refused(outcome: &Outcome, status: i32, seats: &str) {
    assert_eq!(outcome.ending, Ending::Status(status), "{outcome:?}");
    assert!(outcome.stderr.contains(&format!("\n  seats  {seats}\n")), "{}", outcome.stderr);
}

#[test]
pub(crate) fn members_take_their_own_first_and_others_what_is_lent_last() {
    needs_root!();
    let site = site();
    let mut common = take(&site, STRANGER, 6..=12);
    let mut lent = take(&site, STRANGER, 4..=5);
    let outcome = matlab(&site, STRANGER).outcome();
    refused(&outcome, 75, "9 of 12 used");
    assert!(outcome.stderr.contains("only 9 of 12 for you: 3 kept for %audio"), "{}", outcome.stderr);
    let members = take(&site, MEMBER, 1..=3);
    refused(&matlab(&site, MEMBER).outcome(), 75, "12 of 12 used");
    // What was lent comes back when its borrower has ended, and is then a member's before it is lent again.
    lent.remove(0).kill();
    let _returned = take(&site, MEMBER, [4]);
    refused(&matlab(&site, STRANGER).outcome(), 75, "12 of 12 used");
    common.remove(0).kill();
    let _again = take(&site, STRANGER, [6]);
    // A kept slot that is idle is nobody's but a member's.
    drop(members);
    refused(&matlab(&site, STRANGER).outcome(), 75, "9 of 12 used");
}

/// A member takes those first and then others.
#[test]
pub(crate) fn members_take_others_when_their_own_are_used_up() {
    needs_root!();
    let site = site();
    let _all = take(&site, MEMBER, 1..=12);
    refused(&matlab(&site, STRANGER).outcome(), 75, "12 of 12 used");
}

/// Only while everybody's use together, this launch included, stays at or below the ceiling: how many slots
/// are held counts, not which of them. The slots from 1 to the ceiling were the only ones that a student got,
/// so that three took all that they could have of six.
#[test]
pub(crate) fn a_ceiling_says_how_many_slots_and_not_which() {
    needs_root!();
    let site = site();
    let students = take(&site, STUDENT, 6..=11);
    refused(&matlab(&site, STUDENT).outcome(), 75, "6 of 6 used");
    drop(students);
    let _members = take(&site, MEMBER, 1..=2);
    let _students = take(&site, STUDENT, 6..=9);
    refused(&matlab(&site, STUDENT).outcome(), 75, "6 of 6 used");
    let _stranger = take(&site, STRANGER, [10]);
}

/// A student who waits below their ceiling must not hold up staff, and whoever waits for a slot that is not
/// kept for others must not keep those others from theirs.
#[test]
pub(crate) fn a_stranger_in_line_keeps_no_member_from_what_is_kept_for_him() {
    needs_root!();
    let site = site();
    let mut running = take(&site, STRANGER, (6..=12).chain(4..=5));
    let waiting = by(&site, STRANGER).args(["run", "--quiet", "--wait", "1h", "--", "matlab"]).background();
    eventually("a place in the line", || site.lock_between("seats.lock", 1 << 61, 1 << 62));
    // Another stranger does not overtake them.
    refused(&matlab(&site, STRANGER).outcome(), 75, "9 of 12 used, 1 waiting");
    let _members = take(&site, MEMBER, 1..=3);
    running.remove(0).kill();
    eventually("the first in line gets the slot that was given back", || {
        site.held("seats.lock").into_iter().find(|held| held.pid == waiting.pid() && held.number == 6)
    });
}

/// `status` shows what is kept idle apart from what is used.
#[test]
pub(crate) fn listings_show_what_is_kept_idle() {
    needs_root!();
    let site = site();
    let status = |line: &str| {
        let head = "REPOSITORY[gap]USED[gap]LIMIT[gap]FREE[gap]KEPT[gap]WAIT[gap]OLDEST[gap]NOTE";
        site.test().args(["status"]).stdout(&format!("{head}\nseats[gap]{line}\n")).status(0);
    };
    status("0[gap]12[gap]9[gap]3[gap]0[gap]-");
    let strangers = take(&site, STRANGER, (6..=12).chain([4]));
    let mut members = take(&site, MEMBER, 1..=1);
    status("9[gap]12[gap]1[gap]2[gap]0[gap][age][gap]2 kept for %audio");
    let listed = site.test().args(["list", "seats"]).outcome().stdout;
    assert!(listed.starts_with("seats: 9 of 12 used, 2 kept for %audio\n"), "{listed}");
    for command in ["status", "list"] {
        let json = site.test().args([command, "--json", "seats"]).outcome().stdout;
        assert!(
            json.contains("\"kept\": 2") && json.contains("\"kept_for\": \"2 kept for %audio\""),
            "{json}"
        );
    }
    drop(strangers);
    members.extend(take(&site, MEMBER, 2..=3));
    status("3[gap]12[gap]9[gap]0[gap]0[gap][age]");
}

/// A repository may be kept as a whole. What has no slot for somebody at all can never be available; it used
/// to have any.
#[test]
pub(crate) fn what_is_kept_as_a_whole_is_for_nobody_else() {
    needs_root!();
    let site = Site::with_seats(2, "reserve = [{ users = [\"%audio\"], slots = 2 }]", &["matlab"]);
    matlab(&site, STRANGER)
        .stderr(
            "
            rungate: matlab: not started: it needs more than it can ever get
              seats  1 slot wanted of 2
                  none for you: 2 kept for %audio
                  rule \"seats\", $DIR/policy.toml:[..]
            Fewer slots would not help. To see for whom they are kept: rungate explain -- matlab
            If that is wrong, ask your administrator.
            ",
        )
        .status(78);
    let explained = site.test().user(STRANGER).args(["explain", "--", "matlab"]).outcome().stdout;
    for said in ["NEVER: none for you, 2 kept for %audio\n", "status 78: no slot of seats is for you\n"] {
        assert!(explained.contains(said), "{explained}");
    }
    let _members = take(&site, MEMBER, 1..=2);
    refused(&matlab(&site, MEMBER).outcome(), 75, "2 of 2 used");
}

/// Three kinds of users at once, in 3,000 launches when `RUNGATE_STORM` is 5: whoever is seen in a slot may
/// be there.
#[test]
pub(crate) fn a_storm_of_members_strangers_and_students_breaks_no_reservation() {
    const WORKERS: usize = 8;
    needs_root!();
    let site = Site::with_policy(POLICY);
    site.copy_of("/bin/sleep", "matlab");
    site.script(
        "storm",
        &format!(
            "#!/bin/sh
            started=0 refused=0 left=$1
            while [ $left -gt 0 ]; do
                left=$((left - 1))
                {} run --quiet -- matlab 0.0$((left % 10))5
                case $? in
                    0) started=$((started + 1)) ;;
                    75) refused=$((refused + 1)) ;;
                    *) exit 1 ;;
                esac
            done
            echo $started $refused
            ",
            site.rungate().display()
        ),
    );
    let users = [MEMBER, STRANGER, STUDENT];
    let launches = storm_size(600).div_ceil(WORKERS * users.len());
    let mut witness = Witness::watch(&site, "seats.lock");
    // Whom it sees in a storm is a matter of luck; that it sees everybody, show some that stay.
    let stay = users.map(|user| by(&site, user).args(["run", "--", "matlab", "1000"]).background());
    eventually("one of each", || (site.held_numbers("seats.lock").len() == users.len()).then_some(()));
    witness.report();
    drop(stay);
    let storms: Vec<_> = users
        .iter()
        .flat_map(|user| std::iter::repeat_n(*user, WORKERS))
        .map(|user| {
            let storm = by(&site, user).program(site.path("bin/storm")).args([launches.to_string()]);
            (user, thread::spawn(move || storm.outcome()))
        })
        .collect();
    let mut started = [0; 3];
    let mut refused = [0; 3];
    for (user, storm) in storms {
        let outcome = storm.join().expect("a storm ends");
        assert_eq!(outcome.ending, Ending::Status(0), "{outcome:?}");
        let mut counts =
            outcome.stdout.split_whitespace().map(|word| word.parse::<usize>().expect("a count"));
        let class = users.iter().position(|other| *other == user).expect("one of the three");
        started[class] += counts.next().expect("started");
        refused[class] += counts.next().expect("refused");
    }
    let seen = witness.report();
    let of = |user: &str| seen.users[&Account::named(user).uid].clone();
    let tale = format!("{seen:?}, started {started:?}, refused {refused:?}");
    assert!(seen.most <= 12, "{tale}");
    assert!(of(STRANGER).1.iter().chain(&of(STUDENT).1).all(|slot| (4..=12).contains(slot)), "{tale}");
    assert!(of(MEMBER).1.iter().all(|slot| (1..=12).contains(slot)), "{tale}");
    assert!(of(STUDENT).0 <= 6, "{tale}");
    assert_eq!(seen.users.len(), 3, "{tale}");
    // How full it became is a matter of luck, and so is whom it kept out; that there is room for everybody
    // when it is over is not.
    assert!(started.iter().sum::<usize>() > 0, "{tale}");
    for user in users {
        by(&site, user).args(["run", "--", "matlab", "0"]).status(0);
    }
    assert_eq!(started.iter().chain(&refused).sum::<usize>(), launches * WORKERS * users.len());
}

/// What a later layer says only tightens: a policy of one's own that keeps for oneself, in the system's
/// file by another name, what the system keeps for others, gives nothing of that.
#[test]
pub(crate) fn an_own_policy_on_the_same_file_by_another_name_takes_nothing_that_is_kept() {
    needs_root!();
    let site = Site::new();
    site.program("matlab");
    site.system_policy(&seats(3, "reserve = [{ users = [\"%audio\"], slots = 2 }]", &["matlab"]));
    let stranger = site.test().user(STRANGER);
    let file = site.repository("seats.lock");
    for path in [format!("/proc/self/root{}", file.display()), file.display().to_string()] {
        site.own_policy(
            &Account::named(STRANGER),
            &format!(
                r#"
                [repository.mine]
                path    = "{path}"
                limit   = 3
                reserve = [{{ users = ["{STRANGER}"], slots = 2 }}]

                [[rule]]
                name     = "mine"
                commands = ["matlab"]
                acquire  = ["mine"]
                "#
            ),
        );
        let running = stranger.clone().args(["run", "--", "matlab"]).spawn();
        assert_eq!(site.held_numbers("seats.lock"), [3], "{path}");
        let outcome = stranger.clone().args(["run", "--", "matlab"]).outcome();
        assert_eq!(outcome.ending, Ending::Status(75), "{path}: {outcome:?}");
        drop(running);
    }
}

/// The reservations together must fit into each limit, whichever is the lowest.
#[test]
fn reservations_fit_into_every_limit() {
    let site = Site::new();
    let check = |limits: [u32; 4], kept: [u32; 3]| {
        let [usual, others @ ..] = limits;
        let others = others.map(|limit| format!("{{ users = [{limit}], limit = {limit} }}")).join(", ");
        let kept = kept.map(|slots| format!("{{ users = [4711], slots = {slots} }}")).join(", ");
        site.write(
            "checked.toml",
            &format!("version = 1\n[repository.seats]\nlimit = {usual}\nper = \"user\"\nlimits = [{others}]\nreserve = [{kept}]\n[[rule]]\nacquire = [\"seats\"]\n"),
        );
        let outcome = site.test().args(["policy", "check", "$DIR/checked.toml"]).outcome();
        outcome
            .stderr
            .lines()
            .find_map(|line| line.split_once("checked.toml:"))
            .map(|(_, fault)| fault.to_owned())
    };
    assert_eq!(check([9, 6, 8, 7], [1, 2, 3]), None, "six fit into six");
    for lowest in 0..4 {
        let mut limits = [9, 8, 7, 10];
        limits[lowest] = 5;
        for kept in [[1, 2, 3], [3, 2, 1], [6, 1, 1], [1, 1, 4]] {
            let fault = check(limits, kept).unwrap_or_else(|| panic!("{limits:?} {kept:?}"));
            assert!(
                fault.contains(" reserved of a limit of 5 ") && fault.contains("[reserved-above-limit]"),
                "{limits:?} {kept:?} {fault}"
            );
        }
    }
}
