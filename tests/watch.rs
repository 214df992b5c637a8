//! `rungate status --watch`, as somebody sees it who sits at a terminal.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rungate::output::full_screen::FullScreen;

use crate::support::{Running, Site, Terminal, needs_tmux};

const POLICY: &str = r#"
    [repository.matlab]
    limit = 4

    [repository.per-user]
    per   = "user"
    limit = 9

    [repository.spectre]
    limit = 2

    [[rule]]
    name     = "matlab seats"
    commands = ["matlab"]
    acquire  = ["matlab", "per-user"]

    [[rule]]
    name     = "tokens"
    commands = ["spectre"]
    acquire  = ["spectre"]
"#;

fn site() -> Site {
    let site = Site::with_policy(POLICY);
    site.program("matlab");
    site.program("spectre");
    site
}

/// Opens a terminal of this size and starts to watch.
fn watch(site: &Site, size: (usize, usize)) -> Terminal {
    let terminal = Terminal::open_for(site.test(), size);
    terminal.enter("echo before");
    terminal.shows("\nbefore\n");
    terminal.enter(&format!("{} status --watch", site.rungate().display()));
    terminal.shows("q quit");
    terminal
}

fn matlab(site: &Site) -> Running {
    site.test().args(["run", "--", "matlab"]).spawn()
}

/// The one process of the site that watches.
fn watcher(site: &Site) -> Pid {
    let rungate = format!("{}\0status\0--watch\0", site.rungate().display());
    let socket = site.path("work").display().to_string();
    let pids = std::fs::read_dir("/proc").expect("/proc").filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).ok();
        let environment = String::from_utf8_lossy(&read("environ")?).into_owned();
        (read("cmdline")? == rungate.as_bytes() && environment.contains(&socket)).then_some(pid)
    });
    let pids: Vec<i32> = pids.collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
    Pid::from_raw(pids[0])
}

/// "It shows a bar for each repository, and of the chosen one who holds its slots, the oldest first, and who waits."
#[test]
fn everything_is_seen_at_a_glance() {
    needs_tmux!();
    let site = site();
    let holders: Vec<Running> = (0..4).map(|_| matlab(&site)).collect();
    let waiting = site.test().args(["run", "--wait", "forever", "--", "matlab"]).background();
    site.stands_in_line("matlab.lock", &waiting);
    let terminal = watch(&site, (80, 24));
    let screen = terminal.shows("3 repositories, 8 slots used, 1 waiting");
    let rows: Vec<&str> = screen.lines().collect();
    let row = |number: usize| rows[number].split_whitespace().collect::<Vec<&str>>();
    assert_eq!(row(1), ["REPOSITORY", "USE", "USED", "LIMIT", "WAIT", "OLDEST"], "{screen}");
    let matlab = row(2);
    assert_eq!((matlab[0], &matlab[2..5]), (">matlab", &["4", "4", "1"][..]), "{screen}");
    assert!(matlab[1].chars().all(|block| block == '█') && matlab[1].chars().count() > 20, "{screen}");
    assert!(row(3).join(" ").contains("4 9 0") && row(3)[2].starts_with('█') && row(3)[2].ends_with('░'));
    assert!(rows[5].starts_with("── matlab: 4 of 4 used, 1 waiting ──"), "{screen}");
    let pids: Vec<String> = (7..11).map(|number| row(number)[1].to_owned()).collect();
    assert_eq!(pids, holders.iter().map(|holder| holder.pid().to_string()).collect::<Vec<String>>());
    assert_eq!(row(12)[..2], ["1", &waiting.pid().to_string()], "{screen}");

    // It goes on: what changes is there within a look or two.
    drop(holders);
    terminal.shows("2 slots used, 0 waiting");
    drop(waiting);
    terminal.shows("Nobody holds a slot.");
    terminal.press("q");
    terminal.shows_when("the shell's screen is back", |screen| {
        screen.contains("\nbefore\n") && !screen.contains("REPOSITORY")
    });
    terminal.enter("echo status $?");
    terminal.shows("\nstatus 0\n");
    // It takes nothing, and makes nothing.
    assert!(!site.repository("spectre.lock").exists());
}

