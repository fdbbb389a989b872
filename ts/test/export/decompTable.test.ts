/**
 * Decompositions that are functions, and what PyTorch 2.13 makes of programs by them: `tests/oracle/gen_decomp_table.py` has the same
 * programs.
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import {
  CustomDecompTable,
  exportProgram,
  F,
  init,
  Module,
  operator,
  slice,
  tensor,
  type Tensor,
  torch,
} from "../../src/index.ts";
import { type Programs, type Say, text } from "../ported/said.ts";

beforeAll(() => init());

const { aten } = torch.ops;
const example = (): Tensor => tensor([[-1, 0.5, 2]], { dtype: "float32" });

function told(say: Say, table: CustomDecompTable, forward: (x: Tensor) => Tensor): void {
  class M extends Module {
    override forward(x: Tensor): Tensor {
      return forward(x);
    }
  }
  const program = table.decompose(exportProgram(new M(), [example()]));
  say(program.graph);
  say(program.module()(example()));
}

const programs: Programs = {
  one_function(say) {
    const table = new CustomDecompTable();
    table.set(aten.silu.default, (x: Tensor) => x.mul(torch.sigmoid(x)));
    told(say, table, (x) => F.silu(x).add(1));
  },
  a_function_of_a_composite(say) {
    const table = new CustomDecompTable();
    table.set(aten.linear.default, (x: Tensor, w: Tensor) => torch.matmul(x, w.t()));
    told(say, table, (x) => F.linear(x, x));
  },
  what_comes_of_others(say) {
    const table = new CustomDecompTable();
    table.set(aten.addmm.default, (b: Tensor, x: Tensor, y: Tensor) => torch.mm(x, y).add(b));
    told(say, table, (x) => F.linear(x, x, x.get(slice(null), slice(null, 1)).reshape([1])));
  },
  several_results(say) {
    const table = new CustomDecompTable();
    table.set(aten.max.dim, (x: Tensor, dim: number) => [torch.amax(x, dim), torch.argmax(x, dim)]);
    told(say, table, (x) => operator.add((torch.max(x, 1) as unknown as Tensor[])[0] as Tensor, 1) as Tensor);
  },
  an_operator_that_stays(say) {
    const table = new CustomDecompTable();
    table.delete(aten.linear.default);
    told(say, table, (x) => F.linear(x, x));
    say([table.has(aten.linear.default), table.has(aten.silu.default)]);
    const other = table.copy();
    other.pop(aten.silu.default);
    say([other.has(aten.silu.default), table.has(aten.silu.default), table.size - other.size]);
    other.update({ "torch.ops.aten.silu.default": torch.sigmoid as never });
    say(other.get(aten.silu.default) === (torch.sigmoid as unknown));
  },
};

const recorded = JSON.parse(
  readFileSync(new URL("../../../tests/fixtures/decompositions/tables.json", import.meta.url), "utf8"),
) as Readonly<Record<string, readonly string[]>>;

describe("as run_decompositions makes them:", () => {
  test.each(Object.keys(recorded))("%s", (name) => {
    const said: string[] = [];
    programs[name]?.((it) => void said.push(text(it)));
    expect(said).toEqual(recorded[name]);
  });
});

test("a table that never ends is refused", () => {
  class M extends Module {
    override forward(x: Tensor): Tensor {
      return F.silu(x);
    }
  }
  const table = new CustomDecompTable();
  table.set(aten.silu.default, (x: Tensor) => F.silu(x).add(1));
  expect(() => table.decompose(exportProgram(new M(), [example()]))).toThrow("gave operators of the table");
});
