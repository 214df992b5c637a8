//! Launches whose slots the agent keeps, beside the same ones over lock files; and over a site with an etcd of
//! three members on this host, beside those of the agent alone. Each side is in a mount
//! namespace of its own, with an `/etc` and a `/run` of its own, because agent and launcher go by the
//! system's policy and by nothing else. Only root can do that.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::libc;

use super::line::{HAND_OVERS, Waiters};
use super::processor::OneProcessor;
use super::row::{Row, Side, in_turn, timed};
use super::site::{Site, others, rungate};

const ROUNDS: usize = 400;

/// How many slots are held, and how many launches wait, if that is much.
const HELD: u32 = 10_000;
const WAITING: usize = 1000;

/// What an agent of the site reads.
const AGENT_FILE: &str = "agent.toml";

/// One launch holds so many.
const EACH: u32 = 500;

pub(crate) fn rows(site: &Site) -> Vec<Row> {
    if !nix::unistd::Uid::effective().is_root() {
        println!("| only root can measure the agent |");
        return Vec::new();
    }
    let agent = [site.agent()];
    let files = World::begin(site, "files", "file", 10, &["sleep".into(), "infinity".into()]);
    let long = World::begin(site, "long", "agent", 1000, &agent);
    let full = World::begin(site, "full", "agent", 10, &agent);
    let etcd = Etcd::begin(site);
    let over_etcd = World::begin(site, "site", "site", 10, &agent);
    let agent = World::begin(site, "agent", "agent", 10, &agent);
    let _few = [agent.hold("held", 10), files.hold("held", 10), over_etcd.hold("held", 10)];
    let _many: Vec<Launch> = (0..HELD / EACH).map(|_| full.hold("held", EACH)).collect();
    let _first = full.hold("line", 1);
    let _line: Vec<Launch> = (0..WAITING).map(|_| full.wait()).collect();
    let mut rows = {
        let _pinned = OneProcessor::alone();
        let [mut by_files, mut by_agent, mut by_etcd, mut by_rules, mut by_holders] =
            [&files, &agent, &over_etcd, &long, &full].map(|world| world.launch(&["--", "true"]));
        let sides = in_turn(
            ROUNDS,
            [
                ("two lock files", &mut || run(&mut by_files)),
                ("the agent", &mut || run(&mut by_agent)),
                ("the site", &mut || run(&mut by_etcd)),
                ("the agent, 1,000 rules", &mut || run(&mut by_rules)),
                ("the agent, 10,000 held, 1,000 waiting", &mut || run(&mut by_holders)),
            ],
        );
        let [files, agent, etcd, rules, holders] = sides;
        vec![
            Row::new("10 rules, two repositories of the agent's".into(), &agent, &files, 1.0),
            Row::new("10 rules, two repositories of the site's".into(), &etcd, &agent, 2.2),
            Row::new("1,000 rules, two repositories of the agent's".into(), &rules, &agent, 1.05),
            Row::new("10,000 slots held and 1,000 waiting, by the agent".into(), &holders, &agent, 1.1),
        ]
    };
    let mut ours = Waiters::new(agent.launch(&["-q", "-w", "forever", "--as", "line", "--", "cat"]));
    let mut theirs = Waiters::new({
        let mut command = Command::new("/usr/bin/flock");
        command.arg("--no-fork").arg(site.path("agent.flock")).arg("cat");
        command
    });
    for _ in 0..HAND_OVERS {
        ours.hand_over();
        theirs.hand_over();
    }
    rows.push(Row {
        what: "hand-over of a freed slot of the agent's to the head of the line".into(),
        ours: Side::of_times("the agent", std::mem::take(&mut ours.times)),
        against: Side::of_times("`flock`, waiting", std::mem::take(&mut theirs.times)),
        reach: 1.2,
    });
    drop(etcd);
    rows
}

/// Three members of an etcd, on ports of the loopback that are free now.
struct Etcd(Vec<Child>);

