//! A server that backs up its store, by the command `BACKUP`.
//!
//! Invariant: replies come in the order of the commands, so each is judged by what was asked first.

use std::collections::VecDeque;

use entresol_backup::{Error, ErrorKind, Image, Result, Source};
use serde_json::Value;

use crate::client::{Client, Reply, refusal};
use crate::failure::Failure;

/// First word of the reply of a server that gave the copy up.
const GIVEN_UP: &[u8] = b"BACKUPBROKEN";

/// A connection, on which an image may be kept.
#[derive(Debug)]
pub(super) struct Server {
    client: Client,
    /// Whether it is to read only while nothing else wants a processor.
    when_idle: bool,
    /// The number of the image.
    number: String,
    /// What was asked and is not answered.
    asked: VecDeque<Asked>,
    /// Answers that nobody took yet.
    answers: VecDeque<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
enum Asked {
    Bytes,
    Done,
}

impl Server {
    pub(super) fn new(client: Client, when_idle: bool) -> Server {
        let (asked, answers) = (VecDeque::new(), VecDeque::new());
        Server { client, when_idle, number: String::new(), asked, answers }
    }

    /// Waits for replies and judges them.
    fn receive(&mut self) -> Result<()> {
        let mut judged = Ok(());
        let (asked, answers) = (&mut self.asked, &mut self.answers);
        let received = self.client.receive(1, &mut |reply| {
            let asked = asked.pop_front();
            if judged.is_err() {
                return;
            }
            judged = match (asked, reply) {
                (Some(Asked::Bytes), Reply::Bulk(bytes)) => {
                    answers.push_back(bytes.to_vec());
                    Ok(())
                }
                (Some(Asked::Done), Reply::Simple(b"OK")) => Ok(()),
                (Some(Asked::Bytes), other) => Err(unexpected("BACKUP READ", "bytes", &other)),
                (_, other) => Err(unexpected("BACKUP DONE", "OK", &other)),
            };
        });
        received.map_err(lost)?;
        judged
    }
}

impl Source for Server {
    fn begin(&mut self) -> Result<Image> {
        let begin: [&[u8]; 3] = [b"BACKUP", b"BEGIN", b"IDLE"];
        let words = if self.when_idle { &begin[..] } else { &begin[..2] };
        let begun = self.client.call(words, |reply| match reply {
            Reply::Bulk(text) => described(text),
            other => Err(unexpected("BACKUP BEGIN", "a text", &other)),
        });
        let (number, image) = begun.map_err(lost)??;
        self.number = number;
        Ok(image)
    }

    fn ask(&mut self, at: u64, offset: u64, length: u64) -> Result<()> {
        let numbers = [at, offset, length].map(|number| number.to_string());
        let [at, offset, length] = numbers.each_ref().map(|number| number.as_bytes());
        let number = self.number.as_bytes();
        self.client.gather(&[b"BACKUP", b"READ", number, at, offset, length]);
        self.asked.push_back(Asked::Bytes);
        self.client.flush().map_err(lost)
    }

    fn answer(&mut self, into: &mut Vec<u8>) -> Result<()> {
        loop {
            if let Some(bytes) = self.answers.pop_front() {
                into.extend_from_slice(&bytes);
                return Ok(());
            }
            self.receive()?;
        }
    }

    fn done(&mut self, places: &[u64]) -> Result<()> {
        let places: Vec<String> = places.iter().map(u64::to_string).collect();
        let mut words: Vec<&[u8]> = vec![b"BACKUP", b"DONE", self.number.as_bytes()];
        words.extend(places.iter().map(String::as_bytes));
        self.client.gather(&words);
        self.asked.push_back(Asked::Done);
        self.client.flush().map_err(lost)
    }

    fn end(&mut self) -> Result<()> {
        while !self.asked.is_empty() {
            self.receive()?;
        }
        let words: &[&[u8]] = &[b"BACKUP", b"END", self.number.as_bytes()];
        let ended = self.client.call(words, |reply| match reply {
            Reply::Simple(b"OK") => Ok(()),
            other => Err(unexpected("BACKUP END", "OK", &other)),
        });
        ended.map_err(lost)?
    }
}

/// The number of an image, and the image.
fn described(text: &[u8]) -> Result<(String, Image)> {
    let wrong = |what: String| {
        Error::new(ErrorKind::Failed, format!("the server's answer to BACKUP BEGIN: {what}"))
    };
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| wrong(format!("expected a JSON object, found what is none: {error}")))?;
    let object = value.as_object();
    let object = object.ok_or_else(|| wrong("expected a JSON object, found another".to_owned()))?;
    let number = object.get("snapshot").and_then(Value::as_u64);
    let number = number
        .ok_or_else(|| wrong("`snapshot`: expected a whole number, found none".to_owned()))?;
    Ok((number.to_string(), Image::from_json(object).map_err(wrong)?))
}

fn unexpected(command: &str, expected: &str, reply: &Reply<'_>) -> Error {
    let Reply::Error(text) = reply else {
        let sentence = format!("{command}: expected {expected}, found {reply:?}");
        return Error::new(ErrorKind::Failed, sentence);
    };
    let said = refusal(text);
    if text.starts_with(GIVEN_UP) {
        return Error::new(
            ErrorKind::GivenUp,
            format!(
                "the server needed the room and gave the backup up; nothing of it counts. Try \
                 again when less is written, or without --rate. It said: {said}"
            ),
        );
    }
    let next = match said.to_ascii_lowercase().contains("unknown command") {
        true => "; is it an entresol server of this version?",
        false => "",
    };
    Error::new(ErrorKind::Failed, format!("{command}: the server refuses it: {said}{next}"))
}

/// A failure of the connection.
fn lost(failure: Failure) -> Error {
    Error::new(ErrorKind::Failed, failure.to_string())
}
