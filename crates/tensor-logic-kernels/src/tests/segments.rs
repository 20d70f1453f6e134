//! Sums by group beside loops.

use super::*;

fn segments<T: Number>(precision: Precision) {
    let mut stream = stream("segments");
    for round in 0..300 {
        let many = round % 20 == 0;
        let counts: Vec<usize> = (0..stream.below(6))
            .map(|_| match stream.below(5) {
                0 => 0,
                1 if many => 300 + stream.below(700) as usize,
                _ => 1 + stream.below(5) as usize,
            })
            .collect();
        let total: usize = counts.iter().sum();
        // Rows come in any order, some several times, others never.
        let named = total.max(1);
        let rows: Vec<u32> = (0..total).map(|_| stream.below(named as u64) as u32).collect();
        let mut start = vec![0_u32];
        counts.iter().for_each(|count| start.push(start.last().unwrap() + *count as u32));
        let inner: Vec<usize> = match stream.below(8) {
            0 => vec![],
            1 => vec![0],
            2 => vec![64],
            3 => vec![130],
            4 => vec![5, 17],
            5 => vec![16],
            _ => vec![1 + stream.below(9) as usize],
        };
        let width = volume(&inner);
        let wild = stream.below(3) == 0;
        let lane = |stream: &mut Stream, unit: usize, slack: usize| {
            let step = match stream.below(3) {
                0 => Step::Map(Arc::new((0..named).map(|_| stream.below(4) as u32).collect()), unit),
                1 => Step::By(0),
                _ => Step::By(unit),
            };
            let offset = stream.below(3) as usize;
            let reach = reach(std::slice::from_ref(&step), &[named]) + slack;
            let (array, values) = array(stream, offset + reach, wild);
            (array, values, offset, step)
        };
        let folding = if stream.below(4) == 0 { folding(&mut stream) } else { Folding::Sum };
        let sums = folding == Folding::Sum;
        if folding == Folding::Product && many {
            continue;
        }
        let mut numbers = Vec::new();
        for _ in 0..if sums { stream.below(3) } else { 0 } {
            let (array, values, offset, step) = lane(&mut stream, 1, 0);
            numbers.push(Seen { view: View { array, offset, steps: vec![step] }, values });
        }
        let mut slabs = Vec::new();
        for _ in 0..if sums { stream.below(4) } else { 1 } {
            let (array, values, offset, step) = lane(&mut stream, width.max(1), width);
            let mut steps = vec![step];
            steps.extend(strides(&inner).into_iter().map(Step::By));
            slabs.push(Seen { view: View { array, offset, steps }, values });
        }
        let constant = if sums { [1.0, -0.5, 3.0][stream.below(3) as usize] } else { 1.0 };
        let mut wanted = Vec::new();
        for group in 0..counts.len() {
            for place in places(&inner) {
                let own = &rows[start[group] as usize..start[group + 1] as usize];
                let one = |row: &u32| {
                    let at = [&[*row as usize], place.as_slice()].concat();
                    let numbers: f64 = numbers.iter().map(|view| view.at::<f64>(&at[..1])).product();
                    let slabs: f64 = slabs.iter().map(|view| view.at::<f64>(&at)).product();
                    constant * numbers * slabs
                };
                let parts: Vec<f64> = own.iter().map(one).collect();
                wanted.push(fold(folding, &parts));
            }
        }
        let what = format!(
            "{folding:?} {counts:?} {inner:?} {rows:?} {numbers:?} {slabs:?}",
            numbers = numbers.iter().map(|s| &s.view).collect::<Vec<_>>(),
            slabs = slabs.iter().map(|s| &s.view).collect::<Vec<_>>()
        );
        let views = |seen: Vec<Seen>| seen.into_iter().map(|seen| seen.view).collect();
        let segments = Segments {
            groups: Grouping::new(start, rows),
            inner,
            numbers: views(numbers),
            slabs: views(slabs),
            constant,
            folding,
        };
        let found = forced::<T>(&Array::of(wanted.len(), segments.clone()), precision);
        close(&found, &wanted, &what);
        anywhere(Recorded::of(&Array::of(wanted.len(), segments)).unwrap(), &found, &what);
    }
}

#[test]
fn segments_are_sums_over_the_rows_of_each_group() {
    both(segments::<f64>, segments::<f32>);
}

