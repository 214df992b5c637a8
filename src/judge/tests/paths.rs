//! Which file a launch uses.

use super::site::{Launch, file, under};

fn repository(settings: &str) -> Launch {
    under(&format!("[repository.r]\nlimit = 1\n{settings}\n[[rule]]\ngroups = [\"*\"]\nacquire = [\"r\"]\n"))
}

#[test]
fn the_path_of_a_repository_defaults_to_its_name() {
    repository("").locks(["/run/rungate/r.lock"]);
    repository("path = \"sub/x.lock\"").locks(["/run/rungate/sub/x.lock"]);
    repository("path = \"/var/lock/x\"").locks(["/var/lock/x"]);
    repository("path = \"{runtime}/x\"").locks(["/run/user/4711/rungate/x"]);
    under("[defaults]\ndirectory = \"/srv/locks\"\n[repository.r]\nlimit = 1\n[[rule]]\nacquire = [\"r\"]\n")
        .locks(["/srv/locks/r.lock"]);
}

#[test]
fn per_gives_a_file_for_each_user_group_host_command_or_directory_or_for_each_set_of_them() {
    repository("per = \"user\"").locks(["/run/rungate/r.4711.lock"]);
    repository("per = \"group\"").locks(["/run/rungate/r.100.lock"]);
    repository("per = \"host\"").locks(["/run/rungate/r.ws17.example.lock"]);
    repository("per = \"command\"").locks(["/run/rungate/r.matlab.lock"]);
    repository("per = [\"user\", \"host\"]").locks(["/run/rungate/r.4711,ws17.example.lock"]);
    repository("per = [\"user\", \"host\"]").gives("1 of 1 r [ann, ws17.example]");
}

#[test]
fn placeholders_stand_for_what_differs_from_launch_to_launch() {
    repository("path = \"{user}/{uid}.{gid}\"").locks(["/run/rungate/ann/4711.100"]);
    repository("path = \"{group}\"").locks(["/run/rungate/users"]);
    repository("path = \"{env.PROJECT}.lock\"")
        .variable("PROJECT", "apollo")
        .locks(["/run/rungate/apollo.lock"]);
    repository("path = \"{env.MY_2}.lock\"").variable("MY_2", "x").locks(["/run/rungate/x.lock"]);
    repository("path = \"{arg2}.lock\"").arguments(["a", "b"]).locks(["/run/rungate/b.lock"]);
    repository("path = \"{user}.lock\"").uid(9999).locks(["/run/rungate/%239999.lock"]);
}

/// A user who is both in the directory and in the name of the file is one member.
#[test]
fn a_member_that_is_twice_in_a_path_is_named_once() {
    repository("path = \"{user}/{uid}.{gid}\"").gives("1 of 1 r [ann, users]");
}

#[test]
fn the_file_of_a_user_must_belong_to_him_and_nobody_elses_need() {
    let owner = |launch: Launch| launch.claims(|claims| file(claims[0]).owner);
    assert_eq!(owner(repository("per = \"user\"")), Some(4711));
    assert_eq!(owner(repository("path = \"{user}\"")), Some(4711));
    assert_eq!(owner(repository("per = \"group\"")), None);
}

#[test]
fn what_is_created_and_what_must_be_there_already() {
    let base = |launch: Launch| {
        launch.claims(|claims| (file(claims[0]).creation.base.clone(), file(claims[0]).creation.create_base))
    };
    assert_eq!(base(repository("")), ("/run/rungate".into(), false));
    assert_eq!(base(repository("path = \"a/{user}/b\"")), ("/run/rungate".into(), false));
    assert_eq!(base(repository("path = \"/srv/a/{user}/b\"")), ("/srv/a".into(), false));
    assert_eq!(base(repository("path = \"/srv/b\"")), ("/srv".into(), false));
    assert_eq!(base(repository("path = \"/b\"")), ("/".into(), false));
}

#[test]
fn a_byte_that_may_not_stand_in_a_name_is_written_in_digits() {
    let file = |argument: &str| {
        let path = repository("path = \"{arg1}\"").arguments([argument]).paths().remove(0);
        path.strip_prefix("/run/rungate").expect("below the directory").to_string_lossy().into_owned()
    };
    assert_eq!(file("R2024a-x_y.z"), "R2024a-x_y.z");
    assert_eq!(file("a/b"), "a%2Fb");
    assert_eq!(file(".."), "%2E.");
    assert_eq!(file(".ssh"), "%2Essh");
    assert_eq!(file(""), "%_");
    assert_ne!(file("a b"), file("a_b"));
    assert_ne!(file(&file("a/b")), file("a/b"), "what looks like a changed value is changed itself");
    assert_eq!(file(&"x".repeat(300)).len(), 200);
    assert_ne!(file(&"x".repeat(300)), file(&"x".repeat(301)));
}

#[test]
fn a_launch_without_the_argument_shares_one_file_with_others_like_it() {
    let none: [&str; 0] = [];
    let paths = |arguments: &[&str]| repository("path = \"{arg1}.lock\"").arguments(arguments).paths();
    assert_eq!(paths(&none), paths(&[""]));
    assert_ne!(paths(&none), paths(&["x"]));
}

