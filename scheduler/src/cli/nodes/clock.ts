import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { operator } from "../operator.ts";
import { requireStore } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { spanText } from "../screen/times.ts";
import { type CommonOptions, withStore } from "../store-choice.ts";

/** The store's clock, which stepped, is cluster time from now on. */
export function adoptClock(options: CommonOptions & { reason?: string }, terminal: Terminal): Promise<ExitCode> {
  requireStore(options, "clock adopt");
  return withStore(options, async ({ tower, nowMs }) => {
    const { store } = await tower.open();
    const change = { author: operator(), reason: options.reason ?? "", nowMs: nowMs() };
    const stepMs = await store.sessions.adoptClock(change);
    if (terminal.json) terminal.object({ stepMs });
    else if (stepMs === 0) terminal.line("cluster time is the store's clock: nothing to do");
    else
      terminal.line(
        `cluster time is the store's clock from now on: it steps ${stepMs > 0 ? "forward" : "back"} by ${spanText(Math.abs(stepMs))}`,
      );
    return exitCodes.ok;
  });
}
