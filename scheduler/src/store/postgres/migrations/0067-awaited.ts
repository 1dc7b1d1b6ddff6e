/**
 * Runs whose end a caller waits for: the statement that ends such a run sends a signal. The table is unlogged, so a crash of the server
 * empties it; the waiting processes then insert their runs again.
 */
export const awaited = (s: string) => `
create unlogged table ${s}.awaited (
  run_id bigint primary key,
  since_ms bigint not null
);
`;
