import { expect, test } from "vitest";
import { cursorText, namedAfter, pageOf } from "./pages.ts";

test("pages by name contain each name once, also if the database sorts names differently", () => {
  // A database with the locale en_US sorts the names in this order.
  const rows = ["apple", "a-pear", "Banana", "b/cherry", "Zoo"].map((name) => ({ name }));
  const seen: string[] = [];
  for (let cursor: string | null = cursorText(""); cursor !== null; ) {
    const page: { items: string[]; next: string | null } = pageOf(
      namedAfter(rows, cursor),
      2,
      ({ name }) => name,
      ({ name }) => [name],
    );
    seen.push(...page.items);
    cursor = page.next;
  }
  expect(seen).toEqual(["Banana", "Zoo", "a-pear", "apple", "b/cherry"]);
});
