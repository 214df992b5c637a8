//! `cargo test --bench instructions`: what a launch costs in instructions, held against a budget. More than
//! 5 % above the budget is a failure until the budget is changed in the same commit; more than 5 % below it
//! is one too, so that what was gained is not lost again unseen. `cargo test --bench instructions --
//! --write` writes the budget again.
#![allow(clippy::print_stdout, reason = "it is a report")]

#[path = "../callgrind.rs"]
mod callgrind;
#[path = "../site.rs"]
mod site;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use callgrind::instructions;
use site::{Site, build_alone, rungate};

/// How far a count may be from its budget, in percent.
const TOLERANCE: u64 = 5;

/// What a key may cost: the launch with it, the same without it, and by how much it may be dearer, in percent.
/// A path to the sample with as few directories as that of the system is nearer to 5.
const KEYS: [(&str, &str, u64); 2] = [("shared-by", "ten-rules", 3), ("outside", "ten-rules", 7)];

fn main() -> ExitCode {
    if !Path::new("/usr/bin/valgrind").exists() {
        println!("SKIPPED: valgrind is not installed");
        return ExitCode::SUCCESS;
    }
    let site = Site::of_launcher();
    build_alone(&site, "null_launcher");
    let counts = counts(&site);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions/budget.toml");
    let text = fs::read_to_string(&path).expect("the budget");
    let is_key = |name: &str| KEYS.iter().any(|(key, ..)| *key == name);
    if std::env::args().any(|argument| argument == "--write") {
        let comment: String =
            text.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
        let lines: String = counts
            .iter()
            .filter(|(name, _)| !is_key(name))
            .map(|(name, count)| format!("{name} = {count}\n"))
            .collect();
        fs::write(&path, comment + &lines).expect("the budget");
    }
    let budget: toml::Table = text.parse().expect("a table of numbers");
    let mut is_kept = true;
    println!("launch          instructions     budget          of null");
    for (name, count) in counts.iter().filter(|(name, _)| !is_key(name)) {
        let budget = budget.get(*name).and_then(toml::Value::as_integer).unwrap_or(0).unsigned_abs();
        let percent = count * 100 / budget.max(1);
        let is_within = (100 - TOLERANCE..=100 + TOLERANCE).contains(&percent);
        is_kept &= is_within;
        let verdict = if is_within { "" } else { "  not within 5 % of the budget" };
        let of_null = count * 100 / counts[0].1;
        println!("{name:14} {count:13} {budget:10} {percent:7}% {of_null:7}%{verdict}");
    }
    let count = |name: &str| counts.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
    for (with, without, most) in KEYS {
        let (with, without, name) = (count(with), count(without), with);
        let is_within = with * 100 <= without * (100 + most);
        is_kept &= is_within;
        let verdict = if is_within { "" } else { "  too much" };
        let thousandth = with * 1000 / without.max(1);
        println!("{name:14} {}.{:03} of the launch without{verdict}", thousandth / 1000, thousandth % 1000);
    }
    if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn counts(site: &Site) -> Vec<(&'static str, u64)> {
    let rungate = site.installed(Path::new(rungate()));
    let shim = site.path("true");
    symlink(&rungate, &shim).expect("a link");
    let rungate = rungate.display().to_string();
    let file = site.path("ad-hoc.lock").display().to_string();
    let [none, ten, hundred, thousand] =
        [PathBuf::new(), site.policy(10, 2), site.policy(100, 2), site.policy(1000, 2)];
    let [shared, outside] = [("shared-by", SHARED_BY), ("outside", OUTSIDE)].map(|(name, keys)| {
        let text = fs::read_to_string(&ten).expect("the policy");
        let path = site.path(&format!("{name}.toml"));
        fs::write(&path, text.replacen("[repository.r1]", keys, 1)).expect("a policy");
        path
    });
    write_sample(&site.path("runtime/rungate/outside"));
    let null = site.installed(&site.program("null_launcher")).display().to_string();
    let shim = shim.display().to_string();
    let run = [&rungate, "run", "--", "true"];
    let ad_hoc = [&rungate, "run", "--limit", "5", "--repository", &file, "--", "true"];
    let launches: [(&str, &Path, &[&str]); 8] = [
        ("null-launcher", &none, &[&null, "true"]),
        ("ad-hoc", &none, &ad_hoc),
        ("ten-rules", &ten, &run),
        ("hundred-rules", &hundred, &run),
        ("thousand-rules", &thousand, &run),
        ("shim", &ten, &[&shim]),
        ("shared-by", &shared, &run),
        ("outside", &outside, &run),
    ];
    let count = |(name, policy, command): (&'static str, &Path, &[&str])| {
        // The first launch makes the files.
        let counted = [0; 2].map(|_| instructions(&site.path(""), policy, command));
        (name, counted[1].expect("callgrind counts"))
    };
    launches.map(count).to_vec()
}

const SHARED_BY: &str = "shared_by = [\"user\", \"host\"]\n[repository.r1]";
const OUTSIDE: &str =
    "[repository.r0.outside]\ncommand = [\"/bin/true\"]\nstale_after = \"1d\"\n[repository.r1]";

/// A sample of a hundred lines that leaves room, of now.
fn write_sample(directory: &Path) {
    fs::create_dir_all(directory).expect("a directory");
    for path in directory.ancestors().take(3) {
        fs::set_permissions(path, PermissionsExt::from_mode(0o700)).expect("chmod");
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot id");
    let uptime = fs::read_to_string("/proc/uptime").expect("a time");
    let seconds: u64 = uptime.split('.').next().and_then(|text| text.parse().ok()).expect("seconds");
    let mut text = format!("{{\"boot\":\"{}\",\"began\":{},\"total\":10}}\n", boot.trim(), seconds * 1000);
    for number in 0..100 {
        let amount = u32::from(number < 10);
        text += &format!(
            "{{\"user\":\"user{number}\",\"uid\":{},\"host\":\"ws{number}.example.org\",\"amount\":{amount}}}\n",
            1000 + number
        );
    }
    let path = directory.join("r0.jsonl");
    fs::write(&path, text).expect("a sample");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("chmod");
}
