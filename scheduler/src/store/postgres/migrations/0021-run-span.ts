/**
 * The spans of traced runs that begin other runs, which continue the trace from there. Written before the other runs are made; kept for a
 * week.
 */
export const runSpan = (s: string) => `
create table ${s}.run_span (
  run_id bigint primary key,
  context text not null,
  created_ms bigint not null
);
create index run_span_created on ${s}.run_span (created_ms);
`;
