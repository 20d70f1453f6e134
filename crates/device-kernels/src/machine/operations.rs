//! What the kernels do, one after the other.

use cubecl::prelude::*;
use training::kernels::Activation;

use super::on::{On, launch, said};
use super::products::Product;
use super::{Attention, Buffer, Groups, Machine, Masks, Newest, Part, Products, Related, Rows, Step};
use crate::error::{Refusal, Result};
use crate::faults::short;
use crate::kernels::rows::UNITS;
use crate::kernels::{attention, rows, update};

/// ε of every norm, as on the CPU.
const EPSILON: f32 = 1e-5;

impl<R: Runtime> Machine for On<R> {
    fn name(&self) -> &str {
        &self.name
    }

    fn largest(&self) -> usize {
        usize::try_from(self.client.properties().memory.max_page_size).unwrap_or(usize::MAX)
    }

    fn has(&self, products: Products) -> Result<()> {
        let Products::OnCores(made_of) = products else { return Ok(()) };
        if self.cores.of(made_of) != (false, false) {
            return Ok(());
        }
        let what =
            format!("it has no tensor cores that multiply {} in fragments of 16 × 16 × 16", made_of.name());
        Err(Refusal::Limit { name: self.name.clone(), what })
    }

    fn multiply_in(&self, products: Products) {
        self.products.set(products);
    }

    fn upload(&self, values: &[f32]) -> Buffer {
        let values = if values.is_empty() { &[0.0] } else { values };
        Buffer { handle: self.client.create_from_slice(f32::as_bytes(values)), len: values.len() }
    }

    fn upload_places(&self, places: &[u32]) -> Buffer {
        let places = if places.is_empty() { &[0] } else { places };
        Buffer { handle: self.client.create_from_slice(u32::as_bytes(places)), len: places.len() }
    }

    fn room(&self, len: usize) -> Buffer {
        let len = len.max(1);
        Buffer { handle: self.client.empty(len * size_of::<f32>()), len }
    }

    fn read(&self, buffer: &Buffer) -> Result<Vec<f32>> {
        let told = |reason: String| self.failed(self.faults.why().unwrap_or(reason));
        if self.faults.any() {
            return Err(told(String::new()));
        }
        let bytes = match self.reading.read(buffer.handle.clone(), self.patience) {
            Some(Ok(read)) => read.map_err(|e| told(short(&e.to_string())))?,
            Some(Err(panic)) => return Err(told(said(&panic))),
            None => {
                let waited = format!("no answer in {} s", self.patience.as_secs_f64());
                self.faults.tell(waited.clone());
                return Err(told(waited));
            }
        };
        if self.faults.any() {
            return Err(told(String::new()));
        }
        Ok(f32::from_bytes(&bytes).get(..buffer.len).unwrap_or_default().to_vec())
    }

    fn fill(&self, x: &Buffer, value: f32) {
        launch!(self, rows::fill, Self::entries(x.len), UNITS, Self::arg(x), value, x.len as u32);
    }

    fn copy(&self, to: &Buffer, from: &Buffer) {
        let len = from.len.min(to.len);
        launch!(self, rows::copy, Self::entries(len), UNITS, Self::arg(to), Self::arg(from), len as u32);
    }

