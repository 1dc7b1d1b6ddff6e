import type { Client } from "../../api/client.ts";
import { isoTime } from "../../api/run-json.ts";
import { textsOfLabels } from "../../api/run-labels.ts";
import { pause, systemClock } from "../../base/clock.ts";
import { isCarillonError } from "../../base/errors.ts";
import { outcomes } from "../../run/run.ts";
import type { RunFilter } from "../../run/run-record.ts";
import type { ClusterRuns, EndListener } from "../nodes/cluster.ts";
import { each, pages, why } from "./calls.ts";
import { logLine, runCard, runRecord } from "./records.ts";

/** The delays in ms before an interrupted stream is opened again; the last one repeats. */
const againMs = [100, 500, 1_000, 2_000];
/** Ended runs that no event reported are read from the server; one such read returns at most this number. */
const caughtUpMost = 5_000;
/** An ended run may become visible in the store up to this many ms later. */
const endBackMs = 5_000;
const rememberedMost = 20_000;

export function serverRuns(api: Client): ClusterRuns {
  const list: ClusterRuns["list"] = async (
    { task, states, sinceMs, limit, namespaces, labels, ...match },
    whole = false,
  ) => {
    const [namespace] = namespaces ?? [];
    const given = {
      ...match,
      ...(labels === undefined ? {} : { label: textsOfLabels(labels) }),
      ...(namespace === undefined ? {} : { namespace }),
      ...(task === undefined ? {} : { task }),
      ...(sinceMs === undefined ? {} : { since: isoTime(sinceMs) }),
      state: states,
    };
    const runs = await pages((page) => api.listRuns({ ...given, ...page }), limit);
    if (!whole) return runs.map((run) => runRecord(run));
    return (await each(runs, ({ run }) => api.getRun({ run }))).map((run) => runRecord(run, run));
  };
  return {
    list,
    find: async (run) => runCard(await api.getRun({ run })).run,
    card: async (run) => runCard(await api.getRun({ run })),
    async logs(run, limit) {
      if (limit === 0) return [];
      return (await pages((page) => api.listLogs({ run, ...page }), limit)).map((line) => logLine(run, line));
    },
    async cancel(run, reason) {
      return (await api.cancelRun({ run, ...why(reason) })).outcome;
    },
    async rerun(run, reason) {
      const made = await api.rerunRun({ run, ...why(reason) });
      return { runId: made.run, created: made.created };
    },
    decide: async (run, how, reason) => void (await api.decideRun({ run, how, ...why(reason) })),
    follow: (task, known, listener, signal) => followEnds(api, list, { task, known, listener, signal }),
  };
}

interface Following {
  task: string | undefined;
  known: Parameters<ClusterRuns["follow"]>[1];
  listener: EndListener;
  signal: AbortSignal;
}

/**
 * Reports each ended run once. A stream's first event, `resync`, means that earlier ends were not reported, so they are read from the
 * server. Ends that the stream only counts (`more`), and ends while the stream was interrupted, are read in the same way.
 */
async function followEnds(api: Client, list: ClusterRuns["list"], following: Following): Promise<void> {
  const { task, known, listener, signal } = following;
  const ofTask = task === undefined ? {} : { task };
  const seen = new Set(known.map(({ runId }) => runId));
  const filter: RunFilter & { states: (typeof outcomes)[number][] } = { ...ofTask, limit: 1, states: [...outcomes] };
  // By the server's clock: the end of the last known run, or, if none is known, the latest end of all runs.
  let latestMs = known.at(-1)?.endedMs ?? (await list(filter))[0]?.endedMs ?? 0;
  // Runs that ended up to `latestMs` are marked as seen, so that they are not reported.
  const before = await list({ ...filter, limit: caughtUpMost, sinceMs: Math.max(0, latestMs - endBackMs) });
  for (const { runId, endedMs } of before) if ((endedMs ?? 0) <= latestMs) seen.add(runId);
  const tell = (run: Parameters<EndListener["ended"]>[0]) => {
    if (seen.has(run.runId)) return;
    seen.add(run.runId);
    if (seen.size > rememberedMost) seen.delete(seen.values().next().value as number);
    latestMs = Math.max(latestMs, run.endedMs ?? 0);
    listener.ended(run);
  };
  const catchUp = async () => {
    const missed = await list({ ...filter, limit: caughtUpMost, sinceMs: Math.max(0, latestMs - endBackMs) });
    if (missed.length === caughtUpMost) listener.left();
    for (const run of missed.reverse()) tell(run);
  };
  let failures = 0;
  while (!signal.aborted) {
    try {
      for await (const event of api.followEvents(ofTask, { signal })) {
        if (failures > 0) listener.back();
        failures = 0;
        if (event.type === "ended") tell(runRecord(event.run));
        else if (event.type === "more" || event.type === "resync") await catchUp();
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!isCarillonError(error, "SERVER_UNREACHABLE") && !isCarillonError(error, "SERVER_BUSY")) throw error;
      if (failures++ === 0) listener.away();
    }
    await pause(systemClock, againMs[Math.min(failures, againMs.length) - 1] ?? (againMs[0] as number), signal);
  }
}
