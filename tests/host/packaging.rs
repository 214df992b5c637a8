//! The files of `packaging/`: services and timers of systemd for `rungate end --overdue` and `rungate metrics`.

use std::fs::{self, create_dir_all};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::{Account, Ending, Site, is_root, needs_root, set_mode, skip};

fn packaged(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name);
    fs::read_to_string(path).expect("a packaged file")
}

const SERVICE: &str = "rungate-overdue.service";
const METRICS: &str = "rungate-metrics.service";

/// systemd understands every line, and what it is to start is there.
#[test]
fn systemd_understands_the_units() {
    if !Path::new("/usr/bin/systemd-analyze").exists() {
        return skip("systemd-analyze(1) is not installed");
    }
    let site = Site::new();
    let rungate = site.rungate().display().to_string();
    let units = [
        SERVICE,
        "rungate-overdue.timer",
        METRICS,
        "rungate-metrics.timer",
        "rungate-measure.service",
        "rungate-agent.socket",
        "rungate-agent.service",
    ];
    for name in units {
        site.write(
            Path::new("work").join(name),
            &packaged(name)
                .replace("/usr/bin/rungate", &rungate)
                .replace("/usr/sbin/rungate-agent", &rungate),
        );
    }
    let analyze = site.test().program("/usr/bin/systemd-analyze").args(["verify", "--man=no"]);
    analyze.clone().args(units.map(|name| format!("$DIR/work/{name}"))).status(0);
    // The drop-in of a site is read beside the unit of the agent.
    let drop_in = "work/rungate-agent.service.d/site.conf";
    create_dir_all(site.path("work/rungate-agent.service.d")).expect("a directory");
    site.write(drop_in, &packaged("rungate-agent-site.conf"));
    let agent = analyze.clone().args(["$DIR/work/rungate-agent.socket", "$DIR/work/rungate-agent.service"]);
    agent.clone().status(0);
    site.write(drop_in, &packaged("rungate-agent-site.conf").replace("PrivateNetwork", "PrivateNetwurk"));
    assert!(agent.outcome().stderr.contains("PrivateNetwurk"), "it reads the drop-in");
    site.write("work/wrong.service", &packaged(SERVICE).replace("ProtectHome", "ProtectHouse"));
    let outcome = analyze.args(["$DIR/work/wrong.service"]).outcome();
    assert!(outcome.stderr.contains("ProtectHouse"), "it would say so: {}", outcome.stderr);
}

/// A service that is taken over can do little: systemd's figure goes from 0 (nothing) to 10 (everything).
#[test]
fn the_services_are_confined() {
    if !Path::new("/usr/bin/systemd-analyze").exists() {
        return skip("systemd-analyze(1) is not installed");
    }
    for (name, most) in
        [("rungate-agent.service", "20"), (METRICS, "40"), (SERVICE, "40"), ("rungate-measure.service", "40")]
    {
        let site = Site::new();
        site.write(Path::new("work").join(name), &packaged(name));
        let threshold = format!("--threshold={most}");
        let arguments = ["security", "--no-pager", "--offline=yes", &threshold];
        let analyze = site.test().program("/usr/bin/systemd-analyze").args(arguments);
        assert_eq!(
            analyze.clone().args([format!("$DIR/work/{name}")]).outcome().ending,
            Ending::Status(0),
            "{name}"
        );
        site.write("work/open.service", "[Service]\nExecStart=/usr/bin/true\n");
        assert_eq!(
            analyze.args(["$DIR/work/open.service"]).outcome().ending,
            Ending::Status(1),
            "the figure counts"
        );
    }
}

/// A service that runs for long sees a new name of the host: with `ProtectHostname` it would keep the name that the
/// host had when the service started. No service has the capability to change the name.
#[test]
fn a_service_that_runs_for_long_sees_a_new_name_of_the_host() {
    let units = [
        ("rungate-agent.service", true),
        ("rungate-measure.service", true),
        (METRICS, false),
        (SERVICE, false),
    ];
    for (name, runs_for_long) in units {
        let unit = packaged(name);
        let has = |line: &str| unit.lines().any(|other| other == line);
        assert_eq!(has("Type=oneshot"), !runs_for_long, "{name}");
        assert_eq!(has("ProtectHostname=yes"), !runs_for_long, "{name}");
        assert!(!kept_capabilities(name).contains("sys_admin"), "{name}");
    }
}

