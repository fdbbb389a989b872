//! What is told while a command takes long.

use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tracefx_engine::command::CommandLine;

/// What takes no longer than this says nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line on the terminal of who waits, until it is dropped: what is done, and for how long. There is none where errors go to a file.
pub(crate) struct Progress {
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Begins to wait for what this line asks for.
    pub(crate) fn of(line: &CommandLine) -> Self {
        let file = line.files.first().map_or(String::new(), |it| Path::new(it).display().to_string());
        let message = format!("{} {file}", line.verb.name);
        let (done, wait) = channel::<()>();
        let thread = std::thread::Builder::new().spawn(move || {
            let Err(std::sync::mpsc::RecvTimeoutError::Timeout) = wait.recv_timeout(PATIENCE) else { return };
            let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
            let bar = ProgressBar::new_spinner().with_elapsed(PATIENCE).with_message(message);
            let bar = bar.with_style(style.expect("the template is one"));
            bar.enable_steady_tick(Duration::from_millis(100));
            let _ = wait.recv();
            bar.finish_and_clear();
        });
        // Where there is no thread to be had, the command goes on without telling.
        Progress { done: Some(done), thread: thread.ok() }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.done.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