#[test]
fn several_values_in_one_name_never_run_into_each_other() {
    let file = |path: &str, left: &str, right: &str| {
        repository(&format!("path = \"{path}\"")).arguments([left, right]).paths()
    };
    for path in ["{arg1}{arg2}", "{arg1}-{arg2}", "{arg1}.{arg2}", "{arg1}_x_{arg2}"] {
        assert_ne!(file(path, "a", "b-c"), file(path, "a-b", "c"), "{path}");
        assert_ne!(file(path, "a", "b.c"), file(path, "a.b", "c"), "{path}");
        assert_ne!(file(path, "a", "bc"), file(path, "ab", "c"), "{path}");
        assert_ne!(file(path, "a", "b_x_c"), file(path, "a_x_b", "c"), "{path}");
    }
    assert_eq!(file("{arg1},{arg2}", "a-b", "c.d"), [std::path::PathBuf::from("/run/rungate/a-b,c.d")]);
    assert_ne!(file("{arg1}%{arg2}", "a", "2F%x"), file("{arg1}%{arg2}", "a/", "25x"));
    // A text with digits does not show where a number ends.
    let of_user = |path: &str, argument: &str, uid: u32| {
        repository(&format!("path = \"{path}\"")).uid(uid).arguments([argument]).paths()
    };
    assert_ne!(of_user("{arg1}1{uid}", "a", 14711), of_user("{arg1}1{uid}", "a1", 4711));
    assert_ne!(of_user("{uid}1{arg1}", "1a", 4711), of_user("{uid}1{arg1}", "a", 47111));
    assert_eq!(file("{arg1},x{arg2}", "ax", "b"), [std::path::PathBuf::from("/run/rungate/ax,xb")]);
    repository("path = \"{command}.{uid}\"").command("run.sh").locks(["/run/rungate/run.sh.4711"]);
}

#[test]
fn arguments_are_joined_so_that_two_never_look_like_one() {
    let file = |arguments: &[&str]| repository("path = \"{args}\"").arguments(arguments).paths();
    assert_ne!(file(&["a b"]), file(&["a", "b"]));
    assert_ne!(file(&["a", ""]), file(&["a"]));
    assert_eq!(file(&["a"]), [std::path::PathBuf::from("/run/rungate/a")]);
}

/// The sample of a repository of the system is root's, and of a caller's own one the caller's.
#[test]
fn a_sample_is_of_root_or_of_the_caller() {
    let policy = |keys: &str| {
        let outside = "outside = { command = [\"/bin/true\"] }";
        format!("[repository.a]\nlimit = 5\n{outside}\n{keys}\n[[rule]]\nacquire = [\"a\"]\n")
    };
    let sample = |launch: Launch| launch.claims(|claims| claims[0].outside.clone().expect("a sample"));
    let path = |path: &str| std::path::PathBuf::from(path);
    let plain = sample(under(&policy("")));
    assert_eq!((plain.sample, plain.owner), (path("/run/rungate-outside/a.jsonl"), 0));
    assert_eq!((plain.uid, plain.host.as_str()), (4711, "ws17.example"));
    let own = sample(under("version = 1\n").own(&policy("")));
    assert_eq!((own.sample, own.owner), (path("/run/user/4711/rungate/outside/a.jsonl"), 4711));
    let is_by = |keys: &str| {
        let sample = sample(under(&policy(keys)));
        (sample.is_by_user, sample.is_by_host)
    };
    assert_eq!((is_by(""), is_by("per = \"user\"")), ((false, false), (true, false)));
    assert_eq!(is_by("per = \"host\""), (false, true));
}

/// A repository without a placeholder in its path has one file, which is known without a launch.
#[test]
fn the_file_that_all_share_is_known() {
    let fixed = |settings: &str| {
        let runtime = std::path::Path::new("/run/user/1");
        repository(settings).with(|policy, _| policy.repositories()[0].fixed_path(runtime))
    };
    for (settings, path) in [
        ("", "/run/rungate/r.lock"),
        ("path = \"a/b.lock\"", "/run/rungate/a/b.lock"),
        ("path = \"/srv/a/b\"", "/srv/a/b"),
        ("path = \"{runtime}/a/b\"", "/run/user/1/a/b"),
    ] {
        assert_eq!(fixed(settings), Some(path.into()), "{settings}");
    }
    assert_eq!((fixed("per = \"user\""), fixed("path = \"a/{host}/b\"")), (None, None));
}

/// The directories that all launches share: the one that must exist, and those below it as far as their names
/// have no placeholder. Nothing below the directory of an absolute path is one.
#[test]
fn the_directories_that_all_share_are_known() {
    let directories = |settings: &str| {
        let runtime = std::path::Path::new("/run/user/1");
        repository(settings).with(|policy, _| policy.repositories()[0].directories(runtime))
    };
    for (settings, shared) in [
        ("", &["/run/rungate"][..]),
        ("per = \"user\"", &["/run/rungate"]),
        ("path = \"a/b/c.lock\"", &["/run/rungate", "/run/rungate/a", "/run/rungate/a/b"]),
        ("path = \"a/{host}/b/c.lock\"", &["/run/rungate", "/run/rungate/a"]),
        ("path = \"/srv/a/{host}/b/c\"", &["/srv/a"]),
        ("path = \"{runtime}/a/b\"", &["/run/user/1/a"]),
    ] {
        let shared: Vec<std::path::PathBuf> = shared.iter().map(Into::into).collect();
        assert_eq!(directories(settings), shared, "{settings}");
    }
}
