/**
 * That runs have ended, of tasks that keep no history of those that went well: one row for all that ended in one statement,
 * of which a run costs two numbers. It is read only when a reply was lost: has this run ended, under this fence? Without it
 * a repeated enqueue would make a run again that is over already, and a repeated verdict would be taken for a late one.
 */
export const runTrace = (s: string) => `
create table ${s}.run_trace (
  ended_ms bigint not null,
  run_ids bigint[] not null,
  fences bigint[] not null
) partition by range (ended_ms);
create index run_trace_ended on ${s}.run_trace (ended_ms);
`;
