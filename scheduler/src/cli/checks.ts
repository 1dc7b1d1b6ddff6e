import { eligible, type LiveWorker } from "../routing.ts";
import type { ClusterFacts, ServerFacts } from "../store/inspect.ts";
import { routeText } from "./policy-text.ts";
import { groupWorkers, workersOf } from "./tasks.ts";
import { ageText, spanText } from "./times.ts";

/** What doctor found out about one thing. `problem` makes it say so by its exit code, `remark` does not. */
export interface Check {
  what: string;
  verdict: "good" | "remark" | "problem";
  found: string;
  /** What to do; empty when it is good. */
  advice: string;
}

const oldestNode = [20, 19] as const;
const oldestServer = 150_000;
const clockRemarkMs = 500;
/** Half a round trip: below this, nobody needs to be told how far a measured offset may be off. */
const clockUncertainMs = 50;
const partitionsProblemMs = 86_400_000;
const named = 3;

export const good = (what: string, found: string): Check => ({ what, verdict: "good", found, advice: "" });
export const remark = (what: string, found: string, advice: string): Check => ({
  what,
  verdict: "remark",
  found,
  advice,
});
export const problem = (what: string, found: string, advice: string): Check => ({
  what,
  verdict: "problem",
  found,
  advice,
});

export const list = (names: string[]) =>
  `${names.slice(0, named).join(", ")}${names.length > named ? ` and ${names.length - named} more` : ""}`;

export function checkNode(nodeVersion: string): Check {
  const [major = 0, minor = 0] = nodeVersion.split(".").map(Number);
  const fits = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
  return fits
    ? good("Node.js", nodeVersion)
    : problem("Node.js", `${nodeVersion} is too old`, `Install Node.js ${oldestNode.join(".")} or newer.`);
}

/** The server and the schema, before anything of Carillon's is read. */
export function checkServer(server: ServerFacts, place: string, schema: string): Check[] {
  const { version, versionNumber, readOnly, roundTripMs, clockOffsetMs, migration, migrationKnown } = server;
  const checks = [
    versionNumber < oldestServer
      ? problem("store", `${place}: PostgreSQL ${version} is too old`, "Use PostgreSQL 15 or newer.")
      : good(
          "store",
          `${place}, version ${version}, answers in ${roundTripMs < 10 ? roundTripMs.toFixed(1) : Math.round(roundTripMs)} ms`,
        ),
    readOnly
      ? problem("writable", "it accepts no writes", "It is a replica or set to read only: give the URL of the primary.")
      : good("writable", "it accepts writes"),
  ];
  if (migration === 0) {
    checks.push(
      problem(
        "schema",
        `${schema}: no Carillon has used it yet`,
        "Check --store and --schema; or start carillon dev or server there.",
      ),
    );
  } else if (migration > migrationKnown) {
    checks.push(
      problem(
        "schema",
        `${schema} is at version ${migration}, this Carillon knows ${migrationKnown}`,
        "Upgrade this Carillon.",
      ),
    );
  } else if (migration < migrationKnown) {
    checks.push(
      remark(
        "schema",
        `${schema} is at version ${migration}, this Carillon's is ${migrationKnown}`,
        "The next process of this version that starts migrates it.",
      ),
    );
  } else checks.push(good("schema", `${schema} at version ${migration}, up to date`));
  const uncertainMs = roundTripMs / 2;
  const offset =
    spanText(Math.abs(clockOffsetMs)) + (uncertainMs < clockUncertainMs ? "" : ` (± ${spanText(uncertainMs)})`);
  checks.push(
    Math.abs(clockOffsetMs) < clockRemarkMs
      ? good("clock", `this machine's is within ${offset} of the store's`)
      : remark(
          "clock",
          `this machine's is ${offset} ${clockOffsetMs > 0 ? "behind" : "ahead of"} the store's`,
          "Tasks fire by the store's clock all the same; logs of this machine will not agree with it. Turn on NTP.",
        ),
  );
  return checks;
}

export function checkCluster(facts: ClusterFacts): Check[] {
  return [
    partitions(facts),
    leader(facts),
    members(facts),
    versions(facts),
    served(facts),
    overdue(facts),
    groupLimits(facts),
    stuck(facts),
    unplanned(facts),
  ];
}

function partitions({ partitions: tables, nowMs }: ClusterFacts): Check {
  const short = tables.filter(({ untilMs }) => untilMs - nowMs < partitionsProblemMs);
  const least = Math.min(...tables.map(({ untilMs }) => untilMs - nowMs));
  if (tables.length === 0 || short.length > 0) {
    return problem(
      "partitions",
      `${list(short.map(({ table }) => table)) || "none"}: less than a day ahead`,
      "The leader makes them. Is one running, and may its user create tables?",
    );
  }
  return good("partitions", `made for ${spanText(least)} ahead`);
}

export const silent = ({ seenMs, timeoutMs }: { seenMs: number; timeoutMs: number }, nowMs: number) =>
  nowMs - seenMs > timeoutMs;

