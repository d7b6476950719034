import { isUuid } from '../../src/lib/uuid.ts';
import type { Log } from '../options.ts';

/** Lines of one address, and of all, in a minute: enough for whoever bans by them. */
const linesPerAddress = 20;
const linesInAll = 2_000;
const minuteMs = 60_000;

const saidOf = {
  mqtt: {
    one: 'mqtt.login-refused',
    oneText: 'A login over MQTT was refused.',
    more: 'mqtt.logins-refused',
    moreText: 'Further logins over MQTT were refused that have no line of their own.',
  },
  http: {
    one: 'http.login-refused',
    oneText: 'A login of a device over HTTP was refused.',
    more: 'http.logins-refused',
    moreText: 'Further logins of devices over HTTP were refused that have no line of their own.',
  },
} as const;

/** Writes refused logins into the log; the first of an address in a minute, the rest as a count. */
export type LogRefusedLogin = (address: string, username: string | undefined) => void;

/**
 * One line for each refused login, in a form that fail2ban reads (docs/banning.md): what a stranger
 * chooses stands behind the address. A user name is written only where it can name a device: people
 * put passwords there.
 */
export function createRefusedLoginLog(
  log: Log,
  now: () => number,
  over: 'mqtt' | 'http',
): LogRefusedLogin {
  const said = saidOf[over];
  let lines = new Map<string, number>();
  let written = 0;
  let unwritten = 0;
  let sinceMs = now();

  function beginMinute(nowMs: number): void {
    if (unwritten > 0) log.warn({ event: said.more, count: unwritten }, said.moreText);
    lines = new Map();
    written = 0;
    unwritten = 0;
    sinceMs = nowMs;
  }

  return (address, username) => {
    const nowMs = now();
    if (nowMs - sinceMs >= minuteMs) beginMinute(nowMs);
    const ofAddress = lines.get(address) ?? 0;
    if (ofAddress >= linesPerAddress || written >= linesInAll) {
      unwritten += 1;
      return;
    }
    lines.set(address, ofAddress + 1);
    written += 1;
    const device =
      username !== undefined && isUuid(username.toLowerCase()) ? { device: username } : {};
    log.warn({ event: said.one, address, ...device }, said.oneText);
  };
}
