/** The process that feeds inputs. It is separate, so that its parent can detect an input that hangs or kills it. */
import { writeFileSync } from "node:fs";
import { type Fed, feed } from "./campaign.ts";
import { shown } from "./found.ts";
import { targets } from "./targets.ts";

export interface Order {
  readonly target: string;
  readonly seed: number;
  readonly inputs: number;
  /** Path of a file to which each input is written before it is fed, to find an input that hangs. */
  readonly trace?: string;
}

export type Said = { readonly inputs: number } | { readonly fed: Fed } | { readonly failed: string };

const say = (said: Said) => void process.send?.(said);

process.on("message", async ({ target: name, seed, inputs, trace }: Order) => {
  try {
    const target = targets.find((one) => one.name === name);
    if (!target) throw new Error(`there is no target ${name}`);
    const fed = await feed(target, {
      seed,
      inputs,
      onFed: (count) => say({ inputs: count }),
      ...(trace === undefined ? {} : { onInput: (input: unknown) => writeFileSync(trace, shown(input)) }),
    });
    say({ fed });
  } catch (error) {
    say({ failed: String(error instanceof Error ? (error.stack ?? error) : error) });
  }
});
process.on("disconnect", () => process.exit());
// Ignore these signals: the parent process receives them too, reports the inputs fed, and kills this process.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => undefined);
