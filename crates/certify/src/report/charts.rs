//! Charts as SVG. Each is drawn twice, for wide and for narrow screens; the style sheet shows one.
//!
//! The drawing library writes colours as attributes. The style sheet replaces exactly these values
//! by those of the light or the dark theme, so the constants here and `style.css` belong together.

use entresol_page::{COLOURS, GRID, INK, decades};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// Lines over a common horizontal axis.
#[derive(Debug, Clone)]
pub struct Chart<'a> {
    /// Its heading.
    pub title: &'a str,
    /// What goes from left to right.
    pub horizontal: Axis,
    /// What goes up.
    pub vertical: Axis,
    /// The lines, as many as there are colours or fewer.
    pub lines: Vec<Line>,
    /// Dashed levels with their names.
    pub levels: Vec<(f64, String)>,
}

/// One line, or marks where `marks` says so.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points from left to right.
    pub points: Vec<(f64, f64)>,
    /// Which of the four colours.
    pub colour: usize,
    /// How it is drawn.
    pub style: Style,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Through.
    Solid,
    /// Dashed.
    Dashed,
    /// With a mark at each point.
    Marked,
}

/// An axis: what it shows and how its numbers are written.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// Its distances.
    pub scale: Scale,
    /// Writes one of its numbers.
    pub write: fn(f64) -> String,
    /// What it shows, for those who cannot tell from the numbers.
    pub name: &'static str,
}

/// Distances on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// From 0.
    Linear,
    /// Powers of ten; values of 0 are left out.
    Logarithmic,
}

const LEVEL: RGBColor = RGBColor(0xB4, 0x23, 0x18);
/// The drawing library divides it by 1.24.
const FONT: i32 = 15;
const WIDE: (u32, u32) = (920, 300);
const NARROW: (u32, u32) = (400, 280);