/// One grouping that many sums use, over columns, numbers and slabs that stay, that are met in both types, and that go
/// and are replaced.
fn kept_look_ups<T: Number>(precision: Precision) {
    let mut stream = stream("kept look-ups");
    for round in 0..40 {
        let (groups, table) = (1 + stream.below(6) as usize, [0, 1, 7, 31, 97][stream.below(5) as usize]);
        // Each row once, in its own order or not, or any row any number of times.
        let total = if round % 3 == 2 { stream.below(60) as usize } else { table };
        let rows: Vec<u32> = match round % 3 {
            0 => (0..table as u32).collect(),
            1 => (0..table as u32).rev().collect(),
            _ => (0..total).map(|_| stream.below(table.max(1) as u64) as u32).collect(),
        };
        let rows = if table == 0 { Vec::new() } else { rows };
        let mut start: Vec<u32> = (1..groups).map(|_| stream.below(rows.len() as u64 + 1) as u32).collect();
        start.extend([0, rows.len() as u32]);
        start.sort_unstable();
        let grouping = Grouping::new(start.clone(), rows.clone());
        assert_eq!(grouping.count(), groups);
        let width = [1, 5, 16, 67][stream.below(4) as usize];
        let map =
            |stream: &mut Stream| Arc::new((0..table).map(|_| stream.below(9) as u32).collect::<Vec<u32>>());
        let mut maps: Vec<Arc<Vec<u32>>> = (0..6).map(|_| map(&mut stream)).collect();
        let mut numbers: Vec<_> = (0..6).map(|_| array(&mut stream, 2 * table + 20, false)).collect();
        let slabs = array(&mut stream, 9 * width, false);
        for _ in 0..30 {
            // What is replaced may stand where something else stood.
            if stream.below(3) == 0 {
                let at = stream.below(6) as usize;
                maps[at] = map(&mut stream);
                numbers[at] = array(&mut stream, 2 * table + 20, false);
            }
            let (values, scales) = &numbers[stream.below(6) as usize];
            let step = match stream.below(4) {
                0 => Step::By(0),
                1 => Step::By(2),
                2 => Step::By(1),
                _ => Step::Map(Arc::clone(&maps[stream.below(6) as usize]), 2),
            };
            let number = View { array: values.clone(), offset: stream.below(2) as usize, steps: vec![step] };
            let column = Step::Map(Arc::clone(&maps[stream.below(6) as usize]), width);
            let slab = View { array: slabs.0.clone(), offset: 0, steps: vec![column, Step::By(1)] };
            let mut wanted = Vec::new();
            for group in start.windows(2) {
                for column in 0..width {
                    let one = |row: &u32| {
                        let row = *row as usize;
                        let scale = scales[number.offset + number.steps[0].offset(row)];
                        scale * slabs.1[slab.steps[0].offset(row) + column]
                    };
                    let parts: Vec<f64> =
                        rows[group[0] as usize..group[1] as usize].iter().map(one).collect();
                    wanted.push(fold(Folding::Sum, &parts));
                }
            }
            let segments = Segments {
                groups: Arc::clone(&grouping),
                inner: vec![width],
                numbers: vec![number],
                slabs: vec![slab],
                constant: 1.0,
                folding: Folding::Sum,
            };
            let other = match precision {
                Precision::Double => Precision::Single,
                Precision::Single => Precision::Double,
            };
            if stream.below(3) == 0 {
                let _ = forced::<f64>(&Array::of(wanted.len(), segments.clone()), other);
            }
            let found = forced::<T>(&Array::of(wanted.len(), segments), precision);
            close(&found, &wanted, &(round, &start, &rows));
        }
    }
}

#[test]
fn what_is_looked_up_by_row_is_kept_right() {
    both(kept_look_ups::<f64>, kept_look_ups::<f32>);
}

/// Sums over many rows, and slabs wider than what is summed at once.
fn long_segments<T: Number>(precision: Precision) {
    let mut stream = stream("long segments");
    for width in [1_usize, 16, 64, 100, 150] {
        let (groups, rows, slabs) = (40_usize, 3000_usize, 70_usize);
        let of: Vec<usize> = (0..rows).map(|_| stream.below(groups as u64) as usize).collect();
        let mut start = vec![0_u32];
        let mut ordered = Vec::new();
        for group in 0..groups {
            ordered.extend((0..rows as u32).filter(|row| of[*row as usize] == group));
            start.push(ordered.len() as u32);
        }
        let map: Vec<u32> = (0..rows).map(|_| stream.below(slabs as u64) as u32).collect();
        let (array_of_slabs, values) = array(&mut stream, slabs * width, false);
        let (array_of_numbers, scales) = array(&mut stream, rows, false);
        let segments = Segments {
            groups: Grouping::new(start, ordered),
            inner: vec![width],
            numbers: vec![View { array: array_of_numbers, offset: 0, steps: vec![Step::By(1)] }],
            slabs: vec![View {
                array: array_of_slabs,
                offset: 0,
                steps: vec![Step::Map(Arc::new(map.clone()), width), Step::By(1)],
            }],
            constant: 0.5,
            folding: Folding::Sum,
        };
        let mut wanted = vec![(0.0, 0.0); groups * width];
        for row in 0..rows {
            for at in 0..width {
                let value = 0.5 * scales[row] * values[map[row] as usize * width + at];
                let slot = &mut wanted[of[row] * width + at];
                *slot = (slot.0 + value, slot.1 + value.abs());
            }
        }
        close(&forced::<T>(&Array::of(groups * width, segments), precision), &wanted, &width);
    }
}

#[test]
fn long_segments_are_loops_too() {
    both(long_segments::<f64>, long_segments::<f32>);
}
