/**
 * The hash of a password that was handed to its user, who replaces it at the first sign-in. It is the hash of the present password, or of
 * one that was replaced since, also by older code.
 */
export const temporaryPassword = (s: string) => `
alter table ${s}.user_account add column temporary_hash text;
`;
