//! The pieces of a page: tables, warnings, and the one style sheet. What is put in is escaped by `maud`.

use maud::{DOCTYPE, PreEscaped, html};

pub use maud::Markup;

/// Text as it stands in elements and attributes, for the pictures, which are written by hand.
pub fn escape(text: &str) -> String {
    html! { (text) }.into_string()
}

/// Pieces of a page behind each other.
pub fn join(pieces: impl IntoIterator<Item = Markup>) -> Markup {
    html! { @for piece in pieces { (piece) } }
}

/// Text in the letters of a program.
pub fn code(words: &str) -> Cell {
    Cell::Html(html! { code { (words) } })
}

/// One cell of a table.
#[derive(Debug, Clone)]
pub enum Cell {
    /// Words, to be escaped.
    Text(String),
    /// A number, right-aligned.
    Number(String),
    /// A share from 0 to 1 behind its number, as a shade.
    Shade(f64, String),
    /// Ready HTML.
    Html(Markup),
}

/// Words.
pub fn text(words: impl Into<String>) -> Cell {
    Cell::Text(words.into())
}

/// A number that is already written.
pub fn number(digits: impl Into<String>) -> Cell {
    Cell::Number(digits.into())
}

/// A column of a table: its name, and what stands in it for an item.
pub type Column<'a, T> = (&'a str, &'a dyn Fn(&T) -> Cell);

/// A table: the first row names the columns; a row may have a class.
#[derive(Debug, Clone, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<(&'static str, Vec<Cell>)>,
}

