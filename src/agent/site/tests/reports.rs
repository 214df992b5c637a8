//! What the site makes of the reports of its threads.

use std::{
    sync::mpsc::{Sender, channel},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    agent::{
        service::{Service, local::Local},
        site::{
            ClusterRecord, Key, Report, Site,
            etcd::{Pair, Snapshot},
            record::bytes,
        },
    },
    launch::SystemNames,
    policy::{AgentFile, SiteSettings},
    sys::Listener,
};

/// A host of a site whose etcd cannot be reached: what there is to report comes from the test.
fn settings() -> SiteSettings {
    SiteSettings {
        endpoints: vec!["http://127.0.0.1:1".to_owned()],
        prefix: "/test/".to_owned(),
        ca: None,
        certificate: None,
        key: None,
        user: None,
        password_file: None,
        ttl: Duration::from_secs(60),
        margin: Duration::from_secs(5),
    }
}

/// Its parts, what reports to it, and its directories.
fn host() -> (Local, Site, Sender<Report>, [TempDir; 2]) {
    let [state, run] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let listener = Listener::at(&run.path().join("socket")).expect("a free path");
    let settings = AgentFile { site: Some(settings()), ..AgentFile::default() };
    let service = Service::new(listener, state.path(), &settings, &SystemNames);
    let (local, site) = service.expect("an agent").into_parts();
    let mut site = site.expect("a site");
    let (reports, heard) = channel();
    site.reports = heard;
    (local, site, reports, [state, run])
}

/// The key of the host may be in the backup from which an etcd was restored, and its slots may not. So no
/// other etcd than that of the mirror confirms the host, however its key came there.
#[test]
fn an_etcd_that_was_not_read_confirms_nothing() {
    let (mut local, mut site, reports, _directories) = host();
    let seconds = Duration::from_secs;
    let mut confirmed_after = |report: Report| {
        reports.send(report).expect("it is heard");
        site.hear(&mut local);
        site.presence.confirmed()
    };
    let confirmed = |sent, generation| Report::Confirmed { sent: seconds(sent), revision: 9, generation };
    assert_eq!(confirmed_after(confirmed(1, 1)), None, "nothing was read yet");
    let read = Snapshot { revision: 7, generation: 1, cluster: "one".to_owned(), pairs: Vec::new() };
    assert_eq!(confirmed_after(Report::Fresh(read)), None);
    assert_eq!(confirmed_after(confirmed(2, 1)), Some(seconds(2)));
    assert_eq!(confirmed_after(confirmed(3, 2)), Some(seconds(2)), "another etcd");
    let (sent, revision) = (seconds(4), 11);
    assert_eq!(confirmed_after(Report::Registered { revision, generation: 2, sent }), Some(seconds(2)));
    assert_eq!(confirmed_after(Report::Twin { agent: None, sent, generation: 2 }), Some(seconds(2)));
    assert_eq!(confirmed_after(confirmed(5, 1)), Some(seconds(5)));
}

/// A backup that is restored under the same token has the id of the etcd. Nothing is granted from then on,
/// not only when the doubt is written. A later revision of the id comes from an agent that has noticed.
#[test]
fn an_id_that_nobody_has_written_since_a_restore_names_nothing() {
    for (before, after, is_named) in [(5, 5, false), (5, 3, false), (5, 8, true)] {
        let (mut local, mut site, reports, _directories) = host();
        let key = site.keys.name(&Key::Cluster);
        let mut is_named_after = |generation: u64, at: i64| {
            let value = bytes(&ClusterRecord { cluster: "one".to_owned() });
            let pairs = vec![Pair { key: key.clone(), value, revision: at, lease: 0 }];
            let read = Snapshot { revision: 9, generation, cluster: "one".to_owned(), pairs };
            reports.send(Report::Fresh(read)).expect("it is heard");
            site.hear(&mut local);
            site.is_named()
        };
        assert!(is_named_after(1, before));
        assert_eq!(is_named_after(2, after), is_named, "{before} {after}");
    }
}