/// "Keys: up and down choose, enter shows all holders, s changes the order, / shows only what has a text in its name."
#[test]
fn keys_choose_sort_and_filter() {
    needs_tmux!();
    let site = site();
    let _matlab = matlab(&site);
    let _spectre = site.test().args(["run", "--", "spectre"]).spawn();
    let terminal = watch(&site, (80, 24));
    let first = |screen: &str| screen.lines().nth(2).unwrap_or_default().trim_start().to_owned();
    terminal.shows_when("in the policy's order", |screen| first(screen).starts_with(">matlab"));
    terminal.press("s");
    terminal.shows_when("the fullest first", |screen| {
        screen.contains("order: use") && first(screen).starts_with(">spectre")
    });
    terminal.press("Down");
    terminal.shows_when("the next one is chosen", |screen| screen.contains("\n>matlab "));
    terminal.press("Enter");
    terminal.shows_when("all of it", |screen| screen.contains("── matlab:") && !screen.contains("spectre"));
    terminal.press("Escape");
    terminal.shows("\n>matlab ");
    terminal.type_text("/spec");
    terminal.shows_when("one is left", |screen| {
        screen.contains("1 repository, 1 slot used") && screen.contains("show: spec")
    });
    terminal.press("Enter");
    terminal.shows("only spec");
    terminal.press("Escape");
    terminal.shows("3 repositories");
    terminal.press("?");
    terminal.shows("page up, page down");
    terminal.press("x");
    terminal.shows("3 repositories");
    terminal.shows_when("the list is back", |screen| screen.contains("\n>matlab "));
}

/// "It works in a narrow pane and follows its size."
#[test]
fn a_narrow_pane_shows_what_matters() {
    needs_tmux!();
    let site = site();
    let _holder = matlab(&site);
    let terminal = watch(&site, (80, 24));
    for (columns, rows) in [(38, 10), (24, 6), (60, 15), (100, 40)] {
        terminal.resize(columns, rows);
        terminal.shows_when("the new size", |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            let last = lines.get(rows - 1).is_some_and(|line| line.starts_with("q quit"));
            last && lines[2].starts_with(">matlab") && lines[2].contains(" 1     4")
        });
    }
}

/// "However it ends, the terminal is what it was before": by Ctrl-C, and by a signal, of which it then dies.
#[test]
fn the_terminal_is_given_back() {
    needs_tmux!();
    let site = site();
    let is_back = |terminal: &Terminal, status: &str| {
        terminal.shows_when("the shell's screen is back", |screen| {
            screen.contains("\nbefore\n") && !screen.contains("REPOSITORY")
        });
        terminal.enter("echo status $?");
        let screen = terminal.shows(&format!("\nstatus {status}\n"));
        assert!(screen.contains("$ echo status $?\n"), "what is typed is seen: {screen}");
    };
    let terminal = watch(&site, (80, 24));
    terminal.press("C-c");
    is_back(&terminal, "0");
    for (signal, status) in [(Signal::SIGTERM, "143"), (Signal::SIGHUP, "129"), (Signal::SIGINT, "130")] {
        let terminal = watch(&site, (80, 24));
        kill(watcher(&site), signal).expect("the watcher is there");
        is_back(&terminal, status);
    }
}

/// "Ctrl-Z stops it as it stops any program, and fg brings it back."
#[test]
fn it_can_be_stopped_and_continued() {
    needs_tmux!();
    let site = site();
    let terminal = watch(&site, (80, 24));
    for _ in 0..2 {
        terminal.press("C-z");
        terminal.shows_when("the shell's screen is back", |screen| {
            screen.contains("before\n") && screen.contains("Stopped")
        });
        terminal.enter("clear; echo before; fg");
        terminal.shows("REPOSITORY");
    }
    kill(watcher(&site), Signal::SIGSTOP).expect("the watcher is there");
    terminal.shows("Stopped");
    terminal.enter("fg");
    terminal.shows_when("it has drawn all of it again", |screen| {
        screen.starts_with("rungate  3 repositories") || screen.starts_with("rungate  2 repositories")
    });
    terminal.press("q");
    terminal.shows("before\n");
}

