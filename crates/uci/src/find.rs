//! Where an engine is.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::EngineError;

/// Where package managers put engines. Debian uses /usr/games, which cron's short PATH does not have.
const FOLDERS: [&str; 3] = ["/usr/games", "/usr/local/bin", "/opt/homebrew/bin"];

/// Finds an engine's executable: a path as it is, or a name in PATH and then in `/usr/games`, `/usr/local/bin` and
/// `/opt/homebrew/bin`.
///
/// # Errors
/// [`EngineError::NotFound`] says where it looked and how to install an engine.
pub fn find_engine(configured: &str) -> Result<PathBuf, EngineError> {
    let path = env::var_os("PATH").unwrap_or_default();
    find_in(configured, env::split_paths(&path).chain(FOLDERS.iter().map(PathBuf::from)))
}

fn find_in(configured: &str, folders: impl Iterator<Item = PathBuf>) -> Result<PathBuf, EngineError> {
    let name = configured.trim();
    let mut looked: Vec<PathBuf> = Vec::new();
    if name.contains('/') {
        looked.push(PathBuf::from(name));
    } else if !name.is_empty() {
        for folder in folders.filter(|f| !f.as_os_str().is_empty()) {
            let file = folder.join(name);
            if !looked.contains(&file) {
                looked.push(file);
            }
        }
    }
    if let Some(file) = looked.iter().find(|file| is_executable(file)) {
        return Ok(file.clone());
    }
    let looked = match looked.as_slice() {
        [] => "no file, since no name was given".to_owned(),
        files => files.iter().map(|f| format!("`{}`", f.display())).collect::<Vec<_>>().join(", "),
    };
    Err(EngineError::NotFound { configured: configured.to_owned(), looked })
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn executable(path: &Path) {
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn names_are_looked_up_in_order_and_paths_are_taken_as_they_are() {
        let temp = tempfile::tempdir().unwrap();
        let (a, b) = (temp.path().join("a"), temp.path().join("b"));
        fs::create_dir(&a).unwrap();
        fs::create_dir(&b).unwrap();
        executable(&b.join("engine"));
        fs::write(a.join("engine"), "not executable").unwrap();
        let folders = || [a.clone(), b.clone()].into_iter();
        assert_eq!(find_in("engine", folders()).unwrap(), b.join("engine"));
        executable(&a.join("engine"));
        assert_eq!(find_in(" engine", folders()).unwrap(), a.join("engine"));
        let path = b.join("engine");
        assert_eq!(find_in(path.to_str().unwrap(), [].into_iter()).unwrap(), path);
    }

    #[test]
    fn u4_a_missing_engine_says_where_it_looked_and_what_to_do() {
        let text = find_engine("no-such-engine").unwrap_err().to_string();
        assert!(text.contains("/usr/games/no-such-engine") && text.contains("apt install"), "{text}");
        for nothing in ["", "/", "/no/such/engine"] {
            assert!(matches!(find_engine(nothing), Err(EngineError::NotFound { .. })), "{nothing}");
        }
    }
}
