//! The site: whether the agent of this host gives its slots, and the state of the other agents.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::Path,
    process,
    time::Duration,
};

use super::{
    Context, Finding, Section, Want, boot,
    finding::counted,
    repositories::{barrier, how_to_mend},
};
use crate::{
    cli::Topic,
    judge::terms::Keeper,
    keeper::{
        AgentError, SOCKET,
        agent::{
            self,
            message::{AboutHost, AboutSite, AboutStore, AboutTrouble, UnreadableSlot},
        },
    },
    policy::Repository,
    sys::errno_of,
    text::{Show, answer, brief, table::Table, visible},
};
use serde_json::{Map, Value, json};

/// The command that shows the state of the members.
const HEALTH: &str = "etcdctl endpoint status --cluster --write-out table";

pub(super) fn look(examination: &Context) -> Section {
    let site = agent::about().map(|about| about.site);
    let section = of_policy(examination, &site);
    match &site {
        Ok(Some(site)) => section.with_details(answer(&to_text(site)), to_json(site)),
        _ => section,
    }
}

fn of_policy(examination: &Context, site: &Result<Option<AboutSite>, AgentError>) -> Section {
    let Some(policy) = examination.policy() else {
        return Section::without_policy(Topic::Site);
    };
    let kept = policy.repositories().iter().filter(|known| known.keeper() == Keeper::Site);
    let names: Vec<String> = kept.map(Repository::shown_name).map(|name| name.shown().to_string()).collect();
    if names.is_empty() {
        let none = "none: limits apply to this host, or to hosts that share a directory";
        return Section::new(Topic::Site, none, Vec::new());
    }
    let summary = format!("keeps {}", names.join(", "));
    let findings = match site {
        Ok(Some(site)) => of_site(site),
        Ok(None) => vec![alone()],
        // The topic `agent` reports its faults.
        Err(error) => vec![Finding::fault("site-unknown", error.to_string()).fix("rungate doctor agent")],
    };
    Section::new(Topic::Site, summary, findings)
}

fn alone() -> Finding {
    let text = "there is no [site] in /etc/rungate/agent.toml, so each host has the whole limit for itself";
    Finding::warning("site-alone", text).fix("Name the members of etcd there: man rungate-agent")
}

fn of_site(site: &AboutSite) -> Vec<Finding> {
    let mut findings = vec![connection(site)];
    findings.extend(site.store.as_ref().into_iter().flat_map(store));
    findings.extend(behind(site));
    findings.extend(leases(site));
    findings.extend(versions(site));
    findings.extend(Difference::all(&site.hosts).iter().map(differing));
    let gone = site.hosts.iter().filter(|host| host.lease.is_none());
    findings.extend(gone.map(|host| {
        let slots: u64 = host.held.iter().map(|(_, count)| count).sum();
        let when = host.absent.map_or_else(String::new, |(_, left)| format!(", free in {}", brief(left)));
        let text = format!("{} has gone, with {} of the site{when}", visible(&host.name), slots_of(slots));
        Finding::note("site-host-gone", text)
    }));
    findings
}

fn connection(site: &AboutSite) -> Finding {
    if let Some(trouble) = &site.trouble {
        let text = format!("for {}: {}", brief(trouble.lasts), visible(&trouble.text));
        let finding = if site.is_open {
            Finding::warning("site-trouble", text)
        } else {
            Finding::fault("site-unreached", format!("it grants no slots here, {text}"))
        };
        return finding
            .fix(trouble.advice.as_ref().map_or_else(|| HEALTH.to_owned(), |advice| sentence(advice)));
    }
    if !site.is_open {
        return Finding::fault(
            "site-unreached",
            "it grants no slots here, for a reason that is not known yet",
        )
        .fix(HEALTH);
    }
    let there = site.hosts.iter().filter(|host| host.lease.is_some()).count();
    let lag = site.lag.map_or_else(String::new, |lag| format!("; the mirror is {} behind", brief(lag)));
    Finding::fine(
        "site",
        format!(
            "{} of it {} there, {} among them{lag}",
            counted(there, "host"),
            if there == 1 { "is" } else { "are" },
            site.host.shown()
        ),
    )
}

/// The default quota of etcd.
const USUAL_QUOTA: u64 = 2 * 1024 * 1024 * 1024;

