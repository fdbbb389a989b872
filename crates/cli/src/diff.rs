//! `tracefx diff`: where two programs differ.

use crate::{Refusal, Result, Told};
use console::Style;
use std::path::Path;
use tracefx_engine::command::CommandLine;
use tracefx_engine::{Library, Limits, ProgramDiff, RunLimits, diff_programs, printable};

/// Opens two programs, and tells where they differ; the exit code is 1 where they do.
pub(crate) fn differences(line: &CommandLine, limits: &Limits) -> Result<Told> {
    let given = line.limits().map_err(Refusal::CommandLine)?;
    if given.iter().any(|(name, _)| RunLimits::NAMES.contains(&name.as_str())) {
        return Err(Refusal::CommandLine("diff runs nothing, and has no limits of runs".to_string()));
    }
    let library = Library::extended();
    let open = |at: usize| library.open_file(Path::new(&line.files[at]), limits);
    let diff = diff_programs(&open(0)?, &open(1)?)?;
    let text = if line.has("json") {
        serde_json::to_string(&diff).expect("texts are JSON")
    } else {
        let files = [0, 1].map(|at| Path::new(&line.files[at]).display().to_string()).map(|it| printable(&it));
        text(&diff, &files)
    };
    Ok(Told { text, code: u8::from(!diff.is_same) })
}

/// As `diff -u` writes it, with colours where a person reads it.
fn text(diff: &ProgramDiff, files: &[String; 2]) -> String {
    if diff.is_same {
        return "The programs are the same.".to_string();
    }
    let [bold, head, removed, added] =
        [Style::new().bold(), Style::new().cyan(), Style::new().red(), Style::new().green()];
    let colored = |style: &Style, text: String| style.apply_to(text).to_string();
    let mut lines = vec![colored(&bold, format!("--- {}", files[0])), colored(&bold, format!("+++ {}", files[1]))];
    let parts = [
        ("graph", &diff.graph),
        ("signature", &diff.signature),
        ("constraints", &diff.constraints),
        ("tensors", &diff.tensors),
    ];
    for (name, entries) in parts.into_iter().filter(|(_, entries)| !entries.is_empty()) {
        let count =
            if entries.len() == 1 { "1 difference".to_string() } else { format!("{} differences", entries.len()) };
        lines.push(colored(&head, format!("@@ {name}: {count} @@")));
        for it in entries {
            lines.extend(it.before.iter().map(|it| colored(&removed, format!("- {}", printable(it)))));
            lines.extend(it.after.iter().map(|it| colored(&added, format!("+ {}", printable(it)))));
        }
    }
    lines.join("\n")
}
