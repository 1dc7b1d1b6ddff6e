/** Removes the values of a URL's options that are passwords: of Redis' sentinels, and of PostgreSQL. */
export const withoutPasswordOptions = (url: string): string =>
  url.replace(/([?&](?:sentinelPassword|password)=)[^&#]*/g, "$1");

/**
 * Removes everything up to the last @ of a URL except its scheme, and passwords among its options, so that the URL can be printed without
 * credentials. The URL need not be valid.
 */
export const withoutCredentials = (url: string): string =>
  withoutPasswordOptions(url).replace(/^([a-z][a-z\d+.-]*:\/\/)?.*@/is, "$1");

/** The hint for a URL whose user or password contains a character that ends it. */
export const escapeHint =
  "Escape special characters in the user and the password: % is %25, / is %2F, ? is %3F, # is %23 and @ is %40.";

/** True if a URL contains a password: after the user's name, which may be empty, or as an option. */
export const hasPassword = (url: string): boolean =>
  /^[^/]*\/\/.*:.+@/s.test(url) || withoutPasswordOptions(url) !== url;
