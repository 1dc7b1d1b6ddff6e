/** Writes docs/importing-fields.md from the tables of the importers, as they are compiled: npm run build, this. */
import { writeFileSync } from "node:fs";
import { fieldsPage } from "../scheduler/dist/importers/fields-page.js";

writeFileSync(new URL("../docs/importing-fields.md", import.meta.url), fieldsPage());
