use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::activation::tests::EVERY;
use crate::{Activation, Isa, Pool};

/// Reproducible values in -1..1 that differ along every dimension.
fn values(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / u32::MAX as f32 * 2.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

#[derive(Debug, Clone, Copy)]
struct Case {
    rows: usize,
    depth: usize,
    columns: usize,
    a_gap: usize,
    c_gap: usize,
    order: WeightOrder,
    bias: bool,
    /// Whether there is a residual, and whether it comes after the activation.
    residual: Option<bool>,
    activation: Activation,
    /// Whether the left operand is handed over as rows to be copied.
    gathered: bool,
}

const PLAIN: Case = Case {
    rows: 1,
    depth: 1,
    columns: 1,
    a_gap: 0,
    c_gap: 0,
    order: WeightOrder::KByN,
    bias: false,
    residual: None,
    activation: Activation::None,
    gathered: false,
};

/// Rows that pretend not to lie in memory.
struct Gathered<'a>(Rows<'a>);

impl RowSource for Gathered<'_> {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn columns(&self) -> usize {
        self.0.columns()
    }

    fn copy_block(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        target: &mut [f32],
        target_stride: usize,
    ) {
        self.0.copy_block(rows, columns, target, target_stride);
    }
}

/// Where element (k, n) of a weight matrix is stored.
fn weight_index(case: &Case, k: usize, n: usize) -> usize {
    match case.order {
        WeightOrder::KByN => k * case.columns + n,
        WeightOrder::NByK => n * case.depth + k,
        WeightOrder::Filters { positions } => {
            let channels = case.depth / positions;
            n * case.depth + k % channels * positions + k / channels
        }
    }
}

/// Checks `actual` against a sum in double precision, and that the gaps between its rows are untouched.
fn compare(
    case: &Case,
    a: &[f32],
    b: &[f32],
    bias: &[f32],
    residual: &[f32],
    actual: &[f32],
    context: &str,
) {
    let (a_stride, c_stride) = (case.depth + case.a_gap, case.columns + case.c_gap);
    for (index, &value) in actual.iter().enumerate() {
        let (row, column) = (index / c_stride, index % c_stride);
        if column >= case.columns {
            assert_eq!(value, 77.0, "{context} {case:?}: gap at row {row}");
            continue;
        }
        let (mut sum, mut size) = (0.0, 1.0);
        for k in 0..case.depth {
            let term =
                f64::from(a[row * a_stride + k]) * f64::from(b[weight_index(case, k, column)]);
            sum += term;
            size += term.abs();
        }
        if case.bias {
            sum += f64::from(bias[column]);
        }
        let extra = f64::from(residual[index]);
        let expected = match case.residual {
            None => case.activation.in_double(sum),
            Some(false) => case.activation.in_double(sum + extra),
            Some(true) => case.activation.in_double(sum) + extra,
        };
        let error = (f64::from(value) - expected).abs();
        assert!(
            error <= 2e-6 * size,
            "{context} {case:?}: ({row}, {column}) is {value}, expected {expected}"
        );
    }
}

/// Runs a case on every instruction set and with one to three workers.
fn check(case: Case) {
    check_with(case, &GemmParameters::default());
}

/// The same with parameters.
fn check_with(case: Case, parameters: &GemmParameters) {
    let (a_stride, c_stride) = (case.depth + case.a_gap, case.columns + case.c_gap);
    let a = values(1, case.rows * a_stride);
    let b = values(2, case.depth * case.columns);
    let bias = values(3, case.columns);
    let residual = values(4, case.rows * c_stride);
    let epilogue = Epilogue {
        bias: case.bias.then_some(&bias),
        residual: case.residual.map(|after_activation| Residual {
            data: &residual,
            row_stride: c_stride,
            after_activation,
        }),
        activation: case.activation,
    };
    let weights =
        WeightMatrix { data: &b, depth: case.depth, columns: case.columns, order: case.order };
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
        let mut first: Option<Vec<f32>> = None;
        for workers in 1..=3 {
            let pool = Pool::unpinned(workers, isa).unwrap();
            let packed = PackedB::pack_on(&pool, parameters.width, &weights).unwrap();
            let limits = parameters.limits;
            let mut actual = vec![77.0; case.rows * c_stride];
            let output = SharedOutput::new(&mut actual);
            pool.run(|worker| {
                let rows = Rows::new(&a, case.rows, case.depth, a_stride);
                // SAFETY: all workers of the run make the same call.
                unsafe {
                    if case.gathered {
                        gemm(
                            worker,
                            &Gathered(rows),
                            &packed,
                            &limits,
                            output,
                            c_stride,
                            &epilogue,
                        );
                    } else {
                        gemm(worker, &rows, &packed, &limits, output, c_stride, &epilogue);
                    }
                }
            })
            .unwrap();
            match &first {
                None => {
                    compare(&case, &a, &b, &bias, &residual, &actual, isa.name());
                    first = Some(actual);
                }
                Some(first) => {
                    assert_eq!(first, &actual, "{workers} workers, {} {case:?}", isa.name())
                }
            }
        }
    }
}

