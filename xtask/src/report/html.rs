//! The pieces of a page: escaping, tables, warnings, and the one style sheet.

/// Text as HTML, in elements and in attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// One cell of a table.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// Words, to be escaped.
    Text(String),
    /// A number, right-aligned.
    Number(String),
    /// A share from 0 to 1 behind its number, as a shade.
    Shade(f64, String),
    /// Ready HTML.
    Html(String),
}

/// Words.
pub(crate) fn text(words: impl Into<String>) -> Cell {
    Cell::Text(words.into())
}

/// A number that is already written.
pub(crate) fn number(digits: impl Into<String>) -> Cell {
    Cell::Number(digits.into())
}

/// A table: the first row names the columns; a row may have a class.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<(&'static str, Vec<Cell>)>,
}

impl Table {
    /// A table with these columns. A name that begins with `#` is that of a column of numbers.
    pub(crate) fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(("", cells));
    }

    /// Adds a row with a class of the style sheet.
    pub(crate) fn marked(&mut self, class: &'static str, cells: Vec<Cell>) {
        self.rows.push((class, cells));
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The HTML.
    pub(crate) fn html(&self) -> String {
        let mut page = String::from("<div class=\"scroll\"><table>\n<thead><tr>");
        for name in &self.head {
            match name.strip_prefix('#') {
                Some(name) => page.push_str(&format!("<th class=\"n\">{}</th>", escape(name))),
                None => page.push_str(&format!("<th>{}</th>", escape(name))),
            }
        }
        page.push_str("</tr></thead>\n<tbody>\n");
        for (class, cells) in &self.rows {
            if class.is_empty() {
                page.push_str("<tr>");
            } else {
                page.push_str(&format!("<tr class=\"{class}\">"));
            }
            cells.iter().for_each(|cell| page.push_str(&cell.html()));
            page.push_str("</tr>\n");
        }
        page.push_str("</tbody></table></div>\n");
        page
    }
}

impl Cell {
    fn html(&self) -> String {
        match self {
            Self::Text(words) => format!("<td>{}</td>", escape(words)),
            Self::Number(digits) => format!("<td class=\"n\">{}</td>", escape(digits)),
            Self::Shade(share, digits) => {
                let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
                let shade = (share * 100.0).round();
                let class = if shade >= 60.0 { "n heat strong" } else { "n heat" };
                format!("<td class=\"{class}\" style=\"--heat:{shade}%\">{}</td>", escape(digits))
            }
            Self::Html(ready) => format!("<td>{ready}</td>"),
        }
    }
}

/// A line that says what is not here, and why.
pub(crate) fn left_out(what: &str) -> String {
    format!("<p class=\"left-out\">{}</p>\n", escape(what))
}

/// A line that stands out.
pub(crate) fn warning(what: &str) -> String {
    format!("<p class=\"warning\"><span aria-hidden=\"true\">⚠</span> {}</p>\n", escape(what))
}

/// A paragraph of explanation.
pub(crate) fn note(words: &str) -> String {
    format!("<p class=\"note\">{}</p>\n", escape(words))
}

/// A titled part of the page.
pub(crate) fn section(title: &str, body: &str) -> String {
    format!("<section>\n<h2>{}</h2>\n{body}</section>\n", escape(title))
}

/// Pictures side by side where there is room.
pub(crate) fn figures(figures: &[String]) -> String {
    format!("<div class=\"figures\">\n{}</div>\n", figures.concat())
}

/// The whole page.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{COLOURS}{STYLE}{PLOTS}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape(title)
    )
}

/// The colours, light and dark; those of the series keep their order in every picture.
pub(crate) const COLOURS: &str = include_str!("colours.css");
/// The page.
const STYLE: &str = include_str!("page.css");
/// The pictures.
pub(crate) const PLOTS: &str = include_str!("plots.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_through_unescaped() {
        assert_eq!(escape("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
        let evil = "<script>alert(1)</script>";
        let mut table = Table::new([evil, &format!("#{evil}")]);
        table.row(vec![text(evil), number(evil), Cell::Shade(0.5, evil.to_owned())]);
        let all =
            page(evil, &(section(evil, &table.html()) + &note(evil) + &warning(evil) + &left_out(evil)));
        assert!(!all.contains("<script"), "{all}");
        assert_eq!(all.matches("&lt;script").count(), 10);
    }

    #[test]
    fn shades_stay_within_bounds() {
        assert!(Cell::Shade(f64::NAN, String::new()).html().contains("--heat:0%"));
        assert!(Cell::Shade(7.0, String::new()).html().contains("--heat:100%"));
    }
}
