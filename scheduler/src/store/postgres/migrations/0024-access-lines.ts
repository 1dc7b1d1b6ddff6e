/**
 * `token.made_by`: the token with which a token was created; if the creating token is revoked, the created one is revoked, too.
 * `user_account.version`: if two admins edit a user at the same time, the later edit is refused instead of overwriting the earlier one.
 */
export const accessLines = (s: string) => `
alter table ${s}.token add column made_by int references ${s}.token;
create index token_made_by on ${s}.token (made_by) where made_by is not null;
alter table ${s}.user_account add column version int not null default 1;
`;
