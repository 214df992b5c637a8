//! `docs/site.md`, executed: three members of etcd with the certificates, the settings and the user of the
//! page, in a network of their own where they have the names of the page; and three hosts that come to fifty
//! seats.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::held;
use crate::docs::readme::{Block, blocks};
use crate::support::{Host, Running, eventually, needs_etcd, needs_openssl, set_mode, skip};

const MEMBERS: [&str; 3] = ["etcd1", "etcd2", "etcd3"];

/// The network in which the members have their names. They end with it, however the test does.
struct Network {
    guard: Child,
    directory: TempDir,
}

/// Begins a network and, when it is told to by a line, starts each member with the settings in its file.
const STAGE: &str = r#"
ip link set lo up
mount --make-rprivate /
mount --bind hosts /etc/hosts
echo ready
read -r start
for member in etcd1 etcd2 etcd3; do
  (set -a; . ./$member.default; exec etcd --log-level error >$member.log 2>&1) &
done
cat >/dev/null
kill -9 $(jobs -p)
"#;

impl Network {
    fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("rungate-page-").tempdir().expect("a directory");
        fs::write(directory.path().join("hosts"), hosts()).expect("write the names");
        let mut guard = Command::new("unshare")
            .args(["--net", "--mount", "bash", "-c", STAGE])
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare(1)");
        let mut line = String::new();
        BufReader::new(guard.stdout.take().expect("a pipe")).read_line(&mut line).expect("it is ready");
        assert_eq!(line, "ready\n");
        Self { guard, directory }
    }

    /// Runs a script of the page there, which must succeed; says what it printed.
    #[track_caller]
    fn run(&self, script: &str) -> String {
        self.try_to_run(script).unwrap_or_else(|wrong| panic!("{script}\n{wrong}"))
    }

    fn try_to_run(&self, script: &str) -> Result<String, String> {
        let output = Command::new("nsenter")
            .args(["--net", "--mount", "--target", &self.guard.id().to_string(), "bash", "-ec"])
            .arg(format!("cd {}\n{script}", self.directory.path().display()))
            .output()
            .expect("nsenter(1)");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).expect(name)
    }

    /// A host of the site with the files of the page.
    fn host(&self, name: &str, policy: &str, settings: &str, password: &str) -> Host {
        let network = format!("--net=/proc/{}/ns/net", self.guard.id());
        Host::prepared(name, policy, settings, &["nsenter".to_owned(), network], |site| {
            site.system_file("etcd-ca.pem", &self.read("ca.pem"));
            site.system_file("etcd-password", &format!("{password}\n"));
            set_mode(&site.path("etc/rungate/etcd-password"), 0o600);
            site.write("etc/hosts", &hosts());
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

fn hosts() -> String {
    let members = MEMBERS.iter().zip(11..).map(|(name, last)| format!("127.0.0.{last} {name}\n"));
    format!("127.0.0.1 localhost\n{}", members.collect::<String>())
}

/// The settings of the page for one member. All of them are on one host here, so that none can listen
/// everywhere.
fn settings_of(page: &str, member: &str, directory: &Path) -> String {
    let address = format!("https://127.0.0.{}:", member.replace("etcd", "1"));
    let of_member = |(key, value): (&str, &str)| {
        let value = match key {
            "ETCD_INITIAL_CLUSTER" => value.to_owned(),
            _ => value.replace("etcd1", member),
        };
        let value = value.replace("https://0.0.0.0:", &address);
        let value = value.replace("/etc/etcd", &directory.to_string_lossy());
        let value = value.replace("/var/lib", &directory.join(member).to_string_lossy());
        format!("{key}='{value}'\n")
    };
    let settings: BTreeMap<&str, &str> = page
        .lines()
        .filter(|line| line.starts_with("ETCD_"))
        .filter_map(|line| line.split_once('='))
        .collect();
    settings.into_iter().map(of_member).collect()
}

/// The first block that has this in it.
#[track_caller]
fn block<'p>(page: &'p [Block], part: &str) -> &'p str {
    page.iter()
        .map(Block::text)
        .find(|text| text.contains(part))
        .unwrap_or_else(|| panic!("no block has {part:?}"))
}

/// Takes an admin from three empty hosts to a limit that holds.
#[test]
fn from_three_empty_hosts_to_a_limit_that_holds() {
    needs_etcd!();
    needs_openssl!();
    if !Path::new("/bin/ip").exists() && !Path::new("/sbin/ip").exists() {
        return skip("ip(8) is not installed: it is in Debian's package iproute2");
    }
    let page = blocks("docs/site.md");
    let mut network = Network::new();
    network.run(block(&page, "openssl req -x509"));
    for member in MEMBERS {
        let settings = settings_of(block(&page, "ETCD_NAME="), member, network.directory.path());
        fs::create_dir(network.directory.path().join(member)).expect("a directory");
        fs::write(network.directory.path().join(format!("{member}.default")), settings).expect("write it");
    }
    network.guard.stdin.as_mut().expect("a pipe").write_all(b"start\n").expect("it reads");
    let health = block(&page, "endpoint health").replace("systemctl restart etcd\n", "");
    eventually("the members are healthy", || network.try_to_run(&health).ok());
    // Who types is asked for passwords.
    let typed = |name: &str| format!("<<<of-{name} etcdctl user add {name} --interactive=false\n");
    let mut user = block(&page, "etcdctl auth enable").to_owned();
    for name in ["root", "rungate"] {
        let line = format!("etcdctl user add {name}\n");
        assert!(user.contains(&line), "{user}");
        user = user.replace(&line, &typed(name));
    }
    network.run(&user);

    let (settings, policy) = (block(&page, "[site]"), block(&page, "keeper = \"site\""));
    let names = ["lab1", "lab2", "lab3"];
    let hosts = names.map(|name| network.host(name, policy, settings, "of-rungate"));
    let check = hosts[0].test().rungate_agent().args(["--check"]);
    assert!(block(&page, "rungate-agent-site.conf").contains("rungate-agent --check"));
    check.status(0);
    eventually("the site is there", || {
        let outcome = hosts[2].test().args(["doctor", "-v", "site"]).outcome();
        names.iter().all(|name| outcome.stdout.contains(&format!("\n{name} "))).then_some(())
    });
    let seat = |number: usize| {
        hosts[number % 3].test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).spawn()
    };
    let seats: Vec<Running> = (0..50).map(seat).collect();
    for host in &hosts {
        eventually("all seats are seen", || (held(host) == 50).then_some(()));
    }
    let shown = block(&page, "50 of 50 used");
    let told = hosts[1].test().args(["run", "--", "matlab"]).outcome().stderr;
    let first = |text: &str| text.lines().take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(first(&told), first(shown));
    assert!(
        told.lines().any(|line| line.trim().starts_with("PID") && line.contains(" matlab on lab")),
        "{told}"
    );
    // "With authentication on, only a user with the role root may read all of it."
    let variables = user.lines().find(|line| line.starts_with("export ")).expect("the variables");
    let backup = |line: &str| network.try_to_run(&format!("{variables}\n{line}"));
    let save = block(&page, "snapshot save").trim();
    assert!(save.contains("--user root "), "{save}");
    backup(&save.replace("--user root ", "--user root:of-root ")).expect("a snapshot");
    let nobody = backup(&save.replace("--user root ", "")).expect_err("etcd knows who asks");
    assert!(nobody.contains("user name is empty"), "{nobody}");
    drop(seats);
    for host in &hosts {
        eventually("all seats are free", || (held(host) == 0).then_some(()));
    }
}
