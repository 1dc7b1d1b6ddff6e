import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fastify from "fastify";
import { expect, test } from "vitest";
import { ConsolePages } from "./console-pages.ts";

test("a server without the built console reports that, and how to build it", async () => {
  const app = fastify();
  const pages = new ConsolePages({ basePath: "", frameAncestors: [] }, null);
  await pages.register(app);
  app.setNotFoundHandler((request, reply) =>
    pages.isPage(request) ? pages.page(request, reply) : reply.code(404).send("not here"),
  );
  const page = await app.inject({ url: "/tasks", headers: { accept: "text/html" } });
  expect(page.statusCode).toBe(503);
  expect(page.headers["content-type"]).toContain("text/html");
  expect(page.body).toContain("npm run build");
  expect((await app.inject({ url: "/assets/index.js" })).statusCode).toBe(404);
  expect((await app.inject({ url: "/tasks" })).statusCode).toBe(404);
  await app.close();
});

test("the page names the files of the screen that its path shows, below the base path and with its nonce", async () => {
  const folder = `${await mkdtemp(join(tmpdir(), "carillon-console-"))}/`;
  const screens = [
    { path: "/", files: ["assets/overview.js"] },
    { path: "/tasks/$task", files: ["assets/task.js", "assets/task.css"] },
  ];
  await mkdir(`${folder}assets`);
  await writeFile(`${folder}index.html`, "<html><head></head><body></body></html>");
  await writeFile(`${folder}screens.json`, JSON.stringify(screens));
  const pages = new ConsolePages({ basePath: "/tools", frameAncestors: [] }, folder);
  const app = fastify();
  await pages.register(app);
  app.setNotFoundHandler((request, reply) => pages.page(request, reply));
  const linked = async (url: string) => {
    const { body, headers } = await app.inject({ url, headers: { accept: "text/html" } });
    const nonce = /'nonce-([^']+)'/.exec(String(headers["content-security-policy"]))?.[1];
    const links = body.matchAll(/<link rel="([^"]+)" crossorigin href="([^"]+)" nonce="([^"]+)">/g);
    return [...links].map(([, rel, href, own]) => [rel, href, own === nonce]);
  };
  expect(await linked("/")).toEqual([["modulepreload", "/tools/assets/overview.js", true]]);
  const ofTask = [
    ["modulepreload", "/tools/assets/task.js", true],
    ["stylesheet", "/tools/assets/task.css", true],
  ];
  expect(await linked("/tasks/etl%2Fnight?part=runs")).toEqual(ofTask);
  expect(await linked("/tasks/etl")).toEqual(ofTask);
  expect(await linked("/tasks/etl/more")).toEqual([]);
  await app.close();
  await rm(folder, { recursive: true });
});

test("a build of the console without the list of screens serves its page for every path", async () => {
  const folder = `${await mkdtemp(join(tmpdir(), "carillon-console-"))}/`;
  await mkdir(`${folder}assets`);
  await writeFile(`${folder}index.html`, "<html><head></head><body></body></html>");
  const pages = new ConsolePages({ basePath: "", frameAncestors: [] }, folder);
  const app = fastify();
  await pages.register(app);
  app.setNotFoundHandler((request, reply) => pages.page(request, reply));
  const { statusCode, body } = await app.inject({ url: "/tasks/etl", headers: { accept: "text/html" } });
  expect([statusCode, body]).toEqual([200, expect.stringContaining("<body></body>")]);
  await app.close();
  await rm(folder, { recursive: true });
});
