import { checkGrants } from "../../access/access.ts";
import { checkHook, checkHookName } from "../../access/hooks/hook.ts";
import { checkSecret } from "../../access/secrets/secrets.ts";
import { silenceSpanMs } from "../../alarms/alarms.ts";
import { checkRule, checkRuleName } from "../../alarms/stored-rules.ts";
import { systemClock } from "../../base/clock.ts";
import { CarillonError } from "../../base/errors.ts";
import { jsonText } from "../../base/json.ts";
import { limits } from "../../base/limits.ts";
import { payloadName } from "../../library/payload.ts";
import { checkEnqueueOptions, labelsOf, readOptions } from "../../run/enqueue-options.ts";
import type { OperationFilter } from "../../run/operations.ts";
import { calendarContent } from "../../schedule/calendar.ts";
import { checkCalendarName } from "../../schedule/slot-rules.ts";
import { edited } from "../../task/edits.ts";
import { checkName, checkSecretName } from "../../task/names.ts";
import type { Cluster, ClusterAccess, ClusterEvents, ClusterHooks } from "../nodes/cluster.ts";

const keyNameLength = 100;
const userNameLength = 100;

/** True for a name that cannot be part of a URL path, or is too long to exist; no request is sent for such a name. */
const isNowhere = (name: string, longest: number): boolean => /^\.{0,2}$/.test(name) || name.length > longest;

/** @throws TASK_INVALID for a name that is too long or cannot be part of a URL path; accepts other invalid names */
function checkFindable(what: string, name: string, longest: number): void {
  if (isNowhere(name, longest)) checkName(what, name, longest);
}
const checkTask = (name: string | null | undefined): void => {
  if (name != null) checkFindable("a task's name", name, limits.taskNameLength);
};
const checkGroup = (name: string): void => checkFindable("a group", name, limits.groupNameLength);
const checkNode = (name: string): void => checkFindable("a node's name", name, limits.nodeNameLength);
const checkUser = (name: string): void => checkFindable("a user's name", name, userNameLength);
const checkRuleFindable = (name: string): void => {
  if (isNowhere(name, limits.alarmRuleNameLength)) checkRuleName(name);
};
const checkCalendar = (name: string): void => {
  if (isNowhere(name, limits.calendarNameLength)) checkCalendarName(name);
};

/** Checks the length of a text in characters. @throws OPTION_INVALID */
export function checkText(what: string, text: string, least: number, most: number): void {
  if (text.length >= least && text.length <= most) return;
  throw new CarillonError("OPTION_INVALID", `${what} has ${text.length} characters`, {
    hint: `Give ${least} to ${most} characters.`,
    path: what,
  });
}

/** Checks the filter of an operation. @throws TASK_INVALID, OPTION_INVALID */
function checkFilter({ task, group, matching, fingerprint, labels }: OperationFilter): void {
  checkTask(task);
  if (group !== undefined) checkGroup(group);
  if (matching !== undefined) checkText("matching", matching, 1, limits.taskNameLength);
  if (fingerprint !== undefined) checkText("fingerprint", fingerprint, 1, limits.fingerprintLength);
  if (labels) labelsOf({ labels });
}

function checkedCalendars(calendars: Cluster["calendars"]): Cluster["calendars"] {
  return {
    ...calendars,
    async set(name, content, reason, mayShrink) {
      checkCalendarName(name);
      return calendars.set(
        name,
        { ...calendarContent(content), ...(content.names && { names: content.names }) },
        reason,
        mayShrink,
      );
    },
    async compare(name, content) {
      checkCalendar(name);
      return calendars.compare(name, calendarContent(content));
    },
    async find(name, version) {
      checkCalendar(name);
      return calendars.find(name, version);
    },
    async remove(name) {
      checkCalendar(name);
      return calendars.remove(name);
    },
  };
}

/**
 * Wraps a cluster so that requests are checked in this process before they are sent. An invalid request thus gives the same message
 * whether the command uses a store or a server.
 */
