//! Files that cannot be read or must not be believed, and what lies in the drop-in directory without being a
//! drop-in.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use rungate::policy::{Faults, LazyPolicy, Policy, Proposal, Purpose, Sources};
use tempfile::TempDir;

use super::case::Databases;
use crate::support::is_root;

/// The codes that need files to be shown.
pub(super) const CODES: [&str; 5] =
    ["unreadable-file", "untrusted-file", "missing-file", "not-utf-8", "skipped-file"];

const POLICY: &str = "[[rule]]\nacquire = []\n";

struct Site {
    folder: TempDir,
}

impl Site {
    fn new() -> Self {
        let site = Site { folder: TempDir::new().expect("a temporary directory") };
        fs::create_dir(site.path().join("policy.d")).expect("a directory");
        site.write("policy.toml", POLICY.as_bytes());
        site
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path().join(name), content).expect("a file");
        self.mode(name, 0o644);
    }

    fn mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path().join(name), Permissions::from_mode(mode)).expect("chmod");
    }

    fn sources(&self) -> Sources {
        let caller = fs::metadata(self.path()).map(|status| std::os::unix::fs::MetadataExt::uid(&status));
        Sources {
            system: self.path().join("policy.toml"),
            given: None,
            given_by: 0,
            own: None,
            caller: caller.expect("the folder's owner"),
        }
    }

    /// What is said, with the folder's name left out.
    #[track_caller]
    fn says(&self, sources: &Sources, expected: &str) {
        let said = match Policy::check(sources, &Databases) {
            Err(faults) => faults.to_string(),
            Ok(policy) => policy.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        };
        let folder = format!("{}/", self.path().display());
        assert_eq!(said.replace(&folder, ""), expected);
    }
}

#[test]
fn a_file_that_others_can_write_to_is_not_believed() {
    let site = Site::new();
    site.mode("policy.toml", 0o664);
    site.says(
        &site.sources(),
        "policy.toml: cannot be trusted: its group can write to it (mode 0664); chmod g-w fixes that [untrusted-file]",
    );
    site.mode("policy.toml", 0o644);
    site.write("policy.d/10.toml", POLICY.as_bytes());
    site.mode("policy.d", 0o777);
    site.says(
        &site.sources(),
        "policy.d: cannot be trusted: all users can write to it (mode 0777); chmod o-w fixes that [untrusted-file]",
    );
}

#[test]
fn a_file_below_a_directory_that_others_can_write_to_is_not_believed_and_the_directory_is_named() {
    let site = Site::new();
    fs::create_dir(site.path().join("open")).expect("a directory");
    site.write("open/policy.toml", POLICY.as_bytes());
    site.mode("open", 0o777);
    let sources = Sources { system: site.path().join("open/policy.toml"), ..site.sources() };
    let open = site.path().join("open");
    let said = Policy::load(&sources).expect_err("no trust").to_string();
    let expected = format!(
        "{0}/policy.toml: cannot be trusted: {0}: all users can write to it (mode 0777); chmod o-w fixes that \
         [untrusted-file]",
        open.display()
    );
    assert_eq!(said, expected);
}

#[test]
fn a_file_of_somebody_else_is_not_believed() {
    if !is_root() {
        return;
    }
    let site = Site::new();
    std::os::unix::fs::chown(site.path().join("policy.toml"), Some(4711), None).expect("chown");
    site.says(
        &site.sources(),
        "policy.toml: cannot be trusted: belongs to user 4711, neither to root nor to you; chown root fixes that [untrusted-file]",
    );
}

/// A policy of one's own that others could have written is a fault, and not left out. It is left out where
/// its directory is no directory.
#[test]
fn a_policy_of_ones_own_is_believed_or_a_fault() {
    let site = Site::new();
    site.write("own.toml", POLICY.as_bytes());
    let own = |name: &str| Sources { own: Some(site.path().join(name)), ..site.sources() };
    site.says(&own("own.toml"), "");
    site.says(&own("own.toml/policy.toml"), "");
    site.mode("own.toml", 0o646);
    site.says(
        &own("own.toml"),
        "own.toml: cannot be trusted: all users can write to it (mode 0646); chmod o-w fixes that [untrusted-file]",
    );
}

