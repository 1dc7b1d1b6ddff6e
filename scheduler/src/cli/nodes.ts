import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { type CommonOptions, withStore } from "./store-choice.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";
import { ageText, localZone, spanText, timeText } from "./times.ts";

/** Who takes part, and who led when and why that ended. */
export function listNodes(options: CommonOptions & { terms: number }, terminal: Terminal): Promise<ExitCode> {
  return withStore(options, async ({ store, nowMs, place }) => {
    const { members, leadership } = await store.sessions.members();
    const terms = await store.sessions.terms(options.terms);
    const now = nowMs();
    const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
    const leads = (sessionId: number) => leadership.sessionId === sessionId;
    if (terminal.json) {
      terminal.object({
        term: leadership.term,
        members: members.map(({ beat: _, startedMs, seenMs, ...rest }) => ({
          ...rest,
          leads: leads(rest.sessionId),
          started: iso(startedMs),
          seen: iso(seenMs),
          silent: now - seenMs > rest.timeoutMs,
        })),
        terms: terms.map(({ electedMs, endedMs, ...rest }) => ({
          ...rest,
          elected: iso(electedMs),
          ended: iso(endedMs),
        })),
      });
      return exitCodes.ok;
    }
    const { style } = terminal;
    if (members.length === 0)
      terminal.aside(`No process takes part in ${place} now. Start one: carillon server, worker or dev`);
    else {
      terminal.table(
        [
          { title: "NODE", least: 10 },
          { title: "" },
          { title: "ROLE", drop: 5 },
          { title: "GROUPS", least: 8, drop: 2 },
          { title: "HOST", least: 6, drop: 3 },
          { title: "PID", align: "right", drop: 4 },
          { title: "VERSION", drop: 6 },
          { title: "STARTED", drop: 1 },
          { title: "SEEN" },
        ],
        members.map(({ sessionId, node, role, host, pid, version, startedMs, seenMs, timeoutMs, groups }) => {
          const silent = now - seenMs > timeoutMs;
          const served = role === "node" && groups?.length === 0 ? "" : (groups ?? []).join(", ");
          return [
            plain(node),
            leads(sessionId) ? { text: `leads, term ${leadership.term}`, paint: style.good } : "",
            role === "worker" ? "worker" : served === "" ? "scheduler" : "scheduler, worker",
            plain(served),
            plain(host),
            String(pid),
            plain(version),
            ageText(startedMs, now),
            { text: ageText(seenMs, now), paint: silent ? style.bad : style.dim },
          ];
        }),
      );
    }
    if (terms.length === 0) return exitCodes.ok;
    const zone = localZone();
    terminal.line();
    terminal.table(
      [
        { title: "TERM", align: "right" },
        { title: "NODE", least: 10 },
        { title: "ELECTED", drop: 2 },
        { title: "LED FOR", drop: 1 },
        { title: "ENDED BECAUSE", least: 12 },
      ],
      terms.map(({ term, node, electedMs, endedMs, endedWhy }) => [
        String(term),
        plain(node),
        timeText(electedMs, zone),
        spanText((endedMs ?? now) - electedMs),
        endedMs === null ? { text: "it leads", paint: style.good } : plain(endedWhy ?? ""),
      ]),
    );
    return exitCodes.ok;
  });
}
