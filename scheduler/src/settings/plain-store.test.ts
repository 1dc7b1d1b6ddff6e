import { expect, it } from "vitest";
import { plainHosts } from "./plain-store.ts";

it.each<[string, Record<string, string>, string[]]>([
  ["postgres://me:secret@db.example/app", {}, ["db.example"]],
  ["postgres://me@10.0.0.7:6543/app?application_name=x", {}, ["10.0.0.7"]],
  ["postgres://me@[fd00::2]:5432/app", {}, ["[fd00::2]"]],
  ["postgres://me@127.0.0.1,db-1.example,[fd00::2]/app", {}, ["db-1.example", "fd00::2"]],
  ["postgres:///app?host=db.example", {}, ["db.example"]],
  ["postgres:///app", { PGHOST: "db.example" }, ["db.example"]],
  ["postgres://db.example/app?ssl=false", {}, ["db.example"]],
  ["postgres://db.example/app", { PGSSLMODE: "allow" }, ["db.example"]],
  ["postgres:///app", {}, []],
  ["postgres:///app?host=/run/postgresql", {}, []],
  ["/run/postgresql app", {}, []],
  ["postgres://me@localhost:5432/app", {}, []],
  ["postgres://me@127.0.0.1,[::1]/app", {}, []],
  ["postgres://db.example/app?sslmode=verify-full", {}, []],
  ["postgres://db.example/app?sslmode=disable", {}, []],
  ["postgres://db.example/app?sslrootcert=ca.pem", {}, []],
  ["postgres://db.example/app?ssl=true", {}, []],
  ["postgres://db.example/app", { PGSSLMODE: "verify-full" }, []],
])("%s with %o connects to other machines without TLS: %o", (url, environment, hosts) => {
  expect(plainHosts(url, environment)).toEqual(hosts);
});
