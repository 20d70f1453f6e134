//! `tokenizer.json`: the tokens of a code in the format of the library `tokenizers`, for others to load.
//!
//! The file of the 663 symbols is stored; where names are whole tokens it is the same file with another vocabulary, and
//! the list of entities is read back from it.
//!
//! It reads and writes the style *words* of `fol`: labels between blanks. A word is a token, so the model is `WordLevel`
//! behind `WhitespaceSplit`; the eight control symbols are special, and a text is put between `<bos>` and `<eos>`. A
//! prompt is not to be ended: encode it with `add_special_tokens = false`.
//!
//! The vocabulary never changes, so the file is stored as the library writes it, and the library is needed by the
//! tests alone, which build it anew and compare.

use fol::notation::{Code, Entities, Entity, Tokenization};
use fol::symbol::{SymbolId, SymbolKind};
use serde_json::Value;
use training::{Refusal, Result};

/// The content of `tokenizer.json` for the 663 symbols.
pub const JSON: &str = include_str!("tokenizer.json");

/// The content of `tokenizer.json` for a code. It says how words are cut, and nothing of their order.
pub fn json(code: &Code) -> String {
    const OPEN: &str = "\"vocab\": {\n";
    const CLOSE: &str = "\n    },\n    \"unk_token\"";
    let parts = JSON.split_once(OPEN).and_then(|(head, rest)| Some((head, rest.split_once(CLOSE)?.1)));
    let (Tokenization::Atomic, Some((head, tail))) = (code.tokenization(), parts) else {
        return JSON.to_owned();
    };
    // Of the numbers before the vocabulary those of three digits are ids of control symbols.
    let control = SymbolId::all().filter(|s| s.kind() == SymbolKind::Control);
    let head = control.fold(head.to_owned(), |head, symbol| match code.token(symbol) {
        Some(token) => head.replace(&symbol.get().to_string(), &token.get().to_string()),
        None => head,
    });
    let line = |token: fol::notation::Token| format!("      \"{}\": {}", code.label(token), token.get());
    let lines: Vec<String> = code.tokens().map(line).collect();
    format!("{head}{OPEN}{}{CLOSE}{tail}", lines.join(",\n"))
}

