use super::*;
use crate::dockerfile::expand::Piece;
use crate::dockerfile::parse::parse;
use crate::dockerfile::value::{Origin, Text, Variable};

fn reading(text: &str) -> Reading {
    read(parse(text.as_bytes()), &Inputs::default())
}

fn with(text: &str, inputs: &Inputs<'_>) -> Reading {
    read(parse(text.as_bytes()), inputs)
}

/// The variable at the end of the last stage.
fn end<'a>(reading: &'a Reading, name: &str) -> Option<&'a Variable> {
    reading.ends.last()?.get(name)
}

/// The same, if it is known.
fn known<'a>(reading: &'a Reading, name: &str) -> Option<&'a str> {
    end(reading, name)?.value.known()
}

/// Before the last instruction.
fn before<'a>(reading: &'a Reading, name: &str) -> Option<&'a str> {
    reading.scopes.last()?.get(name)?.value.known()
}

fn base(reading: &Reading, stage: usize) -> Option<&str> {
    match &reading.stages.get(stage)?.base {
        Base::Image(text) => text.value.known(),
        _ => None,
    }
}

#[test]
fn from_sees_the_args_before_it_and_nothing_else() {
    let reading = reading(
        "ARG CUDA=12.4.1\nARG BASE=nvidia/cuda:${CUDA}-devel-ubuntu22.04\nFROM $BASE AS a\nARG CUDA=9\nENV X=1\n\
         FROM nvidia/cuda:${CUDA}${X}",
    );
    assert_eq!(base(&reading, 0), Some("nvidia/cuda:12.4.1-devel-ubuntu22.04"));
    assert_eq!(base(&reading, 1), Some("nvidia/cuda:12.4.1"));
    let Base::Image(Text { trail, .. }) = &reading.stages[0].base else { panic!() };
    let names: Vec<&str> = trail.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["BASE", "CUDA"]);
    let Origin::Arg(span) = trail[1].origin else { panic!() };
    assert_eq!(reading.document.slice(span), "CUDA=12.4.1");
}

#[test]
fn an_arg_of_the_file_is_in_a_stage_only_when_declared() {
    let reading = reading("ARG A=1\nARG B=2\nFROM x\nARG A\nARG B=3\nRUN true");
    assert_eq!(before(&reading, "A"), Some("1"));
    assert_eq!(before(&reading, "B"), Some("3"));
    let none = super::read(parse(b"ARG A=1\nFROM x\nRUN true"), &Inputs::default());
    assert_eq!(none.scopes[2].get("A"), None);
    assert_eq!(none.scopes[1].get("A").and_then(|v| v.value.known()), Some("1"), "FROM sees it");
}

#[test]
fn an_arg_without_a_value_is_unset() {
    let reading = reading("FROM x\nARG A\nENV B=${A:-b} C=$A D=${A:+d}");
    let a = end(&reading, "A").unwrap();
    assert!(a.unset && a.arg);
    assert_eq!(known(&reading, "B"), Some("b"));
    assert_eq!(end(&reading, "C").unwrap().value, Value::Unknown);
    assert!(!end(&reading, "C").unwrap().unset);
    assert_eq!(known(&reading, "D"), Some(""));
}

#[test]
fn build_args_win_over_defaults_of_declared_args_only() {
    let given = |name: &str, value: &str| (name.to_owned(), Value::Known(value.to_owned()));
    let build_args =
        vec![given("A", "0"), given("A", "9"), given("G", "g"), given("NEVER", "x"), given("http_proxy", "p")];
    let inputs = Inputs { build_args, ..Inputs::default() };
    let reading = with("ARG G=1\nFROM x:$G\nARG A=1\nARG G\nENV E=1\nARG E\nENV N=$NEVER P=$http_proxy", &inputs);
    assert_eq!(base(&reading, 0), Some("x:g"));
    assert_eq!(known(&reading, "A"), Some("9"), "the later one");
    assert_eq!(end(&reading, "A").unwrap().origin, Origin::Given);
    assert_eq!(known(&reading, "G"), Some("g"));
    assert_eq!(end(&reading, "NEVER"), None);
    assert_eq!(known(&reading, "P"), Some("p"), "proxies need no ARG");
}

