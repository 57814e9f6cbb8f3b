//! A listener in a process without descriptors for more clients.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

mod descriptors;

use std::io::Read;
use std::net::TcpStream;

use descriptors::{Limit, PATIENCE, connect_last};
use entresol_net::{Address, Listener};

#[test]
fn a_client_that_came_while_there_was_no_descriptor_is_taken_later() {
    let address = ["127.0.0.1".to_owned()];
    let listener = Listener::tcp(&address, 0, &|_| Ok(())).unwrap().remove(0);
    let Address::Tcp(address) = listener.address().unwrap() else { panic!("an address of TCP") };
    let limit = Limit::begin();
    let (mut client, fillers) = connect_last(|| TcpStream::connect(address).unwrap());
    assert!(listener.accept().is_err(), "it says that the client waits");
    drop(fillers);
    let mut stream = listener.accept().unwrap().expect("the client waits still");
    assert!(listener.accept().unwrap().is_none());
    client.set_read_timeout(PATIENCE).unwrap();
    assert_eq!(stream.write(b"greeting").unwrap(), 8);
    let mut greeting = [0; 8];
    client.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"greeting");
    drop(limit);
}
