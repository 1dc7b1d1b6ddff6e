import type { SqlClient } from "../../base/change.ts";
import { CarillonError } from "../../base/errors.ts";
import { migrations } from "./migrations/index.ts";

type Migration = (typeof migrations)[number];

const namedMost = 8;

/**
 * SQL condition: a table called `migration` is Carillon's. An application may also have a table of that name.
 * @param table the parameter with the table's name
 */
export const isOurs = (table: string) =>
  `exists (select from pg_attribute where attrelid = to_regclass(${table}) and attname = 'applied_ms')`;

interface Made {
  relations: Set<string>;
  functions: Set<string>;
}

/** The names of the tables, indexes, sequences and functions that these migrations create. */
function madeBy(some: readonly Migration[]): Made {
  const made: Made = { relations: new Set(), functions: new Set() };
  const text = some.map(({ sql }) => sql('"s"')).join("\n");
  const creates = /\bcreate (?:unique |unlogged )?(table|index|sequence|function) (?:"s"\.)?(\w+)/g;
  for (const [, kind, name] of text.matchAll(creates)) {
    (kind === "function" ? made.functions : made.relations).add(name as string);
    // The sequence of the identity column, if the table has one. Carillon uses this name, but PostgreSQL chooses another if the name is
    // taken.
    if (kind === "table") made.relations.add(`${name}_id_seq`);
  }
  return made;
}

/** The names of all tables, indexes and sequences that the migrations create, and of sequences that their tables may have. */
export const ownRelations = (): string[] => [...madeBy(migrations).relations];

/**
 * Checks, before a migration writes anything, that the names of the objects to be created are free.
 * @param from the version of the schema
 * @throws STORE_FOREIGN if the schema contains an object that is not Carillon's, with a name that a pending migration would create
 */
export async function requireNamesFree(client: SqlClient, s: string, from: number): Promise<void> {
  const applied = madeBy(migrations.filter(({ number }) => number <= from));
  const pending = madeBy(migrations.filter(({ number }) => number > from));
  const relations = [...pending.relations].filter((name) => !applied.relations.has(name));
  const functions = [...pending.functions].filter((name) => !applied.functions.has(name));
  const { rows } = await client.query(
    `select case relkind when 'v' then 'view ' when 'm' then 'view ' when 'S' then 'sequence ' when 'i' then 'index ' else 'table ' end || relname as what
     from pg_class where relnamespace = to_regnamespace($1) and (relname = any($2) or (relname = 'migration' and not ${isOurs("$4")}))
     union all
     select 'type ' || typname from pg_type where typnamespace = to_regnamespace($1) and typrelid = 0 and typname = any($2)
     union all
     select 'function ' || proname from pg_proc where pronamespace = to_regnamespace($1) and proname = any($3)
     order by what`,
    [s, relations, functions, `${s}.migration`],
  );
  if (rows.length === 0) return;
  const named = rows.slice(0, namedMost).map(({ what }) => what);
  const more = rows.length > namedMost ? ` and ${rows.length - namedMost} more` : "";
  throw new CarillonError(
    "STORE_FOREIGN",
    `schema ${s} has something that is not Carillon's, under names that Carillon needs: ${named.join(", ")}${more}`,
    { hint: "Nothing was changed. Give Carillon a schema of its own: --schema NAME, or the option `schema`." },
  );
}
