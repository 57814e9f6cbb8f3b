//! mClock: the scenarios of its reference simulation, and its promises under random load.

use entresol_sim::Random;
use entresol_volume::policy::qos::{AtLimit, Cost, MClock, Options, Phase, Turn};
use entresol_volume::{Moment, Qos, VolumeId};

const SECOND: u64 = 1_000_000_000;

/// A client that asks at a pace while few enough of its requests are unanswered.
#[derive(Clone, Copy)]
struct Client {
    qos: Qos,
    begins_s: u64,
    goal: f64,
    outstanding: u64,
    cost: f64,
}

impl Client {
    fn new(reservation: f64, limit: f64, weight: f64) -> Client {
        let qos = Qos { reservation, limit, weight };
        Client { qos, begins_s: 0, goal: 200.0, outstanding: 32, cost: 1.0 }
    }
}

/// A device that serves one request after the other, `rate` of cost 1 a second.
struct Run {
    /// When each request of each client was served, nanoseconds.
    served: Vec<Vec<u64>>,
    by_reservation: Vec<u64>,
}

impl Run {
    fn of(clients: &[Client], rate: f64, seconds: u64, options: Options) -> Run {
        let mut clock = MClock::new(options, Moment(0));
        let mut next: Vec<f64> = clients.iter().map(|one| (one.begins_s * SECOND) as f64).collect();
        let mut waiting = vec![0; clients.len()];
        let mut run =
            Run { served: vec![Vec::new(); clients.len()], by_reservation: vec![0; clients.len()] };
        for (at, client) in clients.iter().enumerate() {
            clock.set(VolumeId(at as u16), client.qos, Moment(0));
        }
        let mut now = 0;
        while now < seconds * SECOND {
            for (at, client) in clients.iter().enumerate() {
                while next[at] <= now as f64 && waiting[at] < client.outstanding {
                    // A request that found all outstanding comes when one is answered.
                    let came =
                        if waiting[at] + 1 < client.outstanding { next[at] as u64 } else { now };
                    clock.push(VolumeId(at as u16), 0, client.cost, Moment(came.min(now)));
                    waiting[at] += 1;
                    next[at] = next[at].max(now as f64 - 1e9) + 1e9 / client.goal;
                }
            }
            match clock.pop(Moment(now)) {
                Turn::Serve { volume, phase, .. } => {
                    let at = usize::from(volume.0);
                    waiting[at] -= 1;
                    run.served[at].push(now);
                    run.by_reservation[at] += u64::from(phase == Phase::Reservation);
                    // The device of the reference simulation takes as long for every request.
                    now += (1e9 / rate) as u64;
                }
                Turn::Wait(Moment(until)) => now = until.min(now + 1_000_000),
                Turn::Idle => now += 1_000_000,
            }
        }
        run
    }

    /// Requests a second of a client between two seconds.
    fn rate(&self, client: usize, from: u64, to: u64) -> f64 {
        let within = |at: &&u64| (from * SECOND..to * SECOND).contains(*at);
        self.served[client].iter().filter(within).count() as f64 / (to - from) as f64
    }

    fn check(&self, (from, to): (u64, u64), expected: &[f64]) {
        for (client, expected) in expected.iter().enumerate() {
            let rate = self.rate(client, from, to);
            let near = (rate - expected).abs() <= expected * 0.03 + 0.3;
            assert!(near, "client {client} from {from} s to {to} s: {rate}/s, expected {expected}");
        }
    }
}

#[test]
fn limits_and_weights_divide_one_server_as_in_the_reference_example() {
    // One server of 160 requests a second; clients that want 200 each come one after the other.
    let clients = [
        Client::new(0.0, 0.0, 1.0),
        Client { begins_s: 5, ..Client::new(0.0, 40.0, 1.0) },
        Client { begins_s: 10, ..Client::new(0.0, 50.0, 2.0) },
        Client { begins_s: 10, cost: 3.0, ..Client::new(0.0, 50.0, 2.0) },
    ];
    let run = Run::of(&clients, 160.0, 40, Options::default());
    run.check((1, 5), &[160.0, 0.0, 0.0, 0.0]);
    run.check((6, 10), &[120.0, 40.0, 0.0, 0.0]);
    // Requests of the last cost 3, and count threefold against its limit.
    run.check((12, 40), &[160.0 - 40.0 - 50.0 - 50.0 / 3.0, 40.0, 50.0, 50.0 / 3.0]);
}

