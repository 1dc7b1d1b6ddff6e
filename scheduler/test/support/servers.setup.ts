import { Pgbouncer, type PoolMode } from "./pgbouncer.ts";
import { directOf, missing, poolable, poolerVariable, required } from "./servers.ts";

/**
 * Makes a plain `npx vitest`, for which no servers run, fail with one clear error instead of one in every file. Starts the
 * poolers that CARILLON_TEST_POOLER asks for.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const absent = required.filter((name) => !process.env[name]);
  if (absent.length > 0) throw new Error(missing(absent));
  const poolers = await poolersBefore(process.env[poolerVariable]);
  return async () => {
    await Promise.all(poolers.map((pooler) => pooler.kill()));
  };
}

/** A pooler's connections per database: so many that tests that hold transactions open do not make other tests wait. */
const poolSize = 60;

async function poolersBefore(mode: string | undefined): Promise<Pgbouncer[]> {
  if (!mode) return [];
  if (mode !== "transaction" && mode !== "session")
    throw new Error(`${poolerVariable} cannot be ${JSON.stringify(mode)}: give transaction or session`);
  return Promise.all(
    poolable.map(async (variable) => {
      const direct = process.env[variable] as string;
      // If the setup of another project in this run has already put a pooler before the server, the direct URL is in this variable.
      const target = process.env[directOf(variable)] || direct;
      const pooler = await Pgbouncer.before(target, { mode: mode satisfies PoolMode, poolSize });
      Object.assign(process.env, { [directOf(variable)]: target, [variable]: pooler.url });
      return pooler;
    }),
  );
}
