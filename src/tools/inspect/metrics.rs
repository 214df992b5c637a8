//! `rungate metrics`: use, limits and refusals in the text format of Prometheus. Unreadable parts are left
//! out with an error, so that the rest is still printed.

use std::{
    fmt::{Display, Write as _},
    io,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    cli::MetricsArguments,
    judge::terms::Keeper,
    keeper::{
        KeeperError, TableSnapshot, Waiter,
        agent::{
            self,
            message::{AboutSite, AboutWork, Latency},
        },
    },
    launch::Situation,
    policy::{Log, Policy, Repository},
    sys::{errno_of, replaced_file},
    text::{Error, ExitStatus, print, stream, visible},
    tools::{
        logs::{
            parsers::Skipped,
            reading,
            statistics::{Counts, Reading, Reason, Repository as Counted, Statistics},
        },
        shared::{Free, ListedFile, repositories},
    },
};
use jiff::Timestamp;

/// All users may read it: it contains only numbers.
const MODE: u32 = 0o644;

/// Prints the metrics, or writes them to a file.
pub(crate) fn run(arguments: &MetricsArguments, situation: &Situation) -> Result<u8, Error> {
    let (policy, faults) = situation.salvage_policy();
    let mut exposition = Exposition::default();
    let version = [("version", Some(env!("CARGO_PKG_VERSION")))];
    exposition.family("rungate_build_info", Kind::Gauge, "The version of rungate.").sample(&version, 1);
    let mut valid =
        exposition.family("rungate_policy_valid", Kind::Gauge, "Whether the policy has no fault.");
    valid.sample(&[], u8::from(faults.is_none()));

    let repositories = match &faults {
        None => repositories::wanted(&policy, situation, &[])?,
        Some(_) => repositories::despite_faults(&policy, situation),
    };
    let generation = policy.generation(Timestamp::now());
    let surveyed: Vec<Surveyed> = repositories
        .into_iter()
        .flat_map(|repository| repository.files)
        .map(|file| {
            let survey = file.survey();
            let free = survey.as_ref().ok().and_then(|survey| file.free(survey, generation));
            (survey, file, free)
        })
        .collect();
    let mut status = ExitStatus::Success;
    for (survey, file, _) in &surveyed {
        if let Err(error) = survey {
            stream::complain(&format!("rungate: {}: {error}", visible(file.title())));
            status = ExitStatus::Repository;
        }
        if let Some(failure) = file.failure() {
            stream::complain(&format!("rungate: {}: {failure}", visible(file.title())));
            status = ExitStatus::System;
        }
    }
    add_surveys(&mut exposition, &surveyed);
    add(&mut exposition, &policy);
    if let Some((path, log)) = reading::file_of(&policy, &situation.host) {
        match counts_of(&path, &policy) {
            Ok(counts) => add_counts(&mut exposition, &counts, &policy, log),
            Err(error) => {
                let reason = errno_of(&error).desc();
                stream::complain(&format!("rungate: the log {} cannot be read: {reason}", visible(&path)));
                status = ExitStatus::System;
            }
        }
    }

    if let Some(faults) = faults {
        stream::complain(&faults.to_string());
        status = faults.status();
    }
    let text = exposition.into_text();
    match &arguments.output {
        Some(path) => write(&situation.directory.join(path), &text)?,
        None => drop(print(&text)?),
    }
    Ok(status as u8)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    replaced_file::replace(path, text.as_bytes(), MODE).map_err(|failure| {
        let text = format!("{} cannot be written: {failure}", visible(path));
        Error::new(ExitStatus::System, text)
    })
}

type Surveyed = (Result<TableSnapshot, KeeperError>, ListedFile, Option<Free>);

/// A family of samples, one for each lock file that can be checked.
struct Gauge {
    name: &'static str,
    help: &'static str,
    value: fn(&ListedFile, &TableSnapshot, Option<Free>) -> Option<f64>,
}

