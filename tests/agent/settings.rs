//! "`/etc/rungate/agent.toml`": what is for the agent alone, read as strictly as a policy.

use super::{held, seats, waiting};
use crate::support::{Running, Site, Test, eventually, needs_root, set_mode};

fn check(site: &Site) -> Test {
    site.test().rungate_agent().args(["--check"])
}

/// Writes the settings as only root may have them.
pub(super) fn write(site: &Site, text: &str) {
    site.system_file("agent.toml", text);
    set_mode(&site.path("etc/rungate/agent.toml"), 0o600);
}

/// Seats under an agent with these settings.
pub(super) fn seats_with(settings: &str) -> (Site, Running) {
    let (site, agent) = seats(2, "");
    agent.kill();
    write(&site, settings);
    let agent = site.agent();
    (site, agent)
}

/// Without it everything is as it is by default.
#[test]
fn settings_need_not_be_there_unless_they_were_named() {
    needs_root!();
    let site = Site::new();
    site.system_policy("");
    check(&site).status(0);
    let missing = "rungate: the agent does not run: $DIR/none.toml: open: No such file or directory\n";
    check(&site).args(["--settings", "$DIR/none.toml"]).stderr(missing).status(78);
}

#[test]
fn every_fault_is_told_with_its_place() {
    needs_root!();
    let site = Site::new();
    write(
        &site,
        "
        version = 2
        [agent]
        conections = 3
        slots = 0
        places = \"many\"
        [sight]
        ",
    );
    check(&site)
        .stderr(
            "
            rungate: the settings have faults
            /etc/rungate/agent.toml:1:11: unsupported version; this rungate supports version 1 [unknown-version]
              |
            1 | version = 2
              |           ^

            /etc/rungate/agent.toml:3:1: unknown key \"conections\" in [agent]; did you mean \"connections\"? [unknown-key]
              |
            3 | conections = 3
              | ^^^^^^^^^^

            /etc/rungate/agent.toml:4:9: \"slots\" must be from 1 to 10000000 [out-of-range]
              |
            4 | slots = 0
              |         ^

            /etc/rungate/agent.toml:5:10: \"places\" is a string; it must be a whole number [wrong-type]
              |
            5 | places = \"many\"
              |          ^^^^^^

            /etc/rungate/agent.toml:6:2: unknown key \"sight\" in the file [unknown-key]
              |
            6 | [sight]
              |  ^^^^^
            ",
        )
        .status(78);
}

/// It has secrets: whoever else can read or write it, or a directory above it, is one too many.
#[test]
fn only_roots_file_that_nobody_else_can_read_is_believed() {
    needs_root!();
    let site = Site::new();
    write(&site, "version = 1\n");
    check(&site).status(0);
    let file = site.path("etc/rungate/agent.toml");
    for mode in [0o640, 0o604, 0o620] {
        set_mode(&file, mode);
        check(&site)
            .stderr("rungate: the agent does not run: /etc/rungate/agent.toml: [..]chmod [..]\n")
            .status(78);
    }
    set_mode(&file, 0o600);
    std::os::unix::fs::chown(&file, Some(site.user("games").uid), None).expect("chown");
    let of_games = "rungate: the agent does not run: /etc/rungate/agent.toml: belongs to games [..], neither to root nor to you\n";
    check(&site).stderr(of_games).status(78);
    site.test().rungate_agent().stderr(of_games).status(78);
}

/// `message`
#[test]
fn a_request_is_no_longer_than_it_may_be() {
    needs_root!();
    let (site, _agent) = seats_with("[agent]\nmessage = 4096\n");
    site.test().args(["run", "--", "matlab"]).status(0);
    let too_long = "rungate: matlab: not started: the agent refuses: the request is too long: at most 4096 \
        bytes are allowed ([agent] message in /etc/rungate/agent.toml)\n";
    site.test().args(["run", "--", "matlab", &"x".repeat(5000)]).stderr(too_long).status(74);
    // More than the socket takes at once: the agent hangs up before it has heard all.
    let long = "x".repeat(100_000);
    site.test().args(["run", "--", "matlab"]).args(vec![long.as_str(); 5]).stderr(too_long).status(74);
}

