//! `rungate policy undo` where the policy has drop-ins of departments, links, and files that are no drop-ins.

use std::{
    fs,
    os::unix::fs::{MetadataExt, chown, symlink},
    path::PathBuf,
};

use crate::support::{Ending, Outcome, Site, needs_root, needs_strace, set_mode};

/// A system's policy with this limit, which delegates a drop-in to cadadm.
fn main(limit: u32) -> String {
    format!(
        "version = 1\n\n[delegate.\"20-cad.toml\"]\nowner = \"cadadm\"\nusers = [\"%cad\"]\ncommands = [\"matlab\"]\n\n\
         [repository.matlab]\nlimit = {limit}\n"
    )
}

const OF_CAD: &str =
    "version = 1\n\n[repository.own]\nlimit = 1\n\n[[rule]]\nname = \"cad\"\nacquire = [\"own\"]\n";

fn site() -> Site {
    let site = Site::new();
    site.directory_over_run();
    site.account("cadadm", &["cad"]);
    site.system_file("policy.toml", &main(1));
    set_mode(&site.path("etc/rungate"), 0o755);
    fs::create_dir_all(drop_in(&site, "")).expect("policy.d");
    set_mode(&drop_in(&site, ""), 0o755);
    site
}

fn drop_in(site: &Site, name: &str) -> PathBuf {
    site.path("etc/rungate/policy.d").join(name)
}

fn is_cadadms(site: &Site, path: &str) {
    chown(site.path(path), Some(site.user("cadadm").uid), None).expect("chown");
}

/// Where the drop-in of cad is, and a file in a directory of cadadm's, to which it may be a link.
fn file_of_cad(site: &Site) -> (PathBuf, PathBuf) {
    fs::create_dir(site.path("cad")).expect("a directory of cad");
    site.write("cad/cad.toml", OF_CAD);
    is_cadadms(site, "cad");
    is_cadadms(site, "cad/cad.toml");
    set_mode(&site.path("cad"), 0o755);
    (drop_in(site, "20-cad.toml"), site.path("cad/cad.toml"))
}

/// Root's link to a file of cadadm's in a directory of root's, and that file.
fn link_of_roots(site: &Site) -> (PathBuf, PathBuf) {
    fs::create_dir(site.path("etc/cad")).expect("a directory");
    set_mode(&site.path("etc/cad"), 0o755);
    site.write("etc/cad/cad.toml", OF_CAD);
    is_cadadms(site, "etc/cad/cad.toml");
    let link = drop_in(site, "20-cad.toml");
    symlink("/etc/cad/cad.toml", &link).expect("a link");
    (link, site.path("etc/cad/cad.toml"))
}