function leader({ leadership, members: all, nowMs }: ClusterFacts): Check {
  const holder = all.find(({ sessionId }) => sessionId === leadership.sessionId);
  if (holder && !silent(holder, nowMs)) return good("leader", `${holder.node} leads, term ${leadership.term}`);
  const found = holder
    ? `${holder.node} holds term ${leadership.term}, but is silent since ${spanText(nowMs - holder.seenMs)}`
    : "nobody leads";
  const scheduling = all.filter((member) => member.role === "node" && !silent(member, nowMs));
  const advice = "Start carillon server, or a process with your tasks.";
  if (scheduling.length > 0 && scheduling.every(({ settings }) => settings?.observer))
    return problem(
      "leader",
      `${found}: all that schedule are observers`,
      `They plan each slot 2 s ahead only. ${advice}`,
    );
  return problem("leader", found, `No slots are planned. ${advice}`);
}

function members({ members: all, nowMs }: ClusterFacts): Check {
  const gone = all.filter((member) => silent(member, nowMs));
  const found = `${all.length - gone.length} live`;
  if (gone.length === 0) return good("members", found);
  const names = list(gone.map(({ node, seenMs }) => `${node}, seen ${ageText(seenMs, nowMs)}`));
  return remark(
    "members",
    `${found}, ${gone.length} silent: ${names}`,
    "The others end their sessions; until someone runs, nobody does.",
  );
}

function versions({ members: all }: ClusterFacts): Check {
  const seen = [...new Set(all.map(({ version }) => version))];
  if (seen.length <= 1) return good("versions", seen[0] === undefined ? "nobody runs" : `all run ${seen[0]}`);
  return remark("versions", `members run ${seen.join(" and ")}`, "Right while you upgrade; bring all to one version.");
}

const called = ({ name, definition: { group } }: ClusterFacts["tasks"][number]) => ({ name, group });

function served({ tasks, members: all, nowMs }: ClusterFacts): Check {
  const active = tasks.filter(({ paused }) => paused === null);
  const without = active.filter(({ definition }) => groupWorkers(all, definition.group, nowMs).length === 0);
  const unhandled = active.filter(
    (task) => !without.includes(task) && workersOf(all, called(task), nowMs).length === 0,
  );
  const unfit = active.filter((task) => {
    const workers = workersOf(all, called(task), nowMs);
    return workers.length > 0 && eligible(task.definition, workers.map(asLive)).length === 0;
  });
  if (without.length === 0 && unhandled.length > 0)
    return problem(
      "workers",
      `no live worker of its group has a handler for ${list(unhandled.map(({ name }) => name))}`,
      "Start one that has it: remote workers say what they can run when they join.",
    );
  if (without.length === 0 && unfit.length > 0)
    return problem(
      "workers",
      `no live worker of its group is one that ${list(unfit.map(({ name, definition }) => `${name} may go to (${routeText(definition)})`))}`,
      "Start one with that name (--name) or those labels (--label), or edit the task's route or labels.",
    );
  if (without.length === 0)
    return good(
      "workers",
      active.length === 0 ? "no tasks yet" : `every group of ${active.length} tasks has a live worker`,
    );
  const groups = [...new Set(without.map(({ definition }) => definition.group))];
  return problem(
    "workers",
    `no live worker for group ${list(groups)}: ${list(without.map(({ name }) => name))}`,
    "Start one that serves the group: carillon worker FILE.",
  );
}

const asLive = ({ node, sessionId, labels = {}, capacity = null }: ClusterFacts["members"][number]): LiveWorker => ({
  ...{ node, sessionId, labels, capacity, load: 0, ofTask: 0 },
});

function overdue({ overdue: found, nowMs }: ClusterFacts): Check {
  if (found.length === 0) return good("overdue runs", "none");
  const words = found.map(
    ({ task, count, oldestDueMs }) => `${count} of ${task}, the oldest due ${ageText(oldestDueMs, nowMs)}`,
  );
  return problem(
    "overdue runs",
    list(words),
    "No worker takes them: is one of their group alive, does it have their handler, is it at its concurrency?",
  );
}

function groupLimits({ fullGroups, nowMs }: ClusterFacts): Check {
  if (fullGroups.length === 0) return good("group limits", "none holds up a run");
  const words = fullGroups.map(
    ({ group, limit, waiting, oldestDueMs }) =>
      `${group} is at its limit of ${limit}, ${waiting} wait, the oldest due ${ageText(oldestDueMs, nowMs)}`,
  );
  return remark(
    "group limits",
    list(words),
    "Right as long as they catch up; else raise it: carillon groups limit NAME N.",
  );
}

function stuck({ stuck: found }: ClusterFacts): Check {
  if (found.length === 0) return good("stuck runs", "none");
  const words = found.map(
    ({ runId, task, node, why }) => `run ${runId} of ${task} on ${node ?? "a lost node"}: ${why}`,
  );
  return problem(
    "stuck runs",
    list(words),
    "See each with carillon runs show. A live node takes back what a dead one had; carillon runs cancel ends the others.",
  );
}

function unplanned({ unplanned: found, nowMs }: ClusterFacts): Check {
  if (found.length === 0) return good("unplanned slots", "none");
  const words = found.map(({ task, slotMs }) => `${task}, due ${ageText(slotMs, nowMs)}`);
  return problem(
    "unplanned slots",
    list(words),
    "No scheduler plans. When one starts, each task's misfire policy decides about them.",
  );
}
