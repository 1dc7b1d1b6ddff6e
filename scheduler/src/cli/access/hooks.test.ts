import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Terminal } from "../screen/terminal.ts";
import { previewHook } from "./hooks.ts";

test.each([
  ["after: a1\n", "FILE_INVALID"],
  ['{ "id": 12345678901234567890 }', "PAYLOAD_NOT_JSON"],
])("hooks preview reads the body as the route of the hook does, so it refuses %s", async (body, code) => {
  const folder = await mkdtemp(join(tmpdir(), "carillon-hooks-"));
  const file = join(folder, "push.json");
  await writeFile(file, body);
  await expect(previewHook("github", file, {} as never, {} as Terminal)).rejects.toMatchObject({ code });
  await rm(folder, { recursive: true });
});
