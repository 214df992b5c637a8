//! `rungate policy edit`, `install` and `undo` beside departments and other people who change files meanwhile.

use std::{
    fs,
    os::unix::fs::{MetadataExt, chown, lchown, symlink},
};

use crate::support::{Ending, Outcome, Site, needs_root, needs_strace, set_mode};

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

/// A drop-in may have the name of the main file. It is edited, installed, removed and undone as a drop-in.
#[test]
fn a_drop_in_with_the_name_of_the_main_file_is_a_drop_in() {
    needs_root!();
    let site = site();
    let (before, after) = ("version = 1\n", "version = 1\n# edited\n");
    let drop_in = "etc/rungate/policy.d/policy.toml";
    site.system_file("policy.d/policy.toml", before);
    site.script("edits", "#!/bin/sh\necho '# edited' >> \"$1\"\n");
    let edit = site.test().args(["policy", "edit", "--yes", "/etc/rungate/policy.d/../policy.d/policy.toml"]);
    let outcome = edit.env("EDITOR", "$DIR/bin/edits").env("TMPDIR", "$DIR/work").outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    assert_eq!([text(&site, "etc/rungate/policy.toml"), text(&site, drop_in)], [main(1).as_str(), after]);
    fs::create_dir_all(site.path("work/new/policy.d")).expect("a directory");
    site.write("work/new/policy.d/policy.toml", after);
    for directory in ["work/new", "work/new/policy.d"] {
        set_mode(&site.path(directory), 0o755);
    }
    for (arguments, there) in [
        (&["undo"][..], Some(before)),
        (&["install", "--remove", "policy.toml"], None),
        (&["undo"], Some(before)),
        (&["install", "new"], Some(after)),
    ] {
        let outcome = policy(&site, arguments);
        assert_eq!(outcome.ending, Ending::Status(0), "{arguments:?}: {}", outcome.stderr);
        assert_eq!(text(&site, "etc/rungate/policy.toml"), main(1), "{arguments:?}");
        let present = fs::read_to_string(site.path(drop_in)).ok();
        assert_eq!(present.as_deref(), there, "{arguments:?}");
    }
}

/// Rules in the drop-in of a department make no test of another file fail in a change of another file, and such
/// a test may expect them. `policy check` reports the test that fails with them.
#[test]
fn rules_of_a_department_do_not_prevent_a_change_of_roots() {
    needs_root!();
    let site = site();
    let test = |name: &str, expect: &str| {
        format!(
            "\n[[test]]\nname = \"{name}\"\ncommand = \"matlab\"\nuser = \"ann\"\ngroups = [\"cad\"]\n\
             expect = \"{expect}\"\n"
        )
    };
    let new = |tests: &[String]| {
        format!("{}\n[[rule]]\nname = \"all\"\nacquire = [\"matlab\"]\n{}", main(2), tests.concat())
    };
    site.system_file(
        "policy.d/20-cad.toml",
        "version = 1\n\n[[rule]]\nname = \"none\"\ncommands = [\"matlab\"]\naction = \"deny\"\n",
    );
    is_cadadms(&site, DROP_IN);
    let (starts, refused) = (test("starts", "start"), test("refused", "refuse"));
    let text_of_both = new(&[starts, refused]);
    site.write("work/policy.toml", &text_of_both);
    let outcome = policy(&site, &["install", "policy.toml"]);
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), text_of_both);
    let check = site.test().args(["policy", "check"]).outcome();
    assert_eq!(check.ending, Ending::Status(1), "{}", check.stderr);
    assert!(check.stderr.contains("test \"starts\" failed"), "{}", check.stderr);
    assert!(check.stderr.ends_with("rungate: 1 of 2 tests failed\n"), "{}", check.stderr);

    // One that fails with and without them is a mistake of root's.
    site.write("work/policy.toml", &new(&[test("never", "exempt")]));
    let outcome = policy(&site, &["install", "policy.toml"]);
    assert_eq!(outcome.ending, Ending::Status(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("rungate: nothing was changed: 1 failed test\n"), "{}", outcome.stderr);
}

