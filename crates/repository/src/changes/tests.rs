use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::repository::Entry;
use crate::samples::{broken, model, repository};

/// What is served: models that can be, and settings.
type Served = (BTreeMap<String, Model>, Option<Settings>);

fn served(repository: &Repository) -> Served {
    let models = repository.models().map(|(name, model)| (name.to_string(), model.clone()));
    (models.collect(), repository.settings.settings.clone())
}

fn applied(changes: &[Change], (mut models, mut settings): Served) -> Served {
    for change in changes.iter().cloned() {
        match change {
            Change::Settings { settings: new, .. } => settings = new.map(|new| *new),
            Change::Added { name, model } => assert_eq!(models.insert(name, model), None),
            Change::Removed { name } => assert!(models.remove(&name).is_some()),
            Change::Changed { name, model, .. } => assert!(models.insert(name, model).is_some()),
        }
    }
    (models, settings)
}

#[test]
fn each_change_says_what_it_takes() {
    let old = repository(
        &[
            ("gone", model(&[(1, 1)], None).into()),
            ("grown", model(&[(1, 1), (2, 1)], None).into()),
            ("same", model(&[(1, 1)], None).into()),
            ("valued", model(&[(1, 1)], None).into()),
        ],
        "",
    );
    let grown = model(&[(2, 9), (3, 1)], None);
    let valued = model(&[(1, 1)], None);
    let new = repository(
        &[
            ("grown", grown.clone().into()),
            ("new", model(&[(1, 1)], None).into()),
            ("same", model(&[(1, 1)], None).into()),
            ("valued", valued.clone().into()),
        ],
        "[models.valued]\nweight = 2\n[server]\nlog = 'debug'",
    );
    let found = changes(&old, &new);
    let [Change::Settings { tables, .. }, rest @ ..] = found.as_slice() else {
        panic!("settings come first: {found:?}");
    };
    assert_eq!(tables, &[SettingsTable::Server, SettingsTable::Models]);
    assert_eq!(
        rest,
        [
            Change::Removed { name: "gone".into() },
            Change::Changed {
                name: "grown".into(),
                model: grown,
                loaded_anew: [2, 3].into(),
                is_agreed_anew: false,
            },
            Change::Added { name: "new".into(), model: model(&[(1, 1)], None) },
            Change::Changed {
                name: "valued".into(),
                model: valued,
                loaded_anew: BTreeSet::new(),
                is_agreed_anew: true,
            },
        ]
    );
}

#[test]
fn settings_that_move_within_their_file_are_the_same() {
    let entries = [("a", Entry::from(model(&[(1, 1)], None)))];
    let old = repository(&entries, "[models.a]\nweight = 2");
    let new = repository(&entries, "# Moved.\n\n[models.a]\nweight = 2.0");
    assert_eq!(changes(&old, &new), []);
}

#[test]
fn what_agrees_with_a_default_is_no_change_of_the_model() {
    let entries = [("a", Entry::from(model(&[(1, 1)], None)))];
    let old = repository(&entries, "");
    let new = repository(&entries, "[models.a]\nweight = 1");
    assert!(matches!(changes(&old, &new).as_slice(), [Change::Settings { .. }]));
}

prop_compose! {
    fn any_model()(
        versions in prop::collection::btree_map(1u64..4, 1u64..3, 1..3),
        max_batch_size in prop::option::of(1u32..3),
    ) -> Entry {
        let versions: Vec<(u64, u64)> = versions.into_iter().collect();
        model(&versions, max_batch_size).into()
    }
}

prop_compose! {
    fn any_repository()(
        entries in prop::collection::btree_map(
            prop::sample::select(vec!["a", "b", "c"]),
            prop_oneof![4 => any_model(), 1 => Just(broken())],
            0..4,
        ),
        toml in prop::sample::select(vec![
            "", "[models.a]\nweight = 2", "[defaults]\nslo_ms = 5", "[models.b]\nslo_ms = 5", "broken",
        ]),
    ) -> Repository {
        let entries: Vec<(&str, Entry)> = entries.into_iter().collect();
        repository(&entries, toml)
    }
}

proptest! {
    #[test]
    fn changes_lead_from_the_old_state_to_the_new(old in any_repository(), new in any_repository()) {
        let found = changes(&old, &new);
        prop_assert_eq!(applied(&found, served(&old)), served(&new));
    }

    #[test]
    fn nothing_changes_between_equal_states(state in any_repository()) {
        prop_assert_eq!(changes(&state, &state), []);
    }

    #[test]
    fn every_model_that_is_agreed_about_anew_is_named(
        old in any_repository(), new in any_repository(),
    ) {
        let found = changes(&old, &new);
        for (name, _) in new.models() {
            let is_other =
                old.model(name) != new.model(name) || old.model_settings(name) != new.model_settings(name);
            let is_named = found.iter().any(|change| match change {
                Change::Added { name: named, .. } | Change::Changed { name: named, .. } => named == name,
                _ => false,
            });
            prop_assert_eq!(is_other, is_named, "{}", name);
        }
    }

    #[test]
    fn what_worked_is_kept_and_never_taken_for_gone(old in any_repository(), new in any_repository()) {
        let kept = new.clone().keeping_what_worked(&old);
        for change in changes(&old, &kept) {
            match change {
                Change::Removed { name } => prop_assert!(!new.entries.contains_key(&name)),
                Change::Settings { settings, .. } => prop_assert!(settings.is_some()),
                _ => {}
            }
        }
    }
}
