import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { flood, registerDevices } from '../devices.ts';
import type { Enemy } from '../enemy.ts';
import type { NoisyKind } from '../kind.ts';
import { enough, work } from '../workers.ts';
import { SMTPServer } from 'smtp-server';

const requestsPerSecond: NoisyKind = {
  name: 'requests-per-second',
  says: '64 connections that send requests as fast as they are answered',
  async setUp(enemy) {
    const [device] = await registerDevices(enemy, 1);
    const paths = [
      '/v2/devices',
      '/v2/purposes',
      '/v2/accounts/usage',
      `/v2/events/${device?.uuid}`,
      `/v2/devices/${device?.uuid}/configuration`,
      `/v2/devices/${device?.uuid}/rejections`,
    ];
    return (signal) =>
      work(64, signal, (worker, turn) =>
        enemy.ask('GET', paths[(worker + turn) % paths.length] ?? '/', { isDiscarded: true }),
      );
  },
};

type Flood = { connections: number; text: string; requests: number; pauseMs: number };

/** Writes the text on each connection again and again. A closed connection is opened again. */
async function writeAgain(enemy: Enemy, signal: AbortSignal, of: Flood): Promise<void> {
  const port = Number(new URL(enemy.url).port);
  const open = () => {
    if (signal.aborted) return;
    const socket = enemy.dial(port).resume();
    enemy.tally.count('opened');
    const write = () => {
      // A connection that the service has ended is not destroyed yet, and takes nothing more.
      if (signal.aborted || !socket.writable) return;
      enemy.tally.count('asked', of.requests);
      socket.write(of.text, () =>
        of.pauseMs > 0 ? setTimeout(write, of.pauseMs) : setImmediate(write),
      );
    };
    write();
    socket.once('close', () => setTimeout(open, of.pauseMs > 0 ? 100 : 10).unref());
  };
  for (let n = 0; n < of.connections; n++) open();
  await enough(signal);
}

/** Requests without an account, so that no account's rate counts them, written before any is answered. */
const pipelining: NoisyKind = {
  name: 'pipelining',
  says: '50 connections that write 2,000 requests at once, with and without a token',
  setUp: async (enemy) => {
    const token = `Authorization: Bearer ${enemy.account.token}\r\n`;
    const request = (n: number) =>
      `GET ${n % 2 === 0 ? '/v2/status' : '/v2/devices'} HTTP/1.1\r\nHost: x\r\n` +
      `${n % 2 === 0 ? '' : token}\r\n`;
    const requests = 2_000;
    const text = Array.from({ length: requests }, (_, n) => request(n)).join('');
    return (signal) => writeAgain(enemy, signal, { connections: 50, text, requests, pauseMs: 50 });
  },
};

/** The shortest request of each form, including some that Node's HTTP server would answer by itself. */
const shortest: Record<string, string> = {
  plain: 'GET /v2/accounts HTTP/1.1\r\nHost: a\r\n\r\n',
  'without-host': 'GET / HTTP/1.1\r\n\r\n',
  expecting: 'GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n',
  continued: 'GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n',
  upgrading: 'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
  connecting: 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
  malformed: 'A\r\n\r\n',
  chunked: `POST /v2/accounts/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(10_000)}0\r\n\r\n`,
};
const writtenBytes = 65_536;

/** From one address, without a pause, on a heap of half a gigabyte. */
const pipelined: NoisyKind[] = [
  ...Object.keys(shortest).map((form) => ({ form, connections: 400 })),
  { form: 'plain', connections: 2_000 },
].map(({ form, connections }) => ({
  name: `pipelined-${form}${connections > 400 ? '-many' : ''}`,
  says: `${connections} connections that write 64 KiB of the shortest requests at once, without a pause: ${form}`,
  livezMs: 300,
  keptMb: 100,
  variables: () => ({ NODE_OPTIONS: '--max-old-space-size=512' }),
  setUp: async (enemy) => {
    const one = shortest[form] ?? '';
    const requests = Math.max(1, Math.floor(writtenBytes / one.length));
    const text = one.repeat(requests);
    return (signal) => writeAgain(enemy, signal, { connections, text, requests, pauseMs: 0 });
  },
}));

