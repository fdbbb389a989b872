/**
 * Opens a workload on TensorFlow.js, on its backend in WebAssembly with SIMD and one thread.
 *
 * The network is written as TensorFlow.js has it: the program of tracefx is read, node by node, with images channels last, batch
 * normalisations folded into the weights of the convolutions before them, and activations that its convolutions take.
 *
 * @module
 */
import { load } from "../../ts/dist/index.js";

/** @typedef {import("../../ts/dist/index.js").Node} Node */

/** Activations of `fused.conv2d`. */
const ACTIVATIONS = { "relu.default": "relu", "hardtanh.default": "relu6" };

/** @type {(opening: import("./repeated.mjs").Opening) => Promise<import("./repeated.mjs").Run>} */
export async function open({ read, inputs, peer }) {
  const tf = await peer("tfjs");
  const program = await load(await read(".pt2"));
  const network = new Network(tf, program);
  const given = Array.from(inputs.values(), (it) =>
    tf.tidy(() => tf.transpose(tf.tensor(it.data, it.shape), [0, 2, 3, 1])),
  );
  return () => {
    const output = tf.tidy(() => network.run(given));
    const data = output.dataSync();
    output.dispose();
    return data;
  };
}

/** A program as calls of TensorFlow.js. */
class Network {
  #tf;
  /** What each node is computed by, in order. @type {{ node: Node, run: (values: Map<Node, any>) => any }[]} */
  #steps = [];
  /** @type {Map<string, import("../../ts/dist/index.js").Tensor>} */
  #state;
  /** What stands for a node that was joined with the one before. @type {Map<Node, Node>} */
  #joined = new Map();
  /** @type {Node[]} */
  #inputs = [];
  /** @type {Node} */
  #output;

  constructor(/** @type {any} */ tf, /** @type {import("../../ts/dist/index.js").ExportedProgram} */ program) {
    this.#tf = tf;
    const { inputSpecs } = program.graphSignature;
    const targets = new Map(inputSpecs.map((it) => [it.arg.name, it.target]));
    this.#state = new Map(Array.from(program.stateDict));
    for (const node of program.graph.nodes) {
      if (node.op === "placeholder") {
        const target = targets.get(node.name);
        const held = this.#state.get(target ?? "");
        if (held === undefined) this.#inputs.push(node);
        else this.#state.set(node.name, held);
      } else if (node.op === "call_function" && !this.#joined.has(node)) {
        this.#steps.push({ node, run: this.#stepOf(node) });
      }
    }
    const [results] = program.graph.outputNode()?.args ?? [];
    this.#output = this.#value([...results][0]);
  }

