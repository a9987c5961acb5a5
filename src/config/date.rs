//! Days.

use std::fmt;
use std::str::FromStr;

/// A day, as `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    pub year: u16,
    pub month: u8,
    pub day: u8,
}

impl Date {
    /// Today by the system's clock, UTC.
    pub fn today() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self::from_days(now.as_secs() / 86_400)
    }

    /// The days since 1970-01-01, in the Gregorian calendar.
    pub fn days(self) -> i64 {
        // The reverse of the below.
        let year = i64::from(self.year) - i64::from(self.month <= 2);
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let shifted = (i64::from(self.month) + 9) % 12;
        let of_year = (153 * shifted + 2) / 5 + i64::from(self.day) - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - 719_468
    }

    /// The day that many days after 1970-01-01, in the Gregorian calendar.
    fn from_days(days: u64) -> Self {
        // Counted in eras of 400 years from the first of March 0000, so that leap days end a year.
        let day = days + 719_468;
        let (era, of_era) = (day / 146_097, day % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * of_year + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = era * 400 + year_of_era + u64::from(month <= 2);
        let day = of_year - (153 * shifted + 2) / 5 + 1;
        Self { year: year.try_into().unwrap_or(u16::MAX), month: month as u8, day: day as u8 }
    }
}

impl FromStr for Date {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "is not a day; write YYYY-MM-DD";
        let parts: Vec<&str> = text.split('-').collect();
        let [year, month, day] = parts.as_slice() else { return Err(FORM) };
        let well = |t: &str, len| t.len() == len && t.bytes().all(|b| b.is_ascii_digit());
        if !(well(year, 4) && well(month, 2) && well(day, 2)) {
            return Err(FORM);
        }
        let (Ok(year), Ok(month), Ok(day)) = (year.parse::<u16>(), month.parse(), day.parse()) else {
            return Err(FORM);
        };
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 => 28 + u8::from(leap),
            _ => return Err("has no such month"),
        };
        if day == 0 || day > days {
            return Err("has no such day");
        }
        Ok(Self { year, month, day })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_by_the_calendar() {
        let at = |days| Date::from_days(days).to_string();
        assert_eq!(at(0), "1970-01-01");
        assert_eq!(at(11_016), "2000-02-29");
        assert_eq!(at(20_787), "2026-11-30");
        assert_eq!(at(47_540), "2100-02-28");
        assert_eq!(at(47_541), "2100-03-01");
        for days in (0..60_000).step_by(37) {
            assert_eq!(Date::from_days(days).days(), days as i64);
        }
        assert_eq!("0001-01-01".parse::<Date>().unwrap().days(), -719_162);
    }

    #[test]
    fn days() {
        for good in ["2028-02-29", "2000-02-29", "2027-12-31"] {
            assert_eq!(good.parse::<Date>().unwrap().to_string(), good);
        }
        for bad in
            ["", "2027-3-1", "2027-13-01", "2027-00-10", "2027-04-31", "1900-02-29", "20é7-01-01", "+027-01-01"]
        {
            assert!(bad.parse::<Date>().is_err(), "{bad}");
        }
        assert!("2027-01-31".parse::<Date>().unwrap() < "2027-02-01".parse().unwrap());
    }
}
