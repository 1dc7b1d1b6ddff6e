/** The holder of a node's name, for a message. A worker by HTTP need not report its host or its process: then host is "", pid 0. */
export const nameHolder = ({ host, pid }: { host: string; pid: number }) =>
  `a live process${pid > 0 ? `: pid ${pid}` : ""}${host === "" ? "" : ` on ${host}`}`;