/// The directory of drop-ins may be root's in a directory of another user, and no other user's.
#[test]
fn the_directory_of_drop_ins_is_roots_or_that_of_the_owner_above() {
    if !is_root() {
        return;
    }
    let chown = |path: &Path, uid: u32| std::os::unix::fs::chown(path, Some(uid), None).expect("chown");
    let site = Site::new();
    let drop_ins = site.path().join("policy.d");
    chown(site.path(), 4711);
    site.says(&site.sources(), "");
    chown(&drop_ins, 4711);
    site.says(&site.sources(), "");
    chown(site.path(), 0);
    let sources = Sources { caller: 4711, ..site.sources() };
    site.says(
        &sources,
        "policy.d: cannot be trusted: belongs to user 4711; drop-ins of the system belong to root; chown root fixes that [untrusted-file]",
    );
}

/// Each delegated drop-in with faults is left out, and the others count.
#[test]
fn every_delegated_drop_in_with_faults_is_left_out() {
    if !is_root() {
        return;
    }
    let site = Site::new();
    let names = ["20-cad.toml", "30-sim.toml", "40-fem.toml"];
    let delegate =
        |name: &str| format!("[delegate.\"{name}\"]\nowner = 0\nusers = [\"*\"]\ncommands = [\"*\"]\n");
    site.write("policy.toml", names.map(delegate).concat().as_bytes());
    for (name, text) in names.iter().zip(["unknown = 1\n", POLICY, "unknown = 1\n"]) {
        site.write(&format!("policy.d/{name}"), text.as_bytes());
    }
    let policy = Policy::load_sound(&site.sources()).expect("a sound main file");
    let withheld = policy.withheld().iter().map(|(delegation, faults)| (delegation.file(), faults.count()));
    assert_eq!(withheld.collect::<Vec<_>>(), [("20-cad.toml", 1), ("40-fem.toml", 1)]);
    assert_eq!(policy.files().count(), 2);
    // Without delegated files no fault is found, because none of them is opened.
    let policy = Policy::load_undelegated(&site.sources()).expect("a sound main file");
    assert_eq!((policy.withheld().len(), policy.files().count()), (0, 1));
}

#[test]
fn what_is_no_file_or_no_text_is_no_policy() {
    let site = Site::new();
    site.write("policy.d/10.toml", b"name = \"\xff\"\n");
    fs::create_dir(site.path().join("policy.d/20.toml")).expect("a directory");
    symlink("nowhere", site.path().join("policy.d/30.toml")).expect("a link");
    site.says(
        &site.sources(),
        "policy.d/10.toml: is not UTF-8 text from line 1, column 9 on; save it as UTF-8 [not-utf-8]\n\n\
         policy.d/20.toml: cannot be read: is not a regular file, but a directory [unreadable-file]\n\n\
         policy.d/30.toml: there is no such file [missing-file]",
    );
}

#[test]
fn a_policy_that_is_given_must_exist_and_ones_own_need_not() {
    let site = Site::new();
    let missing = Some(site.path().join("missing.toml"));
    site.says(&Sources { own: missing.clone(), ..site.sources() }, "");
    site.says(
        &Sources { given: missing, ..site.sources() },
        "missing.toml: there is no such file [missing-file]",
    );
}

/// Where there is no system's policy the caller's own one stands alone. A link shows that there should be one.
#[test]
fn a_link_to_a_missing_policy_of_the_system_is_a_fault() {
    let site = Site::new();
    let policy = site.path().join("policy.toml");
    fs::remove_file(&policy).expect("remove");
    site.says(&site.sources(), "");
    symlink("nowhere", &policy).expect("a link");
    site.says(
        &site.sources(),
        "policy.toml: cannot be read: is a link to a file that is not there [unreadable-file]",
    );
}

#[test]
fn the_same_file_given_twice_counts_once() {
    let site = Site::new();
    site.write("policy.toml", b"[[rule]]\naction = \"exempt\"\n");
    symlink("policy.toml", site.path().join("link.toml")).expect("a link");
    let sources = Sources { given: Some(site.path().join("link.toml")), ..site.sources() };
    assert_eq!(Policy::load(&sources).expect("a policy").rules().len(), 1);
}

