import type { LateResult, Relative } from "../../run/flow.ts";
import type { Zone } from "../../schedule/zone.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { timeText } from "../screen/times.ts";

/** The maximum number of a run's children and followers to show; applies to access through the store and through a server. */
export const relativesShown = 50;

const words: Record<Relative["relation"], string> = {
  parent: "comes from",
  input: "comes from",
  child: "child",
  after: "after it",
  join: "joins its children",
  chain: "goes on as",
};

export function printRelatives(relatives: readonly Relative[], terminal: Terminal): void {
  if (relatives.length === 0) return;
  const { style } = terminal;
  terminal.line();
  terminal.line(style.dim("flow"));
  for (const { relation, runId, task, state } of relatives)
    terminal.line(`  ${words[relation]} ${style.dim("run")} ${runId}  ${plain(task)}  ${state}`);
  if (relatives.length === relativesShown) terminal.line(style.dim(`  the first ${relativesShown}`));
}

/** Prints results that workers reported too late. The store rejected them, but the work may have been done, so they are shown. */
export function printLateResults(late: readonly LateResult[], zone: Zone, terminal: Terminal): void {
  if (late.length === 0) return;
  const { style } = terminal;
  terminal.line();
  terminal.line(style.dim("too late, refused"));
  for (const { atMs, node, fence, outcome } of late)
    terminal.line(
      `  ${timeText(atMs, zone)}  ${plain(node ?? "a process since forgotten")}, fence ${fence}: ${style.warning(outcome)}`,
    );
}