const GAUGES: [Gauge; 14] = [
    Gauge {
        name: "rungate_slots_limit",
        help: "Limit of the repository, in slots.",
        value: |file, _, _| file.limit().map(number),
    },
    Gauge {
        name: "rungate_slots_out_of_order",
        help: "Number of named slots that are out of order. Missing if the slots have no names.",
        value: |file, _, _| (!file.names().is_empty()).then(|| number(file.out_of_order().len() as u64)),
    },
    Gauge {
        name: "rungate_slots_used",
        help: "Number of slots in use. It exceeds the limit if that was lowered.",
        value: |_, survey, _| Some(number(survey.used)),
    },
    Gauge {
        name: "rungate_slots_used_outside",
        help: "Number of slots that are in use outside rungate, by a sample that counts. Missing without one.",
        value: |file, _, _| Some(number(file.outside()?.ok()?.slots)),
    },
    Gauge {
        name: "rungate_outside_sample_age_seconds",
        help: "Seconds since use outside rungate was measured. Missing if no sample counts.",
        value: |file, _, _| Some(file.outside()?.ok()?.age.as_secs_f64()),
    },
    Gauge {
        name: "rungate_programs_past_rungate",
        help: "Number of programs on this host that need a slot and run without one, as far as they are \
            measured.",
        value: |file, _, _| Some(number(file.outside()?.ok()?.programs.len() as u64)),
    },
    Gauge {
        name: "rungate_slots_kept",
        help: "Number of idle slots that are kept for some users.",
        value: |file, survey, _| Some(number(file.kept_idle(survey))),
    },
    Gauge {
        name: "rungate_slots_kept_for_queue",
        help: "Number of free slots that only waiting launches may acquire.",
        value: |_, _, free| free.map(|free| number(free.for_queue)),
    },
    Gauge {
        name: "rungate_launches_waiting",
        help: "Number of launches that wait for the repository.",
        value: |_, survey, _| Some(number(survey.waiting.len() as u64)),
    },
    Gauge {
        name: "rungate_queue_limit",
        help: "Maximum length of the queue. Missing if it has no maximum.",
        value: |file, _, _| file.queue.most.map(|most| number(most.into())),
    },
    Gauge {
        name: "rungate_oldest_waiter_age_seconds",
        help: "Seconds that the first waiting launch has waited, since its process started. Missing if no \
            launch waits.",
        value: |_, survey, _| Some(survey.waiting.iter().filter_map(Waiter::waited).max()?.as_secs_f64()),
    },
    Gauge {
        name: "rungate_slots_unaccounted",
        help: "Number of slots in use whose holder cannot be seen: in another container or host, or not a \
            launch.",
        value: |_, survey, _| {
            let unknown = survey.holders.iter().filter(|holder| holder.pid.is_none());
            Some(number(unknown.map(|holder| holder.slots.1.abs_diff(holder.slots.0) + 1).sum()))
        },
    },
    Gauge {
        name: "rungate_oldest_holder_age_seconds",
        help: "Seconds that the oldest holder has held its slot. Missing if no slot is held.",
        value: |_, survey, _| Some(survey.oldest()?.age(SystemTime::now())?.as_secs_f64()),
    },
    Gauge {
        name: "rungate_last_start_timestamp_seconds",
        help: "Time of the last start under the repository, in seconds since 1970.",
        value: |_, survey, _| {
            let since = survey.last_start?.duration_since(UNIX_EPOCH).ok()?;
            Some(since.as_secs_f64())
        },
    },
];

#[expect(clippy::cast_precision_loss, reason = "the format has no other numbers")]
fn number(count: u64) -> f64 {
    count as f64
}

fn add_surveys(exposition: &mut Exposition, surveyed: &[Surveyed]) {
    let mut readable = exposition.family(
        "rungate_repository_readable",
        Kind::Gauge,
        "Whether the lock file of the repository could be read.",
    );
    for (survey, file, _) in surveyed {
        readable.sample(&labels(file), u8::from(survey.is_ok()));
    }
    for gauge in GAUGES {
        let mut family = exposition.family(gauge.name, Kind::Gauge, gauge.help);
        for (survey, file, free) in surveyed {
            if let Some(value) = survey.as_ref().ok().and_then(|survey| (gauge.value)(file, survey, *free)) {
                family.sample(&labels(file), value);
            }
        }
    }
}

