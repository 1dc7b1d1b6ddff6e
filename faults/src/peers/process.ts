/** A process under test. It adds the slots and exits, or it executes them and records each start and end in a file. */
import { openSync, writeSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { mix } from "../../../scheduler/src/base/random.ts";
import { Dice } from "../../../simulation/src/plan/dice.ts";
import type { Noted } from "./account.ts";
import type { Order, Subject } from "./subject.ts";

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const { who, name: worker, life, seed } = order;
const longestMs = 500;
const { subject } = (await import(new URL(`./subjects/${who}.js`, import.meta.url).href)) as { subject: Subject };

// The process has no task without its parent.
process.on("disconnect", () => process.exit(0));
if (order.adds) {
  await subject.add(order.store, order.adds);
  process.send?.("ready", () => process.exit(0));
} else {
  const file = openSync(order.log, "a");
  /** Appends a line in one write(2), so that it survives a kill -9 of the process. */
  const note = (noted: Noted) => void writeSync(file, `${JSON.stringify(noted)}\n`);
  let count = 0;
  const begun = subject.work(order, async (key) => {
    const n = ++count;
    const forMs = new Dice([...key].reduce((hash, letter) => mix(hash, letter.charCodeAt(0)), seed)).whole(
      0,
      longestMs,
    );
    note({ kind: "start", atMs: Date.now(), worker, life, n, key, forMs });
    await pause(forMs);
    note({ kind: "end", atMs: Date.now(), worker, life, n });
  });
  // If the store is unreachable at the start, the process exits, and its supervisor restarts it.
  begun.then(
    () => process.send?.("ready"),
    (error: Error) => {
      process.stderr.write(`${worker} could not begin: ${error.message}\n`);
      process.exit(1);
    },
  );
}
