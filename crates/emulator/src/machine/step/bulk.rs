//! What the copy engine is asked for.

use crate::machine::access::{found, shared_place, unchanging};
use crate::machine::cluster::{Cluster, Transfer};
use crate::machine::copy_engine::{self, Moved, Run};
use crate::machine::lanes::lanes_of;
use crate::machine::ptx::instruction::{Bulk, Operand, Space};
use crate::machine::warp::{Store, Warp};
use crate::tensor_map::TensorMap;

/// What the place of a part of a tensor in shared memory is a multiple of.
const TENSOR_ALIGNMENT: usize = 128;

impl Cluster<'_> {
    /// A description of a tensor, wherever it lies.
    fn tensor_map(
        &mut self,
        warp: &mut Warp,
        lane: usize,
        address: u64,
    ) -> Result<TensorMap, String> {
        const BYTES: usize = 128;
        let (space, at) = found(Space::Any, address);
        let bytes = match space {
            Space::Parameters => unchanging(self.launch.parameters, at, BYTES).map(<[u8]>::to_vec),
            _ => Some(self.bytes(warp, lane, Space::Any, address, BYTES, 64)?.to_vec()),
        };
        let bytes = bytes.and_then(|bytes| <[u8; BYTES]>::try_from(bytes).ok());
        let map = bytes.and_then(|bytes| TensorMap::decode(&bytes));
        map.ok_or_else(|| format!("what lies at {address:#x} describes no tensor"))
    }

    pub(super) fn bulk(&mut self, warp: &mut Warp, lanes: u32, bulk: &Bulk) -> Result<(), String> {
        let places = |cluster: &Self, warp: &Warp, at: &[Operand], lane: usize| -> Vec<i64> {
            at.iter().map(|at| i64::from(cluster.value(warp, *at)[lane] as i32)).collect()
        };
        for lane in lanes_of(lanes) {
            let (to, moved, map, barrier) = match bulk {
                Bulk::LoadBox { to, map, at, barrier } => {
                    let address = self.value(warp, *map)[lane];
                    let map = self.tensor_map(warp, lane, address)?;
                    let at = places(self, warp, at, lane);
                    (to, copy_engine::moved_box(&map, &at)?, Some(map), barrier)
                }
                Bulk::LoadWindows { to, map, at, barrier, offsets } => {
                    let address = self.value(warp, *map)[lane];
                    let map = self.tensor_map(warp, lane, address)?;
                    let at = places(self, warp, at, lane);
                    let offsets: Vec<i64> = offsets
                        .iter()
                        .map(|offset| i64::from(self.value(warp, *offset)[lane] as u16))
                        .collect();
                    let [x, y] = offsets[..] else {
                        return Err("windows have two offsets".to_string());
                    };
                    let moved = copy_engine::moved_windows(&map, &at, [x, y])?;
                    (to, moved, Some(map), barrier)
                }
                Bulk::LoadBytes { to, from, bytes, barrier } => {
                    let address = self.value(warp, *from)[lane];
                    let bytes = self.value(warp, *bytes)[lane] as u32 as usize;
                    if !address.is_multiple_of(16) || !bytes.is_multiple_of(16) {
                        return Err(format!(
                            "{bytes} bytes at {address:#x} are no multiples of 16"
                        ));
                    }
                    let run = Run { address, offset: 0, bytes };
                    (to, Moved { bytes, runs: vec![run] }, None, barrier)
                }
                Bulk::StoreBox { map, at, from } => {
                    self.store_box(warp, lane, *map, at, *from)?;
                    continue;
                }
            };
            let (to, barrier) = (self.value(warp, *to)[lane], self.value(warp, *barrier)[lane]);
            let [(block, to), (told, barrier)] = [to, barrier]
                .map(|address| shared_place(address & u64::from(u32::MAX), warp.block));
            let alignment = if map.is_some() { TENSOR_ALIGNMENT } else { 16 };
            if to % alignment != 0 {
                return Err(format!("a copy to {to:#x}, which is no multiple of {alignment}"));
            }
            if barrier % 8 != 0 {
                return Err(format!("a barrier at {barrier:#x}, which is no multiple of 8"));
            }
            if told != block {
                return Err("a copy to one block that another one is told of".to_string());
            }
            let (line, thread) = (warp.line, self.thread(warp, lane as u32));
            self.transfer(Transfer { block, to, moved, map, barrier, line, thread })?;
        }
        Ok(())
    }

    fn store_box(
        &mut self,
        warp: &mut Warp,
        lane: usize,
        map: Operand,
        at: &[Operand],
        from: Operand,
    ) -> Result<(), String> {
        let address = self.value(warp, map)[lane];
        let map = self.tensor_map(warp, lane, address)?;
        let at: Vec<i64> =
            at.iter().map(|at| i64::from(self.value(warp, *at)[lane] as i32)).collect();
        let moved = copy_engine::moved_box(&map, &at)?;
        let from = self.value(warp, from)[lane] as u32 as usize;
        if !from.is_multiple_of(TENSOR_ALIGNMENT) {
            return Err(format!(
                "a copy from {from:#x}, which is no multiple of {TENSOR_ALIGNMENT}"
            ));
        }
        let bytes = self.stored_bytes(warp.block, &map, from, moved.bytes)?;
        for run in &moved.runs {
            let into = self.device.at(run.address, run.bytes).ok_or_else(|| {
                format!(
                    "a copy writes {} bytes at {:#x}, which is no memory",
                    run.bytes, run.address
                )
            })?;
            into.fill_from(&bytes[run.offset..run.offset + run.bytes]);
        }
        // As it lies, for the comparison later.
        let as_it_lies = self.shared(warp.block, from as u64, moved.bytes)?;
        let bytes = as_it_lies.ok_or("a store reads beyond shared memory")?.to_vec();
        warp.stores.push(Store { lane, later_groups: None, from, bytes });
        Ok(())
    }
}
