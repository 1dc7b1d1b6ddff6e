/** Mutates valid inputs: texts, bytes and structures. Every edit is a value, so that a failure can be shrunk edit by edit. */
import fc from "fast-check";

type TextEdit =
  | { readonly edit: "delete" | "double"; readonly at: number; readonly length: number }
  | { readonly edit: "insert" | "replace"; readonly at: number; readonly length: number; readonly text: string }
  | { readonly edit: "cut"; readonly at: number }
  | { readonly edit: "swap"; readonly at: number; readonly to: number; readonly length: number }
  | { readonly edit: "number"; readonly at: number; readonly text: string }
  | {
      readonly edit: "splice";
      readonly at: number;
      readonly from: number;
      readonly other: number;
      readonly length: number;
    };

export const oddNumbers = [
  "0",
  "-0",
  "-1",
  "1",
  "2",
  "7",
  "12",
  "24",
  "31",
  "32",
  "59",
  "60",
  "99",
  "100",
  "255",
  "256",
  "1970",
  "2100",
  "2199",
  "2200",
  "2201",
  "9999",
  "65535",
  "65536",
  "2147483647",
  "2147483648",
  "4294967296",
  "9007199254740991",
  "9007199254740993",
  "1e308",
  "1e-320",
  "1e999",
  "-1e999",
  "0x10",
  "1_000",
  "00",
  "08",
  "1.5",
  ".5",
  "5.",
  "NaN",
  "Infinity",
  "१२",
  "１",
  "99999999999999999999999999999999",
];
export const oddTexts = [
  "",
  " ",
  "\t",
  "\n",
  "\r",
  "\r\n",
  "\0",
  "\u00a0",
  "\u2028",
  "\ufeff",
  "\ud800",
  "\udc00",
  "😀",
  "e\u0301",
  "İ",
  "ß",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "length",
  "null",
  "undefined",
  "true",
  "[]",
  "{}",
  "../../etc/passwd",
  "'",
  '"',
  "`",
  "\\",
  "\\u0000",
  "$" + "{x}",
  "%s",
  "%00",
  "<!--",
  "]]>",
  "&amp;",
  "&x;",
  "#",
  "*",
  "?",
  "@",
  "/",
  "//",
  ",",
  ",,",
  "-",
  "--",
  "~",
  "!",
  ":",
  ";",
  "=",
  "|",
  "\u202e",
  "\x1b[2J",
  "\u0085",
  "𝟙",
];

const place = fc.nat(1_000_000);
const small = fc.integer({ min: 1, max: 12 });

const textEdit = (words: readonly string[]): fc.Arbitrary<TextEdit> => {
  const piece = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...words, ...oddTexts) },
    { weight: 2, arbitrary: fc.constantFrom(...oddNumbers) },
    { weight: 1, arbitrary: fc.string({ maxLength: 6, unit: "binary" }) },
  );
  const withText = (edit: "insert" | "replace") =>
    fc.record({ edit: fc.constant(edit), at: place, length: small, text: piece });
  const plain = (edit: "delete" | "double") => fc.record({ edit: fc.constant(edit), at: place, length: small });
  return fc.oneof(
    withText("insert"),
    withText("replace"),
    plain("delete"),
    plain("double"),
    fc.record({ edit: fc.constant("cut" as const), at: place }),
    fc.record({ edit: fc.constant("swap" as const), at: place, to: place, length: small }),
    fc.record({ edit: fc.constant("number" as const), at: place, text: fc.constantFrom(...oddNumbers) }),
    fc.record({ edit: fc.constant("splice" as const), at: place, from: place, other: place, length: fc.nat(60) }),
  );
};

function edited(text: string, edit: TextEdit, corpus: readonly string[]): string {
  const at = text.length === 0 ? 0 : edit.at % (text.length + 1);
  switch (edit.edit) {
    case "delete":
      return text.slice(0, at) + text.slice(at + edit.length);
    case "double":
      return text.slice(0, at + edit.length) + text.slice(at);
    case "insert":
      return text.slice(0, at) + edit.text + text.slice(at);
    case "replace":
      return text.slice(0, at) + edit.text + text.slice(at + edit.length);
    case "cut":
      return text.slice(0, at);
    case "swap": {
      const piece = text.slice(at, at + edit.length);
      const rest = text.slice(0, at) + text.slice(at + edit.length);
      const to = edit.to % (rest.length + 1);
      return rest.slice(0, to) + piece + rest.slice(to);
    }
    case "number": {
      const found = [...text.matchAll(/\d+/g)];
      const one = found[edit.at % Math.max(1, found.length)];
      return one === undefined ? text : text.slice(0, one.index) + edit.text + text.slice(one.index + one[0].length);
    }
    case "splice": {
      const other = corpus[edit.other % corpus.length] as string;
      const from = edit.from % (other.length + 1);
      return text.slice(0, at) + other.slice(from, from + edit.length) + text.slice(at);
    }
  }
}

