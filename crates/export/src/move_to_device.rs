//! Programs for another device: `torch.export.passes.move_to_device_pass`.

use crate::ExportedProgram;
use indexmap::IndexMap;
use tracefx_core::{Device, Result};
use tracefx_ir::{Arg, Attribute, Graph, GraphModule, NodeId, Opcode, Str, Val};

/// Where a program is moved to.
#[derive(Clone, Debug, PartialEq)]
pub enum Location {
    /// Everything goes to one device.
    Device(Device),
    /// What is on a device goes to the one that stands there for it; what is on others stays.
    Map(IndexMap<Device, Device>),
}

impl Location {
    fn of(&self, device: &Device) -> Device {
        match self {
            Location::Device(it) => it.clone(),
            Location::Map(map) => map.get(device).unwrap_or(device).clone(),
        }
    }
}

impl ExportedProgram {
    /// The same program for another device: what its nodes say of devices, and what is known of their values. The tensors are
    /// in this machine's memory, where kernels read them, whatever the device is called.
    ///
    /// ```
    /// use tracefx_core::Device;
    /// use tracefx_export::{ExportedProgram, GraphSignature, Location};
    /// use tracefx_ir::{Arg, Graph, GraphModule};
    ///
    /// let mut graph = Graph::new();
    /// let cuda = Arg::Device("cuda:0".parse().unwrap());
    /// graph.call_function("torch.ops.aten.zeros.default", vec![Arg::List(vec![])], vec![("device".into(), cuda)]);
    /// graph.output(Arg::Tuple(vec![]));
    /// let program = ExportedProgram::new(GraphModule::new(graph), GraphSignature::default());
    /// let moved = program.moved_to_device(&Location::Device(Device::cpu()))?;
    /// assert!(moved.module.graph.to_string().contains("device: cpu"));
    /// # Ok::<(), tracefx_core::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// As the edits of a graph.
    pub fn moved_to_device(&self, location: &Location) -> Result<Self> {
        let mut res = self.clone();
        let mut rest = vec![&mut res.module];
        while let Some(module) = rest.pop() {
            let GraphModule { graph, attributes, .. } = module;
            move_graph(graph, location)?;
            for attribute in attributes.values_mut() {
                match attribute {
                    Attribute::Module(inner) => rest.push(inner),
                    Attribute::Fake { tensor, .. } => tensor.meta.device = location.of(&tensor.meta.device),
                    Attribute::Tensor { .. } => {}
                }
            }
        }
        Ok(res)
    }
}

fn move_graph(graph: &mut Graph, location: &Location) -> Result<()> {
    let nodes: Vec<NodeId> = graph.nodes().collect();
    for id in nodes {
        let node = graph.node(id);
        let moved = |arg: &Arg| match (arg, location) {
            (Arg::Device(it), _) => Some(Arg::Device(location.of(it))),
            (Arg::None, Location::Device(it)) => Some(Arg::Device(it.clone())),
            (_, _) => None,
        };
        let named: Option<(Str, Arg)> = node
            .kwargs()
            .iter()
            .filter(|(key, _)| &**key == "device")
            .find_map(|(key, it)| Some((key.clone(), moved(it)?)));
        let is_conversion = node.op() == Opcode::CallFunction && &**node.target() == "torch.ops.aten.to.device";
        let converted = node.args().get(1).filter(|_| is_conversion).and_then(moved);
        let mut val = node.meta.val.clone();
        if let Some((key, device)) = named {
            graph.update_kwarg(id, &key, device)?;
        }
        if let Some(device) = converted {
            graph.update_arg(id, 1, device)?;
        }
        if let Some(val) = &mut val {
            move_val(val, location);
        }
        graph.meta_mut(id).val = val;
    }
    Ok(())
}

fn move_val(val: &mut Val, location: &Location) {
    match val {
        Val::Tensor(meta) => meta.device = location.of(&meta.device),
        Val::Seq { items, .. } => items.iter_mut().for_each(|it| move_val(it, location)),
        Val::None | Val::Int(_) | Val::Float(_) | Val::Bool(_) => {}
    }
}