/// The entities of a `tokenizer.json` of whole names.
///
/// # Errors
/// A file that is no such vocabulary, or in which a name has another number than its place gives it.
pub fn entities(json: &str) -> Result<Entities> {
    let refuse = |why: String| Refusal::Learner(format!("tokenizer.json: {why}"));
    let file: Value = serde_json::from_str(json).map_err(|e| refuse(e.to_string()))?;
    let vocabulary = file.pointer("/model/vocab").and_then(Value::as_object);
    let vocabulary = vocabulary.ok_or_else(|| refuse("no vocabulary at /model/vocab".to_owned()))?;
    let names = vocabulary.keys().filter(|label| SymbolId::from_label(label).is_none());
    let named = |label: &String| {
        Entity::from_label(label).ok_or_else(|| refuse(format!("\"{label}\" is neither a symbol nor a name")))
    };
    let entities = Entities::new(names.map(named).collect::<Result<Vec<_>>>()?);
    let entities = entities.map_err(|refusal| refuse(refusal.to_string()))?;
    let signs = fol::symbol::VOCABULARY - usize::from(fol::symbol::BASE);
    for (at, entity) in entities.iter().enumerate() {
        let label = entity.to_string();
        let found = vocabulary.get(&label).and_then(Value::as_u64);
        if found != Some((signs + at) as u64) {
            return Err(refuse(format!("{label} has the number {found:?}, and its place is {}", signs + at)));
        }
    }
    if vocabulary.len() != signs + entities.len() {
        return Err(refuse("it has numerals beside names, or lacks a sign".to_owned()));
    }
    Ok(entities)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fol::law::Law;
    use fol::notation::Notation;
    use fol::sample::{Sampler, family};
    use tokenizers::models::wordlevel::WordLevel;
    use tokenizers::pre_tokenizers::whitespace::WhitespaceSplit;
    use tokenizers::processors::template::TemplateProcessing;
    use tokenizers::{AddedToken, Tokenizer};

    /// The tokenizer that the file of a code is of.
    fn build(code: &Code) -> tokenizers::Result<Tokenizer> {
        let vocabulary = code.tokens().map(|t| (code.label(t), u32::from(t))).collect();
        let unknown = SymbolId::UNK.label().to_owned();
        let mut tokenizer =
            Tokenizer::new(WordLevel::builder().vocab(vocabulary).unk_token(unknown).build()?);
        tokenizer.with_pre_tokenizer(Some(WhitespaceSplit));
        let control = SymbolId::all().filter(|s| s.kind() == SymbolKind::Control);
        tokenizer.add_special_tokens(control.map(|s| AddedToken::from(s.label(), true)))?;
        let (bos, eos) = (SymbolId::BOS, SymbolId::EOS);
        let special = [bos, eos].into_iter().zip(code.boundaries());
        let template = TemplateProcessing::builder()
            .try_single(format!("{bos} $A {eos}"))?
            .special_tokens(special.map(|(s, t)| (s.label(), u32::from(t))).collect::<Vec<_>>())
            .build()?;
        tokenizer.with_post_processor(Some(template));
        Ok(tokenizer)
    }

    /// Whole names: the file is what the library writes, it reads the words of the code, and the list comes back.
    #[test]
    fn files_of_whole_names() {
        for (law, notation) in
            [("public", Notation::Infix), ("uniform", Notation::Prefix), ("full", Notation::Prefix)]
        {
            let law = Law::named(law, &[]).unwrap();
            let code = Code::new(Tokenization::Atomic, notation, &law.signature(), None).unwrap();
            let text = json(&code);
            assert!(text == build(&code).unwrap().to_string(true).unwrap() + "\n");
            assert_eq!(&entities(&text).unwrap(), code.entities().unwrap());
            let tokenizer: Tokenizer = text.parse().unwrap();
            assert_eq!(tokenizer.get_vocab_size(true), code.size());
            let mut sampler = Sampler::new(&law).unwrap();
            let mut symbols = Vec::new();
            for i in 0..100 {
                sampler.sample(&mut family("tokenizer-test", 1).stream(i), &mut symbols);
                let tokens = code.encode(&symbols).unwrap();
                let ids: Vec<u32> = tokens.iter().map(|&t| u32::from(t)).collect();
                assert_eq!(tokenizer.encode(code.words(&tokens), false).unwrap().get_ids(), ids);
            }
            for broken in
                [text.replace("\"x0\": 38", "\"x0\": 39"), text.replace("\"x1\"", "\"y1\""), "{".into()]
            {
                assert!(entities(&broken).is_err());
            }
        }
        assert!(entities(JSON).is_err());
        assert_eq!(json(&Code::PLAIN), JSON);
    }

    #[test]
    fn the_stored_file_is_what_the_library_writes() {
        let text = build(&Code::PLAIN).unwrap().to_string(true).unwrap() + "\n";
        assert!(text == JSON, "tokenizer.json is not what the library writes; it should be:\n{text}");
    }

    fn loaded() -> Tokenizer {
        JSON.parse().unwrap()
    }

    #[test]
    fn all_ids_are_those_of_fol() {
        let tokenizer = loaded();
        assert_eq!(tokenizer.get_vocab_size(true), fol::symbol::VOCABULARY);
        for s in SymbolId::all() {
            assert_eq!(tokenizer.token_to_id(s.label()), Some(u32::from(s.get())));
            assert_eq!(tokenizer.id_to_token(u32::from(s.get())).as_deref(), Some(s.label()));
            let special =
                tokenizer.get_added_tokens_decoder().get(&u32::from(s.get())).is_some_and(|t| t.special);
            assert_eq!(special, s.get() >= 655);
        }
    }

    #[test]
    fn generated_texts_are_encoded_and_decoded_as_fol_does() {
        let tokenizer = loaded();
        for law in Law::presets() {
            let mut sampler = Sampler::new(&Law::named(law, &[]).unwrap()).unwrap();
            let mut symbols = Vec::new();
            for i in 0..1000 {
                sampler.sample(&mut family("tokenizer-test", 0).stream(i), &mut symbols);
                let text = fol::print(&fol::decode(&symbols).unwrap(), fol::Style::Words);
                let bounded: Vec<u32> = [&[SymbolId::BOS], symbols.as_slice(), &[SymbolId::EOS]]
                    .concat()
                    .iter()
                    .map(|s| u32::from(s.get()))
                    .collect();
                assert_eq!(tokenizer.encode(text.as_str(), true).unwrap().get_ids(), bounded, "{text}");
                assert_eq!(tokenizer.decode(&bounded, false).unwrap(), format!("<bos> {text} <eos>"));
                let inside = tokenizer.encode(text.as_str(), false).unwrap();
                assert_eq!(inside.get_ids(), &bounded[1..bounded.len() - 1]);
                assert_eq!(tokenizer.decode(inside.get_ids(), false).unwrap(), text);
            }
        }
    }

    #[test]
    fn unknown_words_and_odd_blanks() {
        let ids = |text: &str| loaded().encode(text, false).unwrap().get_ids().to_vec();
        assert_eq!(ids(" FORALL\tVAR\n 1 "), [630, 644, 1]);
        assert_eq!(ids("625 001 forall <unknown> <unk>"), [658, 658, 658, 662, 658]);
        assert_eq!(ids(""), [] as [u32; 0]);
    }
}
