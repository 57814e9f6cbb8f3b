//! Configurations made from operators' reports: imports, ratios, fits, questions and answers.

use std::io::{Cursor, ErrorKind};

use entresol_certify::config::LoadModel;
use entresol_certify::dialogue::{self, Answers, Destination};
use entresol_certify::import::{self, DeviceLoad, FirstTable, Profile, Selection, Source};
use entresol_certify::sizing::{self, Sizing, SizingError};
use entresol_certify::{Index, Storage};

const READ_SIZES: &str = "\
{ycsb}-device-read-size
Apr 09 2018 21:31:30
                 % > (bytes)
slice-to (sec)      1      2      4      8    ops/sec
-------------- ------ ------ ------ ------ ----------
21:39:52   502 100.00  83.98  12.67   0.00    10407.5
21:48:13   501 100.00  83.96  12.63   0.00    10446.5
-------------- ------ ------ ------ ------ ----------
     avg       100.00  83.97  12.65   0.00    10427.0
     max       100.00  83.98  12.67   0.00    10446.5
";

const LOG: &str = include_str!("vectors/server_log.txt");

const IOSTAT: &str = "\
Linux 5.10 (host)

Device            r/s     rkB/s     w/s     wkB/s  %util
sda              1.00      4.00    1.00      4.00   0.10
nvme0n1         10.00    100.00   10.00    100.00   1.00

Device            r/s     rkB/s     w/s     wkB/s  %util
sda              0.00      0.00    0.00      0.00   0.00
nvme0n1      12000.00 380000.00 1500.00 192000.00  70.00

Device            r/s     rkB/s     w/s     wkB/s  %util
sda              0.00      0.00    0.00      0.00   0.00
nvme0n1      12344.00 390103.00 1563.00 200064.00  72.00
";

fn selection(devices: &[&str]) -> Selection {
    Selection {
        namespace: None,
        devices: devices.iter().map(|&device| device.to_owned()).collect(),
        large_block_bytes: 128 * 1024,
        first_table: FirstTable::SinceStart,
    }
}

fn imported(text: &str, expected: Source) -> Profile {
    assert_eq!(import::detect(text), Some(expected));
    import::import(expected, text, &selection(&[])).expect("the sample is whole")
}

#[test]
fn tables_of_asloglatency_give_sizes_and_rates() {
    let profile = imported(READ_SIZES, Source::Asloglatency);
    assert_eq!(profile.reads, Some(10427.0));
    assert_eq!(profile.read_sizes.unwrap().percent_above, [100.0, 83.97, 12.65, 0.0]);
    let cut = READ_SIZES.split("     avg").next().unwrap();
    let error = import::import(Source::Asloglatency, cut, &selection(&[])).unwrap_err();
    assert!(error.to_string().starts_with("line 4: the table of `device-read-size` has no row"));
    let narrow = READ_SIZES.replace("12.65   0.00", "12.65   0.50");
    let error = import::import(Source::Asloglatency, &narrow, &selection(&[])).unwrap_err();
    assert!(error.to_string().contains("larger `-n`"), "{error}");
    let sparse = READ_SIZES.replace("     1      2      4      8 ", "     1      4     16     64 ");
    let error = import::import(Source::Asloglatency, &sparse, &selection(&[])).unwrap_err();
    assert!(error.to_string().contains("`-e 1`"), "{error}");
}

/// Since 2018 the name of the histogram stands behind a label, and two more lines follow.
#[test]
fn tables_of_asloglatency_with_labels_are_read_as_those_without() {
    let labelled = READ_SIZES.replace(
        "{ycsb}-device-read-size",
        "Histogram : {ycsb}-device-read-size \nLog       : /var/log/aerospike.log\n\
         From      : 2018-05-09 00:20:02\n",
    );
    assert!(labelled.contains("Log       :"));
    let found = imported(&labelled, Source::Asloglatency);
    assert_eq!(found, imported(READ_SIZES, Source::Asloglatency));
}

