//! What may be tried again, how often, and after how long.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use super::super::ImageError;

/// How often a request is tried.
pub const TRIES: u32 = 4;

/// The first pause, unless the user's settings say otherwise.
pub const DELAY: Duration = Duration::from_millis(500);

/// The longest wait that a server may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

pub fn is_passing(status: u16) -> bool {
    // Not implemented, and a version of HTTP that is not spoken, stay what they are.
    matches!(status, 408 | 429 | 500..=599) && !matches!(status, 501 | 505)
}

/// The pause after so many tries: twice as long each time, and up to half as much again, so that many clients that
/// were refused together do not come back together.
pub fn back_off(delay: Duration, tried: u32) -> Duration {
    let pause = delay * (1 << tried.saturating_sub(1).min(5));
    // Every state of the standard hasher has its own random keys.
    let random = RandomState::new().build_hasher().finish() % 1024;
    pause + pause / 2 * u32::try_from(random).unwrap_or(0) / 1024
}

/// What a `Retry-After` asks for: seconds or a date.
pub fn retry_after(header: &str, now: SystemTime) -> Option<Duration> {
    let header = header.trim();
    let asked = match header.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(header).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(asked.min(MAX_RETRY_AFTER))
}

/// How often in a row a transfer may break off without [`PROGRESS`] bytes in between.
const MAX_CUTS: u32 = 3;
const PROGRESS: u64 = 1 << 20;

/// A break after a long silence counts for more: each has cost the whole time-out.
const SILENCE: u32 = 2;

/// The breaks of a transfer that is taken up again.
pub struct Cuts {
    count: u32,
    /// Where the last was.
    at: u64,
    delay: Duration,
}

impl Cuts {
    /// Of a transfer that starts at this byte.
    pub fn from(at: u64) -> Self {
        Self { count: 0, at, delay: DELAY }
    }

    /// With another first pause.
    pub fn paced(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Whether enough has come since the last break.
    pub fn has_progress(&self, at: u64) -> bool {
        at - self.at >= PROGRESS
    }

    /// An end at this byte that is no break.
    pub fn pause(&mut self, at: u64) {
        self.at = at;
    }

    /// A break at this byte: waits until it may be taken up again; the problem, where there were too many.
    pub fn again(&mut self, at: u64, problem: ImageError) -> io::Result<()> {
        self.count(at, 1, problem)
    }

    /// A silence at this byte; otherwise as [`Self::again`].
    pub fn again_after_silence(&mut self, at: u64, problem: ImageError) -> io::Result<()> {
        self.count(at, SILENCE, problem)
    }

    fn count(&mut self, at: u64, weight: u32, problem: ImageError) -> io::Result<()> {
        if self.has_progress(at) {
            self.count = 0;
        }
        self.at = at;
        self.count += weight;
        if self.count > MAX_CUTS {
            return Err(io::Error::other(problem));
        }
        sleep(back_off(self.delay, self.count));
        Ok(())
    }
}

/// Whether a body stopped coming, rather than ended.
pub fn is_silence(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock) || e.to_string().starts_with("timeout")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes() {
        for status in [408, 429, 500, 502, 503, 504, 520, 529] {
            assert!(is_passing(status), "{status}");
        }
        for status in [200, 301, 400, 401, 403, 404, 416, 501, 505] {
            assert!(!is_passing(status), "{status}");
        }
    }

    #[test]
    fn pauses_grow_and_differ() {
        let delay = Duration::from_millis(100);
        for (tried, least, most) in [(1, 100, 150), (2, 200, 300), (3, 400, 600), (40, 3200, 4800)] {
            let pauses: Vec<u128> = (0..32).map(|_| back_off(delay, tried).as_millis()).collect();
            assert!(pauses.iter().all(|p| (least..=most).contains(p)), "{pauses:?}");
            assert!(pauses.iter().any(|p| *p != pauses[0]), "{pauses:?}");
        }
    }

    #[test]
    fn servers_may_ask_for_a_minute_at_most() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let after = |header: &str| retry_after(header, now).map(|d| d.as_secs());
        assert_eq!(after(" 7 "), Some(7));
        assert_eq!(after("86400"), Some(60));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:50 GMT"), Some(13));
        assert_eq!(after("Mon, 07 Nov 1994 08:49:37 GMT"), Some(60));
        assert_eq!(after("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        assert_eq!((after("soon"), after("-1"), after("")), (None, None, None));
    }

    #[test]
    fn cuts_end_and_silences_end_sooner() {
        let problem = || ImageError::Network { host: "h".into(), what: "w".into(), hint: String::new() };
        let mut cuts = Cuts::from(0).paced(Duration::ZERO);
        assert_eq!((0..9).take_while(|_| cuts.again(0, problem()).is_ok()).count(), 3);
        let mut cuts = Cuts::from(0).paced(Duration::ZERO);
        assert_eq!((0..9).take_while(|_| cuts.again_after_silence(0, problem()).is_ok()).count(), 1);
        let mut cuts = Cuts::from(0).paced(Duration::ZERO);
        assert!((1..9).all(|n| cuts.again(n * PROGRESS, problem()).is_ok()), "progress forgives");
    }
}
