import { Writable } from "node:stream";

/**
 * Reserves standard output for the protocol: everything else that is written to it afterwards goes to standard error, including what a
 * configuration file prints while it is loaded.
 * @returns the stream for the protocol
 */
function taken(): Writable {
  const write = process.stdout.write.bind(process.stdout) as typeof process.stdout.write;
  process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write;
  return new Writable({ write: (chunk, _, done) => void write(chunk, done) });
}

let protocol: Writable | undefined;

/** Reserves standard output; must be called before any module of the command is loaded. Later calls return the same stream. */
export function takeStandardOutput(): Writable {
  protocol ??= taken();
  return protocol;
}
