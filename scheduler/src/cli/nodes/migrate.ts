import { pause, systemClock } from "../../base/clock.ts";
import { CarillonError, isCarillonError } from "../../base/errors.ts";
import { type Log, silentLog } from "../../base/log.ts";
import type { EmbeddedStore } from "../../embedded/index.ts";
import { newestKnown, refuseNewer } from "../../store/postgres/migrate.ts";
import { migrations } from "../../store/postgres/migrations/index.ts";
import { openPostgres } from "../../store/postgres/postgres.ts";
import { skipNumbers } from "../../store/postgres/recovery/restored.ts";
import { grantWork } from "../../store/postgres/roles.ts";
import { inspectSchema, type SchemaFacts } from "../../store/postgres/runs/inspect.ts";
import type { Store } from "../../store/store.ts";
import { changesExit, type ExitCode, exitCodes } from "../exit-codes.ts";
import { operator } from "../operator.ts";
import { requireStore } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { type CommonOptions, withStore } from "../store-choice.ts";
import { atStore, type StorePlace } from "./at-store.ts";
import { silent } from "./checks.ts";

export interface MigrateOptions extends CommonOptions {
  plan?: boolean;
  wait?: boolean;
  role?: string;
  /** How many days ahead partitions are created. */
  days?: number;
}

const askEveryMs = 1_000;
/**
 * With 14 days, a daily call may fail on 13 days in a row. The number is not higher, because each partition adds to the
 * planning time of statements on the history.
 */
const defaultDays = 14;

export function migrateStore(options: MigrateOptions, terminal: Terminal): Promise<ExitCode> {
  requireStore(options, "migrate");
  const work = async ({ url, schema, text: place }: StorePlace) => {
    const { version, missing } = await (options.wait
      ? migrated(url, schema)
      : inspectSchema(url, schema, options.days));
    refuseNewer(version);
    const from = version.number;
    const pending = migrations.filter(({ number }) => number > from);
    const change = !options.plan && !options.wait;
    const partitions = change ? await migrate(url, schema, options.days ?? defaultDays, terminal) : undefined;
    const { role } = options;
    if (change && role !== undefined) await grantWork(url, schema, role);
    const wanted = options.plan && missing.all > 0 ? missing.all : undefined;
    tell(
      { from, pending, done: !options.plan, place, schema, partitions, wanted, role: change ? role : undefined },
      terminal,
    );
    return options.plan && (pending.length > 0 || wanted) ? changesExit : exitCodes.ok;
  };
  return atStore(options, work, options.plan || options.wait ? false : undefined);
}

/** Runs `work`, which may take long; SIGINT or SIGTERM aborts the signal that it receives. */
async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupted = new AbortController();
  const onInterrupt = () => interrupted.abort();
  const names = ["SIGINT", "SIGTERM"] as const;
  for (const name of names) process.once(name, onInterrupt);
  try {
    return await work(interrupted.signal);
  } finally {
    for (const name of names) process.off(name, onInterrupt);
  }
}

interface Partitions {
  created: number;
  dropped: number;
}

/**
 * Migrates the schema, and creates and drops partitions. Waits while another transaction holds a lock on one of the tables. Partitions
 * older than the longest retention of all live nodes are dropped; if no node is alive, none is dropped.
 */
const migrate = (url: string, schema: string, days: number, terminal: Terminal): Promise<Partitions> =>
  interruptible(async (signal) => {
    const store = await openPostgres({ url, schema, signal, partitions: "there", log: warnings(terminal) });
    try {
      const { ms: nowMs } = await store.clock();
      const { created, dropped } = await store.history.rotate(nowMs, await retention(store, nowMs), days);
      return { created: created.length, dropped: dropped.length };
    } finally {
      await store.close();
    }
  });

/** A log that prints only warnings, on standard error: for example that partitions are missing and that this role may not create them. */
const warnings = (terminal: Terminal): Log => ({
  ...silentLog,
  warn: (fields, message) => terminal.aside(`${message}. ${(fields as { hint?: string }).hint ?? ""}`.trim()),
});

