use std::collections::VecDeque;

use super::*;
use crate::repository::Entry;
use crate::samples::{broken, model, repository};

fn sized(length: u64) -> Entry {
    model(&[(1, length)], None).into()
}

/// Everything that a watch from an empty repository yields over these looks, by the number of the look that it came with.
fn yielded(
    looks: Vec<Result<Repository, ScanError>>,
) -> Vec<(usize, Result<Repository, ScanError>)> {
    let from = repository(&[], "");
    let mut left: VecDeque<_> = looks.into();
    let count = left.len();
    let waits = std::cell::Cell::new(0);
    let wait = |_| {
        waits.set(waits.get() + 1);
        if waits.get() > count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let look = || left.pop_front().expect("as many looks as waits");
    let watch = Watch::new(from, DEFAULT_INTERVAL, look, wait);
    watch.map(|outcome| (waits.get(), outcome)).collect()
}

#[test]
fn a_file_that_still_grows_is_not_taken_and_holds_up_no_other() {
    let look = |growing: u64| Ok(repository(&[("big", sized(growing)), ("small", sized(1))], ""));
    let all = yielded(vec![look(1), look(2), look(3), look(3), look(3)]);
    assert_eq!(
        all,
        [
            (2, Ok(repository(&[("small", sized(1))], ""))),
            (4, Ok(repository(&[("big", sized(3)), ("small", sized(1))], ""))),
        ]
    );
}

#[test]
fn a_model_that_is_replaced_stays_until_the_new_one_is_whole() {
    let look = |length: u64| Ok(repository(&[("net", sized(length))], ""));
    let all = yielded(vec![look(9), look(9), look(1), look(5), look(7), look(7)]);
    assert_eq!(all, [(2, look(9)), (6, look(7))]);
}

#[test]
fn what_is_gone_for_two_looks_is_gone_and_what_blinks_is_not() {
    let with = || Ok(repository(&[("net", sized(1))], ""));
    let without = || Ok(repository(&[], ""));
    let all = yielded(vec![with(), with(), without(), with(), with(), without(), without()]);
    assert_eq!(all, [(2, with()), (7, without())]);
}

#[test]
fn what_breaks_stays_as_it_was_with_its_problem() {
    let good = || Ok(repository(&[("net", sized(1))], "[models.net]\nweight = 2"));
    let bad = || Ok(repository(&[("net", broken())], "wrong"));
    let all = yielded(vec![good(), good(), bad(), bad(), bad(), good(), good()]);
    assert_eq!(all.len(), 3, "{all:?}");
    let (4, Ok(kept)) = &all[1] else { panic!("{all:?}") };
    assert_eq!(kept.model("net"), good().unwrap().model("net"));
    assert_eq!(kept.model_settings("net").unwrap().weight, 2.0);
    assert_eq!(kept.all_problems().count(), 2);
    assert_eq!(all[2], (7, good()));
}

#[test]
fn settings_are_taken_when_they_stay_the_same() {
    let look = |toml| Ok(repository(&[], toml));
    let all = yielded(vec![
        look("[defaults]\nweight = 1"),
        look("[defaults]\nweight = 12"),
        look("[defaults]\nweight = 12"),
    ]);
    assert_eq!(all, [(3, look("[defaults]\nweight = 12"))]);
}

#[test]
fn a_folder_that_cannot_be_read_is_said_once_and_changes_nothing() {
    let error = || Err(ScanError { root: "models".into(), reason: "is away".into() });
    let look = || Ok(repository(&[("net", sized(1))], ""));
    let all = yielded(vec![look(), look(), error(), error(), look(), error(), look()]);
    assert_eq!(all, [(2, look()), (3, error()), (6, error())]);
}

#[test]
fn nothing_is_yielded_while_nothing_changes() {
    let look = || Ok(repository(&[], ""));
    assert_eq!(yielded(vec![look(), look(), look()]), []);
}
