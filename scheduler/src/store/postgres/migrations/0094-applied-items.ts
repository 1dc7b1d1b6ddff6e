/**
 * The bundle whose files define an alarm rule or a hook, and the content that the last apply gave it, so that later edits by users can be
 * told apart from it. Older versions ignore both columns, and keep them when they change a row.
 */
export const appliedItems = (s: string) => `
alter table ${s}.alarm_rule
  add column bundle text,
  add column applied jsonb;
alter table ${s}.hook
  add column bundle text,
  add column applied jsonb;
`;
