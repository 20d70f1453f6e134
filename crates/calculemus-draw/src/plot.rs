//! Pictures as SVG, written by hand: the colours are those of the page, so one picture serves light, dark and paper.
//!
//! [`Plot::figure`] stands in a page; [`Plot::document`] stands alone. Values that are not finite break a line and
//! are otherwise passed over; a picture without any value says so. The same values give the same bytes.

use std::fmt::Write;

use super::axis::{Axis, Fitted, Scale};
use super::html;

const WIDTH: f64 = 560.0;
const INNER_HEIGHT: f64 = 230.0;
const ROW: f64 = 18.0;
/// A character of the tick labels is about so wide.
const CHARACTER: f64 = 6.6;
/// Colours in the style sheet.
const COLOURS: usize = 8;

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A line.
    Line,
    /// A thin line, for what is noisy.
    Thin,
    /// A line with a dot at each value.
    Dotted,
    /// Dots, with whiskers where there is a half-width.
    Dots,
    /// Bars from zero; those of several series stand side by side.
    Bars,
}

/// One value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Its place on the axis below.
    pub x: f64,
    /// Its place on the axis on the left.
    pub y: f64,
    /// Half the width of an interval around y.
    pub half: Option<f64>,
}

impl Point {
    /// A value without interval.
    pub fn at(x: f64, y: f64) -> Self {
        Self { x, y, half: None }
    }
}

/// Values of one kind.
#[derive(Debug, Clone)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The place in the order of colours; beyond the last colour lines are dashed.
    pub colour: usize,
    /// How it is drawn.
    pub mark: Mark,
    /// The values.
    pub points: Vec<Point>,
}

/// A range at each place: (x, least, greatest).
pub type Band = Vec<(f64, f64, f64)>;

/// A picture.
#[derive(Debug, Clone)]
pub struct Plot {
    /// The heading.
    pub title: String,
    /// A line of explanation, or nothing.
    pub note: String,
    /// The axis below.
    pub x: Axis,
    /// The axis on the left.
    pub y: Axis,
    /// What is shown.
    pub series: Vec<Series>,
    /// Horizontal lines with a name: an optimum.
    pub levels: Vec<(String, f64)>,
    /// The diagonal y = x.
    pub diagonal: bool,
    /// Ranges around the series of a name.
    pub bands: Vec<(String, Band)>,
    /// The part of the picture up to this x is shaded.
    pub shade: Option<f64>,
}

