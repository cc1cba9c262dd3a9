//! Processes that compile for this one: in each process, the compiler reads one program at a time, whatever the number of
//! threads.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::frame;
use super::nvrtc::Nvrtc;
use super::program::Program;
use crate::driver::CudaError;
use crate::library::Libraries;

/// What a helper answers with in front of machine code, and in front of what the compiler says of errors.
const CODE: &[u8] = b"code";
const ERRORS: &[u8] = b"errors";

/// Compiles what is asked for on `input` until it ends. This is all that a helper does.
pub fn help(mut input: impl Read, mut output: impl Write) -> Result<(), CudaError> {
    let nvrtc = Nvrtc::load(Libraries::of_process())?;
    let broken = |error: io::Error| CudaError::Refused(format!("the other side is gone: {error}"));
    while let Some(texts) = frame::read(&mut input).map_err(broken)? {
        let answer = match program(&texts) {
            Some(program) => nvrtc.compile(&program),
            None => Err("the request has no program".to_string()),
        };
        let (kind, bytes) = match &answer {
            Ok(code) => (CODE, &code[..]),
            Err(log) => (ERRORS, log.as_bytes()),
        };
        frame::write(&mut output, &[kind, bytes]).map_err(broken)?;
    }
    Ok(())
}

fn program(texts: &[Vec<u8>]) -> Option<Program> {
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).ok();
    let [name, source, options @ ..] = texts else { return None };
    let options = options.iter().map(text).collect::<Option<_>>()?;
    Some(Program { name: text(name)?, text: text(source)?, options })
}

/// Helpers, each of which compiles one program at a time.
pub struct Helpers {
    state: Mutex<State>,
    freed: Condvar,
}

struct State {
    idle: Vec<Helper>,
    /// Those that live.
    count: usize,
}

struct Helper {
    child: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Helpers {
    /// Starts `count` processes that run [`help`] on their standard input and output. They need no device, so that they
    /// can be started before one is opened.
    pub fn start(count: usize, command: impl Fn() -> Command) -> io::Result<Self> {
        let idle = (0..count).map(|_| Helper::start(command())).collect::<io::Result<Vec<_>>>()?;
        Ok(Self { state: Mutex::new(State { count: idle.len(), idle }), freed: Condvar::new() })
    }

    /// Has a helper compile a program; `None` where no helper lives.
    pub(super) fn compile(&self, program: &Program) -> Option<Result<Vec<u8>, String>> {
        loop {
            let mut helper = self.take()?;
            match helper.compile(program) {
                Ok(compiled) => {
                    self.lock().idle.push(helper);
                    self.freed.notify_one();
                    return Some(compiled);
                }
                // A helper that ended in the middle takes no other program with it.
                Err(_) => {
                    self.lock().count -= 1;
                    self.freed.notify_all();
                }
            }
        }
    }

    /// Waits for a helper that has nothing to do; `None` where none lives.
    fn take(&self) -> Option<Helper> {
        let mut state = self.lock();
        loop {
            if let Some(helper) = state.idle.pop() {
                return Some(helper);
            }
            if state.count == 0 {
                return None;
            }
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Helper {
    fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let missing = || io::Error::other("a process without its pipes");
        let to = BufWriter::new(to.ok_or_else(missing)?);
        let from = BufReader::new(from.ok_or_else(missing)?);
        Ok(Self { child, to, from })
    }

    fn compile(&mut self, program: &Program) -> io::Result<Result<Vec<u8>, String>> {
        let mut texts = vec![program.name.as_bytes(), program.text.as_bytes()];
        texts.extend(program.options.iter().map(String::as_bytes));
        frame::write(&mut self.to, &texts)?;
        let ended = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let answer = frame::read(&mut self.from)?.ok_or_else(ended)?;
        match <[Vec<u8>; 2]>::try_from(answer) {
            Ok([kind, code]) if kind == CODE => Ok(Ok(code)),
            Ok([kind, log]) if kind == ERRORS => Ok(Err(String::from_utf8_lossy(&log).into())),
            _ => Err(io::Error::other("an answer of another kind")),
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It ends with its input; one that does not is of no more use either.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_helpers_that_live_there_is_no_answer() {
        let program = Program { name: "k.cu".into(), text: String::new(), options: Vec::new() };
        let helpers = Helpers::start(3, || Command::new("true")).unwrap();
        assert!(helpers.compile(&program).is_none());
        assert!(Helpers::start(1, || Command::new("/no/such/program")).is_err());
    }
}
