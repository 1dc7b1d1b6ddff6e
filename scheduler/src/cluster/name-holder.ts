/**
 * Describes the process that has a node's name, for a message. A worker connected by HTTP may not report its host and process id; `host` is
 * then "" and `pid` is 0.
 */
export const nameHolder = ({ host, pid }: { host: string; pid: number }) =>
  `a live process${pid > 0 ? `: pid ${pid}` : ""}${host === "" ? "" : ` on ${host}`}`;
