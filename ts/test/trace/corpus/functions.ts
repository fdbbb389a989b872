/**
 * The functions of PyTorch's recorded traces, as one writes them in TypeScript.
 *
 * A value that is given to all of these is traced, so its type is the one that the function needs: a tensor, a list, a dict.
 *
 * @module
 */
import {
  Ellipsis,
  complex,
  F,
  float,
  math,
  operator,
  proxyableClass,
  slice,
  type Tensor,
  torch,
  tuple,
} from "../../../src/index.ts";

const { add, sub, mul, getitem } = operator;
const all = slice(null);

/** A tensor that the functions share. */
const T5 = torch.tensor(float(5));

class Pt {
  readonly a: unknown;
  readonly b: unknown;
  constructor(a: unknown, b: unknown) {
    this.a = a;
    this.b = b;
  }
}

const Point = proxyableClass(Pt, "__main__.Pt");

/** The functions that are traced as they are, by the name of the case. */
export const FUNCTIONS = {
  f_basic: (x: Tensor, y: Tensor) => add(torch.relu(x), mul(y, 2)),
  f_reflected: (x: Tensor) =>
    tuple<unknown[]>(
      add(1, x),
      sub(2, x),
      mul(3, x),
      operator.truediv(4, x),
      operator.floordiv(5, x),
      operator.pow(2, x),
      operator.mod(7, x),
    ),
  f_unary: (x: Tensor) => tuple<unknown[]>(operator.neg(x), operator.pos(x), operator.invert(x), operator.abs(x)),
  f_compare: (x: Tensor, y: Tensor) =>
    tuple<unknown[]>(
      operator.eq(x, y),
      operator.ne(x, y),
      operator.lt(x, y),
      operator.gt(x, y),
      operator.le(x, y),
      operator.ge(x, y),
    ),
  f_bits: (x: Tensor, y: Tensor) =>
    tuple<unknown[]>(
      operator.and_(x, y),
      operator.or_(x, y),
      operator.xor(x, y),
      operator.lshift(x, 2),
      operator.rshift(x, 2),
    ),
  f_matmul: (x: Tensor, y: Tensor) => operator.matmul(x, y),
  f_index: (x: Tensor) =>
    tuple<unknown[]>(
      getitem(x, 0),
      getitem(x, slice(1, 3)),
      getitem(x, tuple(Ellipsis, 0)),
      getitem(x, tuple(all, null, slice(null, null, 2))),
      getitem(x, [0, 1]),
    ),
  f_index_by_proxy: (x: Tensor, i: Tensor) => tuple<unknown[]>(getitem(x, i), getitem(x, slice(i.shape[0] as number))),
  f_attr_chain: (x: Tensor & { foo: { bar: { baz: Tensor } } }) => add(x.shape[0] as number, x.foo.bar.baz),
  f_attr_unused: (x: Tensor & { unused: unknown }) => {
    // oxlint-disable-next-line no-unused-expressions -- reading an attribute and not using it is the case
    x.unused;
    return x.T;
  },
  f_attr_shared: (x: Tensor) => {
    const { shape } = x;
    return mul(shape[0] as number, shape[1] as number);
  },
  f_method_kwargs: (x: Tensor) => x.sum({ dim: 1, keepdim: true }).view(-1, 2).clamp({ min: 0.5 }),
  f_call_proxy: (x: Tensor, g: (x: Tensor, options: { k: number }) => Tensor) => g(x, { k: 1 }),
  f_unpack: (x: [Tensor, Tensor]) => {
    const [a, b] = x;
    return add(a, b);
  },
  f_unpack_max: (x: Tensor) => {
    const [v, i] = torch.max(x, 0);
    return tuple<unknown[]>(add(v as Tensor, 1), i);
  },
  f_tuple_out: (x: Tensor) => tuple<unknown[]>(x, tuple<unknown[]>(add(x, 1), [mul(x, 2), { k: x }])),
  f_dict_in: (d: { a: Tensor }) =>
    tuple<unknown[]>((getitem(d, "a") as Tensor).relu(), { b: (getitem(d, "a") as Tensor).neg() }),
  f_const_out: (x: Tensor) => {
    void x;
    return 3;
  },
  f_str_out: () => "foo",
  f_none: (x: Tensor): void => {
    x.relu();
  },
  f_default: (x: Tensor, y = 1, z = 2.5, s = "mean", n = null) => {
    void [s, n];
    return add(add(x, y), z);
  },
  f_kwonly: (x: Tensor, { alpha, beta = 2 }: { alpha: Tensor; beta?: number }) => add(mul(x, alpha), beta),
  f_annot: (x: Tensor, y = 2) => add(x, y),
  f_lists: (x: Tensor, y: Tensor) =>
    tuple<unknown[]>(torch.cat([x, [y, x][0] as Tensor], { dim: 0 }), torch.stack(tuple(x, y))),
  f_slice_obj: (x: Tensor, y: number) => getitem(x, slice(y, null, 2)),
  f_inplace_ops: (x: Tensor, y: Tensor) => {
    x = add(x, y);
    x = mul(x, 2);
    return operator.matmul(x, y);
  },
  f_sqrt: (x: Tensor) => add(math.sqrt(x.size(0)), math.pi),
  f_inf: (x: Tensor) => tuple<unknown[]>(add(x, Infinity), mul(x, NaN), sub(x, -Infinity)),
  f_complex_lit: (x: Tensor) => tuple<unknown[]>(add(x, complex(0, 1)), mul(x, complex(2.5, -3))),
  f_dtype: (x: Tensor) =>
    tuple<unknown[]>(x.to(torch.float16), torch.zeros(2, { dtype: torch.int64, device: "cpu" }).add(x)),
  f_const_tensor: (x: Tensor) => tuple<unknown[]>(add(x, torch.ones(2)), mul(x, torch.ones(2))),
  f_const_tensor_shared: (x: Tensor) => add(add(x, T5), T5),
  f_namedtuple: (x: Tensor) => new Point(x, add(x, 1)),
  f_static_loop: (x: Tensor) => {
    for (let i = 0; i < 3; i++) x = add(x, i);
    return x;
  },
  f_nested_args: (x: Tensor) => F.pad(x, tuple<number[]>(1, 1), { mode: "constant", value: float(0) }),
  f_builtin_sum: (x: Tensor, y: Tensor) => {
    let sum: Tensor | number = 0;
    for (const it of [x, y]) sum = add(sum as number, it);
    return sum;
  },
  f_max_names: (x: Tensor) => add(add(add(x.max(), x.sum()), x.abs()), torch.round(x)),
  f_getattr_default: (x: Tensor & { foo: unknown }) => tuple<unknown[]>(x["foo"], x.foo),
  f_unused_arg: (x: Tensor, y: Tensor) => {
    void y;
    return x.relu();
  },
  // oxlint-disable-next-line no-shadow -- hiding a function by a parameter is the case
  f_shadow: (add: Tensor, relu: Tensor) => operator.add(torch.relu(add), relu),
  f_return_arg: (x: Tensor) => x,
  f_repeat: (x: Tensor) => {
    const y = add(x, x);
    return add(add(y, y), x);
  },
  concrete_bool_true: whereFlag,
  concrete_bool_false: whereFlag,
  concrete_dict_of_PH: (d: Record<string, Tensor>) => {
    let out: Tensor | number = 0;
    for (const v of Object.values(d)) out = add(out as number, v);
    return out;
  },
  concrete_nested: nested,
  concrete_nested_with_value: nested,
  concrete_none: (x: Tensor, val: Tensor | null = null) => (val === null ? x : add(x, val)),
  concrete_mixed: (b: boolean, a: { a: Tensor; z: Tensor }) => (b ? a.a : a.z),
};

