import { expect, test } from "vitest";
import { splitPercent } from "./percent.ts";

test.each([
  ["plain", "plain", undefined],
  ["mail joe%Joe,%%Where are your kids?%", "mail joe", "Joe,\n\nWhere are your kids?\n"],
  ["date +\\%d", "date +%d", undefined],
  ["a \\x \\% b%in", "a \\x % b", "in\n"],
  ["cat%a\\%b%c", "cat", "a%b\nc\n"],
  ["cat%", "cat", undefined],
  ["cat%%", "cat", "\n"],
  // In the command, `\\%` is not an escaped %: it ends the command.
  ["a\\\\%b", "a\\\\", "b\n"],
  // In the standard input, `\\%` gives `\%`, as in Vixie's cron.
  ["cat%x\\\\%y", "cat", "x\\%y\n"],
  ["cat%x\\", "cat", "x\\\n"],
])("%s", (field, command, stdin) => {
  expect(splitPercent(field)).toEqual(stdin === undefined ? { command } : { command, stdin });
});
