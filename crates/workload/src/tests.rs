//! Generators against the distributions they claim.

use crate::*;

const SEEDS: [u64; 4] = [1, 7, 42, 20_120_511];

/// Pearson's statistic over its degrees of freedom: about 1 where counts follow `expected`.
fn chi_square(counts: &[u64], expected: &[f64]) -> f64 {
    let sum: f64 = counts
        .iter()
        .zip(expected)
        .map(|(count, expected)| (*count as f64 - expected).powi(2) / expected)
        .sum();
    sum / (counts.len() as f64 - 1.0)
}

#[test]
fn uniform_keys_are_chosen_alike() {
    for seed in SEEDS {
        let mut random = Random::new(seed);
        let mut chooser = KeyChooser::new(Distribution::Uniform, 100);
        let mut counts = vec![0; 100];
        for _ in 0..200_000 {
            counts[chooser.next(&mut random) as usize] += 1;
        }
        let x = chi_square(&counts, &[2_000.0; 100]);
        assert!((0.5..1.7).contains(&x), "seed {seed}: {x}");
    }
}

#[test]
fn zipf_ranks_have_their_exact_shares() {
    for seed in SEEDS {
        for theta in [0.5, 0.99, 1.0, 1.2] {
            let keys = 1_000;
            let mut random = Random::new(seed);
            let mut chooser = KeyChooser::new(Distribution::Latest { theta }, keys);
            let mut counts = vec![0; keys as usize];
            let draws = 400_000;
            for _ in 0..draws {
                counts[(keys - 1 - chooser.next(&mut random)) as usize] += 1;
            }
            let weights: Vec<f64> = (1..=keys).map(|k| (k as f64).powf(-theta)).collect();
            let total: f64 = weights.iter().sum();
            let expected: Vec<f64> = weights.iter().map(|w| w / total * f64::from(draws)).collect();
            let x = chi_square(&counts, &expected);
            assert!((0.8..1.25).contains(&x), "seed {seed}, theta {theta}: {x}");
        }
    }
}

