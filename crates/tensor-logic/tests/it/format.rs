//! The formatter: the canonical form, that it is stable, and that it changes no meaning.

use crate::common;
use tensor_logic::format::format;
use tensor_logic::parse::parse;

fn formatted(text: &str) -> String {
    let result = format(text);
    assert!(result.is_ok(), "{text:?}: {result:?}");
    result.unwrap_or_default()
}

/// The canonical form of a text that can be read: stable, and with the tree of the text.
fn canonical(text: &str) -> String {
    let once = formatted(text);
    assert_eq!(formatted(&once), once, "of {text:?}");
    assert_eq!(common::tree(&parse(&once).0), common::tree(&parse(text).0), "{text:?} became {once:?}");
    once
}

#[test]
fn one_way_to_set_blanks() {
    for (text, wanted) in [
        ("Y[ i ]=sig( W[i,j]*X[j]+B[i] )", "Y[i] = sig(W[i, j] * X[j] + B[i])"),
        (
            "X [ x + dx , 4 : 8,*t+1,p′ . , - 3 , ( a + b ) / 2, : , _ ] ?",
            "X[x+dx, 4:8, *t+1, p'., -3, (a+b)/2, :, _]?",
        ),
        ("X[2 : -1]?", "X[2:-1]?"),
        ("X[:-1]?", "X[:-1]?"),
        ("x(Y :-1)", "x(Y :- 1)"),
        ("Z[ s,r = 1|w=- 1 ]?@explain", "Z[s, r=1 | w=-1]? @explain"),
        ("Z[w=1|]?", "Z[w=1 | ]?"),
        ("Z|w = 1 , r=A ?", "Z | w=1, r=A?"),
        ("Loss?@minimize( opt = adam,lr=0.1 )@explain", "Loss? @minimize(opt=adam, lr=0.1) @explain"),
        (
            "Loss?@minimize(schedule = cosine,warmup= 3,min_lr =0.1)",
            "Loss? @minimize(schedule=cosine, warmup=3, min_lr=0.1)",
        ),
        ("@ const ( W , V )", "@const(W, V)"),
        ("i,j:4", "i, j : 4"),
        ("p:1 .. 12", "p : 1..12"),
        ("p: - 3..N-1.", "p : -3..N - 1"),
        ("Person:{Ann,\"Bob\", - 1}", "Person : {Ann, \"Bob\", -1}"),
        ("P( x,y ):topk( 3 )", "P(x, y) : topk(3)"),
        ("W[i,j]~normal(0,-0.1)", "W[i, j] ~ normal(0, -0.1)"),
        ("W:real~[[1,−2],[3,4],]", "W : real ~ [[1, -2], [3, 4],]"),
        ("0.3::Rain( Mon ).", "0.3 :: Rain(Mon)"),
        ("Y max = A[i]", "Y max= A[i]"),
        ("Y:=A×B·C*D E", "Y := A × B · C * D E"),
        ("Y=-X^2+A ^ - 1-L^{ d/De }", "Y = -X^2 + A^-1 - L^(d / De)"),
        ("P(x):-Q(x),!R(x),x≠1,x<−1", "P(x) <- Q(x), not R(x), x != 1, x < -1"),
        ("Q(y),y=x+1?", "Q(y), y = x + 1?"),
        (
            "M[i]=softmax [ j ] (S[i,j]|j≤i,(i−j)%2==0)",
            "M[i] = softmax[j](S[i, j] | j <= i, (i - j) % 2 == 0)",
        ),
        ("Y=w[2] (A+B) w[] (C)", "Y = w[2] (A + B) w[] (C)"),
        ("Y=2x(A+B)", "Y = 2 x(A + B)"),
        ("Y=A(x)(B+C)2.", "Y = A(x) (B + C) 2"),
        ("R=\"a.csv\"as values,header", "R = \"a.csv\" as values, header"),
        ("\"out.csv\"=Y", "\"out.csv\" = Y"),
        ("W=1e-3;Y=.2\n".replace(".2", "0.20").as_str(), "W = 1e-3\nY = 0.20"),
        ("Any()<-X(i)", "Any() <- X(i)"),
        ("Y = A +\n  B *\n  C", "Y = A + B * C"),
    ] {
        assert_eq!(canonical(text), format!("{wanted}\n"));
    }
}

