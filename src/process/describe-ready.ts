type ListenAddress = { host: string; port: number };
export type Addresses = {
  http?: ListenAddress;
  mqtt?: ListenAddress;
  mqtts?: ListenAddress;
  /** Of a connector process; others have it where HTTP is. */
  webSocket?: ListenAddress;
  metrics?: ListenAddress;
  health?: ListenAddress;
};

/** Where the service listens and what to try next, for people. */
export function describeReady(
  { http, mqtt, mqtts, webSocket, metrics, health }: Addresses,
  hasConsole = false,
): string[] {
  const listens = [
    http && `HTTP on ${at(http)}`,
    mqtt && `MQTT on ${at(mqtt)}`,
    mqtts && `MQTT over TLS on ${at(mqtts)}`,
    webSocket && `MQTT over WebSocket on ${at(webSocket)}`,
    metrics && `metrics on ${at(metrics)}`,
    health && `health on ${at(health)}`,
  ].filter((line) => line !== undefined);
  const lines = [`Sensorium listens: ${listens.join(', ')}.`];
  if (!http) return lines;
  const url = `http://${at({ ...http, host: reachable(http.host) })}`;
  return [
    ...lines,
    'Try next:',
    ...(hasConsole ? [`  open ${url} in a browser`] : []),
    `  curl ${url}/v2/accounts -H 'Content-Type: application/json' -d '{"email":"you@example.com","password":"correct horse"}'`,
    `  npm run simulate -- --devices 100 --seconds 30 --url ${url}`,
    `  open ${url}/docs for the HTTP and MQTT reference`,
  ];
}

function at({ host, port }: ListenAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** An address that listens everywhere is none to connect to. */
function reachable(host: string): string {
  return host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
}