impl Etcd {
    /// One that answers. The agents of a world with `keeper = "site"` find its endpoints.
    fn begin(site: &Site) -> Self {
        let listeners: Vec<TcpListener> =
            (0..6).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let urls: Vec<String> = listeners
            .iter()
            .map(|listener| format!("http://{}", listener.local_addr().expect("an address")))
            .collect();
        drop(listeners);
        let cluster: Vec<String> = (0..3).map(|member| format!("m{member}={}", urls[3 + member])).collect();
        let members = (0..3).map(|member| {
            let [client, peer] = [&urls[member], &urls[3 + member]];
            Command::new("etcd")
                .args(["--log-level", "error", "--initial-cluster", &cluster.join(",")])
                .args(["--name", &format!("m{member}"), "--data-dir"])
                .arg(site.path(&format!("etcd{member}")))
                .args(["--listen-client-urls", client, "--advertise-client-urls", client])
                .args(["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer])
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("etcd(1) comes with etcd-server")
        });
        let members = Self(members.collect());
        let endpoints = urls[..3].join("\", \"");
        write(&site.path(AGENT_FILE), &format!("version = 1\n[site]\nendpoints = [\"{endpoints}\"]\n"));
        members
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for member in &mut self.0 {
            let _ = member.kill();
            let _ = member.wait();
        }
    }
}

/// A mount namespace, with whatever keeps the slots there.
struct World {
    /// Whose namespace it is.
    process: Child,
    namespace: fs::File,
}

/// A launch that holds slots or waits for them. It ends with this.
struct Launch(Child);

impl World {
    /// One in which this keeps the slots of a policy with so many rules.
    fn begin(site: &Site, name: &str, keeper: &str, rules: usize, program: &[PathBuf]) -> Self {
        let etc = site.path(&format!("{name}-etc"));
        fs::create_dir_all(etc.join("rungate")).expect("a directory");
        for file in ["passwd", "group", "nsswitch.conf", "ld.so.cache", "hosts", "hostname", "localtime"] {
            let _ = fs::copy(Path::new("/etc").join(file), etc.join(file));
        }
        write(&etc.join("rungate/policy.toml"), &policy(keeper, rules));
        if keeper == "site" {
            let path = etc.join("rungate/agent.toml");
            fs::copy(site.path(AGENT_FILE), &path).expect("a file");
            fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("chmod");
        }
        // As on any system `/run` is in memory.
        let mount = "mount --bind \"$0\" /etc && mount -t tmpfs none /run && mkdir /run/rungate /run/rungate-agent && exec \"$@\"";
        let mut process = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", mount])
            .arg(&etc)
            .args(program)
            .stdin(Stdio::null())
            .spawn()
            .expect("unshare(1)");
        let socket = format!("/proc/{}/root/run/rungate-agent/socket", process.id());
        let is_ready = || keeper == "file" || std::os::unix::net::UnixStream::connect(&socket).is_ok();
        let executable = format!("/proc/{}/exe", process.id());
        let is_there = || fs::read_link(&executable).is_ok_and(|exe| !is_on_its_way(&exe));
        while !(is_there() && is_ready()) {
            assert!(process.try_wait().is_ok_and(|ended| ended.is_none()), "it has ended");
            sleep(Duration::from_millis(10));
        }
        let namespace = fs::File::open(format!("/proc/{}/ns/mnt", process.id())).expect("its namespace");
        Self { process, namespace }
    }

    /// A launch in this world.
    fn launch(&self, words: &[&str]) -> Command {
        let mut command = Command::new(rungate());
        command.arg("run").args(words).env("LC_ALL", "C.UTF-8").env_remove("RUNGATE_POLICY");
        let namespace = self.namespace.as_raw_fd();
        // SAFETY: one system call, on a descriptor that outlives this.
        unsafe {
            command.pre_exec(move || {
                if libc::setns(namespace, libc::CLONE_NEWNS) == 0 {
                    Ok(())
                } else {
                    Err(std::io::Error::last_os_error())
                }
            });
        }
        command
    }

    /// Somebody who holds so many slots of a repository.
    fn hold(&self, repository: &str, slots: u32) -> Launch {
        let name = if slots == EACH { "many".to_owned() } else { repository.to_owned() };
        let mut command =
            self.launch(&["-q", "-w", "forever", "--as", &name, "--", "sh", "-c", "echo; exec cat"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = [0];
        child.stdout.as_mut().expect("a pipe").read_exact(&mut line).expect("it holds its slots");
        Launch(child)
    }

    /// Somebody who waits, and has said so.
    fn wait(&self) -> Launch {
        let mut command = self.launch(&["-v", "-w", "forever", "--as", "line", "--", "true"]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stderr.as_mut().expect("a pipe")).read_line(&mut line).expect("it waits");
        Launch(child)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two repositories for what is measured, and others that are held and waited for.
fn policy(keeper: &str, count: usize) -> String {
    let held = format!("limit = {}", 2 * HELD);
    // A transaction of etcd cannot be larger. Nobody holds that many in the world of the site.
    let each = if keeper == "site" { EACH.min(100) } else { EACH };
    format!(
        "version = 1\ndefaults.keeper = \"{keeper}\"\n\
         repository.r0 = {{ limit = 50 }}\nrepository.r1 = {{ limit = 50 }}\n\
         repository.held = {{ {held} }}\nrepository.line = {{ limit = 1 }}\n\
         [[rule]]\ncommands = [\"true\"]\nacquire = [\"r0\", \"r1\"]\n\
         [[rule]]\ncommands = [\"held\"]\nacquire = [{{ repository = \"held\", slots = 10 }}]\n\
         [[rule]]\ncommands = [\"many\"]\nacquire = [{{ repository = \"held\", slots = {each} }}]\n\
         [[rule]]\ncommands = [\"line\"]\nacquire = [\"line\"]\n{}",
        others(count)
    )
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, PermissionsExt::from_mode(0o644)).expect("chmod");
}

/// Whether it has not become yet what it is to be.
fn is_on_its_way(executable: &Path) -> bool {
    let name = executable.file_name().unwrap_or_default();
    name != "rungate-agent" && name != "sleep" && name != "coreutils"
}

fn run(command: &mut Command) -> Duration {
    command.stdin(Stdio::null());
    timed(|| assert!(command.status().expect("it starts").success()))
}
