import { signInUnknown } from "../../access/access.ts";
import { tokenUnknown, userCalled } from "../../access/access-store.ts";
import { newToken } from "../../access/new-token.ts";
import { hashPassword } from "../../access/password.ts";
import { factorUnknown } from "../../access/second-factor-store.ts";
import { readSecretKeys } from "../../access/secrets/read-keys.ts";
import { Secrets } from "../../access/secrets/secrets.ts";
import { hashOfSecret, keyEndMs, keyText, makeSecret, tokenText } from "../../access/worker-key.ts";
import { silenceSpanMs } from "../../alarms/alarms.ts";
import { comparisonObject } from "../../api/calendar-json.ts";
import { taskObject } from "../../api/task-json.ts";
import { applyWhole, itemPlanOf } from "../../apply/apply-items.ts";
import { planApply } from "../../apply/apply-plan.ts";
import { planId } from "../../apply/plan-json.ts";
import { pause, systemClock } from "../../base/clock.ts";
import { isCarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import type { Carillon } from "../../library/carillon.ts";
import { outcomes } from "../../run/run.ts";
import type { RunRecord } from "../../run/run-record.ts";
import { compareCalendar } from "../../slots/calendar-changes.ts";
import { nextOf } from "../../slots/upcoming-slots.ts";
import { everyScheduleOf } from "../../store/schedules-of.ts";
import type { Store } from "../../store/store.ts";
import { edited, reverted, saidAnew } from "../../task/edits.ts";
import { allGroups } from "../../task/group-store.ts";
import { statisticsOf } from "../../task/statistics/statistics.ts";
import { noCounters, type TaskRecord } from "../../task/task-record.ts";
import type {
  Cluster,
  ClusterAccess,
  ClusterAlarms,
  ClusterBundles,
  ClusterRuns,
  ClusterSecrets,
  ClusterTasks,
} from "../nodes/cluster.ts";
import { operator } from "../operator.ts";
import { relativesShown } from "../runs/run-relatives.ts";
import { storeRules } from "./alarm-rules.ts";
import { storeAudit } from "./audits.ts";
import { storeEvents } from "./events.ts";
import { storeHooks } from "./hooks.ts";

/** A list shows at most this number of users, tokens, secrets, or sign-ins of a user. */
const listedMost = 10_000;

type MakeChange = (reason: string) => { author: string; reason: string; nowMs: number };

/** Creates the access to a cluster through its store. The command's own process makes the changes. */
export function clusterByStore(tower: Carillon, store: Store, nowMs: () => number, place: string): Cluster {
  const author = operator();
  const change: MakeChange = (reason) => ({ author, reason, nowMs: nowMs() });
  return {
    by: "store",
    place,
    nowMs,
    tasks: storeTasks(tower, store, nowMs),
    bundles: storeBundles(store, nowMs),
    runs: storeRuns(tower, store, nowMs),
    operations: {
      preview: (bulk, show) => store.operations.preview({ ...bulk, author }, nowMs(), show),
      begin: (bulk, token) => store.operations.begin({ ...bulk, author }, token, nowMs()),
      find: (id) => store.operations.find(id),
      list: (limit) => store.operations.list(limit),
      stop: (id) => store.operations.stop(id, nowMs(), { author, reason: "" }),
      step: (id) => store.operations.step(nowMs(), id),
    },
    dead: store.deadLetters,
    calendars: {
      set: (name, content, reason, mayShrink) => store.calendars.set(name, content, change(reason), null, mayShrink),
      compare: async (name, content) =>
        comparisonObject(
          await compareCalendar(store, name, content, { nowMs: nowMs(), clock: systemClock }),
          new Map(),
          nowMs(),
        ),
      find: (name, version) => store.calendars.find(name, version),
      list: () => store.calendars.list(),
      remove: (name) => store.calendars.remove(name, change("")),
    },
    groups: {
      list: () => store.groups.list(nowMs(), allGroups),
      limit: (name, most, reason) => store.groups.limit(name, most, change(reason)),
    },
    quotas: {
      list: async () => (await store.quotas.list()).map((quota) => ({ ...quota, used: null })),
      set: (kind, name, given, reason) => store.quotas.set(kind, name, given, change(reason)),
    },
    drains: {
      list: () => store.drains.list(),
      drain: (node, reason) => store.drains.drain(node, change(reason)),
      resume: (node, reason) => store.drains.resume(node, change(reason)),
    },
    audit: storeAudit(store),
    access: storeAccess(tower, store, change, nowMs),
    secrets: storeSecrets(store, change),
    hooks: storeHooks(store.hooks, change),
    events: storeEvents(store.events, change),
    alarms: storeAlarms(store, change, nowMs),
    members: () => store.sessions.members(),
    // Read at least one term, because it contains the time at which the present leader was elected.
    terms: (limit) => store.sessions.terms(Math.max(1, limit)),
    coordination: async () => (await store.sessions.cluster()).coordination,
    close: () => tower.stop(),
  };
}

function storeTasks(tower: Carillon, store: Store, nowMs: () => number): ClusterTasks {
  const author = operator();
  return {
    async list({ of, owner } = {}) {
      let tasks: TaskRecord[] = [];
      let schedules = new Map<string, number>();
      if (of === undefined) {
        tasks = await store.tasks.list();
        schedules = await store.tasks.scheduleCounts(tasks.map(({ name }) => name));
      } else {
        // Named schedules have no schedules of their own, so their number is not queried.
        for await (const schedule of everyScheduleOf(store.tasks, of)) tasks.push(schedule);
      }
      if (owner !== undefined) tasks = tasks.filter(({ definition }) => definition.owner === owner);
      const counters = await store.tasks.counters(tasks.map(({ taskId }) => taskId));
      const now = nowMs();
      return tasks.map((task) => taskObject(task, counters.get(task.taskId), schedules.get(task.name) ?? 0, now));
    },
    async records(names) {
      if (names === undefined) return store.tasks.list();
      const found = await store.tasks.byNames(names);
      const missing = names.find((name) => !found.some((record) => record.name === name));
      // `byName` throws TASK_UNKNOWN for the first missing name.
      if (missing !== undefined) await store.tasks.byName(missing);
      return found;
    },
    async find(name) {
      const record = await store.tasks.byName(name);
      const counters = await store.tasks.counters([record.taskId]);
      const followers = await store.flow.followers(record.taskId);
      const releases = await store.tasks.releasesOf(name);
      const schedules = (await store.tasks.scheduleCounts([name])).get(name) ?? 0;
      return { record, counters: counters.get(record.taskId) ?? noCounters, schedules, followers, releases };
    },
    statistics: async (name, by, sinceMs) =>
      statisticsOf(store.statistics, await store.tasks.idOf(name), { by, sinceMs, nowMs: nowMs() }),
    versions: (name) => store.tasks.versions(name),
    async define(definition, reason) {
      const [before] = await store.tasks.byNames([definition.name]);
      const kept = saidAnew(definition, before?.definition);
      const { record, changed } = await tower.save(kept, { expectedVersion: before?.version ?? null, author, reason });
      return { version: record.version, changed };
    },
    edit: ({ definition }, options, given) => tower.save(edited(definition, options), { author, ...given }),
    revert: ({ definition }, parts, given) => tower.save(reverted(definition, parts), { author, ...given }),
    async pause(name, reason, untilMs) {
      const until = untilMs === null ? {} : { until: untilMs };
      const { started: running, ...waiting } = await tower.pause(name, { author, reason, ...until });
      return { running, ...waiting };
    },
    async resume(name, reason) {
      await tower.resume(name, { author, reason });
      return nextOf(await store.tasks.byName(name), nowMs());
    },
    async run(name, payload, options) {
      const { runId, created } = await tower.run(name, payload, options);
      return { run: runId, created };
    },
    remove: (name, reason) => tower.remove(name, { author, reason }),
  };
}

function storeBundles(store: Store, nowMs: () => number): ClusterBundles {
  return {
    async plan(wanted, items, options) {
      const names = wanted.map(({ name }) => name);
      const tasks = planApply(wanted, await store.applied.read(names, options.bundle), options);
      const plan = { ...tasks, ...(await itemPlanOf(store, items, options)) };
      return {
        plan,
        id: planId(plan),
        apply: (reason, author = operator()) => applyWhole(store, plan, { author, reason, nowMs }, systemClock),
      };
    },
  };
}

/** An ended run may become visible in the store up to this many ms later, so each query begins this much before the last known end. */
const lookBackMs = 5_000;
const lookEveryMs = 300;
const endsPerLook = 5_000;

function storeRuns(tower: Carillon, store: Store, nowMs: () => number): ClusterRuns {
  const author = operator();
  /** Returns the latest ended runs since `sinceMs`, up to `endsPerLook`; undefined while the store is unreachable. */
  const look = async (task: string | undefined, sinceMs: number): Promise<RunRecord[] | undefined> => {
    try {
      return await store.runs.list({
        ...(task === undefined ? {} : { task }),
        sinceMs,
        limit: endsPerLook,
        states: [...outcomes],
      });
    } catch (error) {
      if (isCarillonError(error, "STORE_UNREACHABLE")) return undefined;
      throw error;
    }
  };
  return {
    list: (filter) => store.runs.list(filter),
    find: (runId) => store.runs.find(runId),
    async card(runId) {
      const run = await store.runs.find(runId);
      const attempts = await store.runs.attempts(runId);
      const { letter, redrives } = await store.deadLetters.linksOf(runId);
      const relatives = await store.flow.relatives(runId, relativesShown);
      return { run, attempts, relatives, letter, redrives, late: await store.flow.lateResults(runId) };
    },
    logs: (runId, limit) => store.runs.logs(runId, limit),
    cancel: (runId, reason) => tower.cancel(runId, reason, author),
    rerun: (runId, reason) => store.operations.rerun(runId, { author, reason, nowMs: nowMs() }),
    decide: (runId, how, reason) => tower.decide(runId, how, reason, author),
    async follow(task, known, listener, signal) {
      const since = Math.round(nowMs());
      const seen = new Map(known.map(({ runId, endedMs }) => [runId, endedMs ?? since]));
      let latest = since;
      let away = false;
      while (!signal.aborted) {
        await pause(systemClock, lookEveryMs, signal);
        if (signal.aborted) break;
        const runs = await look(task, latest - lookBackMs);
        if (runs === undefined) {
          if (!away) listener.away();
          away = true;
          continue;
        }
        if (away) listener.back();
        away = false;
        if (runs.length === endsPerLook) listener.left();
        for (const run of runs.reverse()) {
          if (seen.has(run.runId) || (run.endedMs ?? 0) < since - lookBackMs) continue;
          seen.set(run.runId, run.endedMs ?? latest);
          latest = Math.max(latest, run.endedMs ?? latest);
          listener.ended(run);
        }
        for (const [runId, endedMs] of seen) if (endedMs < latest - 2 * lookBackMs) seen.delete(runId);
      }
    },
  };
}

function storeAccess(tower: Carillon, store: Store, change: MakeChange, nowMs: () => number): ClusterAccess {
  const { author } = change("");
  return {
    users: () => store.access.users("", listedMost),
    user: (name) => userCalled(store.access, name),
    createUser: async ({ password, ...user }, reason) =>
      store.access.createUser({ ...user, temporary: true, hash: await hashPassword(password) }, change(reason)),
    setPassword: async (name, password) =>
      store.access.changeUser(
        name,
        { hash: await hashPassword(password), temporary: true, disabled: false },
        change("set by the command line"),
      ),
    removeUser: (name, reason) => store.access.changeUser(name, { removed: true }, change(reason)),
    async signIns(name) {
      const { userId } = await userCalled(store.access, name);
      const place = { beforeId: Number.MAX_SAFE_INTEGER, limit: listedMost };
      const rows = await store.access.signIns(userId, place, tower.settings.signIns.idleMs, nowMs());
      return rows.map(({ hash: _, ...shown }) => shown);
    },
    async endSignIns(name, signInId, reason) {
      const which = signInId === null ? { keeping: null } : { signInId };
      const ended = await store.access.endSignIns(await userCalled(store.access, name), which, change(reason));
      if (ended === 0 && signInId !== null) throw signInUnknown(`${name} has`, signInId);
      return ended;
    },
    async resetSecondFactor(name, reason) {
      if (!(await store.secondFactors.remove(await userCalled(store.access, name), change(reason))))
        throw factorUnknown(name);
    },
    tokens: () => store.access.tokens(null, Number.MAX_SAFE_INTEGER, listedMost),
    async createToken(name, asked, reason) {
      const secret = makeSecret();
      const given = newToken(await userCalled(store.access, name), asked, nowMs());
      const token = await store.access.createToken({ ...given, hash: hashOfSecret(secret) }, change(reason));
      return { token, text: tokenText(token.tokenId, secret) };
    },
    async revokeToken(user, name, reason) {
      const owner = await store.access.userByName(user);
      if (!owner) throw tokenUnknown(name, user);
      await store.access.revokeToken(owner.userId, name, change(reason));
    },
    keys: () => store.workers.keys(),
    key: (name) => store.workers.keyByName(name),
    async createKey(name, groups, expiresIn) {
      const secret = makeSecret();
      const key = await store.workers.createKey(
        { name, groups, hash: hashOfSecret(secret), createdBy: author, expiresMs: keyEndMs(expiresIn, nowMs()) },
        nowMs(),
      );
      return { key, text: keyText(key.keyId, secret) };
    },
    revokeKey: (name) => store.workers.revokeKey(name, change("")),
  };
}

function storeSecrets({ secrets }: Store, change: MakeChange): ClusterSecrets {
  return {
    list: () => secrets.list("", listedMost),
    set: (name, value, tasks, reason) =>
      new Secrets(secrets, readSecretKeys(undefined)).set(name, value, tasks, change(reason)),
    remove: (name, reason) => secrets.remove(name, change(reason)),
    async rewrap(reason) {
      const keys = readSecretKeys(undefined);
      return { key: keys.present, ...(await new Secrets(secrets, keys).rewrap(change(reason), limits.secretsAtOnce)) };
    },
  };
}

function storeAlarms({ alarms }: Store, change: MakeChange, nowMs: () => number): ClusterAlarms {
  return {
    look: async (messages) => ({ open: await alarms.open(nowMs()), messages: await alarms.outbox(messages) }),
    acknowledge: (rule, task, reason) => alarms.see(rule, task, change(reason)),
    silences: () => alarms.silences(nowMs()),
    silence: (rule, task, span, reason) =>
      alarms.silence({ rule, task, untilMs: nowMs() + silenceSpanMs(span) }, change(reason)),
    unsilence: (silenceId, reason) => alarms.unsilence(silenceId, change(reason)),
    ...storeRules(alarms, change),
  };
}
