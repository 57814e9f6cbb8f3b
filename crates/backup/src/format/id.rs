//! Names of backups: the time in UTC and a number, so that they sort by age.

use std::fmt;

use time::OffsetDateTime;

/// The name of a backup, such as `20261129T004500Z-0000`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(String);

const TIME_CHARS: usize = 16;
const NUMBER_MAX: u32 = 9999;

impl Id {
    /// The name of a backup that begins at `now`, in seconds since the epoch. It sorts behind
    /// `newest` even where the clock went back.
    pub fn next(now_seconds: u64, newest: Option<&Id>) -> Id {
        let first = Id(format!("{}-0000", time_text(now_seconds)));
        match newest {
            Some(newest) if first <= *newest => newest.following(),
            _ => first,
        }
    }

    /// The name in the same second with the next number; in the next second once numbers end.
    pub(crate) fn following(&self) -> Id {
        let time = &self.0[..TIME_CHARS];
        let number: u32 = self.0[TIME_CHARS + 1..].parse().unwrap_or(NUMBER_MAX);
        match number < NUMBER_MAX {
            true => Id(format!("{time}-{:04}", number + 1)),
            false => Id(format!("{}-0000", time_text(seconds_of(time).saturating_add(1)))),
        }
    }

    /// What [`Id`] prints.
    pub fn parse(text: &str) -> Option<Id> {
        let pattern = b"dddddddd-dddddd--dddd";
        let is_like = text.len() == pattern.len()
            && text.bytes().zip(pattern).enumerate().all(|(index, (byte, sign))| match index {
                8 => byte == b'T',
                15 => byte == b'Z',
                16 => byte == b'-',
                _ => *sign == b'd' && byte.is_ascii_digit(),
            });
        let id = Id(text.to_owned());
        (is_like && time_text(seconds_of(&id.0[..TIME_CHARS])) == id.0[..TIME_CHARS]).then_some(id)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn time_text(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let time = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, clock) = (time.date(), time.time());
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second()
    )
}

/// Seconds since the epoch of what [`time_text`] wrote; 0 where it is no time.
fn seconds_of(text: &str) -> u64 {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u16>().ok();
    let read = || {
        let month = time::Month::try_from(u8::try_from(number(4, 6)?).ok()?).ok()?;
        let day = u8::try_from(number(6, 8)?).ok()?;
        let date = time::Date::from_calendar_date(i32::from(number(0, 4)?), month, day).ok()?;
        let part = |from, to| u8::try_from(number(from, to)?).ok();
        let clock = time::Time::from_hms(part(9, 11)?, part(11, 13)?, part(13, 15)?).ok()?;
        u64::try_from(date.with_time(clock).assume_utc().unix_timestamp()).ok()
    };
    read().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_sorts_behind_the_one_before_whatever_the_clock_says() {
        let first = Id::next(1_795_913_100, None);
        assert_eq!(first.to_string(), "20261129T004500Z-0000");
        let second = Id::next(1_795_913_100, Some(&first));
        assert_eq!(second.to_string(), "20261129T004500Z-0001");
        let back = Id::next(1_000_000_000, Some(&second));
        assert_eq!(back.to_string(), "20261129T004500Z-0002");
        let last = Id::parse("20261231T235959Z-9999").unwrap();
        assert_eq!(last.following().to_string(), "20270101T000000Z-0000");
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in
            ["", "..", "20261129T004500Z-000", "20261329T004500Z-0000", "x0261129T004500Z-0"]
        {
            assert_eq!(Id::parse(text), None, "{text}");
        }
        assert!(Id::parse("20261129T004500Z-0001").is_some());
    }
}
