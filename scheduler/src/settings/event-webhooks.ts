/**
 * The option `webhooks`: receivers of the events of runs, slots and changes, and of the audit log. See docs/tasks/webhooks.md and
 * docs/access/audit-stream.md.
 */
import { type AuditAbout, auditAbouts } from "../access/audit.ts";
import { CarillonError, within } from "../base/errors.ts";
import { checkNames, meant } from "../base/nearest.ts";
import { labelsOf } from "../run/enqueue-options.ts";
import { type EventType, eventTypes } from "../store/event-store.ts";
import { httpUrl } from "./alarms/channels.ts";

export interface EventWebhookOptions {
  /** The URL to which each event is posted; with `audit` also syslog+tls://HOST:PORT, syslog+tcp:// or syslog+udp://. */
  url: string;
  /**
   * The receiver gets rows of the audit log instead of events. True: all rows; a list: those about these kinds of objects, such
   * as ["task", "calendar"] for changes of definitions.
   */
  audit?: boolean | AuditAbout[];
  /** The secret with which requests are signed. */
  secret?: string;
  /** Only events of these types; default: all types of events of runs. */
  types?: EventType[];
  /** Only events of this task and its runs. */
  task?: string;
  /** Only events of the tasks, and of the alarm rules, in this namespace. */
  namespace?: string;
  /** Only events of the tasks in this group, and of the group's limit. */
  group?: string;
  /** Only events of runs with all of these labels, and of tasks that give their runs these labels. */
  labels?: Record<string, string>;
  /** Private and local addresses to which the URL's host may resolve. A host that is itself an address needs no entry. */
  allow?: string[];
}

const names = ["url", "secret", "types", "task", "namespace", "group", "labels", "allow", "audit"];
/** `notOfAudit`: options that a receiver of the audit log cannot have. `notOfSyslog`: further options that a syslog server cannot have. */
const notOfAudit = ["types", "task", "namespace", "group", "labels"];
const notOfSyslog = ["secret", "allow"];

export const isSyslog = (url: string): boolean => /^syslog\+(?:tls|tcp|udp):\/\//.test(url);

function checkAudit(where: string, { url, audit, ...one }: EventWebhookOptions): void {
  if (typeof (audit ?? false) !== "boolean" && !(Array.isArray(audit) && audit.length > 0))
    throw wrong(`${where}.audit`, "must be true, false or a list of kinds of objects");
  const unknown = Array.isArray(audit) ? audit.find((kind) => !auditAbouts.includes(kind)) : undefined;
  if (unknown !== undefined)
    throw wrong(`${where}.audit`, `knows no ${JSON.stringify(unknown)}${meant(String(unknown), auditAbouts)}`);
  const syslog = typeof url === "string" && isSyslog(url);
  if (syslog && !audit)
    throw wrong(`${where}.url`, "is of a syslog server, which gets only the audit log: add audit: true");
  const unfit = [...(audit ? notOfAudit : []), ...(syslog ? notOfSyslog : [])].find((part) => part in one);
  if (unfit !== undefined)
    throw wrong(`${where}.${unfit}`, `cannot be given for ${syslog ? "a syslog server" : "the audit log"}`);
}

/** Validates the options. @throws OPTION_INVALID with the option's path */
export function checkEventWebhooks(
  options: Readonly<Record<string, EventWebhookOptions>>,
): Readonly<Record<string, EventWebhookOptions>> {
  for (const [name, one] of Object.entries(options)) {
    const where = `webhooks.${name}`;
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$/.test(name)) throw wrong(where, "cannot be called so");
    if (typeof one !== "object" || one === null) throw wrong(where, "must be an object");
    checkNames(where, one, names, where);
    const { url, secret, types = [], task, namespace, group, allow = [] } = one;
    checkAudit(where, one);
    const noUrl = isSyslog(url) ? (isHost(url) ? undefined : "syslog+tls://HOST:PORT") : httpUrl(url);
    if (noUrl !== undefined) throw wrong(`${where}.url`, `must be ${noUrl}`);
    if (!Array.isArray(types) || (one.types !== undefined && types.length === 0))
      throw wrong(`${where}.types`, "must be a list of types of events");
    const unknown = types.find((type) => !eventTypes.includes(type));
    if (unknown !== undefined)
      throw wrong(`${where}.types`, `has no event ${JSON.stringify(unknown)}${meant(String(unknown), eventTypes)}`);
    for (const [part, text] of Object.entries({ secret, task, namespace, group }))
      if (text !== undefined && (typeof text !== "string" || text === ""))
        throw wrong(`${where}.${part}`, "must be a text");
    if (one.labels !== undefined) within(where, () => labelsOf(one));
    if (!Array.isArray(allow)) throw wrong(`${where}.allow`, "must be a list");
  }
  return options;
}

/** True if the URL consists of a scheme, a host and perhaps a port. */
const isHost = (url: string): boolean =>
  URL.canParse(url) && /^[^/]+\/\/(?:[^/@:?#[\]]+|\[[\d:a-f.]+\])(?::\d{1,5})?\/?$/i.test(url);

const wrong = (path: string, what: string) =>
  new CarillonError("OPTION_INVALID", `${path} ${what}`, { hint: "See docs/tasks/webhooks.md.", path });
