//! `imagelint completions SHELL`, `imagelint man` and, for contributors, `imagelint generate`.

use clap::CommandFactory;

use super::args::{Args, CompletionsArgs, GenerateArgs};
use super::error::CliError;
use super::generated;
use super::output::{Screen, write_file};
use super::outputs::render;

pub fn completions(args: &CompletionsArgs, screen: &Screen) -> Result<u8, CliError> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "imagelint", &mut out);
    screen.print(&out)?;
    Ok(0)
}

/// One page with all commands: the program's own, then each command's.
pub fn man(screen: &Screen) -> Result<u8, CliError> {
    let mut out = Vec::new();
    let mut command = Args::command();
    command.build();
    render(clap_mangen::Man::new(command.clone()).render(&mut out))?;
    for sub in command.get_subcommands() {
        let man = clap_mangen::Man::new(sub.clone());
        out.extend_from_slice(format!(".SH \"{}\"\n", sub.get_name().to_uppercase()).as_bytes());
        render(man.render_description_section(&mut out))?;
        render(man.render_synopsis_section(&mut out))?;
        render(man.render_options_section(&mut out))?;
    }
    screen.print(&out)?;
    Ok(0)
}

/// Writes the generated files, or tells which are not fresh.
pub fn files(args: &GenerateArgs, screen: &Screen) -> Result<u8, CliError> {
    let marks = ["Cargo.toml", "rules/data/catalog.toml"];
    if !marks.iter().all(|mark| args.root.join(mark).is_file()) {
        return Err(CliError::NotOurRepository(args.root.display().to_string()));
    }
    let mut stale = Vec::new();
    for (name, text) in generated::files() {
        let path = args.root.join(&name);
        if std::fs::read(&path).is_ok_and(|kept| kept == text.as_bytes()) {
            continue;
        }
        if !args.check {
            write_file(&path, text.as_bytes())?;
        }
        stale.push(name);
    }
    let word = if args.check { "stale" } else { "written" };
    let lines: String = stale.iter().map(|name| format!("{word}: {name}\n")).collect();
    screen.print(lines.as_bytes())?;
    if args.check && !stale.is_empty() {
        screen.notice("`cargo run -- generate` writes them");
    }
    Ok(u8::from(args.check && !stale.is_empty()))
}
