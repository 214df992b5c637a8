//! A real etcd of three members on the loopback, and hosts that meet there: each with an agent, and an
//! `/etc`, a `/run` and a name of its own. The members end with the test program, however that ends.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::RUN;
use super::authority::{Authority, Certificate};
use super::deadline::eventually;
use super::running::Running;
use super::site::{Site, set_mode};
use super::test::Test;

/// Where Debian has it.
pub(crate) const ETCD: &str = "/usr/bin/etcd";

/// How many members.
const MEMBERS: usize = 3;

/// A cluster. Its members are killed with the last handle.
#[derive(Clone)]
pub(crate) struct Etcd(Arc<Members>);

struct Members {
    all: Vec<Member>,
    scheme: &'static str,
    /// What `etcdctl` has to show, and whom to trust.
    trust: Vec<String>,
    directory: TempDir,
}

struct Member {
    process: Mutex<Process>,
    client: u16,
    /// Its name, and where the others find it.
    name: String,
    peer: String,
    /// What it is started with.
    words: Vec<String>,
    log: PathBuf,
}

struct Process {
    /// The shell that ends it when this test program is gone.
    guard: Child,
    pid: i32,
}

/// Tests that do no harm to the members share them.
static SHARED: LazyLock<Mutex<Weak<Members>>> = LazyLock::new(Mutex::default);

/// Each test has keys of its own.
static TESTS: AtomicUsize = AtomicUsize::new(1);

impl Etcd {
    /// One whose members nobody disturbs.
    pub(crate) fn shared() -> Self {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(members) = shared.upgrade() {
            return Self(members);
        }
        let etcd = Self::new();
        *shared = Arc::downgrade(&etcd.0);
        etcd
    }

    /// One of the test's own.
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// The same, with options for all members.
    pub(crate) fn with(options: &[String]) -> Self {
        Self::start("http", Vec::new(), |_| options.to_vec())
    }

    /// One whose members show these certificates; the first is shown by `etcdctl` as well.
    pub(crate) fn secure(
        authority: &Authority,
        certificates: &[&Certificate; MEMBERS],
        options: &[String],
    ) -> Self {
        let files = |of: &Certificate, dashes: &str| {
            let Certificate { certificate, key } = of;
            [("cert", certificate), ("key", key)]
                .map(|(what, path)| format!("--{what}{dashes}={}", path.display()))
        };
        let mut trust = vec![format!("--cacert={}", authority.certificate().display())];
        trust.extend(files(certificates[0], ""));
        Self::start("https", trust, |member| {
            files(certificates[member], "-file").into_iter().chain(options.iter().cloned()).collect()
        })
    }

    fn start(scheme: &'static str, trust: Vec<String>, options: impl Fn(usize) -> Vec<String>) -> Self {
        let directory = tempfile::Builder::new().prefix("rungate-etcd-").tempdir().expect("a directory");
        let ports = free_ports(2 * MEMBERS);
        let names: Vec<String> = (0..MEMBERS).map(|member| format!("m{member}")).collect();
        let peer = |member: usize| format!("http://127.0.0.1:{}", ports[MEMBERS + member]);
        let cluster: Vec<String> =
            names.iter().enumerate().map(|(member, name)| format!("{name}={}", peer(member))).collect();
        let members = names.iter().enumerate().map(|(member, name)| {
            let client = format!("{scheme}://127.0.0.1:{}", ports[member]);
            let mut words: Vec<String> = [
                "--name",
                name,
                "--data-dir",
                &directory.path().join(name).to_string_lossy(),
                "--listen-client-urls",
                &client,
                "--advertise-client-urls",
                &client,
                "--listen-peer-urls",
                &peer(member),
                "--initial-advertise-peer-urls",
                &peer(member),
                "--initial-cluster",
                &cluster.join(","),
                "--heartbeat-interval",
                "100",
                "--election-timeout",
                "1000",
                "--log-level",
                "error",
            ]
            .map(str::to_owned)
            .to_vec();
            words.extend(options(member));
            let log = directory.path().join(format!("{name}.log"));
            Member {
                process: Mutex::new(Process::start(Path::new(ETCD), &words, &log)),
                client: ports[member],
                name: name.clone(),
                peer: peer(member),
                words,
                log,
            }
        });
        let all = members.collect();
        let etcd = Self(Arc::new(Members { all, scheme, trust, directory }));
        eventually("a majority of the members answers", || etcd.control(&["get", "nothing"]));
        etcd
    }

