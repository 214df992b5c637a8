//! A program in a storm: runs for a while, and does what programs do to those who count them.
//!
//! ```text
//! actor MILLISECONDS [daemon|closing]
//! ```
//!
//! `daemon` leaves a child behind that outlives it, with every descriptor that it inherited itself; `closing`
//! closes those first of all.

use std::error::Error;
use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::unistd::close;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let time =
        Duration::from_millis(arguments.next().ok_or("usage: actor MILLISECONDS [daemon|closing]")?.parse()?);
    match arguments.next().as_deref() {
        Some("daemon") => {
            let mut daemon = Command::new("/bin/sleep");
            // It is left for whoever takes orphans.
            let _ =
                daemon.arg("4").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        }
        Some("closing") => {
            let open: Vec<i32> = fs::read_dir("/proc/self/fd")?
                .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
                .filter(|number| *number > 2)
                .collect();
            for number in open {
                // That of the directory itself is closed already.
                let _ = close(number);
            }
        }
        _ => {}
    }
    sleep(time);
    Ok(())
}
