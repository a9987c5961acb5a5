//! What a Dockerfile is made of, as it was written. Every byte of the file is inside an instruction, a comment, a
//! directive or between them, so that printing a document gives the file again; edits are made by span.

use super::span::{LineIndex, Span};

/// A parsed file. Nothing here is evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The file's own bytes.
    pub source: Vec<u8>,
    /// The same length as `source`, with each byte that is not UTF-8 as U+001A: offsets are those of the file.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    pub keyword: Keyword,
    /// The keyword as it was written.
    pub keyword_span: Span,
    /// From the keyword to the last byte, heredocs with their terminators included, without the line end.
    pub span: Span,
    /// `--from=x`, in order, before the body.
    pub flags: Vec<Flag>,
    pub body: Body,
    /// In the order of their openers. The bodies are not in `body`.
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
    /// COPY, ADD, EXPOSE, VOLUME, USER, WORKDIR, STOPSIGNAL, MAINTAINER, in shell or JSON form.
    Words(Vec<Word>),
    /// The instruction behind ONBUILD.
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