#[test]
fn a_server_log_gives_sizes_between_its_dumps_and_the_devices_rates() {
    let profile = imported(LOG, Source::ServerLog);
    assert_eq!(profile.reads, Some(10.0));
    let sizes = profile.read_sizes.clone().unwrap();
    let expected = [50.0, 25.0, 15.0, 5.0, 0.0];
    for (found, expected) in sizes.percent_above[10..].iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9, "{sizes}");
    }
    assert_eq!(sizes.shares(100)[0].bytes, 512.0);
    assert_eq!((profile.large_writes, profile.direct_frees), (Some(1543.0), Some(369.0)));
    assert_eq!(profile.defrag_reads, Some(1172.8));
    let two = format!("{LOG}{}", LOG.replace("{ycsb}", "{other}"));
    let error = import::import(Source::ServerLog, &two, &selection(&[])).unwrap_err().to_string();
    assert!(error.contains("more than one namespace: `other`, `ycsb`"), "{error}");
    let chosen = Selection { namespace: Some("ycsb".to_owned()), ..selection(&[]) };
    assert_eq!(import::import(Source::ServerLog, &two, &chosen).unwrap(), profile);
}

/// A name as `iostat` has it, or a mistyped one, left the device's rates out in silence, and large
/// blocks that are freed directly were taken for read.
#[test]
fn devices_of_a_server_log_are_selected_as_those_of_iostat() {
    let whole = import::import(Source::ServerLog, LOG, &selection(&[])).unwrap();
    for name in ["nvme0n1", "/dev/nvme0n1"] {
        let chosen = import::import(Source::ServerLog, LOG, &selection(&[name])).unwrap();
        assert_eq!(chosen, whole, "{name}");
    }
    let error = import::import(Source::ServerLog, LOG, &selection(&["sdz"])).unwrap_err();
    assert!(error.to_string().contains("no device `sdz`; it shows `nvme0n1`"), "{error}");
    let dumps: String = LOG.split_inclusive('\n').filter(|line| !line.contains("/dev/")).collect();
    assert!(import::import(Source::ServerLog, &dumps, &selection(&["sdz"])).is_ok());
}

/// A dump of one histogram of sizes at a minute past seven; its title says `total`.
fn dump(minute: u32, total: u64, counts: [u64; 2]) -> String {
    let [small, large] = counts;
    let at = format!("Apr 10 2018 07:{minute:02}:00 GMT: INFO (info): (hist.c:319)");
    format!(
        "{at} histogram dump: {{ns}}-device-read-size ({total} total) bytes\n\
         {at} a line of somebody else (drv_ssd.c:1)\n\
         {at}  (10: {small:010}) (11: {large:010})\n"
    )
}

#[test]
fn counts_before_a_servers_restart_and_dumps_cut_short_do_not_count() {
    let log = [
        dump(0, 9000, [8000, 1000]),
        dump(10, 9600, [8000, 1600]),
        dump(20, 300, [200, 100]),
        dump(30, 900, [500, 400]),
        dump(40, 5000, [600, 500]),
    ]
    .concat();
    let profile = imported(&log, Source::ServerLog);
    assert_eq!(profile.reads, Some(1.0), "600 in ten minutes");
    assert_eq!(profile.read_sizes.unwrap().percent_above[10..], [50.0, 0.0]);
    let cut = dump(0, 900, [500, 100]);
    let error = import::import(Source::ServerLog, &cut, &selection(&[])).unwrap_err();
    assert_eq!(error.line, Some(1));
    assert!(error.to_string().contains("`device-read-size` is cut short"), "{error}");
}

#[test]
fn a_capture_of_iostat_leaves_out_the_time_before_it_and_idle_devices() {
    let load = import::device_load(IOSTAT, &selection(&[])).unwrap();
    assert_eq!((load.reads, load.writes), (12172.0, 1531.5));
    assert_eq!(load.written_bytes, 196_032.0 * 1024.0);
    let profile = imported(IOSTAT, Source::Iostat);
    assert_eq!(profile.large_block_kbytes, Some(128));
    assert_eq!(profile.reads, Some(12172.0 - 1531.5));
    let mut it = Storage { test_duration_sec: 1, ..Storage::default() };
    profile.apply(&mut it);
    (it.read_reqs_per_sec, it.write_reqs_per_sec) = (10641, profile.writes.unwrap().round() as u32);
    let rates = it.derive().unwrap();
    assert!((rates.large_writes - 1531.5).abs() < 2.0, "{}", rates.large_writes);
    let error = import::device_load(IOSTAT, &selection(&["/dev/sdz"])).unwrap_err().to_string();
    assert!(error.contains("no device `sdz`"), "{error}");
}

