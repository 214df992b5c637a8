//! The tutorial, executed as the README is: a new admin's first quarter of an hour, from an empty host on.
//! What it shows must be what happens, and the host must be as the page says it is.

use std::fs;

use crate::docs::readme::{Block, Scene, blocks};
use crate::support::{Site, needs_root};

/// A host that knows nothing of rungate, with the people of the page and their program.
fn empty_host() -> Site {
    let site = Site::new();
    site.directory_over_run();
    fs::remove_dir(site.path("system-run/rungate")).expect("an empty directory");
    for (name, groups) in [("ann", &["cad"][..]), ("bob", &[]), ("cadadm", &[])] {
        site.account(name, groups);
    }
    site.program("matlab");
    site.rungate_in_bin();
    site
}

#[test]
fn what_the_tutorial_shows_is_what_happens() {
    needs_root!();
    let blocks: Vec<Block> = blocks("docs/tutorial.md");
    let mut scene = Scene::at(empty_host());
    for block in &blocks {
        scene.play(block);
    }
    assert!(scene.differences.is_empty(), "{}", scene.differences.join("\n"));
    assert!(blocks.len() > 10, "{}", blocks.len());
}
