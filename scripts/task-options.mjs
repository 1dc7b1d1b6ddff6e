/** Writes docs/reference/task-options.md from the compiled table of task options; run `npm run build` before. */
import { writeFileSync } from "node:fs";
import { optionsPage } from "../scheduler/dist/api/options-page.js";

writeFileSync(new URL("../docs/reference/task-options.md", import.meta.url), optionsPage());
