//! Recording: streams whose work is noted down, with what it has to wait for, and not done.

use std::collections::{HashMap, HashSet};
use std::ffi::c_uint;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use super::error::Code;
use super::handles::Handle;
use super::operation::Operation;

/// Whose calls that a recording does not stand make it fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    Everybody,
    OwnThread,
    Nobody,
}

impl Watched {
    /// As programs number them.
    pub(super) fn from_mode(mode: c_uint) -> Option<Self> {
        [Self::Everybody, Self::OwnThread, Self::Nobody].get(mode as usize).copied()
    }
}

/// Something that was recorded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Node<T> {
    pub(super) work: T,
    /// The nodes that come before it, by their places in the order of recording.
    pub(super) after: Vec<usize>,
}

/// A place in a recording: all that a stream had been given when an event was recorded in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    capture: Handle,
    after: Vec<usize>,
}

/// A stream that takes part in a recording.
struct Participant {
    capture: Handle,
    /// What its next node comes after.
    after: Vec<usize>,
}

struct Capture<T> {
    /// Where it was begun.
    origin: Handle,
    thread: ThreadId,
    watched: Watched,
    nodes: Vec<Node<T>>,
    has_failed: bool,
}

/// All recordings that go on.
pub(super) struct Captures<T> {
    streams: HashMap<Handle, Participant>,
    captures: HashMap<Handle, Capture<T>>,
}

impl<T> Default for Captures<T> {
    fn default() -> Self {
        Self { streams: HashMap::new(), captures: HashMap::new() }
    }
}

impl<T> Captures<T> {
    pub(super) fn begin(
        &mut self,
        stream: Handle,
        thread: ThreadId,
        watched: Watched,
    ) -> Result<(), Code> {
        if self.is_recording(stream) {
            return Err(Code::IllegalState);
        }
        let capture = Handle::new();
        self.streams.insert(stream, Participant { capture, after: Vec::new() });
        let nodes = Vec::new();
        let has_failed = false;
        self.captures
            .insert(capture, Capture { origin: stream, thread, watched, nodes, has_failed });
        Ok(())
    }

    pub(super) fn is_recording(&self, stream: Handle) -> bool {
        self.streams.contains_key(&stream)
    }

    /// Notes down work for a stream, or gives it back where that is not recording.
    pub(super) fn add(&mut self, stream: Handle, work: T) -> Result<Option<T>, Code> {
        let Some(participant) = self.streams.get_mut(&stream) else { return Ok(Some(work)) };
        let Some(capture) = self.captures.get_mut(&participant.capture) else {
            return Err(Code::IllegalState);
        };
        if capture.has_failed {
            return Err(Code::CaptureInvalidated);
        }
        let after = std::mem::replace(&mut participant.after, vec![capture.nodes.len()]);
        capture.nodes.push(Node { work, after });
        Ok(None)
    }

    /// What a stream has been given so far, where it is recording.
    pub(super) fn mark(&self, stream: Handle) -> Option<Mark> {
        let Participant { capture, after } = self.streams.get(&stream)?;
        Some(Mark { capture: *capture, after: after.clone() })
    }

    /// What comes in a stream from now on comes after a mark, and so the stream takes part in the recording.
    pub(super) fn wait(&mut self, stream: Handle, mark: &Mark) -> Result<(), Code> {
        if !self.captures.contains_key(&mark.capture) {
            // It has ended, and nothing will ever reach the mark.
            self.fail(stream);
            return Err(Code::CapturedEvent);
        }
        let participant = self.streams.entry(stream);
        let participant =
            participant.or_insert_with(|| Participant { capture: mark.capture, after: Vec::new() });
        if participant.capture != mark.capture {
            self.fail(stream);
            return Err(Code::CaptureMerge);
        }
        let known: HashSet<usize> = participant.after.iter().copied().collect();
        participant.after.extend(mark.after.iter().filter(|node| !known.contains(node)));
        Ok(())
    }

    /// Makes the recording that a stream takes part in fail; true where it takes part in one.
    pub(super) fn fail(&mut self, stream: Handle) -> bool {
        let participant = self.streams.get(&stream);
        let capture = participant.and_then(|own| self.captures.get_mut(&own.capture));
        capture.map(|capture| capture.has_failed = true).is_some()
    }

