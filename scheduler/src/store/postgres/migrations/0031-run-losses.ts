/** How many attempts of a live run outlived their worker's session. */
export const runLosses = (s: string) => `
alter table ${s}.run add column losses int not null default 0;
`;
