//! Drivers as conditions on the labels of their parts.

use super::{Expr, Op, expr};
use crate::model::{DriverRange, DriverVersion, Target};

/// Branches that are listed one by one.
const MOST_BRANCHES: u32 = 64;

fn parts(version: &DriverVersion) -> [u32; 3] {
    let text = version.to_string();
    let mut parts = text.split('.').map(|p| p.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

/// Whether one driver may be both targets'.
pub fn overlap(a: &Target, b: &Target) -> bool {
    let (Some(a), Some(b)) = (&a.driver, &b.driver) else { return true };
    let below = |lowest: &DriverVersion, end: &Option<DriverVersion>| end.as_ref().is_none_or(|end| lowest < end);
    below(&a.lowest, &b.below) && below(&b.lowest, &a.below)
}

/// The branches that a range has drivers of, where it ends.
pub fn branches(range: &DriverRange) -> Option<Vec<String>> {
    let first = range.lowest.branch();
    let end = range.below.as_ref()?;
    let [major, minor, last] = parts(end);
    let last = if minor == 0 && last == 0 { major.saturating_sub(1) } else { major };
    (last.saturating_sub(first) < MOST_BRANCHES).then(|| (first..=last.max(first)).map(|b| b.to_string()).collect())
}

/// Conditions on the labels of the major, minor and last part, any of which finds the range's drivers.
pub fn terms(range: &DriverRange, keys: &[&'static str; 3]) -> Vec<Vec<Expr>> {
    let [major, minor, last] = *keys;
    let one = |key, number: u32| expr(key, Op::In, spelt(number));
    let above = |key, number: u32| expr(key, Op::Gt, [number.to_string()]);
    let under = |key, number: u32| expr(key, Op::Lt, [number.to_string()]);
    let low = parts(&range.lowest);
    let single = range.text.trim() == range.lowest.to_string();
    if single {
        let written = range.lowest.to_string().split('.').count();
        let all = [(major, low[0]), (minor, low[1]), (last, low[2])];
        return vec![all.into_iter().take(written).map(|(key, number)| one(key, number)).collect()];
    }
    // From the lowest on within its branch, all branches between, and the last one up to its end.
    let high = range.below.as_ref().map(parts);
    let mut out = Vec::new();
    let within = high.filter(|high| high[0] == low[0]);
    let ends = |mut all: Vec<Expr>| {
        // Of the last minor version, none: what is left out is safe.
        all.extend(within.map(|high| under(minor, high[1])));
        all
    };
    match low {
        [_, 0, 0] => out.push(ends(vec![one(major, low[0])])),
        [_, _, 0] => out.push(ends(vec![one(major, low[0]), above(minor, low[1] - 1)])),
        [_, _, patch] => {
            out.push(ends(vec![one(major, low[0]), above(minor, low[1])]));
            out.push(ends(vec![one(major, low[0]), one(minor, low[1]), above(last, patch - 1)]));
        }
    }
    match high {
        None => out.push(vec![above(major, low[0])]),
        Some(high) if high[0] > low[0] => {
            if high[0] > low[0] + 1 {
                out.push(vec![above(major, low[0]), under(major, high[0])]);
            }
            if high[1] > 0 {
                out.push(vec![one(major, high[0]), under(minor, high[1])]);
            }
        }
        Some(_) => {}
    }
    out
}

/// A number as labels may have it: 1, 01.
fn spelt(number: u32) -> Vec<String> {
    let mut out = vec![number.to_string()];
    if number < 10 {
        out.push(format!("{number:02}"));
    }
    out
}