    /// Makes all recordings fail that do not stand a call of a thread which may wait for the device; true where there are any.
    pub(super) fn fail_by(&mut self, thread: ThreadId) -> bool {
        let mut is_any = false;
        for capture in self.captures.values_mut() {
            let minds = match capture.watched {
                Watched::Everybody => true,
                Watched::OwnThread => capture.thread == thread,
                Watched::Nobody => false,
            };
            capture.has_failed |= minds;
            is_any |= minds;
        }
        is_any
    }

    /// Ends the recording that was begun in a stream; all that was recorded, in order.
    pub(super) fn end(&mut self, stream: Handle, thread: ThreadId) -> Result<Vec<Node<T>>, Code> {
        let participant = self.streams.get(&stream).ok_or(Code::IllegalState)?;
        let ended = participant.capture;
        let capture = self.captures.get(&ended).ok_or(Code::IllegalState)?;
        if capture.origin != stream {
            return Err(Code::CaptureUnmatched);
        }
        if capture.watched != Watched::Nobody && capture.thread != thread {
            return Err(Code::CaptureWrongThread);
        }
        let is_joined = participant_has_all(participant, &capture.nodes);
        self.streams.retain(|_, participant| participant.capture != ended);
        match self.captures.remove(&ended) {
            Some(capture) if capture.has_failed => Err(Code::CaptureInvalidated),
            Some(_) if !is_joined => Err(Code::CaptureUnjoined),
            capture => Ok(capture.map(|capture| capture.nodes).unwrap_or_default()),
        }
    }

    /// A stream that is no more: what was recorded in it is of no use.
    pub(super) fn forget(&mut self, stream: Handle) {
        self.fail(stream);
        let is_origin = |capture: &Capture<T>| capture.origin == stream;
        if self.captures.values().any(is_origin) {
            let ended = self.streams.get(&stream).map(|own| own.capture);
            self.streams.retain(|_, participant| Some(participant.capture) != ended);
            self.captures.retain(|_, capture| !is_origin(capture));
        }
        self.streams.remove(&stream);
    }
}

/// True where a stream's next node would come after all nodes there are.
fn participant_has_all<T>(participant: &Participant, nodes: &[Node<T>]) -> bool {
    let mut is_before = vec![false; nodes.len()];
    for &node in &participant.after {
        is_before[node] = true;
    }
    // Nodes come after earlier ones alone.
    for (place, node) in nodes.iter().enumerate().rev() {
        if is_before[place] {
            node.after.iter().for_each(|&earlier| is_before[earlier] = true);
        }
    }
    is_before.into_iter().all(|is_before| is_before)
}

/// The recordings of this process.
pub(super) fn captures() -> MutexGuard<'static, Captures<Operation>> {
    static CAPTURES: LazyLock<Mutex<Captures<Operation>>> = LazyLock::new(Mutex::default);
    CAPTURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses a call that may wait for the device, while this thread records or somebody does who allows nobody to.
pub(super) fn refuse_here() -> Result<(), Code> {
    match captures().fail_by(thread::current().id()) {
        true => Err(Code::CaptureUnsupported),
        false => Ok(()),
    }
}

