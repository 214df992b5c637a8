//! The time of an admission against the number of slots that others hold, as SVG: both axes by powers of ten.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::admission::scan;
use super::admit::is_admitted;
use super::crowd::Crowd;
use super::row::{in_turn, timed};
use super::site::Site;

const HELD: [u64; 9] = [1, 10, 30, 100, 300, 1000, 3000, 5000, 10_000];

/// The area of the drawing, in pixels.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 600.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 340.0;

/// The ends of the axes: powers of ten of held slots, and of milliseconds.
const SLOTS: [f64; 2] = [0.0, 4.0];
const TIMES: [f64; 2] = [-2.0, 3.0];

/// Measures, prints the figures, and draws them.
pub(crate) fn draw(site: &Site, path: &Path) {
    let names = ["rungate", "the article's scan", "flock -n FILE true"];
    let colours = ["#0b6e4f", "#c1121f", "#5f6b7a"];
    let mut lines = [const { Vec::new() }; 3];
    println!("| held | rungate | the article's scan | flock |\n| --- | --- | --- | --- |");
    for held in HELD {
        let file = site.path(&format!("plot-{held}"));
        let _crowd = Crowd::of(site, &file, held);
        let mut flock = Command::new("/usr/bin/flock");
        flock.arg("-n").arg(site.path("flock")).arg("true").stdin(Stdio::null());
        let sides = in_turn(
            15,
            [
                (names[0], &mut || timed(|| assert!(is_admitted(&file, 20_000)))),
                (names[1], &mut || scan(site, &file)),
                (names[2], &mut || timed(|| assert!(flock.status().expect("flock runs").success()))),
            ],
        );
        let medians = sides.map(|side| side.median());
        println!("| {held} | {:.3} ms | {:.3} ms | {:.3} ms |", medians[0], medians[1], medians[2]);
        for (line, median) in lines.iter_mut().zip(medians) {
            line.push((held as f64, median));
        }
    }
    fs::write(path, svg(&names, &colours, &lines)).expect("the drawing is written");
}

fn across(held: f64) -> f64 {
    LEFT + (held.log10() - SLOTS[0]) / (SLOTS[1] - SLOTS[0]) * (RIGHT - LEFT)
}

fn down(milliseconds: f64) -> f64 {
    BOTTOM - (milliseconds.log10() - TIMES[0]) / (TIMES[1] - TIMES[0]) * (BOTTOM - TOP)
}

fn svg(names: &[&str], colours: &[&str], lines: &[Vec<(f64, f64)>]) -> String {
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 400\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <desc>made by: cargo bench --bench launch -- --plot docs/admission.svg</desc>\n\
         <rect width=\"640\" height=\"400\" fill=\"white\"/>\n",
    );
    for (power, shown) in (0..).zip(["1", "10", "100", "1,000", "10,000"]) {
        let x = across(10_f64.powi(power));
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {TOP}V{BOTTOM}\" stroke=\"#e3e6ea\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{shown}</text>",
            BOTTOM + 18.0
        );
    }
    for (power, shown) in (-2..).zip(["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"]) {
        let y = down(10_f64.powi(power));
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" stroke=\"#e3e6ea\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{shown}</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"385\" text-anchor=\"middle\">slots that others hold</text>",
        f64::midpoint(LEFT, RIGHT)
    );
    for ((name, colour), line) in names.iter().zip(colours).zip(lines) {
        let points: Vec<String> =
            line.iter().map(|(held, time)| format!("{:.1},{:.1}", across(*held), down(*time))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
        if let Some((held, time)) = line.get(line.len() / 2) {
            let (x, y) = (across(*held) - 8.0, down(*time) - 8.0);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\" fill=\"{colour}\">{name}</text>"
            );
        }
    }
    svg + "</svg>\n"
}