/// An etcd that has kept this many changes, and all of them, does not compact by itself.
const MANY_CHANGES: u64 = 1000;

/// etcd keeps all changes until it is compacted; when it is full, it accepts no writes.
fn store(&AboutStore { size, quota, is_full, uncompacted }: &AboutStore) -> Vec<Finding> {
    let quota = quota.unwrap_or(USUAL_QUOTA);
    let in_mib = |bytes: u64| bytes / (1024 * 1024);
    let mut findings = Vec::new();
    if is_full {
        let text = "etcd is full: it accepts no writes, and launches are refused";
        findings.push(Finding::fault("site-full", text).fix(
            "etcdctl compact REVISION; etcdctl defrag --cluster; etcdctl alarm disarm; and let it compact by itself",
        ));
    } else if size > quota / 5 * 4 {
        let text = format!("etcd uses {} MiB of its quota of {} MiB", in_mib(size), in_mib(quota));
        findings.push(
            Finding::warning("site-nearly-full", text)
                .fix("etcdctl compact REVISION; etcdctl defrag --cluster; or --quota-backend-bytes"),
        );
    }
    if let Some(changes) = uncompacted.filter(|changes| *changes > MANY_CHANGES) {
        let text = format!(
            "etcd has kept all of its {changes} changes: it may not compact by itself, and would become full"
        );
        findings.push(
            Finding::note("site-uncompacted", text)
                .fix("Set --auto-compaction-mode=periodic --auto-compaction-retention=1h for each member."),
        );
    }
    findings
}

/// With a mirror that is far behind, launches are retried repeatedly.
fn behind(site: &AboutSite) -> Option<Finding> {
    let lag = site.lag.filter(|lag| *lag > site.ttl / 2)?;
    let text =
        format!("the mirror of this host is {} behind: launches take long, or are refused", brief(lag));
    Some(Finding::warning("site-behind", text).fix(HEALTH))
}

fn leases(site: &AboutSite) -> Option<Finding> {
    (site.leases_lost > 0).then(|| {
        let text = format!(
            "this host lost its lease {} since the agent started: etcd, or the network to it, is at times \
                slower than the ttl of {} s",
            counted(usize::try_from(site.leases_lost).unwrap_or(usize::MAX), "time"),
            site.ttl.as_secs()
        );
        Finding::note("site-leases-lost", text)
    })
}

/// Agents of several versions work together, but one may have been forgotten.
fn versions(site: &AboutSite) -> Option<Finding> {
    let there = || site.hosts.iter().filter(|host| host.lease.is_some());
    let versions: BTreeSet<&str> = there().filter_map(|host| host.version.as_deref()).collect();
    if versions.len() < 2 {
        return None;
    }
    let own = env!("CARGO_PKG_VERSION");
    let others = there().filter(|host| host.version.as_deref() != Some(own));
    let others: Vec<String> = others
        .map(|host| format!("{} {}", visible(&host.name), visible(host.version.as_deref().unwrap_or("?"))))
        .collect();
    let text = format!("agents have different versions; other than {own}: {}", others.join(", "));
    let fix = format!("On those hosts, once they have the same package: {}", restart());
    Some(Finding::note("site-versions", text).fix(fix))
}

/// Each host admits by its own policy. That may be meant.
fn differing(difference: &Difference) -> Finding {
    let text = format!("the policies of the hosts differ about {}", difference.text());
    Finding::note("site-policies-differ", text)
        .fix("If that is not meant, on each host: rungate policy install FILE")
}

fn slots_of(count: u64) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), "slot")
}

/// Advice, written to start in the middle of a message.
fn sentence(advice: &str) -> String {
    let mut letters = advice.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}

// The hosts that keep limits together, as the agent of this one sees them.

fn to_text(site: &AboutSite) -> String {
    let endpoints: Vec<String> = site.endpoints.iter().map(|endpoint| endpoint.shown().to_string()).collect();
    let mut text = format!("etcd    {} below {}\n", endpoints.join(", "), visible(&site.prefix));
    text += &format!("host    {}: {}\n", visible(&site.host), state(site));
    text += &format!("mirror  {}\n", mirror(site.lag));
    text += &format!("lease   lost {} since the agent started\n", times(site.leases_lost));
    if let Some(trouble) = &site.trouble {
        text += &wrong(trouble);
    }
    for difference in Difference::all(&site.hosts) {
        text += &format!("differs {}\n", difference.text());
    }
    text.push('\n');
    text + &hosts(&site.hosts)
}