#[test]
fn env_of_one_line_sees_what_was_before_it() {
    let reading = reading("FROM scratch\nENV a=1\nENV a=2 b=$a\nENV c=$b$a");
    assert_eq!(known(&reading, "b"), Some("1"));
    assert_eq!(known(&reading, "c"), Some("12"));
    let c = end(&reading, "c").unwrap();
    let names: Vec<&str> = c.trail.iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["b", "a", "a"], "both values of a");
}

#[test]
fn args_of_one_line_see_each_other() {
    let reading = reading("FROM scratch\nARG a=1 b=$a");
    assert_eq!(known(&reading, "b"), Some("1"));
}

#[test]
fn env_is_in_the_image_whatever_an_arg_hides() {
    let text = "FROM x AS a\nENV V=env\nARG V=arg\nRUN one\nFROM a\nRUN two";
    let reading = reading(text);
    let at = |index: usize| reading.scopes[index]["V"].value.known();
    assert_eq!(at(3), Some("arg"));
    assert_eq!(at(5), Some("env"));
    let end = &reading.ends[0]["V"];
    assert_eq!((end.value.known(), end.arg), (Some("env"), false));
    assert_eq!(known(&super::read(parse(b"FROM x\nARG V=arg\nENV V=env"), &Inputs::default()), "V"), Some("env"));
    let unset = super::read(parse(b"FROM x\nENV V=env\nARG V"), &Inputs::default());
    assert_eq!(known(&unset, "V"), Some("env"), "nothing is given");
}

#[test]
fn a_stage_goes_on_where_its_base_ended() {
    let text = "FROM x AS Base\nENV A=1\nARG B=2\nWORKDIR /w\nUSER me\nSHELL [\"pwsh\", \"-c\"]\nFROM base\n\
                WORKDIR sub\nRUN x";
    let reading = reading(text);
    assert_eq!(reading.stages[1].base, Base::Stage(0));
    assert_eq!(reading.stages[0].name.as_deref(), Some("base"));
    assert_eq!(before(&reading, "A"), Some("1"));
    assert_eq!(before(&reading, "B"), Some("2"));
    let last = reading.dirs.len() - 1;
    assert_eq!(*reading.dirs[last], Value::Known("/w/sub".into()));
    assert_eq!(*reading.users[last], Value::Known("me".into()));
    assert_eq!(reading.shells[last], ShellKind::Other);
    assert_eq!(reading.shells[0], ShellKind::Posix);
}

#[test]
fn the_base_images_variables() {
    let env = |reference: &str| match reference {
        "cuda:12" => vec![("CUDA_VERSION".to_owned(), "12.4".to_owned()), ("PATH".to_owned(), "/b".to_owned())],
        "part:1" => vec![("CUDA_VERSION".to_owned(), "12.4".to_owned())],
        _ => Vec::new(),
    };
    let inputs = Inputs { base_env: Some(&env), ..Inputs::default() };
    let whole = with("ARG V=12\nFROM cuda:$V\nENV A=$CUDA_VERSION PATH=/a:$PATH N=x$NOBODY", &inputs);
    assert_eq!(known(&whole, "A"), Some("12.4"));
    assert_eq!(known(&whole, "PATH"), Some("/a:/b"));
    assert_eq!(known(&whole, "N"), Some("x"), "the image has all that it has");
    assert_eq!(end(&whole, "CUDA_VERSION").unwrap().origin, Origin::Base);
    let part = with("FROM part:1\nENV A=$CUDA_VERSION N=x$NOBODY", &inputs);
    assert_eq!(known(&part, "A"), Some("12.4"));
    assert_eq!(known(&part, "N"), None);
    assert_eq!(known(&reading("FROM cuda:12\nENV N=x$NOBODY"), "N"), None);
    assert_eq!(
        known(&reading("FROM scratch\nENV N=x$NOBODY:$PATH"), "N").map(|n| n.starts_with("x:/usr")),
        Some(true)
    );
}

