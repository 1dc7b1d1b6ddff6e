/** The module `@carillon/zookeeper/testing`: real servers for tests, and faults for these servers. */
export { mortal, mortalPid, throwAwayFolder } from "./afterlife.ts";
export type { Authority, Certificate, Validity } from "./certificates.ts";
export type { EnsembleOptions } from "./ensemble.ts";
export { Ensemble } from "./ensemble.ts";
export type { Connection, Mode } from "./four-letter.ts";
export { countersIn, fourLetter } from "./four-letter.ts";
export { freePort } from "./ports.ts";
export type { ClientTls } from "./security.ts";
export { ZooKeeperServer } from "./server.ts";
export type { Direction, Pair, Passing } from "./tcp-proxy.ts";
export { all, TcpProxy } from "./tcp-proxy.ts";
