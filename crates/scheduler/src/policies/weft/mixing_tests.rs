use super::mixing::*;
use crate::identity::{GroupId, MixId, ModelId};
use crate::policies::random_devices::device_with;
use crate::policy::{Action, NoMix, PartitionId};
use crate::served::ServedDevice;
use crate::serving::{Serving, ServingPartition};
use crate::time::{Span, Time};
use crate::unit_mask::UnitMask;

fn at(ms: f64) -> Time {
    Time::START + Span::from_us(ms * 1e3)
}

/// Models of a bit less than a millisecond each, what is asked of them, and what is looked at.
struct Served {
    device: ServedDevice,
    serving: Serving,
    mixing: Mixing,
    present: Vec<ServingPartition>,
    is_pressed: bool,
}

impl Served {
    fn new(models: usize) -> Self {
        Self::with(models, |_| {})
    }

    fn with(models: usize, change: impl FnOnce(&mut ServedDevice)) -> Self {
        let mut device = device_with(&vec![(100.0, 50.0); models], 4);
        change(&mut device);
        let units = UnitMask::range(0, device.units);
        let whole = ServingPartition { id: PartitionId(0), units, models: device.all_models() };
        Self {
            serving: Serving::new(device.clone()),
            device,
            mixing: Mixing::default(),
            present: vec![whole],
            is_pressed: false,
        }
    }

    /// What is done while models are asked each ten milliseconds, each so many milliseconds after that.
    fn come(&mut self, asked: &[(u32, f64)], from_s: f64, to_s: f64) -> Vec<Action> {
        let mut actions = Vec::new();
        let mut begin_ms = from_s * 1e3;
        while begin_ms < to_s * 1e3 {
            for &(model, after_ms) in asked {
                self.mixing.arrive(ModelId(model), at(begin_ms + after_ms));
            }
            let (device, present, is_pressed) = (&self.device, &self.present[..], self.is_pressed);
            let look = Look { device, present, is_pressed, now: at(begin_ms + 9.0) };
            self.mixing.look(&look, &mut self.serving, &mut actions);
            begin_ms += 10.0;
        }
        actions
    }

    fn regulated(&mut self, mix: u32, share: Result<f64, NoMix>, at_s: f64) -> bool {
        let (present, serving) = (&self.present, &mut self.serving);
        self.mixing.regulated(MixId(mix), share, present, at(at_s * 1e3), serving)
    }
}

/// Which mixes are asked for, and of which models.
fn asked(actions: &[Action]) -> Vec<(u32, Vec<u32>)> {
    let regulated = actions.iter().filter_map(|action| match action {
        Action::Regulate { mix, models, .. } => {
            Some((mix.0, models.iter().map(|(model, _)| model.0).collect()))
        }
        _ => None,
    });
    regulated.collect()
}

const TOGETHER: [(u32, f64); 2] = [(0, 0.0), (1, 0.1)];

#[test]
fn what_gains_nothing_is_regulated_once() {
    let mut served = Served::new(3);
    assert_eq!(served.come(&TOGETHER, 0.0, 1.1), [], "a layout for rounds comes first");
    assert!(served.mixing.load(at(1099.0)).is_some());
    assert_eq!(asked(&served.come(&TOGETHER, 1.1, 1.2)), [(0, vec![0, 1])]);
    assert_eq!(served.come(&TOGETHER, 1.2, 2.0), [], "it is on its way");
    assert!(!served.regulated(0, Err(NoMix::GainsNothing), 2.0));
    assert_eq!(served.come(&TOGETHER, 2.0, 3.0), []);
    // Where requests are lost it may take more, once.
    served.is_pressed = true;
    assert_eq!(served.come(&TOGETHER, 3.0, 11.9), [], "it may be lost for it");
    let pressed = served.come(&TOGETHER, 11.9, 12.1);
    assert!(matches!(pressed[..], [Action::Regulate { may_hold_up: true, .. }]), "{pressed:?}");
    assert!(!served.regulated(1, Err(NoMix::GainsNothing), 12.2));
    assert_eq!(served.come(&TOGETHER, 12.2, 30.0), []);
    // Another one is another matter.
    let second = served.come(&[(1, 0.0), (2, 0.0)], 30.0, 33.0);
    assert_eq!(asked(&second), [(2, vec![1, 2])]);
    assert!(served.regulated(2, Ok(0.6), 33.0));
    let mixed = served.mixing.load(at(33e3)).and_then(|load| load.mixed);
    assert_eq!(mixed, Some(0.6));
}

