//! Saved scans: one evidence a line, so that several images and platforms fit in one file.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::output::NewFile;
use crate::model::Evidence;

/// A saved scan that is being written.
pub struct Saved {
    file: NewFile,
    place: PathBuf,
}

impl Saved {
    pub fn create(path: &Path) -> Result<Self, CliError> {
        Ok(Self { file: NewFile::create(path)?, place: path.to_owned() })
    }

    pub fn add(&mut self, evidence: &[Evidence]) -> Result<(), CliError> {
        for one in evidence {
            let mut line = serde_json::to_vec(one).map_err(|e| CliError::write(self.place.clone(), e.into()))?;
            line.push(b'\n');
            self.file.write(&line)?;
        }
        Ok(())
    }

    pub fn finish(self) -> Result<(), CliError> {
        self.file.finish()
    }
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
        let mut saved = Saved::create(&path).unwrap();
        saved.add(&all).unwrap();
        saved.finish().unwrap();
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
