/** The host leads to this machine itself, so nobody between can read what is sent there. @param host as `URL.hostname` writes it */
export const isThisMachine = (host: string): boolean =>
  /^(?:localhost|.*\.localhost|127(?:\.\d+){3}|\[::1\]|\[::ffff:7f[\da-f]{2}:[\da-f]{1,4}\])$/.test(host);
