//! What a stage ran on, for people to read beside its time.

use std::fs;
use std::process::Command;

/// This machine in a line, without names: `AMD EPYC 7B13, 2 cores, 8 GiB, AVX2`. What the system does not tell is left
/// out.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let cores = format!("{cores} core{}", if cores == 1 { "" } else { "s" });
    let memory = memory().map(|bytes| format!("{:.0} GiB", bytes as f64 / f64::from(1 << 30)));
    [processor(), Some(cores), memory, Some(instruction_set().to_owned())]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}

/// The widest vector instructions of this processor that our kernels use. The same program is three times as fast with
/// AVX-512 as with AVX2, so that a match by time is another match.
pub fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return "AVX-512";
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return "AVX2";
        }
    }
    if cfg!(target_arch = "aarch64") { "NEON" } else { std::env::consts::ARCH }
}

fn processor() -> Option<String> {
    let listed = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| field(&text, "model name"));
    listed.or_else(|| sysctl("machdep.cpu.brand_string")).or_else(|| Some(std::env::consts::ARCH.to_owned()))
}

/// Bytes.
fn memory() -> Option<u64> {
    let listed = fs::read_to_string("/proc/meminfo").ok().and_then(|text| field(&text, "MemTotal"));
    match listed {
        Some(text) => text.strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024),
        None => sysctl("hw.memsize")?.parse().ok(),
    }
}

/// The first `name : value` of a text.
fn field(text: &str, name: &str) -> Option<String> {
    let (_, value) = text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// As macOS tells.
fn sysctl(name: &str) -> Option<String> {
    let out = Command::new("sysctl").args(["-n", name]).output().ok().filter(|out| out.status.success())?;
    Some(String::from_utf8_lossy(&out.stdout).trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_system() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC 7B13\nmodel name\t: other\nMemTotal:       32768 kB\n";
        assert_eq!(field(text, "model name").as_deref(), Some("AMD EPYC 7B13"));
        assert_eq!(field(text, "MemTotal").as_deref(), Some("32768 kB"));
        assert_eq!(field(text, "model"), None);
    }

    #[test]
    fn it_is_one_line_with_cores() {
        let text = machine();
        assert!(text.contains(" core") && text.ends_with(instruction_set()) && !text.contains('\n'), "{text}");
    }
}
