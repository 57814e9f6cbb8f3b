//! What is restored is what was backed up, byte by byte; nothing else is ever put in place.

mod support;

use std::fs;
use std::time::Duration;

use entresol_backup::{ErrorKind, Id, Opening, Repository, keep, verify};
use support::{Folder, Memory, NOW, at, flip, open, sealed};

#[test]
fn a_restored_device_equals_the_image_byte_by_byte() {
    let folder = Folder::new("trip");
    let mut memory = Memory::filled();
    let made = memory.back_up(&folder).unwrap();
    assert!(memory.ended && memory.asked_nothing());
    let mut done = memory.done.clone();
    done.sort_unstable();
    assert_eq!(done, [0, 1, 2, 5, 6, 7].map(at), "each segment is given back once");
    assert_eq!(made.read_bytes, memory.image.content_bytes());
    assert_eq!(folder.newest(), made.manifest);
    assert!(folder.restored(&made.manifest).unwrap() == memory.device);
    assert!(folder.objects("writing").is_empty(), "the mark is gone");
    let verified = verify(&folder.repository(), &mut |_, _| {}).unwrap();
    assert_eq!((verified.backups, verified.objects), (1, 6));
    assert_eq!(verified.bytes, made.read_bytes);
    assert!(verified.damaged.is_empty(), "{:?}", verified.damaged);
}

/// Of the segments that are there already the newest is read, to see that it is the same store.
#[test]
fn a_second_backup_reads_what_changed_and_one_segment_that_did_not() {
    let folder = Folder::new("second");
    let mut memory = Memory::filled();
    memory.back_up(&folder).unwrap();
    let first = memory.device.clone();
    memory.put(2, sealed(30), 200);
    memory.put(0, open(20, 6000), 100);
    let made = memory.back_up(&folder).unwrap();
    let mut reads = memory.reads.clone();
    reads.sort_unstable();
    // Segment 6 has no bytes, 7 is the newest of the old ones.
    assert_eq!(reads, [0, 2, 7].map(at));
    let new = made.manifest.rows.iter().filter(|row| row.is_new);
    let mut new: Vec<u64> = new.map(|row| row.segment.at).collect();
    new.sort_unstable();
    assert_eq!(new, [0, 2, 6].map(at));
    assert!(folder.restored(&made.manifest).unwrap() == memory.device);
    let backups = folder.repository().backups().unwrap();
    assert_eq!(backups.len(), 2);
    let older = folder.repository().manifest(&backups[0]).unwrap();
    assert!(folder.restored(&older).unwrap() == first, "the first backup is as it was");
}

/// After the restore of an older backup a store uses numbers of segments once more.
#[test]
fn a_store_with_another_past_is_read_whole_and_harms_no_backup() {
    let folder = Folder::new("past");
    let mut original = Memory::filled();
    let mut restored = original.clone();
    original.put(3, sealed(40), 300);
    original.back_up(&folder).unwrap();
    restored.put(3, sealed(40), 400);
    let made = restored.back_up(&folder).unwrap();
    assert!(folder.restored(&made.manifest).unwrap() == restored.device);
    let backups = folder.repository().backups().unwrap();
    let older = folder.repository().manifest(&backups[0]).unwrap();
    assert!(folder.restored(&older).unwrap() == original.device);
}

#[test]
fn an_object_that_is_gone_or_cut_is_read_again() {
    let folder = Folder::new("cut");
    let mut memory = Memory::filled();
    memory.back_up(&folder).unwrap();
    let objects = folder.objects("segments");
    let named = |number: u64| {
        let part = format!("{:016x}-", at(number));
        let has_part = |path: &&std::path::PathBuf| path.to_string_lossy().contains(&part);
        objects.iter().find(has_part).unwrap()
    };
    fs::remove_file(named(1)).unwrap();
    fs::write(named(2), b"short").unwrap();
    let made = memory.back_up(&folder).unwrap();
    assert!(memory.reads.contains(&at(1)) && memory.reads.contains(&at(2)));
    assert!(!memory.reads.contains(&at(5)));
    assert!(folder.restored(&made.manifest).unwrap() == memory.device);
}