impl Plot {
    /// An empty picture.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        let title = title.to_owned();
        Self {
            title,
            note: String::new(),
            x,
            y,
            series: Vec::new(),
            levels: Vec::new(),
            diagonal: false,
            bands: Vec::new(),
            shade: None,
        }
    }

    /// Adds a range around the series of a name.
    pub fn band(mut self, name: &str, band: Band) -> Self {
        self.bands.push((name.to_owned(), band));
        self
    }

    /// Shades the part up to an x.
    pub fn shaded(mut self, until: f64) -> Self {
        self.shade = Some(until);
        self
    }

    /// Adds a series. Those of one name share a colour and an entry of the legend.
    pub fn with(mut self, name: &str, mark: Mark, points: Vec<Point>) -> Self {
        let next = self.series.iter().map(|s| s.colour + 1).max().unwrap_or(0);
        let colour = self.series.iter().find(|s| s.name == name).map_or(next, |s| s.colour);
        self.series.push(Series { name: name.to_owned(), colour, mark, points });
        self
    }

    /// Adds a named horizontal line, if there is a value.
    pub fn level(mut self, name: &str, value: Option<f64>) -> Self {
        self.levels.extend(value.map(|v| (name.to_owned(), v)));
        self
    }

    /// Adds a line of explanation.
    pub fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Whether there is anything to see.
    pub fn is_empty(&self) -> bool {
        !self.series.iter().flat_map(|s| &s.points).any(|p| self.x.takes(p.x) && self.y.takes(p.y))
    }

    /// A figure of a page.
    pub fn figure(&self) -> String {
        let mut caption = html::escape(&self.title);
        if !self.note.is_empty() {
            let _ = write!(caption, " <small>{}</small>", html::escape(&self.note));
        }
        format!("<figure><figcaption>{caption}</figcaption>\n{}</figure>\n", self.svg(""))
    }

    /// A file of its own, with its own style.
    pub fn document(&self) -> String {
        self.svg(&html::style_of_file(html::PLOTS))
    }

    fn svg(&self, style: &str) -> String {
        let legend = Legend::of(self);
        let top = ROW + 6.0 + legend.rows as f64 * ROW;
        let points = || self.series.iter().flat_map(|s| s.points.iter()).filter(|p| self.takes(p));
        // The name of a level stands below its line, where curves that approach it from above leave room.
        let below = if self.y.scale == Scale::Log { 0.88 } else { 1.0 };
        let levels = self.levels.iter().flat_map(|l| [l.1, l.1 * below]);
        let bars = self.series.iter().any(|s| s.mark == Mark::Bars).then_some(0.0);
        let spread = points().flat_map(|p| {
            let half = p.half.filter(|h| h.is_finite()).unwrap_or(0.0);
            [p.y - half, p.y + half]
        });
        let (x, y) = (self.x.fit(points().map(|p| p.x)), self.y.fit(spread.chain(levels).chain(bars)));
        let widest = y.ticks.iter().map(|t| t.1.chars().count()).max().unwrap_or(1) as f64;
        let frame = Frame { left: (widest * CHARACTER + 12.0).max(34.0), top, x, y };
        let height = top + INNER_HEIGHT + 44.0;
        let mut svg = format!(
            "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
             <title>{}</title>\n{style}",
            html::escape(&self.title)
        );
        let _ = writeln!(svg, "<text x=\"0\" y=\"13\">{}</text>", html::escape(&self.y.label));
        svg.push_str(&legend.svg);
        frame.axes(&mut svg, &self.x.label);
        if self.is_empty() {
            let (cx, cy) = (WIDTH / 2.0, top + INNER_HEIGHT / 2.0);
            let _ = writeln!(svg, "<text class=\"mid\" x=\"{cx}\" y=\"{cy}\">no values</text>");
        } else {
            self.draw(&frame, &mut svg);
        }
        svg + "</svg>\n"
    }

    fn takes(&self, p: &Point) -> bool {
        self.x.takes(p.x) && self.y.takes(p.y)
    }

    fn draw(&self, frame: &Frame, svg: &mut String) {
        if self.diagonal {
            let (a, b) = (frame.at(0.0, 0.0), frame.at(1.0, 1.0));
            let _ = writeln!(svg, "<path class=\"mark\" d=\"M{} {}L{} {}\"/>", a.0, a.1, b.0, b.1);
        }
        self.draw_behind(frame, svg);
        let bars: Vec<usize> =
            self.series.iter().enumerate().filter(|(_, s)| s.mark == Mark::Bars).map(|(i, _)| i).collect();
        for (i, series) in self.series.iter().enumerate() {
            let _ = writeln!(svg, "<g class=\"c{}\">", series.colour % COLOURS);
            match series.mark {
                Mark::Bars => {
                    let place = bars.iter().position(|&b| b == i).unwrap_or(0);
                    self.bars(series, place, bars.len().max(1), frame, svg);
                }
                Mark::Dots => self.dots(series, 4.0, frame, svg),
                Mark::Line | Mark::Thin | Mark::Dotted => {
                    self.line(series, frame, svg);
                    if series.mark == Mark::Dotted {
                        self.dots(series, 2.8, frame, svg);
                    }
                }
            }
            svg.push_str("</g>\n");
        }
        for (name, value) in self.levels.iter().filter(|l| self.y.takes(l.1) && frame.y.holds(l.1)) {
            let (_, at) = frame.at_value(f64::NAN, *value);
            let (left, right) = (frame.left, WIDTH - Frame::RIGHT);
            let _ = writeln!(
                svg,
                "<path class=\"mark\" d=\"M{left} {at}H{right}\"/><text class=\"mark end\" x=\"{right}\" y=\"{}\">{}</text>",
                round(at + 14.0),
                html::escape(name)
            );
        }
    }

    /// What stands behind the lines: the shade and the bands.
    fn draw_behind(&self, frame: &Frame, svg: &mut String) {
        if let Some(until) = self.shade.filter(|x| self.x.takes(*x)) {
            let (right, _) = frame.at_value(until, f64::NAN);
            let (left, top) = (round(frame.left), round(frame.top));
            if right > left {
                let width = round(right - left);
                let _ = writeln!(
                    svg,
                    "<rect class=\"shade\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{INNER_HEIGHT}\"/>"
                );
            }
        }
        for (name, band) in &self.bands {
            let Some(series) = self.series.iter().find(|series| series.name == *name) else { continue };
            let takes = |p: &&(f64, f64, f64)| self.x.takes(p.0) && self.y.takes(p.1) && self.y.takes(p.2);
            let upper = band.iter().filter(takes).map(|p| frame.at_value(p.0, p.2));
            let lower = band.iter().rev().filter(takes).map(|p| frame.at_value(p.0, p.1));
            let corners: Vec<String> = upper.chain(lower).map(|(x, y)| format!("{x} {y}")).collect();
            if corners.len() > 2 {
                let colour = series.colour % COLOURS;
                let path = corners.join("L");
                let _ = writeln!(svg, "<g class=\"c{colour}\"><path class=\"band\" d=\"M{path}Z\"/></g>");
            }
        }
    }

    fn line(&self, series: &Series, frame: &Frame, svg: &mut String) {
        let mut path = String::new();
        let mut pen = 'M';
        for p in &series.points {
            if !self.takes(p) {
                pen = 'M';
                continue;
            }
            let (x, y) = frame.at_value(p.x, p.y);
            let _ = write!(path, "{pen}{x} {y}");
            pen = 'L';
        }
        let thin = if series.mark == Mark::Thin { " thin" } else { "" };
        let dashed = if series.colour >= COLOURS { " dashed" } else { "" };
        if !path.is_empty() {
            let _ = writeln!(svg, "<path class=\"line{thin}{dashed}\" d=\"{path}\"/>");
        }
    }

    fn dots(&self, series: &Series, radius: f64, frame: &Frame, svg: &mut String) {
        for p in series.points.iter().filter(|p| self.takes(p)) {
            let (x, y) = frame.at_value(p.x, p.y);
            if let Some(half) = p.half.filter(|h| h.is_finite()) {
                let (_, low) = frame.at_value(p.x, p.y - half);
                let (_, high) = frame.at_value(p.x, p.y + half);
                let _ = write!(svg, "<path class=\"whisker\" d=\"M{x} {low}V{high}\"/>");
            }
            let title = html::escape(&self.title_of(p));
            let _ = writeln!(
                svg,
                "<circle class=\"dot\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"><title>{title}</title></circle>"
            );
        }
    }

    fn bars(&self, series: &Series, place: usize, of: usize, frame: &Frame, svg: &mut String) {
        let slot = (frame.at_value(1.0, 0.0).0 - frame.at_value(0.0, 0.0).0).abs().min(120.0);
        let width = slot * 0.7 / of as f64;
        for p in series.points.iter().filter(|p| self.takes(p)) {
            let (middle, top) = frame.at_value(p.x, p.y);
            let (_, base) = frame.at_value(p.x, 0.0);
            let left = round(middle - slot * 0.35 + place as f64 * width + 1.0);
            let (y, height) = (top.min(base), round((top - base).abs()));
            let (width, title) = (round((width - 2.0).max(1.0)), html::escape(&self.title_of(p)));
            let _ = writeln!(
                svg,
                "<rect class=\"bar\" x=\"{left}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"1.5\"><title>{title}</title></rect>"
            );
        }
    }

    /// What a pointer over a value shows.
    fn title_of(&self, p: &Point) -> String {
        let name = self.x.names.get(p.x.round().max(0.0) as usize);
        let x =
            name.cloned().unwrap_or_else(|| format!("{} {}", self.x.label, super::numbers::tick(p.x, p.x)));
        format!("{x}: {}", super::numbers::plus_minus(Some(p.y), p.half, 4))
    }
}

