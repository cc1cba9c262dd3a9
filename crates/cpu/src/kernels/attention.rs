//! Owns scaled dot-product attention, one block of query rows of one head at a time.

use std::cell::RefCell;

use super::softmax::softmax_row;
use crate::gemm::{BatchItem, Epilogue, MatMul, matmul};
use crate::simd::Simd;
use crate::{Isa, SharedOutput, SimdTask, Worker};

/// How many query rows are computed together at most: keys and values are packed once for each block.
const MOST_ROWS: usize = 256;

/// How many tasks each worker should find, so that none waits long for the last.
const TASKS_PER_WORKER: usize = 3;

/// Where the rows of one head start: at `batch`, `head` and `sequence` times these strides, in values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeadStrides {
    /// From one batch entry to the next.
    pub batch: usize,
    /// From one head to the next.
    pub head: usize,
    /// From one row to the next.
    pub sequence: usize,
}

/// `softmax(scale * Q K^T + mask) V` for all heads of all batch entries.
#[derive(Debug, Clone, Copy)]
pub struct Attention {
    /// Batch entries.
    pub batch: usize,
    /// Heads.
    pub heads: usize,
    /// Rows of Q and of the result.
    pub queries: usize,
    /// Rows of K and V.
    pub keys: usize,
    /// Columns of Q and K.
    pub depth: usize,
    /// Columns of V and of the result.
    pub value_depth: usize,
    /// The factor of the products.
    pub scale: f32,
    /// The layout of Q.
    pub query_strides: HeadStrides,
    /// The layout of K.
    pub key_strides: HeadStrides,
    /// The layout of V.
    pub value_strides: HeadStrides,
    /// The layout of the result.
    pub output_strides: HeadStrides,
    /// The layout of the mask, whose rows have one value per key; a stride of zero repeats.
    pub mask_strides: HeadStrides,
}

impl HeadStrides {
    fn at(&self, batch: usize, head: usize, row: usize) -> usize {
        batch * self.batch + head * self.head + row * self.sequence
    }

    /// How many values a tensor of this layout must have; `None` if that overflows.
    fn extent(&self, batch: usize, heads: usize, rows: usize, columns: usize) -> Option<usize> {
        if batch == 0 || heads == 0 || rows == 0 {
            return Some(0);
        }
        let batches = (batch - 1).checked_mul(self.batch)?;
        let heads = (heads - 1).checked_mul(self.head)?;
        let rows = (rows - 1).checked_mul(self.sequence)?;
        batches.checked_add(heads)?.checked_add(rows)?.checked_add(columns)
    }
}

thread_local! {
    /// A worker without companions for the products of a task, kept for its scratch memory.
    static ALONE: RefCell<Option<Worker<'static>>> = const { RefCell::new(None) };
}

fn with_worker_alone(isa: Isa, body: impl FnOnce(&Worker)) {
    ALONE.with_borrow_mut(|slot| match slot {
        Some(alone) if alone.isa() == isa => body(alone),
        _ => body(slot.insert(Worker::solo(isa))),
    });
}

impl Attention {
    /// Computes the attention; `mask` is added to the scaled products.
    ///
    /// # Safety
    ///
    /// All workers of the run make the same call, and nothing else accesses the output until all have returned.
    ///
    /// # Panics
    ///
    /// If a slice is too short for its layout, or the rows of the result overlap.
    pub unsafe fn run(
        &self,
        worker: &Worker,
        query: &[f32],
        key: &[f32],
        value: &[f32],
        mask: Option<&[f32]>,
        output: SharedOutput<f32>,
    ) {
        self.check([query.len(), key.len(), value.len(), output.len()], mask.map(<[f32]>::len));
        let heads = self.batch * self.heads;
        let blocks = self.blocks(heads, worker.count());
        let block_rows = self.queries.div_ceil(blocks).max(1);
        let blocks = self.queries.div_ceil(block_rows);
        worker.parallel(heads * blocks, |task| {
            let (head, first) = (task / blocks, task % blocks * block_rows);
            let block = Block {
                attention: self,
                batch: head / self.heads,
                head: head % self.heads,
                first,
                rows: block_rows.min(self.queries - first),
            };
            block.compute(worker, query, key, value, mask, output);
        });
    }