const megabyte = 1_048_576;
const head = (token: string) =>
  `POST /v2/purposes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
  'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
const chunk = Buffer.concat([
  Buffer.from(`${(megabyte / 16).toString(16)}\r\n`),
  Buffer.alloc(megabyte / 16, 0x20),
  Buffer.from('\r\n'),
]);

const chunkedBody: NoisyKind = {
  name: 'chunked-body',
  says: 'chunked bodies above 1 MiB, each followed by another request on its connection',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    return (signal) =>
      work(16, signal, async () => {
        const socket = enemy.dial(port).resume();
        const closed = once(socket, 'close');
        socket.write(head(enemy.account.token));
        for (let n = 0; n < 20; n++) socket.write(chunk);
        socket.write('0\r\n\r\nGET /v2/status HTTP/1.1\r\nHost: x\r\n\r\n');
        await closed;
        enemy.tally.count('closed');
      });
  },
};

const zeros = Buffer.alloc(64 * 1_048_576, 0x20);

const compressedBodies: NoisyKind = {
  name: 'compressed-bodies',
  says: 'bodies of a few kB that unpack to 64 MB',
  setUp: async (enemy) => {
    const bombs = { gzip: gzipSync(zeros), br: brotliCompressSync(zeros) };
    const post = (encoding: keyof typeof bombs) =>
      new Promise<void>((resolve) => {
        const sent = request(`${enemy.url}/v2/purposes`, {
          method: 'POST',
          localAddress: enemy.address,
          headers: {
            Authorization: `Bearer ${enemy.account.token}`,
            'Content-Type': 'application/json',
            'Content-Encoding': encoding,
          },
        });
        sent.on('socket', enemy.tally.watch);
        sent.on('error', () => resolve());
        sent.on('response', (response) => {
          enemy.tally.count(`HTTP ${response.statusCode}`);
          response.resume().on('close', resolve);
        });
        sent.end(bombs[encoding]);
      });
    return (signal) => work(16, signal, (worker) => post(worker % 2 === 0 ? 'gzip' : 'br'));
  },
};

const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
const wide = (bytes: number) => `[${'[],'.repeat(bytes / 3)}[]]`;
const keys = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, {}])));

const deepJson: NoisyKind = {
  name: 'deep-json',
  says: 'nested arrays and thousands of keys, over MQTT and in bodies of 1 MB',
  quotaBytes: () => 10 * 2 * 1_048_576,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const payloads = [deep(30_000), wide(60_000), keys(5_000)];
    const bodies = [deep(500_000), wide(1_000_000), keys(60_000)];
    return async (signal) => {
      await Promise.all([
        flood(
          enemy,
          { devices, payload: (device, seq) => payloads[(device + seq) % 3] ?? null },
          signal,
        ),
        work(8, signal, (worker, turn) =>
          enemy.ask('POST', '/v2/purposes', { body: bodies[(worker + turn) % 3] }),
        ),
      ]);
    };
  },
};

/** Different paths, which metrics by path must not keep, and headers of the largest size. */
const unknownPaths: NoisyKind = {
  name: 'unknown-paths',
  says: 'a different path, a different token and 12 kB of headers in each request',
  setUp: async (enemy) => {
    const headers = { 'X-Noise': 'x'.repeat(12_000) };
    return (signal) =>
      work(64, signal, (worker, turn) =>
        enemy.ask('GET', `/v2/${worker}/${turn}?${turn}`, { token: `no.${turn}.token`, headers }),
      );
  },
};

const loginStorm: NoisyKind = {
  name: 'login-storm',
  says: '300 connections that log in with one right password',
  setUp: async (enemy) => {
    const { email, password } = enemy.account;
    return (signal) =>
      work(300, signal, () =>
        enemy.ask('POST', '/v2/accounts/login', { body: { email, password } }),
      );
  },
};

const unicodeLogin: NoisyKind = {
  name: 'unicode-login',
  says: 'guesses a password with different spellings of the address',
  setUp: async (enemy) => {
    const email = enemy.account.email.replace('noisy', 'no\u0130sy');
    return (signal) =>
      work(50, signal, (worker, turn) => {
        const written = turn % 2 === 0 ? email : enemy.account.email.toUpperCase();
        const body = { email: written, password: `guess ${worker} ${turn}` };
        return enemy.ask('POST', '/v2/accounts/login', { body });
      });
  },
};

const passwordChanges: NoisyKind = {
  name: 'password-changes',
  says: 'tries to change its password, with wrong ones, in 40 loops',
  setUp: async (enemy) => (signal) =>
    work(40, signal, (worker, turn) => {
      // A right password would end the session that sends it.
      const body = { oldPassword: `wrong ${worker} ${turn}`, newPassword: enemy.account.password };
      return enemy.ask('PUT', '/v2/accounts/password', { body });
    }),
};

/** Another party's mail server, which takes its time. */
async function startSlowMailServer({ receiverPort, tally }: Enemy): Promise<void> {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, _session, callback) {
      tally.count('mails');
      stream.resume();
      stream.on('end', () => setTimeout(callback, 500));
    },
  });
  server.listen(receiverPort, '127.0.0.1');
  await once(server.server, 'listening');
  server.server.unref();
}

const forgottenPasswords: NoisyKind = {
  name: 'forgotten-passwords',
  says: '64 loops that request password resets from 256 addresses: of one account, of ten more, and of nobody',
  variables: (receiverPort) => ({ SMTP_URL: `smtp://127.0.0.1:${receiverPort}` }),
  async setUp(enemy) {
    await startSlowMailServer(enemy);
    const known = [enemy.account.email];
    for (let n = 0; n < 10; n += 1) known.push((await enemy.registerAccount()).email);
    return (signal) =>
      work(64, signal, async (worker, turn) => {
        const email =
          turn % 2 === 0 ? known[(worker + turn) % 11] : `nobody-${worker}-${turn}@example.com`;
        const address = `127.0.66.${((worker * 7 + turn) % 254) + 1}`;
        await enemy.ask('POST', '/v2/accounts/password/forgotten', { body: { email }, address });
        if (turn % 10 === 0) {
          const body = { token: `made up ${turn}`, password: 'long enough, and wrong' };
          await enemy.ask('POST', '/v2/accounts/password/reset', { body, address });
        }
      });
  },
};

