//! An extra index for torch, from which pip takes it only while PyPI has nothing newer.

use super::torch::{self, From};
use crate::dockerfile::commands::PythonTool;
use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for torch in torch::all(lint) {
        if torch.version.is_some() || torch.install.tool != PythonTool::Pip || torch.install.index.is_some() {
            continue;
        }
        let wheels = lint.catalog.wheels();
        let extra = torch.install.extra_indexes.iter().find_map(|setting| {
            let index = wheels.index_of_url(setting.text.value.known()?)?;
            (!index.name.is_empty() && !index.nightly && !index.test).then_some((setting, index))
        });
        let Some((setting, index)) = extra else { continue };
        let message = match &torch.from {
            From::Pypi => format!(
                "torch is taken from PyPI, which has a newer one than the extra index {}: pip asks both and takes the \
                 highest version",
                index.name
            ),
            _ => format!(
                "torch is taken from the extra index {} only while PyPI has no newer one: pip asks both and takes the \
                 highest version",
                index.name
            ),
        };
        out.push(
            Found::warning(setting.span, message).label("asked beside PyPI").help(
                "pin torch with its local part (torch==X.Y.Z+cuNNN), or install torch alone with --index-url",
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::blamed;

    const RULE: &str = "extra-index-ambiguous";
    const INDEX: &str = "https://download.pytorch.org/whl";

    #[test]
    fn only_what_pip_may_take_from_either() {
        let file = |install: &str| format!("FROM python:3.12-slim\nRUN {install}\n");
        let loose = file(&format!("pip install torch --extra-index-url {INDEX}/cu124"));
        assert_eq!(blamed(RULE, &loose, &[]), [format!("{INDEX}/cu124")]);
        for quiet in [
            format!("pip install torch==2.6.0 --extra-index-url {INDEX}/cu124"),
            format!("pip install torch --index-url {INDEX}/cu124"),
            // uv asks the extra index first and stays with it.
            format!("uv pip install torch --extra-index-url {INDEX}/cu124"),
            format!("pip install numpy --extra-index-url {INDEX}/cu124"),
        ] {
            assert!(blamed(RULE, &file(&quiet), &[]).is_empty(), "{quiet}");
        }
    }
}