    /// Into how many blocks the query rows are cut. No block has a single row unless there is just one, because the
    /// product of one row is summed in another order.
    fn blocks(&self, heads: usize, workers: usize) -> usize {
        let by_size = self.queries.div_ceil(MOST_ROWS).max(1);
        if workers == 1 || heads == 0 {
            return by_size;
        }
        let wanted = (workers * TASKS_PER_WORKER).div_ceil(heads);
        let mut blocks = by_size.max(wanted.min(self.queries / 32)).max(1);
        while blocks > 1 && self.queries % self.queries.div_ceil(blocks) == 1 {
            blocks -= 1;
        }
        blocks
    }

    fn check(&self, lengths: [usize; 4], mask: Option<usize>) {
        let Self { batch, heads, queries, keys, depth, value_depth, .. } = *self;
        let extents = [
            self.query_strides.extent(batch, heads, queries, depth),
            self.key_strides.extent(batch, heads, keys, depth),
            self.value_strides.extent(batch, heads, keys, value_depth),
            self.output_strides.extent(batch, heads, queries, value_depth),
        ];
        for (extent, length) in extents.into_iter().zip(lengths) {
            assert!(extent.is_some_and(|extent| extent <= length), "operand of an attention");
        }
        if let Some(mask) = mask {
            let extent = self.mask_strides.extent(batch, heads, queries, keys);
            assert!(extent.is_some_and(|extent| extent <= mask), "mask of an attention");
        }
        // Sorted by size, each axis of the result must step over all that lies inside it.
        let strides = &self.output_strides;
        let mut axes = [(strides.batch, batch), (strides.head, heads), (strides.sequence, queries)];
        axes.sort_unstable();
        let mut inside = value_depth;
        for (stride, size) in axes.into_iter().filter(|&(_, size)| size > 1) {
            assert!(stride >= inside, "rows of an attention's result overlap");
            inside += stride * (size - 1);
        }
    }
}

/// Some query rows of one head.
struct Block<'a> {
    attention: &'a Attention,
    batch: usize,
    head: usize,
    first: usize,
    rows: usize,
}

impl Block<'_> {
    fn compute(
        &self,
        worker: &Worker,
        query: &[f32],
        key: &[f32],
        value: &[f32],
        mask: Option<&[f32]>,
        output: SharedOutput<f32>,
    ) {
        let Attention { keys, depth, value_depth, scale, .. } = *self.attention;
        let Attention { query_strides, key_strides, value_strides, output_strides, .. } =
            self.attention;
        let (batch, head) = (self.batch, self.head);
        let mut scores = worker.scratch(self.rows * keys);
        let products = MatMul {
            items: &[BatchItem {
                a: query_strides.at(batch, head, self.first),
                b: key_strides.at(batch, head, 0),
                output: 0,
            }],
            rows: self.rows,
            depth,
            columns: keys,
            a: query,
            a_stride: query_strides.sequence,
            b: key,
            b_stride: key_strides.sequence,
            b_transposed: true,
            scale,
            output_stride: keys,
            epilogue: Epilogue::default(),
        };
        with_worker_alone(worker.isa(), |alone| {
            // SAFETY: the worker has no companions, and the buffer is its own.
            unsafe { matmul(alone, &products, SharedOutput::new(&mut scores)) };
        });
        worker.isa().run(Weights { block: self, mask, scores: &mut scores });
        let sums = MatMul {
            items: &[BatchItem {
                a: 0,
                b: value_strides.at(batch, head, 0),
                output: output_strides.at(batch, head, self.first),
            }],
            rows: self.rows,
            depth: keys,
            columns: value_depth,
            a: &scores,
            a_stride: keys,
            b: value,
            b_stride: value_strides.sequence,
            b_transposed: false,
            scale: 1.0,
            output_stride: output_strides.sequence,
            epilogue: Epilogue::default(),
        };
        with_worker_alone(worker.isa(), |alone| {
            // SAFETY: the worker has no companions, and no other block writes these rows of this head.
            unsafe { matmul(alone, &sums, output) };
        });
    }
}

/// Turns scores into weights.
struct Weights<'a> {
    block: &'a Block<'a>,
    mask: Option<&'a [f32]>,
    scores: &'a mut [f32],
}

