//! Damaged configurations, logs and measurements: whatever its contents, a file is read or refused,
//! and nothing panics. `ENTRESOL_SEED` replaces the seeds.

mod exercise;

use entresol_workload::Random;

const FILES_PER_SEED: usize = 300;

const CONFIGURATIONS: [&str; 4] = [
    include_str!("../vectors/storage_us.conf"),
    include_str!("../vectors/storage_histogram.conf"),
    include_str!("../vectors/legacy_v4.0.conf"),
    include_str!("../vectors/index_basic.conf"),
];
const LOGS: [&str; 3] = [
    include_str!("../vectors/storage_us.out"),
    include_str!("../vectors/lag_service.out"),
    include_str!("../vectors/legacy_v4.0.out"),
];
const MEASUREMENTS: [&str; 3] = [
    include_str!("../vectors/server_log.txt"),
    "{ns}-device-read-size\nslice-to (sec) 1 2 4 ops/sec\n avg 100.00 5.00 0.00 12.5\n",
    "Device r/s w/s rkB/s wkB/s\nsda 10.0 2.0 100.0 256.0\n\n0, 12, 0, 4096\n7, 12, 1, 131072\n",
];

fn seeds() -> Vec<u64> {
    match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => (0..8).collect(),
    }
}

fn damage(file: &mut Vec<u8>, random: &mut Random) {
    const PIECES: [&[u8]; 16] = [
        b"-1",
        b"4294967296",
        b"18446744073709551616",
        b" : ",
        b"\0",
        b"#",
        b"\n",
        b"\n\n",
        b"\xff",
        b"after 2 sec:\n",
        b" (64: 18446744073709551615)\n",
        b"reads (0 total)\n",
        b"1e999",
        b"nan",
        b"rules: 5/1 1/8",
        b"no-defrag-reads: yes\n",
    ];
    for _ in 0..1 + random.below(5) {
        let length = file.len() as u64;
        let at = random.below(length + 1) as usize;
        let end = (at + random.below(30) as usize).min(file.len());
        match random.below(5) {
            0 if at < file.len() => file[at] ^= 1 << random.below(8),
            1 => drop(file.drain(at..end)),
            2 => {
                let copy = file[at..end].to_vec();
                file.splice(at..at, copy);
            }
            3 => file.truncate(at),
            _ => {
                let piece = PIECES[random.below(PIECES.len() as u64) as usize];
                file.splice(at..at, piece.iter().copied());
            }
        }
    }
}

fn with_damaged(files: &[&str], exercise: fn(&[u8])) {
    for seed in seeds() {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        for _ in 0..FILES_PER_SEED {
            let mut file = files[random.below(files.len() as u64) as usize].as_bytes().to_vec();
            exercise(&file);
            damage(&mut file, &mut random);
            exercise(&file);
        }
    }
}

#[test]
fn damaged_configurations_are_refused_or_mean_to_act_what_they_mean_to_us() {
    with_damaged(&CONFIGURATIONS, exercise::configuration);
}

#[test]
fn damaged_logs_give_tables_whose_figures_can_be() {
    with_damaged(&LOGS, exercise::log);
}

#[test]
fn damaged_measurements_give_no_histogram_that_cannot_be() {
    with_damaged(&MEASUREMENTS, exercise::measurement);
}