#[test]
fn every_row_and_column_count_is_right() {
    for rows in 1..=26 {
        check(Case { rows, depth: 9, columns: 40 + rows, c_gap: 3, ..PLAIN });
    }
    for columns in 1..=70 {
        check(Case { rows: 5, depth: 6, columns, a_gap: 2, c_gap: columns % 3, ..PLAIN });
    }
}

#[test]
fn long_sums_are_cut_and_put_together() {
    for (rows, depth, columns) in [
        (1, 2500, 70),
        (2, 513, 33),
        (7, 1024, 40),
        (13, 1025, 65),
        (49, 1536, 24),
        (3, 0, 5),
        (1, 0, 5),
    ] {
        for gathered in [false, true] {
            for activation in [Activation::None, Activation::Silu] {
                check(Case {
                    rows,
                    depth,
                    columns,
                    gathered,
                    activation,
                    bias: true,
                    residual: Some(true),
                    ..PLAIN
                });
            }
        }
    }
}

#[test]
fn many_tiles_cover_the_result() {
    check(Case { rows: 700, depth: 20, columns: 300, ..PLAIN });
    check(Case { rows: 40, depth: 600, columns: 700, ..PLAIN });
    check(Case { rows: 1, depth: 30, columns: 3000, bias: true, ..PLAIN });
}

#[test]
fn every_epilogue_is_applied_once() {
    for activation in EVERY {
        for residual in [None, Some(false), Some(true)] {
            for (rows, columns, bias) in [(14, 35, true), (7, 64, false), (1, 24, true)] {
                check(Case {
                    rows,
                    depth: 11,
                    columns,
                    bias,
                    residual,
                    activation,
                    c_gap: 5,
                    ..PLAIN
                });
            }
        }
    }
}

#[test]
fn weights_of_every_order_are_packed_alike() {
    for columns in [1, 7, 8, 17, 31, 32, 57, 300] {
        for depth in [1, 9, 16, 36, 90] {
            check(Case { rows: 3, depth, columns, order: WeightOrder::NByK, ..PLAIN });
            if depth % 9 == 0 {
                check(Case {
                    rows: 3,
                    depth,
                    columns,
                    order: WeightOrder::Filters { positions: 9 },
                    ..PLAIN
                });
            }
        }
    }
}

#[test]
fn weights_that_do_not_fit_their_shape_are_refused() {
    let data = [0.0; 12];
    let pack = |depth, columns, order| {
        PackedB::pack(
            Isa::Portable,
            PanelWidth::Full,
            &WeightMatrix { data: &data, depth, columns, order },
        )
        .map(|packed| packed.bytes())
    };
    assert_eq!(pack(3, 4, WeightOrder::KByN), Ok(3 * 8 * 4));
    assert_eq!(
        pack(3, 5, WeightOrder::KByN),
        Err(PackError::Length { depth: 3, columns: 5, elements: 12 })
    );
    assert!(pack(usize::MAX, 2, WeightOrder::NByK).is_err());
    for positions in [0, 4] {
        let error = pack(3, 4, WeightOrder::Filters { positions });
        assert_eq!(error, Err(PackError::Positions { depth: 3, positions }));
    }
}

#[test]
fn shapes_that_do_not_fit_end_the_run_with_an_error() {
    let pool = Pool::unpinned(2, Isa::Portable).unwrap();
    let weights = WeightMatrix { data: &[1.0; 12], depth: 3, columns: 4, order: WeightOrder::KByN };
    let packed = PackedB::pack(Isa::Portable, PanelWidth::Full, &weights).unwrap();
    let limits = TileLimits::default();
    let attempt = |rows: usize, depth: usize, stride: usize, epilogue: Epilogue| {
        let a = vec![1.0; rows * depth];
        let mut c = [0.0; 8];
        let output = SharedOutput::new(&mut c);
        let rows = Rows::new(&a, rows, depth, depth);
        // SAFETY: all workers of the run make the same call.
        pool.run(|worker| unsafe {
            gemm(worker, &rows, &packed, &limits, output, stride, &epilogue)
        })
    };
    assert_eq!(attempt(2, 3, 4, Epilogue::default()), Ok(()));
    let residual = Residual { data: &[0.0; 7], row_stride: 4, after_activation: false };
    for (rows, depth, stride, epilogue) in [
        (3, 3, 4, Epilogue::default()),
        (2, 2, 4, Epilogue::default()),
        (2, 3, 3, Epilogue::default()),
        (2, 3, usize::MAX, Epilogue::default()),
        (2, 3, 4, Epilogue { bias: Some(&[0.0; 3]), ..Epilogue::default() }),
        (2, 3, 4, Epilogue { residual: Some(residual), ..Epilogue::default() }),
    ] {
        assert!(attempt(rows, depth, stride, epilogue).is_err(), "{rows} {depth} {stride}");
    }
}