    fn embed(
        &self,
        vectors: Part<'_>,
        positions: Option<(Part<'_>, &Buffer)>,
        tokens: &Buffer,
        scale: f32,
        h: &Buffer,
        shape: Rows,
    ) {
        // Positions that are learned stand among the parameters, as the vectors do: one buffer is bound once.
        let own = positions.filter(|(part, _)| !std::ptr::eq(part.of, vectors.of));
        let (table, at) = own.map_or((&self.nothing, 0), |(part, _)| (part.of, part.at));
        let places = positions.map_or(&self.no_places, |(_, places)| places);
        launch!(
            self,
            rows::embed,
            Self::entries(shape.len()),
            UNITS,
            Self::arg(vectors.of),
            Self::arg(table),
            Self::arg(tokens),
            Self::arg(if own.is_some() { places } else { &self.no_places }),
            Self::arg(h),
            vectors.at as u32,
            at as u32,
            scale,
            shape.width as u32,
            shape.len() as u32,
            own.is_some(),
        );
        if let (Some((part, places)), None) = (positions, own) {
            launch!(
                self,
                rows::add_rows,
                Self::entries(shape.len()),
                UNITS,
                Self::arg(h),
                Self::arg(part.of),
                Self::arg(places),
                part.at as u32,
                shape.width as u32,
                shape.len() as u32,
            );
        }
    }

    fn norm(
        &self,
        x: &Buffer,
        theta: &Buffer,
        weight: usize,
        bias: usize,
        normal: &Buffer,
        inverse: &Buffer,
        y: &Buffer,
        shape: Rows,
    ) {
        launch!(
            self,
            rows::norm_rows,
            Self::cubes(shape.rows),
            UNITS,
            Self::arg(x),
            Self::arg(theta),
            Self::arg(normal),
            Self::arg(inverse),
            Self::arg(y),
            weight as u32,
            bias as u32,
            shape.rows as u32,
            shape.width as u32,
            EPSILON,
        );
    }

    fn norm_backward(
        &self,
        theta: &Buffer,
        weight: usize,
        bias: usize,
        dy: &Buffer,
        normal: &Buffer,
        inverse: &Buffer,
        gradient: &Buffer,
        shape: Rows,
    ) {
        self.sum_columns(dy, Some(normal), Part { of: gradient, at: weight }, shape);
        self.sum_columns(dy, None, Part { of: gradient, at: bias }, shape);
        launch!(
            self,
            rows::norm_backward,
            Self::cubes(shape.rows),
            UNITS,
            Self::arg(dy),
            Self::arg(normal),
            Self::arg(inverse),
            Self::arg(theta),
            weight as u32,
            shape.rows as u32,
            shape.width as u32,
        );
    }

    fn linear(
        &self,
        x: &Buffer,
        theta: &Buffer,
        weight: usize,
        bias: usize,
        y: &Buffer,
        shape: Rows,
        out: usize,
    ) {
        self.multiply_in_parts(Product {
            a: (x, 0, shape.width),
            b: (theta, weight, shape.width),
            c: (y, 0, out),
            sizes: (shape.rows, out, shape.width),
            a_turned: false,
            b_turned: true,
            accumulate: false,
            bias: Some(bias),
        });
    }

    fn linear_backward_input(
        &self,
        dy: &Buffer,
        theta: &Buffer,
        weight: usize,
        dx: &Buffer,
        shape: Rows,
        out: usize,
        accumulate: bool,
    ) {
        self.multiply_in_parts(Product {
            a: (dy, 0, out),
            b: (theta, weight, shape.width),
            c: (dx, 0, shape.width),
            sizes: (shape.rows, shape.width, out),
            a_turned: false,
            b_turned: false,
            accumulate,
            bias: None,
        });
    }

    fn linear_backward_weights(
        &self,
        dy: &Buffer,
        x: &Buffer,
        gradient: &Buffer,
        weight: usize,
        bias: usize,
        shape: Rows,
        out: usize,
    ) {
        self.multiply_in_parts(Product {
            a: (dy, 0, out),
            b: (x, 0, shape.width),
            c: (gradient, weight, shape.width),
            sizes: (out, shape.width, shape.rows),
            a_turned: true,
            b_turned: false,
            accumulate: true,
            bias: None,
        });
        self.add_columns(dy, Part { of: gradient, at: bias }, Rows { rows: shape.rows, width: out });
    }

    fn rotary(
        &self,
        table: &Buffer,
        qkv: &Buffer,
        positions: &Buffer,
        heads: usize,
        size: usize,
        backward: bool,
    ) {
        // Queries and keys of a row together have as many pairs as the model is wide.
        let (width, sign) = (heads * size, if backward { -1.0 } else { 1.0 });
        let len = positions.len * width;
        launch!(
            self,
            rows::rotary,
            Self::entries(len),
            UNITS,
            Self::arg(table),
            Self::arg(qkv),
            Self::arg(positions),
            sign,
            size as u32,
            width as u32,
            len as u32,
        );
    }

    fn tiles(&self, starts: &[usize]) -> Buffer {
        let (mut tiles, mut squares) = (Vec::new(), 0);
        for pair in starts.windows(2) {
            if let &[begin, end] = pair {
                for first in (begin..end).step_by(attention::TILE as usize) {
                    tiles.extend([begin as u32, end as u32, first as u32, squares as u32]);
                }
                squares += (end - begin) * (end - begin);
            }
        }
        self.upload_places(&tiles)
    }

    fn attention(&self, form: Attention<'_>, qkv: &Buffer, context: &Buffer, sums: &Buffer) -> Result<()> {
        self.has_room_for(form.size)?;
        let stride = 3 * form.heads * form.size;
        let related = self.related(form.relations, (qkv, stride), None, (form.rows, form.heads, form.size));
        let (numbers, theta, kinds, knows) = self.kinds(form.relations);
        launch!(
            self,
            attention::forward,
            CubeCount::Static((form.tiles.len / 4) as u32, form.heads as u32, 1),
            attention::TILE,
            Self::arg(qkv),
            Self::arg(form.tiles),
            Self::arg(form.slopes.unwrap_or(&self.nothing)),
            Self::arg(numbers),
            Self::arg(&related),
            Self::arg(theta),
            Self::arg(context),
            Self::arg(sums),
            Self::form(form),
            Self::masks(form.masks),
            kinds,
            form.size as u32,
            form.slopes.is_some(),
            form.masks.dropout.is_some(),
            knows,
        );
        Ok(())
    }

    fn attention_backward(
        &self,
        form: Attention<'_>,
        qkv: &Buffer,
        context: &Buffer,
        sums: &Buffer,
        dcontext: &Buffer,
        dqkv: &Buffer,
        gradient: &Buffer,
    ) {
        let along = self.room(form.heads * form.rows);
        launch!(
            self,
            attention::along,
            Self::entries(along.len),
            UNITS,
            Self::arg(dcontext),
            Self::arg(context),
            Self::arg(&along),
            form.rows as u32,
            form.heads as u32,
            form.size as u32,
            along.len as u32,
        );
        let (width, relations) = (form.heads * form.size, form.relations);
        let shape = (form.rows, form.heads, form.size);
        let related = self.related(relations, (qkv, 3 * width), Some((dcontext, width)), shape);
        let (numbers, _, kinds, knows) = self.kinds(relations);
        let by_number = match relations {
            Some(of) if !of.tables.is_empty() => self.room(2 * form.rows * form.heads * of.count),
            _ => self.nothing.clone(),
        };
        launch!(
            self,
            attention::backward_queries,
            CubeCount::Static((form.tiles.len / 4) as u32, form.heads as u32, 1),
            attention::TILE,
            Self::arg(qkv),
            Self::arg(form.tiles),
            Self::arg(form.slopes.unwrap_or(&self.nothing)),
            Self::arg(dcontext),
            Self::arg(sums),
            Self::arg(&along),
            Self::arg(numbers),
            Self::arg(&related),
            Self::arg(dqkv),
            Self::arg(&by_number),
            Self::form(form),
            Self::masks(form.masks),
            kinds,
            form.size as u32,
            form.slopes.is_some(),
            form.masks.dropout.is_some(),
            knows,
        );
        let (_, _, kinds, _) = self.kinds(relations);
        launch!(
            self,
            attention::backward_keys,
            CubeCount::Static((form.tiles.len / 4) as u32, form.heads as u32, 1),
            attention::TILE * attention::SHARES,
            Self::arg(qkv),
            Self::arg(form.tiles),
            Self::arg(form.slopes.unwrap_or(&self.nothing)),
            Self::arg(dcontext),
            Self::arg(sums),
            Self::arg(&along),
            Self::arg(numbers),
            Self::arg(&related),
            Self::arg(dqkv),
            Self::form(form),
            Self::masks(form.masks),
            kinds,
            form.size as u32,
            form.slopes.is_some(),
            form.masks.dropout.is_some(),
            knows,
        );
        if let Some(of) = relations {
            self.tables_backward(of, form, (qkv, dcontext, dqkv), &by_number, gradient);
        }
    }

    fn keep(&self, qkv: &Buffer, places: &Buffer, cache: &Buffer, width: usize) {
        let len = places.len * 2 * width;
        launch!(
            self,
            attention::keep,
            Self::entries(len),
            UNITS,
            Self::arg(qkv),
            Self::arg(places),
            Self::arg(cache),
            width as u32,
            len as u32,
        );
    }

    fn attention_of_newest(
        &self,
        form: Newest<'_>,
        qkv: &Buffer,
        cache: &Buffer,
        context: &Buffer,
    ) -> Result<()> {
        self.has_room_for(form.size)?;
        let hypotheses = form.starts.len - 1;
        let scale = 1.0 / (form.size as f32).sqrt();
        let (stride, shape) = (3 * form.heads * form.size, (hypotheses, form.heads, form.size));
        let related = self.related(form.relations, (qkv, stride), None, shape);
        let (numbers, theta, kinds, knows) = self.kinds(form.relations);
        launch!(
            self,
            attention::newest,
            CubeCount::Static(hypotheses as u32, form.heads as u32, 1),
            attention::TILE,
            Self::arg(qkv),
            Self::arg(cache),
            Self::arg(form.starts),
            Self::arg(form.members),
            Self::arg(form.slopes.unwrap_or(&self.nothing)),
            Self::arg(numbers),
            Self::arg(&related),
            Self::arg(theta),
            Self::arg(context),
            attention::FormLaunch::new(form.heads as u32, hypotheses as u32, scale),
            kinds,
            form.size as u32,
            form.slopes.is_some(),
            knows,
        );
        Ok(())
    }

    fn activate(&self, kind: Activation, x: &Buffer, slope: &Buffer) {
        let kind = match kind {
            Activation::Gelu => 0,
            Activation::GeluTanh => 1,
            Activation::Relu => 2,
        };
        launch!(
            self,
            rows::activate,
            Self::entries(x.len),
            UNITS,
            Self::arg(x),
            Self::arg(slope),
            x.len as u32,
            kind
        );
    }

    fn multiply(&self, x: &Buffer, y: &Buffer) {
        launch!(self, rows::multiply, Self::entries(x.len), UNITS, Self::arg(x), Self::arg(y), x.len as u32);
    }

    fn add(&self, x: Part<'_>, y: &Buffer) {
        launch!(
            self,
            rows::add,
            Self::entries(y.len),
            UNITS,
            Self::arg(x.of),
            Self::arg(y),
            x.at as u32,
            y.len as u32
        );
    }

    fn drop_in_place(&self, masks: Masks, x: &Buffer, width: usize) {
        if masks.dropout.is_some() {
            launch!(
                self,
                rows::drop_in_place,
                Self::entries(x.len),
                UNITS,
                Self::arg(x),
                Self::masks(masks),
                width as u32,
                x.len as u32
            );
        }
    }

    fn add_dropped(&self, masks: Masks, to: &Buffer, x: &Buffer, width: usize) {
        if masks.dropout.is_none() {
            return self.add(Part { of: to, at: 0 }, x);
        }
        launch!(
            self,
            rows::add_dropped,
            Self::entries(x.len),
            UNITS,
            Self::arg(to),
            Self::arg(x),
            Self::masks(masks),
            width as u32,
            x.len as u32
        );
    }

    fn cross_entropy(
        &self,
        logits: &Buffer,
        targets: &Buffer,
        smoothing: f32,
        losses: &Buffer,
        shape: Rows,
        gradient: bool,
    ) {
        launch!(
            self,
            rows::cross_entropy,
            Self::cubes(shape.rows),
            UNITS,
            Self::arg(logits),
            Self::arg(targets),
            Self::arg(losses),
            smoothing,
            shape.rows as u32,
            shape.width as u32,
            gradient,
        );
    }

    fn add_groups(&self, x: &Buffer, groups: &Groups, total: Part<'_>, scale: f32, width: usize) {
        let len = (groups.starts.len - 1) * width;
        launch!(
            self,
            rows::add_groups,
            Self::entries(len),
            UNITS,
            Self::arg(x),
            Self::arg(&groups.to),
            Self::arg(&groups.starts),
            Self::arg(&groups.members),
            Self::arg(total.of),
            total.at as u32,
            scale,
            width as u32,
            len as u32,
        );
    }

    fn gather(&self, x: &Buffer, places: &Buffer, y: &Buffer) {
        launch!(
            self,
            rows::gather,
            Self::entries(y.len),
            UNITS,
            Self::arg(x),
            Self::arg(places),
            Self::arg(y),
            y.len as u32
        );
    }

    fn gather_sum(&self, x: &Buffer, starts: &Buffer, members: &Buffer, y: &Buffer) {
        launch!(
            self,
            rows::gather_sum,
            Self::entries(y.len),
            UNITS,
            Self::arg(x),
            Self::arg(starts),
            Self::arg(members),
            Self::arg(y),
            y.len as u32,
        );
    }

    fn add_columns(&self, x: &Buffer, total: Part<'_>, shape: Rows) {
        self.sum_columns(x, None, total, shape);
    }

    fn add_patterns(&self, h: &Buffer, decay: Part<'_>, starts: &Buffer, entries: &Buffer, shape: Rows) {
        launch!(
            self,
            rows::add_patterns,
            Self::entries(shape.len()),
            UNITS,
            Self::arg(h),
            Self::arg(decay.of),
            Self::arg(starts),
            Self::arg(entries),
            decay.at as u32,
            shape.width as u32,
            shape.len() as u32,
        );
    }

    fn patterns_backward(
        &self,
        dh: &Buffer,
        starts: &Buffer,
        entries: &Buffer,
        total: Part<'_>,
        depths: usize,
        shape: Rows,
    ) {
        let partial = self.room(shape.rows * depths);
        launch!(
            self,
            rows::pattern_sums,
            Self::entries(partial.len),
            UNITS,
            Self::arg(dh),
            Self::arg(starts),
            Self::arg(entries),
            Self::arg(&partial),
            depths as u32,
            shape.width as u32,
            partial.len as u32,
        );
        self.add_columns(&partial, total, Rows { rows: shape.rows, width: depths });
    }

    fn sum(&self, x: &Buffer, squared: bool, out: &Buffer, at: usize) {
        let stretches = x.len.div_ceil(update::STRETCH as usize).max(1);
        let partial = self.room(stretches);
        launch!(
            self,
            update::stretch_sums,
            Self::cubes(stretches),
            UNITS,
            Self::arg(x),
            Self::arg(&partial),
            x.len as u32,
            stretches as u32,
            squared,
        );
        launch!(
            self,
            update::total,
            Self::cubes(1),
            UNITS,
            Self::arg(&partial),
            Self::arg(out),
            at as u32,
            stretches as u32
        );
    }

    fn adamw(
        &self,
        theta: &Buffer,
        m: &Buffer,
        v: &Buffer,
        gradient: &Buffer,
        step: Step,
        keep: f32,
        at: usize,
        len: usize,
    ) {
        let Step { clip, beta1, beta2, rate, correction, eps } = step;
        launch!(
            self,
            update::adamw,
            Self::entries(len),
            UNITS,
            Self::arg(theta),
            Self::arg(m),
            Self::arg(v),
            Self::arg(gradient),
            update::StepLaunch::new(clip, beta1, beta2, rate, correction, eps),
            keep,
            at as u32,
            len as u32,
        );
    }

    fn average(&self, average: &Buffer, theta: &Buffer, beta: f32) {
        launch!(
            self,
            update::average,
            Self::entries(theta.len),
            UNITS,
            Self::arg(average),
            Self::arg(theta),
            beta,
            theta.len as u32
        );
    }
}

impl<R: Runtime> On<R> {
    /// Refuses a head for whose tiles of keys and values there is no room.
    fn has_room_for(&self, size: usize) -> Result<()> {
        let has = self.client.properties().hardware.max_shared_memory_size;
        let bytes = (2 * size + 3) * attention::TILE as usize * size_of::<f32>();
        if bytes <= has {
            return Ok(());
        }
        let what = format!("a head of {size} columns wants {bytes} bytes of shared memory, and it has {has}");
        Err(Refusal::Limit { name: self.name.clone(), what })
    }

