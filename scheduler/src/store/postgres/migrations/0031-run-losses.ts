/** The number of a live run's attempts whose worker was lost, because the session ended before the attempt did. */
export const runLosses = (s: string) => `
alter table ${s}.run add column losses int not null default 0;
`;
