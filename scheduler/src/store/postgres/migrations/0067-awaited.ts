/**
 * Runs for whose end somebody waits: what ends one tells of it by a signal. It is empty where nobody waits. Not logged: it is empty after a
 * crash, and those who wait put their runs down again.
 */
export const awaited = (s: string) => `
create unlogged table ${s}.awaited (
  run_id bigint primary key,
  since_ms bigint not null
);
`;
