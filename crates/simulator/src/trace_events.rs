//! A run as a timeline: Trace Event JSON, which Perfetto and Chrome show, written as the run goes on.
//!
//! A device is two processes: its executions, one track for each set of units, and its partitions, whose tracks show who
//! owns those units. Counters stand with the executions.

use std::collections::BTreeMap;
use std::io::{self, Write};

use weft_scheduler::{ModelId, PartitionId, Refusal, Request, Span, Time, UnitMask};

use crate::observer::{Executed, Observer};

/// Counters are written no closer together than this, since they change with every request.
const COUNTERS_EVERY: Span = Span::from_nanos(1_000_000);

/// Writes what it is told about one device. What goes wrong with writing is kept and told at the end.
pub struct TraceEvents<W: Write> {
    output: W,
    failure: Option<io::Error>,
    is_first: bool,
    executions: Process,
    partitions: Process,
    /// The models' names as JSON, in the order of their ids.
    names: Vec<String>,
    /// Partitions that have their units, and since when.
    active: BTreeMap<PartitionId, (UnitMask, Time)>,
    counts: [u64; 3],
    /// What was written last, and when.
    written: [Option<u64>; 3],
    counted_at: Option<Time>,
}

/// The counters, in the order in which they are kept.
const COUNTERS: [&str; 3] = ["open requests", "refused", "shed"];
const OPEN: usize = 0;
const REFUSED: usize = 1;
const SHED: usize = 2;

#[derive(Clone, Copy)]
enum Group {
    Executions,
    Partitions,
}

/// A group's tracks, one for each set of units.
struct Process {
    number: u32,
    tracks: BTreeMap<UnitMask, usize>,
}

impl<W: Write> TraceEvents<W> {
    /// Begins the trace of a device by its number, with the names of its models in the order of their ids.
    pub fn new<'a>(output: W, device: u32, names: impl IntoIterator<Item = &'a str>) -> Self {
        let process = |number| Process { number, tracks: BTreeMap::new() };
        let mut trace = Self {
            output,
            failure: None,
            is_first: true,
            executions: process(2 * device),
            partitions: process(2 * device + 1),
            names: names.into_iter().map(quoted).collect(),
            active: BTreeMap::new(),
            counts: [0; 3],
            written: [None; 3],
            counted_at: None,
        };
        trace.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
        for (process, what) in [(2 * device, "executions"), (2 * device + 1, "partitions")] {
            let name = quoted(&format!("device {device}: {what}"));
            trace.event(&format!(
                r#""ph":"M","pid":{process},"name":"process_name","args":{{"name":{name}}}"#
            ));
        }
        trace
    }

    /// Ends the trace at an instant; or says what went wrong on the way.
    pub fn finish(mut self, now: Time) -> io::Result<W> {
        for (partition, (units, since)) in std::mem::take(&mut self.active) {
            self.active_span(partition, units, since, now);
        }
        self.write("\n]}\n");
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.output.flush().map(|()| self.output),
        }
    }

    fn write(&mut self, text: &str) {
        if self.failure.is_none() {
            self.failure = self.output.write_all(text.as_bytes()).err();
        }
    }

    /// Writes one event, whose fields are given.
    fn event(&mut self, fields: &str) {
        let separator = if std::mem::replace(&mut self.is_first, false) { "\n{" } else { ",\n{" };
        self.write(separator);
        self.write(fields);
        self.write("}");
    }

    /// The process and the track of a set of units in a group; a new one is announced.
    fn track(&mut self, group: Group, units: UnitMask) -> (u32, usize) {
        let process = match group {
            Group::Executions => &mut self.executions,
            Group::Partitions => &mut self.partitions,
        };
        let number = process.number;
        if let Some(&track) = process.tracks.get(&units) {
            return (number, track);
        }
        let track = process.tracks.len() + 1;
        process.tracks.insert(units, track);
        let (name, first) = (quoted(&described(units)), units.iter().next().unwrap_or(0));
        for (field, value) in [("name", name), ("sort_index", first.to_string())] {
            self.event(&format!(
                r#""ph":"M","pid":{number},"tid":{track},"name":"thread_{field}","args":{{"{field}":{value}}}"#
            ));
        }
        (number, track)
    }

    fn active_span(&mut self, partition: PartitionId, units: UnitMask, since: Time, now: Time) {
        let (process, track) = self.track(Group::Partitions, units);
        let (from, length) = (us(since), now.since(since).us());
        self.event(&format!(
            r#""ph":"X","pid":{process},"tid":{track},"ts":{from:.3},"dur":{length:.3},"name":"partition {}","cat":"partition""#,
            partition.0
        ));
    }

    /// Writes the counters that have changed, unless any were written a moment ago.
    fn count(&mut self, now: Time) {
        if self.counted_at.is_some_and(|before| now.since(before) < COUNTERS_EVERY) {
            return;
        }
        self.counted_at = Some(now);
        let (process, at) = (self.executions.number, us(now));
        for (place, name) in COUNTERS.into_iter().enumerate() {
            let value = self.counts[place];
            if self.written[place].replace(value) != Some(value) {
                self.event(&format!(
                    r#""ph":"C","pid":{process},"ts":{at:.3},"name":"{name}","args":{{"requests":{value}}}"#
                ));
            }
        }
    }
}

