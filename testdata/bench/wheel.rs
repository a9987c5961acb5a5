//! What a wheel on pip's index holds, and what it costs to know: `wheel PACKAGE SPECIFIER PYTHON [ARCH [INDEX]]`.
//! With `-v` what
//! `inspect --format json` says of the file follows.

use std::time::Instant;

use imagelint::catalog::Catalog;
use imagelint::image::index::{Python, Question};
use imagelint::image::sources::OpenOptions;
use imagelint::lint;
use imagelint::model::Platform;
use imagelint::scan::wheel::{self, WheelOptions};

fn main() {
    let (flags, args): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|a| a == "-v");
    let [package, specifier, python, rest @ ..] = &args[..] else {
        panic!("wheel PACKAGE SPECIFIER PYTHON [ARCH [INDEX]]");
    };
    let question = Question {
        package: package.clone(),
        specifier: specifier.clone(),
        index: rest.get(1).map(|url| ("named".to_owned(), url.clone())),
        python: Python::parse(python),
        platform: Platform::linux(rest.first().map_or("amd64", String::as_str)),
        libc: None,
    };
    let started = Instant::now();
    let options = WheelOptions::new(None, OpenOptions::default()).expect("pip's settings can be read");
    let starts = |name: &str, size: u64| eprintln!("{name}: {size} bytes");
    match wheel::check(&question, &options, &starts) {
        Err(e) => println!("not checked: {e}"),
        Ok(checked) => {
            println!("{}: {}", checked.filename, checked.archs().text());
            println!("built for {:?}", wheel::built_of(&checked, package));
            println!("requires {:?}", checked.requires);
            println!("{} of {} bytes, {}", checked.fetched, checked.size, checked.how());
            println!("{:.1} s", started.elapsed().as_secs_f64());
            if !flags.is_empty() {
                let report = lint::inspect(std::slice::from_ref(&checked.evidence), Catalog::embedded());
                println!("{}", serde_json::to_string(&report).expect("a report is plain data"));
            }
        }
    }
}
