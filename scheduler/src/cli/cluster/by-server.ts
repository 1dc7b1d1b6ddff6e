import type { Client } from "../../api/client.ts";
import type { Answer } from "../../api/contract.ts";
import { isoTime } from "../../api/run-json.ts";
import { textsOfLabels } from "../../api/run-labels.ts";
import { isCarillonError } from "../../base/errors.ts";
import type { OperationFilter } from "../../run/operations.ts";
import type { TaskOptions } from "../../task/task.ts";
import { givenOptions } from "../../task/written.ts";
import type {
  Bulk,
  Cluster,
  ClusterAccess,
  ClusterAlarms,
  ClusterBundles,
  ClusterCalendars,
  ClusterOperations,
  ClusterSecrets,
  ClusterTasks,
} from "../nodes/cluster.ts";
import { serverRules } from "./alarm-rules.ts";
import { serverAudit } from "./audits.ts";
import { each, firstAnswerMs, pages, patientClient, type ServerChoice, unlessDenied, why } from "./calls.ts";
import { serverEvents } from "./events.ts";
import { serverHooks } from "./hooks.ts";
import { appliedItemRecord, appliedRecord, givenParts, planRecord, plansOnlyTasks } from "./plan-records.ts";
import {
  alarmRecord,
  calendarRecord,
  memberRecord,
  ms,
  operationRecord,
  outboxRow,
  releaseRecord,
  secretRecord,
  silenceRecord,
  taskRecord,
  termRecord,
  versionRecord,
} from "./records.ts";
import { serverRuns } from "./server-runs.ts";

/** Stands for the session of a leader that the user has no right to see. */
const unseenSession = 0;

/** Creates the access to a cluster through one of its servers. @throws SERVER_UNREACHABLE, SIGN_IN_NEEDED */
export async function clusterByServer(choice: ServerChoice): Promise<Cluster> {
  const over = new AbortController();
  const offsetMs = await clockOffset(patientClient(choice, over.signal, firstAnswerMs));
  const api = patientClient(choice, over.signal);
  const nowMs = () => Date.now() + offsetMs;
  const cluster: Cluster = {
    by: "server",
    place: `the server at ${choice.url}`,
    nowMs,
    tasks: serverTasks(api),
    bundles: serverBundles(api),
    runs: serverRuns(api),
    operations: serverOperations(api),
    dead: {
      async groups(filter) {
        const { groups, total } = await api.listDeadGroups(lettersOf(filter));
        return {
          groups: groups.map(({ first, last, lastRun, ...rest }) => ({
            ...rest,
            firstMs: Date.parse(first),
            lastMs: Date.parse(last),
            lastRunId: lastRun,
          })),
          total,
        };
      },
      async letters(filter, limit) {
        const letters = await pages((page) => api.listDeadLetters({ ...lettersOf(filter), ...page }), limit);
        return letters.map(({ run, ended, ...rest }) => ({
          ...rest,
          runId: run,
          endedMs: Date.parse(ended),
          state: "open" as const,
          redrivenBy: null,
        }));
      },
    },
    calendars: serverCalendars(api),
    groups: {
      async list() {
        const groups = await pages((page) => api.listGroups(page));
        return groups.map(({ changed, ...rest }) => ({
          ...rest,
          changed: changed && { atMs: Date.parse(changed.at), by: changed.by, why: changed.why },
        }));
      },
      limit: (group, limit, reason) => api.limitGroup({ group, limit, ...why(reason) }),
    },
    quotas: {
      async list() {
        const quotas = await pages((page) => api.listQuotas(page));
        return quotas.map(({ changed, ...rest }) => ({
          ...rest,
          changed: { atMs: Date.parse(changed.at), by: changed.by, why: changed.why },
        }));
      },
      set: (kind, name, given, reason) => api.setQuota({ kind, name, ...given, ...why(reason) }),
    },
    drains: {
      async list() {
        // The API shows nodes only to users with a role in every namespace.
        const drained = await unlessDenied(
          pages((page) => api.listDrained(page)),
          [],
        );
        return drained.map(({ since, ...rest }) => ({ ...holdsOf(rest), sinceMs: Date.parse(since) }));
      },
      drain: async (node, reason) => holdsOf(await api.drainNode({ node, ...why(reason) })),
      resume: (node, reason) => api.resumeNode({ node, ...why(reason) }),
    },
    audit: serverAudit(api),
    access: serverAccess(api),
    secrets: serverSecrets(api),
    hooks: serverHooks(api),
    events: serverEvents(api),
    alarms: serverAlarms(api),
    async members() {
      // To a user with access to one namespace, the API shows no nodes, only the workers that serve this namespace.
      const [nodes, workers, { term, leader }] = await Promise.all([
        unlessDenied(
          pages((page) => api.listNodes(page)),
          [],
        ),
        pages((page) => api.listWorkers(page)),
        api.getCluster(),
      ]);
      const members = new Map([...nodes, ...workers].map((one) => [one.sessionId, memberRecord(one)]));
      const leading = nodes.find(({ leads }) => leads)?.sessionId ?? (leader === null ? null : unseenSession);
      const byName = [...members.values()].sort((a, b) => (a.node < b.node ? -1 : 1));
      return { members: byName, leadership: { term, sessionId: leading } };
    },
    terms: async (limit) =>
      (
        await unlessDenied(
          pages((page) => api.listTerms(page), Math.max(1, limit)),
          [],
        )
      ).map(termRecord),
    coordination: async () => (await api.getCluster()).coordination,
    close: async () => over.abort(),
  };
  return cluster;
}