#[test]
fn platforms() {
    let text =
        "FROM x:$TARGETARCH\nARG TARGETARCH\nARG TARGETPLATFORM\nENV A=$TARGETARCH P=$TARGETPLATFORM O=$TARGETOS";
    let both = reading(text);
    let arches = Value::OneOf(vec!["amd64".into(), "arm64".into()]);
    assert_eq!(end(&both, "A").unwrap().value, arches);
    assert_eq!(known(&both, "O"), None, "not declared");
    let Base::Image(Text { value, .. }) = &both.stages[0].base else { panic!() };
    assert_eq!(*value, Value::OneOf(vec!["x:amd64".into(), "x:arm64".into()]));
    for (platform, arch, whole) in [
        ("linux/arm64", "arm64", "linux/arm64"),
        ("linux/arm64/v8", "arm64", "linux/arm64"),
        ("aarch64", "arm64", "linux/arm64"),
        ("linux/x86_64", "amd64", "linux/amd64"),
        ("linux/arm/v7", "arm", "linux/arm/v7"),
    ] {
        let one = with(text, &Inputs { platform: Some(platform.into()), ..Inputs::default() });
        assert_eq!(known(&one, "A"), Some(arch), "{platform}");
        assert_eq!(known(&one, "P"), Some(whole), "{platform}");
        assert_eq!(base(&one, 0), Some(format!("x:{arch}").as_str()));
    }
    let stage = reading("FROM x AS First\nFROM y AS Last\nARG TARGETSTAGE");
    assert_eq!(known(&stage, "TARGETSTAGE"), Some("last"));
    let own = reading("FROM x\nARG TARGETARCH=sparc\nENV A=$TARGETARCH");
    assert_eq!(known(&own, "A"), Some("sparc"), "a default hides the builder's value");
}

#[test]
fn stages_that_are_built_and_those_in_the_image() {
    let text = "FROM a AS unused\nFROM b AS builder\nFROM c AS mounted\nFROM d AS base\nFROM base\n\
                COPY --from=Builder /x /x\nRUN --mount=type=bind,from=mounted,target=/m x\nCOPY --from=0 / /\n\
                COPY --from=nginx:1 / /\nCOPY --from=9 / /\nCOPY --from=$X / /";
    let reading = reading(text);
    let built: Vec<bool> = reading.stages.iter().map(|s| s.built).collect();
    assert_eq!(built, [true; 5], "0 by its index");
    let image: Vec<bool> = reading.stages.iter().map(|s| s.in_image).collect();
    assert_eq!(image, [false, false, false, true, true]);
    assert_eq!(reading.stages[4].root, (Base::Image(Text::known("d")), 3));
    let from: Vec<&Base> = reading.sources.iter().map(|s| &s.from).collect();
    assert_eq!(
        from,
        [
            &Base::Stage(1),
            &Base::Stage(2),
            &Base::Stage(0),
            &Base::Image(Text::known("nginx:1")),
            &Base::None,
            &Base::None
        ]
    );
    assert_eq!(reading.document.slice(reading.sources[0].span), "Builder");
    assert_eq!(reading.stage_of(0), Some(0));
    assert_eq!(reading.stage_of(7), Some(4));
}

#[test]
fn the_target_asked_for_is_the_last() {
    let text = "FROM a AS one\nFROM b AS two\nFROM one AS three";
    let at = |target: &str| with(text, &Inputs { target: Some(target.into()), ..Inputs::default() });
    let two = at("TWO");
    assert_eq!(two.last, Some(1));
    let built: Vec<bool> = two.stages.iter().map(|s| s.built && s.in_image).collect();
    assert_eq!(built, [false, true, false]);
    assert_eq!(at("0").last, Some(0));
    assert_eq!(at("none").last, None);
    assert!(at("none").stages.iter().all(|s| !s.built));
    assert_eq!(reading(text).last, Some(2));
    assert_eq!(reading("").last, None);
}

