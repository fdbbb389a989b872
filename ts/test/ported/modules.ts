/**
 * Programs that run, change and copy graph modules.
 *
 * @module
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import {
  deepCopy,
  Graph,
  GraphModule,
  Interpreter,
  loadGraphModule,
  Module,
  type Node,
  nn,
  operator,
  Parameter,
  saveGraphModule,
  ShapeProp,
  symbolicTrace,
  type Tensor,
  type TensorMetadata,
  torch,
  Transformer,
  tuple,
} from "../../src/index.ts";
import { filled, full, names, numbers, type Programs } from "./said.ts";
import { AddRelu, Affine, leaves } from "./tracing.ts";

const { add } = operator;

/** What `ShapeProp` noted about a node. */
function noted(node: Node | undefined): TensorMetadata {
  return node?.meta.get("tensor_meta") as TensorMetadata;
}

export const modules: Programs = {
  test_interpreter(say) {
    const gm = symbolicTrace(new Affine());
    say(new Interpreter(gm).run(numbers(3, 4)));
    const seen: string[] = [];
    class Counting extends Interpreter {
      override runNode(node: Node): unknown {
        seen.push(node.name);
        return super.runNode(node);
      }
    }
    const counting = new Counting(gm);
    counting.run(numbers(3, 4));
    say(seen);
    say(names(counting.env.keys()));
    const keeping = new Interpreter(gm, { garbageCollectValues: false });
    keeping.run(numbers(3, 4));
    say(names(keeping.env.keys()));
  },
  test_interpreter_onthefly_swap(say) {
    const gm = symbolicTrace((x: Tensor) => torch.abs(x).neg());
    class Swap extends Interpreter {
      override callFunction(...call: Parameters<Interpreter["callFunction"]>): unknown {
        return call[0] === "torch.abs" ? torch.neg(call[1][0] as Tensor) : super.callFunction(...call);
      }
      override callMethod(...call: Parameters<Interpreter["callMethod"]>): unknown {
        return call[0] === "neg" ? (call[1][0] as Tensor).abs() : super.callMethod(...call);
      }
    }
    say(new Swap(gm).run(numbers(4)));
    class SwapTransformer extends Transformer {
      override callFunction(...call: Parameters<Interpreter["callFunction"]>): unknown {
        return call[0] === "torch.abs" ? torch.neg(call[1][0] as Tensor) : super.callFunction(...call);
      }
      override callMethod(...call: Parameters<Interpreter["callMethod"]>): unknown {
        return call[0] === "neg" ? (call[1][0] as Tensor).abs() : super.callMethod(...call);
      }
    }
    const changed = new SwapTransformer(gm).transform();
    say(changed.graph);
    say(changed.forward(numbers(4)));
  },
  test_interpreter_partial_eval(say) {
    const gm = symbolicTrace(new Affine());
    const linear = gm.graph.nodes.find((it) => it.target === "linear") as Node;
    say(new Interpreter(gm).runWith([numbers(3, 4)], { initialEnv: new Map([[linear, numbers(3, 4)]]) }));
  },
  test_transformer_noop(say) {
    const same = new Transformer(symbolicTrace(new Affine())).transform();
    say(same.graph);
    say(same.forward(numbers(3, 4)));
    class Two extends Module {
      param = new Parameter(torch.rand([3, 4]));
      linear = new nn.Linear(4, 5);
      override forward(x: Tensor): unknown {
        const y = add(x, this.param);
        return tuple(y, this.linear(y));
      }
    }
    const two = new Transformer(symbolicTrace(filled(new Two()))).transform();
    say(two.graph);
    say(two.forward(numbers(3, 4)));
  },
  test_example_shape_prop(say) {
    class M extends Module {
      attr = torch.randn([3, 4]);
      submod = new nn.Linear(4, 4);
      override forward(x: Tensor): Tensor {
        return torch.neg(this.submod(add(x.relu(), this.attr)));
      }
    }
    const gm = symbolicTrace(new M());
    new ShapeProp(gm).propagate(torch.rand([3, 4]));
    for (const node of gm.graph.nodes) {
      const { shape, stride, dtype, memoryFormat } = noted(node);
      say([node.name, [...shape], [...stride], dtype, memoryFormat]);
    }
  },
  test_shape_prop_layout(say) {
    const gm = symbolicTrace(new nn.Sequential(new nn.Conv2d(5, 5, 3)));
    const x = torch.randn([2, 5, 8, 8]);
    for (const it of [x, x.contiguous({ memoryFormat: torch.channelsLast })]) {
      new ShapeProp(gm).propagate(it);
      const { shape, stride, memoryFormat } = noted(gm.graph.first);
      say([[...shape], [...stride], memoryFormat]);
    }
  },
  test_shape_prop_aggregate(say) {
    class Two extends Module {
      override forward(x: Tensor): unknown {
        return tuple(3, torch.sum(x) as never);
      }
    }
    class M extends Module {
      rt = new Two();
      override forward(x: Tensor): unknown {
        return this.rt(x);
      }
    }
    const m = new M();
    const gm = new GraphModule(m, leaves((module) => module instanceof Two).trace(m));
    new ShapeProp(gm).propagate(torch.rand([3, 4]));
    const found = gm.graph.nodes.find((it) => it.op === "call_module") as Node;
    const [first, second] = found.meta.get("tensor_meta") as readonly [unknown, TensorMetadata];
    say(first);
    say([...second.shape]);
  },
  test_empty_graph_codegen(say) {
    say(new GraphModule({}, new Graph()).forward());
  },
  test_deepcopy_graphmodule_with_transform(say) {
    const traced = symbolicTrace(new AddRelu());
    const graph = new Graph();
    const out = graph.graphCopy(traced.graph) as Node;
    graph.output(graph.createNode("call_method", "neg", [out]));
    const transformed = new GraphModule(traced, graph);
    transformed.graph.lint();
    const copied = deepCopy(transformed);
    say(copied.graph);
    say(copied.forward(numbers(3)));
  },
  test_deepcopy_with_submods_params(say) {
    const gm = symbolicTrace(new Affine());
    const copied = deepCopy(gm);
    copied.graph.lint();
    say(copied.graph);
    say(copied.getParameter("param") === gm.getParameter("param"));
    say([...copied.namedParameters().keys()]);
    say(copied.forward(numbers(3, 4)));
  },
  test_module_deepcopy_edit_nodes(say) {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x));
    const copied = deepCopy(gm);
    for (const node of copied.graph.nodes) if (node.target === "torch.relu") node.target = torch.neg;
    copied.recompile();
    say(gm.forward(numbers(3)));
    say(copied.forward(numbers(3)));
    say(copied.graph);
  },
  test_submodule_manipulation_API(say) {
    class C extends Module {
      conv = new nn.Conv2d(16, 33, 3);
      param = new Parameter(torch.rand([2, 3]));
      override forward(x: Tensor): Tensor {
        return this.conv(torch.cat([this.param, x]));
      }
    }
    class B extends Module {
      linear = new nn.Linear(100, 200);
      declare buf: Tensor;
      net_c = new C();
      constructor() {
        super();
        this.registerBuffer("buf", torch.randn([2, 3]));
      }
      override forward(x: Tensor): Tensor {
        return this.linear(torch.cat([this.buf, this.net_c(x)]));
      }
    }
    class A extends Module {
      net_b = new B();
      param = new Parameter(torch.rand([2, 3]));
      override forward(x: Tensor): Tensor {
        return add(this.net_b(x), this.param);
      }
    }
    const gm = symbolicTrace(new A());
    say(gm.addSubmodule("net_b.net_c.dropout", new nn.Dropout(0.2)));
    const conv = gm.graph.nodes.findLast((it) => it.target === "net_b.net_c.conv") as Node;
    const dropout = gm.graph.insertingBefore(conv, () => gm.graph.callModule("net_b.net_c.dropout", conv.args));
    conv.replaceAllUsesWith(dropout);
    gm.graph.eraseNode(conv);
    const sayModules = (): void => say([...gm.namedModules().keys()]);
    sayModules();
    say(gm.deleteSubmodule("net_b.net_c.conv"));
    sayModules();
    say(gm.deleteSubmodule("net_b.net_c.conv"));
    for (const path of ["net_b.embedding", "net_b.net_c.embedding", "batch_norm_2d"]) {
      say(gm.addSubmodule(path, new nn.ReLU()));
    }
    gm.deleteAllUnusedSubmodules();
    sayModules();
    say([...gm.namedParameters().keys()]);
    say([...gm.namedBuffers().keys()]);
    gm.graph.lint();
    say(gm.graph);
  },
  test_delete_unused_submodules_leaf(say) {
    class Sub extends Module {
      linear = new nn.Linear(2, 2);
      relu = new nn.ReLU();
      override forward(x: Tensor): Tensor {
        return this.relu(this.linear(x));
      }
    }
    class M extends Module {
      submod = new Sub();
      override forward(x: Tensor): Tensor {
        return this.submod(x);
      }
    }
    const m = filled(new M());
    const gm = new GraphModule(m, leaves((_, path) => path === "submod").trace(m));
    gm.deleteAllUnusedSubmodules();
    say([...gm.namedModules().keys()]);
    say(gm.forward(numbers(1, 2)));
  },
  test_graph_module_init_buffer_param_copied(say) {
    class M extends Module {
      declare my_buff: Tensor;
      my_param = new Parameter(full(1, 3));
      constructor() {
        super();
        this.registerBuffer("my_buff", numbers(3));
      }
      override forward(x: Tensor): Tensor {
        return add(add(x, this.my_buff), this.my_param);
      }
    }
    const mod = new M();
    const traced = symbolicTrace(mod);
    const [buffer, parameter] = [traced.getBuffer("my_buff"), traced.getParameter("my_param")];
    for (const root of [{ my_buff: buffer, my_param: parameter }, mod]) {
      const gm = new GraphModule(root, traced.graph);
      const same = [gm.getBuffer("my_buff") === buffer, gm.getParameter("my_param") === parameter];
      say([...same, [...gm.namedBuffers().keys()], [...gm.namedParameters().keys()]]);
      say(gm.forward(full(1, 3)));
    }
  },
  test_pickle_graphmodule(say) {
    const loaded = loadGraphModule(saveGraphModule(symbolicTrace(new Affine())));
    say(loaded.graph);
    say(loaded.forward(numbers(3, 4)));
  },
};
