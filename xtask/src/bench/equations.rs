//! Programs of the equation language as the benches take them.

use anyhow::{Result, anyhow};
use tensor_logic::analyse::analyse;
use tensor_logic::lower::FileSource;
use tensor_logic::program::{Program, TensorId};

/// The core form of a text.
pub(super) fn program(text: &str, files: &mut dyn FileSource) -> Result<Program> {
    let analysed = analyse(text, files, &Default::default(), &Default::default());
    Ok(analysed.map_err(|refused| anyhow!("{refused:?}"))?.program)
}

/// A tensor by its name.
pub(super) fn tensor(program: &Program, name: &str) -> Result<TensorId> {
    let named = (0u32..).map(TensorId).zip(&program.tensors).find(|(_, tensor)| tensor.name == name);
    named.map(|(id, _)| id).ok_or_else(|| anyhow!("no tensor {name}"))
}