    fn form(form: Attention<'_>) -> attention::FormLaunch<R> {
        let scale = 1.0 / (form.size as f32).sqrt();
        attention::FormLaunch::new(form.heads as u32, form.rows as u32, scale)
    }

    /// What a kernel is told of relations: their numbers, the parameters, and which there are.
    fn kinds<'a>(
        &'a self,
        relations: Option<Related<'a>>,
    ) -> (&'a Buffer, &'a Buffer, attention::KindsLaunch<R>, attention::Knows) {
        let Some(of) = relations else {
            let (none, knows) = (attention::KindsLaunch::new(0, 0, 0, 0), attention::Knows::default());
            return (&self.no_places, &self.nothing, none, knows);
        };
        let (from, number) = of.hidden.unwrap_or((0, 0));
        let values = of.tables.values.unwrap_or(0);
        let kinds =
            attention::KindsLaunch::new(of.count as u32, from as u32, u32::from(number), values as u32);
        (of.numbers, of.theta, kinds, of.knows())
    }

    /// Of rows of heads of a size, \[rows, heads, count\]: what each relation adds to a score, from the queries; and with the
    /// gradient of the context what its vector of the values gives along that. Each operand comes with its stride.
    fn related(
        &self,
        relations: Option<Related<'_>>,
        (qkv, of_qkv): (&Buffer, usize),
        dcontext: Option<(&Buffer, usize)>,
        (rows, heads, size): (usize, usize, usize),
    ) -> Buffer {
        let Some(of) = relations.filter(|of| !of.tables.is_empty()) else { return self.nothing.clone() };
        let len = rows * heads * of.count;
        let related = self.room(if dcontext.is_some() { 2 * len } else { len });
        let relate = |x: &Buffer, stride: usize, table: Option<usize>, bias: Option<usize>, scale, at| {
            launch!(
                self,
                attention::relate,
                Self::entries(len),
                UNITS,
                Self::arg(x),
                Self::arg(of.theta),
                Self::arg(&related),
                stride as u32,
                heads as u32,
                size as u32,
                of.count as u32,
                table.unwrap_or(0) as u32,
                bias.unwrap_or(0) as u32,
                scale,
                at as u32,
                len as u32,
                table.is_some(),
                bias.is_some(),
            );
        };
        relate(qkv, of_qkv, of.tables.keys, of.tables.bias, 1.0 / (size as f32).sqrt(), 0);
        if let Some((dcontext, stride)) = dcontext {
            relate(dcontext, stride, of.tables.values, None, 1.0, len);
        }
        related
    }