/// A policy may consist of drop-ins alone. A condition with a bar is enough on its own.
#[test]
fn each_service_that_reads_a_policy_starts_with_drop_ins_alone() {
    for name in [METRICS, SERVICE, "rungate-measure.service"] {
        let unit = packaged(name);
        let conditions: Vec<&str> =
            unit.lines().filter(|line| line.contains("=|") && !line.starts_with('#')).collect();
        let expected = [
            "ConditionPathExists=|/etc/rungate/policy.toml",
            "ConditionDirectoryNotEmpty=|/etc/rungate/policy.d",
        ];
        assert_eq!(conditions, expected, "{name}");
        assert!(!unit.contains("\nConditionPathExists=/"), "{name}");
    }
}

/// All services read the same policy: a delegated file below /home is a dangling link for a service that cannot see
/// /home, and a dangling link is a fault.
#[test]
fn each_service_can_read_a_delegated_file_below_home() {
    for name in ["rungate-agent.service", METRICS, SERVICE, "rungate-measure.service"] {
        let unit = packaged(name);
        let homes: Vec<&str> = unit.lines().filter_map(|line| line.strip_prefix("ProtectHome=")).collect();
        assert_eq!(homes, ["read-only"], "{name}");
    }
}

/// The lock files of members are removed even if a holder could not be ended.
#[test]
fn lock_files_are_pruned_whether_or_not_holders_could_be_ended() {
    let unit = packaged(SERVICE);
    let commands: Vec<&str> = unit.lines().filter(|line| line.starts_with("Exec")).collect();
    assert_eq!(
        commands,
        ["ExecStart=/usr/bin/rungate end --overdue", "ExecStopPost=-/usr/bin/rungate prune"]
    );
}

/// The profile of the agent is one to `AppArmor`, and lets the agent write to its own directory alone.
#[test]
fn apparmor_understands_the_profile() {
    if !Path::new("/sbin/apparmor_parser").exists() {
        return skip("apparmor_parser(8) is not installed");
    }
    let site = Site::new();
    let profile = packaged("apparmor/rungate-agent");
    for (text, status) in [(profile.clone(), 0), (profile.replace("capability kill", "capability kil"), 1)] {
        site.write("work/profile", &text);
        let parser = site.test().program("/sbin/apparmor_parser");
        assert_eq!(parser.args(["-Q", "-K", "$DIR/work/profile"]).outcome().ending, Ending::Status(status));
    }
    let writable: Vec<&str> = profile
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('/') && line.contains(" r") && line.contains('w'))
        .collect();
    assert_eq!(writable, ["/run/rungate-agent/ rw,", "/run/rungate-agent/** rwk,"]);
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

/// The capabilities that the agent's service keeps are enough to serve other users, whatever keeps their
/// slots.
#[test]
fn the_agent_keeps_the_capabilities_that_it_needs() {
    needs_root!();
    let kept = kept_capabilities("rungate-agent.service");
    let policy = "[repository.seats]\nkeeper = \"agent\"\nlimit = 1\nhold = \"HOLD\"\n\
                  [[rule]]\nname = \"seats\"\ncommands = [\"matlab\"]\nacquire = [\"seats\"]\n";
    for hold in ["process", "descriptor", "tree"] {
        let (site, agent) = Site::with_agent(&policy.replace("HOLD", hold));
        agent.kill();
        let launcher = site.rungate().display().to_string();
        let wrapper = "#!/bin/sh\n[ \"$1\" = inner ] && exec cat\nexec LAUNCHER run -- matlab inner\n";
        site.script("matlab", &wrapper.replace("LAUNCHER", &launcher));
        let _agent = site.agent_through(["setpriv".to_owned(), format!("--bounding-set=-all,{kept}")]);
        let _running = site.test().user("games").args(["run", "--", "matlab"]).spawn();
        let refused = "rungate: matlab: not started: the limit is reached\n...\n";
        site.test().user("nobody").args(["run", "--", "matlab"]).stderr(refused).status(75);
        let (site, agent) = Site::with_agent(
            &policy
                .replace("HOLD", hold)
                .replace("limit = 1", "limit = 1\nexpire_after = \"1ms\"\nexpire_grace = \"20s\""),
        );
        agent.kill();
        site.program("matlab");
        let _agent = site.agent_through(["setpriv".to_owned(), format!("--bounding-set=-all,{kept}")]);
        let _overdue = site.test().user("games").args(["run", "--", "matlab"]).spawn();
        let ended = "rungate: seats: ended PID [pid] (matlab), overdue by [age], with SIG[..]\n";
        site.test().user("nobody").args(["run", "--", "matlab"]).stderr(ended).status(0);
    }
    // Scripts, one of which keeps its slot while the agent is started again.
    let (site, agent) = Site::with_agent(&policy.replace("HOLD", "descriptor"));
    site.rungate_in_bin();
    site.program("matlab");
    agent.kill();
    let bounds = format!("--bounding-set=-all,{kept}");
    let agent = site.agent_through(["setpriv", &bounds]);
    let mut script = site.test().user("games").program("/bin/bash").background();
    script
        .write_line("exec 9<\"$(rungate acquire --path matlab)\" && rungate acquire --fd 9 matlab; echo $?");
    assert_eq!(script.read_line(), "0\n");
    agent.kill();
    let _agent = site.agent_through(["setpriv", &bounds]);
    let refused = "rungate: matlab: not started: the limit is reached\n...\n";
    let matlab = site.test().user("nobody").args(["acquire", "--path", "matlab"]);
    matlab.stdout("/run/rungate-agent/open/[..].fifo\n").status(0);
    site.test().user("nobody").args(["run", "--", "matlab"]).stderr(refused).status(75);
}

