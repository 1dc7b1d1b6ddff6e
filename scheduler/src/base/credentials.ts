/** A URL, valid or not, without everything before its last @, which is secret; it can then be shown. */
export const withoutCredentials = (url: string): string => url.replace(/^([a-z][a-z\d+.-]*:\/\/)?.*@/is, "$1");

/** True if a URL has a password, with or without a user name before it. */
export const hasPassword = (url: string): boolean => /^[^/]*\/\/.*:.+@/s.test(url);
