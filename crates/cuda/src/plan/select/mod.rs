//! Kernel selection: one file per family of operators, tried in order.

mod conv;
mod depthwise;
mod direct_conv;
pub(crate) mod elementwise;
mod epilogue;
mod filters;
mod indexing;
mod layout;
mod libraries;
pub(crate) mod linear;
mod normalisation;
pub(crate) mod pooled_conv;
mod pooling;
mod products;
mod recurrent;
mod reductions;
mod resize;
mod rows;
#[cfg(test)]
pub(crate) mod testing;

use super::site::{Selected, Selection, Site};

/// The selectors.
const SELECTORS: &[fn(&Site<'_>) -> Selection] = &[
    conv::select,
    depthwise::select,
    direct_conv::select,
    linear::select,
    products::select,
    elementwise::select,
    layout::select,
    pooling::select,
    recurrent::select,
    reductions::select,
    resize::select,
    rows::select,
    normalisation::select,
    indexing::select,
];

/// The kernel's candidates for a node; `None` where no kernel computes it, so that the host does.
pub(crate) fn select(site: &Site<'_>) -> Selection {
    for selector in SELECTORS {
        let selected: Option<Selected> = selector(site)?;
        if selected.is_some() {
            return Ok(selected);
        }
    }
    Ok(None)
}
