/**
 * The time at which a pause ends automatically; null if it lasts until a resume. The leader resumes the task at this time. A leader of an
 * older version leaves it paused; the next leader of a newer version resumes it as of that time.
 */
export const pauseUntil = (s: string) => `
alter table ${s}.task add column paused_until_ms bigint;
create index task_paused_until on ${s}.task (paused_until_ms) where paused_until_ms is not null;
`;