    /// What `etcdctl` says, if it succeeds. What is written is written again if it fails: etcdctl repeats only
    /// what it reads, if the leader changes.
    pub(crate) fn control(&self, words: &[&str]) -> Option<String> {
        let tries = if matches!(words, ["put" | "del", ..]) { 3 } else { 1 };
        (0..tries).find_map(|_| self.control_with(words, ""))
    }

    /// The same, with something to read.
    pub(crate) fn control_with(&self, words: &[&str], input: &str) -> Option<String> {
        let endpoints: Vec<String> = self.endpoints().collect();
        self.control_at(&endpoints.join(","), words, input)
    }

    /// The same of these members.
    fn control_at(&self, endpoints: &str, words: &[&str], input: &str) -> Option<String> {
        let mut child = Command::new("etcdctl")
            .env("ETCDCTL_API", "3")
            .args(["--dial-timeout=5s", "--command-timeout=15s", "--endpoints", endpoints])
            .args(&self.0.trust)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("etcdctl(1) comes with etcd-client");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("etcdctl ends");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The port of each member.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> {
        self.0.all.iter().map(|member| member.client)
    }

    /// Where the members are.
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = String> {
        let scheme = self.0.scheme;
        self.ports().map(move |port| format!("{scheme}://127.0.0.1:{port}"))
    }

    /// Signals to all members.
    pub(crate) fn signal(&self, signal: Signal) {
        (0..MEMBERS).for_each(|member| self.signal_one(member, signal));
    }

    /// To one of them.
    pub(crate) fn signal_one(&self, member: usize, signal: Signal) {
        let process = self.0.all[member].process.lock().unwrap_or_else(PoisonError::into_inner);
        kill(Pid::from_raw(process.pid), signal).expect("a member runs");
    }

    /// A member is killed for good and its data are deleted; a new one comes in its place.
    pub(crate) fn replace(&self, member: usize) {
        let Member { name, peer, .. } = &self.0.all[member];
        self.kill_one(member);
        std::fs::remove_dir_all(self.data(member)).expect("its data");
        let listed = eventually("the members are told", || self.control(&["member", "list"]));
        let line = listed.lines().find(|line| line.contains(peer.as_str())).expect("it is a member");
        let id = line.split(',').next().expect("its id").to_owned();
        eventually("it is removed", || self.control(&["member", "remove", &id]));
        // Members that have only just heard of each other take none.
        eventually("another is added", || {
            self.control(&["member", "add", name, &format!("--peer-urls={peer}")])
        });
        self.start_one(Path::new(ETCD), member, &["--initial-cluster-state=existing"]);
        self.is_back(member);
    }

    /// All members end, and are started again.
    pub(crate) fn restart(&self) {
        (0..MEMBERS).for_each(|member| self.kill_one(member));
        (0..MEMBERS).for_each(|member| self.start_one(Path::new(ETCD), member, &[]));
        eventually("a majority of the members answers", || self.control(&["get", "nothing"]));
    }

    /// A member ends, and goes on as another program.
    pub(crate) fn upgrade(&self, member: usize, program: &Path) {
        self.kill_one(member);
        self.start_one(program, member, &[]);
        self.is_back(member);
    }

    fn is_back(&self, member: usize) {
        let endpoint = format!("http://127.0.0.1:{}", self.0.all[member].client);
        eventually("the member answers", || self.control_at(&endpoint, &["get", "nothing"], ""));
    }

    /// Everything older than now is compacted away, and every member is defragmented.
    pub(crate) fn compact(&self) {
        let said = eventually("the revision is told", || self.control(&["get", "nothing", "-w", "json"]));
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        // Somebody may have done the same.
        let _ = self.control(&["compact", &said["header"]["revision"].to_string()]);
        // A member that does not get to it in time is defragmented nevertheless.
        let _ = self.control(&["defrag"]);
    }

    /// Saves everything, to be restored.
    pub(crate) fn save(&self) -> PathBuf {
        let path = self.0.directory.path().join("backup.db");
        let endpoint = self.endpoints().next().expect("a member");
        eventually("everything is saved", || {
            self.control_at(&endpoint, &["snapshot", "save", &path.to_string_lossy()], "")
        });
        path
    }

    /// All members end, and go on with what was saved; as a cluster of this name.
    pub(crate) fn restore(&self, saved: &Path, token: &str) {
        (0..MEMBERS).for_each(|member| self.kill_one(member));
        let cluster: Vec<String> =
            self.0.all.iter().map(|Member { name, peer, .. }| format!("{name}={peer}")).collect();
        for (number, Member { name, peer, .. }) in self.0.all.iter().enumerate() {
            std::fs::remove_dir_all(self.data(number)).expect("its data");
            self.control(&[
                "snapshot",
                "restore",
                &saved.to_string_lossy(),
                &format!("--name={name}"),
                &format!("--data-dir={}", self.data(number).to_string_lossy()),
                &format!("--initial-cluster={}", cluster.join(",")),
                &format!("--initial-cluster-token={token}"),
                &format!("--initial-advertise-peer-urls={peer}"),
            ])
            .expect("it is restored");
        }
        self.restart();
    }

    fn data(&self, member: usize) -> PathBuf {
        self.0.directory.path().join(&self.0.all[member].name)
    }

    fn kill_one(&self, member: usize) {
        self.0.all[member].process.lock().unwrap_or_else(PoisonError::into_inner).end();
    }

    fn start_one(&self, program: &Path, member: usize, more: &[&str]) {
        let Member { process, words, log, .. } = &self.0.all[member];
        let words: Vec<String> =
            words.iter().cloned().chain(more.iter().copied().map(str::to_owned)).collect();
        *process.lock().unwrap_or_else(PoisonError::into_inner) = Process::start(program, &words, log);
    }

    /// A name for keys that no other test has.
    pub(crate) fn prefix() -> String {
        format!("/test-{}-{}/", *RUN, TESTS.fetch_add(1, Ordering::Relaxed))
    }

    /// `[site]` of agent.toml.
    pub(crate) fn settings(&self, prefix: &str, ttl: &str) -> String {
        let endpoints: Vec<String> = self.endpoints().map(|endpoint| format!("\"{endpoint}\"")).collect();
        format!(
            "version = 1\n[site]\nendpoints = [{}]\nprefix = \"{prefix}\"\nttl = \"{ttl}\"\n",
            endpoints.join(", ")
        )
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for member in &mut self.all {
            member.process.get_mut().unwrap_or_else(PoisonError::into_inner).end();
        }
    }
}

impl Process {
    fn start(program: &Path, words: &[String], log: &Path) -> Self {
        let script =
            "log=$1; shift; \"$@\" >>\"$log\" 2>&1 & echo $!; cat >/dev/null; kill -9 $! 2>/dev/null";
        let mut guard = Command::new("sh")
            .args(["-c", script, "sh"])
            .args([log, program])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let mut line = String::new();
        BufReader::new(guard.stdout.take().expect("a pipe")).read_line(&mut line).expect("its number");
        Self { guard, pid: line.trim().parse().expect("a number") }
    }

