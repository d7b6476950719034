import { describe, expect, it } from 'vitest';
import settings from '../../config/default.ts';
import type { ConnectionEnding } from '../../connector/ports.ts';
import { AuditKind } from '../../src/audit/audit.ts';
import { NotNotified } from '../../src/contract/event.ts';
import type { RejectionReason } from '../../src/contract/uplink.ts';
import { refusalReasons } from '../../src/devices/schema.ts';
import { scopes } from '../../src/http/request.ts';
import { reasons as notificationReasons } from '../../src/notifications/reasons.ts';
import { readProjectFile } from './readme.ts';

/** Types have no values at run time, so the compiler checks that these lists are complete. */
const rejectionReasons: Record<RejectionReason, true> = {
  'invalid-json': true,
  'invalid-payload': true,
  'unknown-topic': true,
  'foreign-topic': true,
  'unknown-sense': true,
  'out-of-range': true,
  'future-timestamp': true,
  'expired-timestamp': true,
  'unknown-state': true,
  'unknown-profile': true,
  'unknown-command': true,
  'unknown-member': true,
  'too-many-connects': true,
  'too-many-connections': true,
  'session-taken-over': true,
  'message-not-acknowledged': true,
  'packet-too-large': true,
  'quota-exceeded': true,
  unstorable: true,
  'events-not-recorded': true,
  'more-of-message': true,
  'more-of-minute': true,
};

const endings: Record<ConnectionEnding, true> = {
  peer: true,
  keepalive: true,
  malformed: true,
  unfinished: true,
  'foreign-topic': true,
  replaced: true,
  'too-many-connections': true,
  'access-ended': true,
  'not-stored': true,
  unread: true,
  shutdown: true,
};

const troubleshooting = 'docs/troubleshooting.md';

describe('the tables of the documentation name everything once:', () => {
  it.each<[string, string, string, readonly string[]]>([
    ['why logins of devices are refused', troubleshooting, 'Why it was refused', refusalReasons],
    ['why connections end', troubleshooting, 'It is closed again', Object.keys(endings)],
    [
      'why what a device sent is rejected',
      troubleshooting,
      'My value is not there',
      Object.keys(rejectionReasons),
    ],
    ['why messages do not arrive', 'docs/messages.md', 'Reasons', Object.keys(notificationReasons)],
    [
      'the kinds of entries in the audit trail',
      'docs/audit.md',
      'What happened to my account?',
      AuditKind.options,
    ],
    ['why nobody was notified', 'docs/alarms-reference.md', 'Who was told', NotNotified.options],
    ['what a key may be used for', 'docs/api-keys.md', 'API keys', scopes],
    ['quotas', 'docs/quotas.md', 'All quotas', Object.keys(settings.quotas ?? {})],
  ])('%s', (_, page, heading, expected) => {
    const named = listRows(page, heading).flatMap(([first = '']) => listCode(first));
    expect(named.toSorted()).toEqual([...expected].toSorted());
  });

  it('quotas have their defaults', () => {
    const defaults = listRows('docs/quotas.md', 'All quotas').flatMap(
      ([names = '', values = '']) => {
        const numbers = values.split(', ').map((value) => Number(value.replaceAll(',', '')));
        return listCode(names).map((name, place) => [name, numbers[place]]);
      },
    );
    expect(Object.fromEntries(defaults)).toEqual(settings.quotas);
  });
});

/** The cells of table rows that begin with code, between a heading and the next one, without the tables' heads. */
function listRows(page: string, heading: string): string[][] {
  const [, rest = ''] = readProjectFile(page).split(new RegExp(`^#+ ${escape(heading)}$`, 'm'));
  const [section = ''] = rest.split(/^#+ /m);
  return section
    .split('\n')
    .filter((line, place, lines) => /^\| +`/.test(line) && !lines[place + 1]?.startsWith('| -'))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
}

const escape = (text: string) => text.replaceAll('?', String.raw`\?`);

/** The text between backticks. */
const listCode = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
