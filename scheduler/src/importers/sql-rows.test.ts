import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isSql, rowsOfSql } from "./sql-rows.ts";

const read = (text: string, columns: readonly string[] = ["id", "name"]) =>
  rowsOfSql(text, new Map([["t", (count) => (count === columns.length ? columns : undefined)]])).get("t");

describe("rows of a dump", () => {
  it("are those of the requested tables, however the INSERT is written", () => {
    const dump = `-- MySQL dump
/*!40101 SET NAMES utf8mb4 */;
DROP TABLE IF EXISTS \`t\`;
CREATE TABLE \`t\` (\`id\` int(11) NOT NULL, \`name\` varchar(5) DEFAULT 'a,(b' COMMENT 'x', PRIMARY KEY (\`id\`)) ENGINE=InnoDB;
LOCK TABLES \`t\` WRITE;
INSERT INTO \`t\` VALUES (1,'one'),(2,NULL);
insert ignore into db.t (\`name\`, id) values ('three', 3), (_utf8mb4'four', 4) on duplicate key update name = values(name);
INSERT INTO other VALUES ('(', 1);
REPLACE INTO "t" VALUES (0, 'not a table: that is a text');
REPLACE INTO t VALUES (-5.5, now()); # a comment with 'quotes
`;
    expect(isSql(dump)).toBe(true);
    expect(read(dump)).toEqual([
      { id: 1, name: "one" },
      { id: 2, name: null },
      { id: 3, name: "three" },
      { id: 4, name: "four" },
      { id: -5.5, name: null },
    ]);
  });

  it("have the columns of CREATE TABLE; without it, the columns follow from their number", () => {
    expect(
      read("CREATE TABLE IF NOT EXISTS s.t (name text, id int, KEY k (id)); INSERT INTO t VALUES ('a', 1)"),
    ).toEqual([{ name: "a", id: 1 }]);
    expect(read("INSERT INTO t VALUES (1, 'a')")).toEqual([{ id: 1, name: "a" }]);
  });

  it("contain any text that MySQL can write", () => {
    const escaped: Record<string, string> = {
      "\\": "\\\\",
      "'": "\\'",
      "\0": "\\0",
      "\n": "\\n",
      "\r": "\\r",
      "\x1a": "\\Z",
    };
    const quoted = (text: string) => `'${[...text].map((char) => escaped[char] ?? char).join("")}'`;
    const doubled = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" }), { minLength: 1 }), fc.boolean(), (texts, double) => {
        const rows = texts.map((text, id) => `(${id}, ${double ? doubled(text) : quoted(text)})`);
        expect(read(`INSERT INTO t VALUES ${rows.join(",\n")};`)).toEqual(texts.map((name, id) => ({ id, name })));
      }),
    );
  });

  it.each([
    ["\nINSERT INTO t VALUES (1, 'a", "line 2: the text that begins with ' is not closed"],
    ["INSERT INTO t VALUES\n(1, (2)", "line 2: what opens here is not closed"],
    ["INSERT INTO t VALUES (1, 'a'),\n(1, 'a', 3)", "line 2: a row of t has 3 values, and its columns are not known"],
    ["INSERT INTO t (id) VALUES (1, 'a')", "line 1: a row of t has 2 values, and its columns are not known"],
    ["INSERT INTO t\nSELECT 1, 'a'", "line 2: an INSERT into t has no VALUES"],
  ])("are reported with their line if unreadable: %j", (text, why) => {
    expect(() => read(text)).toThrow(why);
  });

  it("are read or reported, whatever the text", () => {
    const piece = fc.constantFrom(
      ..."INSERT INTO t VALUES ( ) , ; ' \" ` \\ 1 -- # /* */ CREATE TABLE NULL a.t \n".split(" "),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        try {
          expect(read(pieces.join(" "))).toBeInstanceOf(Array);
        } catch (error) {
          expect((error as Error).message).toMatch(/^line \d+: /);
        }
      }),
    );
  });
});