/** The functions that no trace can record, and the error that says so. */
export const REFUSED = {
  f_setitem: [
    "TraceUnsupported",
    (x: Tensor) => {
      Reflect.set(x, 0, 1);
      return x;
    },
  ],
  f_control_flow: ["TraceControlFlow", (x: Tensor) => (operator.gt(x.sum(), 0) ? x : operator.neg(x))],
  f_iter: ["TraceIteration", (x: Iterable<Tensor>) => Array.from(x, (v) => add(v, 1))],
  f_star_call: ["TraceIteration", (x: Iterable<Tensor>) => torch.cat([...x])],
  f_dict_expand: ["TraceIteration", (x: object) => ({ ...x })],
  f_len: ["TraceIteration", (x: Tensor[]) => x.length],
  f_bool: ["TraceControlFlow", (x: Tensor) => Boolean(x)],
  f_int: ["TraceCoercion", (x: Tensor) => Number(x)],
  f_range: [
    "TraceCoercion",
    (x: Tensor) => {
      let out = x;
      for (const i of Array.from({ length: Number(x) }).keys()) out = add(out, i);
      return out;
    },
  ],
  f_contains: ["TraceIteration", (x: Tensor) => 1 in x],
  f_and: ["TraceControlFlow", (x: Tensor, y: Tensor) => x && y],
  f_not: ["TraceControlFlow", (x: Tensor) => !x],
  f_dictkey: ["TraceControlFlow", (x: Tensor) => new Map([[x, 1]])],
  concrete_tuple_count_mismatch: ["TraceUnsupported", whereFlag],
} as const;

function whereFlag(x: Tensor, flag: boolean): Tensor {
  return flag ? add(x, 1) : sub(x, 1);
}

type Nested = [{ a: Tensor }, [Tensor, Tensor | number]];

function nested(t: Nested): Tensor {
  const product = mul(t[1][0], t[1][1]);
  return add(t[0].a, product);
}
