//! Of what could be done about a need, the cheapest that helps.

use super::choices::{Choice, Cx, choices};
use super::effect;
use super::need::{Key, Need, What, needs};
use super::state::{Outlook, State, Word, outlook};
use crate::catalog::verdict::Cause;
use crate::lint::{ComponentCause, Subject, TargetCase};
use crate::model::{Change, Verdict};
use crate::report::{Cost, Effect, Role, Step};

/// What was decided for one need.
pub struct Chosen {
    /// `None`: nothing helps.
    pub step: Option<Step>,
    /// The state behind it, where that can be told.
    pub after: Option<(State, Outlook)>,
    /// The other choices.
    pub others: Vec<Step>,
    /// Why what one would think of is no choice, and what stays open.
    pub why: Vec<String>,
}

/// A choice, tried.
struct Tried {
    choice: Choice,
    after: Option<(State, Outlook)>,
    /// Targets of the need that it serves, and that it betters.
    serves: usize,
    betters: usize,
    /// Those that failed, and do no more.
    rescues: usize,
    /// Required targets that are worse off.
    harms: Vec<String>,
}

/// Decides the first need that was not decided before.
pub fn next(
    cases: &[TargetCase<'_>],
    state: &State,
    subject: &Subject<'_>,
    now: &Outlook,
    decided: &[Key],
    mended: bool,
    bettered: &[Key],
) -> Option<(Key, Chosen)> {
    let all = needs(cases, mended, subject.catalog);
    let need = all.iter().find(|n| !decided.contains(&n.key))?;
    let cx = Cx { cases, catalog: subject.catalog };
    let (found, mut why) = choices(need, &cx);
    let mut tried: Vec<Tried> = found.into_iter().map(|c| tried(c, need, state, subject, now)).collect();
    // What a step has bettered already is not left to words.
    let again = bettered.contains(&need.key);
    let best = best(&tried, need).filter(|at| !again || tried[*at].after.is_some());
    // A wheel that serves these targets alone costs a second tag, a build from source far more.
    let apart = best.and_then(|at| wheel_apart(&tried, need, now, at));
    why.extend(apart.clone());
    let chosen = best.filter(|_| apart.is_none()).map(|at| tried.remove(at));
    let mut others: Vec<Step> = Vec::new();
    for other in tried {
        let mut step = finished(&other, need, now);
        if !other.harms.is_empty() {
            let harm = format!("it takes {} from being served", other.harms.join(", "));
            step.review = Some(step.review.map_or(harm.clone(), |r| format!("{r}; {harm}")));
            step.disposition = crate::report::Disposition::Review;
        }
        // What changes nothing for anyone is no choice, unless it cannot be told.
        if other.after.is_none() || other.betters > 0 || matches!(step.change, Change::DropTargets { .. }) {
            others.push(step);
        }
    }
    let left = || format!("{}no other step is known that serves {}", subject_of(need), need.targets.join(", "));
    let Some(chosen) = chosen else {
        if why.is_empty() {
            why.push(left());
        }
        return Some((need.key.clone(), Chosen { step: None, after: None, others, why }));
    };
    let step = finished(&chosen, need, now);
    Some((need.key.clone(), Chosen { step: Some(step), after: chosen.after, others, why }))
}

fn subject_of(need: &Need<'_, '_>) -> String {
    if need.label.is_empty() { String::new() } else { format!("{}: ", need.label) }
}

/// Whether a choice may be taken without being asked for: of a framework that serves with a part missing no other release
/// is, and no build from source.
fn is_worth(tried: &Tried, need: &Need<'_, '_>) -> bool {
    let step = &tried.choice.step;
    match &need.what {
        What::Code { component, .. }
            if component.role == Role::Core && tried.after.is_some() && tried.rescues == 0 =>
        {
            let jit = matches!(component.cause, ComponentCause::Code(Cause::Jit { .. }));
            step.cost <= if jit { Cost::BaseImage } else { Cost::SameVersion } && !tried.choice.older
        }
        _ => step.cost <= Cost::Hosts,
    }
}

/// The cheapest that serves all of the need's targets; else the one that serves most; else words.
fn best(tried: &[Tried], need: &Need<'_, '_>) -> Option<usize> {
    let may = |t: &&(usize, &Tried)| t.1.harms.is_empty() && is_worth(t.1, need);
    let all: Vec<(usize, &Tried)> = tried.iter().enumerate().collect();
    let helps = || all.iter().filter(may).filter(|(_, t)| t.serves > 0 || t.betters > 0);
    let whole = helps().find(|(_, t)| t.serves == need.targets.len());
    let most = || helps().max_by_key(|(at, t)| (t.serves, t.betters, std::cmp::Reverse((t.choice.step.cost, *at))));
    let words = || all.iter().filter(may).find(|(_, t)| t.after.is_none());
    whole.or_else(most).or_else(words).map(|(at, _)| *at)
}

/// Why the need is better left to an image of its own: a wheel serves all its targets that fail, and others no more.
fn wheel_apart(tried: &[Tried], need: &Need<'_, '_>, now: &Outlook, best: usize) -> Option<String> {
    let failing: Vec<&str> = need
        .targets
        .iter()
        .filter(|t| now.get(*t).is_some_and(|w| fails(word_of(&need.key, w))))
        .map(String::as_str)
        .collect();
    let source = tried.get(best)?.choice.step.cost >= Cost::SourceBuild;
    let apart = |t: &&Tried| {
        matches!(t.choice.step.change, Change::Wheel { .. })
            && t.choice.step.cost < Cost::SourceBuild
            && !t.choice.older
            && !t.harms.is_empty()
            && !failing.is_empty()
            && t.rescues == failing.len()
    };
    let wheel = tried.iter().find(apart).filter(|_| source)?;
    let Change::Wheel { package, version, index, .. } = &wheel.choice.step.change else { return None };
    let index = index.as_ref().map_or(String::new(), |(name, _)| format!(" of {name}"));
    let name = format!("{package} {}{index}", version.as_deref().unwrap_or_default());
    Some(format!(
        "no wheel of {package} serves all: {name} serves {} and not {}: two tags",
        failing.join(", "),
        wheel.harms.join(", ")
    ))
}

fn tried(choice: Choice, need: &Need<'_, '_>, state: &State, subject: &Subject<'_>, now: &Outlook) -> Tried {
    let driver = choice.driver.as_ref().map(|d| (&choice.step.resolves[..], d));
    let after = match choice.open {
        true => None,
        false => state.after(&choice.step.change, choice.at.as_ref(), driver, subject.catalog),
    };
    let after = after.map(|next| {
        let outlook = next.subject(subject).cases(outlook);
        (next, outlook)
    });
    let mut out = Tried { choice, after: None, serves: 0, betters: 0, rescues: 0, harms: Vec::new() };
    if let Some((_, then)) = &after {
        for target in &need.targets {
            let (Some(was), Some(is)) = (now.get(target), then.get(target)) else { continue };
            let (before, word) = (word_of(&need.key, was), word_of(&need.key, is));
            out.serves += usize::from(word == Verdict::Ok && !harms(was, is));
            out.betters += usize::from(word > before);
            out.rescues += usize::from(fails(before) && !fails(word) && !harms(was, is));
        }
        out.harms = now
            .iter()
            .filter(|(_, w)| w.required)
            .filter_map(|(name, before)| {
                let word = then.get(name)?;
                harms(before, word).then(|| name.clone())
            })
            .collect();
    }
    out.after = after;
    out
}

/// Whether a word means that the target is not served.
fn fails(word: Verdict) -> bool {
    word < Verdict::Slow
}

/// The word of what a need is about, on one target.
fn word_of(key: &Key, word: &Word) -> Verdict {
    match key {
        Key::Code(place) => word.code.get(place).copied().unwrap_or(Verdict::Ok),
        Key::Problem(rule, place, _) => word.problems.get(&(*rule, place.clone())).copied().unwrap_or(Verdict::Ok),
    }
}

fn finished(tried: &Tried, need: &Need<'_, '_>, now: &Outlook) -> Step {
    let mut step = tried.choice.step.clone();
    step.effect = tried.after.as_ref().map(|(_, after)| {
        let Effect { basis, mut verdicts } = effect(now, after);
        verdicts.retain(|name, (before, after)| need.targets.contains(name) || before != after);
        Effect { basis, verdicts }
    });
    if let Some((_, after)) = &tried.after {
        let served = |name: &&String| {
            after
                .get(*name)
                .is_some_and(|w| Some(word_of(&need.key, w)) > now.get(*name).map(|w| word_of(&need.key, w)))
        };
        let better: Vec<String> = need.targets.iter().filter(served).cloned().collect();
        if !better.is_empty() {
            step.resolves = better;
        }
    }
    step
}

/// A target is worse off: its verdict is worse, or that of a component is.
fn harms(before: &Word, after: &Word) -> bool {
    after.verdict < before.verdict
        || after.code.iter().any(|(place, word)| before.code.get(place).is_some_and(|was| word < was))
}