impl<W: Write> Observer for TraceEvents<W> {
    fn arrived(&mut self, request: &Request) {
        self.counts[OPEN] += 1;
        self.count(request.arrived);
    }

    fn refused(&mut self, _: &Request, _: Refusal, now: Time) {
        self.counts[OPEN] -= 1;
        self.counts[REFUSED] += 1;
        self.count(now);
    }

    fn shed(&mut self, _: &Request, now: Time) {
        self.counts[OPEN] -= 1;
        self.counts[SHED] += 1;
        self.count(now);
    }

    fn evicted(&mut self, model: ModelId, now: Time, until: Time) {
        let process = self.executions.number;
        for (phase, at) in [("b", now), ("e", until)] {
            let name = &self.names[model.index()];
            self.event(&format!(
                r#""ph":"{phase}","pid":{process},"ts":{:.3},"id":{},"name":{name},"cat":"evicted""#,
                us(at),
                model.0
            ));
        }
    }

    fn executed(&mut self, executed: Executed<'_>) {
        let (process, track) = self.track(Group::Executions, executed.units);
        let (from, length) = (us(executed.start), executed.end.since(executed.start).us());
        let name = match (&self.names[executed.model.index()], executed.tenants) {
            (name, 0 | 1) => name.clone(),
            // Before the closing quotation mark.
            (name, tenants) => format!("{} ({tenants} tenants)\"", &name[..name.len() - 1]),
        };
        let requests: Vec<String> = executed.requests.iter().map(|id| id.0.to_string()).collect();
        self.event(&format!(
            r#""ph":"X","pid":{process},"tid":{track},"ts":{from:.3},"dur":{length:.3},"name":{name},"cat":"execution","args":{{"batch":{},"partition":{},"requests":[{}]}}"#,
            requests.len(),
            executed.partition.0,
            requests.join(",")
        ));
        self.counts[OPEN] -= executed.requests.len() as u64;
        self.count(executed.end);
    }

    fn preparing(&mut self, partition: PartitionId, units: UnitMask, now: Time, until: Time) {
        // Several may be prepared for the same units at once: such spans have no track of their own.
        let (process, track) = self.track(Group::Partitions, units);
        for (phase, at) in [("b", now), ("e", until)] {
            self.event(&format!(
                r#""ph":"{phase}","pid":{process},"tid":{track},"ts":{:.3},"id":{},"name":"preparing","cat":"preparation""#,
                us(at),
                partition.0
            ));
        }
    }

    fn activated(&mut self, partition: PartitionId, units: UnitMask, now: Time) {
        self.active.insert(partition, (units, now));
    }

    fn deactivated(&mut self, partition: PartitionId, units: UnitMask, now: Time) {
        if let Some((_, since)) = self.active.remove(&partition) {
            self.active_span(partition, units, since, now);
        }
    }
}

fn us(at: Time) -> f64 {
    at.since(Time::START).us()
}

