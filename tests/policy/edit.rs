//! `rungate policy edit`: as visudo does, and with what a policy can say of itself besides.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use crate::support::{
    Account, Ending, Outcome, Running, Site, Terminal, Test, needs_root, needs_tmux, set_mode,
};

const POLICY: &str = r#"version = 1

[repository.matlab]
limit = 5

[[rule]]
name     = "seats"
commands = ["matlab"]
acquire  = ["matlab"]

[[test]]
name    = "one of five"
command = "matlab"
expect  = "start"
claims  = ["matlab"]
"#;

/// A site with this as the system's policy, and editors that need nobody: each replaces some text.
fn site() -> Site {
    let site = Site::new();
    site.system_file("policy.toml", POLICY);
    set_mode(&site.path("etc/rungate"), 0o755);
    editors(&site);
    site
}

fn editors(site: &Site) {
    site.script("lower", "#!/bin/sh\nexec sed -i 's/^limit = 5/limit = 3/' \"$1\"\n");
    site.script("break", "#!/bin/sh\nexec sed -i 's/^limit = 5/limit = \"many\"/' \"$1\"\n");
    site.script("close", "#!/bin/sh\nexec sed -i 's/^limit = 5/limit = 0/' \"$1\"\n");
    site.script("append", "#!/bin/sh\nshift\nprintf '\\n[repository.more]\\nlimit = 1\\n' >> \"$1\"\n");
    site.script("wait", "#!/bin/sh\necho ready\nread word\nprintf '# %s\\n' \"$word\" >> \"$1\"\n");
}

/// An editor of the site, and nobody at a terminal.
fn edit<const N: usize>(site: &Site, editor: &str, arguments: [&str; N]) -> Test {
    let editor = site.expand(&format!("$DIR/bin/{editor}"));
    let edit = site.test().env("EDITOR", editor).env("TMPDIR", "$DIR/work");
    edit.args(["policy", "edit"]).args(arguments)
}

fn text(site: &Site, path: &str) -> String {
    fs::read_to_string(site.path(path)).expect("a file of the site")
}

/// The directories of copies that are there.
fn copies(site: &Site) -> Vec<PathBuf> {
    let entries = fs::read_dir(site.path("work")).expect("the working directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.to_string_lossy().contains("rungate-policy-")).collect()
}

/// The names in a directory.
fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What is right with it is put in place as a whole, with the owner and the mode that the file had.
#[test]
fn what_was_edited_is_put_in_place_and_nothing_else_changes() {
    needs_root!();
    let site = site();
    let path = site.path("etc/rungate/policy.toml");
    site.account("staff", &[]);
    let staff = site.user("staff");
    chown(&path, None, Some(staff.gid)).expect("chown");
    set_mode(&path, 0o640);
    let before = fs::metadata(&path).expect("the policy");
    edit(&site, "lower", ["--yes"])
        .stdout("~ repository matlab (policy.toml:3)\n    limit  5 -> 3\n")
        .status(0);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), POLICY.replace("= 5", "= 3"));
    let after = fs::metadata(&path).expect("the policy");
    assert_eq!((after.uid(), after.gid(), after.mode()), (before.uid(), staff.gid, before.mode()));
    assert_ne!(after.ino(), before.ino(), "it is another file, which replaced the old one in one step");
    let left = names(&site.path("etc/rungate"));
    assert_eq!(left, ["policy.past", "policy.toml"], "nothing is left beside it but what it was before");
    assert_eq!(copies(&site), [] as [PathBuf; 0]);
    edit(&site, "true", ["--yes"])
        .env("EDITOR", "true")
        .stderr("rungate: /etc/rungate/policy.toml is unchanged\n")
        .status(0);
    // An editor that could not do its work is no success.
    edit(&site, "true", ["--yes"])
        .env("EDITOR", "/bin/false")
        .stderr("rungate: [..]/false exited with an error\n/etc/rungate/policy.toml is unchanged\n")
        .status(1);
    assert_eq!(copies(&site), [] as [PathBuf; 0]);
    edit(&site, "lower", ["/etc"])
        .stderr("rungate: /etc is a directory, not a policy\nName a file in it, or move it out of the way.\n")
        .status(64);
}