#[test]
fn lines_comments_and_brackets() {
    for (text, wanted) in [
        ("\n\n# a\n\n\n\n  # b\nY?  // c\n\n\nX?;Z?  \n\n", "# a\n\n# b\nY?  // c\n\nX?\nZ?\n"),
        ("Y = [[1, 2],\n[3,\n4]]", "Y = [[1, 2],\n  [3,\n    4]]\n"),
        ("Y = [\n1, # one\n# two\n\n\n2\n]", "Y = [\n  1,  # one\n  # two\n\n  2\n  ]\n"),
        ("P(x) <- Q(x), # c\nR(x)", "P(x) <- Q(x),  # c\n  R(x)\n"),
        ("Y?\r\n\r\n\r\nX?\r\n", "Y?\n\nX?\n"),
        ("Y?\n;\nX?", "Y?\nX?\n"),
        ("", ""),
        ("\n # c", "# c\n"),
        ("\u{feff}Y?", "Y?\n"),
        ("Y? # c \t\n", "Y?  # c\n"),
    ] {
        assert_eq!(canonical(text), wanted);
    }
}

#[test]
fn every_program_of_the_corpus_keeps_its_tree() {
    for (name, text) in common::programs() {
        if name != "refuse-01-syntax" {
            canonical(&text);
        }
    }
}

/// Sets blanks, line breaks and signs of a program at random, without changing its tree.
fn mangled(text: &str, stream: &mut seeded::Stream) -> String {
    let tokens = tensor_logic::lex::lex(text).tokens;
    let mut result = String::new();
    let (mut depth, mut end) = (0_usize, 0);
    for token in &tokens {
        let gap = &text[end..token.span.start];
        let blank = if gap.contains('\n') && depth == 0 {
            gap
        } else {
            ["", " ", "  ", "\t"][stream.below(4) as usize]
        };
        let word = &text[token.span.start..token.span.end];
        // Two tokens that would melt into one keep a blank.
        let glued = result.chars().next_back().is_some_and(|last| !"()[]{},".contains(last))
            && !"()[]{},".contains(&word.chars().next().map_or(",".to_owned(), String::from));
        result.push_str(if blank.is_empty() && glued { " " } else { blank });
        if depth > 0 && stream.below(8) == 0 {
            result.push_str(["\n", "\n\n\n", " # c\n", "// d\n # e\n"][stream.below(4) as usize]);
        }
        result.push_str(match (word, stream.below(2)) {
            ("<-", 1) => "←",
            ("-", 1) => "−",
            ("<=", 1) => "≤",
            ("not", 1) => "!",
            _ => word,
        });
        match word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        end = token.span.end;
    }
    result
}

#[test]
fn however_a_program_is_typed_its_canonical_form_has_its_tree() {
    let mut stream = common::stream("mangled");
    for (name, text) in common::programs() {
        for _ in 0..20 {
            let other = mangled(&text, &mut stream);
            if name != "refuse-01-syntax" {
                assert_eq!(common::tree(&parse(&other).0), common::tree(&parse(&text).0), "{other}");
                canonical(&other);
            }
        }
    }
}

#[test]
fn token_soup_that_can_be_read_is_stable() {
    let mut stream = common::stream("format soup");
    let mut read = 0;
    for _ in 0..60_000 {
        let soup = common::soup(&mut stream, 12);
        if format(&soup).is_ok() {
            canonical(&soup);
            read += 1;
        }
    }
    assert!(read > 1000, "{read}");
}
