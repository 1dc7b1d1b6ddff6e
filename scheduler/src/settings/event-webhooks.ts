/** The option `webhooks`: receivers of the events of runs. See docs/webhooks.md. */
import { CarillonError } from "../base/errors.ts";
import { checkNames, meant } from "../base/nearest.ts";
import { type EventType, eventTypes } from "../store/event-store.ts";
import { httpUrl } from "./alarms/channels.ts";

export interface EventWebhookOptions {
  /** The URL to which each event is posted. */
  url: string;
  /** The secret with which requests are signed. */
  secret?: string;
  /** Only events of these types; default: all. */
  types?: EventType[];
  /** Only events of runs of this task. */
  task?: string;
  /** Only events of runs of the tasks in this namespace. */
  namespace?: string;
  /** Private and local addresses to which the URL's host may resolve. A host that is itself an address needs no entry. */
  allow?: string[];
}

const names = ["url", "secret", "types", "task", "namespace", "allow"];

/** Validates the options. @throws OPTION_INVALID with the option's path */
export function checkEventWebhooks(
  options: Readonly<Record<string, EventWebhookOptions>>,
): Readonly<Record<string, EventWebhookOptions>> {
  for (const [name, one] of Object.entries(options)) {
    const where = `webhooks.${name}`;
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$/.test(name)) throw wrong(where, "cannot be called so");
    if (typeof one !== "object" || one === null) throw wrong(where, "must be an object");
    checkNames(where, one, names, where);
    const { url, secret, types = [], task, namespace, allow = [] } = one;
    const noUrl = httpUrl(url);
    if (noUrl !== undefined) throw wrong(`${where}.url`, `must be ${noUrl}`);
    if (!Array.isArray(types) || (one.types !== undefined && types.length === 0))
      throw wrong(`${where}.types`, "must be a list of types of events");
    const unknown = types.find((type) => !eventTypes.includes(type));
    if (unknown !== undefined)
      throw wrong(`${where}.types`, `has no event ${JSON.stringify(unknown)}${meant(String(unknown), eventTypes)}`);
    for (const [part, text] of Object.entries({ secret, task, namespace }))
      if (text !== undefined && (typeof text !== "string" || text === ""))
        throw wrong(`${where}.${part}`, "must be a text");
    if (!Array.isArray(allow)) throw wrong(`${where}.allow`, "must be a list");
  }
  return options;
}

const wrong = (path: string, what: string) =>
  new CarillonError("OPTION_INVALID", `${path} ${what}`, { hint: "See docs/webhooks.md.", path });
