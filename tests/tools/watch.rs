//! `rungate status --watch`, as somebody sees it who sits at a terminal.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rungate::tools::inspect::screen::Screen;

use crate::support::{Account, Running, Site, Terminal, needs_tmux};

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
    commands = ["spectre*"]
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
    terminal.command("echo before");
    terminal.shows("\nbefore\n");
    terminal.command(&format!("{} status --watch", site.rungate().display()));
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

/// It shows a bar for each repository, and of the chosen one who holds its slots, the oldest first, and who
/// waits.
#[test]
fn everything_is_seen_at_a_glance() {
    needs_tmux!();
    let site = site();
    let holders: Vec<Running> = (0..4).map(|_| matlab(&site)).collect();
    let waiting = site.test().args(["run", "--wait", "forever", "--", "matlab"]).background();
    site.stands_in_line("matlab.lock", &waiting);
    let terminal = watch(&site, (80, 24));
    let screen = terminal.shows("3 repositories, 4 programs, 1 waiting");
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
    terminal.shows("1 program, 0 waiting");
    drop(waiting);
    terminal.shows("No slot is held.");
    terminal.press("q");
    terminal.shows_when("the shell's screen is back", |screen| {
        screen.contains("\nbefore\n") && !screen.contains("REPOSITORY")
    });
    terminal.command("echo status $?");
    terminal.shows("\nstatus 0\n");
    // It takes nothing, and makes nothing.
    assert!(!site.repository("spectre.lock").exists());
}

/// Keys: up and down choose, enter shows all holders, s changes the order, / shows only what has a text in
/// its name.
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
        screen.contains("1 repository, 1 program") && screen.contains("show: spec")
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

/// It works in a narrow pane and follows its size.
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
    terminal.resize(20, 5);
    terminal.shows_when("name and use alone", |screen| {
        let lines: Vec<&str> = screen.lines().collect();
        lines.len() == 5 && lines[4].starts_with("q quit") && lines[2] == ">matlab            1"
    });
}

/// It works on a wide terminal: from 150 columns on it once ended with a panic.
#[test]
fn a_wide_terminal_shows_everything() {
    needs_tmux!();
    let site = site();
    let _holder = matlab(&site);
    // What is drawn may be seen before all of it is.
    let has_bar = |terminal: &Terminal, columns: usize, bar: usize| {
        terminal.shows_when(&format!("{columns} columns with a bar of {bar}"), |screen| {
            let lines: Vec<&str> = screen.lines().collect();
            // The time of day stands at the right edge.
            let is_whole = lines.first().is_some_and(|line| line.chars().count() == columns)
                && lines.last().is_some_and(|line| line.starts_with("q quit"));
            let row: Vec<&str> = screen.lines().nth(2).unwrap_or_default().split_whitespace().collect();
            let is_row = row.len() > 4 && (row[0], &row[2..5]) == (">matlab", &["1", "4", "0"][..]);
            let is_bar = || row[1].starts_with('█') && row[1].ends_with('░') && row[1].chars().count() == bar;
            is_whole && is_row && is_bar()
        });
    };
    for columns in [149, 150, 200, 250] {
        let terminal = watch(&site, (columns, 24));
        has_bar(&terminal, columns, 60);
        terminal.press("Enter");
        terminal.shows("── matlab: 1 of 4 used ──");
    }
    let terminal = watch(&site, (80, 24));
    // What the longest title leaves: that of the user's own lock file.
    let narrow = 41 - Account::own().name.chars().count();
    for (columns, bar) in [(80, narrow), (250, 60), (120, 60), (200, 60), (150, 60)] {
        terminal.resize(columns, 24);
        has_bar(&terminal, columns, bar);
    }
}

/// Whatever a terminal would obey is shown as an escape.
#[test]
fn a_name_cannot_move_the_cursor() {
    needs_tmux!();
    let site = site();
    let name = "spectre\x1b[2J\n\u{202e}漢字";
    site.program(name);
    let _holder = site.test().args(["run", "--", name]).spawn();
    for columns in [80, 150] {
        let terminal = watch(&site, (columns, 24));
        terminal.press("End");
        let end = if columns == 150 { r"spectre\u{1b}[2J\n\u{202e}漢字 tokens" } else { "~ tokens" };
        let screen = terminal.shows_when("the whole row", |screen| {
            screen.contains(r"spectre\u{1b}[2J\n") && screen.contains(end)
        });
        assert!(screen.starts_with("rungate  ") && screen.contains("\n>spectre "), "{screen}");
        let is_whole = screen.contains(r"spectre\u{1b}[2J\n\u{202e}漢字 tokens");
        assert_eq!(is_whole, columns == 150, "{screen}");
    }
}

