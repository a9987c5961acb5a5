//! JSON of a body, with bounded memory.

use std::io::{BufReader, Read};
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_json::error::Category;

use crate::stream::{Body, BodyReader};

/// Reads a value, if its text is at most `limit` bytes. Errors do not repeat what the file says: it may be long.
pub fn read<T: DeserializeOwned>(body: &mut dyn Body, limit: u64) -> Result<T, String> {
    read_seed(PhantomData, body, limit)
}

/// [`read`] for a type that brings something along.
pub fn read_seed<T>(
    seed: impl for<'de> DeserializeSeed<'de, Value = T>,
    body: &mut dyn Body,
    limit: u64,
) -> Result<T, String> {
    let mut bounded = BodyReader(body).take(limit);
    let mut from = serde_json::Deserializer::from_reader(BufReader::new(&mut bounded));
    let read = seed.deserialize(&mut from).and_then(|value| from.end().map(|()| value));
    drop(from);
    read.map_err(|e| match e.classify() {
        Category::Io => format!("cannot be read: {}", std::io::Error::from(e)),
        Category::Eof if bounded.limit() == 0 => format!("is larger than {limit} bytes"),
        Category::Eof => "is JSON that is cut off".to_owned(),
        Category::Syntax => format!("is no JSON (line {}, column {})", e.line(), e.column()),
        Category::Data => format!("is JSON of an unknown form (line {}, column {})", e.line(), e.column()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Plain, Stream};

    fn list(text: &str, limit: u64) -> Result<Vec<u8>, String> {
        read(&mut Stream::new(Plain(text.as_bytes()), None), limit)
    }

    #[test]
    fn errors_are_short() {
        assert_eq!(list("[1, 2]\n", 100), Ok(vec![1, 2]));
        assert_eq!(list("[1, 2]", 3), Err("is larger than 3 bytes".to_owned()));
        assert_eq!(list("[1, ", 100), Err("is JSON that is cut off".to_owned()));
        assert_eq!(list("[x", 100), Err("is no JSON (line 1, column 2)".to_owned()));
        assert_eq!(list(&format!("[\"{}\"]", "x".repeat(1000)), 9999).unwrap_err().len(), 48);
    }
}