/** Generates mutated texts. @param words tokens of the language, which edits insert */
export function spoiltTexts(corpus: readonly string[], words: readonly string[] = [], edits = 5): fc.Arbitrary<string> {
  return fc
    .tuple(fc.constantFrom(...corpus), fc.array(textEdit(words), { maxLength: edits }))
    .map(([text, all]) => all.reduce((present, edit) => edited(present, edit, corpus), text));
}

/** Generates texts of random tokens of the language. */
export const wordSalad = (words: readonly string[], separator: string, most = 14): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...words), { maxLength: most }).map((chosen) => chosen.join(separator));

/** Generates JSON values of all kinds, including those that attackers or faulty exports produce. */
export const oddJson: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(...oddTexts),
  fc.constantFrom<unknown>(null, true, false, 0, -0, -1, 1, 1.5, 1e308, 5e-324, 2 ** 31, 2 ** 53, -(2 ** 53), [], {}),
  fc.constantFrom<unknown>([[]], [null], [{}], { "": 0 }, { a: { b: {} } }, JSON.parse('{"__proto__": {"x": 1}}')),
  fc.integer({ min: 1, max: 2_000 }).map((depth) => JSON.parse("[".repeat(depth) + "]".repeat(depth)) as unknown),
  fc.integer({ min: 1, max: 70_000 }).map((length) => "x".repeat(length)),
  fc
    .constantFrom(...oddNumbers)
    .map((text) => Number(text))
    .filter(Number.isFinite),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Generates JavaScript values of all kinds, for options that a program passes. */
export const oddValues: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: oddJson },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom<() => unknown>(
        () => undefined,
        () => Number.NaN,
        () => Number.POSITIVE_INFINITY,
        () => 5n,
        () => Symbol("s"),
        () => () => 5,
        () => new Date(Number.NaN),
        () => new Date(0),
        () => new Map([["a", 1]]),
        () => /x/,
        () => Object.create(null),
        () => new (class Odd {})(),
        () => new Uint8Array(3),
        () => cyclic(),
        () => new Array(2),
        () => new String("5m"),
        () => Buffer.from("x"),
        () => new Set([1]),
        () => ({ toJSON: () => undefined }),
      )
      .map((make) => make()),
  },
);

function cyclic(): unknown {
  const own: Record<string, unknown> = {};
  own.own = own;
  return own;
}

type NodeEdit = { readonly at: number } & (
  | { readonly edit: "put" | "add"; readonly name: string; readonly value: unknown }
  | { readonly edit: "remove" | "wrap" | "text" }
  | { readonly edit: "rename"; readonly name: string }
  | { readonly edit: "copy"; readonly from: number }
);

interface Place {
  readonly holder: Record<string, unknown> | unknown[];
  readonly key: string | number;
}

/** Generates copies of valid values with some parts mutated. */
export function spoiltValues(
  corpus: readonly unknown[],
  values: fc.Arbitrary<unknown> = oddJson,
  names: readonly string[] = [],
  edits = 4,
): fc.Arbitrary<unknown> {
  const name = fc.oneof(
    fc.constantFrom(...names, "x", "__proto__", "constructor", "toString", ""),
    fc.string({ maxLength: 5 }),
  );
  const edit: fc.Arbitrary<NodeEdit> = fc.oneof(
    fc.record({ at: place, edit: fc.constantFrom("put" as const, "add" as const), name, value: values }),
    fc.record({ at: place, edit: fc.constantFrom("remove" as const, "wrap" as const, "text" as const) }),
    fc.record({ at: place, edit: fc.constant("rename" as const), name }),
    fc.record({ at: place, edit: fc.constant("copy" as const), from: place }),
  );
  return fc.tuple(fc.constantFrom(...corpus), fc.array(edit, { maxLength: edits })).map(([value, all]) => {
    const root = { root: clone(value) };
    for (const one of all) spoil(root, one);
    return root.root;
  });
}

/** Values are copied and mutated only to this depth. No valid value is deeper, and the recursion would overflow the stack. */
const deepest = 40;

const clone = (value: unknown, depth = 0): unknown => {
  if (depth > deepest || !isPlain(value)) return value;
  if (Array.isArray(value)) return value.map((part) => clone(part, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, clone(part, depth + 1)]));
};

