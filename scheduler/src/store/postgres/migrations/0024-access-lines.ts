/**
 * The token that created a token, because the second is revoked with the first. Also a version of each user: if two admins edit a user at
 * the same time, the second edit is refused instead of undoing the first unseen.
 */
export const accessLines = (s: string) => `
alter table ${s}.token add column made_by int references ${s}.token;
create index token_made_by on ${s}.token (made_by) where made_by is not null;
alter table ${s}.user_account add column version int not null default 1;
`;