#[test]
fn what_is_no_drop_in_is_skipped_and_named() {
    let site = Site::new();
    site.write("policy.d/10.toml", POLICY.as_bytes());
    site.write("policy.d/20.toml~", b"no TOML");
    site.write("policy.d/.30.toml", b"no TOML");
    site.says(
        &site.sources(),
        "policy.d: warning: \".30.toml\" is skipped: drop-ins end in \".toml\" and do not begin with \".\" \
         [skipped-file]\n\
         policy.d: warning: \"20.toml~\" is skipped: drop-ins end in \".toml\" and do not begin with \".\" \
         [skipped-file]",
    );
}

#[test]
fn drop_ins_count_in_byte_order_of_their_names_after_the_file() {
    let site = Site::new();
    for name in ["b", "a", "10", "9", "B"] {
        site.write(&format!("policy.d/{name}.toml"), POLICY.as_bytes());
    }
    // A file that is skipped is none of them.
    site.write("policy.d/0.toml~", b"no TOML");
    let policy = Policy::load(&site.sources()).expect("a policy");
    let names: Vec<_> =
        policy.files().map(|file| file.path().file_name().expect("a name").to_owned()).collect();
    assert_eq!(names, ["policy.toml", "10.toml", "9.toml", "B.toml", "a.toml", "b.toml"]);
}

#[test]
fn a_policy_is_stale_when_a_file_of_it_came_went_or_changed() {
    let site = Site::new();
    site.write("policy.d/10.toml", POLICY.as_bytes());
    let sources = Sources { own: Some(site.path().join("own.toml")), ..site.sources() };
    let load = || Policy::load(&sources).expect("a policy");
    let policy = load();
    assert!(!policy.is_stale());
    site.write("policy.d/20.toml", POLICY.as_bytes());
    assert!(policy.is_stale());
    let policy = load();
    fs::remove_file(site.path().join("policy.d/10.toml")).expect("remove");
    assert!(policy.is_stale());
    let policy = load();
    site.write("policy.toml", b"version = 1\n");
    assert!(policy.is_stale());
    let policy = load();
    site.write("own.toml", POLICY.as_bytes());
    assert!(policy.is_stale());
}

#[test]
fn where_there_is_no_file_the_policy_is_empty() {
    let site = Site::new();
    let sources = Sources { system: site.path().join("none.toml"), ..site.sources() };
    assert!(Policy::load(&sources).expect("no policy").is_empty());
}

/// What is added to the system's policy loosens it only for root, however the files are read.
#[test]
fn only_root_loosens_the_systems_policy() {
    let site = Site::new();
    site.write("own.toml", b"[defaults]\nenforce = false\n");
    let own = Some(site.path().join("own.toml"));
    let codes = |read: Result<(), Faults>| match read {
        Ok(()) => Vec::new(),
        Err(faults) => faults.iter().map(|fault| fault.code).collect::<Vec<_>>(),
    };
    // Root reads files as another user does.
    let callers = if is_root() { vec![0, 1] } else { vec![site.sources().caller] };
    for caller in callers {
        let sources = Sources { own: own.clone(), caller, ..site.sources() };
        let expected = if caller == 0 { vec![] } else { vec!["loosens"] };
        assert_eq!(codes(Policy::load(&sources).map(drop)), expected, "{caller}");
        assert_eq!(codes(Policy::load_sound(&sources).map(drop)), expected, "{caller}");
        assert_eq!(codes(Policy::check(&sources, &Databases).map(drop)), expected, "{caller}");
        let main = [Proposal { path: sources.system.clone(), text: Some(POLICY.to_owned()) }];
        assert_eq!(codes(Policy::propose(&sources, &main, Purpose::Review).map(drop)), expected, "{caller}");
        assert_eq!(codes(LazyPolicy::open(&sources).faults()), expected, "{caller}");
    }
}

