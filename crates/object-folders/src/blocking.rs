//! The same for programs that wait.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use crate::error::{Kind, Refusal};
use crate::options::{Moved, Options, Watch};

/// How often it is looked whether it shall stop, while an answer is waited for.
const LOOK: Duration = Duration::from_millis(100);

/// Puts every file below a folder under a URL, the manifest last. What is there already with the same digest is not sent
/// again, and after a kill the same call goes on with the parts that are missing.
///
/// # Errors
/// What is wrong here or there, with its place and what would mend it.
pub fn put(folder: &Path, url: &str, options: &Options, watch: &Watch) -> Result<Moved, Refusal> {
    wait(crate::send(folder, url, options, watch), watch)
}

/// Fetches what lies under a URL into a folder, the manifest last. A file has its name only once it is whole; after a kill
/// the same call goes on where it was.
///
/// # Errors
/// What is wrong here or there, with its place and what would mend it.
pub fn get(url: &str, folder: &Path, options: &Options, watch: &Watch) -> Result<Moved, Refusal> {
    wait(crate::fetch(url, folder, options, watch), watch)
}

fn wait<T>(work: impl Future<Output = Result<T, Refusal>>, watch: &Watch) -> Result<T, Refusal> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Refusal::new(Kind::Local, format!("the clients of stores: {e}")))?;
    let stopped = async {
        loop {
            watch.go_on()?;
            tokio::time::sleep(LOOK).await;
        }
    };
    let done = runtime.block_on(async {
        let (work, stopped) = (std::pin::pin!(work), std::pin::pin!(stopped));
        futures::future::select(work, stopped).await.factor_first().0
    });
    // A question that the system's resolver of names still ponders is not waited for.
    runtime.shutdown_background();
    done
}
