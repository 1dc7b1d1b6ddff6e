import { eligible, type LiveWorker } from "../../run/routing.ts";
import { plainAdvice, plainHosts, plainWords } from "../../settings/plain-store.ts";
import type { ClusterFacts, ServerFacts } from "../../store/postgres/runs/inspect.ts";
import { ageText, spanText } from "../screen/times.ts";
import { routeText } from "../tasks/policy-text.ts";
import { groupWorkers, workersOf } from "../tasks/tasks.ts";

/** One finding of the command `doctor`. A `problem` changes the exit code, a `remark` does not. */
export interface Check {
  what: string;
  verdict: "good" | "remark" | "problem";
  found: string;
  /** The advice to the operator; "" for a good finding. */
  advice: string;
}

const oldestNode = [20, 19] as const;
const oldestServer = 150_000;
const clockRemarkMs = 500;
/** The uncertainty of a measured clock offset (half a round trip) is mentioned only from this many ms on. */
const clockUncertainMs = 50;
/**
 * A snapshot that is older than this many ms causes a remark. Up to this age the dead rows of ended runs, which each claim has to pass, are
 * few.
 */
const snapshotRemarkMs = 180_000;
/** The limit for a snapshot of unknown age, in transactions since it was taken. */
const snapshotRemarkTransactions = 100_000;
const partitionsProblemMs = 86_400_000;
/**
 * Nodes create partitions 7 days ahead, not counting today. If the role may not create partitions, a remark appears when fewer days are
 * left.
 */
const partitionsRemarkMs = 7 * 86_400_000;
/** A recovery that is older than this many ms causes no remark. */
const recoveryRemarkMs = 7 * 86_400_000;
const mebibyte = 1_048_576;
/**
 * Limits for the free disk space of an embedded store. Its write-ahead log may take 512 MiB, and a single statement may need a new segment
 * of 16 MiB.
 */
const freeRemarkBytes = 1024 * mebibyte;
const freeProblemBytes = 64 * mebibyte;
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

/** Warns if the store is on another machine and its URL does not require TLS. */
export function checkWay(url: string, environment: NodeJS.ProcessEnv): Check[] {
  const hosts = plainHosts(url, environment);
  return hosts.length === 0 ? [] : [remark("store", plainWords(hosts), plainAdvice)];
}

