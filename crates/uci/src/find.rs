//! Where an engine is.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::EngineError;

/// Where package managers put engines. Debian uses /usr/games, which cron's short PATH does not have.
const FOLDERS: [&str; 3] = ["/usr/games", "/usr/local/bin", "/opt/homebrew/bin"];
/// In a configuration: the engine that is there, Stockfish or else our own.
pub const AUTO: &str = "auto";
/// What [`AUTO`] stands for, the first that is found.
const CANDIDATES: [&str; 2] = ["stockfish", "tabiya-ab"];
/// Folders that are searched in place of PATH and [`FOLDERS`].
const VARIABLE: &str = "TABIYA_ENGINES";

/// An engine's executable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundEngine {
    /// The name or path that it was found by: what the configuration says, or what [`AUTO`] stands for here.
    pub name: String,
    /// The executable.
    pub path: PathBuf,
    /// Whether it stands in for Stockfish, which [`AUTO`] prefers and which was not found.
    pub stands_in: bool,
}

/// Finds an engine's executable: a path as it is; a name beside the running executable, then in PATH, `/usr/games`,
/// `/usr/local/bin` and `/opt/homebrew/bin`; [`AUTO`] as `stockfish` and else as our own `tabiya-ab`.
///
/// The environment variable `TABIYA_ENGINES` names folders, joined as in PATH, that replace PATH and the three others.
///
/// # Errors
/// [`EngineError::NotFound`] says where it looked and how to install an engine.
pub fn choose_engine(configured: &str) -> Result<FoundEngine, EngineError> {
    let mut folders = own_folders();
    match env::var_os(VARIABLE) {
        Some(list) => folders.extend(env::split_paths(&list)),
        None => {
            folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
            folders.extend(FOLDERS.map(PathBuf::from));
        }
    }
    find_in(configured, &folders)
}

/// The executable alone of what [`choose_engine`] finds.
///
/// # Errors
/// As [`choose_engine`].
pub fn find_engine(configured: &str) -> Result<PathBuf, EngineError> {
    choose_engine(configured).map(|found| found.path)
}

/// The folder of the running executable, where a build puts all of ours; tests run in a folder below it.
fn own_folders() -> Vec<PathBuf> {
    let executable = env::current_exe().unwrap_or_default();
    let folder = executable.parent();
    let above = folder.filter(|f| f.ends_with("deps")).and_then(Path::parent);
    folder.into_iter().chain(above).map(Path::to_owned).collect()
}

fn find_in(configured: &str, folders: &[PathBuf]) -> Result<FoundEngine, EngineError> {
    let configured = configured.trim();
    let automatic = configured == AUTO;
    let names: &[&str] = if automatic { &CANDIDATES } else { &[configured] };
    let mut looked: Vec<PathBuf> = Vec::new();
    for (rank, name) in names.iter().enumerate() {
        for file in files(name, folders) {
            if is_executable(&file) {
                return Ok(FoundEngine { name: (*name).to_owned(), path: file, stands_in: automatic && rank > 0 });
            }
            if !looked.contains(&file) {
                looked.push(file);
            }
        }
    }
    let looked = match looked.as_slice() {
        [] => "no file, since no name was given".to_owned(),
        files => files.iter().map(|f| format!("`{}`", f.display())).collect::<Vec<_>>().join(", "),
    };
    Err(EngineError::NotFound { configured: configured.to_owned(), looked })
}

/// Where an engine may be: a path is itself, a name is looked for.
fn files(name: &str, folders: &[PathBuf]) -> Vec<PathBuf> {
    if name.contains('/') {
        vec![PathBuf::from(name)]
    } else if name.is_empty() {
        Vec::new()
    } else {
        folders.iter().filter(|f| !f.as_os_str().is_empty()).map(|f| f.join(name)).collect()
    }
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

    /// Two folders of a search path.
    fn folders(temp: &Path) -> [PathBuf; 2] {
        ["a", "b"].map(|name| {
            let folder = temp.join(name);
            fs::create_dir(&folder).unwrap();
            folder
        })
    }

    #[test]
    fn names_are_looked_up_in_order_and_paths_are_taken_as_they_are() {
        let temp = tempfile::tempdir().unwrap();
        let [a, b] = folders(temp.path());
        let find = |name: &str| find_in(name, &[a.clone(), b.clone()]).unwrap().path;
        executable(&b.join("engine"));
        fs::write(a.join("engine"), "not executable").unwrap();
        assert_eq!(find("engine"), b.join("engine"));
        executable(&a.join("engine"));
        assert_eq!(find(" engine"), a.join("engine"));
        let path = b.join("engine");
        assert_eq!(find_in(path.to_str().unwrap(), &[]).unwrap().path, path);
    }

    #[test]
    fn auto_is_stockfish_wherever_it_is_and_else_our_own_engine() {
        let temp = tempfile::tempdir().unwrap();
        let [a, b] = folders(temp.path());
        let find = || find_in("auto", &[a.clone(), b.clone()]);
        let text = find().unwrap_err().to_string();
        assert!(["a/stockfish", "b/stockfish", "a/tabiya-ab", "make build"].iter().all(|t| text.contains(t)), "{text}");
        executable(&a.join("tabiya-ab"));
        let found = find().unwrap();
        assert_eq!((found.name.as_str(), found.path, found.stands_in), ("tabiya-ab", a.join("tabiya-ab"), true));
        executable(&b.join("stockfish"));
        let found = find().unwrap();
        assert_eq!((found.name.as_str(), found.path, found.stands_in), ("stockfish", b.join("stockfish"), false));
        assert!(!find_in("tabiya-ab", std::slice::from_ref(&a)).unwrap().stands_in, "asked for by name");
    }

    #[test]
    fn u4_a_missing_engine_says_where_it_looked_and_what_to_do() {
        let text = find_engine("no-such-engine").unwrap_err().to_string();
        assert!(text.contains("/usr/games/no-such-engine") && text.contains("apt install"), "{text}");
        for nothing in ["", "/", "/no/such/engine"] {
            assert!(matches!(find_engine(nothing), Err(EngineError::NotFound { .. })), "{nothing}");
        }
    }

    #[test]
    fn our_own_executables_are_found_beside_the_running_one() {
        // The test runs in `deps`, the fake engine lies in the folder above it.
        let found = find_engine("tabiya-fake-engine");
        assert!(own_folders().len() == 2 && found.is_ok(), "{found:?}");
    }
}
