//! The age of the facts themselves.

use super::findings::apply_level;
use crate::catalog::Catalog;
use crate::config::{Date, Fleet};
use crate::model::{Finding, Severity, Verdict};

pub const RULE: &str = "catalog-stale";

/// Days for which facts count as fresh.
const FRESH: i64 = 180;

/// What is said of a catalog that is old. Its tables have one date: rows are as old as the whole.
pub fn finding(catalog: &Catalog, fleet: &Fleet, today: Date) -> Option<Finding> {
    let as_of: Date = catalog.as_of().parse().ok()?;
    let age = today.days() - as_of.days();
    if age <= FRESH {
        return None;
    }
    let message = format!(
        "the catalog is of {as_of}, {age} days ago: newer GPUs, drivers, toolkits and wheels are not in it"
    );
    let mut finding = Finding::new(RULE, Severity::Note, Verdict::Ok, message);
    finding.help = Some("take a newer imagelint, or merge newer rows with --rules DIR".to_owned());
    finding.because = vec![format!("catalog.toml `as_of`: {as_of}")];
    apply_level(&mut finding, fleet).then_some(finding)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::merge::Addition;

    fn on(today: &str, levels: &str) -> Option<Finding> {
        let text = "as_of = \"2026-01-01\"\n".to_owned();
        let catalog = Catalog::with_rows(&[Addition { file: "catalog.toml".to_owned(), text }]).unwrap();
        let fleet = Fleet::parse(levels, "f", &catalog).unwrap();
        finding(&catalog, &fleet, today.parse().unwrap())
    }

    #[test]
    fn half_a_year_is_fresh() {
        for fresh in ["2025-12-31", "2026-01-01", "2026-06-30"] {
            assert_eq!(on(fresh, ""), None, "{fresh}");
        }
        let stale = on("2026-07-01", "").unwrap();
        assert_eq!((stale.rule.as_str(), stale.severity, stale.verdict), (RULE, Severity::Note, Verdict::Ok));
        assert!(stale.message.contains("of 2026-01-01, 181 days ago"), "{}", stale.message);
        assert!(on("2036-07-01", "").unwrap().message.contains("3834 days"));
    }

    #[test]
    fn its_level_may_be_set() {
        assert_eq!(on("2026-07-01", "[rules]\ncatalog-stale = \"off\"\n"), None);
        let error = on("2026-07-01", "[rules]\ncatalog-stale = \"error\"\n").unwrap();
        assert_eq!(error.severity, Severity::Error);
    }

    #[test]
    fn the_embedded_catalog_has_a_day() {
        assert!(Catalog::embedded().as_of().parse::<Date>().is_ok());
    }
}
