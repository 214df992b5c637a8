//! Where the policies of the hosts of a site differ on one repository. Each host admits by its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::{keeper::agent::about::AboutHost, text::escape::visible};

/// The differences of a repository between hosts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Difference {
    pub(crate) repository: String,
    /// Keys with their values, as far as they are not the same on all hosts, and the hosts.
    pub(crate) said: Vec<(String, Vec<String>)>,
}

impl Difference {
    /// All of them, among the hosts that are there.
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