impl Table {
    /// A table with these columns. A name that begins with `#` is that of a column of numbers.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// A table with a row for each item.
    pub fn of<T>(items: &[T], columns: &[Column<'_, T>]) -> Self {
        let mut table = Self::new(columns.iter().map(|column| column.0));
        for item in items {
            table.row(columns.iter().map(|column| column.1(item)).collect());
        }
        table
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(("", cells));
    }

    /// Adds a row with a class of the style sheet.
    pub fn marked(&mut self, class: &'static str, cells: Vec<Cell>) {
        self.rows.push((class, cells));
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| {
            let cells: Vec<String> =
                cells.iter().map(|cell| cell.replace('|', "\\|").replace(['\n', '\r'], " ")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let named = |name: &String| name.strip_prefix('#').unwrap_or(name).to_owned();
        let rule = |name: &String| if name.starts_with('#') { "---:|" } else { "---|" };
        let head = line(self.head.iter().map(named).collect());
        let rule: String = self.head.iter().map(rule).collect();
        let rows = self.rows.iter().map(|(_, cells)| line(cells.iter().map(Cell::words).collect()));
        format!("{head}|{rule}\n{}", rows.collect::<String>())
    }

    /// The HTML.
    pub fn html(&self) -> Markup {
        html! {
            div.scroll {
                table {
                    thead {
                        tr {
                            @for name in &self.head {
                                @match name.strip_prefix('#') {
                                    Some(name) => { th.n { (name) } }
                                    None => { th { (name) } }
                                }
                            }
                        }
                    }
                    tbody {
                        @for (class, cells) in &self.rows {
                            tr class=[(!class.is_empty()).then_some(class)] {
                                @for cell in cells { (cell.html()) }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Cell {
    /// What it says, without a form.
    fn words(&self) -> String {
        match self {
            Self::Text(words) | Self::Number(words) | Self::Shade(_, words) => words.clone(),
            Self::Html(ready) => ready.0.clone(),
        }
    }

    fn html(&self) -> Markup {
        match self {
            Self::Text(words) => html! { td { (words) } },
            Self::Number(digits) => html! { td.n { (digits) } },
            Self::Shade(share, digits) => {
                let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
                let shade = (share * 100.0).round();
                html! {
                    td.n.heat.strong[shade >= 60.0] style={ "--heat:" (shade) "%" } { (digits) }
                }
            }
            Self::Html(ready) => html! { td { (ready) } },
        }
    }
}

/// A line that says what is not here, and why.
pub fn left_out(what: &str) -> Markup {
    html! { p.left-out { (what) } }
}

/// A line that stands out.
pub fn warning(what: &str) -> Markup {
    html! { p.warning { span aria-hidden="true" { "⚠" } " " (what) } }
}

/// A paragraph of explanation.
pub fn note(words: &str) -> Markup {
    html! { p.note { (words) } }
}

/// The heading of a page, and a line below it.
pub fn heading(title: &str, lead: &str) -> Markup {
    html! { h1 { (title) } p.lead { (lead) } }
}

/// A titled part of the page.
pub fn section(title: &str, body: &Markup) -> Markup {
    html! { section { h2 { (title) } (body) } }
}

/// Pictures, side by side where there is room.
pub fn figures(figures: &[String]) -> Markup {
    html! { div.figures { @for figure in figures { (PreEscaped(figure)) } } }
}

/// The whole page.
pub fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(COLOURS)) (PreEscaped(STYLE)) (PreEscaped(PLOTS)) (PreEscaped(GRAPHS)) }
            }
            body { main { (body) } }
        }
    };
    page.into_string() + "\n"
}

/// The colours, light and dark; those of the series keep their order in every picture.
pub const COLOURS: &str = include_str!("colours.css");
/// The page.
const STYLE: &str = include_str!("page.css");
/// The pictures.
pub const PLOTS: &str = include_str!("plots.css");
/// The graphs of boxes.
pub(crate) const GRAPHS: &str = include_str!("graph.css");

/// The style of a picture that is a file of its own, with its colours written out: not every reader of SVG knows variables, and
/// what it does not know is black. Dark, where the reader is.
pub(crate) fn style_of_file(rules: &str) -> String {
    let rules = format!("svg {{ background: var(--paper); }}\n{rules}");
    let palettes = COLOURS.split(":root {").skip(1).map(|rest| rest.split('}').next().unwrap_or(""));
    let mut written = palettes.map(|palette| {
        let pairs = palette.split(';').filter_map(|entry| entry.split_once(':'));
        pairs.fold(rules.clone(), |rules, (name, value)| {
            rules.replace(&format!("var({})", name.trim()), value.trim())
        })
    });
    let (light, dark) = (written.next().unwrap_or_default(), written.next().unwrap_or_default());
    format!("<style>\n{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n</style>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_of_its_own_has_no_variables() {
        for rules in [PLOTS, GRAPHS] {
            let style = style_of_file(rules);
            assert!(!style.contains("var("), "{style}");
            assert!(style.contains("#2a78d6") && style.contains("#5b9ef0") && style.contains("currentColor"));
            assert_eq!(style.matches('{').count(), style.matches('}').count());
        }
    }

    #[test]
    fn nothing_gets_through_unescaped() {
        // Attributes stand in double quotes, so a single one is harmless.
        assert_eq!(escape("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;'&amp;");
        let evil = "<script>alert(1)</script>";
        let mut table = Table::new([evil, &format!("#{evil}")]);
        table.row(vec![text(evil), number(evil), Cell::Shade(0.5, evil.to_owned())]);
        let parts = [
            heading(evil, evil),
            section(evil, &table.html()),
            note(evil),
            warning(evil),
            left_out(evil),
            html! { (code(evil).html()) },
        ];
        let all = page(evil, &join(parts));
        assert!(!all.contains("<script"), "{all}");
        assert_eq!(all.matches("&lt;script").count(), 13);
    }

    #[test]
    fn a_table_is_markdown_too() {
        let mut table = Table::new(["name", "#size"]);
        table.row(vec![text("a|b\nc"), number("1")]);
        assert_eq!(table.markdown(), "| name | size |\n|---|---:|\n| a\\|b c | 1 |\n");
    }

    #[test]
    fn shades_stay_within_bounds() {
        assert!(Cell::Shade(f64::NAN, String::new()).html().into_string().contains("--heat:0%"));
        assert!(Cell::Shade(7.0, String::new()).html().into_string().contains("--heat:100%"));
    }
}
