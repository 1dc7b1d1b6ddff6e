import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { isCarillonError } from "../../base/errors.ts";
import { lookAtCoordination } from "../../coordination/open.ts";
import { isOpenToAll } from "../../coordination/service-address.ts";
import { freeBytes } from "../../embedded/log-file.ts";
import { plainHosts } from "../../settings/plain-store.ts";
import { settingsOf } from "../../settings/settings.ts";
import { inspectProduction } from "../../store/postgres/cluster/production.ts";
import { inspectPostgres } from "../../store/postgres/runs/inspect.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { requireStore } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { pad, plain, wrap } from "../screen/text.ts";
import {
  type CommonOptions,
  chosenCoordination,
  chosenUrl,
  coordinationText,
  defaultDirectory,
  lookingOptions,
} from "../store-choice.ts";
import { type CoordinationLook, checkAgreement } from "./agreement-checks.ts";
import { checkAlarms } from "./alarm-checks.ts";
import { atStore, type StorePlace } from "./at-store.ts";
import { type Check, checkCluster, checkEmbedded, checkNode, checkServer, checkWay } from "./checks.ts";
import { checkProduction } from "./production-checks.ts";

export interface DoctorOptions extends CommonOptions {
  coordination?: string;
  /** True: also checks whether the server and the cluster are ready for production. */
  production?: boolean;
}

/** Runs all checks and prints their results. Changes nothing, except that a stopped embedded store is started for the checks. */
export async function doctor(options: DoctorOptions, terminal: Terminal): Promise<ExitCode> {
  requireStore(options, "doctor");
  const { schema } = settingsOf(lookingOptions(options));
  const checks = [checkNode(process.versions.node), ...(await storeChecks(options, schema))];
  const problems = checks.filter(({ verdict }) => verdict === "problem").length;
  if (terminal.json) terminal.object({ ok: problems === 0, checks });
  else print(checks, problems, terminal);
  return problems === 0 ? exitCodes.ok : exitCodes.problems;
}

async function storeChecks(options: DoctorOptions, schema: string): Promise<Check[]> {
  const { directory = defaultDirectory } = lookingOptions(options);
  if (chosenUrl(options) === undefined && !existsSync(directory)) {
    const advice = "Give --store URL (or CARILLON_STORE, DATABASE_URL) or --directory, or start carillon dev here.";
    return [{ what: "store", verdict: "problem", found: `${resolve(directory)} does not exist`, advice }];
  }
  const look = async ({ url, text, embedded }: StorePlace) => {
    const { server, cluster } = await inspectPostgres(url, schema);
    return [
      ...checkServer(server, text, schema),
      ...(embedded ? [] : checkWay(url, process.env)),
      ...(embedded ? checkEmbedded({ ...embedded, freeBytes: await freeBytes(embedded.data) }) : []),
      ...(cluster
        ? [...checkCluster(cluster), ...checkAlarms(cluster), ...checkAgreement(cluster, await lookAtService(options))]
        : []),
      ...(cluster && options.production
        ? checkProduction(await inspectProduction(url, schema), cluster, {
            embedded: embedded !== undefined,
            plain: plainHosts(url, process.env),
          })
        : []),
    ];
  };
  try {
    return await atStore(options, look, false);
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    return [{ what: "store", verdict: "problem", found: `${error.code}: ${error.message}`, advice: error.hint }];
  }
}

async function lookAtService(options: DoctorOptions): Promise<CoordinationLook | undefined> {
  const url = chosenCoordination(options);
  if (url === undefined) return undefined;
  try {
    return { place: coordinationText(url), openToAll: isOpenToAll(url), found: await lookAtCoordination(url) };
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    return { place: coordinationText(url), error };
  }
}

function print(checks: Check[], problems: number, terminal: Terminal): void {
  const { style } = terminal;
  const marks = { good: style.good("✓"), remark: style.warning("!"), problem: style.bad("✗") };
  const column = Math.max(...checks.map(({ what }) => what.length));
  const room = Math.max(20, Math.min(terminal.width, 120) - column - 4);
  for (const { what, verdict, found, advice } of checks) {
    wrap(plain(found), room).forEach((line, at) => {
      terminal.line(at === 0 ? `${marks[verdict]} ${pad(what, column)}  ${line}` : `  ${pad("", column)}  ${line}`);
    });
    if (advice !== "")
      for (const line of wrap(plain(advice), room)) terminal.line(`  ${pad("", column)}  ${style.dim(line)}`);
  }
  terminal.line();
  const remarks = checks.filter(({ verdict }) => verdict === "remark").length;
  const told =
    problems === 0 ? style.good("all is well") : style.bad(`${problems} ${problems === 1 ? "problem" : "problems"}`);
  terminal.line(`${told}${remarks > 0 ? `, ${remarks} ${remarks === 1 ? "remark" : "remarks"}` : ""}`);
}
