//! `docs/errors.md`: every code, what it says, what leads to it, and what to do.

use std::fmt::Write;
use tracefx_core::Code;

const HEAD: &str = "\
# Errors

Whatever is refused is a `Diagnostic` in Rust, an `FxError` in TypeScript and in Python. Each has a stable code, what
happened, the node and the operator where it happened, and what to do. Branch on the code or on the class, never on the text.

```ts
import { FxError, init, tensor, torch } from \"tracefx\";

await init();
try {
  torch.mm(tensor([[1, 2]]), tensor([[3, 4]]));
} catch (error) {
  if (!(error instanceof FxError)) throw error;
  console.log(error.code, error.kind); // FX0301 ShapeMismatch
}
```

The class is TypeScript's. A `help:` line of an error knows more than this page: it is about the very call.
";

pub(super) fn body() -> String {
    let mut out = String::from(HEAD);
    for class in classes() {
        write!(out, "\n## {class}\n").expect("writing to a string succeeds");
        for code in Code::ALL.iter().filter(|it| it.class() == class) {
            let (id, name, about, cause, cure) = (code.id(), code.name(), code.about(), code.cause(), code.cure());
            write!(out, "\n### {id} {name}\n\n{about}\n\n- **Cause:** {cause}\n- **Cure:** {cure}\n")
                .expect("writing to a string succeeds");
        }
    }
    out
}

/// The classes, in the order of the table.
fn classes() -> Vec<&'static str> {
    let mut classes: Vec<&str> = Vec::new();
    for code in Code::ALL {
        if !classes.contains(&code.class()) {
            classes.push(code.class());
        }
    }
    classes
}
