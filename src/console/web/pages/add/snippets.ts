import type { Registration } from '../../api/types.ts';

/** A line for a shell that sends a message as the device; with `isWhole` its password is in it. */
export function publishCommand(
  { host, port, protocol, deviceAuthUuid: uuid, deviceAuthToken: token }: Registration,
  message: string,
  isWhole: boolean,
): string {
  const isSecure = protocol === 'mqtts' || protocol === 'wss';
  const lines = [
    `mosquitto_pub -h ${host} -p ${port}${isSecure ? ' --tls-use-os-certs' : ''} -q 1`,
    `-u ${uuid} -P ${isWhole ? token : '•'.repeat(12)}`,
    `-t devices/${uuid}/up/measurements`,
    `-m '${message}'`,
  ];
  return lines.join(' \\\n  ');
}

/** All that a device needs, as an address. */
export function qrText({
  host,
  port,
  protocol,
  deviceAuthUuid: uuid,
  deviceAuthToken: token,
}: Registration): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return `${protocol}://${uuid}:${encodeURIComponent(token)}@${name}:${port}`;
}