    /// Kills it, if it runs still.
    fn end(&mut self) {
        let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Ports that nobody else takes until the members listen there: none of those that the kernel gives out by
/// itself, to listeners and to connections, and none that was given to another cluster of these tests.
fn free_ports(count: usize) -> Vec<u16> {
    static GIVEN: AtomicUsize = AtomicUsize::new(0);
    const LOWEST: usize = 10_000;
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768);
    let all = first.clamp(LOWEST + 2000, 32_768) - LOWEST;
    // Somebody else may run the same tests.
    let own = usize::try_from(*RUN).expect("32 bits fit");
    let ports = (0..all).map(|_| LOWEST + (own + GIVEN.fetch_add(1, Ordering::Relaxed)) % all);
    let ports = ports.map(|port| u16::try_from(port).expect("a port"));
    let ports: Vec<u16> =
        ports.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).take(count).collect();
    assert_eq!(ports.len(), count, "free ports");
    ports
}

/// A host with its agent.
pub(crate) struct Host {
    pub(crate) site: Site,
    pub(crate) agent: Running,
    name: String,
}

impl Host {
    /// One of this name, with this policy and these settings.
    #[track_caller]
    pub(crate) fn new(name: &str, policy: &str, settings: &str) -> Self {
        Self::with_fault(name, policy, settings, None)
    }