/// `iostat -y` leaves out the table since the start of the system, and nothing in the text says so.
#[test]
fn every_table_of_a_capture_counts_where_it_has_none_since_the_start() {
    let intervals = Selection { first_table: FirstTable::Interval, ..selection(&[]) };
    let begin = IOSTAT.match_indices("Device").nth(1).unwrap().0;
    let without = &IOSTAT[begin..];
    let whole = import::device_load(IOSTAT, &selection(&[])).unwrap();
    assert_eq!(import::device_load(without, &intervals).unwrap(), whole);
    assert_ne!(import::device_load(without, &selection(&[])).unwrap(), whole);
}

/// The last figure of such a line may be cut short, too; it was counted as it stood.
#[test]
fn a_capture_of_iostat_whose_last_line_is_cut_short_is_refused() {
    let (whole, _) = IOSTAT.rsplit_once("064.00  72.00").unwrap();
    let error = import::device_load(whole, &selection(&[])).unwrap_err();
    assert_eq!(error.line, Some(13));
}

/// A block of 128 KiB was taken from what is read for each that is written, though so much was not
/// read: what was left were records of one byte.
#[test]
fn large_blocks_are_not_taken_from_reads_that_have_no_room_for_them() {
    let capture = |reads: &str| {
        format!(
            "Device            r/s     rkB/s     w/s     wkB/s  %util\n\
             nvme0n1      {reads} 1500.00 192000.00  70.00\n"
        )
    };
    let profile = imported(&capture("12000.00 24000.00"), Source::Iostat);
    assert_eq!((profile.reads, profile.record_bytes), (Some(12000.0), Some(2048)));
    assert_eq!(profile.writes, Some(1500.0 * 64.0 / 2.0));
    // Records that nobody reads may have any size: that of the defaults, or of another text.
    let profile = imported(&capture("0.00 0.00"), Source::Iostat);
    assert_eq!((profile.reads, profile.record_bytes), (Some(0.0), None));
    assert_eq!(profile.writes, Some(1500.0 * 85.0 / 2.0));
}

#[test]
fn logs_of_fio_give_sizes_and_rates_by_direction() {
    let lines = "0, 120, 0, 4096, 0\n500, 130, 0, 1500, 8192\n1000, 99, 1, 131072, 0\n\
                 2000, 130, 0, 4096, 8192\n";
    let profile = imported(lines, Source::Fio);
    assert_eq!((profile.reads, profile.large_writes), (Some(1.5), Some(0.5)));
    // Records of 1706 bytes, of which blocks of 128 KiB hold 76, written twice.
    assert_eq!(profile.large_block_kbytes, Some(128));
    assert_eq!(profile.writes, Some(0.5 * 76.0 / 2.0));
    let sizes = profile.read_sizes.unwrap();
    assert_eq!((sizes.shares(100)[0].bytes, sizes.shares(100)[1].bytes), (1024.0, 2048.0));
    let untimed = "fio version 2 iolog\n/dev/a add\n/dev/a open\n/dev/a read 0 4096\n\
                   /dev/a write 4096 512\n/dev/a close\n";
    let profile = imported(untimed, Source::Fio);
    assert_eq!(profile.reads, None);
    assert_eq!(profile.write_sizes.unwrap().shares(100)[0].bytes, 256.0);
    let torn = import::import(Source::Fio, "0, 1, 0, 4096\nx\n", &selection(&[])).unwrap_err();
    assert_eq!(torn.line, Some(2));
}

/// Fio counts microseconds in these. They were taken for milliseconds, and rates were a thousandth
/// of what they had been.
#[test]
fn times_of_an_io_log_of_version_3_are_microseconds() {
    let timed = "fio version 3 iolog\n31 /dev/a add\n204 /dev/a open\n210 /dev/a read 4096 4096\n\
                 1000210 /dev/a write 4096 512\n2000210 /dev/a read 0 4096\n2000300 /dev/a close\n";
    let profile = imported(timed, Source::Fio);
    assert_eq!((profile.reads, profile.writes), (Some(1.0), Some(0.5)));
}