#[test]
fn what_recurs_no_more_is_dropped() {
    for (others, partitions) in [
        // Its models are asked in another way, or others are.
        ([(0, 0.0), (0, 3.0)], 0),
        ([(2, 0.0), (2, 3.0)], 0),
        ([(2, 0.0), (2, 3.0)], 1),
    ] {
        let mut served = Served::new(3);
        served.present.truncate(partitions);
        assert_eq!(served.come(&TOGETHER, 0.0, 2.0).len(), 1);
        assert!(served.regulated(0, Ok(0.6), 2.0));
        assert_eq!(served.come(&TOGETHER, 2.0, 3.0), []);
        assert_eq!(served.come(&others, 3.0, 7.9), [], "{others:?}");
        assert_eq!(served.come(&others, 7.9, 8.1), [Action::Forget(MixId(0))], "{others:?}");
        assert_eq!(served.mixing.load(at(8.1e3)), None);
        // Should it come again, all begins anew.
        assert_eq!(asked(&served.come(&TOGETHER, 8.1, 10.0)), [(1, vec![0, 1])]);
    }
}

#[test]
fn a_round_that_grows_is_another_mix() {
    let mut served = Served::new(3);
    assert_eq!(asked(&served.come(&TOGETHER, 0.0, 2.0)), [(0, vec![0, 1])]);
    assert!(served.regulated(0, Ok(0.6), 2.0));
    let grown = served.come(&[(0, 0.0), (1, 0.1), (2, 0.2)], 2.0, 4.0);
    assert_eq!(grown[0], Action::Forget(MixId(0)));
    assert_eq!(asked(&grown[1..]), [(1, vec![0, 1, 2])]);
}

#[test]
fn what_is_regulated_while_its_rounds_end_is_asked_for_no_more() {
    let mut served = Served::new(3);
    assert_eq!(asked(&served.come(&TOGETHER, 0.0, 2.0)), [(0, vec![0, 1])]);
    assert_eq!(served.come(&[(0, 0.0), (0, 3.0), (1, 6.0)], 2.0, 6.9), []);
    assert!(served.mixing.load(at(6.9e3)).is_some());
    let over = served.come(&[(0, 0.0), (0, 3.0), (1, 6.0)], 6.9, 7.1);
    assert_eq!(over, [Action::Forget(MixId(0))]);
    assert_eq!(served.mixing.load(at(7.1e3)), None);
    assert!(!served.regulated(0, Ok(0.6), 7.2), "it comes too late");
    assert_eq!(served.mixing.load(at(7.2e3)), None);
}

#[test]
fn a_mix_without_room_is_asked_for_again_a_minute_later() {
    // At once, or after it was ready for a while.
    for was_ready in [false, true] {
        let mut served = Served::new(2);
        assert_eq!(asked(&served.come(&TOGETHER, 0.0, 2.0)), [(0, vec![0, 1])]);
        if was_ready {
            assert!(served.regulated(0, Ok(0.6), 2.0));
            assert!(served.mixing.load(at(2e3)).is_some_and(|load| load.mixed.is_some()));
        }
        assert_eq!(served.regulated(0, Err(NoMix::NoRoom), 2.0), was_ready);
        let mixed = |served: &Served| served.mixing.load(at(2e3)).map(|load| load.mixed);
        assert_eq!(mixed(&served), Some(None), "its rounds come all the same");
        served.is_pressed = true;
        assert_eq!(served.come(&TOGETHER, 2.0, 61.9), []);
        assert_eq!(asked(&served.come(&TOGETHER, 61.9, 62.1)), [(1, vec![0, 1])]);
    }
}