/// A fault never reaches the running system, and what was edited is never lost.
#[test]
fn a_fault_stays_outside_and_the_copy_is_kept() {
    needs_root!();
    let site = site();
    for (editor, complaint, why) in [
        ("break", "/etc/rungate/policy.toml:4:[..]: [..]", "1 fault"),
        ("close", "/etc/rungate/policy.toml:11: test \"one of five\" failed", "1 failed test"),
    ] {
        let outcome = edit(&site, editor, ["--yes"]).outcome();
        assert_eq!(outcome.ending, Ending::Status(1), "{outcome:?}");
        let end = format!("rungate: /etc/rungate/policy.toml stays as it is: {why}\nThe edited text is in ");
        let complaint = complaint.split("[..]").next().expect("a beginning");
        assert!(outcome.stderr.starts_with(complaint), "{outcome:?}");
        assert!(outcome.stderr.contains(&end), "{outcome:?}");
        let copy = outcome.stderr.lines().last().and_then(|line| line.rsplit(' ').next()).expect("a path");
        let edited = fs::read_to_string(copy).expect("the copy");
        assert_ne!(edited, POLICY);
        let directory = Path::new(copy).parent().expect("a directory");
        assert_eq!(fs::metadata(directory).expect("the directory").permissions().mode() & 0o777, 0o700);
        assert_eq!(text(&site, "etc/rungate/policy.toml"), POLICY);
    }
}