#[test]
fn six_clients_of_three_kinds_share_as_their_weights_say() {
    let kinds = [(0.0, 0.0, 1.0, 0), (20.0, 40.0, 1.0, 5), (0.0, 50.0, 2.0, 10)];
    let clients: Vec<Client> = kinds
        .iter()
        .flat_map(|&(reservation, limit, weight, begins_s)| {
            [Client { begins_s, ..Client::new(reservation, limit, weight) }; 2]
        })
        .collect();
    let run = Run::of(&clients, 160.0, 40, Options::default());
    run.check((1, 5), &[80.0, 80.0]);
    run.check((6, 10), &[40.0, 40.0, 40.0, 40.0]);
    run.check((12, 40), &[20.0, 20.0, 20.0, 20.0, 40.0, 40.0]);
}

#[test]
fn a_reservation_is_met_whatever_the_weights_and_the_surplus_goes_by_weight() {
    let volumes = [
        Client { goal: 5000.0, ..Client::new(100.0, 0.0, 1.0) },
        Client { goal: 5000.0, ..Client::new(0.0, 300.0, 4.0) },
    ];
    for (rate, expected) in
        [(120.0, [100.0, 20.0]), (200.0, [100.0, 100.0]), (1000.0, [700.0, 300.0])]
    {
        Run::of(&volumes, rate, 21, Options::default()).check((1, 21), &expected);
    }
    // Where its weight gives it more than its reservation, the reservation does not matter.
    let volumes = [
        Client { goal: 5000.0, ..Client::new(50.0, 0.0, 1.0) },
        Client { goal: 5000.0, ..Client::new(50.0, 0.0, 3.0) },
    ];
    Run::of(&volumes, 400.0, 21, Options::default()).check((1, 21), &[100.0, 300.0]);
}

#[test]
fn reservations_of_many_are_met_when_they_take_all_there_is() {
    let clients: Vec<Client> = (0..9)
        .map(|at| Client {
            begins_s: if at == 8 { 10 } else { 0 },
            goal: 50.0,
            outstanding: 100,
            ..Client::new(20.0, 60.0, 1.0)
        })
        .collect();
    let run = Run::of(&clients, 180.0, 30, Options::default());
    run.check((12, 30), &[20.0; 9]);
    assert!(run.by_reservation.iter().all(|&count| count > 300));
}

#[test]
fn weights_hold_at_any_scale_on_a_device_of_any_speed() {
    for (scale, rate) in [(0.01, 100_000.0), (1.0, 20.0), (1000.0, 20.0), (100.0, 5000.0)] {
        let volume = |weight: f64| Client { goal: 1e6, ..Client::new(0.0, 0.0, weight * scale) };
        let run = Run::of(&[volume(1.0), volume(2.0), volume(5.0)], rate, 9, Options::default());
        let (one, all) = (rate / 8.0, (1, 9));
        run.check(all, &[one, 2.0 * one, 5.0 * one]);
    }
}

#[test]
fn a_volume_that_was_idle_claims_nothing_for_the_time_before() {
    let greedy = Client { goal: 1e6, ..Client::new(0.0, 0.0, 1.0) };
    let late = Client { begins_s: 10, ..greedy };
    let run = Run::of(&[greedy, late], 500.0, 20, Options::default());
    run.check((10, 11), &[250.0, 250.0]);
    run.check((11, 20), &[250.0, 250.0]);
}

#[test]
fn a_volume_of_one_request_at_a_time_is_not_starved() {
    let deep = Client { goal: 1e6, outstanding: 256, ..Client::new(0.0, 0.0, 1.0) };
    let shallow = Client { goal: 1e6, outstanding: 1, ..deep };
    let run = Run::of(&[deep, shallow], 500.0, 10, Options::default());
    assert!(run.rate(1, 1, 10) > 200.0, "{}", run.rate(1, 1, 10));
}

#[test]
fn limits_hold_for_every_interval_and_idle_service_is_a_choice() {
    let client = Client { goal: 1000.0, ..Client::new(0.0, 70.0, 1.0) };
    let run = Run::of(&[client], 500.0, 20, Options::default());
    for (first, at) in run.served[0].iter().enumerate() {
        let next = run.served[0][first..].iter().take_while(|next| **next < at + SECOND).count();
        assert!(next <= 71, "{next} requests in the second from {at} ns");
    }
    run.check((1, 20), &[70.0]);
    let allow = Options { at_limit: AtLimit::Allow, ..Options::default() };
    Run::of(&[client], 500.0, 20, allow).check((1, 20), &[500.0]);
}