fn state(site: &AboutSite) -> String {
    let seen =
        site.seen.map_or_else(|| "never seen there".to_owned(), |seen| format!("seen {} ago", brief(seen)));
    match (site.is_open, site.left) {
        (true, Some(left)) => {
            format!("connected, {seen}, considered dead in {} without contact", brief(left))
        }
        (_, Some(left)) if left.is_zero() => format!("lost, {seen}: others may have taken its slots"),
        (_, Some(left)) => format!("not connected, {seen}, considered dead in {}", brief(left)),
        (_, None) => format!("not connected, {seen}"),
    }
}

fn mirror(lag: Option<Duration>) -> String {
    lag.map_or_else(|| "never read".to_owned(), |lag| format!("{} behind", brief(lag)))
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn wrong(trouble: &AboutTrouble) -> String {
    let AboutTrouble { text, advice, lasts } = trouble;
    let advice = advice.as_ref().map_or_else(String::new, |advice| format!("        {}\n", visible(advice)));
    format!("wrong   for {}: {}\n{advice}", brief(*lasts), visible(text))
}

fn hosts(hosts: &[AboutHost]) -> String {
    let mut table = Table::new(&["HOST", "VERSION", "LEASE", ">WAIT", "HOLDS"]);
    for host in hosts {
        let held = host.held.iter().map(|(name, count)| format!("{} {count}", visible(name)));
        let held: Vec<String> = held.collect();
        table.row([
            visible(&host.name),
            host.version.as_ref().map_or_else(|| "-".to_owned(), visible),
            lease(host),
            host.waiting.to_string(),
            if held.is_empty() { "-".to_owned() } else { held.join(", ") },
        ]);
    }
    table.render()
}

fn lease(host: &AboutHost) -> String {
    match (host.lease, host.absent) {
        (Some(lease), _) => format!("{lease:x}"),
        (None, Some((absent, left))) => {
            format!("gone for {}, free in {}", brief(absent), brief(left))
        }
        (None, None) => "gone".to_owned(),
    }
}

fn to_json(site: &AboutSite) -> Value {
    let AboutSite {
        host,
        endpoints,
        prefix,
        ttl,
        is_open,
        seen,
        left,
        lag,
        leases_lost,
        trouble,
        store,
        hosts,
        unreadable,
        requests: _,
    } = site;
    let of_trouble = |AboutTrouble { text, advice, lasts }: &AboutTrouble| json!({ "text": text, "advice": advice, "lasts": lasts.as_secs_f64() });
    json!({
        "host": host,
        "endpoints": endpoints,
        "prefix": prefix,
        "ttl": ttl.as_secs_f64(),
        "connected": is_open,
        "seen": seconds(*seen),
        "left": seconds(*left),
        "lag": seconds(*lag),
        "leases_lost": leases_lost,
        "trouble": trouble.as_ref().map(of_trouble),
        "etcd": store.as_ref().map(of_store),
        "hosts": hosts.iter().map(of_host).collect::<Vec<Value>>(),
        "unreadable": unreadable.iter().map(of_slot).collect::<Vec<Value>>(),
        "differences": Difference::all(hosts).iter().map(of_difference).collect::<Vec<Value>>(),
    })
}

fn of_store(AboutStore { size, quota, is_full, uncompacted }: &AboutStore) -> Value {
    json!({ "bytes": size, "quota": quota, "full": is_full, "uncompacted": uncompacted })
}

fn of_difference(Difference { repository, said }: &Difference) -> Value {
    let said = said.iter().map(|(keys, hosts)| json!({ "hosts": hosts, "keys": keys }));
    json!({ "repository": repository, "said": said.collect::<Vec<Value>>() })
}

fn of_slot(UnreadableSlot { table, slot, key }: &UnreadableSlot) -> Value {
    json!({ "table": table, "slot": slot, "key": key })
}

fn of_host(host: &AboutHost) -> Value {
    let AboutHost { name, version, lease, absent, waiting, held, repositories: _ } = host;
    let held: Map<String, Value> = held.iter().map(|(name, count)| (name.clone(), json!(count))).collect();
    json!({
        "host": name,
        "version": version,
        "lease": lease.map(|lease| format!("{lease:x}")),
        "absent": seconds(absent.map(|(absent, _)| absent)),
        "free_in": seconds(absent.map(|(_, left)| left)),
        "waiting": waiting,
        "slots": held,
    })
}

fn seconds(duration: Option<Duration>) -> Option<f64> {
    duration.map(|duration| duration.as_secs_f64())
}

// How the policies of the hosts of a site differ for one repository. Each host admits by its own.

/// The differences of a repository between hosts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Difference {
    pub(crate) repository: String,
    /// Keys with their values, as far as they are not the same on all hosts, and the hosts.
    pub(crate) said: Vec<(String, Vec<String>)>,
}

