import pg from "pg";
import { expect, it } from "vitest";
import { checkEnqueueOptions } from "./enqueue-options.ts";
import { clientOf } from "./transaction.ts";

const refused = expect.objectContaining({ code: "OPTION_INVALID" });

it.each([{ key: "a\0b" }, { limitKey: "a\0b" }, { key: "" }, { key: "k".repeat(201) }, { keys: "a" }])(
  "an enqueue with %o is refused before any store query",
  (options) => {
    expect(() => checkEnqueueOptions(options)).toThrow(refused);
  },
);

it("a durability is one of two, and not of an enqueue in the caller's own transaction", () => {
  for (const durability of ["full", "relaxed"] as const) {
    checkEnqueueOptions({ durability });
    expect(() => checkEnqueueOptions({ durability, tx: new pg.Client() })).toThrow(/not both/);
  }
  for (const durability of ["sometimes", "", true, null])
    expect(() => checkEnqueueOptions({ durability: durability as "full" })).toThrow(refused);
});

it("a transaction is a client or an object that forwards statements to one, but not a pool", () => {
  const query = async () => ({ rows: [] });
  for (const tx of [new pg.Client(), { query }, new Proxy({ query }, { get: () => query })])
    checkEnqueueOptions({ tx });
  for (const tx of [new pg.Pool(), {}, null, "begin"]) {
    expect(() => checkEnqueueOptions({ tx: tx as pg.Client })).toThrow(refused);
    expect(() => clientOf("client", tx)).toThrow(refused);
  }
  expect(() => checkEnqueueOptions({ tx: new pg.Pool() })).toThrow(/tx is a pool/);
});