/// A failing test in the drop-in of a department prevents no change of another file. A change of the drop-in
/// runs it, and so does `policy check`.
#[test]
fn tests_of_a_department_do_not_prevent_a_change_of_roots() {
    needs_root!();
    let site = site();
    let fails = "version = 1\n\n[[test]]\nname = \"never\"\ncommand = \"matlab\"\nuser = \"ann\"\nexpect = \"exempt\"\n";
    site.system_file("policy.d/20-cad.toml", fails);
    is_cadadms(&site, DROP_IN);
    for limit in [2, 1] {
        let arguments = if limit == 2 { &["install", "policy.toml"][..] } else { &["undo"] };
        let outcome = policy(&site, arguments);
        assert_eq!(outcome.ending, Ending::Status(0), "{arguments:?}: {}", outcome.stderr);
        assert_eq!(text(&site, "etc/rungate/policy.toml"), main(limit));
    }
    site.write("work/20-cad.toml", &format!("{fails}# changed\n"));
    let check = site.test().args(["policy", "check"]).outcome();
    for outcome in [policy(&site, &["install", "20-cad.toml"]), check] {
        assert_eq!(outcome.ending, Ending::Status(1), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("test \"never\" failed"), "{}", outcome.stderr);
    }
}

/// An edit does not replace a file whose link leads elsewhere meanwhile, or whose mode was changed: it would
/// change a file that is not in force any more, or undo the other change.
#[test]
fn an_edit_notices_another_link_and_another_mode() {
    needs_root!();
    let site = site();
    for place in ["etc/v1", "etc/v2"] {
        fs::create_dir(site.path(place)).expect("a directory");
        set_mode(&site.path(place), 0o755);
        site.write(format!("{place}/policy.toml"), &main(1));
    }
    let link = site.path("etc/rungate/policy.toml");
    let edit = |meanwhile: &str| {
        site.script("edits", &format!("#!/bin/sh\n{meanwhile}\nsed -i 's/limit = 1/limit = 3/' \"$1\"\n"));
        let edit = site.test().args(["policy", "edit", "--yes"]).env("EDITOR", "$DIR/bin/edits");
        let outcome = edit.env("TMPDIR", "$DIR/work").outcome();
        assert_eq!(outcome.ending, Ending::Status(1), "{meanwhile}: {}{}", outcome.stdout, outcome.stderr);
        let changed =
            "/etc/rungate/policy.toml was changed by another user meanwhile\nThe edited text is in ";
        assert!(outcome.stderr.contains(changed), "{meanwhile}: {}", outcome.stderr);
    };
    edit("chmod 600 /etc/rungate/policy.toml");
    assert_eq!(fs::metadata(&link).expect("the policy").mode() & 0o7777, 0o600);
    fs::remove_file(&link).expect("the policy");
    symlink("/etc/v1/policy.toml", &link).expect("a link");
    edit("ln -sfn /etc/v2/policy.toml /etc/rungate/policy.toml");
    assert_eq!([text(&site, "etc/v1/policy.toml"), text(&site, "etc/v2/policy.toml")], [main(1), main(1)]);
}

/// A policy that is not UTF-8 text has a fault, which an installation, an undo and an edit can correct. Its bytes
/// are kept.
#[test]
fn a_policy_in_latin_1_can_be_corrected() {
    needs_root!();
    let site = site();
    let file = site.path("etc/rungate/policy.toml");
    assert_eq!(policy(&site, &["install", "policy.toml"]).ending, Ending::Status(0));
    site.script("edits", "#!/bin/sh\nexec sed -i '/^#/d' \"$1\"\n");
    site.script("looks", "#!/bin/sh\n");
    let latin_1 = [main(2).as_bytes(), b"# gr\xf6\xdfer\n"].concat();
    let last_copy = || {
        let copies = fs::read_dir(site.path("etc/rungate/policy.past")).expect("the copies").flatten();
        copies.map(|copy| copy.path()).max().expect("a copy").join("policy.toml")
    };
    for (arguments, editor, limit) in [
        (&["undo"][..], "", 1),
        (&["install", "policy.toml"], "", 2),
        (&["edit"], "edits", 2),
        (&["edit"], "looks", 0),
    ] {
        fs::write(&file, &latin_1).expect("the policy");
        let test = site.test().args(["policy"]).args(arguments).args(["--yes", "--allow-uncounted"]);
        let program = site.expand(&format!("$DIR/bin/{editor}"));
        let outcome = test.env("EDITOR", program).env("TMPDIR", "$DIR/work").outcome();
        assert_eq!(outcome.ending, Ending::Status(0), "{arguments:?}: {}", outcome.stderr);
        let expected = if limit == 0 { latin_1.clone() } else { main(limit).into_bytes() };
        assert_eq!(fs::read(&file).expect("the policy"), expected, "{arguments:?} {editor}");
        if limit == 0 {
            assert_eq!(outcome.stderr, "rungate: /etc/rungate/policy.toml is unchanged\n");
        } else {
            assert_eq!(fs::read(last_copy()).expect("the copy"), latin_1, "{arguments:?} {editor}");
        }
    }

    // They do not come back by themselves: the policy would have the fault again.
    fs::write(&file, main(1)).expect("the policy");
    let outcome = policy(&site, &["undo"]);
    let copy = last_copy();
    let name = copy.parent().and_then(|copy| copy.file_name()).expect("a name");
    let left = format!(
        "rungate: /etc/rungate/policy.toml is left alone: it was not UTF-8 text before the change; its copy is \
         /etc/rungate/policy.past/{}/policy.toml\nrungate: there is nothing else to undo\n\
         To see older changes: rungate policy log\n",
        name.to_string_lossy()
    );
    assert_eq!((outcome.ending, outcome.stderr), (Ending::Status(1), left));
}

