//! `docs/broken-policies.md`: ways to break a policy, each tried, with what it says to the letter. Whoever
//! changes a wording changes the page, and reads there what stands around it.

use std::fs;
use std::path::Path;

use crate::support::{Ending, Site, is_root};

/// One way: what the policy is, or what is done to one that was right, and what is said.
struct Way {
    title: String,
    policy: Option<String>,
    /// For a shell, as root.
    done: Option<String>,
    said: String,
}

fn ways() -> Vec<Way> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/broken-policies.md");
    let page = fs::read_to_string(path).expect("the page");
    let sections = page.split("\n### ").skip(1);
    let block = |section: &str, kind: &str| {
        let (_, rest) = section.split_once(&format!("\n```{kind}\n"))?;
        let (text, _) = rest.split_once("```\n")?;
        Some(text.to_owned())
    };
    let way = |section: &str| Way {
        title: section.lines().next().expect("a title").to_owned(),
        policy: block(section, "toml"),
        done: block(section, "sh"),
        said: block(section, "text").expect("what is said"),
    };
    sections.map(way).collect()
}

#[test]
fn each_way_to_break_a_policy_says_what_the_page_says() {
    let ways = ways();
    assert!(ways.len() >= 55, "{} ways", ways.len());
    for way in ways {
        let site = Site::new();
        let outcome = match (&way.policy, &way.done) {
            (Some(policy), None) => {
                site.write("work/policy.toml", policy);
                site.test().args(["policy", "check", "--strict", "policy.toml"]).outcome()
            }
            (None, Some(done)) if is_root() => {
                site.directory_over_run();
                site.system_policy(
                    "version = 1\n[repository.matlab]\nlimit = 2\n[log]\nto = \"off\"\n[[rule]]\nacquire = [\"matlab\"]\n",
                );
                site.test().program("/bin/sh").args(["-c", done]).status(0);
                site.test().args(["policy", "check", "--strict"]).outcome()
            }
            (None, Some(_)) => continue,
            _ => panic!("{}: either a policy or what is done to one", way.title),
        };
        assert_eq!(outcome.ending, Ending::Status(1), "{}", way.title);
        assert_eq!(outcome.stderr, way.said, "{}", way.title);
    }
}