    /// The gradients of the tables of relations from what was summed by number, and what the keys' table gives the queries.
    fn tables_backward(
        &self,
        of: Related<'_>,
        form: Attention<'_>,
        (qkv, dcontext, dqkv): (&Buffer, &Buffer, &Buffer),
        by_number: &Buffer,
        gradient: &Buffer,
    ) {
        const ROWS: usize = 64;
        let Attention { heads, size, rows, .. } = form;
        let (width, scale) = (heads * size, 1.0 / (size as f32).sqrt());
        if let Some(at) = of.tables.bias {
            let shape = Rows { rows, width: heads * of.count };
            self.sum_columns(by_number, None, Part { of: gradient, at }, shape);
        }
        let table = |x: &Buffer, stride: usize, from: usize, scale: f32, at: usize| {
            let blocks = rows.div_ceil(ROWS).max(1);
            let partial = self.room(blocks * of.count * size);
            launch!(
                self,
                attention::table_blocks,
                Self::entries(partial.len),
                UNITS,
                Self::arg(by_number),
                Self::arg(x),
                Self::arg(&partial),
                from as u32,
                stride as u32,
                rows as u32,
                ROWS as u32,
                heads as u32,
                size as u32,
                of.count as u32,
                scale,
                partial.len as u32,
            );
            self.add_partial(&partial, Part { of: gradient, at }, of.count * size, blocks);
        };
        if let Some(at) = of.tables.values {
            table(dcontext, width, rows * heads * of.count, 1.0, at);
        }
        let Some(at) = of.tables.keys else { return };
        table(qkv, 3 * width, 0, scale, at);
        launch!(
            self,
            attention::relate_backward,
            Self::entries(rows * width),
            UNITS,
            Self::arg(by_number),
            Self::arg(of.theta),
            Self::arg(dqkv),
            3 * width as u32,
            heads as u32,
            size as u32,
            of.count as u32,
            at as u32,
            scale,
            (rows * width) as u32,
        );
    }

