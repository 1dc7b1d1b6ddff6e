/**
 * How late a run started, in ms, without the time that it waited for its own limits (`ownWaitMs`), because such a wait is intended;
 * null if `lateMs` is null.
 */
export const latenessOf = ({
  lateMs,
  ownWaitMs,
}: {
  lateMs: number | null;
  ownWaitMs: number | null;
}): number | null => (lateMs === null ? null : Math.max(0, lateMs - (ownWaitMs ?? 0)));
