//! `plan --check-wheels`: what the wheels that steps name really hold, put beside what tables say of them.

use std::collections::BTreeSet;

use super::args::WheelArgs;
use super::basis;
use super::error::CliError;
use super::output::Screen;
use crate::config::Fleet;
use crate::image::sources::OpenOptions;
use crate::lint;
use crate::model::{Arch, Change, Evidence, Form, Verdict};
use crate::report::{Disposition, Plan, Report, Step};
use crate::scan::wheel::{self, Checked, NotChecked, WheelOptions};

/// Looks into every wheel of a plan, each once.
pub fn amend(
    report: &mut Report,
    evidence: &[Evidence],
    fleet: &Fleet,
    args: &WheelArgs,
    open: OpenOptions,
    screen: &Screen,
) -> Result<(), CliError> {
    let mut options = WheelOptions::new(args.index_url.as_deref(), open)?;
    options.catalog = basis::catalog();
    if let Some(limit) = args.max_wheel_size {
        options.limit = limit;
    }
    let starts = |name: &str, size: u64| {
        screen.notice(&format!("looking into {name} ({} MiB) on its index", size.div_ceil(1 << 20)));
    };
    let asked = |evidence: &Evidence, change: &Change| {
        let Change::Wheel { package, version, specifier, index, .. } = change else { return None };
        let question = wheel::question(evidence, package, version.as_deref(), specifier, index.clone());
        Some(wheel::check(&question, &options, &starts))
    };
    let Some(mut plan) = report.plan.take() else { return Ok(()) };
    Checks { evidence, fleet, report, known: Vec::new() }.all(&mut plan, &asked);
    report.plan = Some(plan);
    Ok(())
}

/// Looks into the wheel that a change means for an image; `None`: the change is of none.
type Ask<'a> = dyn Fn(&Evidence, &Change) -> Option<Result<Checked, NotChecked>> + 'a;

struct Checks<'a> {
    evidence: &'a [Evidence],
    fleet: &'a Fleet,
    report: &'a Report,
    known: Vec<Asked>,
}

/// What was asked already.
struct Asked {
    /// Without what it claims.
    change: Change,
    /// The index of the evidence.
    place: usize,
    answer: Option<Result<Answer, NotChecked>>,
}

/// A wheel, and what it does for the fleet.
#[derive(Clone)]
struct Answer {
    checked: Checked,
    /// By target, as far as the wheel's own code decides.
    verdicts: Vec<(String, Verdict)>,
}

/// What becomes of a step.
enum Outcome {
    Stays,
    /// The wheel is not what the step says, or there is none.
    Contradicted(String),
}

impl Checks<'_> {
    fn all(&mut self, plan: &mut Plan, ask: &Ask<'_>) {
        let mut kept = Vec::new();
        for mut step in std::mem::take(&mut plan.steps) {
            match self.step(&mut step, ask) {
                Outcome::Stays => kept.push(step),
                Outcome::Contradicted(why) => {
                    plan.unresolved.push(format!("{}: {} ({why})", step.component, step.summary));
                    // It was that of all steps together.
                    plan.effect = None;
                }
            }
        }
        plan.steps = kept;
        for step in &mut plan.alternatives {
            if let Outcome::Contradicted(why) = self.step(step, ask) {
                step.effect = None;
                review(step, format!("contradicted: {why}"));
            }
        }
    }

    fn step(&mut self, step: &mut Step, ask: &Ask<'_>) -> Outcome {
        if !matches!(step.change, Change::Wheel { .. }) {
            return Outcome::Stays;
        }
        for place in self.images_of(step) {
            match self.answer(place, &step.change, ask) {
                None => {}
                Some(Err(NotChecked::NoWheel { why })) => return Outcome::Contradicted(why),
                Some(Err(NotChecked::Unread { why })) => {
                    step.because.push(format!("not checked: {why}"));
                    review(step, "its wheel could not be looked into".to_owned());
                }
                Some(Ok(answer)) => {
                    if let Some(why) = contradiction(step, &answer) {
                        return Outcome::Contradicted(why);
                    }
                    tell(step, &answer);
                }
            }
        }
        Outcome::Stays
    }

    /// The images, by platform, that a step's targets are judged on.
    fn images_of(&self, step: &Step) -> Vec<usize> {
        let targets = self.report.targets.iter().flatten().filter(|t| step.resolves.contains(&t.name));
        let platforms: Vec<_> = targets.filter_map(|t| t.platform.as_ref()).collect();
        let is_meant = |e: &Evidence| e.image.platform.as_ref().is_some_and(|p| platforms.contains(&p));
        let meant: Vec<usize> = (0..self.evidence.len()).filter(|&i| is_meant(&self.evidence[i])).collect();
        if meant.is_empty() { (0..self.evidence.len().min(1)).collect() } else { meant }
    }

    fn answer(&mut self, place: usize, change: &Change, ask: &Ask<'_>) -> Option<Result<Answer, NotChecked>> {
        let key = without_claims(change);
        if let Some(asked) = self.known.iter().find(|a| a.place == place && a.change == key) {
            return asked.answer.clone();
        }
        let answer = ask(&self.evidence[place], change)
            .map(|result| result.map(|checked| Answer { verdicts: self.judge(&checked, place), checked }));
        self.known.push(Asked { change: key, place, answer: answer.clone() });
        answer
    }

    /// Judges the wheel's own code for the fleet.
    fn judge(&self, checked: &Checked, place: usize) -> Vec<(String, Verdict)> {
        let mut evidence = checked.evidence.clone();
        evidence.image.platform = self.evidence[place].image.platform.clone();
        let subject = lint::Subject {
            evidence: &[evidence],
            targets: &self.fleet.targets,
            required: &self.fleet.required_components,
            catalog: basis::catalog(),
            allow_gaps: true,
        };
        let worst = |t: &lint::TargetCase<'_>| {
            let own = t.components.iter().filter(|c| !c.files.is_empty()).map(|c| c.verdict).min();
            Some((t.target.name.clone(), own?))
        };
        subject.cases(|cases| cases.iter().filter_map(worst).collect())
    }
}

