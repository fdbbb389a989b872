use super::zip_writer::{entry, zip};
use tracefx_core::{Code, DType};
use tracefx_pt2::pickle::{Pickle, Value};
use tracefx_pt2::torch_save::TorchSave;
use tracefx_pt2::{Limits, LoadOptions};

#[track_caller]
fn refused(bytes: &[u8], code: Code, part: &str) {
    let error = Pickle::read(bytes, &Limits::default()).expect_err("a hostile pickle was accepted");
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[track_caller]
fn malformed(bytes: &[u8], part: &str) {
    refused(bytes, Code::PickleMalformed, part);
}

/// A file of torch.save with this pickle and 24 bytes of storage `0`.
fn saved(pickle: &[u8]) -> Vec<u8> {
    zip(&[entry("archive/data.pkl", pickle), entry("archive/data/0", [0u8; 24]), entry("archive/byteorder", "little")])
}

#[track_caller]
fn saved_refused(pickle: &[u8], code: Code, part: &str) {
    let read = TorchSave::read(&saved(pickle), &LoadOptions::default())
        .and_then(|saved| saved.tensor(saved.pickle().root()).cloned());
    let error = read.expect_err("a hostile tensor was accepted");
    assert_eq!(error.code(), code, "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn calls_are_written_down_and_never_made() {
    let calls: [&[u8]; 8] = [
        b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.",
        b"\x80\x02cposix\nsystem\nX\x04\x00\x00\x00true\x85R.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
        b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.",
        b"\x80\x02cbuiltins\n__import__\nX\x02\x00\x00\x00os\x85R.",
        b"\x80\x02csubprocess\nPopen\nX\x04\x00\x00\x00true\x85\x81.",
        b"\x80\x02ctorch\nload\nX\x01\x00\x00\x00x\x85R.",
        b"\x80\x02cbuiltins\ngetattr\ncos\n\nX\x06\x00\x00\x00system\x86RX\x04\x00\x00\x00true\x85R.",
    ];
    for bytes in calls {
        let pickle = Pickle::read(bytes, &Limits::default()).unwrap();
        assert!(matches!(pickle.get(pickle.root()), Value::Object(_)));
    }
    saved_refused(calls[0], Code::PickleForbidden, "os.system; it was not called");
    saved_refused(calls[5], Code::PickleForbidden, "subprocess.Popen");
}

#[test]
fn instructions_that_reach_outside_are_refused() {
    let forbidden: [&[u8]; 9] = [
        b"\x80\x02(ios\nsystem\n.",
        b"\x80\x02(cos\nsystem\nX\x04\x00\x00\x00trueo.",
        b"\x80\x02\x82\x01.",
        b"\x80\x02\x83\x01\x00.",
        b"\x80\x02\x84\x01\x00\x00\x00.",
        b"\x80\x05\x97.",
        b"\x80\x02P0\n.",
        b"\x80\x02S'a'\n.",
        b"\x80\x02I1\n.",
    ];
    for bytes in forbidden {
        refused(bytes, Code::PickleForbidden, "was not run");
    }
}

#[test]
fn malformed_pickles_are_refused() {
    for bytes in [&b""[..], b".", b"N.", b"(lp0\n."] {
        malformed(bytes, "does not begin with a protocol");
    }
    for bytes in [&b"\x80"[..], b"\x80\x02", b"\x80\x02J\x00", b"\x80\x02N", b"\x80\x02G\x00\x00"] {
        malformed(bytes, "ends too early");
    }
    for version in [0, 1, 6, 255] {
        malformed(&[0x80, version, b'N', b'.'], "protocol");
    }
    for opcode in [0xfe, 0, b'z', b'\n'] {
        malformed(&[0x80, 2, opcode, b'.'], "is no instruction");
    }
    for bytes in [&b"\x80\x02."[..], b"\x80\x020.", b"\x80\x02\x85.", b"\x80\x02N\x86.", b"\x80\x02(.", b"\x80\x02N(."]
    {
        malformed(bytes, "the stack is empty");
    }
    for bytes in [&b"\x80\x02t."[..], b"\x80\x02]e.", b"\x80\x02}u.", b"\x80\x021."] {
        malformed(bytes, "there is no mark");
    }
    malformed(b"\x80\x02h\x07.", "memo 7 was never filled");
    malformed(b"\x80\x02j\xff\xff\xff\xff.", "never filled");
    malformed(b"\x80\x02(Nd.", "a key has no value");
    malformed(b"\x80\x02}(Nu.", "a key has no value");
    malformed(b"\x80\x02NNa.", "items are added");
    malformed(b"\x80\x02NNNs.", "pairs are set");
    malformed(b"\x80\x02NNb.", "a state is given");
    malformed(b"\x80\x02NNR.", "not a tuple");
    malformed(b"\x80\x04NN\x93.", "not a string");
    malformed(b"\x80\x02X\x02\x00\x00\x00\xff\xfe.", "not UTF-8");
    malformed(b"\x80\x02cos", "does not end");
    malformed(b"\x80\x02c\xff\nx\n.", "not UTF-8");
}

#[test]
fn announced_lengths_cost_nothing() {
    let announced: [&[u8]; 8] = [
        b"\x80\x02X\xff\xff\xff\xff.",
        b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff.",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x05\x96\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x02B\xff\xff\xff\x7f.",
        b"\x80\x02\x8b\xff\xff\xff\x7f.",
        b"\x80\x02\x8a\xff\x00.",
        b"\x80\x04\x8c\xff.",
    ];
    for bytes in announced {
        malformed(bytes, "bytes are announced");
    }
    // A frame of any length is a hint, not an allocation.
    assert!(Pickle::read(b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.", &Limits::default()).is_ok());
}

#[test]
fn billion_laughs_take_the_space_of_their_bytes() {
    // Each list holds the one before ten times: ten to the power of 100 strings, in a kilobyte.
    let mut bytes = b"\x80\x02X\x03\x00\x00\x00lolq\x00".to_vec();
    for level in 0..100u8 {
        bytes.extend(b"](");
        (0..10).for_each(|_| bytes.extend([b'h', level]));
        bytes.extend([b'e', b'q', level + 1]);
    }
    bytes.push(b'.');
    let pickle = Pickle::read(&bytes, &Limits::default()).unwrap();
    assert_eq!(pickle.values().count(), 4 + 101);
    assert!(TorchSave::read(&saved(&bytes), &LoadOptions::default()).is_ok());
}

#[test]
fn depth_and_cycles_cost_no_stack() {
    let mut deep = b"\x80\x02N".to_vec();
    deep.extend(std::iter::repeat_n(0x85, 900_000));
    deep.push(b'.');
    let small_stack = std::thread::Builder::new().stack_size(256 << 10);
    let run = small_stack.spawn(move || {
        let pickle = Pickle::read(&deep, &Limits::default()).unwrap();
        assert!(pickle.as_tuple(pickle.root()).is_some());
        drop(pickle);
        // A list that holds itself.
        let pickle = Pickle::read(b"\x80\x02]q\x00h\x00a.", &Limits::default()).unwrap();
        assert_eq!(pickle.get(pickle.root()), &Value::List(vec![pickle.root()]));
    });
    run.unwrap().join().unwrap();
}

#[test]
fn limits_on_pickles_hold_and_are_named() {
    let limit = |opcode: u8, limits: Limits, name: &str| {
        let bytes = [&[0x80, 2][..], &[opcode; 1000], b"."].concat();
        let error = Pickle::read(&bytes, &limits).unwrap_err();
        assert_eq!(error.code(), Code::LimitExceeded);
        assert!(error.message().contains(name), "{error}");
    };
    limit(b']', Limits { pickle_values: 100, ..Limits::default() }, "pickle_values");
    limit(b'N', Limits { pickle_stack: 100, ..Limits::default() }, "pickle_stack");
    limit(b'(', Limits { pickle_stack: 100, ..Limits::default() }, "pickle_stack");
    let memo: Vec<u8> = (0..200u8).flat_map(|slot| [b'N', b'q', slot, b'0']).collect();
    let bytes = [&[0x80, 2][..], &memo, b"N."].concat();
    let limits = Limits { pickle_memo: 100, ..Limits::default() };
    assert!(Pickle::read(&bytes, &limits).unwrap_err().message().contains("pickle_memo"));
}

#[test]
fn integers_of_any_length_are_exact() {
    let read = |bytes: &[u8]| {
        let bytes = [&[0x80, 2, 0x8a, bytes.len() as u8][..], bytes, b"."].concat();
        let pickle = Pickle::read(&bytes, &Limits::default()).unwrap();
        pickle.get(pickle.root()).clone()
    };
    assert_eq!(read(&[]), Value::Int(0));
    assert_eq!(read(&[0xff]), Value::Int(-1));
    assert_eq!(read(&[0xff, 0]), Value::Int(255));
    assert_eq!(read(&i64::MAX.to_le_bytes()), Value::Int(i64::MAX));
    assert_eq!(read(&i64::MIN.to_le_bytes()), Value::Int(i64::MIN));
    let too_large = [0, 0, 0, 0, 0, 0, 0, 0x80, 0];
    assert_eq!(read(&too_large), Value::BigInt(too_large.into()));
    assert_eq!(read(&[0xff; 255]), Value::Int(-1));
}

/// `_rebuild_tensor_v2` of a float storage of six elements, with these sizes, strides and offset.
fn tensor(sizes: &[i64], strides: &[i64], offset: i64, numel: i64) -> Vec<u8> {
    let int = |it: i64| [&[0x8a, 8][..], &it.to_le_bytes()].concat();
    let ints = |them: &[i64]| [b"(".to_vec(), them.iter().flat_map(|&it| int(it)).collect(), b"t".to_vec()].concat();
    [
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n".to_vec(),
        b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu".to_vec(),
        int(numel),
        b"tQ".to_vec(),
        int(offset),
        ints(sizes),
        ints(strides),
        b"\x89ccollections\nOrderedDict\n)RtR.".to_vec(),
    ]
    .concat()
}

#[test]
fn tensors_stay_inside_their_storage() {
    let read = TorchSave::read(&saved(&tensor(&[2, 3], &[3, 1], 0, 6)), &LoadOptions::default()).unwrap();
    let it = read.tensor(read.pickle().root()).unwrap();
    assert_eq!((it.tensor.dtype(), it.tensor.sizes()), (DType::Float32, &[2, 3][..]));

    let outside: [(&[i64], &[i64], i64); 11] = [
        (&[2, 4], &[3, 1], 0),
        (&[2, 3], &[4, 1], 0),
        (&[2, 3], &[3, 1], 1),
        (&[7], &[1], 0),
        (&[1], &[1], 6),
        (&[-1], &[1], 0),
        (&[2], &[-1], 5),
        (&[2], &[1], -1),
        (&[i64::MAX, i64::MAX], &[0, 0], 0),
        (&[2, 2], &[i64::MAX, i64::MAX], 0),
        (&[2], &[1, 1], 0),
    ];
    for (sizes, strides, offset) in outside {
        saved_refused(&tensor(sizes, strides, offset, 6), Code::ViewOutOfBounds, "");
    }
    for numel in [0, 5, 7, -1, i64::MAX] {
        saved_refused(&tensor(&[1], &[1], 0, numel), Code::ViewOutOfBounds, "");
    }
    let rank = vec![1; 65];
    saved_refused(&tensor(&rank, &rank, 0, 6), Code::LimitExceeded, "`rank` is 64");
}

#[test]
fn storages_must_be_in_the_file() {
    let mut bytes = tensor(&[1], &[1], 0, 6);
    let at = bytes.windows(6).position(|it| it == b"X\x01\0\0\x000").unwrap();
    bytes[at + 5] = b'9';
    saved_refused(&bytes, Code::ArchiveMalformed, "no entry \"archive/data/9\"");
}
