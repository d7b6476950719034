import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';

type Operation = NonNullable<ZodOpenApiPathsObject[string]['post']>;

/** What this service posts to others, by name: `body` is what they get. */
export type WebhookDocs = Record<
  string,
  { summary: string; description: string; body: z.ZodType; headers: Record<string, string> }
>;

/** One of them, as an operation of the reference. */
export function describeWebhook({
  summary,
  description,
  body,
  headers,
}: WebhookDocs[string]): Operation {
  const described = Object.entries(headers).map(
    ([name, text]) => [name, z.string().meta({ description: text })] as const,
  );
  return {
    summary,
    description,
    tags: ['Accounts'],
    security: [],
    requestParams: { header: z.object(Object.fromEntries(described)) },
    requestBody: { required: true, content: { 'application/json': { schema: body } } },
    responses: {
      '2XX': { description: 'It is taken.' },
      '4XX': { description: 'It is sent again later, as with no answer within 5 s.' },
    },
  };
}