/// The few capabilities that the service keeps are enough to end other users' jobs, whatever keeps their
/// slots, in lock files that only they can read.
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
            expire_grace = \"10m\"

            [[rule]]
            name     = \"seats\"
            commands = [\"job\"]
            acquire  = [\"seats\"]
            "
        ));
        site.program("job");
        let job = site.test().user("games").args(["run", "--", "job"]).through(["env", "--default-signal"]);
        let mut holder = job.spawn();
        let expire = site.test().args(["end", "--overdue"]);
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

/// The drop-in in the unit of the metrics changes each key that names the directory, and keeps the others. systemd adds
/// the values of a drop-in to those of the unit, except that an empty one removes all before it, and that an empty
/// condition removes all conditions.
#[test]
fn the_drop_in_for_another_directory_replaces_what_the_unit_has() {
    let unit = packaged(METRICS);
    let comments = || unit.lines().map_while(|line| line.strip_prefix('#'));
    let drop_in: Vec<&str> = comments().filter_map(|line| line.strip_prefix("   ")).collect();
    assert!(drop_in.contains(&"[Unit]") && drop_in.contains(&"[Service]"), "{drop_in:?}");
    let family = |key: &str| if key.starts_with("Condition") { "Condition" } else { key }.to_owned();
    let mut values: Vec<(String, String)> = Vec::new();
    for line in unit.lines().filter(|line| !line.starts_with('#')).chain(drop_in) {
        let Some((key, value)) = line.split_once('=') else { continue };
        if value.is_empty() {
            values.retain(|(other, _)| family(other) != family(key));
        } else {
            values.push((key.to_owned(), value.to_owned()));
        }
    }
    let of = |key: &str| -> Vec<&str> {
        values.iter().filter(|(other, _)| other.starts_with(key)).map(|(_, value)| value.as_str()).collect()
    };
    let conditions = ["|/etc/rungate/policy.toml", "|/etc/rungate/policy.d", "/var/lib/node_exporter"];
    assert_eq!(of("Condition"), conditions);
    assert_eq!(of("ExecStart"), ["/usr/bin/rungate metrics --output /var/lib/node_exporter/rungate.prom"]);
    assert_eq!(of("ReadWritePaths"), ["/var/lib/node_exporter"]);
    assert!(!values.iter().any(|(_, value)| value.contains("node-exporter")), "{values:?}");
}

/// Those that the service of the metrics keeps are enough to look at lock files that only their users can
/// read, and to write into a directory of somebody else.
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

/// The files of a package, as its list in the manifest names them: where each is, and where it goes.
fn listed(table: &str) -> Vec<(String, String)> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    let assets = &manifest["package"]["metadata"][table]["assets"];
    let text = |value: &toml::Value| value.as_str().expect("a path").to_owned();
    let of = |asset: &toml::Value| match asset {
        toml::Value::Array(asset) => (text(&asset[0]), format!("/{}", text(&asset[1]))),
        asset => (text(&asset["source"]), text(&asset["dest"])),
    };
    let listed: Vec<(String, String)> = assets.as_array().expect("a list").iter().map(of).collect();
    assert!(listed.len() > 10, "{listed:?}");
    listed
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What the manifest lists is there, and every manual page is on the list.
#[test]
fn the_package_has_what_there_is() {
    let assets = listed("deb");
    let plain = assets.iter().filter(|(file, _)| !file.contains('*') && !file.starts_with("target/"));
    for (file, _) in plain {
        assert!(root().join(file).is_file(), "{file} is not there");
    }
    // Where the launcher looks for it.
    for (file, place) in [("rungate-tools", "/usr/lib/rungate/"), ("rungate", "/usr/bin/")] {
        assert!(assets.contains(&(format!("target/release/{file}"), place.to_owned())), "{file}");
    }
    for page in fs::read_dir(root().join("man")).expect("man") {
        let page = format!("man/{}", page.expect("an entry").file_name().display());
        let all_of_its_section = format!("man/*.{}", &page[page.len() - 1..]);
        let is_it = |file: &str| file == page || file == all_of_its_section;
        assert!(assets.iter().any(|(file, _)| is_it(file)), "{page} is not in the package");
    }
}

