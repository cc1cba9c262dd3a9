//! What each data type is called: in inference messages, and in a model's configuration.

use weft_ir::DataType;

use crate::error::clipped;
use crate::grpc::inference::DataType as ConfigType;

/// The type, its name in inference messages, its value in a model's configuration.
const TABLE: &[(DataType, &str, ConfigType)] = &[
    (DataType::F32, "FP32", ConfigType::TypeFp32),
    (DataType::I64, "INT64", ConfigType::TypeInt64),
    (DataType::I32, "INT32", ConfigType::TypeInt32),
    (DataType::U8, "UINT8", ConfigType::TypeUint8),
    (DataType::String, "BYTES", ConfigType::TypeString),
    (DataType::F16, "FP16", ConfigType::TypeFp16),
    (DataType::BF16, "BF16", ConfigType::TypeBf16),
    (DataType::F64, "FP64", ConfigType::TypeFp64),
    (DataType::Bool, "BOOL", ConfigType::TypeBool),
    (DataType::U16, "UINT16", ConfigType::TypeUint16),
    (DataType::U32, "UINT32", ConfigType::TypeUint32),
    (DataType::U64, "UINT64", ConfigType::TypeUint64),
    (DataType::I8, "INT8", ConfigType::TypeInt8),
    (DataType::I16, "INT16", ConfigType::TypeInt16),
];

/// The name in inference messages, such as `FP32`; `None` for a type that the protocol has no name for.
pub fn wire_name(data_type: DataType) -> Option<&'static str> {
    TABLE.iter().find(|row| row.0 == data_type).map(|row| row.1)
}

/// The type that inference messages call by this name.
pub fn from_wire_name(name: &str) -> Option<DataType> {
    TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
}

/// The type that a message states, or what is wrong with it.
pub(crate) fn stated(name: &str) -> Result<DataType, String> {
    from_wire_name(name).ok_or_else(|| format!("'{}' is no data type", clipped(name)))
}

/// The value in a model's configuration; `TYPE_INVALID` for a type that the protocol has no name for.
pub fn config_type(data_type: DataType) -> ConfigType {
    TABLE.iter().find(|row| row.0 == data_type).map_or(ConfigType::TypeInvalid, |row| row.2)
}

/// The name in a model's configuration, such as `TYPE_FP32`.
pub fn config_name(data_type: DataType) -> &'static str {
    config_type(data_type).as_str_name()
}

/// The type that a model's configuration calls by this name.
pub fn from_config_name(name: &str) -> Option<DataType> {
    TABLE.iter().find(|row| row.2.as_str_name() == name).map(|row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_type() {
        for &(data_type, name, _) in TABLE {
            assert_eq!(from_wire_name(name), Some(data_type));
            assert_eq!(wire_name(data_type), Some(name));
            assert_eq!(from_config_name(config_name(data_type)), Some(data_type));
        }
        assert_eq!(TABLE.len(), 14);
        assert_eq!(config_name(DataType::String), "TYPE_STRING");
        assert_eq!(config_name(DataType::Complex64), "TYPE_INVALID");
        assert_eq!(from_config_name("TYPE_INVALID"), None);
        assert_eq!((from_wire_name("fp32"), wire_name(DataType::Complex64)), (None, None));
    }
}
