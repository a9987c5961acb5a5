//! What a Dockerfile is made of, as it was written. Every byte of the file is inside an instruction, a comment, a
//! directive or between them, so that printing a document gives the file again; edits are made by span.

use super::span::{LineIndex, Span};

/// A parsed file. Nothing here is evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The file's own bytes.
    pub source: Vec<u8>,
    /// The same length as `source`, with each byte that is not UTF-8 as U+001A: offsets are those of the file. Empty
    /// where the file is too large to be read.
    pub text: String,
    pub lines: LineIndex,
    /// `\` unless the `escape` directive says otherwise.
    pub escape: char,
    pub directives: Vec<Directive>,
    pub comments: Vec<Comment>,
    /// In file order. What cannot be read as an instruction is one, with an error.
    pub instructions: Vec<Instruction>,
    /// What concerns no single instruction: no instruction at all, bytes that are no text, a file cut off.
    pub errors: Vec<SyntaxError>,
}

impl Document {
    /// The text of a span.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// The file's bytes, put together from the parts and from what stands between them.
    pub fn print(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.source.len());
        let mut at = 0;
        for part in self.parts() {
            out.extend_from_slice(self.source.get(at..part.start).unwrap_or_default());
            out.extend_from_slice(self.source.get(part.start..part.end).unwrap_or_default());
            at = part.end;
        }
        out.extend_from_slice(self.source.get(at..).unwrap_or_default());
        out
    }

    /// Directives, instructions and the comments outside of instructions, in file order.
    pub fn parts(&self) -> Vec<Span> {
        let mut out: Vec<Span> = self.directives.iter().map(|d| d.span).collect();
        out.extend(self.instructions.iter().map(|i| i.span));
        out.sort_unstable();
        let inside = |comment: &Comment| {
            let before = out.partition_point(|part| part.start <= comment.span.start);
            before.checked_sub(1).and_then(|at| out.get(at)).is_some_and(|part| part.contains(comment.span))
        };
        let outside: Vec<Span> = self.comments.iter().filter(|c| !inside(c)).map(|c| c.span).collect();
        out.extend(outside);
        out.sort_unstable();
        out
    }
}

/// What the parser could not take, or BuildKit would not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    pub span: Span,
    pub what: String,
}

/// `# syntax=…`, `# escape=…`, `# check=…` at the top of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// In lower case.
    pub name: String,
    pub value: String,
    pub span: Span,
}

/// A comment line, also one between the lines of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// From the `#` to the end of the line.
    pub span: Span,
    /// Without the `#` and the blanks around.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Keyword {
    Add,
    Arg,
    Cmd,
    Copy,
    Entrypoint,
    Env,
    Expose,
    From,
    Healthcheck,
    Label,
    Maintainer,
    Onbuild,
    Run,
    Shell,
    Stopsignal,
    User,
    Volume,
    Workdir,
    /// No instruction of Docker's.
    Unknown,
}

impl Keyword {
    /// All of Docker's.
    pub const ALL: [Self; 18] = [
        Self::Add,
        Self::Arg,
        Self::Cmd,
        Self::Copy,
        Self::Entrypoint,
        Self::Env,
        Self::Expose,
        Self::From,
        Self::Healthcheck,
        Self::Label,
        Self::Maintainer,
        Self::Onbuild,
        Self::Run,
        Self::Shell,
        Self::Stopsignal,
        Self::User,
        Self::Volume,
        Self::Workdir,
    ];

    /// As it is written by custom; empty for `Unknown`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Arg => "ARG",
            Self::Cmd => "CMD",
            Self::Copy => "COPY",
            Self::Entrypoint => "ENTRYPOINT",
            Self::Env => "ENV",
            Self::Expose => "EXPOSE",
            Self::From => "FROM",
            Self::Healthcheck => "HEALTHCHECK",
            Self::Label => "LABEL",
            Self::Maintainer => "MAINTAINER",
            Self::Onbuild => "ONBUILD",
            Self::Run => "RUN",
            Self::Shell => "SHELL",
            Self::Stopsignal => "STOPSIGNAL",
            Self::User => "USER",
            Self::Volume => "VOLUME",
            Self::Workdir => "WORKDIR",
            Self::Unknown => "",
        }
    }

    /// The keyword that a word is, in any case of letters.
    pub fn of(word: &str) -> Self {
        Self::ALL.into_iter().find(|k| k.name().eq_ignore_ascii_case(word)).unwrap_or(Self::Unknown)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    pub keyword: Keyword,
    /// The keyword as it was written.
    pub keyword_span: Span,
    /// From the keyword to the last byte, heredocs with their terminators included, without the line end. (Where
    /// lines with nothing but a continuation stand before the keyword: from the first of them.)
    pub span: Span,
    /// `--from=x`, in order, before the body.
    pub flags: Vec<Flag>,
    pub body: Body,
    /// In the order of their openers. The bodies are not in `body`. Those of ONBUILD are with its inner instruction.
    pub heredocs: Vec<Heredoc>,
    /// Why BuildKit would refuse it; what could be read is there all the same.
    pub error: Option<SyntaxError>,
}

