//! Relations as tables of bindings, and blocks that follow one table carried over to another.
//!
//! [`Machine::table`] turns a read such as `R(x, y+1, A)` into the bindings of x and y for which
//! the tuple exists. [`Machine::align`] carries values that stand beside such a table to the
//! dimensions of a context: to its rows by look-up, or scattered over dense axes.

use std::sync::Arc;

use datarel::NONE;

use crate::error::Result;
use crate::kernels::{Step, View, volume};
use crate::linear::{linear, solve};
use crate::program::{Argument, Combine, IndexFn, IndexId, Otherwise, Read, Style};
use crate::store::block::{Block, Dim};
use crate::store::machine::{Context, Counts, Machine, Stored, indices_of};
use crate::store::plan::{Key, Source, Thing};
use crate::store::relation::{Codes, Piece, Relation};
use crate::store::rows::{Column, Rows, Tag};
use crate::value::{Const, Domain};

/// A table, and which row of another became which of it (`None`: the same rows).
pub(crate) type Projected = (Arc<Rows>, Option<Arc<Vec<u32>>>);

/// A table in the making.
struct Draft {
    /// Which tuples the rows are.
    tuples: Vec<u32>,
    indices: Vec<IndexId>,
    columns: Vec<Column>,
}

impl Draft {
    fn column(&self, index: IndexId) -> Option<&Column> {
        self.indices.iter().position(|i| *i == index).map(|at| &self.columns[at])
    }

    /// Keeps the rows that pass.
    fn filter(&mut self, pass: impl Fn(usize) -> bool) {
        let kept: Vec<usize> = (0..self.tuples.len()).filter(|row| pass(*row)).collect();
        if kept.len() == self.tuples.len() {
            return;
        }
        self.tuples = kept.iter().map(|row| self.tuples[*row]).collect();
        for column in &mut self.columns {
            *column = Arc::new(kept.iter().map(|row| column[*row]).collect());
        }
    }

    /// Adds an index; rows without a value go.
    fn bind(&mut self, index: IndexId, values: Column) {
        self.indices.push(index);
        self.columns.push(Arc::clone(&values));
        if values.contains(&NONE) {
            self.filter(|row| values[row] != NONE);
        }
    }
}

impl Machine {
    /// Which of the elements that a read finds count as present.
    pub(crate) fn counts(&self, read: &Read, positive: bool) -> Counts {
        let square = self.program.tensor(read.tensor).style == Style::Square;
        match (positive, square, read.otherwise) {
            (true, ..) => Counts::Positive,
            (false, true, Otherwise::Absent) => Counts::NotZero,
            _ => Counts::All,
        }
    }

    /// The tuples of a tensor: of a square one, the elements that count as present.
    pub(crate) fn as_relation(&mut self, read: &Read, counts: Counts) -> Arc<Relation> {
        let keep = |value: f64| match counts {
            Counts::All => true,
            Counts::Positive => value > 0.0,
            Counts::NotZero => value != 0.0,
        };
        let data = match self.stored(read.tensor) {
            Some(Stored::Relation(relation)) => {
                // Without values all are 1.
                if counts == Counts::All || relation.values.is_none() {
                    return Arc::clone(relation);
                }
                self.looks.set(self.looks.get() + 1);
                return if (0..relation.len).all(|at| keep(relation.value(at))) {
                    Arc::clone(relation)
                } else {
                    Arc::new(relation.only(|at| keep(relation.value(at))))
                };
            }
            Some(Stored::Dense(data)) => self.numbers(data).doubles(),
            None => return Arc::new(Relation::default()),
        };
        let here = |value: f64| if counts == Counts::Positive { value > 0.0 } else { value != 0.0 };
        let program = Arc::clone(&self.program);
        let places = &program.tensor(read.tensor).places;
        let picks: Vec<u32> = (0..data.len() as u32).filter(|at| here(data[*at as usize])).collect();
        let mut piece = Piece { len: picks.len(), places: Vec::new(), values: None, counts: None };
        let mut block = data.len();
        for place in places {
            let dictionary: Vec<Const> = place.domain.iter().flat_map(Domain::values).collect();
            block /= dictionary.len().max(1);
            let size = dictionary.len().max(1);
            let codes = picks.iter().map(|at| ((*at as usize / block.max(1)) % size) as u32).collect();
            piece.places.push(Codes { dictionary, codes });
        }
        piece.values = Some(picks.iter().map(|at| data[*at as usize]).collect());
        Arc::new(Relation::merge(places.len(), &[piece], Combine::Sum, &program.symbols))
    }

