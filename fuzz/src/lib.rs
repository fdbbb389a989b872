//! What several targets need: archives around bytes that are mutated, so that mutations get past the checksums.

/// A zip file of stored entries.
pub fn stored(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in entries {
        let mut header = vec![20, 0, 0, 8, 0, 0, 0, 0, 0, 0];
        header.extend(crc32fast::hash(bytes).to_le_bytes());
        header.extend((bytes.len() as u32).to_le_bytes());
        header.extend((bytes.len() as u32).to_le_bytes());
        header.extend((name.len() as u16).to_le_bytes());
        header.extend([0, 0]);
        directory.extend([&b"PK\x01\x02\x14\x00"[..], &header, &[0; 10], &(out.len() as u32).to_le_bytes()].concat());
        directory.extend(name.as_bytes());
        out.extend([&b"PK\x03\x04"[..], &header, name.as_bytes(), bytes].concat());
    }
    let (start, n) = (out.len() as u32, entries.len() as u16);
    out.extend(&directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([n.to_le_bytes(), n.to_le_bytes()].concat());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}
