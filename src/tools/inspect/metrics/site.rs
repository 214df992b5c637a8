//! How the agent of this host is, and how it stands with others. The families are there in any case; samples
//! only where the policy has the agent keep something.

use crate::{
    judge::terms::keyword::Keeper,
    keeper::agent::{self, about::AboutSite},
    policy::Policy,
    text::exposition::{Exposition, Kind},
};

/// A family of one sample.
struct Figure {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&AboutSite) -> Option<f64>,
}

const FIGURES: [Figure; 6] = [
    Figure {
        name: "rungate_site_connected",
        kind: Kind::Gauge,
        help: "Whether the agent can give slots of the site now.",
        value: |site| Some(f64::from(u8::from(site.is_open))),
    },
    Figure {
        name: "rungate_site_mirror_lag_seconds",
        kind: Kind::Gauge,
        help: "How far what the agent knows of the site is behind. There is none before it was ever read.",
        value: |site| Some(site.lag?.as_secs_f64()),
    },
    Figure {
        name: "rungate_site_seen_age_seconds",
        kind: Kind::Gauge,
        help: "How long ago this host was last found to be there. There is none before that was ever so.",
        value: |site| Some(site.seen?.as_secs_f64()),
    },
    Figure {
        name: "rungate_site_ttl_seconds",
        kind: Kind::Gauge,
        help: "How long this host may be silent before its slots are given to others.",
        value: |site| Some(site.ttl.as_secs_f64()),
    },
    Figure {
        name: "rungate_site_leases_lost_total",
        kind: Kind::Counter,
        help: "How often the lease of this host was lost since its agent started.",
        value: |site| Some(super::number(site.leases_lost)),
    },
    Figure {
        name: "rungate_site_hosts",
        kind: Kind::Gauge,
        help: "How many hosts of the site are there.",
        value: |site| {
            Some(super::number(site.hosts.iter().filter(|host| host.lease.is_some()).count() as u64))
        },
    },
];

pub(super) fn add(exposition: &mut Exposition, policy: &Policy) {
    let is_needed = policy.repositories().iter().any(|known| known.keeper() != Keeper::File);
    let about = is_needed.then(agent::about);
    let help = "Whether the agent answers; its version where it does.";
    let mut up = exposition.family("rungate_agent_up", Kind::Gauge, help);
    match &about {
        None => {}
        Some(Ok(about)) => up.sample(&[("version", Some(&about.version))], 1),
        Some(Err(_)) => up.sample(&[], 0),
    }
    let site = about.and_then(Result::ok).and_then(|about| about.site);
    for Figure { name, kind, help, value } in FIGURES {
        let mut family = exposition.family(name, kind, help);
        if let Some(value) = site.as_ref().and_then(value) {
            family.sample(&[], value);
        }
    }
}