const holdsOf = <Given extends Pick<Answer<"drainNode">, "runs">>({ runs, ...rest }: Given) => ({
  ...rest,
  runs: runs.map(({ run, task, started }) => ({ run, task, startedMs: started === null ? null : Date.parse(started) })),
});

/**
 * Returns the server's clock minus this machine's, in ms; 0 if the server denies access to the cluster's state. The call also fails early
 * if the server is unreachable or refuses the token.
 */
async function clockOffset(api: Client): Promise<number> {
  const began = Date.now();
  try {
    const { now } = await api.getCluster();
    return Date.parse(now) - (began + Date.now()) / 2;
  } catch (error) {
    // A token without access to the cluster's state may still have other rights, so compute ages with this machine's clock.
    if (isCarillonError(error, "ACCESS_DENIED")) return 0;
    throw error;
  }
}

const lettersOf = ({ task, matching, group, fingerprint, labels, sinceMs, untilMs }: OperationFilter) => ({
  ...(task === undefined ? {} : { task }),
  ...(matching === undefined ? {} : { matching }),
  ...(group === undefined ? {} : { group }),
  ...(fingerprint === undefined ? {} : { fingerprint }),
  ...(labels === undefined ? {} : { label: textsOfLabels(labels) }),
  ...(sinceMs === undefined ? {} : { since: isoTime(sinceMs) }),
  ...(untilMs === undefined ? {} : { until: isoTime(untilMs) }),
});

export function serverTasks(api: Client): ClusterTasks {
  const recordOf = async (task: Answer<"getTask">) => {
    const rule = (task.definition as { calendar?: { name: string } }).calendar;
    return taskRecord(task, rule && (await api.getCalendar({ calendar: rule.name })));
  };
  const record = async (name: string) => recordOf(await api.getTask({ task: name }));
  return {
    // The server creates these items with the same function that `clusterByStore` calls, so they already have the right form.
    list: async ({ of, owner } = {}) => {
      const which = { ...(of === undefined ? {} : { of }), ...(owner === undefined ? {} : { owner }) };
      return (await pages((page) => api.listTasks({ ...page, ...which }))) as Awaited<ReturnType<ClusterTasks["list"]>>;
    },
    async records(names) {
      return each(names ?? (await pages((page) => api.listTasks(page))).map(({ name }) => name), record);
    },
    async find(name) {
      const asked = { task: name };
      const [task, { followers }, { releases }] = await Promise.all([
        api.getTask(asked),
        api.listFollowers(asked),
        api.listTaskReleases(asked),
      ]);
      return {
        record: await recordOf(task),
        counters: task.counters,
        schedules: task.schedules,
        followers,
        releases: releases.map(releaseRecord),
      };
    },
    async statistics(task, by, sinceMs) {
      const since = sinceMs === undefined ? {} : { since: isoTime(sinceMs) };
      const { periods, timesUntil, worse } = await api.getTaskStatistics({ task, by, ...since });
      return {
        periods: periods.map(({ from, ...figures }) => ({ fromMs: Date.parse(from), ...figures })),
        timesUntilMs: timesUntil === null ? null : Date.parse(timesUntil),
        worse,
      };
    },
    versions: async (task) => (await pages((page) => api.listTaskVersions({ task, ...page }))).map(versionRecord),
    async define(definition, reason) {
      const given = { task: definition.name, options: givenOptions(definition) as never, ...why(reason) };
      const { version, changed } = await api.defineTask(given);
      return { version, changed };
    },
    async edit({ name }, options: TaskOptions, { expectedVersion, reason }) {
      const given = { task: name, options: options as never, ...why(reason) };
      const { changed } = await api.editTask(given, { ifVersion: expectedVersion });
      return { record: await record(name), changed };
    },
    async revert({ name }, parts, { expectedVersion, reason }) {
      const given = { task: name, ...(parts.length === 0 ? {} : { parts: parts as string[] }), ...why(reason) };
      const { changed } = await api.revertTask(given, { ifVersion: expectedVersion });
      return { record: await record(name), changed };
    },
    pause: (task, reason, untilMs) =>
      api.pauseTask({ task, ...why(reason), ...(untilMs === null ? {} : { until: isoTime(untilMs) }) }),
    async resume(task, reason) {
      const { next } = await api.resumeTask({ task, ...why(reason) });
      return next === null ? null : Date.parse(next);
    },
    run: (task, payload, { at, ...options }) =>
      api.runTask({ task, payload, ...options, at: at === undefined ? undefined : isoTime(at) }),
    async remove(task, reason) {
      await api.removeTask({ task, ...why(reason) });
    },
  };
}

