//! apk: one database of packages with their files.

use super::driver::Wanted;
use super::lines::{Lines, token};
use super::{Fact, Files, Listed, MAX_PACKAGES};
use crate::model::{ImagePath, Manager, Package};
use crate::stream::Body;

/// `lib/apk/db/installed`: stanzas of `X:value` lines. `F:` names a directory and `R:` a file of the last one.
pub fn installed(body: &mut dyn Body) -> Result<Fact, String> {
    let mut lines = Lines::new(body);
    let mut packages = Vec::new();
    let mut stanza = Stanza::default();
    loop {
        let skipped = lines.overlong;
        let Some(line) = lines.next().map_err(|e| e.to_string())? else { break };
        match line.split_at_checked(2) {
            Some((b"P:", name)) => stanza.name = token(name),
            Some((b"V:", version)) => stanza.version = token(version),
            Some((b"F:", dir)) => stanza.dir = ImagePath::new(dir),
            Some((b"R:", file)) => stanza.files.add(&stanza.dir.join(file)),
            // `!name`: must not be there.
            Some((b"D:", list)) => list.split(|&b| b == b' ').for_each(|one| stanza.wanted.add(one)),
            _ if line.is_empty() => packages.extend(std::mem::take(&mut stanza).listed()),
            _ => {}
        }
        stanza.files.skipped += lines.overlong - skipped;
        if packages.len() > MAX_PACKAGES {
            return Err(format!("it lists more than {MAX_PACKAGES} packages"));
        }
    }
    packages.extend(stanza.listed());
    Ok(Fact::Packages { packages, unread: 0 })
}

#[derive(Default)]
struct Stanza {
    name: Option<String>,
    version: Option<String>,
    wanted: Wanted,
    dir: ImagePath,
    files: Files,
}

impl Stanza {
    fn listed(self) -> Option<Listed> {
        let mut package = Package::new(Manager::Apk, self.name?, self.version);
        package.wants_driver = self.wanted.finish();
        Some(Listed { package, files: self.files.finish(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::hash;
    use super::*;
    use crate::stream::{Plain, Stream};

    #[test]
    fn stanzas_tell_packages_and_files() {
        // The form of Alpine 3.14's database.
        let text = "C:Q1CpjMpFo3UY/Tn4CshBpA+PXMf04=\nP:musl\nV:1.2.2-r3\nA:x86_64\nT:the musl c library\nF:lib\n\
                    R:ld-musl-x86_64.so.1\na:0:0:755\nZ:Q1OR21cpf2INrOZXtXeMnWdqhkld4=\nR:libc.musl-x86_64.so.1\n\n\
                    P:meta\nV:0.1\nD:musl>=1.2 so:libcuda.so.1 nvidia-driver>=1 !libnvidia-x\nF:\nR:top\n";
        let fact = installed(&mut Stream::new(Plain(text.as_bytes()), None)).unwrap();
        let Fact::Packages { packages, .. } = fact else { panic!("{fact:?}") };
        let [musl, meta] = packages.as_slice() else { panic!("{packages:?}") };
        assert_eq!((musl.package.name.as_str(), musl.package.version.as_deref()), ("musl", Some("1.2.2-r3")));
        let mut hashes = [hash(b"lib/ld-musl-x86_64.so.1"), hash(b"lib/libc.musl-x86_64.so.1")];
        hashes.sort_unstable();
        assert_eq!(musl.files.hashes, hashes);
        assert_eq!(meta.package.wants_driver, ["nvidia-driver"]);
        assert_eq!(meta.files.hashes, [hash(b"top")]);
    }
}
