//! One tensor of a message: the inputs of requests and the outputs of answers have the same form.

use weft_ir::{DataType, Tensor};

use super::body::ReceivedBody;
use super::cursor::Cursor;
use super::elements;
use crate::data_types;
use crate::error::{ProtocolError, clipped};
use crate::infer::TensorSource;
use crate::parameters::{ParameterValue, TensorParameters};
use crate::raw::tensor_from_raw;
use crate::shape;

/// A tensor as a message gives it.
pub(super) struct ReadTensor {
    pub(super) name: String,
    pub(super) data_type: DataType,
    pub(super) shape: Vec<usize>,
    pub(super) data: TensorSource,
    /// Its elements were bytes behind the header.
    pub(super) is_binary: bool,
}

/// What has been read of a tensor's members, which come in any order.
#[derive(Default)]
struct Members<'a> {
    name: Option<String>,
    data_type: Option<DataType>,
    shape: Option<Vec<usize>>,
    parameters: TensorParameters,
    data: Option<Data<'a>>,
}

enum Data<'a> {
    Elements(Tensor),
    /// What the elements are was not known when they came.
    Unread(Cursor<'a>),
}

/// Reads a tensor; `place` is what it is called as long as its name is not known.
pub(super) fn read_tensor<'a>(
    cursor: &mut Cursor<'a>,
    body: &mut ReceivedBody<'a>,
    place: impl Fn() -> String,
) -> Result<ReadTensor, ProtocolError> {
    let mut members = Members::default();
    let outcome = members.read(cursor).and_then(|()| members.finish(body));
    let name = members.name.unwrap_or_else(place);
    match outcome {
        Ok((data_type, shape, data, is_binary)) => {
            Ok(ReadTensor { name, data_type, shape, data, is_binary })
        }
        Err(problem) => Err(ProtocolError::Tensor { name, problem }),
    }
}

impl<'a> Members<'a> {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Result<(), String> {
        cursor.object(|cursor, member| {
            let is_repeated = match member {
                "name" => self.name.replace(cursor.text()?.into_owned()).is_some(),
                "datatype" => {
                    let data_type = data_types::stated(&cursor.text()?)?;
                    self.data_type.replace(data_type).is_some()
                }
                "shape" => self.shape.replace(read_shape(cursor)?).is_some(),
                "parameters" => {
                    read_parameters(cursor, |name, value| self.parameters.set(name, &value))?;
                    false
                }
                "data" => {
                    let data = self.read_data(cursor)?;
                    self.data.replace(data).is_some()
                }
                _ => {
                    cursor.skip()?;
                    false
                }
            };
            match is_repeated {
                true => Err(format!("'{member}' is given twice")),
                false => Ok(()),
            }
        })
    }

    fn read_data(&self, cursor: &mut Cursor<'a>) -> Result<Data<'a>, String> {
        match (&self.name, self.data_type, &self.shape) {
            (Some(_), Some(data_type), Some(shape)) => {
                elements::read_tensor(cursor, data_type, shape.clone()).map(Data::Elements)
            }
            _ => {
                let unread = cursor.clone();
                cursor.skip()?;
                Ok(Data::Unread(unread))
            }
        }
    }

    /// Brings together what was read: type, shape, elements, and whether these were bytes.
    fn finish(
        &mut self,
        body: &mut ReceivedBody<'a>,
    ) -> Result<(DataType, Vec<usize>, TensorSource, bool), String> {
        if self.name.is_none() {
            return Err("has no name".into());
        }
        let data_type = self.data_type.ok_or("has no datatype")?;
        let shape = self.shape.take().ok_or("has no shape")?;
        shape::count(&shape, data_type)?;
        let TensorParameters { binary_data_size, shared_memory } =
            std::mem::take(&mut self.parameters);
        let mut is_binary = false;
        let data = match (self.data.take(), binary_data_size, shared_memory.range()?) {
            (Some(Data::Elements(tensor)), None, None) => TensorSource::Tensor(tensor),
            (Some(Data::Unread(mut cursor)), None, None) => {
                TensorSource::Tensor(elements::read_tensor(&mut cursor, data_type, shape.clone())?)
            }
            (None, Some(size_bytes), None) => {
                is_binary = true;
                let bytes = body.take(size_bytes)?;
                TensorSource::Tensor(tensor_from_raw(data_type, shape.clone(), bytes)?)
            }
            (None, None, Some(range)) => TensorSource::SharedMemory(range),
            (None, None, None) => return Err("has no data".into()),
            _ => {
                return Err(
                    "has more than one of data, binary data and a place in shared memory".into()
                );
            }
        };
        Ok((data_type, shape, data, is_binary))
    }
}

fn read_shape(cursor: &mut Cursor<'_>) -> Result<Vec<usize>, String> {
    let mut shape = Vec::with_capacity(4);
    cursor.array(|cursor| -> Result<(), String> {
        let number = cursor.number()?.text;
        let stated =
            number.parse().map_err(|_| format!("{} in its shape is no INT64", clipped(number)))?;
        shape.push(shape::dimension(stated)?);
        Ok(())
    })?;
    Ok(shape)
}

/// Reads an object of parameters.
pub(super) fn read_parameters<'a, E: From<String>>(
    cursor: &mut Cursor<'a>,
    mut set: impl FnMut(&str, ParameterValue<'a>) -> Result<(), E>,
) -> Result<(), E> {
    cursor.object(|cursor, name| set(name, cursor.parameter()?))
}
