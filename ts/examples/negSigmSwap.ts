/** Interpreter and Transformer: negation and sigmoid trade places, in a run and in a new graph. */
import { init, Interpreter, symbolicTrace, type Tensor, torch, Transformer } from "tracefx";

await init();

type Kwargs = Readonly<Record<string, unknown>>;

const gm = symbolicTrace((x: Tensor): Tensor => torch.sigmoid(x).neg());
const input = torch.tensor([-1.5, 0.5, 2]);

class NegSigmSwapInterpreter extends Interpreter {
  override callFunction(target: string, args: readonly unknown[], kwargs: Kwargs): unknown {
    if (target === torch.sigmoid.target) return torch.neg(args[0] as Tensor);
    return super.callFunction(target, args, kwargs);
  }

  override callMethod(target: string, args: readonly unknown[], kwargs: Kwargs): unknown {
    if (target === "neg") return torch.sigmoid(args[0] as Tensor);
    return super.callMethod(target, args, kwargs);
  }
}

const result = new NegSigmSwapInterpreter(gm).run(input) as Tensor;
console.log(torch.allclose(result, torch.neg(input).sigmoid()));

class NegSigmSwapXformer extends Transformer {
  override callFunction(target: string, args: readonly unknown[], kwargs: Kwargs): unknown {
    if (target === torch.sigmoid.target) return torch.neg(args[0] as Tensor);
    return super.callFunction(target, args, kwargs);
  }

  override callMethod(target: string, args: readonly unknown[], kwargs: Kwargs): unknown {
    if (target === "neg") return torch.sigmoid(args[0] as Tensor);
    return super.callMethod(target, args, kwargs);
  }
}

const transformed = new NegSigmSwapXformer(gm).transform();
console.log(`${transformed.graph}`);
console.log(torch.allclose(transformed.forward(input) as Tensor, torch.neg(input).sigmoid()));
