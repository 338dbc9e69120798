//! A widget for apps in a terminal.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Style};
use ratatui_core::text::{Line as Drawn, Text};
use ratatui_core::widgets::Widget;
use ratatui_widgets::block::Block;

use super::{Live, Warning};

/// Draws [`Live::lines`] in a box. Lines that do not fit are cut, and the colour of a line is its [`Warning`].
///
/// ```
/// use ratatui_core::buffer::Buffer;
/// use ratatui_core::layout::Rect;
/// use ratatui_core::widgets::Widget;
///
/// let live = unjank::live::watch().read();
/// let area = Rect::new(0, 0, 60, 8); // of the frame that the app draws
/// let mut buffer = Buffer::empty(area);
/// unjank::live::Panel::new(&live).render(area, &mut buffer);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Panel<'l>(&'l Live);

impl<'l> Panel<'l> {
    /// Creates the widget for values that were read.
    ///
    /// ```
    /// let live = unjank::live::watch().read();
    /// let panel = unjank::live::Panel::new(&live);
    /// ```
    #[must_use]
    pub fn new(live: &'l Live) -> Self {
        Self(live)
    }
}

impl Widget for Panel<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let block = Block::bordered().title("unjank");
        let inside = block.inner(area);
        block.render(area, buffer);
        let lines = self.0.lines().into_iter();
        let lines = lines.map(|line| Drawn::styled(line.text, colour(line.warning)));
        Text::from_iter(lines).render(inside, buffer);
    }
}

fn colour(warning: Warning) -> Style {
    match warning {
        Warning::None => Style::new(),
        Warning::Low => Style::new().fg(Color::Yellow),
        Warning::Medium => Style::new().fg(Color::LightRed),
        Warning::High => Style::new().fg(Color::Red),
    }
}
