import { expect, it } from "vitest";
import { ask, here, json, start } from "./process.ts";

it("users are created with a password shown once, get a new password, and are removed; the last admin cannot be", async () => {
  const made = await ask("users", "create", "ann", "--role", "admin", "--reason", "on call");
  expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(/^[a-z2-9]{6}(-[a-z2-9]{6}){3}\n$/)]);
  const again = await json("users", "password", "ann");
  expect(again).toMatchObject({ name: "ann", role: "admin", password: expect.any(String) });
  const server = start(["server", ...here(), "--listen", "127.0.0.1:0", "--json"]);
  const [, port = ""] = await server.says(/"listening":"127\.0\.0\.1:(\d+)"/);
  const origin = `http://127.0.0.1:${port}`;
  const signIn = async (password: string) =>
    (
      await fetch(`${origin}/v1/sign-in`, {
        method: "POST",
        headers: { "content-type": "application/json", origin },
        body: JSON.stringify({ name: "ann", password }),
      })
    ).status;
  expect([await signIn(made.stdout.trim()), await signIn(again.password as string)]).toEqual([401, 200]);
  expect(server.stdout + server.stderr).not.toContain("first start");
  await server.end("SIGTERM");
  expect((await ask("users", "remove", "ann")).stderr).toContain("ADMIN_NEEDED");
  await ask("users", "create", "bea", "--role", "admin");
  expect((await ask("users", "remove", "ann")).code).toBe(0);
  expect((await ask("users", "list")).stdout).toMatch(/^bea +admin/m);
});