impl Instruction {
    pub fn flag(&self, name: &str) -> Option<&Flag> {
        self.flags.iter().find(|f| f.name == name)
    }
}

/// What follows the keyword and its flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Nothing, or nothing that could be read.
    Nothing,
    From {
        image: Word,
        alias: Option<Word>,
    },
    /// ENV, LABEL, ARG.
    Pairs(Vec<Pair>),
    /// RUN, CMD, ENTRYPOINT in shell form; HEALTHCHECK CMD too.
    Shell(Joined),
    /// The JSON form of the same, and SHELL: unescaped words.
    Exec(Vec<Word>),
    /// COPY, ADD, EXPOSE, VOLUME in shell or JSON form; USER, WORKDIR, STOPSIGNAL, MAINTAINER, where all that is
    /// written is one word; `NONE` of HEALTHCHECK.
    Words(Vec<Word>),
    /// The instruction behind ONBUILD. What is wrong with it alone stands in its own `error`: BuildKit finds that
    /// only when it builds on the image. Of an ONBUILD in an ONBUILD the body is not read.
    Onbuild(Box<Instruction>),
}

/// A word as it was written: quotes, escapes and `$` are still in it (not so in a JSON form's word, which is
/// unescaped and marked `literal`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub span: Span,
    /// From a JSON form: nothing is quoted.
    pub literal: bool,
}

/// `key=value`, `key value` (legacy ENV and LABEL), or `key` alone (ARG).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    pub key: Word,
    pub value: Option<Word>,
    pub span: Span,
}

/// `--name=value` or `--name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Without the dashes.
    pub name: String,
    pub value: Option<Word>,
    pub span: Span,
}

/// `<<EOF`, and the lines it brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heredoc {
    pub name: String,
    /// No quotes around the name: variables are expanded.
    pub expand: bool,
    /// `<<-`: leading tabs are taken away.
    pub strip_tabs: bool,
    /// `<<EOF` itself.
    pub opener: Span,
    /// The lines between, with their line ends.
    pub body: Span,
    /// The terminator's word; none where the file ends before it.
    pub end: Option<Span>,
}

/// Text that was put together from several lines, with the place of each piece in the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Joined {
    pub text: String,
    /// Offset in `text` and in the file where each piece starts, rising.
    pub pieces: Vec<(usize, usize)>,
}

impl Joined {
    /// Text that stands in the file as it is.
    pub fn at(text: impl Into<String>, start: usize) -> Self {
        Self { text: text.into(), pieces: vec![(0, start)] }
    }

    /// Adds a piece that starts at `file` in the file.
    pub fn push(&mut self, text: &str, file: usize) {
        self.pieces.push((self.text.len(), file));
        self.text.push_str(text);
    }

    /// A part of it.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        let text = self.text.get(range.clone()).unwrap_or_default().to_owned();
        let later = self.pieces.partition_point(|(at, _)| *at <= range.start);
        let pieces = std::iter::once((0, self.offset(range.start)))
            .chain(
                self.pieces
                    .iter()
                    .skip(later)
                    .take_while(|(at, _)| *at < range.end)
                    .map(|(at, file)| (at - range.start, *file)),
            )
            .collect();
        Self { text, pieces }
    }

    /// The place in the file of an offset into `text`.
    pub fn offset(&self, offset: usize) -> usize {
        let piece = self.pieces.partition_point(|(at, _)| *at <= offset).saturating_sub(1);
        self.pieces.get(piece).map_or(0, |(at, file)| file + offset.saturating_sub(*at))
    }

    /// The place in the file of a range of `text`; it may hold line ends that `text` has not.
    pub fn span(&self, range: std::ops::Range<usize>) -> Span {
        if range.is_empty() {
            let at = self.offset(range.start);
            return Span::new(at, at);
        }
        Span::new(self.offset(range.start), self.offset(range.end - 1) + 1)
    }
}
