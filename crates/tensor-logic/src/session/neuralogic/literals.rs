//! The text: statements of ground literals, with the places where they stand.
//!
//! A statement ends with a full stop, or with its line where no comma and no sign goes before the end and none begins the
//! next line. `%`, `//` and `/* … */` are comments.

use super::{Constant, Failure, Literal, Value};
use crate::ast::Span;
use crate::session::sheet::Sheet;

/// A literal and its place.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub literal: Literal,
    pub span: Span,
}

/// `literals.` or `label :- literals.`
#[derive(Debug)]
pub(super) struct Statement {
    /// What stands before the sign, if there is one.
    pub label: Option<Vec<Placed>>,
    pub literals: Vec<Placed>,
}

/// All statements of a file.
pub(super) fn statements(sheet: &Sheet) -> Result<Vec<Statement>, Failure> {
    let mut reader = Reader { sheet, text: sheet.text(), at: 0 };
    if reader.text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    let mut statements = Vec::new();
    reader.skip()?;
    while reader.peek().is_some() {
        statements.push(reader.statement()?);
        reader.skip()?;
    }
    Ok(statements)
}

struct Reader<'a> {
    sheet: &'a Sheet,
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes a sign if it is the next one.
    fn takes(&mut self, sign: &str) -> bool {
        let is_next = self.rest().starts_with(sign);
        self.at += if is_next { sign.len() } else { 0 };
        is_next
    }

    /// Goes on to what is no blank and no comment, and says whether a line ended on the way.
    fn skip(&mut self) -> Result<bool, Failure> {
        let start = self.at;
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with('%') || trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                let Some(end) = trimmed.find("*/") else {
                    let span = Span { start: self.at, end: self.at + 2 };
                    return Err(self.sheet.wrong(span, "this comment does not end".to_owned()));
                };
                self.at += end + 2;
            } else {
                return Ok(self.text.get(start..self.at).is_some_and(|passed| passed.contains('\n')));
            }
        }
    }

    fn statement(&mut self) -> Result<Statement, Failure> {
        let literals = self.conjunction()?;
        let before = self.at;
        self.skip()?;
        if self.takes(":-") || self.takes("<=") {
            self.skip()?;
            let facts = self.conjunction()?;
            self.end()?;
            return Ok(Statement { label: Some(literals), literals: facts });
        }
        self.at = before;
        self.end()?;
        Ok(Statement { label: None, literals })
    }

    /// A full stop or the end of the line.
    fn end(&mut self) -> Result<(), Failure> {
        let ends_line = self.skip()?;
        if self.takes(".") || ends_line || self.peek().is_none() {
            return Ok(());
        }
        Err(self.expected("`,`, `.` or the end of the line"))
    }

    fn conjunction(&mut self) -> Result<Vec<Placed>, Failure> {
        let mut literals = vec![self.literal()?];
        loop {
            let before = self.at;
            self.skip()?;
            if !self.takes(",") {
                self.at = before;
                return Ok(literals);
            }
            self.skip()?;
            literals.push(self.literal()?);
        }
    }

    /// A value or none, a predicate, constants in parentheses or none.
    fn literal(&mut self) -> Result<Placed, Failure> {
        let start = self.at;
        let value = self.value()?;
        let predicate = self.name("a literal")?;
        self.skip_blanks();
        let mut arguments = Vec::new();
        if self.takes("(") {
            self.skip()?;
            while !self.takes(")") {
                if !arguments.is_empty() {
                    if !self.takes(",") {
                        return Err(self.expected("`,` or `)`"));
                    }
                    self.skip()?;
                }
                arguments.push(self.constant()?);
                self.skip()?;
            }
        }
        let span = Span { start, end: self.at };
        Ok(Placed { literal: Literal { predicate, arguments, value }, span })
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    /// `0.5`, `<0.5>`, `[1, 0]`, `[[1, 0], [0, 1]]`.
    fn value(&mut self) -> Result<Option<Value>, Failure> {
        let fixed = !self.rest().starts_with("<=") && self.takes("<");
        self.skip_blanks();
        let value = match self.peek() {
            Some('[') => self.array()?,
            Some(letter) if fixed || letter.is_ascii_digit() || matches!(letter, '+' | '-') => {
                Value { shape: Vec::new(), numbers: vec![self.number()?] }
            }
            Some('{' | '$') => {
                let message = "a weight that is learned stands in a template, and not in examples or queries";
                return Err(self.wrong(message.to_owned()));
            }
            _ => return Ok(None),
        };
        self.skip_blanks();
        if fixed && !self.takes(">") {
            return Err(self.expected("`>`"));
        }
        self.skip()?;
        Ok(Some(value))
    }

    fn array(&mut self) -> Result<Value, Failure> {
        let start = self.at;
        self.takes("[");
        self.skip()?;
        if self.peek() != Some('[') {
            let numbers = self.numbers()?;
            return Ok(Value { shape: vec![numbers.len()], numbers });
        }
        let (mut rows, mut width, mut numbers) = (0, 0, Vec::new());
        while !self.takes("]") {
            if rows > 0 && self.takes(",") {
                self.skip()?;
            }
            if !self.takes("[") {
                return Err(self.expected("`[` or `]`"));
            }
            self.skip()?;
            let row = self.numbers()?;
            if rows > 0 && row.len() != width {
                let span = Span { start, end: self.at };
                let message = format!("a row of {} numbers after one of {width}", row.len());
                return Err(self.sheet.wrong(span, message));
            }
            (rows, width) = (rows + 1, row.len());
            numbers.extend(row);
            self.skip()?;
        }
        Ok(Value { shape: vec![rows, width], numbers })
    }

    /// At least one number, with commas between them, up to the bracket.
    fn numbers(&mut self) -> Result<Vec<f64>, Failure> {
        let mut numbers = vec![self.number()?];
        self.skip()?;
        while !self.takes("]") {
            if !self.takes(",") {
                return Err(self.expected("`,` or `]`"));
            }
            self.skip()?;
            numbers.push(self.number()?);
            self.skip()?;
        }
        Ok(numbers)
    }

    /// A finite number.
    fn number(&mut self) -> Result<f64, Failure> {
        let text = self.numeral();
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        match number {
            // Positive and negative zero are one value.
            Some(number) => {
                self.at += text.len();
                Ok(number + 0.0)
            }
            None => Err(self.expected("a finite number")),
        }
    }

    /// The longest beginning that may be a number: `-12`, `0.5`, `1e-3`; `1.` is 1 and a full stop.
    fn numeral(&self) -> &'a str {
        let rest = self.rest();
        let digits = |at: usize| rest.get(at..).unwrap_or("").bytes().take_while(u8::is_ascii_digit).count();
        let byte = |at: usize| rest.as_bytes().get(at).copied().unwrap_or(0);
        let mut end = usize::from(matches!(byte(0), b'+' | b'-'));
        end += digits(end);
        if byte(end) == b'.' && digits(end + 1) > 0 {
            end += 1 + digits(end + 1);
        }
        if matches!(byte(end), b'e' | b'E') {
            let sign = usize::from(matches!(byte(end + 1), b'+' | b'-'));
            let width = digits(end + 1 + sign);
            end += if width > 0 { 1 + sign + width } else { 0 };
        }
        rest.get(..end).unwrap_or("")
    }

    /// A predicate: a name or a quotation.
    fn name(&mut self, what: &str) -> Result<String, Failure> {
        match self.peek() {
            Some('"' | '\'') => self.quoted(),
            Some(letter) if letter.is_alphabetic() => Ok(self.word().to_owned()),
            Some('~' | '!') => {
                Err(self.wrong("a negation is not read: what is not said is absent".to_owned()))
            }
            _ => Err(self.expected(what)),
        }
    }

    fn constant(&mut self) -> Result<Constant, Failure> {
        let text = match self.peek() {
            Some('"' | '\'') => self.quoted()?,
            Some(letter) if letter.is_uppercase() || letter == '_' => {
                let start = self.at;
                let word = calculemus_base::word::shortened(self.word());
                let message = format!("`{word}` is a variable, and a constant is expected: `\"{word}\"`");
                return Err(self.sheet.wrong(Span { start, end: self.at }, message));
            }
            Some(letter) if letter.is_alphabetic() => self.word().to_owned(),
            _ => {
                let numeral = self.numeral();
                if !numeral.ends_with(|last: char| last.is_ascii_digit()) {
                    return Err(self.expected("a constant"));
                }
                self.at += numeral.len();
                numeral.to_owned()
            }
        };
        // As cells of tables are read.
        Ok(match text.trim().parse() {
            Ok(number) => Constant::Int(number),
            Err(_) => Constant::Word(text),
        })
    }

    /// Letters, digits, `_` and `-`.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let width = rest
            .find(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '-')))
            .unwrap_or(rest.len());
        self.at += width;
        rest.get(..width).unwrap_or("")
    }

    /// Between `"` or `'`, on one line; a `\` takes the next letter as it is.
    fn quoted(&mut self) -> Result<String, Failure> {
        let start = self.at;
        let mut letters = self.rest().char_indices();
        let mark = letters.next().map(|(_, mark)| mark);
        let mut text = String::new();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\n' => break,
                '\\' => text.extend(letters.next().map(|(_, letter)| letter)),
                _ if Some(letter) == mark => {
                    self.at += at + letter.len_utf8();
                    return Ok(text);
                }
                _ => text.push(letter),
            }
        }
        let end = start + mark.map_or(0, char::len_utf8);
        Err(self.sheet.wrong(Span { start, end }, "this quotation does not end on its line".to_owned()))
    }

    /// A refusal that names what stands here.
    fn expected(&self, what: &str) -> Failure {
        let found = match self.peek() {
            None => "the end of the file".to_owned(),
            Some('\n' | '\r') => "the end of the line".to_owned(),
            Some(letter) if letter.is_alphanumeric() => {
                let end = self.rest().find(|letter: char| !letter.is_alphanumeric());
                let word = self.rest().get(..end.unwrap_or(self.rest().len())).unwrap_or("");
                format!("`{}`", calculemus_base::word::shortened(word))
            }
            Some(letter) => format!("`{}`", letter.escape_debug()),
        };
        self.wrong(format!("{what} is expected here, and not {found}"))
    }

    fn wrong(&self, message: String) -> Failure {
        let end = self.at + self.peek().map_or(0, char::len_utf8);
        self.sheet.wrong(Span { start: self.at, end }, message)
    }
}