#[test]
fn scattered_zipf_has_the_shares_of_its_ranks() {
    for seed in SEEDS {
        let mut random = Random::new(seed);
        let mut chooser = KeyChooser::new(Distribution::Zipf { theta: 0.99 }, 5_000);
        let mut counts = vec![0u64; 5_000];
        for _ in 0..300_000 {
            counts[chooser.next(&mut random) as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let total: f64 = (1..=5_000).map(|k| f64::from(k).powf(-0.99)).sum();
        let top = counts[0] as f64 / 300_000.0;
        assert!((top * total - 1.0).abs() < 0.05, "seed {seed}: the first has {top}");
        let first_tenth: u64 = counts[..500].iter().sum();
        let expected: f64 = (1..=500).map(|k| f64::from(k).powf(-0.99)).sum::<f64>() / total;
        let share = first_tenth as f64 / 300_000.0;
        assert!((share - expected).abs() < 0.02, "seed {seed}: {share}, expected {expected}");
    }
}

#[test]
fn latest_follows_the_newest_key() {
    let mut random = Random::new(3);
    let mut chooser = KeyChooser::new(Distribution::Latest { theta: 0.99 }, 100);
    chooser.grow(10_000);
    let newest = (0..10_000).filter(|_| chooser.next(&mut random) >= 9_900).count();
    assert!(newest > 4_000, "{newest} of 10,000 among the newest hundred");
}

#[test]
fn hotspot_gets_its_share() {
    for seed in SEEDS {
        let mut random = Random::new(seed);
        let distribution = Distribution::Hotspot { keys: 0.1, choices: 0.7 };
        let mut chooser = KeyChooser::new(distribution, 1_000);
        let mut counts = vec![0u64; 1_000];
        for _ in 0..100_000 {
            counts[chooser.next(&mut random) as usize] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let hot: u64 = counts[..100].iter().sum();
        assert!((69_000..71_000).contains(&hot), "seed {seed}: {hot}");
        assert!(counts[999] > 0);
    }
}

#[test]
fn sequential_keys_go_around() {
    let mut random = Random::new(1);
    let mut chooser = KeyChooser::new(Distribution::Sequential, 3);
    let keys: Vec<u64> = (0..7).map(|_| chooser.next(&mut random)).collect();
    assert_eq!(keys, [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn a_permutation_meets_every_number_once() {
    for count in [1, 2, 3, 5, 64, 1_000, 65_537] {
        let permutation = Permutation::new(count, 9);
        let mut seen = vec![false; count as usize];
        for number in 0..count {
            let place = permutation.place(number) as usize;
            assert!(!seen[place], "{number} of {count} meets {place} again");
            seen[place] = true;
        }
    }
}

#[test]
fn key_bytes_name_their_id() {
    for id in [0, 1, 255, 1 << 40, (1 << 60) - 1] {
        assert_eq!(key_id(&key_bytes(id)), Some(id));
    }
    assert_eq!(key_id(b"k00"), None);
    assert_eq!(key_id(b"kzzzzzzzzzzzzzzz"), None);
}

#[test]
fn distributions_read_back_what_they_print() {
    for text in ["uniform", "zipf:0.9", "latest:1.1", "hotspot:0.2:0.8", "sequential"] {
        let distribution: Distribution = text.parse().unwrap();
        assert_eq!(distribution.to_string(), text);
    }
    for text in ["", "zipf:x", "zipf:-1", "hotspot:0.2", "hotspot:2:0.1", "gauss", "zipf:inf"] {
        let error = text.parse::<Distribution>().unwrap_err();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn sizes_stay_within_their_bounds_and_near_their_mean() {
    for text in ["1700", "100-3000", "lognormal:300:1.2:20000"] {
        let sizes: Sizes = text.parse().unwrap();
        assert_eq!(sizes.to_string(), text);
        let mut random = Random::new(5);
        let mut sum = 0.0;
        for _ in 0..50_000 {
            let size = sizes.next(&mut random);
            assert!(size <= sizes.max());
            sum += f64::from(size);
        }
        let mean = sum / 50_000.0;
        assert!((mean / sizes.mean() - 1.0).abs() < 0.05, "{text}: {mean}");
    }
    for text in ["9-1", "lognormal:300:NaN:20000", "lognormal:300:-1:20000"] {
        assert!(text.parse::<Sizes>().is_err(), "{text}");
    }
}

#[test]
fn schedules_keep_their_rate() {
    for arrivals in [Arrivals::Even(1_000.0), Arrivals::Poisson(1_000.0)] {
        let mut random = Random::new(11);
        let mut schedule = Schedule::new(arrivals);
        let mut last = 0;
        for _ in 0..20_000 {
            let due = schedule.next(&mut random).unwrap();
            assert!(due >= last);
            last = due;
        }
        let seconds = last as f64 / 1e9;
        assert!((seconds - 20.0).abs() < 0.6, "{arrivals:?}: {seconds} s");
    }
    assert_eq!(Schedule::new(Arrivals::Closed).next(&mut Random::new(1)), None);
}

#[test]
fn mixes_add_up_and_keep_their_shares() {
    for mix in YCSB {
        let shares = [mix.reads, mix.updates, mix.inserts, mix.scans, mix.read_modify_writes];
        assert_eq!(shares.iter().map(|s| u32::from(*s)).sum::<u32>(), 100, "{}", mix.name);
        let mut random = Random::new(2);
        let reads = (0..100_000).filter(|_| mix.next(&mut random) == Action::Read).count();
        let share = reads as f64 / 1_000.0;
        assert!((share - f64::from(mix.reads)).abs() < 1.0, "{}: {share}", mix.name);
    }
}

#[test]
fn values_verify_only_as_they_were_put() {
    let values = Values::new(1);
    for length in [0, 1, 8, 9, 15, 16, 17, 1_700, 300_000] {
        let mut value = vec![0; length];
        values.fill(9, 4, &mut value);
        let put = values.verify(9, length, &value).unwrap();
        if length >= 16 {
            assert_eq!(put, 4);
        }
        // Values of 9 to 15 bytes were right whatever they held.
        assert_eq!(values.verify(8, length, &value).is_err(), length > 0, "{length}");
        if length > 16 {
            let middle = 16 + (length - 16) / 2;
            value[middle] ^= 1;
            let error = values.verify(9, length, &value).unwrap_err();
            assert_eq!(error, VerifyError::Changed { id: 9, put: 4 });
        }
        assert!(values.verify(9, length + 1, &value).is_err());
    }
}

#[test]
fn values_at_or_above_a_threshold_are_counted() {
    let mut recorder = Recorder::new();
    for value in [0, 999_000, 1_000_000, 1_200_000, 70_000_000, u64::MAX] {
        recorder.record(value);
    }
    let counts = [0, 1, 1_000_000, 1_100_000, 64_000_000, u64::MAX]
        .map(|threshold| recorder.count_at_least(threshold));
    assert_eq!(counts, [6, 5, 4, 3, 2, 0]);
    assert_eq!(Recorder::new().count_at_least(0), 0);
}

#[test]
fn a_summary_has_the_exact_moments() {
    let mut a = Recorder::new();
    let mut b = Recorder::new();
    for value in 1..=1_000u64 {
        if value % 2 == 0 { a.record(value) } else { b.record(value) }
    }
    a.merge(&b);
    let s = a.summary();
    assert_eq!((s.count, s.min, s.max), (1_000, 1, 1_000));
    assert_eq!(s.mean, 500.5);
    assert_eq!((s.p50, s.p90, s.p99, s.p999), (500, 900, 990, 999));
    assert!((s.standard_deviation - 288.67).abs() < 0.5, "{}", s.standard_deviation);
    let logarithms: f64 = (1..=1_000).map(|v| f64::from(v).ln_1p()).sum();
    assert!((s.geometric_mean - (logarithms / 1_000.0).exp_m1()).abs() < 0.5);
    assert_eq!(Recorder::new().summary(), Summary::default());
}

#[test]
fn grid_rounds_cover_every_iteration_once() {
    let grid = Grid { threads: 10, iterations: 1_001, payload_bytes: 10_000 };
    let slices: Vec<_> = (0..3).map(|round| grid.slice(round, 3)).collect();
    assert_eq!(slices[0].start, 0);
    assert_eq!(slices[0].end, slices[1].start);
    assert_eq!(slices[1].end, slices[2].start);
    assert_eq!(slices[2].end, 1_001);
    assert_eq!(grid.key(9, 1_000) + 1, grid.entries());
}

#[test]
fn extrapolation_scales_the_slopes() {
    let slopes = Slopes {
        memory_bytes_per_entry: 10.0,
        flash_bytes_per_entry: 1_800.0,
        fill: 0.75,
        load_per_second: 1e6,
        recover_per_second: Some((1e7, 1e8)),
    };
    let far = slopes.extrapolate(BIGMEMORY.entries);
    assert_eq!(far.memory_bytes, 2e10);
    assert_eq!(far.flash_bytes, 4.8e12);
    assert_eq!(far.load_seconds, 2_000.0);
    assert_eq!(far.open_seconds, Some((200.0, 20.0)));
}

#[test]
fn a_key_has_the_order_that_its_layout_says_and_tells_its_number() {
    for layout in [KeyLayout::Text, KeyLayout::Ascending, KeyLayout::Scattered] {
        for id in [0, 1, 255, 256, 1 << 40] {
            assert_eq!(layout.id(&layout.key(id)), Some(id), "{layout:?}");
        }
        assert_eq!(layout.id(b"of something else"), None);
    }
    let ascends = |layout: KeyLayout| (0..1000).all(|id| layout.key(id) < layout.key(id + 1));
    assert!(ascends(KeyLayout::Ascending) && !ascends(KeyLayout::Scattered));
}
