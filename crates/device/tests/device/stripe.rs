//! Stripes: where bytes go, and that members are told apart.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use entresol_device::{
    Completion, Device, Error, ErrorKind, Force, Growth, IoBuffer, MemoryDevice, QueueOptions,
    Result, StripeDevice, StripeOptions,
};
use entresol_sim::{CrashChoice, Image, SimDevice, SimOptions};

const UNIT: u64 = 64 << 10;

fn members(count: usize) -> Vec<Arc<dyn Device>> {
    (0..count).map(|_| Arc::new(MemoryDevice::new(1 << 20).unwrap()) as Arc<dyn Device>).collect()
}

fn open(members: &[Arc<dyn Device>], force: Force) -> Result<StripeDevice> {
    StripeDevice::open(
        members.to_vec(),
        StripeOptions { unit_bytes: UNIT, force, ..StripeOptions::default() },
    )
}

fn kind(result: Result<StripeDevice>) -> Option<ErrorKind> {
    result.err().as_ref().map(Error::kind)
}

fn fill(device: &dyn Device, byte: u8, offset: u64) {
    let mut buffer = IoBuffer::aligned(UNIT as usize);
    buffer.fill(byte);
    device.write_at(offset, &buffer).unwrap();
}

fn byte_at(device: &dyn Device, offset: u64) -> u8 {
    let mut buffer = IoBuffer::aligned(512);
    device.read_at(offset, &mut buffer).unwrap();
    buffer[0]
}

