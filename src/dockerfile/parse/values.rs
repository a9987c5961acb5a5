//! Values of flags that have a form of their own. What is wrong with one is told to be read behind the flag's name.

use super::problem::shown;

/// The fields of one line of CSV; none where its quotes do not fit.
fn fields(text: &str) -> Option<Vec<String>> {
    if text.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        let Some(quoted) = rest.strip_prefix('"') else {
            let (field, behind) =
                rest.split_once(',').map_or((rest, None), |(field, behind)| (field, Some(behind)));
            if field.contains('"') {
                return None;
            }
            out.push(field.to_owned());
            match behind {
                Some(behind) => rest = behind,
                None => return Some(out),
            }
            continue;
        };
        let mut field = String::new();
        rest = quoted;
        loop {
            let (text, behind) = rest.split_once('"')?;
            field.push_str(text);
            match behind.strip_prefix('"') {
                Some(behind) => {
                    field.push('"');
                    rest = behind;
                }
                None => {
                    rest = behind;
                    break;
                }
            }
        }
        out.push(field);
        if rest.is_empty() {
            return Some(out);
        }
        rest = rest.strip_prefix(',')?;
    }
}

const NOT_CSV: &str =
    "is no list of `key=value` between commas: write one, with quotes around a whole field or none";

/// `type=cache,target=/x`. More than this is looked at when variables are known.
pub(super) fn mount(value: &str) -> Result<(), String> {
    let fields = fields(value).ok_or(NOT_CSV)?;
    let from = fields.iter().filter_map(|f| f.split_once('=')).filter(|(key, _)| key.to_lowercase() == "from");
    for (_, from) in from {
        if from.find('$').is_some_and(|at| at + 1 != from.len()) {
            let from = shown(from);
            return Err(format!(
                "takes no variable in `from` ({from}): name a stage by `FROM … AS name`, write `from=name`"
            ));
        }
    }
    Ok(())
}

/// `vendor/class=name,required`.
pub(super) fn device(value: &str) -> Result<(), String> {
    let mut named = false;
    for field in fields(value).ok_or(NOT_CSV)? {
        let (key, value) = field.split_once('=').map_or((field.as_str(), None), |(key, value)| (key, Some(value)));
        match (key.to_lowercase().as_str(), value) {
            ("required", None) => {}
            ("required", Some(value)) if is_bool(value) => {}
            ("required", Some(value)) => return Err(format!("has required={}: write true or false", shown(value))),
            ("name", Some(_)) if named => return Err("names two devices: write a flag for each".to_owned()),
            // An empty name is none.
            ("name", Some(value)) => named = !value.is_empty(),
            _ if named => return Err(format!("has the field {}: it takes a name and `required`", shown(&field))),
            _ => named = !field.is_empty(),
        }
    }
    Ok(())
}

fn is_bool(value: &str) -> bool {
    matches!(value, "1" | "t" | "T" | "TRUE" | "true" | "True" | "0" | "f" | "F" | "FALSE" | "false" | "False")
}

/// A duration of HEALTHCHECK: nothing, zero, or a millisecond and more.
pub(super) fn interval(value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Ok(());
    }
    match nanoseconds(value) {
        None => Err(format!("is {}: write a duration such as 30s or 1m30s", shown(value))),
        Some(0 | 1_000_000..) => Ok(()),
        Some(_) => Err(format!("is {}: write 0 or at least 1ms", shown(value))),
    }
}

/// A duration as Go writes it: `1h15m30.5s`.
fn nanoseconds(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum: u64 = 0;
    while !rest.is_empty() {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, behind) = rest.split_at_checked(digits(rest))?;
        let (fraction, behind) = match behind.strip_prefix('.') {
            Some(behind) => behind.split_at_checked(digits(behind))?,
            None => ("", behind),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = behind.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at_checked(end)?;
        let unit: u64 = match unit {
            "ns" => 1,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let whole = whole.checked_mul(unit)?;
        sum = sum.checked_add(whole)?.checked_add(fraction_of(fraction, unit))?;
        if sum > 1 << 63 {
            return None;
        }
        rest = behind;
    }
    let sum = i128::from(sum);
    i64::try_from(if negative { -sum } else { sum }).ok()
}

/// The part of a unit that digits behind a point are; more of them than 18 change nothing.
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let digits = digits.get(..18).unwrap_or(digits);
    let scale = 10_u128.pow(u32::try_from(digits.len()).unwrap_or(0));
    let part = digits.parse::<u128>().unwrap_or(0) * u128::from(unit) / scale;
    u64::try_from(part).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_csv() {
        let list = |text: &str| fields(text).unwrap();
        assert_eq!(list("a,b=c"), ["a", "b=c"]);
        assert_eq!(list("a,"), ["a", ""]);
        assert_eq!(list(r#""a,b",c"#), ["a,b", "c"]);
        assert_eq!(list(r#""a""b""#), [r#"a"b"#]);
        assert_eq!(list(r#""a","#), ["a", ""]);
        for bad in ["", r#"a"b"#, r#""a"#, r#""a"b"#, r#"a,"b"#] {
            assert_eq!(fields(bad), None, "{bad}");
        }
    }

    #[test]
    fn mounts_take_no_variable_in_from() {
        assert!(mount("type=bind,from=x,source=$y").is_ok());
        assert!(mount("from=x$").is_ok());
        let said = mount("type=bind,From=${x}").unwrap_err();
        assert_eq!(
            said,
            "takes no variable in `from` (`${x}`): name a stage by `FROM … AS name`, write `from=name`"
        );
        assert!(mount("").is_err());
    }

    #[test]
    fn devices_have_one_name() {
        for good in ["a/b=c", "a,required", "name=a,required=1", "required", "REQUIRED=T"] {
            assert!(device(good).is_ok(), "{good}");
        }
        for bad in ["", "a,b", "a,name=b", "a,required=yes", "a=b,c=d"] {
            assert!(device(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_are_those_of_go() {
        for (text, value) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("1m30s", Some(90_000_000_000)),
            ("1.5h", Some(5_400_000_000_000)),
            (".5s", Some(500_000_000)),
            ("1.s", Some(1_000_000_000)),
            ("-1s", Some(-1_000_000_000)),
            ("1\u{b5}s", Some(1_000)),
            ("2562047h47m16.854775807s", Some(i64::MAX)),
            ("2562047h47m16.854775808s", None),
            ("", None),
            ("5", None),
            ("s", None),
            (".s", None),
            ("1d", None),
            ("1s ", None),
            ("99999999999999999999s", None),
        ] {
            assert_eq!(nanoseconds(text), value, "{text}");
        }
        assert!(interval("1us").is_err() && interval("-5s").is_err() && interval("1ms").is_ok());
    }
}
