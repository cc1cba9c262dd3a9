//! Small programs, each with one thing that a launch must get right.

mod refusals;

use super::*;

const HEAD: &str = ".version 9.0\n.target sm_90a\n.address_size 64\n";

/// Runs a kernel of one parameter, the address of some words, and gives back these.
fn run(
    body: &str,
    grid: u32,
    threads: u32,
    cluster: u32,
    words: &[u32],
) -> Result<Vec<u32>, Fault> {
    let text = format!(
        "{HEAD}.extern .shared .align 16 .b8 dynamic[];\n.visible .entry k(.param .u64 k_param_0)\n{{\n\
         .reg .pred %p<8>; .reg .b32 %r<32>; .reg .f32 %f<8>; .reg .b64 %rd<16>;\n\
         ld.param.u64 %rd1, [k_param_0]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n\
         mad.lo.s32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2;\n\
         {body}\nret;\n}}\n"
    );
    let program = Program::parse(&text).unwrap();
    let shape = ([grid, 1, 1], [threads, 1, 1], [cluster, 1, 1]);
    launched_as(&program, shape, words)
}

/// One thread of the kernel of a program.
fn launched(program: &Program, words: &[u32]) -> Result<Vec<u32>, Fault> {
    launched_as(program, ([1; 3], [1; 3], [1; 3]), words)
}

type Shape = ([u32; 3], [u32; 3], [u32; 3]);

fn launched_as(
    program: &Program,
    (grid, threads, cluster): Shape,
    words: &[u32],
) -> Result<Vec<u32>, Fault> {
    let memory = Memory::new(1 << 20);
    let address = memory.allocate(4 * words.len() as u64).unwrap();
    let bytes = DeviceMemory::new(&memory).at(address, 4 * words.len()).unwrap();
    words.iter().enumerate().for_each(|(index, word)| bytes.write(index * 4, 4, (*word).into()));
    let launch = Launch {
        kernel: program.kernel("k").unwrap(),
        grid,
        threads,
        cluster,
        shared_bytes: 1024,
        parameters: &address.to_ne_bytes(),
        sms: &[0, 1],
    };
    launch.run(&memory)?;
    Ok((0..words.len()).map(|index| bytes.read(index * 4, 4) as u32).collect())
}

fn fault(body: &str, threads: u32) -> String {
    run(body, 1, threads, 1, &[0; 64]).unwrap_err().to_string()
}

#[test]
fn lanes_go_different_ways_and_meet_again() {
    // A lane doubles one as often as its number says, and all of a warp add what they have.
    let body = "
        and.b32 %r5, %r1, 31; mov.u32 %r6, 1; mov.u32 %r7, 0;
        LOOP: setp.ge.u32 %p1, %r7, %r5; @%p1 bra DONE;
        shl.b32 %r6, %r6, 1; add.s32 %r7, %r7, 1; bra.uni LOOP;
        DONE: mov.u32 %r8, 16;
        SUM: shfl.sync.bfly.b32 %r9|%p2, %r6, %r8, 31, -1; add.s32 %r6, %r6, %r9;
        shr.u32 %r8, %r8, 1; setp.ne.s32 %p3, %r8, 0; @%p3 bra SUM;
        st.global.u32 [%rd3], %r6;";
    let found = run(body, 3, 64, 1, &[7; 192]).unwrap();
    assert_eq!(found, [u32::MAX; 192]);
}

#[test]
fn constants_are_read_by_their_names() {
    let text = format!(
        "{HEAD}.const .align 4 .u32 first = 7;\n.global .align 4 .s16 list[4] = {{-1, 2, 0x30}};\n\
         .visible .entry k(.param .u64 k_param_0)\n{{\n.reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .b16 %h<2>;\n\
         ld.param.u64 %rd1, [k_param_0]; mov.u64 %rd2, list; cvta.global.u64 %rd3, %rd2; ld.const.u32 %r1, [first];\n\
         ld.global.u32 %r2, [%rd2]; ld.s16 %h1, [%rd3+4]; cvt.s32.s16 %r3, %h1; ld.global.u16 %r4, [%rd2+6];\n\
         st.global.v4.u32 [%rd1], {{%r1, %r2, %r3, %r4}};\nret;\n}}\n"
    );
    let program = Program::parse(&text).unwrap();
    assert_eq!(launched(&program, &[9; 4]).unwrap(), [7, 0x2_FFFF, 0x30, 0]);
    let outside = text.replace("[%rd2+6]", "[%rd2+8]");
    let fault = launched(&Program::parse(&outside).unwrap(), &[9; 4]).unwrap_err().to_string();
    assert!(fault.contains("2 bytes at 12 of Constants"), "{fault}");
    assert!(Program::parse(&text.replace("list[4]", "list[2]")).is_err());
}

