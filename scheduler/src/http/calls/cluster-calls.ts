import type { clusterRoutes } from "../../api/contract/cluster.ts";
import { holdsObject } from "../../api/drain-json.ts";
import { operationObject } from "../../api/operation-json.ts";
import { iso, isoTime } from "../../api/run-json.ts";
import { version } from "../../base/version.ts";
import type { Member } from "../../cluster/session-store.ts";
import type { WorkerRecord } from "../../store/browse-store.ts";
import type { Store } from "../../store/store.ts";
import { checkGroupLimit } from "../../task/group-store.ts";
import type { Some } from "../call.ts";
import { changeOf } from "./changes.ts";
import { isWithin } from "./operation-calls.ts";
import { nameCursor, namedAfter, numberCursor, pageOf, visiblePage } from "./pages.ts";
import { summary } from "./run-calls.ts";

const found = 10;
const lostShownMs = 24 * 3_600_000;
const lostShown = 100;

const asMember = (member: Member, nowMs: number) => {
  const { sessionId, node, role, host, pid, version, timeoutMs, groups, labels, capacity, settings } = member;
  return {
    sessionId,
    node,
    role,
    host,
    pid,
    version,
    timeoutMs,
    groups: [...(groups ?? [])],
    labels: { ...labels },
    capacity: capacity ?? null,
    address: settings?.address ?? null,
    observer: settings?.observer ?? false,
    release: settings?.release ?? null,
    reliesOn: member.witnessed ? ("service" as const) : ("store" as const),
    started: isoTime(member.startedMs),
    seen: isoTime(member.seenMs),
    silent: nowMs - member.seenMs > timeoutMs,
    stillMs: member.stillMs,
    tasks: member.tasks ? [...member.tasks] : null,
    draining: member.draining ?? false,
    settings: settings ? { ...settings } : null,
  };
};

export function clusterCalls(
  store: Store,
  node: string,
  followEvents: Some<"followEvents">["followEvents"],
): Some<keyof typeof clusterRoutes> {
  /** The current leader's term, which is the latest term; undefined if that term has ended. */
  const leading = async () => {
    const [term] = await store.browse.terms(Number.MAX_SAFE_INTEGER, 1);
    return term && term.endedMs === null ? term : undefined;
  };
  return {
    async getCluster(_, { nowMs }) {
      const [{ clusterId, coordination }, leader] = await Promise.all([store.sessions.cluster(), leading()]);
      return {
        cluster: clusterId,
        version,
        node,
        now: isoTime(nowMs),
        coordination,
        term: leader?.term ?? 0,
        leader: leader ? { node: leader.node, since: isoTime(leader.electedMs) } : null,
      };
    },
    async listNodes({ cursor, limit }, { nowMs }) {
      const [rows, leader] = await Promise.all([store.browse.nodes(nameCursor(cursor), limit + 1), leading()]);
      const item = (row: Member) => ({ ...asMember(row, nowMs), leads: row.sessionId === leader?.sessionId });
      return pageOf(rows, limit, item, ({ node }) => [node]);
    },
    async listWorkers({ cursor, limit, group = null }, { nowMs, reach }) {
      if (group !== null) reach.check(group);
      // A caller limited to namespaces sees neither the worker's groups and tasks in other namespaces nor the settings of the worker's
      // process.
      const item = (row: WorkerRecord) => {
        const member = asMember(row, nowMs);
        const groups = member.groups.filter((one) => reach.has(one));
        const tasks = member.tasks?.filter((one) => reach.has(one)) ?? null;
        const settings = reach.namespaces === null ? member.settings : null;
        return { ...member, groups, tasks, settings, held: row.held };
      };
      return visiblePage(
        { limit, start: nameCursor(cursor), everything: reach.namespaces === null },
        (from, most) => store.browse.workers(from, group, most),
        ({ groups }) => [...(groups ?? [])].some((one) => reach.has(one)),
        { item, after: ({ node }) => node, cursor: (node) => [node] },
      );
    },
    async listLostWorkers(_, { nowMs, reach }) {
      const rows = await store.browse.lostWorkers(Math.round(nowMs) - lostShownMs, lostShown);
      const lost = rows.flatMap(({ startedMs, seenMs, endedMs, groups, ...row }) => {
        const seen = groups.filter((one) => reach.has(one));
        if (seen.length === 0) return [];
        return { ...row, groups: seen, started: isoTime(startedMs), seen: isoTime(seenMs), ended: isoTime(endedMs) };
      });
      return { lost };
    },
    async listDrained({ cursor, limit }) {
      const rows = (await store.drains.list()).map(({ node, ...row }) => ({ name: node, ...row }));
      const item = ({ name: node, sinceMs, by, why, ...holds }: (typeof rows)[number]) => {
        return { node, since: isoTime(sinceMs), by, why, ...holdsObject(holds) };
      };
      return pageOf(namedAfter(rows, cursor), limit, item, ({ name }) => [name]);
    },
    async drainNode({ node, reason }, call) {
      const { changed, ...holds } = await store.drains.drain(node, changeOf(call, reason));
      return { node, changed, ...holdsObject(holds) };
    },
    async resumeNode({ node, reason }, call) {
      return { node, ...(await store.drains.resume(node, changeOf(call, reason))) };
    },
    async listGroups({ cursor, limit }, { nowMs, reach }) {
      const page = { afterName: nameCursor(cursor), limit: limit + 1, namespaces: reach.namespaces };
      const rows = await store.groups.list(nowMs, page);
      const item = ({ changed, ...group }: (typeof rows)[number]) => ({
        ...group,
        changed: changed && { at: isoTime(changed.atMs), by: changed.by, why: changed.why },
      });
      return pageOf(rows, limit, item, ({ name }) => [name]);
    },
    async limitGroup({ group, limit, reason }, call) {
      checkGroupLimit(limit);
      return { group, limit, ...(await store.groups.limit(group, limit, changeOf(call, reason))) };
    },
    async listTerms({ cursor, limit }) {
      const rows = await store.browse.terms(numberCursor(cursor), limit + 1);
      const item = ({ electedMs, endedMs, ...term }: (typeof rows)[number]) => ({
        ...term,
        elected: isoTime(electedMs),
        ended: iso(endedMs),
      });
      return pageOf(rows, limit, item, ({ term }) => [term]);
    },
    async search({ q }, { reach }) {
      const number = /^[1-9]\d{0,14}$/.test(q) ? Number(q) : 0;
      const [{ runs, workers, ...rest }, upTo] = await Promise.all([
        store.browse.search(q, reach.namespaces, found),
        number === 0 ? [] : store.browse.operations(number + 1, 1),
      ]);
      const seen = runs.filter(({ task }) => reach.has(task));
      // Operation ids have gaps, so the newest operation with an id up to `number` may have a smaller id than `number`.
      const operations = upTo.filter(({ operationId, filter }) => operationId === number && isWithin(filter, reach));
      return {
        ...rest,
        runs: seen.map(summary),
        operations: operations.map(operationObject),
        workers: reach.namespaces === null ? workers : [],
      };
    },
    followEvents,
  };
}
