import { z } from 'zod';

/** What EMQX's HTTP authenticator, by the template in config/, and mosquitto-go-auth send. */
export const AuthenticateBody = z.object({
  username: z.string().default(''),
  password: z.string().default(''),
  /** Where the client comes from, for the list of refused logins; EMQX's word. */
  peerhost: z.string().max(64).optional().catch(undefined),
});

/** How a denial is answered: in the answer's words, or by its status. */
export const HookQuery = z.object({ deny: z.enum(['200', '403']).default('200') });
export type HookQuery = z.infer<typeof HookQuery>;

/** `action` is EMQX's word; `acc` mosquitto-go-auth's: 1 read, 2 write, 3 both, 4 subscribe. */
export const AuthorizeBody = z.object({
  username: z.string().default(''),
  topic: z.string(),
  action: z.enum(['publish', 'subscribe']).optional(),
  acc: z.int().min(1).max(4).optional(),
});
export type AuthorizeBody = z.infer<typeof AuthorizeBody>;

const Rule = z.object({
  permission: z.enum(['allow', 'deny']),
  action: z.enum(['publish', 'subscribe', 'all']),
  topic: z.string(),
});
export type Rule = z.infer<typeof Rule>;

/** Both brokers' words for the same; EMQX 5.8 keeps `acl`, and asks no more about that connection. */
export const HookVerdict = z.object({
  result: z.enum(['allow', 'deny']),
  is_superuser: z.literal(false),
  ok: z.boolean(),
  error: z.string(),
  acl: z.array(Rule).optional(),
});
export type HookVerdict = z.infer<typeof HookVerdict>;
