import {
  checkQuota,
  everyOther,
  limitNames,
  type Quota,
  type QuotaKind,
  type QuotaLimits,
  quotaKinds,
} from "../../access/quota-store.ts";
import { isoTime } from "../../api/run-json.ts";
import { CarillonError } from "../../base/errors.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

/** Each limit is a number or "none"; an omitted limit means "none". */
interface SetOptions extends CommonOptions, Partial<Record<keyof QuotaLimits, string>> {
  reason?: string;
}

export function listQuotas(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const now = cluster.nowMs();
    const quotas = await cluster.quotas.list();
    if (terminal.json)
      terminal.object(
        quotas.map(({ changed, ...quota }) => ({
          ...quota,
          changed: { at: isoTime(changed.atMs), by: changed.by, why: changed.why },
        })),
      );
    else if (quotas.length === 0) terminal.aside("There are no quotas: everybody takes as much as the servers give.");
    else print(quotas, now, terminal);
    return exitCodes.ok;
  });
}

export function setQuota(kind: string, name: string, options: SetOptions, terminal: Terminal): Promise<ExitCode> {
  const most = (text: string | undefined) => (text === undefined || text === "none" ? null : Number(text));
  const given = Object.fromEntries(limitNames.map((one) => [one, most(options[one])])) as unknown as QuotaLimits;
  if (!(quotaKinds as readonly string[]).includes(kind))
    throw new CarillonError("OPTION_INVALID", `a quota is of no ${JSON.stringify(kind)}`, {
      hint: `Give ${quotaKinds.join(" or ")}, and a name or ${everyOther} for each that has none of its own.`,
    });
  const of = kind as QuotaKind;
  checkQuota(of, name, given);
  return withCluster(options, async ({ cluster }) => {
    const { changed } = await cluster.quotas.set(of, name, given, options.reason ?? "");
    if (terminal.json) terminal.object({ kind: of, name, ...given, changed });
    else {
      const words = limitNames
        .flatMap((one) => (given[one] === null ? [] : [`${given[one]} ${limitWords[one]}`]))
        .join(", ");
      terminal.line(
        `${of} ${plain(name)}: ${words === "" ? "no quota" : `at most ${words}`}${changed ? "" : " (it was so already)"}`,
      );
    }
    return exitCodes.ok;
  });
}

const limitWords: Record<keyof QuotaLimits, string> = {
  enqueues: "runs a minute",
  waiting: "runs that wait",
  bytes: "bytes that wait",
  history: "bytes of history",
  streams: "streams",
  sessions: "sessions",
};

function print(quotas: (Quota & { used: QuotaLimits | null })[], now: number, terminal: Terminal): void {
  const set = limitNames.filter((one) => quotas.some((quota) => quota[one] !== null));
  const cell = (quota: (typeof quotas)[number], one: keyof QuotaLimits) => {
    const used = quota.used?.[one] ?? null;
    return quota[one] === null ? "" : used === null ? String(quota[one]) : `${used} of ${quota[one]}`;
  };
  terminal.table(
    [
      { title: "OF", least: 8 },
      { title: "NAME", least: 8 },
      ...set.map((one) => ({ title: one.toUpperCase(), align: "right" as const })),
      { title: "SET", least: 8, drop: 1 },
    ],
    quotas.map((quota) => {
      const { kind, name, changed } = quota;
      return [
        plain(kind),
        plain(name),
        ...set.map((one) => cell(quota, one)),
        plain(`${ageText(changed.atMs, now)} by ${changed.by}${changed.why === "" ? "" : `: ${changed.why}`}`),
      ];
    }),
  );
}
