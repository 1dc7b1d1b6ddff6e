/** Finds libfaketime: a program that preloads this library has a clock that a test can step. */
import { existsSync } from "node:fs";
import { programFolders } from "./server.mjs";

/** @typedef {import("./server.mjs").ServerKind} ServerKind */

const variable = "CARILLON_TEST_FAKETIME";

/**
 * A library that other servers are started with; no server is started. The library opens its file within each call that reads the clock.
 * PostgreSQL's signal handlers read the clock too. If such a handler interrupts a call of the library, the backend aborts and the server
 * restarts; with libfaketime.so.1 statement timeouts cause that. libfaketimeMT.so.1 blocks signals during the call.
 * @type {Omit<ServerKind, "start">}
 */
export const faketime = {
  variable,
  title: "libfaketime",
  debian: ["libfaketime"],
  advice: "Install libfaketime (Debian: apt-get install libfaketime).",
  find() {
    const places = [
      "/usr/lib/*/faketime",
      "/usr/lib/faketime",
      "/usr/local/lib/faketime",
      "/opt/homebrew/lib/faketime",
    ];
    const libraries = programFolders(places).map((folder) => `${folder}/libfaketimeMT.so.1`);
    for (const bin of [process.env[variable], ...libraries]) if (bin && existsSync(bin)) return { bin, version: "" };
    return undefined;
  },
};

/**
 * Returns the environment with which a program's wall clock is shifted by the number of seconds in `file` ("+7200", "-3600"), as soon as
 * the file is written. The monotonic clock is not shifted.
 * @param {import("./server.mjs").Place} place @param {string} file @returns {Record<string, string>}
 */
export const fakedBy = ({ bin }, file) => ({
  LD_PRELOAD: bin,
  FAKETIME_TIMESTAMP_FILE: file,
  FAKETIME_NO_CACHE: "1",
  FAKETIME_DONT_FAKE_MONOTONIC: "1",
});