/// Without a terminal nothing is put in place unless `--yes` was given.
#[test]
fn nobody_is_taken_to_have_agreed() {
    needs_root!();
    let site = site();
    let outcome = edit(&site, "lower", []).outcome();
    assert_eq!(outcome.ending, Ending::Status(1), "{outcome:?}");
    assert!(
        outcome.stderr.contains(
            "there is no terminal for the prompt; --yes puts it in place without a \
            prompt\nThe edited text is in "
        ),
        "{outcome:?}"
    );
    assert_eq!(text(&site, "etc/rungate/policy.toml"), POLICY);
    site.script("abort", "#!/bin/sh\necho '# x' >> \"$1\"\nexit 1\n");
    let outcome = edit(&site, "abort", ["--yes"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(1), "{outcome:?}");
    assert!(outcome.stderr.contains("/bin/abort exited with an error\n"), "{outcome:?}");
    assert_eq!(text(&site, "etc/rungate/policy.toml"), POLICY);
}

fn waiting_editor(site: &Site) -> Running {
    let mut first = edit(site, "wait", ["--yes"]).background();
    assert_eq!(first.read_line(), "ready\n");
    first
}

/// Two people do not edit at a time: the second is told who does (75).
#[test]
fn the_second_editor_is_told_of_the_first() {
    needs_root!();
    let site = site();
    let mut first = waiting_editor(&site);
    let who = format!(
        "rungate: [..] is being edited by another user (root (0), PID {}, for [..])\nTry again when they \
            are done.\n",
        first.pid()
    );
    edit(&site, "lower", ["--yes"]).stderr(&who).status(75);
    // A drop-in is of the same policy.
    edit(&site, "append", ["/etc/rungate/policy.d/10-more.toml"]).stderr(&who).status(75);
    first.write_line("first");
    let Outcome { ending, stderr, .. } = first.end();
    assert_eq!((ending, stderr.as_str()), (Ending::Status(0), ""));
    assert!(text(&site, "etc/rungate/policy.toml").ends_with("# first\n"));
    edit(&site, "lower", ["--yes"]).stdout("...\n").status(0);
}

/// The same if the main file is a link: all files of the policy have one lock.
#[test]
fn the_second_editor_is_told_of_the_first_behind_a_link() {
    needs_root!();
    let site = site();
    fs::rename(site.path("etc/rungate/policy.toml"), site.path("etc/kept.toml")).expect("rename");
    symlink("../kept.toml", site.path("etc/rungate/policy.toml")).expect("a link");
    let mut first = waiting_editor(&site);
    let who = format!(
        "rungate: [..] is being edited by another user (root (0), PID {}, for [..])\n[..]\n",
        first.pid()
    );
    edit(&site, "append", ["/etc/rungate/policy.d/10-more.toml"]).stderr(&who).status(75);
    edit(&site, "lower", ["--yes"]).stderr(&who).status(75);
    first.write_line("first");
    let Outcome { ending, stderr, .. } = first.end();
    assert_eq!((ending, stderr.as_str()), (Ending::Status(0), ""));
    assert!(text(&site, "etc/kept.toml").ends_with("# first\n"));
}

/// What somebody else changed meanwhile is not written over.
#[test]
fn a_change_by_another_hand_is_not_written_over() {
    needs_root!();
    let site = site();
    let mut first = waiting_editor(&site);
    site.system_file("policy.toml", "version = 1\n# by hand\n");
    first.write_line("first");
    let Outcome { ending, stderr, .. } = first.end();
    assert_eq!(ending, Ending::Status(1), "{stderr}");
    assert!(stderr.contains("was changed by another user meanwhile\nThe edited text is in "), "{stderr}");
    assert_eq!(text(&site, "etc/rungate/policy.toml"), "version = 1\n# by hand\n");
    assert_eq!(copies(&site).len(), 1);
    let none = "No change of the system's policy by rungate policy edit or install is known.\n";
    site.test().args(["policy", "log"]).stdout(none).status(0);
}

/// Should rungate be killed, the next edit says where the copy is.
#[test]
fn an_edit_that_was_cut_off_is_found_again() {
    needs_root!();
    let site = site();
    let first = waiting_editor(&site);
    first.signal(Signal::SIGKILL);
    drop(first);
    let left = copies(&site);
    let [left] = left.as_slice() else { panic!("{left:?}") };
    let told =
        format!("rungate: an earlier edit was interrupted; its text is in {}/policy.toml\n", left.display());
    edit(&site, "lower", ["--yes"]).stdout("...\n").stderr(&told).status(0);
    edit(&site, "true", []).env("EDITOR", "true").stderr("rungate: [..] is unchanged\n").status(0);
}

/// The same says a change that is no edit: afterwards nothing else knows where the copy is.
#[test]
fn an_edit_that_was_cut_off_is_not_forgotten_by_another_change() {
    needs_root!();
    let site = site();
    site.write("work/new.toml", &POLICY.replace("= 5", "= 6"));
    for change in [&["install", "--name", "policy.toml", "new.toml"][..], &["undo"]] {
        let first = waiting_editor(&site);
        first.signal(Signal::SIGKILL);
        drop(first);
        let left = copies(&site);
        let [left] = left.as_slice() else { panic!("{left:?}") };
        let told = format!(
            "rungate: an earlier edit was interrupted; its text is in {}/policy.toml\n",
            left.display()
        );
        site.test().args(["policy"]).args(change).args(["--yes"]).stdout("...\n").stderr(&told).status(0);
        fs::remove_dir_all(left).expect("the copy");
    }
}

/// Of two edits that were cut off, a message names the second: that one had a message about the first.
#[test]
fn of_two_edits_that_were_cut_off_the_last_is_told_of() {
    needs_root!();
    let site = site();
    let longer = site.path("work/a-directory-with-a-longer-name");
    fs::create_dir(&longer).expect("a directory");
    set_mode(&longer, 0o755);
    for directory in [longer, site.path("work")] {
        let mut editing = edit(&site, "wait", ["--yes"]).env("TMPDIR", directory).background();
        assert_eq!(editing.read_line(), "ready\n");
        editing.signal(Signal::SIGKILL);
    }
    let left = copies(&site);
    let [left] = left.as_slice() else { panic!("{left:?}") };
    let told =
        format!("rungate: an earlier edit was interrupted; its text is in {}/policy.toml\n", left.display());
    edit(&site, "lower", ["--yes"]).stdout("...\n").stderr(&told).status(0);
}

/// A copy that is gone is not told of: its text is nowhere.
#[test]
fn an_edit_that_was_cut_off_is_not_told_of_without_its_copy() {
    needs_root!();
    let site = site();
    let first = waiting_editor(&site);
    first.signal(Signal::SIGKILL);
    drop(first);
    let left = copies(&site);
    let [left] = left.as_slice() else { panic!("{left:?}") };
    fs::rename(left, site.path("work/elsewhere")).expect("the copy");
    edit(&site, "lower", ["--yes"]).stdout("...\n").status(0);
}

/// A copy is made where no other user can replace it, and its path leads there from anywhere: a relative
/// `TMPDIR`, or one that others can write to, does not count.
#[test]
fn a_copy_is_made_in_a_trusted_directory() {
    needs_root!();
    let site = site();
    fs::create_dir(site.path("work/open")).expect("a directory");
    set_mode(&site.path("work/open"), 0o777);
    let lower = "exec sed -i 's/^limit = 5/limit = 3/' \"$1\"";
    site.script(
        "trusting",
        &format!("#!/bin/sh\ncase \"$1\" in */open/*) exit 1 ;; /*) {lower} ;; esac\nexit 1\n"),
    );
    for directory in [".", "$DIR/work/open", "$DIR/work"] {
        edit(&site, "trusting", ["--yes"]).env("TMPDIR", directory).stdout("...\n").status(0);
        assert_eq!(text(&site, "etc/rungate/policy.toml"), POLICY.replace("= 5", "= 3"));
        site.system_file("policy.toml", POLICY);
    }
}

/// An owner who is not in the group of the file cannot give that group to the new one. The file is changed
/// nevertheless if its group may do the same as others.
#[test]
fn a_group_with_other_rights_than_others_is_not_lost() {
    needs_root!();
    let site = Site::new();
    editors(&site);
    site.account("ann", &[]);
    let ann = site.user("ann");
    let home = site.path("work/home");
    let path = home.join("rungate/policy.toml");
    fs::create_dir_all(home.join("rungate")).expect("a directory");
    site.write("work/home/rungate/policy.toml", POLICY);
    for directory in [&home, &home.join("rungate")] {
        chown(directory, Some(ann.uid), Some(ann.gid)).expect("chown");
        set_mode(directory, 0o755);
    }
    chown(&path, Some(ann.uid), Some(0)).expect("chown");
    let lower = || {
        let lower = edit(&site, "lower", ["--yes"]).user("ann");
        lower.env("XDG_CONFIG_HOME", &home).env("TMPDIR", &home).outcome()
    };
    let group = || fs::metadata(&path).expect("the policy").gid();
    set_mode(&path, 0o640);
    let outcome = lower();
    assert_ne!(outcome.ending, Ending::Status(0), "{outcome:?}");
    assert_eq!((text(&site, "work/home/rungate/policy.toml").as_str(), group()), (POLICY, 0));
    set_mode(&path, 0o644);
    let outcome = lower();
    assert_eq!(outcome.ending, Ending::Status(0), "{outcome:?}");
    let changed = (text(&site, "work/home/rungate/policy.toml"), group());
    assert_eq!(changed, (POLICY.replace("= 5", "= 3"), ann.gid));
}

/// Root runs no editor that somebody else can have written.
#[test]
fn root_runs_no_editor_of_somebody_else() {
    needs_root!();
    let site = site();
    site.account("mallory", &[]);
    let mallory = site.user("mallory");
    chown(site.path("bin/lower"), Some(mallory.uid), None).expect("chown");
    edit(&site, "lower", ["--yes"])
        .stderr(
            "rungate: EDITOR names an editor that root does not run: $DIR/bin/lower: belongs to mallory[..]\n\
             Nothing was changed. Name one of the system's, as in: EDITOR=/usr/bin/vi\n",
        )
        .status(126);
    edit(&site, "nonesuch", ["--yes"])
        .stderr("rungate: EDITOR: [..]nonesuch: not found\nNothing was changed. [..]\n")
        .status(127);
    // VISUAL counts before EDITOR, and words after the program are for it.
    edit(&site, "nonesuch", ["--yes"])
        .env("VISUAL", "$DIR/bin/append -x")
        .stdout("+ repository more (policy.toml:17)\n...\n")
        .stderr("...\n")
        .status(0);
}

/// A drop-in is checked with the main file; its directory is made if it is missing.
#[test]
fn a_drop_in_is_edited_with_the_rest_in_view() {
    needs_root!();
    let site = site();
    site.script(
        "rule",
        "#!/bin/sh\nprintf '[[rule]]\\nname = \"two for cid\"\\nusers = [\"root\"]\\ncommands = [\"matlab\"]\\nacquire = [{ repository = \"matlab\", ceiling = 2 }]\\n' >> \"$1\"\n",
    );
    edit(&site, "rule", ["--yes", "/etc/rungate/policy.d/10-cid.toml"])
        .stdout("+ rule \"two for cid\" (10-cid.toml:2)\n...\n")
        .status(0);
    let file = fs::metadata(site.path("etc/rungate/policy.d/10-cid.toml")).expect("the drop-in");
    assert_eq!((file.uid(), file.mode() & 0o7777), (0, 0o644));
    assert_eq!(names(&site.path("etc/rungate/policy.d")), ["10-cid.toml"]);
    // The main file alone would be right without its repository, and the drop-in then not.
    site.script("empty", "#!/bin/sh\necho 'version = 1' > \"$1\"\n");
    let outcome = edit(&site, "empty", ["--yes"]).outcome();
    assert!(
        outcome.stderr.contains("10-cid.toml:6:") && outcome.stderr.contains("[unknown-repository]"),
        "{outcome:?}"
    );
    assert_eq!(text(&site, "etc/rungate/policy.toml"), POLICY);
    edit(&site, "rule", ["--yes", "/etc/rungate/policy.d/notes.txt"])
        .stderr("rungate: /etc/rungate/policy.d/notes.txt would not be read: the name of a drop-in ends in .toml\n")
        .status(64);
}

/// Faults of other files that are there already are no reason against it, or two files could never be
/// mended.
#[test]
fn two_faulty_files_are_mended_one_after_the_other() {
    needs_root!();
    let site = site();
    site.system_file("policy.toml", &POLICY.replace("= 5", "= \"many\""));
    site.system_file("policy.d/10-x.toml", "[repository.x]\n");
    set_mode(&site.path("etc/rungate/policy.d"), 0o755);
    site.script("mend", "#!/bin/sh\nexec sed -i 's/\"many\"/5/; s/^.repository.x.$/&\\nlimit = 1/' \"$1\"\n");
    // With faults it is not known which slots the policy counts.
    edit(&site, "mend", ["--yes"])
        .stderr(
            "
            /etc/rungate/policy.d/10-x.toml:1:[..]
            ...
            These faults already exist in other files. Because of them, no test was run, and changes are not shown.
            rungate: /etc/rungate/policy.toml stays as it is: there is no terminal for the prompt; because of faults it is not known whether held slots would still be counted; --yes --allow-uncounted accepts that
            The edited text is in [..]
            ",
        )
        .status(1);
    edit(&site, "mend", ["--yes", "--allow-uncounted"])
        .stderr("/etc/rungate/policy.d/10-x.toml:1:[..]\n...\nThese faults already exist in [..]\n")
        .status(0);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), POLICY);
    edit(&site, "mend", ["--yes", "--allow-uncounted", "/etc/rungate/policy.d/10-x.toml"])
        .stdout("...\n")
        .stderr("...\n")
        .status(0);
    site.test().args(["policy", "check"]).stdout("1 test passed\n").stderr("...\n").status(0);
}

