//! Manifests from strangers, and a repository that was written once and is read for ever.

#[expect(dead_code, reason = "these tests change no device")]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use entresol_backup::{
    Digest, ErrorKind, ManifestName, Opening, Repository, find, restore, verify,
};
use support::{Folder, Memory};

/// The repository that version 1 of the format wrote of [`Memory::filled`].
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

/// A manifest's file with other text, under the name that goes with it.
fn replaced(file: &Path, text: &str) -> PathBuf {
    fs::remove_file(file).expect("the folder can be used");
    let name =
        file.file_name().expect("the folder can be used").to_str().expect("the folder can be used");
    let parts: Vec<&str> = name.split('.').collect();
    let check = Digest::of(text.as_bytes()).check();
    let file = file.with_file_name(format!("{}.{}.{check}.json", parts[0], parts[1]));
    fs::write(&file, text).expect("the folder can be used");
    file
}

#[test]
fn hostile_manifests_are_refused_with_what_was_expected_and_found() {
    let folder = Folder::new("hostile");
    let made = Memory::filled().back_up(&folder).unwrap();
    let mut file = folder.objects("manifests").remove(0);
    let sound = fs::read_to_string(&file).unwrap();
    let object = &made.manifest.rows[0].object;
    let at = made.manifest.rows[0].segment.at;
    for (from, to, expected) in [
        ("{", "[", "expected a JSON object, found what is none"),
        ("\"version\":1", "\"version\":2", "`version`: expected 1, found 2"),
        ("\"version\":1", "\"version\":\"1\"", "`version`: expected a whole number, found \"1\""),
        ("entresol-backup", "other-backup", "`format`: expected entresol-backup, found other"),
        (object.as_str(), "../../etc/passwd", "found ../../etc/passwd"),
        (object.as_str(), "segments/../notes", "`object`: expected segments/"),
        ("\"sha256\":\"", "\"sha256\":\"x", "`sha256`: expected 64 hexadecimal digits"),
        ("\"object_bytes\":", "\"object_bytes\":9999999", "`object_bytes`: expected at most"),
        ("\"bytes\":65536", "\"bytes\":65537", "expected at most 65536 bytes, found 65537"),
        ("\"bytes\":65536", "\"bytes\":-1", "`bytes`: expected a whole number, found -1"),
        ("\"segment_bytes\":65536", "\"segment_bytes\":0", "expected 1 to 67108864, found 0"),
        ("\"segment_bytes\":65536", "\"segment_bytes\":131072", "expected"),
        ("\"device_bytes\":", "\"device_bytes\":9999999999999999999", "expected"),
        ("\"device_bytes\":532480", "\"device_bytes\":466944", "found it beyond"),
        ("\"superblock_bytes\":4096", "\"superblock_bytes\":13", "expected 1 to 13, found 14"),
        ("\"superblock\":\"", "\"superblock\":\"zz", "expected hexadecimal digits"),
        ("000000000000570e", "000000000000570f", "expected"),
        (&format!("\"at\":{at}"), "\"at\":18446744073709551615", "found it beyond"),
        (&format!("\"at\":{at}"), "\"at\":0", "found one in use"),
        ("\"sealed\":true", "\"sealed\":1", "`sealed`: expected true or false, found 1"),
        ("\"segments\":[", "\"others\":[", "`segments`: expected a list, found none"),
        ("\"id\":\"2026", "\"id\":\"2027", "`id`: expected 2026"),
    ] {
        let text = sound.replacen(from, to, 1);
        assert_ne!(text, sound, "{from}");
        file = replaced(&file, &text);
        let repository = folder.repository();
        let error = find(&repository, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
        assert!(error.to_string().contains(expected), "{from} → {to}: {error}");
        assert!(error.to_string().contains("manifests/2026"), "{error}");
        let verified = verify(&repository, &mut |_, _| {}).unwrap();
        assert_eq!((verified.backups, verified.damaged.len()), (0, 1));
    }
    replaced(&file, &sound);
    assert_eq!(folder.newest(), made.manifest);
}

#[test]
fn names_that_are_no_manifests_are_no_backups() {
    let sound = "manifests/20261129T004500Z-0000.000000000000570e.0123456789abcdef.json";
    assert_eq!(ManifestName::parse(sound).unwrap().to_string(), sound);
    for name in [
        "manifests/../20261129T004500Z-0000.000000000000570e.0123456789abcdef.json",
        "manifests/20261129T004500Z-0000.000000000000570E.0123456789abcdef.json",
        "manifests/20261129T004500Z-0000.000000000000570e.0123456789abcde.json",
        "manifests/20261129T004500Z-0000.000000000000570e.0123456789abcdef.x.json",
        "manifests/20261129T004500Z-0000.000000000000570e.json",
        "manifests/x.json",
        "20261129T004500Z-0000",
    ] {
        assert_eq!(ManifestName::parse(name), None, "{name}");
    }
}

#[test]
fn the_repository_of_version_1_is_read_and_its_manifest_is_written_as_it_was() {
    let folder = Folder::new("golden");
    let golden = Repository::open(GOLDEN, Opening::Existing).unwrap();
    let memory = Memory::filled();
    let manifest = find(&golden, None).unwrap();
    assert_eq!(manifest.image, memory.image);
    let target = folder.0.join("restored");
    restore(&golden, &manifest, &target, &mut |_| {}).unwrap();
    assert!(fs::read(&target).unwrap() == memory.device);
    let name = &golden.backups().unwrap()[0];
    let text = fs::read_to_string(Path::new(GOLDEN).join(name.to_string())).unwrap();
    assert_eq!(manifest.encode(), (name.clone(), text));
}
