//! How deeply code nests, and which code is not read at all.

use super::*;

const MOST: usize = 40;

#[test]
fn brackets_operators_and_statements_within_each_other_count() {
    for (start, part) in [
        ("", "("),
        ("", "f(["),
        ("", "{a:"),
        ("", "class{a(){"),
        ("", "`${"),
        ("x", "+a"),
        ("x", " + a\n"),
        ("x", ".a()"),
        ("x", "\n  .then(a => b)"),
        ("x", "`a`"),
        ("x", "`${a}`"),
        ("x", ".a`b`"),
        ("x", ".case"),
        ("x", "\n  .case()"),
        ("x", "?.case"),
        ("x", ".in/a"),
        ("x={}", "*{}"),
        ("class A{b={}", "*{}"),
        ("class A{class(){return{}", "*{}"),
        ("x={class:{}", "*{}"),
        ("// a\r", "("),
        ("// a\u{2028}", "if(a)"),
        ("", "typeof\u{2028}"),
        ("", "typeof\u{a0}"),
        ("", "...["),
        ("x", "?a:b"),
        ("", "a=>"),
        ("", "!"),
        ("", "- "),
        ("", "typeof "),
        ("", "new "),
        ("", "if(a)"),
        ("", "if(a)b(),c();else "),
        ("", "if (a) {\n  b();\n} else "),
        ("", "if (a)\n  b()\nelse "),
        ("", "for(;;)"),
        ("x=/'/;", "a("),
        ("if(x)y;", "a("),
    ] {
        let text = |count| [start, &part.repeat(count)].concat();
        assert!(!is_deeper(&text(4), MOST), "{part}");
        assert!(is_deeper(&text(50), MOST), "{part}");
    }
}

#[test]
fn what_is_beside_each_other_does_not_count() {
    for part in [
        "a();",
        "a.b(c + d)\n",
        "a = b\n",
        "x(),",
        "function a(b) { return b + 1 }\n",
        "function a(){}",
        "if(a){b()}else{c()}",
        "if(a)b();",
        "case 1:",
        "class A{b(){}c=1;#d=2}",
        "a(...b);",
        "a`b`;",
        "a`b`,",
        "a.class={b};",
        "a.case;b.do;c.else;",
        "// Isn't it :-( (((\n",
        "/* (((( */",
        "'((((',",
        "\"it's (((\",",
        "`((( ${a} (((`,",
        "x=/[/(]\\/(/;",
        "x=a/b;y=c++/d;",
    ] {
        assert!(!is_deeper(&part.repeat(200), MOST), "{part}");
    }
}

#[test]
fn members_of_a_class_do_not_count() {
    for member in [
        "b(){}",
        "#b(){}",
        "static #b(){}",
        "get #b(){}",
        "*b(){}",
        "async*#b(){}",
        "'b'(){}",
        "[b](){}",
        "static[b](){}",
        "case(){}",
        "class(){}",
        "static{}",
        "b={}\n",
        "b={};",
        "#b=()=>{}\n",
        "b(c=1){}",
    ] {
        for head in ["class A", "class", "x=class extends f({}) "] {
            let text = [head, "{", &member.repeat(200), "}"].concat();
            assert!(!is_deeper(&text, MOST), "{head}{{{member}");
        }
    }
}

#[test]
fn texts_without_an_end_are_read() {
    for text in [
        "", "'", "`", "`${", "/", "/*", "//", "\\", "'\\", "`\\", "/[", "}}}", ")",
    ] {
        assert!(!is_deeper(text, MOST), "{text}");
        assert!(!is_deeper(&["a", text].concat(), MOST), "{text}");
    }
}