async function retention(store: Store, nowMs: number): Promise<number | null> {
  const { members } = await store.sessions.members();
  const kept = members.filter((member) => !silent(member, nowMs)).map(({ settings }) => settings?.retentionMs ?? 0);
  const longest = Math.max(0, ...kept);
  return longest > 0 ? longest : null;
}

const notThere: SchemaFacts = { version: { number: 0, serves: null }, missing: { all: 0, today: 0, mayMake: true } };

/**
 * Polls until the schema is migrated to this version, and until either today's partitions exist or this role may create them. Also polls
 * while the store cannot be reached.
 * @throws STORE_OLDER or STORE_PARTITIONS if a signal ends the wait
 */
const migrated = (url: string, schema: string): Promise<SchemaFacts> =>
  interruptible(async (signal) => {
    for (;;) {
      const facts = await inspectSchema(url, schema).catch((error: unknown) => {
        if (isCarillonError(error, "STORE_UNREACHABLE")) return notThere;
        throw error;
      });
      const { version, missing } = facts;
      const isMigrated = version.number >= newestKnown;
      if (isMigrated && (missing.today === 0 || missing.mayMake)) return facts;
      await pause(systemClock, askEveryMs, signal);
      if (signal.aborted)
        throw isMigrated
          ? new CarillonError("STORE_PARTITIONS", `${missing.today} partitions of history for today are missing`, {
              hint: "Run `carillon migrate` with the role that owns the schema: it makes them.",
            })
          : new CarillonError(
              "STORE_OLDER",
              `the database is at version ${version.number}, this Carillon needs ${newestKnown}`,
              { hint: "Run `carillon migrate`." },
            );
    }
  });

interface Migrated {
  from: number;
  pending: { number: number; name: string }[];
  done: boolean;
  place: string;
  schema: string;
  partitions: Partitions | undefined;
  /** With --plan: the number of partitions that `migrate` would create. */
  wanted: number | undefined;
  /** The role that was granted the rights that a process needs. */
  role: string | undefined;
}

function tell({ from, pending, done, place, schema, partitions, wanted, role }: Migrated, terminal: Terminal): void {
  const names = pending.map(({ number, name }) => ({ number, name }));
  if (terminal.json) {
    const to = Math.max(from, newestKnown);
    const served = from > newestKnown ? { known: newestKnown } : {};
    terminal.object({ from, to, ...served, [done ? "applied" : "pending"]: names, partitions, wanted, role });
    return;
  }
  const where = `schema ${plain(schema)} of ${place}`;
  const isWhole = names.length === 0 && !wanted && !partitions?.created && !partitions?.dropped;
  const ending = isWhole ? ": nothing to do" : "";
  if (from > newestKnown)
    terminal.line(
      `${where} is at version ${from}, newer than this Carillon's ${newestKnown}, which may work beside it${ending}`,
    );
  else if (names.length === 0) terminal.line(`${where} is at version ${from}${ending}`);
  else {
    terminal.line(`${where}: version ${from} ${done ? "is now" : "would be"} ${names.at(-1)?.number}`);
    for (const { number, name } of names) terminal.line(`  ${String(number).padStart(4, "0")} ${name}`);
  }
  if (wanted) terminal.line(`partitions of history: ${wanted} are missing and would be made`);
  if (partitions && partitions.created + partitions.dropped > 0)
    terminal.line(`partitions of history: ${partitions.created} made, ${partitions.dropped} dropped`);
  if (role !== undefined) terminal.line(`role ${plain(role)} may do the work on schema ${plain(schema)}`);
}

export function restored(options: CommonOptions & { reason?: string }, terminal: Terminal): Promise<ExitCode> {
  requireStore(options, "restored");
  return withStore(options, async ({ tower, nowMs }) => {
    const { url, embedded } = await tower.open();
    const change = { author: operator(), reason: options.reason ?? "", nowMs: nowMs() };
    const next = await skipNumbers(url ?? (embedded as EmbeddedStore).url, tower.settings.schema, change);
    if (terminal.json) terminal.object(next);
    else
      terminal.line(
        `numbers go on from: run ${next.runId}, fence ${next.fence}, term ${next.term}. Nodes may start now.`,
      );
    return exitCodes.ok;
  });
}
