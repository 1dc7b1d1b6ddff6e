/**
 * A trace of ended runs, for tasks that store no history of successes. One row covers all runs that ended in one statement; each run takes
 * two numbers. It is read only after a reply was lost, to find out whether a run has ended under a fence. Without it, a repeated enqueue
 * would create an ended run again, and a repeated verdict would be treated as a late one.
 */
export const runTrace = (s: string) => `
create table ${s}.run_trace (
  ended_ms bigint not null,
  run_ids bigint[] not null,
  fences bigint[] not null
) partition by range (ended_ms);
create index run_trace_ended on ${s}.run_trace (ended_ms);
`;
