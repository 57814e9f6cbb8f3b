//! Files with somebody's data are not taken as targets.

#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::fs;
use std::path::{Path, PathBuf};

use entresol_certify::load::{Content, Durability, Manner, Marking, Place, Target, TargetOptions};
use entresol_workload::{Random, mix64};

const BYTES: usize = 1 << 20;

/// A file that goes when it is dropped.
struct Kept(PathBuf);

impl Kept {
    fn new(name: &str, contents: &[u8]) -> Kept {
        let name = format!("entresol-somebodys-{}-{name}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, contents).unwrap();
        Kept(path)
    }

    fn open(&self, destroy: &[String]) -> Result<Target, String> {
        self.open_as(Manner::Strict, 0, destroy)
    }

    fn open_as(
        &self,
        manner: Manner,
        file_mbytes: u32,
        destroy: &[String],
    ) -> Result<Target, String> {
        let options = TargetOptions {
            manner,
            file_mbytes,
            durability: Durability::Flushed,
            destroy: destroy.to_vec(),
        };
        let name = self.0.to_str().unwrap();
        Target::open(name, &options, &mut |_| {}).map_err(|error| error.to_string())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn random() -> Vec<u8> {
    (0..BYTES as u64 / 8).flat_map(|n| mix64(n + 1).to_le_bytes()).collect()
}

#[test]
fn a_file_that_somebody_keeps_is_refused_unless_named_and_stays_as_it_was() {
    let text = b"a line of a diary, and another one\n".repeat(BYTES / 35 + 1);
    let mut late = vec![0; BYTES];
    late[600_000..600_100].copy_from_slice(&text[..100]);
    let mut packed = random();
    packed[..4].copy_from_slice(b"\x1f\x8b\x08\x00");
    for (name, contents) in [("text", &text[..BYTES]), ("late", &late), ("packed", &packed)] {
        let file = Kept::new(name, contents);
        let refused = file.open(&[]).err().unwrap();
        assert!(refused.contains("contents of its own"), "{name}: {refused}");
        assert!(refused.contains("--destroy"), "{name}: {refused}");
        assert!(fs::read(&file.0).unwrap() == contents, "{name}");
        let path = file.0.to_str().unwrap().to_owned();
        assert!(file.open(&[path]).is_ok(), "{name}");
    }
}

#[test]
fn a_blank_file_and_one_full_of_random_bytes_are_targets() {
    for (name, contents) in [("blank", vec![0; BYTES]), ("random", random())] {
        let opened = Kept::new(name, &contents).open(&[]);
        assert!(opened.is_ok(), "{name}: {:?}", opened.err());
    }
}

/// `file-size-mbytes` under `--compat` cut or extended whatever was there, and wrote over it.
#[test]
fn a_file_that_somebody_keeps_is_neither_cut_nor_taken_as_act_would() {
    let text = b"a line of a diary, and another one\n".repeat(3 * BYTES / 35 + 1);
    let mut behind = vec![0; 6 * BYTES];
    behind[5 * BYTES + 600_000..][..100].copy_from_slice(&text[..100]);
    for (name, contents) in
        [("short", &text[..100]), ("whole", &text[..3 * BYTES]), ("behind", &behind)]
    {
        let file = Kept::new(&format!("cached-{name}"), contents);
        let refused = file.open_as(Manner::Compatible, 2, &[]).err().unwrap();
        assert!(refused.contains("contents of its own"), "{name}: {refused}");
        assert!(refused.contains("--destroy"), "{name}: {refused}");
        assert!(fs::read(&file.0).unwrap() == contents, "{name}");
        let path = file.0.to_str().unwrap().to_owned();
        let taken = file.open_as(Manner::Compatible, 2, &[path]).unwrap();
        assert_eq!(taken.size_bytes(), 2 << 20);
        assert_eq!(fs::metadata(&file.0).unwrap().len(), 2 << 20);
        let twice = file.open_as(Manner::Compatible, 2, &[]).err().unwrap();
        assert!(twice.contains("in use"), "{twice}");
    }
}

#[test]
fn a_file_that_an_earlier_load_left_is_taken_whatever_it_compresses_to() {
    for compress_pct in [100, 75, 50] {
        let mut contents = vec![0; 3 * BYTES];
        for marking in [Marking::Plain, Marking::Described { run: 7 }] {
            let content = Content::new(3, compress_pct, marking);
            for offset in [0, 8192, BYTES + 4096 + 512, 5 * BYTES / 2] {
                let place = Place { device: 1, offset: offset as u64 };
                let bytes = &mut contents[offset..offset + 3072];
                content.fill(&mut Random::new(offset as u64), place, 1, bytes);
            }
            let file = Kept::new(&format!("left-{compress_pct}"), &contents);
            let taken = file.open_as(Manner::Compatible, 2, &[]);
            assert!(taken.is_ok(), "{compress_pct} %, {marking:?}: {:?}", taken.err());
        }
    }
    let file = Kept::new("left-empty", &[]);
    let taken = file.open_as(Manner::Compatible, 1, &[]).unwrap();
    assert_eq!(taken.size_bytes(), 1 << 20);
}