#[test]
fn sums_and_products_are_rounded_as_they_say() {
    // One and a third of the last place beyond it, and ten times a tenth.
    let body = "
        mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f332AAAAB; mov.f32 %f3, 0f41200000; mov.f32 %f4, 0f3DCCCCCD;
        add.rz.f32 %f5, %f1, %f2; st.global.f32 [%rd1], %f5; add.rp.f32 %f5, %f1, %f2; st.global.f32 [%rd1+4], %f5;
        sub.rz.f32 %f5, %f2, %f1; st.global.f32 [%rd1+8], %f5; sub.rm.f32 %f5, %f2, %f1; st.global.f32 [%rd1+12], %f5;
        mul.rz.f32 %f5, %f3, %f4; st.global.f32 [%rd1+16], %f5; mul.rp.f32 %f5, %f3, %f4; st.global.f32 [%rd1+20], %f5;";
    let found = run(body, 1, 1, 1, &[0; 6]).unwrap();
    assert_eq!(
        found,
        [0x3F80_0000, 0x3F80_0001, 0xBF7F_FFFF, 0xBF80_0000, 0x3F80_0000, 0x3F80_0001]
    );
}

#[test]
fn numbers_less_than_normal_ones_are_zero_where_that_is_asked_for() {
    let body = "
        mov.f32 %f1, 0fC3020000; ex2.approx.f32 %f2, %f1; st.global.f32 [%rd1], %f2;
        ex2.approx.ftz.f32 %f2, %f1; st.global.f32 [%rd1+4], %f2;
        mov.f32 %f1, 0f80000001; rcp.approx.ftz.f32 %f2, %f1; st.global.f32 [%rd1+8], %f2;";
    assert_eq!(run(body, 1, 1, 1, &[7; 3]).unwrap(), [1 << 19, 0, 0xFF80_0000]);
}

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

/// Words from device memory to shared memory by the copy engine, and from there to where they belong. What stands in for `{wait}`
/// waits for them.
fn copied(wait: &str) -> Result<Vec<u32>, Fault> {
    let body = "
        .shared .align 8 .b8 barrier[8];
        mov.u32 %r5, dynamic; mov.u32 %r6, barrier; setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
        mbarrier.init.shared::cta.b64 [%r6], 1;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 128;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd1], 128, [%r6];
        READY: bar.sync 0; {wait}
        shl.b32 %r7, %r1, 2; add.s32 %r7, %r5, %r7; ld.shared.u32 %r8, [%r7]; add.s32 %r8, %r8, 1;
        setp.eq.u32 %p2, %r2, 0; @%p2 ret; st.global.u32 [%rd3], %r8;"
        .replace("{wait}", wait);
    let words: Vec<u32> = (0..64).collect();
    run(&body, 2, 32, 1, &words)
}

#[test]
fn what_the_copy_engine_brings_is_there_when_it_was_waited_for() {
    let wait = "{ .reg .pred done; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%r6], 0; @!done bra AGAIN; }";
    let expected: Vec<u32> = (0..32).chain(1..33).collect();
    assert_eq!(copied(wait).unwrap(), expected);
    // Who does not wait finds what was never written, at least in some blocks.
    assert_ne!(copied("").unwrap(), expected);
}

#[test]
fn who_only_asks_is_answered_and_who_waits_in_vain_is_told() {
    let body = |asks: &str| {
        format!(
            "mov.u32 %r5, dynamic; mbarrier.init.shared::cta.b64 [%r5], 1;
            mbarrier.{asks}.parity.shared::cta.b64 %p1, [%r5], 0; selp.b32 %r6, 1, 0, %p1;
            mbarrier.arrive.shared::cta.b64 _, [%r5];
            mbarrier.{asks}.parity.shared::cta.b64 %p1, [%r5], 0; selp.b32 %r7, 1, 0, %p1;
            st.global.u32 [%rd3], %r6; st.global.u32 [%rd3+4], %r7;"
        )
    };
    assert_eq!(run(&body("test_wait"), 1, 1, 1, &[7; 2]).unwrap(), [0, 1]);
    assert!(fault(&body("try_wait"), 1).contains("nobody can go on"));
}

#[test]
fn what_must_not_be_done_is_told_with_its_place() {
    let outside = fault("st.global.u32 [%rd3+4096], %r1;", 1);
    assert!(
        outside.starts_with("kernel k, line 10 of its PTX, block [0, 0, 0], thread 0: 4 bytes at"),
        "{outside}"
    );
    let shared = fault("mov.u32 %r5, dynamic; ld.shared.u32 %r6, [%r5+1024];", 1);
    assert!(shared.contains("of Shared are no memory of the kernel"), "{shared}");
    let crooked = fault("ld.global.u32 %r5, [%rd3+2];", 1);
    assert!(crooked.contains("no multiple of 4"), "{crooked}");
    let forever = fault("bar.sync 1, 64;", 32);
    assert!(forever.contains("nobody can go on: block 0 warp 0 at barrier 1"), "{forever}");
    assert!(fault("trap;", 1).contains("stopped itself"));
}
