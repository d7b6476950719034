import type { DeviceSpec } from './device-types.ts';
import {
  openHttpConnection,
  type HttpConnection,
  type HttpConnectionOptions,
} from './http-connection.ts';

type PollingOptions = Pick<HttpConnectionOptions, 'host' | 'port' | 'localAddress'> & {
  spec: Pick<DeviceSpec, 'topic' | 'username' | 'password'>;
  /** As in the query: separated by commas. */
  topics: string;
  received: (topic: string, payload: Buffer) => void;
};

const waitSeconds = 25;
const timeoutMs = 40_000;
const retryMs = 1_000;

/**
 * Waits for messages with one long poll after the other, each acknowledging the previous one's messages, until stopped.
 */
export function startPolling({ spec, topics, received, ...at }: PollingOptions): {
  stop: () => void;
} {
  const login = Buffer.from(`${spec.username}:${spec.password}`).toString('base64');
  const path = `/${spec.topic.split('/', 2).join('/')}/down?wait=${waitSeconds}&topics=${topics}`;
  let after = '';
  let connection: HttpConnection | null = null;
  let timer: NodeJS.Timeout | null = null;

  function open(): void {
    connection = openHttpConnection({ ...at, timeoutMs, answered: onAnswer, ended: retry });
    ask();
  }

  function ask(): void {
    connection?.ask(
      `GET ${path}&after=${after} HTTP/1.1\r\nHost: fleet\r\nAuthorization: Basic ${login}\r\n\r\n`,
    );
  }

  function onAnswer({ status, body }: { status: number; body: string }): void {
    if (status !== 200) {
      connection?.close('end');
      return retry();
    }
    const answer = JSON.parse(body) as {
      messages: { topic: string; payload: unknown }[];
      after: string;
    };
    ({ after } = answer);
    for (const { topic, payload } of answer.messages)
      received(topic, Buffer.from(JSON.stringify(payload)));
    ask();
  }

  function retry(): void {
    timer = setTimeout(open, retryMs * (0.5 + Math.random())).unref();
  }

  open();
  return {
    stop() {
      if (timer) clearTimeout(timer);
      connection?.close('reset');
    },
  };
}
