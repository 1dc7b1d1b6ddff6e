/**
 * Cluster time may go back, because the store's clock was set back while no node ran, or was adopted after a step back. The cluster's row
 * then holds the latest time that was reached, and the time up to which tasks were planned again on an operator's request. Older code sets
 * neither, and reads only the sessions.
 */
export const timeBack = (s: string) => `
alter table ${s}.cluster
  -- The latest cluster time that was seen before it went back; null: it never has.
  add column reached_ms bigint,
  -- What lies ahead up to here was planned anew; null: nothing was.
  add column replanned_ms bigint;
`;
