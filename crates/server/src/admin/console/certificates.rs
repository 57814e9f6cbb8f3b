//! What certificates say of drives, beside the devices of this store.

use entresol_host::now;
use entresol_page::{seconds, text_of};
use maud::{Markup, html};

use crate::shared::Shared;

/// The certificates, the newest first; nothing where there are none.
pub(super) fn certificates(shared: &Shared) -> Option<Markup> {
    if shared.certificates.is_empty() {
        return None;
    }
    let text = |text: &str| text_of(text.as_bytes());
    let ago = |unix: u64| seconds((now().0 / 1000).saturating_sub(unix));
    Some(html! {
        h2 { "Certified drives" }
        p { "This store is on " code { (text(&shared.tier.store().device().name())) } "." }
        @for one in &shared.certificates {
            @for drive in &one.drives {
                h3 { code { (text(&drive.target)) } ": " (text(&one.verdict)) }
            }
            p.soft {
                @for drive in &one.drives {
                    @for known in [&drive.model, &drive.serial] {
                        @if !known.is_empty() { (text(known)) ", " }
                    }
                }
                (ago(one.started_unix)) " ago, load " code { (text(&one.name)) }
            }
            p { (text(&one.line)) }
        }
        p.soft { "From the reports in the folder of " code { "drive-certificates" } ", as they \
            were at the start of the server." }
    })
}