impl Difference {
    /// All differences between the present hosts.
    pub(crate) fn all(hosts: &[AboutHost]) -> Vec<Self> {
        let mut by_name: BTreeMap<&str, Vec<(&str, BTreeSet<&str>)>> = BTreeMap::new();
        for host in hosts.iter().filter(|host| host.lease.is_some()) {
            for (name, keys) in &host.repositories {
                by_name.entry(name).or_default().push((&host.name, keys.lines().collect()));
            }
        }
        by_name.into_iter().filter_map(|(name, said)| Self::of(name, &said)).collect()
    }

    fn of(repository: &str, said: &[(&str, BTreeSet<&str>)]) -> Option<Self> {
        let (_, first) = said.first()?;
        let common =
            said.iter().fold(first.clone(), |common, (_, keys)| common.intersection(keys).copied().collect());
        let mut by_keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (host, keys) in said {
            let own: Vec<&str> = keys.difference(&common).copied().collect();
            by_keys.entry(own.join(", ")).or_default().push((*host).to_owned());
        }
        let said: Vec<(String, Vec<String>)> = by_keys.into_iter().collect();
        (said.len() > 1).then(|| Self { repository: repository.to_owned(), said })
    }

    /// `seats: limit = 1 on lab1, lab3; limit = 2 on lab2`
    pub(crate) fn text(&self) -> String {
        let part = |(keys, hosts): &(String, Vec<String>)| {
            let hosts: Vec<String> = hosts.iter().map(visible).collect();
            let keys = if keys.is_empty() { "nothing of that".to_owned() } else { visible(keys) };
            format!("{keys} on {}", hosts.join(", "))
        };
        let parts: Vec<String> = self.said.iter().map(part).collect();
        format!("{}: {}", visible(&self.repository), parts.join("; "))
    }
}

// The agent: whether it answers, and its version, if the policy uses it.

/// Where the agent of the package keeps its state.
const STATE: &str = "/run/rungate-agent/state";

pub(super) fn look_at_agent(examination: &Context) -> Section {
    let Some(policy) = examination.policy() else {
        return Section::without_policy(Topic::Agent);
    };
    let kept = policy.repositories().iter().filter(|known| known.keeper() != Keeper::File);
    let names: Vec<String> = kept.map(Repository::shown_name).map(|name| name.shown().to_string()).collect();
    if names.is_empty() {
        return Section::new(Topic::Agent, "not needed: lock files keep all slots", Vec::new());
    }
    let summary = format!("keeps {}", names.join(", "));
    let findings = match agent::tables() {
        Ok(tables) => {
            let answers = format!("{SOCKET} answers; {} in use", counted(tables.len(), "table"));
            let version = version(agent::about().ok().as_ref().map(|about| about.version.as_str()));
            let of_root = examination.is_root().then(|| [closed_socket(), unwritable_state()]);
            let of_root = of_root.into_iter().flatten().flatten();
            [Finding::fine("agent", answers), version].into_iter().chain(of_root).collect()
        }
        Err(error) => vec![
            Finding::fault("agent-silent", format!("{error}: launches that need it are refused"))
                .fix(start()),
        ],
    };
    Section::new(Topic::Agent, summary, findings)
}

