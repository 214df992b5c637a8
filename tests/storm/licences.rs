//! Launches beside a licence server that also serves clients whom rungate does not start. Between two samples
//! neither side sees the other, so that the limit can be exceeded for a moment: this says for how long, and
//! by how much. It must be over with the next sample, and rungate alone never exceeds it.
//!
//! ```sh
//! RUNGATE_STORM_SECONDS=300 cargo test --test tests storm_beside_a_licence_server -- --nocapture
//! ```

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::support::{Dice, Ending, Site, needs_root, tell};

const SEATS: usize = 8;

/// A program checks out its licence some time after its start: later than the next samples begin.
const POLICY: &str = r#"
    [repository.seats]
    limit = 8
    wait  = "2s"

    [repository.seats.outside]
    command = ["$DIR/bin/licences"]
    settle  = "1s"
    every   = "1s"

    [[rule]]
    commands = ["tool"]
    acquire  = ["seats"]
"#;

/// The licences that are out, each a file: of rungate's programs, and of others.
fn out(server: &Path) -> (usize, usize) {
    let names =
        fs::read_dir(server).expect("the server").filter_map(Result::ok).map(|entry| entry.file_name());
    let (own, others): (Vec<_>, Vec<_>) = names.partition(|name| name.to_string_lossy().starts_with("own"));
    (own.len(), others.len())
}

/// How long the server had more licences out than there are, and how many at most.
#[derive(Default)]
struct Excess {
    looks: usize,
    over: usize,
    most: usize,
}

#[test]
fn a_storm_beside_a_licence_server() {
    needs_root!();
    let seconds = std::env::var("RUNGATE_STORM_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let site = Site::of_system(POLICY);
    let server = site.path("work/server");
    fs::create_dir(&server).expect("a new directory");
    crate::support::set_mode(&server, 0o1777);
    site.script(
        "licences",
        r#"
        #!/bin/sh
        cd $DIR/work/server || exit 1
        for licence in *; do
          case $licence in
            own*) echo '{"user":"ann","host":"'"$(uname -n)"'"}' ;;
            other*) echo '{"user":"bob","host":"lab1"}' ;;
          esac
        done
        "#,
    );
    // It is told how long to wait before it takes its licence, and how long it keeps it.
    site.script(
        "tool",
        "#!/bin/sh\nsleep $1\n: >$DIR/work/server/own.$$\nsleep $2\nrm $DIR/work/server/own.$$\n",
    );
    site.test().args(["measure"]).status(0);
    let is_over = AtomicBool::new(false);
    let (site, is_over, server) = (&site, &is_over, &server);
    let (mut excess, mut started, mut refused) = (Excess::default(), 0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                site.test().args(["measure"]).status(0);
                sleep(Duration::from_millis(500));
            }
        });
        // Others check out and in as the server lets them.
        scope.spawn(|| {
            let (mut dice, mut next) = (Dice::new(7), 0);
            while !is_over.load(Ordering::Relaxed) {
                let (own, others) = out(server);
                if others < SEATS / 2 && own + others < SEATS && dice.percent(50) {
                    next += 1;
                    fs::write(server.join(format!("other.{next}")), "").expect("there is room");
                } else if others > 0 && dice.percent(30) {
                    let names = fs::read_dir(server).expect("the server").filter_map(Result::ok);
                    let mut names = names.map(|entry| entry.path());
                    let is_other = |path: &std::path::PathBuf| path.to_string_lossy().contains("/other.");
                    names.find(is_other).map(fs::remove_file).expect("one of them").expect("it is there");
                }
                sleep(Duration::from_millis(150));
            }
        });
        let launchers: Vec<_> = (0..SEATS + 4)
            .map(|seed| {
                scope.spawn(move || {
                    let mut dice = Dice::new(seed as u64);
                    let (mut started, mut refused) = (0, 0);
                    while !is_over.load(Ordering::Relaxed) {
                        let time = |dice: &mut Dice, most| format!("0.{:02}", dice.between(1, most));
                        let words =
                            [time(&mut dice, 40), format!("{}{}", dice.below(3), &time(&mut dice, 99)[1..])];
                        let launch = site.test().user("ann").args(["run", "--", "tool"]).args(words);
                        match launch.outcome().ending {
                            Ending::Status(0) => started += 1,
                            Ending::Status(75 | 124) => refused += 1,
                            other => panic!("{other:?}"),
                        }
                    }
                    (started, refused)
                })
            })
            .collect();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(seconds) {
            let (own, others) = out(server);
            assert!(own <= SEATS, "rungate alone exceeds the limit: {own}");
            excess.looks += 1;
            excess.over += usize::from(own + others > SEATS);
            excess.most = excess.most.max((own + others).saturating_sub(SEATS));
            sleep(Duration::from_millis(10));
        }
        is_over.store(true, Ordering::Relaxed);
        for launcher in launchers {
            let (of, refused_of) = launcher.join().expect("a launcher");
            started += of;
            refused += refused_of;
        }
    });
    assert!(started > 0 && excess.looks > 0, "nothing was tried");
    let Excess { looks, over, most } = excess;
    tell(&format!(
        "{seconds} s: {started} started, {refused} refused; over the limit {} % of the time, by {most} at most",
        over * 100 / looks
    ));
    // With the server full of others nobody starts, and when they have gone all seats are there.
    for name in 0..SEATS {
        fs::write(server.join(format!("other.last.{name}")), "").expect("there is room");
    }
    site.test().args(["measure"]).status(0);
    let launch = |times: [&str; 2]| {
        site.test().user("ann").args(["run", "-w", "0s", "--", "tool"]).args(times).outcome()
    };
    assert_eq!(launch(["0", "0"]).ending, Ending::Status(75));
    for licence in fs::read_dir(server).expect("the server").filter_map(Result::ok) {
        fs::remove_file(licence.path()).expect("it is there");
    }
    site.test().args(["measure"]).status(0);
    let all: Vec<_> = (0..SEATS)
        .map(|_| site.test().user("ann").args(["run", "-w", "0s", "--", "tool", "30", "0"]).background())
        .collect();
    crate::support::eventually("all seats are taken", || {
        (site.held_numbers("seats.lock").len() == SEATS).then_some(())
    });
    all.into_iter().for_each(crate::support::Running::kill);
}