fn labels(file: &ListedFile) -> [(&'static str, Option<&str>); 2] {
    [("repository", Some(&file.name)), ("member", file.member.as_deref())]
}

/// The totals of the log as it is now. They start again when the log is rotated, as counters may.
fn counts_of(path: &Path, policy: &Policy) -> io::Result<Counts> {
    let names = policy.repositories().iter().map(Repository::shown_name);
    let counts = Counts::new(policy.hours(), names, [].into_iter());
    let mut statistics = Statistics::new(Reading::default(), counts);
    match crate::tools::logs::parsers::each(path, |event| drop(statistics.see(event))) {
        // Lines that are no events do not count; long lines may have hidden some.
        Ok(skipped) => reading::complain_of(Skipped { others: 0, ..skipped }, path),
        // One that does not exist yet has none.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(statistics.finish())
}

/// Every repository of the policy has its counters from the start: a rate needs two values.
fn add_counts(exposition: &mut Exposition, counts: &Counts, policy: &Policy, log: &Log) {
    let is_known = |name: &str| policy.repositories().iter().any(|known| known.shown_name() == name);
    let mut refusals = exposition.family(
        "rungate_refusals_total",
        Kind::Counter,
        "Launches in the log that were refused, or would have been. Each counts for each repository that \
            refused it.",
    );
    let mut sample = |repository: Option<&str>, (reason, is_enforced): Reason, count: u64| {
        let enforced = if is_enforced { "true" } else { "false" };
        let labels = [("repository", repository), ("reason", Some(reason)), ("enforced", Some(enforced))];
        refusals.sample(&labels, count);
    };
    counts.refusals.iter().for_each(|(reason, count)| sample(None, *reason, *count));
    for (name, of) in counts.repositories.iter() {
        if is_known(name) && !of.refusals.contains_key(&("full", true)) {
            sample(Some(name), ("full", true), 0);
        }
        of.refusals.iter().for_each(|(reason, count)| sample(Some(name), *reason, *count));
    }
    let mut family = |name, help: &str, value: fn(&Counted) -> u64| {
        let mut family = exposition.family(name, Kind::Counter, help);
        for (repository, of) in counts.repositories.iter() {
            if is_known(repository) || value(of) > 0 {
                family.sample(&[("repository", Some(repository))], value(of));
            }
        }
    };
    family(
        "rungate_expired_holders_total",
        "Overdue holders in the log that were ended or had just exited.",
        |of| of.expired,
    );
    if log.has_every_event() {
        family("rungate_starts_total", "Programs in the log that were started with a slot.", |of| {
            of.cell.started()
        });
    }
}

// The state of this host's agent, and of its connection to others. The families are always printed; samples
// only if the policy uses the agent.

/// A family of one sample: a value that the agent reports about `T`.
struct Figure<T> {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&T) -> Option<f64>,
}

const WORK: [Figure<AboutWork>; 4] = [
    Figure {
        name: "rungate_agent_connections",
        kind: Kind::Gauge,
        help: "Number of clients that are connected to the agent.",
        value: |work| Some(number(work.connections)),
    },
    Figure {
        name: "rungate_agent_launches_waiting",
        kind: Kind::Gauge,
        help: "Number of launches of this host that wait in queues of the agent.",
        value: |work| Some(number(work.waiting)),
    },
    Figure {
        name: "rungate_agent_launches_holding",
        kind: Kind::Gauge,
        help: "Number of launches of this host that hold slots of the agent.",
        value: |work| Some(number(work.holding)),
    },
    Figure {
        name: "rungate_agent_declined_total",
        kind: Kind::Counter,
        help: "Requests that the agent declined because of a quota of [agent].",
        value: |work| Some(number(work.declined)),
    },
];

const FIGURES: [Figure<AboutSite>; 6] = [
    Figure {
        name: "rungate_site_connected",
        kind: Kind::Gauge,
        help: "Whether the agent can grant slots of the site now.",
        value: |site| Some(f64::from(u8::from(site.is_open))),
    },
    Figure {
        name: "rungate_site_mirror_lag_seconds",
        kind: Kind::Gauge,
        help: "Seconds that the agent's mirror of the site is behind. Missing before it was first read.",
        value: |site| Some(site.lag?.as_secs_f64()),
    },
    Figure {
        name: "rungate_site_seen_age_seconds",
        kind: Kind::Gauge,
        help: "Seconds since the site last saw this host. Missing before the first time.",
        value: |site| Some(site.seen?.as_secs_f64()),
    },
    Figure {
        name: "rungate_site_ttl_seconds",
        kind: Kind::Gauge,
        help: "Seconds for which this host may be silent before its slots are given to others.",
        value: |site| Some(site.ttl.as_secs_f64()),
    },
    Figure {
        name: "rungate_site_leases_lost_total",
        kind: Kind::Counter,
        help: "Number of times that this host lost its lease since its agent started.",
        value: |site| Some(number(site.leases_lost)),
    },
    Figure {
        name: "rungate_site_hosts",
        kind: Kind::Gauge,
        help: "Number of hosts in the site.",
        value: |site| Some(number(site.hosts.iter().filter(|host| host.lease.is_some()).count() as u64)),
    },
];

fn add(exposition: &mut Exposition, policy: &Policy) {
    let is_needed = policy.repositories().iter().any(|known| known.keeper() != Keeper::File);
    let about = is_needed.then(agent::about);
    let help = "Whether the agent answers, and its version.";
    let mut up = exposition.family("rungate_agent_up", Kind::Gauge, help);
    match &about {
        None => {}
        Some(Ok(about)) => up.sample(&[("version", Some(&about.version))], 1),
        Some(Err(_)) => up.sample(&[], 0),
    }
    let about = about.and_then(Result::ok);
    let work = about.as_ref().and_then(|about| about.work.as_ref());
    for Figure { name, kind, help, value } in WORK {
        let mut family = exposition.family(name, kind, help);
        if let Some(value) = work.and_then(value) {
            family.sample(&[], value);
        }
    }
    let site = about.as_ref().and_then(|about| about.site.as_ref());
    for Figure { name, kind, help, value } in FIGURES {
        let mut family = exposition.family(name, kind, help);
        if let Some(value) = site.and_then(value) {
            family.sample(&[], value);
        }
    }
    let latencies = [
        (
            "rungate_agent_decision_duration_seconds",
            "From a launch's request to the agent's first answer.",
            work.map(|work| &work.decisions),
        ),
        (
            "rungate_agent_etcd_request_duration_seconds",
            "How long etcd took for its answers to the agent.",
            site.and_then(|site| site.requests.as_ref()),
        ),
    ];
    for (name, help, latency) in latencies {
        let mut family = exposition.family(name, Kind::Histogram, help);
        if let Some(Latency { counts, longer, sum }) = latency {
            let bounds = Latency::BOUNDS.iter().map(|bound| Duration::from_micros(*bound).as_secs_f64());
            family.histogram(bounds.zip(counts.iter().copied()), *longer, sum.as_secs_f64());
        }
    }
}

// Metrics in the text format of Prometheus and its `node_exporter`: families with a name, a kind and a
// sentence, and samples with labels (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

/// The kind of a family's values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// A state: it goes up and down.
    Gauge,
    /// A count: it only goes up, or starts again.
    Counter,
    /// Counts of values by their size.
    Histogram,
}