/// Root reaches every socket. A launch connects as its user, which needs the permission to write.
fn closed_socket() -> Option<Finding> {
    let barrier = barrier(Path::new(SOCKET), Want::Write)?;
    let text =
        format!("{}: users cannot reach the agent: their launches that need it are refused", barrier.text());
    Some(Finding::fault("agent-closed", text).fix(barrier.fix()))
}

/// Writes a file beside those that the agent writes before it grants a slot.
fn unwritable_state() -> Option<Finding> {
    let directory = Path::new(STATE);
    let path = directory.join(format!(".doctor-{}", process::id()));
    let written = File::create_new(&path).and_then(|mut file| {
        file.write_all(&[0; 4096])?;
        file.sync_all()
    });
    let _ = fs::remove_file(&path);
    let error = written.err().filter(|error| error.kind() != ErrorKind::NotFound)?;
    let errno = errno_of(&error);
    let text = format!(
        "{}: {}: it cannot save its state, and launches are refused (74)",
        directory.shown(),
        errno.desc()
    );
    Some(Finding::fault("agent-state", text).fix(how_to_mend(errno, &path)))
}

/// An agent that was not restarted after an upgrade continues with the old program.
fn version(of_agent: Option<&str>) -> Finding {
    let own = env!("CARGO_PKG_VERSION");
    let text = match of_agent {
        Some(version) if version == own => {
            return Finding::fine("agent-version", format!("its version is {own}, like the launcher's"));
        }
        Some(version) => format!("its version is {}, the launcher's is {own}", visible(version)),
        None => format!("its version is unknown, the launcher's is {own}"),
    };
    Finding::warning("agent-version", text).fix(restart())
}

fn start() -> &'static str {
    if boot::is_systemd() {
        "systemctl enable --now rungate-agent.socket"
    } else {
        "Start rungate-agent as root, from whatever starts services here."
    }
}

pub(super) fn restart() -> &'static str {
    if boot::is_systemd() {
        "systemctl restart rungate-agent.service"
    } else {
        "Start rungate-agent again, as root; programs keep their slots meanwhile."
    }
}

#[cfg(test)]
mod agent_tests {
    use super::*;

