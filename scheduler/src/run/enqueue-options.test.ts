import pg from "pg";
import { expect, it } from "vitest";
import { checkEnqueueOptions } from "./enqueue-options.ts";
import { clientOf } from "./transaction.ts";

const refused = expect.objectContaining({ code: "OPTION_INVALID" });

it.each([{ key: "a\0b" }, { limitKey: "a\0b" }, { key: "" }, { key: "k".repeat(201) }, { keys: "a" }])(
  "an enqueue with %o is refused before the store is asked",
  (options) => {
    expect(() => checkEnqueueOptions(options)).toThrow(refused);
  },
);

it("a transaction is a client's, or of whatever passes its statements to one, and no pool's", () => {
  const query = async () => ({ rows: [] });
  for (const tx of [new pg.Client(), { query }, new Proxy({ query }, { get: () => query })])
    checkEnqueueOptions({ tx });
  for (const tx of [new pg.Pool(), {}, null, "begin"]) {
    expect(() => checkEnqueueOptions({ tx: tx as pg.Client })).toThrow(refused);
    expect(() => clientOf("client", tx)).toThrow(refused);
  }
  expect(() => checkEnqueueOptions({ tx: new pg.Pool() })).toThrow(/tx is a pool/);
});
