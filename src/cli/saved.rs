//! Saved scans: one evidence a line, so that several images and platforms fit in one file.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::error::CliError;
use super::output::write_file;
use crate::model::Evidence;

pub fn save(path: &Path, evidence: &[Evidence]) -> Result<(), CliError> {
    let mut out = Vec::new();
    for one in evidence {
        serde_json::to_writer(&mut out, one).map_err(|e| CliError::write(path.to_owned(), e.into()))?;
        out.push(b'\n');
    }
    write_file(path, &out)
}

/// Reads a saved scan: per image, the evidence of its platforms.
pub fn load(path: &Path) -> Result<Vec<Vec<Evidence>>, CliError> {
    let file = File::open(path).map_err(|e| CliError::read(path, e))?;
    let broken = |what: String| CliError::NotEvidence { place: path.display().to_string(), what };
    let mut images: Vec<Vec<Evidence>> = Vec::new();
    for evidence in serde_json::Deserializer::from_reader(BufReader::new(file)).into_iter::<Evidence>() {
        let evidence = evidence.map_err(|e| broken(e.to_string()))?;
        if evidence.schema != Evidence::SCHEMA {
            return Err(broken(format!(
                "it has schema {}, this program reads {}",
                evidence.schema,
                Evidence::SCHEMA
            )));
        }
        if !evidence.is_consistent() {
            return Err(broken("a file names a layer or component that is not there".to_owned()));
        }
        match images.last_mut() {
            // Platforms of one image are neighbours; the same platform again is the image again.
            Some(image)
                if image.iter().all(|e| {
                    e.image.reference == evidence.image.reference && e.image.platform != evidence.image.platform
                }) =>
            {
                image.push(evidence);
            }
            _ => images.push(vec![evidence]),
        }
    }
    if images.is_empty() {
        return Err(broken("it is empty".into()));
    }
    Ok(images)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ImageFacts, Platform};

    fn evidence(reference: &str, platform: &str) -> Evidence {
        let image = ImageFacts {
            reference: reference.into(),
            platform: Some(Platform::linux(platform)),
            ..ImageFacts::default()
        };
        Evidence { schema: Evidence::SCHEMA, image, ..Evidence::default() }
    }

    #[test]
    fn what_was_saved_comes_back_image_by_image() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scan.json");
        let all = [evidence("a", "amd64"), evidence("a", "arm64"), evidence("b", "amd64"), evidence("b", "amd64")];
        save(&path, &all).unwrap();
        let back = load(&path).unwrap();
        assert_eq!(back.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(back.concat(), all);
    }

    #[test]
    fn other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scan.json");
        let mut newer = evidence("a", "amd64");
        newer.schema = Evidence::SCHEMA + 1;
        for text in ["", "{}", "not json", &serde_json::to_string(&newer).unwrap()] {
            std::fs::write(&path, text).unwrap();
            assert!(load(&path).is_err(), "{text}");
        }
        assert!(load(&dir.path().join("none")).is_err());
    }
}
