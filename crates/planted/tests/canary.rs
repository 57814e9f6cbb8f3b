//! The canary of `cargo x planted`: passes as it stands, must fail when it is planted.

#[test]
fn canary_dies_only_when_planted() {
    let planted = entresol_planted::planted!("canary");
    assert!(!planted, "the canary was planted, and this failure is what shows it");
}
