//! How a refusal crosses to JavaScript: as the JSON of its diagnostic, thrown as a string.

use serde_json::json;
use tracefx_core::{Code, Diagnostic};
use wasm_bindgen::JsValue;

/// A diagnostic on its way to JavaScript; `?` makes one of a [`Diagnostic`].
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal(Diagnostic);

impl Refusal {
    /// The JSON that crosses; fields without a value are left out.
    ///
    /// ```
    /// use tracefx_core::{Code, Diagnostic};
    /// use tracefx_wasm::Refusal;
    /// let it = Refusal::from(Diagnostic::new(Code::Disposed, "the tensor was disposed").help("clone it first"));
    /// let json: serde_json::Value = serde_json::from_str(&it.to_json()).unwrap();
    /// assert_eq!((&json["code"], &json["class"]), (&"FX0701".into(), &"UsageError".into()));
    /// assert_eq!(json["help"], "clone it first");
    /// assert!(json.get("node").is_none());
    /// ```
    pub fn to_json(&self) -> String {
        let code = self.0.code();
        let mut fields = json!({
            "code": code.id(),
            "name": code.name(),
            "class": code.class(),
            "message": self.0.message(),
            "notes": self.0.notes(),
        });
        let optional = [("node", self.0.node_name()), ("op", self.0.op_name()), ("help", self.0.help_text())];
        for (name, value) in optional {
            if let Some(value) = value {
                fields[name] = value.into();
            }
        }
        fields.to_string()
    }
}

/// The diagnostic of JSON that [`Refusal::to_json`] could have made, as JavaScript throws it into the engine.
pub(crate) fn of_json(json: &str) -> Diagnostic {
    let fields: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let text = |name: &str| fields[name].as_str();
    let code = Code::ALL.iter().copied().find(|it| Some(it.name()) == text("name")).unwrap_or(Code::KernelFailed);
    let mut res = Diagnostic::new(code, text("message").unwrap_or(json));
    for note in fields["notes"].as_array().into_iter().flatten().filter_map(|it| it.as_str()) {
        res = res.note(note);
    }
    if let Some(op) = text("op") {
        res = res.op(op);
    }
    if let Some(help) = text("help") {
        res = res.help(help);
    }
    res
}

impl From<Refusal> for Diagnostic {
    fn from(it: Refusal) -> Self {
        it.0
    }
}

impl From<Diagnostic> for Refusal {
    fn from(it: Diagnostic) -> Self {
        Refusal(it)
    }
}

impl From<Refusal> for JsValue {
    fn from(it: Refusal) -> Self {
        JsValue::from_str(&it.to_json())
    }
}