    /// The same, with an agent that is wrong on purpose, if it can be.
    #[track_caller]
    pub(crate) fn with_fault(name: &str, policy: &str, settings: &str, fault: Option<&str>) -> Self {
        let fault = format!("RUNGATE_WRONG={}", fault.unwrap_or_default());
        Self::prepared(name, policy, settings, &["env".to_owned(), fault], |_| ())
    }

    /// The same, with more that has to be there before the agent is, which is started by these words.
    #[track_caller]
    pub(crate) fn prepared(
        name: &str,
        policy: &str,
        settings: &str,
        through: &[String],
        prepare: impl FnOnce(&Site),
    ) -> Self {
        let site = Site::new();
        site.system_policy(policy);
        site.directory_over_run();
        let directory = site.path("system-run/rungate-agent");
        std::fs::create_dir_all(&directory).expect("create the directory of the socket");
        set_mode(&directory, 0o755);
        site.system_file("agent.toml", settings);
        set_mode(&site.path("etc/rungate/agent.toml"), 0o600);
        for program in ["matlab", "other"] {
            site.program(program);
        }
        prepare(&site);
        let agent = agent(&site, name, through);
        Self { site, agent, name: name.to_owned() }
    }

    /// Starts the agent again, after it was killed.
    #[track_caller]
    pub(crate) fn restart(&mut self) {
        self.agent.signal(Signal::SIGKILL);
        // Two cannot listen.
        self.agent.end();
        self.agent = agent(&self.site, &self.name, &[]);
    }

    /// The same with other settings.
    #[track_caller]
    pub(crate) fn restart_with(&mut self, settings: &str) {
        self.agent.signal(Signal::SIGKILL);
        self.site.system_file("agent.toml", settings);
        set_mode(&self.site.path("etc/rungate/agent.toml"), 0o600);
        self.restart();
    }

    /// The agent dies, and has saved that its host was in contact with the site at this second since boot.
    pub(crate) fn dies_after_contact_at(&self, second: u64) {
        self.agent.signal(Signal::SIGKILL);
        eventually("it has ended", || self.agent.is_zombie().then_some(()));
        let text = format!("{{\"secs\":{second},\"nanos\":0}}\n");
        std::fs::write(self.site.agent_state().join("site/confirmed.json"), text).expect("it is saved");
    }

    /// Gives the host another name, while its agent runs.
    pub(crate) fn rename(&mut self, name: &str) {
        let pid = self.agent.pid().to_string();
        let renamed = Command::new("nsenter").args(["-t", &pid, "--uts", "hostname", name]).status();
        assert!(renamed.expect("nsenter(1) comes with util-linux").success());
        name.clone_into(&mut self.name);
    }

    /// A command on this host.
    pub(crate) fn test(&self) -> Test {
        self.site.test().host(&self.name)
    }
}

#[track_caller]
fn agent(site: &Site, name: &str, through: &[String]) -> Running {
    let rename = "hostname \"$0\" && exec \"$@\"";
    let through = through.iter().map(String::as_str);
    site.agent_through(through.chain(["unshare", "--uts", "sh", "-c", rename, name]))
}

/// Ends a test early, and loudly, where there is no etcd.
macro_rules! needs_etcd {
    () => {
        crate::support::needs_root!();
        if !std::path::Path::new(crate::support::ETCD).exists() {
            return crate::support::skip("etcd(1) is not installed");
        }
    };
}
pub(crate) use needs_etcd;

/// Ends a test early, and loudly, if no certificates can be made.
macro_rules! needs_openssl {
    () => {
        if !std::path::Path::new("/usr/bin/openssl").exists() {
            return crate::support::skip("openssl(1) is not installed");
        }
    };
}
pub(crate) use needs_openssl;
