//! Damaged streams of commands: whatever a peer sends, the decoder makes progress, keeps its limits
//! and does not panic. `ENTRESOL_SEED` replaces the seeds.

mod decode;
#[path = "../random/mod.rs"]
mod random;

use decode::decode;
use entresol_wire::resp::Limits;
use random::Random;

const STREAMS_PER_SEED: usize = 1000;

fn seeds() -> Vec<u64> {
    match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => (0..16).collect(),
    }
}

/// A stream of well-formed commands, some inline.
fn well_formed(random: &mut Random) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..1 + random.below(8) {
        if random.below(4) == 0 {
            stream.extend_from_slice(b"SET \"a key\" 'it''s' \\x41 plain\r\n");
            continue;
        }
        let arguments = 1 + random.below(6);
        stream.extend_from_slice(format!("*{arguments}\r\n").as_bytes());
        for _ in 0..arguments {
            let length = random.below(40);
            stream.extend_from_slice(format!("${length}\r\n").as_bytes());
            stream.extend((0..length).map(|_| random.next() as u8));
            stream.extend_from_slice(b"\r\n");
        }
    }
    stream
}

fn damage(stream: &mut Vec<u8>, random: &mut Random) {
    const INTERESTING: [&[u8]; 10] = [
        b"-1",
        b"*-1\r\n",
        b"$-2\r\n",
        b"9223372036854775808",
        b"2147483648",
        b"\r",
        b"\n\n",
        b"\0",
        b"*1048577\r\n",
        b"$536870913\r\n",
    ];
    for _ in 0..1 + random.below(6) {
        let at = random.below(stream.len().max(1)).min(stream.len());
        let end = (at + random.below(12)).min(stream.len());
        match random.below(5) {
            0 if at < stream.len() => stream[at] ^= 1 << random.below(8),
            1 => drop(stream.drain(at..end)),
            2 => {
                let copy = stream[at..end].to_vec();
                stream.splice(at..at, copy);
            }
            3 => stream.truncate(at),
            _ => {
                let piece = INTERESTING[random.below(INTERESTING.len())];
                stream.splice(at..at, piece.iter().copied());
            }
        }
    }
}

#[test]
fn damaged_streams_neither_panic_nor_stall_nor_pass_a_limit() {
    for seed in seeds() {
        println!("seed {seed}");
        let mut random = Random(seed);
        for _ in 0..STREAMS_PER_SEED {
            let mut stream = well_formed(&mut random);
            damage(&mut stream, &mut random);
            let tight = Limits {
                bulk_bytes_max: 24,
                arguments_max: 4,
                line_bytes_max: 64,
                ..Limits::default()
            };
            decode(&stream, tight, &mut || 1 + random.below(30));
            decode(&stream, Limits::default(), &mut || 1 + random.below(30));
        }
    }
}