/// `slots`: those that a user has released are not counted any more.
#[test]
fn a_user_has_no_more_slots_than_he_may_have() {
    needs_root!();
    let (site, _agent) = seats_with("[agent]\nslots = 1\n");
    let launch = |user: &str| site.test().user(user).args(["run", "--", "matlab"]);
    let too_many = "rungate: matlab: not started: the agent refuses: this user would have too many slots ([agent] slots in /etc/rungate/agent.toml)\n";
    for _ in 0..3 {
        let holder = launch("games").spawn();
        launch("games").stderr(too_many).status(74);
        launch("backup").status(0);
        holder.kill();
        eventually("the slot is free", || held(&site).is_empty().then_some(()));
    }
}

/// The slots that a user has count for the next agent, too.
#[test]
fn slots_count_for_the_next_agent_too() {
    needs_root!();
    let (site, agent) = seats_with("[agent]\nslots = 1\n");
    let launch = site.test().user("games").args(["run", "--", "matlab"]);
    let holder = launch.spawn();
    agent.kill();
    let _agent = site.agent();
    let too_many = "rungate: matlab: not started: the agent refuses: this user would have too many slots ([agent] slots in /etc/rungate/agent.toml)\n";
    launch.clone().stderr(too_many).status(74);
    holder.kill();
    eventually("the slot is free", || held(&site).is_empty().then_some(()));
    launch.status(0);
}

