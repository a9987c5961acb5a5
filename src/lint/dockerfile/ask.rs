//! Questions that several rules ask of a file.

use std::collections::BTreeSet;

use crate::catalog::bases::Base;
use crate::catalog::system_packages;
use crate::dockerfile::commands;
use crate::dockerfile::reading;
use crate::dockerfile::shell::{Command, When};
use crate::dockerfile::span::Span;
use crate::dockerfile::syntax::{Body, Keyword, Pair};
use crate::dockerfile::value::{Origin, Scope, Trail, Value, Variable};

use super::{Found, Lint};
use crate::model::Severity;

/// One `NAME=value` of an ENV or ARG instruction.
pub struct Set<'a> {
    pub instruction: usize,
    /// None: an ARG before the first FROM.
    pub stage: Option<usize>,
    pub name: &'a str,
    pub value: &'a Value,
    /// What the value was made of.
    pub trail: &'a [Trail],
    pub pair: &'a Pair,
    pub arg: bool,
}

impl Set<'_> {
    /// The value's place, or that of the whole where there is none.
    pub fn value_span(&self) -> Span {
        self.pair.value.as_ref().map_or(self.pair.span, |v| v.span)
    }
}

impl Lint<'_> {
    /// The line of a place, from 1.
    pub fn line(&self, span: Span) -> usize {
        self.reading.document.lines.line(span.start)
    }

    /// Whether what an instruction sets or installs is in the built image.
    pub fn in_image(&self, instruction: usize) -> bool {
        self.stage_of(instruction).is_some_and(|(_, stage)| stage.in_image)
    }

    /// Whether an instruction is run at all.
    pub fn built(&self, instruction: usize) -> bool {
        self.stage_of(instruction).is_some_and(|(_, stage)| stage.built)
    }

    pub fn stage_of(&self, instruction: usize) -> Option<(usize, &reading::Stage)> {
        let index = self.reading.stage_of(instruction)?;
        Some((index, self.reading.stages.get(index)?))
    }

    /// What the catalog knows of the outside image that a stage stands on in the end, where its name is known.
    pub fn base(&self, stage: usize) -> Option<Base> {
        match &self.reading.stages.get(stage)?.root.0 {
            reading::Base::Image(text) => self.catalog.bases().find(text.value.known()?),
            _ => None,
        }
    }

    /// The stages that an outside image is named in (`FROM` of an image), with what is known of it.
    pub fn bases(&self) -> Vec<(usize, &reading::Stage, Base)> {
        let stages = self.reading.stages.iter().enumerate();
        let named = stages.filter(|(_, s)| matches!(s.base, reading::Base::Image(_)));
        named.filter_map(|(at, stage)| Some((at, stage, self.base(at)?))).collect()
    }

    /// A stage and those it is FROM, itself first.
    pub fn chain(&self, stage: usize) -> Vec<usize> {
        let mut out = vec![stage];
        let mut at = stage;
        // A stage is FROM an earlier one.
        while let Some(reading::Base::Stage(below)) = self.reading.stages.get(at).map(|s| &s.base)
            && *below < at
        {
            out.push(*below);
            at = *below;
        }
        out
    }

    /// The variables in force before an instruction.
    pub fn scope(&self, instruction: usize) -> Option<&Scope> {
        self.reading.scopes.get(instruction).map(|s| &**s)
    }

    /// The variables in force behind an instruction.
    pub fn scope_after(&self, instruction: usize) -> Option<&Scope> {
        match self.reading.stage_of(instruction) {
            Some(stage) if self.reading.stages.get(stage)?.instructions.end == instruction + 1 => {
                self.reading.ends.get(stage).map(|s| &**s)
            }
            _ => self.scope(instruction + 1),
        }
    }

    /// What ENV (`arg`: ARG) instructions set, in the order of the file. ARG without a default included.
    pub fn sets(&self, arg: bool) -> Vec<Set<'_>> {
        let keyword = if arg { Keyword::Arg } else { Keyword::Env };
        let mut out = Vec::new();
        for (at, instruction) in self.reading.document.instructions.iter().enumerate() {
            let Body::Pairs(pairs) = &instruction.body else { continue };
            if instruction.keyword != keyword {
                continue;
            }
            let Some(after) = self.scope_after(at) else { continue };
            let stage = self.reading.stage_of(at);
            for pair in pairs {
                let name = pair.key.text.as_str();
                let Some(Variable { value, trail, .. }) = after.get(name) else { continue };
                out.push(Set { instruction: at, stage, name, value, trail, pair, arg });
            }
        }
        out
    }

    /// What ENV instructions set that is in the built image, the last of each name only.
    pub fn image_env(&self) -> Vec<Set<'_>> {
        let all: Vec<Set<'_>> = self.sets(false).into_iter().filter(|s| self.in_image(s.instruction)).collect();
        let last = |set: &Set<'_>| !all.iter().any(|o| o.name == set.name && o.pair.span > set.pair.span);
        let keep: Vec<bool> = all.iter().map(last).collect();
        all.into_iter().zip(keep).filter_map(|(set, keep)| keep.then_some(set)).collect()
    }

    /// The variable that a program sees when a command starts it: assigned in the shell and exported, else of the
    /// Dockerfile.
    pub fn seen(&self, command: &Command, name: &str) -> Option<(Value, Option<Span>)> {
        if let Some(assigned) = command.assigned.get(name).filter(|a| a.exported) {
            return Some((assigned.text.value.clone(), Some(assigned.span)));
        }
        let variable = self.scope(command.instruction)?.get(name)?;
        Some((variable.value.clone(), origin_span(variable.origin)))
    }

    /// Commands that run while the image is built, of stages that are built.
    pub fn build_commands(&self) -> impl Iterator<Item = (usize, &Command)> {
        let all = self.reading.commands.iter().enumerate();
        all.filter(|(_, c)| c.when != When::Start && self.built(c.instruction))
    }

    /// ", from ARG CUDA in line 3": where a value that is not written out has it from; empty where it is.
    pub fn trail(&self, trail: &[Trail]) -> String {
        let mut out = String::new();
        for step in trail {
            let line = |span: Span| self.line(span);
            let (what, place) = match step.origin {
                Origin::Arg(span) => ("ARG ", format!(" in line {}", line(span))),
                Origin::Env(span) => ("ENV ", format!(" in line {}", line(span))),
                Origin::Shell(span) => ("", format!(" in line {}", line(span))),
                Origin::Given => ("the given ", String::new()),
                Origin::Base => ("the base image's ", String::new()),
                Origin::Predefined => continue,
            };
            out.push_str(if out.is_empty() { ", from " } else { " and " });
            out.push_str(&format!("{what}{}{place}", step.name));
        }
        out
    }
}

