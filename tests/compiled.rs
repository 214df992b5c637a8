//! "It saves time and changes nothing: a compiled policy is used only while it fits every file of the policy, and only
//! where its owner could have written the policy as well. Where it is missing, old, damaged or somebody else's, the whole
//! policy is read."

use std::fs::{self, read, write};
use std::os::unix::fs::{MetadataExt, chown};

use crate::support::{Account, Site, Test, needs_root, set_mode};

const POLICY: &str = r#"
    [repository.seats]
    limit = 1

    [[rule]]
    commands = ["other"]
    acquire  = ["seats"]

    [[rule]]
    commands = ["matlab", "/opt/*/matlab"]
    acquire  = ["seats"]
    message  = "One at a time."

    [[rule]]
    name     = "drained"
    commands = ["solver"]
    acquire  = ["none"]

    [repository.none]
    limit = 0
"#;

fn site() -> Site {
    let site = Site::with_policy(POLICY);
    site.program("matlab");
    site.program("solver");
    site
}

fn compile(site: &Site) -> Test {
    site.test().args(["policy", "compile", "$DIR/policy.toml"])
}

fn launch(site: &Site, command: &str) -> Test {
    site.test().args(["run", "--", command])
}

/// The second rule of the file, which bears no name, in its line.
const FULL: &str = r#"rungate: matlab: not started: the limit is reached
  seats  1 of 1 used
      rule "rule 2", $DIR/policy.toml:11
...
One at a time.
...
"#;

const DRAINED: &str = r#"rungate: solver: not started: [..]
  none  closed: its limit is 0
      rule "drained", $DIR/policy.toml:16
...
"#;

#[test]
fn a_compiled_policy_refuses_in_the_same_words() {
    let site = site();
    let refused = |site: &Site| {
        let running = launch(site, "matlab").spawn();
        launch(site, "matlab").stderr(FULL).status(75);
        drop(running);
        launch(site, "solver").stderr(DRAINED).status(75);
    };
    refused(&site);
    compile(&site).status(0);
    refused(&site);
}

#[test]
fn after_a_change_it_is_not_used() {
    let site = site();
    compile(&site).status(0);
    site.policy(&POLICY.replace("\"other\"", "\"other\", \"solver\"").replace("limit = 0", "limit = 2"));
    let _running = launch(&site, "solver").spawn();
    launch(&site, "matlab").stderr(FULL).status(75);
}

#[test]
fn a_drop_in_that_comes_or_goes_is_a_change() {
    needs_root!();
    let site = Site::new();
    site.program("matlab");
    site.system_policy("");
    site.system_file("policy.d/1.toml", "");
    site.test().args(["policy", "compile"]).status(0);
    site.system_file("policy.d/2.toml", "[[rule]]\nname = \"nobody\"\naction = \"deny\"\n");
    launch(&site, "matlab").stderr("rungate: matlab: refused: rule \"nobody\"[..]\n...\n").status(77);
}

/// One that was made to say of the rule for matlab that it is for something else.
fn forge(site: &Site) {
    let path = site.path("policy.compiled");
    let mut content = read(&path).expect("the compiled policy");
    let name = content.windows(6).position(|bytes| bytes == b"matlab").expect("the command is in it");
    content[name] = b'n';
    write(&path, content).expect("the compiled policy");
}

#[test]
fn only_one_that_the_policys_owner_could_have_written_is_used() {
    needs_root!();
    let site = site();
    compile(&site).status(0);
    forge(&site);
    let holding = site.test().user("games").args(["run", "--as", "other", "--", "matlab"]).spawn();
    // Whoever writes as root says what counts: it is this file that makes the difference.
    launch(&site, "matlab").user("games").status(0);
    chown(site.path("policy.compiled"), Some(Account::named("games").uid), None).expect("chown");
    launch(&site, "matlab").user("games").stderr(FULL).status(75);
    // Nor one that others can write to.
    chown(site.path("policy.compiled"), Some(0), None).expect("chown");
    set_mode(&site.path("policy.compiled"), 0o666);
    launch(&site, "matlab").user("games").stderr(FULL).status(75);
    drop(holding);
}

#[test]
fn garbage_is_not_used() {
    let site = site();
    compile(&site).status(0);
    let path = site.path("policy.compiled");
    let content = read(&path).expect("the compiled policy");
    let _running = launch(&site, "matlab").spawn();
    for length in (0..content.len()).step_by(7) {
        write(&path, &content[..length]).expect("the compiled policy");
        launch(&site, "matlab").stderr(FULL).status(75);
    }
    write(&path, [0xff; 4096]).expect("the compiled policy");
    launch(&site, "matlab").stderr(FULL).status(75);
}

#[test]
fn a_policy_with_faults_is_not_compiled() {
    let site = Site::with_policy("[[rule]]\nacquire = [\"none\"]\n");
    compile(&site)
        .stderr("rungate: the policy has 1 fault\n[..]unknown repository \"none\"[..]\n...\n")
        .status(78);
    assert!(!site.path("policy.compiled").exists());
    site.test()
        .env_remove("RUNGATE_POLICY")
        .args(["policy", "compile"])
        .stderr("rungate: there is no policy to compile\n...\n")
        .status(78);
}

/// "It can be read by whom the policy can be read by."
#[test]
fn who_may_not_read_the_policy_may_not_read_it_compiled() {
    for mode in [0o644, 0o600] {
        let site = site();
        set_mode(&site.path("policy.toml"), mode);
        compile(&site).status(0);
        let compiled = fs::metadata(site.path("policy.compiled")).expect("the compiled policy");
        assert_eq!(compiled.mode() & 0o777, mode);
    }
}