export function checked(cluster: Cluster): Cluster {
  const { tasks, runs, operations, dead, calendars, groups, drains, access, secrets, hooks, events, alarms } = cluster;
  return {
    ...cluster,
    tasks: {
      ...tasks,
      async list(which) {
        if (which?.of !== undefined) checkTask(which.of);
        if (which?.owner !== undefined) checkFindable("an owner", which.owner, limits.ownerLength);
        return tasks.list(which);
      },
      async records(names) {
        names?.forEach(checkTask);
        return tasks.records(names);
      },
      async find(name) {
        checkTask(name);
        return tasks.find(name);
      },
      async statistics(name, by, sinceMs) {
        checkTask(name);
        return tasks.statistics(name, by, sinceMs);
      },
      async edit(record, options, change) {
        edited(record.definition, options);
        return tasks.edit(record, options, change);
      },
      async run(name, payload, options) {
        checkTask(name);
        jsonText(payload, payloadName(name));
        checkEnqueueOptions(options);
        readOptions(options, systemClock.wall());
        return tasks.run(name, payload, options);
      },
    },
    runs: {
      ...runs,
      async list(filter, whole) {
        checkTask(filter.task);
        if (filter.group !== undefined) checkGroup(filter.group);
        if (filter.key !== undefined) checkText("key", filter.key, 1, limits.keyLength);
        labelsOf(filter);
        return runs.list(filter, whole);
      },
    },
    operations: {
      ...operations,
      async preview(bulk, show) {
        checkFilter(bulk.filter);
        return operations.preview(bulk, show);
      },
    },
    dead: {
      ...dead,
      async groups(filter) {
        checkFilter(filter);
        return dead.groups(filter);
      },
    },
    calendars: checkedCalendars(calendars),
    groups: {
      ...groups,
      async limit(name, most, reason) {
        checkGroup(name);
        return groups.limit(name, most, reason);
      },
    },
    drains: {
      ...drains,
      async drain(node, reason) {
        checkNode(node);
        return drains.drain(node, reason);
      },
      async resume(node, reason) {
        checkNode(node);
        return drains.resume(node, reason);
      },
    },
    access: checkedAccess(access),
    secrets: {
      ...secrets,
      async set(name, value, of, reason) {
        checkSecret(name, value);
        of?.forEach(checkTask);
        return secrets.set(name, value, of, reason);
      },
      async remove(name, reason) {
        if (isNowhere(name, limits.secretNameLength)) checkSecretName(name);
        return secrets.remove(name, reason);
      },
    },
    hooks: checkedHooks(hooks),
    events: checkedEvents(events),
    alarms: {
      ...alarms,
      async acknowledge(rule, task, reason) {
        checkRuleFindable(rule);
        checkTask(task);
        return alarms.acknowledge(rule, task, reason);
      },
      async silence(rule, task, span, reason) {
        if (rule !== null) checkRuleFindable(rule);
        checkTask(task);
        silenceSpanMs(span);
        return alarms.silence(rule, task, span, reason);
      },
      async rule(name) {
        checkRuleFindable(name);
        return alarms.rule(name);
      },
      async setRule(name, content, reason) {
        return alarms.setRule(checkRuleName(name), checkRule(content), reason);
      },
      async removeRule(name, reason) {
        checkRuleFindable(name);
        return alarms.removeRule(name, reason);
      },
    },
  };
}

function checkedHooks(hooks: ClusterHooks): ClusterHooks {
  return {
    ...hooks,
    find: async (name) => hooks.find(checkHookName(name)),
    set: async (name, content, reason) => hooks.set(checkHookName(name), checkHook(name, content), reason),
    async preview(name, { content, ...request }) {
      const checked = content === undefined ? {} : { content: checkHook(name, content) };
      return hooks.preview(checkHookName(name), { ...request, ...checked });
    },
    remove: async (name, reason) => hooks.remove(checkHookName(name), reason),
  };
}

function checkedEvents(events: ClusterEvents): ClusterEvents {
  return {
    ...events,
    async redeliver(consumer, sinceMs, reason) {
      checkFindable("a consumer's name", consumer, limits.lockNameLength);
      return events.redeliver(consumer, sinceMs, reason);
    },
  };
}

function checkedAccess(access: ClusterAccess): ClusterAccess {
  return {
    ...access,
    async createUser(user, reason) {
      checkGrants(user.grants);
      return access.createUser(user, reason);
    },
    async user(name) {
      checkUser(name);
      return access.user(name);
    },
    async setPassword(name, password) {
      checkUser(name);
      return access.setPassword(name, password);
    },
    async removeUser(name, reason) {
      checkUser(name);
      return access.removeUser(name, reason);
    },
    async signIns(name) {
      checkUser(name);
      return access.signIns(name);
    },
    async endSignIns(name, signInId, reason) {
      checkUser(name);
      return access.endSignIns(name, signInId, reason);
    },
    async resetSecondFactor(name, reason) {
      checkUser(name);
      return access.resetSecondFactor(name, reason);
    },
    async createToken(user, token, reason) {
      checkUser(user);
      return access.createToken(user, token, reason);
    },
    async revokeToken(user, name, reason) {
      checkUser(user);
      checkFindable("a token's name", name, keyNameLength);
      return access.revokeToken(user, name, reason);
    },
    async key(name) {
      checkFindable("a key's name", name, keyNameLength);
      return access.key(name);
    },
    async revokeKey(name) {
      checkFindable("a key's name", name, keyNameLength);
      return access.revokeKey(name);
    },
  };
}