/// A link stays, and the file that it leads to is replaced.
#[test]
fn a_link_stays_a_link() {
    needs_root!();
    let site = site();
    fs::rename(site.path("etc/rungate/policy.toml"), site.path("etc/kept.toml")).expect("rename");
    symlink("../kept.toml", site.path("etc/rungate/policy.toml")).expect("a link");
    edit(&site, "lower", ["--yes"]).stdout("...\n").status(0);
    let link = fs::symlink_metadata(site.path("etc/rungate/policy.toml")).expect("the link");
    assert!(link.is_symlink());
    assert_eq!(text(&site, "etc/kept.toml"), POLICY.replace("= 5", "= 3"));
}

/// The file behind the link of the main file is the main file: it is checked beside the drop-ins, under the
/// same lock, and the change is known.
#[test]
fn the_file_behind_a_link_is_edited_as_the_systems() {
    needs_root!();
    let site = site();
    fs::rename(site.path("etc/rungate/policy.toml"), site.path("etc/kept.toml")).expect("rename");
    symlink("../kept.toml", site.path("etc/rungate/policy.toml")).expect("a link");
    let rule = "[[rule]]\nname = \"two\"\ncommands = [\"maple\"]\nacquire = [\"matlab\"]\n";
    site.system_file("policy.d/10-two.toml", rule);
    set_mode(&site.path("etc/rungate/policy.d"), 0o755);
    let behind = ["--yes", "/etc/kept.toml"];

    // Beside the old main file this text has no fault; in its place it has.
    site.script("empty", "#!/bin/sh\necho 'version = 1' > \"$1\"\n");
    let outcome = edit(&site, "empty", behind).outcome();
    let fault = "/etc/rungate/policy.d/10-two.toml:4:";
    let stays = "rungate: /etc/rungate/policy.toml stays as it is: 1 fault\n";
    for expected in [fault, "[unknown-repository]", stays] {
        assert!(outcome.stderr.contains(expected), "{expected}: {}", outcome.stderr);
    }
    assert_eq!((outcome.ending, text(&site, "etc/kept.toml")), (Ending::Status(1), POLICY.to_owned()));

    let mut first = waiting_editor(&site);
    let taken = "rungate: /etc/rungate/policy.toml is being edited by another user [..]\n[..]\n";
    edit(&site, "lower", behind).stderr(taken).status(75);
    first.write_line("first");
    assert_eq!(first.end().ending, Ending::Status(0));
    let with_first = format!("{POLICY}# first\n");
    assert_eq!(text(&site, "etc/kept.toml"), with_first);

    assert_eq!(edit(&site, "lower", behind).outcome().ending, Ending::Status(0));
    assert_eq!(text(&site, "etc/kept.toml"), with_first.replace("= 5", "= 3"));
    assert_eq!(site.test().args(["policy", "undo", "--yes"]).outcome().ending, Ending::Status(0));
    assert_eq!(text(&site, "etc/kept.toml"), with_first);
    assert!(site.path("etc/rungate/policy.toml").is_symlink());
}

