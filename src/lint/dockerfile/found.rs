//! What a rule of Dockerfiles says.

use crate::dockerfile::edit::Edit;
use crate::dockerfile::span::Span;
use crate::model::{Confidence, Severity};

/// Something wrong at a place of a Dockerfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where: the narrowest words that are to blame.
    pub span: Span,
    pub severity: Severity,
    pub confidence: Confidence,
    /// Names of the targets concerned; empty when it concerns all.
    pub targets: Vec<String>,
    /// One sentence: what is wrong and what will come of it.
    pub message: String,
    /// A few words that stand at the caret.
    pub label: String,
    /// What to do.
    pub help: Option<String>,
    /// Facts it rests on, as rows of tables say them.
    pub because: Vec<String>,
    /// Other places that belong to it, with a few words each.
    pub also: Vec<(Span, String)>,
    pub fix: Option<Fix>,
}

/// An edit that mends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// In the imperative: "remove the variable".
    pub what: String,
    /// May be applied without being read (`--fix`); else it is only shown.
    pub safe: bool,
    pub edits: Vec<Edit>,
}

impl Found {
    /// Will not build or run as it stands.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, span, message.into())
    }

    /// Will probably not do what is wanted.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, span, message.into())
    }

    /// Worth knowing.
    pub fn note(span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, span, message.into())
    }

    fn new(severity: Severity, span: Span, message: String) -> Self {
        Self {
            span,
            severity,
            confidence: Confidence::High,
            targets: Vec::new(),
            message,
            label: String::new(),
            help: None,
            because: Vec::new(),
            also: Vec::new(),
            fix: None,
        }
    }

    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn because(mut self, because: impl Into<String>) -> Self {
        self.because.push(because.into());
        self
    }

    pub fn also(mut self, span: Span, words: impl Into<String>) -> Self {
        self.also.push((span, words.into()));
        self
    }

    pub fn confidence(mut self, confidence: Confidence) -> Self {
        self.confidence = confidence;
        self
    }

    pub fn on(mut self, targets: Vec<String>) -> Self {
        self.targets = targets;
        self
    }

    /// An edit that may be applied unread: it changes nothing but what is wrong.
    pub fn safe_fix(mut self, what: impl Into<String>, edits: Vec<Edit>) -> Self {
        self.fix = Some(Fix { what: what.into(), safe: true, edits });
        self
    }

    /// An edit to be read first.
    pub fn suggest(mut self, what: impl Into<String>, edits: Vec<Edit>) -> Self {
        self.fix = Some(Fix { what: what.into(), safe: false, edits });
        self
    }
}
