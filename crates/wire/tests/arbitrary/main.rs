//! Damaged streams of commands: whatever a peer sends, the decoder makes progress, keeps its limits
//! and does not panic. `ENTRESOL_SEED` replaces the seeds.

mod decode;
mod nbd;

use decode::decode;
use entresol_random::SplitMix;
use entresol_wire::nbd::{
    ClientHandshake, ClientOptions, Command, CommandFlags, ReplyEncoder, ReplyStyle, ReplyTo,
    Request,
};
use entresol_wire::resp::Limits;

const STREAMS_PER_SEED: usize = 1000;

fn seeds() -> Vec<u64> {
    match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => (0..16).collect(),
    }
}

/// A stream of well-formed commands, some inline.
fn well_formed(random: &mut SplitMix) -> Vec<u8> {
    let mut stream = Vec::new();
    for _ in 0..1 + random.index(8) {
        if random.index(4) == 0 {
            stream.extend_from_slice(b"SET \"a key\" 'it''s' \\x41 plain\r\n");
            continue;
        }
        let arguments = 1 + random.index(6);
        stream.extend_from_slice(format!("*{arguments}\r\n").as_bytes());
        for _ in 0..arguments {
            let length = random.index(40);
            stream.extend_from_slice(format!("${length}\r\n").as_bytes());
            stream.extend((0..length).map(|_| random.next_u64() as u8));
            stream.extend_from_slice(b"\r\n");
        }
    }
    stream
}

fn damage(stream: &mut Vec<u8>, random: &mut SplitMix) {
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
    for _ in 0..1 + random.index(6) {
        let at = random.index(stream.len().max(1)).min(stream.len());
        let end = (at + random.index(12)).min(stream.len());
        match random.index(5) {
            0 if at < stream.len() => stream[at] ^= 1 << random.index(8),
            1 => drop(stream.drain(at..end)),
            2 => {
                let copy = stream[at..end].to_vec();
                stream.splice(at..at, copy);
            }
            3 => stream.truncate(at),
            _ => {
                let piece = INTERESTING[random.index(INTERESTING.len())];
                stream.splice(at..at, piece.iter().copied());
            }
        }
    }
}

#[test]
fn damaged_streams_neither_panic_nor_stall_nor_pass_a_limit() {
    for seed in seeds() {
        println!("seed {seed}");
        let mut random = SplitMix::new(seed);
        for _ in 0..STREAMS_PER_SEED {
            let mut stream = well_formed(&mut random);
            damage(&mut stream, &mut random);
            let tight = Limits {
                bulk_bytes_max: 24,
                arguments_max: 4,
                line_bytes_max: 64,
                ..Limits::default()
            };
            decode(&stream, tight, &mut || 1 + random.index(30));
            decode(&stream, Limits::default(), &mut || 1 + random.index(30));
        }
    }
}

/// A stream of what one side of NBD sends: a handshake, requests or replies.
fn well_formed_nbd(random: &mut SplitMix) -> Vec<u8> {
    let styles = [ReplyStyle::Simple, ReplyStyle::Structured, ReplyStyle::Extended];
    let style = styles[random.index(3)];
    let to = ReplyTo { cookie: 1, offset: random.index(64) as u64 };
    let mut stream = Vec::new();
    match random.index(4) {
        0 => {
            let mut client = ClientHandshake::new(ClientOptions::export("volume"));
            let greeting = b"NBDMAGICIHAVEOPT\0\x03";
            client.step(greeting, &mut stream).expect("a sound greeting");
            for option in [5_u32, 8, 10, 7] {
                stream.extend_from_slice(b"IHAVEOPT");
                stream.extend_from_slice(&option.to_be_bytes());
                let data: &[u8] = match option {
                    7 => b"\0\0\0\x06volume\0\x01\0\x03",
                    10 => b"\0\0\0\x06volume\0\0\0\x01\0\0\0\x0fbase:allocation",
                    _ => b"",
                };
                stream.extend_from_slice(&(data.len() as u32).to_be_bytes());
                stream.extend_from_slice(data);
            }
        }
        1 => {
            stream.extend_from_slice(b"NBDMAGICIHAVEOPT\0\x03");
            let answers: [(u32, u32, &[u8]); 5] = [
                (5, 1 << 31 | 1, b"no"),
                (11, 1, b""),
                (10, 4, b"\0\0\0\x01base:allocation"),
                (10, 1, b""),
                (7, 3, b"\0\0\0\0\0\0\0\x10\0\0\0\x01"),
            ];
            for (option, kind, data) in answers {
                stream.extend_from_slice(&0x0003_e889_0455_65a9_u64.to_be_bytes());
                for number in [option, kind, data.len() as u32] {
                    stream.extend_from_slice(&number.to_be_bytes());
                }
                stream.extend_from_slice(data);
            }
        }
        2 => {
            let command = Command::ALL[random.index(8)];
            let flags = CommandFlags(1 << random.index(7));
            let request = Request::new(command, 1, 0, random.index(64) as u64).with_flags(flags);
            request.encode(style, &mut stream).expect("a short length");
        }
        _ => {
            let encoder = ReplyEncoder::new(style);
            let length = 1 + random.index(40) as u32;
            encoder.data(to, length, &mut stream);
            stream.resize(stream.len() + length as usize, 7);
            if style != ReplyStyle::Simple {
                encoder.hole(to, length, &mut stream);
                encoder.status(to, 1, &[(4096, 1), (512, 0)], &mut stream);
            }
            encoder.done(to, &mut stream);
        }
    }
    stream
}

#[test]
fn damaged_streams_of_nbd_neither_panic_nor_stall_nor_pass_a_limit() {
    for seed in seeds() {
        println!("seed {seed}");
        let mut random = SplitMix::new(seed);
        for _ in 0..STREAMS_PER_SEED {
            let mut stream = match random.index(8) {
                0 => b"nbd+unix://u@h:1/ex%20port?socket=/s&tls-type=x509".to_vec(),
                _ => well_formed_nbd(&mut random),
            };
            nbd::exercise(&stream);
            damage(&mut stream, &mut random);
            nbd::exercise(&stream);
        }
    }
}