#[test]
fn a_flipped_bit_in_any_object_is_named_at_verify_and_never_restored() {
    let folder = Folder::new("flip");
    let mut memory = Memory::filled();
    let made = memory.back_up(&folder).unwrap();
    let mut flipped = 0;
    for file in folder.objects("segments") {
        let sound = fs::read(&file).unwrap();
        flip(&file);
        let name = file.file_name().unwrap().to_str().unwrap();
        let verified = verify(&folder.repository(), &mut |_, _| {}).unwrap();
        let [damage] = verified.damaged.as_slice() else { panic!("{:?}", verified.damaged) };
        assert!(damage.name.ends_with(name), "{damage:?}");
        assert_eq!(damage.backups, std::slice::from_ref(&made.manifest.id));
        let refused = folder.restored(&made.manifest).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Damaged);
        assert!(refused.to_string().contains(name), "{refused}");
        fs::write(&file, sound).unwrap();
        flipped += 1;
    }
    assert_eq!(flipped, 6);
    let manifest = folder.objects("manifests").remove(0);
    flip(&manifest);
    let verified = verify(&folder.repository(), &mut |_, _| {}).unwrap();
    assert!(verified.damaged[0].name.starts_with("manifests/"), "{:?}", verified.damaged);
    let refused = entresol_backup::find(&folder.repository(), None).unwrap_err().to_string();
    assert!(refused.contains("expected a text whose SHA-256 begins with"), "{refused}");
}

#[test]
fn a_backup_that_the_server_gives_up_leaves_no_manifest() {
    for reads in 0..5 {
        let folder = Folder::new("given-up");
        let mut memory = Memory::filled();
        memory.gives_up_after = Some(reads);
        let error = memory.back_up(&folder).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::GivenUp, "{error}");
        assert!(folder.objects("manifests").is_empty() && folder.objects("writing").is_empty());
        memory.gives_up_after = None;
        let made = memory.back_up(&folder).unwrap();
        assert!(folder.restored(&made.manifest).unwrap() == memory.device);
    }
}

#[test]
fn keep_removes_the_oldest_and_what_nobody_names_and_nothing_else() {
    let folder = Folder::new("keep");
    let mut memory = Memory::filled();
    let first = memory.back_up(&folder).unwrap().manifest;
    memory.put(2, sealed(30), 200);
    let second = memory.back_up(&folder).unwrap().manifest;
    memory.put(5, sealed(31), 201);
    let third = memory.back_up(&folder).unwrap().manifest;
    let root = folder.0.join("repository");
    let segments = root.join("segments").join(memory.image.store.to_string());
    // What a killed backup left: an object, and a part of one.
    let orphan = "0000000000002000-0000000000000001-00000001-0123456789abcdef.zst";
    fs::write(segments.join(orphan), b"x").unwrap();
    fs::write(segments.join(format!("{orphan}#1")), b"x").unwrap();
    let foreign = [root.join("notes.txt"), segments.join("notes.txt"), root.join("manifests/x#1")];
    for file in &foreign {
        fs::write(file, b"mine").unwrap();
    }
    let kept = keep(&folder.repository(), 2, NOW).unwrap();
    assert_eq!(kept.removed, std::slice::from_ref(&first.id));
    // The old segment 2 of the first backup, and the orphan.
    assert_eq!((kept.backups, kept.objects_removed), (2, 2));
    assert!(foreign.iter().all(|file| file.exists()), "what is foreign stays");
    let left = folder.objects("segments").len();
    let needed: std::collections::HashSet<&String> =
        second.rows.iter().chain(&third.rows).map(|row| &row.object).collect();
    assert_eq!(left, needed.len() + 1, "all that is needed, and the foreign file");
    assert!(folder.restored(&third).unwrap() == memory.device);
    assert!(folder.restored(&second).is_ok());
    assert!(folder.objects("removing").is_empty());
}

