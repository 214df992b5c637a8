//! `docs/seats.md`, executed as the README is: from a month of launches to the number of seats. What it shows
//! must be what happens.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::docs::readme::{Block, Scene, blocks};
use crate::support::{Site, needs_root};

#[test]
fn what_the_page_on_seats_shows_is_what_happens() {
    needs_root!();
    let site = Site::new();
    site.directory_over_run();
    site.rungate_in_bin();
    // As the page says that its log is made.
    let mut generator = Command::new(site.helper("synthetic_site"));
    generator.arg(site.path("work")).args(["6000", "60", "28"]);
    assert!(generator.status().is_ok_and(|status| status.success()));
    let blocks: Vec<Block> = blocks("docs/seats.md");
    let mut scene = Scene::at(site);
    for block in &blocks {
        scene.play(block);
    }
    assert!(scene.differences.is_empty(), "{}", scene.differences.join("\n"));
    assert!(blocks.len() > 7, "{}", blocks.len());
}

/// Pictures are small, and each page that shows one shows one that exists.
#[test]
fn the_pictures_of_the_pages_are_there_and_small() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut shown = 0;
    for (page, folder) in [("README.md", ""), ("docs/seats.md", "docs/")] {
        let text = fs::read_to_string(package.join(page)).expect("a page");
        for picture in text.split("![").skip(1).filter_map(|rest| rest.split_once("](")?.1.split_once(')')) {
            let path = package.join(folder).join(picture.0);
            let length = fs::metadata(&path).map_or(0, |picture| picture.len());
            assert!(length > 0 && length < 150_000, "{page}: {}: {length}", path.display());
            shown += 1;
        }
    }
    assert!(shown > 1, "{shown}");
}
