import { PrismaPg } from "@prisma/adapter-pg";
import { getPrismaClient } from "@prisma/client/runtime/client";

/** Imported by a variable, because the module has no type declarations. */
const compiler = "@prisma/client/runtime/query_compiler_fast_bg.postgresql";

interface PrismaTransactions {
  $transaction<T>(
    work: (tx: {
      $queryRawUnsafe<R = unknown>(query: string, ...values: unknown[]): Promise<R>;
      $executeRawUnsafe(statement: string): Promise<number>;
    }) => Promise<T>,
    options: { timeout: number },
  ): Promise<T>;
  $disconnect(): Promise<void>;
}

/** Creates a Prisma client as `prisma generate` does for a schema without models. That command would have to download a program. */
export function prismaClient(url: string): PrismaTransactions {
  const Client = getPrismaClient({
    clientVersion: "7.10.0",
    engineVersion: "0",
    activeProvider: "postgresql",
    previewFeatures: [],
    inlineSchema:
      'generator client {\n  provider = "prisma-client"\n}\n\ndatasource db {\n  provider = "postgresql"\n}\n',
    runtimeDataModel: { models: {}, enums: {}, types: {} },
    parameterizationSchema: { strings: [], graph: "AAAA" },
    compilerWasm: {
      getRuntime: () => import(`${compiler}.mjs`),
      async getQueryCompilerWasmModule() {
        const { wasm } = (await import(`${compiler}.wasm-base64.mjs`)) as { wasm: string };
        const { WebAssembly } = globalThis as unknown as { WebAssembly: { Module: new (bytes: Buffer) => object } };
        return new WebAssembly.Module(Buffer.from(wasm, "base64"));
      },
      importName: "./query_compiler_fast_bg.js",
    },
  } as never);
  return new Client({ adapter: new PrismaPg({ connectionString: url }) } as never) as unknown as PrismaTransactions;
}
