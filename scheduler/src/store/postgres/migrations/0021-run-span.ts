/**
 * The spans of traced runs that create other runs, which continue the trace. A span is written before the other runs are created, and is
 * kept for a week.
 */
export const runSpan = (s: string) => `
create table ${s}.run_span (
  run_id bigint primary key,
  context text not null,
  created_ms bigint not null
);
create index run_span_created on ${s}.run_span (created_ms);
`;
