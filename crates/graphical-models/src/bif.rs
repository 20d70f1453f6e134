//! The Bayesian interchange format (BIF 0.15), as the networks of the bnlearn repository have it.
//!
//! Enter at [`read`].

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::model::sums_to_one;
use crate::{Factor, Failure, Model, Variable, VariableId};

/// All tables together may have so many cells, 1 GiB: a `default` row stands for as many rows as parents have states.
const CELLS: usize = 1 << 27;

/// Reads a Bayesian network.
///
/// # Errors
///
/// [`Failure::Text`] with the line and column where the text is no network: a word out of place, an unknown variable or
/// state, a table that is missing, has too few or too many numbers, or does not sum to one, tables that go in a circle.
pub fn read(text: &str) -> Result<Model, Failure> {
    let mut reader = Reader { words: words(text)?, at: 0 };
    let mut variables: Vec<Variable> = Vec::new();
    let mut known: HashMap<String, VariableId> = HashMap::new();
    let mut names: Vec<Word> = Vec::new();
    let mut tables: Vec<(Word, Vec<VariableId>, Vec<f64>)> = Vec::new();
    let mut cells = 0;
    // Tables that stand before the variables that they name.
    let mut later: Vec<(Word, usize)> = Vec::new();
    while let Some(word) = reader.next() {
        match word.bare() {
            "network" => {
                while reader.peek().is_some_and(|word| word.bare() != "{") {
                    reader.at += 1;
                }
                reader.expect("{")?;
                reader.skip_block()?;
            }
            "variable" => {
                let name = reader.name("the name of a variable")?;
                if known.insert(name.text.to_owned(), VariableId(variables.len())).is_some() {
                    return Err(name.wrong(format!("a second variable `{}`", name.text)));
                }
                let states = reader.states(name)?;
                names.push(name);
                variables.push(Variable { name: name.text.to_owned(), states });
            }
            "probability" if reader.names_later(&known) => {
                later.push((word, reader.at));
                while reader.word("`{`")?.bare() != "{" {}
                reader.skip_block()?;
            }
            "probability" => {
                let (scope, values) = reader.table(&variables, &known, word, CELLS - cells)?;
                cells += values.len();
                tables.push((word, scope, values));
            }
            _ => return Err(word.instead_of("`network`, `variable` or `probability`")),
        }
    }
    for (word, at) in later {
        reader.at = at;
        let (scope, values) = reader.table(&variables, &known, word, CELLS - cells)?;
        cells += values.len();
        tables.push((word, scope, values));
    }
    if names.is_empty() {
        return Err(reader.end().wrong("a network without variables".to_owned()));
    }
    let mut model = Model::new(variables)?;
    let mut begins: HashMap<VariableId, Word> = HashMap::new();
    for (word, scope, values) in tables {
        // The variable itself stands last, and moves fastest.
        let own = scope.last().copied();
        if let Some(own) = own.filter(|own| model.definition(*own).is_some()) {
            return Err(word.wrong(format!("a second table of `{}`", model.variable(own).name)));
        }
        begins.extend(own.map(|own| (own, word)));
        model.define(Factor { scope, values }).map_err(|failure| word.wrong(failure.to_string()))?;
    }
    let missing = (0..names.len()).find(|at| model.definition(VariableId(*at)).is_none());
    if let Some(name) = missing.and_then(|at| names.get(at)) {
        return Err(name.wrong(format!("`{}` has no table of probabilities", name.text)));
    }
    match model.parents_first() {
        Ok(_) => Ok(model),
        Err(circle) => {
            let first = circle.last().and_then(|id| begins.get(id)).copied();
            Err(first.unwrap_or(reader.end()).wrong(model.circle(&circle)))
        }
    }
}

/// A word and where it stands.
#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    /// It stands in quotation marks: a name, whatever its letters.
    quoted: bool,
    /// Its line, the number of that and where the word begins in it, in bytes.
    source: &'t str,
    line: usize,
    start: usize,
}

impl<'t> Word<'t> {
    /// What may be a keyword or a sign; `""` where it is quoted.
    fn bare(self) -> &'t str {
        if self.quoted { "" } else { self.text }
    }

    fn instead_of(self, what: &str) -> Failure {
        self.wrong(format!("`{}` where {what} was expected", self.text))
    }

    fn wrong(self, message: String) -> Failure {
        let column = self.source.get(..self.start).map_or(1, |before| before.chars().count() + 1);
        Failure::Text { line: self.line, column, message }
    }
}

fn is_sign(letter: char) -> bool {
    matches!(letter, '{' | '}' | '(' | ')' | '[' | ']' | '|' | ',' | ';')
}

