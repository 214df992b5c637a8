//! `cargo bench --bench parts`: the parts of a launch within one process: reading a policy, judging a
//! request, and taking a slot where others hold many.

#[path = "launch/admit.rs"]
mod admit;
#[allow(dead_code, reason = "whole launches have more of a crowd measured")]
#[path = "launch/crowd.rs"]
mod crowd;
#[allow(dead_code, reason = "the policies are for whole launches")]
mod site;

use std::fmt::Write as _;
use std::path::Path;

use divan::{Bencher, black_box};
use jiff::Timestamp;
use rungate::{
    judge::{
        Request, decide,
        terms::claim::{LookupError, Names},
    },
    policy::Policy,
};

const RULES: [usize; 3] = [10, 100, 1000];

fn main() {
    divan::main();
}

fn text(rules: usize) -> String {
    let mut text = String::from(
        "version = 1\n[repository.seats]\nlimit = 50\n[[rule]]\ncommands = [\"true\"]\nacquire = [\"seats\"]\n",
    );
    for number in 1..rules {
        let _ = writeln!(
            text,
            "[[rule]]\nname = \"rule {number}\"\n\
             commands = [\"cmd{number}\", \"tool{number}-*\", \"/opt/x{number}/*/bin/y\"]\n\
             groups = [\"games\"]\nacquire = [\"seats\"]"
        );
    }
    text
}

/// Nobody exists: no rule that matches asks.
struct Nobody;

impl Names for Nobody {
    fn user_name(&self, _: u32) -> Result<Option<String>, LookupError> {
        Ok(None)
    }
    fn user_id(&self, _: &str) -> Result<Option<u32>, LookupError> {
        Ok(None)
    }
    fn group_id(&self, _: &str) -> Result<Option<u32>, LookupError> {
        Ok(None)
    }
    fn group_name(&self, _: u32) -> Result<Option<String>, LookupError> {
        Ok(None)
    }
    fn in_netgroup(&self, _: &str, _: &str, _: &str) -> Result<bool, LookupError> {
        Ok(false)
    }
}

/// TOML alone.
#[divan::bench(args = RULES)]
fn parse(bencher: Bencher<'_, '_>, rules: usize) {
    let text = text(rules);
    bencher.bench(|| toml::de::DeTable::parse(black_box(&text)).map(drop));
}

/// From the text to a policy: TOML included.
#[divan::bench(args = RULES)]
fn parse_and_validate(bencher: Bencher<'_, '_>, rules: usize) {
    let text = text(rules);
    bencher.bench(|| Policy::of_text("/etc/rungate/policy.toml", black_box(text.as_str())).is_ok());
}

/// A request against every rule.
#[divan::bench(args = RULES)]
fn judge(bencher: Bencher<'_, '_>, rules: usize) {
    let policy = Policy::of_text("/etc/rungate/policy.toml", text(rules)).expect("no faults");
    let request = Request {
        typed: "true".as_ref(),
        arguments: &[],
        path: Path::new("/usr/bin/true"),
        canonical: Path::new("/usr/bin/true"),
        uid: 1000,
        gids: &[1000],
        host: "ws17".as_ref(),
        directory: Path::new("/"),
        environment: &|_| None,
        now: Timestamp::UNIX_EPOCH,
        cpus: &|| 2,
        runtime: Path::new("/run/user/1000/rungate"),
        names: &Nobody,
    };
    bencher.bench_local(|| black_box(decide(&policy, black_box(&request))).trace.len());
}

/// A slot is taken and released.
#[divan::bench(args = [0, 10, 100, 1000, 10_000])]
fn admit(bencher: Bencher<'_, '_>, held: u64) {
    let site = site::Site::new();
    let file = site.path("crowded");
    let _crowd = crowd::Crowd::of(&site, &file, held);
    bencher.bench_local(|| assert!(admit::is_admitted(&file, 20_000)));
}
