import type { AnswerStore, Beginning } from "../answer-store.ts";
import type { Database } from "./database.ts";

interface Row {
  request: Buffer;
  token: string;
  run_ids: number[];
  begun_ms: number;
  status: number | null;
  answer: unknown;
  version: number | null;
}

export function answerStore(database: Database): AnswerStore {
  const s = database.schema;
  return {
    async begin({ who, key, request, runs }, nowMs, busyMs): Promise<Beginning> {
      const now = Math.round(nowMs);
      for (;;) {
        const [made] = await database.query<Row>(
          "answer-begin",
          `insert into ${s}.idempotent_answer (who, key, request, begun_ms, run_ids)
           values ($1, $2, $3, $4, array(select nextval('${s}.run_id')::float8 from generate_series(1, $5)))
           on conflict (who, key) do nothing returning token, run_ids`,
          [who, key, request, now, runs],
        );
        if (made) return { kind: "begun", token: made.token, runIds: made.run_ids };
        const [row] = await database.query<Row>(
          "answer-look",
          `select request, token, run_ids, begun_ms, status, answer, version from ${s}.idempotent_answer where who = $1 and key = $2`,
          [who, key],
        );
        // The row was deleted between the two statements, so the key is free again.
        if (!row) continue;
        if (!row.request.equals(request)) return { kind: "mismatch" };
        if (row.status !== null)
          return { kind: "answered", status: row.status, answer: row.answer, version: row.version };
        if (row.begun_ms > now - busyMs) return { kind: "busy" };
        const [taken] = await database.query<Row>(
          "answer-take",
          `update ${s}.idempotent_answer set begun_ms = $3, token = gen_random_uuid()
           where who = $1 and key = $2 and begun_ms = $4 and status is null returning token, run_ids`,
          [who, key, now, row.begun_ms],
        );
        if (taken) return { kind: "begun", token: taken.token, runIds: taken.run_ids };
      }
    },

    async finish(who, key, token, { status, answer, version }) {
      await database.query(
        "answer-finish",
        `update ${s}.idempotent_answer set status = $4, answer = $5, version = $6 where who = $1 and key = $2 and token = $3`,
        [who, key, token, status, answer === undefined ? null : JSON.stringify(answer), version],
      );
    },

    async forget(who, key, token) {
      await database.query(
        "answer-forget",
        `delete from ${s}.idempotent_answer where who = $1 and key = $2 and token = $3`,
        [who, key, token],
      );
    },

    async leave(who, key, token, begunMs) {
      await database.query(
        "answer-leave",
        `update ${s}.idempotent_answer set begun_ms = $4 where who = $1 and key = $2 and token = $3`,
        [who, key, token, Math.floor(begunMs)],
      );
    },
  };
}
