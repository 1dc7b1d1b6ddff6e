import type { AlarmRecord } from "../../alarms/alarm-store.ts";
import { wordsOfRule } from "../../alarms/alarms.ts";
import { type Severity, severityOf } from "../../alarms/severity.ts";
import { isCarillonError, messageOf } from "../../base/errors.ts";
import type { Leadership, Member } from "../../cluster/session-store.ts";
import type { ExitCode } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import type { CommonOptions } from "../store-choice.ts";

export interface MonitorOptions extends CommonOptions {
  /** If set, only alarms of this task and alarms of the whole cluster count. */
  task?: string;
}

/** The states of monitoring plugins (Nagios and compatible), each with its exit code. */
const states = { ok: 0, warning: 1, critical: 2, unknown: 3 } as const;
type State = keyof typeof states;

const stateOf: Record<Severity, State> = { critical: "critical", error: "critical", warning: "warning", info: "ok" };

interface Found {
  state: State;
  says: string;
}

interface Looked {
  found: Found[];
  nodes: number;
  alarms: number;
}

/** The maximum number of tasks that a finding lists for one alarm rule. */
const named = 3;

/** Prints one line with the state and counters, in the format of monitoring plugins (Nagios), and returns the state's exit code. */
export async function monitor(options: MonitorOptions, terminal: Terminal): Promise<ExitCode> {
  const { found, nodes, alarms } = await looked(options);
  const worst = found.map(({ state }) => state).reduce((a, b) => (states[b] > states[a] ? b : a), "ok" as State);
  const says = found.map((one) => one.says);
  if (terminal.json) terminal.object({ state: worst, exit: states[worst], says, nodes, alarms });
  else {
    const text = says.length === 0 ? "a node leads, and no alarm is open" : says.join("; ");
    // In this format "|" begins the counters, and monitoring systems may show only the first line, so both characters are replaced.
    const line = plain(text).replaceAll("|", "/").replaceAll("\n", " ");
    terminal.line(`CARILLON ${worst.toUpperCase()} - ${line} | nodes=${nodes} alarms=${alarms}`);
  }
  return states[worst];
}

async function looked(options: MonitorOptions): Promise<Looked> {
  let result: Looked = { found: [], nodes: 0, alarms: 0 };
  try {
    await withCluster(options, async ({ cluster }) => {
      // Refuses an unknown task: a mistyped name would never have an open alarm, so the result would always be OK.
      if (options.task !== undefined) await cluster.tasks.find(options.task);
      const [{ members, leadership }, { open }] = await Promise.all([cluster.members(), cluster.alarms.look(0)]);
      const about = open.filter(
        ({ subject, seen, silencedUntilMs }) =>
          (options.task === undefined || subject === "" || subject === options.task) &&
          seen === null &&
          silencedUntilMs === null,
      );
      const leading = leaderFound(members, leadership, cluster.nowMs());
      result = { found: [...leading, ...alarmsFound(about)], nodes: members.length, alarms: about.length };
      return states.ok;
    });
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    const isAway = /^(?:STORE|EMBEDDED)_|^SERVER_/.test(error.code) && error.code !== "STORE_NEEDED";
    const says = `${error.code}: ${messageOf(error)}`;
    return { found: [{ state: isAway ? "critical" : "unknown", says }], nodes: 0, alarms: 0 };
  }
  return result;
}

function leaderFound(members: readonly Member[], { sessionId }: Leadership, nowMs: number): Found[] {
  const leader = members.find((member) => member.sessionId === sessionId);
  if (!leader) return [{ state: "critical", says: "no node leads" }];
  const { node, seenMs, timeoutMs, witnessed } = leader;
  if (witnessed || nowMs - seenMs <= timeoutMs) return [];
  return [{ state: "critical", says: `${node} leads, and is silent` }];
}

/** Returns one finding for each alarm rule, the most severe first. */
function alarmsFound(open: readonly AlarmRecord[]): Found[] {
  return [...new Set(open.map(({ rule }) => rule))]
    .map((rule): Found => {
      const tasks = open.filter((alarm) => alarm.rule === rule && alarm.subject !== "").map(({ subject }) => subject);
      const more = tasks.length > named ? ` and ${tasks.length - named} more` : "";
      const who = tasks.length === 0 ? "" : `: ${tasks.slice(0, named).join(", ")}${more}`;
      return { state: stateOf[severityOf(rule)], says: `${wordsOfRule(rule)}${who}` };
    })
    .toSorted((a, b) => states[b.state] - states[a.state]);
}
