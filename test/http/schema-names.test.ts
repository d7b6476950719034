import { expect, test } from 'vitest';
import { z } from 'zod';
import { createOpenApi } from '../../src/http/openapi.ts';
import { defineRoute } from '../../src/http/route.ts';

const Tree = z
  .object({
    name: z.string().default(''),
    get branches() {
      return z.array(Tree);
    },
  })
  .meta({ id: 'TestTree' });
const Leaf = z.object({ colour: z.string() }).meta({ id: 'TestLeaf' });

function schemasOf(body: z.ZodType, response: z.ZodType) {
  const route = defineRoute({
    name: 'growTree',
    method: 'post',
    path: '/v2/trees',
    summary: 'Grow',
    tag: 'Trees',
    auth: 'none',
    errors: [],
    body,
    response,
    handler: async () => ({}),
  });
  return createOpenApi([route], '1').components?.schemas as Record<string, object>;
}
const refTo = (name: string) => ({ $ref: `#/components/schemas/${name}` });

test('an unnamed schema is named after its place', () => {
  const schemas = schemasOf(
    z.object({ 'first-place': z.object({ x: z.int() }), free: z.record(z.string(), z.int()) }),
    z.object({
      list: z.array(z.object({ y: z.int() })),
      either: z.union([z.object({ a: z.int() }), z.null()]),
      by: z.record(z.string(), z.object({ b: z.int() })),
    }),
  );
  expect(schemas['GrowTreeRequest']).toMatchObject({
    properties: { 'first-place': refTo('GrowTreeRequestFirstPlace'), free: { type: 'object' } },
  });
  expect(schemas['GrowTreeResponse']).toMatchObject({
    properties: {
      list: { items: refTo('GrowTreeResponseListItem') },
      either: { anyOf: [refTo('GrowTreeResponseEitherForm1'), { type: 'null' }] },
      by: { additionalProperties: refTo('GrowTreeResponseByValue') },
    },
  });
});

test('a schema may contain itself; one with a different output form has a name of its own', () => {
  const schemas = schemasOf(
    z.object({ tree: Tree, leaf: Leaf }),
    z.object({ tree: Tree, leaf: Leaf }),
  );
  expect(schemas).toMatchObject({
    TestTree: { properties: { branches: { items: refTo('TestTree') } } },
    TestTreeOutput: { properties: { branches: { items: refTo('TestTreeOutput') } } },
    GrowTreeResponse: { properties: { tree: refTo('TestTreeOutput'), leaf: refTo('TestLeaf') } },
  });
  expect(Object.keys(schemas)).not.toContain('TestLeafOutput');
});

test('two schemas never have the same name', () => {
  const Taken = z.object({ z: z.int() }).meta({ id: 'GrowTreeRequestLeaf' });
  const body = z.object({ leaf: z.object({ y: z.int() }), other: Taken });
  expect(() => schemasOf(body, z.object({}))).toThrow('Two schemas of the reference are named');
});
