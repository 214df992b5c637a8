//! The situations of real sites: the files of `policies/`, each played with real processes of real users. Who
//! is to start does, who is to be refused is, and reads which rule or repository it was. What a file says
//! about itself stands above the lines that show it.

use crate::policy::examples::{directory, full, policies, run, shared};
use crate::support::{Ending, Running, Site, Test, needs_root};

mod hosts;
mod licences;
mod maintenance;
mod measured;
mod people;
mod projects;
mod roll_out;

/// A site that has a file of `policies/` as its system's policy, with these users, each in these groups, and
/// these programs.
fn site(policy: &str, people: &[(&str, &[&str])], programs: &[&str]) -> Site {
    site_with(&shared(policy), people, programs)
}

fn site_with(policy: &str, people: &[(&str, &[&str])], programs: &[&str]) -> Site {
    let site = Site::new();
    site.system_policy(policy);
    for (name, groups) in people {
        site.account(name, groups);
    }
    for program in programs {
        // Whatever its arguments are, it runs until its standard input ends.
        site.script(program, "#!/bin/sh\nexec cat\n");
    }
    site
}

/// A file of `policies/` with one thing in the place of another: hours that are now, a directory that exists
/// here.
#[track_caller]
fn changed(policy: &str, was: &str, is: &str) -> String {
    let text = shared(policy);
    assert!(text.contains(was), "{policy} does not say {was:?}");
    text.replace(was, is)
}

/// The same launch, so many times.
fn spawn(test: &Test, times: usize) -> Vec<Running> {
    (0..times).map(|_| test.spawn()).collect()
}

/// The launch is refused by this rule.
#[track_caller]
fn denied(test: &Test, rule: &str) {
    let outcome = test.outcome();
    assert_eq!(outcome.ending, Ending::Status(77), "{outcome:?}");
    assert!(outcome.stderr.contains(&format!(": refused: rule \"{rule}\"\n")), "{}", outcome.stderr);
}

/// At a site that has the users and groups which they name, the policies give no reason for a warning.
#[test]
fn no_policy_makes_a_site_frown() {
    needs_root!();
    let site = Site::new();
    let groups = ["asic", "cad", "contractors", "power", "sim", "students"];
    for (user, groups) in [("ann", &groups[..]), ("bob", &[]), ("cadadm", &[])] {
        site.account(user, groups);
    }
    for files in policies() {
        let check = site.test().args(["policy", "check", "--strict"]).args(&files);
        check.stdout("[..] passed\n").status(0);
    }
}
