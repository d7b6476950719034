type Parameter = { description?: string; schema?: { description?: string } };
type WithPaths = { paths?: Record<string, object> };

/** Says of each parameter what its schema says: pages and generators read the parameter's own description. */
export function describeParameters<D extends WithPaths>(document: D): D {
  const paths = mapValues(document.paths ?? {}, (path) =>
    mapValues(path as Record<string, { parameters?: Parameter[] }>, ({ parameters, ...rest }) => ({
      ...rest,
      ...(parameters === undefined ? {} : { parameters: parameters.map(describe) }),
    })),
  );
  return { ...document, paths };
}

function describe({ description, schema, ...rest }: Parameter): Parameter {
  const said = description ?? schema?.description;
  return { ...rest, ...(said === undefined ? {} : { description: said }), schema };
}

function mapValues<T, U>(record: Record<string, T>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}
