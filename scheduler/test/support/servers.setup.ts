import { Pgbouncer, type PoolMode } from "./pgbouncer.ts";
import { directOf, missing, poolable, poolerVariable, required } from "./servers.ts";

/** Ends a bare `npx vitest` with one clear sentence instead of a failure in every file. */
export default async function setup(): Promise<() => Promise<void>> {
  const absent = required.filter((name) => !process.env[name]);
  if (absent.length > 0) throw new Error(missing(absent));
  const poolers = await poolersBefore(process.env[poolerVariable]);
  return async () => {
    await Promise.all(poolers.map((pooler) => pooler.kill()));
  };
}

/** Large enough that tests which hold transactions open do not wait for each other. */
const poolSize = 60;

async function poolersBefore(mode: string | undefined): Promise<Pgbouncer[]> {
  if (!mode) return [];
  if (mode !== "transaction" && mode !== "session")
    throw new Error(`${poolerVariable} cannot be ${JSON.stringify(mode)}: give transaction or session`);
  return Promise.all(
    poolable.map(async (variable) => {
      const direct = process.env[variable] as string;
      // The setup of another project of this run has already set it.
      const target = process.env[directOf(variable)] || direct;
      const pooler = await Pgbouncer.before(target, { mode: mode satisfies PoolMode, poolSize });
      Object.assign(process.env, { [directOf(variable)]: target, [variable]: pooler.url });
      return pooler;
    }),
  );
}
