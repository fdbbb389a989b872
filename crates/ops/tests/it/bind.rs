//! Arguments that a program writes as numbers, bound to what the schema says they are.

use tracefx_core::{Code, DType, Layout, MemoryFormat, Result};
use tracefx_ops::{Value, bind, registry};

fn bound(op: &str, key: &str, value: i64) -> Result<Vec<Value<()>>> {
    let op = registry().get(op).unwrap();
    bind(op, &[Value::ints(&[2])], &[(key.into(), Value::int(value))])
}

#[test]
fn dtypes_layouts_and_memory_formats_have_numbers() {
    let empty = |key, number| bound("aten.empty.memory_format", key, number);
    assert!(empty("dtype", 15).unwrap().contains(&Value::DType(DType::BFloat16)));
    assert!(empty("layout", 7).unwrap().contains(&Value::Layout(Layout::Jagged)));
    assert!(empty("memory_format", 1).unwrap().contains(&Value::MemoryFormat(MemoryFormat::Preserve)));
    for (key, number) in [("dtype", 12), ("dtype", -1), ("layout", 8), ("memory_format", 4), ("device", 0)] {
        assert_eq!(empty(key, number).unwrap_err().code(), Code::SchemaMismatch, "{key}");
    }
}