/// It has what the Debian package has.
#[test]
fn both_packages_have_the_same() {
    let of = |table: &str| {
        let files = listed(table).into_iter().map(|(file, _)| file);
        let mut files: Vec<String> =
            files.filter(|file| !file.starts_with("packaging/debian/") && file != "LICENSE-*").collect();
        files.sort();
        files
    };
    assert_eq!(of("generate-rpm"), of("deb"));
}

/// The version is written in five places, each with its own spelling of a candidate: 1.0.0-rc.1 is 1.0.0~rc.1 for
/// dpkg and rpm, and 1.0.0rc.1 for pacman.
#[test]
fn each_package_has_the_version_of_the_programs() {
    let version = env!("CARGO_PKG_VERSION");
    let tilde = version.replace('-', "~");
    let text = |path: &str| fs::read_to_string(root().join(path)).expect(path);
    let manifest: toml::Table = text("Cargo.toml").parse().expect("TOML");
    let of_rpm = &manifest["package"]["metadata"]["generate-rpm"];
    // Without it, cargo-generate-rpm takes that of the package, which must have no hyphen then.
    let of_rpm = of_rpm.get("version").map_or(version, |version| version.as_str().expect("a text"));
    assert_eq!(of_rpm, tilde, "Cargo.toml, [package.metadata.generate-rpm]");
    let changelog = text("packaging/debian/changelog");
    assert!(changelog.starts_with(&format!("rungate ({tilde}-")), "packaging/debian/changelog: {changelog}");
    let of_arch = text("packaging/aur/PKGBUILD");
    assert!(of_arch.contains(&format!("\n_version={version}\n")), "packaging/aur/PKGBUILD: {of_arch}");
    assert!(text("CHANGELOG.md").contains(&format!("\n## [{version}]")), "CHANGELOG.md");
}

/// Every file below a directory, by its path from there.
fn files_below(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(
                fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").path()),
            );
        } else {
            let path = path.strip_prefix(directory).expect("a file below it");
            found.push(format!("/{}", path.display()));
        }
    }
    found.sort();
    found
}

/// The links of all pages below a directory to files: each page, and where its link leads.
fn pages(directory: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut links = Vec::new();
    for page in files_below(directory)
        .into_iter()
        .filter(|page| Path::new(page).extension().is_some_and(|end| end == "md"))
    {
        let page = directory.join(page.trim_start_matches('/'));
        let text = fs::read_to_string(&page).expect("a page");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                links.push((page.clone(), page.parent().expect("a directory").join(target)));
            }
        }
    }
    links
}

/// Installs by hand what the packages install, below /usr/local and /etc; takes away what it installed,
/// but not the settings.
#[test]
fn by_hand_is_installed_what_the_package_has() {
    let site = Site::new();
    for name in ["rungate", "rungate-tools", "rungate-agent"] {
        site.script(name, "#!/bin/sh\n");
    }
    let programs = site.path("bin");
    let install = site.test().program(root().join("packaging/install")).args(["--destdir", "$DIR/root"]);
    install.clone().args(["--programs".as_ref(), programs.as_os_str()]).status(0);
    let installed = files_below(&site.path("root"));
    let by_hand = |place: &str| match place.strip_prefix("/usr") {
        Some(rest) => format!("/usr/local{rest}"),
        None => place.to_owned(),
    };
    for (file, place) in listed("deb").into_iter().filter(|(file, _)| !file.starts_with("packaging/debian/"))
    {
        let place = by_hand(&place)
            .replace("/usr/local/share/fish/vendor_conf.d", "/etc/fish/conf.d")
            .replace("zsh/vendor-completions", "zsh/site-functions");
        let is_there = if file.contains('*') || !place.ends_with('/') {
            installed.iter().any(|path| path.starts_with(&place))
        } else {
            let name = file.rsplit('/').next().expect("a name");
            installed.contains(&format!("{place}{name}"))
        };
        assert!(is_there, "{file} is not installed below {place}: {installed:#?}");
    }
    for policy in files_below(&root().join("policies")) {
        assert!(installed.contains(&format!("/usr/local/share/doc/rungate/policies{policy}")), "{policy}");
    }
    let unit = site.path("root/usr/local/lib/systemd/system/rungate-overdue.service");
    let unit = fs::read_to_string(unit).expect("a unit");
    assert!(unit.contains("ExecStart=/usr/local/bin/rungate end --overdue\n"), "{unit}");
    assert!(unit.contains("ExecStopPost=-/usr/local/bin/rungate prune\n"), "{unit}");
    let policy = fs::read_to_string(site.path("root/etc/rungate/policy.toml")).expect("the policy");
    let schema = policy.lines().find_map(|line| line.strip_prefix("#:schema ")).expect("a schema");
    assert!(installed.iter().any(|path| path == schema), "{schema}");
    // No link of an installed page leads to what is not installed.
    let links = pages(&site.path("root/usr/local/share/doc/rungate"));
    assert!(links.iter().any(|(_, target)| target.ends_with("docs/words.md")), "{links:?}");
    for (page, target) in links {
        assert!(target.exists(), "{}: {}", page.display(), target.display());
    }
    // What an administrator has written stays, whatever happens.
    site.write("root/etc/rungate/policy.toml", "# mine\n");
    install.clone().args(["--programs".as_ref(), programs.as_os_str()]).status(0);
    install.args(["--remove"]).args(["--programs".as_ref(), programs.as_os_str()]).status(0);
    assert_eq!(files_below(&site.path("root")), ["/etc/logrotate.d/rungate", "/etc/rungate/policy.toml"]);
    let policy = fs::read_to_string(site.path("root/etc/rungate/policy.toml")).expect("the policy");
    assert_eq!(policy, "# mine\n");
}

