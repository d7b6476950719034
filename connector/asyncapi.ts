/** The device contract as an AsyncAPI 3 document. */
export function asyncApiDocument(): object {
  return { asyncapi: '3.0.0', info: { title: 'Sensorium devices', version: '1' } };
}