function serverBundles(api: Client): ClusterBundles {
  return {
    async plan(wanted, items, options) {
      const tasks = wanted.map((one) => ({ task: one.name, options: givenOptions(one) as never }));
      const own = { ...options, tasks, ...givenParts(items, false) };
      let asked = { ...own, ...givenParts(items, options.prune) };
      const answer = await api.planBundle(asked).catch((error: unknown) => {
        if (!plansOnlyTasks(error) || "alarms" in own || "hooks" in own) throw error;
        asked = own;
        return api.planBundle(own);
      });
      const plan = planRecord(answer);
      return {
        plan,
        id: answer.plan,
        async apply(reason) {
          const given = { ...asked, plan: answer.plan, ...why(reason) };
          const { applied, appliedItems = [] } = await api.applyBundle(given);
          return {
            tasks: applied.map((one) => appliedRecord(one, plan)),
            items: appliedItems.map((one) => appliedItemRecord(one, plan)),
          };
        },
      };
    },
  };
}

function serverOperations(api: Client): ClusterOperations {
  const asked = ({ kind, filter, range, pauseUntilMs }: Bulk) => {
    const { sinceMs, untilMs, ...named } = filter;
    const times = lettersOf({
      ...(sinceMs === undefined ? {} : { sinceMs }),
      ...(untilMs === undefined ? {} : { untilMs }),
    });
    const { fromMs = 0, toMs = 0, ...rest } = range ?? {};
    return {
      kind,
      filter: { ...named, ...times },
      ...(range === undefined ? {} : { range: { ...rest, from: isoTime(fromMs), to: isoTime(toMs) } }),
      ...(pauseUntilMs === undefined ? {} : { pauseUntil: isoTime(pauseUntilMs) }),
    };
  };
  return {
    async preview(bulk, show) {
      const { total, first } = await api.previewOperation(asked(bulk));
      return { total, first: first.slice(0, show) };
    },
    begin: async (bulk, token) =>
      (await api.beginOperation({ ...asked(bulk), ...why(bulk.reason) }, { idempotencyKey: token })).operation,
    find: async (operation) => operationRecord(await api.getOperation({ operation })),
    list: async (limit) => (await pages((page) => api.listOperations(page), limit)).map(operationRecord),
    stop: async (operation) => (await api.stopOperation({ operation })).state,
    // The leader executes operations, so a client executes no steps.
    step: async () => ({ stepped: null, nextMs: null }),
  };
}

function serverCalendars(api: Client): ClusterCalendars {
  const versionOf = async (calendar: string): Promise<number> => {
    try {
      return (await api.getCalendar({ calendar })).version;
    } catch (error) {
      if (isCarillonError(error, "CALENDAR_UNKNOWN")) return 0;
      throw error;
    }
  };
  return {
    async set(calendar, content, reason, mayShrink) {
      const before = await versionOf(calendar);
      const allowed = mayShrink ? { allowShrink: true } : {};
      const is = await api.setCalendar({ calendar, ...content, ...allowed, ...why(reason) });
      const { name, version, zone, weekend, holidays, tasks } = is;
      const changed = version !== before;
      return { calendar: { name, version, zone, weekend, holidays }, changed, tasks: changed ? tasks : [] };
    },
    compare: async (calendar, content) => {
      const { notices: _, ...compared } = await api.compareCalendar({ calendar, ...content });
      return compared;
    },
    find: async (calendar, version) =>
      calendarRecord(await api.getCalendar({ calendar, ...(version === undefined ? {} : { version }) })),
    list: async () => (await pages((page) => api.listCalendars(page))).map(calendarRecord),
    remove: async (calendar) => void (await api.removeCalendar({ calendar })),
  };
}