/// The change as an index is asked for it.
fn without_claims(change: &Change) -> Change {
    match change.clone() {
        Change::Wheel { package, version, specifier, index, .. } => {
            Change::Wheel { package, version, specifier, index, built: None, cuda: None }
        }
        other => other,
    }
}

/// How planners say that a step rests on what nobody looked into.
const UNSEEN: &str = "(--check-wheels looks)";

/// Takes back what is to be reviewed only because nobody had looked.
fn seen(step: &mut Step) {
    let Some(review) = step.review.take() else { return };
    let rest: Vec<&str> = review.split("; ").filter(|r| !r.ends_with(UNSEEN)).collect();
    match rest.is_empty() {
        true => step.disposition = Disposition::Safe,
        false => step.review = Some(rest.join("; ")),
    }
}

fn review(step: &mut Step, why: String) {
    step.disposition = Disposition::Review;
    step.review = Some(match step.review.take() {
        Some(before) => format!("{before}; {why}"),
        None => why,
    });
}

/// Machine code that the step's table row has and the wheel has not.
fn missing(step: &Step, checked: &Checked) -> Vec<Arch> {
    let Change::Wheel { built: Some(claimed), .. } = &step.change else { return Vec::new() };
    let archs = checked.archs();
    let sass = claimed.sass.iter().map(|a| (Form::Sass, Arch::from(*a)));
    let gfx = claimed.gfx.iter().map(|p| (Form::CodeObject, Arch::Gfx((*p).into())));
    sass.chain(gfx).filter(|code| !archs.by_code.contains_key(code)).map(|(_, arch)| arch).collect()
}

/// Why the wheel cannot do what the step says; `None`: it may.
fn contradiction(step: &Step, answer: &Answer) -> Option<String> {
    let checked = &answer.checked;
    let holds = format!("{} holds {}", checked.filename, checked.archs().text());
    let missing = missing(step, checked);
    let claims = |archs: &[Arch]| archs.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    if checked.archs().by_code.is_empty() && !missing.is_empty() {
        return Some(format!("the table says {}, {holds}", claims(&missing)));
    }
    let promised = |name: &String| {
        let after = step.effect.as_ref().and_then(|e| e.verdicts.get(name)).map(|v| v.1);
        after.or(step.resolves.contains(name).then_some(Verdict::Ok))
    };
    let broken: BTreeSet<&str> = answer
        .verdicts
        .iter()
        .filter(|(name, verdict)| *verdict == Verdict::Fail && promised(name).is_some_and(|p| p != Verdict::Fail))
        .map(|(name, _)| name.as_str())
        .collect();
    if broken.is_empty() {
        return None;
    }
    let broken = broken.into_iter().collect::<Vec<_>>().join(", ");
    let table = if missing.is_empty() { String::new() } else { format!("the table says {}, ", claims(&missing)) };
    Some(format!("{table}{holds}: {broken} cannot run it"))
}

/// Puts what was seen into a step that stays.
fn tell(step: &mut Step, answer: &Answer) {
    let checked = &answer.checked;
    seen(step);
    step.because.push(format!("checked: {} holds {}; {}", checked.filename, checked.archs().text(), checked.how()));
    if checked.any_python {
        step.because.push("the image's Python is not known: the wheel of the newest was looked into".to_owned());
    }
    let missing = missing(step, checked);
    if !missing.is_empty() {
        let names = missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        review(step, format!("the table says {names} too, the wheel has none of it"));
    }
    let promised = |name: &String| step.effect.as_ref().and_then(|e| e.verdicts.get(name)).map(|v| v.1);
    let worse = |(name, verdict): &&(String, Verdict)| promised(name).is_some_and(|p| *verdict < p);
    let worse: Vec<String> =
        answer.verdicts.iter().filter(worse).map(|(name, verdict)| format!("{verdict} for {name}")).collect();
    if !worse.is_empty() {
        review(step, format!("the wheel's own code is {}", worse.join(", ")));
    }
    if let Change::Wheel { package, built, .. } = &mut step.change {
        *built = Some(wheel::built_of(checked, package));
    }
}

#[cfg(test)]
mod tests;
