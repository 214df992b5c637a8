//! `rungate policy edit`, `install` and `undo` beside departments and other people who change files meanwhile.

use std::{
    fs,
    os::unix::fs::{chown, lchown, symlink},
};

use crate::support::{Ending, Outcome, Site, needs_root, set_mode};

/// A system's policy with this limit, which delegates a drop-in to cadadm.
fn main(limit: u32) -> String {
    format!(
        "version = 1\n\n[delegate.\"20-cad.toml\"]\nowner = \"cadadm\"\nusers = [\"%cad\"]\ncommands = [\"matlab\"]\n\n\
         [repository.matlab]\nlimit = {limit}\n"
    )
}

const DROP_IN: &str = "etc/rungate/policy.d/20-cad.toml";

/// A site with limit 1, and the same policy with limit 2 to install.
fn site() -> Site {
    let site = Site::new();
    site.directory_over_run();
    site.account("cadadm", &["cad"]);
    site.system_file("policy.toml", &main(1));
    site.write("work/policy.toml", &main(2));
    fs::create_dir(site.path("etc/rungate/policy.d")).expect("policy.d");
    for directory in ["etc/rungate", "etc/rungate/policy.d"] {
        set_mode(&site.path(directory), 0o755);
    }
    site
}

fn is_cadadms(site: &Site, path: &str) {
    chown(site.path(path), Some(site.user("cadadm").uid), None).expect("chown");
}

fn text(site: &Site, path: &str) -> String {
    fs::read_to_string(site.path(path)).expect("a file of the site")
}

fn policy(site: &Site, arguments: &[&str]) -> Outcome {
    site.test().args(["policy"]).args(arguments).args(["--yes", "--allow-uncounted"]).outcome()
}

/// Root's link leads into the directory of a department, and a link of the department from there to a file of
/// root's. An installation does not replace that file.
#[test]
fn a_link_of_a_department_does_not_choose_which_file_is_replaced() {
    needs_root!();
    let site = site();
    fs::create_dir(site.path("cad")).expect("a directory of cad");
    is_cadadms(&site, "cad");
    set_mode(&site.path("cad"), 0o755);
    site.write("roots.conf", "of root\n");
    symlink(site.path("roots.conf"), site.path("cad/cad.toml")).expect("a link");
    lchown(site.path("cad/cad.toml"), Some(site.user("cadadm").uid), None).expect("chown");
    symlink(site.path("cad/cad.toml"), site.path(DROP_IN)).expect("a link");
    site.write("work/20-cad.toml", "version = 1\n");
    let outcome = policy(&site, &["install", "20-cad.toml"]);
    assert_eq!(text(&site, "roots.conf"), "of root\n");
    assert_eq!(outcome.ending, Ending::Status(78), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("/cad: belongs to cadadm"), "{}", outcome.stderr);
}
