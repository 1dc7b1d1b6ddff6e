/**
 * The hash of a temporary password that an admin gave to a user, who must replace it at the first sign-in. If it equals the hash of the
 * present password, the user has not replaced it; otherwise the temporary password was replaced, perhaps by older code.
 */
export const temporaryPassword = (s: string) => `
alter table ${s}.user_account add column temporary_hash text;
`;
