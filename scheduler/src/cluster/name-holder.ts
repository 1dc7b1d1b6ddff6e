/** Who has a node's name, for a message. A worker by HTTP need not say where it runs, nor as which process: then host is "", pid 0. */
export const nameHolder = ({ host, pid }: { host: string; pid: number }) =>
  `a live process${pid > 0 ? `: pid ${pid}` : ""}${host === "" ? "" : ` on ${host}`}`;
