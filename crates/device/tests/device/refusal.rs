//! A system that forbids io_uring, as the filter of a container does.
#![expect(unsafe_code, reason = "a filter of system calls")]

use entresol_device::{Device, FileDevice, FileOptions, IoEngine, uring_refusal};
use entresol_sim::conformance;

use crate::place::Place;

/// Has the system refuse io_uring to the calling thread and those that it starts from here on.
fn forbid_io_uring() {
    const NUMBER_OF_CALL: u32 = 0;
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let skip_unless = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let end = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, k, jf| libc::sock_filter { code, jt: 0, jf, k };
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut steps = [
        step(load, NUMBER_OF_CALL, 0),
        step(skip_unless, libc::SYS_io_uring_setup as u32, 1),
        step(end, refusal, 0),
        step(end, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: plain system calls; the filter outlives them.
    let taken = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
    };
    assert!(taken, "{}", std::io::Error::last_os_error());
}

/// It does, and nobody was told why all was slower.
#[test]
fn a_file_works_where_io_uring_is_forbidden_and_the_refusal_is_told() {
    let checked = std::thread::spawn(|| {
        forbid_io_uring();
        let refusal = uring_refusal().unwrap();
        assert_eq!(refusal.raw_os_error(), Some(libc::EPERM));
        for io in [IoEngine::Auto, IoEngine::Uring, IoEngine::Inline] {
            let place = Place::temporary("refusal");
            let capacity_bytes = Some(16 << 20);
            let options = FileOptions { capacity_bytes, io, ..FileOptions::default() };
            let device = FileDevice::open(place.path().join("device"), &options).unwrap();
            assert!(device.describe().contains("blocking"), "{}", device.describe());
            assert!(device.geometry().capacity_bytes > 0);
            conformance::check(&device);
        }
    });
    checked.join().unwrap();
}