    /// total\[at ..\] += Σ over the rows of x, or of x·y.
    fn sum_columns(&self, x: &Buffer, y: Option<&Buffer>, total: Part<'_>, shape: Rows) {
        const ROWS: usize = 64;
        let blocks = shape.rows.div_ceil(ROWS).max(1);
        let partial = self.room(blocks * shape.width);
        launch!(
            self,
            rows::column_blocks,
            Self::entries(partial.len),
            UNITS,
            Self::arg(x),
            Self::arg(y.unwrap_or(&self.nothing)),
            Self::arg(&partial),
            shape.rows as u32,
            shape.width as u32,
            ROWS as u32,
            partial.len as u32,
            y.is_some(),
        );
        self.add_partial(&partial, total, shape.width, blocks);
    }

    /// total\[at ..\] ← the sum of `parts` stretches of `width` entries; with a bias of so many columns, and added to what is there.
    pub(super) fn totals(
        &self,
        partial: &Buffer,
        total: Part<'_>,
        width: usize,
        parts: usize,
        bias: Option<(Part<'_>, usize)>,
        added: bool,
    ) {
        let (of, columns) = bias.unwrap_or((Part { of: &self.nothing, at: 0 }, 1));
        launch!(
            self,
            rows::column_totals,
            Self::entries(width),
            UNITS,
            Self::arg(partial),
            Self::arg(of.of),
            Self::arg(total.of),
            total.at as u32,
            of.at as u32,
            columns as u32,
            width as u32,
            parts as u32,
            added,
            bias.is_some(),
        );
    }

    /// total\[at ..\] += the sum of `parts` stretches of `width` entries.
    fn add_partial(&self, partial: &Buffer, total: Part<'_>, width: usize, parts: usize) {
        self.totals(partial, total, width, parts, None, true);
    }
}

#[cfg(test)]
impl<R: Runtime> On<R> {
    /// A kernel of more units than a cube may have: it is refused before a driver sees it.
    pub(crate) fn launch_beyond(&self, x: &Buffer) {
        launch!(self, rows::fill, Self::entries(x.len), 1 << 20, Self::arg(x), 2.0, x.len as u32);
    }

    /// Waits so long for a reading.
    pub(crate) fn with_patience(self, patience: std::time::Duration) -> Self {
        Self { patience, ..self }
    }

    /// A kernel that takes long: x ← x/2 + 1, so many times.
    pub(crate) fn launch_long(&self, x: &Buffer, rounds: u32) {
        launch!(self, rows::many_halves, Self::entries(x.len), UNITS, Self::arg(x), rounds, x.len as u32);
    }

    /// A kernel of numbers of 64 bits, which are no feature of WebGPU: it does not compile.
    pub(crate) fn launch_doubles(&self, x: &Buffer) {
        launch!(self, rows::doubled, Self::entries(x.len), UNITS, Self::arg(x), x.len as u32);
    }
}
