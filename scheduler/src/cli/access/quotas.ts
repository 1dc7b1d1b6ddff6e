import { checkQuota, everyOther, type Quota, type QuotaKind, quotaKinds } from "../../access/quota-store.ts";
import { isoTime } from "../../api/run-json.ts";
import { CarillonError } from "../../base/errors.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

/** @param enqueues like waiting and bytes: a number, or none; one left out counts as none */
interface SetOptions extends CommonOptions {
  enqueues?: string;
  waiting?: string;
  bytes?: string;
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
    else if (quotas.length === 0)
      terminal.aside("There are no quotas: everybody enqueues as much as the servers take.");
    else print(quotas, now, terminal);
    return exitCodes.ok;
  });
}

export function setQuota(kind: string, name: string, options: SetOptions, terminal: Terminal): Promise<ExitCode> {
  const most = (text: string | undefined) => (text === undefined || text === "none" ? null : Number(text));
  const given = { enqueues: most(options.enqueues), waiting: most(options.waiting), bytes: most(options.bytes) };
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
      const shown = [textOf("runs a minute", given.enqueues), textOf("runs that wait", given.waiting)];
      const words = [...shown, textOf("bytes that wait", given.bytes)].filter((word) => word !== "").join(", ");
      terminal.line(
        `${of} ${plain(name)}: ${words === "" ? "no quota" : `at most ${words}`}${changed ? "" : " (it was so already)"}`,
      );
    }
    return exitCodes.ok;
  });
}

const textOf = (what: string, most: number | null): string => (most === null ? "" : `${most} ${what}`);

function print(quotas: Quota[], now: number, terminal: Terminal): void {
  const cell = (most: number | null) => (most === null ? "none" : String(most));
  terminal.table(
    [
      { title: "OF", least: 8 },
      { title: "NAME", least: 8 },
      { title: "A MINUTE", align: "right" },
      { title: "WAITING", align: "right" },
      { title: "BYTES", align: "right" },
      { title: "SET", least: 8, drop: 1 },
    ],
    quotas.map(({ kind, name, enqueues, waiting, bytes, changed }) => [
      plain(kind),
      plain(name),
      cell(enqueues),
      cell(waiting),
      cell(bytes),
      plain(`${ageText(changed.atMs, now)} by ${changed.by}${changed.why === "" ? "" : `: ${changed.why}`}`),
    ]),
  );
}
