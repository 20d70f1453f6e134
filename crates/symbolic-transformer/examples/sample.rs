//! An untrained model, held by the grammar, writes formulas and nothing else.
use fol::mask::{Grammar, Options};
use fol::notation::{Code, CodeMask};
use symbolic_transformer::sample::{Choice, Request, sample};
use symbolic_transformer::{
    config::ModelConfig, decode::CachedTransformer, explicit::Explicit, network::Network,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = ModelConfig::size("tiny").ok_or("no such size")?;
    let theta = Explicit::new(config.clone())?.layout().initialise(0);
    let code = Code::PLAIN;
    let mask = CodeMask::new(&code, &Options { budget: Some(40), ..Options::new(Grammar::Formula) })?;
    let request = Request { mask: Some(mask), ..Request::free(&code, 40) };
    let mut decoder = CachedTransformer::new(&config, &theta)?;
    for formula in sample(&mut decoder, &request, 10, Choice::PLAIN, 0, |_| {})? {
        assert!(formula.finished && code.decode(&formula.tokens).is_ok());
    }
    Ok(())
}
