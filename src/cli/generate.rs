//! `imagelint completions SHELL` and `imagelint man`.

use clap::CommandFactory;

use super::args::{Args, CompletionsArgs};
use super::error::CliError;
use super::output::Screen;
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