/// Not a test by itself: the next one starts it on a terminal. Where there is none, nothing happens.
#[test]
#[ignore = "the next test starts it, on a terminal"]
fn a_panic_on_the_whole_screen() {
    let Ok(screen) = FullScreen::enter() else { return };
    // As where a panic ends the program at once: nothing is dropped.
    std::mem::forget(screen);
    panic!("it has drawn nothing yet");
}

#[test]
fn a_panic_gives_the_terminal_back() {
    needs_tmux!();
    let site = site();
    let terminal = Terminal::open(&site);
    terminal.enter("echo before");
    terminal.shows("\nbefore\n");
    let test = std::env::current_exe().expect("this program");
    let name = "watch::a_panic_on_the_whole_screen";
    terminal.enter(&format!("{} --ignored --exact {name} --nocapture 2>&1 | cat", test.display()));
    terminal.shows("it has drawn nothing yet");
    terminal.enter("echo status ${PIPESTATUS[0]}");
    let screen = terminal.shows("\nstatus 101\n");
    assert!(screen.contains("\nbefore\n"), "{screen}");
    assert!(screen.contains("$ echo status ${PIPESTATUS[0]}\n"), "what is typed is seen: {screen}");
}

/// "Colours are used only on a terminal, and never where `NO_COLOR` is set."
#[test]
fn no_color_means_none() {
    needs_tmux!();
    let site = site();
    let _holder = matlab(&site);
    // The colours 30 to 37 and 90 to 97 of text, alone or after other attributes.
    let is_coloured = |text: &str| {
        text.split("\x1b[").skip(1).filter_map(|sequence| sequence.split_once('m')).any(|(parameters, _)| {
            parameters
                .split(';')
                .any(|number| number.len() == 2 && number.starts_with(['3', '9']) && number != "39")
        })
    };
    let terminal = watch(&site, (80, 24));
    let painted = terminal.painted_screen();
    assert!(is_coloured(&painted), "{painted:?}");
    drop(terminal);
    let terminal = Terminal::open_for(site.test().env("NO_COLOR", "1"), (80, 24));
    terminal.enter(&format!("{} status --watch", site.rungate().display()));
    terminal.shows("q quit");
    let painted = terminal.painted_screen();
    assert!(!is_coloured(&painted) && painted.contains("\x1b[1m"), "{painted:?}");
}

/// "A changed policy counts within a few seconds; while it has faults the last one that had none is shown."
#[test]
fn a_changed_policy_is_followed() {
    needs_tmux!();
    let site = site();
    let terminal = watch(&site, (80, 24));
    terminal.shows("2 repositories");
    site.policy(&format!("{POLICY}\n[repository.virtuoso]\nlimit = 7\n"));
    terminal.shows("virtuoso");
    site.policy(&format!("{POLICY}\n[repository.virtuoso]\nlimits = 7\n"));
    let screen = terminal.shows("the policy has faults now: rungate policy check");
    assert!(screen.contains("virtuoso"), "{screen}");
    site.policy(POLICY);
    terminal
        .shows_when("all is well again", |screen| screen.contains("q quit") && !screen.contains("virtuoso"));
}

/// "Where there is no terminal, it says so, and ends with 64."
#[test]
fn it_needs_a_terminal() {
    let site = site();
    let refusal = "
        rungate: status --watch needs a terminal on standard input and standard output
        For scripts: rungate status --json. For one look: rungate status
        ";
    site.test().args(["status", "--watch"]).stderr(refusal).status(64);
    site.test()
        .args(["status", "--watch", "--json"])
        .stderr("rungate: the argument '--watch' cannot be used with '--json'\n...\n")
        .status(64);
    needs_tmux!();
    let terminal = Terminal::open(&site);
    let rungate = site.rungate().display();
    terminal.enter(&format!("clear; TERM=dumb {rungate} status --watch"));
    terminal.shows("\nFor scripts: rungate status --json.");
    terminal.enter(&format!("clear; {rungate} status --watch | cat"));
    terminal.shows("\nFor scripts: rungate status --json.");
    terminal.enter(&format!("clear; {rungate} status --watch nothing"));
    terminal.shows("the policy has no repository \"nothing\"");
}