/// The file behind the link of a delegated drop-in is that drop-in, so its rules may only lower limits.
#[test]
fn the_file_behind_a_link_is_edited_as_the_departments() {
    needs_root!();
    let site = site();
    site.account("cadadm", &[]);
    let delegates =
        "\n[delegate.\"20-cad.toml\"]\nowner = \"cadadm\"\nusers = [4711]\ncommands = [\"matlab\"]\n";
    site.system_file("policy.toml", &format!("{POLICY}{delegates}"));
    for directory in ["etc/rungate/policy.d", "etc/rungate/cad"] {
        fs::create_dir(site.path(directory)).expect("a directory");
        set_mode(&site.path(directory), 0o755);
    }
    let file = "etc/rungate/cad/20-cad.toml";
    site.write(file, "version = 1\n");
    for path in ["etc/rungate/cad", file] {
        chown(site.path(path), Some(site.user("cadadm").uid), None).expect("chown");
    }
    symlink("../cad/20-cad.toml", site.path("etc/rungate/policy.d/20-cad.toml")).expect("a link");
    let add = |acquire: &str| {
        let rule = format!("[[rule]]\\nname = \"of cad\"\\nacquire = [{acquire}]\\n");
        site.script("rule", &format!("#!/bin/sh\nprintf '{rule}' >> \"$1\"\n"));
        edit(&site, "rule", ["--yes", "/etc/rungate/cad/20-cad.toml"]).user("cadadm").outcome()
    };
    let outcome = add("\"matlab\"");
    for expected in ["/etc/rungate/policy.d/20-cad.toml:4:", "[may-only-lower]", "stays as it is: 1 fault\n"]
    {
        assert!(outcome.stderr.contains(expected), "{expected}: {}", outcome.stderr);
    }
    assert_eq!((outcome.ending, text(&site, file).as_str()), (Ending::Status(1), "version = 1\n"));
    let outcome = add("{ repository = \"matlab\", ceiling = 2 }");
    assert_eq!(outcome.ending, Ending::Status(0), "{}{}", outcome.stdout, outcome.stderr);
    assert!(text(&site, file).ends_with("acquire = [{ repository = \"matlab\", ceiling = 2 }]\n"));
    assert_eq!(fs::metadata(site.path(file)).expect("the file").uid(), site.user("cadadm").uid);
}