/// A launch that is refused because its user would have too many slots begins no pause.
#[test]
fn what_a_user_may_not_have_begins_no_pause() {
    needs_root!();
    let (site, agent) = Site::with_agent(
        "
        [repository.seats]
        keeper = \"agent\"
        limit  = 1

        [repository.rested]
        keeper     = \"agent\"
        limit      = 1
        if_elapsed = \"1h\"

        [[rule]]
        commands = [\"matlab\"]
        acquire  = [\"seats\"]

        [[rule]]
        commands = [\"nightly\"]
        acquire  = [\"rested\"]
        ",
    );
    agent.kill();
    write(&site, "[agent]\nslots = 1\n");
    let _agent = site.agent();
    for program in ["matlab", "nightly"] {
        site.program(program);
    }
    let launch = |user: &str, command: &str| site.test().user(user).args(["run", "--", command]);
    let _holder = launch("games", "matlab").spawn();
    let too_many = "rungate: nightly: not started: the agent refuses: this user would have too many slots ([agent] slots in /etc/rungate/agent.toml)\n";
    launch("games", "nightly").stderr(too_many).status(74);
    launch("backup", "nightly").status(0);
    launch("backup", "nightly").stderr("rungate: nightly: too soon: [..]\n...\n").status(69);
}

/// `launches`: one that has ended is not counted any more.
#[test]
fn a_user_has_no_more_launches_than_he_may_have() {
    needs_root!();
    let (site, _agent) = seats_with("[agent]\nlaunches = 1\n");
    let launch = |user: &str| site.test().user(user).args(["run", "--", "matlab"]);
    let too_many = "rungate: matlab: not started: the agent refuses: too many launches of this user have slots ([agent] launches in /etc/rungate/agent.toml)\n";
    for _ in 0..2 {
        let holder = launch("games").spawn();
        launch("games").stderr(too_many).status(74);
        launch("backup").status(0);
        holder.kill();
        eventually("the slot is free", || held(&site).is_empty().then_some(()));
    }
}

/// `places`: a launch that may not wait leaves the places of others as they are.
#[test]
fn a_user_has_no_more_places_than_he_may_have() {
    needs_root!();
    let (site, _agent) = seats_with("[agent]\nplaces = 1\n");
    let [first, _second] = [(); 2].map(|()| site.test().args(["run", "--", "matlab"]).spawn());
    let waits = |user: &str| site.test().user(user).args(["run", "-q", "--wait", "forever", "--", "matlab"]);
    let mut games = waits("games").background();
    eventually("it waits", || (waiting(&site) == 1).then_some(()));
    let too_many = "rungate: matlab: not started: the agent refuses: this user would have too many positions in queues ([agent] places in /etc/rungate/agent.toml)\n";
    waits("games").stderr(too_many).status(74);
    let _backup = waits("backup").background();
    eventually("another user waits too", || (waiting(&site) == 2).then_some(()));
    first.kill();
    games.wait_for_echo();
}

/// `connections`
#[test]
fn a_user_has_no_more_connections_than_he_may_have() {
    needs_root!();
    let (site, _agent) = seats_with("[agent]\nconnections = 2\n");
    let _holders = [(); 2].map(|()| site.test().args(["run", "--", "matlab"]).spawn());
    let waits = |user: &str| site.test().user(user).args(["run", "-q", "--wait", "forever", "--", "matlab"]);
    let [first, _second] = [(); 2].map(|()| waits("games").background());
    eventually("both stand in line", || (waiting(&site) == 2).then_some(()));
    let refused = "rungate: matlab: not started: the agent refuses: too many launches of this user are \
        connected ([agent] connections in /etc/rungate/agent.toml)\n";
    waits("games").stderr(refused).status(74);
    let _others = waits("backup").background();
    eventually("somebody else stands in line too", || (waiting(&site) == 3).then_some(()));
    first.kill();
    eventually("one has left", || (waiting(&site) == 2).then_some(()));
    let _third = waits("games").background();
    eventually("another one stands in line", || (waiting(&site) == 3).then_some(()));
}

/// Asks eighty times without waiting for an answer, and tells how many milliseconds it took until all were there.
const TALKS: &str = "import socket, time
begun = time.monotonic()
c = socket.socket(socket.AF_UNIX)
c.connect('/run/rungate-agent/socket')
c.sendall(bytes([6, 0, 0, 0, 1, 6, 0, 0, 0, 0]) * 80)
answers = c.makefile('rb')
for _ in range(80):
    answers.read(int.from_bytes(answers.read(4), 'little'))
print(int(1000 * (time.monotonic() - begun)), flush=True)
";

/// `rate`: after a burst, the requests of one connection are heard at this rate. All of them are answered.
#[test]
fn a_connection_is_heard_at_its_rate() {
    needs_root!();
    let (site, _agent) = seats_with("[agent]\nrate = 100\n");
    let talks = site.test().user("games").program("/usr/bin/python3").args(["-c", TALKS]);
    let told = talks.background().read_line();
    let took: u32 = told.trim().parse().expect("milliseconds");
    // The first 51 at once, and each of the others a hundredth of a second after the one before it.
    assert!(took >= 280, "{took} ms");
}

/// `members`: A table is there as long as a slot of it is held, somebody waits for it, or a pause since its
/// last use is not over, and no longer where room is needed.
#[test]
fn tables_that_nobody_misses_take_no_room() {
    needs_root!();
    let (site, agent) = Site::with_agent(
        "
        [repository.projects]
        keeper = \"agent\"
        per    = \"directory\"
        limit  = 1

        [repository.rested]
        keeper     = \"agent\"
        per        = \"directory\"
        limit      = 1
        if_elapsed = \"1h\"

        [[rule]]
        commands = [\"matlab\"]
        acquire  = [\"projects\"]

        [[rule]]
        commands = [\"nightly\"]
        acquire  = [\"rested\"]
        ",
    );
    agent.kill();
    write(&site, "[agent]\nmembers = 2\n");
    let mut agent = site.agent();
    site.program("matlab");
    site.program("nightly");
    for directory in ["a", "b", "c", "d", "e"] {
        std::fs::create_dir(site.path(directory)).expect("a directory");
    }
    let launch = |command: &str, directory: &str| {
        site.test().user("games").directory(directory).args(["run", "--", command])
    };
    for directory in ["a", "b", "c", "d", "e"] {
        launch("matlab", directory).status(0);
    }
    let too_many = |command: &str| {
        format!(
            "rungate: {command}: not started: the agent refuses: this user would have too many tables \
             ([agent] members in /etc/rungate/agent.toml)\n"
        )
    };
    // Two pauses are on; a restart changes nothing in that.
    launch("nightly", "a").status(0);
    launch("nightly", "b").status(0);
    for _ in 0..2 {
        launch("nightly", "c").stderr(&too_many("nightly")).status(74);
        launch("matlab", "a").stderr(&too_many("matlab")).status(74);
        launch("nightly", "a").stderr("rungate: nightly: too soon: [..]\n...\n").status(69);
        agent.kill();
        agent = site.agent();
    }
}

/// What the agent records says who runs what: only root can read it, also in a directory that was there
/// before.
#[test]
fn only_root_can_look_into_the_state() {
    needs_root!();
    let (site, agent) = seats_with("");
    agent.kill();
    let state = site.agent_state();
    set_mode(&state, 0o755);
    let _agent = site.agent();
    site.test().user("games").program("/bin/ls").args([&state]).stderr("[..]Permission denied\n").status(2);
}