function serverAccess(api: Client): ClusterAccess {
  const user = ({ name, role, grants, created, createdBy, disabled, secondFactor }: Answer<"createUser">) => ({
    // The answer lists the role in every namespace as a grant for `*`, but a user record has it in `role`.
    name,
    role,
    grants: grants.filter(({ namespace }) => namespace !== "*"),
    createdMs: Date.parse(created),
    createdBy,
    disabledMs: ms(disabled),
    secondFactorMs: ms(secondFactor),
  });
  const token = ({ created, expires, revoked, ...rest }: Answer<"getToken">) => ({
    ...rest,
    createdMs: Date.parse(created),
    expiresMs: Date.parse(expires),
    revokedMs: ms(revoked),
  });
  const key = ({ name, groups, created, by, expires, revoked }: Answer<"revokeWorkerKey">) => ({
    name,
    groups,
    createdMs: Date.parse(created),
    createdBy: by,
    expiresMs: ms(expires),
    revokedMs: ms(revoked),
  });
  return {
    users: async () => (await pages((page) => api.listUsers(page))).map(user),
    user: async (name) => user(await api.getUser({ user: name })),
    createUser: async (given, reason) => user(await api.createUser({ ...given, temporary: true, ...why(reason) })),
    setPassword: async (name, password) =>
      user(await api.changeUser({ user: name, password, temporary: true, disabled: false })),
    removeUser: async (name, reason) => user(await api.removeUser({ user: name, ...why(reason) })),
    signIns: async (name) =>
      (await pages((page) => api.listSignInsOf({ user: name, ...page }))).map(
        ({ signIn, begun, seen, expires, address, agent }) => ({
          signInId: signIn,
          begunMs: Date.parse(begun),
          seenMs: Date.parse(seen),
          expiresMs: Date.parse(expires),
          address,
          agent,
        }),
      ),
    async endSignIns(user, signIn, reason) {
      if (signIn === null) return (await api.endSignInsOf({ user, ...why(reason) })).ended;
      await api.endSignInOf({ user, signIn, ...why(reason) });
      return 1;
    },
    resetSecondFactor: async (user, reason) => void (await api.resetSecondFactor({ user, ...why(reason) })),
    tokens: async () => (await pages((page) => api.listTokens(page))).map(token),
    async createToken(user, { expiresInMs: expiresIn, ...asked }, reason) {
      const ends = expiresIn === undefined ? {} : { expiresIn };
      const { secret, ...made } = await api.createToken({ ...asked, user, ...ends, ...why(reason) });
      return { token: token(made), text: secret };
    },
    revokeToken: async (user, name, reason) => void (await api.revokeToken({ token: name, user, ...why(reason) })),
    keys: async () => (await pages((page) => api.listWorkerKeys(page))).map(key),
    key: async (name) => key(await api.getWorkerKey({ key: name })),
    async createKey(name, groups, expiresIn) {
      const ends = expiresIn === undefined ? {} : { expiresIn };
      const { secret, ...made } = await api.createWorkerKey({ name, groups, ...ends });
      return { key: key(made), text: secret };
    },
    revokeKey: async (name) => key(await api.revokeWorkerKey({ key: name })),
  };
}

function serverSecrets(api: Client): ClusterSecrets {
  return {
    list: async () => (await pages((page) => api.listSecrets(page))).map(secretRecord),
    async set(secret, value, tasks, reason) {
      const given = { secret, value, ...(tasks === undefined ? {} : { tasks }), ...why(reason) };
      return secretRecord(await api.setSecret(given));
    },
    remove: async (secret, reason) => void (await api.removeSecret({ secret, ...why(reason) })),
    rewrap: (reason) => api.rewrapSecrets(why(reason)),
  };
}

function serverAlarms(api: Client): ClusterAlarms {
  return {
    async look(most) {
      const [open, messages] = await Promise.all([
        pages((page) => api.listAlarms(page)),
        unlessDenied(
          pages((page) => api.listAlarmMessages(page), most),
          [],
        ),
      ]);
      return { open: open.map(alarmRecord), messages: messages.map(outboxRow) };
    },
    async acknowledge(rule, task, reason) {
      const given = { rule, ...(task === null ? {} : { task }), ...why(reason) };
      return (await api.acknowledgeAlarm(given)).acknowledged;
    },
    silences: async () => (await api.listSilences()).silences.map(silenceRecord),
    async silence(rule, task, span, reason) {
      const about = { ...(rule === null ? {} : { rule }), ...(task === null ? {} : { task }) };
      return silenceRecord(await api.silenceAlarms({ ...about, for: span, ...why(reason) }));
    },
    unsilence: async (silence, reason) => void (await api.endSilence({ silence, ...why(reason) })),
    ...serverRules(api),
  };
}