/// The place that gave a variable its value, where that is in the file.
pub fn origin_span(origin: Origin) -> Option<Span> {
    match origin {
        Origin::Arg(span) | Origin::Env(span) | Origin::Shell(span) => Some(span),
        Origin::Given | Origin::Base | Origin::Predefined => None,
    }
}

/// Known packages looked at in one file; rules hold them against each other.
const MOST_PACKAGES: usize = 1024;

/// A package asked of the distribution's installer, with what the catalog knows of it.
pub struct Package<'a> {
    pub asked: &'a commands::SystemPackage,
    /// The command's whole list.
    pub install: &'a commands::SystemInstall,
    pub command: &'a Command,
    pub stage: usize,
    pub in_image: bool,
    pub known: system_packages::SystemPackage,
}

impl Lint<'_> {
    /// Packages that stages which are built install, as far as the catalog knows them. Names that are not known whole
    /// are left out.
    pub fn packages(&self) -> Vec<Package<'_>> {
        let mut out = Vec::new();
        let full = |out: &Vec<Package<'_>>| out.len() >= MOST_PACKAGES;
        for install in &self.asks.system {
            let Some(command) = self.reading.commands.get(install.command) else { continue };
            let Some((at, stage)) = self.stage_of(command.instruction) else { continue };
            if !stage.built || command.when == When::Start {
                continue;
            }
            for asked in install.packages.iter().filter(|p| !p.unsure) {
                if full(&out) {
                    return out;
                }
                let known = self.catalog.system_packages().classify(&asked.name, asked.version.as_deref());
                out.extend(known.map(|known| Package {
                    asked,
                    install,
                    command,
                    stage: at,
                    in_image: stage.in_image,
                    known,
                }));
            }
        }
        out
    }

    /// The commands of a stage and of those it is FROM.
    pub fn chain_commands(&self, stage: usize) -> impl Iterator<Item = (usize, &Command)> {
        let chain: BTreeSet<usize> = self.chain(stage).into_iter().collect();
        self.reading.commands.iter().enumerate().filter(move |(_, c)| {
            let at = self.reading.stage_of(c.instruction);
            c.when != When::Start && at.is_some_and(|at| chain.contains(&at))
        })
    }
}

impl Package<'_> {
    /// A finding at the package's name: one level lower where the command runs only perhaps, or could not be parsed;
    /// at most a warning where its row is no more than remembered.
    pub fn found(&self, severity: Severity, message: String) -> Found {
        let sure = self.command.when == When::Build && !self.command.guessed;
        let severity = if sure { severity } else { lower(severity) };
        let severity = if self.known.sure { severity } else { severity.min(Severity::Warning) };
        Found { severity, ..Found::note(self.asked.span, message) }.because(self.known.because.clone())
    }
}

/// The next lower severity, as for what runs only perhaps.
pub fn lower(severity: Severity) -> Severity {
    match severity {
        Severity::Error => Severity::Warning,
        Severity::Warning | Severity::Note => Severity::Note,
    }
}
