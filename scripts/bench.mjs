/**
 * `npm run bench -- QUESTION [ARGUMENT…]`: makes the clone ready, starts a PostgreSQL that writes to the disk as in
 * production, and becomes bench/QUESTION.ts, which reads the arguments and CARILLON_BENCH_POSTGRES_URL. Set by hand,
 * that variable is used as it is.
 */
import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { fail, ready, root, say, Trouble } from "./ready.mjs";
import { machinePostgres } from "./servers/postgres.mjs";
import { startServers } from "./servers.mjs";

const variable = "CARILLON_BENCH_POSTGRES_URL";

async function main() {
  const [question = "", ...args] = process.argv.slice(2);
  const questions = readdirSync(join(root, "bench"))
    .filter((name) => name.endsWith(".ts"))
    .map((name) => basename(name, ".ts"));
  if (!questions.includes(question)) {
    throw new Trouble(
      `usage: npm run bench -- QUESTION [ARGUMENT…]; the questions: ${questions.join(", ") || "none yet"}`,
    );
  }
  ready();
  const program = join(root, "bench/dist", `${question}.js`);
  if (!existsSync(program)) throw new Trouble(`bench/${question}.ts was not compiled to ${program}.`);

  if (!process.env[variable]) {
    const servers = await startServers(["postgres"], { durable: true });
    process.env[variable] = servers.env[machinePostgres.variable];
    say(`${servers.titles.join(", ")}, fsync on`);
    // Should the bench call process.exit, or die, the servers' keeper notices and stops them by itself.
    process.once("beforeExit", () => void servers.stop());
  }
  process.argv.splice(1, Number.POSITIVE_INFINITY, program, ...args);
  await import(pathToFileURL(program).href);
}

await main().catch((error) => {
  fail(error);
  process.exit(); // whatever it had begun would keep it running
});
