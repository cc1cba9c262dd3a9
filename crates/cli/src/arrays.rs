//! Tensors as NumPy's .npy files.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use half::f16;
use npyz::{Deserialize, NpyFile, Order, Serialize, TypeStr, WriterBuilder};
use weft_ir::{DataType, Element, Tensor, checked_count};

/// Reads an array.
pub(crate) fn read(path: &Path) -> Result<Tensor> {
    read_array(path).with_context(|| format!("cannot read {}", path.display()))
}

fn read_array(path: &Path) -> Result<Tensor> {
    let file = NpyFile::new(BufReader::new(File::open(path)?))?;
    let shape: Vec<usize> = file.shape().iter().map(|&size| size as usize).collect();
    if file.order() == Order::Fortran && shape.len() > 1 {
        bail!("the array is in Fortran order; save it with numpy.ascontiguousarray");
    }
    let npyz::DType::Plain(kind) = file.dtype() else { bail!("arrays of records are not tensors") };
    let kind = kind.to_string();
    match kind.trim_start_matches(['<', '|', '=']) {
        "f4" => elements::<f32>(file, shape, DataType::F32),
        "f8" => elements::<f64>(file, shape, DataType::F64),
        "f2" => {
            let bits = elements::<u16>(file, shape, DataType::U16)?;
            let shape = bits.shape().to_vec();
            let halves = bits.into_elements::<u16>()?.into_iter().map(f16::from_bits).collect();
            Ok(Tensor::from_vec(shape, halves)?)
        }
        "i1" => elements::<i8>(file, shape, DataType::I8),
        "i2" => elements::<i16>(file, shape, DataType::I16),
        "i4" => elements::<i32>(file, shape, DataType::I32),
        "i8" => elements::<i64>(file, shape, DataType::I64),
        "u1" => elements::<u8>(file, shape, DataType::U8),
        "u2" => elements::<u16>(file, shape, DataType::U16),
        "u4" => elements::<u32>(file, shape, DataType::U32),
        "u8" => elements::<u64>(file, shape, DataType::U64),
        "b1" => elements::<bool>(file, shape, DataType::Bool),
        other => bail!("arrays of type '{other}' are not supported"),
    }
}

fn elements<T: Deserialize + Element>(
    file: NpyFile<BufReader<File>>,
    shape: Vec<usize>,
    data_type: DataType,
) -> Result<Tensor> {
    checked_count(&shape, data_type)?;
    Ok(Tensor::from_vec(shape, file.into_vec::<T>()?)?)
}

/// Writes an array.
pub(crate) fn write(path: &Path, tensor: &Tensor) -> Result<()> {
    write_array(path, tensor).with_context(|| format!("cannot write {}", path.display()))
}

fn write_array(path: &Path, tensor: &Tensor) -> Result<()> {
    match tensor.data_type() {
        DataType::F32 => save::<f32>(path, tensor, "<f4"),
        DataType::F64 => save::<f64>(path, tensor, "<f8"),
        DataType::I8 => save::<i8>(path, tensor, "|i1"),
        DataType::I16 => save::<i16>(path, tensor, "<i2"),
        DataType::I32 => save::<i32>(path, tensor, "<i4"),
        DataType::I64 => save::<i64>(path, tensor, "<i8"),
        DataType::U8 => save::<u8>(path, tensor, "|u1"),
        DataType::U16 => save::<u16>(path, tensor, "<u2"),
        DataType::U32 => save::<u32>(path, tensor, "<u4"),
        DataType::U64 => save::<u64>(path, tensor, "<u8"),
        DataType::Bool => save::<bool>(path, tensor, "|b1"),
        // NumPy has no bfloat16, so both kinds of half are widened.
        DataType::F16 | DataType::BF16 => {
            let wide = Tensor::from_vec(tensor.shape().to_vec(), tensor.to_f32s()?.into_owned())?;
            save::<f32>(path, &wide, "<f4")
        }
        other => bail!("tensors of type {other} have no .npy form"),
    }
}

fn save<T: Serialize + Element>(path: &Path, tensor: &Tensor, kind: &str) -> Result<()> {
    let shape: Vec<u64> = tensor.shape().iter().map(|&size| size as u64).collect();
    let kind: TypeStr = kind.parse().expect("the types above are all NumPy's");
    let mut file = BufWriter::new(File::create(path)?);
    let mut writer = npyz::WriteOptions::new()
        .dtype(npyz::DType::Plain(kind))
        .shape(&shape)
        .writer(&mut file)
        .begin_nd()?;
    writer.extend(tensor.elements::<T>()?)?;
    writer.finish()?;
    Ok(file.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_survive_the_way_there_and_back() {
        let folder = std::env::temp_dir().join(format!("weft-npy-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let tensors = [
            Tensor::from_vec(vec![2, 3], vec![1f32, 2.0, 3.0, 4.0, 5.0, f32::NEG_INFINITY])
                .unwrap(),
            Tensor::from_vec(vec![0, 3], Vec::<i64>::new()).unwrap(),
            Tensor::scalar(7i32),
            Tensor::vector(vec![true, false]),
        ];
        for (index, tensor) in tensors.iter().enumerate() {
            let path = folder.join(format!("{index}.npy"));
            write(&path, tensor).unwrap();
            assert_eq!(&read(&path).unwrap(), tensor);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_no_array_is_refused_with_its_name() {
        let path = std::env::temp_dir().join(format!("weft-bad-{}.npy", std::process::id()));
        std::fs::write(&path, b"not an array").unwrap();
        assert!(format!("{:#}", read(&path).unwrap_err()).contains("weft-bad"));
        std::fs::remove_file(&path).unwrap();
    }
}
