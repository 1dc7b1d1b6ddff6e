/** Writes docs/openapi.json from the contract, as it is compiled: npm run build, this, npm run format. */
import { writeFileSync } from "node:fs";
import { describeApi } from "../scheduler/dist/openapi.js";
import { version } from "../scheduler/dist/version.js";

writeFileSync(new URL("../docs/openapi.json", import.meta.url), `${JSON.stringify(describeApi(version), null, 2)}\n`);
