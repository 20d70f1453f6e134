//! `.safetensors`: named arrays. Reading takes one, writing adds or replaces one and keeps the
//! others byte for byte.

use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};

use crate::files::content::{Dense, Fault};
use crate::files::npy::Element;

/// One array of a file: the one that `wanted` names, in any case of letters if only one fits;
/// without it the one named as the tensor that is read, or the only one.
///
/// # Errors
/// Bytes that are no such file, no array of that name, elements that are no real numbers.
pub fn read(bytes: &[u8], wanted: Option<&str>, tensor: &str) -> Result<Dense, Fault> {
    let file = SafeTensors::deserialize(bytes).map_err(fault)?;
    let names = file.names();
    let name = choose(&names, wanted, tensor).ok_or_else(|| {
        let mut sorted = names.clone();
        sorted.sort_unstable();
        let wanted = wanted.unwrap_or(tensor);
        Fault::Whole(format!("there is no tensor `{wanted}`; it holds {}", sorted.join(", ")))
    })?;
    let view = file.tensor(name).map_err(fault)?;
    let element = element(view.dtype())?;
    let (values, rest) = element.values(view.data(), false);
    Dense::new(view.shape().to_vec(), values, rest)
}

fn choose<'a>(names: &[&'a str], wanted: Option<&str>, tensor: &str) -> Option<&'a str> {
    let only = |mut fitting: Vec<&'a str>| if fitting.len() == 1 { fitting.pop() } else { None };
    let named = wanted.unwrap_or(tensor);
    if let Some(exact) = names.iter().find(|name| **name == named) {
        return Some(exact);
    }
    match wanted {
        Some(wanted) => {
            let wanted = wanted.to_lowercase();
            only(names.iter().copied().filter(|name| name.to_lowercase() == wanted).collect())
        }
        None => only(names.to_vec()),
    }
}

fn element(dtype: Dtype) -> Result<Element, Fault> {
    Ok(match dtype {
        Dtype::F64 => Element::F64,
        Dtype::F32 => Element::F32,
        Dtype::F16 => Element::F16,
        Dtype::BF16 => Element::Bf16,
        Dtype::I64 => Element::I64,
        Dtype::I32 => Element::I32,
        Dtype::I16 => Element::I16,
        Dtype::I8 => Element::I8,
        Dtype::U64 => Element::U64,
        Dtype::U32 => Element::U32,
        Dtype::U16 => Element::U16,
        Dtype::U8 => Element::U8,
        Dtype::BOOL => Element::Bool,
        other => return Err(Fault::Whole(format!("elements of type {other:?} are not read"))),
    })
}

fn fault(error: SafeTensorError) -> Fault {
    Fault::Whole(error.to_string())
}

/// The file `before` with a tensor added or replaced.
///
/// # Errors
/// Where `before` is no such file.
pub fn write(
    before: Option<&[u8]>,
    name: &str,
    shape: &[usize],
    values: &[f64],
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let old = before.map(SafeTensors::deserialize).transpose().map_err(fault)?;
    let notes = match before {
        Some(before) => SafeTensors::read_metadata(before).map_err(fault)?.1.metadata().clone(),
        None => None,
    };
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let kept = old.as_ref().map(SafeTensors::tensors).unwrap_or_default();
    let mut views: Vec<(String, TensorView<'_>)> =
        kept.into_iter().filter(|(other, _)| other != name).collect();
    let new = TensorView::new(Dtype::F64, shape.to_vec(), &data).map_err(fault)?;
    views.push((name.to_owned(), new));
    out.extend(safetensors::serialize(views, notes).map_err(fault)?);
    Ok(())
}
