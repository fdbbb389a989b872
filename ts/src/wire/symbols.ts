/**
 * `SYMS`: symbolic numbers, as the text in which PyTorch saves them.
 *
 * The texts are not understood here: the engine refuses one that is not an expression in its canonical form.
 *
 * @module
 */
import { SYM } from "../../../bindings/wire.ts";
import { fxError } from "../base/errors.ts";
import { isInt } from "../graph/args.ts";
import { SymExpr, type SymInt } from "../graph/val.ts";
import { Float } from "../base/values.ts";
import { readBool, readFloat } from "./arg.ts";
import type { Cursor } from "./cursor.ts";
import { StringWriter, Strings } from "./strings.ts";
import type { WordWriter } from "./writer.ts";

/** A number or truth value, known or symbolic. */
export type SymNumber = boolean | number | bigint | Float | SymExpr;

/** The expressions of a file that is being written. */
export class ExprWriter {
  readonly #texts = new StringWriter();

  /** Writes a number, known or symbolic. */
  write(words: WordWriter, value: SymNumber): void {
    if (value instanceof SymExpr) words.tagged(SYM.EXPR, this.#texts.index(value.srepr));
    else if (typeof value === "boolean") words.tagged(SYM.BOOL, Number(value));
    else if (typeof value === "bigint" || (typeof value === "number" && isInt(value))) {
      words.tagged(SYM.INT, 0);
      words.int(value);
    } else {
      words.tagged(SYM.FLOAT, 0);
      if (value instanceof Float) words.float(value.value, value.nanBits);
      else words.float(value);
    }
  }

  /** Writes an integer, known or symbolic. */
  writeInt(words: WordWriter, value: SymInt): void {
    if (typeof value === "number" && !Number.isSafeInteger(value)) {
      throw fxError("GraphArgument", `${value} is not a size`, { help: "a size is a whole number" });
    }
    this.write(words, value);
  }

  /** The section, unless it would be empty. */
  finish(): Uint8Array | undefined {
    return this.#texts.size === 0 ? undefined : this.#texts.finish();
  }
}

/** The expressions of a file that is being read. */
export class Exprs {
  readonly #texts: Strings;

  constructor(cursor: Cursor | undefined) {
    this.#texts = new Strings(cursor);
    if (cursor !== undefined && this.#texts.size === 0) throw cursor.fail("the section is empty");
  }

  /** Lets the expressions be used in any order, by what reads a part of a file alone. */
  inAnyOrder(): this {
    this.#texts.inAnyOrder();
    return this;
  }

  /** The number that comes next. */
  next(cursor: Cursor): SymNumber {
    const word = cursor.word();
    const payload = word >>> 8;
    switch (word & 0xff) {
      case SYM.BOOL:
        return readBool(cursor, payload);
      case SYM.EXPR:
        return new SymExpr(this.#texts.get(cursor, payload));
      case SYM.INT:
        if (payload === 0) return cursor.int();
        break;
      case SYM.FLOAT:
        if (payload === 0) return readFloat(cursor);
    }
    throw cursor.fail(`0x${word.toString(16)} begins no number`);
  }

  /** The integer that comes next. */
  nextInt(cursor: Cursor): SymInt {
    const value = this.next(cursor);
    if (typeof value === "bigint" || value instanceof SymExpr) return value;
    if (typeof value === "number" && isInt(value)) return value;
    throw cursor.fail(`a ${typeof value === "boolean" ? "bool" : "float"} stands for an int`);
  }

  /** Refuses expressions that nothing uses. */
  finish(): void {
    this.#texts.finish("SYMS");
  }
}