#[test]
fn a_larger_round_that_gains_nothing_leaves_the_mix_of_its_part() {
    let three = [(0, 0.0), (1, 0.1), (2, 0.2)];
    for was_of_use in [true, false] {
        let mut served = Served::new(3);
        assert_eq!(asked(&served.come(&TOGETHER, 0.0, 2.0)), [(0, vec![0, 1])]);
        let share = if was_of_use { Ok(0.6) } else { Err(NoMix::GainsNothing) };
        assert_eq!(served.regulated(0, share, 2.0), was_of_use);
        assert_eq!(asked(&served.come(&three, 2.0, 4.0)), [(1, vec![0, 1, 2])]);
        assert!(!served.regulated(1, Err(NoMix::GainsNothing), 4.0));
        let again = asked(&served.come(&three, 4.0, 6.0));
        if was_of_use {
            assert_eq!(again, [(2, vec![0, 1])]);
            assert!(served.regulated(2, Ok(0.6), 6.0));
        } else {
            assert_eq!(again, []);
        }
        assert_eq!(served.come(&three, 6.0, 20.0), [], "and so it stays");
    }
}

#[test]
fn as_many_mixes_in_vain_are_remembered_as_there_is_room_for() {
    let mut served = Served::new(9);
    let pairs = (0..9).flat_map(|one| (0..one).map(move |other| (other, one)));
    let pairs: Vec<(u32, u32)> = pairs.take(33).collect();
    let ask = |served: &mut Served, number: usize, (one, other): (u32, u32)| {
        let begin_s = number as f64 * 10.0;
        let asked = asked(&served.come(&[(one, 0.0), (other, 0.1)], begin_s, begin_s + 3.0));
        for (mix, models) in &asked {
            assert_eq!(*models, [one, other]);
            served.regulated(*mix, Err(NoMix::GainsNothing), begin_s + 3.0);
        }
        !asked.is_empty()
    };
    for (number, &pair) in pairs.iter().enumerate() {
        assert!(ask(&mut served, number, pair), "{pair:?}");
    }
    assert!(!ask(&mut served, 33, pairs[32]), "it is remembered");
    assert!(ask(&mut served, 34, pairs[0]), "it is not");
}

#[test]
fn only_what_comes_closer_than_a_mix_may_gain_is_together() {
    // Three models one after the answers to another; two together with a third that comes as often, before them and after them.
    for (comes, expected) in [
        (&[(0, 0.0), (1, 1.0), (2, 2.0)][..], None),
        (&[(0, 0.0), (1, 0.3), (2, 0.6)], Some(vec![0, 1, 2])),
        (&[(0, 0.0), (1, 0.3), (2, 3.0)], Some(vec![0, 1])),
        (&[(0, 0.0), (1, 3.0), (2, 3.3)], Some(vec![1, 2])),
    ] {
        let mixes = asked(&Served::new(3).come(comes, 0.0, 2.0));
        let models = mixes.into_iter().map(|(_, models)| models).next();
        assert_eq!(models, expected, "{comes:?}");
    }
}

#[test]
fn models_without_an_objective_or_in_a_group_are_in_no_mix() {
    for change in [
        |device: &mut ServedDevice| device.models[1].slo = None,
        |device: &mut ServedDevice| device.models[1].group = Some(GroupId(1)),
    ] {
        assert_eq!(Served::with(2, change).come(&TOGETHER, 0.0, 2.0), []);
        let three = Served::with(3, change).come(&[(0, 0.0), (1, 0.1), (2, 0.2)], 0.0, 2.0);
        assert_eq!(asked(&three), [(0, vec![0, 2])]);
    }
}
