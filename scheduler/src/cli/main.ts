#!/usr/bin/env node
/** Only what any Node can read, so that one too old is told so instead of failing on a syntax error. */
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
// What a user's file left open (a pool, a timer) must not keep a command alive that has ended. An error of the stream is told after its writes are.
process.stdout.write("", () => setImmediate(() => process.exit(exitAfterOutput(exit))));

export {};
