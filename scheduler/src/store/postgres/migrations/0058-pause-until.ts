/**
 * The time at which a pause ends by itself; null: it lasts until a resume. The leader resumes such a task then. A leader of older code
 * leaves it paused; the next newer leader resumes it as of its time.
 */
export const pauseUntil = (s: string) => `
alter table ${s}.task add column paused_until_ms bigint;
create index task_paused_until on ${s}.task (paused_until_ms) where paused_until_ms is not null;
`;
