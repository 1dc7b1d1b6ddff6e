/**
 * Parses YAML from outside at a bounded cost. It limits the depth and the number of aliases, and finds duplicate keys itself, because the
 * library compares each key with all keys before it.
 */
import { type Document, isAlias, isMap, isScalar, isSeq, type LineCounter, parseAllDocuments, visit } from "yaml";
import { isExact } from "../base/json-numbers.ts";

export type YamlDocument =
  | { content: unknown; document: Document }
  /** `offset` is the position of the problem in the text; null: unknown. */
  | { problem: string; offset: number | null };

const mostAliases = 100;

/**
 * Returns the documents of the text. A document that cannot be parsed is returned as a problem, and so is a text that is nested too deep.
 */
export function yamlDocuments(text: string, lines?: LineCounter): YamlDocument[] {
  let documents: Document[];
  try {
    documents = [
      ...parseAllDocuments(text, {
        uniqueKeys: false,
        prettyErrors: false,
        version: "1.2",
        logLevel: "silent",
        ...(lines ? { lineCounter: lines } : {}),
      }),
    ] as Document[];
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    return [{ problem: "it is nested too deep", offset: null }];
  }
  return documents.map(read);
}

function read(document: Document): YamlDocument {
  const [error] = document.errors;
  if (error) return { problem: error.message, offset: error.pos[0] };
  try {
    const twice = nameTwice(document);
    if (twice) return twice;
    return { content: document.toJS({ maxAliasCount: mostAliases }), document };
  } catch (cause) {
    const problem = cause instanceof RangeError ? "it is nested too deep" : (cause as Error).message;
    return { problem, offset: null };
  }
}

function nameTwice(document: Document): YamlDocument | undefined {
  let twice: YamlDocument | undefined;
  visit(document, {
    Map: (_, { items }) => {
      const names = new Set<unknown>();
      for (const { key } of items) {
        // Keys that are neither scalars nor aliases are not compared; the parser converts such a key to a text that describes it.
        const name = isScalar(key) ? key.value : isAlias(key) ? `*${key.source}` : undefined;
        if (name === undefined) continue;
        if (names.has(name)) {
          const offset = isScalar(key) || isAlias(key) ? (key.range?.[0] ?? null) : null;
          twice = { problem: `${JSON.stringify(String(name)).slice(0, 100)} is there twice`, offset };
          return visit.BREAK;
        }
        names.add(name);
      }
      return undefined;
    },
  });
  return twice;
}

/** Finds the first number that JavaScript or JSON cannot represent exactly. `offset` is its position in the text; null: unknown. */
export function inexactIn(document: Document): { number: string; offset: number | null } | undefined {
  let found: { number: string; offset: number | null } | undefined;
  visit(document, {
    Scalar: (_, { value, source = "", range }) => {
      if (typeof value !== "number") return undefined;
      const decimal = source.replace(/^\+/, "").replace(/^(-?)\./, "$10.");
      const isHeld =
        /^-?\d/.test(decimal) && !/^-?0[xo]/.test(decimal) ? isExact(decimal) : Number.isSafeInteger(value);
      if (isHeld) return undefined;
      found = { number: source, offset: range?.[0] ?? null };
      return visit.BREAK;
    },
  });
  return found;
}

/**
 * Finds the first merge key (`<<: *base`), which YAML 1.2 does not support and would read as an ordinary key. `offset` is its position in
 * the text; null: unknown.
 */
export function mergeKeyIn(document: Document): { offset: number | null } | undefined {
  let found: { offset: number | null } | undefined;
  visit(document, {
    Pair: (_, { key, value }) => {
      if (!isScalar(key) || key.value !== "<<" || key.type !== "PLAIN") return undefined;
      if (!isAlias(value) && !isMap(value) && !isSeq(value)) return undefined;
      found = { offset: startOf(key) ?? null };
      return visit.BREAK;
    },
  });
  return found;
}

/** Finds the position in the text of a key, given by its path through nested maps. */
export class Places {
  readonly #document: Document;
  readonly #maps = new WeakMap<object, Map<string, { key: unknown; value: unknown }>>();

  constructor(document: Document) {
    this.#document = document;
  }

  /**
   * Returns the position of the last key on the path that exists, or else of the document's start; undefined if neither is known.
   */
  offsetOf(path: readonly string[]): number | undefined {
    let node: unknown = this.#document.contents;
    let offset = startOf(node);
    for (const name of path) {
      if (isSeq(node)) {
        node = node.items[Number(name)];
        offset = startOf(node) ?? offset;
        continue;
      }
      if (!isMap(node)) break;
      const pair = this.#namesOf(node).get(name);
      if (!pair) break;
      offset = startOf(pair.key) ?? offset;
      node = pair.value;
    }
    return offset;
  }

  #namesOf(map: { items: readonly { key: unknown; value: unknown }[] }) {
    const known = this.#maps.get(map);
    if (known) return known;
    const names = new Map(
      map.items.map((pair) => [isScalar(pair.key) ? String(pair.key.value) : String(pair.key), pair]),
    );
    this.#maps.set(map, names);
    return names;
  }
}

const startOf = (node: unknown): number | undefined =>
  (node as { range?: [number, number, number] } | null)?.range?.[0];
