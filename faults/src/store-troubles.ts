import type pg from "pg";

/**
 * The PostgreSQL error codes with which the faults make writes fail: a full disk, and two kinds of conflict between transactions.
 */
const codes = { "disk full": "53100", "serialization failure": "40001", deadlock: "40P01" } as const;
export type StoreTrouble = keyof typeof codes;

const tables = ["run", "run_history", "attempt", "session", "leadership", "plan", "slot", "task", "tally_delta"];

/** Installs triggers on `tables` that make a write fail, with the configured probability, while a fault is set. */
export async function armStore(client: pg.Client, schema: string): Promise<void> {
  await client.query(`
    create table ${schema}.trouble (code text not null, chance float8 not null);
    create function ${schema}.trouble() returns trigger language plpgsql as $trouble$
    declare
      trouble ${schema}.trouble;
    begin
      select * into trouble from ${schema}.trouble where random() < chance limit 1;
      if found then raise exception 'could not write: as the harness has it' using errcode = trouble.code; end if;
      return null;
    end $trouble$;
    ${tables.map((table) => `create trigger trouble before insert or update or delete on ${schema}.${table} for each statement execute function ${schema}.trouble();`).join("\n")}
  `);
}

/** Returns the SQL that sets a fault. @param chance the probability that a write fails */
export const refuse = (schema: string, trouble: StoreTrouble, chance: number): string =>
  `insert into ${schema}.trouble values ('${codes[trouble]}', ${chance})`;

export const accept = (schema: string): string => `delete from ${schema}.trouble`;