/// Below a prefix where systemd does not look, an installation changes nothing else, as in the sandbox of a builder of
/// packages, and says what is missing.
#[test]
fn below_another_prefix_nothing_else_is_changed() {
    let site = Site::new();
    for name in ["rungate", "rungate-tools", "rungate-agent"] {
        site.script(name, "#!/bin/sh\n");
    }
    if is_root() {
        fs::create_dir_all(site.path("system-run/systemd/system")).expect("a directory for /run");
    }
    for name in ["systemctl", "systemd-tmpfiles"] {
        site.script(name, "#!/bin/sh\necho \"$0 $*\" >>$DIR/work/asked\nexit 1\n");
    }
    let programs = site.path("bin");
    let install = site.test().program(root().join("packaging/install"));
    let install = install.args(["--prefix", "$DIR/prefix", "--sysconfdir", "$DIR/settings"]);
    let install = install.args(["--programs".as_ref(), programs.as_os_str()]);
    let outcome = install.outcome();
    assert_eq!((outcome.ending, outcome.stderr.as_str()), (Ending::Status(0), ""));
    let link = site.expand("  systemctl link $DIR/prefix/lib/systemd/system/rungate-*\n");
    assert!(outcome.stdout.contains(&link), "{}", outcome.stdout);
    install.args(["--remove"]).status(0);
    assert!(!site.path("work/asked").exists() && !site.path("system-run/rungate").exists());
    assert_eq!(files_below(&site.path("prefix")), Vec::<String>::new());
}

/// In the package for Arch Linux there is no /usr/sbin, which is a link there.
#[test]
fn the_recipe_for_arch_installs_all_programs_in_one_directory() {
    let site = Site::new();
    create_dir_all(site.path("target/release")).expect("a directory");
    for name in ["rungate", "rungate-tools", "rungate-agent"] {
        site.write(Path::new("target/release").join(name), "");
    }
    let recipe = "set -e; . $0/packaging/aur/PKGBUILD; ln -s $0 \"$pkgname-$_version-source\"; \
                  pkgdir=$DIR/root package";
    let package = site.test().program("/bin/bash").args(["-c", recipe]).args([root()]);
    package.env("CARGO_TARGET_DIR", "$DIR/target").status(0);
    let installed = files_below(&site.path("root"));
    assert!(installed.contains(&"/usr/bin/rungate-agent".to_owned()), "{installed:?}");
    assert!(!site.path("root/usr/sbin").exists());
}

