//! The files of `packaging/`: a service and a timer of systemd for `rungate expire`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Ending, Site, needs_root, skip};

fn packaged(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name);
    fs::read_to_string(path).expect("a packaged file")
}

const SERVICE: &str = "rungate-expire.service";

/// systemd understands every line, and what it is to start is there.
#[test]
fn systemd_understands_the_units() {
    if !Path::new("/usr/bin/systemd-analyze").exists() {
        return skip("systemd-analyze(1) is not installed");
    }
    let site = Site::new();
    let rungate = site.rungate().display().to_string();
    for name in [SERVICE, "rungate-expire.timer"] {
        site.write(Path::new("work").join(name), &packaged(name).replace("/usr/bin/rungate", &rungate));
    }
    let analyze = site.test().program("/usr/bin/systemd-analyze").args(["verify", "--man=no"]);
    analyze.clone().args(["$DIR/work/rungate-expire.service", "$DIR/work/rungate-expire.timer"]).status(0);
    site.write("work/wrong.service", &packaged(SERVICE).replace("ProtectHome", "ProtectHouse"));
    let outcome = analyze.args(["$DIR/work/wrong.service"]).outcome();
    assert!(outcome.stderr.contains("ProtectHouse"), "it would say so: {}", outcome.stderr);
}

/// The few capabilities that the service keeps are enough to end other users' jobs, whatever keeps their slots, in lock files
/// that only they can read.
#[test]
fn the_service_keeps_the_capabilities_that_it_needs() {
    needs_root!();
    let service = packaged(SERVICE);
    let kept =
        service.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).expect("capabilities");
    let kept: Vec<String> =
        kept.split(' ').map(|name| format!("+{}", name.trim_start_matches("CAP_").to_lowercase())).collect();
    let all = kept.join(",");
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
        assert_ne!(
            with("+kill").outcome().stderr.contains("ended"),
            true,
            "{hold}: the file can be read by its user alone"
        );
        with(&all)
            .stderr("rungate: seats [games]: ended PID [pid] (job), overdue by [age], with SIGINT\n")
            .status(0);
        assert_eq!(holder.end().ending, Ending::Signal(2), "{hold}");
    }
}
