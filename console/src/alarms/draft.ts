/** The state of the alarm rule dialog: an alarm rule with each field as the text, list of texts or boolean that the form edits. */
import type { Answer, Given } from "carillon/contract";

export type Stored = Answer<"listAlarmRules">["stored"][number];
export type Kind = Stored["kind"];
type Content = Omit<Given<"createAlarmRule">, "name" | "reason">;
export type Part =
  | ("failures" | "of" | "longer" | "shorter" | "times" | "least" | "by" | "zone" | "after")
  | ("more" | "grows" | "within" | "before");

/** The parameters of each kind of alarm rule, in the order of the form's fields. */
export const partsOf: Record<Kind, readonly Part[]> = {
  failed: ["failures", "of"],
  slow: ["times", "least", "longer"],
  quick: ["times", "least", "shorter"],
  deadline: ["by", "zone"],
  unfired: ["after"],
  overdue: ["after"],
  stuck: ["after"],
  paused: [],
  ended: [],
  unserved: ["after"],
  queue: ["more", "grows", "within"],
  changed: [],
  store: ["longer"],
  snapshot: ["after", "more"],
  coordination: ["after"],
  expiring: ["before"],
};
/** The kinds that examine the cluster and not its tasks: their scope is everything. */
export const clusterKinds: ReadonlySet<Kind> = new Set(["store", "snapshot", "coordination", "expiring"]);
export const kinds = Object.keys(partsOf) as Kind[];
const needed: Part[] = ["failures", "by", "zone"];
const numbers: readonly Part[] = ["failures", "of", "times", "more", "grows"];

export interface Draft {
  name: string;
  kind: Kind;
  parts: Partial<Record<Part, string>>;
  forecast: boolean;
  tasks: string[];
  groups: string[];
  owners: string[];
  /** Labels in the form "team=pay". */
  labels: string[];
  everywhere: boolean;
  channels: string[];
  quietFrom: string;
  quietTo: string;
  quietZone: string;
  /** Maintenance windows as ISO 8601 intervals, "FROM/TO". */
  maintenance: string[];
  escalateAfter: string;
  escalateChannels: string[];
}

export function draftOf(rule: Stored | null, zone: string): Draft {
  const { kind = "failed", scope = {}, quiet, escalate, ...rest }: Partial<Stored> = rule ?? {};
  const given = Object.fromEntries(
    partsOf[kind].flatMap((part) => (rest[part] === undefined ? [] : [[part, String(rest[part])]])),
  );
  return {
    name: rule?.name ?? "",
    kind,
    parts: rule ? given : { failures: "1", zone },
    forecast: rest.forecast ?? true,
    tasks: scope.tasks ?? [],
    groups: scope.groups ?? [],
    owners: scope.owners ?? [],
    labels: Object.entries(scope.labels ?? {}).map(([label, value]) => `${label}=${value}`),
    everywhere: scope.everywhere ?? false,
    channels: rest.channels ?? [],
    quietFrom: quiet?.from ?? "",
    quietTo: quiet?.to ?? "",
    quietZone: quiet?.zone ?? zone,
    maintenance: (rest.maintenance ?? []).map(intervalOf),
    escalateAfter: escalate ? String(escalate.after) : "",
    escalateChannels: escalate?.channels ?? [],
  };
}

const intervalOf = ({ from, to }: { from: string; to: string }): string => `${from}/${to}`;

/**
 * True if the form cannot be saved: a required field is empty, a queue rule has neither bound, a maintenance window is not "FROM/TO", or
 * only one of two fields that belong together is filled in (quiet hours, escalation).
 */
export const isIncomplete = (draft: Draft): boolean =>
  draft.name.trim() === "" ||
  partsOf[draft.kind].some((part) => needed.includes(part) && !draft.parts[part]) ||
  (draft.kind === "queue" && !draft.parts.more && !draft.parts.grows) ||
  (draft.quietFrom === "") !== (draft.quietTo === "") ||
  draft.maintenance.some((interval) => interval.split("/").length !== 2) ||
  (draft.escalateAfter === "") !== (draft.escalateChannels.length === 0);

/** The part of a stored rule that a change request contains: the rule without its name, version, author and other metadata. */
export const contentOf = ({
  name: _,
  version: __,
  finds: ___,
  author: ____,
  reason: _____,
  changed: ______,
  bundle: _______,
  ...content
}: Stored): Content => content;

/** @param before the stored rule; properties without a field in the dialog are copied from this rule */
export function contentOfDraft(draft: Draft, before: Stored | null): Content {
  const { kind, tasks, groups, owners, labels, everywhere, channels } = draft;
  const parts = partsOf[kind].flatMap((part) => {
    const text = draft.parts[part]?.trim() ?? "";
    return text === "" ? [] : [[part, numbers.includes(part) ? Number(text) : text] as const];
  });
  const pairs = labels.map((label) => {
    const at = label.indexOf("=");
    return at < 0 ? ([label, ""] as const) : ([label.slice(0, at), label.slice(at + 1)] as const);
  });
  const scope = clusterKinds.has(kind)
    ? { everywhere: true }
    : {
        ...(tasks.length > 0 && { tasks }),
        ...(groups.length > 0 && { groups }),
        ...(owners.length > 0 && { owners }),
        ...(pairs.length > 0 && { labels: Object.fromEntries(pairs) }),
        ...(everywhere && { everywhere }),
      };
  const windows = draft.maintenance.map((interval) => {
    const [begin = "", end = ""] = interval.split("/").map((text) => text.trim());
    return before?.maintenance?.find((window) => intervalOf(window) === interval) ?? { from: begin, to: end };
  });
  const { quietFrom: from, quietTo: to, quietZone: zone, escalateAfter: after } = draft;
  return {
    kind,
    ...Object.fromEntries(parts),
    ...(before?.description !== undefined && { description: before.description }),
    ...(before?.enabled !== undefined && { enabled: before.enabled }),
    ...(kind === "deadline" && before?.kind === kind && before.days && { days: before.days }),
    ...(kind === "deadline" && !draft.forecast && { forecast: false }),
    ...(Object.keys(scope).length > 0 && { scope }),
    ...(channels.length > 0 && { channels }),
    ...(from !== "" && { quiet: { from, to, zone } }),
    ...(windows.length > 0 && { maintenance: windows }),
    ...(after !== "" && { escalate: { after, channels: draft.escalateChannels } }),
  };
}
