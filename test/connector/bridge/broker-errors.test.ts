import type { Socket } from 'node:net';
import type { Packet } from 'mqtt-packet';
import { describe, expect, test } from 'vitest';
import { prepareBridge, startPacketBroker } from './harness.ts';
import type { TestBridge } from './harness.ts';

/** Registers what a test has to close. Each test has its own, because they run concurrently. */
type Ends = (end: () => Promise<void>) => void;

type Answer = (packet: Packet, send: (packet: Packet) => void, socket: Socket) => void;

const connack = (reasonCode: number, properties = {}): Packet => ({
  cmd: 'connack',
  reasonCode,
  sessionPresent: false,
  properties,
});

/** Accepts the connection and answers the subscription. */
const onSubscribe =
  (answer: (messageId: number) => Packet): Answer =>
  (packet, send) => {
    if (packet.cmd === 'connect') send(connack(0));
    if (packet.cmd === 'subscribe') send(answer(packet.messageId ?? 0));
  };

const suback = (code: number): Answer =>
  onSubscribe((messageId) => ({ cmd: 'suback', messageId, granted: [code] }));
const refuse =
  (code: number): Answer =>
  (packet, send, socket) => {
    if (packet.cmd !== 'connect') return;
    send(connack(code));
    socket.end();
  };

async function meet(onEnd: Ends, answer: Answer, shareName: string | null = 'all') {
  const broker = await startPacketBroker(answer);
  onEnd(broker.close);
  const bridge = prepareBridge({ url: broker.url, username: 'us', shareName });
  onEnd(bridge.close);
  bridge.start();
  return { broker, bridge };
}

/** Expects that it was tried often, and logged once. */
async function expectOneLine({ lines, status }: TestBridge, reason: string, message: RegExp) {
  expect(status.read()).toMatchObject({ isConnected: false, reason });
  expect(lines).toEqual([
    expect.objectContaining({ reason, message: expect.stringMatching(message) }),
  ]);
}

const shares = /refused the shared subscription .*\$share\/all\/devices.*broker\.shareName to null/;
const credentials = /refused the user name \("us"\) or password of connector "x".*passwordFile/;

describe.concurrent('a broker that', () => {
  test.for([
    ['refuses the password (0x86)', refuse(0x86), 'refused-credentials', credentials],
    ['authorizes nobody (0x87)', refuse(0x87), 'refused-credentials', credentials],
    ['speaks another version (0x84)', refuse(0x84), 'protocol-version', /does not support MQTT 5/],
    ['wants another identifier (0x85)', refuse(0x85), 'refused-client-id', /client identifier/],
    ['is busy (0x89)', refuse(0x89), 'broker-unavailable', /reports that it is unavailable/],
    ['refuses $share by SUBACK 0x9E', suback(0x9e), 'shared-subscriptions', shares],
    ['treats $share as a topic (SUBACK 0x8F)', suback(0x8f), 'shared-subscriptions', shares],
    [
      'says in its CONNACK that it has no $share',
      (packet, send) =>
        packet.cmd === 'connect' && send(connack(0, { sharedSubscriptionAvailable: false })),
      'shared-subscriptions',
      shares,
    ],
    [
      'refuses $share by DISCONNECT 0x9E',
      onSubscribe(() => ({ cmd: 'disconnect', reasonCode: 0x9e })),
      'shared-subscriptions',
      shares,
    ],
    ['forbids the subscription', suback(0x87), 'refused-subscription', /subscribe to \$share/],
    [
      'closes without an answer',
      (_packet, _send, socket) => socket.destroy(),
      'closed-at-connect',
      /closed the connection instead of answering/,
    ],
    [
      'speaks HTTP',
      (_packet, _send, socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
      'protocol-error',
      /violates MQTT 5/,
    ],
    [
      'has another client of that name',
      (packet, send) => {
        if (packet.cmd === 'connect') send(connack(0));
        if (packet.cmd === 'subscribe') send({ cmd: 'disconnect', reasonCode: 0x8e });
      },
      'session-taken',
      /with the client identifier of connector "x"/,
    ],
  ] as [string, Answer, string, RegExp][])(
    '%s is named in one line, however often it is tried',
    { timeout: 60_000 },
    async ([, answer, reason, message], { onTestFinished: onEnd, expect }) => {
      const { broker, bridge } = await meet(onEnd, answer);
      await expect.poll(() => broker.connects.length, { timeout: 60_000 }).toBeGreaterThan(2);
      await expectOneLine(bridge, reason, message);
    },
  );

  test('refuses an ordinary filter is not reported as refusing shares', async ({
    onTestFinished: onEnd,
  }) => {
    const { bridge } = await meet(onEnd, suback(0x8f), null);
    await expect.poll(() => bridge.lines.length).toBe(1);
    await expectOneLine(bridge, 'refused-subscription', /subscribe to devices\/\+\/up\/#/);
  });

  test('never answers is named', async ({ onTestFinished: onEnd, expect }) => {
    const { bridge } = await meet(onEnd, () => undefined);
    await expect.poll(() => bridge.lines.length, { timeout: 60_000 }).toBe(1);
    await expectOneLine(bridge, 'no-answer', /does not answer/);
  });

  test('falls silent is left, and tried again', async ({ onTestFinished: onEnd, expect }) => {
    let isSilent = false;
    const { broker, bridge } = await meet(onEnd, (packet, send) => {
      if (isSilent) return;
      if (packet.cmd === 'pingreq') send({ cmd: 'pingresp' });
      suback(1)(packet, send, undefined as never);
    });
    await expect.poll(() => bridge.status.read().isConnected).toBe(true);
    isSilent = true;
    await expect.poll(() => bridge.status.read().reason, { timeout: 60_000 }).toBe('no-answer');
    isSilent = false;
    await expect.poll(() => bridge.status.read().isConnected, { timeout: 60_000 }).toBe(true);
    expect(broker.connects.length).toBeGreaterThan(1);
    expect(bridge.lines.map(({ message }) => message)).toEqual([
      'Connected to the broker.',
      expect.stringContaining('does not answer'),
    ]);
  });
});

test('a connection that comes and goes is logged once, and again with the state in which it settles', async ({
  onTestFinished: onEnd,
}) => {
  let stays = false;
  const broker = await startPacketBroker((packet, send) => {
    suback(1)(packet, send, undefined as never);
    if (packet.cmd === 'subscribe' && !stays) send({ cmd: 'disconnect', reasonCode: 0x8e });
  });
  onEnd(broker.close);
  const bridge = prepareBridge({ url: broker.url }, 2_500);
  onEnd(bridge.close);
  bridge.start();
  await expect.poll(() => broker.connects.length, { timeout: 60_000 }).toBeGreaterThan(3);
  const said = () => bridge.lines.map(({ reason, message }) => reason ?? message);
  expect(said()).toEqual(['Connected to the broker.', 'session-taken']);
  stays = true;
  await expect
    .poll(said, { timeout: 60_000 })
    .toEqual(['Connected to the broker.', 'session-taken', 'Connected to the broker.']);
});