#[test]
fn a_burst_after_idleness_is_as_long_as_it_may_be() {
    let options = Options { burst: 10.0, ..Options::default() };
    let mut clock = MClock::new(options, Moment(0));
    let qos = Qos { limit: 10.0, ..Qos::default() };
    clock.set(VolumeId(0), qos, Moment(0));
    let now = Moment(100 * SECOND);
    (0..20).for_each(|token| clock.push(VolumeId(0), token, 1.0, now));
    let at_once = (0..20).filter(|_| matches!(clock.pop(now), Turn::Serve { .. })).count();
    assert_eq!(at_once, 11);
    assert_eq!(clock.pop(now), Turn::Wait(Moment(now.0 + SECOND / 10)));
}

#[test]
fn size_costs_as_the_device_takes_longer() {
    let cost = Cost { bytes_doubling: 65536.0 };
    assert!((cost.of(0) - 1.0).abs() < 1e-9);
    assert!((cost.of(65536) - 2.0).abs() < 1e-9);
    let small = Client { goal: 1e6, ..Client::new(0.0, 0.0, 1.0) };
    let large = Client { cost: cost.of(3 * 65536), ..small };
    let run = Run::of(&[small, large], 500.0, 10, Options::default());
    run.check((1, 10), &[400.0, 100.0]);
}

#[test]
fn a_change_while_requests_wait_holds_from_then_on() {
    let mut clock = MClock::new(Options::default(), Moment(0));
    let volume = VolumeId(3);
    clock.set(volume, Qos { limit: 1.0, ..Qos::default() }, Moment(0));
    (0..10).for_each(|token| clock.push(volume, token, 1.0, Moment(0)));
    assert!(matches!(clock.pop(Moment(0)), Turn::Serve { token: 0, .. }));
    assert_eq!(clock.pop(Moment(0)), Turn::Wait(Moment(SECOND)));
    clock.set(volume, Qos { limit: 10.0, ..Qos::default() }, Moment(0));
    assert!(matches!(clock.pop(Moment(0)), Turn::Serve { token: 1, .. }));
    assert_eq!(clock.pop(Moment(0)), Turn::Wait(Moment(SECOND / 10)));
    assert_eq!(clock.queued(), 8);
    assert_eq!(clock.remove(volume).collect::<Vec<_>>(), (2..10).collect::<Vec<_>>());
    assert_eq!(clock.pop(Moment(0)), Turn::Idle);
}

#[test]
fn every_request_is_served_once_in_order_and_no_limit_is_passed() {
    for seed in 1..=40 {
        let mut random = Random::new(seed);
        let mut clock = MClock::new(Options::default(), Moment(seed * 1_000_000_007));
        let volumes = 1 + random.below(6) as usize;
        let limits: Vec<f64> = (0..volumes).map(|_| random.below(3) as f64 * 150.0).collect();
        let mut now = seed * 1_000_000_007;
        for (at, &limit) in limits.iter().enumerate() {
            let reservation = if limit > 0.0 { random.below(100) as f64 } else { 0.0 };
            let qos = Qos { reservation, limit, weight: random.below(5) as f64 };
            clock.set(VolumeId(at as u16), qos, Moment(now));
        }
        let mut pushed = vec![0; volumes];
        let mut served: Vec<Vec<u64>> = vec![Vec::new(); volumes];
        for step in 0..6000 {
            if step < 4000 && random.one_in(2) {
                let at = random.below(volumes as u64) as usize;
                clock.push(VolumeId(at as u16), pushed[at], 1.0, Moment(now));
                pushed[at] += 1;
            }
            match clock.pop(Moment(now)) {
                Turn::Serve { volume, token, .. } => {
                    let at = usize::from(volume.0);
                    assert_eq!(token, served[at].len() as u64, "seed {seed}");
                    served[at].push(now);
                    now += random.below(4_000_000);
                }
                Turn::Wait(until) => {
                    assert!(until > Moment(now), "seed {seed}: a wait that does not get on");
                    now = until.0.min(now + 10_000_000);
                }
                Turn::Idle => now += random.below(2_000_000),
            }
        }
        while let turn @ (Turn::Serve { .. } | Turn::Wait(_)) = clock.pop(Moment(now)) {
            match turn {
                Turn::Serve { volume, .. } => served[usize::from(volume.0)].push(now),
                Turn::Wait(until) => now = until.0,
                Turn::Idle => {}
            }
        }
        for at in 0..volumes {
            assert_eq!(served[at].len() as u64, pushed[at], "seed {seed}");
            for (first, from) in served[at].iter().enumerate().filter(|_| limits[at] > 0.0) {
                let within = served[at][first..].iter().take_while(|at| **at < from + SECOND);
                assert!(within.count() as f64 <= limits[at] + 1.0, "seed {seed}, volume {at}");
            }
        }
    }
}
