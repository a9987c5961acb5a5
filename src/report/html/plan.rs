//! What to change, what that does to verdicts, and the change of the Dockerfile itself.

use super::super::{Basis, Disposition, Effect, Plan, Step};
use super::page::Page;
use super::source;

/// Steps, and other choices.
const SHOWN: usize = 200;

pub(super) fn section(page: &mut Page, plan: &Plan, prefix: &str) {
    if plan.steps.is_empty() && plan.unresolved.is_empty() {
        return;
    }
    page.section(&format!("{prefix}-plan"), "Plan", "the cheapest that helps, in this order");
    steps(page, &plan.steps);
    if let Some(effect) = &plan.effect {
        page.raw("<p><b>All of it:</b> ");
        told(page, effect);
        page.raw("</p>");
    }
    if !plan.tags.is_empty() {
        page.raw("<p>No one image serves all; these do together:</p><ul>");
        for tag in &plan.tags {
            page.raw("<li><b>").text(&tag.name).raw("</b> for ").text(&tag.targets.join(", "));
            page.raw(": ").text(&tag.why).raw("</li>");
        }
        page.raw("</ul>");
    }
    if !plan.unresolved.is_empty() {
        page.raw("<p>Left open:</p><ul>");
        for open in plan.unresolved.iter().take(SHOWN) {
            page.raw("<li>").text(open).raw("</li>");
        }
        page.raw("</ul>");
        page.more(plan.unresolved.len(), SHOWN, "of these");
    }
    if let Some(patch) = plan.patch.as_deref().filter(|p| !p.is_empty()) {
        page.raw("<h3>The Dockerfile, changed</h3>");
        source::patch(page, patch);
    }
    if !plan.alternatives.is_empty() {
        page.details(plan.alternatives.len(), "other choice", "other choices");
        steps(page, &plan.alternatives);
        page.raw("</details>");
    }
    page.raw("</section>");
}

fn steps(page: &mut Page, steps: &[Step]) {
    page.raw("<ol class=\"steps\">");
    for step in steps.iter().take(SHOWN) {
        page.raw("<li><p>").text(&step.summary);
        if let Some(tag) = &step.tag {
            page.raw(" <span class=\"chip\">tag ").text(tag).raw("</span>");
        }
        page.raw("</p>");
        if let Some(command) = &step.command {
            page.raw("<pre class=\"command\">").text(command).raw("</pre>");
        }
        for (name, value) in &step.env {
            page.raw("<pre class=\"command\">").text(&format!("{name}={value}")).raw("</pre>");
        }
        for edit in &step.edits {
            page.raw("<p class=\"dim\"><code>").text(edit).raw("</code></p>");
        }
        if let Some(effect) = &step.effect {
            page.raw("<p>");
            told(page, effect);
            page.raw("</p>");
        }
        if step.disposition == Disposition::Review {
            let why = step.review.as_deref().unwrap_or("a person should look");
            page.raw("<p class=\"dim\">To be reviewed: ").text(why).raw("</p>");
        }
        page.raw("</li>");
    }
    page.raw("</ol>");
    page.more(steps.len(), SHOWN, "steps");
}

/// Each verdict that changes, before and after.
fn told(page: &mut Page, effect: &Effect) {
    page.raw(match effect.basis {
        Basis::Measured => "measured: ",
        Basis::Predicted => "predicted: ",
    });
    let mut none = true;
    for (target, (before, after)) in effect.verdicts.iter().filter(|(_, (before, after))| before != after) {
        none = false;
        page.raw("<span class=\"change\">").text(target).raw(" ").verdict(*before).raw(" → ").verdict(*after);
        page.raw("</span> ");
    }
    if none {
        page.raw("no other verdict");
    }
}
