//! The process that starts those that tune, and starts one again that ended in the middle.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::{Context, Result, bail};
use weft_tuner::database::Database;
use weft_tuner::report::{ProgressReport, SizeReport};
use weft_tuner::session::{Part, Shard};

use super::message::Message;
use super::options::{Options, Role};
use super::report;
use super::view::View;
use super::watching::START_AGAIN;
use crate::BAD_INPUT;
use crate::mps::PrivateMps;

/// What becomes of processes that have said all there is to say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// They are waited for: those that come after them want the device for themselves.
    Awaited,
    /// Giving a device back takes a GPU's driver half a second, for which nobody need wait.
    LeftAlone,
}

/// How often processes are started again in all.
const MAX_RESTARTS: usize = 32;

/// What a process says or does.
enum Event {
    Progress(usize, ProgressReport),
    Size(SizeReport),
    Done,
    Ended(usize, std::io::Result<ExitStatus>),
}

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    // This process outlives an interruption: those that tune end, and it says what they found.
    let _runtime = ignore_interruptions()?;
    let mps = options.mps.then(PrivateMps::start).transpose()?;
    let mut supervisor = Supervisor { options, mps, view: View::new(), restarts: 0 };
    let one = Shard::default();
    // The service ends with this process, and not before those that use it.
    let last = if options.mps { Ends::Awaited } else { Ends::LeftAlone };
    let mut reports = match options.workers {
        1 => supervisor.run(&[Role { shard: one, part: Part::All }], last)?,
        count => {
            let shard = |number| Shard { number, count };
            let screening = |number| Role { shard: shard(number), part: Part::Screening };
            let roles: Vec<Role> = (0..count).map(screening).collect();
            let screened = supervisor.run(&roles, Ends::Awaited)?;
            let finals = supervisor.run(&[Role { shard: one, part: Part::Finals }], last)?;
            report::joined(finals, &screened)
        }
    };
    supervisor.view.clear();
    reports.sort_by_key(|report| report.partition_size);
    report::print(options, &reports, &options.database()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Keeps interruptions from ending this process; they reach all processes of a terminal alike.
fn ignore_interruptions() -> Result<tokio::runtime::Runtime> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.spawn(async { while tokio::signal::ctrl_c().await.is_ok() {} });
    Ok(runtime)
}

struct Supervisor<'a> {
    options: &'a Options,
    mps: Option<PrivateMps>,
    view: View,
    restarts: usize,
}

impl Supervisor<'_> {
    /// Runs one process for each role until all have done theirs.
    fn run(&mut self, roles: &[Role], ends: Ends) -> Result<Vec<SizeReport>> {
        self.view.show((1..=roles.len()).map(|number| format!("worker {number}")));
        let (sender, events) = channel();
        for (number, role) in roles.iter().enumerate() {
            self.start(number, *role, &sender)?;
        }
        let mut reports: Vec<SizeReport> = Vec::new();
        let mut running = roles.len();
        while running > 0 {
            match events.recv().context("all processes are gone")? {
                Event::Progress(number, progress) => self.view.update(number, &progress),
                Event::Size(report) => {
                    // One that was started again says anew what it had said before.
                    let is_same = |other: &SizeReport| {
                        roles.len() == 1 && other.partition_size == report.partition_size
                    };
                    reports.retain(|other| !is_same(other));
                    reports.push(report);
                }
                Event::Done if ends == Ends::LeftAlone => running -= 1,
                Event::Done => {}
                Event::Ended(_, Ok(status)) if status.success() => running -= 1,
                Event::Ended(_, Ok(status)) if status.code() == Some(i32::from(BAD_INPUT)) => {
                    // It has said what is wrong.
                    self.view.clear();
                    std::process::exit(i32::from(BAD_INPUT));
                }
                Event::Ended(number, status) => {
                    self.restart(number, status?)?;
                    self.start(number, roles[number], &sender)?;
                }
            }
        }
        Ok(reports)
    }

    fn restart(&mut self, number: usize, status: ExitStatus) -> Result<()> {
        let why = match status.code() {
            Some(START_AGAIN) => "a candidate did not end".to_string(),
            _ => format!("it ended ({status})"),
        };
        if self.restarts == MAX_RESTARTS {
            bail!("processes that tune were started again {MAX_RESTARTS} times; the last: {why}");
        }
        self.restarts += 1;
        // What it was trying is suspected from now on.
        Database::open(&self.options.database()?)?.settle()?;
        self.view.note(&format!("weft: worker {} is started again: {why}", number + 1));
        Ok(())
    }

    fn start(&self, number: usize, role: Role, events: &Sender<Event>) -> Result<()> {
        let program = std::env::current_exe().context("where this program lies")?;
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1)).args(["--as-worker", &role.text()]);
        if let Some(mps) = &self.mps {
            mps.apply(&mut command);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let child = child.context("cannot start a process that tunes")?;
        let events = events.clone();
        thread::spawn(move || listen(number, child, &events));
        Ok(())
    }
}

/// Hands on what a process says, until it ends.
fn listen(number: usize, mut child: Child, events: &Sender<Event>) {
    let lines = child.stdout.take().map(BufReader::new);
    for line in lines.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
        let event = match serde_json::from_str(&line) {
            Ok(Message::Progress(progress)) => Event::Progress(number, progress),
            Ok(Message::Size(report)) => Event::Size(report),
            Ok(Message::Done) => Event::Done,
            // Not a message: something that a library printed.
            Err(_) => continue,
        };
        if events.send(event).is_err() {
            return;
        }
    }
    let _ = events.send(Event::Ended(number, child.wait()));
}
