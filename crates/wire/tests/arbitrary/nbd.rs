//! A stream through every decoder of NBD, whatever it is. Shared with the targets of cargo-fuzz.

use entresol_wire::nbd::{
    Availability, BlockSizes, Chunk, ClientGoal, ClientHandshake, ClientOptions, ClientStep,
    Export, ExportFlags, Offer, ReadAssembly, ReplyHeader, ReplyStyle, Request, ServerHandshake,
    ServerStep, StatusFilter, TlsRule, TlsWish, Uri,
};

const STYLES: [ReplyStyle; 3] = [ReplyStyle::Simple, ReplyStyle::Structured, ReplyStyle::Extended];

/// Feeds `stream` to both handshakes, to the decoders of requests and replies, and to that of URIs;
/// panics where a promise is broken.
pub(crate) fn exercise(stream: &[u8]) {
    if let Ok(text) = std::str::from_utf8(stream)
        && let Ok(uri) = Uri::parse(text)
    {
        assert_eq!(Uri::parse(&uri.to_string()).as_ref(), Ok(&uri));
    }
    serve(stream);
    for goal in [ClientGoal::Export(String::new()), ClientGoal::List] {
        ask(stream, goal);
    }
    for style in STYLES {
        // Heads may be refused, but nothing may panic.
        let _ = Request::decode(stream, style);
        read_replies(stream, style);
    }
    let _ = StatusFilter::decode(stream);
}

fn serve(stream: &[u8]) {
    let export = Export {
        name: "volume".to_owned(),
        description: String::new(),
        bytes: 1 << 20,
        flags: ExportFlags::FLUSH,
        sizes: BlockSizes::default(),
    };
    let contexts = ["base:allocation"];
    let offer = Offer {
        exports: &[export],
        contexts: &contexts,
        tls: TlsRule::Offered,
        availability: Availability::Serving,
    };
    let mut out = Vec::new();
    let mut server = ServerHandshake::begin(&mut out);
    let mut rest = stream;
    for _ in 0..=stream.len() {
        out.clear();
        let step = server.step(rest, offer, &mut out);
        assert!(out.len() < 1 << 20, "an answer without bounds");
        match step {
            Ok(ServerStep::Continue { consumed }) => {
                assert!(consumed > 0 && consumed <= rest.len());
                rest = &rest[consumed..];
            }
            Ok(ServerStep::StartTls { consumed }) => {
                rest = &rest[consumed..];
                server.secured();
            }
            Ok(ServerStep::Incomplete { needed }) => {
                assert!(needed > rest.len() && needed <= (64 << 10) + 16);
                return;
            }
            Ok(ServerStep::Ready { .. } | ServerStep::End) => return,
            Err(error) => {
                assert!(!error.field().is_empty());
                return;
            }
        }
    }
    panic!("no progress");
}

fn ask(stream: &[u8], goal: ClientGoal) {
    let mut client = ClientHandshake::new(ClientOptions {
        goal,
        tls: TlsWish::IfOffered,
        style: ReplyStyle::Extended,
        contexts: vec!["base:allocation".to_owned()],
    });
    let mut out = Vec::new();
    let mut rest = stream;
    for _ in 0..=stream.len() {
        match client.step(rest, &mut out) {
            Ok(ClientStep::Continue { consumed }) => {
                assert!(consumed > 0 && consumed <= rest.len());
                rest = &rest[consumed..];
            }
            Ok(ClientStep::StartTls { consumed }) => {
                rest = &rest[consumed..];
                client.secured(&mut out).expect("the names that are asked for are short");
            }
            Ok(ClientStep::Incomplete { needed }) => {
                assert!(needed > rest.len() && needed <= (64 << 10) + 20);
                return;
            }
            Ok(ClientStep::Ready { .. } | ClientStep::Listed { .. }) | Err(_) => return,
        }
    }
    panic!("no progress");
}

fn read_replies(stream: &[u8], style: ReplyStyle) {
    let mut rest = stream;
    let mut assembly = ReadAssembly::new(0, 64);
    while let Ok(Some((header, taken))) = ReplyHeader::decode(rest, style, 4096) {
        rest = &rest[taken..];
        let ReplyHeader::Chunk { kind, length, .. } = header else { continue };
        assert!(length <= 4096 + 8192);
        let Some((payload, after)) = rest.split_at_checked(length as usize) else { return };
        rest = after;
        let Ok(chunk) = Chunk::decode(kind, payload) else { return };
        if let Chunk::Status { extents, .. } = chunk {
            assert!(extents.into_iter().all(|extent| extent.length > 0));
        }
        if assembly.put(chunk).is_err() {
            return;
        }
    }
    if let Ok(Ok(bytes)) = assembly.finish() {
        assert_eq!(bytes.len(), 64);
    }
}
