//! The drawings, by plotters, as SVG. Colours are variables of the page, so that one drawing is right in the
//! dark, in the light and on paper; lines differ in more than their colour.

use plotters::{
    chart::MeshStyle,
    coord::types::RangedCoordf64,
    prelude::{
        AreaSeries, ChartBuilder, Color, DashedLineSeries, IntoDrawingArea, IntoFont, LineSeries, RGBColor,
        Rectangle, SVGBackend, Text,
    },
    style::{ShapeStyle, TRANSPARENT},
};

/// As wide as a phone held upright can show with letters that can be read.
const WIDTH: u32 = 480;

/// What stands for a variable of the page until the drawing is finished.
const INK: RGBColor = RGBColor(1, 2, 3);
const GRID: RGBColor = RGBColor(1, 2, 4);
const FILL: RGBColor = RGBColor(1, 2, 5);
const LINE: RGBColor = RGBColor(1, 2, 6);
const LIMIT: RGBColor = RGBColor(1, 2, 7);

const VARIABLES: [(&str, &str); 5] = [
    ("#010203", "var(--ink)"),
    ("#010204", "var(--grid)"),
    ("#010205", "var(--fill)"),
    ("#010206", "var(--line)"),
    ("#010207", "var(--limit)"),
];

/// A quantity over time.
pub(super) struct OverTime<'a> {
    /// When, in seconds since 1970, the average and the most.
    pub(super) points: &'a [(f64, f64, f64)],
    /// A dashed line, where there is a limit.
    pub(super) limit: Option<f64>,
    /// What stands below the axis.
    pub(super) label: &'a dyn Fn(f64) -> String,
}

/// Draws it: the average as an area, the most as a line, and the limit as a dashed line.
pub(super) fn over_time(what: &OverTime<'_>) -> Option<String> {
    let (first, last) = (what.points.first()?.0, what.points.last()?.0);
    let highest = what.points.iter().map(|point| point.2).fold(what.limit.unwrap_or(0.0), f64::max).max(1.0);
    drawn(190, |area| {
        let mut chart = ChartBuilder::on(&area)
            .margin(6)
            .x_label_area_size(24)
            .y_label_area_size(40)
            .build_cartesian_2d(first..last.max(first + 1.0), 0.0..highest * 1.08)
            .ok()?;
        let label = |x: &f64| (what.label)(*x);
        in_our_style(chart.configure_mesh().x_labels(5).y_labels(5).x_label_formatter(&label)).draw().ok()?;
        let average = what.points.iter().map(|(at, average, _)| (*at, *average));
        chart.draw_series(AreaSeries::new(average, 0.0, FILL)).ok()?;
        let most = what.points.iter().map(|(at, _, most)| (*at, *most));
        chart.draw_series(LineSeries::new(most, ShapeStyle::from(LINE).stroke_width(1))).ok()?;
        if let Some(limit) = what.limit {
            let line = [(first, limit), (last, limit)];
            let style = ShapeStyle::from(LIMIT).stroke_width(2);
            chart.draw_series(DashedLineSeries::new(line, 6, 4, style)).ok()?;
        }
        area.present().ok()
    })
}

/// Draws bars side by side, each with its word below.
pub(super) fn bars(bars: &[(String, f64)]) -> Option<String> {
    let highest = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max).max(1.0);
    let count = i32::try_from(bars.len()).ok().filter(|count| *count > 0)?;
    drawn(170, |area| {
        let mut chart = ChartBuilder::on(&area)
            .margin(6)
            .x_label_area_size(24)
            .y_label_area_size(48)
            .build_cartesian_2d(0.0..f64::from(count), 0.0..highest * 1.05)
            .ok()?;
        in_our_style(chart.configure_mesh().x_labels(0).y_labels(4)).draw().ok()?;
        let rectangle = |(place, (_, value)): (usize, &(String, f64))| {
            let left = f64::from(u32::try_from(place).unwrap_or(0));
            Rectangle::new([(left + 0.12, 0.0), (left + 0.88, *value)], FILL.filled())
        };
        chart.draw_series(bars.iter().enumerate().map(rectangle)).ok()?;
        // So many words as fit beside each other.
        let each = bars.len().div_ceil(12).max(1);
        let words = bars.iter().enumerate().filter(|(place, _)| place % each == 0);
        let (left, width) = (48 + 6, f64::from(WIDTH - 48 - 12) / f64::from(count));
        for (place, (word, _)) in words {
            let centre = f64::from(left) + (f64::from(u32::try_from(place).unwrap_or(0)) + 0.5) * width;
            #[expect(clippy::cast_possible_truncation, reason = "a place in the drawing")]
            let at = (centre as i32 - i32::try_from(word.chars().count()).unwrap_or(0) * 3, 150);
            area.draw(&Text::new(word.clone(), at, ("sans-serif", 11).into_font().color(&INK))).ok()?;
        }
        area.present().ok()
    })
}

/// Draws a week: a field for each hour of each day, the fuller the more.
pub(super) fn week(counts: &[[u64; 24]; 7]) -> Option<String> {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let most = counts.iter().flatten().copied().max().filter(|most| *most > 0)?;
    drawn(170, |area| {
        for (day, hours) in (0..).zip(counts) {
            let top = 8 + day * 20;
            let style = ("sans-serif", 11).into_font().color(&INK);
            area.draw(&Text::new(DAYS[usize::try_from(day).unwrap_or(0)], (4, top + 3), style)).ok()?;
            for (hour, count) in (0..).zip(hours) {
                let left = 36 + hour * 18;
                let field = [(left, top), (left + 16, top + 17)];
                area.draw(&Rectangle::new(field, ShapeStyle::from(GRID))).ok()?;
                // Not by colour alone: the field fills from below.
                #[expect(
                    clippy::cast_precision_loss,
                    clippy::cast_possible_truncation,
                    reason = "a share of 16"
                )]
                let height = (*count as f64 / most as f64 * 16.0).ceil() as i32;
                if height > 0 {
                    let full = [(left + 1, top + 17 - height), (left + 15, top + 16)];
                    area.draw(&Rectangle::new(full, FILL.filled())).ok()?;
                }
            }
        }
        for hour in (0..24).step_by(3) {
            let style = ("sans-serif", 11).into_font().color(&INK);
            area.draw(&Text::new(format!("{hour:02}"), (38 + hour * 18, 152), style)).ok()?;
        }
        area.present().ok()
    })
}

/// Half a slot is nothing that anybody holds.
fn whole(number: f64) -> String {
    if (number - number.round()).abs() < 1e-6 { format!("{number:.0}") } else { String::new() }
}

type Mesh<'a, 'b> = MeshStyle<'a, 'b, RangedCoordf64, RangedCoordf64, SVGBackend<'a>>;

/// Lines across and whole numbers beside them, in the colours of the page.
fn in_our_style<'m, 'a, 'b>(mesh: &'m mut Mesh<'a, 'b>) -> &'m mut Mesh<'a, 'b> {
    mesh.disable_x_mesh()
        .y_label_formatter(&|y| whole(*y))
        .label_style(("sans-serif", 12).into_font().color(&INK))
        .axis_style(GRID)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
}

type Area<'a> = plotters::drawing::DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn drawn(height: u32, draw: impl FnOnce(Area<'_>) -> Option<()>) -> Option<String> {
    let mut text = String::new();
    draw(SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area())?;
    for (colour, variable) in VARIABLES {
        text = text.replace(colour, variable);
    }
    Some(text)
}
