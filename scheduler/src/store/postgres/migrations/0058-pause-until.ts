/**
 * When a pause ends by itself; null: at a resume. The leader resumes such a task then. An older leader leaves it paused; who takes over
 * after that resumes it as of its time.
 */
export const pauseUntil = (s: string) => `
alter table ${s}.task add column paused_until_ms bigint;
create index task_paused_until on ${s}.task (paused_until_ms) where paused_until_ms is not null;
`;
