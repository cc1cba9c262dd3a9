//! Matrices between registers and shared memory, and products of four warps.

use half::f16;

use super::*;

#[test]
fn small_matrices_are_spread_over_lanes_and_brought_back_turned() {
    // 256 numbers of 16 bits; every lane names a row of one of four matrices.
    let body = "
        mov.u32 %r5, dynamic; shl.b32 %r6, %r1, 4; add.s32 %r6, %r5, %r6; mul.wide.u32 %rd4, %r1, 16; add.s64 %rd4, %rd1, %rd4;
        ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd4]; st.shared.v4.u32 [%r6], {%r10, %r11, %r12, %r13}; bar.sync 0;
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r14, %r15, %r16, %r17}, [%r6];
        stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r6+512], {%r14, %r15, %r16, %r17}; bar.sync 0;
        shl.b32 %r7, %r1, 2; add.s32 %r7, %r5, %r7;
        st.global.u32 [%rd3], %r14; st.global.u32 [%rd3+128], %r17;
        ld.shared.u32 %r8, [%r7+512]; st.global.u32 [%rd3+256], %r8;";
    let words: Vec<u32> = (0..128).map(|word| word * 0x2_0002 + 0x1_0000).collect();
    let found = run(body, 1, 32, 1, &words).unwrap();
    // A lane has two neighbours of a row: these are the words in their order.
    assert_eq!(found[..32], words[..32]);
    assert_eq!(found[32..64], words[96..]);
    // Rows of the first matrix have become columns.
    let turned = |row: u32, column: u32| column * 8 + row;
    let expected: Vec<u32> = (0..32)
        .map(|word| (word / 4, word % 4 * 2))
        .map(|(row, column)| turned(row, column) | turned(row, column + 1) << 16)
        .collect();
    assert_eq!(found[64..96], expected);
}

/// Checks a product of 64 rows, 16 numbers each, with eight columns. What is given is done before the product is waited for.
fn product(between: &str) -> Result<(), Fault> {
    const WORDS: usize = 72 * 32;
    let left = |row: usize, k: usize| (row * 5 + k * 3) as f32 % 17.0 - 8.0;
    let right = |column: usize, k: usize| (column + k * 7) as f32 % 13.0 - 6.0;
    // Rows of 128 bytes, whose chunks of 16 have changed places.
    let mut words = vec![0; WORDS];
    for row in 0..72 {
        for k in 0..16 {
            let value = if row < 64 { left(row, k) } else { right(row - 64, k) };
            let chunk = (k / 8) ^ (row % 8);
            let bits = u32::from(f16::from_f32(value).to_bits());
            words[row * 32 + chunk * 4 + k % 8 / 2] |= bits << (k % 2 * 16);
        }
    }
    let body = format!(
        "mov.u32 %r5, dynamic; mov.u32 %r6, 0; shl.b32 %r7, %r1, 2; add.s32 %r7, %r5, %r7;
        COPY: ld.global.u32 %r8, [%rd3]; st.shared.u32 [%r7], %r8; add.s64 %rd3, %rd3, 512; add.s32 %r7, %r7, 512;
        add.s32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 18; @%p1 bra COPY;
        fence.proxy.async.shared::cta; bar.sync 0;
        shr.u32 %r9, %r5, 4; cvt.u64.u32 %rd4, %r9; or.b64 %rd4, %rd4, 0x4000004000010000; add.s64 %rd5, %rd4, 512;
        mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0; mov.u32 %r13, 0; setp.ne.u32 %p2, %r10, 0;
        wgmma.fence.sync.aligned;
        wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%r10, %r11, %r12, %r13}}, %rd4, %rd5, %p2, 1, 1, 0, 0;
        wgmma.commit_group.sync.aligned; {between} wgmma.wait_group.sync.aligned 0;
        mul.wide.u32 %rd6, %r1, 16; add.s64 %rd6, %rd1, %rd6; st.global.v4.u32 [%rd6], {{%r10, %r11, %r12, %r13}};"
    );
    let found = run(&body, 1, 128, 1, &words)?;
    for thread in 0..128 {
        for index in 0..4 {
            let row = thread / 32 * 16 + thread % 32 / 4 + index / 2 * 8;
            let column = thread % 4 * 2 + index % 2;
            let expected: f32 = (0..16).map(|k| left(row, k) * right(column, k)).sum();
            let sum = f32::from_bits(found[thread * 4 + index]);
            assert_eq!(sum, expected, "row {row}, column {column}");
        }
    }
    Ok(())
}

#[test]
fn four_warps_multiply_what_lies_in_shared_memory() {
    product("").unwrap();
}

#[test]
fn operands_stay_until_the_product_was_waited_for() {
    // A row of the left side, by the warp that has it, and the last column of the right one.
    for (warp, place) in [(1, 17 * 128 + 16), (0, 71 * 128 + 7 * 16)] {
        let write = format!(
            "shr.u32 %r14, %r1, 5; setp.eq.u32 %p3, %r14, {warp}; @%p3 st.shared.u32 [%r5+{place}], 0x7777;"
        );
        let early = product(&write).unwrap_err().to_string();
        assert!(early.contains("operands were overwritten before they were multiplied"), "{early}");
    }
    // What lies between the operands' rows is nobody's operand.
    product("st.shared.u32 [%r5+64], 0x7777;").unwrap();
}
