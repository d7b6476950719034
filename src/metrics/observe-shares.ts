import { Gauge, type Registry } from 'prom-client';

/** `countWaiting`: requests of accounts that wait for a connection to the database. */
export function observeShares(registry: Registry, countWaiting: () => number): void {
  new Gauge({
    name: 'database_requests_waiting',
    help: 'Requests of accounts that wait for a connection to the database, as their account has its share.',
    registers: [registry],
    collect() {
      this.set(countWaiting());
    },
  });
}
