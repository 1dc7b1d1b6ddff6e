/**
 * Numbers of waiting due runs by alarm rule, task and time, from which rules of the kind `queue` detect growth. Each count has a row for
 * task 0.
 */
export const alarmQueue = (s: string) => `
create table ${s}.alarm_queue (
  rule text not null,
  task_id int not null,
  at_ms bigint not null,
  waiting int not null,
  primary key (rule, task_id, at_ms)
);
`;