/// The archive of the sources, whose build needs no network, has what is tracked and the crates. Here an imitation of
/// cargo fetches three crates.
#[test]
fn the_archive_of_the_sources_has_the_crates() {
    if !Path::new("/usr/bin/git").exists() {
        return skip("git(1) is not installed");
    }
    let site = Site::new();
    let vendor = "
        #!/bin/sh
        for crate in winapi-0.1.0 windows-sys-0.1.0 serde-1.0.0; do
          mkdir -p vendor/$crate/src
          echo '[package]' >vendor/$crate/Cargo.toml
          echo '{\"files\":{\"src/lib.rs\":\"0\"},\"package\":\"1\"}' >vendor/$crate/.cargo-checksum.json
          echo 'pub fn used() {}' >vendor/$crate/src/lib.rs
        done
        ";
    site.script("cargo", vendor);
    for file in ["Cargo.toml", ".cargo/config.toml", "packaging/source-archive"] {
        let copy = site.path("work/sources").join(file);
        create_dir_all(copy.parent().expect("a directory")).expect("a directory");
        fs::copy(root().join(file), copy).expect("a copy");
    }
    let make = "
        set -e
        cd $DIR/work/sources
        git init --quiet
        git add --all
        packaging/source-archive $DIR/work/first
        packaging/source-archive $DIR/work/second
        cmp $DIR/work/first/*.tar.gz $DIR/work/second/*.tar.gz
        mkdir $DIR/work/unpacked
        tar -xf $DIR/work/first/*.tar.gz -C $DIR/work/unpacked --strip-components 1
        ";
    let make = site.test().program("/bin/bash").args(["-c", make]);
    let outcome = make.env("SOURCE_DATE_EPOCH", "1790000000").env("HOME", "$DIR/work").outcome();
    assert_eq!(outcome.ending, Ending::Status(0), "{}", outcome.stderr);
    let unpacked = |file: &str| fs::read_to_string(site.path("work/unpacked").join(file)).expect(file);
    let tracked = fs::read_to_string(root().join(".cargo/config.toml")).expect("a tracked file");
    let config = unpacked(".cargo/config.toml");
    assert!(config.starts_with(&tracked) && config.contains("directory = \"vendor\""), "{config}");
    assert_eq!(unpacked("vendor/serde-1.0.0/src/lib.rs"), "pub fn used() {}\n");
    // Of crates for Windows only the names are needed.
    assert_eq!(unpacked("vendor/winapi-0.1.0/src/lib.rs"), "");
    assert_eq!(unpacked("vendor/winapi-0.1.0/.cargo-checksum.json"), "{\"files\":{},\"package\":\"1\"}\n");
}

/// An upgrade by hand replaces each file in one step, so that a shim always finds a launcher.
#[test]
fn an_upgrade_by_hand_never_takes_the_launcher_away() {
    let site = Site::new();
    let programs = site.path("bin");
    let install = site.test().program(root().join("packaging/install")).args(["--destdir", "$DIR/root"]);
    let install = install.args(["--programs".as_ref(), programs.as_os_str()]);
    let build = |version: &str| {
        for name in ["rungate", "rungate-tools", "rungate-agent"] {
            site.script(name, &format!("#!/bin/sh\n# {version}\n"));
        }
    };
    build("old");
    install.status(0);
    // From now on, what is replaced is looked at before and after it: mv -fT NEW PLACE.
    site.script(
        "mv",
        "
        #!/bin/sh
        look() { case $1 in */bin/rungate) tail -n 1 \"$1\"; stat -c %a \"$1\" ;; esac >>$DIR/work/seen; }
        look \"$3\"
        /bin/mv \"$@\"
        look \"$3\"
        ",
    );
    build("new");
    install.status(0);
    let seen = fs::read_to_string(site.path("work/seen")).expect("what mv has seen");
    assert_eq!(seen, "# old\n755\n# new\n755\n");
    let is_left = |path: &String| Path::new(path).extension().is_some_and(|end| end == "new");
    let left: Vec<String> = files_below(&site.path("root")).into_iter().filter(is_left).collect();
    assert_eq!(left, Vec::<String>::new());
}

/// A package is installed before the installation by hand is removed, which then removes nothing that the package has
/// too.
#[test]
fn after_a_package_is_installed_its_settings_stay() {
    let site = Site::new();
    for name in ["rungate", "rungate-tools", "rungate-agent"] {
        site.script(name, "#!/bin/sh\n");
    }
    let programs = site.path("bin");
    let install = site.test().program(root().join("packaging/install")).args(["--destdir", "$DIR/root"]);
    let install = install.args(["--programs".as_ref(), programs.as_os_str()]);
    install.status(0);
    create_dir_all(site.path("root/usr/bin")).expect("a directory");
    site.write("root/usr/bin/rungate", "");
    install.args(["--remove"]).status(0);
    let kept = files_below(&site.path("root"));
    let expected = [
        "/etc/X11/Xsession.d/60rungate",
        "/etc/csh/cshrc.d/rungate",
        "/etc/logrotate.d/rungate",
        "/etc/profile.d/rungate.sh",
        "/etc/rungate/policy.toml",
        "/usr/bin/rungate",
    ];
    assert_eq!(kept, expected);
}

