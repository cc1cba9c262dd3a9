//! Copies that go on beside the threads that ask for them, and barriers that tell when they have come.

use super::*;
use crate::tensor_map::Copied;

const ASKS: &str =
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd1], 128, [%r6];";
const WAITS: &str = "{ .reg .pred done; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%r6], 0; @!done bra AGAIN; }";

/// Words from device memory to shared memory by the copy engine, and from there, with one added, to where they belong: in the second
/// block alone, where copies are late.
fn copied(asks: &str, before: &str, after: &str) -> Result<Vec<u32>, Fault> {
    let body = format!(
        "
        .shared .align 8 .b8 barrier[8];
        mov.u32 %r5, dynamic; mov.u32 %r6, barrier; setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
        mbarrier.init.shared::cta.b64 [%r6], 1;
        mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 128;
        {asks}
        READY: bar.sync 0; {before}
        shl.b32 %r7, %r1, 2; add.s32 %r7, %r5, %r7; ld.shared.u32 %r8, [%r7]; add.s32 %r8, %r8, 1;
        {after} setp.eq.u32 %p2, %r2, 0; @%p2 ret; st.global.u32 [%rd3], %r8;"
    );
    let words: Vec<u32> = (0..64).collect();
    run(&body, 2, 32, 1, &words).map(|found| found[32..].to_vec())
}

#[test]
fn what_the_copy_engine_brings_is_there_when_it_was_waited_for() {
    let expected: Vec<u32> = (1..33).collect();
    assert_eq!(copied(ASKS, WAITS, "").unwrap(), expected);
    assert_eq!(copied(ASKS, &WAITS.replace("try_wait", "test_wait"), "").unwrap(), expected);
    // What was never written, and one more.
    let nothing = [0; 32];
    assert_eq!(copied(ASKS, "", WAITS).unwrap(), nothing);
    let once = "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r6], 0;";
    assert_eq!(copied(ASKS, once, WAITS).unwrap(), nothing);
}

#[test]
fn a_copy_that_goes_wrong_later_is_told_of_where_it_was_asked_for() {
    let found = copied(ASKS, "", "").unwrap_err().to_string();
    let expected = "kernel k, line 15 of its PTX, block [1, 0, 0], thread 0: shared memory of block [1, 0, 0] is used, which has ended";
    assert_eq!(found, expected);
    let outside = copied(&ASKS.replace("[%rd1]", "[64]"), WAITS, "").unwrap_err().to_string();
    assert!(outside.starts_with("kernel k, line 15 of its PTX, block ["), "{outside}");
    assert!(outside.ends_with("128 bytes at 0x40, which is no memory"), "{outside}");
}

#[test]
fn barriers_that_copies_tell_are_where_they_must_be() {
    let asks = |change: &str| format!("{change} {}", ASKS.replace("[%r6]", "[%r7]"));
    let crooked = copied(&asks("add.s32 %r7, %r6, 4;"), WAITS, "").unwrap_err().to_string();
    assert!(crooked.contains("a barrier at 0x") && crooked.contains("multiple of 8"), "{crooked}");
    let other = copied(&asks("mapa.shared::cluster.u32 %r7, %r6, 1;"), WAITS, "");
    assert!(other.unwrap_err().to_string().contains("that another one is told of"));
    let far = format!(
        "mapa.shared::cluster.u32 %r5, %r5, 1; {}",
        asks("mapa.shared::cluster.u32 %r7, %r6, 1;")
    );
    assert!(copied(&far, WAITS, "").unwrap_err().to_string().contains("a copy to block 1 of 1"));
}