    /// The bindings of a read's indices for which an element counts, tagged with the tuple.
    pub(crate) fn table(&mut self, read: &Read, counts: Counts, context: &Context) -> Result<Arc<Rows>> {
        let node = read.node.number();
        let functions: Vec<Option<&IndexFn>> = read.arguments.iter().map(Argument::function).collect();
        let mut indices: Vec<IndexId> =
            functions.iter().flatten().flat_map(|function| indices_of(function)).collect();
        indices.sort_unstable();
        indices.dedup();
        let fixed: Vec<(IndexId, u32)> =
            context.fixed.iter().copied().filter(|(index, _)| indices.contains(index)).collect();
        let key = Key { place: (node, counts as u8), rows: 0, fixed };
        if let Some(Thing::Table(rows)) = self.recall(&key) {
            return Ok(Arc::clone(rows));
        }
        let relation = self.as_relation(read, counts);
        let source = if counts == Counts::All { Source::Tuples } else { Source::Tensor };
        let sources = indices.iter().copied().map(Source::Range).chain([source(read.tensor)]);
        let stamps = self.stamps(sources);
        // Other values that count have the same table.
        let again = Key { place: (node, counts as u8 + 16), ..key.clone() };
        if let Some(Thing::Listed(rows, tuples)) = self.recall(&again)
            && *tuples == relation.tuples
        {
            let rows = Arc::clone(rows);
            self.memory.keep(key, stamps, Thing::Table(Arc::clone(&rows)));
            return Ok(rows);
        }
        let draft = self.draft(&relation, &functions, context)?;
        let any = functions.iter().any(Option::is_none);
        let id = self.number();
        let mut rows = Rows {
            id,
            len: draft.tuples.len(),
            tags: vec![Tag {
                read: node,
                indices: Arc::from(draft.indices.as_slice()),
                met: Arc::new(draft.tuples),
            }],
            indices: draft.indices,
            columns: draft.columns,
        };
        if counts != Counts::All {
            rows.tags.clear(); // they would number those that count only
        }
        if any {
            rows.tags.clear();
            rows = rows.select(&rows.by(&rows.indices).firsts(), id);
        }
        let rows = Arc::new(rows);
        if counts != Counts::All {
            let ranges = self.stamps(indices.iter().copied().map(Source::Range));
            self.memory.keep(again, ranges, Thing::Listed(Arc::clone(&rows), relation.tuples));
        }
        self.memory.keep(key, stamps, Thing::Table(Arc::clone(&rows)));
        Ok(rows)
    }

    /// The context's table with the indices that matter only, and which row became which.
    pub(crate) fn projected(&mut self, context: &Context, relevant: &[IndexId]) -> Result<Option<Projected>> {
        let Some(rows) = &context.rows else { return Ok(None) };
        let kept: Vec<IndexId> =
            rows.indices.iter().copied().filter(|index| relevant.contains(index)).collect();
        if kept.is_empty() {
            return Ok(None);
        }
        if kept.len() == rows.indices.len() {
            return Ok(Some((Arc::clone(rows), None)));
        }
        let (grouped, groups) = self.grouped(rows, &kept);
        if grouped.len == rows.len {
            return Ok(Some((self.narrowed(rows, &kept), None)));
        }
        Ok(Some((grouped, Some(groups))))
    }

    /// A table without some of its indices, its rows as they stand. It has a number of its own: with fewer indices it is
    /// another table.
    fn narrowed(&mut self, rows: &Arc<Rows>, kept: &[IndexId]) -> Arc<Rows> {
        let fixed = kept.iter().map(|index| (*index, 0)).collect();
        let key = Key { place: (rows.id, 20), rows: rows.id, fixed };
        if rows.id != 0
            && let Some(Thing::Table(narrowed)) = self.recall(&key)
        {
            return Arc::clone(narrowed);
        }
        let pairs = rows.indices.iter().zip(&rows.columns).filter(|(index, _)| kept.contains(index));
        let (indices, columns) = pairs.map(|(index, column)| (*index, Arc::clone(column))).unzip();
        let mut tags = rows.tags.clone();
        tags.retain(|tag| tag.indices.iter().all(|index| kept.contains(index)));
        let narrowed = Arc::new(Rows { id: self.number(), len: rows.len, indices, columns, tags });
        self.memory.keep(key, Vec::new(), Thing::Table(Arc::clone(&narrowed)));
        narrowed
    }

