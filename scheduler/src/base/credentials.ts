/**
 * Removes everything up to the last @ of a URL except its scheme, so that the URL can be printed without credentials. The URL
 * need not be valid.
 */
export const withoutCredentials = (url: string): string => url.replace(/^([a-z][a-z\d+.-]*:\/\/)?.*@/is, "$1");

/** True if a URL contains a password, with or without a user name. */
export const hasPassword = (url: string): boolean => /^[^/]*\/\/.*:.+@/s.test(url);