/// A user who names a drop-in does not replace their own policy.
#[test]
fn a_users_own_policy_is_not_replaced_under_another_name() {
    needs_root!();
    let site = site();
    site.account("ann", &[]);
    let own = format!("config/{}/rungate/policy.toml", site.user("ann").uid);
    let install = |name: &str, text: &str| {
        site.write("work/mine.toml", text);
        chown(site.path("work/mine.toml"), Some(site.user("ann").uid), None).expect("chown");
        site.test().user("ann").args(["policy", "install", "--yes", "--name", name, "mine.toml"]).outcome()
    };
    let outcome = install("policy.toml", "version = 1\n");
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    let outcome = install("50-x.toml", "version = 1\n# other\n");
    let refused = "rungate: your own policy is one file, policy.toml: it has no 50-x.toml\n\
                   Only root can add a drop-in.\n";
    assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(64), refused));
    assert_eq!(text(&site, &own), "version = 1\n");
}

/// `--dry-run` creates nothing, and works where nothing can be created.
#[test]
fn a_dry_run_creates_nothing() {
    needs_root!();
    needs_strace!();
    let site = site();
    site.write("work/50-more.toml", "version = 1\n\n[repository.more]\nlimit = 1\n");
    fs::remove_dir(site.path("etc/rungate/policy.d")).expect("an empty directory");
    let show = || site.test().args(["policy", "install", "--dry-run", "policy.toml", "50-more.toml"]);
    let calls = "inject=mkdir,mkdirat,unlink,unlinkat,rename,renameat,renameat2:error=EROFS";
    let read_only = ["strace", "-qq", "-o", "/dev/null", "-e", calls];
    for outcome in [show().outcome(), show().through(read_only).outcome()] {
        assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
        let shown = "Without --dry-run: replace the main file /etc/rungate/policy.toml and add the drop-in \
                     /etc/rungate/policy.d/50-more.toml\n";
        assert!(outcome.stdout.ends_with(shown), "{}", outcome.stdout);
        let left: Vec<_> = fs::read_dir(site.path("etc/rungate")).expect("it").flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
    // The same change is made where the directory is missing.
    let outcome = policy(&site, &["install", "policy.toml", "50-more.toml"]);
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    assert!(site.path("etc/rungate/policy.d/50-more.toml").exists());
}

/// Where no copy can be kept, no drop-in is removed: its text would be lost. A file is replaced.
#[test]
fn a_drop_in_is_not_removed_without_a_copy() {
    needs_root!();
    let site = site();
    site.system_file("policy.d/50-more.toml", "version = 1\n");
    site.system_file("policy.past", "no directory\n");
    let unkept = "rungate: the policy as it was is not kept: /etc/rungate/policy.past: Not a directory\n";
    let outcome = policy(&site, &["install", "--remove", "50-more.toml"]);
    let refused = "rungate: /etc/rungate/policy.d/50-more.toml is not removed without a copy\n\
                   Nothing was changed. To remove it without one: rm /etc/rungate/policy.d/50-more.toml\n";
    assert_eq!(outcome.ending, Ending::Status(71), "{}", outcome.stderr);
    assert!(outcome.stderr.ends_with(&format!("{unkept}{refused}")), "{}", outcome.stderr);
    assert!(site.path("etc/rungate/policy.d/50-more.toml").exists());
    let outcome = policy(&site, &["install", "policy.toml"]);
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    assert!(outcome.stderr.ends_with(unkept), "{}", outcome.stderr);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), main(2));
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
