//! What built images are called.

use crate::model::Digest;

/// Of images that nobody named.
const LOCAL: &str = "localhost/imagelint-rebuild";

/// The name of what a Dockerfile builds. Of several images each has its part of the name, `part`: behind the tag that was
/// asked for, or as the tag.
pub fn name(asked: Option<&str>, dockerfile: &[u8], part: Option<&str>) -> String {
    let short = || Digest::of(dockerfile).hex().chars().take(12).collect::<String>();
    let name = asked.map_or_else(|| format!("{LOCAL}:{}", short()), str::to_owned);
    let Some(part) = part else { return name };
    let tagged = name.rsplit('/').next().is_some_and(|last| last.contains(':'));
    format!("{name}{}{part}", if tagged { '-' } else { ':' })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_image_and_of_several() {
        assert_eq!(
            name(None, b"x", None),
            format!("localhost/imagelint-rebuild:{}", &Digest::of(b"x").hex()[..12])
        );
        assert_eq!(name(Some("r:5000/app:1"), b"x", None), "r:5000/app:1");
        assert_eq!(name(Some("r:5000/app:1"), b"x", Some("cu126")), "r:5000/app:1-cu126");
        assert_eq!(name(Some("r:5000/app"), b"x", Some("cu126")), "r:5000/app:cu126");
        assert!(name(None, b"x", Some("cu128")).ends_with("-cu128"));
    }
}