const isPlain = (value: unknown): value is object =>
  Array.isArray(value) ||
  (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype);

function placesOf(root: object): Place[] {
  const places: Place[] = [];
  const open: { holder: object; depth: number }[] = [{ holder: root, depth: 0 }];
  const seen = new Set<object>();
  for (let next = open.pop(); next && places.length < 2_000; next = open.pop()) {
    const { holder, depth } = next;
    if (seen.has(holder)) continue;
    seen.add(holder);
    for (const [key, value] of Object.entries(holder)) {
      places.push({ holder: holder as Place["holder"], key: Array.isArray(holder) ? Number(key) : key });
      if (depth < deepest && isPlain(value)) open.push({ holder: value, depth: depth + 1 });
    }
  }
  return places;
}

function spoil(root: object, edit: NodeEdit): void {
  const places = placesOf(root);
  const { holder, key } = places[edit.at % places.length] as Place;
  const own = holder as Record<string | number, unknown>;
  const present = own[key];
  const put = (name: string | number, value: unknown) =>
    void Object.defineProperty(own, name, { value, configurable: true, enumerable: true, writable: true });
  switch (edit.edit) {
    case "put":
      put(key, clone(edit.value));
      break;
    case "add":
      if (Array.isArray(present)) present.push(clone(edit.value));
      else if (isPlain(present))
        Object.defineProperty(present, edit.name, {
          value: clone(edit.value),
          configurable: true,
          enumerable: true,
          writable: true,
        });
      break;
    case "remove":
      if (Array.isArray(holder)) holder.splice(Number(key), 1);
      else if (holder !== root) delete own[key];
      break;
    case "wrap":
      put(key, [present]);
      break;
    case "text":
      put(key, typeof present === "string" ? Number(present) : typeof present === "object" ? "{}" : String(present));
      break;
    case "rename":
      if (holder === root || Array.isArray(holder)) break;
      delete own[key];
      put(edit.name, present);
      break;
    case "copy": {
      const from = places[edit.from % places.length] as Place;
      put(key, clone((from.holder as Record<string | number, unknown>)[from.key]));
      break;
    }
  }
}

type ByteEdit = { readonly at: number } & (
  | { readonly edit: "byte"; readonly value: number }
  | { readonly edit: "word"; readonly value: number }
  | { readonly edit: "cut" | "double" | "delete"; readonly length: number }
  | { readonly edit: "insert"; readonly bytes: Uint8Array }
);

const oddWords = [
  0,
  1,
  -1,
  -2,
  2,
  4,
  16,
  127,
  128,
  255,
  65_535,
  65_536,
  1_048_576,
  16_777_216,
  2 ** 31 - 1,
  -(2 ** 31),
];

/** Generates mutated bytes: with wrong lengths, missing parts and repeated parts. */
export function spoiltBytes(corpus: readonly Buffer[], edits = 4): fc.Arbitrary<Buffer> {
  const edit: fc.Arbitrary<ByteEdit> = fc.oneof(
    fc.record({ at: place, edit: fc.constant("byte" as const), value: fc.nat(255) }),
    fc.record({
      at: place,
      edit: fc.constant("word" as const),
      value: fc.oneof(fc.constantFrom(...oddWords), fc.integer()),
    }),
    fc.record({
      at: place,
      edit: fc.constantFrom("cut" as const, "double" as const, "delete" as const),
      length: small,
    }),
    fc.record({
      at: place,
      edit: fc.constant("insert" as const),
      bytes: fc.uint8Array({ minLength: 1, maxLength: 12 }),
    }),
  );
  return fc.tuple(fc.constantFrom(...corpus), fc.array(edit, { maxLength: edits })).map(([bytes, all]) => {
    let present: Buffer = Buffer.from(bytes);
    for (const one of all) present = spoiltOnce(present, one);
    return present;
  });
}

function spoiltOnce(bytes: Buffer, edit: ByteEdit): Buffer {
  const at = bytes.length === 0 ? 0 : edit.at % bytes.length;
  switch (edit.edit) {
    case "byte":
      if (bytes.length > 0) bytes[at] = edit.value;
      return bytes;
    case "word":
      if (bytes.length >= 4) bytes.writeInt32BE(edit.value | 0, edit.at % (bytes.length - 3));
      return bytes;
    case "cut":
      return bytes.subarray(0, at);
    case "delete":
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + edit.length)]);
    case "double":
      return Buffer.concat([bytes.subarray(0, at + edit.length), bytes.subarray(at)]);
    case "insert":
      return Buffer.concat([bytes.subarray(0, at), edit.bytes, bytes.subarray(at)]);
  }
}