fn words(text: &str) -> Result<Vec<Word<'_>>, Failure> {
    let mut words = Vec::new();
    let mut comment: Option<Word<'_>> = None;
    for (number, line) in text.lines().enumerate() {
        let mut at = 0;
        while let Some(letter) = line[at..].chars().next() {
            let (rest, word) = (&line[at..], |len: usize| Word {
                text: &line[at..at + len],
                quoted: false,
                source: line,
                line: number + 1,
                start: at,
            });
            if comment.is_some() {
                match rest.find("*/") {
                    Some(end) => {
                        comment = None;
                        at += end + 2;
                    }
                    None => break,
                }
            } else if letter.is_whitespace() || (number == 0 && at == 0 && letter == '\u{feff}') {
                at += letter.len_utf8();
            } else if rest.starts_with("//") {
                break;
            } else if rest.starts_with("/*") {
                comment = Some(word(2));
                at += 2;
            } else if letter == '"' {
                let Some(end) = rest[1..].find('"') else {
                    return Err(word(1).wrong("a quotation that does not end on its line".to_owned()));
                };
                words.push(Word { text: &rest[1..=end], quoted: true, ..word(1) });
                at += end + 2;
            } else if is_sign(letter) {
                words.push(word(1));
                at += 1;
            } else {
                let len = rest
                    .find(|next: char| next.is_whitespace() || next == '"' || is_sign(next))
                    .unwrap_or(rest.len());
                words.push(word(len));
                at += len;
            }
        }
    }
    match comment {
        Some(start) => Err(start.wrong("a comment that does not end".to_owned())),
        None => Ok(words),
    }
}

