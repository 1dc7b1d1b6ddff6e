#!/usr/bin/env node
/**
 * This file uses only syntax that old versions of Node can parse, so that they print the message below instead of a syntax error.
 */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `carillon: Node.js ${process.versions.node} is too old\n  hint: Install Node.js 20.19 or newer.\n`,
  );
  process.exit(2);
}
const { main } = await import("./program.ts");
const { exitAfterOutput } = await import("./readers.ts");
const exit = await main(process.argv.slice(2));
// Exit explicitly, because handles that a user's file left open (a pool, a timer) would keep the finished command alive. The empty write
// comes first, because a stream reports an error only after its pending writes.
process.stdout.write("", () => setImmediate(() => process.exit(exitAfterOutput(exit))));

export {};
