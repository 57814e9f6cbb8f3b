//! Properties of the RESP decoder: chunking changes nothing, and no bytes make it panic or exceed
//! its limits.

use entresol_random::SplitMix;
use entresol_wire::resp::{Decoded, Decoder, Limits, ProtocolError};

type Commands = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// Decodes `stream` in pieces whose sizes `piece` chooses, as a connection would.
fn decode_chunked(stream: &[u8], mut piece: impl FnMut() -> usize) -> Commands {
    let mut decoder = Decoder::new(Limits::default());
    let mut commands = Vec::new();
    let (mut buffer, mut sent) = (Vec::new(), 0);
    loop {
        match decoder.decode(&buffer) {
            Err(error) => return (commands, Some(error)),
            Ok(Decoded::Incomplete { needed }) => {
                assert!(needed > buffer.len(), "a decoder must ask for more than it has");
                if sent == stream.len() {
                    return (commands, None);
                }
                let end = (sent + piece()).min(stream.len());
                buffer.extend_from_slice(&stream[sent..end]);
                sent = end;
            }
            Ok(Decoded::Empty { consumed }) => {
                assert!(consumed > 0);
                buffer.drain(..consumed);
            }
            Ok(Decoded::Command { consumed }) => {
                let arguments = decoder.arguments(&buffer);
                assert!(!arguments.is_empty());
                commands.push(arguments.from(0).map(<[u8]>::to_vec).collect());
                buffer.drain(..consumed);
            }
        }
    }
}

fn decode_whole(stream: &[u8]) -> Commands {
    decode_chunked(stream, || usize::MAX / 2)
}

