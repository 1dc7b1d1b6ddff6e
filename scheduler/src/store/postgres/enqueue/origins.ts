import type { RunOrigin } from "../../../run/run-record.ts";
import type { RunStore } from "../../../run/run-store.ts";
import type { Database } from "../database.ts";
import { runState } from "../states.ts";

export function originStore(database: Database): Pick<RunStore, "origins" | "leaveSpans"> {
  const s = database.schema;
  return {
    // The origin of a run without inputs is its parent: the run that spawned it, the run whose children it joins, or the only run that it
    // follows. A run that continues a run or follows several runs has these runs as inputs. They are its origins, but `apart`: its trace is
    // only linked to theirs.
    origins: (runIds) =>
      database.query<RunOrigin>(
        "run-origins",
        `select run_id as "runId", context, created_ms as "createdMs", false as apart from ${s}.run_origin where run_id = any($1)
         union all
         select r.id, p.context, p.created_ms, r.inputs is not null from ${s}.run r
         cross join lateral unnest(coalesce(r.inputs, array[r.parent_id])) f (id) join ${s}.run_span p on p.run_id = f.id
         where r.id = any($1)`,
        [runIds],
      ),

    async leaveSpans(spans, nowMs, sessionId) {
      // A run may occur several times, once for each claim; its last span counts. The order by run number prevents deadlocks between two
      // writers of the same rows.
      const ordered = [...new Map(spans.map((span) => [span.runId, span])).values()].sort((a, b) => a.runId - b.runId);
      const taken = await database.query<{ runId: number }>(
        "run-span",
        `insert into ${s}.run_span (run_id, context, created_ms) select i.id, i.context, $4 from unnest($1::bigint[], $2::bigint[], $3::text[]) with ordinality i (id, fence, context, place)
         join ${s}.run r on r.id = i.id and r.fence = i.fence and r.state + 0 = ${runState.claimed} and ($5::bigint is null or r.session_id = $5)
         order by i.place
         on conflict (run_id) do update set context = excluded.context, created_ms = excluded.created_ms
         returning run_id as "runId"`,
        [
          ordered.map(({ runId }) => runId),
          ordered.map(({ fence }) => fence),
          ordered.map(({ context }) => context),
          Math.round(nowMs),
          sessionId ?? null,
        ],
      );
      return new Set(taken.map(({ runId }) => runId));
    },
  };
}
