//! `cargo bench --bench launch`: what a launch costs, beside what it stands in for. Both sides of a row take
//! turns within one run, so that whatever else the machine does falls on both; what counts is the ratio of
//! their medians. The table can be pasted into the README. With `-- whole`, `throughput`, `admission`,
//! `refusals`, `line`, `agent` or `sizes` it is a part of it; with `-- --plot FILE` the time of an admission
//! against the number of held slots is drawn. As a package has it, with its text in the order of its use:
//! `packaging/order-text cargo bench --bench launch`.
#![allow(clippy::print_stdout, reason = "it is a report")]
#![allow(unsafe_code, reason = "descriptors that nobody owns")]
#![allow(clippy::cast_precision_loss, reason = "the figures of a report have three digits")]

mod admission;
mod admit;
mod agent;
#[path = "../callgrind.rs"]
mod callgrind;
mod crowd;
mod line;
mod plot;
mod processor;
mod refusals;
mod row;
#[path = "../site.rs"]
mod site;
mod throughput;
mod whole;

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use row::Row;
use site::Site;

/// A part of the table.
type Rows = fn(&Site) -> Vec<Row>;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let mut plot: Option<PathBuf> = None;
    let mut wanted = None;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--plot" => plot = arguments.next().map(PathBuf::from),
            _ => wanted = Some(argument),
        }
    }
    close_on_exec();
    let site = Site::new();
    if let Some(path) = plot {
        return plot::draw(&site, &path);
    }
    println!("{}", Row::HEAD);
    let groups: [(&str, Rows); 7] = [
        ("whole", whole::rows),
        ("throughput", throughput::rows),
        ("admission", admission::rows),
        ("refusals", refusals::rows),
        ("line", line::rows),
        ("agent", agent::rows),
        ("sizes", whole::sizes),
    ];
    for (name, rows) in groups {
        if wanted.as_ref().is_none_or(|wanted| wanted == name) {
            for row in rows(&site) {
                println!("{row}");
            }
        }
    }
}

/// What cargo left open is not for the programs that are measured: rungate looks at each descriptor that came
/// along.
fn close_on_exec() {
    for number in 3..1024 {
        // SAFETY: the descriptor is borrowed for one call, which fails if there is none.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC));
    }
}
