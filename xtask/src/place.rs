//! Where `configs/`, `data/` and `runs/` are: in the folder of the call, or in the workspace around it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The folder that holds them: the current one (as an empty path, so that messages stay short), or the nearest above
/// it that is a workspace with configurations.
fn home() -> &'static Path {
    static HOME: OnceLock<PathBuf> = OnceLock::new();
    HOME.get_or_init(|| {
        if Path::new("configs").is_dir() {
            return PathBuf::new();
        }
        let here = std::env::current_dir().unwrap_or_default();
        let above = here.ancestors().find(|f| f.join("configs").is_dir() && f.join("Cargo.toml").is_file());
        above.map(Path::to_owned).unwrap_or_default()
    })
}

/// The folder of configurations.
pub(crate) fn configs() -> PathBuf {
    home().join("configs")
}

/// The folder of the configurations of data sets.
pub(crate) fn data_configs() -> PathBuf {
    home().join("configs/data")
}

/// The folder of the configurations of data sets of inference tasks.
pub(crate) fn inference_configs() -> PathBuf {
    home().join("configs/inference")
}

/// The folder of data sets.
pub(crate) fn data() -> PathBuf {
    home().join("data")
}

/// The folder of all runs.
pub(crate) fn runs() -> PathBuf {
    home().join("runs")
}

/// The folder of the programs of the equation language.
pub(crate) fn programs() -> PathBuf {
    home().join("crates/tensor-logic/programs")
}

/// Whether the sources are here, from which another build can be made.
pub(crate) fn has_sources() -> bool {
    file("Cargo.toml").is_file() && file("xtask").is_dir()
}

/// A file of the project.
pub(crate) fn file(name: &str) -> PathBuf {
    home().join(name)
}

/// Whether a name is that of a folder beside others.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\'])
}
