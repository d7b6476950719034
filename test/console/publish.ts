import { connectAsync } from 'mqtt';

/** Sends what the snippet says, as mosquitto_pub would. */
export async function publish(
  command: string,
  changed: (message: string) => string,
): Promise<void> {
  const of = (flag: string) => new RegExp(`-${flag} ('[^']*'|\\S+)`).exec(command)?.[1] ?? '';
  const username = of('u');
  const url = `mqtt://${of('h')}:${of('p')}`;
  const client = await connectAsync(url, { username, password: of('P'), reconnectPeriod: 0 });
  await client.publishAsync(of('t'), changed(of('m').slice(1, -1)), { qos: 1 });
  await client.endAsync();
}
