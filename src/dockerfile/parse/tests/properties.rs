//! Any bytes, and any mix of what Dockerfiles are made of.

use super::read_bytes;
use proptest::prelude::*;

const TOKENS: &[&str] = &[
    "FROM",
    "RUN",
    "COPY",
    "ADD",
    "ENV",
    "ARG",
    "LABEL",
    "CMD",
    "ENTRYPOINT",
    "SHELL",
    "USER",
    "WORKDIR",
    "VOLUME",
    "EXPOSE",
    "HEALTHCHECK",
    "ONBUILD",
    "STOPSIGNAL",
    "MAINTAINER",
    "run",
    "NONE",
    "AS",
    "scratch",
    " ",
    " ",
    " ",
    " ",
    "\t",
    "\u{a0}",
    "\n",
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\\\n",
    " \\\n",
    "\\ \n",
    "`\n",
    "\\\r\n",
    "\\",
    "`",
    "'",
    "\"",
    "=",
    "a",
    "b",
    "a=b",
    "=\"a b\"",
    "$x",
    "${x:-",
    "${x}",
    "}",
    "{",
    "<<",
    "<<EOF",
    "<<-EOF",
    "<<'EOF'",
    "\nEOF\n",
    "\n\tEOF\n",
    "EOF",
    "#",
    "# escape=`\n",
    "# syntax=x\n",
    "#escape=\\\n",
    "# c\n",
    "--from=a",
    "--mount=type=cache",
    "--",
    "--\"a=b",
    "--é",
    "[",
    "]",
    "\"a\"",
    ",",
    "[\"a\", \"b\"]",
    "[\"a\", 1]",
    "\\u00e9",
    "é",
    "入",
    "\u{feff}",
    "\u{1a}",
    "<",
    ">",
    "&&",
];

fn mix() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        40 => prop::sample::select(TOKENS).prop_map(|t| t.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|b| vec![b.max(1)]),
    ];
    let head = prop::sample::select(&["", "FROM a\n", "# escape=`\nFROM a\n", "\u{feff}FROM a\n"]);
    (head, prop::collection::vec(token, 0..60))
        .prop_map(|(head, rest)| [head.as_bytes().to_vec(), rest.concat()].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_and_printed_again(source in prop::collection::vec(any::<u8>(), 0..300)) {
        read_bytes(&source);
    }

    #[test]
    fn any_mix_of_tokens_is_read_and_printed_again(source in mix()) {
        read_bytes(&source);
    }
}
