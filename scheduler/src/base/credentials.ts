/** A URL as it may be shown, also one that is none: whatever stands before its last @ is secret. */
export const withoutCredentials = (url: string): string => url.replace(/^([a-z][a-z\d+.-]*:\/\/)?.*@/is, "$1");

/** Whether a URL has a password, with or without a user's name before it. */
export const hasPassword = (url: string): boolean => /^[^/]*\/\/.*:.+@/s.test(url);