impl Chart<'_> {
    /// Both drawings; `None` where there is nothing to draw.
    pub(crate) fn drawings(&self) -> Option<[String; 2]> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let horizontal = self.horizontal.range(points().map(|point| point.0), 0.0)?;
        let levels = self.levels.iter().map(|level| level.0);
        let vertical = self.vertical.range(points().map(|point| point.1).chain(levels), 0.06)?;
        let draw = |size| {
            let mut text = String::new();
            let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
            // Drawing into a string fails only where a label has no font; then there is no chart.
            let drawn = self.draw(&area, (horizontal, vertical)).is_ok();
            drop(area);
            drawn.then_some(text)
        };
        Some([draw(WIDE)?, draw(NARROW)?])
    }

    fn draw(&self, area: &Area<'_>, (h, v): (Range, Range)) -> Drawn {
        use Scale::{Linear, Logarithmic};
        match (self.horizontal.scale, self.vertical.scale) {
            (Linear, Linear) => self.draw_on(area, (h.0..h.1, v.0..v.1)),
            (Linear, Logarithmic) => self.draw_on(area, (h.0..h.1, (v.0..v.1).log_scale())),
            (Logarithmic, Linear) => self.draw_on(area, ((h.0..h.1).log_scale(), v.0..v.1)),
            (Logarithmic, Logarithmic) => {
                self.draw_on(area, ((h.0..h.1).log_scale(), (v.0..v.1).log_scale()))
            }
        }
    }

    fn draw_on<H, V>(&self, area: &Area<'_>, (horizontal, vertical): (H, V)) -> Drawn
    where
        H: AsRangedCoord<Value = f64>,
        V: AsRangedCoord<Value = f64>,
        H::CoordDescType: ValueFormatter<f64>,
        V::CoordDescType: ValueFormatter<f64>,
    {
        let narrow = area.dim_in_pixel().0 < 600;
        let (write_h, write_v) = (self.horizontal.write, self.vertical.write);
        let mut chart = ChartBuilder::on(area)
            .margin_top(10)
            .margin_right(if narrow { 14 } else { 24 })
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(horizontal, vertical)
            .map_err(drop)?;
        let text = |size: i32| ("sans-serif", size).into_font().color(&INK);
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(if narrow { 5 } else { 10 })
            .y_labels(6)
            .x_label_formatter(&|value| write_h(*value))
            .y_label_formatter(&|value| write_v(*value))
            .x_desc(self.horizontal.name)
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(GRID)
            .label_style(text(FONT))
            .axis_desc_style(text(FONT))
            .draw()
            .map_err(drop)?;
        let edges = self.horizontal.range(self.all(), 0.0).ok_or(())?;
        for (level, _) in &self.levels {
            let line = [(edges.0, *level), (edges.1, *level)];
            let dashes = DashedLineSeries::new(line, 3, 5, LEVEL.stroke_width(1));
            chart.draw_series(dashes).map_err(drop)?;
        }
        for line in &self.lines {
            let colour = COLOURS[line.colour % COLOURS.len()];
            let visible = |point: &&(f64, f64)| self.is_visible(**point);
            let points: Vec<(f64, f64)> = line.points.iter().filter(visible).copied().collect();
            match line.style {
                Style::Dashed => {
                    let stroke = colour.stroke_width(2);
                    let dashes = DashedLineSeries::new(points, 6, 4, stroke);
                    chart.draw_series(dashes).map(drop)
                }
                style => {
                    let series = LineSeries::new(points, colour.stroke_width(2));
                    let size = if style == Style::Marked { 4 } else { 0 };
                    chart.draw_series(series.point_size(size)).map(drop)
                }
            }
            .map_err(drop)?;
        }
        area.present().map_err(drop)
    }

    fn all(&self) -> impl Iterator<Item = f64> {
        self.lines.iter().flat_map(|line| &line.points).map(|point| point.0)
    }

    fn is_visible(&self, (x, y): (f64, f64)) -> bool {
        self.horizontal.shows(x) && self.vertical.shows(y)
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Range = (f64, f64);
type Drawn = Result<(), ()>;

impl Axis {
    /// Latencies in ns over several powers of ten.
    pub const LATENCY: Axis =
        Axis { scale: Scale::Logarithmic, write: super::words::latency, name: "latency" };

    /// A linear axis from 0.
    pub const fn linear(name: &'static str, write: fn(f64) -> String) -> Axis {
        Axis { scale: Scale::Linear, write, name }
    }

    fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// The range that shows all `values`, with `air` above.
    fn range(&self, values: impl Iterator<Item = f64>, air: f64) -> Option<Range> {
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        for value in values.filter(|value| self.shows(*value)) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            return None;
        }
        Some(match self.scale {
            Scale::Linear => {
                let low = low.min(0.0);
                (low, if high > low { high + (high - low) * air } else { low + 1.0 })
            }
            Scale::Logarithmic => decades(low, high),
        })
    }
}

/// A unit of time that keeps the numbers of an axis short.
#[derive(Debug, Clone, Copy)]
pub struct TimeUnit {
    /// Seconds of one.
    pub seconds: f64,
    name: &'static str,
}

impl TimeUnit {
    /// For a run of so many seconds.
    pub fn of(seconds: f64) -> TimeUnit {
        match seconds {
            seconds if seconds > 10_000.0 => {
                TimeUnit { seconds: 3600.0, name: "hours since the start" }
            }
            seconds if seconds > 600.0 => {
                TimeUnit { seconds: 60.0, name: "minutes since the start" }
            }
            _ => TimeUnit { seconds: 1.0, name: "seconds since the start" },
        }
    }

    /// The axis of a chart over time.
    pub fn axis(self) -> Axis {
        Axis::linear(self.name, super::words::tidy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>, scale: Scale) -> Option<[String; 2]> {
        let line = Line { name: "p99".to_owned(), points, colour: 1, style: Style::Solid };
        let vertical = Axis { scale, ..Axis::LATENCY };
        let lines = vec![line];
        let levels = vec![(1e6, "1 ms".to_owned())];
        let horizontal = TimeUnit::of(9.0).axis();
        Chart { title: "x", horizontal, vertical, lines, levels }.drawings()
    }

    #[test]
    fn every_colour_of_a_drawing_is_known_to_the_style_sheet() {
        let style = include_str!("style.css");
        let points = (0..50).map(|t| (f64::from(t), 1e5 * f64::from(t + 1))).collect();
        let drawings = chart(points, Scale::Logarithmic).expect("there are points");
        let mut seen = 0;
        for drawing in &drawings {
            for (index, _) in drawing.match_indices('#') {
                let colour = &drawing[index..index + 7];
                assert!(style.contains(&format!("\"{colour}\"")), "{colour}");
                seen += 1;
            }
        }
        assert!(seen > 10);
        for colour in COLOURS {
            let text = format!("\"#{:02X}{:02X}{:02X}\"", colour.0, colour.1, colour.2);
            assert!(style.contains(&text), "{text}");
        }
    }

    #[test]
    fn odd_points_make_a_chart_or_none_and_no_panic() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            assert!(chart(vec![(5.0, 3.0)], scale).is_some());
            assert!(chart(vec![(0.0, 0.0), (1.0, 0.0)], scale).is_some());
            assert!(chart(vec![(0.0, f64::NAN), (1.0, f64::INFINITY)], scale).is_some());
            assert!(chart(vec![(0.0, 1e18), (1.0, 1e-9)], scale).is_some());
            assert!(chart(Vec::new(), scale).is_none());
        }
    }
}
