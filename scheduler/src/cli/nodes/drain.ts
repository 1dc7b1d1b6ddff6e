import { holdsObject } from "../../api/drain-json.ts";
import { pause, systemClock } from "../../base/clock.ts";
import { parseDuration } from "../../base/duration.ts";
import { CarillonError } from "../../base/errors.ts";
import type { Holds } from "../../cluster/drain-store.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { spanText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import type { Cluster } from "./cluster.ts";

const lookMs = 500;

interface DrainOptions extends CommonOptions {
  reason?: string;
  wait?: boolean;
  timeout?: string;
}

/**
 * Drains a node: it claims no further runs. With --wait, waits until its current runs have ended.
 * @throws TIMEOUT if they have not ended within --timeout; USAGE for --timeout without --wait
 */
export function drainNode(node: string, options: DrainOptions, terminal: Terminal): Promise<ExitCode> {
  const timeoutMs = options.timeout === undefined ? null : parseDuration(options.timeout, "--timeout");
  if (timeoutMs !== null && !options.wait)
    throw new CarillonError("USAGE", "--timeout was given, and nothing is waited for", { hint: "Give --wait too." });
  return withCluster(options, async ({ cluster }) => {
    const { changed, ...holds } = await cluster.drains.drain(node, options.reason ?? "");
    const name = plain(node);
    if (!terminal.json) {
      terminal.line(`${name} takes no more runs${changed ? "" : " (it was drained already)"}`);
      if (holds.held === null) terminal.aside("No process has this name now. One that takes it is drained too.");
      else if (holds.held > 0) terminal.aside(`It still has ${holdsText(holds, cluster.nowMs())}`);
    }
    const left = options.wait && holds.held !== null ? await ended(cluster, node, timeoutMs) : holds;
    if (options.wait && left.held)
      throw new CarillonError("TIMEOUT", `${node} has not ended its runs within ${options.timeout}`, {
        hint: `It has ${holdsText(left, cluster.nowMs())}. It stays drained: wait on with the same command, or cancel them: carillon runs cancel.`,
      });
    if (terminal.json) terminal.object({ node, changed, ...holdsObject(left) });
    else if (options.wait && left.held === 0) terminal.line(`${name} has no runs: it may be stopped`);
    return exitCodes.ok;
  });
}

export function resumeNode(node: string, options: DrainOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const { changed } = await cluster.drains.resume(node, options.reason ?? "");
    if (terminal.json) terminal.object({ node, changed });
    else terminal.line(`${plain(node)} takes runs${changed ? " again" : " (it was not drained)"}`);
    return exitCodes.ok;
  });
}

/** Formats the number of a node's claims and its first claimed runs: "2 runs: settle 17 for 5 s, settle 18". */
export function holdsText({ held, runs }: Holds, nowMs: number): string {
  const named = runs.map(({ run, task, startedMs }) =>
    startedMs === null ? `${plain(task)} ${run}` : `${plain(task)} ${run} for ${spanText(nowMs - startedMs)}`,
  );
  const more = (held ?? 0) - runs.length;
  return `${held} ${held === 1 ? "run" : "runs"}: ${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/**
 * Polls until the node has no runs, its process has ended, the drain was undone, or the time is over. Returns the runs that the
 * node still has.
 * @param timeoutMs null: no limit
 */
async function ended(cluster: Cluster, node: string, timeoutMs: number | null): Promise<Holds> {
  const until = timeoutMs === null ? Number.POSITIVE_INFINITY : systemClock.monotonic() + timeoutMs;
  for (;;) {
    // Also waits before the first read, because a claim that was in progress when the drain began may still give runs to the node.
    await pause(systemClock, Math.min(lookMs, until - systemClock.monotonic()));
    const found = (await cluster.drains.list()).find((one) => one.node === node);
    if (!found?.held || systemClock.monotonic() >= until) return found ?? { held: null, runs: [] };
  }
}
