import { Gauge, type Registry } from 'prom-client';

/** `countWaiting`: requests that wait for a turn of the event loop. */
export function observeHttpTurns(registry: Registry, countWaiting: () => number): void {
  new Gauge({
    name: 'http_requests_waiting',
    help: 'Requests that have come and were not begun yet, as many came at once.',
    registers: [registry],
    collect() {
      this.set(countWaiting());
    },
  });
}
