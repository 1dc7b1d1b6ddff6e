/** python-dateutil, which tests compare recurrence rules with. */
import { ask } from "./server.mjs";

const variable = "CARILLON_TEST_DATEUTIL";

/** No server: a Python that has the module. @type {Omit<import("./server.mjs").ServerKind, "start">} */
export const dateutil = {
  variable,
  title: "python-dateutil",
  debian: ["python3", "python3-dateutil"],
  advice: "Install it (Debian: apt-get install python3-dateutil).",
  find() {
    const own = process.env[variable];
    for (const python of [...(own ? [own] : []), "python3", "/usr/bin/python3"]) {
      const version = ask(python, ["-c", "import dateutil; print(dateutil.__version__)"]);
      if (version) return { bin: python, version, env: { [variable]: python } };
    }
    return undefined;
  },
};
