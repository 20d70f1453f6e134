//! `tokenizer.json`: the 663 symbols in the format of the library `tokenizers`, for others to load.
//!
//! It reads and writes the style *words* of `fol`: labels between blanks. A word is a token, so the model is `WordLevel`
//! behind `WhitespaceSplit`; the eight control symbols are special, and a text is put between `<bos>` and `<eos>`. A
//! prompt is not to be ended: encode it with `add_special_tokens = false`.
//!
//! The vocabulary never changes, so the file is stored as the library writes it, and the library is needed by the
//! tests alone, which build it anew and compare.

/// The content of `tokenizer.json`.
pub const JSON: &str = include_str!("tokenizer.json");

#[cfg(test)]
mod tests {
    use super::*;
    use fol::law::Law;
    use fol::sample::{Sampler, family};
    use fol::symbol::{SymbolId, SymbolKind};
    use tokenizers::models::wordlevel::WordLevel;
    use tokenizers::pre_tokenizers::whitespace::WhitespaceSplit;
    use tokenizers::processors::template::TemplateProcessing;
    use tokenizers::{AddedToken, Tokenizer};

    /// The tokenizer that the file is of.
    fn build() -> tokenizers::Result<Tokenizer> {
        let vocabulary = SymbolId::all().map(|s| (s.label().to_owned(), u32::from(s.get()))).collect();
        let unknown = SymbolId::UNK.label().to_owned();
        let mut tokenizer =
            Tokenizer::new(WordLevel::builder().vocab(vocabulary).unk_token(unknown).build()?);
        tokenizer.with_pre_tokenizer(Some(WhitespaceSplit));
        let control = SymbolId::all().filter(|s| s.kind() == SymbolKind::Control);
        tokenizer.add_special_tokens(control.map(|s| AddedToken::from(s.label(), true)))?;
        let (bos, eos) = (SymbolId::BOS, SymbolId::EOS);
        let template = TemplateProcessing::builder()
            .try_single(format!("{bos} $A {eos}"))?
            .special_tokens([bos, eos].map(|s| (s.label(), u32::from(s.get()))).to_vec())
            .build()?;
        tokenizer.with_post_processor(Some(template));
        Ok(tokenizer)
    }

    #[test]
    fn the_stored_file_is_what_the_library_writes() {
        let text = build().unwrap().to_string(true).unwrap() + "\n";
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
