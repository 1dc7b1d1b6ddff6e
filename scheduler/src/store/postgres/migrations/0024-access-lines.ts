/**
 * By which token a token was made, since it ends with that one; and a user's version, so that of two admins who edit at once neither
 * undoes unseen what the other did.
 */
export const accessLines = (s: string) => `
alter table ${s}.token add column made_by int references ${s}.token;
create index token_made_by on ${s}.token (made_by) where made_by is not null;
alter table ${s}.user_account add column version int not null default 1;
`;
