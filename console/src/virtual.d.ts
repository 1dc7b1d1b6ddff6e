/// <reference types="vite/client" />

/** Made from the contract at build time: see vite.config.ts. */
declare module "virtual:carillon-routes" {
  const routes: Record<
    string,
    {
      method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
      path: string;
      policy: string;
      query: string[];
      body: boolean;
      etag: boolean;
      empty: boolean;
    }
  >;
  export default routes;
}
