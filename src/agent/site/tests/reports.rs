//! What the site makes of the reports of its threads.

use std::{sync::mpsc::channel, time::Duration};

use crate::{
    agent::{
        service::Service,
        site::{Report, etcd::Snapshot},
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

/// The key of the host may be in the backup from which an etcd was restored, and its slots may not. So no
/// other etcd than that of the mirror confirms the host, however its key came there.
#[test]
fn an_etcd_that_was_not_read_confirms_nothing() {
    let [state, run] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let listener = Listener::at(&run.path().join("socket")).expect("a free path");
    let settings = AgentFile { site: Some(settings()), ..AgentFile::default() };
    let service = Service::new(listener, state.path(), &settings, &SystemNames);
    let (mut local, site) = service.expect("an agent").into_parts();
    let mut site = site.expect("a site");
    let (reports, heard) = channel();
    site.reports = heard;
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