#[test]
fn a_name_used_twice_is_the_nearest_before() {
    let reading = reading("FROM a AS x\nFROM b AS x\nFROM x\nFROM later\nFROM c AS later\nFROM Scratch");
    assert_eq!(reading.stages[2].base, Base::Stage(1));
    assert_eq!(base(&reading, 3), Some("later"));
    assert_eq!(base(&reading, 5), Some("Scratch"));
}

#[test]
fn a_from_that_may_name_several_stages() {
    let text = "FROM a:1 AS build-amd64\nENV SAME=1 DIFFER=x ONE=1\nWORKDIR /w\nFROM a:2 AS build-arm64\n\
                ENV SAME=1 DIFFER=y\nWORKDIR /w\nFROM b AS other\nFROM build-${TARGETARCH}\nRUN x";
    let reading = reading(text);
    let last = &reading.stages[3];
    assert_eq!(last.maybe, [0, 1]);
    assert!(matches!(&last.base, Base::Image(text) if text.value.all().count() == 2));
    let (Base::Image(root), 3) = &last.root else { panic!("{:?}", last.root) };
    assert_eq!(root.value, Value::OneOf(vec!["a:1".into(), "a:2".into()]));
    let marks: Vec<(bool, bool, bool)> = reading.stages.iter().map(|s| (s.built, s.in_image, s.perhaps)).collect();
    assert_eq!(marks, [(true, true, true), (true, true, true), (false, false, false), (true, true, false)]);
    assert_eq!(before(&reading, "SAME"), Some("1"));
    assert_eq!(end(&reading, "DIFFER").unwrap().value, Value::OneOf(vec!["x".into(), "y".into()]));
    assert_eq!(end(&reading, "ONE").unwrap().value, Value::Unknown);
    assert_eq!(*reading.dirs[reading.dirs.len() - 1], Value::Known("/w".into()));
}

#[test]
fn a_from_that_is_partly_unknown() {
    let text = "ARG F\nARG B\nFROM a AS cpu-base\nFROM b AS gpu-base\nFROM c AS tool\nFROM $F-base\nFROM $B";
    let partly = with(text, &Inputs { target: Some("3".into()), ..Inputs::default() });
    assert_eq!(partly.stages[3].maybe, [0, 1]);
    assert!(partly.stages[0].perhaps && !partly.stages[2].built);
    assert_eq!(partly.ends[3].get("A"), None);
    let wholly = reading(text);
    assert!(wholly.stages[4].maybe.is_empty(), "an image from outside, more likely");
    assert!(wholly.stages[..3].iter().all(|s| s.built && !s.in_image));
    let given = vec![("F".to_owned(), Value::Known("gpu".to_owned()))];
    let known = with(text, &Inputs { build_args: given, target: Some("3".into()), ..Inputs::default() });
    assert_eq!(known.stages[3].base, Base::Stage(1));
}

#[test]
fn directories() {
    let at = |text: &str| {
        let reading = reading(&format!("{text}\nRUN x"));
        Value::clone(&reading.dirs[reading.dirs.len() - 1])
    };
    let known = |text: &str| Value::Known(text.to_owned());
    assert_eq!(at("FROM x\nWORKDIR sub"), Value::Unknown);
    assert_eq!(at("FROM scratch\nWORKDIR sub"), known("/sub"));
    assert_eq!(at("FROM x\nWORKDIR /a//b/./c/..\nWORKDIR ../d"), known("/a/d"));
    assert_eq!(at("FROM x\nENV D=/opt\nWORKDIR $D/src"), known("/opt/src"));
    assert_eq!(at("FROM x\nWORKDIR /a\nWORKDIR $NOBODY"), Value::Unknown);
    assert_eq!(at("FROM x\nWORKDIR /../.."), known("/"));
    assert_eq!(
        at("FROM x\nARG TARGETARCH\nWORKDIR /$TARGETARCH\nWORKDIR b"),
        Value::OneOf(vec!["/amd64/b".into(), "/arm64/b".into()])
    );
}