/// Two decimals are enough for a picture and keep the page small.
fn round(v: f64) -> f64 {
    (v * 100.0).round() / 100.0
}

/// The names of the series, in as many rows as they need.
struct Legend {
    svg: String,
    rows: usize,
}

impl Legend {
    fn of(plot: &Plot) -> Self {
        let mut legend = Self { svg: String::new(), rows: 0 };
        if plot.series.len() < 2 {
            return legend;
        }
        let mut x = 0.0;
        legend.rows = 1;
        for (i, series) in plot.series.iter().enumerate() {
            if plot.series.iter().take(i).any(|s| s.name == series.name) {
                continue;
            }
            let width = 26.0 + CHARACTER * series.name.chars().count() as f64 + 14.0;
            if x > 0.0 && x + width > WIDTH {
                x = 0.0;
                legend.rows += 1;
            }
            let y = 13.0 + legend.rows as f64 * ROW;
            let class = series.colour % COLOURS;
            let dashed = if series.colour >= COLOURS { " dashed" } else { "" };
            let key = match series.mark {
                Mark::Line | Mark::Thin | Mark::Dotted => {
                    format!("<path class=\"line{dashed}\" d=\"M{x} {}h18\"/>", y - 4.0)
                }
                Mark::Dots => {
                    format!("<circle class=\"dot\" cx=\"{}\" cy=\"{}\" r=\"4\"/>", x + 9.0, y - 4.0)
                }
                Mark::Bars => {
                    format!(
                        "<rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"11\" height=\"11\" rx=\"1.5\"/>",
                        x + 4.0,
                        y - 10.0
                    )
                }
            };
            let _ = writeln!(
                legend.svg,
                "<g class=\"c{class}\">{key}<text x=\"{}\" y=\"{y}\">{}</text></g>",
                x + 24.0,
                html::escape(&series.name)
            );
            x = round(x + width);
        }
        legend
    }
}