/// A file that is named may become a user's own policy, in which `{runtime}` is right.
#[test]
fn only_the_systems_policy_is_warned_of_a_directory_of_the_caller() {
    let site = Site::new();
    let repository = "[repository.a]\nlimit = 5\npath = \"{runtime}/a.lock\"\n[[rule]]\nacquire = [\"a\"]\n";
    site.write("policy.toml", format!("{repository}[alias]\nx = [\"y\"]\n").as_bytes());
    let codes = |policy: Result<Policy, Faults>| {
        let policy = policy.expect("a policy");
        policy.warnings().iter().map(|warning| warning.code).collect::<Vec<_>>()
    };
    let sources = site.sources();
    assert_eq!(codes(Policy::check(&sources, &Databases)), ["runtime-of-caller", "unused-alias"]);
    let files = [sources.system.clone()];
    assert_eq!(codes(Policy::check_files(&files, sources.caller, &Databases)), ["unused-alias"]);
}

/// The file that a user names may belong to that user, also if the launch is for another one.
#[test]
fn a_file_may_belong_to_the_user_who_names_it() {
    if !is_root() {
        return;
    }
    let site = Site::new();
    site.write("given.toml", POLICY.as_bytes());
    std::os::unix::fs::chown(site.path().join("given.toml"), Some(4711), None).expect("chown");
    let named_by = |user: u32| {
        let given = Some(site.path().join("given.toml"));
        Policy::load(&Sources { given, given_by: user, ..site.sources() }).is_ok()
    };
    assert_eq!((named_by(4711), named_by(4712), named_by(0)), (true, false, false));
}

/// Of a policy with faults those repositories are shown that no fault can have changed.
#[test]
fn a_repository_that_no_fault_can_have_changed_is_shown() {
    let site = Site::new();
    let shown = |main: &str, more: &str, own: &str| {
        for (name, text) in [("policy.toml", main), ("policy.d/10.toml", more), ("own.toml", own)] {
            site.write(name, text.as_bytes());
        }
        let sources = Sources { own: Some(site.path().join("own.toml")), ..site.sources() };
        let (policy, faults) = Policy::salvage(&sources);
        assert!(faults.is_some(), "{main}{more}{own}");
        policy.repositories().iter().map(|known| known.name().to_owned()).collect::<String>()
    };
    let main = "[repository.a]\nlimit = 5\n[repository.b]\nlimit = 5\n";
    let more = "[repository.c]\nlimit = 5\n";
    let own = "[repository.d]\nlimit = 5\n";
    let wrong = "wrong = 1\n";
    assert_eq!(shown(&format!("{main}[[rule]]\nacquire = []\n{wrong}"), more, own), "abcd");
    assert_eq!(shown(&format!("{main}{wrong}"), more, own), "acd");
    assert_eq!(shown(&format!("{main}{wrong}"), more, "[repository.b]\nlimit = 5\n"), "acb");
    assert_eq!(shown(main, &format!("{more}{wrong}"), own), "abd");
    assert_eq!(shown(main, more, &format!("{own}{wrong}")), "abc");
    // What all have in common is that of all files of the system.
    assert_eq!(shown(&format!("[defaults]\n{wrong}{main}"), more, own), "d");
    assert_eq!(shown(main, &format!("[defaults]\n{wrong}{more}"), own), "d");
    assert_eq!(shown(main, more, &format!("[defaults]\n{wrong}{own}")), "abc");
}

/// A directory of drop-ins that others can write to is not believed, with whatever is in it.
#[test]
fn a_directory_of_drop_ins_that_others_can_write_to_is_not_believed() {
    let site = Site::new();
    site.mode("policy.d", 0o777);
    let said = Policy::load(&site.sources()).expect_err("no trust");
    assert_eq!(said.iter().map(|fault| fault.code).collect::<Vec<_>>(), ["untrusted-file"]);
}