/// Each average was counted as one transfer of less than a byte.
#[test]
fn a_log_of_fio_of_averages_is_refused() {
    let averages = "500, 1800, 0, 0, 0\n500, 736, 1, 0, 0\n1000, 2208, 0, 0, 0\n";
    assert_eq!(import::detect(averages), Some(Source::Fio));
    let error = import::import(Source::Fio, averages, &selection(&[])).unwrap_err();
    assert_eq!(error.line, Some(1));
    assert!(error.to_string().contains("without `log_avg_msec`"), "{error}");
}

#[test]
fn trims_in_a_log_of_fio_are_no_transfers() {
    let lines = "0, 90, 2, 65536, 0\n0, 120, 0, 4096, 0\n500, 90, 2, 65536, 0\n\
                 1000, 130, 0, 4096, 8192\n";
    let profile = imported(lines, Source::Fio);
    assert_eq!((profile.reads, profile.writes, profile.large_writes), (Some(2.0), None, None));
}

#[test]
fn our_servers_statistics_give_a_load_of_our_engine() {
    let stats = r#"{"uptime_seconds":100,"store":{"flash_hits":200000,"puts":50000,
        "write_amplification":2.5,"key_bytes":{"mean":16},"value_bytes":{"mean":1000.4}}}"#;
    let profile = imported(stats, Source::Stats);
    assert_eq!((profile.reads, profile.writes), (Some(2000.0), Some(500.0)));
    assert_eq!((profile.record_bytes, profile.defrag_lwm_pct), (Some(1048), Some(60)));
    assert_eq!(profile.model, Some(LoadModel::Entresol));
    assert!(import::import(Source::Stats, "{}", &selection(&[])).is_err());
}

#[test]
fn operations_are_spread_over_nodes_drives_and_namespaces() {
    let sizing = Sizing {
        reads: 10427.0,
        writes: 5916.0,
        nodes: 1,
        drives_per_namespace: 1,
        namespaces_per_drive: 1,
        load: 1.0,
        devices: 1,
    };
    let requests = sizing.requests().unwrap();
    assert_eq!((requests.reads, requests.writes), (10427, 5916));
    let spread = Sizing {
        nodes: 3,
        drives_per_namespace: 4,
        namespaces_per_drive: 2,
        load: 3.0,
        devices: 2,
        ..sizing
    };
    let requests = spread.requests().unwrap();
    assert_eq!((requests.reads, requests.writes), (10427, 5916));
    let none = Sizing { nodes: 0, ..sizing };
    assert_eq!(none.requests(), Err(SizingError::NotAboveZero("nodes")));
    assert_eq!(Sizing { reads: f64::NAN, ..sizing }.requests(), Err(SizingError::Rate));
    assert_eq!(Sizing { load: 1e9, ..sizing }.requests(), Err(SizingError::Rate));
}

#[test]
fn the_papers_offset_is_found_from_its_capture() {
    let paper = include_str!("vectors/storage_histogram.conf");
    let mut it = Storage::parse(paper.as_bytes()).unwrap().configuration;
    let target = DeviceLoad {
        reads: 11788.5,
        read_bytes: 340_545.0 * 1024.0,
        writes: 1531.5,
        written_bytes: 196_032.0 * 1024.0,
    };
    let fit = sizing::fit(&mut it, &target).unwrap();
    assert_eq!(it.paper.lbw_req_offset, 90);
    assert!((fit.after.writes - 1531.8).abs() < 1e-9);
    assert!((fit.after.reads / target.reads - 1.0).abs() < 0.01, "{fit:?}");
    assert!((fit.after.read_bytes / target.read_bytes - 1.0).abs() < 0.01, "{fit:?}");
    assert_eq!(fit.remarks, Vec::<String>::new());
}

#[test]
fn what_offsets_cannot_reach_is_said() {
    let paper = include_str!("vectors/storage_histogram.conf");
    let mut it = Storage::parse(paper.as_bytes()).unwrap().configuration;
    let target = DeviceLoad { reads: 9000.0, read_bytes: 1e8, writes: 1531.5, written_bytes: 2e8 };
    let fit = sizing::fit(&mut it, &target).unwrap();
    assert_eq!(it.paper.lbr_req_offset, 100);
    assert!(fit.remarks[0].starts_with("lbr-req-offset would have to be"), "{fit:?}");
}

