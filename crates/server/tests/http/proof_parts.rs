//! A proof file taken apart and put together again, written from docs/reference/invoice-proof.md alone.

const FIRST_LINE: &[u8] = b"leasehold-invoice-proof v1\n";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The series and the number, as they are encoded.
    pub(crate) invoice: Vec<u8>,
    pub(crate) note: String,
    /// The earlier size with its root and hashes, as they are encoded.
    pub(crate) growth: Vec<u8>,
    pub(crate) records: Vec<Part>,
    pub(crate) lists: [Vec<u8>; 3],
    pub(crate) hashes: Vec<[u8; 32]>,
}

/// A record of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) bytes: Vec<u8>,
    pub(crate) link: Option<Vec<u8>>,
    pub(crate) signatures: Vec<u8>,
}

impl Part {
    pub(crate) fn sequence(&self) -> u64 {
        varint(&mut self.bytes.as_slice())
    }
}

fn varint(rest: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = rest[0];
        *rest = &rest[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).expect("seven bits"));
}

fn take(rest: &mut &[u8], count: u64) -> Vec<u8> {
    let (head, tail) = rest.split_at(usize::try_from(count).expect("small"));
    *rest = tail;
    head.to_vec()
}

impl Parts {
    pub(crate) fn of(file: &[u8]) -> Self {
        let mut rest = file.strip_prefix(FIRST_LINE).expect("the first line");
        let mut invoice = take(&mut rest, 1);
        put_varint(varint(&mut rest), &mut invoice);
        let length = varint(&mut rest);
        let note = String::from_utf8(take(&mut rest, length)).expect("text");
        let mut growth = Vec::new();
        let size = varint(&mut rest);
        put_varint(size, &mut growth);
        if size > 0 {
            growth.extend(take(&mut rest, 32));
            let hashes = varint(&mut rest);
            put_varint(hashes, &mut growth);
            growth.extend(take(&mut rest, 32 * hashes));
        }
        let (mut records, mut before) = (Vec::new(), None);
        loop {
            let word = varint(&mut rest);
            if word == 0 {
                break;
            }
            let bytes = take(&mut rest, word >> 2);
            let sequence = varint(&mut bytes.as_slice());
            let link = (before.map(|before: u64| before + 1) != Some(sequence)).then(|| take(&mut rest, 32));
            before = Some(sequence);
            records.push(Part { bytes, link, signatures: take(&mut rest, 64 * (word & 3)) });
        }
        let lists = std::array::from_fn(|_| {
            let length = varint(&mut rest);
            take(&mut rest, length)
        });
        let hashes = rest.chunks(32).map(|hash| hash.try_into().expect("a whole hash")).collect();
        Self { invoice, note, growth, records, lists, hashes }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = FIRST_LINE.to_vec();
        out.extend(&self.invoice);
        put_varint(self.note.len() as u64, &mut out);
        out.extend(self.note.as_bytes());
        out.extend(&self.growth);
        for Part { bytes, link, signatures } in &self.records {
            put_varint(((bytes.len() << 2) | (signatures.len() / 64)) as u64, &mut out);
            out.extend(bytes);
            out.extend(link.iter().flatten());
            out.extend(signatures);
        }
        out.push(0);
        for list in &self.lists {
            put_varint(list.len() as u64, &mut out);
            out.extend(list);
        }
        out.extend(self.hashes.iter().flatten());
        out
    }
}
