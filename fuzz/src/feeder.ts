/** The process that feeds: what hangs it, or kills it, is seen by the one who started it. */
import { writeFileSync } from "node:fs";
import { type Fed, feed, shown } from "./campaign.ts";
import { targets } from "./targets.ts";

export interface Order {
  readonly target: string;
  readonly seed: number;
  readonly inputs: number;
  /** Where each input is written down before it is fed: to see what hangs. */
  readonly trace?: string;
}

export type Said = { readonly part: number } | { readonly fed: Fed } | { readonly failed: string };

const say = (said: Said) => void process.send?.(said);

process.on("message", async ({ target: name, seed, inputs, trace }: Order) => {
  try {
    const target = targets.find((one) => one.name === name);
    if (!target) throw new Error(`there is no target ${name}`);
    const fed = await feed(target, {
      ...{ seed, inputs },
      onPart: (part) => say({ part }),
      ...(trace === undefined ? {} : { onInput: (input: unknown) => writeFileSync(trace, shown(input)) }),
    });
    say({ fed });
  } catch (error) {
    say({ failed: String(error instanceof Error ? (error.stack ?? error) : error) });
  }
});
process.on("disconnect", () => process.exit());
