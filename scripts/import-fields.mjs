/** Writes docs/reference/importing-fields.md from the tables of the compiled importers; run `npm run build` before. */
import { writeFileSync } from "node:fs";
import { fieldsPage } from "../scheduler/dist/importers/fields-page.js";

writeFileSync(new URL("../docs/reference/importing-fields.md", import.meta.url), fieldsPage());