/// The text, family by family.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a family. Its samples follow before the next one begins.
    pub(crate) fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        };
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text: &mut self.text, name }
    }
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// A family whose samples are being written.
pub(crate) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    /// Adds a sample. A label without a value is left out.
    pub(crate) fn sample(&mut self, labels: &[(&str, Option<&str>)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .filter_map(|(name, value)| Some(format!("{name}=\"{}\"", label(value.as_ref()?))))
            .collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "{}{labels} {value}", self.name);
    }

    /// Adds the samples of a histogram: for each bound, the number of values above the previous bound and up
    /// to this one; then the number above all bounds, and the sum.
    pub(crate) fn histogram(&mut self, counts: impl Iterator<Item = (f64, u64)>, longer: u64, sum: f64) {
        let (name, mut total) = (self.name, 0_u64);
        for (bound, count) in counts {
            total = total.saturating_add(count);
            let _ = writeln!(self.text, "{name}_bucket{{le=\"{bound}\"}} {total}");
        }
        total = total.saturating_add(longer);
        let _ = writeln!(
            self.text,
            "{name}_bucket{{le=\"+Inf\"}} {total}\n{name}_sum {sum}\n{name}_count {total}"
        );
    }
}

/// A value in quotes. Control characters are escaped first, so no newline is left.
fn label(value: &str) -> String {
    visible(value).replace('\\', r"\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_end_its_sample() {
        let mut exposition = Exposition::default();
        let mut family = exposition.family("seats", Kind::Gauge, "Seats\\chairs.\nAll of them.");
        family.sample(&[], 1);
        family.sample(&[("member", None), ("repository", Some("a\"} 2\nb\\"))], 0.5);
        assert_eq!(
            exposition.into_text(),
            "# HELP seats Seats\\\\chairs.\\nAll of them.\n# TYPE seats gauge\nseats 1\n\
             seats{repository=\"a\\\"} 2\\\\nb\\\\\"} 0.5\n"
        );
    }
}
