use roxmltree::{Document as Xml, Node};

use super::super::{Format, Gathered, Report, sample};
use super::*;

fn page(report: &Report) -> String {
    let mut one = Gathered::new(Format::Html, false).unwrap();
    one.add(report, false, Some(1));
    String::from_utf8(one.finish(Some(1)).unwrap()).unwrap()
}

fn parsed(page: &str) -> Xml<'_> {
    let markup = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    Xml::parse(markup).unwrap_or_else(|e| panic!("{e}\n{markup}"))
}

/// All text below a node.
fn words(node: Node<'_, '_>) -> String {
    node.descendants().filter(|n| n.is_text()).filter_map(|n| n.text()).collect()
}

fn with<'a, 'd: 'a>(xml: &'a Xml<'d>, name: &'a str) -> impl Iterator<Item = Node<'a, 'd>> {
    xml.descendants().filter(move |n| n.attribute(name).is_some())
}

fn class<'a, 'd: 'a>(xml: &'a Xml<'d>, name: &'a str) -> impl Iterator<Item = Node<'a, 'd>> {
    let has = move |n: &Node<'_, '_>| n.attribute("class").is_some_and(|c| c.split(' ').any(|c| c == name));
    xml.descendants().filter(has)
}

#[test]
fn pages_are_well_formed_and_load_nothing() {
    let reports = [sample::failing(), sample::wide(), sample::untargeted(), sample::kinds()];
    for page in reports.iter().map(page).chain([of_files(&sample::lint(), Some(1))]) {
        let xml = parsed(&page);
        for name in ["script", "link", "img", "iframe", "object", "base", "form"] {
            assert!(!xml.descendants().any(|n| n.has_tag_name(name)), "{name}");
        }
        for node in xml.descendants() {
            for attribute in node.attributes() {
                let (name, value) = (attribute.name(), attribute.value());
                assert!(!name.starts_with("on") && name != "style" && name != "src", "{name}");
                assert!(name != "href" || value.starts_with('#'), "{value}");
            }
        }
        // Ids are there once, and every reference has one.
        let mut ids: Vec<&str> = xml.descendants().filter_map(|n| n.attribute("id")).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
        for name in ["aria-describedby", "aria-labelledby", "href"] {
            for node in with(&xml, name) {
                let id = node.attribute(name).unwrap().trim_start_matches('#');
                assert!(ids.binary_search(&id).is_ok(), "{name} {id}");
            }
        }
        let policy = xml.descendants().find_map(|n| n.attribute("content").filter(|c| c.contains("default-src")));
        assert!(policy.unwrap().starts_with("default-src 'none'; style-src 'sha256-"));
    }
}

#[test]
fn the_matrix_has_every_cell_of_the_report() {
    let mut twice = sample::failing();
    for target in twice.targets.iter_mut().flatten() {
        let mut other = target.components[0].clone();
        other.verdict = crate::model::Verdict::Ok;
        target.components.push(other);
    }
    for report in [sample::failing(), sample::wide(), sample::kinds(), twice] {
        let page = page(&report);
        let xml = parsed(&page);
        let cells = with(&xml, "data-target");
        let mut shown: Vec<[String; 4]> = cells
            .map(|n| {
                let of = |name| n.attribute(name).unwrap_or_default().to_owned();
                let word = words(n.first_element_child().unwrap());
                assert!(word.ends_with(&of("data-verdict")), "{word}");
                ["data-target", "data-component", "data-version", "data-verdict"].map(of)
            })
            .collect();
        let mut told = Vec::new();
        for target in report.targets.iter().flatten() {
            let name = clean(&target.name);
            told.push([name.clone(), String::new(), String::new(), target.verdict.to_string()]);
            for c in &target.components {
                let version = clean(c.version.as_deref().unwrap_or_default());
                told.push([name.clone(), clean(&c.name), version, c.verdict.to_string()]);
            }
        }
        shown.sort();
        told.sort();
        assert_eq!(shown, told);
    }
}

#[test]
fn findings_stand_beside_their_lines() {
    let page = of_files(&sample::lint(), Some(1));
    let xml = parsed(&page);
    let finding = with(&xml, "data-rule").find(|n| n.attribute("data-rule") == Some("arch-list-misses-target"));
    let source = finding.unwrap().descendants().find(|n| n.has_tag_name("pre")).unwrap();
    let marked: Vec<String> = source.descendants().filter(|n| n.has_tag_name("mark")).map(words).collect();
    assert_eq!(marked, ["8.0 8.6"]);
    let lines: Vec<&str> =
        source.descendants().filter_map(|n| n.attribute("class")).filter(|c| c.contains("line")).collect();
    assert_eq!(lines, ["line", "line", "line meant", "line", "line"]);
}