impl SimdTask for Weights<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Block { attention, batch, head, first, .. } = *self.block;
        if attention.keys == 0 {
            return;
        }
        for (index, row) in self.scores.chunks_exact_mut(attention.keys).enumerate() {
            if let Some(mask) = self.mask {
                let start = attention.mask_strides.at(batch, head, first + index);
                let mask = &mask[start..start + attention.keys];
                for (chunk, mask) in row.chunks_mut(S::LANES).zip(mask.chunks(S::LANES)) {
                    simd.store_slice(
                        chunk,
                        simd.add(simd.load_slice(chunk), simd.load_slice(mask)),
                    );
                }
            }
            softmax_row(simd, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::testing::{assert_close, run_on, supported_isas, values};

    /// Rows of heads beside one another, as a projection writes them, or heads after one another.
    fn strides(is_sequence_major: bool, heads: usize, rows: usize, columns: usize) -> HeadStrides {
        if is_sequence_major {
            let sequence = heads * columns;
            HeadStrides { batch: rows * sequence, head: columns, sequence }
        } else {
            let head = rows * columns;
            HeadStrides { batch: heads * head, head, sequence: columns }
        }
    }

    fn check(sizes: [usize; 6], is_sequence_major: bool, mask_strides: Option<HeadStrides>) {
        let [batch, heads, queries, keys, depth, value_depth] = sizes;
        let attention = Attention {
            batch,
            heads,
            queries,
            keys,
            depth,
            value_depth,
            scale: 0.7,
            query_strides: strides(is_sequence_major, heads, queries, depth),
            key_strides: strides(is_sequence_major, heads, keys, depth),
            value_strides: strides(is_sequence_major, heads, keys, value_depth),
            output_strides: strides(is_sequence_major, heads, queries, value_depth),
            mask_strides: mask_strides.unwrap_or(strides(false, heads, queries, keys)),
        };
        let query = values(batch * heads * queries * depth, 1);
        let key = values(batch * heads * keys * depth, 2);
        let value = values(batch * heads * keys * value_depth, 3);
        let mask: Option<Vec<f32>> = mask_strides.map(|_| {
            let mask = values(batch * heads * queries * keys, 4);
            mask.iter().map(|&x| if x > 0.8 { f32::NEG_INFINITY } else { x }).collect()
        });
        let mut expected = vec![0.0; batch * heads * queries * value_depth];
        for b in 0..batch {
            for h in 0..heads {
                for q in 0..queries {
                    let scores: Vec<f64> = (0..keys)
                        .map(|k| {
                            let a = &query[attention.query_strides.at(b, h, q)..][..depth];
                            let c = &key[attention.key_strides.at(b, h, k)..][..depth];
                            let product: f64 =
                                a.iter().zip(c).map(|(&a, &c)| f64::from(a) * f64::from(c)).sum();
                            let bias = mask.as_ref().map_or(0.0, |mask| {
                                f64::from(mask[attention.mask_strides.at(b, h, q) + k])
                            });
                            product * f64::from(0.7f32) + bias
                        })
                        .collect();
                    let most = scores.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
                    let sum: f64 = scores.iter().map(|score| (score - most).exp()).sum();
                    for column in 0..value_depth {
                        let place = attention.output_strides.at(b, h, q) + column;
                        expected[place] = (0..keys)
                            .map(|k| {
                                let start = attention.value_strides.at(b, h, k);
                                let weight = (scores[k] - most).exp() / sum;
                                weight * f64::from(value[start + column])
                            })
                            .sum();
                    }
                }
            }
        }
        for isa in supported_isas() {
            let output = run_on(isa, expected.len(), |worker, output| {
                // SAFETY: every worker of the pool runs this.
                unsafe {
                    attention.run(worker, &query, &key, &value, mask.as_deref(), output);
                }
            });
            assert_close(&output, &expected, 3e-6, &format!("{isa:?} {sizes:?}"));
        }
    }

    #[test]
    fn layouts_and_masks() {
        let repeated = |batch, head, sequence| Some(HeadStrides { batch, head, sequence });
        for is_sequence_major in [false, true] {
            check([1, 2, 7, 9, 8, 5], is_sequence_major, None);
            check([2, 3, 65, 40, 16, 16], is_sequence_major, repeated(3 * 65 * 40, 65 * 40, 40));
            check([2, 3, 33, 33, 16, 24], is_sequence_major, repeated(33, 0, 0));
            check([1, 1, 130, 64, 32, 32], is_sequence_major, repeated(0, 0, 64));
            check([1, 4, 1, 50, 64, 64], is_sequence_major, None);
            check([1, 1, 300, 20, 4, 4], is_sequence_major, None);
        }
    }
}
