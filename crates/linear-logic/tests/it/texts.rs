//! What people read: drawn sequent proofs, compiled programs, completions.

use linear_logic::elaborate::{Mode, elaborate};
use linear_logic::error::Source;
use linear_logic::literal::Order;
use linear_logic::parse;
use linear_logic::program::Program;
use linear_logic::sequent::{Proof, read_back};
use linear_logic::stack::on_large_stack;
use serde_json::{Value, json};

use crate::ill::{document, ill};

fn printed(args: &[&str]) -> String {
    let output = ill(args, b"");
    assert_eq!(output.status.code(), Some(0), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_proof_is_drawn_as_a_tree() {
    let drawn = r"\u:a * b. let x * y = u in y * x : a * b -o b * a

  --------- ax   --------- ax
  h2:b |- b      h1:a |- a
  ------------------------ tensor-R
    h2:b, h1:a |- b * a
    ------------------- tensor-L
     h0:a * b |- b * a
     ----------------- lolli-R
     |- a * b -o b * a

  ax 2, tensor-R 1, tensor-L 1, lolli-R 1
";
    assert_eq!(printed(&["check", "--sequent", "-e", "\\u:a * b. let x * y = u in y * x"]), drawn);
}

fn proof(text: &str) -> Proof {
    let program = Program::new(Order::Literal, Mode::default()).unwrap();
    let source = Source::new("<test>", text.as_bytes().to_vec());
    let checked = elaborate(&program, &source, &parse::query(&source).unwrap()).unwrap();
    read_back(&checked.term, Order::Literal).unwrap()
}

/// Reads a drawing back: every bar with its rule, the sequent below it, and the bars that stand on it.
fn inferences(rows: &[String]) -> Vec<(String, String, Vec<String>)> {
    let rows: Vec<Vec<char>> = rows.iter().map(|row| row.chars().collect()).collect();
    let texts = |row: usize, from: usize, to: usize| -> Vec<String> {
        let Some(row) = rows.get(row) else { return Vec::new() };
        let part: String = row.iter().skip(from).take(to - from).collect();
        part.split("   ").map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).collect()
    };
    let mut found = Vec::new();
    for at in (1..rows.len()).step_by(2) {
        let at = at - 1;
        let mut column = 0;
        while column < rows[at].len() {
            if rows[at][column] != '-' {
                column += 1;
                continue;
            }
            let length = rows[at][column..].iter().take_while(|c| **c == '-').count();
            let rule: String = rows[at][column + length + 1..].iter().take_while(|c| **c != ' ').collect();
            let conclusion = texts(at + 1, column, column + length).join("");
            let premises = if at == 0 { Vec::new() } else { texts(at - 1, column, column + length) };
            let rule_length = rule.len();
            found.push((rule, conclusion, premises));
            column += length + 1 + rule_length;
        }
    }
    found
}

fn shown(proof: &Proof) -> String {
    let left: Vec<String> = proof.left.iter().map(|(h, a)| format!("h{}:{}", h.0, a.short())).collect();
    format!("{} |- {}", left.join(", "), proof.right.short()).trim_start().to_owned()
}

fn all(proof: &Proof, found: &mut Vec<(String, String, Vec<String>)>) {
    let premises = proof.premises.iter().map(shown).collect();
    found.push((proof.rule.name().to_owned(), shown(proof), premises));
    proof.premises.iter().for_each(|premise| all(premise, found));
}

#[test]
fn a_drawing_has_every_inference_with_its_premises_above_it() {
    for text in [
        "()",
        "2",
        "0",
        "add",
        "mult [2] 3",
        "pred",
        "exp [2] 3",
        "0b0110",
        "subst",
        "tt",
        "feed",
        "zeros",
        "\\u:a + b. case u of inl x -> inr{b} x | inr y -> inl{a} y",
        "\\u:1. let () = u in ()",
        "\\x:!a. \\y:!b. [x * y]",
        "<id, id>",
    ] {
        let proof = proof(text);
        let rows = proof.drawing().unwrap();
        let mut wanted = Vec::new();
        all(&proof, &mut wanted);
        let mut found = inferences(&rows);
        wanted.sort();
        found.sort();
        assert_eq!(found, wanted, "{text}\n{}", rows.join("\n"));
        assert!(rows.iter().all(|row| row.trim_end() == row), "{text}");
    }
}

#[test]
fn a_proof_too_large_to_be_drawn_is_not() {
    on_large_stack(|| assert!(proof("0b0110100110010110").drawing().is_some())).unwrap();
    let text = printed(&["check", "--sequent", "-e", "200"]);
    assert!(text.contains("too large to be drawn; `--json` has it"), "{} bytes", text.len());
    assert!(text.contains("der 200"));
}

/// The document that the text of a program says.
fn read_program(text: &str) -> Value {
    let mut document = json!({"ok": true, "command": "compile", "instructions": []});
    let number = |text: &str| text.strip_prefix('%').unwrap().parse::<u64>().unwrap();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap();
        match word {
            "order" | "backend" => document[word] = rest.into(),
            "results" => document[word] = rest.split(", ").map(number).collect(),
            "stats" => {
                for entry in rest.split(", ") {
                    let (name, count) = entry.split_once(' ').unwrap();
                    document["stats"][name] = count.parse::<u64>().unwrap().into();
                }
            }
            id => {
                let (head, by) = rest.split_once(" by ").unwrap_or((rest, ""));
                let mut words = head.strip_prefix("= ").unwrap().split(' ');
                let mut instruction = json!({"id": number(id), "op": words.next().unwrap()});
                let mut arguments = Vec::new();
                for word in words {
                    match word.strip_prefix('^') {
                        Some(n) => instruction["n"] = n.parse::<u64>().unwrap().into(),
                        None if word.starts_with('%') => arguments.push(number(word)),
                        None => instruction["slot"] = word.parse::<u64>().unwrap().into(),
                    }
                }
                if !arguments.is_empty() {
                    instruction["args"] = arguments.into();
                }
                if !by.is_empty() {
                    instruction["by"] = by.split(" + ").map(summand).collect();
                }
                document["instructions"].as_array_mut().unwrap().push(instruction);
            }
        }
    }
    document
}

