import type { z } from 'zod';
import type { ChannelName } from '../../contract/actions.ts';
import type { Channel, ChannelDeps, OpenChannel } from './channel.ts';
import { email, emailSettings, openEmail } from './email.ts';
import { openPush, push, pushSettings } from './push.ts';
import { openSms, sms, smsSettings } from './sms.ts';
import { openWebhooks, webhook, webhookSettings } from './webhook.ts';

/** Every channel there is. */
export const channels: Readonly<Record<ChannelName, Channel>> = { push, sms, email, webhook };

/** The settings of each, as members of `notifications` in the configuration. */
export const channelSettings = {
  push: pushSettings,
  email: emailSettings,
  webhooks: webhookSettings,
  sms: smsSettings,
};
type ChannelSettings = z.infer<z.ZodObject<typeof channelSettings>>;

/** The channels that a process has. */
export type OpenChannels = Partial<Record<ChannelName, OpenChannel>>;

/** Opens the channels that the configuration names; rejects if a key or secret cannot be read. */
export async function openChannels(
  settings: ChannelSettings,
  deps: ChannelDeps,
): Promise<OpenChannels> {
  const all = {
    push: await openPush(settings.push),
    sms: await openSms(settings.sms, deps),
    email: openEmail(deps),
    webhook: openWebhooks(deps),
  };
  return Object.fromEntries(Object.entries(all).filter(([, channel]) => channel !== null));
}