struct Reader<'t> {
    words: Vec<Word<'t>>,
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<Word<'t>> {
        self.words.get(self.at).copied()
    }

    fn next(&mut self) -> Option<Word<'t>> {
        let word = self.peek();
        self.at += 1;
        word
    }

    /// The last word.
    fn end(&self) -> Word<'t> {
        self.words.last().copied().unwrap_or(Word { text: "", quoted: false, source: "", line: 1, start: 0 })
    }

    fn word(&mut self, what: &str) -> Result<Word<'t>, Failure> {
        let last = self.end();
        self.next().ok_or_else(|| last.wrong(format!("the text ends where {what} was expected")))
    }

    /// A word that is no sign.
    fn name(&mut self, what: &str) -> Result<Word<'t>, Failure> {
        let word = self.word(what)?;
        if word.bare().starts_with(is_sign) { Err(word.instead_of(what)) } else { Ok(word) }
    }

    fn expect(&mut self, sign: &str) -> Result<Word<'t>, Failure> {
        let sign_in_marks = format!("`{sign}`");
        let word = self.word(&sign_in_marks)?;
        if word.bare() == sign { Ok(word) } else { Err(word.instead_of(&sign_in_marks)) }
    }

    fn is(&mut self, sign: &str) -> bool {
        let is = self.peek().is_some_and(|word| word.bare() == sign);
        self.at += usize::from(is);
        is
    }

    /// Skips to behind the end of a block that has begun.
    fn skip_block(&mut self) -> Result<(), Failure> {
        let mut depth = 1;
        while depth > 0 {
            match self.word("`}`")?.bare() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// `property …;`
    fn skip_property(&mut self) -> Result<(), Failure> {
        while self.word("`;`")?.bare() != ";" {}
        Ok(())
    }

    /// `{ type discrete [ 2 ] { yes, no }; }`
    fn states(&mut self, name: Word<'t>) -> Result<Vec<String>, Failure> {
        self.expect("{")?;
        let mut states = None;
        while !self.is("}") {
            let word = self.word("`type`, `property` or `}`")?;
            match word.bare() {
                "property" => self.skip_property()?,
                "type" if states.is_some() => {
                    return Err(word.wrong(format!("a second type of `{}`", name.text)));
                }
                "type" => {
                    let kind = self.word("`discrete`")?;
                    if kind.text != "discrete" {
                        return Err(kind.wrong(format!(
                            "`{}` is of type `{}`, and `discrete` is known only",
                            name.text, kind.text
                        )));
                    }
                    self.expect("[")?;
                    let count = self.word("the number of states")?;
                    self.expect("]")?;
                    self.expect("{")?;
                    let (mut found, mut known): (Vec<String>, HashSet<&str>) = Default::default();
                    while !self.is("}") {
                        let state = self.name("a state")?;
                        if !known.insert(state.text) {
                            return Err(
                                state.wrong(format!("a second state `{}` of `{}`", state.text, name.text))
                            );
                        }
                        found.push(state.text.to_owned());
                        self.is(",");
                    }
                    self.expect(";")?;
                    if found.is_empty() {
                        return Err(count.wrong(format!("`{}` has no states", name.text)));
                    }
                    if count.text.parse() != Ok(found.len()) {
                        let message =
                            format!("`{}` has {} states and says `{}`", name.text, found.len(), count.text);
                        return Err(count.wrong(message));
                    }
                    states = Some(found);
                }
                _ => return Err(word.instead_of("`type`, `property` or `}`")),
            }
        }
        states.ok_or_else(|| name.wrong(format!("`{}` has no type", name.text)))
    }

    fn variable(&mut self, known: &HashMap<String, VariableId>) -> Result<(Word<'t>, VariableId), Failure> {
        let word = self.name("the name of a variable")?;
        let id = known.get(word.text).copied();
        Ok((word, id.ok_or_else(|| word.wrong(format!("there is no variable `{}`", word.text)))?))
    }

    /// Whether what stands between the next brackets has a name that nothing has yet.
    fn names_later(&self, known: &HashMap<String, VariableId>) -> bool {
        let head = self.words.iter().skip(self.at).take_while(|word| !matches!(word.bare(), ")" | "{" | "}"));
        let mut names = head.filter(|word| !word.bare().starts_with(is_sign));
        names.any(|word| !known.contains_key(word.text))
    }

    /// `( A | B, C ) { (yes, no) 0.1, 0.9; … }`: the scope with `A` last, and the numbers.
    fn table(
        &mut self,
        variables: &[Variable],
        known: &HashMap<String, VariableId>,
        start: Word<'t>,
        most: usize,
    ) -> Result<(Vec<VariableId>, Vec<f64>), Failure> {
        self.expect("(")?;
        let (name, own) = self.variable(known)?;
        let mut scope = Vec::new();
        if self.is("|") {
            loop {
                let (word, parent) = self.variable(known)?;
                if parent == own || scope.contains(&parent) {
                    return Err(word.wrong(format!("`{}` stands twice", word.text)));
                }
                scope.push(parent);
                if !self.is(",") {
                    break;
                }
            }
        }
        self.expect(")")?;
        self.expect("{")?;
        let states = |id: &VariableId| variables[id.0].states.len();
        let (rows, width) = (scope.iter().map(states).try_fold(1_usize, usize::checked_mul), states(&own));
        let rows = rows.filter(|rows| rows.checked_mul(width).is_some_and(|cells| cells <= most));
        let rows = rows.ok_or_else(|| {
            start.wrong(format!("with the table of `{}` there are more than {CELLS} cells", name.text))
        })?;
        // Those that the text has: a `default` row stands for any number of others.
        let mut values: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut default: Option<Vec<f64>> = None;
        while !self.is("}") {
            let word = self.word("a row or `}`")?;
            match word.bare() {
                "property" => self.skip_property()?,
                // Writers do not agree which variable of a longer table moves fastest.
                "table" if !scope.is_empty() => {
                    return Err(word.wrong(
                        "a `table` of a variable with parents, which has a row for each of their states"
                            .to_owned(),
                    ));
                }
                "table" if !values.is_empty() => {
                    return Err(word.wrong("a second `table`".to_owned()));
                }
                "default" if default.is_some() => return Err(word.wrong("a second `default`".to_owned())),
                "table" => drop(values.insert(0, self.numbers(width, word, name)?)),
                "default" => default = Some(self.numbers(width, word, name)?),
                "(" => {
                    let mut at = 0;
                    for (nth, parent) in scope.iter().enumerate() {
                        let state = self.name("a state")?;
                        let found = variables[parent.0].states.iter().position(|known| known == state.text);
                        let found = found.ok_or_else(|| {
                            state.wrong(format!(
                                "`{}` has no state `{}`",
                                variables[parent.0].name, state.text
                            ))
                        })?;
                        at = at * states(parent) + found;
                        if nth + 1 < scope.len() {
                            self.expect(",")?;
                        }
                    }
                    self.expect(")")?;
                    let row = self.numbers(width, word, name)?;
                    if values.insert(at, row).is_some() {
                        return Err(word.wrong("a second row for these states".to_owned()));
                    }
                }
                _ => return Err(word.instead_of("a row of the table")),
            }
        }
        let missing = || start.wrong(format!("the table of `{}` misses a row", name.text));
        if default.is_none() && values.len() < rows {
            return Err(missing());
        }
        let mut all = Vec::with_capacity(rows * width);
        for row in 0..rows {
            all.extend(values.get(&row).or(default.as_ref()).ok_or_else(missing)?);
        }
        scope.push(own);
        Ok((scope, all))
    }

    /// So many probabilities, and `;`.
    fn numbers(&mut self, count: usize, row: Word<'t>, of: Word<'t>) -> Result<Vec<f64>, Failure> {
        let mut numbers = Vec::new();
        while !self.is(";") {
            let word = self.word("a probability or `;`")?;
            let number: f64 = word.text.parse().unwrap_or(f64::NAN);
            if !(0.0..=1.0).contains(&number) {
                return Err(word.wrong(format!("`{}` is no probability", word.text)));
            }
            numbers.push(number);
            self.is(",");
        }
        if numbers.len() != count {
            return Err(row.wrong(format!("{} numbers, and {count} are asked for", numbers.len())));
        }
        match sums_to_one(&numbers) {
            Ok(()) => Ok(numbers),
            Err(sum) => Err(row.wrong(format!("a row of the table of `{}` sums to {sum}", of.text))),
        }
    }
}
