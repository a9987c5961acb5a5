//! Components down, targets across; the reason of a cell shows when it is pointed at, tapped or has the focus.

use super::super::components::{self, ComponentRow};
use super::super::table;
use super::super::text::count;
use super::super::{ComponentReport, ModuleCounts, Role, TargetReport};
use super::page::Page;
use crate::model::Verdict;

/// Cells of a page: a browser still opens that.
const CELLS: usize = 20_000;

/// A component as one target's cells show it.
struct Row<'a> {
    of: &'a ComponentRow<'a>,
    cells: Vec<Option<&'a ComponentReport>>,
}

impl Row<'_> {
    fn worst(&self) -> Verdict {
        self.cells.iter().flatten().map(|c| c.verdict).min().unwrap_or(Verdict::Ok)
    }
}

/// Worst first. What is installed twice in the same version has two rows, in the report's order.
fn rows<'a>(components: &'a [ComponentRow<'a>]) -> Vec<Row<'a>> {
    let times = |of: &ComponentRow<'_>| of.cells.iter().map(Vec::len).max().unwrap_or(0);
    let nth = |of: &'a ComponentRow<'a>, n: usize| Row {
        of,
        cells: of.cells.iter().map(|all| all.get(n).copied()).collect(),
    };
    let mut rows: Vec<Row<'a>> = components.iter().flat_map(|of| (0..times(of)).map(move |n| nth(of, n))).collect();
    rows.sort_by_cached_key(|row| (row.of.role, row.worst(), row.of.label()));
    rows
}

pub(super) fn section(page: &mut Page, fleet: &[&TargetReport], prefix: &str) {
    page.section(&format!("{prefix}-matrix"), "Fleet", &count(fleet.len(), "target", "targets"));
    let components = components::rows(fleet);
    let all = rows(&components);
    let kept = (CELLS / fleet.len().max(1)).saturating_sub(1);
    let (shown, rest) = all.split_at(all.len().min(kept));
    // What is simply well everywhere is a click away, as long as there is more than one of it.
    let well = |row: &&Row<'_>| row.worst() == Verdict::Ok && row.of.role != Role::Core;
    let (fine, loud): (Vec<&Row<'_>>, Vec<&Row<'_>>) = shown.iter().partition(well);
    let (fine, loud) = if fine.len() > 1 { (fine, loud) } else { (Vec::new(), shown.iter().collect()) };
    let mut cell = 0;
    table(page, fleet, true, &loud, prefix, &mut cell);
    if !fine.is_empty() {
        let more = if loud.is_empty() { "component is" } else { "more component is" };
        let many = if loud.is_empty() { "components are" } else { "more components are" };
        page.details(fine.len(), &format!("{more} ok everywhere"), &format!("{many} ok everywhere"));
        table(page, fleet, false, &fine, prefix, &mut cell);
        page.raw("</details>");
    }
    page.more(all.len(), all.len() - rest.len(), "components");
    targets(page, fleet);
    page.raw("</section>");
}

fn table(page: &mut Page, fleet: &[&TargetReport], image: bool, rows: &[&Row<'_>], prefix: &str, cell: &mut usize) {
    page.raw("<div class=\"scroll\"><table class=\"matrix\"><thead><tr><td></td>");
    for target in fleet {
        page.raw("<th scope=\"col\">").text(&target.name).raw("<small>").text(&target.gpu);
        if let Some(driver) = &target.driver {
            page.raw("<br/>driver ").text(driver);
        }
        page.raw("</small></th>");
    }
    page.raw("</tr></thead><tbody>");
    if image {
        page.raw("<tr class=\"whole\"><th scope=\"row\">the image</th>");
        for target in fleet {
            let why = table::why(target);
            one(page, target, None, target.verdict, &why, &mut Place { prefix, cell });
        }
        page.raw("</tr>");
    }
    for row in rows {
        page.raw("<tr><th scope=\"row\">").text(row.of.name);
        if let Some(version) = row.of.version {
            page.raw(" <small>").text(version).raw("</small>");
        }
        if row.of.role == Role::Idle {
            page.raw(" <small class=\"tag\">nothing loads it</small>");
        }
        page.raw("</th>");
        for (target, component) in fleet.iter().zip(&row.cells) {
            match component {
                Some(c) => {
                    let why = format!("{}{}", c.why, modules(&c.modules));
                    one(page, target, Some(row), c.verdict, &why, &mut Place { prefix, cell });
                }
                None => {
                    page.raw("<td><span class=\"none\">–</span></td>");
                }
            }
        }
        page.raw("</tr>");
    }
    page.raw("</tbody></table></div>");
}

struct Place<'a> {
    prefix: &'a str,
    cell: &'a mut usize,
}

fn one(
    page: &mut Page,
    target: &TargetReport,
    row: Option<&Row<'_>>,
    verdict: Verdict,
    why: &str,
    at: &mut Place<'_>,
) {
    let word = verdict.to_string();
    let id = format!("{}-w{}", at.prefix, at.cell);
    *at.cell += 1;
    page.raw("<td").attribute("data-target", &target.name).attribute("data-verdict", &word);
    if let Some(row) = row {
        page.attribute("data-component", row.of.name).attribute("data-version", row.of.version.unwrap_or_default());
    }
    page.raw("><button type=\"button\" class=\"v ").raw(&word).raw("\" aria-describedby=\"").raw(&id).raw("\">");
    page.sign(verdict).raw(&word).raw("</button><span class=\"why\" role=\"tooltip\" id=\"").raw(&id).raw("\"><b>");
    page.text(&row.map_or_else(|| "the image".to_owned(), |row| row.of.label()))
        .raw("</b> on <b>")
        .text(&target.name);
    page.raw("</b>: ").text(why).raw("</span></td>");
}

/// ` · 12 modules: 10 native, 2 missing`; empty without device code.
fn modules(counts: &ModuleCounts) -> String {
    let ModuleCounts { total, native, compatible, jit, missing } = *counts;
    if total == 0 {
        return String::new();
    }
    let kinds = [(native, "native"), (compatible, "compatible"), (jit, "by JIT"), (missing, "missing")];
    let kinds: Vec<String> = kinds.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let total = if total == 1 { "1 module".to_owned() } else { format!("{total} modules") };
    format!(" · {total}: {}", kinds.join(", "))
}

/// The same in words, for those who read.
fn targets(page: &mut Page, fleet: &[&TargetReport]) {
    page.raw("<ul class=\"targets\">");
    for target in fleet {
        page.raw("<li>")
            .verdict(target.verdict)
            .raw("<div><b>")
            .text(&target.name)
            .raw("</b> <span class=\"dim\">");
        page.text(&table::gpu(target));
        let driver = target.driver.as_ref().map_or_else(|| "any driver".to_owned(), |d| format!("driver {d}"));
        page.text(&format!(", {driver}")).raw("</span><br/>").text(&table::why(target)).raw("</div></li>");
    }
    page.raw("</ul>");
}