type Pair = { token: string; refreshToken: string };

const pairOf = (text: string) => (JSON.parse(text) as { data: Pair }).data;

const sessions: NoisyKind = {
  name: 'sessions',
  says: 'logs in and refreshes in 20 loops',
  setUp: async (enemy) => {
    const { email, password } = enemy.account;
    return (signal) =>
      work(20, signal, async () => {
        const login = await enemy.ask('POST', '/v1/auth/login', { body: { email, password } });
        let pair = login.status === 200 ? pairOf(login.text) : null;
        while (pair && !signal.aborted) {
          const { token, refreshToken }: Pair = pair;
          const options = { token, body: { refreshToken } };
          const again = await enemy.ask('POST', '/v1/auth/refresh', options);
          pair = again.status === 200 ? pairOf(again.text) : null;
        }
      });
  },
};

const apiKeys: NoisyKind = {
  name: 'api-keys',
  says: 'sends wrong API keys in 48 loops, and creates, uses and revokes keys in 16',
  setUp: async (enemy) => {
    const guess = () => `sens_${randomBytes(32).toString('base64url')}`;
    return (signal) =>
      work(64, signal, async (worker) => {
        if (worker % 4 !== 0) {
          await enemy.ask('GET', '/v2/devices', { token: guess() });
          return;
        }
        const body = { name: 'noisy', scopes: ['devices:read'] };
        const { status, text } = await enemy.ask('POST', '/v2/accounts/keys', { body });
        if (status !== 200) return;
        const { key, keyId } = JSON.parse(text) as { key: string; keyId: string };
        await enemy.ask('GET', '/v2/devices', { token: key });
        await enemy.ask('DELETE', `/v2/accounts/keys/${keyId}`);
      });
  },
};

const hookSecrets: NoisyKind = {
  name: 'hook-secrets',
  says: "asks the broker's hooks with wrong secrets",
  variables: () => ({ BROKER_HOOK_SECRET: 'a secret that only the broker knows, long enough' }),
  setUp: async (enemy) => {
    const body = { username: 'x', password: 'y', clientid: 'z' };
    return (signal) =>
      work(64, signal, (worker, turn) =>
        enemy.ask('POST', '/connector/authenticate', { token: `guess ${worker} ${turn}`, body }),
      );
  },
};

/** HTTP requests and logins: many, oddly written, with wrong secrets. */
export const requestKinds: NoisyKind[] = [
  requestsPerSecond,
  pipelining,
  ...pipelined,
  chunkedBody,
  compressedBodies,
  deepJson,
  unknownPaths,
  loginStorm,
  unicodeLogin,
  passwordChanges,
  forgottenPasswords,
  sessions,
  apiKeys,
  hookSecrets,
];
