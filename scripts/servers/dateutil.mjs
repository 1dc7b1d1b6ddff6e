/** Finds python-dateutil, with which tests compare recurrence rules. */
import { ask } from "./server.mjs";

const variable = "CARILLON_TEST_DATEUTIL";

/** A Python that has the module dateutil; no server is started. @type {Omit<import("./server.mjs").ServerKind, "start">} */
export const dateutil = {
  variable,
  title: "python-dateutil",
  debian: ["python3", "python3-dateutil"],
  advice: "Install it (Debian: apt-get install python3-dateutil).",
  find() {
    const own = process.env[variable];
    for (const python of [...(own ? [own] : []), "python3", "/usr/bin/python3"]) {
      // Asks for the absolute path, because tests run with another PATH, in which `python3` may be another Python.
      const found = ask(python, ["-c", "import sys, dateutil; print(sys.executable); print(dateutil.__version__)"]);
      const [bin, version] = found?.split("\n") ?? [];
      if (bin && version) return { bin, version, env: { [variable]: bin } };
    }
    return undefined;
  },
};
