//! Many images at once.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

#[derive(Debug, Clone, Default, Args)]
pub struct ManyArgs {
    /// File of images, one a line (# begins a comment); - is standard input. Tables then show one row an image, and
    /// each image's own with -v
    #[arg(long, value_name = "FILE", help_heading = "Images")]
    pub list: Option<PathBuf>,
    /// Of all images, every N-th from I on (I from 0); /N takes I from JOB_COMPLETION_INDEX
    #[arg(long, value_name = "I/N", help_heading = "Images")]
    pub shard: Option<Shard>,
}

/// One of several equal parts of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// `None`: the environment tells.
    pub index: Option<usize>,
    pub of: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "give a part and the number of parts, as in 0/3".to_owned();
        let (index, of) = text.split_once('/').ok_or_else(wrong)?;
        let of: usize = of.parse().map_err(|_| wrong())?;
        let index = match index {
            "" => None,
            index => Some(index.parse::<usize>().map_err(|_| wrong())?),
        };
        if of == 0 || index.is_some_and(|i| i >= of) {
            return Err(format!("parts are counted from 0: there is no part {text}"));
        }
        Ok(Self { index, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards() {
        assert_eq!("2/3".parse(), Ok(Shard { index: Some(2), of: 3 }));
        assert_eq!("/16".parse(), Ok(Shard { index: None, of: 16 }));
        for wrong in ["", "3", "3/3", "0/0", "/0", "-1/3", "a/3", "1/3/4"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