    /// The distinct rows of a table by some of its indices, and which row became which.
    pub(crate) fn grouped(&mut self, rows: &Arc<Rows>, kept: &[IndexId]) -> (Arc<Rows>, Arc<Vec<u32>>) {
        let key =
            Key { place: (rows.id, 4), rows: rows.id, fixed: kept.iter().map(|index| (*index, 0)).collect() };
        if rows.id != 0
            && let Some(Thing::Grouped(grouped, groups)) = self.recall(&key)
        {
            return (Arc::clone(grouped), Arc::clone(groups));
        }
        let index = rows.by(kept);
        let columns = kept.iter().filter_map(|index| rows.column(*index)).cloned().collect();
        let all = Rows { id: 0, len: rows.len, indices: kept.to_vec(), columns, tags: Vec::new() };
        let grouped = Arc::new(all.select(&index.firsts(), self.number()));
        let groups = Arc::new(index.into_groups());
        self.memory.keep(key, Vec::new(), Thing::Grouped(Arc::clone(&grouped), Arc::clone(&groups)));
        (grouped, groups)
    }

    fn draft(&self, relation: &Relation, functions: &[Option<&IndexFn>], context: &Context) -> Result<Draft> {
        let mut draft =
            Draft { tuples: (0..relation.len as u32).collect(), indices: Vec::new(), columns: Vec::new() };
        let mut waiting: Vec<(usize, &IndexFn)> = Vec::new();
        for (place, function) in functions.iter().enumerate() {
            let Some(function) = function else { continue };
            if indices_of(function).iter().all(|index| context.fixed(*index).is_some()) {
                let value = self.function(function, &|index| context.fixed(index));
                let code = value.and_then(|value| self.code(relation, place, value));
                let column = &relation.columns[place];
                match code {
                    Some(code) if place == 0 && draft.tuples.len() == relation.len => {
                        let (from, to) =
                            (column.partition_point(|c| *c < code), column.partition_point(|c| *c <= code));
                        draft.tuples = (from as u32..to as u32).collect();
                    }
                    Some(code) => draft.tuples.retain(|tuple| column[*tuple as usize] == code),
                    None => draft.tuples.clear(),
                }
            } else {
                waiting.push((place, function));
            }
        }
        // Indices that stand alone first: they bind without looking at any other.
        waiting.sort_by_key(|(_, function)| function.alone().is_none());
        for (place, function) in waiting {
            match function.alone() {
                Some(index) => self.draft_alone(&mut draft, relation, place, index),
                None => self.draft_function(&mut draft, relation, place, function, context)?,
            }
        }
        Ok(draft)
    }

    /// The code of a constant in a place of a relation.
    fn code(&self, relation: &Relation, place: usize, value: Const) -> Option<u32> {
        let symbols = &self.program.symbols;
        let found = relation.dictionaries[place].binary_search_by(|other| symbols.compare(*other, value));
        found.ok().map(|at| at as u32)
    }

    fn draft_alone(&self, draft: &mut Draft, relation: &Relation, place: usize, index: IndexId) {
        let range = self.range(index);
        let ordinal = |value: &Const| {
            range
                .and_then(|range| range.ordinal(*value))
                .and_then(|at| u32::try_from(at).ok())
                .unwrap_or(NONE)
        };
        let (dictionary, column) = (&relation.dictionaries[place], &relation.columns[place]);
        let values = if draft.tuples.len() < dictionary.len() {
            // Of one level, or step, as many as it has.
            let value = |tuple: &u32| ordinal(&dictionary[column[*tuple as usize] as usize]);
            Arc::new(draft.tuples.iter().map(value).collect())
        } else {
            let translated: Vec<u32> = dictionary.iter().map(ordinal).collect();
            // Rows that are all tuples, whose constants are all that the index may be, have the column as it stands.
            let same = draft.tuples.len() == relation.len && translated.iter().zip(0..).all(|(a, b)| *a == b);
            let value = |tuple: &u32| translated[column[*tuple as usize] as usize];
            if same { Arc::clone(column) } else { Arc::new(draft.tuples.iter().map(value).collect()) }
        };
        match draft.column(index).cloned() {
            Some(bound) => draft.filter(|row| bound[row] == values[row]),
            None => draft.bind(index, values),
        }
    }