/// Another name of the same inode is a file of its own: an edit of it does not change the policy.
#[test]
fn another_name_of_the_same_file_is_no_file_of_the_policy() {
    needs_root!();
    let site = site();
    let one = "version = 1\n";
    site.system_file("policy.d/10-one.toml", one);
    set_mode(&site.path("etc/rungate/policy.d"), 0o755);
    fs::hard_link(site.path("etc/rungate/policy.d/10-one.toml"), site.path("etc/copy.toml")).expect("a name");
    site.script("comment", "#!/bin/sh\necho '# changed' >> \"$1\"\n");
    let outcome = edit(&site, "comment", ["--yes", "/etc/copy.toml"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{}{}", outcome.stdout, outcome.stderr);
    assert_eq!(text(&site, "etc/copy.toml"), format!("{one}# changed\n"));
    assert_eq!(text(&site, "etc/rungate/policy.d/10-one.toml"), one);
}

/// For anybody else it is their own policy.
#[test]
fn a_user_edits_their_own() {
    let site = Site::new();
    editors(&site);
    let me = Account::own();
    if crate::support::is_root() {
        site.account("ann", &[]);
    }
    let ann = if crate::support::is_root() { site.user("ann") } else { me };
    let user = |test: Test| if crate::support::is_root() { test.user("ann") } else { test };
    let home = site.path("work/home");
    fs::create_dir(&home).expect("a home");
    if crate::support::is_root() {
        chown(&home, Some(ann.uid), Some(ann.gid)).expect("chown");
    }
    user(edit(&site, "append", ["--yes"]))
        .env("EDITOR", "$DIR/bin/append -x")
        .env("XDG_CONFIG_HOME", &home)
        .stdout("+ repository more (policy.toml:3)\n...\n")
        .stderr("[..]warning: [..]\n...\n")
        .status(0);
    assert_eq!(text(&site, "work/home/rungate/policy.toml"), "version = 1\n\n[repository.more]\nlimit = 1\n");
    let mode = |path: &str| fs::metadata(site.path(path)).expect("it is there").mode() & 0o7777;
    assert_eq!((mode("work/home/rungate"), mode("work/home/rungate/policy.toml")), (0o700, 0o644));

    // Their changes are known too, and are taken back one after the other.
    user(edit(&site, "append", ["--yes"]))
        .env("EDITOR", "sed -i s/^limit.=.1/limit=2/")
        .env("XDG_CONFIG_HOME", &home)
        .stderr("...\n")
        .outcome();
    let own = |words: &[&str]| user(site.test().args(["policy"]).args(words)).env("XDG_CONFIG_HOME", &home);
    let log = own(&["log"]).outcome().stdout;
    assert_eq!(log.matches(" the policy ").count(), 2, "{log}");
    let policy = || text(&site, "work/home/rungate/policy.toml");
    assert!(policy().ends_with("limit=2\n"), "{}", policy());
    assert_eq!(own(&["undo", "--yes"]).outcome().ending, Ending::Status(0));
    assert!(policy().ends_with("limit = 1\n"), "{}", policy());
    assert_eq!(own(&["undo", "--yes", "3"]).outcome().ending, Ending::Status(0));
    assert_eq!(policy(), "version = 1\n");
    assert!(!site.path("etc/rungate/policy.past").exists(), "that is the system's");
}

/// Whoever cannot put a file there is told before anything is edited.
#[test]
fn the_systems_policy_is_not_edited_by_a_user() {
    needs_root!();
    let site = site();
    site.account("ann", &[]);
    edit(&site, "lower", ["--yes", "/etc/rungate/policy.toml"])
        .user("ann")
        .stderr(
            "rungate: /etc/rungate/policy.toml cannot be changed by you: open: Permission denied\n\
             The directory /etc/rungate belongs to root[..]\n",
        )
        .status(71);
}

/// Whoever is at the terminal chooses: edit again, put in place, throw away, or keep the copy.
#[test]
fn at_a_terminal_there_is_a_choice() {
    needs_root!();
    needs_tmux!();
    let site = site();
    site.rungate_in_bin();
    // Called so, it is sent to the line of the first fault.
    site.script(
        "nano",
        "#!/bin/sh\necho \"$@\" >> $DIR/work/called\nfor file; do :; done\n\
         if grep -q many \"$file\"; then sed -i 's/\"many\"/4/' \"$file\"; else sed -i 's/^limit = 5/limit = \"many\"/' \"$file\"; fi\n",
    );
    let terminal =
        Terminal::open_for(site.test().env("EDITOR", "$DIR/bin/nano").env("TMPDIR", "$DIR/work"), (80, 40));
    terminal.command("rungate policy edit; echo status $?");
    terminal.shows("(e)dit again, (t)hrow away, or (q)uit and keep the copy?");
    terminal.enter("p");
    terminal.shows_when("the question again", |screen| screen.matches("(e)dit again").count() == 2);
    assert_eq!(text(&site, "etc/rungate/policy.toml"), POLICY);
    terminal.enter("e");
    terminal.shows("limit  5 -> 4");
    terminal.shows("(p)ut in place, (e)dit again,");
    terminal.enter("p");
    terminal.shows("status 0");
    assert_eq!(text(&site, "etc/rungate/policy.toml"), POLICY.replace("= 5", "= 4"));
    let called = text(&site, "work/called");
    let calls: Vec<&str> = called.lines().collect();
    assert!(calls.len() == 2 && calls[0].starts_with('/') && calls[1].starts_with("+4 /"), "{called}");
    assert_eq!(copies(&site), [] as [PathBuf; 0]);
    // The end of the terminal is no answer, and loses nothing.
    let append = site.expand("$DIR/bin/append");
    terminal.command(&format!("clear; EDITOR='{append} x' rungate policy edit"));
    terminal.shows("(p)ut in place, (e)dit again, (t)hrow away, or (q)uit and keep the copy?");
    terminal.press("C-d");
    terminal.shows("The edited text is in");
    assert_eq!(copies(&site).len(), 1);
    terminal.command(&format!("clear; EDITOR='{append} x' rungate policy edit"));
    terminal.shows("(p)ut in place, (e)dit again, (t)hrow away, or (q)uit and keep the copy?");
    terminal.enter("t");
    terminal.shows_when("the prompt", |screen| screen.trim_end().ends_with('$'));
    assert_eq!(copies(&site).len(), 1, "what was thrown away is gone");
    assert_eq!(text(&site, "etc/rungate/policy.toml"), POLICY.replace("= 5", "= 4"));
}
