/**
 * The holder of a node's name as text for a message. A worker that uses HTTP need not report its host or its process: then host is "" and
 * pid is 0.
 */
export const nameHolder = ({ host, pid }: { host: string; pid: number }) =>
  `a live process${pid > 0 ? `: pid ${pid}` : ""}${host === "" ? "" : ` on ${host}`}`;
