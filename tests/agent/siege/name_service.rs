//! A name service that does not answer, or that fails. Launches that need it wait for it and keep their places.
//! Other launches do not wait for it.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::{OpenOptionsExt, symlink},
    path::PathBuf,
};

use nix::{errno::Errno, libc, sys::stat::Mode, unistd::mkfifo};

use rungate::keeper::agent::message::{Answer, Request};

use super::Call;
use crate::agent::waiting;
use crate::support::{Running, Site, eventually, needs_root};

/// `plain` needs no look-up, `named` one of a user, `grouped` one of a group. Only the latter fail here.
const POLICY: &str = r#"
    [repository.seats]
    keeper = "agent"
    limit  = 1

    [repository.free]
    keeper = "agent"
    limit  = 1000

    [[rule]]
    name     = "plain seats"
    commands = ["plain"]
    acquire  = ["seats"]

    [[rule]]
    name     = "grouped seats"
    commands = ["grouped"]
    groups   = ["lab"]
    acquire  = ["seats"]

    [[rule]]
    name     = "of a user"
    commands = ["named"]
    users    = ["cay"]
    acquire  = ["free"]

    [[rule]]
    name     = "of all"
    commands = ["free"]
    acquire  = ["free"]
"#;

/// The users of the group `lab`.
const LAB: [&str; 4] = ["ann", "bob", "eve", "fay"];

/// A site, its agent, and the files of users and groups that the agent alone reads.
struct Scene {
    site: Site,
    agent: Running,
    names: PathBuf,
}

impl Scene {
    #[track_caller]
    fn new() -> Self {
        let (site, former) = Site::with_agent(POLICY);
        former.kill();
        for user in LAB {
            site.account(user, &["lab"]);
        }
        site.account("cay", &[]);
        for name in ["plain", "grouped", "named", "free"] {
            site.program(name);
        }
        let names = site.path("names");
        fs::create_dir_all(names.join("rungate")).expect("a directory");
        for file in ["passwd", "group", "ld.so.cache"] {
            // A machine need not have each of them.
            let _ = fs::copy(site.path("etc").join(file), names.join(file));
        }
        fs::write(names.join("nsswitch.conf"), "passwd: files\ngroup: files\n").expect("write");
        let mounts = "mount --bind $DIR/etc/rungate $DIR/names/rungate && mount --rbind $DIR/names /etc && \
                      exec \"$@\"";
        let agent = site.agent_through(["unshare", "--mount", "sh", "-c", mounts, "sh"]);
        Self { site, agent, names }
    }

    /// Puts what was made as `new` into the place of the file of groups.
    #[track_caller]
    fn replace_groups(&self) {
        fs::rename(self.names.join("new"), self.names.join("group")).expect("replace the file");
    }

    /// From now on, look-ups of groups have no answer.
    #[track_caller]
    fn falls_silent(&self) {
        let fifo = self.names.join("silent");
        mkfifo(&fifo, Mode::from_bits_truncate(0o644)).expect("a FIFO");
        fs::hard_link(fifo, self.names.join("new")).expect("a link");
        self.replace_groups();
    }

    /// From now on, look-ups of groups fail.
    #[track_caller]
    fn fails(&self) {
        symlink("group", self.names.join("new")).expect("a link that leads nowhere");
        self.replace_groups();
    }