/// "However it ends": also while the terminal has sent half of a key.
#[test]
fn half_a_key_holds_nothing_up() {
    needs_tmux!();
    let site = site();
    let terminal = watch(&site, (80, 24));
    // It is read together with the whole key before it, and so cannot be left for the shell.
    terminal.type_text("s\x1b[");
    terminal.shows("order: use");
    kill(watcher(&site), Signal::SIGTERM).expect("the watcher is there");
    terminal.shows_when("the shell's screen is back", |screen| !screen.contains("REPOSITORY"));
    terminal.command("echo status $?");
    terminal.shows("\nstatus 143\n");
}

/// However it ends, the terminal is what it was before: by Ctrl-C, and by a signal, of which it then dies.
#[test]
fn the_terminal_is_given_back() {
    needs_tmux!();
    let site = site();
    let is_back = |terminal: &Terminal, status: &str| {
        terminal.shows_when("the shell's screen is back", |screen| {
            screen.contains("\nbefore\n") && !screen.contains("REPOSITORY")
        });
        terminal.command("echo status $?");
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

/// Ctrl-Z stops it as it stops any program, and fg brings it back.
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
        terminal.command("clear; echo before; fg");
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

/// Not a test by itself: the next one starts it on a terminal. If there is none, nothing happens.
#[test]
#[ignore = "the next test starts it, on a terminal"]
fn a_panic_on_the_whole_screen() {
    let Ok(screen) = Screen::enter(true) else { return };
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
    let name = "tools::watch::a_panic_on_the_whole_screen";
    terminal.command(&format!("{} --ignored --exact {name} --nocapture 2>&1 | cat", test.display()));
    terminal.shows("it has drawn nothing yet");
    terminal.command("echo status ${PIPESTATUS[0]}");
    let screen = terminal.shows("\nstatus 101\n");
    assert!(screen.contains("\nbefore\n"), "{screen}");
    assert!(screen.contains("$ echo status ${PIPESTATUS[0]}\n"), "what is typed is seen: {screen}");
}

/// Colours are used only on a terminal, and never where `NO_COLOR` is set.
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
    let terminal = Terminal::open_for(site.test().env("CLICOLOR", "0"), (80, 24));
    terminal.enter(&format!("{} status --watch", site.rungate().display()));
    terminal.shows("q quit");
    assert!(!is_coloured(&terminal.painted_screen()), "{:?}", terminal.painted_screen());
    drop(terminal);
    let terminal = Terminal::open_for(site.test().env("NO_COLOR", "1"), (80, 24));
    terminal.enter(&format!("{} status --watch", site.rungate().display()));
    terminal.shows("q quit");
    let painted = terminal.painted_screen();
    assert!(!is_coloured(&painted) && painted.contains("\x1b[1m"), "{painted:?}");
    // What is told without colours is: the free part of a bar is faint.
    let mut is_faint = false;
    let free =
        painted.split("\x1b[").filter_map(|sequence| sequence.split_once('m')).find(|(parameters, text)| {
            is_faint = parameters.split(';').fold(is_faint, |is_faint, number| match number {
                "2" => true,
                "" | "0" | "22" => false,
                _ => is_faint,
            });
            text.contains('░')
        });
    assert!(free.is_some() && is_faint, "{painted:?}");
}

/// A changed policy counts within a few seconds; while it has faults the last one that had none is shown.
#[test]
fn a_changed_policy_is_followed() {
    needs_tmux!();
    let site = site();
    let terminal = watch(&site, (80, 24));
    terminal.shows("2 repositories");
    site.policy(&format!("{POLICY}\n[repository.virtuoso]\nlimit = 7\n"));
    terminal.shows("virtuoso");
    site.policy(&format!("{POLICY}\n[repository.virtuoso]\nlimits = 7\n"));
    let screen = terminal.shows("\nrungate: the policy has 1 fault\n");
    assert!(screen.contains("virtuoso") && screen.contains("q quit"), "{screen}");
    site.policy(POLICY);
    terminal
        .shows_when("all is well again", |screen| screen.contains("q quit") && !screen.contains("virtuoso"));
}

/// It starts also while the policy has faults: the faults come first, below them what can be seen.
#[test]
fn it_starts_with_a_faulty_policy_and_recovers() {
    needs_tmux!();
    let site = site();
    let _holder = matlab(&site);
    site.policy(&POLICY.replace("limit = 4", "limit = four"));
    let terminal = watch(&site, (140, 24));
    let screen = terminal.shows("\nrungate: the policy has 1 fault\n");
    let rows: Vec<&str> = screen.lines().collect();
    assert!(rows[1].starts_with("rungate: the policy has ") && rows[2].contains("policy.toml:"), "{screen}");
    assert!(screen.contains("spectre"), "{screen}");
    let screen = terminal.shows("repositories/matlab.lock");
    let row = screen.lines().find(|row| row.contains("repositories/matlab.lock")).expect("a row");
    assert!(row.split_whitespace().any(|cell| cell == "1"), "its limit is not known: {screen}");
    site.policy(POLICY);
    // A screen may be seen while it is drawn.
    terminal.shows_when("the repositories are back, and their files and the fault gone", |screen| {
        screen.contains("\n>matlab ") && !screen.contains("1 fault") && !screen.contains("matlab.lock")
    });
    site.policy(&POLICY.replace("limit = 4", "limit = four"));
    terminal.shows_when("the fault and the last sound policy", |screen| {
        let is_faulty = screen.contains("\nrungate: the policy has 1 fault\n");
        is_faulty && screen.contains(">matlab ") && screen.contains(" 1     4 ")
    });
}

/// What only the queue may take is kept: KEPT, and what each waiter waits for.
#[test]
fn what_is_kept_for_the_queue_is_seen() {
    needs_tmux!();
    let site = site();
    let two = format!(
        "{POLICY}\n[[rule]]\ncommands = [\"large\"]\nacquire = [{{ repository = \"spectre\", slots = 2 }}]\n"
    );
    site.policy(&two);
    site.program("large");
    let holder = site.test().args(["run", "--", "spectre"]).spawn();
    let waiter = site.test().args(["run", "--wait", "forever", "--", "large"]).background();
    site.stands_in_line("spectre.lock", &waiter);
    let second = site.test().args(["run", "--wait", "forever", "--", "spectre"]).background();
    site.stands_in_line("spectre.lock", &second);
    let terminal = watch(&site, (120, 24));
    terminal.type_text("/spectre");
    terminal.press("Enter");
    // A screen may be seen while it is drawn, from the top on.
    let screen = terminal.shows_when("all of what is kept", |screen| {
        let last = format!(" PID {} ", waiter.pid());
        screen.contains("1 kept for the queue") && screen.contains(" large ") && screen.contains(&last)
    });
    let row = screen.lines().find(|row| row.starts_with(">spectre")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[2..6], ["1", "2", "1", "2"], "{screen}");
    let first = screen.lines().find(|row| row.contains(" large ")).expect("a row");
    assert!(first.contains(&format!(" PID {} ", holder.pid())), "{screen}");
    assert!(screen.contains(&format!(" PID {} ", waiter.pid())), "{screen}");
}

/// If there is no terminal, it says so, and ends with 64.
#[test]
fn it_needs_a_terminal() {
    let site = site();
    let refusal = "
        rungate: status --watch needs a terminal on standard input and standard output
        For scripts: rungate status --json. To print it once: rungate status
        ";
    site.test().args(["status", "--watch"]).stderr(refusal).status(64);
    site.test()
        .args(["status", "--watch", "--json"])
        .stderr("rungate: the argument '--watch' cannot be used with '--json'\n...\n")
        .status(64);
    needs_tmux!();
    let terminal = Terminal::open(&site);
    let rungate = site.rungate().display();
    terminal.command(&format!("clear; TERM=dumb {rungate} status --watch"));
    terminal.shows("\nFor scripts: rungate status --json.");
    terminal.command(&format!("clear; {rungate} status --watch | cat"));
    terminal.shows("\nFor scripts: rungate status --json.");
    terminal.command(&format!("clear; {rungate} status --watch nothing"));
    terminal.shows("the policy has no repository \"nothing\"");
}

/// What is in use outside rungate is in the line above the holders, as in `status`.
#[test]
fn use_outside_is_seen() {
    needs_tmux!();
    let site = Site::with_policy(
        "[repository.seats]\nlimit = 3\n[repository.seats.outside]\n\
         command = [\"/bin/echo\", '{\"user\":\"bob\",\"host\":\"lab1\",\"amount\":2}']\n\
         [[rule]]\nacquire = [\"seats\"]\n",
    );
    site.test().args(["measure"]).status(0);
    let terminal = watch(&site, (80, 24));
    terminal.shows("seats: 0 of 3 used, 2 in use outside rungate");
}