    /// A test cannot have another release, so another version is only simulated here.
    #[test]
    fn an_agent_of_another_version_is_warned_of() {
        let own = env!("CARGO_PKG_VERSION");
        let fine = Finding::fine("agent-version", format!("its version is {own}, like the launcher's"));
        assert_eq!(version(Some(own)), fine);
        for (of_agent, said) in [
            (Some("0.0.9"), format!("its version is 0.0.9, the launcher's is {own}")),
            (None, format!("its version is unknown, the launcher's is {own}")),
        ] {
            assert_eq!(version(of_agent), Finding::warning("agent-version", said).fix(restart()));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tools::doctor::site::*;

    const OWN: &str = env!("CARGO_PKG_VERSION");

    fn host(name: &str) -> AboutHost {
        let (name, version) = (name.to_owned(), Some(OWN.to_owned()));
        let (held, repositories) = (Vec::new(), Vec::new());
        AboutHost { name, version, lease: Some(7), absent: None, waiting: 0, held, repositories }
    }

    /// A site of two hosts at which all is well.
    fn site() -> AboutSite {
        AboutSite {
            store: None,
            host: "lab1".to_owned(),
            endpoints: Vec::new(),
            prefix: "/rungate/".to_owned(),
            ttl: Duration::from_secs(10),
            is_open: true,
            seen: Some(Duration::ZERO),
            left: Some(Duration::from_secs(10)),
            lag: Some(Duration::from_secs(5)),
            leases_lost: 0,
            trouble: None,
            hosts: vec![host("lab1"), host("lab2")],
            unreadable: Vec::new(),
            requests: None,
        }
    }

    fn trouble(advice: Option<&str>) -> AboutTrouble {
        let (text, advice) = ("etcd1: connection refused".to_owned(), advice.map(str::to_owned));
        AboutTrouble { text, advice, lasts: Duration::from_secs(90) }
    }

    /// The findings besides the presence of hosts.
    #[track_caller]
    fn besides(site: &AboutSite) -> Vec<Finding> {
        let mut findings = of_site(site);
        assert_eq!(findings.remove(0).code, "site");
        findings
    }

    #[test]
    fn a_site_at_which_all_is_well_says_who_is_there() {
        let well = Finding::fine("site", "2 hosts of it are there, lab1 among them; the mirror is 5s behind");
        assert_eq!(of_site(&site()), [well]);
        let alone = AboutSite { hosts: vec![host("lab1")], lag: None, ..site() };
        assert_eq!(of_site(&alone), [Finding::fine("site", "1 host of it is there, lab1 among them")]);
    }

    #[test]
    fn a_site_that_gives_no_slots_is_a_fault() {
        let silent = AboutSite { is_open: false, ..site() };
        let says = "it grants no slots here, for a reason that is not known yet";
        assert_eq!(of_site(&silent), [Finding::fault("site-unreached", says).fix(HEALTH)]);
        let lost = AboutSite { trouble: Some(trouble(None)), ..silent };
        let says = "it grants no slots here, for 1m30s: etcd1: connection refused";
        assert_eq!(of_site(&lost), [Finding::fault("site-unreached", says).fix(HEALTH)]);
        let advised = AboutSite { trouble: Some(trouble(Some("see whether etcd runs"))), ..site() };
        let says = "for 1m30s: etcd1: connection refused";
        let fix = "See whether etcd runs";
        assert_eq!(of_site(&advised), [Finding::warning("site-trouble", says).fix(fix)]);
    }

    #[test]
    fn a_mirror_that_is_far_behind_is_warned_of() {
        let behind = AboutSite { lag: Some(Duration::from_secs(6)), ..site() };
        let says = "the mirror of this host is 6s behind: launches take long, or are refused";
        assert_eq!(besides(&behind), [Finding::warning("site-behind", says).fix(HEALTH)]);
    }

    #[test]
    fn what_may_come_again_is_a_note() {
        let lost = AboutSite { leases_lost: 2, ..site() };
        let says = "this host lost its lease 2 times since the agent started: etcd, or the network to it, \
            is at times slower than the ttl of 10 s";
        assert_eq!(besides(&lost), [Finding::note("site-leases-lost", says)]);

        let mut gone = site();
        let absent = Some((Duration::from_secs(3), Duration::from_secs(7)));
        let held = vec![("seats".to_owned(), 2), ("boards".to_owned(), 1)];
        gone.hosts[1] = AboutHost { lease: None, absent, held, version: None, ..host("lab2") };
        let says = "lab2 has gone, with 3 slots of the site, free in 7s";
        assert_eq!(besides(&gone), [Finding::note("site-host-gone", says)]);
    }

    #[test]
    fn hosts_that_differ_are_named_with_what_they_say() {
        let mut site = site();
        site.hosts.push(host("lab3"));
        let of = |keys: &str| vec![("seats".to_owned(), keys.to_owned())];
        for (host, keys) in site.hosts.iter_mut().zip([
            "limit = 1\nwait = \"5m\"\n",
            "limit = 2\n",
            "limit = 1\nwait = \"5m\"\n",
        ]) {
            host.repositories = of(keys);
        }
        let says = "the policies of the hosts differ about seats: limit = 1, wait = \"5m\" on lab1, lab3; \
                    limit = 2 on lab2";
        let fix = "If that is not meant, on each host: rungate policy install FILE";
        assert_eq!(besides(&site), [Finding::note("site-policies-differ", says).fix(fix)]);

        site.hosts[1].repositories = of("limit = 1\n");
        let says = "the policies of the hosts differ about seats: nothing of that on lab2; \
                    wait = \"5m\" on lab1, lab3";
        assert_eq!(besides(&site), [Finding::note("site-policies-differ", says).fix(fix)]);

        // Absent hosts, and hosts that do not have the repository, do not count.
        site.hosts[1].lease = None;
        site.hosts[2].repositories.clear();
        let differing = |finding: &Finding| finding.code == "site-policies-differ";
        assert!(!besides(&site).iter().any(differing));
    }

    #[test]
    fn agents_of_several_versions_are_named() {
        let mut mixed = site();
        mixed.hosts[1].version = Some("0.0.9".to_owned());
        let says = format!("agents have different versions; other than {OWN}: lab2 0.0.9");
        let fix = format!("On those hosts, once they have the same package: {}", restart());
        assert_eq!(besides(&mixed), [Finding::note("site-versions", says).fix(fix)]);
    }
}