fn asked(answers: &str) -> Answers {
    let mut questions = Vec::new();
    dialogue::ask(&mut Cursor::new(answers), &mut questions).expect("the answers suffice")
}

#[test]
fn answers_give_the_standard_load_of_each_device() {
    let answers = asked("2\n/dev/a\n/dev/a\n/dev/b\nn\n\n3\ny\n");
    let it = &answers.configuration;
    assert_eq!(it.device_names, ["/dev/a", "/dev/b"]);
    assert_eq!((it.read_reqs_per_sec, it.write_reqs_per_sec), (12000, 6000));
    assert_eq!((it.test_duration_sec, it.record_bytes), (86400, 1536));
    assert_eq!(answers.file_name, "actconfig_3x_1d.txt");
    assert_eq!(answers.destination, Destination::File);
}

#[test]
fn answers_give_a_load_of_ones_own_and_wrong_ones_are_asked_for_again() {
    let answers = asked("0\n1\n/dev/a\nmaybe\ny\n6\ny\nn\n\n500\n4096\n\n\n");
    let it = &answers.configuration;
    assert_eq!((it.read_reqs_per_sec, it.write_reqs_per_sec), (2000, 500));
    assert_eq!((it.record_bytes, it.test_duration_sec), (4096, 6 * 3600));
    assert_eq!(answers.file_name, "actconfig_2000r500w_6h.txt");
    assert_eq!(answers.destination, Destination::Screen);
    let early = dialogue::ask(&mut Cursor::new("1\n"), &mut Vec::new()).unwrap_err();
    assert_eq!(early.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn answers_on_a_namespace_are_spread_as_the_paper_has_it() {
    let mut questions = Vec::new();
    // Twice the devices, each of which has half of what a node of three does.
    let answers = "2\n/dev/a\n/dev/b\n\ny\ny\n62562\n-1\n35496\n3\n2\n\n\n\
                   100,50\n100,50,0\n\n100,100,0\n\n";
    let answers = dialogue::ask(&mut Cursor::new(answers), &mut questions).unwrap();
    let it = &answers.configuration;
    assert_eq!((it.read_reqs_per_sec, it.write_reqs_per_sec), (20854, 11832));
    assert!(it.sizes_from_histograms() && it.paper.write_histogram.is_some());
    assert_eq!(answers.file_name, "actconfig_10427r5916w_1d.txt");
    let questions = String::from_utf8(questions).unwrap();
    for part in [
        "Answer a whole number from 0",
        "operations of a drive = 16343.00 ops/s = 98058.0 / 3 nodes / 2 drives per namespace",
        "That is no list of shares: ",
    ] {
        assert!(questions.contains(part), "{part}: {questions}");
    }
    assert!(Storage::parse(it.to_text("").as_bytes()).is_ok());
}

#[test]
fn written_files_are_read_back_the_same() {
    let files = [
        include_str!("vectors/storage_us.conf"),
        include_str!("vectors/storage_histogram.conf"),
        "device-names: /a,/b\ntest-duration-sec: 5\nread-reqs-per-sec: 10\n\
         arrivals: recorded /x y\n\
         model: engine\nqueue-depth: 7\nseed: 9\nverify: yes\njournal: /j\n\
         rules: 2.5/0.5 1/8\nrule-slice-sec: 60\nrest-sec: 1\nshortfall-pct: 0.25\n\
         commit-to-device: yes\ncommit-min-bytes: 4096\n",
        "device-names: /a\ntest-duration-sec: 5\nread-reqs-per-sec: 10\nengine: psync\n",
    ];
    for file in files {
        let it = Storage::parse(file.as_bytes()).unwrap().configuration;
        let text = it.to_text("one\ntwo");
        assert!(text.starts_with("# one\n# two\ndevice-names: "), "{text}");
        let again = Storage::parse(text.as_bytes()).unwrap();
        assert_eq!(again.configuration, it, "{text}");
        assert_eq!(again.warnings, []);
    }
    let index = Index::parse(include_bytes!("vectors/index_basic.conf")).unwrap().configuration;
    assert_eq!(Index::parse(index.to_text("").as_bytes()).unwrap().configuration, index);
}
