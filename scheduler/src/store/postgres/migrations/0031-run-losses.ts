/** The number of attempts of a live run that outlived their worker's session. */
export const runLosses = (s: string) => `
alter table ${s}.run add column losses int not null default 0;
`;
