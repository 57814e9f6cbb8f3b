//! Work for which there is no hurry.

use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id, thread_schedule_policy,
};

/// Has the system run the calling thread, and those that it starts from then on, only while no
/// other thread wants the processor (`SCHED_IDLE`): one that wakes takes it at once. Returns
/// whether the system did. A thread cannot come back from there without a privilege.
///
/// Such a thread must hold no lock that others wait for: it may be kept from running meanwhile.
pub fn run_when_idle() -> bool {
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    // It also sets the niceness, which a nicer thread may not; the policy is what counts.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle);
    thread_schedule_policy() == Ok(idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_idle_with_those_that_it_starts_and_others_are_not() {
        let policy = || {
            let stat =
                std::fs::read_to_string("/proc/thread-self/stat").expect("figures of a thread");
            let fields = stat.rsplit_once(") ").expect("a name").1;
            // The 41st of all fields; the first of these is the third.
            fields.split(' ').nth(41 - 3).expect("a policy").parse::<i32>().expect("a number")
        };
        const SCHED_IDLE: i32 = 5;
        let idle = std::thread::spawn(move || {
            assert!(run_when_idle());
            [policy(), std::thread::spawn(policy).join().expect("a policy")]
        });
        assert_eq!(idle.join().expect("policies"), [SCHED_IDLE; 2]);
        assert_ne!(policy(), SCHED_IDLE);
    }
}
