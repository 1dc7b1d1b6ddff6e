/** The spans of traced runs that begin others: those go on from there. Written before they are made, kept for a week. */
export const runSpan = (s: string) => `
create table ${s}.run_span (
  run_id bigint primary key,
  context text not null,
  created_ms bigint not null
);
create index run_span_created on ${s}.run_span (created_ms);
`;