/// Refuses a call that waits for a stream, while that one is recording.
pub(super) fn refuse_in(stream: Handle) -> Result<(), Code> {
    match captures().fail(stream) {
        true => Err(Code::CaptureUnsupported),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams and a recording that was begun in the first of them.
    fn begun() -> (Captures<&'static str>, [Handle; 3]) {
        let streams = [(); 3].map(|()| Handle::new());
        let mut captures = Captures::default();
        captures.begin(streams[0], here(), Watched::OwnThread).unwrap();
        (captures, streams)
    }

    fn here() -> ThreadId {
        thread::current().id()
    }

    fn elsewhere() -> ThreadId {
        thread::spawn(here).join().unwrap()
    }

    fn node(work: &'static str, after: &[usize]) -> Node<&'static str> {
        Node { work, after: after.to_vec() }
    }

    #[test]
    fn branches_are_recorded_in_the_order_of_calls_with_what_they_wait_for() {
        let (mut captures, [first, second, third]) = begun();
        assert_eq!(captures.add(second, "before it joins"), Ok(Some("before it joins")));
        captures.add(first, "a").unwrap();
        let forked = captures.mark(first).unwrap();
        captures.wait(second, &forked).unwrap();
        captures.wait(third, &forked).unwrap();
        captures.add(third, "b").unwrap();
        captures.add(second, "c").unwrap();
        captures.add(first, "d").unwrap();
        captures.add(third, "e").unwrap();
        for branch in [second, third] {
            let ended = captures.mark(branch).unwrap();
            captures.wait(first, &ended).unwrap();
            captures.wait(first, &ended).unwrap();
        }
        captures.add(first, "f").unwrap();
        let nodes = captures.end(first, here()).unwrap();
        let expected = [
            node("a", &[]),
            node("b", &[0]),
            node("c", &[0]),
            node("d", &[0]),
            node("e", &[1]),
            node("f", &[3, 2, 4]),
        ];
        assert_eq!(nodes, expected);
        assert!([first, second, third].iter().all(|&stream| !captures.is_recording(stream)));
        assert_eq!(captures.wait(first, &forked), Err(Code::CapturedEvent));
    }

    #[test]
    fn a_branch_that_nobody_waits_for_is_refused() {
        for is_joined in [true, false] {
            let (mut captures, [first, second, _]) = begun();
            let begin = captures.mark(first).unwrap();
            captures.wait(second, &begin).unwrap();
            captures.add(second, "branch").unwrap();
            if is_joined {
                let end = captures.mark(second).unwrap();
                captures.wait(first, &end).unwrap();
            }
            captures.add(first, "main").unwrap();
            let ended = captures.end(first, here());
            assert_eq!(
                ended.map(|nodes| nodes.len()),
                if is_joined { Ok(2) } else { Err(Code::CaptureUnjoined) }
            );
            assert!(!captures.is_recording(second));
        }
    }

    #[test]
    fn what_waits_for_the_device_makes_the_recording_fail() {
        let (mut captures, [first, second, _]) = begun();
        assert!(!captures.fail(second) && !captures.fail_by(elsewhere()));
        captures.add(first, "a").unwrap();
        assert!(captures.fail(first));
        assert_eq!(captures.add(first, "b"), Err(Code::CaptureInvalidated));
        assert_eq!(captures.end(first, here()), Err(Code::CaptureInvalidated));
        assert_eq!(captures.add(first, "c"), Ok(Some("c")), "it is over");

        captures.begin(first, here(), Watched::OwnThread).unwrap();
        assert!(captures.fail_by(here()));
        assert_eq!(captures.end(first, here()), Err(Code::CaptureInvalidated));
        captures.begin(first, here(), Watched::Everybody).unwrap();
        assert!(captures.fail_by(elsewhere()));
        assert_eq!(captures.end(first, here()), Err(Code::CaptureInvalidated));
        captures.begin(first, here(), Watched::Nobody).unwrap();
        assert!(!captures.fail_by(here()));
        assert_eq!(captures.end(first, elsewhere()), Ok(Vec::new()));
    }

    #[test]
    fn recordings_are_ended_where_they_were_begun_and_do_not_merge() {
        let (mut captures, [first, second, third]) = begun();
        assert_eq!(captures.begin(first, here(), Watched::Nobody), Err(Code::IllegalState));
        assert_eq!(captures.end(third, here()), Err(Code::IllegalState));
        let begin = captures.mark(first).unwrap();
        captures.wait(second, &begin).unwrap();
        assert_eq!(captures.end(second, here()), Err(Code::CaptureUnmatched));
        assert_eq!(captures.end(first, elsewhere()), Err(Code::CaptureWrongThread));
        captures.begin(third, here(), Watched::OwnThread).unwrap();
        assert_eq!(captures.wait(third, &begin), Err(Code::CaptureMerge));
        assert_eq!(captures.end(third, here()), Err(Code::CaptureInvalidated));
        assert_eq!(captures.end(first, here()), Ok(Vec::new()));
    }

    #[test]
    fn a_stream_that_is_destroyed_leaves_no_recording() {
        let (mut captures, [first, second, _]) = begun();
        let begin = captures.mark(first).unwrap();
        captures.wait(second, &begin).unwrap();
        captures.forget(second);
        assert_eq!(captures.end(first, here()), Err(Code::CaptureInvalidated));
        captures.begin(first, here(), Watched::OwnThread).unwrap();
        let begin = captures.mark(first).unwrap();
        captures.wait(second, &begin).unwrap();
        captures.forget(first);
        assert!(!captures.is_recording(second) && !captures.fail_by(here()));
    }
}
