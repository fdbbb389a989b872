//! Times an ONNX model on tract or rten, with one thread, for `npm run bench`, and prints JSON: the milliseconds of the shortest call, those from
//! the file to the first result, and the most memory that the process had, in bytes. The first result goes to a file as float32.
//!
//!     peers tract|rten BASE SECONDS OUTPUT
//!
//! `benches/engines/rust.mjs` builds it, outside of the workspace.

use std::error::Error;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// An input: its sizes, and its elements.
enum Input {
    Floats(Vec<usize>, Vec<f32>),
    Ints(Vec<usize>, Vec<i64>),
}

/// The inputs of a model, in order.
fn inputs(base: &str) -> Result<Vec<Input>> {
    let files = [".onnx.inputs", ".inputs"].map(|it| format!("{base}{it}.safetensors"));
    let path = files.iter().find(|it| std::fs::exists(it).unwrap_or(false)).ok_or("there are no inputs")?;
    let bytes = std::fs::read(path)?;
    let file = safetensors::SafeTensors::deserialize(&bytes)?;
    let mut names = file.names();
    names.sort_by_key(|it| it.trim_start_matches("in").parse::<usize>().ok());
    let input = |name: &str| -> Result<Input> {
        let view = file.tensor(name)?;
        let (sizes, data) = (view.shape().to_vec(), view.data());
        match view.dtype() {
            safetensors::Dtype::F32 => {
                let numbers = data.as_chunks::<4>().0.iter().map(|it| f32::from_le_bytes(*it));
                Ok(Input::Floats(sizes, numbers.collect()))
            }
            safetensors::Dtype::I64 => {
                let numbers = data.as_chunks::<8>().0.iter().map(|it| i64::from_le_bytes(*it));
                Ok(Input::Ints(sizes, numbers.collect()))
            }
            other => Err(format!("an input of {other:?}").into()),
        }
    };
    names.into_iter().map(input).collect()
}

/// Copies the elements of the first result of a run, which is not timed.
type Elements = Box<dyn FnOnce() -> Result<Vec<f32>>>;

/// A model that is ready to run.
type Run = Box<dyn FnMut() -> Result<Elements>>;

fn tract(base: &str, inputs: Vec<Input>) -> Result<Run> {
    use tract_onnx::prelude::*;
    let mut model = tract_onnx::onnx().model_for_path(format!("{base}.onnx"))?;
    let mut given = TVec::<TValue>::new();
    for (at, input) in inputs.into_iter().enumerate() {
        let tensor = match input {
            Input::Floats(sizes, numbers) => Tensor::from_shape(&sizes, &numbers)?,
            Input::Ints(sizes, numbers) => Tensor::from_shape(&sizes, &numbers)?,
        };
        model = model.with_input_fact(at, InferenceFact::dt_shape(tensor.datum_type(), tensor.shape()))?;
        given.push(tensor.into());
    }
    let model = model.into_optimized()?.into_runnable()?;
    Ok(Box::new(move || -> Result<Elements> {
        let results = model.run(given.clone())?;
        Ok(Box::new(move || Ok(results[0].to_plain_array_view::<f32>()?.iter().copied().collect())))
    }))
}

fn rten(base: &str, inputs: Vec<Input>) -> Result<Run> {
    use rten_tensor::prelude::*;
    let model = rten::ModelOptions::with_all_ops().prepack_weights(true).load_file(format!("{base}.onnx"))?;
    let value = |input| match input {
        Input::Floats(sizes, numbers) => rten::Value::from(rten_tensor::Tensor::from_data(&sizes, numbers)),
        // It has no 64-bit integers.
        Input::Ints(sizes, numbers) => {
            let narrow: Vec<i32> = numbers.into_iter().map(|it| it as i32).collect();
            rten::Value::from(rten_tensor::Tensor::from_data(&sizes, narrow))
        }
    };
    let values: Vec<rten::Value> = inputs.into_iter().map(value).collect();
    Ok(Box::new(move || -> Result<Elements> {
        let given = model.input_ids().iter().copied().zip(values.iter().map(|it| it.as_view().into())).collect();
        let result = model.run(given, &model.output_ids()[..1], None)?.remove(0);
        Ok(Box::new(move || {
            let result: rten_tensor::Tensor<f32> = result.try_into()?;
            Ok(result.to_vec())
        }))
    }))
}

/// The most memory that this process had.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|it| it * 1024)
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, engine, base, seconds, output] = &args[..] else { return Err("peers ENGINE BASE SECONDS OUTPUT".into()) };
    let inputs = inputs(base)?;
    let start = Instant::now();
    let mut run = match &**engine {
        "tract" => tract(base, inputs)?,
        "rten" => rten(base, inputs)?,
        other => return Err(format!("there is no engine {other}").into()),
    };
    let result = run()?()?;
    let load = start.elapsed().as_secs_f64() * 1e3;
    std::fs::write(output, result.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>())?;
    run()?;
    let seconds: f64 = seconds.parse()?;
    let (begin, mut shortest, mut times) = (Instant::now(), f64::INFINITY, 0);
    while times < 5 || begin.elapsed().as_secs_f64() < seconds {
        let start = Instant::now();
        run()?;
        shortest = shortest.min(start.elapsed().as_secs_f64() * 1e3);
        times += 1;
    }
    println!("{}", serde_json::json!({ "ms": shortest, "load": load, "memory": peak() }));
    Ok(())
}