#[test]
fn who_only_asks_is_answered_and_who_waits_in_vain_is_told() {
    let body = |asks: &str| {
        format!(
            "mov.u32 %r5, dynamic; mbarrier.init.shared::cta.b64 [%r5], 1;
            {asks} selp.b32 %r6, 1, 0, %p1;
            mbarrier.arrive.shared::cta.b64 _, [%r5];
            {asks} selp.b32 %r7, 1, 0, %p1;
            st.global.u32 [%rd3], %r6; st.global.u32 [%rd3+4], %r7;"
        )
    };
    let once = "mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r5], 0;";
    assert_eq!(run(&body(once), 1, 1, 1, &[7; 2]).unwrap(), [0, 1]);
    let again =
        "{ AGAIN: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r5], 0; @!%p1 bra AGAIN; }";
    let vain = fault(&body(again), 1);
    assert_eq!(vain, "kernel k, nobody can go on: block 0 warp 0 waiting, line 11");
    let unknown = fault(&format!("mov.u32 %r5, dynamic; {once}"), 1);
    assert!(unknown.contains("it was never started"), "{unknown}");
}

#[test]
fn copies_of_threads_come_group_after_group() {
    let body = |left: u32| {
        format!(
            "mov.u32 %r5, dynamic; cp.async.ca.shared.global [%r5], [%rd1], 4; cp.async.commit_group;
            cp.async.ca.shared.global [%r5+4], [%rd1+4], 4, 0; cp.async.commit_group; cp.async.wait_group {left};
            ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd1], %r6; ld.shared.u32 %r6, [%r5+4]; st.global.u32 [%rd1+4], %r6;"
        )
    };
    let nothing = u32::MAX;
    for (left, expected) in [(0, [5, 0]), (1, [5, nothing]), (2, [nothing; 2])] {
        assert_eq!(run(&body(left), 1, 1, 1, &[5, 6]).unwrap(), expected);
    }
}

/// Copies the upper half of a tensor of 16 rows of 32 words to shared memory, and from there to its lower half. What stands in for
/// `{between}` is done before that, and for `{after}` behind it.
fn moved(between: &str, after: &str) -> Result<Vec<u32>, Fault> {
    let body = format!(
        ".shared .align 8 .b8 barrier[8];
        mov.u32 %r5, dynamic; mov.u32 %r6, barrier; setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;
        mbarrier.init.shared::cta.b64 [%r6], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 1024;
        cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r5], [%rd8, {{0, 0}}], [%r6];
        {WAITS} {between}
        cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd8, {{0, 8}}], [%r5];
        cp.async.bulk.commit_group; {after}
        DONE: bar.sync 0; "
    );
    let words: Vec<u32> = (0..512).collect();
    let map = |base| {
        Some(TensorMap {
            base,
            element_bytes: 4,
            sizes: vec![32, 16],
            strides_bytes: vec![128],
            copied: Copied::Box(vec![32, 8]),
            swizzle_bytes: 128,
        })
    };
    launched_as(&program(&body), ([1; 3], [32, 1, 1], [1; 3]), &words, &map)
}

const READ: &str = "cp.async.bulk.wait_group.read 0;";

#[test]
fn boxes_lie_in_shared_memory_in_their_pattern() {
    let expected: Vec<u32> = (0..256).chain(0..256).collect();
    assert_eq!(moved("", READ).unwrap(), expected);
    // The third row's first chunk of four words lies where its third one would.
    let mark = "st.shared.u32 [%r5+288], 9;";
    let mut marked = expected;
    marked[256 + 64] = 9;
    assert_eq!(moved(mark, READ).unwrap(), marked);
    let crooked = moved("add.s32 %r5, %r5, 64;", READ).unwrap_err().to_string();
    assert!(crooked.contains("which is no multiple of 128"), "{crooked}");
}

#[test]
fn what_is_stored_stays_until_it_has_been_read() {
    let write = "st.shared.u32 [%r5+512], 9;";
    moved("", &format!("{READ} {write}")).unwrap();
    let early = moved("", &format!("{write} {READ}")).unwrap_err().to_string();
    assert!(early.contains("what is stored was overwritten before it was read"), "{early}");
    for after in ["", "ret;", "cp.async.bulk.wait_group.read 1;"] {
        let ended = moved("", after).unwrap_err().to_string();
        assert!(ended.contains("thread 0: a thread ends before what it stores"), "{ended}");
    }
}