/// `1/2*s0.1*s0.2` as `["1/2", [[0, 1], [0, 2]]]`.
fn summand(text: &str) -> Value {
    let mut factors = text.split('*');
    let number = factors.next().unwrap();
    let pair = |text: &str| {
        let (slot, index) = text.strip_prefix('s').unwrap().split_once('.').unwrap();
        json!([slot.parse::<u64>().unwrap(), index.parse::<u64>().unwrap()])
    };
    let number = number.parse::<i64>().map_or_else(|_| Value::from(number), Value::from);
    json!([number, factors.map(pair).collect::<Vec<_>>()])
}

#[test]
fn the_text_of_a_program_says_all_that_its_document_says() {
    let mix = "{\"mix\":[\"0\",\"1\",\"3\"]}";
    let words = "{\"mix\":[\"0b01\",\"0b1\",\"repeat [0b0]\"]}";
    let numerals = "\\n v. derelict n v : !int -o !(a -o a) -o a -o a";
    for args in [
        &["-e", "2"][..],
        &["-e", "0"],
        &["-e", "0b0110", "-e", "0b10", "--order", "fdf"],
        &["-e", "100", "--backend", "diagonal"],
        &["-e", "0b011", "--backend", "vector"],
        &["-e", numerals, "--slot", mix],
        &["-e", numerals, "--slot", mix, "--backend", "diagonal"],
        &["-e", "\\w x y. derelict w x (y) : !bint -o !(a -o a) -o !(a -o a) -o a -o a", "--slot", words],
        &["-e", "\\n v. (mult n (derelict n)) v : !int -o !(a -o a) -o a -o a", "--slot", mix],
    ] {
        let args = [&["compile"], args].concat();
        let (status, wanted) = document(&args, "");
        if status != Some(0) {
            panic!("{args:?}: {wanted}");
        }
        assert_eq!(read_program(&printed(&args)), wanted, "{args:?}");
    }
}

#[test]
fn completions_name_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&["completions", shell]);
        for word in ["normalize", "denote", "compile", "--slot"] {
            assert!(script.contains(word.trim_start_matches('-')), "{shell}: {word}");
        }
    }
    assert_eq!(ill(["completions", "cobol"], b"").status.code(), Some(2));
}
