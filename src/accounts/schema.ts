import { EmailAddress, Language } from '../contract/values.ts';
import { z } from 'zod';
import { isTimeZone } from '../lib/time.ts';

const minPassword = 8;
const maxPassword = 128;

/** 8 to 128 characters, counted as code points of the normal form (NFC) that is hashed. */
export const Password = z
  .string()
  .refine((text) => {
    const { length } = Array.from(text.normalize('NFC'));
    return length >= minPassword && length <= maxPassword;
  }, `expected ${minPassword} to ${maxPassword} characters`)
  .meta({ minLength: minPassword, maxLength: maxPassword, format: 'password' });

export const NewCredentials = z.object({ email: EmailAddress, password: Password });
export type NewCredentials = z.infer<typeof NewCredentials>;

/** An invalid address or a password that is too short simply matches nothing; there is no need to report it. */
export const AccountLogin = z
  .object({
    email: z.string(),
    password: z.string().meta({ format: 'password' }),
  })
  .meta({ id: 'AccountLogin' });
export type AccountLogin = z.infer<typeof AccountLogin>;

export const PushTokenText = z.string().min(1).max(512);

/** Specification 4.2, Update Account. Absent members stay unchanged. */
export const AccountUpdate = z.object({
  name: z.string().max(200).optional(),
  apn: z
    .array(z.object({ token: PushTokenText }).meta({ id: 'PushToken' }))
    .max(100)
    .optional(),
  timeZone: z
    .string()
    .max(64)
    .refine(isTimeZone, 'expected a time zone name from the IANA database, such as Europe/Berlin')
    .optional()
    .meta({ description: 'The time zone used in messages to people.', example: 'Europe/Berlin' }),
  language: Language.optional(),
});
export type AccountUpdate = z.infer<typeof AccountUpdate>;

export const PasswordChange = z.object({
  oldPassword: z.string().meta({ format: 'password' }),
  newPassword: Password,
});
export type PasswordChange = z.infer<typeof PasswordChange>;

export const ForgottenPassword = z.object({ email: EmailAddress });

export const PasswordReset = z.object({
  token: z.string().max(200).meta({ description: 'The part of the link after `?token=`.' }),
  password: Password,
});

export const EmailChange = z.object({
  password: z.string().meta({ format: 'password' }),
  email: EmailAddress,
});

/** An entry of GET /v2/accounts/sessions. */
export const SessionEntry = z
  .object({
    id: z.guid(),
    kind: z.enum(['pair', 'account']).meta({
      description: 'pair: created by /v1/auth/login; account: created by /v2/accounts/login.',
    }),
    createdTs: z.int(),
    lastUsedTs: z.int().meta({ description: 'Accurate to an hour.' }),
    expiresTs: z.int(),
    current: z.boolean().meta({ description: 'Whether this is the session of this request.' }),
    address: z.string().optional().meta({ description: 'The address where it began.' }),
    userAgent: z
      .string()
      .optional()
      .meta({ description: 'How the program that logged in identified itself.' }),
    pushTokens: z
      .int()
      .meta({ description: 'How many push tokens this session added; they are removed with it.' }),
  })
  .meta({ id: 'Session' });
export type SessionEntry = z.infer<typeof SessionEntry>;

/** Specification section 6. */
export const AccountEvent = z
  .object({
    timestamp: z.int(),
    type: z.literal('account'),
    event: z.enum(['register', 'login', 'update']),
    accountAuthUuid: z.string(),
  })
  .meta({ id: 'AccountEvent' });
export type AccountEvent = z.infer<typeof AccountEvent>;
