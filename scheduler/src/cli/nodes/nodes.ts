import { holdsObject } from "../../api/drain-json.ts";
import type { DrainedNode } from "../../cluster/drain-store.ts";
import type { Leadership, Member, Term } from "../../cluster/session-store.ts";
import { storeAlone } from "../../coordination/agreement.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText, localZone, spanText, timeText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";
import { holdsText } from "./drain.ts";

interface Cluster {
  members: Member[];
  drained: DrainedNode[];
  leadership: Leadership;
  terms: Term[];
  /** The id of the coordination service. `store`: the store alone coordinates. null: no node has started yet. */
  coordination: string | null;
  nowMs: number;
}

/** Lists the members, and the past leaders with the reason why each term ended. */
export function listNodes(options: CommonOptions & { terms: number }, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster: { place, nowMs, ...asked } }) => {
    const { members, leadership } = await asked.members();
    const coordination = await asked.coordination();
    const terms = await asked.terms(options.terms);
    const drained = await asked.drains.list();
    const cluster = { members, drained, leadership, terms, coordination, nowMs: nowMs() };
    if (terminal.json) terminal.object(asJson(cluster, options.terms));
    else {
      if (members.length === 0)
        terminal.aside(`No process takes part in ${place} now. Start one: carillon server, worker or dev`);
      else printMembers(cluster, terminal);
      for (const one of drained) printDrained(one, nowMs(), terminal);
      if (options.terms > 0 && terms.length > 0) printTerms(cluster, terminal);
    }
    return exitCodes.ok;
  });
}

const isSilent = ({ seenMs, timeoutMs }: Member, nowMs: number) => nowMs - seenMs > timeoutMs;
const reliesOn = ({ witnessed }: Member) => (witnessed ? "service" : "store");
const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());

/**
 * Describes the coordination service as a live member reports it: "ZooKeeper at zk1:2181/billing". If no live member reports one, returns
 * "service" with its id; if there is no service, returns "the store alone".
 */
export function usedCoordination(coordination: string | null, members: Member[]): string {
  if (coordination === null || coordination === storeAlone) return "the store alone";
  const known = members.map(({ settings }) => settings?.coordination).find((place) => typeof place === "string");
  return known ?? `service ${coordination}`;
}

/** The current term; undefined if no node leads, or if the current term has already ended. */
const current = ({ leadership, terms }: Cluster): Term | undefined =>
  leadership.sessionId === null
    ? undefined
    : terms.find(({ term, endedMs }) => term === leadership.term && endedMs === null);

function asJson(cluster: Cluster, termsWanted: number): object {
  const { members, drained, leadership, terms, coordination, nowMs } = cluster;
  const leader = current(cluster);
  return {
    term: leadership.term,
    leader: leader ? { node: leader.node, since: iso(leader.electedMs) } : null,
    coordination,
    coordinationPlace: coordination === null ? null : usedCoordination(coordination, members),
    members: members.map((member) => {
      const { beat: _, witnessed: __, startedMs, seenMs, ...rest } = member;
      return {
        ...rest,
        leads: leadership.sessionId === member.sessionId,
        reliesOn: reliesOn(member),
        started: iso(startedMs),
        seen: iso(seenMs),
        silent: isSilent(member, nowMs),
      };
    }),
    drained: drained.map(({ node, sinceMs, by, why: reason, ...holds }) => {
      return { node, since: iso(sinceMs), by, reason, ...holdsObject(holds) };
    }),
    terms: terms.slice(0, termsWanted).map(({ electedMs, endedMs, ...rest }) => ({
      ...rest,
      elected: iso(electedMs),
      ended: iso(endedMs),
    })),
  };
}

