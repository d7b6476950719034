import { z } from 'zod';
import { cursorQuery } from '../http/page.ts';
import { cursorTs, limitQuery, timestamp, timestampQuery } from '../http/schema.ts';

/** What is written down; docs/audit.md says when. */
export const AuditKind = z
  .enum([
    'registered',
    'login',
    'login-refused',
    'login-while-disabled',
    'session-ended',
    'password-changed',
    'password-change-refused',
    'password-reset-asked',
    'password-reset',
    'reset-link-made',
    'email-change-asked',
    'email-change-refused',
    'email-changed',
    'settings-changed',
    'device-added',
    'device-removed',
    'device-token-rotated',
    'device-token-revoked',
    'device-token-retired',
    'alarm-acknowledged',
    'alarm-closed',
    'alarm-snoozed',
    'alarm-unsnoozed',
    'device-muted',
    'device-unmuted',
    'push-token-added',
    'push-token-removed',
    'key-made',
    'key-revoked',
    'quota-changed',
    'quota-near',
    'quota-used-up',
    'sms-allowed',
    'sms-denied',
    'disabled',
    'enabled',
  ])
  .meta({ id: 'AuditKind' });
export type AuditKind = z.infer<typeof AuditKind>;

/** What one entry says beside its kind: identifiers, names of settings, a reason. Never a secret. */
export type AuditDetails = Record<string, string | number | string[]>;

/** Who did it. `service`: one of its own rules; `nobody`: somebody without credentials. */
export const AuditActor = z
  .enum(['session', 'key', 'device', 'operator', 'service', 'nobody'])
  .meta({ id: 'AuditActor' });
export type AuditActor = z.infer<typeof AuditActor>;

export const AuditEntry = z
  .object({
    auditId: z.string(),
    timestamp: timestamp.meta({ description: 'When it happened; of several, the first.' }),
    kind: AuditKind,
    by: AuditActor.meta({
      description:
        'operator: at the command line. service: a rule of its own, such as the quota of sessions. ' +
        'nobody: who did it was not logged in.',
    }),
    sessionId: z.guid().optional().meta({ description: 'The session that did it, or that began.' }),
    keyId: z.guid().optional().meta({ description: 'The API key that did it.' }),
    address: z
      .string()
      .optional()
      .meta({ description: "The client's; absent where there is none." }),
    count: z.int().optional().meta({
      description: 'So many within an hour from this address; `lastTs` is the last of them.',
    }),
    lastTs: timestamp.optional(),
    details: z.record(z.string(), z.union([z.string(), z.number(), z.array(z.string())])),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof AuditEntry>;

/** Where a page ends: the next begins right behind it. */
export const AuditCursor = z.object({ ts: cursorTs, id: z.int() });
export type AuditCursor = z.infer<typeof AuditCursor>;

export const AuditQuery = z.object({
  kinds: z
    .string()
    .transform((text) => [...new Set(text.split(',').map((kind) => kind.trim()))].filter(Boolean))
    .pipe(z.array(AuditKind))
    .optional()
    .meta({
      override: ({ jsonSchema }: { jsonSchema: object }) => {
        for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key);
        Object.assign(jsonSchema, {
          type: 'string',
          description: 'Only these: login,login-refused',
        });
      },
    }),
  start: timestampQuery.default(0),
  end: timestampQuery.optional(),
  limit: limitQuery(100),
  cursor: cursorQuery(AuditCursor),
});
export type AuditQuery = z.output<typeof AuditQuery>;

export const AuditResponse = z.object({ entries: z.array(AuditEntry), timestamp });
export type AuditResponse = z.infer<typeof AuditResponse>;
