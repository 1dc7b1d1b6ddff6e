import { type Coordination, type Service, startService, stopService } from "./coordination.ts";
import { Postgres } from "./postgres.ts";

/** PostgreSQL and the coordination service that the harness starts. */
export class Servers {
  readonly postgres: Postgres;
  readonly service: Service;

  private constructor(postgres: Postgres, service: Service) {
    this.postgres = postgres;
    this.service = service;
  }

  static async start(coordination: Coordination): Promise<Servers> {
    const [postgres, service] = await Promise.all([Postgres.start(), startService(coordination)]);
    return new Servers(postgres, service);
  }

  async close(): Promise<void> {
    await Promise.all([this.postgres.close(), stopService(this.service)]);
  }
}
