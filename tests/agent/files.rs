//! One launch may need slots of both keepers, all or none.

use super::{held, waiting};
use crate::support::{Running, Site, eventually, needs_root};

fn site() -> (Site, Running) {
    let (site, agent) = Site::with_agent(
        "
        [repository.seats]
        keeper = \"agent\"
        limit  = 1

        [repository.files]
        limit  = 1

        [[rule]]
        name     = \"both\"
        commands = [\"matlab\"]
        acquire  = [\"files\", \"seats\"]

        [[rule]]
        name     = \"one\"
        commands = [\"other\"]
        acquire  = [\"files\"]

        [[rule]]
        name     = \"another\"
        commands = [\"third\"]
        acquire  = [\"seats\"]
        ",
    );
    for name in ["matlab", "other", "third"] {
        site.program(name);
    }
    (site, agent)
}

#[test]
fn a_launch_takes_slots_of_both_keepers_or_of_none() {
    needs_root!();
    let (site, _agent) = site();
    let running = site.test().args(["run", "--", "matlab"]).spawn();
    assert_eq!((held(&site).len(), site.held_numbers("files.lock")), (2, vec![1]));
    let both = "rungate: matlab: not started: both limits are reached\n...\n";
    site.test().args(["run", "--", "matlab"]).stderr(both).status(75);
    running.kill();
    let _other = site.test().args(["run", "--", "other"]).spawn();
    let one = "rungate: matlab: not started: 1 of 2 limits is reached\n  files  1 of 1 used\n...\n";
    site.test().args(["run", "--", "matlab"]).stderr(one).status(75);
    // What the agent gave went back.
    let _third = site.test().args(["run", "--", "third"]).spawn();
}

/// Then it starts over: whoever waits for one keeper holds nothing of the other.
#[test]
fn whoever_waits_for_a_file_holds_nothing_of_the_agents() {
    needs_root!();
    let (site, _agent) = site();
    let other = site.test().args(["run", "--", "other"]).spawn();
    let mut both = site.test().args(["run", "-q", "--wait", "forever", "--", "matlab"]).background();
    both.write_line("it runs");
    eventually("it waits for the file", || (waiting(&site) == 1).then_some(()));
    let third = site.test().args(["run", "--", "third"]).spawn();
    other.kill();
    eventually("it waits for the agent", || (waiting(&site) == 1).then_some(()));
    third.kill();
    assert_eq!(both.read_line(), "it runs\n");
    assert_eq!(held(&site).len(), 2);
}
