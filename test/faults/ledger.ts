import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** The load client's record of what was sent and acknowledged. */
export type Ledger = {
  /** Written through to the operating system before the message is sent. */
  sent(device: number, seq: number): void;
  acknowledged(device: number, seq: number): void;
  /** Reads both files back: by device, how many messages were sent, and which were acknowledged. */
  read(devices: number): Testimony;
  close(): void;
};

export type Testimony = { sent: number[]; acknowledged: Set<number>[] };

export function openLedger(dir: string): Ledger {
  const paths = { sent: join(dir, 'sent.log'), acknowledged: join(dir, 'acknowledged.log') };
  const files = {
    sent: openSync(paths.sent, 'w'),
    acknowledged: openSync(paths.acknowledged, 'w'),
  };
  return {
    sent: (device, seq) => void writeSync(files.sent, `${device} ${seq}\n`),
    acknowledged: (device, seq) => void writeSync(files.acknowledged, `${device} ${seq}\n`),
    read(devices) {
      const sent = Array.from({ length: devices }, () => 0);
      for (const [device, seq] of readPairs(paths.sent)) {
        sent[device] = Math.max(sent[device] ?? 0, seq + 1);
      }
      const acknowledged = Array.from({ length: devices }, () => new Set<number>());
      for (const [device, seq] of readPairs(paths.acknowledged)) acknowledged[device]?.add(seq);
      return { sent, acknowledged };
    },
    close() {
      closeSync(files.sent);
      closeSync(files.acknowledged);
    },
  };
}

function readPairs(path: string): [number, number][] {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => line.split(' ').map(Number) as [number, number]);
}
