//! The files of `packaging/`: services and timers of systemd for `rungate expire` and `rungate metrics`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Account, Ending, Site, needs_root, skip};

fn packaged(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name);
    fs::read_to_string(path).expect("a packaged file")
}

const SERVICE: &str = "rungate-expire.service";
const COMPILE: &str = "rungate-compile.service";
const METRICS: &str = "rungate-metrics.service";

/// systemd understands every line, and what it is to start is there.
#[test]
fn systemd_understands_the_units() {
    if !Path::new("/usr/bin/systemd-analyze").exists() {
        return skip("systemd-analyze(1) is not installed");
    }
    let site = Site::new();
    let rungate = site.rungate().display().to_string();
    let units =
        [SERVICE, "rungate-expire.timer", METRICS, "rungate-metrics.timer", COMPILE, "rungate-compile.path"];
    for name in units {
        site.write(Path::new("work").join(name), &packaged(name).replace("/usr/bin/rungate", &rungate));
    }
    let analyze = site.test().program("/usr/bin/systemd-analyze").args(["verify", "--man=no"]);
    analyze.clone().args(units.map(|name| format!("$DIR/work/{name}"))).status(0);
    site.write("work/wrong.service", &packaged(SERVICE).replace("ProtectHome", "ProtectHouse"));
    let outcome = analyze.args(["$DIR/work/wrong.service"]).outcome();
    assert!(outcome.stderr.contains("ProtectHouse"), "it would say so: {}", outcome.stderr);
}

/// The capabilities that a service keeps, as setpriv(1) writes them.
fn kept_capabilities(service: &str) -> String {
    let text = packaged(service);
    let kept =
        text.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).expect("capabilities");
    let kept: Vec<String> =
        kept.split(' ').map(|name| format!("+{}", name.trim_start_matches("CAP_").to_lowercase())).collect();
    kept.join(",")
}

/// The few capabilities that the service keeps are enough to end other users' jobs, whatever keeps their slots, in lock files
/// that only they can read.
#[test]
fn the_service_keeps_the_capabilities_that_it_needs() {
    needs_root!();
    let all = kept_capabilities(SERVICE);
    for hold in ["process", "descriptor", "supervisor", "tree"] {
        let site = Site::new();
        site.system_policy(&format!(
            "
            version = 1
            [defaults]
            directory   = \"$DIR/repositories\"
            create_mode = \"0600\"

            [repository.seats]
            per          = \"user\"
            limit        = 1
            hold         = \"{hold}\"
            expire_after = \"1ms\"
            expire_grace = \"150ms\"

            [[rule]]
            name     = \"seats\"
            commands = [\"job\"]
            acquire  = [\"seats\"]
            "
        ));
        site.program("job");
        let job = site.test().user("games").args(["run", "--", "job"]).through(["env", "--default-signal"]);
        let mut holder = job.spawn();
        let expire = site.test().args(["expire"]);
        let with = |kept: &str| {
            let bounds = format!("--bounding-set=-all,{kept}");
            expire.clone().through(["setpriv", "--inh-caps=-all", &bounds])
        };
        // Each of them is needed by one hold at least, and together they are enough.
        assert!(
            !with("+kill").outcome().stderr.contains("ended"),
            "{hold}: the file can be read by its user alone"
        );
        with(&all)
            .stderr("rungate: seats [games]: ended PID [pid] (job), overdue by [age], with SIGINT\n")
            .status(0);
        assert_eq!(holder.end().ending, Ending::Signal(2), "{hold}");
    }
}

/// Those that the service of the metrics keeps are enough to look at lock files that only their users can read, and to write
/// into a directory of somebody else.
#[test]
fn the_metrics_reach_the_directory_of_the_exporter() {
    needs_root!();
    let site = Site::new();
    site.system_policy(
        "
        version = 1
        [defaults]
        directory   = \"$DIR/repositories\"
        create_mode = \"0600\"

        [repository.seats]
        per   = \"user\"
        limit = 3
        hold  = \"descriptor\"

        [[rule]]
        name     = \"seats\"
        commands = [\"job\"]
        acquire  = [\"seats\"]
        ",
    );
    site.program("job");
    let _holder = site.test().user("games").args(["run", "--", "job"]).spawn();
    let games = Account::named("games");
    let directory = site.path("work/exporter");
    fs::create_dir(&directory).expect("a new directory");
    std::os::unix::fs::chown(&directory, Some(games.uid), Some(games.gid)).expect("root may give it away");
    let with = |kept: &str| {
        let bounds = format!("--bounding-set=-all,{kept}");
        let metrics = site.test().args(["metrics", "--output", "$DIR/work/exporter/rungate.prom"]);
        metrics.through(["setpriv", "--inh-caps=-all", &bounds]).outcome().ending
    };
    assert_eq!(with("+kill"), Ending::Status(71));
    assert_eq!(with(&kept_capabilities(METRICS)), Ending::Status(0));
    let text = fs::read_to_string(directory.join("rungate.prom")).expect("the metrics");
    assert!(text.contains("rungate_slots_used{repository=\"seats\",member=\"games\"} 1\n"), "{text}");
}

/// The first policy limits nothing, and neither it nor the example in it has anything doubtful.
#[test]
fn the_first_policy_and_its_example_are_well_formed() {
    let site = Site::new();
    let policy = packaged("policy.toml");
    site.write("work/policy.toml", &policy);
    let check = site.test().args(["policy", "check", "--strict", "policy.toml"]);
    check.status(0);
    let uncommented = |line: &str| match line.strip_prefix('#') {
        Some(code) if !code.starts_with([' ', ':']) => code.to_owned(),
        _ => line.to_owned(),
    };
    let example: Vec<String> = policy.lines().map(uncommented).collect();
    assert!(example.contains(&"limit = 10".to_owned()), "{example:?}");
    site.write("work/policy.toml", &example.join("\n"));
    check.status(0);
}

/// "Puts the shims of this host in front of the programs that they stand for", once.
#[test]
fn login_shells_look_into_the_directory_of_shims_first() {
    let site = Site::new();
    site.write("work/profile.sh", &packaged("profile.sh"));
    site.test()
        .program("/bin/sh")
        .env("PATH", "/usr/bin:/bin")
        .args(["-euc", "for time in 1 2; do . ./profile.sh; echo $PATH; done"])
        .stdout("/etc/rungate/shims:/usr/bin:/bin\n/etc/rungate/shims:/usr/bin:/bin\n")
        .status(0);
}

/// What the manifest lists is there, and every manual page is on the list.
#[test]
fn the_package_has_what_there_is() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the manifest");
    let assets: Vec<&str> =
        manifest.lines().filter_map(|line| line.trim().strip_prefix("[\"")?.split('"').next()).collect();
    assert!(assets.len() > 10, "{assets:?}");
    for asset in assets.iter().filter(|asset| !asset.contains('*') && !asset.starts_with("target/")) {
        assert!(root.join(asset).is_file(), "{asset} is not there");
    }
    for page in fs::read_dir(root.join("man")).expect("man") {
        let page = format!("man/{}", page.expect("an entry").file_name().display());
        assert!(assets.contains(&page.as_str()), "{page} is not in the package");
    }
}

/// The scripts of the package are those of a plain shell, and hold no surprises for one.
#[test]
fn the_scripts_of_the_package_are_well_formed() {
    for name in ["postinst", "prerm", "postrm"] {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging/debian").join(name);
        Site::new().test().program("/bin/sh").args(["-n"]).args([path]).status(0);
    }
}