    fn draft_function(
        &self,
        draft: &mut Draft,
        relation: &Relation,
        place: usize,
        function: &IndexFn,
        context: &Context,
    ) -> Result<()> {
        let column = &relation.columns[place];
        let dictionary = &relation.dictionaries[place];
        loop {
            let open: Vec<IndexId> = indices_of(function)
                .into_iter()
                .filter(|index| context.fixed(*index).is_none() && draft.column(*index).is_none())
                .collect();
            let ordinal = |draft: &Draft, row: usize, index: IndexId| {
                context.fixed(index).or_else(|| draft.column(index).map(|column| column[row]))
            };
            let Some(next) = open.first().copied() else {
                let wanted: Vec<Option<Const>> = (0..draft.tuples.len())
                    .map(|row| self.function(function, &|index| ordinal(draft, row, index)))
                    .collect();
                let tuples = draft.tuples.clone();
                draft.filter(|row| wanted[row] == Some(dictionary[column[tuples[row] as usize] as usize]));
                return Ok(());
            };
            if let (1, Some((terms, constant))) = (open.len(), linear(function))
                && terms.iter().any(|(index, coefficient)| *index == next && *coefficient != 0)
            {
                let solve = |row: usize| {
                    self.solve(
                        &terms,
                        constant,
                        next,
                        dictionary[column[draft.tuples[row] as usize] as usize],
                        &|index| ordinal(draft, row, index),
                    )
                };
                let values = (0..draft.tuples.len()).map(|row| solve(row).unwrap_or(NONE)).collect();
                draft.bind(next, Arc::new(values));
                return Ok(());
            }
            let size = self.size(next);
            let total = draft.tuples.len().saturating_mul(size);
            self.reserve_rows(total, draft.columns.len() + 1)?;
            draft.tuples = repeated(&draft.tuples, size);
            draft.columns = draft.columns.iter().map(|column| Arc::new(repeated(column, size))).collect();
            draft.indices.push(next);
            draft.columns.push(Arc::new((0..total).map(|row| (row % size.max(1)) as u32).collect()));
        }
    }

    /// The ordinal of `index` for which a linear function has the value.
    fn solve(
        &self,
        terms: &[(IndexId, i64)],
        constant: i64,
        index: IndexId,
        value: Const,
        ordinal: &dyn Fn(IndexId) -> Option<u32>,
    ) -> Option<u32> {
        let rest = i128::from(constant) - i128::from(value.int()?);
        let found = solve(terms, rest, index, &|other| self.value(other, ordinal(other)?)?.int())?;
        u32::try_from(self.range(index)?.ordinal(Const::Int(found))?).ok()
    }

    /// The values of a relation where its tuples exist.
    pub(crate) fn relation_values(
        &mut self,
        read: &Read,
        relation: &Relation,
        context: &Context,
    ) -> Result<Block> {
        let values = |machine: &Machine, tags: &Arc<Vec<u32>>| {
            let (dims, shape) = (vec![Dim::ROWS], vec![tags.len()]);
            let Some(values) = &relation.values else { return Block::same(1.0, dims, shape) };
            let array = values.array(|doubles| machine.given_array(doubles));
            let values = View { array, offset: 0, steps: vec![Step::Map(Arc::clone(tags), 1)] };
            Block { dims, shape, values, mask: None }
        };
        let node = read.node.number();
        if let Some(tags) = context.rows.as_ref().and_then(|rows| rows.tag(node)) {
            return Ok(values(self, tags));
        }
        let table = self.table(read, Counts::All, context)?;
        let none = Arc::default();
        let block = values(self, table.tags.first().map_or(&none, |tag| &tag.met));
        self.align(&table, block, context)
    }