    /// From now on, look-ups of groups succeed. Those that have no answer yet fail.
    #[track_caller]
    fn answers(&self) {
        fs::copy(self.site.path("etc/group"), self.names.join("new")).expect("the groups");
        self.replace_groups();
        let fifo = self.names.join("silent");
        let opens = || OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&fifo);
        eventually("no look-up waits", || {
            let error = opens().err()?.raw_os_error().map(Errno::from_raw);
            matches!(error, Some(Errno::ENXIO | Errno::ENOENT)).then_some(())
        });
    }

    /// Launches that wait are judged again, by another policy, until the agent passes over as many.
    #[track_caller]
    fn are_judged_again(&self, passed_over: usize) {
        self.site.system_policy(&POLICY.replace("1000", "999"));
        eventually("it cannot be judged", || (self.passed_over() == passed_over).then_some(()));
    }

    /// How many judges the agent has, and how many of them open a file that does not answer.
    fn judges(&self) -> (usize, usize) {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.agent.pid())).expect("the agent runs");
        let paths: Vec<PathBuf> = tasks.filter_map(|task| Some(task.ok()?.path())).collect();
        // A thread may end meanwhile.
        let read = |path: &PathBuf, file| fs::read_to_string(path.join(file)).unwrap_or_default();
        let judges: Vec<&PathBuf> = paths.iter().filter(|path| read(path, "comm") == "judge\n").collect();
        let opens = format!("{} ", libc::SYS_openat);
        let stuck = judges.iter().filter(|path| read(path, "syscall").starts_with(&opens)).count();
        (judges.len(), stuck)
    }

    /// How many waiters the agent passes over.
    #[track_caller]
    fn passed_over(&self) -> usize {
        let mut call = Call::to(&self.site);
        call.says(&Request::Look(Vec::new()));
        let Answer::Tables(tables) = call.hears() else { panic!("it answers the question") };
        tables.iter().flat_map(|table| &table.waiting).filter(|waiter| waiter.is_away).count()
    }

    /// A launch that waits, as the one with this number; it answers a line when it runs.
    #[track_caller]
    fn waiter(&self, user: &str, command: &str, place: usize) -> Running {
        let wait = ["run", "-q", "--wait", "forever", "--", command];
        let mut running = self.site.test().user(user).args(wait).background();
        running.write_line("it runs");
        eventually("it waits", || (waiting(&self.site) == place).then_some(()));
        running
    }

    #[track_caller]
    fn holder(&self) -> Running {
        self.site.test().user("cay").args(["run", "--", "plain"]).spawn()
    }
}

/// While every judge waits for an answer of the name service, launches of another user start: one whose rules
/// need no look-up, and one whose look-up is answered.
#[test]
fn look_ups_without_an_answer_delay_no_launch_of_others() {
    needs_root!();
    let scene = Scene::new();
    scene.falls_silent();
    let launch = |user| {
        let wait = ["run", "-q", "--wait", "forever", "--", "grouped"];
        scene.site.test().user(user).args(wait).background()
    };
    let _launches: Vec<Running> = LAB.into_iter().flat_map(|user| [(); 6].map(|()| launch(user))).collect();
    eventually("as many look-ups wait as may", || {
        let (all, stuck) = scene.judges();
        (stuck > 0 && (stuck == all || stuck == 4 * LAB.len())).then_some(())
    });
    for command in ["free", "named"] {
        scene.site.test().user("cay").args(["run", "--", command]).status(0);
    }
    scene.answers();
}

/// The first of a queue cannot be judged, because a look-up has no answer. Others pass it, and it is the first
/// again when it is judged.
#[test]
fn who_cannot_be_judged_is_passed_over_and_is_the_first_when_judged() {
    needs_root!();
    let scene = Scene::new();
    let holder = scene.holder();
    let mut head = scene.waiter("ann", "grouped", 1);
    let mut next = scene.waiter("cay", "plain", 2);
    let mut last = scene.waiter("cay", "plain", 3);
    scene.falls_silent();
    scene.are_judged_again(1);
    holder.kill();
    assert_eq!(next.read_line(), "it runs\n");
    assert_eq!(waiting(&scene.site), 2);
    scene.answers();
    eventually("it is judged", || (scene.passed_over() == 0).then_some(()));
    next.kill();
    assert_eq!(head.read_line(), "it runs\n");
    head.kill();
    assert_eq!(last.read_line(), "it runs\n");
}

/// While a name service fails, launches that need it keep their places, and others pass them. When it answers,
/// the first of them starts first.
#[test]
fn a_name_service_that_fails_takes_no_place() {
    needs_root!();
    let scene = Scene::new();
    let holder = scene.holder();
    let mut first = scene.waiter("ann", "grouped", 1);
    let mut second = scene.waiter("bob", "grouped", 2);
    let mut other = scene.waiter("cay", "plain", 3);
    scene.fails();
    scene.are_judged_again(2);
    holder.kill();
    assert_eq!(other.read_line(), "it runs\n");
    assert_eq!(waiting(&scene.site), 2);
    // A launch that begins now has no place to keep, and learns why it does not start.
    let failed =
        "rungate: grouped: not started: the agent refuses: a look-up failed: getgrnam(\"lab\"): [..]\n...\n";
    scene.site.test().user("eve").args(["run", "--", "grouped"]).stderr(failed).status(74);
    scene.answers();
    other.kill();
    assert_eq!(first.read_line(), "it runs\n");
    first.kill();
    assert_eq!(second.read_line(), "it runs\n");
}
