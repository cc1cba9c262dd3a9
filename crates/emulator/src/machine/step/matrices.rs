//! What a warp does with matrices.

use super::{After, Done};
use crate::machine::cluster::Cluster;
use crate::machine::lanes::{ALL, Lanes};
use crate::machine::ptx::instruction::{Operation, Space};
use crate::machine::tensor_core::{self, Tile};
use crate::machine::warp::Warp;
use crate::machine::warpgroup::{Operand, WARPS, Warpgroup};

impl Cluster<'_> {
    /// What a warp does with matrices, for which all of its lanes must be here.
    pub(super) fn matrices(&mut self, warp: &mut Warp, lanes: u32, operation: &Operation) -> Done {
        if lanes != ALL {
            if warp.running() == ALL {
                return Ok(After::Again);
            }
            return Err("a warp of which threads have ended multiplies matrices".to_string());
        }
        match operation {
            Operation::LoadMatrices { to, at, is_transposed } => {
                let addresses = self.addresses(warp, at);
                for (matrix, to) in to.iter().enumerate() {
                    let mut rows = [[0; 8]; 8];
                    for (row, numbers) in rows.iter_mut().enumerate() {
                        let address = addresses[matrix * 8 + row];
                        let bytes = self.bytes(warp, 0, Space::Shared, address, 16, 16)?;
                        *numbers = std::array::from_fn(|index| bytes.read(index * 2, 2));
                    }
                    let word = |lane: usize| {
                        let [(y, x), (next_y, next_x)] =
                            tensor_core::elements_of(lane, *is_transposed);
                        rows[next_y][next_x] << 16 | rows[y][x]
                    };
                    warp.write(*to, lanes, &std::array::from_fn(word));
                }
            }
            Operation::StoreMatrices { from, at, is_transposed } => {
                let addresses = self.addresses(warp, at);
                for (matrix, from) in from.iter().enumerate() {
                    let words = *warp.register(*from);
                    for (lane, word) in words.iter().enumerate() {
                        let places = tensor_core::elements_of(lane, *is_transposed);
                        for (half, (row, column)) in places.into_iter().enumerate() {
                            let address = addresses[matrix * 8 + row];
                            let bytes = self.bytes(warp, 0, Space::Shared, address, 16, 16)?;
                            bytes.write(column * 2, 2, word >> (16 * half) & 0xffff);
                        }
                    }
                }
            }
            Operation::MultiplyMatrices { factors, depth, to, a, b, c } => {
                let [a, b] = [a, b].map(|registers| -> Vec<Lanes> {
                    registers.iter().map(|register| *warp.register(*register)).collect()
                });
                let c = c.map(|register| *warp.register(register));
                let sums = tensor_core::multiply(*factors, *depth, &a, &b, &c);
                to.iter().zip(&sums).for_each(|(to, sum)| warp.write(*to, lanes, sum));
            }
            Operation::MultiplyByWarpgroup { factors, columns, sums, a, b, is_added } => {
                let [a, b] = [a, b].map(|operand| self.value(warp, *operand)[0]);
                let is_added = warp.condition(*is_added) & 1 != 0;
                let first = warp.number % WARPS * 16;
                let left = self.tile_words(warp, a, first..first + 16)?;
                let right = self.tile_words(warp, b, 0..*columns)?;
                let mut values: Vec<Lanes> = sums.iter().map(|sum| *warp.register(*sum)).collect();
                tensor_core::multiply_rows(*factors, &left, &right, &mut values, is_added);
                sums.iter().zip(&values).for_each(|(to, sum)| warp.write(*to, lanes, sum));
                let mut operands = vec![Operand { tile: a, rows: first..first + 16, words: left }];
                // One of the four looks after what all of them read.
                if warp.number.is_multiple_of(WARPS) {
                    operands.push(Operand { tile: b, rows: 0..*columns, words: right });
                }
                self.warpgroup(warp).add(warp.number, operands);
            }
            Operation::CommitWarpgroup => self.warpgroup(warp).close(warp.number),
            Operation::AwaitWarpgroup { left } => {
                let Some(ended) = self.warpgroup(warp).end(warp.number, *left) else {
                    return Ok(After::Again);
                };
                for Operand { tile, rows, words } in ended.into_iter().flat_map(|it| it.operands) {
                    if self.tile_words(warp, tile, rows)? != words {
                        return Err("operands were overwritten before they were multiplied".into());
                    }
                }
            }
            other => return Err(format!("{other:?} is run elsewhere")),
        }
        Ok(After::Next)
    }

    fn warpgroup(&mut self, warp: &Warp) -> &mut Warpgroup {
        &mut self.blocks[warp.block].warpgroups[warp.number / WARPS]
    }

    fn tile_words(
        &mut self,
        warp: &mut Warp,
        description: u64,
        rows: std::ops::Range<usize>,
    ) -> Result<Vec<u64>, String> {
        let tile = Tile::described(description)?;
        tile.words(rows, |address, count| {
            self.bytes(warp, 0, Space::Shared, address as u64, count, count)
        })
    }
}