    /// Carries a block beside a table (whose rows are distinct) to the dimensions of a context;
    /// absent where the table has no row.
    pub(crate) fn align(&mut self, table: &Arc<Rows>, block: Block, context: &Context) -> Result<Block> {
        let Some(at) = block.position(Dim::ROWS) else {
            // The same for all rows, but only where there is one.
            if table.indices.is_empty() && table.len > 0 {
                return Ok(block);
            }
            let mut dims = vec![Dim::ROWS];
            dims.extend(&block.dims);
            let mut shape = vec![table.len];
            shape.extend(&block.shape);
            self.reserve(volume(&shape))?;
            let block = block.expanded(&dims, &shape);
            return self.align(table, block, context);
        };
        if at > 0 {
            let mut dims = block.dims.clone();
            dims[..=at].rotate_right(1);
            return self.align(table, block.permuted(&dims), context);
        }
        if table.indices.is_empty() {
            if table.len == 0 {
                let shape = block.shape[1..].to_vec();
                return Ok(Block::same(0.0, block.dims[1..].to_vec(), shape).vanished());
            }
            return Ok(block.slice(Dim::ROWS, 0));
        }
        let in_rows: Vec<IndexId> = table.indices.iter().copied().filter(|i| context.in_rows(*i)).collect();
        let axes: Vec<IndexId> = table.indices.iter().copied().filter(|i| !context.in_rows(*i)).collect();
        let sizes: Vec<usize> = axes.iter().map(|index| self.size(*index)).collect();
        let inner = volume(&block.shape[1..]);
        let position = |row: usize| {
            axes.iter().zip(&sizes).fold(0, |at, (index, size)| {
                at * size + table.column(*index).map_or(0, |column| column[row] as usize)
            })
        };
        let mut dims: Vec<Dim> = axes.iter().map(|index| Dim::of(*index)).collect();
        let mut shape = sizes.clone();
        let Some(rows) = context.rows.as_ref().filter(|_| !in_rows.is_empty()) else {
            self.reserve(volume(&shape).saturating_mul(inner).saturating_mul(2))?;
            let fixed = axes.iter().map(|index| (*index, 0)).collect();
            let key = Key { place: (table.id, 11), rows: table.id, fixed };
            let positions = match self.recall(&key) {
                Some(Thing::Positions(positions)) if table.id != 0 => Arc::clone(positions),
                _ => {
                    let mut positions = vec![NONE; volume(&shape)];
                    (0..table.len).for_each(|row| positions[position(row)] = row as u32);
                    let positions = Arc::new(positions);
                    let stamps = self.stamps(axes.iter().map(|index| Source::Range(*index)));
                    if table.id != 0 {
                        self.memory.keep(key, stamps, Thing::Positions(Arc::clone(&positions)));
                    }
                    positions
                }
            };
            return Ok(block.placed(&dims, &shape, &positions));
        };
        if axes.is_empty() {
            if rows.id == table.id || rows.same_columns(table, &in_rows) {
                return Ok(block);
            }
            let found = self.find_rows(table, rows, &in_rows);
            if !found.contains(&NONE) {
                return Ok(block.gathered(Dim::ROWS, &found, Dim::ROWS));
            }
            return Ok(block.placed(&[Dim::ROWS], &[rows.len], &found));
        }
        dims.insert(0, Dim::ROWS);
        shape.insert(0, rows.len);
        self.reserve(volume(&shape).saturating_mul(inner).saturating_mul(2))?;
        let fixed = axes.iter().map(|index| (*index, 0)).collect();
        let key = Key { place: (table.id, 13), rows: rows.id, fixed };
        let lasts = table.id != 0 && rows.id != 0;
        if let Some(Thing::Positions(positions)) = self.recall(&key).filter(|_| lasts) {
            let positions = Arc::clone(positions);
            return Ok(block.placed(&dims, &shape, &positions));
        }
        let index = self.indexed.index(table, &in_rows);
        let dense = volume(&sizes);
        let mut positions = vec![NONE; volume(&shape)];
        for (to, group) in rows.find_in(&index, &in_rows).into_iter().enumerate() {
            for row in index.rows(group) {
                positions[to * dense + position(*row as usize)] = *row;
            }
        }
        let positions = Arc::new(positions);
        if lasts {
            let stamps = self.stamps(axes.iter().map(|index| Source::Range(*index)));
            self.memory.keep(key, stamps, Thing::Positions(Arc::clone(&positions)));
        }
        Ok(block.placed(&dims, &shape, &positions))
    }

    /// For each row of a context's table the row of another that agrees with it.
    fn find_rows(&mut self, table: &Arc<Rows>, rows: &Arc<Rows>, indices: &[IndexId]) -> Arc<Vec<u32>> {
        let key = Key { place: (table.id, 3), rows: rows.id, fixed: Vec::new() };
        if let Some(Thing::Grouped(_, column)) = self.recall(&key) {
            return Arc::clone(column);
        }
        let index = self.indexed.index(table, indices);
        let groups = rows.find_in(&index, indices).into_iter();
        let first = |group: u32| index.rows(group).first().copied().unwrap_or(NONE);
        let found = Arc::new(groups.map(first).collect::<Vec<u32>>());
        let thing = Thing::Grouped(Arc::new(Rows::unit()), Arc::clone(&found));
        self.memory.keep(key, Vec::new(), thing);
        found
    }
}

/// Every entry so often, one behind the other.
fn repeated(column: &[u32], times: usize) -> Vec<u32> {
    column.iter().flat_map(|entry| std::iter::repeat_n(*entry, times)).collect()
}
