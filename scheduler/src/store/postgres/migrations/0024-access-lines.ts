/**
 * The token by which a token was made, since the second ends with the first. And a user's version: if two admins edit a user at once,
 * neither undoes the other's change unseen.
 */
export const accessLines = (s: string) => `
alter table ${s}.token add column made_by int references ${s}.token;
create index token_made_by on ${s}.token (made_by) where made_by is not null;
alter table ${s}.user_account add column version int not null default 1;
`;