/// The place of the values in the picture.
struct Frame {
    left: f64,
    top: f64,
    x: Fitted,
    y: Fitted,
}

impl Frame {
    const RIGHT: f64 = 14.0;

    /// From shares of the axes.
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let width = WIDTH - Self::RIGHT - self.left;
        (
            round(self.left + x.clamp(-0.02, 1.02) * width),
            round(self.top + (1.0 - y.clamp(-0.02, 1.02)) * INNER_HEIGHT),
        )
    }

    fn at_value(&self, x: f64, y: f64) -> (f64, f64) {
        self.at(self.x.place(x), self.y.place(y))
    }

    fn axes(&self, svg: &mut String, label: &str) {
        let (right, bottom) = (WIDTH - Self::RIGHT, self.top + INNER_HEIGHT);
        let left = round(self.left);
        for (value, name) in &self.y.ticks {
            let (_, y) = self.at_value(f64::NAN, *value);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" d=\"M{left} {y}H{right}\"/><text class=\"end\" x=\"{}\" y=\"{}\">{}</text>",
                round(left - 7.0),
                round(y + 4.0),
                html::escape(name)
            );
        }
        // Names that would run into each other are thinned out.
        let widest = self.x.ticks.iter().map(|t| t.1.chars().count()).max().unwrap_or(1) as f64;
        let room = ((right - left) / (widest * CHARACTER + 10.0)).max(1.0);
        let every = (self.x.ticks.len() as f64 / room).ceil().max(1.0) as usize;
        for (value, name) in self.x.ticks.iter().step_by(every) {
            let (x, _) = self.at_value(*value, f64::NAN);
            let _ = writeln!(
                svg,
                "<path class=\"axis\" d=\"M{x} {bottom}v4\"/><text class=\"mid\" x=\"{x}\" y=\"{}\">{}</text>",
                bottom + 17.0,
                html::escape(name)
            );
        }
        let _ = writeln!(
            svg,
            "<path class=\"axis\" d=\"M{left} {bottom}H{right}\"/><text class=\"end\" x=\"{right}\" y=\"{}\">{}</text>",
            bottom + 36.0,
            html::escape(label)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(scale: Scale, mark: Mark, ys: &[f64]) -> Plot {
        let points =
            ys.iter().enumerate().map(|(i, &y)| Point { x: i as f64, y, half: Some(y / 2.0) }).collect();
        Plot::new("t", Axis::new("x", Scale::Linear), Axis::new("y", scale)).with("s", mark, points)
    }

    #[test]
    fn nothing_that_is_no_number_reaches_the_picture() {
        let nan = f64::NAN;
        for scale in [Scale::Linear, Scale::FromZero, Scale::Log] {
            for mark in [Mark::Line, Mark::Thin, Mark::Dotted, Mark::Dots, Mark::Bars] {
                for ys in [
                    &[][..],
                    &[nan],
                    &[nan, 1.0, nan, 2.0],
                    &[0.0, 0.0],
                    &[-1.0, 3.0, f64::INFINITY],
                    &[1e-300, 1e300],
                ] {
                    let mut plot =
                        plot(scale, mark, ys).level("optimum", Some(nan)).level("other", Some(0.5));
                    plot.diagonal = true;
                    let svg = plot.document();
                    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{scale:?} {mark:?} {ys:?}\n{svg}");
                    assert_eq!(svg, plot.document());
                    assert!(plot.figure().starts_with("<figure>"));
                }
            }
        }
        assert!(plot(Scale::Log, Mark::Line, &[-1.0]).figure().contains("no values"));
    }

    #[test]
    fn a_hole_breaks_the_line() {
        let svg = plot(Scale::Linear, Mark::Line, &[1.0, 2.0, f64::NAN, 3.0, 4.0]).figure();
        let line = svg.lines().find(|l| l.contains("class=\"line\"")).unwrap();
        assert_eq!(line.matches('M').count(), 2, "{line}");
    }

    #[test]
    fn one_name_is_one_colour_and_one_entry() {
        let line = || vec![Point::at(0.0, 1.0), Point::at(1.0, 2.0)];
        let axis = || Axis::new("", Scale::Linear);
        let plot = Plot::new("t", axis(), axis());
        let plot =
            plot.with("a", Mark::Line, line()).with("b", Mark::Line, line()).with("a", Mark::Line, line());
        assert_eq!(plot.series.iter().map(|s| s.colour).collect::<Vec<usize>>(), [0, 1, 0]);
        assert_eq!(plot.figure().matches(">a</text>").count(), 1);
    }

    #[test]
    fn names_are_escaped() {
        let axis = Axis::named("<x>", vec!["<a>".to_owned()]);
        let plot = Plot::new("<t>", axis, Axis::new("<y>", Scale::Linear))
            .with("<s>", Mark::Bars, vec![Point::at(0.0, 1.0)])
            .with("<u>", Mark::Dots, vec![Point::at(0.0, 2.0)])
            .level("<l>", Some(1.5))
            .noted("<n>");
        let figure = plot.figure();
        for name in ["<x>", "<a>", "<t>", "<y>", "<s>", "<u>", "<l>", "<n>"] {
            assert!(!figure.contains(name), "{name}");
        }
    }
}