/// A change of the system's policy begins a generation. What a user adds does not.
#[test]
fn a_change_of_the_systems_policy_begins_a_generation() {
    let site = Site::new();
    site.write("own.toml", POLICY.as_bytes());
    let sources = Sources { own: Some(site.path().join("own.toml")), ..site.sources() };
    let generations = |name: &str| {
        // Two states of a file can have the same 12 bits, and five have not.
        let of_state = |length: usize| {
            site.write(name, format!("{POLICY}#{}\n", "x".repeat(length)).as_bytes());
            Policy::load(&sources).expect("a policy").generation(jiff::Timestamp::UNIX_EPOCH)
        };
        (0..5).map(of_state).collect::<std::collections::HashSet<_>>().len()
    };
    assert!(generations("policy.toml") > 1 && generations("policy.d/10.toml") > 1);
    assert_eq!(generations("own.toml"), 1);
}

/// Each untrusted directory is named once, however many files are below it.
#[test]
fn each_directory_that_others_can_write_to_is_told() {
    let site = Site::new();
    for name in ["one", "two"] {
        fs::create_dir(site.path().join(name)).expect("a directory");
        site.write(&format!("{name}/policy.toml"), POLICY.as_bytes());
        site.mode(name, 0o777);
    }
    let file = |name: &str| Some(site.path().join(name).join("policy.toml"));
    let sources = Sources { given: file("one"), own: file("two"), ..site.sources() };
    let said = Policy::load(&Sources { given_by: sources.caller, ..sources }).expect_err("no trust");
    assert_eq!(said.iter().map(|fault| fault.code).collect::<Vec<_>>(), ["untrusted-file"; 2]);
}

/// Drop-ins that are proposed count in byte order among those that exist.
#[test]
fn proposed_drop_ins_count_in_their_order() {
    let site = Site::new();
    for name in ["20.toml", "40.toml"] {
        site.write(&format!("policy.d/{name}"), POLICY.as_bytes());
    }
    let proposal = |name: &str| Proposal {
        path: site.path().join("policy.d").join(name),
        text: Some(POLICY.to_owned()),
    };
    let proposals = ["50.toml", "10.toml", "40.toml", "30.toml"].map(proposal);
    let policy = Policy::propose(&site.sources(), &proposals, Purpose::Review).expect("a policy");
    let names: Vec<_> =
        policy.files().map(|file| file.path().file_name().expect("a name").to_owned()).collect();
    assert_eq!(names, ["policy.toml", "10.toml", "20.toml", "30.toml", "40.toml", "50.toml"]);
}

/// In a directory that is named the policy is its `policy.toml`, or all drop-ins. An empty one has no policy.
#[test]
fn an_empty_directory_has_no_policy() {
    let site = Site::new();
    let caller = site.sources().caller;
    fs::create_dir(site.path().join("empty")).expect("a directory");
    let files = |name: &str| {
        let policy = Policy::at(&site.path().join(name), caller);
        policy.map(|policy| policy.files().count()).map_err(|faults| faults.to_string())
    };
    let missing = files("empty").expect_err("no policy");
    assert!(missing.ends_with("empty/policy.toml: there is no such file [missing-file]"), "{missing}");
    assert_eq!((files("."), files("policy.toml")), (Ok(1), Ok(1)));
    site.write("policy.d/10.toml", POLICY.as_bytes());
    site.write("policy.d/10.toml~", b"no TOML");
    assert_eq!((files("."), files("policy.d"), files("policy.toml")), (Ok(2), Ok(1), Ok(1)));
}

/// A file that the main file delegates is one in a directory that is named too, and beside a main file.
#[test]
fn a_delegated_file_that_is_named_is_delegated() {
    let site = Site::new();
    let sources = site.sources();
    let keys = format!("owner = {}\nusers = [\"*\"]\ncommands = [\"*\"]\n", sources.caller);
    site.write("policy.toml", format!("[delegate.\"10.toml\"]\n{keys}").as_bytes());
    site.write("policy.d/10.toml", b"[defaults]\nwait = \"1m\"\n");
    let codes = |read: Result<Policy, Faults>| {
        let faults = read.expect_err("a key that is not delegated");
        faults.iter().map(|fault| fault.code).collect::<Vec<_>>()
    };
    let files = [sources.system.clone(), site.path().join("policy.d/10.toml")];
    assert_eq!(codes(Policy::check_files(&files, sources.caller, &Databases)), ["delegated-key"]);
    assert_eq!(codes(Policy::at(site.path(), sources.caller)), ["delegated-key"]);
}