function printMembers(cluster: Cluster, terminal: Terminal): void {
  const { members, drained, leadership, coordination, nowMs } = cluster;
  const { style } = terminal;
  const leader = current(cluster);
  const by = usedCoordination(coordination, members);
  terminal.line(
    leader
      ? `${style.good(plain(leader.node))} leads, term ${leader.term}, since ${timeText(leader.electedMs, localZone())} (${spanText(nowMs - leader.electedMs)}); coordination by ${plain(by)}`
      : `${style.bad("nobody leads")}; coordination by ${plain(by)}`,
  );
  terminal.line();
  terminal.table(
    [
      { title: "NODE", least: 10 },
      { title: "" },
      { title: "ROLE", drop: 5 },
      { title: "GROUPS", least: 8, drop: 4 },
      { title: "TAKES", align: "right", drop: 9 },
      { title: "LABELS", least: 6, drop: 11 },
      { title: "ADDRESS", least: 8, drop: 6 },
      { title: "HOST", least: 6, drop: 7 },
      { title: "PID", align: "right", drop: 8 },
      { title: "VERSION", drop: 10 },
      { title: "RELEASE", least: 8, drop: 12 },
      { title: "RELIES ON", drop: 2 },
      { title: "STARTED", drop: 3 },
      { title: "STATE" },
    ],
    members.map((member) => {
      const { sessionId, node, role, host, pid, version, startedMs, seenMs, groups, labels = {} } = member;
      const { capacity, settings } = member;
      const schedules = settings?.observer ? "observer" : "scheduler";
      const served = role === "node" && groups?.length === 0 ? "" : (groups ?? []).join(", ");
      return [
        plain(node),
        leadership.sessionId === sessionId ? { text: "leads", paint: style.good } : "",
        role === "worker" ? "worker" : served === "" ? schedules : `${schedules}, worker`,
        plain(served),
        capacity ? String(capacity) : "",
        plain(
          Object.entries(labels)
            .map(([name, value]) => `${name}=${value}`)
            .join(" "),
        ),
        plain(settings?.address ?? ""),
        plain(host),
        String(pid),
        plain(version),
        plain(settings?.release ?? ""),
        reliesOn(member),
        ageText(startedMs, nowMs),
        isSilent(member, nowMs)
          ? { text: `silent for ${spanText(nowMs - seenMs)}`, paint: style.bad }
          : member.stillMs !== null
            ? { text: `stands still for ${spanText(member.stillMs)}`, paint: style.bad }
            : member.draining
              ? { text: drained.some(({ node }) => node === member.node) ? "drained" : "stops", paint: style.bad }
              : { text: `live, seen ${ageText(seenMs, nowMs)}`, paint: style.dim },
      ];
    }),
  );
}

function printDrained({ node, sinceMs, by, why, ...holds }: DrainedNode, nowMs: number, terminal: Terminal): void {
  const left =
    holds.held === null
      ? "no process has the name"
      : holds.held === 0
        ? "it has no runs"
        : `has ${holdsText(holds, nowMs)}`;
  terminal.aside(
    `${plain(node)} was drained ${ageText(sinceMs, nowMs)} by ${plain(by)}${why === "" ? "" : ` (${plain(why)})`}: ${left}`,
  );
}

function printTerms({ members, terms, nowMs }: Cluster, terminal: Terminal): void {
  const zone = localZone();
  const paint = terminal.style.good;
  const present = new Set(members.map(({ sessionId }) => sessionId));
  terminal.line();
  terminal.table(
    [
      { title: "TERM", align: "right" },
      { title: "NODE", least: 10 },
      { title: "ELECTED", drop: 2 },
      { title: "LED FOR", drop: 1 },
      { title: "ENDED BECAUSE", least: 12 },
    ],
    terms.map(({ term, node, sessionId, electedMs, endedMs, endedWhy }) => [
      String(term),
      plain(node),
      timeText(electedMs, zone),
      spanText((endedMs ?? nowMs) - electedMs),
      endedMs !== null
        ? plain(endedWhy ?? "")
        : present.has(sessionId)
          ? { text: "it leads", paint }
          : "its session has ended; nobody took the next term yet",
    ]),
  );
}