/// Units in words, runs of them as ranges.
fn described(units: UnitMask) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for unit in units.iter() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == unit => *last = unit,
            _ => ranges.push((unit, unit)),
        }
    }
    let words = ranges.iter().map(|&(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    format!("units {}", words.collect::<Vec<_>>().join(", "))
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut json = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            control if control < ' ' => json.push_str(&format!("\\u{:04x}", control as u32)),
            other => json.push(other),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use weft_scheduler::RequestId;

    use super::*;

    fn at(us: f64) -> Time {
        Time::START + Span::from_us(us)
    }

    fn trace(tell: impl FnOnce(&mut TraceEvents<Vec<u8>>)) -> String {
        let mut trace = TraceEvents::new(Vec::new(), 3, ["a \"quoted\"\tname", "b"]);
        tell(&mut trace);
        String::from_utf8(trace.finish(at(9000.0)).unwrap()).unwrap()
    }

    fn executed(partition: u32, units: UnitMask, requests: &[RequestId]) -> Executed<'_> {
        let partition = PartitionId(partition);
        let (model, tenants) = (ModelId(0), requests.len() as u32);
        Executed { partition, units, model, tenants, requests, start: at(5.0), end: at(7.5) }
    }

    #[test]
    fn executions_stand_on_the_track_of_their_units() {
        let units: UnitMask = [0, 1, 2, 7].into_iter().collect();
        let requests = [RequestId(4), RequestId(6)];
        let text = trace(|trace| {
            for id in [4, 6, 8] {
                let (model, deadline) = (ModelId(0), Time::NEVER);
                trace.arrived(&Request { id: RequestId(id), model, arrived: at(1.0), deadline });
            }
            trace.executed(executed(5, units, &requests));
            trace.executed(executed(6, units, &requests[..1]));
        });
        let line = r#"{"ph":"X","pid":6,"tid":1,"ts":5.000,"dur":2.500,"name":"a \"quoted\"\u0009name (2 tenants)","cat":"execution","args":{"batch":2,"partition":5,"requests":[4,6]}}"#;
        assert!(text.contains(line), "{text}");
        assert_eq!(text.matches(r#""name":"units 0-2, 7""#).count(), 1, "{text}");
        assert_eq!(text.matches(r#""tid":1"#).count(), 4);
    }

    #[test]
    fn partitions_are_shown_from_activation_to_the_end() {
        let text = trace(|trace| {
            trace.preparing(PartitionId(1), UnitMask::range(0, 2), at(0.0), at(75.0));
            trace.activated(PartitionId(1), UnitMask::range(0, 2), at(80.0));
            trace.deactivated(PartitionId(1), UnitMask::range(0, 2), at(100.0));
            trace.activated(PartitionId(2), UnitMask::range(2, 2), at(90.0));
        });
        assert!(text.contains(r#""ts":80.000,"dur":20.000,"name":"partition 1""#), "{text}");
        assert!(text.contains(r#""ts":90.000,"dur":8910.000,"name":"partition 2""#), "{text}");
        assert_eq!(text.matches(r#""name":"preparing""#).count(), 2);
    }

    #[test]
    fn counters_are_written_now_and_then() {
        let request = |us| Request {
            id: RequestId(0),
            model: ModelId(0),
            arrived: at(us),
            deadline: Time::NEVER,
        };
        let text = trace(|trace| {
            for index in 0..1000 {
                trace.arrived(&request(f64::from(index) * 5.0));
            }
        });
        assert_eq!(text.matches(r#""name":"open requests""#).count(), 5);
        assert!(text.contains(r#""ts":4000.000,"name":"open requests","args":{"requests":801}"#));
        assert_eq!(text.matches(r#""name":"refused""#).count(), 1, "it never changed");
    }

    /// Takes so many bytes and no more.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told_at_the_end() {
        let mut trace = TraceEvents::new(Full(400), 0, ["a"]);
        for partition in 0..10 {
            trace.executed(executed(partition, UnitMask::range(0, 1), &[]));
        }
        let failure = trace.finish(at(1.0)).map(|_| ()).unwrap_err();
        assert_eq!(failure.kind(), io::ErrorKind::StorageFull);
    }
}
