import { AlarmDecider } from '../../src/alarms/decide.ts';
import type { Database } from '../../src/db/database.ts';
import type { MessageQuotas } from '../../src/notifications/channels/channel.ts';

const most = 1_000_000_000;
/** None is ever used up. */
const quotas: MessageQuotas = {
  messagesPerDay: most,
  messagesPerRecipient: most,
  webhooksPerDay: most,
  smsPerDay: most,
  smsPerNumber: most,
  smsPerInstallation: most,
  confirmationsPerNetwork: most,
  confirmationsPerInstallation: most,
};

/** Alarms are decided as in the service, and notifications are queued, but nobody delivers them. */
export function decideInBench(): AlarmDecider {
  return new AlarmDecider({
    rules: { ringMaxAgeMs: most, reportedForMs: 3_600_000 },
    notifying: {
      quotasOf: () => quotas,
      isAllowedNumber: () => true,
      isSmsForAll: true,
      ownChannels: ['webhook'],
    },
    clock: Date.now,
    eventsLeft: () => most,
    mayTellFirings: () => true,
  });
}

/** Gives the account this many webhooks, which are also notified when an alarm is over. */
export async function addWebhooks(db: Database, accountId: number, count: number): Promise<void> {
  await db.query(
    `insert into contact (account_id, kind, address, address_normal, place, when_over)
     select $1, 'webhook', u.url, u.url, n, true
       from generate_series(1, $2::integer) as n, lateral (select 'https://hooks.example.com/' || n as url) as u`,
    [accountId, count],
  );
}
