//! Runs `policy.onnx` by tract. Arguments: the ONNX file, a file of planes (13 x 8 x 8 little-endian floats a
//! position), and where to write the logits.

use std::io::Cursor;

use tract_onnx::prelude::*;

const INPUTS: usize = 13 * 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [onnx, planes, logits] = &arguments[..] else {
        return Err("expected an ONNX file, a file of planes and a file for the logits".into());
    };
    let planes: Vec<f32> = std::fs::read(planes)?.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let shape = [planes.len() / INPUTS, 13, 8, 8];
    let model = tract_onnx::onnx().model_for_read(&mut Cursor::new(std::fs::read(onnx)?))?;
    let model = model.with_input_fact(0, f32::fact(shape).into())?.into_optimized()?.into_runnable()?;
    let out = model.run(tvec!(Tensor::from_shape(&shape, &planes)?.into()))?;
    let out = out[0].to_plain_array_view::<f32>()?;
    std::fs::write(logits, out.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;
    Ok(())
}
