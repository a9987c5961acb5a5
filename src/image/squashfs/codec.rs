//! Blocks unpacked: each has at most a given size, whatever it says of itself.

use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};

use super::damaged;

/// Memory that an xz block may ask for, in KiB: mksquashfs makes dictionaries of one block, 1 MiB at most.
const XZ_MEMORY: u32 = 16 << 10;

/// How blocks are compressed, from the superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    Gzip,
    Lzo,
    Xz,
    Lz4,
    Zstd,
}

impl Codec {
    pub fn new(id: u16) -> io::Result<Self> {
        match id {
            1 => Ok(Self::Gzip),
            3 => Ok(Self::Lzo),
            4 => Ok(Self::Xz),
            5 => Ok(Self::Lz4),
            6 => Ok(Self::Zstd),
            2 => Err(damaged("compressed with lzma, which is not supported; make it anew with -comp zstd")),
            other => Err(damaged(format!("compressed in an unknown way, number {other}"))),
        }
    }

    /// Unpacks one block to at most `most` bytes.
    pub fn unpack(self, packed: &[u8], most: usize) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        match self {
            Self::Gzip => {
                out.reserve_exact(most);
                let done = Decompress::new(true).decompress_vec(packed, &mut out, FlushDecompress::Finish);
                if !matches!(done, Ok(Status::StreamEnd)) {
                    return Err(self.broken());
                }
            }
            Self::Lzo => {
                out.resize(most, 0);
                let n = lzo::decompress_into(packed, &mut out).map_err(|_| self.broken())?;
                out.truncate(n);
            }
            Self::Xz => {
                let mut reader =
                    lzma_rust2::XzReader::new_mem_limit(packed, false, XZ_MEMORY).take(most as u64 + 1);
                reader.read_to_end(&mut out).map_err(|_| self.broken())?;
            }
            Self::Lz4 => {
                out.resize(most, 0);
                let n = lz4_flex::block::decompress_into(packed, &mut out).map_err(|_| self.broken())?;
                out.truncate(n);
            }
            Self::Zstd => out = zstd::bulk::decompress(packed, most).map_err(|_| self.broken())?,
        }
        if out.len() > most { Err(self.broken()) } else { Ok(out) }
    }

    fn broken(self) -> io::Error {
        let name = match self {
            Self::Gzip => "gzip",
            Self::Lzo => "lzo",
            Self::Xz => "xz",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        };
        damaged(format!("a damaged {name} block"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_an_error_and_nothing_grows_past_its_size() {
        let noise: Vec<u8> = (0..4096u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for id in [1, 3, 4, 5, 6] {
            let codec = Codec::new(id).unwrap();
            for cut in [0, 1, 2, 7, 100, 4096] {
                if let Ok(out) = codec.unpack(&noise[..cut], 512) {
                    assert!(out.len() <= 512, "{codec:?}");
                }
            }
        }
        let bomb = zstd::bulk::compress(&vec![0; 1 << 20], 19).unwrap();
        assert!(Codec::Zstd.unpack(&bomb, 8192).is_err());
        let mut packed = Vec::new();
        let mut deflate = flate2::write::ZlibEncoder::new(&mut packed, flate2::Compression::best());
        std::io::Write::write_all(&mut deflate, &vec![0; 1 << 20]).unwrap();
        deflate.finish().unwrap();
        assert!(Codec::Gzip.unpack(&packed, 8192).is_err());
        assert_eq!(Codec::Gzip.unpack(&packed, 1 << 20).unwrap().len(), 1 << 20);
        assert!(Codec::new(2).unwrap_err().to_string().contains("lzma"));
        assert!(Codec::new(77).is_err());
    }
}
