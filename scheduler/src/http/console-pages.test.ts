import fastify from "fastify";
import { expect, test } from "vitest";
import { ConsolePages } from "./console-pages.ts";

test("a server without the built console reports that, and how to build it", async () => {
  const app = fastify();
  const pages = new ConsolePages({ basePath: "", frameAncestors: [] }, null);
  await pages.register(app);
  app.setNotFoundHandler((request, reply) =>
    pages.isPage(request) ? pages.page(reply) : reply.code(404).send("not here"),
  );
  const page = await app.inject({ url: "/tasks", headers: { accept: "text/html" } });
  expect(page.statusCode).toBe(503);
  expect(page.headers["content-type"]).toContain("text/html");
  expect(page.body).toContain("npm run build");
  expect((await app.inject({ url: "/assets/index.js" })).statusCode).toBe(404);
  expect((await app.inject({ url: "/tasks" })).statusCode).toBe(404);
  await app.close();
});