#[test]
fn consecutive_units_go_to_the_members_in_turn() {
    let members = members(3);
    let stripe = open(&members, Force::No).unwrap();
    assert_eq!(stripe.geometry().capacity_bytes, 3 * ((1 << 20) - UNIT));
    for unit in 0..6 {
        fill(&stripe, unit as u8 + 1, unit * UNIT);
    }
    let found = [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)]
        .map(|(member, unit): (usize, u64)| byte_at(&*members[member], unit * UNIT));
    assert_eq!(found, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_read_within_a_unit_is_one_read_of_one_member() {
    let members = members(2);
    let stripe = open(&members, Force::No).unwrap();
    let reads = || {
        let all = members.iter().map(|member| member.counters().reads.load(Ordering::Relaxed));
        all.collect::<Vec<u64>>()
    };
    let before = reads();
    let mut queue = stripe.queue(QueueOptions { depth: 4, buffer_bytes: 4096 }).unwrap();
    let mut completions: Vec<Completion> = Vec::new();
    queue.read(1, UNIT + 4096, 4096).unwrap();
    queue.reap(1, &mut completions).unwrap();
    assert_eq!(reads(), [before[0], before[1] + 1]);
    queue.read(2, UNIT - 4096, 8192).unwrap();
    queue.reap(1, &mut completions).unwrap();
    assert_eq!(reads(), [before[0] + 1, before[1] + 2], "two members spanned, two reads");
    assert_eq!(stripe.counters().reads.load(Ordering::Relaxed), 3);
}

#[test]
fn members_are_found_in_any_order() {
    let members = members(3);
    fill(&open(&members, Force::No).unwrap(), 9, 2 * UNIT);
    let turned = [2, 0, 1].map(|member: usize| Arc::clone(&members[member]));
    let options = StripeOptions { unit_bytes: 4096, force: Force::No, ..StripeOptions::default() };
    let stripe = StripeDevice::open(turned.to_vec(), options).unwrap();
    assert_eq!(stripe.unit_bytes(), UNIT, "the label's unit holds");
    assert_eq!(byte_at(&stripe, 2 * UNIT), 9);
}

#[test]
fn wrong_members_are_refused_unless_forced() {
    let (one, two) = (members(2), members(2));
    open(&one, Force::No).unwrap();
    open(&two, Force::No).unwrap();
    let mix = [Arc::clone(&one[0]), Arc::clone(&two[1])];
    let blank = [Arc::clone(&one[0]), members(1).remove(0)];
    let few = [Arc::clone(&one[0])];
    for wrong in [&mix[..], &blank, &few] {
        assert_eq!(kind(open(wrong, Force::No)), Some(ErrorKind::Foreign));
    }
    assert!(open(&mix, Force::Yes).is_ok() && open(&mix, Force::No).is_ok());
    assert_eq!(kind(open(&one, Force::No)), Some(ErrorKind::Foreign), "one lost a member");
}

/// Devices that somebody only wanted to read were given labels.
#[test]
fn nothing_is_written_where_no_stripe_may_be_made() {
    for force in [Force::No, Force::Yes] {
        let members = members(2);
        members.iter().for_each(|member| fill(&**member, 7, 0));
        let options =
            StripeOptions { unit_bytes: UNIT, force, makes: false, ..StripeOptions::default() };
        assert_eq!(kind(StripeDevice::open(members.to_vec(), options)), Some(ErrorKind::NotFound));
        assert!(members.iter().all(|member| byte_at(&**member, 0) == 7));
        drop(open(&members, Force::Yes).unwrap());
        drop(StripeDevice::open(members.to_vec(), options).unwrap());
    }
}

#[test]
fn force_keeps_a_stripe_that_is_whole() {
    let members = members(2);
    fill(&open(&members, Force::No).unwrap(), 9, UNIT);
    assert_eq!(byte_at(&open(&members, Force::Yes).unwrap(), UNIT), 9);
}

#[test]
fn a_damaged_label_is_noticed() {
    let members = members(2);
    open(&members, Force::No).unwrap();
    let mut label = IoBuffer::aligned(4096);
    members[0].read_at(0, &mut label).unwrap();
    for damaged in [9, 13, 17, 25, 41, 57] {
        let mut bytes = IoBuffer::aligned(4096);
        bytes.copy_from_slice(&label);
        bytes[damaged] ^= 0x10;
        members[0].write_at(0, &bytes).unwrap();
        assert_eq!(kind(open(&members, Force::No)), Some(ErrorKind::Foreign), "byte {damaged}");
    }
}

#[test]
fn members_too_small_and_odd_units_are_invalid_input() {
    let invalid = |members: Vec<Arc<dyn Device>>, unit_bytes| {
        let options = StripeOptions { unit_bytes, force: Force::No, ..StripeOptions::default() };
        assert_eq!(
            kind(StripeDevice::open(members, options)),
            Some(ErrorKind::InvalidInput),
            "{unit_bytes}"
        );
    };
    invalid(Vec::new(), UNIT);
    for unit_bytes in [0, 512, 5000, 1 << 20, 1 << 40] {
        invalid(members(2), unit_bytes);
    }
}

/// A member of `capacity_bytes` that begins with what `member` holds.
fn enlarged(member: &SimDevice, capacity_bytes: u64) -> SimDevice {
    let mut image = Image::blank(capacity_bytes);
    image.write(0, &member.image().to_vec());
    SimDevice::from_image(image, SimOptions::new(7, capacity_bytes))
}

// Power may fail between the labels of two members, and tear the one that is being written.
#[test]
fn growth_that_is_cut_off_loses_no_stripe() {
    const SMALL: u64 = 256 << 10;
    let options = StripeOptions { unit_bytes: 16 << 10, ..StripeOptions::default() };
    let growing = StripeOptions { growth: Growth::ToCapacity, ..options };
    let open = |members: &[SimDevice; 2], options| {
        let shared = |member: &SimDevice| Arc::new(member.clone()) as Arc<dyn Device>;
        StripeDevice::open(members.iter().map(shared).collect(), options)
    };
    let capacity = |members: &[SimDevice; 2], options| {
        open(members, options).unwrap().geometry().capacity_bytes
    };
    let made = [1, 2].map(|seed| SimDevice::new(SimOptions::new(seed, SMALL)));
    let first = capacity(&made, options);
    let grown = made.each_ref().map(|member| enlarged(member, 2 * SMALL));
    assert_eq!(capacity(&grown, options), first);
    let second = capacity(&grown, growing);
    assert_eq!(second, first + 2 * SMALL);
    // Only one of the two labels that say so was written to the second member.
    let half = made.each_ref().map(|member| enlarged(member, 2 * SMALL));
    half[1].crash_after(2);
    assert!(open(&half, growing).is_err());
    let half = half.each_ref().map(|member| member.reopened(CrashChoice::DropAll));
    assert_eq!(capacity(&half, options), second);
    let third = first + 6 * SMALL;
    let mut states = 0;
    for (before, size) in [(&made, first), (&grown, second), (&half, second)] {
        for (failing, call) in [0, 1].into_iter().flat_map(|at| (0..4).map(move |call| (at, call)))
        {
            let members = before.each_ref().map(|member| enlarged(member, 4 * SMALL));
            members[failing].crash_after(call);
            assert!(open(&members, growing).is_err(), "member {failing}, call {call}");
            for choice in members[failing].crash_choices() {
                let mut after = members.each_ref().map(|member| enlarged(member, 4 * SMALL));
                after[failing] = members[failing].reopened(choice);
                let now = capacity(&after, options);
                let whole = now == size || failing == 1 && now == third;
                assert!(whole, "member {failing}, call {call}, {choice:?}: {now} bytes");
                assert_eq!(capacity(&after, growing), third);
                assert_eq!(capacity(&after, options), third);
                states += 1;
            }
        }
    }
    assert!(states > 30, "{states} states");
}
