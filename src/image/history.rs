//! Which build step made which layer.

use serde::Deserialize;

/// One entry of an image config's `history`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct Step {
    pub created_by: Option<String>,
    pub empty_layer: Option<bool>,
}

/// The step behind each of `layers` layers, lowest first. Steps that made no layer are left out. History is
/// free text that tools drop, squash or forget to flag: where the counts cannot be brought to agree, nothing
/// is said, for a wrong step is worse than none.
pub fn created_by(history: &[Step], layers: usize) -> Vec<Option<String>> {
    let with_layer = || history.iter().filter(|s| s.empty_layer != Some(true));
    let text = |s: &Step| s.created_by.clone().filter(|t| !t.trim().is_empty());
    if with_layer().count() == layers {
        with_layer().map(text).collect()
    } else if history.len() == layers {
        history.iter().map(text).collect()
    } else {
        vec![None; layers]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str, empty: Option<bool>) -> Step {
        Step { created_by: Some(text.into()), empty_layer: empty }
    }

    #[test]
    fn empty_steps_have_no_layer() {
        let history = [step("a", None), step("ENV x", Some(true)), step("b", Some(false)), step(" ", None)];
        assert_eq!(created_by(&history, 3), [Some("a".into()), Some("b".into()), None]);
    }

    #[test]
    fn a_mismatch_says_nothing() {
        let history = [step("a", None), step("b", Some(true))];
        assert_eq!(created_by(&history, 2), [Some("a".into()), Some("b".into())]);
        assert_eq!(created_by(&history, 3), [None, None, None]);
        assert_eq!(created_by(&[], 1), [None]);
        assert!(created_by(&history, 0).is_empty());
    }
}
