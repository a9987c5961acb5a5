use imagelint::*;
fn main() {
    let a: Vec<String> = std::env::args().skip(1).collect();
    let catalog = catalog::Catalog::embedded();
    let targets = a[1..].iter().map(|t| config::parse_target(t, catalog).unwrap()).collect();
    let fleet = config::Fleet::of_targets(targets);
    let s = scan::run(&a[0], &Default::default(), &Default::default(), &scan::Silent).unwrap_or_else(|e| { eprintln!("error: {e}"); std::process::exit(2) });
    for n in &s.notices { eprintln!("{n}"); }
    let r = lint::judge(&s.evidence, &fleet, catalog, &Default::default());
    println!("{}", serde_json::to_string_pretty(&r).unwrap());
    std::process::exit(lint::exit_code(&r, Default::default(), false).into());
}