  run(/** @type {any[]} */ inputs) {
    const values = new Map(inputs.map((it, at) => [this.#inputs[at], it]));
    for (const { node, run } of this.#steps) values.set(node, run(values));
    return values.get(this.#output);
  }

  /** The node whose step gives the value of this one. */
  #value(/** @type {any} */ node) {
    let res = node;
    while (this.#joined.has(res)) res = this.#joined.get(res);
    return res;
  }

  /** The elements that an argument holds. */
  #held(/** @type {any} */ node) {
    const tensor = this.#state.get(node?.name);
    return tensor === undefined ? undefined : { data: /** @type {Float32Array} */ (tensor.data), shape: tensor.shape };
  }

  /** The user of a node, where there is one alone, and it calls this. */
  #onlyUser(/** @type {Node} */ node, /** @type {(name: string) => boolean} */ isWanted) {
    const [user, ...others] = node.users;
    return user !== undefined && others.length === 0 && isWanted(nameOf(user)) ? user : undefined;
  }

  /** @returns {(values: Map<Node, any>) => any} */
  #stepOf(/** @type {Node} */ node) {
    const tf = this.#tf;
    /** @type {any[]} */
    const args = [...node.args];
    const of = (/** @type {any} */ it) => (/** @type {Map<Node, any>} */ values) => values.get(this.#value(it));
    const [x, y] = [of(args[0]), of(args[1])];
    switch (nameOf(node)) {
      case "conv2d.default":
        return this.#convolution(node, args);
      case "linear.default": {
        const weight = this.#held(args[1]);
        const [rows, bias] = [tf.tensor(weight?.data, weight?.shape), this.#held(args[2])];
        const columns = tf.transpose(rows);
        const shift = tf.tensor(bias?.data, bias?.shape);
        return (values) => tf.fused.matMul({ a: x(values), b: columns, bias: shift });
      }
      case "relu.default":
        return (values) => tf.relu(x(values));
      case "silu.default":
        return (values) => {
          const value = x(values);
          return tf.mul(value, tf.sigmoid(value));
        };
      case "sigmoid.default":
        return (values) => tf.sigmoid(x(values));
      case "mul.Tensor":
        return (values) => tf.mul(x(values), y(values));
      case "add.Tensor":
        return (values) => tf.add(x(values), y(values));
      case "max_pool2d.default": {
        const [, size, stride, [pad]] = args.map((it) => (typeof it === "object" ? Array.from(it ?? []) : it));
        return (values) => tf.maxPool(x(values), size, stride, pad, "floor");
      }
      case "adaptive_avg_pool2d.default":
        return (values) => tf.mean(x(values), [1, 2], true);
      case "flatten.using_ints":
        // Images of one pixel.
        return (values) => tf.reshape(x(values), [x(values).shape[0], -1]);
      default:
        throw new Error(`TensorFlow.js runs no ${node.target} here`);
    }
  }

  /** A convolution with the batch normalisation and the activation behind it. @returns {(values: Map<Node, any>) => any} */
  #convolution(
    /** @type {Node} */ node,
    /** @type {any[]} */ [image, weight, bias, stride = [1], pad = [0], , groups = 1],
  ) {
    const tf = this.#tf;
    const { data, shape } = this.#held(weight) ?? { data: new Float32Array(), shape: [] };
    const [nOut = 0, nIn = 0] = shape;
    const scale = new Float32Array(nOut).fill(1);
    const shift = Float32Array.from(this.#held(bias)?.data ?? new Float32Array(nOut));
    let last = node;
    const join = (/** @type {Node} */ user) => {
      this.#joined.set(user, node);
      last = user;
    };
    const norm = this.#onlyUser(node, (it) => it === "batch_norm.default");
    if (norm !== undefined) {
      const [gamma, beta, mean, variance] = norm.args.slice(1, 5).map((it) => this.#held(it)?.data ?? []);
      for (let at = 0; at < nOut; at++) {
        scale[at] = Number(gamma?.[at]) / Math.sqrt(Number(variance?.[at]) + Number(norm.args[7]));
        shift[at] = (Number(shift[at]) - Number(mean?.[at])) * Number(scale[at]) + Number(beta?.[at]);
      }
      join(norm);
    }
    const user = this.#onlyUser(last, (it) => it in ACTIVATIONS);
    const activation =
      user === undefined ? "linear" : ACTIVATIONS[/** @type {keyof typeof ACTIVATIONS} */ (nameOf(user))];
    if (user !== undefined) join(user);
    const isDepthwise = groups > 1;
    if (isDepthwise && (groups !== nOut || nIn !== 1))
      throw new Error("TensorFlow.js has no grouped convolutions here");
    const filter = tf.tidy(() => {
      const scaled = tf.mul(tf.tensor(data, shape), tf.tensor(scale, [nOut, 1, 1, 1]));
      return tf.transpose(scaled, isDepthwise ? [2, 3, 0, 1] : [2, 3, 1, 0]);
    });
    const options = {
      filter,
      strides: [...stride][0],
      pad: [...pad][0],
      dimRoundingMode: "floor",
      bias: tf.tensor(shift),
      activation,
    };
    const run = isDepthwise ? tf.fused.depthwiseConv2d : tf.fused.conv2d;
    return (values) => run({ x: values.get(this.#value(image)), ...options });
  }
}

function nameOf(/** @type {Node} */ { target }) {
  return target.replace("torch.ops.aten.", "");
}
