//! How far each of the processes that tune is, on the terminal.

use std::time::Instant;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use weft_tuner::report::ProgressReport;

/// A line for each process: a bar, how many trials, the best latency so far, the gain, and how long it will take.
pub(super) struct View {
    all: MultiProgress,
    bars: Vec<ProgressBar>,
    start: Instant,
}

impl View {
    /// Silent where nobody watches.
    pub(super) fn new() -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        Self { all, bars: Vec::new(), start: Instant::now() }
    }

    /// Shows processes by their names.
    pub(super) fn show(&mut self, names: impl IntoIterator<Item = String>) {
        self.bars.iter().for_each(ProgressBar::finish_and_clear);
        let template = "{prefix} {bar:28} {pos:>5}/{len:<5} {msg}";
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        self.start = Instant::now();
        self.bars = names
            .into_iter()
            .map(|name| {
                let bar = self.all.add(ProgressBar::new(0));
                bar.set_style(style.clone());
                bar.set_prefix(name);
                bar
            })
            .collect();
    }

    pub(super) fn update(&self, worker: usize, progress: &ProgressReport) {
        let Some(bar) = self.bars.get(worker) else { return };
        bar.set_length(progress.expected as u64);
        bar.set_position(progress.done as u64);
        bar.set_message(words(progress, self.start.elapsed().as_secs_f64()));
    }

    /// A line that stays.
    pub(super) fn note(&self, text: &str) {
        // Where the lines of the bars cannot be drawn, the text still is.
        if self.all.println(text).is_err() || self.all.is_hidden() {
            crate::progress::note(text);
        }
    }

    pub(super) fn clear(&self) {
        let _ = self.all.clear();
    }
}

fn words(progress: &ProgressReport, elapsed_s: f64) -> String {
    let ProgressReport { size, phase, done, expected, best_us, untuned_us } = progress;
    let gain = match *best_us > 0.0 {
        true => format!(", best {best_us:.0} us, {:.2} x", untuned_us / best_us),
        false => String::new(),
    };
    let left = match *done {
        0 => String::new(),
        done => {
            let seconds = elapsed_s / done as f64 * expected.saturating_sub(done) as f64;
            format!(", {seconds:.0} s left at most")
        }
    };
    format!("{phase} for size {size}{gain}{left}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_is_gained_and_how_long_it_takes() {
        let progress = ProgressReport {
            size: 8,
            phase: "trials".into(),
            done: 50,
            expected: 150,
            best_us: 800.0,
            untuned_us: 1000.0,
        };
        assert_eq!(
            words(&progress, 5.0),
            "trials for size 8, best 800 us, 1.25 x, 10 s left at most"
        );
        assert_eq!(
            words(
                &ProgressReport { size: 8, phase: "trials".into(), ..ProgressReport::default() },
                1.0
            ),
            "trials for size 8"
        );
    }
}