#[test]
fn nothing_is_removed_beside_a_backup_that_is_written_or_a_manifest_that_is_damaged() {
    let folder = Folder::new("beside");
    let mut memory = Memory::filled();
    memory.back_up(&folder).unwrap();
    memory.put(2, sealed(30), 200);
    memory.back_up(&folder).unwrap();
    let objects = folder.objects("segments");
    let mark = folder.0.join("repository/writing/20261129T004500Z-0007");
    fs::write(&mark, b"process 1\n").unwrap();
    let refused = keep(&folder.repository(), 1, NOW).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(refused.to_string().contains("writing/20261129T004500Z-0007"), "{refused}");
    assert_eq!(folder.objects("manifests").len(), 2);
    // A mark that nobody renewed for long belongs to nobody.
    let old = fs::metadata(&mark).unwrap().modified().unwrap() - Duration::from_secs(16 * 60);
    fs::File::options().write(true).open(&mark).unwrap().set_modified(old).unwrap();
    let newest = folder.objects("manifests").remove(1);
    let sound = fs::read(&newest).unwrap();
    flip(&newest);
    let refused = keep(&folder.repository(), 1, NOW).unwrap_err();
    assert!(refused.to_string().contains("nothing was removed"), "{refused}");
    assert_eq!(folder.objects("segments"), objects);
    assert_eq!(folder.objects("manifests").len(), 2);
    fs::write(&newest, sound).unwrap();
    assert_eq!(keep(&folder.repository(), 1, NOW).unwrap().removed.len(), 1);
    assert!(!mark.exists());
}

#[test]
fn a_backup_does_not_begin_beside_a_removal() {
    let folder = Folder::new("removal");
    let mark = folder.0.join("repository/removing");
    fs::create_dir_all(&mark).unwrap();
    fs::write(mark.join("20261129T004500Z-0000"), b"process 1\n").unwrap();
    let mut memory = Memory::filled();
    let refused = memory.back_up(&folder).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(memory.reads.is_empty() && folder.objects("writing").is_empty());
}

#[test]
fn a_restore_overwrites_nothing_and_takes_over_what_a_killed_one_left() {
    let folder = Folder::new("overwrite");
    let mut memory = Memory::filled();
    let made = memory.back_up(&folder).unwrap();
    fs::write(folder.0.join("restored.restoring"), vec![7; 1 << 20]).unwrap();
    assert!(folder.restored(&made.manifest).unwrap() == memory.device);
    let target = folder.0.join("mine");
    fs::write(&target, b"mine").unwrap();
    let restore = entresol_backup::restore;
    let refused = restore(&folder.repository(), &made.manifest, &target, &mut |_| {}).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert_eq!(fs::read(&target).unwrap(), b"mine");
}

#[test]
fn places_and_backups_that_are_not_there_are_named() {
    let folder = Folder::new("absent");
    for (place, expected) in [
        ("", "expected a folder or s3://BUCKET/PREFIX, found nothing"),
        ("ftp://host/x", "found ftp://"),
        ("s3:///x", "found no bucket"),
        ("absent", "found no folder of that name"),
    ] {
        let error = Repository::open(place, Opening::Existing).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let find = |id: Option<&Id>| entresol_backup::find(&folder.repository(), id);
    assert!(find(None).unwrap_err().to_string().contains("has no backup"));
    let made = Memory::filled().back_up(&folder).unwrap();
    let absent = Id::parse("20200101T000000Z-0000").unwrap();
    let error = find(Some(&absent)).unwrap_err().to_string();
    assert!(error.contains(&format!("the newest are: {}", made.manifest.id)), "{error}");
}
