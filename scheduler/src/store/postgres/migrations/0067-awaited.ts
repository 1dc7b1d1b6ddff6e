/**
 * Runs whose end a caller awaits: the statement that ends such a run sends a signal. The table is unlogged, so it is empty after a crash of
 * the server; the waiting processes then insert their runs again.
 */
export const awaited = (s: string) => `
create unlogged table ${s}.awaited (
  run_id bigint primary key,
  since_ms bigint not null
);
`;
