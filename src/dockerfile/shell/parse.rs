//! The grammar: tokens to a tree. One token of look-ahead, no backtracking; what does not fit is passed over and told.

use std::ops::Range;

use super::lex::{Kind, Token, Tokens};
use super::scan::is_name;
use super::tree::{AndOr, Arm, Joint, List, Node, Pipeline, Redirect, RedirectKind, Simple};

/// Compound commands inside each other; deeper ones are not taken apart.
const MOST_DEPTH: usize = 48;

/// A script, and where the first error is.
pub fn parse(text: &str, tokens: &Tokens) -> (List, Option<usize>) {
    let mut parser = Parser { text, tokens, at: 0, depth: 0, error: tokens.broken };
    let mut all = List::default();
    loop {
        let mut list = parser.list();
        all.items.append(&mut list.items);
        if parser.peek().is_none() {
            break;
        }
        parser.fail();
        parser.at += 1;
    }
    (all, parser.error)
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a Tokens,
    at: usize,
    depth: usize,
    error: Option<usize>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.tokens.get(self.at)
    }

    fn kind(&self) -> Option<Kind> {
        self.peek().map(|t| t.kind)
    }

    fn slice(&self, range: &Range<usize>) -> &'a str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// The word that stands here.
    fn word(&self) -> Option<&'a str> {
        self.peek().filter(|t| t.kind == Kind::Word).map(|t| self.slice(&t.range))
    }

    fn fail(&mut self) {
        let at = self.peek().map_or(self.text.len(), |t| t.range.start);
        self.error.get_or_insert(at);
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let there = self.kind() == Some(kind);
        self.at += usize::from(there);
        there
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let there = self.word() == Some(word);
        self.at += usize::from(there);
        there
    }

    /// A word that has to stand here.
    fn want(&mut self, word: &str) {
        if !self.eat_word(word) {
            self.fail();
        }
    }

    fn newlines(&mut self) {
        while self.eat(Kind::Newline) {}
    }

    /// Whether a list ends here.
    fn at_end(&self) -> bool {
        match self.peek() {
            None => true,
            Some(token) => match token.kind {
                Kind::Close | Kind::EndOfArm => true,
                Kind::Word => matches!(
                    self.slice(&token.range),
                    "then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "}"
                ),
                _ => false,
            },
        }
    }

    /// Up to what ends it, which is left.
    fn list(&mut self) -> List {
        let mut list = List::default();
        loop {
            while matches!(self.kind(), Some(Kind::Newline | Kind::Semi | Kind::Amp)) {
                self.at += 1;
            }
            if self.at_end() {
                return list;
            }
            let before = self.at;
            let item = self.and_or();
            list.items.push(item);
            if self.at == before {
                self.fail();
                self.at += 1;
            } else if !self.at_end() && !matches!(self.kind(), Some(Kind::Newline | Kind::Semi | Kind::Amp)) {
                // Two commands with nothing between: the second is read as one of its own.
                self.fail();
            }
        }
    }

    fn and_or(&mut self) -> AndOr {
        let mut out = AndOr::default();
        let mut joint = Joint::First;
        loop {
            let pipeline = self.pipeline();
            out.pipelines.push((joint, pipeline));
            joint = match self.kind() {
                Some(Kind::And) => Joint::And,
                Some(Kind::Or) => Joint::Or,
                _ => return out,
            };
            self.at += 1;
            self.newlines();
            if self.at_end() {
                self.fail();
                return out;
            }
        }
    }

    fn pipeline(&mut self) -> Pipeline {
        let mut out = Pipeline::default();
        while self.eat_word("!") {}
        self.time();
        loop {
            if let Some(node) = self.command() {
                out.stages.push(node);
            } else {
                self.fail();
            }
            if !self.eat(Kind::Pipe) {
                return out;
            }
            self.newlines();
        }
    }

    /// `time` of the shell itself; with other options than `-p` it is a program.
    fn time(&mut self) {
        let next = self.tokens.tokens.get(self.at + 1);
        let program = next.is_none_or(|t| {
            let text = self.slice(&t.range);
            !matches!(t.kind, Kind::Word | Kind::Open) || (text.starts_with('-') && text != "-p")
        });
        if !program && self.eat_word("time") {
            self.eat_word("-p");
        }
    }

    fn command(&mut self) -> Option<Node> {
        self.depth += 1;
        let node = if self.depth > MOST_DEPTH {
            self.fail();
            None
        } else {
            self.command_inside()
        };
        self.depth -= 1;
        node
    }

    fn command_inside(&mut self) -> Option<Node> {
        let token = self.peek()?;
        match token.kind {
            Kind::Open => {
                self.at += 1;
                let list = self.list();
                if !self.eat(Kind::Close) {
                    self.fail();
                }
                Some(Node::Subshell(list, self.redirects()))
            }
            Kind::Test | Kind::Arithmetic => {
                self.at += 1;
                self.redirects();
                let range = token.range.clone();
                Some(if token.kind == Kind::Test { Node::Test(range) } else { Node::Arithmetic(range) })
            }
            Kind::Word => match self.slice(&token.range) {
                "{" => {
                    self.at += 1;
                    let list = self.list();
                    self.want("}");
                    Some(Node::Group(list, self.redirects()))
                }
                "if" => Some(self.conditional()),
                "while" | "until" => {
                    self.at += 1;
                    let condition = self.list();
                    let body = self.do_group();
                    Some(Node::Loop { condition, body })
                }
                "for" | "select" => Some(self.for_loop()),
                "case" => Some(self.case()),
                "function" => {
                    self.at += 2;
                    if self.eat(Kind::Open) {
                        self.eat(Kind::Close);
                    }
                    self.function()
                }
                _ => self.simple(),
            },
            Kind::Output | Kind::Redirect | Kind::Here(_) => self.simple(),
            _ => None,
        }
    }

    fn conditional(&mut self) -> Node {
        let mut arms = Vec::new();
        let mut otherwise = None;
        self.at += 1;
        loop {
            let condition = self.list();
            self.want("then");
            let body = self.list();
            arms.push((condition, body));
            if self.eat_word("elif") {
                continue;
            }
            if self.eat_word("else") {
                otherwise = Some(self.list());
            }
            self.want("fi");
            self.redirects();
            return Node::If { arms, otherwise };
        }
    }

    fn do_group(&mut self) -> List {
        self.want("do");
        let body = self.list();
        self.want("done");
        self.redirects();
        body
    }

    fn for_loop(&mut self) -> Node {
        self.at += 1;
        if self.eat(Kind::Arithmetic) {
            while matches!(self.kind(), Some(Kind::Newline | Kind::Semi)) {
                self.at += 1;
            }
            return Node::Loop { condition: List::default(), body: self.do_group() };
        }
        let name = self.peek().filter(|t| t.kind == Kind::Word).map(|t| t.range.clone());
        let Some(name) = name else {
            self.fail();
            return Node::Loop { condition: List::default(), body: List::default() };
        };
        self.at += 1;
        self.newlines();
        let words = self.eat_word("in").then(|| {
            let mut words = Vec::new();
            while let Some(token) = self.peek().filter(|t| t.kind == Kind::Word) {
                words.push(token.range.clone());
                self.at += 1;
            }
            words
        });
        while matches!(self.kind(), Some(Kind::Newline | Kind::Semi)) {
            self.at += 1;
        }
        Node::For { name, words, body: self.do_group() }
    }

    fn case(&mut self) -> Node {
        self.at += 1;
        let subject = self.peek().map_or(0..0, |t| t.range.clone());
        self.at += 1;
        self.newlines();
        self.want("in");
        let mut arms = Vec::new();
        loop {
            self.newlines();
            if self.eat_word("esac") || self.peek().is_none() {
                break;
            }
            let before = self.at;
            self.eat(Kind::Open);
            let mut patterns = Vec::new();
            while let Some(token) = self.peek().filter(|t| t.kind == Kind::Word) {
                patterns.push(token.range.clone());
                self.at += 1;
                self.eat(Kind::Pipe);
            }
            if !self.eat(Kind::Close) {
                self.fail();
            }
            let body = self.list();
            arms.push(Arm { patterns, body });
            if !self.eat(Kind::EndOfArm) && self.word() != Some("esac") {
                self.fail();
            }
            if self.at == before {
                self.at += 1;
            }
        }
        if self.tokens.tokens.get(self.at.wrapping_sub(1)).is_none_or(|t| self.slice(&t.range) != "esac") {
            self.fail();
        }
        self.redirects();
        Node::Case { subject, arms }
    }

    /// A function's body, behind its name and parentheses.
    fn function(&mut self) -> Option<Node> {
        self.newlines();
        Some(Node::Function(Box::new(self.command()?)))
    }

    fn simple(&mut self) -> Option<Node> {
        let start = self.peek()?.range.start;
        let mut out = Simple::default();
        let mut end = start;
        while let Some(token) = self.peek() {
            match token.kind {
                Kind::Word if out.words.is_empty() && is_assignment(self.slice(&token.range)) => {
                    out.assignments.push(token.range.clone());
                    self.at += 1;
                }
                Kind::Word => {
                    out.words.push(token.range.clone());
                    self.at += 1;
                }
                Kind::Open if out.words.len() == 1 && out.assignments.is_empty() => {
                    self.at += 1;
                    if self.eat(Kind::Close) {
                        return self.function();
                    }
                    self.fail();
                    break;
                }
                _ => match self.redirect() {
                    Some(redirect) => out.redirects.push(redirect),
                    None => break,
                },
            }
            end = self.tokens.tokens.get(self.at.wrapping_sub(1)).map_or(end, |t| t.range.end);
        }
        out.range = start..end;
        Some(Node::Simple(out))
    }

    fn redirects(&mut self) -> Vec<Redirect> {
        let mut out = Vec::new();
        while let Some(redirect) = self.redirect() {
            out.push(redirect);
        }
        out
    }

    fn redirect(&mut self) -> Option<Redirect> {
        let token = self.peek()?;
        let kind = match token.kind {
            Kind::Here(index) => {
                self.at += 1;
                let target = self.tokens.heredocs.get(index).map_or(0..0, |h| h.body.clone());
                return Some(Redirect { target, kind: RedirectKind::Heredoc });
            }
            Kind::Output => RedirectKind::Output,
            Kind::Redirect => RedirectKind::Other,
            _ => return None,
        };
        self.at += 1;
        let Some(target) = self.peek().filter(|t| t.kind == Kind::Word) else {
            self.fail();
            return Some(Redirect { target: token.range.clone(), kind: RedirectKind::Other });
        };
        self.at += 1;
        Some(Redirect { target: target.range.clone(), kind })
    }
}

/// `NAME=…`, `NAME+=…`, `NAME[…]=…`.
pub fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = match name.split_once('[') {
        Some((name, index)) if index.ends_with(']') => name,
        Some(_) => return false,
        None => name,
    };
    is_name(name.as_bytes())
}

#[cfg(test)]
mod tests;
