/** Writes docs/task-options.md from the table of task options, as it is compiled: npm run build, this. */
import { writeFileSync } from "node:fs";
import { optionsPage } from "../scheduler/dist/api/options-page.js";

writeFileSync(new URL("../docs/task-options.md", import.meta.url), optionsPage());
