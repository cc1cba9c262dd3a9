//! The file that says which models a mix has.

use std::path::Path;

use anyhow::{Context, Result};
use weft_scheduler::document::{self, Item, Problems};

use crate::files;
use crate::regulation::MixedModel;

/// The most models of one mix.
const MAX_MODELS: usize = 32;

/// The largest batch.
const MAX_BATCH: u32 = 1024;

/// The models of a mix.
pub(super) fn read(path: &Path) -> Result<Vec<MixedModel>> {
    let text = files::read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    parse(&text, folder).with_context(|| format!("{} is no mix", path.display()))
}

/// Files are looked for from a folder.
fn parse(text: &str, folder: &Path) -> Result<Vec<MixedModel>, Problems> {
    document::read(text, |mut root, problems| {
        let listed = root.required("models", problems).and_then(|item| item.list(problems));
        root.close(problems);
        let mut models = Vec::new();
        for item in listed.iter().flatten() {
            models.extend(entry(item, folder, problems).into_iter().flatten());
        }
        if models.len() > MAX_MODELS {
            problems.note(1, format!("a mix has at most {MAX_MODELS} models"));
        }
        Some(models)
    })
}

/// One table of the list: as many models as it says.
fn entry(item: &Item<'_>, folder: &Path, problems: &mut Problems) -> Option<Vec<MixedModel>> {
    let mut section = item.section(problems)?;
    let model = section.required("model", problems).and_then(|item| item.text(problems));
    let mut number = |key: &'static str, most: u32| {
        let item = section.optional(key)?;
        let count = item.count(problems)?;
        if count > most {
            problems.note(item.line(), format!("{key} must be at most {most}"));
        }
        Some(count)
    };
    let batch = number("batch", MAX_BATCH).unwrap_or(1) as usize;
    let count = number("count", MAX_MODELS as u32).unwrap_or(1).min(MAX_MODELS as u32);
    section.close(problems);
    let model = model?;
    let name = match model.starts_with("zoo:") {
        true => model.to_string(),
        false => folder.join(model).display().to_string(),
    };
    Some(vec![MixedModel { name, batch }; count as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_as_many_as_their_count_and_files_lie_beside_the_mix() {
        let text = "[[models]]\nmodel = \"zoo:resnet50\"\nbatch = 8\ncount = 2\n[[models]]\nmodel = \"a.onnx\"\n";
        let models = parse(text, Path::new("mixes")).unwrap();
        let found: Vec<(&str, usize)> =
            models.iter().map(|model| (model.name.as_str(), model.batch)).collect();
        assert_eq!(found, [("zoo:resnet50", 8), ("zoo:resnet50", 8), ("mixes/a.onnx", 1)]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let problem = |text: &str| parse(text, Path::new("")).unwrap_err().to_string();
        assert!(problem("models = []").contains("not an empty list"));
        assert!(problem("[[models]]\nmodel = \"zoo:a\"\nbatch = 0").contains("line 3"));
        assert!(problem("[[models]]\nmodel = \"zoo:a\"\nbatch = 9999").contains("at most 1024"));
        assert!(problem("[[models]]\nmodel = \"zoo:a\"\nbtach = 1").contains("btach"));
        let second = "[[models]]\nmodel = \"zoo:a\"\n[[models]]\nbatch = 1";
        assert!(problem(second).contains("line 3: 'model' is missing"));
        assert!(
            problem(&"[[models]]\nmodel = \"zoo:a\"\ncount = 20\n".repeat(2))
                .contains("at most 32")
        );
    }
}