fn encode(command: &[Vec<u8>]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", command.len()).into_bytes();
    for argument in command {
        out.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// Bytes that look like RESP often enough to reach every state.
fn plausible_bytes(random: &mut SplitMix, length: usize) -> Vec<u8> {
    let pieces: [&[u8]; 20] = [
        b"*",
        b"$",
        b"\r\n",
        b"\r",
        b"\n",
        b"1",
        b"0",
        b"-1",
        b"3",
        b"GET",
        b" ",
        b"\"",
        b"'",
        b"\\x4",
        b"\\",
        b"\0",
        b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
        b"999999999999",
        b"\xff",
        b"$3\r\nabc\r\n",
    ];
    let mut bytes = Vec::new();
    while bytes.len() < length {
        if random.index(10) == 0 {
            bytes.push(random.next_u64() as u8);
        } else {
            bytes.extend_from_slice(pieces[random.index(pieces.len())]);
        }
    }
    bytes
}

#[test]
fn encoded_commands_decode_to_themselves_whatever_the_chunking() {
    for seed in 0..200 {
        let mut random = SplitMix::new(seed);
        let commands: Vec<Vec<Vec<u8>>> = (0..1 + random.index(8))
            .map(|_| {
                (0..1 + random.index(6))
                    .map(|_| {
                        let length = random.index(40);
                        (0..length).map(|_| random.next_u64() as u8).collect()
                    })
                    .collect()
            })
            .collect();
        let stream: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
        assert_eq!(decode_whole(&stream), (commands.clone(), None), "seed {seed}");
        let chunked = decode_chunked(&stream, || 1 + random.index(7));
        assert_eq!(chunked, (commands, None), "seed {seed}");
    }
}

#[test]
fn any_bytes_give_the_same_commands_and_error_whatever_the_chunking() {
    for seed in 0..3000 {
        let mut random = SplitMix::new(seed);
        let length = 1 + random.index(300);
        let stream = plausible_bytes(&mut random, length);
        let whole = decode_whole(&stream);
        assert_eq!(decode_chunked(&stream, || 1), whole, "seed {seed}, byte by byte");
        let chunked = decode_chunked(&stream, || 1 + random.index(50));
        assert_eq!(chunked, whole, "seed {seed}, random pieces");
    }
}

#[test]
fn random_bytes_never_panic() {
    for seed in 0..3000 {
        let mut random = SplitMix::new(seed ^ 0xABCD);
        let stream: Vec<u8> = (0..random.index(500)).map(|_| random.next_u64() as u8).collect();
        decode_chunked(&stream, || 1 + random.index(64));
    }
}

#[test]
fn protocol_errors_have_the_texts_of_redis() {
    let long_line = vec![b'a'; (64 << 10) + 1];
    let long_count = [b"*".as_slice(), &vec![b'1'; (64 << 10) + 1]].concat();
    let long_length = [b"*1\r\n$".as_slice(), &vec![b'1'; (64 << 10) + 1]].concat();
    for (stream, text) in [
        (b"*a\r\n".as_slice(), "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*99999999999999999999\r\n", "invalid multibulk length"),
        (b"*1\r\n:1\r\n", "expected '$', got ':'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$99999999999\r\n", "invalid bulk length"),
        (b"SET \"a\r\n", "unbalanced quotes in request"),
        (b"SET 'a'b\r\n", "unbalanced quotes in request"),
        (&long_line, "too big inline request"),
        (&long_count, "too big mbulk count string"),
        (&long_length, "too big bulk count string"),
    ] {
        let (_, error) = decode_whole(stream);
        let shown = error.map(|error| error.to_string());
        assert_eq!(shown.as_deref(), Some(format!("Protocol error: {text}").as_str()));
    }
}

#[test]
fn an_unauthenticated_peer_is_held_to_less() {
    let error = |stream: &[u8]| {
        Decoder::new(Limits::UNAUTHENTICATED).decode(stream).map_err(|error| error.to_string())
    };
    assert_eq!(
        error(b"*11\r\n"),
        Err("Protocol error: unauthenticated multibulk length".to_owned())
    );
    assert_eq!(
        error(b"*1\r\n$16385\r\n"),
        Err("Protocol error: unauthenticated bulk length".to_owned())
    );
}

#[test]
fn announced_lengths_reserve_no_memory() {
    let mut decoder = Decoder::new(Limits::default());
    let decoded = decoder.decode(b"*1048576\r\n$67108864\r\n").unwrap();
    assert_eq!(decoded, Decoded::Incomplete { needed: 21 + 67_108_864 + 2 });
    assert!(format!("{decoder:?}").len() < 1000);
}

/// A command of more than 2^20 arguments was refused, which redis-server takes.
#[test]
fn as_many_arguments_are_taken_as_the_longest_command_has_room_for() {
    let decoded = |count: usize, limits: Limits| {
        let mut bytes = format!("*{count}\r\n").into_bytes();
        (0..count).for_each(|_| bytes.extend_from_slice(b"$1\r\nx\r\n"));
        let mut decoder = Decoder::new(limits);
        let decoded = decoder.decode(&bytes);
        assert!(decoder.held_bytes() <= 2 * limits.request_bytes_max);
        decoded.map(|_| decoder.arguments(&bytes).len())
    };
    assert_eq!(decoded(1_100_000, Limits::default()), Ok(1_100_000));
    let small = Limits { request_bytes_max: 1 << 20, ..Limits::default() };
    // Seven bytes each, and eight in the list of them.
    assert_eq!(decoded(69_000, small), Ok(69_000));
    assert_eq!(decoded(70_000, small), Err(ProtocolError::RequestTooLong));
}

#[test]
fn inline_commands_undo_quotes_and_escapes() {
    let (commands, error) =
        decode_whole(b"set k \"a\\x41\\n\\\"b\" 'c\\'d' ''\r\n\r\n*0\r\n*-1\r\nPING\n");
    assert_eq!(error, None);
    let expected: [&[&[u8]]; 2] = [&[b"set", b"k", b"aA\n\"b", b"c'd", b""], &[b"PING"]];
    assert_eq!(commands, expected);
}
