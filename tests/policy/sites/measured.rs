//! Policies that have use measured which rungate did not start: with stand-ins for the licence server and the
//! driver, which change while launches run.

use std::fs;
use std::path::Path;

use super::changed;
use crate::support::{Ending, Running, Site, Test, eventually, needs_root, set_mode};

/// A site with a policy, its measuring command, and a stand-in for the program that this asks: it prints what
/// is in a file.
fn site(policy: &str, command: &str, asked: &str) -> Site {
    let site = Site::of_system(policy);
    for user in ["bob", "cid"] {
        site.account(user, &[]);
    }
    let packaged = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/outside").join(command);
    fs::copy(packaged, site.path("work/command")).expect("a measuring command");
    set_mode(&site.path("work/command"), 0o755);
    site.script("asked", asked);
    // Where /usr/bin/awk leads, below the /etc of the site.
    if let Ok(awk) = fs::read_link("/etc/alternatives/awk") {
        fs::create_dir(site.path("etc/alternatives")).expect("a new directory");
        std::os::unix::fs::symlink(awk, site.path("etc/alternatives/awk")).expect("a new link");
    }
    site
}

fn says(site: &Site, text: &str) {
    site.write("work/said", text);
    site.test().args(["measure"]).status(0);
}

fn run(site: &Site, user: &str, command: &str) -> Test {
    site.test().user(user).args(["run", "--", command])
}

/// "A user whose seat on this host is counted in both, by the server and by rungate, has one": of ten seats
/// others have eight, ann one, and bob gets the last.
#[test]
fn matlab_network() {
    needs_root!();
    let was = "\"/usr/lib/rungate/outside/lmstat\", \"--lmutil\", \"/opt/matlab/etc/glnxa64/lmutil\"";
    let is = "\"$DIR/work/command\", \"--lmutil\", \"$DIR/bin/asked\"";
    let site = site(&changed("matlab-network.toml", was, is), "lmstat", "#!/bin/sh\ncat $DIR/work/said\n");
    site.program("matlab");
    let listing = |clients: &[(&str, &str)]| {
        let client = |(user, host): &(&str, &str)| {
            format!("    {user} {host} {host} (v43) (lic1/27000 101), start Tue 11/24 8:12\n")
        };
        let total = clients.len();
        let clients: String = clients.iter().map(client).collect();
        format!(
            "Users of MATLAB:  (Total of 10 licenses issued;  Total of {total} licenses in use)\n{clients}"
        )
    };
    let here = fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
    let windows: Vec<String> = (1..=8).map(|pc| format!("pc{pc}")).collect();
    let mut clients: Vec<(&str, &str)> = windows.iter().map(|pc| ("eve", pc.as_str())).collect();
    let refused = |user: &str| {
        let full = "...\n[..]matlab  2 of 10 used, 8 in use outside rungate\n...\n";
        run(&site, user, "matlab").stderr(full).status(75);
    };
    let outcome = run(&site, "ann", "matlab").outcome();
    assert_eq!(outcome.ending, Ending::Status(74), "until it runs, launches are refused: {}", outcome.stderr);
    says(&site, &listing(&clients));
    let _ann = run(&site, "ann", "matlab").spawn();
    clients.push(("ann", here.trim()));
    says(&site, &listing(&clients));
    let _again = run(&site, "ann", "matlab").spawn();
    let bob = run(&site, "bob", "matlab").spawn();
    refused("cid");
    // A Windows client ends.
    clients.remove(0);
    clients.push(("bob", here.trim()));
    says(&site, &listing(&clients));
    let _cid = run(&site, "cid", "matlab").spawn();
    bob.kill();
}

/// "Their GPUs are not given": bob's notebook is on GPU 0, and ann gets others; with two she has her share.
#[test]
fn gpu_lab() {
    needs_root!();
    let was = "\"/usr/lib/rungate/outside/nvidia-smi\"";
    let is = "\"$DIR/work/command\", \"--nvidia-smi\", \"$DIR/bin/asked\"";
    let asked = r#"
        #!/bin/sh
        case $* in
          *--query-gpu*) printf '0, GPU-a\n1, GPU-b\n2, GPU-c\n3, GPU-d\n' ;;
          *) cat $DIR/work/said ;;
        esac
    "#;
    let site = site(&changed("gpu-lab.toml", was, is), "nvidia-smi", asked);
    site.script("train", "#!/bin/sh\necho $RUNGATE_NAME_GPU\nexec cat\n");
    let device = |running: &mut Running| {
        let name = running.read_line();
        running.wait_for_echo();
        name.trim().to_owned()
    };
    // "Until it runs, no GPU counts as used by others."
    let mut first = run(&site, "ann", "train").background();
    assert_eq!(device(&mut first), "0");
    first.kill();
    eventually("the slot is free", || {
        let list = site.test().args(["list"]).outcome().stdout;
        list.starts_with("No slot is held").then_some(())
    });
    says(&site, "GPU-a, 999999999\nGPU-c, 999999999\n");
    // One after the other: the second gets what is left.
    let mut one = run(&site, "ann", "train").background();
    assert_eq!(device(&mut one), "1");
    let mut other = run(&site, "ann", "train").background();
    assert_eq!(device(&mut other), "3");
    let full = "...\n[..]gpu-per-user [ann]  2 of 2 used\n...\n";
    run(&site, "ann", "train").stderr(full).status(75);
    let full = "...\n[..]gpu  2 of 4 used, 2 in use outside rungate\n...\n";
    run(&site, "bob", "train").stderr(full).status(75);
    // The notebook is closed.
    says(&site, "GPU-b, 999999999\nGPU-c, 999999999\nGPU-d, 999999999\n");
    let mut bobs = run(&site, "bob", "train").background();
    assert_eq!(device(&mut bobs), "0");
}
