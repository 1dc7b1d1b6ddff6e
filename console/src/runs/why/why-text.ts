import type { Answer } from "../../api/call.ts";
import { catalogues, type Message, type Words } from "../../messages/texts.ts";

export type Reason = Answer<"explainRun">["reasons"][number];

/** The parts of a reason's figures that the texts show; docs/reference/mcp.md lists the codes. */
interface Figures {
  due?: string;
  attempt?: number;
  attempts?: unknown[];
  paused?: { until: string | null } | null;
  overlap?: { limit: number };
  limit?: number | { perKey?: number | null; perWorker?: number | null };
  rate?: { limit: number; perMs: number };
  key?: string | null;
  group?: string | null;
  node?: string | null;
  ms?: number;
  by?: { run: number; task: string; node: string | null }[];
}

export const figuresOf = ({ shown }: Reason): Figures => shown as Figures;

/** Returns a reason as a sentence in the viewer's language; a code without a text, from a newer server, as the server says it. */
export function whyText(reason: Reason, { t, span, when, away }: Words, nowMs: number): string {
  const figures = figuresOf(reason);
  const { due, attempt = 1, attempts = [], paused, overlap, limit, rate, key, group, node, ms = 0 } = figures;
  const variant =
    reason.code === "task-paused" && paused?.until
      ? "_until"
      : reason.code === "not-due" && attempt > 1
        ? "_again"
        : "";
  const message = `why.${reason.code.replaceAll("-", "_")}${variant}` as Message;
  if (!(message in catalogues.en)) return reason.words;
  const most =
    typeof limit === "number"
      ? limit
      : reason.code === "limit-worker"
        ? limit?.perWorker
        : (limit?.perKey ?? overlap?.limit);
  return t(message, {
    n: most ?? rate?.limit ?? attempts.length,
    away: due === undefined ? "" : away(Math.max(nowMs, Date.parse(due)), nowMs),
    span: span(rate?.perMs ?? ms),
    until: paused?.until ? when(Date.parse(paused.until)) : "",
    attempt: String(attempt),
    key: key ?? "–",
    group: group ?? "–",
    worker: node ?? "–",
  });
}
