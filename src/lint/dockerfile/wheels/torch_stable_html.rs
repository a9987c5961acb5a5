//! `-f …/torch_stable.html`: a page of links, where there are indexes.

use super::torch;
use super::torch::Torch;
use crate::dockerfile::edit::Edit;
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    let torches = torch::all(lint);
    for install in &lint.asks.pip {
        for setting in install.find_links.iter().filter(|s| s.file.is_none()) {
            let Some(index) = setting.text.value.known().and_then(|u| lint.catalog.wheels().index_of_url(u)) else {
                continue;
            };
            let command = lint.reading.commands.get(install.command);
            if !index.page || !command.is_some_and(|c| lint.built(c.instruction)) {
                continue;
            }
            let message = "torch_stable.html is a page of links that the indexes at download.pytorch.org/whl/cuNNN have \
                           taken the place of";
            let mut found = Found::note(setting.span, message).label("old page of links").because(index.because);
            let torch = torches.iter().find(|t| t.install.command == install.command);
            let target = torch.and_then(|t| index_for(lint, t));
            if let Some(name) = target {
                found = found.help(format!("use --index-url https://download.pytorch.org/whl/{name}"));
                if let Some(edits) = edits(lint, install.command, setting.span, &name) {
                    found = found.suggest("name the index", edits);
                }
            } else {
                found = found.help("name the index of the CUDA that is wanted with --index-url");
            }
            out.push(found);
        }
    }
}

/// The index that has the very version.
fn index_for(lint: &Lint<'_>, torch: &Torch<'_>) -> Option<String> {
    let name = torch.index(lint)?;
    let version = torch.version.as_deref()?;
    let known = lint.catalog.wheels().torch_indexes(version).iter().any(|(i, _)| *i == name);
    known.then_some(name)
}

/// `-f URL` becomes an extra index: what else the command asks for stays on PyPI.
fn edits(lint: &Lint<'_>, command: usize, url: crate::dockerfile::span::Span, name: &str) -> Option<Vec<Edit>> {
    let command = lint.reading.commands.get(command)?;
    let at = command.words.iter().position(|w| w.span == url)?;
    let option = command.words.get(at.checked_sub(1)?)?;
    let is_option = matches!(option.text.value.known(), Some("-f" | "--find-links"));
    is_option.then(|| {
        vec![
            Edit::new(option.span, "--extra-index-url"),
            Edit::new(url, format!("https://download.pytorch.org/whl/{name}")),
        ]
    })
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::{blamed, mended};

    const RULE: &str = "torch-stable-html";
    const PAGE: &str = "https://download.pytorch.org/whl/torch_stable.html";

    #[test]
    fn the_page_and_not_the_index() {
        let file = format!("FROM python:3.10\nRUN pip install torch==1.13.1+cu117 -f {PAGE}\n");
        assert_eq!(blamed(RULE, &file, &[]), [PAGE]);
        let text = mended(RULE, &file, &[]);
        assert!(
            text.contains("torch==1.13.1+cu117 --extra-index-url https://download.pytorch.org/whl/cu117"),
            "{text}"
        );
        let index = "FROM python:3.10\nRUN pip install torch --index-url https://download.pytorch.org/whl/cu117\n";
        assert!(blamed(RULE, index, &[]).is_empty());
        let own = "FROM python:3.10\nRUN pip install mmcv -f https://download.openmmlab.com/mmcv/dist/index.html\n";
        assert!(blamed(RULE, own, &[]).is_empty());
    }
}
