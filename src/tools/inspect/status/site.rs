//! `rungate status --site`: the hosts that keep limits together, as the agent of this one sees them.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{
    judge::terms::keyword::Keeper,
    keeper::agent::{
        self,
        about::{About, AboutHost, AboutSite, AboutStore, AboutTrouble, UnreadableSlot},
    },
    launch::situation::Situation,
    text::{
        clock::brief,
        columns::answer,
        error::Error,
        escape::{Show, visible},
        exit_status::ExitStatus,
        json,
        print::print,
        table::Table,
    },
    tools::shared::differences::Difference,
};

/// What is said where no agent runs, and nothing wants one.
const NO_AGENT: &str = "none: no agent runs here, and no repository of the policy is kept by one\n";

/// Shows the site. The status says whether slots of it can be had here.
pub(super) fn run(is_json: bool) -> Result<u8, Error> {
    let about = match agent::about() {
        Ok(about) => about,
        Err(_) if !is_agent_needed() => {
            let none = json!({ "version": Value::Null, "site": Value::Null });
            return print(&if is_json { json::render(&none) } else { NO_AGENT.to_owned() });
        }
        Err(error) => {
            return Err(Error::new(ExitStatus::Repository, error.to_string()).advise(error.advice()));
        }
    };
    print(&if is_json { to_json(&about) } else { answer(&to_text(&about)) })?;
    let is_closed = about.site.is_some_and(|site| !site.is_open);
    Ok(if is_closed { ExitStatus::Repository } else { ExitStatus::Success } as u8)
}

/// Whether a repository of the policy is kept by an agent; a policy with faults may have some.
fn is_agent_needed() -> bool {
    let policy = Situation::of_this_process().and_then(|situation| situation.load_policy(None));
    policy.map_or(true, |policy| policy.repositories().iter().any(|known| known.keeper() != Keeper::File))
}

fn to_text(about: &About) -> String {
    let Some(site) = &about.site else {
        return "none: the agent of this host shares nothing, for there is no [site] in /etc/rungate/agent.toml\n"
            .to_owned();
    };
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
        (true, Some(left)) => format!("connected, {seen}, not given up for another {}", brief(left)),
        (_, Some(left)) if left.is_zero() => format!("lost, {seen}: others may have taken its slots"),
        (_, Some(left)) => format!("not connected, {seen}, given up in {}", brief(left)),
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

fn to_json(about: &About) -> String {
    let About { version, site } = about;
    json::render(&json!({ "version": version, "site": site.as_ref().map(of_site) }))
}

fn of_site(site: &AboutSite) -> Value {
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
