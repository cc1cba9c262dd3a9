//! Programs that are refused before they run.

use super::*;

fn error(statement: &str) -> String {
    let registers = ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %rd<4>;";
    let text = format!("{HEAD}.visible .entry k()\n{{\n{registers}\n{statement}\n}}\n");
    Program::parse(&text).map(|_| statement).unwrap_err().to_string()
}

#[test]
fn what_is_not_known_is_refused_with_its_line() {
    assert_eq!(
        error("vset.u32 %r1, %r2;"),
        "line 7 of the program: vset.u32: there is no such instruction here"
    );
    assert_eq!(error("mov.u32 %r1, %r16;"), "line 7 of the program: %r16 is not known");
    assert_eq!(error("bra NOWHERE;"), "line 8 of the program: there is no label NOWHERE");
}

#[test]
fn no_part_of_an_instruction_is_left_out_in_silence() {
    for statement in [
        "add.sat.s32 %r1, %r2, %r3;",
        "add.cc.u32 %r1, %r2, %r3;",
        "fma.rn.relu.f16x2 %r1, %r2, %r3, %r4;",
        "fma.rn.sat.f32 %r1, %r2, %r3, %r4;",
        "min.xorsign.abs.f32 %r1, %r2, %r3;",
        "mul.rn.ftz.f32 %r1, %r2, %r3;",
        "sqrt.rz.f32 %r1, %r2;",
        "rcp.rm.f32 %r1, %r2;",
        "rcp.approx.ftz.f64 %rd1, %rd2;",
        "div.full.ftz.f32 %r1, %r2, %r3;",
        "cvt.rz.bf16.f32 %h1, %r1;",
        "cvt.rn.relu.f16.f32 %h1, %r1;",
        "setp.lt.ftz.f32 %p1, %r1, %r2;",
        "setp.lt.f32 %p1|%p2, %r1, %r2;",
        "mapa.u64 %rd1, %rd2, %r1;",
        "ld.global.v2.u32 %r1, [%rd1];",
        "ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];",
        "st.bulk.shared::cta [%r1], %rd1, 0;",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3];",
        "atom.global.add.u32 %r1, [%rd1], %r2, %r3;",
        "atom.global.cas.b32 %r1, [%rd1], %r2;",
        "cp.async.cg.shared.global.L2::cache_hint [%r1], [%rd1], 16, %rd2;",
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1, {%r2}], [%r3], %h1;",
        "cp.async.bulk.tensor.1d.shared::cluster.global.gather4.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2}], [%r3];",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2}, [%r3];",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r1}, [%r3];",
        "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r1, %r2};",
        "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];",
        "mbarrier.arrive.noComplete.shared::cta.b64 _, [%r1], 1;",
        "mbarrier.init.b64 [%rd1], 1;",
        "elect.sync %r1|%p1, -1;",
        "shfl.sync.sideways.b32 %r1, %r2, 1, 31, -1;",
        "bar.red.popc.u32 %r1, 0, %p1;",
        "barrier.cluster.arrive;",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, {%r1, %r2, %r3, %r4};",
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.bf16.f32 {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7}, {%r1, %r2, %r3, %r4};",
        "ret 1;",
    ] {
        let found = error(statement);
        let name = statement.split([' ', ';']).next().unwrap_or_default();
        assert!(found.starts_with(&format!("line 7 of the program: {name}: ")), "{found}");
    }
}
