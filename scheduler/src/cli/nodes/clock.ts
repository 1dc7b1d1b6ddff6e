import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { operator } from "../operator.ts";
import { requireStore } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { spanText } from "../screen/times.ts";
import { type CommonOptions, withStore } from "../store-choice.ts";

/** Accepts the store's clock after it was stepped, so that it is cluster time from now on. */
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

/** If cluster time is behind the highest value that it has had, plans tasks from the present time instead of from that value. */
export function replanClock(options: CommonOptions & { reason?: string }, terminal: Terminal): Promise<ExitCode> {
  requireStore(options, "clock replan");
  return withStore(options, async ({ tower, nowMs }) => {
    const { store } = await tower.open();
    const now = nowMs();
    const done = await store.tasks.replanAhead({ author: operator(), reason: options.reason ?? "", nowMs: now });
    if (terminal.json) terminal.object(done ?? { tasks: 0, waiting: 0 });
    else if (done === undefined) terminal.line("cluster time is past all that was seen of it: nothing to do");
    else {
      const tasks = done.tasks === 1 ? "1 task is" : `${done.tasks} tasks are`;
      terminal.line(
        `cluster time is ${spanText(done.reachedMs - now)} behind what it has been: ${tasks} planned from now on`,
      );
      if (done.waiting > 0)
        terminal.line(
          `${done.waiting} runs that were enqueued or are tried again by the clock of before keep their due times: see carillon runs list`,
        );
    }
    return exitCodes.ok;
  });
}
