//! What a script is made of: lists, pipelines, commands. Words are byte ranges of the script.

use std::ops::Range;

#[derive(Debug, Default)]
pub struct List {
    pub items: Vec<AndOr>,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Default)]
pub struct AndOr {
    pub pipelines: Vec<(Joint, Pipeline)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joint {
    First,
    And,
    Or,
}

#[derive(Debug, Default)]
pub struct Pipeline {
    pub stages: Vec<Node>,
}

#[derive(Debug)]
pub enum Node {
    Simple(Simple),
    /// `{ … }`
    Group(List, Vec<Redirect>),
    /// `( … )`
    Subshell(List, Vec<Redirect>),
    If {
        /// Condition and body of `if` and each `elif`.
        arms: Vec<(List, List)>,
        otherwise: Option<List>,
    },
    /// `while`, `until`, `for ((…))`.
    Loop {
        condition: List,
        body: List,
    },
    For {
        name: Range<usize>,
        /// None: the script's arguments.
        words: Option<Vec<Range<usize>>>,
        body: List,
    },
    Case {
        subject: Range<usize>,
        arms: Vec<Arm>,
    },
    Function(Box<Node>),
    /// `[[ … ]]`
    Test(Range<usize>),
    /// `(( … ))`
    Arithmetic(Range<usize>),
}

#[derive(Debug)]
pub struct Arm {
    pub patterns: Vec<Range<usize>>,
    pub body: List,
}

#[derive(Debug, Default)]
pub struct Simple {
    /// `NAME=value` in front.
    pub assignments: Vec<Range<usize>>,
    pub words: Vec<Range<usize>>,
    pub redirects: Vec<Redirect>,
    /// From its first word to its last, redirections included.
    pub range: Range<usize>,
}

#[derive(Debug, Clone)]
pub struct Redirect {
    /// Its word, for a heredoc the body.
    pub target: Range<usize>,
    pub kind: RedirectKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// Of the standard output, to a file.
    Output,
    Heredoc,
    Other,
}
