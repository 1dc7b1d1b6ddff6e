/** How long a run waited for a worker or the scheduler, ms: a wait for its own limit is not lateness, since nothing is missing. */
export const latenessOf = ({
  lateMs,
  ownWaitMs,
}: {
  lateMs: number | null;
  ownWaitMs: number | null;
}): number | null => (lateMs === null ? null : Math.max(0, lateMs - (ownWaitMs ?? 0)));
