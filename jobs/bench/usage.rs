//! What this process and its children have used so far.

use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// The most memory that this process has had at a time.
pub(crate) fn peak_mib() -> Result<f64, Errno> {
    let units_per_mib = if cfg!(target_os = "macos") { 1 << 20 } else { 1 << 10 };
    Ok(getrusage(UsageWho::RUSAGE_SELF)?.max_rss() as f64 / f64::from(units_per_mib))
}

/// CPU time of this process and of its children that have ended.
pub(crate) fn cpu_seconds() -> Result<f64, Errno> {
    let seconds = |t: TimeVal| t.tv_sec() as f64 + 1e-6 * t.tv_usec() as f64;
    let of = |who| getrusage(who).map(|usage| seconds(usage.user_time()) + seconds(usage.system_time()));
    Ok(of(UsageWho::RUSAGE_SELF)? + of(UsageWho::RUSAGE_CHILDREN)?)
}