#[test]
fn what_stands_before_the_first_from() {
    let reading = reading("ENV A=1\nRUN x\nARG A=2\nFROM y:$A");
    assert_eq!(base(&reading, 0), Some("y:2"));
    assert_eq!(reading.stage_of(1), None);
    assert_eq!(reading.scopes.len(), 4);
}

#[test]
fn words_of_instructions_are_expanded_where_they_stand() {
    let reading = reading("FROM x\nENV A=1\nENV A=2\nCOPY req-$A.txt /");
    let Body::Words(words) = &reading.document.instructions[3].body else { panic!() };
    assert_eq!(reading.expand(3, &words[0]).value.known(), Some("req-2.txt"));
    assert_eq!(reading.expand(2, &words[0]).value.known(), Some("req-1.txt"));
    assert_eq!(reading.expand(99, &words[0]).value, Value::Unknown);
    let Body::Pairs(pairs) = &parse(b"FROM x\nENV L=/stubs:$L").instructions[1].body.clone() else { panic!() };
    let pieces = reading.partly(2, pairs[0].value.as_ref().unwrap());
    assert_eq!(pieces, [Piece::Known("/stubs:".into()), Piece::Unknown]);
}

#[test]
fn hostile_files_are_bounded() {
    let start = std::time::Instant::now();
    let many: String = (0..90_000).map(|n| format!("ENV V{n}={n}\n")).collect();
    let reading_of_many = reading(&format!("FROM x\n{many}RUN x"));
    assert_eq!(reading_of_many.scopes.len(), 90_002);
    assert_eq!(reading_of_many.scopes[100].len(), 99);
    assert_eq!(end(&reading_of_many, "V1"), None, "given up");
    assert!(!reading_of_many.closed[90_001]);

    let doubled: String = (1..100).map(|n| format!("ENV V{n}=$V{}$V{}\n", n - 1, n - 1)).collect();
    let grown = reading(&format!("FROM scratch\nENV V0=xxxxxxxx\n{doubled}"));
    assert_eq!(known(&grown, "V13").map(str::len), Some(65536));
    assert_eq!(known(&grown, "V14"), None);

    let held: String = (0..2000).map(|n| format!("ENV W{n}=$L\n")).collect();
    reading(&format!("FROM scratch\nENV L={}\n{held}", "x".repeat(65536)));

    assert_eq!(known(&reading("FROM scratch\nENV A=$A$A"), "A"), Some(""));

    let stages: String = (0..90_000).map(|n| format!("FROM s{} AS s{n}\n", n - 1)).collect();
    let chain = reading(&stages);
    assert_eq!(chain.stages.len(), 90_000);
    assert_eq!(chain.stages[89_999].root, (Base::Image(Text::known("s-1")), 0));
    let unknown: String = (0..20_000).map(|n| format!("FROM s$X AS s{n}\n")).collect();
    reading(&format!("ARG X\n{unknown}"));
    let env = |value: &str| (0..500).map(|n| format!("A{n}={value} ")).collect::<String>();
    let joins: String = (0..20_000).map(|_| "FROM a-$TARGETARCH\n").collect();
    let joined =
        reading(&format!("FROM a AS a-amd64\nENV {}\nFROM a AS a-arm64\nENV {}\n{joins}", env("a"), env("b")));
    assert_eq!(joined.ends[2].len(), 500);
    assert!(joined.ends[20_001].is_empty(), "given up");
    let copies: String = (0..50_000).map(|n| format!("COPY --from={n} a b\n")).collect();
    reading(&format!("FROM x\n{copies}"));
    reading(&format!("ARG {}=1\nFROM x", "N".repeat(100_000)));
    assert!(start.elapsed().as_secs() < 120);
}
