//! What threads of a block and blocks of a cluster see of each other.

use super::*;

#[test]
fn shared_memory_begins_where_programs_count_on_it() {
    for (alignment, expected) in [(4, 8), (1024, 1024)] {
        let text = format!(
            "{HEAD}.extern .shared .align {alignment} .b8 dynamic[];\n.visible .entry k(.param .u64 k_param_0)\n{{\n\
             .reg .b32 %r<4>; .reg .b64 %rd<4>; .shared .align 4 .b8 own[8];\n\
             ld.param.u64 %rd1, [k_param_0]; mov.u32 %r1, dynamic; mov.u32 %r2, own; sub.s32 %r3, %r1, %r2;\n\
             st.global.u32 [%rd1], %r3;\nret;\n}}\n"
        );
        assert_eq!(launched(&Program::parse(&text).unwrap(), &[0]).unwrap(), [expected]);
    }
}

#[test]
fn threads_of_a_block_see_what_others_wrote_before_a_barrier() {
    let body = "
        mov.u32 %r5, dynamic; shl.b32 %r6, %r1, 2; add.s32 %r7, %r5, %r6;
        add.s32 %r8, %r4, 100; st.shared.u32 [%r7], %r8;
        bar.sync 0;
        sub.s32 %r9, %r3, 1; sub.s32 %r9, %r9, %r1; shl.b32 %r9, %r9, 2; add.s32 %r9, %r5, %r9;
        ld.shared.u32 %r10, [%r9]; st.global.u32 [%rd3], %r10;";
    let found = run(body, 2, 96, 1, &[0; 192]).unwrap();
    let expected: Vec<u32> =
        [0, 96].iter().flat_map(|block| (0..96).map(move |it| 195 + block - it)).collect();
    assert_eq!(found, expected);
}

#[test]
fn some_threads_arrive_at_a_barrier_and_others_wait_for_them() {
    let body = "
        mov.u32 %r5, dynamic; setp.lt.u32 %p1, %r1, 32; @%p1 bra WAIT;
        st.shared.u32 [%r5], 42; bar.arrive 3, 64; ret;
        WAIT: bar.sync 3, 64; ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd3], %r6;";
    let found = run(body, 1, 64, 1, &[0; 64]).unwrap();
    assert_eq!(found[..32], [42; 32]);
}

#[test]
fn blocks_of_a_cluster_read_each_others_memory() {
    let body = "
        mov.u32 %r5, dynamic; add.s32 %r6, %r2, 10; st.shared.u32 [%r5], %r6;
        barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
        mov.u32 %r7, %cluster_ctarank; xor.b32 %r7, %r7, 1; mapa.shared::cluster.u32 %r8, %r5, %r7;
        ld.shared::cluster.u32 %r9, [%r8]; st.global.u32 [%rd3], %r9;
        barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;";
    let found = run(body, 4, 32, 2, &[0; 128]).unwrap();
    let blocks: Vec<u32> = found.chunks(32).map(|block| block[5]).collect();
    assert_eq!(blocks, [11, 10, 13, 12]);
}

#[test]
fn blocks_add_to_the_same_word() {
    let body = "
        mov.u32 %r6, 0; AGAIN: atom.global.add.u32 %r5, [%rd1], 1; add.u32 %r6, %r6, 1;
        setp.lt.u32 %p1, %r6, 100; @%p1 bra AGAIN;";
    assert_eq!(run(body, 8, 64, 1, &[0]).unwrap(), [8 * 64 * 100]);
}

#[test]
fn who_compares_and_swaps_may_write_numbers_out() {
    let body = "
        atom.global.cas.b32 %r5, [%rd1], -1, 7; st.global.u32 [%rd1+4], %r5; atom.global.exch.b32 %r6, [%rd1], -2;
        atom.global.cas.b32 %r7, [%rd1], 7, 9; st.global.u32 [%rd1+8], %r7;";
    assert_eq!(run(body, 1, 1, 1, &[u32::MAX; 3]).unwrap(), [u32::MAX - 1, u32::MAX, u32::MAX - 1]);
}

#[test]
fn a_part_of_a_warp_can_wait_at_some_barriers_alone() {
    let body = |barrier: &str| {
        format!(
            "mov.u32 %r5, dynamic; and.b32 %r6, %r1, 31; setp.ge.u32 %p1, %r6, 16; @%p1 bra DONE;
            setp.eq.u32 %p2, %r1, 0; @%p2 st.shared.u32 [%r5], 9; {barrier} 1, 32;
            ld.shared.u32 %r7, [%r5]; st.global.u32 [%rd3], %r7; DONE: bar.sync 0;"
        )
    };
    let found = run(&body("barrier.sync"), 1, 64, 1, &[0; 64]).unwrap();
    assert_eq!((&found[..16], &found[32..48]), (&[9; 16][..], &[9; 16][..]));
    for whole in ["bar.sync", "barrier.sync.aligned", "barrier.cta.sync.aligned", "bar.arrive"] {
        assert!(fault(&body(whole), 64).contains("nobody can go on"), "{whole}");
    }
}

#[test]
fn the_shared_memory_of_a_block_that_has_ended_is_gone() {
    let body = "
        mov.u32 %r5, dynamic; mov.u32 %r7, %cluster_ctarank; setp.ne.u32 %p1, %r7, 0; @%p1 ret;
        mapa.shared::cluster.u32 %r8, %r5, 1; ld.shared::cluster.u32 %r9, [%r8];";
    let found = run(body, 2, 32, 2, &[0; 64]).unwrap_err().to_string();
    assert!(found.contains("memory of block [1, 0, 0] is used, which has ended"), "{found}");
}