#[test]
fn a_patch_is_shown_line_by_line() {
    let mut report = sample::failing();
    let patch = "--- a/Dockerfile\n+++ b/Dockerfile\n@@ -1,2 +1,2 @@\n FROM x\n-RUN <old>\n+RUN new && a\n";
    if let Some(plan) = &mut report.plan {
        plan.patch = Some(patch.into());
    }
    let page = page(&report);
    let xml = parsed(&page);
    let of = |name: &str| xml.descendants().filter(|n| n.has_tag_name(name)).map(words).collect::<Vec<_>>();
    assert_eq!((of("del"), of("ins")), (vec!["-RUN <old>".to_owned()], vec!["+RUN new && a".to_owned()]));
}

#[test]
fn nothing_from_outside_is_markup() {
    let hostile = "</style><script>alert(1)</script><img src=x onerror=\"a\">'&#60;\u{202e}\u{1b}[0m\u{0}";
    let mut report = sample::failing();
    let image = report.image.as_mut().unwrap();
    image.reference = hostile.into();
    for layer in &mut image.layers {
        layer.created_by = Some(hostile.into());
    }
    for target in report.targets.iter_mut().flatten() {
        (target.name, target.why, target.gpu) = (hostile.into(), hostile.into(), hostile.into());
        for c in &mut target.components {
            (c.name, c.why, c.version) = (hostile.into(), hostile.into(), Some(hostile.into()));
        }
    }
    for finding in &mut report.findings {
        (finding.rule, finding.message, finding.help) = (hostile.into(), hostile.into(), Some(hostile.into()));
        (finding.targets, finding.because) = (vec![hostile.into()], vec![hostile.into()]);
    }
    for code in &mut report.device_code {
        code.component = Some(hostile.into());
    }
    let page = page(&report);
    let xml = parsed(&page);
    assert!(!xml.descendants().any(|n| n.has_tag_name("script") || n.has_tag_name("img")));
    assert!(!page.contains(['\u{202e}', '\u{1b}', '\u{0}']));
    assert!(words(xml.root_element()).contains("<script>alert(1)</script>"));
}

#[test]
fn pages_stay_bounded() {
    let mut report = sample::failing();
    let finding = report.findings[0].clone();
    report.findings = vec![finding; 20_000];
    let gap = crate::model::Gap::image("x".repeat(200));
    report.gaps = vec![gap; 50_000];
    for target in report.targets.iter_mut().flatten() {
        let component = target.components[0].clone();
        let named = |n: usize| super::super::ComponentReport { name: format!("c{n}"), ..component.clone() };
        target.components = (0..30_000).map(named).collect();
    }
    let page = page(&report);
    assert!(page.len() < 24 << 20, "{}", page.len());
    assert!(page.contains("more components; the JSON has all") && page.contains("more of these"));
    parsed(&page);

    let mut several = Gathered::new(Format::Html, true).unwrap();
    for _ in 0..20 {
        several.add(&report, false, Some(1));
    }
    several.add(&sample::untargeted(), true, Some(2));
    let all = String::from_utf8(several.finish(Some(2)).unwrap()).unwrap();
    assert!(all.len() < 32 << 20, "{}", all.len());
    assert!(all.contains("only this table tells"), "what was left out is told");
}

#[test]
fn several_images_are_one_page() {
    let mut several = Gathered::new(Format::Html, true).unwrap();
    several.add(&sample::untargeted(), true, Some(2));
    several.add(&sample::failing(), false, Some(1));
    several.add(&sample::wide(), false, Some(1));
    let page = String::from_utf8(several.finish(Some(2)).unwrap()).unwrap();
    let xml = parsed(&page);
    assert_eq!(class(&xml, "top").count(), 4, "one over all, one for each");
    assert!(page.contains("unread") && page.contains("href=\"#i1\""));
    let none = Gathered::new(Format::Html, true).unwrap().finish(Some(2)).unwrap();
    assert!(String::from_utf8(none).unwrap().contains("No image was judged."));
}
