//! Archives around bytes that are mutated, so that mutations get past the checksums.

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

/// The entries of a zip file that are not compressed, by its directory.
pub(crate) fn stored_entries(zip: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    let number =
        |at: usize, width: usize| zip[at..at + width].iter().rev().fold(0, |sum, it| sum << 8 | usize::from(*it));
    let end = zip.windows(4).rposition(|it| it == b"PK\x05\x06").expect("a zip file has an end");
    let (count, mut at) = (number(end + 10, 2), number(end + 16, 4));
    let entries = (0..count).map(move |_| {
        let (is_stored, n_bytes, local) = (number(at + 10, 2) == 0, number(at + 20, 4), number(at + 42, 4));
        let [name, extra, comment] = [28, 30, 32].map(|it| number(at + it, 2));
        let start = local + 30 + number(local + 26, 2) + number(local + 28, 2);
        let text = std::str::from_utf8(&zip[at + 46..at + 46 + name]).expect("names are text");
        at += 46 + name + extra + comment;
        is_stored.then(|| (text, &zip[start..start + n_bytes]))
    });
    entries.flatten()
}
