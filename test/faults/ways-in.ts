import type { DeviceSpec } from '../../bench/client/fleet.ts';
import type { HttpWay } from '../../bench/client/http-body.ts';
import { wrongItem } from './messages.ts';
import type { WitnessDevice } from './register.ts';

type Style = Omit<HttpWay, 'port'>;

const styles: Style[] = [
  { connections: 1, isKept: true, body: 'json', most: 1, wrongItem },
  { connections: 1, isKept: false, body: 'ndjson', most: 5, wrongItem },
  { connections: 2, isKept: true, body: 'json', most: 5, wrongItem, pollTopics: 'state,errors' },
];

/**
 * How device `n` connects. Of three devices one speaks MQTT 3.1.1, one MQTT 5 and, if there is an `httpPort`, one HTTP:
 * over a kept connection, over a new one each time in lines, or over two in turn while it polls.
 */
export function wayOf(
  { uuid, token }: WitnessDevice,
  n: number,
  httpPort: number | null,
): DeviceSpec {
  const spec = {
    clientId: uuid,
    username: uuid,
    password: token,
    topic: `devices/${uuid}/up/measurements`,
  };
  if (n % 3 === 1) return { ...spec, version: 5 };
  const style = styles[Math.floor(n / 3) % styles.length];
  return n % 3 === 2 && httpPort !== null && style
    ? { ...spec, http: { ...style, port: httpPort } }
    : spec;
}