/// Checks a batch of products, with operands interleaved as attention heads are.
fn check_batch(heads: usize, rows: usize, depth: usize, columns: usize, b_transposed: bool) {
    let (a_stride, c_stride) = (heads * depth + 1, heads * columns + 2);
    let (b_rows, b_columns) = if b_transposed { (columns, depth) } else { (depth, columns) };
    let b_stride = heads * b_columns + 3;
    let a = values(5, rows * a_stride);
    let b = values(6, b_rows * b_stride);
    let bias = values(7, columns);
    let residual = values(8, rows * c_stride);
    let items: Vec<BatchItem> = (0..heads)
        .map(|head| BatchItem { a: head * depth, b: head * b_columns, output: head * columns })
        .collect();
    let products = MatMul {
        items: &items,
        rows,
        depth,
        columns,
        a: &a,
        a_stride,
        b: &b,
        b_stride,
        b_transposed,
        scale: 0.5,
        output_stride: c_stride,
        epilogue: Epilogue {
            bias: Some(&bias),
            residual: Some(Residual {
                data: &residual,
                row_stride: c_stride,
                after_activation: false,
            }),
            activation: Activation::Relu,
        },
    };
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_supported()) {
        let mut first: Option<Vec<f32>> = None;
        for workers in 1..=3 {
            let pool = Pool::unpinned(workers, isa).unwrap();
            let mut actual = vec![77.0; rows * c_stride];
            let output = SharedOutput::new(&mut actual);
            // SAFETY: all workers of the run make the same call.
            pool.run(|worker| unsafe { matmul(worker, &products, output) }).unwrap();
            if let Some(first) = &first {
                assert_eq!(
                    first,
                    &actual,
                    "{workers} workers, {} {rows} {depth} {columns}",
                    isa.name()
                );
                continue;
            }
            for (index, &value) in actual.iter().enumerate() {
                let (row, head, column) =
                    (index / c_stride, index % c_stride / columns, index % c_stride % columns);
                if head >= heads {
                    assert_eq!(value, 77.0);
                    continue;
                }
                let term = |k: usize| {
                    let place = if b_transposed {
                        column * b_stride + head * depth + k
                    } else {
                        k * b_stride + head * columns + column
                    };
                    f64::from(a[row * a_stride + head * depth + k]) * f64::from(b[place])
                };
                let sum: f64 = (0..depth).map(term).sum::<f64>() * 0.5;
                let size: f64 = 1.0 + (0..depth).map(|k| term(k).abs()).sum::<f64>();
                let expected =
                    (sum + f64::from(bias[column]) + f64::from(residual[index])).max(0.0);
                let error = (f64::from(value) - expected).abs();
                assert!(
                    error <= 2e-6 * size,
                    "{} head {head} ({row}, {column}): {value}, {expected}",
                    isa.name()
                );
            }
            first = Some(actual);
        }
    }
}

#[test]
fn batches_of_run_time_matrices_are_multiplied() {
    for b_transposed in [false, true] {
        for (heads, rows, depth, columns) in [
            (12, 128, 32, 128),
            (12, 128, 128, 32),
            (1, 1, 700, 70),
            (1, 200, 700, 300),
            (1, 97, 33, 41),
            (2, 2843, 3, 9),
            (3, 1, 1, 1),
            (0, 4, 4, 4),
        ] {
            check_batch(heads, rows, depth, columns, b_transposed);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn odd_shapes_are_right(
        (rows, depth, columns) in (1usize..80, 1usize..90, 1usize..120),
        (a_gap, c_gap) in (0usize..5, 0usize..5),
        (bias, gathered, transposed) in (any::<bool>(), any::<bool>(), any::<bool>()),
        residual in any::<Option<bool>>(),
        activation in 0..EVERY.len(),
    ) {
        let order = if transposed { WeightOrder::NByK } else { WeightOrder::KByN };
        let activation = EVERY[activation];
        check(Case { rows, depth, columns, a_gap, c_gap, order, bias, residual, activation, gathered });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn parameters_change_nothing_but_rounding(
        rows in 1usize..300,
        depth in 1usize..700,
        columns in 1usize..150,
        is_wide_apart: bool,
        gathered: bool,
        bias: bool,
        pick: usize,
    ) {
        let a_gap = if is_wide_apart { depth.next_multiple_of(256) - depth } else { 0 };
        let shape = GemmShape { rows, depth, columns, stride: Some(depth + a_gap) };
        let candidates = GemmParameters::candidates(Isa::widest(), &shape, 1 + pick % 3);
        let parameters = &candidates[pick % candidates.len()];
        check_with(Case { rows, depth, columns, a_gap, bias, gathered, ..PLAIN }, parameters);
    }
}