#[track_caller]
fn policy(site: &Site, arguments: &[&str]) -> Outcome {
    let outcome = site.test().args(["policy"]).args(arguments).args(["--yes"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{arguments:?}: {}{}", outcome.stdout, outcome.stderr);
    outcome
}

/// Makes this the limit.
#[track_caller]
fn change(site: &Site, limit: u32) -> Outcome {
    site.write("work/new.toml", &main(limit));
    policy(site, &["install", "--name", "policy.toml", "new.toml"])
}

#[track_caller]
fn undone(site: &Site, limit: u32) {
    policy(site, &["undo"]);
    assert_eq!(fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy"), main(limit));
}

/// A link of root into the directory of a department stays, and its text is no part of a change.
#[test]
fn a_link_to_a_department_is_kept_as_a_link() {
    needs_root!();
    let site = site();
    let (link, to) = file_of_cad(&site);
    symlink(&to, &link).expect("a link");
    change(&site, 2);
    let later = format!("{OF_CAD}# later\n");
    fs::write(&to, &later).expect("cadadm's change");
    undone(&site, 1);
    assert_eq!(fs::read_to_string(&to).expect("cadadm's"), later, "it is not root's change");
    policy(&site, &["install", "--remove", "20-cad.toml"]);
    policy(&site, &["undo"]);
    assert_eq!(fs::read_link(&link).expect("the link again"), to);

    // A FIFO keeps no change, and no copy, from being made; nor does nothing at all.
    fs::remove_file(&to).expect("cadadm's");
    nix::unistd::mkfifo(&to, nix::sys::stat::Mode::from_bits_truncate(0o644)).expect("a FIFO");
    change(&site, 3);
    undone(&site, 1);
    fs::remove_file(&to).expect("cadadm's");
    change(&site, 4);
    undone(&site, 1);
    assert_eq!(fs::read_link(&link).expect("the link"), to);
}

/// A link whose file is gone by now is left alone, and the rest of the change is undone.
#[test]
fn a_link_to_a_file_that_is_gone_is_left_alone() {
    needs_root!();
    let site = site();
    let (link, to) = file_of_cad(&site);
    symlink(&to, &link).expect("a link");
    site.write("work/policy.toml", &main(2));
    policy(&site, &["install", "policy.toml", "--remove=20-cad.toml"]);
    fs::remove_file(&to).expect("cadadm's");
    let told = policy(&site, &["undo"]).stderr;
    let gone = format!("was a link to {}, where no policy is\nIt is left alone.\n", to.display());
    assert!(told.contains(&gone), "{told}");
    assert_eq!(fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy"), main(1));
    assert!(!link.is_symlink());
}

/// Root's link leads to a file of a department in a directory of root's. An installation replaces that file, so
/// the undo brings its text back; where the link was removed, it brings the link back.
#[test]
fn a_departments_file_behind_a_link_of_roots_comes_back() {
    needs_root!();
    let site = site();
    let (link, file) = link_of_roots(&site);
    site.write("work/20-cad.toml", &format!("{OF_CAD}# root's\n"));
    policy(&site, &["install", "20-cad.toml"]);
    assert_ne!(fs::read_to_string(&file).expect("the file"), OF_CAD);
    for change in ["20-cad.toml", "--remove=20-cad.toml"] {
        policy(&site, &["undo"]);
        assert_eq!(fs::read_to_string(&file).expect("the file"), OF_CAD, "{change}");
        assert_eq!(fs::metadata(&file).expect("the file").uid(), site.user("cadadm").uid);
        assert_eq!(fs::read_link(&link).expect("a link"), PathBuf::from("/etc/cad/cad.toml"), "{change}");
        policy(&site, &["install", "--remove=20-cad.toml"]);
        assert!(!link.is_symlink());
    }
}

/// A link that was removed after its file was replaced would come back with the later text. The text of the copy
/// comes back instead.
#[test]
fn a_removed_link_does_not_come_back_with_a_later_text() {
    needs_root!();
    let site = site();
    let of = |limit: u32| format!("version = 1\n\n[repository.x]\nlimit = {limit}\n");
    fs::create_dir(site.path("etc/src")).expect("a directory");
    set_mode(&site.path("etc/src"), 0o755);
    site.write("etc/src/x.toml", &of(1));
    let link = drop_in(&site, "50-x.toml");
    symlink("/etc/src/x.toml", &link).expect("a link");
    site.write("work/50-x.toml", &of(9));
    policy(&site, &["install", "50-x.toml"]);
    policy(&site, &["install", "--remove=50-x.toml"]);
    policy(&site, &["undo", "2"]);
    assert_eq!(fs::read_to_string(&link).expect("the drop-in"), of(1));
    assert!(!link.is_symlink());
    assert_eq!(fs::read_to_string(site.path("etc/src/x.toml")).expect("the file"), of(9));
}

/// A main file behind a link to a share that was not mounted during a change is left alone by the undo.
#[test]
fn a_main_file_that_could_not_be_read_is_left_alone() {
    needs_root!();
    let site = site();
    let (file, share, away) =
        (site.path("etc/rungate/policy.toml"), site.path("etc/share"), site.path("etc/away"));
    fs::create_dir(&away).expect("a directory");
    set_mode(&away, 0o755);
    fs::rename(&file, away.join("policy.toml")).expect("rename");
    symlink("/etc/share/policy.toml", &file).expect("a link");
    site.write("work/50-more.toml", "version = 1\n\n[repository.more]\nlimit = 1\n");
    policy(&site, &["install", "--allow-uncounted", "50-more.toml"]);
    fs::rename(&away, &share).expect("the share is mounted");
    let left = "/etc/rungate/policy.toml is left alone: it could not be read before the change\n";
    let undone = policy(&site, &["undo", "--allow-uncounted"]).stderr;
    assert!(undone.contains(left), "{undone}");
    assert!(!drop_in(&site, "50-more.toml").exists());
    assert_eq!(fs::read_to_string(share.join("policy.toml")).expect("the policy"), main(1));
    assert!(file.is_symlink());
}

/// A drop-in that has become a link to a department since the change is left alone, and the change is undone.
#[test]
fn a_drop_in_that_has_become_a_link_is_left_alone() {
    needs_root!();
    let site = site();
    site.system_file("policy.d/20-cad.toml", OF_CAD);
    change(&site, 2);
    let (link, to) = file_of_cad(&site);
    fs::remove_file(&link).expect("the drop-in");
    symlink(&to, &link).expect("a link");
    let told = policy(&site, &["undo"]).stderr;
    assert!(told.contains("belongs to cadadm") && told.contains("It is left alone."), "{told}");
    assert_eq!(fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy"), main(1));
    assert_eq!(fs::read_link(&link).expect("the link"), to);
}

/// A copy that is about to be removed is no copy any more, also if rungate is killed meanwhile.
#[test]
fn half_a_copy_is_none() {
    needs_root!();
    needs_strace!();
    let site = site();
    let copies = || site.test().args(["policy", "log"]).outcome().stdout.lines().count() - 1;
    for limit in 2..=11 {
        change(&site, limit);
    }
    assert_eq!(copies(), 10);
    site.write("work/new.toml", &main(12));
    let install = site.test().args(["policy", "install", "--yes", "--name", "policy.toml", "new.toml"]);
    let inject = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=unlinkat:signal=SIGKILL:when=1"];
    assert_ne!(install.through(inject).outcome().ending, Ending::Status(0), "it is killed");
    assert_eq!(copies(), 10);
    change(&site, 12);
    assert_eq!(fs::read_dir(site.path("etc/rungate/policy.past")).expect("the copies").count(), 10);
}

/// A file of a department in the system's directory comes back with its owner and mode. One that is too long is
/// not kept; undo leaves it alone, and says so.
#[test]
fn a_departments_file_stays_the_departments() {
    needs_root!();
    let site = site();
    site.system_file("policy.d/20-cad.toml", OF_CAD);
    is_cadadms(&site, "etc/rungate/policy.d/20-cad.toml");
    let file = drop_in(&site, "20-cad.toml");
    set_mode(&file, 0o640);
    policy(&site, &["install", "--remove", "20-cad.toml"]);
    policy(&site, &["undo"]);
    let status = fs::metadata(&file).expect("the drop-in again");
    assert_eq!((status.uid(), status.mode() & 0o7777), (site.user("cadadm").uid, 0o640));
    fs::File::options()
        .write(true)
        .open(&file)
        .and_then(|file| file.set_len(200 << 20))
        .expect("a long file");
    let told = change(&site, 2).stderr;
    assert!(told.contains("No copy of it is kept: rungate policy undo leaves it alone."), "{told}");
    undone(&site, 1);
    assert_eq!(fs::metadata(&file).expect("it is there").len(), 200 << 20);
    policy(&site, &["install", "--remove", "20-cad.toml"]);
    let outcome = site.test().args(["policy", "undo", "--yes"]).outcome();
    let left = "rungate: /etc/rungate/policy.d/20-cad.toml is left alone: it could not be read before the change\n\
                rungate: there is nothing else to undo\nTo see older changes: rungate policy log\n";
    assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(1), left));
}

/// A drop-in that became root's with the delegation that was taken from it comes back as the department's.
#[test]
fn what_a_department_lost_is_the_departments_again() {
    needs_root!();
    let site = site();
    site.system_file("policy.d/20-cad.toml", OF_CAD);
    is_cadadms(&site, "etc/rungate/policy.d/20-cad.toml");
    let file = drop_in(&site, "20-cad.toml");
    set_mode(&file, 0o640);
    fs::create_dir_all(site.path("work/new/policy.d")).expect("a directory");
    for directory in ["work/new", "work/new/policy.d"] {
        set_mode(&site.path(directory), 0o755);
    }
    site.write("work/new/policy.toml", "version = 1\n\n[repository.matlab]\nlimit = 1\n");
    site.write("work/new/policy.d/20-cad.toml", &format!("{OF_CAD}# root's\n"));
    policy(&site, &["install", "new"]);
    let state = || fs::metadata(&file).map(|status| (status.uid(), status.mode() & 0o7777)).expect("a file");
    assert_eq!(state(), (0, 0o644));
    undone(&site, 1);
    assert_eq!(fs::read_to_string(&file).expect("the drop-in"), OF_CAD);
    assert_eq!(state(), (site.user("cadadm").uid, 0o640));
    site.test().user("cadadm").args(["policy", "check"]).stdout("[..]").stderr("...").status(0);
}

/// Files in the directory that are no drop-ins are no part of a change.
#[test]
fn hidden_files_are_left_alone() {
    needs_root!();
    let site = site();
    change(&site, 2);
    fs::write(drop_in(&site, ".hid.toml"), "version = 1\n").expect("a hidden file");
    symlink("ann@host.123", drop_in(&site, ".#x.toml")).expect("a lock of emacs");
    undone(&site, 1);
    change(&site, 3);
    undone(&site, 1);
    assert!(drop_in(&site, ".hid.toml").exists() && drop_in(&site, ".#x.toml").is_symlink());
}

/// The copy of the last change is the last one, also after the clock was set back by a year.
#[test]
fn a_clock_that_is_set_back_reorders_nothing() {
    needs_root!();
    let site = site();
    (2..13).for_each(|limit| drop(change(&site, limit)));
    let past = site.path("etc/rungate/policy.past");
    for copy in fs::read_dir(&past).expect("the copies").flatten() {
        let name = copy.file_name().into_string().expect("a time");
        let (year, rest) = name.split_at(4);
        let next = year.parse::<u32>().expect("a year") + 1;
        fs::rename(copy.path(), past.join(format!("{next}{rest}"))).expect("rename");
    }
    change(&site, 20);
    undone(&site, 12);
}

/// The copies are what root installs next, so no other user can write to them.
#[test]
fn copies_are_no_other_users_to_change() {
    needs_root!();
    let site = site();
    site.write("work/new.toml", &main(2));
    let test = site.test().args(["policy", "install", "--yes", "--name", "policy.toml", "new.toml"]);
    let ending = test.through(["sh", "-c", "umask 0; exec \"$@\"", "sh"]).outcome().ending;
    assert_eq!(ending, Ending::Status(0));
    let past = site.path("etc/rungate/policy.past");
    let copy = fs::read_dir(&past).expect("the copies").flatten().next().expect("a copy").path();
    for path in [&past, &copy, &copy.join("policy.d"), &copy.join("policy.toml"), &copy.join("note")] {
        let mode = fs::metadata(path).expect("it is there").mode();
        assert_eq!(mode & 0o022, 0, "{}: {mode:o}", path.display());
    }
    set_mode(&copy, 0o777);
    let outcome = site.test().args(["policy", "undo", "--yes"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(78), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("all users can write to it"), "{}", outcome.stderr);
}

/// A copy is not a program of root's: it has no setuid bit that a user gave to a drop-in. No other user can
/// reach it.
#[test]
fn a_copy_is_not_a_program_of_roots() {
    needs_root!();
    for mode in [0o4755, 0o2755] {
        let site = site();
        site.system_file("policy.d/20-cad.toml", OF_CAD);
        is_cadadms(&site, "etc/rungate/policy.d/20-cad.toml");
        let files = ["policy.toml", "policy.d/20-cad.toml"];
        for file in files {
            set_mode(&site.path("etc/rungate").join(file), mode);
        }
        let past = site.path("etc/rungate/policy.past");
        fs::create_dir(&past).expect("the directory of an earlier program");
        set_mode(&past, 0o755);
        change(&site, 2);
        let copy = fs::read_dir(&past).expect("the copies").flatten().next().expect("a copy").path();
        let mode_of = |path: PathBuf| fs::metadata(path).expect("it is there").mode() & 0o7777;
        for file in files {
            assert_eq!(mode_of(copy.join(file)), 0o644, "{file} of {mode:o}");
        }
        for directory in [past, copy.clone(), copy.join("policy.d")] {
            assert_eq!(mode_of(directory), 0o700);
        }
    }
}

/// A copy of a user's drop-in is root's, so that what is undone is what was there.
#[test]
fn copies_are_roots_also_of_a_users_drop_in() {
    needs_root!();
    let site = site();
    site.system_file("policy.d/20-cad.toml", OF_CAD);
    is_cadadms(&site, "etc/rungate/policy.d/20-cad.toml");
    change(&site, 2);
    let past = site.path("etc/rungate/policy.past");
    let copy = fs::read_dir(&past).expect("the copies").flatten().next().expect("a copy").path();
    let kept = copy.join("policy.d/20-cad.toml");
    let status = fs::metadata(&kept).expect("the copy of the drop-in");
    assert_eq!((status.uid(), status.mode() & 0o7777), (0, 0o644));
    let log = site.test().args(["policy", "log"]).outcome().stdout;
    assert!(log.ends_with("replace the main file /etc/rungate/policy.toml\n"), "{log}");
    undone(&site, 1);
    let file = drop_in(&site, "20-cad.toml");
    assert_eq!(fs::metadata(&file).expect("the drop-in").uid(), site.user("cadadm").uid);

    // One that the user could have written is not believed.
    let uid = site.user("cadadm").uid;
    chown(&kept, Some(uid), None).expect("chown");
    let outcome = site.test().args(["policy", "undo", "2", "--yes"]).outcome();
    assert_eq!(outcome.ending, Ending::Status(78), "{}", outcome.stderr);
    assert!(
        outcome
            .stderr
            .contains(&format!("20-cad.toml: belongs to cadadm ({uid}), neither to root nor to you")),
        "{}",
        outcome.stderr
    );
}

/// The text of a user does not become root's where the policy delegates the drop-in no more.
#[test]
fn a_users_drop_in_comes_back_only_with_its_delegation() {
    needs_root!();
    let site = site();
    let alone = "version = 1\n\n[repository.matlab]\nlimit = 1\n";
    site.system_file("policy.toml", alone);
    site.system_file("policy.d/20-cad.toml", OF_CAD);
    is_cadadms(&site, "etc/rungate/policy.d/20-cad.toml");
    let file = drop_in(&site, "20-cad.toml");
    site.write("work/new.toml", &main(2));
    policy(&site, &["install", "--allow-uncounted", "--name", "policy.toml", "new.toml"]);
    let later = format!("{OF_CAD}# later\n");
    fs::write(&file, &later).expect("cadadm's change");
    let outcome = site.test().args(["policy", "undo", "--yes", "--allow-uncounted"]).outcome();
    let uid = site.user("cadadm").uid;
    let left = format!(
        "policy.d/20-cad.toml is left alone: it belonged to cadadm ({uid}), and the policy would not delegate it to that user\n"
    );
    assert!(outcome.stderr.contains(&left), "{}", outcome.stderr);
    // The policy was refused before the change, and would be again.
    assert_eq!(outcome.ending, Ending::Status(1), "{}", outcome.stderr);
    assert_eq!(fs::metadata(&file).expect("the drop-in").uid(), site.user("cadadm").uid);
    assert_eq!(fs::read_to_string(&file).expect("the drop-in"), later);
    assert_eq!(fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy"), main(2));

    // Where it alone differs, nothing is done, and the policy is not the same as before.
    site.system_file("policy.toml", alone);
    let outcome = site.test().args(["policy", "undo", "--yes"]).outcome();
    let nothing = "rungate: there is nothing else to undo\nTo see older changes: rungate policy log\n";
    assert_eq!(outcome.ending, Ending::Status(1), "{}", outcome.stderr);
    assert!(outcome.stderr.ends_with(&format!("{left}{nothing}")), "{}", outcome.stderr);
    fs::write(&file, OF_CAD).expect("the text as before");
    let outcome = site.test().args(["policy", "undo", "--yes"]).outcome();
    let same = "rungate: there is nothing to undo: the policy is the same as before the change\n";
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    assert!(outcome.stderr.ends_with(&format!("{left}{same}")), "{}", outcome.stderr);
}

/// A link to the file of a user does not come back where the policy does not delegate the drop-in: the policy
/// would distrust the file, and every launch would be refused.
#[test]
fn a_link_to_a_users_file_comes_back_only_with_its_delegation() {
    needs_root!();
    let site = site();
    site.system_file("policy.toml", "version = 1\n\n[repository.matlab]\nlimit = 1\n");
    let (link, to) = file_of_cad(&site);
    symlink(&to, &link).expect("a link");
    policy(&site, &["install", "--allow-uncounted", "--remove", "20-cad.toml"]);
    assert!(!link.is_symlink());
    let outcome = site.test().args(["policy", "undo", "--yes", "--allow-uncounted"]).outcome();
    let left = format!(
        "rungate: /etc/rungate/policy.d/20-cad.toml is left alone: it was a link to a file of cadadm ({}), and the policy \
         would not delegate it to that user\nrungate: there is nothing else to undo\nTo see older changes: rungate \
         policy log\n",
        site.user("cadadm").uid
    );
    assert!(outcome.stderr.ends_with(&left), "{}", outcome.stderr);
    assert_eq!(outcome.ending, Ending::Status(1), "{}", outcome.stderr);
    assert!(!link.is_symlink());
    assert_eq!(site.test().args(["policy", "check"]).outcome().ending, Ending::Status(0));
}

/// A drop-in that comes back to a policy without its delegation is root's again, whoever it was given to, and
/// whether its text was changed or not.
#[test]
fn a_drop_in_that_is_no_longer_delegated_is_roots() {
    needs_root!();
    let site = site();
    let alone = "version = 1\n\n[repository.matlab]\nlimit = 1\n";
    site.system_file("policy.toml", alone);
    site.system_file("policy.d/20-cad.toml", OF_CAD);
    let file = drop_in(&site, "20-cad.toml");
    for later in [format!("{OF_CAD}# later\n"), OF_CAD.to_owned()] {
        change(&site, 1);
        is_cadadms(&site, "etc/rungate/policy.d/20-cad.toml");
        fs::write(&file, later).expect("cadadm's change");
        policy(&site, &["undo"]);
        assert_eq!(fs::read_to_string(site.path("etc/rungate/policy.toml")).expect("the policy"), alone);
        assert_eq!(fs::read_to_string(&file).expect("the drop-in"), OF_CAD);
        let status = fs::metadata(&file).expect("the drop-in");
        assert_eq!((status.uid(), status.mode() & 0o7777), (0, 0o644));
        site.test().args(["policy", "check"]).stdout("[..]").stderr("...").status(0);
    }
}

/// Undo does not write through a link that was moved since: the link comes back, and the file behind the other one stays
/// as it is.
#[test]
fn a_link_that_was_moved_since_comes_back() {
    needs_root!();
    let site = site();
    let (link, _) = link_of_roots(&site);
    let roots = format!("{OF_CAD}# root's\n");
    site.write("etc/cad/roots.toml", &roots);
    set_mode(&site.path("etc/cad/roots.toml"), 0o644);
    site.write("work/30-x.toml", "version = 1\n");
    policy(&site, &["install", "30-x.toml"]);
    fs::remove_file(&link).expect("the link");
    symlink("/etc/cad/roots.toml", &link).expect("a link");
    policy(&site, &["undo"]);
    assert_eq!(fs::read_link(&link).expect("a link"), PathBuf::from("/etc/cad/cad.toml"));
    assert_eq!(fs::read_to_string(site.path("etc/cad/roots.toml")).expect("the file"), roots);
    assert_eq!(fs::metadata(site.path("etc/cad/roots.toml")).expect("the file").uid(), 0);
}