/// Old files below /tmp are removed, but no lock file of a user, because its slots may be held.
#[test]
fn lock_files_below_tmp_are_not_removed_for_their_age() {
    if !Path::new("/usr/bin/systemd-tmpfiles").exists() {
        return skip("systemd-tmpfiles(8) is not installed");
    }
    let assets = listed("deb");
    let (file, place) = assets.iter().find(|(_, place)| place.ends_with("rungate-tmp.conf")).expect("a file");
    assert_eq!(place, "/usr/lib/tmpfiles.d/rungate-tmp.conf");
    let site = Site::new();
    for directory in ["usr/lib/tmpfiles.d", "tmp/rungate-1000/deep", "tmp/other-1000"] {
        create_dir_all(site.path("root").join(directory)).expect("a new directory");
    }
    site.write(format!("root{place}"), &packaged(file.trim_start_matches("packaging/")));
    // With this age, every file that is there is too old.
    site.write("root/usr/lib/tmpfiles.d/tmp.conf", "d /tmp 1777 - - 0\n");
    let paths = ["tmp/rungate-1000/seats.lock", "tmp/rungate-1000/deep/a.lock", "tmp/other-1000/a.lock"];
    let paths = paths.map(|path| site.path("root").join(path));
    for path in &paths {
        fs::write(path, "").expect("a new file");
    }
    let clean =
        site.test().program("/usr/bin/systemd-tmpfiles").args(["--clean", "--root=$DIR/root"]).outcome();
    assert_eq!(paths.map(|path| path.exists()), [true, true, false], "{}", clean.stderr);
}

/// A file in /etc/tmpfiles.d hides the package's file of the same name, with all of its lines. `init` writes none that
/// does.
#[test]
fn init_hides_no_file_of_the_package() {
    let assets = listed("deb");
    let names: Vec<&str> =
        assets.iter().filter_map(|(_, place)| place.strip_prefix("/usr/lib/tmpfiles.d/")).collect();
    assert_eq!(names, ["rungate.conf", "rungate-tmp.conf"]);
    for (file, name) in [("mod.rs", "rungate-setup.conf"), ("repositories.rs", "rungate-repositories.conf")] {
        let source = root().join("src/tools/setup/init").join(file);
        let source = fs::read_to_string(source).expect("a source");
        let written: Vec<&str> = source
            .lines()
            .filter_map(|line| {
                line.strip_prefix("const TMPFILES: &str = \"/etc/tmpfiles.d/")?.strip_suffix("\";")
            })
            .collect();
        assert_eq!(written, [name]);
        assert!(!names.contains(&name), "{name}");
    }
}

/// Members of adm append to the log too: the kernel takes the bits of the group for a member, and not those of others.
#[test]
fn each_place_that_makes_the_log_lets_its_group_write() {
    for (file, line) in [
        ("tmpfiles.conf", "f /var/log/rungate/log.jsonl 0662 root adm  -"),
        ("logrotate.conf", "    create 0662 root adm"),
        ("debian/postinst", "      install -m 662 -g adm /dev/null /var/log/rungate/log.jsonl"),
        ("rpm/post-install.sh", "    install -m 662 /dev/null /var/log/rungate/log.jsonl"),
    ] {
        assert!(packaged(file).lines().any(|other| other == line), "{file}: {line}");
    }
}

/// Shims of an installation by hand lead to a rungate that is about to go; from now on they lead to this
/// one, and no others.
#[test]
fn the_package_takes_over_the_shims_of_an_installation_by_hand() {
    needs_root!();
    for script in ["debian/postinst", "rpm/post-install.sh"] {
        let site = Site::new();
        site.directory_over_run();
        site.system_file("policy.toml", "version = 1");
        let shims = site.path("etc/rungate/shims");
        fs::create_dir(&shims).expect("a directory");
        let links = [
            ("matlab", "/usr/local/bin/rungate", "/usr/bin/rungate"),
            ("mex", "/usr/bin/rungate", "/usr/bin/rungate"),
            ("gcc", "/opt/rungate/bin/rungate", "/opt/rungate/bin/rungate"),
            ("tool", "/usr/local/bin/tool", "/usr/local/bin/tool"),
        ];
        for (name, target, _) in links {
            std::os::unix::fs::symlink(target, shims.join(name)).expect("a link");
        }
        // It makes a log too, which is not to be this machine's.
        let apart = "mount -t tmpfs tmpfs /var/log && exec \"$0\" \"$@\"";
        let run = site.test().program("/bin/sh").args([root().join("packaging").join(script)]);
        let run = run.args(["configure"]).through(["unshare", "--mount", "sh", "-c", apart]);
        let outcome = run.outcome();
        assert_eq!(outcome.ending, Ending::Status(0), "{script}: {}", outcome.stderr);
        for (name, _, now) in links {
            let target = fs::read_link(shims.join(name)).expect("a link");
            assert_eq!(target, Path::new(now), "{script}: {name}");
        }
    }
}

