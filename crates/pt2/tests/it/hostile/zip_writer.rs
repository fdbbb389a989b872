//! Writes zip files whose every field can be a lie.

/// One entry as it is to be written; the fields are what the headers say.
#[derive(Clone)]
pub(crate) struct Entry {
    pub name: Vec<u8>,
    pub local_name: Vec<u8>,
    pub payload: Vec<u8>,
    pub method: u16,
    pub flags: u16,
    pub crc: u32,
    pub packed: u32,
    pub size: u32,
    /// Replaces the offset of the local header.
    pub offset: Option<u32>,
    pub central_extra: Vec<u8>,
    /// Whether the local header carries sizes and checksum, or zeros and a descriptor behind the payload.
    pub streamed: bool,
    /// Bytes put after the entry that belong to nothing.
    pub gap: Vec<u8>,
}

pub(crate) fn entry(name: &str, payload: impl Into<Vec<u8>>) -> Entry {
    let payload = payload.into();
    Entry {
        name: name.into(),
        local_name: name.into(),
        method: 0,
        flags: 0x800,
        crc: crc32fast::hash(&payload),
        packed: payload.len() as u32,
        size: payload.len() as u32,
        payload,
        offset: None,
        central_extra: Vec::new(),
        streamed: false,
        gap: Vec::new(),
    }
}

pub(crate) fn deflated(name: &str, plain: &[u8]) -> Entry {
    use std::io::Write;
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(plain).unwrap();
    let packed = encoder.finish().unwrap();
    Entry { method: 8, crc: crc32fast::hash(plain), size: plain.len() as u32, ..entry(name, packed) }
}

/// What the end records say, where it is not the truth.
#[derive(Default)]
pub(crate) struct End {
    pub n_entries: Option<u16>,
    pub directory_size: Option<u32>,
    pub directory_offset: Option<u32>,
    pub zip64: bool,
    pub zip64_entries: Option<u64>,
    pub zip64_size: Option<u64>,
    pub zip64_offset: Option<u64>,
    pub locator_offset: Option<u64>,
    pub comment: Vec<u8>,
    pub before: Vec<u8>,
}

pub(crate) fn zip(entries: &[Entry]) -> Vec<u8> {
    zip_with(entries, &End::default())
}

pub(crate) fn zip_with(entries: &[Entry], end: &End) -> Vec<u8> {
    let mut out = Vec::new();
    let mut offsets = Vec::new();
    for it in entries {
        offsets.push(out.len() as u32);
        let flags = it.flags | if it.streamed { 8 } else { 0 };
        out.extend(b"PK\x03\x04");
        push(&mut out, &[20, flags.into(), it.method.into(), 0, 0].map(|it: u32| it as u16));
        let stated = if it.streamed { [0; 3] } else { [it.crc, it.packed, it.size] };
        stated.iter().for_each(|it| out.extend(it.to_le_bytes()));
        push(&mut out, &[it.local_name.len() as u16, 0]);
        out.extend(&it.local_name);
        out.extend(&it.payload);
        if it.streamed {
            out.extend(b"PK\x07\x08");
            [it.crc, it.packed, it.size].iter().for_each(|it| out.extend(it.to_le_bytes()));
        }
        out.extend(&it.gap);
    }
    let directory = out.len();
    for (it, offset) in entries.iter().zip(offsets) {
        out.extend(b"PK\x01\x02");
        let flags = it.flags | if it.streamed { 8 } else { 0 };
        push(&mut out, &[20, 20, flags, it.method, 0, 0]);
        [it.crc, it.packed, it.size].iter().for_each(|it| out.extend(it.to_le_bytes()));
        push(&mut out, &[it.name.len() as u16, it.central_extra.len() as u16, 0, 0, 0, 0, 0]);
        out.extend(it.offset.unwrap_or(offset).to_le_bytes());
        out.extend(&it.name);
        out.extend(&it.central_extra);
    }
    let size = out.len() - directory;
    out.extend(&end.before);
    if end.zip64 {
        let at = out.len() as u64;
        out.extend(b"PK\x06\x06");
        out.extend(44u64.to_le_bytes());
        push(&mut out, &[45, 45, 0, 0, 0, 0]);
        let n = end.zip64_entries.unwrap_or(entries.len() as u64);
        [n, n, end.zip64_size.unwrap_or(size as u64), end.zip64_offset.unwrap_or(directory as u64)]
            .iter()
            .for_each(|it| out.extend(it.to_le_bytes()));
        out.extend(b"PK\x06\x07\0\0\0\0");
        out.extend(end.locator_offset.unwrap_or(at).to_le_bytes());
        out.extend(1u32.to_le_bytes());
    }
    out.extend(b"PK\x05\x06\0\0\0\0");
    let n = end.n_entries.unwrap_or(entries.len() as u16);
    push(&mut out, &[n, n]);
    out.extend(end.directory_size.unwrap_or(size as u32).to_le_bytes());
    out.extend(end.directory_offset.unwrap_or(directory as u32).to_le_bytes());
    push(&mut out, &[end.comment.len() as u16]);
    out.extend(&end.comment);
    out
}

fn push(out: &mut Vec<u8>, words: &[u16]) {
    words.iter().for_each(|it| out.extend(it.to_le_bytes()));
}
