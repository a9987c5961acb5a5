//! The floor a scan is measured against: decompress a file with the library that the scan uses, throw it away.

use std::io::{BufReader, Read};

fn main() -> std::io::Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: inflate FILE (gzip, zstd or plain)");
        std::process::exit(2);
    };
    let mut file = std::fs::File::open(path)?;
    let mut head = [0; 4];
    file.read_exact(&mut head)?;
    std::io::Seek::rewind(&mut file)?;
    let stored = BufReader::with_capacity(64 << 10, file);
    let mut reader: Box<dyn Read> = match head {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(stored)),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::stream::read::Decoder::with_buffer(stored)?),
        _ => Box::new(stored),
    };
    let mut buffer = vec![0u8; 128 << 10];
    let mut total = 0u64;
    loop {
        let n = reader.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        total += n as u64;
    }
    println!("{total}");
    Ok(())
}