/** Checks the PostgreSQL server and the version of the schema; works even if this version of Carillon cannot read the schema. */
export function checkServer(server: ServerFacts, place: string, schema: string): Check[] {
  const { version, versionNumber, readOnly, roundTripMs, migration, migrationKnown, serves } = server;
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
  checks.push(...disk(server), ...pooler(server));
  if (migration === 0) {
    checks.push(
      problem(
        "schema",
        `${schema}: no Carillon has used it yet`,
        "Check --store and --schema; or start carillon dev or server there.",
      ),
    );
  } else if (migration > migrationKnown && serves) {
    checks.push(
      remark(
        "schema",
        `${schema} is at version ${migration}, newer than this Carillon's ${migrationKnown}, which may work beside it`,
        "Right while you upgrade; bring all to the newer version.",
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
  checks.push(snapshots(server), ...clocks(server));
  return checks;
}

/** Compares cluster time with this machine's clock, and with the store's clock if that clock was stepped. */
function clocks({ roundTripMs, clockOffsetMs, clockShiftMs, clockSinceMs }: ServerFacts): Check[] {
  const uncertainMs = roundTripMs / 2;
  const [stepped, offsetMs] = [clockShiftMs !== 0, clockOffsetMs + clockShiftMs];
  const offset = spanText(Math.abs(offsetMs)) + (uncertainMs < clockUncertainMs ? "" : ` (± ${spanText(uncertainMs)})`);
  const side = (ms: number) => (ms > 0 ? "behind" : "ahead of");
  const time = stepped ? "cluster time" : "the store's";
  const since = clockSinceMs === null ? "" : ` since ${new Date(clockSinceMs).toISOString()}`;
  const found: Check[] = [];
  if (stepped)
    found.push(
      problem(
        "store's clock",
        `it is ${spanText(Math.abs(clockShiftMs))} ${side(clockShiftMs)} cluster time, which goes on without it${since}`,
        "Set the clock of the store's machine right (NTP); tasks fire on time meanwhile. If it is right as it is: carillon clock adopt.",
      ),
    );
  found.push(
    Math.abs(offsetMs) < clockRemarkMs
      ? good("clock", `this machine's is within ${offset} of ${time}`)
      : remark(
          "clock",
          `this machine's is ${offset} ${side(offsetMs)} ${time}`,
          stepped
            ? "Tasks fire by cluster time. If this machine's clock is right, cluster time is wrong: carillon clock adopt takes the store's."
            : "Tasks fire by the store's clock all the same; logs of this machine will not agree with it. Turn on NTP.",
        ),
  );
  return found;
}

const snapshotEnds = {
  transaction: "End that transaction, or its process: select pg_terminate_backend(PID).",
  prepared: "Finish it: commit prepared 'NAME' or rollback prepared 'NAME'.",
  slot: "Let its reader catch up, or drop it: select pg_drop_replication_slot('NAME').",
  standby: "A query on the standby holds it by hot_standby_feedback: end that query.",
};
const snapshotKinds = {
  transaction: "a transaction",
  prepared: "a prepared transaction",
  slot: "a replication slot",
  standby: "a standby",
};

/** Warns about an old snapshot: it keeps all rows that have died since, and claims and queries for due runs have to pass all of them. */
function snapshots({ snapshots: held }: ServerFacts): Check {
  const isOld = ({ ms, transactions }: (typeof held)[number]) =>
    ms === null ? transactions >= snapshotRemarkTransactions : ms >= snapshotRemarkMs;
  const text = ({ kind, holder, ms, transactions }: (typeof held)[number]) =>
    `${snapshotKinds[kind]} (${holder}), ${ms === null ? `${transactions} transactions ago` : `${spanText(ms)} ago`}`;
  const old = held.filter(isOld);
  if (old.length === 0) return good("snapshots", "none is old, so dead rows are removed");
  const advice = [...new Set(old.map(({ kind }) => snapshotEnds[kind]))].join(" ");
  return remark(
    "snapshots",
    `dead rows are kept since ${old.map(text).join(", ")}`,
    `Claims get slower while they are kept. ${advice}`,
  );
}

function disk({ disk: found }: ServerFacts): Check[] {
  if (found === null) return [];
  if (found === "room") return [good("disk", "the server could write 16 MB")];
  return [
    problem(
      "disk",
      "the server's disk is full: it could not write 16 MB (STORE_FULL, SQLSTATE 53100)",
      "Free space there, or enlarge the disk; a shorter retention keeps less history. Until then nothing is planned, claimed or ended.",
    ),
  ];
}

/** Reports the URL of an embedded store, for psql and pg_dump while a process has it open, and the free space on its disk. */
export function checkEmbedded({ url, data, freeBytes }: { url: string; data: string; freeBytes: number }): Check[] {
  const free = `${Math.floor(freeBytes / mebibyte)} MiB are free on the disk of ${data}`;
  const advice = "Free space there, or move the store to another disk: end its processes, move its folder.";
  return [
    good("connection", url),
    freeBytes < freeProblemBytes
      ? problem("data folder", free, advice)
      : freeBytes < freeRemarkBytes
        ? remark("data folder", free, advice)
        : good("data folder", free),
  ];
}

function pooler({ pooling, compiles }: ServerFacts): Check[] {
  if (pooling === "none") return [];
  if (pooling === "session") return [good("pooler", "a pooler in session mode, which changes nothing")];
  const found = "a pooler in transaction mode: statements are planned at each call, and signals are polled";
  const direct = "Give a direct URL as listenUrl to hear signals at once.";
  const jit =
    " Turn off jit for the store's role (alter role … set jit = off): it compiles statements that take milliseconds.";
  return [remark("pooler", found, `${direct}${compiles ? jit : ""}`)];
}

export function checkCluster(facts: ClusterFacts): Check[] {
  return [
    rights(facts),
    partitions(facts),
    leader(facts),
    members(facts),
    versions(facts),
    releases(facts),
    served(facts),
    overdue(facts),
    groupLimits(facts),
    stuck(facts),
    unplanned(facts),
    timeZones(facts),
    clusterTime(facts),
    recovery(facts),
  ];
}

function rights({ rightsLacking: lacking, maker: { role, owner } }: ClusterFacts): Check {
  if (lacking.length === 0) return good("rights", `role ${role} has those that a node needs`);
  return problem(
    "rights",
    `role ${role} lacks rights on ${list(lacking)}`,
    `A node of this role cannot do its work. Run carillon migrate --role ${role} as ${owner}: it grants them.`,
  );
}

function partitions({ partitions: tables, maker, nowMs }: ClusterFacts): Check {
  const short = tables.filter(({ untilMs }) => untilMs - nowMs < partitionsProblemMs);
  const least = Math.min(...tables.map(({ untilMs }) => untilMs - nowMs));
  const { role, owner, may } = maker;
  const who = may ? `${role} may make them` : `${owner} makes them, ${role} may not`;
  const byOwner = `Run carillon migrate as ${owner}, daily: it makes them ahead and drops old ones.`;
  if (tables.length === 0 || short.length > 0) {
    return problem(
      "partitions",
      `${list(short.map(({ table }) => table)) || "none"}: less than a day ahead; ${who}`,
      may ? "The leader makes them. Is one running, and may its role create tables?" : byOwner,
    );
  }
  const found = `made for ${spanText(least)} ahead; ${who}`;
  return !may && least < partitionsRemarkMs ? remark("partitions", found, byOwner) : good("partitions", found);
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
  const still = all.filter((member) => member.stillMs !== null && !silent(member, nowMs));
  if (gone.length === 0 && still.length > 0)
    return remark(
      "members",
      `${found}; the event loop stands still of ${list(still.map(({ node, stillMs }) => `${node}, for ${spanText(stillMs ?? 0)}`))}`,
      "A handler there computes without a pause. Its process starts nothing meanwhile; after its setting standstill it is taken for dead.",
    );
  const draining = all.filter((member) => member.draining && !silent(member, nowMs));
  if (gone.length === 0 && draining.length > 0)
    return remark(
      "members",
      `${found}; no runs are taken by ${list(draining.map(({ node }) => node))}, drained by an operator or about to stop`,
      "See carillon nodes. One that was drained takes runs again after carillon nodes resume NAME.",
    );
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

/**
 * Lists the releases of the programs that define tasks, and warns if their labels (the part of a release before its last `+`) differ. That
 * is normal during a rolling update.
 */
function releases({ members: all }: ClusterFacts): Check {
  const names = [...new Set(all.flatMap(({ settings }) => settings?.release ?? []))];
  const labels = new Set(names.map((name) => name.slice(0, name.lastIndexOf("+"))));
  if (names.length === 0) return good("releases", "nobody defines tasks in code");
  if (labels.size === 1)
    return good(
      "releases",
      `all who define tasks are of ${list(names)}${names.length > 1 ? ", which differ in them" : ""}`,
    );
  return remark(
    "releases",
    `members are of ${list(names)}`,
    "Right while you roll out, or where programs have versions of their own: `carillon tasks show` says whose definition a task has.",
  );
}

const called = ({ name, definition: { group, of } }: ClusterFacts["tasks"][number]) => ({
  name,
  group,
  of: of ?? null,
});

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
    "Start one that serves the group: carillon worker FILE. One that is drained does not count: carillon nodes resume NAME.",
  );
}

const asLive = ({ node, sessionId, labels = {}, capacity = null }: ClusterFacts["members"][number]): LiveWorker => ({
  node,
  sessionId,
  labels,
  capacity,
  load: 0,
  ofTask: 0,
  release: null,
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

function unplanned({ unplanned: found, leadership, members: all, nowMs }: ClusterFacts): Check {
  if (found.length === 0) return good("unplanned slots", "none");
  const words = found.map(({ task, slotMs }) => `${task}, due ${ageText(slotMs, nowMs)}`);
  const leading = all.find((member) => member.sessionId === leadership.sessionId && !silent(member, nowMs));
  const advice = leading
    ? `${leading.node} leads, and does not plan them: its log has why. Start its process anew if that is no help; each task's misfire policy decides about them then.`
    : "No scheduler plans. When one starts, each task's misfire policy decides about them.";
  return problem("unplanned slots", list(words), advice);
}

/** Warns if a time zone's rules have changed, because the tasks of the zone follow the old rules until they are planned again. */
function timeZones({ zones: { count, newest }, zonesBehind }: ClusterFacts): Check {
  if (zonesBehind.length > 0)
    return remark(
      "time zones",
      `${list(zonesBehind)}: planned by rules from before a change of their zone`,
      "The leader plans them anew within the hour. A node that cannot read one of them says so in its log.",
    );
  if (count === 0) return good("time zones", "no task uses another than UTC");
  const by = newest === null ? "" : `, the newest of version ${newest} of the time zone database`;
  return good("time zones", `the rules of ${count} are in the store${by}`);
}

/**
 * Warns if cluster time went back: slots planned before are still ahead, and no further ones are planned until it has caught up.
 */
function clusterTime({ timeBack, nowMs }: ClusterFacts): Check {
  if (!timeBack) return good("cluster time", "it is past all that was seen of it");
  const { reachedMs, sinceMs, replanned } = timeBack;
  const since = sinceMs === null ? "" : ` since ${new Date(sinceMs).toISOString()}`;
  const behind = `it is ${spanText(reachedMs - nowMs)} behind what it has been${since}`;
  if (replanned) return good("cluster time", `${behind}, and tasks were planned from then on (carillon clock replan)`);
  return problem(
    "cluster time",
    `${behind}: nothing that was planned by then fires before ${new Date(reachedMs).toISOString()}`,
    "If the clock of the store's machine is wrong, stop the nodes, set it right (NTP) and start them. If it is right now, and was ahead before: wait, for slots up to then have run or are told of; or carillon clock replan, which plans from now on what has not run. None runs twice.",
  );
}

/** Reports the store's last fail-over or restore. */
function recovery({ recovery: last, nowMs }: ClusterFacts): Check {
  if (last === undefined) return good("recovery", "none: the store never went back");
  const { beganMs, endedMs, backMs, runs, verdicts, missing, inDoubt } = last;
  const began = `${new Date(beganMs).toISOString()}, ${ageText(beganMs, nowMs)}`;
  if (endedMs === null)
    return problem(
      "recovery",
      `under way since ${began}: no work is done`,
      "It ends when all nodes that were at work have told what they remember, or their session timeouts have passed. Is a process of the cluster running?",
    );
  const by = backMs === 0 ? "by less than a beat" : spanText(backMs ?? 0);
  const back = backMs === null ? "by how much the store went back is not known" : `the store went back ${by}`;
  const found = `${began}: ${back}; ${runs} runs and ${verdicts} results were put back`;
  const isRecent = nowMs - endedMs < recoveryRemarkMs;
  if (missing.length === 0)
    return isRecent
      ? remark(
          "recovery",
          found,
          "All nodes that were at work told what they remember: nothing is to be done. See docs/operate/postgresql.md.",
        )
      : good("recovery", found);
  const words = `${found}; ${missing.join(", ")} did not come: what they did last is not known, and ${inDoubt} runs at most may have run twice`;
  const advice = `Compare what these nodes did in the last seconds before ${new Date(beganMs).toISOString()} with the runs that were due then.`;
  return isRecent ? remark("recovery", words, advice) : good("recovery", words);
}
