//! How much memory the system has left, for an engine that is told a size of its tables: what does not fit is refused,
//! because a system that promises more than it has kills the program when it is used.

use std::fs;

/// Whether `bytes` fit into the memory that is free, with `held` bytes that will be given back before they are used.
/// Where the system does not tell, they do.
pub fn fits_in_memory(bytes: usize, held: usize) -> bool {
    available().is_none_or(|free| bytes <= free.saturating_add(held))
}

/// Bytes that can be used without swapping, in the machine and in the group of processes that this one belongs to.
fn available() -> Option<usize> {
    let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available_in(&text))?;
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<usize>().ok();
    let group = "/sys/fs/cgroup/memory";
    // `max` is no number: no limit.
    let of_group = number(&format!("{group}.max"))
        .zip(number(&format!("{group}.current")))
        .map(|(most, used)| most.saturating_sub(used));
    Some(of_group.map_or(of_machine, |bytes| bytes.min(of_machine)))
}

fn available_in(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::{available_in, fits_in_memory};

    #[test]
    fn what_the_system_tells() {
        let text = "MemTotal:       24000000 kB\nMemFree: 5 kB\nMemAvailable:   1000 kB\n";
        assert_eq!(available_in(text), Some(1_024_000));
        assert_eq!(available_in("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn a_page_fits_and_everything_does_not_where_it_is_told() {
        assert!(fits_in_memory(4096, 0));
        assert!(fits_in_memory(usize::MAX, usize::MAX));
        #[cfg(target_os = "linux")]
        assert!(!fits_in_memory(usize::MAX / 2, 0));
    }
}
