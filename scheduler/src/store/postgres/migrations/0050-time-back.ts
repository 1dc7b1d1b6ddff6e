/**
 * Cluster time may go back: the store's clock was set back while no node ran, or was adopted after a step back. The cluster's row then has
 * the latest time that was reached, and the time up to which an operator had tasks planned anew. Older code sets neither, and sees only the
 * sessions.
 */
export const timeBack = (s: string) => `
alter table ${s}.cluster
  -- The latest cluster time that was seen before it went back; null: it never has.
  add column reached_ms bigint,
  -- What lies ahead up to here was planned anew; null: nothing was.
  add column replanned_ms bigint;
`;
