/**
 * The closing line of a fuzzing run: for each target the number of inputs fed, and the targets that were cut short. The run passes only if
 * no bug was found and no target was cut short.
 */
import type { Fed } from "./campaign.ts";

export interface Asked {
  readonly target: string;
  readonly inputs: number;
}

/** @param fed results of the targets that were started @param asked all targets with the requested number of inputs */
export function closing(fed: readonly Fed[], asked: readonly Asked[], { seed, ms }: { seed: number; ms: number }) {
  const found = fed.flatMap((one) => one.found);
  const inputsOf = new Map(fed.map(({ target, inputs }) => [target, inputs]));
  const short = asked
    .map(({ target, inputs: of }) => ({ target, inputs: inputsOf.get(target) ?? 0, of }))
    .filter(({ inputs, of }) => inputs < of);
  const line = {
    targets: fed.length,
    inputs: fed.reduce((sum, one) => sum + one.inputs, 0),
    found: found.length,
    seed,
    seconds: Math.round(ms / 1_000),
    slowest_ms: Math.round(Math.max(0, ...fed.map((one) => one.slowestMs))),
    waited_s: Math.round(fed.reduce((sum, one) => sum + one.waitedMs, 0) / 1_000),
    inputs_per_target: Object.fromEntries(inputsOf),
    cut_short: Object.fromEntries(short.map(({ target, inputs, of }) => [target, { inputs, of }])),
    ...(found.length > 0 ? { bugs: found } : {}),
  };
  return { line, passes: found.length === 0 && short.length === 0 };
}

/** Returns one target's result as a readable line. */
export function lineOf({ target, inputs, asked, ms, slowestMs, waitedMs, found }: Fed): string {
  const seconds = (some: number, width = 0) => `${(some / 1_000).toFixed(1).padStart(width)} s`;
  const short = inputs < asked ? `, cut short: ${asked} were asked for` : "";
  return (
    `${found.length === 0 && inputs === asked ? "✓" : "✗"} ${target.padEnd(20)} ${String(inputs).padStart(8)} inputs ` +
    `${seconds(ms, 7)}, the slowest ${Math.round(slowestMs)} ms, without a processor for ${seconds(waitedMs)}${short}`
  );
}
