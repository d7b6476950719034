import { Counter, Gauge, type Registry } from 'prom-client';
import type { HttpSnapshot } from '../../connector/http/server.ts';
import type { Observer } from '../../connector/options.ts';
import { DurationHistogram } from './duration-histogram.ts';
import { countMessages, waitBuckets } from './observe.ts';

/** What devices do over HTTP; `read` says what is under way, and is asked when somebody asks. */
export function observeHttpUplink(
  registry: Registry,
  read: () => Pick<HttpSnapshot, 'polls'>,
): Pick<Observer, 'refused' | 'message' | 'acknowledged'> {
  const registers = [registry];
  const message = countMessages(registry, {
    name: 'http_uplink_messages_total',
    help: 'Messages from devices over HTTP, by kind of topic.',
  });
  const answers = new DurationHistogram({
    name: 'http_uplink_answer_seconds',
    help: 'Time from a message over HTTP to its answer, which follows its commit; without the wait for rates.',
    buckets: waitBuckets,
    registers,
  });
  const refusals = new Counter({
    name: 'http_uplink_refusals_total',
    help: 'Requests of devices that were not let in, by reason.',
    labelNames: ['reason'],
    registers,
  });
  new Gauge({
    name: 'http_uplink_waiting_polls',
    help: 'Requests of devices that wait for messages.',
    registers,
    collect() {
      this.set(read().polls);
    },
  });
  return {
    refused: (reason) => refusals.inc({ reason }),
    message,
    acknowledged: (seconds) => answers.observe(seconds),
  };
}