/// An upgrade leaves the directory of lock files as the administrator has made it: by a file in /etc/tmpfiles.d, which
/// the next boot reads too, or without systemd at all.
#[test]
fn an_upgrade_leaves_the_directory_of_lock_files_as_it_is() {
    needs_root!();
    let has_tmpfiles = Path::new("/usr/bin/systemd-tmpfiles").exists();
    if !has_tmpfiles {
        skip("systemd-tmpfiles(8) is not installed");
    }
    for (script, has_systemd) in [
        ("debian/postinst", false),
        ("rpm/post-install.sh", false),
        ("debian/postinst", true),
        ("rpm/post-install.sh", true),
    ] {
        if has_systemd && !has_tmpfiles {
            continue;
        }
        let site = Site::new();
        site.directory_over_run();
        let directory = site.path("system-run/rungate");
        set_mode(&directory, 0o755);
        site.system_file("policy.toml", "version = 1");
        if has_systemd {
            create_dir_all(site.path("system-run/systemd/system")).expect("a directory");
            create_dir_all(site.path("etc/tmpfiles.d")).expect("a directory");
            site.write("etc/tmpfiles.d/rungate-repositories.conf", "d /run/rungate 0755 root root -\n");
        }
        // One that runs, and the one that is enabled.
        for name in ["systemctl", "deb-systemd-invoke"] {
            site.script(name, &format!("#!/bin/sh\necho \"{name} $*\" >>$DIR/work/asked\n"));
        }
        // The logs and the package's files are not this machine's.
        let apart = "mount -t tmpfs tmpfs /var/log && mount -t tmpfs tmpfs /usr/lib/tmpfiles.d && \
                     cp \"$(dirname \"$1\")/../tmpfiles.conf\" /usr/lib/tmpfiles.d/rungate.conf && exec \"$0\" \"$@\"";
        let run = site.test().program("/bin/sh").args([root().join("packaging").join(script)]);
        let outcome = run
            .args(["configure", "1.0.0~rc.1-1"])
            .through(["unshare", "--mount", "sh", "-c", apart])
            .outcome();
        assert_eq!(outcome.ending, Ending::Status(0), "{script}: {}", outcome.stderr);
        let mode = fs::metadata(&directory).expect("the directory").permissions().mode() & 0o7777;
        assert_eq!(mode, 0o755, "{script}: {mode:o}: {}", outcome.stderr);
        let asked = fs::read_to_string(site.path("work/asked")).unwrap_or_default();
        let restarts = "systemctl --system try-restart rungate-measure.service\n";
        assert_eq!(asked.contains(restarts), has_systemd, "{script}: {asked}");
    }
}

/// A removed package leaves no metrics, which `node_exporter` would serve for ever. An upgrade keeps them.
#[test]
fn the_metrics_go_with_the_package() {
    needs_root!();
    let remains = |script: &str, argument: &str| {
        let site = Site::new();
        site.directory_over_run();
        // These directories are not the machine's.
        let apart = "mount -t tmpfs tmpfs /var/lib && mkdir -p /var/lib/prometheus/node-exporter && \
                     cd /var/lib/prometheus/node-exporter && touch ours.prom rungate.prom && \
                     \"$0\" \"$@\" >/dev/null 2>&1 && ls";
        let run = site.test().program("/bin/sh").args([root().join("packaging").join(script)]);
        let outcome = run.args([argument]).through(["unshare", "--mount", "sh", "-c", apart]).outcome();
        assert_eq!(outcome.ending, Ending::Status(0), "{script}: {}", outcome.stderr);
        outcome.stdout
    };
    for (script, removal, upgrade) in
        [("debian/prerm", "remove", "upgrade"), ("rpm/pre-uninstall.sh", "0", "1")]
    {
        assert_eq!(remains(script, removal), "ours.prom\n", "{script}");
        assert_eq!(remains(script, upgrade), "ours.prom\nrungate.prom\n", "{script}");
    }
    // It is the file that the service writes.
    let output = "metrics --output /var/lib/prometheus/node-exporter/rungate.prom\n";
    assert!(packaged(METRICS).contains(output));
}

/// The scripts of the package are those of a plain shell, and hold no surprises for one.
#[test]
fn the_scripts_of_the_package_are_well_formed() {
    let scripts = ["debian/postinst", "debian/prerm", "debian/postrm"];
    let of_rpm = ["rpm/post-install.sh", "rpm/pre-uninstall.sh", "rpm/post-uninstall.sh"];
    for name in scripts.into_iter().chain(of_rpm) {
        let path = root().join("packaging").join(name);
        Site::new().test().program("/bin/sh").args(["-n"]).args([path]).status(0);
    }
}
