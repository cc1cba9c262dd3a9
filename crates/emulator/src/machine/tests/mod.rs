//! Small programs, each with one thing that a launch must get right.

mod copies;
mod matrices;
mod refusals;
mod shared;

use super::*;
use crate::tensor_map::TensorMap;

const HEAD: &str = ".version 9.0\n.target sm_90a\n.address_size 64\n";

/// Shared memory that launches ask for.
const SHARED_BYTES: u32 = 16 << 10;

/// Runs a kernel whose parameter is the address of some words, and gives back these.
fn run(
    body: &str,
    grid: u32,
    threads: u32,
    cluster: u32,
    words: &[u32],
) -> Result<Vec<u32>, Fault> {
    let shape = ([grid, 1, 1], [threads, 1, 1], [cluster, 1, 1]);
    launched_as(&program(body), shape, words, &|_| None)
}

/// A kernel whose parameters are the address of some words, also that of a thread's own, and a description of a tensor, which lies
/// at an address of any space.
fn program(body: &str) -> Program {
    let text = format!(
        "{HEAD}.extern .shared .align 1024 .b8 dynamic[];\n.visible .entry k(.param .u64 k_param_0, .param .align 64 .b8 k_param_1[128])\n{{\n\
         .reg .pred %p<8>; .reg .b32 %r<48>; .reg .f32 %f<8>; .reg .b64 %rd<16>; mov.b64 %rd8, k_param_1; cvta.param.u64 %rd8, %rd8;\n\
         ld.param.u64 %rd1, [k_param_0]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;\n\
         mad.lo.s32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2;\n\
         {body}\nret;\n}}\n"
    );
    Program::parse(&text).unwrap()
}

/// One thread of the kernel of a program.
fn launched(program: &Program, words: &[u32]) -> Result<Vec<u32>, Fault> {
    launched_as(program, ([1; 3], [1; 3], [1; 3]), words, &|_| None)
}

type Shape = ([u32; 3], [u32; 3], [u32; 3]);

fn launched_as(
    program: &Program,
    (grid, threads, cluster): Shape,
    words: &[u32],
    map: &dyn Fn(u64) -> Option<TensorMap>,
) -> Result<Vec<u32>, Fault> {
    const MAP: usize = 64;
    let memory = Memory::new(1 << 20);
    let address = memory.allocate(4 * words.len() as u64).unwrap();
    let bytes = DeviceMemory::new(&memory).at(address, 4 * words.len()).unwrap();
    words.iter().enumerate().for_each(|(index, word)| bytes.write(index * 4, 4, (*word).into()));
    let mut parameters = [0; MAP + 128];
    parameters[..8].copy_from_slice(&address.to_ne_bytes());
    if let Some(map) = map(address) {
        parameters[MAP..].copy_from_slice(&map.encode());
    }
    let launch = Launch {
        kernel: program.kernel("k").unwrap(),
        grid,
        threads,
        cluster,
        shared_bytes: SHARED_BYTES,
        parameters: &parameters,
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
fn numbers_less_than_normal_ones_are_zero_where_that_is_asked_for() {
    let body = "
        mov.f32 %f1, 0fC3020000; ex2.approx.f32 %f2, %f1; st.global.f32 [%rd1], %f2;
        ex2.approx.ftz.f32 %f2, %f1; st.global.f32 [%rd1+4], %f2;
        mov.f32 %f1, 0f80000001; rcp.approx.ftz.f32 %f2, %f1; st.global.f32 [%rd1+8], %f2;
        mov.f32 %f3, 0f3F800000; div.approx.ftz.f32 %f2, %f1, %f3; st.global.f32 [%rd1+12], %f2;";
    assert_eq!(run(body, 1, 1, 1, &[7; 4]).unwrap(), [1 << 19, 0, 0xFF80_0000, 1 << 31]);
}

#[test]
fn lanes_ask_each_other_for_what_they_have() {
    // Who is asked and not there is oneself.
    type Asked = fn(u32) -> Option<u32>;
    let cases: [(&str, Asked); 4] = [
        ("up.b32 %r5|%p1, %r1, 3, 0", |lane| lane.checked_sub(3)),
        ("down.b32 %r5|%p1, %r1, 3, 31", |lane| Some(lane + 3).filter(|lane| *lane < 32)),
        ("idx.b32 %r5|%p1, %r1, 5, 31", |_| Some(5)),
        // In each half by itself.
        ("down.b32 %r5|%p1, %r1, 15, 0x101f", |lane| Some(lane + 15).filter(|it| it % 16 == 15)),
    ];
    for (shuffle, asked) in cases {
        let body = format!(
            "shfl.sync.{shuffle}, -1; selp.b32 %r6, 100, 0, %p1; add.s32 %r5, %r5, %r6; st.global.u32 [%rd3], %r5;"
        );
        let expected: Vec<u32> =
            (0..32).map(|lane| asked(lane).map_or(lane, |from| from + 100)).collect();
        assert_eq!(run(&body, 1, 32, 1, &[0; 32]).unwrap(), expected, "{shuffle}");
    }
}

#[test]
fn who_asks_again_and_again_keeps_nobody_from_going_on() {
    // All threads of a few blocks add one to a word, one after another, though lanes that have the lock are ahead of those that want it.
    let body = "
        LOOP: atom.acquire.gpu.global.cas.b32 %r5, [%rd1], -1, 1; setp.ne.s32 %p1, %r5, -1; @%p1 bra LOOP;
        ld.global.u32 %r6, [%rd1+4]; add.s32 %r6, %r6, 1; st.global.u32 [%rd1+4], %r6;
        membar.gl; atom.global.exch.b32 %r5, [%rd1], -1;";
    assert_eq!(run(body, 3, 8, 1, &[u32::MAX, 0]).unwrap(), [u32::MAX, 24]);
}

#[test]
fn every_thread_has_memory_of_its_own() {
    let body = "
        .local .align 8 .b8 own[16];
        mov.u64 %rd4, own; st.local.u32 [%rd4+8], %r4; cvta.local.u64 %rd5, %rd4; bar.sync 0;
        ld.u32 %r5, [%rd5+8]; st.global.u32 [%rd3], %r5;";
    let expected: Vec<u32> = (0..128).collect();
    assert_eq!(run(body, 2, 64, 1, &[0; 128]).unwrap(), expected);
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
fn what_must_not_be_done_is_told_with_its_place() {
    let outside = fault("st.global.u32 [%rd3+4096], %r1;", 1);
    assert!(
        outside.starts_with("kernel k, line 10 of its PTX, block [0, 0, 0], thread 0: 4 bytes at"),
        "{outside}"
    );
    let shared = fault("mov.u32 %r5, dynamic; ld.shared.u32 %r6, [%r5+16384];", 1);
    assert!(shared.contains("of Shared are no memory of the kernel"), "{shared}");
    let crooked = fault("ld.global.u32 %r5, [%rd3+2];", 1);
    assert!(crooked.contains("no multiple of 4"), "{crooked}");
    let forever = fault("mov.u32 %r5, 0;\nbar.sync 1, 64;", 32);
    let expected = "kernel k, nobody can go on: block 0 warp 0 at barrier 1, line 11";
    assert_eq!(forever, expected);
    assert!(fault("trap;", 1).contains("stopped itself"));
}
