//! The terminal while frames follow one another.

use std::time::{Duration, Instant};

use anyhow::Result;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use weft_server::StatusDocument;

use super::frame;
use crate::administration::Administration;

/// Shows frames until the user has seen enough, and leaves the terminal as it was.
pub(super) fn run(
    source: &Administration,
    first: StatusDocument,
    interval: Duration,
) -> Result<()> {
    let mut terminal = ratatui::try_init()?;
    let outcome = show(&mut terminal, source, first, interval);
    ratatui::restore();
    outcome
}

fn show(
    terminal: &mut DefaultTerminal,
    source: &Administration,
    first: StatusDocument,
    interval: Duration,
) -> Result<()> {
    let (mut status, mut trouble) = (first, None);
    loop {
        terminal.draw(|on| {
            let area = on.area();
            frame::draw(&status, source.address(), trouble.as_deref(), area, on.buffer_mut());
        })?;
        let next = Instant::now() + interval;
        if !is_watched_until(next)? {
            return Ok(());
        }
        if Instant::now() < next {
            continue;
        }
        match source.status() {
            Ok(now) => (status, trouble) = (now, None),
            // What was seen last stays, and with it why there is nothing newer.
            Err(error) => trouble = Some(error.to_string()),
        }
    }
}

/// Waits until an instant, or less where the terminal has changed; false where the user has seen enough.
fn is_watched_until(end: Instant) -> Result<bool> {
    while event::poll(end.saturating_duration_since(Instant::now()))? {
        match event::read()? {
            Event::Key(key) if is_end(&key) => return Ok(false),
            Event::Resize(..) => return Ok(true),
            _ => {}
        }
    }
    Ok(true)
}

fn is_end(key: &KeyEvent) -> bool {
    let is_interrupt =
        key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
    let is_quit = matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::Esc);
    key.kind != KeyEventKind::Release && (is_quit || is_interrupt)
}
